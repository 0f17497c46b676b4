"""The commands of the server, and of what it serves."""
