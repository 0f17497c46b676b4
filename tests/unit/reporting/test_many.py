"""The report of many systems: verdict first, every picture with its table, in every form."""

from __future__ import annotations

import csv
import io
import json
import random
import string
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from cranfield import (
    Answer,
    Hit,
    ManyComparison,
    Outcome,
    Query,
    Run,
    TestSet,
    compare,
    compare_many,
    evaluate,
    parse,
    report,
)
from cranfield.evaluation.result import result_of
from cranfield.evaluation.sensitivity import sensitivity
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.model import CallLog
from cranfield.reporting import comparison_document, evaluation_document, render
from cranfield.reporting.charts.differences import Whisker, whiskers
from cranfield.reporting.charts.spec import BETTER, PAGE, PHONE, SCREENS, WORSE, Screen
from cranfield.reporting.charts.systems import FAINTEST, STRONGEST, HeatRow, RankedSystem, heat_map, mean_ranks
from cranfield.reporting.document import Block, Chart, Details, Document, Paragraph, Table, cell_value
from cranfield.reporting.renderers.data import csv_text
from cranfield.reporting.renderers.html import draw
from cranfield.reporting.renderers.text import render_brief
from cranfield.reporting.sections.many import means_table
from cranfield.reporting.sections.subject import letters, shaded

EVIL = "<script>alert(1)</script>"


def made_up(names: list[str], n: int = 30, *, timed: bool = True, strata: bool = True) -> ManyComparison:
    """Systems of rising skill; one query fails on the last."""
    draw = random.Random(7)
    queries = tuple(
        Query(f"q{i}", f"text {EVIL}", {"type": f"{EVIL} {i % 3}", "half": str(i % 2)} if strata else {})
        for i in range(n)
    )
    truth = TestSet("made up", queries, {query.id: {f"{query.id}-a": 2, f"{query.id}-b": 1} for query in queries})
    evaluations = []
    for place, name in enumerate(names):
        answers = {}
        for query in queries:
            ids = [f"x{j}" for j in range(10)]
            for doc in (f"{query.id}-a", f"{query.id}-b"):
                if draw.random() < 0.3 + 0.5 * place / len(names):
                    ids.insert(draw.randrange(6), doc)
            answers[query.id] = Answer(Outcome.ANSWERED, tuple(Hit(doc) for doc in ids))
        if place == len(names) - 1:
            answers["q1"] = Answer(Outcome.TIMEOUT, reason="no answer in 30 s")
        logs = {
            query.id: CallLog(
                draw.uniform(5, 9) + 10 * place,
                calls_before=4 + number,
                repeat_ms=(4.0, 5.0),
                unstable=("rank 2: d7, then d9",) if query.id == "q2" and not place else (),
            )
            for number, query in enumerate(queries)
        }
        config = {"concurrency": 4}
        evaluations.append(evaluate(truth, Run(name, answers, depth=10, logs=logs if timed else {}, config=config)))
    return compare_many(evaluations, baseline=names[0], margin=0.02, test="t")


@pytest.fixture(scope="module")
def many() -> ManyComparison:
    return made_up(["plain", EVIL, "a | b `c`", "=1+1", "a name that is much longer than any column of a phone"])


def test_of_many_systems_the_baseline_alone_has_a_line_under_the_title_whatever_they_are_called():
    names = ["plain", "mean of 3 (baseline)", *(f"s{place}" for place in range(12))]
    assert comparison_document(made_up(names, 5)).subtitle[0] == "14 systems, A plain (baseline)"


def blocks_of(document: Document, name: str) -> tuple[Block, ...]:
    return next(section.blocks for section in document.sections if section.name == name)


def opened(blocks: tuple[Block, ...]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Details):
            yield from opened(block.blocks)


def tables(document: Document, name: str) -> list[Table]:
    return [block for block in opened(blocks_of(document, name)) if isinstance(block, Table)]


def figures(document: Document) -> list[Chart]:
    return [block for section in document.sections for block in opened(section.blocks) if isinstance(block, Chart)]


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter("text")]


