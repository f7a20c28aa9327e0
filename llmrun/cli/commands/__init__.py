"""One module per command, imported only when it is typed. Each offers `app`, a Typer app of one command."""
