"""The parts of `llmrun service`: what a unit says, and how systemd or launchd is told of it."""
