"""The blocks of options: what is scored, compared, collected, of which test set, within which limits."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Interval

from cranfield.base.errors import CranfieldError, Problem, UnknownNameError, UsageError, shorten
from cranfield.evaluation.options.declaration import Declared, Option, check, declared
from cranfield.model.convention import DEFAULT_CONVENTION, Convention, Ties, convention_named
from cranfield.ranking.scan import REPORTED_HITS, Duplicates, Missing
from cranfield.stats.table import ADJUSTMENTS, DEFAULT_DRAWS, MEAN_DIFFERENCE, TESTS, adjustment_for

ROUNDING = 1e-9
"""Relative tolerance of the smallest effect, so that 1.1 - 0.1 counts as 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRule:
    """Which timings count, and when a system is called faster or slower."""

    skip_first: Annotated[
        int,
        Option(
            help="Number of first calls to each system whose timings are left out; at least the `concurrency`. Their "
            "answers count, and no query is sent twice; queries that `collect: {warm_up: N}` sends beforehand count as first "
            "calls. Without a warm-up, no system is reported as faster."
        ),
        Ge(0),
    ] = 3
    smallest_ms: Annotated[float, Option(help="Smallest difference that counts, in milliseconds."), Ge(0)] = 1.0
    smallest_percent: Annotated[
        float,
        Option(
            help="Smallest difference that counts, in percent of the latency of the baseline; both must be reached."
        ),
        Ge(0),
    ] = 5.0

    def __post_init__(self) -> None:
        check(self)

    def counts(self, delta_ms: float, baseline_ms: float) -> bool:
        """Whether a difference is as large as the smallest effect.

        Args:
            delta_ms: the difference.
            baseline_ms: the same figure of the baseline.
        """
        least = max(self.smallest_ms, self.smallest_percent / 100 * baseline_ms)
        return abs(delta_ms) >= least * (1 - ROUNDING)

    @property
    def smallest(self) -> str:
        """The smallest effect: `1 ms and 5 %`."""
        return f"{self.smallest_ms:g} ms and {self.smallest_percent:g} %"


def parse_rule(written: Sequence[str]) -> LatencyRule:
    """A rule as the command line writes it: `smallest_ms=5`; what is not written has its default.

    Raises:
        UsageError: with every part that is none.
    """
    names = list(declared(LatencyRule))
    values: dict[str, float] = {}
    problems: list[Problem] = []
    for text in written:
        name, _, value = (part.strip() for part in text.partition("="))
        try:
            if name not in names:
                raise UnknownNameError.among("key of --latency", name, names)
            values[name] = int(value) if name == "skip_first" else float(value)
        except CranfieldError as error:
            problems += error.problems
        except ValueError:
            problems.append(Problem(f"--latency is {shorten(text)}", expected="KEY=NUMBER, as in smallest_ms=5"))
    if problems:
        raise UsageError(problems)
    return LatencyRule(**values)  # type: ignore[arg-type]  # skip_first is an int


class Consequence(StrEnum):
    """What follows from a finding."""

    VOID = "void"
    """The scores provably measure the wrong thing: the verdict is `invalid`."""
    CAVEAT = "caveat"
    """The finding is shown with the verdict, and does not change it."""
    OFF = "off"
    """The check is not made."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How one check differs from its row of the table."""

    consequence: Consequence | None = None
    """None: that of the table."""
    threshold: float | None = None
    """None: that of the table."""


