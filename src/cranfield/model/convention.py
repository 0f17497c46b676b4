"""Named conventions: the choices on which tools that print the same measure disagree.

A convention says how a run is ordered, what a result is worth, what a measure divides by and which queries have no
value. A choice that is not documented for a tool is as in `trec`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Literal

from cranfield.base.errors import UnknownNameError

Scored = Literal["zero", "skip"]
"""A query without a value counts as 0, or is left out of the mean."""
Ties = Literal["descending", "ascending", "given", "expected"]
"""Order of equal scores; see `Convention.ties`."""


@dataclass(frozen=True, slots=True)
class Convention:
    """A named set of choices. A result always names the convention that scored it."""

    name: str
    sentence: str
    """One line for lists and reports."""
    file_order: Literal["score", "given", "rank"] = "score"
    """Order of a TREC run file: by score, by line, or by the rank column."""
    ties: Ties = "descending"
    """Order of equal scores: by document id in byte order, or as in the file; expected: every value is the mean over all of
    their orders, and lists are shown by descending document id."""
    score_width: Literal[64, 32] = 64
    """Bits of a score in comparisons: with 32, 1.00000001 ties with 1."""
    duplicates: Literal["error", "first"] = "error"
    """Default for a document that occurs twice in one query of a run file: an error, or the first is kept."""
    repeats: Literal["dropped", "kept"] = "dropped"
    """A result that a list returns again: dropped, or kept in the place where it was shown. `duplicates` of a call drops it."""
    missing: Scored = "zero"
    """Default for a judged query that the run does not answer."""
    credit: Literal["declared", "every"] = "declared"
    """Credit for duplicate matches of an expected item: as the judgment declares (once by default), or every match. Recall
    counts an item at most as often as it was expected, and one result may cover several items."""
    gain: Literal["grade", "match", "exponential"] = "grade"
    """Gain of a match of grade g: g, 1 for every grade, or 2^g - 1 (CG sums the grades themselves)."""
    unjudged: Literal["not relevant", "condensed", "unscored"] = "not relevant"
    """An unjudged result: not relevant; left out of the list; or not relevant, and a query where everything
    within the cutoff is unjudged has no value."""
    ideal: Literal["judged", "judged uncut", "retrieved", "one"] = "judged"
    """Ideal DCG: the expected items in their best order, cut at k; the same, not cut; the results within the cutoff,
    re-sorted; or fixed at 1."""
    precision_over: Literal["k", "judged", "returned"] = "k"
    """What P@k divides by: k, the judged results within k, or the results within k."""
    average_precision_over: Literal["expected", "found"] = "expected"
    """What AP divides by: all relevant documents, or the relevant results within the cutoff."""
    rr_depth: int | None = None
    """Largest rank that RR looks at, whatever its cutoff; None is the whole list."""
    orders: Literal["one", "ir_measures"] = "one"
    """Order of equal scores: one for all measures; or that of the library which computes a measure in ir_measures, by the
    smaller document id for RR@k, Judged@k and Compat, as in the run for RBP and others of cwl_eval, all of these at 64 bits."""
    iprec: Literal["nearest", "up"] = "nearest"
    """Number of relevant results at a recall level that is not a whole number of them: the nearest or, above a tenth,
    the next."""
    failed: Scored = "zero"
    """A query the system failed on: timeout, non-zero exit, output that cannot be read."""
    empty: Scored = "zero"
    """A query the system answered with no result."""
    no_relevant: Scored = "zero"
    """A query for which nothing relevant is judged."""
    names: tuple[tuple[str, str], ...] = ()
    """Names of measures that its users know: the catalogue's name, and the one that is printed. No choice: values are the same."""
    decimals: int | None = None
    """Each query's value is rounded to so many decimals, halves up, before the mean; None does not round."""
    phrase: str = ""
    """A few words of the sentence, for the help of an option; no choice."""

    @property
    def tie_order(self) -> Literal["descending", "ascending", "given"]:
        """The order in which equal scores stand in a list."""
        return "descending" if self.ties == "expected" else self.ties


CHOICES: tuple[str, ...] = tuple(
    field.name for field in fields(Convention) if field.name not in {"name", "phrase", "sentence", "names"}
)
"""Fields of a convention that are choices, in the order they apply: run, results, measure, mean."""

RANKING_CHOICES = frozenset(
    {"file_order", "ties", "score_width", "duplicates", "repeats", "missing", "credit", "gain", "orders"}
)
"""Choices that change the Ranking of a run; the others apply to a given Ranking."""