def test_the_sections_stand_in_order(many: ManyComparison) -> None:
    assert [section.name for section in comparison_document(many).sections] == [
        "systems",
        "against",
        "warnings",
        "headroom",
        "pairs",
        "ranks",
        "breakdown",
        "orders",
        "latency",
        "collection",
        "provenance",
    ]


def test_without_baseline_strata_and_times_their_sections_are_not_there() -> None:
    bare = made_up(["a", "b", "c"], timed=False, strata=False)
    alone = compare_many(bare.evaluations, test="t")
    names = [section.name for section in comparison_document(alone).sections]
    assert not {"against", "breakdown", "latency"} & set(names)


def test_the_verdict_comes_first_and_the_best_system_leads_the_table(many: ManyComparison) -> None:
    document = comparison_document(many)
    assert document.verdict is not None
    assert document.verdict.sentence == many.verdict.sentence
    first = tables(document, "systems")[0]
    means = [cell_value(row[3]) for row in first.rows]
    assert means == sorted(means, reverse=True)
    assert [row[0] for row in first.rows] == list(range(1, len(many.names) + 1))
    assert {row[1][2:] for row in first.rows if "best" in row[-1]} == set(many.verdict.best)


def test_the_table_of_pairs_has_the_adjusted_p_that_decides(many: ManyComparison) -> None:
    table = tables(comparison_document(many), "pairs")[0]
    assert [row[0] for row in table.rows][:2] == ["B minus A", "C minus A"]
    assert len(table.rows) == 10
    assert [row[5] for row in table.rows] == [pair.result.p_adjusted for pair in many.pairs]
    assert [row[1].value for row in table.rows] == [pair.verdict.text for pair in many.pairs]


def test_wins_of_one_are_losses_of_the_other(many: ManyComparison) -> None:
    matrix = tables(comparison_document(many), "pairs")[-1]
    for i, row in enumerate(matrix.rows):
        for j, cell in enumerate(row[1:]):
            if i != j:
                assert cell == " / ".join(matrix.rows[j][1 + i].split(" / ")[::-1])


def test_every_picture_has_a_table_and_an_alternative_in_words(many: ManyComparison) -> None:
    found = figures(comparison_document(many))
    assert [figure.name for figure in found] == ["means", "against", "pairs", "ranks", "heat-1", "heat-2"]
    for figure in found:
        assert figure.table.rows
        assert len(figure.alt) > 40


@pytest.mark.parametrize("narrow", [False, True])
def test_every_picture_fits_its_screen_and_holds_no_markup(many: ManyComparison, narrow: bool) -> None:
    screen = PHONE if narrow else PAGE
    for figure in figures(comparison_document(many)):
        svg = draw(figure.narrow_spec if narrow else figure.spec, figure.alt)
        assert "<script" not in svg
        view = [float(number) for number in ET.fromstring(svg).get("viewBox", "").split()]
        assert view[2] <= screen.width + 1


@pytest.mark.parametrize("k", [3, 5, 8, 14, 30])
@pytest.mark.parametrize("screen", SCREENS)
def test_a_cell_of_the_map_holds_its_number_whatever_the_number_of_systems(screen: Screen, k: int) -> None:
    rows = [
        HeatRow(f"row {r}", tuple(0.1 * r + 0.01 * place for place in range(k)), frozenset({k - 1})) for r in range(3)
    ]
    spec = heat_map(rows, [f"system {place}" for place in range(k)], letters(k), screen)
    said = words(draw(spec, "map"))
    for row in rows:
        for value in row.values:
            assert f"{value:.3f}" in said
    cells = [cell for layer in spec["layer"] if layer["mark"]["type"] == "rect" for cell in layer["data"]["values"]]
    assert len(cells) == 3 * k
    assert max(cell["x2"] for cell in cells) <= screen.width
    assert all(FAINTEST <= cell["opacity"] <= STRONGEST for cell in cells)
    for one, other in pairwise(sorted((cell["y"], cell["x"], cell["x2"]) for cell in cells)):
        assert one[0] != other[0] or one[2] <= other[1]  # no cell lies over its neighbour


