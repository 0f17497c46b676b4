"""One test set that holds every kind of truth at once: each measure has a value in its range for a query, or says why not."""

import math
import warnings

import numpy as np
import pytest

from cranfield.evaluation.margins import tie_margin, unjudged_margin
from cranfield.measures import CATALOGUE, compute, parse
from cranfield.measures.measure import COMPOSITE
from cranfield.model import (
    CONVENTIONS,
    Answer,
    Entity,
    File,
    Hit,
    Legacy,
    Negative,
    Outcome,
    Pattern,
    Predicate,
    Query,
    Run,
    Source,
    Span,
    TestSet,
)
from cranfield.ranking import rank_run
from cranfield.ranking.value import best_case, condensed, cut, ties_reversed, worst_case

TARGETS = {
    "spans": (Span("src/a.py", 1, 10, 2), Span("src/a.py", 5, 20, 1), Span("src/b.py", 1, 1, 3)),
    "patterns": (Pattern("x", 1), Pattern("^x/", 2, "every", 5), Pattern("y", 1, "every")),
    "entities": (Entity("src/a.py::f", 2), File("src/b.py", 1)),
    "rows": (Predicate("select 1", ids=("a", "b", "x/1"), grade=2), Predicate("select 2", ids=("b",), grade=3)),
}
GRADES = {
    "ids": {"a": 3, "b": 1, "c": 0, "d": -1, "e": 0.5, "f": 2.7},
    "nothing": {"a": 0},
    "forms": {"new": 1},
    "sources": {"apple/x": 1, "hig/y": 2},
    "prose": {"a": 1, "b": 2, "c": 3},
    **{query: {"a": 1} for query in ("failed", "missing", "empty")},
}
NEGATIVES = {
    "quiet": Negative(),
    "unsure": Negative(below=0.5),
    "field": Negative(below=0.5, field="confidence"),
    "loud": Negative(),
    "broken": Negative(),
    "absent": Negative(),
}
CLASSES = {"patterns": "attribute", "rows": "fragment", "entities": "root", "forms": "deprecation"}
CLASSES |= {"sources": "cross-source", "prose": "prose", "ids": "synonym"}
SET = TestSet(
    "everything",
    tuple(
        Query(query, query_class=CLASSES.get(query, ""), negative=NEGATIVES.get(query))
        for query in [*GRADES, *TARGETS, *NEGATIVES]
    ),
    GRADES,
    targets=TARGETS,
    files={"spans": ("src/a.py", "src/b.py")},
    legacy={"forms": Legacy(("old",), ("^old/",))},
    sources=(Source("apple", "^apple/"), Source("hig", "^hig/")),
)
LISTS = {
    "ids": [("u", 0.9), ("b", 0.9), ("d", 0.9), ("a", 0.5), ("e", 0.5), ("c", 0.2)],
    "nothing": [("a", 1.0), ("b", 1.0)],
    # two truths under one result, several results on one truth, one that does not say its lines
    "spans": [
        ("src/a.py:4-6", 0.9),
        ("src/a.py:8-12", 0.9),
        ("src/a.py:18", 0.8),
        ("src/a.py", 0.7),
        ("src/b.py:1", 0.1),
    ],
    "patterns": [("x/1", 1.0), ("x/2", 1.0), ("xy", 0.5), ("z", 0.1)],
    "entities": [("src/a.py::f::2", 0.4), ("src/a.py::f", 0.3), ("x/src/b.py::g", 0.2), ("src/b.py:3", 0.1)],
    "rows": [("q", 0.3), ("x/1", 0.2), ("b", 0.1)],
    "forms": [("old/1", 0.9), ("new", 0.8)],
    "sources": [("hig/y", 0.9), ("apple/x", 0.8), ("z", 0.1)],
    "prose": [("c", 0.9), ("a", 0.9)],
    "empty": [],
    "quiet": [],
    "unsure": [("a", 0.4)],
    "field": [("a", 9.0)],
    "loud": [("a", 9.0), ("b", 9.0)],
}
ANSWERS = {
    query: Answer(
        Outcome.ANSWERED if hits else Outcome.EMPTY,
        tuple(Hit(doc, score) for doc, score in hits),
        fields={"confidence": 0.3} if query == "field" else {},
    )
    for query, hits in LISTS.items()
} | dict.fromkeys(("failed", "broken"), Answer(Outcome.TIMEOUT, (), "no answer in time"))

