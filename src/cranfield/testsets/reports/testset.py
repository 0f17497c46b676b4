"""Documents of the test-set commands: queries, findings, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cranfield.base.words import count_noun, shorten_to
from cranfield.evaluation.testset.expected import ExpectedGrade, JudgedQuery, Queries, queries_of
from cranfield.evaluation.testset.validate import Validation
from cranfield.model import Label, Query, TestSet
from cranfield.model.query import negative_of
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Block, Bullets, Document, KeyValues, Paragraph, Section, Table
from cranfield.reporting.notebook import CardShape, part_of
from cranfield.reporting.sections.subject import about_testset
from cranfield.reporting.table_spec import Col, Cols, Columns, Row, TableSpec, by_place
from cranfield.testsets.statistics import Matrix, Statistics, statistics

SHOWN_OF_A_CHECK = 20
LONGEST_LABEL = 60
"""A longer pattern or predicate of a query shown in full is written out under its table."""
PLURALS = {
    **{kind: f"{kind}s" for kind in ("document", "pattern", "span", "file", "predicate")},
    "entity": "entities",
    "criteria": "sets of conditions",
    "passage": "passages",
}
MAX_CONDITIONS = 3
"""Sets of conditions of a query that the overview writes out."""
MAX_GRADES = 6
"""Grades of a query that the overview lists."""


def table_section(name: str, title: str, spec: TableSpec[Row], shown: int | None = None) -> tuple[Section, ...]:
    """A section with one table; none without rows."""
    return (Section(name, title, (spec.table(shown=shown),)),) if spec.rows else ()


def queries_document(found: Queries, *, in_full: bool = False) -> Document:
    """Queries with their expected items: as one table, or each in full."""
    judged = [(each.query, judgment) for each in found.queries for judgment in each.expected]
    silent = [(each.query, None) for each in found.queries if not each.expected]
    tidy: TableSpec[tuple[Query, ExpectedGrade | None]] = TableSpec(
        "",
        [*judged, *silent],
        (
            Col("query", lambda row: row[0].id),
            Col("text", lambda row: row[0].text),
            Col("kind", lambda row: row[1].kind if row[1] else None),
            Col("expected", lambda row: row[1].label if row[1] else None),
            Col("grade", lambda row: row[1].grade if row[1] else None),
        ),
    )
    sections = (
        [_query_section(query, place) for place, query in enumerate(found.queries)]
        if in_full
        else [_overview(found), *_about_set(found)]
    )
    return Document(
        title="Test set",
        subtitle=about_testset(found.testset),
        sections=tuple(sections),
        tidy=tidy.tidy,
        payload=lambda: to_jsonable(found),
    )


def _pairs(mapping: Mapping[str, object]) -> str:
    return ", ".join(f"{key}={value}" for key, value in mapping.items())


def _floors(query: Query) -> str:
    return ", ".join(f"{measure} >= {least:g}" for measure, least in query.floors.items())


def _expectation(of: JudgedQuery) -> str:
    kinds = Counter(judgment.kind for judgment in of.expected)
    nothing = "nothing" if negative_of(of.query) is None else "nothing should be found"
    if {*kinds} == {"criteria"} and len(of.expected) <= MAX_CONDITIONS:
        rows = [(shorten_to(each.label, LONGEST_LABEL), each.grade) for each in of.expected]
        text = "; ".join(label if grade == 1 else f"{label} ({grade:g})" for label, grade in rows)
        return text + _besides(of)
    text = ", ".join(count_noun(n, PLURALS[kind]) for kind, n in kinds.items()) or nothing
    grades = [judgment.grade for judgment in of.expected]
    if {*grades} - {1} and len(grades) <= MAX_GRADES:
        text += f" ({'grades' if len(grades) > 1 else 'grade'} {', '.join(f'{grade:g}' for grade in grades)})"
    return text + _besides(of)


def _besides(of: JudgedQuery) -> str:
    text = "; nothing else is relevant" if of.query.exhaustive else ""
    return text + (f"; {len(of.forbidden)} forbidden" if of.forbidden else "")


def _overview(found: Queries) -> Section:
    columns: Columns[JudgedQuery] = (
        Col("query", lambda of: of.query.id, "query id"),
        Col("text", lambda of: of.query.text),
        Col("class", lambda of: of.query.query_class),
        Col("strata", lambda of: _pairs(of.query.strata)),
        Col("parameters", lambda of: _pairs(of.query.params)),
        Col("expected", _expectation),
        Col("floors", lambda of: _floors(of.query)),
    )
    table = TableSpec("What is expected", found.queries, columns).filled().table(wrap=True)
    return Section("queries", "Queries", (table,))


def _query_section(of: JudgedQuery, place: int) -> Section:
    query, label = of.query, of.label or Label()
    facts = (
        ("text", query.text),
        ("class", query.query_class),
        ("strata", _pairs(query.strata)),
        ("parameters", _pairs(query.params)),
        ("weight", "" if query.weight == 1 else f"{query.weight:g}"),
        ("negative", "" if negative_of(query) is None else "nothing should be found"),
        ("complete", "every other result is not relevant" if query.exhaustive else ""),
        ("forbidden", ", ".join(of.forbidden)),
        ("floors", _floors(query)),
        ("files to cover", ", ".join(of.files)),
        ("legacy form", ", ".join((*of.legacy.ids, *of.legacy.patterns)) if of.legacy else ""),
        ("narrative", label.narrative),
        ("difficulty", label.difficulty_rationale),
        ("classifier", label.classifier_expectation),
    )
    expected = TableSpec(
        "Expected",
        of.expected,
        (
            Col("kind", lambda j: j.kind),
            Col("expected", lambda j: j.label, "code"),
            Col("grade", lambda j: j.grade, "statistic"),
        ),
    )
    ratings = TableSpec(
        "Ratings",
        of.ratings,
        (
            Col("document", lambda r: r.doc_id, "code"),
            Col("rater", lambda r: r.rater),
            Col("grade", lambda r: r.grade, "statistic"),
        ),
    )
    kinds = (("must mention", label.must_mention), ("must not mention", label.must_not_mention))
    statements = TableSpec(
        "Facts",
        [(kind, fact) for kind, found in kinds for fact in found],
        (
            Col("an answer", lambda row: row[0]),
            Col("fact", lambda row: row[1].text),
            Col("citations", lambda row: ", ".join(map(str, row[1].citations)), "code"),
        ),
    )
    long = (judgment.label for judgment in of.expected if len(judgment.label) > LONGEST_LABEL)
    blocks: list[Block] = [KeyValues(tuple((name, value) for name, value in facts if value))]
    blocks += [expected.table()] if expected.rows else []
    blocks += [Paragraph(f"In full: {words}") for words in long]
    blocks += [ratings.table()] if ratings.rows else []
    blocks += [statements.table()] if statements.rows else []
    return Section(f"query-{place}", query.id, tuple(blocks))


def _about_set(found: Queries | Statistics) -> list[Section]:
    meta = found.meta
    facts = (
        ("description", found.description),
        ("sources", ", ".join(source.name for source in found.sources)),
        ("scale", ", ".join(f"{grade:g}" for grade in meta.scale)),
        ("made", meta.made),
        ("refreshed every", count_noun(meta.refresh_days, "days") if meta.made else ""),
        ("commit", meta.commit),
        ("held out", "" if meta.split is None else count_noun(len(meta.split.held_out), "queries")),
        ("made from", meta.previous),
    )
    known_facts = tuple((name, value) for name, value in facts if value)
    blocks: list[Block] = [KeyValues(known_facts)] if known_facts else []
    blocks += [Bullets(meta.history)] if meta.history else []
    blocks += [Bullets(tuple(map(str, found.testset.notes)))] if found.testset.notes else []
    return [Section("about", "About", tuple(blocks))] if blocks else []


def findings_document(found: Validation) -> Document:
    """Findings of the checks, errors first, and the checks that were run."""
    sections = [
        Section(
            "result",
            "Result",
            (Paragraph(f"{count_noun(found.n_errors, 'errors')}, {count_noun(found.n_warnings, 'warnings')}."),),
        )
    ]
    clean = []
    for check in found.checks:
        messages = [
            f"query {finding.query_id}: {finding.message}" if finding.query_id else finding.message
            for finding in found.findings
            if finding.check == check.name
        ]
        if not messages:
            clean.append(check.name)
            continue
        more = [f"and {len(messages) - SHOWN_OF_A_CHECK} more"] if len(messages) > SHOWN_OF_A_CHECK else []
        blocks = (Paragraph(f"The rule: {check.rule}"), Bullets((*messages[:SHOWN_OF_A_CHECK], *more)))
        title = f"{count_noun(len(messages), f'{check.level}s').capitalize()}: {check.name}"
        sections.append(Section(check.name.replace(" ", "-"), title, blocks))
    if clean:
        sections.append(Section("clean", "Checks without findings", (Paragraph(", ".join(clean) + "."),)))
    tidy = TableSpec(
        "",
        found.findings,
        (
            Col("level", lambda each: each.level),
            Col("check", lambda each: each.check),
            Col("query", lambda each: each.query_id),
            Col("found", lambda each: each.message),
        ),
    )
    return Document(
        title="Validation",
        subtitle=about_testset(found.testset),
        sections=tuple(sections),
        tidy=tidy.tidy,
        payload=lambda: to_jsonable(found),
    )


def statistics_document(found: Statistics) -> Document:
    """Counts of the content of a test set."""
    n_queries = found.testset.n_queries
    about = (
        ("queries", str(n_queries)),
        ("negative", str(found.n_negative)),
        ("without a text", str(found.n_without_text)),
        ("digest", found.testset.digest),
        *((("consensus", found.consensus),) if found.consensus else ()),
    )
    spreads = TableSpec(
        "In total and per query",
        found.spreads,
        (
            Col("what", lambda each: each.name),
            Col("all", lambda each: each.total, "count"),
            Col("least", lambda each: each.least, "count"),
            Col("median", lambda each: each.median, "statistic"),
            Col("most", lambda each: each.most, "count"),
        ),
    )
    grades = TableSpec(
        "Judgments by grade",
        found.grades,
        (
            Col("kind", lambda g: g.kind),
            Col("grade", lambda g: g.grade, "statistic"),
            Col("judgments", lambda g: g.n, "count"),
        ),
    )
    strata = TableSpec(
        "Queries by stratum",
        found.strata,
        (
            Col("stratum", lambda row: row.stratum),
            Col("value", lambda row: row.value or "none"),
            Col("queries", lambda row: row.n, "count"),
        ),
    )
    raters = TableSpec(
        "Slots by rater",
        found.raters,
        (
            Col("rater", lambda row: row.rater),
            Col("ratings", lambda row: row.ratings, "count"),
            Col("not filled", lambda row: row.empty, "count"),
        ),
    )
    matrices = tuple(map(_matrix, found.matrices))
    sections = (
        Section("counts", "Counts", (KeyValues(about),)),
        *table_section("judgments", "Judgments per query", spreads),
        *table_section("grades", "Grades", grades),
        *table_section("strata", "Strata", strata),
        *((Section("matrices", "Strata crossed", matrices),) if matrices else ()),
        *table_section("raters", "Raters", raters),
        *_about_set(found),
    )
    counts = (
        ("queries", "", "", n_queries),
        *(("judgments", spread.name, "", spread.total) for spread in found.spreads),
        *(("grade", row.kind, f"{row.grade:g}", row.n) for row in found.grades),
        *(("stratum", row.stratum, row.value or "none", row.n) for row in found.strata),
        *(("rater", row.rater, "", row.ratings) for row in found.raters),
    )
    tidy = TableSpec("", counts, by_place(dict.fromkeys(("what", "name", "value", "count"), "text")))
    return Document(
        title="Statistics",
        subtitle=about_testset(found.testset),
        sections=sections,
        tidy=tidy.tidy,
        payload=lambda: to_jsonable(found),
    )


def _matrix(matrix: Matrix) -> Table:
    """One table of two strata, with sums."""
    sums = [sum(column) for column in zip(*matrix.counts, strict=True)]
    columns: Columns[tuple[str, Sequence[int]]] = (
        Col(matrix.row_key or "none", lambda row: row[0] or "none"),
        Cols(
            range(len(sums)), lambda row, place: row[1][place], "count", lambda place: matrix.columns[place] or "none"
        ),
        Col("all", lambda row: sum(row[1]), "count"),
    )
    rows = list(zip(matrix.rows, matrix.counts, strict=True))
    spec = TableSpec(f"{matrix.row_key} by {matrix.column_key}", rows, columns)
    return spec.table(footer=("all", *sums, sum(sums)))


def testset_card(testset: TestSet) -> Document:
    """Counts of queries, judgments, grades and strata."""
    report = statistics_document(statistics(testset, ()))
    return replace(part_of(report, ("counts", "judgments", "grades", "strata")), title="Test set")


CARD = CardShape(testset_card, lambda testset: queries_document(queries_of(testset)).tidy())
"""A test set in a notebook: CSV has a row a judgment; a query without one has a row too."""
