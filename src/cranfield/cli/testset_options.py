"""Options that say what is done to a test set before it is used: one list, for every command that reads one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

if TYPE_CHECKING:
    from cranfield.project.testset_options import TestSetOptions

R = TypeVar("R")

OPTIONS: Mapping[str, Any] = {
    "qrels": Annotated[
        Path | None,
        typer.Option("--qrels", metavar="FILE", help="Judgments that replace the set's; its texts and strata stay."),
    ],
    "queries": Annotated[
        Path | None, typer.Option("--queries", metavar="FILE", help="Texts of the queries: TREC topics, TSV or JSONL.")
    ],
    "strata": Annotated[
        list[str] | None,
        typer.Option(
            "--strata",
            metavar="SPEC",
            help="Strata by position, `difficulty=standard:1-100,hard:101-127`, or a table by query id; repeat for more.",
        ),
    ],
    "classes": Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="KEY",
            help="Stratum that says the class of a question: `class`, or `kind:symbol=canonical,question=prose`.",
        ),
    ],
    "consensus": Annotated[
        str | None,
        typer.Option(
            "--consensus",
            metavar="RULE",
            help="How several raters' grades become one: median, majority, mean, searchtweak or quepid.",
        ),
    ],
    "scale": Annotated[
        str | None,
        typer.Option(
            "--scale", metavar="SCALE", help="What the ratings are on: binary, graded (0-3) or detail (1-10)."
        ),
    ],
    "to_scale": Annotated[
        str | None,
        typer.Option("--to-scale", metavar="SCALE", help="Map each rating to this scale before they become one."),
    ],
    "line_base": Annotated[
        int | None,
        typer.Option("--line-base", metavar="0|1", help="The number that results give the first line of a file."),
    ],
    "min_overlap": Annotated[
        int | None,
        typer.Option("--min-overlap", metavar="N", help="Lines that a result and an expected span must share."),
    ],
    "databases": Annotated[
        list[str] | None,
        typer.Option(
            "--database",
            metavar="NAME=PLACE",
            help="Where a database of predicates is: sqlite:FILE, duckdb:FILE or env:VARIABLE.",
        ),
    ],
    "repo": Annotated[
        Path | None,
        typer.Option("--repo", metavar="DIR", help="Refuse a set that is no longer true of this repository."),
    ],
    "at": Annotated[
        str | None, typer.Option("--at", metavar="COMMIT", help="Of the repository; default its files as they are.")
    ],
    "allow_drift": Annotated[
        bool, typer.Option("--allow-drift", help="Go on with a set that is no longer true of its repository.")
    ],
    "part": Annotated[
        str | None,
        typer.Option("--part", metavar="PART", help="Queries of the stored split: evaluated or held-out."),
    ],
}
"""Field of `TestSetOptions` to its option."""


def testset_options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command every option of the list; it gets them as one keyword, `options`."""
    signature = inspect.signature(command)
    # TestSetOptions is imported when a command runs, and not before.
    hints = get_type_hints(command, localns={"TestSetOptions": object}, include_extras=True)
    own = [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in signature.parameters.values()
        if parameter.name != "options"
    ]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False if name == "allow_drift" else None)
        for name in OPTIONS
    ]

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> R:
        asked = {name: kwargs.pop(name, None) for name in OPTIONS}
        return command(*args, **kwargs, options=_options(asked))

    joined = [*own, *(parameter.replace(annotation=OPTIONS[parameter.name]) for parameter in more)]
    wrapper.__signature__ = signature.replace(parameters=joined, return_annotation=hints["return"])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in joined}
    return wrapper


def _options(asked: Mapping[str, Any]) -> TestSetOptions:
    from cranfield.project.testset_options import TestSetOptions, databases_of

    values = {name: value for name, value in asked.items() if value}
    values["line_base"] = asked["line_base"]
    values["min_overlap"] = asked["min_overlap"]
    if "databases" in values:
        values["databases"] = databases_of(values["databases"])
    known = {field.name for field in fields(TestSetOptions)}
    return TestSetOptions(**{name: value for name, value in values.items() if name in known})
