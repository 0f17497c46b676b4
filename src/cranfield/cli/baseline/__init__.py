"""What a gate holds a system to: accept a run as the baseline, or show the one that is there."""

SUBCOMMANDS = ("accept", "show")
