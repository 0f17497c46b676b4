"""Documents of the test-set commands: queries, findings, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cranfield.model import Label, Meta, Query, TestSet
from cranfield.model.query import negative_of
from cranfield.record import Fields, plain, record_of
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    KeyValues,
    Paragraph,
    Section,
    Table,
    tidy_table,
)
from cranfield.results.testset import TestSetRecord
from cranfield.testsets.expected import judgments_of
from cranfield.testsets.statistics import Matrix, Spread, Statistics
from cranfield.testsets.validate import Check, Finding, SetIdentity, checks
from cranfield.words import n_of

DIGEST_SHOWN = 19
"""Characters of a digest in reports: `sha256:` and twelve digits."""
IDENTITY = "name version digest n_queries=queries.__len__ review=meta.review"
"""What is written of a test set; see `cranfield.record`."""
FIELDS: Fields = {
    Check: "name level rule=sentence",
    Finding: "check level query=query_id message",
    Meta: "review scale made refresh_days commit previous history split",
    SetIdentity: "name version digest n_queries review",
    Spread: "total min=least median=middle max=most",
}
SHOWN_OF_A_CHECK = 20
LONGEST_LABEL = 60
"""A longer pattern or predicate of a query shown in full is written out under its table."""
PLURALS = {
    **{kind: f"{kind}s" for kind in ("document", "pattern", "span", "file", "predicate")},
    "entity": "entities",
}


def about_testset(testset: TestSetRecord) -> tuple[str, ...]:
    """Lines under the title of a report about a test set: its changes, name, version, digest and review."""
    name = f"{testset.name} {testset.version}".strip()
    facts = f"{name}: {n_of(testset.n_queries, 'queries')}, {testset.digest[:DIGEST_SHOWN]}"
    review = f"review: {testset.review}" if testset.review else ""
    return tuple(filter(None, (testset.uncommitted, facts, review)))


def testset_document(
    title: str, testset: TestSet | SetIdentity, sections: Sequence[Section], tidy: Table, payload: Mapping[str, Any]
) -> Document:
    """A Document about a test set: its name, version, digest and review stand first."""
    about = SetIdentity.of(testset) if isinstance(testset, TestSet) else testset
    record = TestSetRecord.of(testset) if isinstance(testset, TestSet) else TestSetRecord(**plain(about, FIELDS))
    changed = record.uncommitted
    return Document(
        title=title,
        subtitle=testset_subtitle(record),
        sections=tuple(sections),
        tidy=lambda: tidy,
        payload=lambda: {
            "schema_version": 1,
            **({"uncommitted": changed} if changed else {}),
            "testset": plain(about, FIELDS),
            **payload,
        },
    )


def testset_subtitle(testset: TestSetRecord) -> tuple[str, ...]:
    """What stands first in a Document about a test set: changes that no commit has; name, version and digest; review."""
    name = f"{testset.name} {testset.version}".strip()
    named = f"{name}: {n_of(testset.n_queries, 'queries')}, {testset.digest[:DIGEST_SHOWN]}"
    review = f"review: {testset.review}" if testset.review else ""
    return tuple(filter(None, (testset.uncommitted, named, review)))


def table(caption: str, columns: Sequence[Column], rows: Sequence[tuple[Cell, ...]], shown: int | None = None) -> Table:
    """A table with all of its rows, unless `shown` limits them."""
    return Table(tuple(columns), rows, caption, shown=shown)


def rows_section(
    name: str,
    title: str,
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[tuple[Cell, ...]],
    shown: int | None = None,
) -> tuple[Section, ...]:
    """A section with one table; none without rows."""
    return (Section(name, title, (table(caption, columns, rows, shown),)),) if rows else ()


def queries_document(testset: TestSet, query_ids: Sequence[str] = ()) -> Document:
    """Queries with their expected items: all of them as one table, or some in full."""
    chosen = [testset.by_id[query_id] for query_id in query_ids] or testset.queries
    judged = [
        (query.id, query.text, judgment.kind, judgment.label, judgment.grade)
        for query in chosen
        for judgment in judgments_of(testset, query.id)
    ]
    silent = [(query.id, query.text, None, None, None) for query in chosen if not [*judgments_of(testset, query.id)]]
    sections = (
        [_query_section(testset, query, place) for place, query in enumerate(chosen)]
        if query_ids
        else [_overview(testset), *_about_set(testset)]
    )
    return testset_document(
        "Test set",
        testset,
        sections,
        tidy_table(("query", "text", "kind", "expected", "grade"), [*judged, *silent]),
        {"queries": [_query_record(testset, query) for query in chosen], "meta": record_of(testset.meta, FIELDS)},
    )


def _overview(testset: TestSet) -> Section:
    rows = []
    for query in testset.queries:
        kinds = Counter(judgment.kind for judgment in judgments_of(testset, query.id))
        expected = ", ".join(n_of(n, PLURALS[kind]) for kind, n in kinds.items())
        strata = ", ".join(f"{key}={value}" for key, value in query.strata.items())
        nothing = "nothing" if negative_of(query) is None else "nothing should be found"
        rows.append((query.id, query.text, query.query_class, strata, expected or nothing))
    columns = (Column("query", "query id"), Column("text"), Column("class"), Column("strata"), Column("expected"))
    return Section("queries", "Queries", (table("What is expected", columns, rows),))


def _query_section(testset: TestSet, query: Query, place: int) -> Section:
    facts = [
        ("text", query.text),
        ("class", query.query_class),
        ("strata", ", ".join(f"{key}={value}" for key, value in query.strata.items())),
        ("parameters", ", ".join(f"{key}={value}" for key, value in query.params.items())),
        ("weight", "" if query.weight == 1 else f"{query.weight:g}"),
        ("negative", "" if negative_of(query) is None else "nothing should be found"),
        ("files to cover", ", ".join(testset.files.get(query.id, ()))),
        ("legacy form", ", ".join((*legacy.ids, *legacy.patterns)) if (legacy := testset.legacy.get(query.id)) else ""),
    ]
    label = testset.labels.get(query.id, Label())
    facts += [
        ("narrative", label.narrative),
        ("difficulty", label.difficulty_rationale),
        ("classifier", label.classifier_expectation),
    ]
    blocks: list[Block] = [KeyValues(tuple((name, value) for name, value in facts if value))]
    rows = [(judgment.kind, judgment.label, judgment.grade) for judgment in judgments_of(testset, query.id)]
    if rows:
        columns = (Column("kind"), Column("expected", "code"), Column("grade", "statistic"))
        blocks.append(table("Expected", columns, rows))
        blocks += [Paragraph(f"In full: {label}") for _, label, _ in rows if len(label) > LONGEST_LABEL]
    ratings = [(r.doc_id, r.rater, r.grade) for r in testset.ratings.get(query.id, ())]
    if ratings:
        columns = (Column("document", "code"), Column("rater"), Column("grade", "statistic"))
        blocks.append(table("Ratings", columns, ratings))
    kinds = (("must mention", label.must_mention), ("must not mention", label.must_not_mention))
    if statements := [
        (kind, fact.text, ", ".join(map(str, fact.citations))) for kind, found in kinds for fact in found
    ]:
        columns = (Column("an answer"), Column("fact"), Column("citations", "code"))
        blocks.append(table("Facts", columns, statements))
    return Section(f"query-{place}", query.id, tuple(blocks))


def _about_set(testset: TestSet) -> list[Section]:
    meta = testset.meta
    facts = [
        ("description", testset.description),
        ("sources", ", ".join(source.name for source in testset.sources)),
        ("scale", ", ".join(f"{grade:g}" for grade in meta.scale)),
        ("made", meta.made),
        ("refreshed every", n_of(meta.refresh_days, "days") if meta.made else ""),
        ("commit", meta.commit),
        ("held out", "" if meta.split is None else n_of(len(meta.split.held_out), "queries")),
        ("made from", meta.previous),
    ]
    known_facts = tuple((name, value) for name, value in facts if value)
    blocks: list[Block] = [KeyValues(known_facts)] if known_facts else []
    blocks += [Bullets(meta.history)] if meta.history else []
    blocks += [Bullets(tuple(map(str, testset.notes)))] if testset.notes else []
    return [Section("about", "About", tuple(blocks))] if blocks else []


def _query_record(testset: TestSet, query: Query) -> dict[str, Any]:
    negative = negative_of(query)
    return {
        "id": query.id,
        "text": query.text,
        "class": query.query_class or None,
        "strata": dict(query.strata),
        "negative": negative is not None,
        "expected": plain(list(judgments_of(testset, query.id))),
        "files": list(testset.files.get(query.id, ())),
        **({"label": testset.labels[query.id].record} if query.id in testset.labels else {}),
    }


def findings_document(testset: TestSet | SetIdentity, findings: Sequence[Finding], *, with_runs: bool) -> Document:
    """Findings of the checks, errors first, and the checks that were run."""
    known = checks()
    by_check: dict[str, list[Finding]] = {}
    for finding in findings:
        by_check.setdefault(finding.check, []).append(finding)
    n = Counter(finding.level for finding in findings)
    sentence = f"{n_of(n['error'], 'errors')}, {n_of(n['warning'], 'warnings')}."
    sections = [Section("result", "Result", (Paragraph(sentence),))]
    for name, group in by_check.items():
        check = known[name]
        messages = [
            f"query {finding.query_id}: {finding.message}" if finding.query_id else finding.message for finding in group
        ]
        more = [f"and {len(messages) - SHOWN_OF_A_CHECK} more"] if len(messages) > SHOWN_OF_A_CHECK else []
        blocks = (Paragraph(f"The rule: {check.sentence}"), Bullets((*messages[:SHOWN_OF_A_CHECK], *more)))
        title = f"{n_of(len(messages), f'{check.level}s').capitalize()}: {name}"
        sections.append(Section(name.replace(" ", "-"), title, blocks))
    run = [check for check in known.values() if with_runs or not check.needs_runs]
    clean = [check.name for check in run if check.name not in by_check]
    if clean:
        sections.append(Section("clean", "Checks without findings", (Paragraph(", ".join(clean) + "."),)))
    tidy_rows = [(finding.level, finding.check, finding.query_id, finding.message) for finding in findings]
    return testset_document(
        "Validation",
        testset,
        sections,
        tidy_table(("level", "check", "query", "found"), tidy_rows),
        {
            "n_errors": n["error"],
            "n_warnings": n["warning"],
            "findings": [record_of(finding, FIELDS) | {"query": finding.query_id or None} for finding in findings],
            "checks": plain(run, FIELDS),
        },
    )


def statistics_document(found: Statistics) -> Document:
    """Counts of the content of a test set."""
    testset = found.testset
    spreads = [(s.name, s.total, s.least, s.middle, s.most) for s in found.spreads]
    about = (
        ("queries", str(len(testset.queries))),
        ("negative", str(found.n_negative)),
        ("without a text", str(found.n_without_text)),
        ("digest", testset.digest),
        *((("consensus", testset.consensus),) if testset.consensus else ()),
    )
    grades = [(kind, grade, n) for kind, counts in found.grades.items() for grade, n in counts.items()]
    strata = [(key, value or "none", n) for key, counts in found.strata.items() for value, n in counts.items()]
    raters = [(rater, given, empty) for rater, (given, empty) in found.raters.items()]
    ends = (Column("all", "count"), Column("least", "count"), Column("median", "statistic"), Column("most", "count"))
    of_grades = (Column("kind"), Column("grade", "statistic"), Column("judgments", "count"))
    of_strata = (Column("stratum"), Column("value"), Column("queries", "count"))
    of_raters = (Column("rater"), Column("ratings", "count"), Column("not filled", "count"))
    sections = [
        Section("counts", "Counts", (KeyValues(about),)),
        *rows_section("judgments", "Judgments per query", "In total and per query", (Column("what"), *ends), spreads),
        *rows_section("grades", "Grades", "Judgments by grade", of_grades, grades),
        *rows_section("strata", "Strata", "Queries by stratum", of_strata, strata),
        *([Section("matrices", "Strata crossed", tuple(map(_matrix, found.matrices)))] if found.matrices else []),
        *rows_section("raters", "Raters", "Slots by rater", of_raters, raters),
    ]
    sections += _about_set(testset)
    tidy_rows: list[tuple[Cell, ...]] = [
        ("queries", "", "", len(testset.queries)),
        *(("judgments", name, "", total) for name, total, *_ in spreads),
        *(("grade", kind, f"{grade:g}", n) for kind, grade, n in grades),
        *(("stratum", key, value, n) for key, value, n in strata),
        *(("rater", rater, "", given) for rater, given, _ in raters),
    ]
    tidy = tidy_table(("what", "name", "value", "count"), tidy_rows)
    return testset_document("Statistics", testset, sections, tidy, _statistics_record(found))


def _matrix(matrix: Matrix) -> Table:
    """One table of two strata, with sums."""
    rows: list[tuple[Cell, ...]] = []
    for row in matrix.rows:
        counts = [matrix.counts.get((row, column), 0) for column in matrix.columns]
        rows.append((row or "none", *counts, sum(counts)))
    sums = [sum(matrix.counts.get((row, column), 0) for row in matrix.rows) for column in matrix.columns]
    return Table(
        (
            Column(matrix.row_key),
            *(Column(column or "none", "count") for column in matrix.columns),
            Column("all", "count"),
        ),
        rows,
        f"{matrix.row_key} by {matrix.column_key}",
        footer=("all", *sums, sum(sums)),
        shown=None,
    )


def _statistics_record(found: Statistics) -> dict[str, Any]:
    return {
        "n_negative": found.n_negative,
        "n_without_text": found.n_without_text,
        "per_query": {spread.name: record_of(spread, FIELDS) for spread in found.spreads},
        "grades": {kind: {f"{grade:g}": n for grade, n in counts.items()} for kind, counts in found.grades.items()},
        "strata": {key: dict(counts) for key, counts in found.strata.items()},
        "matrices": [
            {
                "rows": matrix.row_key,
                "columns": matrix.column_key,
                "counts": [{"row": row, "column": column, "n": n} for (row, column), n in matrix.counts.items()],
            }
            for matrix in found.matrices
        ],
        "raters": {rater: {"ratings": given, "empty": empty} for rater, (given, empty) in found.raters.items()},
        "meta": record_of(found.testset.meta, FIELDS),
    }
