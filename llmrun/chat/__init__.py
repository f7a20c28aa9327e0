"""Messages in, token ids out: chat templates, and text that cannot forge a control token."""
