"""Manage test sets: convert, show, validate, count, edit, compare and refresh."""

SUBCOMMANDS = (
    *("convert", "show", "validate", "stats", "verify", "rehash"),
    *("add", "diff", "split", "overfit", "refresh"),
)
"""In the order help lists them; each is `NAME_command` of its own module."""
