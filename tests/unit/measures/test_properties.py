"""Properties of measures: `traits/*.toml` declare for every measure of the catalogue which properties hold.

Hypothesis tries to break the ones that are declared true. For each one that is declared false, `counterexamples.json`
stores a case that breaks it. CRANFIELD_UPDATE_COUNTEREXAMPLES=1 searches for the cases that are missing or no longer
break their property, writes them into the file, and removes those of properties that are now declared true.
"""

import functools
import json
import math
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from cranfield.evaluation.causes import parts_of, why_not_parted
from cranfield.measures import CATALOGUE, compute
from cranfield.measures import parse as parse_measure
from cranfield.model import (
    Answer,
    Criteria,
    GroupedJudgment,
    Hit,
    Legacy,
    Negative,
    Outcome,
    Passage,
    Query,
    Run,
    Source,
    TestSet,
    convention_named,
)
from cranfield.ranking import rank_run

PROPERTIES = (
    "bounded",
    "one_on_the_ideal_list",
    "never_falls_when_a_relevant_result_rises",
    "blind_beyond_the_cutoff",
    "blind_to_unjudged_at_the_end",
    "blind_to_query_order",
    "blind_to_document_names",
    "blind_to_a_rescale_of_scores",
)
ALWAYS = {"blind_to_query_order", "blind_to_document_names", "blind_to_a_rescale_of_scores"}
"""True unless a table says otherwise."""

parse = functools.cache(parse_measure)  # thousands of times each
GROUPINGS = {"subtopic", "judge", "preference"}
TEXTS = {"texts", "passages"}
DOCUMENTS = [f"d{i:02}" for i in range(12)]
grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 3), min_size=1, max_size=8)
good_grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(1, 3), min_size=1, max_size=5)
lists = st.lists(st.sampled_from(DOCUMENTS), unique=True, min_size=1)


def read_traits():
    tables = {}
    for path in sorted((Path(__file__).parent / "traits").glob("*.toml")):
        for name, table in tomllib.loads(path.read_text()).items():
            tables.setdefault(name, []).append(dict.fromkeys(ALWAYS, True) | table)
    return tables


TRAITS = read_traits()


def test_no_measure_is_forgotten_and_none_is_declared_twice():
    assert set(TRAITS) == set(CATALOGUE)
    assert not [name for name, tables in TRAITS.items() if len(tables) > 1]


def test_every_measure_is_on_one_side_of_every_property():
    undecided = [f"{name}: {key}" for name, (table, *_) in TRAITS.items() for key in PROPERTIES if key not in table]
    assert not undecided


def test_every_broken_property_and_every_parity_is_explained():
    for name, (table, *_) in TRAITS.items():
        broken = [key for key in PROPERTIES if table[key] is False]
        assert not broken or table["why"], name
        assert table["parity"] in {"trec_eval", "ir_measures", "ranx", "own"}, name
        assert table["spellings"], name
        assert all(parse(spelling).name == name for spelling in table["spellings"])


@dataclass(frozen=True)
class Case:
    """Judgments and one list of results, by query."""

    grades: dict
    lists: dict
    scores: tuple[float, float] | None = None
    """Slope and offset of the scores; None for a list in the order given."""


def grouped(needs, query_grades):
    """The same judgments by group, as a measure needs them."""
    if needs == "subtopic":
        return tuple(
            GroupedJudgment(d, str(i % 3), g) for i, (d, g) in enumerate(sorted(query_grades.items())) if g > 0
        )
    if needs == "judge":
        return tuple(GroupedJudgment(d, judge, g) for d, g in query_grades.items() for judge in ("first", "second"))
    return tuple(GroupedJudgment(d, "only", float(g), "all") for d, g in query_grades.items() if g >= 0)


def further_fields(needs, judgments):
    """Further fields of the test set that a measure needs. They depend on the end of an id only, so that names do not matter."""
    if needs == "files":
        return {"files": {q: tuple(d for d, g in judged.items() if g > 0) for q, judged in judgments.items()}}
    if needs == "legacy":
        return {"legacy": {q: Legacy(patterns=("[02468]$",)) for q in judgments}}
    if needs == "forbidden":
        return {"forbidden": {q: (Criteria({"id glob": "*[13579]"}),) for q in judgments}}
    if needs == "sources":
        return {"sources": (Source("first", "0[0-3]$"), Source("second", "0[4-7]$"), Source("third", "[0-9]$"))}
    return {}