def test_a_stratum_without_a_value_is_a_dash_and_no_cell() -> None:
    rows = [HeatRow("row", (0.5, None, 0.25), frozenset({0}))]
    spec = heat_map(rows, ["a", "b", "c"], ["A", "B", "C"], PAGE)
    assert "\u2013" in words(draw(spec, "map"))
    assert sum(len(layer["data"]["values"]) for layer in spec["layer"] if layer["mark"]["type"] == "rect") == 2


@pytest.mark.parametrize("screen", SCREENS)
def test_the_rank_picture_joins_what_is_not_told_apart(screen: Screen) -> None:
    systems = [RankedSystem(name, rank, name == "a") for name, rank in (("a", 1.2), ("b", 1.9), ("c", 2.9))]
    spec = mean_ranks(systems, [(0, 1), (1, 2)], 1.1, screen)
    said = words(draw(spec, "ranks"))
    assert {"a", "1.20", "b", "1.90", "c", "2.90", "critical difference 1.10"} <= set(said)
    lines = next(layer["data"]["values"] for layer in spec["layer"] if layer["mark"]["type"] == "rule")
    bars = [line for line in lines if line["thick"] == 5]
    rows = sorted({line["y"] for line in lines if line["y"] == line["y2"] and line["thick"] == 1})
    assert [
        (bar["y"] < rows[first], bar["y2"] > rows[last])
        for bar, (first, last) in zip(bars, [(0, 1), (1, 2)], strict=True)
    ] == [
        (True, True),
        (True, True),
    ]
    assert max(line["x2"] for line in lines) <= screen.width


def test_repeats_that_changed_an_answer_are_warned_of_and_listed(many: ManyComparison) -> None:
    document = comparison_document(many)
    (warnings,) = blocks_of(document, "warnings")
    assert any("1 of 30 repeated queries changed their answer" in said for said in warnings.items)
    changed = next(table for table in tables(document, "collection") if table.columns[-1].title == "first difference")
    assert changed.rows == [("A plain", "q2", 1, 2, "rank 2: d7, then d9")]
    said = " ".join(block.text for block in blocks_of(document, "collection") if block.kind == "paragraph")
    assert "30 queries were repeated 2 times; no answer changed" in said


def test_latency_stands_beside_quality_with_what_to_know_of_it(many: ManyComparison) -> None:
    against, calls = tables(comparison_document(many), "latency")
    assert [row[3] for row in against.rows] == ["slower"] * 4
    assert [row[-1] for row in against.rows] == [30, 30, 30, 29]  # the last failed on one
    assert [row[7] for row in calls.rows] == [0, 0, 0, 0, 1]
    *_, rule, bullets = blocks_of(comparison_document(many), "latency")
    assert rule == Paragraph("A system is reported as faster or slower if the difference is at least 1 ms and 5 %.")
    assert bullets.items == ("every system: up to 4 calls ran concurrently and may have delayed each other",)
    brief = " ".join(render_brief(comparison_document(many)).split())
    assert "Latency at the median: <script>" in brief


def test_the_payload_is_json_and_holds_every_pair(many: ManyComparison) -> None:
    payload = json.loads(render(comparison_document(many), "json"))
    assert payload["verdict"] == many.verdict.code
    assert payload["best"] == list(many.verdict.best)
    assert len(payload["pairs"]) == 10
    assert len(payload["against_baseline"]) == 4
    assert payload["pairs"][0]["result"]["p_adjusted"] == many.pairs[0].result.p_adjusted
    assert payload["ranks"]["critical_difference"] == many.ranks.critical_difference if many.ranks else False
    assert payload["means"]["nDCG@10"]["plain"]["n"] == 30
    assert "latency" not in json.dumps(payload)


def test_a_saved_file_holds_every_query_too(many: ManyComparison) -> None:
    record = comparison_document(many).record
    assert record is not None
    assert len(record()["queries"]["q0"]["sides"]) == 5


