"""The coding tasks of the package: an agent with current documentation against one without."""

from __future__ import annotations

import re
from typing import Any

import pytest


@pytest.mark.slow  # the type checker reads the code of sixty answers
def test_code_with_a_tool_against_code_without_any(example: Any) -> None:
    plan = example.plan(
        model="coder",
        tool={"preflight": {"tool": "index_status", "index": "index"}},
        tasks={"coding": "package:python"},
        repo="",
        arms={
            "treatment": {"name": "documented", "native": [], "tools": ["beacon"]},
            "control": {"name": "bare", "native": []},
        },
        seeds=1,
        strata=["task_type"],
        success={"by": "code"},
        competence={"success": 0.2},
    )
    result = example.result(example.run(plan))
    assert re.fullmatch(
        r"documented raised the rate of code that passes every check from .* % to 100\.0 % on 30 tasks, McNemar p .*\.",
        result["sentence"],
    ), result["sentence"]
    assert {cell["success"] for task in result["tasks"] for cell in task["arms"]["treatment"]} == {True}
    assert any(cell["findings"] for task in result["tasks"] for cell in task["arms"]["control"])