CONVENTIONS = {
    convention.name: convention
    for convention in (
        Convention(
            "trec",
            "the default: trec_eval's choices, scores as 64-bit floats, missing queries count as 0",
            phrase="as trec_eval; the default",
        ),
        Convention(
            "trec9",
            "trec_eval 9.0.8 without -c: scores as 32-bit floats, recall shares rounded up, missing queries left out",
            phrase="trec_eval 9: scores of 32 bits",
            score_width=32,
            missing="skip",
            iprec="up",
        ),
        Convention(
            "trec10",
            "trec_eval 10.0 with -c: scores as 64-bit floats, recall shares rounded to the nearest; otherwise as trec",
            phrase="trec_eval 10 -c",
        ),
        Convention(
            "ir_measures",
            "ir_measures 0.4 over pytrec_eval: scores as 32-bit floats; RR@k, Judged@k, RBP and others order ties in their own ways",
            phrase="ir_measures 0.4 over pytrec_eval",
            score_width=32,
            orders="ir_measures",
            iprec="up",
        ),
        Convention(
            "ranx",
            "ranx 0.3: recall shares rounded up; ranx orders ties arbitrarily; here by document id, descending",
            phrase="ranx 0.3",
            iprec="up",
        ),
        Convention(
            "msmarco",
            "the MS MARCO scorer of ir_measures: ties are ordered by document id, ascending",
            phrase="the MS MARCO scorer",
            ties="ascending",
        ),
        Convention(
            "sklearn",
            "scikit-learn's ndcg_score: a value is the mean over all orders of equal scores; otherwise as trec",
            phrase="scikit-learn: mean over tied orders",
            ties="expected",
        ),
        Convention(
            "searchtweak",
            "ordered by position; precision over the judged results, average precision over the relevant ones found, the "
            "ideal is the results re-sorted; no value where nothing is judged or nothing was returned",
            phrase="by position; judged results only",
            file_order="rank",
            missing="skip",  # a run file has no line for a query with no result
            unjudged="unscored",
            ideal="retrieved",
            precision_over="judged",
            average_precision_over="found",
            failed="skip",
            empty="skip",
            names=(("AP", "MAP"), ("RR", "MRR")),
        ),
        Convention(
            "cupertino",
            "results in the order given; every match credited with gain 1, ideal DCG fixed at 1 (so nDCG may exceed 1), RR to rank 10",
            phrase="as listed; gain 1 a match, RR@10",
            file_order="given",
            credit="every",
            gain="match",
            ideal="one",
            rr_depth=10,
        ),
        Convention(
            "octocode",
            "results in the order given; every match credited (so nDCG may exceed 1), RR to rank 20, failed queries left out",
            phrase="as listed; every match counts, RR@20",
            file_order="given",
            credit="every",
            rr_depth=20,
            failed="skip",
        ),
        Convention(
            "knowcode",
            "the list as returned, with repeated results; every match credited (so P@k counts each "
            "chunk of an entity), RR over the whole list",
            phrase="as listed; repeated results count",
            file_order="given",
            repeats="kept",
            credit="every",
        ),
        Convention(
            "quepid",
            "gains 2^g - 1; the ideal ranking of nDCG@k holds every judged document and is not cut at k; precision over "
            "min(k, results returned)",
            phrase="gains 2^g - 1, ideal not cut",
            gain="exponential",
            ideal="judged uncut",
            precision_over="returned",
        ),
        Convention(
            "opensearch",
            "gains 2^g - 1, precision over min(k, results returned), and values rounded to 2 decimals before they are averaged",
            phrase="gains 2^g - 1, rounded to 2 decimals",
            gain="exponential",
            precision_over="returned",
            decimals=2,
        ),
    )
}

DEFAULT_CONVENTION = "trec"


def convention_named(name: str | Convention) -> Convention:
    """Look a convention up, or return the one given; raise `UnknownNameError` with the nearest name when there is none."""
    if isinstance(name, Convention):
        return name
    if name not in CONVENTIONS:
        raise UnknownNameError.among("convention", name, CONVENTIONS)
    return CONVENTIONS[name]


def differing(a: Convention, b: Convention) -> tuple[str, ...]:
    """The choices two conventions do not share, in the order they apply."""
    return tuple(name for name in CHOICES if getattr(a, name) != getattr(b, name))


def with_choice(convention: Convention, name: str, other: Convention) -> Convention:
    """The convention with one choice of another's."""
    choice: dict[str, Any] = {name: getattr(other, name)}
    return replace(convention, **choice)


class Absence(StrEnum):
    """What is absent. Programs compare the member; its value is the term of notes and reports."""

    NEVER_JUDGED = "never judged"
    """The test set has no judgment of the query."""
    NO_CONSENSUS = "rated, no consensus"
    """Raters judged the query, and the consensus rule gives no document a grade."""
    ONLY_POOLED = "in the pool, none judged"
    """All grades of the query are under 0."""
    NONE_RELEVANT = "judged, none relevant"
    """The query has judgments, and none is relevant."""
    NOT_RETURNED = "not returned"
    """The run has no answer for the query."""
