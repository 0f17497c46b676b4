"""A measure as a value, the rules of its values, and orders of ties.

The rules are what a convention decides around a kernel: the results it sees, which queries have a value, how a value is rounded.
`compute` applies them before and after every kernel. Measures that only say how far others can be trusted (`diagnostic`) see the
list as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import CranfieldError
from cranfield.measures.kernels import expected_relevant, judged_within, never_judged
from cranfield.model import QUERY_CLASSES, Absence, Convention, Outcome
from cranfield.ranking.value import FloatQ, Ranking, condensed, exponential_gains, ties_reversed, with_gains

if TYPE_CHECKING:
    from pydantic import ValidationInfo
    from pydantic_core import CoreSchema


Gains = tuple[tuple[int, float], ...]
"""Grade to gain, by grade."""
Parameter = str | int | float | bool | Gains
COMPOSITE = "Composite"
"""Name of a weighted sum of measures. Its parameter `terms` is its spelling, its cutoff the deepest of its terms where each has
one."""
Needs = Literal[
    "subtopic",
    "judge",
    "preference",
    "tokens",
    "files",
    "legacy",
    "sources",
    "silence",
    "forbidden",
    "texts",
    "passages",
]


@dataclass(frozen=True, slots=True)
class Measure:
    """A name of the catalogue with its parameters and cutoff; `str()` is its only spelling.

    Only parameters that differ from their default are stored, in the catalogue's order. Build one with
    `cranfield.measures.catalogue`, which checks every name and bound.

        >>> Measure("nDCG", (("dcg", "exp-log2"),), 10)
        nDCG(dcg='exp-log2')@10
        >>> Measure("nDCG", (("gains", ((1, 3.0), (2, 9.5))),))
        nDCG(gains={1: 3, 2: 9.5})
    """

    name: str
    params: tuple[tuple[str, Parameter], ...] = ()
    cutoff: int | float | None = None
    """A rank, or a share of the recall where the catalogue says so."""
    on_detail: bool = False
    """On grades of SearchTweak's detail scale: `nDCG(d)@10`."""
    shown: str = field(default="", compare=False)
    """Name that the convention prints in its place, `MAP` for `AP`; the same measure."""

    def __str__(self) -> str:
        return self._spelled(self.shown or self.name)

    __repr__ = __str__

    @property
    def canonical(self) -> str:
        """Its spelling under every convention, for files and for comparisons of text."""
        return self._spelled(self.name)

    def _spelled(self, name: str) -> str:
        if self.name == COMPOSITE:
            return str(self.param("terms", ""))
        text = f"{name}(d)" if self.on_detail else name
        if self.params:
            text += "(" + ", ".join(f"{key}={spell(value)}" for key, value in self.params) + ")"
        return text if self.cutoff is None else f"{text}@{spell(self.cutoff)}"

    def __lt__(self, other: Measure) -> bool:
        return str(self) < str(other)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        """In records a measure is its canonical spelling."""
        from pydantic_core import core_schema

        text = core_schema.str_schema()
        return core_schema.with_info_plain_validator_function(
            cls._read,
            json_schema_input_schema=text,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda measure: measure.canonical, return_schema=text
            ),
        )

    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Measure:
        """A measure in a record; in the context `KEEP_UNKNOWN`, what the catalogue does not know has its spelling as its name."""
        try:
            return value if isinstance(value, cls) else READERS[0](value)
        except CranfieldError:
            if info.context is KEEP_UNKNOWN:
                return cls(value)
            raise

    @property
    def depth(self) -> int | None:
        """The cutoff, where it is a rank."""
        return self.cutoff if isinstance(self.cutoff, int) else None

    def whole(self, name: str, default: int) -> int:
        """Value of a parameter that is a whole number (`rel`), or its default."""
        value = self.param(name, default)
        return value if isinstance(value, int) else default

    def param(self, name: str, default: Parameter) -> Parameter:
        """Value of one parameter, or its default."""
        return dict(self.params).get(name, default)


