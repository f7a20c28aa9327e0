"""The parts of `llmrun bench`: requests to a daemon of its own, figures of them, tables, plots."""
