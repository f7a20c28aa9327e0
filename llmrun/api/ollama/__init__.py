"""The Ollama dialect: generate, chat, and the routes that list, fetch and manage models."""
