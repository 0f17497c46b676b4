"""Look after test sets: convert, show, check, count, change, compare and renew them."""

SUBCOMMANDS = (
    *("convert", "show", "validate", "stats", "verify", "rehash"),
    *("add", "diff", "split", "overfit", "refresh"),
)
"""In the order help lists them; each is `NAME_command` of its own module."""
