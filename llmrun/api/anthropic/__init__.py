"""The Anthropic dialect: messages, the count of their tokens, models."""
