"""The baseline of a gate: accept a run as the baseline, or show the current one."""

SUBCOMMANDS = ("accept", "show")
