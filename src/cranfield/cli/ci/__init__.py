"""Tell a forge what came of it: a comment on the pull or merge request."""

SUBCOMMANDS = ("comment",)
"""In the order help lists them; each is `NAME_command` of its own module."""