KEEP_UNKNOWN = {"unknown measures": "kept"}
"""Context in which a record is read that may have measures of a plugin that is not installed."""
READERS: list[Callable[[str], Measure]] = []
"""What reads a spelling: `cranfield.measures.parse`, which knows the catalogue, adds itself."""


def spell(value: Parameter) -> str:
    """A parameter as it is written: whole numbers without a point, text in quotes, gains as a map."""
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{grade}: {spell(gain)}" for grade, gain in value) + "}"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return repr(value)


class Reason(StrEnum):
    """Why a query has no value of a measure. Programs compare the member; its value is the text of reports."""

    NEEDS_COUNT = "how many documents match its pattern is not known (expected_count)"
    NOTHING_UNJUDGED = "it is judged by a rule, so no result is unjudged"
    NOTHING_RETURNED = "nothing was returned"
    TOO_LARGE = "its grades are too large for this gain"
    NO_SUBTOPICS = "the test set has no judgments by subtopic"
    NO_JUDGES = "the test set has no judgments by judge"
    NO_PREFERENCES = "the test set has no preferences"
    NO_TOKENS = "the run has no token counts for its results"
    NO_FILES = "the test set names no files to cover"
    NO_LEGACY = "the test set names no legacy form"
    NO_SOURCES = "the test set names no sources"
    NO_FORMULA_FOR_TIES = "no formula is implemented for its expected value over orders of equal scores"
    NO_TEXTS = "the results have neither texts nor places in their documents, or are not in the order of the run"
    NO_PASSAGES = "the test set expects no passages of text, and no lines"
    NO_FORBIDDEN = "the test set forbids no result"
    NO_NEGATIVE_QUERY = "no query of the test set is negative"
    NO_SUCH_GRADE = "none of its expected items has this grade"
    CUT_SHORT = "its cutoff is deeper than the lists, which were cut"


WHY_NEEDED: dict[Needs, Reason] = {
    "subtopic": Reason.NO_SUBTOPICS,
    "judge": Reason.NO_JUDGES,
    "preference": Reason.NO_PREFERENCES,
    "tokens": Reason.NO_TOKENS,
    "files": Reason.NO_FILES,
    "legacy": Reason.NO_LEGACY,
    "sources": Reason.NO_SOURCES,
    "silence": Reason.NO_NEGATIVE_QUERY,
    "forbidden": Reason.NO_FORBIDDEN,
    "texts": Reason.NO_TEXTS,
    "passages": Reason.NO_PASSAGES,
}
LOOKS_AT_THE_LIST: frozenset[Needs] = frozenset(
    ("files", "legacy", "sources", "silence", "forbidden", "texts", "passages")
)
"""Needs of measures that look at every result, judged or not, and ask for no grade: they see the list as it is."""


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """One parameter a measure takes: the type of its default is its type."""

    name: str
    default: Parameter
    """An empty tuple stands for a map from grade to gain, `{1: 3, 2: 9}`."""
    sentence: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    above_minimum: bool = False
    """The minimum itself is out of bounds."""
    below_maximum: bool = False
    """The maximum itself is out of bounds."""


