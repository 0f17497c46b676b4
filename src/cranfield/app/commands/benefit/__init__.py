"""Experiments: an agent with a retrieval tool, and without it."""

SUBCOMMANDS = {
    "check": f"{__name__}.check",
    "run": f"{__name__}.run",
    "status": f"{__name__}.status",
    "score": f"{__name__}.score",
    "result": f"{__name__}.result",
    "report": f"{__name__}.report",
    "transcripts": f"{__name__}.transcripts",
    "gate": f"{__name__}.gate",
    "history": f"{__name__}.history",
}
"""Command to its module, in the order help lists them."""
