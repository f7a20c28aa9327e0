"""What `llmrun doctor` looks at, one module per part of the machine. Each check returns findings."""