@dataclass(frozen=True)
class MeasureSpec:
    """One row of the catalogue."""

    name: str
    title: str
    sentence: str
    """What it is, in words a reader of a report knows."""
    formula: str
    cutoff: Literal["required", "optional", "none"]
    kernel: Callable[..., FloatQ]
    """`kernel(ranking, cutoff, **parameters) -> float64[Q]`; NaN where a query cannot be scored. Parameters that choose
    the results it sees (`judged_only`, `gains`) are applied before it and not passed on."""
    source: str
    composed: Callable[[Measure, Ranking], tuple[FloatQ, NDArray[np.bool_], dict[str, str]]] | None = None
    """Computes what `compute` returns, of a measure that is made of others; None: the kernel does, by the rules of `compute`."""
    over_ties: Callable[..., FloatQ] | None = None
    """The same, as the exact expected value over random orders of equal scores; None where there is no formula."""
    parameters: tuple[ParameterSpec, ...] = ()
    aliases: tuple[str, ...] = ()
    presets: tuple[tuple[str, str], ...] = ()
    """Other names that fix parameters too: the name, and the parameters as they are written."""
    range: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    why_unscored: str = ""
    """Why the kernel gives NaN, when it does."""
    unscored_by_run: bool = False
    """True when it is what a run returned that leaves a query without a value: another run may have one."""
    defined_for: str = "every query; 0 where nothing relevant was expected"
    closed_world: bool = True
    """False when it has no meaning where the truth is a pattern."""
    diagnostic: bool = False
    """True when it says how far other numbers can be trusted, and is no quality of a system."""
    cutoff_kind: Literal["rank", "share", "multiple"] = "rank"
    """What stands after the @: a rank, a share from 0 to 1 (`IPrec@0.1`), or a multiple of the number of relevant
    documents."""
    needs: Needs | None = None
    """What a ranking must carry besides ranks and grades; where it does not, no query has a value."""
    aggregate: Literal["mean", "sum", "geometric mean"] = "mean"
    """How the queries' values are summed up where one number stands for all."""
    trec_name: str = ""
    """What trec_eval calls it without a cutoff; empty where it has none."""
    is_own: bool = False
    """Made by `define`: its cutoff may be anything, and says nothing of how many results are needed."""
    trec_cut_name: str = ""
    """What trec_eval calls it at a cutoff, before the number (`ndcg_cut` of `ndcg_cut_10`)."""
    question: str = ""
    """Which question it answers; empty: the guide does not list it."""
    plain: str = ""
    """What it is for readers who know no formula; empty: `sentence`."""

    @cached_property
    def spelling(self) -> str:
        """How it is written: `P@k`, `AP`, `AP@k`."""
        if self.composed is not None:
            return "0.6 * RR + 0.4 * nDCG@k"
        k = {"rank": "k", "share": "share", "multiple": "x"}[self.cutoff_kind]
        forms = {"required": f"{self.name}@{k}", "optional": f"{self.name}, {self.name}@{k}", "none": self.name}
        return forms[self.cutoff]


REL = ParameterSpec("rel", 1, "lowest grade that counts as relevant", minimum=1)
GRADE = ParameterSpec(
    "only_grade",
    0,
    "only this grade counts as relevant, as a tier; queries that expect none have no value; 0: from rel up",
    0,
)
BEST = ParameterSpec("only_best", False, "only the highest grade that the query expects counts as relevant")
JUDGED_ONLY = ParameterSpec("judged_only", False, "remove unjudged results from the list first")
GAINS = ParameterSpec("gains", (), "gain by grade, such as `{1: 3, 2: 9}`; default: the grade itself")
PERSISTENCE = ParameterSpec(
    "p", 0.8, "probability that the user continues to the next result", 0, 1, above_minimum=True, below_maximum=True
)


def with_default(parameter: ParameterSpec, default: Parameter) -> ParameterSpec:
    """The same parameter with another default."""
    return replace(parameter, default=default)


@dataclass(frozen=True, slots=True)
class ProviderOrder:
    """One library, and how it orders a run."""

    name: str
    ties: Literal["descending", "ascending", "given"]
    """Equal scores: by document id, or as the run has them."""
    score_width: Literal[64, 32]
    computes: Callable[[Measure], bool]
    """Whether ir_measures asks it for a measure."""
    scores_absent: bool = True
    """Whether a judged query that the run does not answer has the value 0; else it is left out."""


_CWL = frozenset(("RBP", "BPM", "SDCG", "INST", "INSQ", "NERR8", "NERR9", "NERR10", "NERR11"))


def _is_gdeval(measure: Measure) -> bool:
    is_exponential = measure.name == "nDCG" and measure.param("dcg", "log2") == "exp-log2"
    return (measure.name == "ERR" or is_exponential) and measure.cutoff is not None


