"""Inspect the systems of a config: send a single query, list systems, show settings and presets.

`cranfield run` queries all of them.
"""

SUBCOMMANDS = ("probe", "list", "show", "presets")