CUTOFFS = {"rank": (1, 3, 10), "share": (0.1, 1.0), "multiple": (1.0,)}
SEEN = {
    "as they came": lambda ranking: ranking,
    "best case": best_case,
    "worst case": worst_case,
    "condensed": condensed,
    "ties reversed": ties_reversed,
    "cut": lambda ranking: cut(ranking, 2),
}


def spellings(name):
    spec = CATALOGUE[name]
    if name == COMPOSITE:
        return ["0.6 * RR[class=G] + 0.4 * nDCG@3"]
    plain = [] if spec.cutoff == "required" else [name]
    return plain + ([] if spec.cutoff == "none" else [f"{name}@{k}" for k in CUTOFFS[spec.cutoff_kind]])


def ranked(convention, order, missing):
    return rank_run(SET, Run("run", ANSWERS, order=order), CONVENTIONS[convention], missing=missing)


RANKINGS = {
    (convention, order, missing): ranked(convention, order, missing)
    for convention, order, missing in (
        ("trec", "descending", "zero"),
        ("trec", "given", "skip"),
        ("ir_measures", "descending", "zero"),
        ("searchtweak", "given", "zero"),
        ("cupertino", "given", "zero"),
        ("octocode", "descending", "zero"),
        ("quepid", "descending", "zero"),
        ("opensearch", "descending", "zero"),
    )
}


def may_exceed(ranking, query_id):
    """Where an item is paid more often than it is expected: a convention that pays all, a pattern with too low a count."""
    convention = ranking.convention
    return convention.credit == "every" or convention.ideal == "one" or query_id == "patterns"


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_a_measure_has_a_value_in_its_range_or_a_reason(name):
    low, high = CATALOGUE[name].range
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for (convention, *_), ranking in RANKINGS.items():
            if name == COMPOSITE and convention in {"ir_measures", "searchtweak"}:
                continue  # an error: see test_composite
            for seen, change in SEEN.items():
                changed = change(ranking)
                for spelling in spellings(name):
                    values, scored, reasons = compute(parse(spelling), changed)
                    assert set(reasons) >= {q for q, has in zip(changed.query_ids, scored, strict=True) if not has}
                    assert all(reasons.values())
                    for query_id, value, has in zip(changed.query_ids, values.tolist(), scored, strict=True):
                        top = math.inf if may_exceed(changed, query_id) else high
                        within = low - 1e-9 <= value <= top + 1e-9
                        assert within or not has, (spelling, convention, seen, query_id, value)


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_a_value_lies_between_its_margins(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for (convention, *_), ranking in RANKINGS.items():
            if name == COMPOSITE and convention in {"ir_measures", "searchtweak"}:
                continue  # an error: see test_composite
            for spelling in spellings(name):
                measure = parse(spelling)
                values, scored, _ = compute(measure, ranking)
                for margin in (tie_margin(measure, ranking), unjudged_margin(measure, ranking)):
                    if margin.why:
                        continue
                    known = scored & ~np.isnan(margin.low)
                    assert (margin.low[known] <= values[known] + 1e-9).all(), (spelling, convention)
                    assert (margin.high[known] >= values[known] - 1e-9).all(), (spelling, convention)


def test_a_negative_query_has_no_value_but_silence():
    ranking = RANKINGS["trec", "descending", "zero"]
    places = {query_id: place for place, query_id in enumerate(ranking.query_ids)}
    for name in CATALOGUE:
        for spelling in spellings(name):
            values, scored, _ = compute(parse(spelling), ranking)
            found = {q: values[places[q]] for q in NEGATIVES if scored[places[q]]}
            silent = {"quiet": 1, "unsure": 1, "field": 1, "loud": 0, "broken": 0, "absent": 0}
            assert found == (silent if name == "Silence" else {}), spelling
