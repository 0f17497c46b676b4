"""Post results to a pull or merge request as a comment."""

SUBCOMMANDS = ("comment",)
"""In the order help lists them; each is `NAME_command` of its own module."""