PROVIDERS: tuple[ProviderOrder, ...] = (
    ProviderOrder("cwl_eval", "given", 64, lambda measure: measure.name in _CWL),
    ProviderOrder("accuracy", "given", 64, lambda measure: measure.name == "Accuracy", scores_absent=False),
    ProviderOrder("compat", "ascending", 64, lambda measure: measure.name == "Compat"),
    ProviderOrder("judged", "ascending", 64, lambda measure: measure.name == "Judged"),
    ProviderOrder("msmarco", "ascending", 64, lambda measure: measure.name == "RR" and measure.cutoff is not None),
    ProviderOrder("gdeval", "descending", 64, _is_gdeval),
    ProviderOrder("pytrec_eval", "descending", 32, lambda _: True),
)
"""In the order they are looked through; the last computes all others."""


def provider_of(measure: Measure) -> ProviderOrder:
    """The library that computes a measure in ir_measures."""
    return next(provider for provider in PROVIDERS if provider.computes(measure))


def convention_for(measure: Measure, convention: Convention) -> Convention:
    """The convention with the order of a run that it has for this measure."""
    if convention.orders == "one":
        return convention
    provider = provider_of(measure)
    return replace(convention, ties=provider.ties, score_width=provider.score_width)


def by_convention(measures: Iterable[Measure], convention: Convention) -> Mapping[Convention, list[Measure]]:
    """Measures that share the order of a run."""
    found: dict[Convention, list[Measure]] = {}
    for measure in measures:
        found.setdefault(convention_for(measure, convention), []).append(measure)
    return found


FAILED = "the system failed on it"
NOTHING_JUDGED = "nothing within the cutoff is judged"


def seen_by(measure: Measure, ranking: Ranking, *, diagnostic: bool) -> Ranking:
    """The ranking a measure looks at, by its own parameters and by the convention's choices."""
    ranking = only_its_grades(measure, ordered_for(measure, ranking))
    drops_unjudged = ranking.convention.unjudged == "condensed" and not diagnostic
    if drops_unjudged or measure.param("judged_only", default=False):
        ranking = condensed(ranking)
    if ranking.convention.gain == "exponential" and measure.name != "CG":  # Quepid's CG sums the ratings
        ranking = exponential_gains(ranking)
    gains = measure.param("gains", default=())
    return with_gains(ranking, dict(gains)) if isinstance(gains, tuple) and gains else ranking


def only_its_grades(measure: Measure, ranking: Ranking) -> Ranking:
    """The ranking in which no other grade is relevant than the one a measure asks for: `only_grade`, or the best of each query (`only_best`).

    Other judged results and expected items have level 0. Gains stay as they are: no measure with these parameters reads them.
    """
    if grade := measure.whole("only_grade", 0):
        rows, entries = ranking.level == grade, ranking.expected_level == grade
    elif measure.param("only_best", default=False):
        there = np.flatnonzero(ranking.expected_count != 0)  # best first within each query
        first = there[np.unique(ranking.expected_query[there], return_index=True)[1]]
        level, gain = np.zeros(ranking.n_queries, dtype=np.int32), np.zeros(ranking.n_queries)
        level[ranking.expected_query[first]] = ranking.expected_level[first]
        gain[ranking.expected_query[first]] = ranking.expected_gain[first]
        rows = (ranking.level == level[ranking.query]) & (ranking.gain == gain[ranking.query])
        of = ranking.expected_query
        entries = (ranking.expected_level == level[of]) & (ranking.expected_gain == gain[of])
    else:
        return ranking
    return replace(
        ranking,
        level=np.where(rows, ranking.level, np.minimum(ranking.level, 0)).astype(np.int32),
        expected_level=np.where(entries, ranking.expected_level, np.minimum(ranking.expected_level, 0)).astype(
            np.int32
        ),
    )


def ordered_for(measure: Measure, ranking: Ranking) -> Ranking:
    """The ranking with its ties as the convention has them for this measure, as far as a ranking can be turned round."""
    convention = ranking.convention
    reverses = {convention_for(measure, convention).ties, convention.ties} == {"ascending", "descending"}
    return ties_reversed(ranking) if reverses else ranking


