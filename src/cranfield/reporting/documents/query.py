"""One query of a result as a Document: the lists of the systems, what was expected, the values. Its data are those of the query view.

A form with room shows the lists side by side; plain text has one table with a row for each result, and its rank on each system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cranfield.base.errors import Problem, UnknownNameError, shorten
from cranfield.base.numbers import MINUS, Kind, format_count, format_ms
from cranfield.base.words import count_noun, join_first, or_list, printable, shorten_to
from cranfield.evaluation.score_terms import BETWEEN, TermChange, changed_terms
from cranfield.model import TestSet
from cranfield.reporting.document import (
    VOID_STAMP,
    Block,
    Bullets,
    Cell,
    Document,
    HitLine,
    HitList,
    HitLists,
    KeyValues,
    Paragraph,
    Section,
    TonedCell,
)
from cranfield.reporting.table_spec import Col, Cols, Columns, Row, TableSpec, by_place

Detail = Mapping[str, Any]
"""As of `query_data.query_detail`."""
MAX_ITEMS = 6
"""Expected items that are named above the lists."""
MISSED = "missed"
NEAR = 3
"""Similar ids that an error names."""
NAME_COLUMNS = 40
"""Most columns of an id or a text in an error or a title."""
PAIR = 2
SHOWN_TERMS = 40


def query_document(detail: Detail, form: Literal["side by side", "one table"], *, is_void: bool = False) -> Document:
    """The report of one query.

    Args:
        detail: its data, as of `query_detail`.
        form: the lists side by side, or one table of all results.
        is_void: the scores do not count.
    """
    text = detail["text"]
    strata = [f"{key}: {value}" for key, value in detail["strata"].items()]
    about = " · ".join(filter(None, (*strata, detail["bucket"], detail["move"])))
    lists = (_side_by_side(detail),) if form == "side by side" else tuple(_one_table(detail))
    return Document(
        title=f"{detail['id']} “{text}”" if text and text != detail["id"] else detail["id"],
        subtitle=(about,) if about else (),
        sections=(
            *([Section("why", "Why it changed", (Bullets(tuple(detail["why"])),))] if detail["why"] else []),
            Section("results", "Results", lists),
            Section("expected", "Expected", (_expected(detail),)),
            Section("values", "Values", tuple(_values(detail, is_void=is_void))),
            *_scores(detail),
        ),
        tidy=_tidy(detail).tidy,
        payload=lambda: detail,
        stamps=(VOID_STAMP,) if is_void else (),
    )


def find_query(testset: TestSet, wanted: str) -> str:
    """The id of a query, found by its id or by its exact text.

    Raises:
        UnknownNameError: no query has the id or the text, or several have the text.
    """
    wanted = str(wanted)
    if wanted in testset.by_id:
        return wanted
    named = [query.id for query in testset.queries if query.text == wanted]
    if len(named) == 1:
        return named[0]
    if named:
        ids = join_first((printable(shorten_to(query_id, NAME_COLUMNS)) for query_id in named), NEAR * 2)
        raise UnknownNameError(
            f"{count_noun(len(named), 'queries', format_count)} have the text {shorten(wanted)}",
            expected=f"one id: {ids}",
        )
    raise UnknownNameError(_unknown(testset, wanted))


def _unknown(testset: TestSet, wanted: str) -> Problem:
    import difflib

    near = difflib.get_close_matches(wanted, list(testset.by_id), n=NEAR, cutoff=0.6)
    words = wanted.casefold().strip()
    near += [query.id for query in testset.queries if words and words in query.text.casefold()][:NEAR]
    names = [printable(shorten_to(query_id, NAME_COLUMNS)) for query_id in dict.fromkeys(near)]
    first = ", ".join(printable(shorten_to(query.id, NAME_COLUMNS)) for query in testset.queries[:NEAR])
    return Problem(
        f"unknown query {shorten(wanted)}",
        expected=f"the id or the exact text of one of {count_noun(len(testset.queries), 'queries', format_count)}, such as {first}",
        hint=f"did you mean {or_list(names[:NEAR])}?" if names else None,
    )


def _short(side: Mapping[str, Any]) -> str:
    """`A`, of `A plain`; the name where systems have no letters."""
    return str(side["name"] if side["system"] == side["name"] else side["system"].split(" ")[0])


def _note(side: Mapping[str, Any]) -> str:
    latency = side["latency_ms"]
    return str(side["note"]) if latency is None else f"{side['note']}; {format_ms(latency)}"


@dataclass(frozen=True)
class _Result:
    """A result with its rank on each system, None where the list that was kept does not have it."""

    id: str
    title: str
    ranks: tuple[int | None, ...]
    notes: tuple[str, ...]
    """How each system's was judged; they differ where an earlier result has the credit."""

    @property
    def note(self) -> str:
        return "; ".join(dict.fromkeys(filter(None, self.notes)))

    @property
    def movement(self) -> str:
        before, after = self.ranks
        if before is None or after is None:
            return "new" if before is None else "gone"
        return "=" if before == after else f"▲ {before - after}" if after < before else f"▼ {after - before}"


