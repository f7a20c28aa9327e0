"""Who may use the daemon, for what and how much: API keys, their limits, what they used."""
