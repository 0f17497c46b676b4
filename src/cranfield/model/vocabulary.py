"""Task types of queries about code, as golden sets name them."""

from __future__ import annotations

TASK_TYPE = "task_type"
"""The stratum."""
TASK_TYPES = ("locate", "explain", "debug", "extend", "review", "general")
