"""Manage test sets: convert, show, validate, edit, refresh."""

SUBCOMMANDS = {
    "convert": f"{__name__}.change",
    "show": f"{__name__}.report",
    "validate": f"{__name__}.report",
    "stats": f"{__name__}.report",
    "verify": f"{__name__}.drift",
    "rehash": f"{__name__}.drift",
    "add": f"{__name__}.change",
    "diff": f"{__name__}.report",
    "split": f"{__name__}.change",
    "overfit": f"{__name__}.report",
    "refresh": f"{__name__}.refresh",
}
"""Command to its module, in the order help lists them."""