def _results(sides: Sequence[Mapping[str, Any]]) -> list[_Result]:
    """All results of all systems, those that any ranks best first; the second of an id in a list is another result."""
    found: dict[tuple[str, int], dict[int, Mapping[str, Any]]] = {}
    for place, side in enumerate(sides):
        seen: dict[str, int] = {}
        for hit in side["hits"]:
            seen[hit["id"]] = seen.get(hit["id"], 0) + 1
            found.setdefault((hit["id"], seen[hit["id"]]), {})[place] = hit
    places = range(len(sides))
    results = [
        _Result(
            query_id,
            next((hit["title"] for hit in hits.values() if hit["title"]), ""),
            tuple(hits[place]["rank"] if place in hits else None for place in places),
            tuple(hits[place]["note"] if place in hits else "" for place in places),
        )
        for (query_id, _), hits in found.items()
    ]
    return sorted(results, key=lambda result: min(rank for rank in result.ranks if rank is not None))


def _one_table(detail: Detail) -> Iterator[Block]:
    sides = detail["sides"]
    yield KeyValues(tuple((side["system"], _note(side)) for side in sides))
    results, is_pair = _results(sides), len(sides) == PAIR
    if not results:
        return
    columns: Columns[_Result] = (
        Col("document", lambda row: row.id, "code"),
        _of_sides(sides, lambda row, place: row.ranks[place], "count", "rank"),
        Col("move", lambda row: row.movement, when=is_pair),
        Col("judged", lambda row: row.note),
        Col("title", lambda row: row.title, when=any(result.title for result in results)),
    )
    caption = "Results and the rank of each" if len(sides) > 1 else "Results"
    if is_pair:
        caption += ". Move: ranks up or down from A to B, new on B, or not on B"
    yield TableSpec(caption, results, columns).table()


def _of_sides(
    sides: Sequence[Mapping[str, Any]], value: Callable[[Row, int], Cell], kind: Kind, alone: str, lead: str = ""
) -> Cols[Row]:
    """A column for each system, which one system alone does not name."""
    return Cols(
        range(len(sides)),
        value,
        kind,
        lambda place: f"{lead}{_short(sides[place])}" if len(sides) > 1 else alone,
    )


def _side_by_side(detail: Detail) -> HitLists:
    sides = detail["sides"]
    wanted = (f"{item['item']} (grade {item['grade']:g})" for item in detail["expected"])
    lists = []
    for place, side in enumerate(sides):
        other = sides[1 - place] if len(sides) == PAIR else None
        lines = tuple(
            HitLine(hit["rank"], hit["id"], hit["title"], " · ".join(filter(None, (hit["note"], moved))), hit["tone"])
            for hit, moved in zip(side["hits"], _movements(side, other), strict=True)
        )
        lists.append(HitList(side["system"], _note(side), lines))
    return HitLists(join_first(wanted, MAX_ITEMS) or detail["expected_none"], tuple(lists))


def _movements(side: Mapping[str, Any], other: Mapping[str, Any] | None) -> list[str]:
    """Where the other list has each result of a list: `▲ rank 4 on A`, better here than there."""
    if other is None:
        return [""] * len(side["hits"])
    there = {hit["id"]: hit["rank"] for hit in reversed(other["hits"])}
    name, words = _short(other), []
    for hit in side["hits"]:
        rank = there.get(hit["id"])
        if rank is None:
            words.append(f"not in the list of {name}")
        else:
            arrow = "=" if rank == hit["rank"] else "▲" if hit["rank"] < rank else "▼"
            words.append(f"{arrow} rank {rank} on {name}")
    return words


