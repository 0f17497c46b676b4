"""Cranfield: did your search get better, worse or stay the same?

Everything named here is imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from cranfield.base import LOAD_DISPLAYS as _LOAD_DISPLAYS
from cranfield.base.version import __version__ as __version__

if TYPE_CHECKING:
    from cranfield.app.evaluate import compare, compare_many, evaluate, evaluate_checkpoints, report
    from cranfield.app.loading import load
    from cranfield.base.display import Displays
    from cranfield.base.errors import CranfieldError, Problem
    from cranfield.evaluation.many import ManyComparison
    from cranfield.evaluation.options.blocks import LatencyRule, Limits, TestSetOptions
    from cranfield.evaluation.values import Comparison, Evaluation, Verdict
    from cranfield.formats.convert import write_run, write_testset
    from cranfield.measures import Measure, parse
    from cranfield.measures.own import define
    from cranfield.model import Answer, Convention, Entity, Hit, Outcome, Passage, Pattern, Query, Run, Span, TestSet
    from cranfield.model.arrays import DocumentIds
    from cranfield.scale.runs import evaluate_parquet
    from cranfield.systems.collect.collection import collect
    from cranfield.systems.kinds.command import CommandSystem
    from cranfield.systems.kinds.fusion import FusionSystem
    from cranfield.systems.kinds.http import HttpSystem
    from cranfield.systems.kinds.line_program import LinesSystem
    from cranfield.systems.kinds.mcp import McpSystem
    from cranfield.systems.kinds.python import PythonSystem
    from cranfield.systems.kinds.run_file import RunFileSystem

_HOMES = {
    "cranfield.model.arrays": ("DocumentIds",),
    "cranfield.base.errors": ("CranfieldError", "Problem"),
    "cranfield.evaluation.many": ("ManyComparison",),
    "cranfield.evaluation.values": ("Comparison", "Evaluation", "Verdict"),
    "cranfield.formats.convert": ("write_run", "write_testset"),
    "cranfield.measures": ("Measure", "parse"),
    "cranfield.measures.own": ("define",),
    "cranfield.model": (
        "Answer",
        "Convention",
        "Entity",
        "Hit",
        "Outcome",
        "Passage",
        "Pattern",
        "Query",
        "Run",
        "Span",
        "TestSet",
    ),
    "cranfield.scale.runs": ("evaluate_parquet",),
    "cranfield.evaluation.options.blocks": ("LatencyRule", "Limits", "TestSetOptions"),
    "cranfield.app.loading": ("load",),
    "cranfield.app.evaluate": ("compare", "compare_many", "evaluate", "evaluate_checkpoints", "report"),
    "cranfield.systems.collect.collection": ("collect",),
    "cranfield.systems.kinds.command": ("CommandSystem",),
    "cranfield.systems.kinds.fusion": ("FusionSystem",),
    "cranfield.systems.kinds.http": ("HttpSystem",),
    "cranfield.systems.kinds.line_program": ("LinesSystem",),
    "cranfield.systems.kinds.mcp": ("McpSystem",),
    "cranfield.systems.kinds.python": ("PythonSystem",),
    "cranfield.systems.kinds.run_file": ("RunFileSystem",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Answer",
    "CommandSystem",
    "Comparison",
    "Convention",
    "CranfieldError",
    "DocumentIds",
    "Entity",
    "Evaluation",
    "FusionSystem",
    "Hit",
    "HttpSystem",
    "LatencyRule",
    "Limits",
    "LinesSystem",
    "ManyComparison",
    "McpSystem",
    "Measure",
    "Outcome",
    "Passage",
    "Pattern",
    "Problem",
    "PythonSystem",
    "Query",
    "Run",
    "RunFileSystem",
    "Span",
    "TestSet",
    "TestSetOptions",
    "Verdict",
    "collect",
    "compare",
    "compare_many",
    "define",
    "evaluate",
    "evaluate_checkpoints",
    "evaluate_parquet",
    "load",
    "parse",
    "report",
    "write_run",
    "write_testset",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        message = f"module 'cranfield' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def _load_displays() -> Displays:
    """What shows values in notebooks, and makes frames of them."""
    from cranfield.reporting import notebook

    return notebook


_LOAD_DISPLAYS.append(_load_displays)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
