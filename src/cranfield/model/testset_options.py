"""The options of a test set and of its runs: one table, from which command line, config and their help are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

OptionKind = Literal["file", "text", "texts", "pairs", "number", "flag"]
"""A path, a text, a text that may be repeated, NAME=VALUE that may be repeated, a whole number, or yes and no."""

RULES = "median, majority, mean, searchtweak or quepid"
SCALES = "binary (0-1), graded (0-3) or detail (1-10)"
TARGETS = f"{SCALES}, or by a map such as 0=0,1=0,2=1,3=1"
"""Consensus rules and scales of ratings; a test compares them with their tables, which import numpy."""


@dataclass(frozen=True, slots=True)
class OptionRow:
    """One option; its key in the table is the field of `TestSetOptions`, and the key in the config."""

    kind: OptionKind
    metavar: str
    help: str
    flag: str = ""
    """On the command line; empty: the name with hyphens."""
    in_config: bool = True
    """Whether the block `options` of a config has it."""
    minimum: int | None = None
    with_ref: bool = False
    """Whether a gate with a baseline ref takes it from the call: nothing that it changes escapes the digests of a baseline."""

    def spelling(self, name: str) -> str:
        """How the command line writes it."""
        return self.flag or f"--{name.replace('_', '-')}"


TESTSET_OPTIONS: Mapping[str, OptionRow] = {
    "qrels": OptionRow(
        "file",
        "FILE",
        "Judgments that replace those of the test set; its query texts and strata are kept. A query that they do not "
        "judge is out of the means.",
    ),
    "qrels_fallback": OptionRow(
        "flag", "", "Keep the test set's own judgments of a query that the other judgments (qrels) do not judge."
    ),
    "queries": OptionRow("file", "FILE", "Query texts: TREC topics, TSV or JSONL."),
    "strata": OptionRow(
        "texts",
        "SPEC",
        "Strata by query position, `difficulty=standard:1-100,hard:101-127`, or a table by query id; repeat for more.",
    ),
    "classes": OptionRow(
        "text",
        "KEY",
        "Stratum that defines the query class: `class`, or `kind:symbol=canonical,question=prose`.",
    ),
    "consensus": OptionRow("text", "RULE", f"Consensus rule for the grades of several raters: {RULES}."),
    "scale": OptionRow("text", "SCALE", f"Scale of the ratings: {SCALES}."),
    "to_scale": OptionRow("text", "SCALE", f"Convert ratings and judgments first, to {TARGETS}."),
    "line_base": OptionRow("number", "0|1", "Line number of the first line of a file in the results."),
    "min_overlap": OptionRow("number", "N", "Minimum number of lines that a result must share with an expected span."),
    "ignore_identical_ids": OptionRow(
        "flag",
        "",
        "Leave out results whose id is that of their query, as where the queries are documents of the corpus.",
    ),
    "databases": OptionRow(
        "pairs",
        "NAME=PLACE",
        "Location of a database for predicates: sqlite:FILE, duckdb:FILE or env:VARIABLE.",
        flag="--database",
        with_ref=True,  # a baseline holds the digest of what the databases answered
    ),
    "repo": OptionRow("file", "DIR", "Reject a test set that no longer matches this repository.", in_config=False),
    "at": OptionRow("text", "COMMIT", "Commit of the repository; default: the files on disk.", in_config=False),
    "allow_drift": OptionRow("flag", "", "Accept a test set that no longer matches its repository.", in_config=False),
    "allow_dirty": OptionRow(
        "flag", "", "Accept a repository with uncommitted changes; the result names them first.", in_config=False
    ),
    "intact": OptionRow("flag", "", "Use only the queries whose expected places all still stand in the repository."),
    "part": OptionRow(
        "text", "PART", "Part of the stored split: {parts}; default of runs, scores and gates: evaluated."
    ),
}
"""Field of `TestSetOptions` to its row."""

DEPTH = OptionRow("number", "N", "Use only the first N results of each query.", minimum=1)
"""The option `depth`: a field of `ScoringOptions`, and of the block `options` of a config."""


def config_options() -> dict[str, OptionRow]:
    """The options that a config has, by key."""
    return {name: row for name, row in TESTSET_OPTIONS.items() if row.in_config} | {"depth": DEPTH}
