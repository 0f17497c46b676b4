"""Options of loading a test set. Annotations are no texts here: the declarations are read when the command line starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge

from cranfield.options.declaration import Declared, Option, check, declared
from cranfield.options.scoring import ScoringOptions

RULES = "median, majority, mean, searchtweak or quepid"
SCALES = "binary (0-1), graded (0-3) or detail (1-10)"
TARGETS = f"{SCALES}, or by a map such as 0=0,1=0,2=1,3=1"
"""Consensus rules and scales of ratings; a test compares them with their tables, which import numpy."""
COMMAND = ("command",)


@dataclass(frozen=True, kw_only=True)
class TestSetOptions:
    """Changes made to a test set after it is read; none by default."""

    __test__ = False  # pytest: not a test class

    qrels: Annotated[
        Path | None,
        Option(
            help="Judgments that replace those of the test set; its query texts and strata are kept. A query that they do not "
            "judge is out of the means.",
            metavar="FILE",
        ),
    ] = None
    qrels_fallback: Annotated[
        bool, Option(help="Keep the test set's own judgments of a query that the other judgments (qrels) do not judge.")
    ] = False
    queries: Annotated[Path | None, Option(help="Query texts: TREC topics, TSV or JSONL.", metavar="FILE")] = None
    strata: Annotated[
        Sequence[str],
        Option(
            help="Strata by query position, `difficulty=standard:1-100,hard:101-127`, or a table by query id; repeat for more.",
            metavar="SPEC",
        ),
    ] = field(default=(), hash=False)
    classes: Annotated[
        str | None,
        Option(
            help="Stratum that defines the query class: `class`, or `kind:symbol=canonical,question=prose`.",
            metavar="KEY",
        ),
    ] = None
    consensus: Annotated[
        str | None, Option(help=f"Consensus rule for the grades of several raters: {RULES}.", metavar="RULE")
    ] = None
    scale: Annotated[str | None, Option(help=f"Scale of the ratings: {SCALES}.", metavar="SCALE")] = None
    to_scale: Annotated[
        str | None, Option(help=f"Convert ratings and judgments first, to {TARGETS}.", metavar="SCALE")
    ] = None
    line_base: Annotated[
        Literal[0, 1] | None, Option(help="Line number of the first line of a file in the results.", metavar="0|1")
    ] = None
    min_overlap: Annotated[
        int | None,
        Option(help="Minimum number of lines that a result must share with an expected span.", metavar="N"),
        Ge(1),
    ] = None
    ignore_identical_ids: Annotated[
        bool,
        Option(
            help="Leave out results whose id is that of their query, as where the queries are documents of the corpus."
        ),
    ] = False
    databases: Annotated[
        Mapping[str, str],
        Option(
            help="Location of a database for predicates: sqlite:FILE, duckdb:FILE or env:VARIABLE.",
            flag="--database",
            metavar="NAME=PLACE",
            owner="digest",  # a baseline holds the digest of what the databases answered
        ),
    ] = field(default_factory=dict, hash=False)
    repo: Annotated[
        Path | None,
        Option(help="Reject a test set that no longer matches this repository.", metavar="DIR", places=COMMAND),
    ] = None
    at: Annotated[
        str | None,
        Option(help="Commit of the repository; default: the files on disk.", metavar="COMMIT", places=COMMAND),
    ] = None
    allow_drift: Annotated[
        bool, Option(help="Accept a test set that no longer matches its repository.", places=COMMAND)
    ] = False
    allow_dirty: Annotated[
        bool,
        Option(help="Accept a repository with uncommitted changes; the result names them first.", places=COMMAND),
    ] = False
    intact: Annotated[
        bool, Option(help="Use only the queries whose expected places all still stand in the repository.")
    ] = False
    part: Annotated[
        Literal["evaluated", "held-out", "all"] | None,
        Option(
            help="Part of the stored split: evaluated, held-out or all; default of runs, scores and gates: evaluated.",
            metavar="PART",
        ),
    ] = None

    def __post_init__(self) -> None:
        check(self)


NO_OPTIONS = TestSetOptions()
SET_OPTIONS: Mapping[str, Declared] = {
    **{name: each for name, each in declared(TestSetOptions).items() if "config" in each.option.places},
    "depth": declared(ScoringOptions)["depth"],
}
"""What is done to a test set of a config before it is used: the keys of its block `options`."""
