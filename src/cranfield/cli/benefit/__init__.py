"""Experiments: an agent with a retrieval tool against the same agent without it."""

SUBCOMMANDS = {
    "score": f"{__name__}.score",
    "result": f"{__name__}.result",
}
"""Command to its module, in the order help lists them."""