def test_the_csv_has_a_row_a_system_query_and_measure(many: ManyComparison) -> None:
    rows = list(csv.DictReader(io.StringIO(render(comparison_document(many), "csv"))))
    assert len(rows) == sum(len(evaluation.measures) * 30 for evaluation in many.evaluations)


def test_no_text_of_a_system_is_markup(many: ManyComparison) -> None:
    assert EVIL not in render(comparison_document(many), "html")
    assert EVIL not in render(comparison_document(many), "markdown")


def test_a_pasted_report_fits_in_a_hundred_columns_and_leads_with_the_verdict(many: ManyComparison) -> None:
    lines = render(comparison_document(many)).splitlines()
    assert max(len(line) for line in lines if "sha256:" not in line) <= 100
    verdict = next(place for place, line in enumerate(lines) if line.startswith("VERDICT: "))
    assert verdict < 12


def test_report_knows_many_systems(many: ManyComparison) -> None:
    assert report(many).startswith("Which of 5 systems is best?")


def test_systems_have_letters_while_there_are_letters() -> None:
    assert letters(3) == ["A", "B", "C"]
    assert letters(26) == list(string.ascii_uppercase)
    assert letters(27)[-1] == "27"


def test_sensitivity_is_a_section_with_those_that_disagree_first() -> None:
    many = made_up(["a", "b", "c"])
    comparison = compare(many.evaluations[0], many.evaluations[2])
    varied = sensitivity(comparison)
    document = comparison_document(comparison, sensitivity=varied)
    assert blocks_of(document, "sensitivity")[0].text == f"{varied.line}."
    (table, *_) = tables(document, "sensitivity")
    agrees = [row[2].value == varied.verdict for row in table.rows]
    assert agrees == sorted(agrees)
    assert len(agrees) == len(varied.variations)
    payload = json.loads(render(document, "json"))["sensitivity"]
    assert (payload["n_agree"], len(payload["variations"])) == (varied.n_agree, len(varied.variations))
    assert "sensitivity" not in [section.name for section in comparison_document(comparison).sections]


def test_a_margin_says_whether_a_loss_as_large_is_ruled_out() -> None:
    many = made_up(["a", "b", "c"])
    better = compare(many.evaluations[0], many.evaluations[2], margin=0.02)
    worse = compare(many.evaluations[2], many.evaluations[0], margin=0.02)
    assert any(said.startswith("non-inferior: a loss of 0.02 or more is ruled out") for said in better.verdict.reasons)
    assert any(said.startswith("a loss of 0.02 or more is not ruled out") for said in worse.verdict.reasons)
    rows = {row[0]: row for row in tables(comparison_document(better), "tests")[0].rows}
    assert "non-inferior: p " in rows["noninferiority"][-1]
    assert "within the margin: p " in rows["tost"][-1]


def test_warnings_of_one_kind_are_counted_once_whatever_the_ids_of_their_queries() -> None:
    queries = [f"{letter}: question" for letter in "abcdefghij"]
    grades = {query: {"d": 1} for query in queries}
    runs = [{query: ["d"] for query in queries if query != left_out} for left_out in queries]
    evaluations = [evaluate(grades, run, measures=["P@1"], name=f"s{n}") for n, run in enumerate(runs)]
    text = " ".join(render(evaluation_document(evaluations), "text").split())
    assert "10 systems (s0, s1, s2 and 7 more), for example s0: not returned: no answer in the run for 1 of 10" in text
    assert text.count("no answer in the run") == 1