def as_setting(name: str, value: object) -> Setting:
    """A setting of a check as a caller writes it: a consequence, a threshold, or a `Setting` of both.

    Raises:
        UsageError: the value is neither.
    """
    if isinstance(value, Setting):
        return value
    if value is False or value in tuple(Consequence):
        return Setting(Consequence.OFF if value is False else Consequence(str(value)))
    if isinstance(value, Mapping) and value and set(value) <= {"consequence", "threshold"}:
        parts = [as_setting(name, part) for part in value.values() if part is not None]
        return Setting(
            next((part.consequence for part in parts if part.consequence is not None), None),
            next((part.threshold for part in parts if part.threshold is not None), None),
        )
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return Setting(threshold=float(value))
    raise UsageError(
        f"evidence check {name} is set to {shorten(value)}",
        expected=f"{', '.join(Consequence)}, or a threshold of 0 or more",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits beyond which a comparison is invalid."""

    max_failed_share: Annotated[
        float | None,
        Option(
            help="Maximum share of failed queries; above it the verdict is invalid.",
            flag="--max-failed",
            metavar="SHARE",
            in_config="null sets no limit.",
        ),
        Interval(ge=0, le=1),
    ] = 0.1
    min_judged_share: Annotated[
        float | None,
        Option(
            help="Minimum judged share of the shown results; below it the verdict is invalid.",
            flag="--min-judged",
            metavar="SHARE",
            in_config="null sets no limit.",
        ),
        Interval(ge=0, le=1),
    ] = None
    evidence: Annotated[
        Mapping[str, Setting],
        Option(
            help="Change an evidence check: off, caveat, void or a threshold, as in same-list=off; repeat for more.",
            metavar="NAME=VALUE",
        ),
    ] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check(self)
        settings = {name: as_setting(name, value) for name, value in self.evidence.items()}
        object.__setattr__(self, "evidence", settings)


MAX_KEPT = 100
"""Hits of a query that are kept for the bounds of a measure with a deeper cutoff than reports show."""
COMMAND = ("command",)
_REQUESTED = ("command", "config", "request")
EVERYWHERE = ("command", "config", "request", "schedule")


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """How a run is read and scored: the keywords of `evaluate`, which documents them."""

    convention: Annotated[
        str | Convention, Option(help="Scoring convention: {conventions}.", metavar="NAME", choices="conventions")
    ] = DEFAULT_CONVENTION
    missing: Annotated[
        Missing | None,
        Option(
            help="Score a judged query without results as 0, or skip it; default: the convention's rule.",
            places=COMMAND,
        ),
    ] = None
    failed: Annotated[
        Missing | None,
        Option(
            help="Score a query that failed or has an empty answer as 0, or leave it out; default: the "
            "convention's rule. `run` and `gate` count 0.",
            places=COMMAND,
        ),
    ] = None
    ties: Annotated[
        Ties | None,
        Option(
            help="Equal scores: by document id, descending or ascending, or as in the run; expected: the mean over all their "
            "orders. Default: the convention's rule.",
            places=COMMAND,
        ),
    ] = None
    duplicates: Annotated[
        Duplicates | None,
        Option(
            help="Duplicate documents for a query in a TREC run: raise an error, or keep the first; default: the convention's "
            "rule.",
            places=COMMAND,
        ),
    ] = None
    depth: Annotated[int | None, Option(help="Use only the first N results of each query.", metavar="N"), Ge(1)] = None
    run_format: Annotated[
        str | None,
        Option(
            help="Format of the runs: {run_formats}; default: detected from the content.",
            metavar="FORMAT",
            choices="run_formats",
            places=COMMAND,
        ),
    ] = None
    limits: Limits = field(default_factory=Limits)
    confusion: Annotated[
        Mapping[str, str],
        Option(
            help="Table of a field of the answers against the stratum, or `class`, that it predicts; repeat for more.",
            metavar="FIELD=STRATUM",
            in_config="A mapping: `{routed: task_type}`. A field with the name of a stratum has a table without this.",
            owner="none",
        ),
    ] = field(default_factory=dict, hash=False)
    latency: Annotated[
        LatencyRule,
        Option(
            help="Change when a system is called faster: skip_first=3, smallest_ms=1, smallest_percent=5; repeat for more.",
            metavar="KEY=NUMBER",
        ),
    ] = field(default_factory=LatencyRule)
    name: str | None = None
    cache: bool = False
    columns: Mapping[str, str] | None = field(default=None, hash=False)
    keep: int = REPORTED_HITS
    keep_undefined: bool = False
    """Keep a measure that has no value for any query, as one without a value, instead of refusing it."""

    def __post_init__(self) -> None:
        check(self)

    @property
    def convention_name(self) -> str:
        """Name of the convention."""
        return convention_named(self.convention).name

    def keeping(self, primary: str | None) -> "ScoringOptions":
        """The options with the hits that bounds of the primary measure need, down to its cutoff; see `MAX_KEPT`.

        Args:
            primary: the measure that decides, as it is spelled; None: of the default list.
        """
        cutoff = re.search(r"@(\d+)", primary or "")
        needed = 0 if cutoff is None else min(int(cutoff[1]), MAX_KEPT)
        return replace(self, keep=needed) if 0 < self.keep < needed else self

    def resolved(self) -> "tuple[ScoringOptions, Convention]":
        """The options with the defaults of the convention, and the convention."""
        rules = convention_named(self.convention)
        if self.duplicates is not None:
            rules = replace(rules, repeats="dropped")
        if self.ties is not None:
            rules = replace(rules, ties=self.ties, orders="one")
        if self.depth is not None and rules.ties == "expected":
            raise UsageError(
                "{depth} cuts ties, so the orders of the ties are not known ({ties=expected})",
                hint="give the measures a cutoff, as in nDCG@10",
                parameters=("depth", "ties"),
            )
        if self.failed is not None:
            rules = replace(rules, failed=self.failed, empty=self.failed)
        return replace(
            self, missing=self.missing or rules.missing, duplicates=self.duplicates or rules.duplicates
        ), rules


RULES = "median, majority, mean, searchtweak or quepid"
SCALES = "binary (0-1), graded (0-3) or detail (1-10)"
TARGETS = f"{SCALES}, or by a map such as 0=0,1=0,2=1,3=1"
"""Consensus rules and scales of ratings; a test compares them with their tables, which import numpy."""


@dataclass(frozen=True, kw_only=True)
class TestSetOptions:
    """Changes made to a test set after it is read; none by default."""

    __test__ = False  # pytest: not a test class

    map: Annotated[
        Mapping[str, str],
        Option(
            help="Field of a file of queries of any form, as a JMESPath: text=q, expected=relevant, where.url=link, strata.kind=category; "
            "repeat for more. Default: proposed from the data.",
            metavar="KEY=PATH",
            places=COMMAND,
        ),
    ] = field(default_factory=dict, hash=False)
    qrels: Annotated[
        Path | None,
        Option(
            help="Judgments that replace those of the test set; its query texts and strata are kept. A query that they do not "
            "judge is left out of the means.",
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
            help="Strata by query position, such as `difficulty=standard:1-100,hard:101-127`, or a table by query id; repeat for more.",
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
            help="Leave out results whose id is that of their query, for example if the queries are documents of the corpus."
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
        bool, Option(help="Use only the queries whose expected places are all unchanged in the repository.")
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

SMALLEST_ALPHA = 1e-12
"""Below this, 1 - alpha loses its digits."""
DEFAULT_TEST = "permutation"
VerdictRule = Literal["classes", "pooled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """What is declared before the numbers are seen."""

    primary: Annotated[
        str | None,
        Option(
            help="Primary measure, which decides the verdict; default: the first.",
            metavar="MEASURE",
            choices="measures",
        ),
    ] = None
    test: Annotated[
        str,
        Option(
            help="Test for the verdict and its confidence interval: {tests}.",
            metavar="NAME",
            choices="tests",
            places=EVERYWHERE,
        ),
    ] = DEFAULT_TEST
    margin: Annotated[
        float | None,
        Option(
            help="Equivalence margin: the largest difference that does not matter; required for the verdict equivalent.",
            metavar="X",
            places=EVERYWHERE,
        ),
        Gt(0),
    ] = None
    verdict: Annotated[
        VerdictRule,
        Option(
            help="classes: if queries have classes, each class has a verdict; pooled: the mean over all queries decides.",
            metavar="RULE",
            places=("command", "config", "testset"),
        ),
    ] = "classes"
    strata: Annotated[
        str | None,
        Option(
            help="Key of the strata that are the classes of the verdict of two runs; default: the query classes, if any.",
            flag="--verdict-strata",
            metavar="KEY",
            places=("command", "config", "testset", "request"),
        ),
    ] = None
    alpha: Annotated[
        float, Option(help="Significance level (alpha).", metavar="X", places=EVERYWHERE), Interval(gt=0, lt=1)
    ] = 0.05
    seed: Annotated[
        int, Option(help="Random seed for permutation and bootstrap.", metavar="N", places=("command",)), Ge(0)
    ] = 0
    draws: Annotated[
        int, Option(help="Number of random sign patterns, if not all can be enumerated.", metavar="N"), Ge(2)
    ] = DEFAULT_DRAWS
    adjust: Annotated[
        str | None,
        Option(
            help="Adjustment of all pairs of three or more runs: {adjustments}; default: max-t for the test permutation, else "
            "holm.",
            metavar="NAME",
            choices="adjustments",
        ),
    ] = None
    limits: Limits = field(default_factory=Limits)

    @property
    def adjustment(self) -> str:
        """The adjustment of many systems, declared or that of the test."""
        return self.adjust or adjustment_for(self.test)

    def __post_init__(self) -> None:
        check(self, *self._clashes())
        if self.primary is not None:
            from cranfield.measures import parse

            parse(self.primary)

    def _clashes(self) -> list[Problem]:
        """What does not go together."""
        problems = []
        if isinstance(self.alpha, float) and 0 < self.alpha < SMALLEST_ALPHA:
            expected = f"{SMALLEST_ALPHA:g} or more"
            problems.append(Problem(f"{{alpha}} is {self.alpha:g}", expected=expected, parameters=("alpha",)))
        if self.test in TESTS and not TESTS[self.test].can_declare:
            expected = f"one of {', '.join(name for name, spec in TESTS.items() if spec.can_declare)}"
            problems.append(
                Problem(
                    f"test {self.test} gives no confidence interval for the verdict",
                    expected=expected,
                    parameters=("test",),
                )
            )
        estimates = TESTS[self.test].estimates if self.test in TESTS else ""
        if self.margin is not None and estimates not in {"", MEAN_DIFFERENCE}:
            problems.append(
                Problem(
                    f"a margin applies to the mean difference, but test {self.test} is about the {estimates}",
                    hint="choose permutation, t or bootstrap, or leave the margin out",
                    parameters=("margin", "test"),
                )
            )
        if self.verdict == "pooled" and self.strata:
            problems.append(Problem(f"verdict pooled and strata {self.strata}", hint="leave one of them out"))
        tests = ADJUSTMENTS[self.adjust].tests if self.adjust is not None and self.adjust in ADJUSTMENTS else ()
        if tests and self.test in TESTS and self.test not in tests:
            expected = f"the test {' or '.join(tests)}, or the adjustment {adjustment_for(self.test)}"
            problems.append(
                Problem(f"adjustment {self.adjust} cannot be used with the test {self.test}", expected=expected)
            )
        return problems


CONFIG = ("config",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectOptions:
    """Options of a collection: warm-up, repetitions, use of cached answers."""

    warm_up: Annotated[
        int,
        Option(help="Queries sent to each system beforehand; their answers are discarded.", places=CONFIG),
        Ge(0),
    ] = 0
    repeats: Annotated[
        int,
        Option(
            help="Times each query is sent. The first answer is scored; later differences are reported.", places=CONFIG
        ),
        Interval(ge=1, le=100),
    ] = 1
    cache_h: Annotated[
        float,
        Option(
            help="Hours for which answers are kept and reused, for systems whose `depends` lists what their answers depend "
            "on; 0, the default, keeps none: every run queries the systems. The report lists the reused answers and "
            "their age.",
            places=CONFIG,
        ),
        Ge(0),
    ] = 0
    seed: Annotated[int, Option(help="Random seed of the order in which systems take turns.", places=CONFIG), Ge(0)] = 0
    keep_going: Annotated[
        bool,
        Option(
            help="Continue if the first ten queries to a system all fail in the same way, or the first thirty in any; default: stop."
        ),
    ] = False
    cache_dir: Path | None = None
    """Folder of cached answers; None: no cache."""
    cache_root: Path | None = None
    """A folder above `cache_dir`, below which no link is followed; None: `cache_dir`, which may be a link."""
    refresh: bool = False
    """Replace cached answers by new ones."""
    if_interrupted: str = ""
    """What becomes of the answers of an interrupted collection, and how to go on; empty: the same command resumes it."""

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class LargeOptions:
    """How runs that are read in parts are read, where results go, and what is known of the queries."""

    memory: Annotated[str | None, Option("Maximum memory for Parquet runs; default: 1GB.", metavar="SIZE")] = None
    out: Annotated[
        Path | None,
        Option(
            "Write the values of each query to this folder, as Parquet; an interrupted call resumes from it.",
            metavar="DIR",
        ),
    ] = None
    engine: Annotated[
        Literal["local", "spark"] | None, Option("Engine for Parquet runs: this machine, or Spark; default: local.")
    ] = None
    master: Annotated[
        str | None, Option("Spark's master, as in spark://host:7077; default: local[*].", metavar="URL")
    ] = None
    spark_conf: Annotated[Path | None, Option("Settings of Spark, as in spark-defaults.conf.", metavar="FILE")] = None
    columns: Annotated[
        Mapping[str, str] | None,
        Option(
            "Column of Parquet runs by role: query_id, doc_id, score, rank or system; repeat for more.",
            metavar="ROLE=NAME",
        ),
    ] = None
    baseline_system: Annotated[
        str | None, Option("System of Parquet runs that the others are compared with.", metavar="NAME")
    ] = None
    query_table: Annotated[
        Path | None, Option("Parquet or CSV file with one row per query, for the options below.", metavar="FILE")
    ] = None
    cluster: Annotated[
        str | None,
        Option("Column of the user or session; queries with the same value are resampled together.", metavar="COLUMN"),
    ] = None
    stratum: Annotated[
        tuple[str, ...], Option("Column of a stratum, as in language; repeat for more.", metavar="COLUMN")
    ] = ()
    weight: Annotated[str | None, Option("Column of the weight of each query.", metavar="COLUMN")] = None

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the options that were given."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name))


def parse_share(text: str) -> float:
    """`10%` or `0.1`: a share from 0 to 1."""
    number, percent, _ = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"{text!r} is not a share such as 10% or 0.1.")
    return share


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceOptions:
    """How two runs are compared without judgments, and bounds that must hold. Who uses the values checks them."""

    k: Annotated[
        int, Option("Results of each list that are compared.", short="-k", metavar="N", places=_REQUESTED), Ge(1)
    ] = 10
    persistence: Annotated[
        float,
        Option(
            "Persistence p of rank-biased overlap, between 0 and 1: the larger, the more low ranks count.",
            places=_REQUESTED,
        ),
        Interval(gt=0, lt=1),
    ] = 0.9
    max_first_changed: Annotated[
        float | None,
        Option(
            "Maximum share of queries with another first result, such as 0.1.",
            metavar="SHARE",
            parse=parse_share,
            places=_REQUESTED,
        ),
        Interval(ge=0, le=1),
    ] = None
    min_overlap: Annotated[
        float | None,
        Option("Minimum mean overlap.", metavar="X", places=_REQUESTED),
        Interval(ge=0, le=1),
    ] = None
    min_rbo: Annotated[
        float | None,
        Option("Minimum mean rank-biased overlap.", metavar="X", places=_REQUESTED),
        Interval(ge=0, le=1),
    ] = None


PAIR_OPTIONS = ("test", "margin", "alpha", "seed")
"""Options of a comparison that decide the verdict on one pair of systems."""