def _expected(detail: Detail) -> Block:
    items, sides = detail["expected"], detail["sides"]
    if not items:
        return Paragraph(f"Expected: {detail['expected_none']}.")

    def rank(item: Mapping[str, Any], place: int) -> Cell:
        found = item["ranks"][place]
        return TonedCell(MISSED, "bad") if found is None else str(found)

    columns: Columns[Mapping[str, Any]] = (
        Col("item", lambda item: item["item"], "code"),
        Col("grade", lambda item: f"{item['grade']:g}"),
        _of_sides(sides, rank, "text", "rank", "rank on "),
    )
    n_missed = sum(all(rank is None for rank in item["ranks"]) for item in items)
    whom = " by every system" if len(sides) > 1 else ""
    missed = f": {format_count(n_missed)} of {format_count(len(items))} missed{whom}" if n_missed else ""
    return TableSpec(f"Expected items and the rank of each{missed}", items, columns).table(shown=20)


def _values(detail: Detail, *, is_void: bool) -> Iterator[Block]:
    sides, values = detail["sides"], detail["values"]
    if not values:
        yield Paragraph("No measure has a value for this query.")
        return
    columns: Columns[Mapping[str, Any]] = (
        Col("measure", lambda row: row["measure"]),
        _of_sides(sides, lambda row, place: row["values"][place], "value", "value"),
        Col(
            "difference",
            lambda row: TonedCell(row["delta"], "" if is_void else row.get("tone", "")),
            "delta",
            when=any("delta" in row for row in values),
        ),
    )
    yield TableSpec("Values of this query", values, columns).table()
    reasons = dict.fromkeys(
        f"{row['measure']}: {reason}" for row in values for reason in row.get("unscored", ()) if reason
    )
    if reasons:
        yield Paragraph(f"No value: {'; '.join(reasons)}.", "note")


@dataclass(frozen=True)
class _Term:
    """A term of the score of a document, on each system."""

    doc: str
    term: str
    values: tuple[float | None, ...]


def _scores(detail: Detail) -> Iterator[Section]:
    """How the scores came about, document by document; of two systems the terms that differ, and what one alone has in short."""
    sides = detail["sides"]
    explained = [
        {hit["id"]: dict(hit["terms"]) for hit in reversed(side["hits"]) if hit.get("terms")} for side in sides
    ]
    if not any(explained):
        return
    is_pair = len(sides) == PAIR
    rows = [
        _Term(doc, term, tuple(of_side.get(doc, {}).get(term) for of_side in explained))
        for doc in dict.fromkeys(result.id for result in _results(sides))
        for term in _shown_terms([of_side.get(doc, {}) for of_side in explained], is_pair=is_pair)
    ]
    if not rows:
        yield Section("scores", "Scores", (Paragraph("Every term of the scores is the same on both."),))
        return
    columns: Columns[_Term] = (
        Col("document", lambda row: row.doc, "code"),
        Col("term", lambda row: row.term, "code"),
        _of_sides(sides, lambda row, place: _number(row.values[place]), "text", "value"),
        Col("difference", lambda row: _number(TermChange(row.term, *row.values).difference), when=is_pair),
    )
    what = (
        "Terms of the scores that differ, as the systems explain them"
        if is_pair
        else "Terms of the scores, as the system explains them"
    )
    yield Section("scores", "Scores", (TableSpec(what, rows, columns).table(shown=SHOWN_TERMS),))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}".replace("-", MINUS)


def _shown_terms(of_sides: Sequence[Mapping[str, float]], *, is_pair: bool) -> list[str]:
    if is_pair and all(of_sides):
        return [each.term for each in changed_terms(*of_sides)]
    every = dict.fromkeys(term for terms in of_sides for term in terms)
    return [term for term in every if BETWEEN not in term] if is_pair else [*every]


def _tidy(detail: Detail) -> TableSpec[Sequence[Cell]]:
    rows = [
        (side["name"], row["measure"], value)
        for row in detail["values"]
        for side, value in zip(detail["sides"], row["values"], strict=True)
    ]
    return TableSpec(
        "",
        rows,
        by_place({"system": "text", "measure": "text", "value": "text"}),
    )
