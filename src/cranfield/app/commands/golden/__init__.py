"""Make golden sets over a code base, checked against the source."""

SUBCOMMANDS = {
    "plan": f"{__name__}.plan",
    "run": f"{__name__}.run",
    "status": f"{__name__}.status",
    "transcripts": f"{__name__}.transcripts",
    "gate": f"{__name__}.gate",
    "enter": f"{__name__}.enter",
    "check": f"{__name__}.check",
    "assemble": f"{__name__}.assemble",
    "batch": f"{__name__}.assemble",
    "models": f"{__name__}.assemble",
    "review": f"{__name__}.review",
    "reviewed": f"{__name__}.review",
}
"""Command to its module, in the order help lists them."""
