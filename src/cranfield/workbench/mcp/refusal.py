"""Errors of Cranfield as errors of a tool: nothing of the machine, what others wrote marked, and tools in place of commands."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mcp.server.mcpserver.exceptions import ToolError

from cranfield.base.errors import SHOWN_PROBLEMS, CranfieldError, Problem

TOOLS = {"measures": "list_measures", "evaluate": "evaluate", "compare": "compare"}
"""Command to the tool that does the same."""
_COMMAND = re.compile(r"`cranfield (\w+)([^`]*)`")
_ABSOLUTE = re.compile(r"(?<![\w.:/~-])/(?:[^\s/'\"`,;:]+/)+")


def tool_error(error: CranfieldError, folders: Sequence[Path]) -> ToolError:
    """The problems as JSON: messages may quote files, systems and users, so they are untrusted; hints are ours.

    Args:
        error: what happened.
        folders: of the config and of the temporary database: paths in them are given relative to them.
    """
    problems = [_public(problem, folders) for problem in error.problems]
    shown = [problem.sentence() for problem in problems[:SHOWN_PROBLEMS]]
    if len(problems) > SHOWN_PROBLEMS:
        shown.append(f"{len(problems) - SHOWN_PROBLEMS} more problems.")
    hints = dict.fromkeys(hint for problem in problems[:SHOWN_PROBLEMS] if (hint := _hint(problem)))
    body = {"error": {"untrusted": "\n".join(shown)}} | ({"hint": " ".join(hints)} if hints else {})
    return ToolError(json.dumps(body, ensure_ascii=False))


def _public(problem: Problem, folders: Sequence[Path]) -> Problem:
    """The problem without absolute paths."""

    def public(text: str | None) -> str | None:
        for folder in folders:
            text = text and text.replace(f"{folder}/", "")
        return text and _ABSOLUTE.sub("", text)

    return replace(
        problem,
        message=public(problem.message) or "",
        path=public(problem.path),
        expected=public(problem.expected),
        got=public(problem.got),
        hint=public(problem.hint),
    )


def _hint(problem: Problem) -> str:
    """The hint with tools in place of commands; a command without a tool is for the operator."""
    return _COMMAND.sub(
        lambda found: f"`{TOOLS[found[1]]}`" if found[1] in TOOLS else f"the operator's command {found[0]}",
        problem.hint_sentence(),
    )
