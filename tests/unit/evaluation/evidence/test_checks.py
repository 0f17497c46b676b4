"""Every evidence check on broken and on healthy comparisons; how a check is changed by name."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any
from urllib.parse import quote

import pandas as pd
import pytest

from cranfield import (
    Answer,
    Evaluation,
    Hit,
    Limits,
    Outcome,
    Query,
    Run,
    Span,
    TestSet,
    compare,
    compare_many,
    evaluate,
)
from cranfield.base.errors import UsageError
from cranfield.evaluation.evidence.inspection import CHECKS, inspect_systems, parse_settings
from cranfield.evaluation.evidence.values import Finding, caveat_sentences, void_sentences
from cranfield.evaluation.options.blocks import Consequence, Setting
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.model import CallLog, Entity, Negative, NoteKind, Pattern
from cranfield.model.note import Note

Lists = Mapping[str, Sequence[str]]

STYLES: Mapping[str, Callable[[int], str]] = {
    "numbers": lambda n: str(1000 + n),
    "letters and numbers": lambda n: f"d{n}",
    "padded": lambda n: f"doc-{n:05d}",
    "newspapers": lambda n: f"{('FT911', 'LA0401', 'FBIS3')[n % 3]}-{n}",
    "paths": lambda n: f"src/{('core', 'cli', 'web')[n % 3]}/module_{n}.py",
    "markdown files": lambda n: f"docs/{('guide', 'reference')[n % 2]}/Page-{n}.md",
    "schemes": lambda n: f"{('apple-docs', 'swift-evolution')[n % 2]}://swift/item{n}",
    "urls": lambda n: f"https://example.org/{('blog', 'help')[n % 2]}/{n}?lang=en",
    "symbols": lambda n: f"pkg.mod{n % 7}.Class{n}.method",
    "mixed case": lambda n: f"Topic/{'ABCDEFGHIJ'[n % 10]}{n}/Overview",
    "hashes": lambda n: f"{n * 2654435761 % 2**32:08x}",
    "accents": lambda n: f"café/{n}/menü",
}
"""Name of a style to the id of document `n`."""


def corpus(style: str, size: int = 300) -> list[str]:
    """The ids of all documents."""
    return [STYLES[style](n) for n in range(size)]


def judged_queries(ids: Sequence[str], *, n: int = 40, seed: int = 1, graded: bool = False) -> TestSet:
    """Queries with three relevant documents each; with judged documents that are not relevant where graded."""
    draw = random.Random(seed)
    grades: dict[str, dict[str, float]] = {}
    for number in range(n):
        found = draw.sample(ids, 8)
        grades[f"q{number}"] = {doc_id: 1 + draw.randrange(2) for doc_id in found[:3]}
        if graded:
            grades[f"q{number}"] |= dict.fromkeys(found[3:], 0)
    return TestSet("set", tuple(Query(query_id, f"text of {query_id}") for query_id in grades), grades)


def lists_of(
    testset: TestSet, ids: Sequence[str], *, skill: float = 0.7, k: int = 10, seed: int = 2
) -> dict[str, list[str]]:
    """What a system returns that finds each relevant document with a probability, more often near the top."""
    draw = random.Random(seed)
    lists = {}
    for query_id, grades in testset.grades.items():
        relevant = [doc_id for doc_id, grade in grades.items() if grade > 0 and draw.random() < skill]
        others = [doc_id for doc_id in draw.sample(list(ids), k + 8) if doc_id not in grades or draw.random() < 0.3]
        rows = [(draw.random() ** 2, doc_id) for doc_id in dict.fromkeys(relevant)]
        rows += [(draw.random(), doc_id) for doc_id in dict.fromkeys(others) if doc_id not in relevant]
        lists[query_id] = [doc_id for _, doc_id in sorted(rows)][:k]
    return lists


def run_of(lists: Mapping[str, Sequence[Hit | str]], name: str = "new", **more: Any) -> Run:
    """A collected run."""
    answers = {
        query_id: Answer(
            Outcome.ANSWERED if hits else Outcome.EMPTY,
            tuple(Hit(hit) if isinstance(hit, str) else hit for hit in hits),
        )
        for query_id, hits in lists.items()
    }
    return Run(name, answers, **more)


def scored(lists: Lists) -> dict[str, dict[str, float]]:
    """The same as a run file: falling scores, no duplicates."""
    return {
        query_id: {doc_id: float(len(hits) - rank) for rank, doc_id in enumerate(hits)}
        for query_id, hits in lists.items()
    }


def of(
    testset: TestSet,
    run: Run | Mapping[str, Sequence[str]] | Mapping[str, Mapping[str, float]],
    name: str | None = None,
    **more: Any,
) -> Evaluation:
    """The evaluation of a run."""
    name = name or (run.name if isinstance(run, Run) else "new")
    return evaluate(testset, run, measures=["nDCG@10", "AP"], name=name, **more)


def spans(n: int = 30) -> tuple[TestSet, dict[str, list[Hit]]]:
    """A test set of places in files, and the results of a system that finds most of them."""
    draw = random.Random(3)
    targets, lists = {}, {}
    for number in range(n):
        path, start = f"src/part{number % 9}/file_{number}.rs", draw.randrange(1, 400)
        targets[f"q{number}"] = (Span(path, start, start + 20, 2),)
        others = [
            Hit(f"src/part{draw.randrange(9)}/file_{draw.randrange(n)}.rs", span=f"{at}-{at + 39}")
            for at in draw.sample(range(1, 400), 6)
        ]
        right = [Hit(path, span=f"{start + 5}-{start + 44}")] if draw.random() < 0.8 else []
        lists[f"q{number}"] = [*others[:2], *right, *others[2:]]
    queries = tuple(Query(query_id, query_id) for query_id in targets)
    return TestSet("spans", queries, {}, targets=targets), lists


def patterns(n: int = 30) -> tuple[TestSet, dict[str, list[str]]]:
    """A test set of patterns on ids, and the results of a system that finds most of them."""
    draw = random.Random(4)
    names = [f"{('apple-docs', 'swift-evolution', 'hig')[number % 3]}://swift/item{number}" for number in range(n * 4)]
    targets = {f"q{number}": (Pattern(f"^{names[number]}($|/)"),) for number in range(n)}
    lists = {}
    for number in range(n):
        others = draw.sample(names[n:], 7)
        lists[f"q{number}"] = [*others[:1], names[number], *others[1:]] if draw.random() < 0.8 else others
    return TestSet("patterns", tuple(Query(query_id, query_id) for query_id in targets), {}, targets=targets), lists


def entities(n: int = 30) -> tuple[TestSet, dict[str, list[str]]]:
    """A test set of symbols of source files, and the results of a system that finds most of them, in chunks."""
    draw = random.Random(5)
    names = [f"src/pkg/mod{number % 5}.py::Class{number}.run" for number in range(n * 3)]
    targets = {f"q{number}": (Entity(names[number]),) for number in range(n)}
    lists = {}
    for number in range(n):
        others = draw.sample(names[n:], 7)
        lists[f"q{number}"] = [*others[:1], names[number], *others[1:]] if draw.random() < 0.8 else others
    return TestSet("entities", tuple(Query(query_id, query_id) for query_id in targets), {}, targets=targets), lists


def with_negatives(testset: TestSet, n: int = 15) -> TestSet:
    """The same queries, and others for which nothing should be found."""
    more = tuple(Query(f"none{number}", "nothing", negative=Negative()) for number in range(n))
    return TestSet(testset.name, (*testset.queries, *more), testset.grades)


def _healthy() -> Iterator[tuple[str, list[Evaluation]]]:
    """Comparisons that nothing is wrong with."""
    for number, style in enumerate(STYLES):
        ids = corpus(style)
        testset = judged_queries(ids, seed=number, graded=number % 2 == 1)
        skills = ((0.5, 0.6), (0.2, 0.9), (0.7, 0.7))[number % 3]
        old, new = (
            lists_of(testset, ids, skill=skill, seed=seed) for seed, skill in enumerate(skills, start=10 * number)
        )
        if number % 2:
            yield f"run files, {style}", [of(testset, scored(old), "old"), of(testset, scored(new))]
        else:
            yield f"collected, {style}", [of(testset, run_of(old, "old")), of(testset, run_of(new))]
    for make in (spans, patterns, entities):
        testset, lists = make()
        reverse = {query_id: hits[::-1] for query_id, hits in lists.items()}
        yield make.__name__, [of(testset, run_of(lists, "old")), of(testset, run_of(reverse))]
    ids = corpus("paths")
    testset = judged_queries(ids)
    three = [
        of(testset, run_of(lists_of(testset, ids, seed=seed, skill=0.3 + seed / 10), f"s{seed}")) for seed in range(3)
    ]
    yield "three systems", three
    few = judged_queries(ids, n=3)
    yield "three queries", [of(few, run_of(lists_of(few, ids, seed=seed), f"s{seed}")) for seed in range(2)]
    yield (
        "one result a query",
        [of(testset, run_of(lists_of(testset, ids, k=1, seed=seed), f"s{seed}")) for seed in (5, 6)],
    )
    negative = with_negatives(testset)
    silent = {**lists_of(testset, ids), **{f"none{number}": [] for number in range(15)}}
    talking = {**lists_of(testset, ids, seed=8), **{f"none{number}": ids[number : number + 3] for number in range(15)}}
    yield "queries without an answer", [of(negative, run_of(silent, "old")), of(negative, run_of(talking))]
    partly = {
        query_id: hits if number % 5 else [] for number, (query_id, hits) in enumerate(lists_of(testset, ids).items())
    }
    yield (
        "a fifth of the lists empty",
        [of(testset, run_of(lists_of(testset, ids, seed=9), "old")), of(testset, run_of(partly))],
    )
    chunks = {
        query_id: [Hit(doc_id) for doc_id in hits[:8]] + [Hit(hits[0])]
        for query_id, hits in lists_of(testset, ids).items()
    }
    yield "some duplicates", [of(testset, run_of(lists_of(testset, ids, seed=3), "old")), of(testset, run_of(chunks))]


@cache
def healthy() -> dict[str, list[Evaluation]]:
    return dict(_healthy())


def changed(
    change: Callable[[str], str], style: str, *, every: int = 1, name: str = "new"
) -> Callable[[], list[Evaluation]]:
    """A system whose ids are changed, in every list or in some, next to a healthy one."""

    def build() -> list[Evaluation]:
        ids = corpus(style)
        testset = judged_queries(ids)
        lists = lists_of(testset, ids, seed=4)
        broken = {
            query_id: [change(doc_id) for doc_id in hits] if number % every == 0 else hits
            for number, (query_id, hits) in enumerate(lists_of(testset, ids).items())
        }
        return [of(testset, run_of(lists, "old")), of(testset, run_of(broken, name))]

    return build


def relisted(
    change: Callable[[int, list[str]], Sequence[str | Hit]],
    style: str = "paths",
    *,
    file: bool = False,
    k: int = 10,
    **more: Any,
) -> Callable[[], list[Evaluation]]:
    """A system whose lists are changed by their position, next to a healthy one."""

    def build() -> list[Evaluation]:
        ids = corpus(style)
        testset = judged_queries(ids, graded=True)
        broken = {
            query_id: change(number, hits)
            for number, (query_id, hits) in enumerate(lists_of(testset, ids, k=k).items())
        }
        healthy_lists = lists_of(testset, ids, seed=4, k=k)
        if file:
            kept = {query_id: hits for query_id, hits in broken.items() if hits}
            return [of(testset, scored(healthy_lists), "old"), of(testset, scored(kept))]
        return [of(testset, run_of(healthy_lists, "old")), of(testset, run_of(broken, **more))]

    return build


def renamed(change: Callable[[str], str], n: int, *, kind: str) -> Callable[[], list[Evaluation]]:
    """A system whose last `n` queries have ids in another form, next to a healthy one; the test set has `01`, `é` and the like."""

    def build() -> list[Evaluation]:
        ids = corpus("paths")
        plain = judged_queries(ids)
        names = {query_id: f"Größe-{int(query_id[1:]):03d}" for query_id in plain.grades}
        grades = {names[query_id]: judged for query_id, judged in plain.grades.items()}
        testset = TestSet("set", tuple(Query(query_id, f"text of {query_id}") for query_id in grades), grades)
        lists = {names[query_id]: hits for query_id, hits in lists_of(plain, ids).items()}
        last = set(list(lists)[-n:])
        broken = {change(query_id) if query_id in last else query_id: hits for query_id, hits in lists.items()}
        made = {"run": run_of, "scores": scored, "frame": frame_of}[kind](broken)
        return [of(testset, run_of(lists, "old")), of(testset, made)]

    return build


def frame_of(lists: Lists) -> Any:
    """The same as a data frame."""
    rows = [(query_id, doc_id, score) for query_id, scores in scored(lists).items() for doc_id, score in scores.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])


def with_scores(score: Callable[[int], float], *, style: str = "paths", n: int = 40) -> Callable[[], list[Evaluation]]:
    """A run file whose scores are a function of the rank."""

    def build() -> list[Evaluation]:
        ids = corpus(style)
        testset = judged_queries(ids, n=n)
        lists = lists_of(testset, ids)
        broken = {
            query_id: {doc_id: score(rank) for rank, doc_id in enumerate(hits)} for query_id, hits in lists.items()
        }
        return [of(testset, scored(lists_of(testset, ids, seed=4)), "old"), of(testset, broken)]

    return build


def with_spans(span: Callable[[Hit], str | None]) -> Callable[[], list[Evaluation]]:
    """Places in files with another span."""

    def build() -> list[Evaluation]:
        testset, lists = spans()
        broken = {query_id: [Hit(hit.id, span=span(hit)) for hit in hits] for query_id, hits in lists.items()}
        return [of(testset, run_of(lists, "old")), of(testset, run_of(broken))]

    return build


def on_patterns(change: Callable[[str], str | None]) -> Callable[[], list[Evaluation]]:
    """A system on patterns whose ids are changed, or left out."""

    def build() -> list[Evaluation]:
        testset, lists = patterns()
        broken = {
            query_id: [new for hit in hits if (new := change(hit)) is not None] for query_id, hits in lists.items()
        }
        return [of(testset, run_of(lists, "old")), of(testset, run_of(broken))]

    return build


def without_family(family: str, style: str) -> Callable[[], list[Evaluation]]:
    """Two systems that never return one family of ids, which some queries expect alone."""

    def build() -> list[Evaluation]:
        ids = corpus(style)
        lost = [doc_id for doc_id in ids if doc_id.startswith(family)]
        kept = [doc_id for doc_id in ids if not doc_id.startswith(family)]
        testset = judged_queries(kept, n=30)
        lists = [lists_of(testset, kept, seed=seed) for seed in (2, 3)]
        more = {f"lost{number}": {lost[number]: 1.0} for number in range(8)}
        testset = TestSet("set", (*testset.queries, *map(Query, more)), {**testset.grades, **more})
        return [
            of(
                testset,
                run_of({**each, **{query_id: kept[:10][number:] for number, query_id in enumerate(more)}}, name),
            )
            for each, name in zip(lists, ("old", "new"), strict=True)
        ]

    return build


def among_queries(style: str) -> Callable[[], list[Evaluation]]:
    """A system over a corpus that holds the queries: each gets itself first."""

    def build() -> list[Evaluation]:
        ids = corpus(style)
        testset = judged_queries(ids)
        old, new = lists_of(testset, ids, seed=4), lists_of(testset, ids)
        itself = {query_id: [query_id, *hits] for query_id, hits in new.items()}
        return [of(testset, run_of(old, "old")), of(testset, run_of(itself))]

    return build


def failing(outcome: Outcome, share: float) -> Callable[[], list[Evaluation]]:
    """A system that fails on a share of the queries."""

    def build() -> list[Evaluation]:
        ids = corpus("paths")
        testset = judged_queries(ids)
        run = run_of(lists_of(testset, ids))
        answers = {
            query_id: Answer(outcome, reason="it failed") if number < share * len(run.answers) else answer
            for number, (query_id, answer) in enumerate(run.answers.items())
        }
        return [of(testset, run_of(lists_of(testset, ids, seed=4), "old")), of(testset, replace(run, answers=answers))]

    return build


def logged(log: CallLog, n: int) -> Callable[[], list[Evaluation]]:
    """A system with a log for the first answers."""

    def build() -> list[Evaluation]:
        ids = corpus("paths")
        testset = judged_queries(ids)
        run = replace(run_of(lists_of(testset, ids)), logs=dict.fromkeys(testset.query_ids[:n], log))
        return [of(testset, run_of(lists_of(testset, ids, seed=4), "old")), of(testset, run)]

    return build


def ruled(rule: str, fields: Mapping[str, object], n: int) -> Callable[[], list[Evaluation]]:
    """A system whose config declares a rule that the first answers break."""

    def build() -> list[Evaluation]:
        ids = corpus("paths")
        testset = judged_queries(ids)
        run = run_of(lists_of(testset, ids))
        good = {"mode": "semantic", "confidence": 0.9}
        answers = {
            query_id: replace(answer, fields=fields if number < n else good)
            for number, (query_id, answer) in enumerate(run.answers.items())
        }
        run = replace(run, answers=answers, config={"preflight": [{"every_answer": rule}]})
        return [of(testset, run_of(lists_of(testset, ids, seed=4), "old")), of(testset, run)]

    return build


def twins(n: int, style: str, change: Callable[[float], float]) -> Callable[[], list[Evaluation]]:
    """Two systems with one list and other scores."""

    def build() -> list[Evaluation]:
        ids = corpus(style)
        testset = judged_queries(ids, n=n)
        lists = scored(lists_of(testset, ids))
        other = {query_id: {doc_id: change(score) for doc_id, score in row.items()} for query_id, row in lists.items()}
        return [of(testset, lists, "old"), of(testset, other)]

    return build


def pooled(style: str, kept: float) -> Callable[[], list[Evaluation]]:
    """Judgments made of the results of the old system alone."""

    def build() -> list[Evaluation]:
        ids = corpus(style, 2000)
        testset = judged_queries(ids)
        old = lists_of(testset, ids, seed=4)
        new = lists_of(testset, ids)
        draw = random.Random(7)
        grades = {
            query_id: {
                **dict.fromkeys((doc_id for doc_id in old[query_id] if draw.random() < kept), 0),
                **testset.grades[query_id],
            }
            for query_id in testset.query_ids
        }
        judged = TestSet("set", testset.queries, grades)
        return [of(judged, run_of(old, "old")), of(judged, run_of(new))]

    return build


def twice(names: Sequence[str], style: str) -> Callable[[], list[Evaluation]]:
    """One run under several names."""

    def build() -> list[Evaluation]:
        ids = corpus(style)
        testset = judged_queries(ids)
        return [of(testset, run_of(lists_of(testset, ids)), name) for name in names]

    return build


def unpaired(n: int, where: str) -> Callable[[], list[Evaluation]]:
    """A run file that leaves out queries, under a convention that leaves them out of the mean."""

    def build() -> list[Evaluation]:
        ids = corpus("paths")
        testset = judged_queries(ids)
        lists = scored(lists_of(testset, ids))
        left = list(lists)[:n] if where == "head" else list(lists)[-n:] if where == "tail" else list(lists)[::3][:n]
        short = {query_id: row for query_id, row in lists.items() if query_id not in left}
        return [
            of(testset, scored(lists_of(testset, ids, seed=4)), "old", missing="skip"),
            of(testset, short, missing="skip"),
        ]

    return build


def left_out(n: int, kind: NoteKind = NoteKind.INTACT) -> Callable[[], list[Evaluation]]:
    """A test set without some of its queries, or with them, whose places have changed."""

    def build() -> list[Evaluation]:
        ids = corpus("paths")
        testset = judged_queries(ids)
        note = Note(kind, f"{n} queries have changed places", tuple(f"gone{number}" for number in range(n)), 40 + n)
        testset = replace(testset, notes=(note,))
        return [of(testset, run_of(lists_of(testset, ids, seed=seed), name)) for seed, name in ((4, "old"), (5, "new"))]

    return build


def rebuilt(style: str) -> Callable[[], list[Evaluation]]:
    """A system whose index was built while it was asked."""

    def build() -> list[Evaluation]:
        ids = corpus(style)
        testset = judged_queries(ids)
        before = of(testset, run_of(lists_of(testset, ids, seed=4), "old"))
        return [before, of(testset, replace(run_of(lists_of(testset, ids)), changed=True))]

    return build


def half_judged(n: int, where: str) -> Callable[[], list[Evaluation]]:
    """Queries without a judgment, answered as the others are."""

    def build() -> list[Evaluation]:
        ids = corpus("paths")
        testset = judged_queries(ids)
        lists = [lists_of(testset, ids, seed=seed) for seed in (4, 2)]
        names = list(testset.grades)
        left = {"head": names[:n], "tail": names[-n:], "spread": names[::3][:n]}[where]
        part = replace(testset, grades={key: grades for key, grades in testset.grades.items() if key not in left})
        return [of(part, run_of(found, name)) for found, name in zip(lists, ("old", "new"), strict=True)]

    return build


def only_pooled(n: int) -> Callable[[], list[Evaluation]]:
    """A starter test set, whose results all have the grade -1."""

    def build() -> list[Evaluation]:
        ids = corpus("paths")
        testset = judged_queries(ids, n=n)
        lists = lists_of(testset, ids)
        starter = replace(testset, grades={key: dict.fromkeys(found, -1) for key, found in lists.items()})
        return [of(starter, run_of(lists, name)) for name in ("old", "new")]

    return build


def misplaced(n: int, step: int) -> list[Evaluation]:
    """A system whose answers are each written to the next query, or to the one before."""
    ids = corpus("paths")
    testset = judged_queries(ids, n=n)
    lists = lists_of(testset, ids)
    found = list(lists.values())
    broken = dict(zip(lists, found[step:] + found[:step], strict=True))
    return [of(testset, run_of(lists_of(testset, ids, seed=4), "old")), of(testset, run_of(broken))]


APPLE = "apple-docs"


def cut_at(depth: int, primary: str) -> Callable[[], list[Evaluation]]:
    """Two runs with 30 results a query, of which `depth` are kept."""

    def made() -> list[Evaluation]:
        testset = TestSet("deep", tuple(Query(f"q{n}") for n in range(12)), {f"q{n}": {"d3": 1} for n in range(12)})
        runs = ({f"q{n}": [f"d{r + shift}" for r in range(30)] for n in range(12)} for shift in (0, 1))
        return [evaluate(testset, run, measures=[primary], depth=depth, name=f"s{i}") for i, run in enumerate(runs)]

    return made


def sparsely_judged(n_systems: int) -> Callable[[], list[Evaluation]]:
    """Systems with at most 3 judged results of 10; of two, the comparison says what judgments can change."""

    def build() -> list[Evaluation]:
        ids = corpus("paths")
        testset = judged_queries(ids)
        return [of(testset, run_of(lists_of(testset, ids, seed=seed), f"s{seed}")) for seed in range(n_systems)]

    return build


BROKEN: Mapping[str, Sequence[Callable[[], list[Evaluation]]]] = {
    "kept-answers": [logged(CallLog(1.0, cached=True), n) for n in (1, 5, 40)],
    "resumed-answers": [
        logged(CallLog(1.0, age_s=age_s, at="2026-11-21T20:51:00Z"), n)
        for age_s, n in ((3700, 1), (86_400, 5), (1e6, 40))
    ],
    "changed-meanwhile": [rebuilt(style) for style in ("paths", "hashes", "urls")],
    "query-form": [
        renamed(lambda query_id: query_id.replace("-0", "-"), 30, kind="run"),
        renamed(partial(unicodedata.normalize, "NFD"), 8, kind="scores"),
        renamed(lambda query_id: f"{query_id} ", 3, kind="frame"),
        renamed(str.casefold, 1, kind="scores"),
        renamed(lambda query_id: f"topic:{query_id}", 12, kind="run"),
    ],
    "answer-rules": [
        ruled("mode = semantic", {"mode": "text", "confidence": 0.9}, 1),
        ruled("confidence >= 0.5", {"mode": "semantic", "confidence": 0.1}, 9),
        ruled("mode = semantic", {"mode": "keyword", "confidence": 0.9}, 40),
    ],
    "failed-queries": [failing(Outcome.TIMEOUT, 0.2), failing(Outcome.ERROR, 0.5), failing(Outcome.UNPARSABLE, 1)],
    "judged-share": [
        relisted(lambda _, hits: hits),
        relisted(lambda _, hits: [f"x{hit}" for hit in hits[1:]] + hits[:1]),
        relisted(lambda number, hits: hits if number % 2 else [f"x{hit}" for hit in hits]),
    ],
    "unjudged-results": [sparsely_judged(1), sparsely_judged(3), sparsely_judged(5)],
    "never-judged": [half_judged(5, "head"), half_judged(12, "spread"), half_judged(35, "tail")],
    "nothing-judged": [only_pooled(n) for n in (1, 6, 40)],
    "unpaired-queries": [unpaired(5, "head"), unpaired(10, "tail"), unpaired(12, "spread")],
    "empty-answers": [
        relisted(lambda _, __: []),
        relisted(lambda number, hits: hits if number == 7 else []),
        failing(Outcome.NONZERO_EXIT, 0.95),
    ],
    "nothing-matched": [
        changed(str.upper, "paths"),
        changed(lambda doc_id: f"other-corpus-{doc_id}", "numbers"),
        changed(lambda _: APPLE, "schemes"),
        on_patterns(lambda hit: hit.partition("://")[0]),
    ],
    "results-without-lines": [
        with_spans(lambda hit: f"file:{hit.span}"),
        with_spans(lambda _: None),
        with_spans(lambda hit: f"lines {hit.span}"),
    ],
    "one-id": [
        relisted(lambda _, hits: [APPLE] * len(hits)),
        relisted(lambda number, hits: [hits[0], *["index.html"] * 6]),
        on_patterns(lambda hit: "://" if hit.startswith(("apple", "swift")) else hit),
        relisted(lambda _, hits: ["None"] * 8 + hits[:2]),
    ],
    "self-retrieval": [among_queries(style) for style in ("numbers", "paths", "hashes")],
    "same-list": [
        relisted(lambda _, __: corpus("paths")[:10]),
        relisted(lambda _, __: corpus("paths")[5:8], file=True),
        relisted(lambda number, hits: hits if number == 3 else corpus("paths")[50:60]),
    ],
    "shifted-answers": [partial(misplaced, n, step) for n, step in ((12, 1), (20, -1), (80, 1))],
    "tied-scores": [
        with_scores(lambda _: 1.0),
        with_scores(lambda _: 0.0, style="schemes"),
        with_scores(lambda _: -3.5, n=12),
    ],
    "nothing-relevant": [
        lambda: never_relevant(6),
        lambda: never_relevant(15),
        lambda: never_relevant(40),
    ],
    "id-form": [
        changed(str.upper, "schemes"),
        changed(lambda doc_id: f"/opt/site/project/{doc_id}", "paths"),
        changed(lambda doc_id: doc_id.replace("/", "\\"), "paths"),
        changed(lambda doc_id: doc_id.replace("doc-", "doc-00"), "padded"),
        changed(lambda doc_id: f"{doc_id}.md", "letters and numbers"),
        changed(lambda doc_id: doc_id.removesuffix(".md"), "markdown files"),
        changed(lambda doc_id: doc_id.replace("https://", "http://www."), "urls"),
        changed(quote, "accents"),
        changed(lambda doc_id: f" {doc_id} ", "newspapers"),
        changed(lambda doc_id: f"{doc_id}#chunk-3", "symbols"),
        changed(str.lower, "mixed case", every=2),
        on_patterns(str.upper),
    ],
    "repeated-list": [
        relisted(lambda number, hits: hits if number % 2 else corpus("paths")[:10]),
        relisted(lambda number, hits: hits if number < 20 else corpus("paths")[5:8], file=True),
        relisted(lambda number, hits: hits if number % 3 == 0 else corpus("urls")[:4], "urls"),
    ],
    "few-ids": [
        relisted(lambda number, hits: [("a", "b", "c", "d")[(number + place) % 4] for place in range(len(hits))]),
        relisted(
            lambda number, hits: (
                [hits[0]] + [f"s{place % 3}" for place in range(9)]
                if number == 0
                else [f"s{place % 3}" for place in range(9)]
            )
        ),
        on_patterns(lambda hit: hit.partition("://")[0]),
    ],
    "duplicates": [
        relisted(lambda _, hits: [hit for hit in hits[:5] for _ in (0, 1)]),
        relisted(lambda number, hits: hits if number % 2 else [hit for hit in hits[:3] for _ in range(4)]),
        relisted(lambda _, hits: [*hits[:4], hits[0], hits[1]]),
    ],
    "missing-queries": [
        relisted(lambda number, hits: hits if number < 30 else [], file=True),
        relisted(lambda number, hits: hits if number % 4 else [], file=True),
        relisted(lambda number, hits: hits if number > 10 else [], file=True),
    ],
    "reversed-order": [
        with_scores(float, n=150),
        with_scores(lambda rank: rank / 7, style="urls", n=200),
        with_scores(lambda rank: 1 - 1 / (1 + rank), style="numbers", n=250),
    ],
    "empty-on-one-side": [
        relisted(lambda number, hits: hits if number % 2 else []),
        relisted(lambda number, hits: hits if number < 25 else [], "urls"),
        relisted(lambda number, hits: hits if number % 3 else [], "numbers"),
    ],
    "cut-short": [cut_at(10, "R@20"), cut_at(5, "nDCG@10"), cut_at(29, "P@30")],
    "short-lists": [
        relisted(lambda _, hits: hits[:3]),
        relisted(lambda _, hits: hits[:1], "urls"),
        relisted(lambda number, hits: hits[: 1 + number % 3], file=True),
    ],
    "missing-family": [
        without_family("src/web/", "paths"),
        without_family("swift-evolution://", "schemes"),
        without_family("FBIS3-", "newspapers"),
        without_family("docs/reference/", "markdown files"),
    ],
    "same-results": [
        twins(40, "paths", lambda score: 2 * score),
        twins(12, "urls", lambda score: score + 1),
        twins(100, "numbers", lambda score: score**2),
    ],
    "judged-gap": [pooled("paths", 1.0), pooled("urls", 0.9), pooled("numbers", 0.7)],
    "intact-queries": [left_out(1), left_out(7), left_out(40)],
    "drifted-queries": [left_out(n, NoteKind.DRIFT) for n in (1, 7, 40)],
    "uncommitted-changes": [left_out(n, NoteKind.UNCOMMITTED) for n in (1, 7, 40)],
    "identical-runs": [twice(("a", "b"), "paths"), twice(("a", "b", "c"), "urls"), twice(("x", "y"), "numbers")],
}
"""Check to comparisons that it must find something in."""
OF_THE_TEST_SET = {"intact-queries", "drifted-queries", "uncommitted-changes"}
"""Checks that find the same in every system."""
LIMITS = {"judged-share": 0.99}
"""Thresholds of checks that have none by default."""


def never_relevant(n: int) -> list[Evaluation]:
    """Results that other queries expect, and their own does not."""
    ids = corpus("paths")
    testset = judged_queries(ids, n=n)
    wrong = {
        query_id: [doc_id for doc_id in testset.grades[f"q{(number + 1) % n}"] if doc_id not in grades]
        for number, (query_id, grades) in enumerate(testset.grades.items())
    }
    return [of(testset, run_of(lists_of(testset, ids), "old")), of(testset, run_of(wrong))]


def findings(evaluations: Sequence[Evaluation], name: str) -> list[Finding]:
    """What one check finds, all others aside."""
    settings = {check: Setting(Consequence.OFF) for check in CHECKS if check != name}
    limits = Limits(evidence=settings | {name: Setting(threshold=LIMITS.get(name))})
    return [
        finding for finding in inspect_systems(evaluations, evaluations[0].measures[0], limits) if finding.check == name
    ]


def test_every_check_has_three_broken_and_ten_healthy_cases() -> None:
    assert set(BROKEN) == set(CHECKS)
    assert min(map(len, BROKEN.values())) >= 3
    assert len(healthy()) >= 10


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, cases in BROKEN.items() for case in range(len(cases))]
)
def test_a_broken_case_is_found(name: str, case: int) -> None:
    found = findings(BROKEN[name][case](), name)
    assert found
    for finding in found:
        assert finding.consequence is CHECKS[name].consequence
        assert finding.sentence
        assert finding.count <= max(finding.total, finding.count)
        assert not finding.system or name in OF_THE_TEST_SET or finding.sentence.startswith(finding.system)


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in {*LIMITS, "unjudged-results"}])
def test_no_healthy_case_is_found(name: str) -> None:
    alarms = {case: findings(evaluations, name) for case, evaluations in healthy().items()}
    assert not any(alarms.values()), alarms


@pytest.mark.parametrize(("n_systems", "n_found"), [(1, 1), (2, 0), (4, 1)])
def test_a_judged_share_under_a_half_is_a_caveat_except_of_two_systems(n_systems: int, n_found: int) -> None:
    found = findings(sparsely_judged(n_systems)(), "unjudged-results")
    assert len(found) == n_found  # of two, the comparison says what judgments can change
    # Each list has 3 judged results of 10 at most, 2.1 on average (skill 0.7): under 50 %.
    several = r"Judged@10 is under 50\.0 % \((.+ \d\d\.\d %, ){3}.+ \d\d\.\d %\)"
    alone = r".+: Judged@10 is \d\d\.\d %, under 50\.0 %"
    what = f"{several if n_systems > 1 else alone}: judgments of the other results can change the figures"
    assert all(re.fullmatch(what, each.sentence) for each in found)


def test_queries_without_results_do_not_make_lists_short() -> None:
    # 14 of 40 lists have 10 results, the others none: 10 a query with results, 3.5 a query
    assert not findings(relisted(lambda number, hits: [] if number % 3 else hits)(), "short-lists")


def test_the_broken_system_is_named_and_the_healthy_one_is_not() -> None:
    for name, cases in BROKEN.items():
        if CHECKS[name].system is not None and name not in {*LIMITS, *OF_THE_TEST_SET}:
            assert {finding.system for finding in findings(cases[0](), name)} == {"new"}, name


@pytest.mark.parametrize(
    "name", [name for name, check in CHECKS.items() if check.consequence is Consequence.VOID and name not in LIMITS]
)
def test_a_void_check_makes_the_verdict_invalid_and_can_be_made_a_caveat_or_switched_off(name: str) -> None:
    sides = BROKEN[name][0]()
    others = {check: "off" for check in CHECKS if check != name}
    invalid = compare(*sides, limits=Limits(evidence=others))
    assert (invalid.verdict.code, invalid.verdict.reasons) == (VerdictCode.INVALID, void_sentences(invalid.evidence))
    caveat = compare(*sides, limits=Limits(evidence={**others, name: "caveat"}))
    assert caveat.verdict.code is not VerdictCode.INVALID
    assert caveat_sentences(caveat.evidence) == invalid.verdict.reasons
    off = compare(*sides, limits=Limits(evidence={**others, name: "off"}))
    assert (off.evidence, off.verdict.code) == ((), caveat.verdict.code)


def test_a_caveat_leaves_the_verdict_and_can_be_made_void() -> None:
    sides = BROKEN["duplicates"][0]()
    assert compare(*sides).verdict.code is not VerdictCode.INVALID
    assert compare(*sides, limits=Limits(evidence={"duplicates": "void"})).verdict.code is VerdictCode.INVALID
    assert not compare(*sides, limits=Limits(evidence={"duplicates": 0.9})).evidence


def test_void_is_first_and_explains_what_follows_from_it() -> None:
    sides = BROKEN["one-id"][0]()
    found = compare(*sides).evidence
    assert [finding.is_void for finding in found] == sorted((finding.is_void for finding in found), reverse=True)
    assert "one-id" in {finding.check for finding in found}
    assert not {finding.check for finding in found} & {"few-ids", "duplicates", "same-list", "nothing-relevant"}


def test_three_systems_are_void_together() -> None:
    first, broken = BROKEN["nothing-matched"][0]()
    found = compare_many([first, replace(first, name="other", run_digest="x"), broken], draws=2000)
    assert found.verdict.code is VerdictCode.INVALID
    assert [finding.system for finding in found.evidence if finding.is_void] == ["new"]


def test_an_evaluation_has_its_own_findings_and_settings() -> None:
    _, broken = BROKEN["nothing-matched"][0]()
    assert [finding.check for finding in broken.evidence] == ["nothing-matched"]  # which names the form
    assert (
        replace(
            broken, limits=Limits(evidence=dict.fromkeys(("nothing-matched", "id-form", "unjudged-results"), "off"))
        )
        .evidence[0]
        .check
        == "nothing-relevant"
    )


@pytest.mark.parametrize(
    ("evidence", "message", "hint"),
    [
        ({"same-lists": "off"}, "unknown evidence check 'same-lists'", "did you mean same-list?"),
        ({"same-list": "ignore"}, "evidence check same-list is set to 'ignore'", None),
        ({"same-list": -1}, "evidence check same-list is set to -1", None),
        ({"same-list": True}, "evidence check same-list is set to True", None),
        ({"same-list": {"level": 1}}, "evidence check same-list is set to {'level': 1}", None),
    ],
)
def test_a_wrong_setting_is_named(evidence: dict[str, Any], message: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as error:
        inspect_systems((), None, Limits(evidence=evidence))
    assert (error.value.problems[0].message, error.value.problems[0].hint) == (message, hint)


def test_settings_of_the_command_line() -> None:
    assert parse_settings(["same-list=off", "duplicates=0.4", "duplicates = void"]) == {
        "same-list": Setting(Consequence.OFF),
        "duplicates": Setting(Consequence.VOID, 0.4),
    }
    with pytest.raises(UsageError) as error:
        parse_settings(["same-list", "nonsense=1", "one-id=perhaps"])
    assert [problem.message for problem in error.value.problems] == [
        "--evidence is 'same-list'",
        "unknown evidence check 'nonsense'",
        "evidence check one-id is set to 'perhaps'",
    ]


def test_the_transformation_is_named_with_the_number_of_queries() -> None:
    for build, form in (
        (changed(str.upper, "schemes"), "upper and lower case were ignored"),
        (changed(lambda doc_id: f"/opt/site/{doc_id}", "paths"), "the prefix '/opt/site/' of results were removed"),
        (
            changed(lambda doc_id: doc_id.removeprefix("src/"), "paths"),
            "the prefix 'src/' of expected ids were removed",
        ),
        (changed(lambda doc_id: f"{doc_id}.md", "letters and numbers"), "the suffix '.md' of results were removed"),
        (changed(lambda doc_id: doc_id.replace("doc-", "doc-00"), "padded"), "leading zeros of numbers were removed"),
        (changed(lambda doc_id: doc_id.replace("/", "\\"), "paths"), "backslashes were written as slashes"),
    ):
        (finding,) = findings(build(), "id-form")
        assert form in finding.sentence
        assert finding.count >= 30
        assert len(finding.query_ids) == finding.count


def test_spans_under_another_root_are_named() -> None:
    testset, lists = spans()
    rooted = {query_id: [Hit(f"./build/{hit.id}", span=hit.span) for hit in hits] for query_id, hits in lists.items()}
    found = of(testset, run_of(rooted)).evidence
    assert [finding.check for finding in found] == ["nothing-matched"]
    assert "they would match if the prefix 'build/' of results were removed" in found[0].sentence
    rules = replace(testset, matching=replace(testset.matching, strip=("build",)))
    assert of(rules, run_of(rooted)).evidence == ()


def test_the_regular_expression_that_reads_the_ids_is_named() -> None:
    lists = {f"q{number}": [APPLE] * 8 for number in range(12)}
    testset = TestSet("t", tuple(map(Query, lists)), {query_id: {f"apple-docs://{query_id}": 1} for query_id in lists})
    run = replace(run_of(lists), config={"extract": {"regex": "(apple-docs|hig)://\\S+"}})
    (finding,) = findings([of(testset, run)], "one-id")
    assert "(apple-docs|hig)://" in finding.sentence


def small(change: Callable[[str], str], n: int, style: str = "markdown files") -> list[Evaluation]:
    """A system whose ids are changed, on few queries, next to a healthy one."""
    ids = corpus(style)
    testset = judged_queries(ids, n=n)
    broken = {query_id: [change(doc_id) for doc_id in hits] for query_id, hits in lists_of(testset, ids).items()}
    return [of(testset, run_of(lists_of(testset, ids, seed=4), "old")), of(testset, run_of(broken))]


@pytest.mark.parametrize("n", [4, 6, 8])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (str.upper, "upper and lower case were ignored"),
        (lambda doc_id: f"./{doc_id}", "the prefix './' of results were removed"),
        (lambda doc_id: quote(doc_id, safe=""), "percent-encoding was decoded"),
        (lambda doc_id: doc_id.removesuffix(".md"), "the suffix '.md' of expected ids were removed"),
        (lambda doc_id: doc_id.rpartition("/")[2], "the folders were removed"),
        (lambda doc_id: doc_id.replace(".md", ".html"), "the extension was removed"),
        (lambda doc_id: f"{doc_id}@v{len(doc_id)}.1", "the number of a chunk or version at the end was removed"),
        (lambda doc_id: doc_id.partition("/")[0], "every expected id has "),
        (lambda doc_id: str(len(doc_id) * 7), "every expected id has "),
    ],
)
def test_ids_of_another_form_are_void_on_few_queries(change: Callable[[str], str], why: str, n: int) -> None:
    result = compare(*small(change, n))
    assert result.verdict.code is VerdictCode.INVALID
    (reason,) = (finding.sentence for finding in result.evidence if finding.check == "nothing-matched")
    assert why in reason


@pytest.mark.parametrize("n", [3, 4, 8])
def test_no_result_at_all_is_void_on_few_queries(n: int) -> None:
    ids = corpus("paths")
    testset = judged_queries(ids, n=n)
    sides = of(testset, run_of(lists_of(testset, ids), "old")), of(testset, run_of(dict.fromkeys(testset.grades, ())))
    assert compare(*sides).verdict.reasons == (
        f"new: {n} of {n} queries have no result: the score is that of an empty list",
    )


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("n", [4, 8, 20])
def test_a_system_that_finds_nothing_in_the_same_corpus_is_not_void(style: str, n: int) -> None:
    ids = corpus(style, 3000)
    testset = judged_queries(ids, n=n)
    sides = [
        of(testset, run_of(lists_of(testset, ids, skill=skill), name)) for name, skill in (("old", 0.8), ("new", 0))
    ]
    assert not any(finding.is_void for finding in inspect_systems(sides, sides[0].measures[0], Limits()) if n < 10)


@pytest.mark.parametrize(
    "id_of", ["docs/guide{0}.md#{1}", "doc-{0}-{1}", "src/m{0}.{2}", "d{0}/{3}", "https://a.org/p{0}?n={1}"]
)
@pytest.mark.parametrize("n", [4, 20, 60])
def test_parts_of_ids_that_tell_documents_apart_are_no_other_form(id_of: str, n: int) -> None:
    ids = [
        id_of.format(number, part, ("h", "cpp")[part % 2], ("index.md", "api.md")[part % 2])
        for number in range(30)
        for part in range(8)
    ]
    ids = list(dict.fromkeys(ids))
    testset = judged_queries(ids, n=n)
    sides = [
        of(testset, run_of(lists_of(testset, ids, skill=skill, seed=seed), f"s{seed}"))
        for seed, skill in enumerate((0.2, 0.4))
    ]
    assert [finding.check for finding in inspect_systems(sides, sides[0].measures[0], Limits())] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda doc_id: f"doc:{doc_id}", "the prefix 'doc:' of results were removed"),
        (lambda doc_id: doc_id.rpartition("://")[2], "the prefix 'apple-docs://' of expected ids were removed"),
        (str.upper, "upper and lower case were ignored"),
    ],
)
def test_the_form_of_ids_that_patterns_do_not_match_is_named(change: Callable[[str], str], words: str) -> None:
    testset, lists = patterns()
    one = {
        query_id: (Pattern(target.regex.replace("swift-evolution", "apple-docs").replace("hig:", "apple-docs:")),)
        for query_id, (target,) in testset.targets.items()
        if isinstance(target, Pattern)
    }
    changed_ids = {query_id: [change(doc_id) for doc_id in hits] for query_id, hits in lists.items()}
    found = of(replace(testset, targets=one), run_of(changed_ids)).evidence
    assert found[0].check == "nothing-matched"
    assert words in found[0].sentence
