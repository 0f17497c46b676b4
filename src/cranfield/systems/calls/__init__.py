"""One call of a system: reading its output, redaction of secrets."""
