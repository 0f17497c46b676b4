"""Accept a run as the baseline of a gate, or show the current baseline."""

SUBCOMMANDS = ("accept", "show")
