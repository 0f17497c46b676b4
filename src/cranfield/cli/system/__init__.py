"""Look at systems under test: ask one a single query, see what a config or a preset comes to.

`cranfield run` asks them all.
"""

SUBCOMMANDS = ("probe", "list", "show", "presets")