def order_is_random(measure: Measure, ranking: Ranking) -> bool:
    """Whether the order of a tie changes nothing but ranks: not what is divided by, what is credited or what is in the list."""
    convention = ranking.convention
    if (
        convention.unjudged != "not relevant"
        or convention.credit == "every"
        or measure.param("judged_only", default=False)
    ):
        return False
    divides_by_the_list = {
        "P": convention.precision_over == "judged",
        "AP": convention.average_precision_over == "found" or measure.param("divisor", "relevant") == "retrieved",
        "nDCG": convention.ideal == "retrieved",
    }
    if divides_by_the_list.get(measure.name, False):
        return False
    entries = (
        ranking.expected_start[ranking.query] + ranking.item
    )  # an item with several results is credited to the first
    tied = ranking.tie_last > ranking.tie_first
    repeated = np.bincount(entries, minlength=len(ranking.expected_query)) > 1
    return not bool((tied & repeated[entries]).any())


def refused(measure: Measure, ranking: Ranking) -> Iterator[tuple[NDArray[np.intp], str]]:
    """Queries of a class that the measure says nothing of, and why."""
    classes = np.array(ranking.classes)
    for name in dict.fromkeys(ranking.classes):
        if name and (why := QUERY_CLASSES[name].why_refused(measure.name)):
            yield np.flatnonzero(classes == name), why


def without_value(
    measure: Measure, ranking: Ranking, *, only_failures: bool = False
) -> Iterator[tuple[NDArray[np.intp], str]]:
    """Queries that the convention gives no value, and why, the plainest reason first.

    Args:
        measure: what is computed.
        ranking: Q queries.
        only_failures: empty answers and unjudged queries are no reason.
    """
    convention, outcomes = ranking.convention, ranking.outcomes
    if convention.failed == "skip":
        yield np.flatnonzero([outcome.is_failure for outcome in outcomes]), FAILED
    if only_failures:
        return
    if convention.empty == "skip":
        answered = [not outcome.is_failure and outcome is not Outcome.MISSING for outcome in outcomes]
        yield np.flatnonzero(np.array(answered, dtype=np.bool_) & (ranking.n_returned == 0)), Reason.NOTHING_RETURNED
    if convention.no_relevant == "skip":
        relevant = expected_relevant(only_its_grades(measure, ranking), rel=measure.whole("rel", 1))
        yield np.flatnonzero(relevant == 0), Absence.NONE_RELEVANT
    if convention.unjudged == "unscored":
        cutoff = measure.cutoff if isinstance(measure.cutoff, int) else None
        yield np.flatnonzero((ranking.n_returned > 0) & (judged_within(ranking, cutoff) == 0)), NOTHING_JUDGED


def unjudged(ranking: Ranking) -> Iterator[tuple[NDArray[np.intp], str]]:
    """Queries without a judgment: no tool that reads qrels evaluates them. A convention may have its own reason."""
    places = np.flatnonzero(never_judged(ranking))
    if len(places) and ranking.convention.unjudged != "unscored":
        yield places, Absence.NEVER_JUDGED


def without_grade(measure: Measure, ranking: Ranking) -> Iterator[tuple[NDArray[np.intp], str]]:
    """Queries that expect nothing of the one grade that a measure is about."""
    if measure.whole("only_grade", 0):
        expected = expected_relevant(only_its_grades(measure, ranking), rel=1)
        yield np.flatnonzero(expected == 0), Reason.NO_SUCH_GRADE


def rounded(values: FloatQ, decimals: int | None) -> FloatQ:
    """Values to so many decimals, halves up; unchanged where the convention does not round."""
    if decimals is None:
        return values
    scale = 10.0**decimals
    with np.errstate(over="ignore"):
        result: FloatQ = np.floor(values * scale + 0.5) / scale
    return np.where(np.isinf(result), values, result)  # so great a value has no decimals
