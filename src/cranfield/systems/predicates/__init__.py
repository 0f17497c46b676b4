"""Predicates over a database of the user: each becomes the ids that match, read-only and in bounded time."""
