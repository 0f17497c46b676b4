"""Production queries: read from logs, redacted, counted."""
