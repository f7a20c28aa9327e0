"""The parts of `llmrun map`: lines in, prompts answered side by side, results out in their order."""
