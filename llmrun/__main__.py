"""`python -m llmrun`: the command line, wherever the `llmrun` script is not on the path."""

from llmrun.cli.main import entry

entry()
