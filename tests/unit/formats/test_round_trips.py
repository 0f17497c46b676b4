"""Every format of test sets that is written: what it holds comes back, and what it does not hold is said.

Reads the table of formats, so a new row is tested by being there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.by_text import under_texts

from cranfield.base.errors import TestSetError
from cranfield.base.words import count_noun
from cranfield.formats.convert import fitted, write_testset
from cranfield.formats.features import FEATURES, QUIET, is_judged
from cranfield.formats.registry import Format
from cranfield.formats.sniff import FORMATS, read_queries, read_testset
from cranfield.formats.testsets.storage import save_spliced
from cranfield.model import (
    QUERY_CLASSES,
    Anchor,
    Criteria,
    Entity,
    EntityRole,
    Fact,
    File,
    GroupedJudgment,
    Judging,
    JudgingAgreement,
    JudgingGuideline,
    JudgingPool,
    JudgingRater,
    Label,
    Legacy,
    Lines,
    MatchingRules,
    Meta,
    Negative,
    Passage,
    Pattern,
    Predicate,
    Query,
    Rating,
    Source,
    Span,
    Split,
    Target,
    TestSet,
)
from cranfield.model.query_ids import id_of

WRITTEN = [name for name, entry in FORMATS.items() if entry.kind == "testset" and entry.writer]
TEXTS = [name for name, entry in FORMATS.items() if entry.kind == "queries" and entry.writer]
PATHS = st.sampled_from(["src/a.rs", "src/b.py", "docs/é_1.md", "tests/deep/c.go", "d.ts"])
WORDS = st.sampled_from(["task", "A", "Größe", "b-1", "c.d", "hard", "x_y"])
SHA = st.just("sha256:" + "0" * 64)
KINDS = {"patterns", "spans", "entities", "file targets", "predicates"}


SINGLE = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co", "Zs", "Zl", "Zp"]), min_size=1, max_size=5
)
ODD = st.sampled_from(
    [
        "007",
        "1.10",
        "true",
        "null",
        "a,b",
        '"q"',
        "it's",
        "#x",
        "a:b",
        "x::y",
        "[1]",
        "{a}",
        "=1",
        "é",
        "日本",
        "-",
        "~",
    ]
)
PLAIN = st.sampled_from(["q1", "q2", "q3", "7", "url-session", "docs://a/b"])


# Strategies are built once for each format: building and checking them takes longer than drawing from them.
@cache
def matching(pattern: str) -> st.SearchStrategy[str]:
    """Ids or texts that a pattern takes whole: plain, odd, strange in Unicode, of one word and of several."""
    words = PLAIN | ODD | SINGLE
    several = st.lists(words, min_size=2, max_size=3).map(" ".join)
    return (words | several).filter(lambda text: re.fullmatch(pattern, text) is not None)


@cache
def ids(entry: Format) -> st.SearchStrategy[str]:
    return matching(entry.ids)


@cache
def grades(entry: Format) -> st.SearchStrategy[float]:
    low, high = entry.grades
    pools = [st.just(1.0)]
    if "levels" in entry.holds:
        pools.append(st.integers(2, int(min(high, 9))).map(float) if high >= 2 else st.just(1.0))
    if "fractions" in entry.holds:
        pools.append(st.floats(max(0.125, low), min(2.0, high), width=32))
    if "zeros" in entry.holds and low <= 0:
        pools.append(st.just(0.0))
    if "unjudged" in entry.holds and low < 0:
        pools.append(st.just(-1.0))
    return st.one_of(pools).filter(lambda grade: low <= grade <= high)


@cache
def targets(entry: Format) -> st.SearchStrategy[tuple[Target, ...]]:
    """Kind by kind, each expected place once."""
    graded = grades(entry)
    credit = "credit" in entry.holds
    regex = st.sampled_from(["^a$", "b|c", r"\d+", "no", "1.10", "x://y($|/)"])
    kinds: dict[str, Any] = {
        "patterns": st.builds(Pattern, regex, graded)
        | (
            st.builds(Pattern, regex, graded, st.just("every"), st.none() | st.integers(1, 99))
            if credit
            else st.nothing()
        ),
        "spans": st.builds(
            lambda path, start, n, grade: Span(path, start, start + n, grade),
            PATHS,
            st.integers(1, 99),
            st.integers(0, 9),
            graded,
        ),
        "entities": st.builds(
            lambda path, name, grade, lines: Entity(
                f"{path}::{name}", grade, lines if "entity lines" in entry.holds else ()
            ),
            PATHS,
            WORDS,
            graded,
            st.sampled_from([(), ((3, 9),), ((1, 1), (4, 8))]),
        ),
        "file targets": st.builds(File, PATHS, graded),
        "predicates": st.builds(Predicate, st.just("select id from docs"), st.just("corpus"), graded),
    }
    held = [st.lists(kinds[name], max_size=3, unique_by=lambda t: t.label) for name in kinds if name in entry.holds]
    return st.tuples(*held).map(lambda lists: tuple(target for one in lists for target in one))


@cache
def some_targets(entry: Format) -> st.SearchStrategy[tuple[Target, ...]]:
    return targets(entry).filter(bool)


@cache
def query_ids(entry: Format) -> st.SearchStrategy[list[str]]:
    return st.lists(ids(entry), min_size=1, max_size=4, unique=True)


@cache
def four_texts(entry: Format) -> st.SearchStrategy[list[str]]:
    return st.lists(matching(entry.texts), min_size=4, max_size=4, unique=True)


@cache
def judgments(entry: Format) -> st.SearchStrategy[dict[str, float]]:
    return st.dictionaries(ids(entry), grades(entry), min_size=1, max_size=4)


@cache
def kinds_of_truth(entry: Format) -> st.SearchStrategy[str]:
    kinds = [kind for kind in ("grades", "negative") if kind in entry.holds]
    return st.sampled_from([*kinds, "targets"] if entry.holds & KINDS else kinds)


FILES = st.lists(PATHS, min_size=1, max_size=2, unique=True)
LEGACY = st.builds(Legacy, st.just(("old",)), st.sampled_from([(), ("^old",)]))
NEGATIVE = st.just(Negative())
LINES = st.builds(lambda file, start, n: Lines(file, start, start + n), PATHS, st.integers(1, 99), st.integers(0, 9))
FACTS = st.lists(st.builds(Fact, SINGLE, st.lists(LINES, max_size=2).map(tuple)), max_size=2).map(tuple)
JSON = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | ODD | SINGLE, st.lists, max_leaves=4)
LABELS = st.builds(
    Label,
    st.lists(st.builds(EntityRole, PATHS, st.just("primary"), WORDS), max_size=1).map(tuple),
    st.lists(LINES, max_size=2).map(tuple),
    FACTS,
    FACTS,
    ODD | SINGLE,
    ODD,
    st.sampled_from(["", "debug"]),
    st.none() | st.booleans(),
    st.dictionaries(WORDS, JSON, max_size=2),
    st.fixed_dictionaries(
        {},
        optional={
            "confidence": WORDS,
            "validation": st.just({"by": "a"}),
            "schema_version": st.just("1.0.0"),
            "own": JSON,
        },
    ),
).filter(lambda label: label != Label(line_ranges=label.line_ranges))
"""Lines alone may be those of the targets, which are not kept twice."""
BOUNDED = NEGATIVE | st.builds(Negative, st.just(0.5) | st.none(), st.sampled_from(["", "confidence"]))


@st.composite
def held_testset(draw: st.DrawFn, entry: Format) -> TestSet:
    """A test set made of exactly what a format holds."""
    holds = entry.holds
    parts: dict[str, dict[str, Any]] = {
        name: {} for name in ("grades", "targets", "files", "legacy", "ratings", "groups", "labels")
    }
    queries = []
    for query_id, text in zip(draw(query_ids(entry)), draw(four_texts(entry)), strict=False):
        query_id = text if entry.by_text else query_id  # noqa: PLW2901  it goes by its text
        query = Query(query_id, text if "texts" in holds else "", **draw(about(entry)))
        kind = draw(kinds_of_truth(entry))
        if kind == "targets":
            parts["targets"][query_id] = draw(some_targets(entry))
        elif kind == "negative":
            named = "negative" if "classes" in holds else ""  # some tell a negative query by its class
            query = replace(query, negative=draw(BOUNDED if "bounds" in holds else NEGATIVE), query_class=named)
        else:
            draw_judgments(draw, entry, query_id, parts)
        if kind != "negative" and "files" in holds and draw(st.booleans()):
            parts["files"][query_id] = tuple(draw(FILES))
        if "legacy" in holds and draw(st.booleans()):
            parts["legacy"][query_id] = draw(LEGACY)
        if "labels" in holds and draw(st.booleans()):
            parts["labels"][query_id] = draw(LABELS)
        queries.append(query)
    return TestSet(
        draw(ids(entry)) if "name" in holds else "set",
        tuple(queries),
        **parts,  # type: ignore[arg-type]  # each is a mapping of its own field
        **draw(about_set(entry)),
        grouping=(entry.grouping or "subtopic") if parts["groups"] else None,
        consensus="median" if parts["ratings"] and entry.name == "yaml" else "",
    )


def draw_judgments(draw: st.DrawFn, entry: Format, query_id: str, parts: dict[str, dict[str, Any]]) -> None:
    judged = draw(judgments(entry))
    if entry.grouping is not None or ("groups" in entry.holds and draw(st.booleans())):
        kind = entry.grouping or "subtopic"
        said = [GroupedJudgment(doc, "1", grade, "s" if kind == "preference" else "") for doc, grade in judged.items()]
        parts["groups"][query_id] = tuple(sorted(said, key=lambda one: one.doc_id.encode()))
        judged = {one.doc_id: one.value for one in parts["groups"][query_id]}
    elif "ratings" in entry.holds and entry.name == "yaml" and draw(st.booleans()):
        said_by = [Rating(doc, rater, grade) for doc, grade in judged.items() for rater in ("ann", "bob")]
        parts["ratings"][query_id] = (*said_by, Rating(next(iter(judged)), "cy", None))
        parts["ratings"][query_id] = tuple(
            sorted(parts["ratings"][query_id], key=lambda r: list(judged).index(r.doc_id))
        )
        if draw(st.booleans()):  # those by adjudication stand last
            parts["ratings"][query_id] += (Rating(next(iter(judged)), "lead", 1.0, final=True),)
    if "ratings" in entry.holds and entry.name != "yaml":  # each judgment there is a rater's
        parts["ratings"][query_id] = tuple(
            Rating(doc, "ann", grade, **draw(about_rating(entry))) for doc, grade in judged.items()
        )
    else:
        parts["grades"][query_id] = judged


@cache
def about_rating(entry: Format) -> st.SearchStrategy[dict[str, Any]]:
    """What is said of a rating beside its grade."""
    fields: dict[str, st.SearchStrategy[Any]] = {
        "adjudicated": st.booleans(),
        "reasons": st.sampled_from(["", "why not", 'a, "b"']),
        "times": st.none() | st.sampled_from([0, 1_796_000_000_123]),
    }
    names = {"adjudicated": "final", "reasons": "reason", "times": "at"}
    return st.fixed_dictionaries({names[key]: value for key, value in fields.items() if key in entry.holds})


@cache
def about(entry: Format) -> st.SearchStrategy[dict[str, Any]]:
    """What a query says beside its id, text and truth."""
    fields: dict[str, st.SearchStrategy[Any]] = {}
    if "strata" in entry.holds:
        keys = st.sampled_from(sorted(entry.strata)) if entry.strata is not None else WORDS
        fields["strata"] = st.dictionaries(keys, WORDS, max_size=2)
    if "params" in entry.holds:
        fields["params"] = st.dictionaries(
            st.sampled_from(["k", "min_version"]), WORDS | st.integers(0, 9) | st.booleans()
        )
    if "weights" in entry.holds:
        fields["weight"] = st.sampled_from([1.0, 0.5, 90.0])
    if "classes" in entry.holds:
        fields["query_class"] = st.sampled_from(["", *(name for name in QUERY_CLASSES if name != "negative")])
    return st.fixed_dictionaries(fields)


JUDGING = Judging(
    "shop",
    2,
    "median",
    (JudgingRater("ann", "person", 3), JudgingRater("m", "model", 4, {"provider": "stub"})),
    (JudgingGuideline(1, "sha256:1", 2), JudgingGuideline(2, "sha256:2", 1)),
    (JudgingAgreement("alpha-ordinal", 0.5, 0.25, 0.75, 3), JudgingAgreement("cohen", None, None, None, 0, "why")),
    {"pooled": 5, "judged": 3},
    {"expert": 1},
    JudgingPool("budget", 10, 7, {"bm25": "sha256:3"}, "sha256:4", 5),
)


@cache
def about_set(entry: Format) -> st.SearchStrategy[dict[str, Any]]:
    fields: dict[str, st.SearchStrategy[Any]] = {
        "version": WORDS,
        "description": WORDS,
        "sources": st.just((Source("docs", "^docs://"), Source("other", "."))),
        "matching": st.just(MatchingRules(0, 2, ("/build/",), ("src",), "")),
        "databases": st.just({"corpus": "sqlite:corpus.db"}),
        "meta": st.builds(
            Meta,
            WORDS,
            WORDS,
            st.just((0.0, 1.0, 2.5)),
            st.just("2026-11-21"),
            st.integers(1, 400),
            WORDS,
            st.dictionaries(PATHS, SHA, max_size=2),
            st.dictionaries(PATHS, st.builds(Anchor, WORDS, SHA, st.integers(0, 9), st.integers(1, 9)), max_size=2),
            st.dictionaries(WORDS, st.integers(0, 9), max_size=2),
            st.none() | st.just(Split(7, 0.2, ("q1",), by=("class",))),
            WORDS,
            st.lists(WORDS, max_size=2).map(tuple),
            judging=st.none() | st.just(JUDGING),
        ),
    }
    return st.fixed_dictionaries({}, optional={name: value for name, value in fields.items() if name in entry.holds})


def place(factory: pytest.TempPathFactory, entry: Format) -> Path:
    return factory.mktemp("round") / f"set{entry.suffix or '.data'}"


PHASES = (Phase.explicit, Phase.generate, Phase.shrink)  # explaining a failure traces every line, for minutes


@pytest.mark.parametrize("name", WRITTEN)
@settings(
    max_examples=settings().max_examples // 8, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck)
)
@given(data=st.data())
def test_what_a_format_holds_comes_back(
    name: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    entry = FORMATS[name]
    testset = data.draw(held_testset(entry))
    path = place(tmp_path_factory, entry)
    assert write_testset(testset, path, name) == ()
    named = under_texts if entry.by_text else replace
    read = named(read_testset(path, name))
    assert [q.id for q in read.queries] == [q.id for q in testset.queries]
    assert read.grades == testset.grades
    assert read.digest == testset.digest
    assert read.labels == testset.labels
    if "name" in entry.holds:
        assert read.name == testset.name
    if "meta" in entry.holds:
        assert read.meta == testset.meta
    if "version" in entry.holds:
        assert (read.version, read.description) == (testset.version, testset.description)
    if entry.fits.__name__ != "never":
        assert named(read_testset(path)).digest == testset.digest, "read by content"


EVERYTHING = TestSet(
    "everything",
    (
        Query("q1", "one", {"kind": "task"}, {"k": 1}, 2.0, "canonical", need="n", notes="of q1"),
        Query("q2", "two", {"difficulty": "hard"}),
        Query("q3", "three", negative=Negative(0.5, "confidence")),
        Query("q4", "four", exhaustive=True, floors={"P@5": 0.6}),
        Query("q5", "five"),
    ),
    {"q1": {"d1": 2.0, "d2": 0.5, "d3": 0.0, "d4": -1.0, "d5": 1.0}, "q4": {"d1": 1.0}},
    {
        "q2": (
            Pattern("^a$", 1.0),
            Pattern("b", 1.0, "every", 3),
            Span("src/a.rs", 1, 9, 2.0),
            Entity("src/a.py::f", 1.0, ((1, 9), (12, 12))),
            File("src/a.py", 1.0),
            Predicate("select 1", "corpus", 1.0),
            Criteria({"book": "one", "text contains": "a long road"}, 1.0),
            Passage("a long road", "docs/a.md", "10-21", grade=2.0),
        )
    },
    forbidden={"q1": (Criteria({"id": "old"}), Criteria({"tenant": "other"}))},
    version="1",
    description="all of it",
    groups={"q4": (GroupedJudgment("d1", "1", 1.0),)},
    grouping="subtopic",
    files={"q2": ("src/a.rs",)},
    legacy={"q2": Legacy(("old",))},
    sources=(Source("docs", "^docs"),),
    matching=MatchingRules(line_base=0),
    databases={"corpus": "sqlite:corpus.db"},
    ratings={
        "q1": (Rating("d1", "ann", 2.0, reason="as the guideline says", at=0), Rating("d1", "lead", 2.0, final=True))
    },
    consensus="median",
    meta=Meta(review="reviewed", judging=JUDGING),
    labels={"q2": Label(must_mention=(Fact("It is so."),)), "q4": Label(baseline_answerable=False)},
)


def test_the_set_with_everything_has_every_feature() -> None:
    assert [name for name, feature in FEATURES.items() if not feature.count(EVERYTHING)] == []


@pytest.mark.parametrize("name", [name for name in WRITTEN if FORMATS[name].grouping is None])
def test_what_a_format_does_not_hold_is_said(name: str, tmp_path: Path) -> None:
    entry = FORMATS[name]
    fitting, sentences = fitted(EVERYTHING, entry, tmp_path / "x")
    still_there = {feature for feature, row in FEATURES.items() if row.count(fitting)}
    assert still_there - QUIET <= entry.holds
    # What went with its query (a bound with its negative query) is told by the sentence on that query's truth.
    counted = {
        one.removeprefix("not carried over: "): int(found[1])
        for one in sentences
        if (found := re.fullmatch(r"not carried over: (\d+) .*", one))
    }
    said = {row.name for row in FEATURES.values() for n in counted.values() if count_noun(n, row.noun) in counted}
    assert not said & entry.holds
    kinds = {feature.name for feature in FEATURES.values() if feature.is_truth}
    by_lines = {"entities"} if "1 entity written as lines" in sentences else set()
    assert by_lines == ({"entities"} if entry.name == "spans-csv" else set())
    assert (kinds & said) | by_lines == kinds - entry.holds
    lost_queries = set(EVERYTHING.query_ids) - set(fitting.query_ids) - {"q5"}
    assert bool(lost_queries) == any(sentence.startswith("left out:") for sentence in sentences)
    assert all(is_judged(fitting, query) or query.id == "q5" for query in fitting.queries)


SPLICED = [name for name in WRITTEN if FORMATS[name].layout]
"""All that are text."""


LEVELS = ("topics", "query_groups", "queries", "requests", "judgmentRatings")


def records_of(node: Any) -> Iterator[dict[str, Any]]:
    """The queries of a document, in groups or not."""
    below = [node[level] for level in LEVELS if level in node] if isinstance(node, dict) else node
    for entry in below if isinstance(below, list) else ():
        if isinstance(entry, dict) and not entry.keys() & set(LEVELS):
            yield entry
        else:
            yield from records_of(entry)


def written_by_hand(draw: st.DrawFn, path: Path, layout: str) -> None:
    """Write a file again as a person or another program would: other indentation, line ends, keys, comments."""
    text = path.read_text("utf-8")
    if text[:1] in {"{", "["} and layout == "tree":
        document = json.loads(text)
        records = [] if "cranfield_testset" in document else list(records_of(document))
        for place, record in enumerate(records):
            record["notes"] = [place, "é"]
        how: list[Any] = [(None, (",", ":")), (None, None), (1, None), ("\t", None), (4, (",", " : "))]
        indent, separators = draw(st.sampled_from(how))
        is_ascii = draw(st.booleans()) and bool(records)  # what an edit removes does not say how the rest is escaped
        text = json.dumps(document, ensure_ascii=is_ascii, indent=indent, separators=separators) + "\n"
    elif layout == "tree":
        text = "# by hand\n" + text.replace("queries:", "queries:  # all of them", 1) + "# end\n"
    line_ends = ["\n", "\r\n"]
    if draw(st.booleans()):
        text = text.rstrip("\n")
        line_ends = line_ends[: 1 if layout == "columns" else 2]  # one line of two would not say how lines end
    mark = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) if layout != "columns" else b""
    path.write_bytes(mark + text.replace("\n", draw(st.sampled_from(line_ends))).encode())


def edited(draw: st.DrawFn, testset: TestSet, entry: Format) -> TestSet:
    """A query more, at any place; a judgment more, one less, or regraded; other words; other metadata."""
    target = draw(st.sampled_from(testset.queries))
    edits = [with_query, with_judgment, without_judgment, regraded]
    edits += [with_words] if "texts" in entry.holds or "strata" in entry.holds else []
    edits += [with_history] if "meta" in entry.holds else []
    changed = draw(st.sampled_from(edits))(draw, testset, entry, target)
    return testset if changed is None else changed


BY_QUERY = ("grades", "targets", "groups", "ratings", "files", "legacy", "labels")


def with_query(draw: st.DrawFn, testset: TestSet, entry: Format, like: Query) -> TestSet:
    query = replace(like, id="new", text="new one" if like.text else "")
    query = replace(query, id=id_of(query) if testset.made_ids else "new")
    more = {}
    for name in BY_QUERY:
        values = getattr(testset, name)
        if like.id in values:
            more[name] = {**values, query.id: values[like.id]}
    place = draw(st.integers(0, len(testset.queries)))
    queries = (*testset.queries[:place], query, *testset.queries[place:])
    return replace(testset, queries=queries, **more)


def with_judgment(draw: st.DrawFn, testset: TestSet, entry: Format, query: Query) -> TestSet | None:
    if query.id in testset.targets:
        have = {target.label for target in testset.targets[query.id]}
        more = tuple(target for target in draw(targets(entry)) if target.label not in have)
        return replace(testset, targets={**testset.targets, query.id: (*testset.targets[query.id], *more)})
    if query.id in testset.grades and query.id not in testset.groups and query.id not in testset.ratings:
        more_grades = draw(st.dictionaries(ids(entry), grades(entry), max_size=3))
        return replace(testset, grades={**testset.grades, query.id: more_grades | testset.grades[query.id]})
    return None


def without_judgment(draw: st.DrawFn, testset: TestSet, entry: Format, query: Query) -> TestSet | None:
    if len(testset.targets.get(query.id, ())) > 1:
        gone = draw(st.sampled_from(testset.targets[query.id]))
        left = tuple(target for target in testset.targets[query.id] if target is not gone)
        return replace(testset, targets={**testset.targets, query.id: left})
    judged = testset.grades.get(query.id, {})
    if len(judged) > 1 and query.id not in testset.groups and query.id not in testset.ratings:
        lost = draw(st.sampled_from(sorted(judged)))
        return replace(testset, grades={**testset.grades, query.id: {d: g for d, g in judged.items() if d != lost}})
    return None


def regraded(draw: st.DrawFn, testset: TestSet, entry: Format, query: Query) -> TestSet | None:
    grade = draw(grades(entry))
    if query.id in testset.targets:
        place = draw(st.integers(0, len(testset.targets[query.id]) - 1))
        found = list(testset.targets[query.id])
        found[place] = replace(found[place], grade=grade)
        return replace(testset, targets={**testset.targets, query.id: tuple(found)})
    judged = testset.grades.get(query.id, {})
    if judged and query.id not in testset.groups and query.id not in testset.ratings:
        doc_id = draw(st.sampled_from(sorted(judged)))
        return replace(testset, grades={**testset.grades, query.id: {**judged, doc_id: grade}})
    return None


def with_words(draw: st.DrawFn, testset: TestSet, entry: Format, query: Query) -> TestSet | None:
    """Another text, or other strata; not what the id is made of."""
    changed = replace(query, **draw(about(entry)))
    if changed.query_class != query.query_class and "negative" in {changed.query_class, query.query_class}:
        changed = replace(changed, query_class=query.query_class)
    canonical_query_id = not testset.made_ids and not entry.by_text and query.id != id_of(query)
    if not canonical_query_id:
        changed = replace(changed, params=query.params)
    if (
        "texts" in entry.holds
        and query.text
        and canonical_query_id
        and entry.layout != "columns"
        and draw(st.booleans())
    ):
        changed = replace(changed, text="another text")
    return replace(testset, queries=tuple(changed if q.id == query.id else q for q in testset.queries))


def with_history(draw: st.DrawFn, testset: TestSet, entry: Format, query: Query) -> TestSet:
    return replace(testset, meta=replace(testset.meta, made="2026-11-22", history=(*testset.meta.history, "changed")))


@pytest.mark.parametrize("name", SPLICED)
@settings(
    max_examples=settings().max_examples // 5,
    deadline=None,
    phases=PHASES,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_an_edit_and_its_undo_leave_every_byte(
    name: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    entry = FORMATS[name]
    path = place(tmp_path_factory, entry)
    write_testset(data.draw(held_testset(entry)), path, name)
    if not entry.is_folder:
        written_by_hand(data.draw, path, entry.layout)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    before, testset = [file.read_bytes() for file in files], read_testset(path, name)
    changed = edited(data.draw, testset, entry)
    assert save_spliced(changed, path, path, entry) is not None
    assert read_testset(path, name).digest == changed.digest
    assert save_spliced(testset, path, path, entry) is not None
    assert [file.read_bytes() for file in files] == before


def test_every_text_format_is_spliced() -> None:
    assert set(WRITTEN) - set(SPLICED) == {"parquet-qrels"}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_without_any_truth_is_not_written(name: str, tmp_path: Path) -> None:
    nothing = TestSet("n", (Query("q", "text"),))
    with pytest.raises(TestSetError, match="not written"):
        write_testset(nothing, tmp_path / "x", name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=min(12, settings().max_examples // 5), deadline=None, phases=PHASES)
@given(data=st.data())
def test_texts_come_back(name: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    entry = FORMATS[name]
    texts = data.draw(st.dictionaries(ids(entry), matching(entry.texts), min_size=1, max_size=4))
    testset = TestSet("set", tuple(Query(query_id, text) for query_id, text in texts.items()))
    path = tmp_path_factory.getbasetemp() / "queries"
    write = entry.write
    assert write is not None
    write(testset, path)
    assert read_queries(path, name).queries == testset.queries
