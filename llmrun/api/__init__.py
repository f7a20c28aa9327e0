"""HTTP: each dialect turns a body into requests for the daemon, and its events into a reply."""