def place(doc):
    """Document and first character of a result, by the end of its id: neighbours of one document overlap."""
    number = int(doc[-2:]) if doc[-2:].isdigit() else 99
    return f"text{number % 2}", 5 * number


def passages(judged):
    """The same judgments as passages, which results with their numbers hold and others overlap."""
    places = [(*place(doc), grade) for doc, grade in judged.items()]
    return tuple(Passage("", path, f"{start}-{start + 8}", grade=grade) for path, start, grade in places)


def fields_of(doc):
    path, start = place(doc)
    return {"path": path, "start_char": start, "end_char": start + 12}


@functools.lru_cache(maxsize=256)
def ranking_of(needs, case_as_json):
    """One ranking for all measures with the same needs: ranking costs many times what a measure does."""
    case = Case(**json.loads(case_as_json))
    groups = {q: grouped(needs, judged) for q, judged in case.grades.items()} if needs in GROUPINGS else {}
    negative = Negative() if needs == "silence" else None
    testset = TestSet(
        "set",
        tuple(Query(q, negative=negative) for q in case.grades),
        {} if needs in TEXTS else case.grades,
        targets={q: passages(judged) for q, judged in case.grades.items()} if needs in TEXTS else {},
        groups=groups,
        grouping=needs if groups else None,
        **further_fields(needs, case.grades),
    )
    slope, offset = case.scores or (1.0, 0.0)
    answers = {
        q: Answer(
            Outcome.ANSWERED,
            tuple(
                Hit(
                    d,
                    slope * (len(docs) - i // 2) + offset,
                    tokens=10.0 + i,
                    fields=fields_of(d) if needs in TEXTS else None,
                )
                for i, d in enumerate(docs)
            ),
        )
        for q, docs in case.lists.items()
    }
    run = Run("run", answers, order="descending" if case.scores else "given")
    return rank_run(testset, run, convention_named("trec"))


def values(spelling, case):
    measure = parse(spelling)
    ranking = ranking_of(CATALOGUE[measure.name].needs, json.dumps(vars(case)))
    found, scored, _ = compute(measure, ranking)
    return {q: v if s else math.nan for q, v, s in zip(ranking.query_ids, found.tolist(), scored.tolist(), strict=True)}


def value(spelling, judged, docs):
    return values(spelling, Case({"q": judged}, {"q": docs}))["q"]


def same(a, b):
    return a == b or a == pytest.approx(b, abs=1e-12, nan_ok=True)


def holds_bounded(spelling, judged, docs, _other):
    low, high = CATALOGUE[parse(spelling).name].range
    found = value(spelling, judged, docs)
    return math.isnan(found) or low - 1e-12 <= found <= high + 1e-12


def holds_one_on_the_ideal_list(spelling, judged, _docs, _other):
    best = sorted(judged, key=lambda d: -judged[d])
    return same(value(spelling, judged, best), 1.0)


def holds_never_falls_when_a_relevant_result_rises(spelling, judged, docs, _other):
    sign = 1 if CATALOGUE[parse(spelling).name].higher_is_better else -1
    before = value(spelling, judged, docs)
    for i in range(1, len(docs)):
        if judged.get(docs[i], 0) > max(judged.get(docs[i - 1], 0), 0):
            after = value(spelling, judged, [*docs[: i - 1], docs[i], docs[i - 1], *docs[i + 1 :]])
            if not (math.isnan(before) or math.isnan(after)) and sign * after < sign * before - 1e-12:
                return False
    return True


def holds_blind_beyond_the_cutoff(spelling, judged, docs, other):
    depth = parse(spelling).depth
    if depth is None or len(docs) < depth:
        return True
    head = docs[:depth]
    return same(value(spelling, judged, head), value(spelling, judged, head + [d for d in other if d not in head]))


def holds_blind_to_unjudged_at_the_end(spelling, judged, docs, _other):
    return same(value(spelling, judged, docs), value(spelling, judged, [*docs, "unknown"]))


def holds_blind_to_query_order(spelling, judged, docs, other):
    more = dict.fromkeys(other[:2], 1)
    forward = values(spelling, Case({"1": judged, "2": more}, {"1": docs, "2": other}))
    backward = values(spelling, Case({"2": more, "1": judged}, {"2": other, "1": docs}))
    return same(forward, backward) and same(forward["1"], value(spelling, judged, docs))


def holds_blind_to_document_names(spelling, judged, docs, _other):
    renamed = values(
        spelling, Case({"q": {f"x{d}": g for d, g in judged.items()}}, {"q": [f"x{d}" for d in docs]}, (1.0, 0.0))
    )
    return same(renamed, values(spelling, Case({"q": judged}, {"q": docs}, (1.0, 0.0))))


def holds_blind_to_a_rescale_of_scores(spelling, judged, docs, _other):
    plain = values(spelling, Case({"q": judged}, {"q": docs}, (1.0, 0.0)))
    return same(plain, values(spelling, Case({"q": judged}, {"q": docs}, (8.0, -3.0))))


HOLDS = {name.removeprefix("holds_"): check for name, check in list(globals().items()) if name.startswith("holds_")}


def cases(key):
    return st.tuples(good_grades if key == "one_on_the_ideal_list" else grades, lists, lists)


@pytest.mark.parametrize("key", PROPERTIES)
def test_a_property_holds_for_every_measure_that_declares_it(key):
    spellings = [spelling for table, *_ in TRAITS.values() if table.get(key) is True for spelling in table["spellings"]]

    # Each case is one for every measure: half as many show as much.
    examples = settings.default.max_examples // 2

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(cases(key))
    def holds(case):
        broken = [spelling for spelling in spellings if not HOLDS[key](spelling, *case)]
        assert not broken

    holds()


@pytest.mark.parametrize(
    "key", ["bounded", "never_falls_when_a_relevant_result_rises", "blind_beyond_the_cutoff", *sorted(ALWAYS)]
)
@given(case=cases(""))
def test_rbp_of_the_page_has_the_properties_of_rbp_but_for_the_length_of_the_list(key, case):
    assert all(HOLDS[key](spelling, *case) for spelling in ("RBP(page=True)", "RBP(page=True, rel=1)@5"))


@given(grades, lists)
def test_the_tiers_of_a_list_add_up_to_its_hits(judged, docs):
    tiers = sorted({grade for grade in judged.values() if grade > 0})
    each = [value(f"Hits(only_grade={grade})@5", judged, docs) for grade in tiers]
    assert sum(each) == value("Hits@5", judged, docs)
    assert max([0.0, *map(bool, each)]) == value("Success@5", judged, docs)
    assert value("Hits(only_best=True)@5", judged, docs) == (each[-1] if each else 0.0)


COUNTEREXAMPLES = Path(__file__).parent / "counterexamples.json"
DENIED = [(key, name) for key in PROPERTIES for name, (table, *_) in TRAITS.items() if table.get(key) is False]


def breaks(key, known):
    return not HOLDS[key](known["spelling"], known["grades"], known["list"], known["other"])


def search_for_counterexample(key, name):
    """The smallest case that hypothesis finds."""
    strategy = st.tuples(st.sampled_from(TRAITS[name][0]["spellings"]), cases(key))
    try:
        spelling, (judged, docs, other) = find(
            strategy,
            lambda case: not HOLDS[key](case[0], *case[1]),
            settings=settings(max_examples=3000, database=None, derandomize=True),
        )
    except NoSuchExample:
        pytest.fail(f"{key} seems to hold for {name}")
    return {"spelling": spelling, "grades": judged, "list": docs, "other": other}


def stored_counterexamples():
    stored = json.loads(COUNTEREXAMPLES.read_text())
    if os.environ.get("CRANFIELD_UPDATE_COUNTEREXAMPLES"):
        old, stored = stored, {}
        for key, name in DENIED:
            known = old.get(key, {}).get(name)
            stored.setdefault(key, {})[name] = (
                known if known and breaks(key, known) else search_for_counterexample(key, name)
            )
        lines = (
            f"{json.dumps(key)}: {{\n"
            + ",\n".join(f" {json.dumps(n)}: {json.dumps(c)}" for n, c in known.items())
            + "\n}"
            for key, known in stored.items()
        )
        COUNTEREXAMPLES.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return stored


def test_every_denied_property_has_a_counterexample_that_breaks_it():
    stored = stored_counterexamples()
    assert [(key, name) for key in stored for name in stored[key]] == DENIED, "CRANFIELD_UPDATE_COUNTEREXAMPLES=1"
    spellings = {name: table["spellings"] for name, (table, *_) in TRAITS.items()}
    assert not [(key, name) for key, name in DENIED if stored[key][name]["spelling"] not in spellings[name]]
    assert not [(key, name) for key, name in DENIED if not breaks(key, stored[key][name])]


BROKEN = {
    "blind_to_query_order": lambda ranking, _k: ranking.expected_start[:-1] * 1.0,
    "blind_to_document_names": lambda ranking, _k: [
        sum(map(ord, "".join(hit.id for hit in ranking.top[q]))) * 1.0 for q in ranking.query_ids
    ],
    "blind_to_a_rescale_of_scores": lambda ranking, _k: [
        sum(hit.score or 0.0 for hit in ranking.top[q]) for q in ranking.query_ids
    ],
}


@pytest.mark.parametrize("key", sorted(set(BROKEN)))
def test_a_broken_measure_is_caught_by_a_property_that_all_of_ours_have(key, monkeypatch):
    from dataclasses import replace

    import numpy as np

    broken = replace(
        CATALOGUE["RR"], name="Broken", kernel=lambda ranking, k: np.array(BROKEN[key](ranking, k), dtype=float)
    )
    monkeypatch.setitem(CATALOGUE, "Broken", broken)
    assert not all(HOLDS[key]("Broken", {"d01": 1, "d02": 2}, docs, ["d03"]) for docs in (["d01", "d02"], ["d02"]))


NOT_PARTED = {
    # diagnostics
    "Judged", "Unjudged", "Tied", "IdealDCG", "NumQ", "NumRet", "NumRel", "NumRelRet", "NumNonRelJudgedRet", "RBPResidual",
    # of the whole list
    "FileCoverage", "ModernFirst", "TopSource", "SourceRR", "Silence", "Forbidden", "ForbiddenRR", "TokensToHit",
    "TextRecall", "TextPrecision", "TextIoU", "Redundancy",
    # without a value where nothing above is known
    "RankOfFirst", "Accuracy",
}  # fmt: skip


WITH_REST = {"Utility"}
"""Measures that count results that are not judged."""


def test_measures_that_are_not_parted_by_document_are_refused_by_name():
    refused = {name: why for name in CATALOGUE if (why := why_not_parted(parse(TRAITS[name][0]["spellings"][0])))}
    assert set(refused) == NOT_PARTED
    assert all(why.startswith(name) for name, why in refused.items())


@settings(max_examples=settings.default.max_examples // 2, deadline=None, database=None)
@given(judged=grades, docs=lists, other=lists)
def test_what_documents_add_makes_up_the_difference_of_every_measure_that_is_parted(judged, docs, other):
    spellings = [each for name in CATALOGUE if name not in NOT_PARTED for each in TRAITS[name][0]["spellings"]]
    for spelling in spellings:
        measure = parse(spelling)
        sides = [
            ranking_of(CATALOGUE[measure.name].needs, json.dumps(vars(Case({"q": judged}, {"q": each}))))
            for each in (docs, other)
        ]
        scored = [compute(measure, side) for side in sides]
        if not all(found[1].all() for found in scored):
            continue  # such a pair is not compared
        (before, rest), (after, other_rest) = (parts_of(measure, side) for side in sides)
        assert rest == other_rest or measure.name in WITH_REST, spelling
        difference = (after.sum() + other_rest.sum()) - (before.sum() + rest.sum())
        assert difference == pytest.approx(scored[1][0][0] - scored[0][0][0], abs=1e-9), spelling
