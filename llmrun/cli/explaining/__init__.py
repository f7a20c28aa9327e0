"""The parts of `llmrun explain`: what one request went through, on the terminal and as a page."""
