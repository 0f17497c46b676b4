"""Cranfield: did your search get better, worse or stay the same?

Everything named here is imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from cranfield.version import __version__ as __version__

if TYPE_CHECKING:
    from cranfield.errors import CranfieldError
    from cranfield.evaluation.many_values import ManyComparison
    from cranfield.evaluation.values import Comparison, Evaluation, Limits, Verdict
    from cranfield.measures import Measure, parse
    from cranfield.model import Answer, Convention, Hit, Outcome, Pattern, Query, Run, TestSet
    from cranfield.project.recipe import compare, compare_many, evaluate, load
    from cranfield.project.report import report
    from cranfield.project.testset_options import TestSetOptions
    from cranfield.systems.collect.collection import collect
    from cranfield.systems.kinds.command import CommandSystem

_HOMES = {
    "cranfield.errors": ("CranfieldError",),
    "cranfield.evaluation.many_values": ("ManyComparison",),
    "cranfield.evaluation.values": ("Comparison", "Evaluation", "Limits", "Verdict"),
    "cranfield.measures": ("Measure", "parse"),
    "cranfield.model": ("Answer", "Convention", "Hit", "Outcome", "Pattern", "Query", "Run", "TestSet"),
    "cranfield.project.recipe": ("compare", "compare_many", "evaluate", "load"),
    "cranfield.project.report": ("report",),
    "cranfield.project.testset_options": ("TestSetOptions",),
    "cranfield.systems.collect.collection": ("collect",),
    "cranfield.systems.kinds.command": ("CommandSystem",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Answer",
    "CommandSystem",
    "Comparison",
    "Convention",
    "CranfieldError",
    "Evaluation",
    "Hit",
    "Limits",
    "ManyComparison",
    "Measure",
    "Outcome",
    "Pattern",
    "Query",
    "Run",
    "TestSet",
    "TestSetOptions",
    "Verdict",
    "collect",
    "compare",
    "compare_many",
    "evaluate",
    "load",
    "parse",
    "report",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        message = f"module 'cranfield' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