def test_a_system_has_every_letter_of_its_groups() -> None:
    three = made_up(["plain", "other", "third"], 12)
    found = replace(three, pairs=tuple(replace(pair, verdict=VerdictCode.NOT_SIGNIFICANT) for pair in three.pairs))
    first, *_, last = (found.names[place] for place in found.best_first)
    ends = {frozenset((pair.first, pair.second)): n for n, pair in enumerate(found.pairs)}[frozenset((first, last))]
    pairs = [replace(p, verdict=VerdictCode.BETTER) if n == ends else p for n, p in enumerate(found.pairs)]
    found = replace(found, pairs=tuple(pairs))
    assert [line.group for line in found.leaderboard] == ["a", "ab", "b"]
    assert [line["group"] for line in json.loads(render(comparison_document(found), "json"))["leaderboard"]] == [
        "a",
        "ab",
        "b",
    ]
    assert [row[2] for row in tables(comparison_document(found), "systems")[0].rows] == ["a", "ab", "b"]
    assert [row["group"] for row in csv.DictReader(io.StringIO(csv_text(means_table(result_of(found)))))] == [
        "a",
        "ab",
        "b",
    ]


def test_more_than_26_groups_are_written_in_runs() -> None:
    # each of 30 systems differs from all but its two neighbours: 29 groups of two, a to z, aa, ab, ac
    names = [f"s{place:02}" for place in range(30)]
    found = made_up(names, 12)
    order = [found.names[place] for place in found.best_first]
    pairs = [
        replace(
            pair,
            verdict=VerdictCode.NOT_SIGNIFICANT
            if abs(order.index(pair.first) - order.index(pair.second)) < 2
            else VerdictCode.BETTER,
        )
        for pair in found.pairs
    ]
    written = [line.group for line in replace(found, pairs=tuple(pairs)).leaderboard]
    assert (written[0], written[1], written[26], written[29]) == ("a", "a-b", "z-aa", "ac")


@pytest.mark.parametrize("sign", [1, -1])
def test_a_cell_of_the_map_is_coloured_by_its_distance_from_the_mean_of_its_row(sign: int) -> None:
    # means of the rows .5 and .25; the farthest cells are .25 away: strongest; .125 away is half of the way from the faintest
    rows = [HeatRow("a", (0.25, 0.5, 0.75), frozenset()), HeatRow("b", (0.125, 0.25, 0.375), frozenset())]
    spec = heat_map(rows, ["x", "y", "z"], ["X", "Y", "Z"], PAGE, sign)
    cells = next(layer["data"]["values"] for layer in spec["layer"] if layer["mark"]["type"] == "rect")
    half = (FAINTEST + STRONGEST) / 2
    low, high = (WORSE, BETTER) if sign > 0 else (BETTER, WORSE)
    assert [(cell["colour"], cell["opacity"]) for cell in cells] == [
        (low, STRONGEST),
        (low, half),
        (BETTER, FAINTEST),
        (BETTER, FAINTEST),
        (high, STRONGEST),
        (high, half),
    ]


def test_means_are_shaded_by_their_relative_distance_from_the_mean_of_their_row() -> None:
    # .4, .5, .6: a fifth below and above .5, the farthest; ranks 9, 10, 11 of which less is better: a tenth, half as far
    measures = [parse("R@10"), parse("RankOfFirst"), parse("Judged@10")]
    cells = shaded([[0.4, 0.5, 0.6], [9, 10, 11], [0.1, 0.5, 0.9]], measures)
    assert [[cell.distance for cell in row] for row in cells] == [[-4, 0, 4], [2, 0, -2], [0, 0, 0]]
    assert [[cell.tone for cell in row] for row in cells] == [["", "", "good"], ["good", "", ""], ["", "", ""]]


@pytest.mark.parametrize("screen", SCREENS)
def test_the_picture_of_means_has_the_letters_of_every_system_in_the_order_of_the_means(screen: Screen) -> None:
    rows = [Whisker("one", 0.8, 0.7, 0.9, "good", "a"), Whisker("two", 0.6, 0.5, 0.7, "", "ab")]
    said = words(draw(whiskers(rows, "RR", screen, of_means=True), "means"))
    assert {"one", "two", "a", "ab"} <= set(said)
    assert not [word for word in said if word.startswith("+")]


def test_of_more_systems_than_fit_there_is_no_picture_of_means() -> None:
    names = [figure.name for figure in figures(comparison_document(made_up([f"s{n}" for n in range(41)], 8)))]
    assert "means" not in names
