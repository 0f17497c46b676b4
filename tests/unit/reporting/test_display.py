"""What results print in a terminal and show in a notebook: one line, and a card that is safe, small and needs nothing."""

from __future__ import annotations

import html
import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.result_folders import noisy, results_of

from cranfield import Answer, Hit, Outcome, Query, Run, TestSet, compare, compare_many, evaluate
from cranfield.base.display import Displayed, DisplayedByQuery, OneLine
from cranfield.base.words import UNPRINTABLE
from cranfield.evaluation.history import HistoryReport
from cranfield.evaluation.options.blocks import CompareOptions, Limits
from cranfield.evaluation.power import plan
from cranfield.evaluation.result import result_of
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.gate.result import GateResult
from cranfield.judging.raters.raters import rater_report
from cranfield.model.testset import Rating
from cranfield.plugins import built_in_products
from cranfield.reporting.notebook import MAX_BYTES, SHAPES
from cranfield.scale.summary import summarise_results

LENIENT = Limits(max_failed_share=0.5)
OF_PRODUCTS = {name for product in built_in_products() for name in product.cards}


def rated(name: str = "rated") -> TestSet:
    queries = tuple(Query(f"q{n}") for n in range(8))
    ratings = {
        query.id: tuple(Rating("d", rater, float((n + shift) % 3 > 0)) for shift, rater in enumerate(("ann", "ben")))
        for n, query in enumerate(queries)
    }
    return TestSet(name, queries, {query.id: {"d": 1} for query in queries}, ratings=ratings, consensus="median")


@pytest.fixture(scope="module")
def values(testset, runs, pair, comparison, tmp_path_factory) -> dict[str, Displayed]:
    """One of every class that shows itself, by the name of the class."""
    third, figures = replace(pair[0], name="third"), result_of(pair[0])
    report = rater_report(rated(), n_draws=20)
    folder = tmp_path_factory.mktemp("large")
    large = results_of(
        folder, {"nDCG@10": noisy(60, 2, gain=0.03)}, systems=("old", "new"), n_rows=9, n_rows_unjudged=1
    )
    found = (
        testset,
        runs[0],
        pair[0],
        comparison,
        compare_many([*pair, third], limits=LENIENT),
        report,
        report.agreement,
        plan(*pair),
        HistoryReport(measure="nDCG@10", lines=()),
        summarise_results(large, CompareOptions(draws=200)),
        GateResult(
            status="passed",
            explanation="all rules are kept",
            testset=figures.testset,
            convention=figures.convention,
            rules=(),
            evaluation=figures.systems[0],
            primary="nDCG@10",
        ),
    )
    return {type(value).__name__: value for value in found}


def subclasses(base: type) -> Iterator[type]:
    for each in base.__subclasses__():
        yield each
        yield from subclasses(each)


class Parsed(HTMLParser):
    """Tags and attributes of a card."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs


def assert_safe(html: str) -> None:
    """No script, no request, no id, and nothing that a terminal or a browser would interpret."""
    found = Parsed(html)
    assert found.tags & {"script", "iframe", "link", "img", "object", "embed", "form", "base", "meta"} == set()
    names = {name for name, _ in found.attributes}
    assert not {name for name in names if name.startswith("on")}
    assert not names & {"src", "href", "id", "srcdoc"}
    assert {value for name, value in found.attributes if name == "style"} <= {"display: none"}
    style = re.search("<style>(.*?)</style>", html, re.DOTALL)[1]
    assert not re.search(r"@import|url\(|expression|javascript", style)
    assert not UNPRINTABLE.search(html.replace("\n", ""))
    assert len(html.encode()) <= MAX_BYTES


def test_a_card_has_no_list_of_pairs_and_hides_what_is_nothing_without_its_style(comparison: Comparison) -> None:
    """JupyterLab floats `dt` over a fifth of the width, and removes the pictures of an untrusted notebook but not their words."""
    card = comparison._repr_html_()
    assert not Parsed(card).tags & {"dl", "dt", "dd"}
    assert re.search(
        r'<tr><th>p</th><td class="figure">[^<]+</td><td class="note">permutation, two-sided</td></tr>', card
    )
    hidden = re.findall(r'<\w+ class="([\w-]+)" style="display: none">', card)
    assert hidden == ["legend", "page-size", "phone-size"]
    style = re.search("<style>(.*?)</style>", card, re.DOTALL)[1].partition(".report.card {")[2]
    assert all(f".{name} {{ display: " in style for name in hidden)  # with its style they are shown


def assert_one_line(text: str) -> None:
    assert len(text) < 200
    assert not UNPRINTABLE.search(text)
    assert not re.search(r"[\r\n\t]", text)


def test_every_class_that_shows_itself_has_a_shape_and_is_tested(values: dict[str, Displayed]) -> None:
    names = {each.__name__ for each in subclasses(Displayed)} - {DisplayedByQuery.__name__}
    names -= {each.__name__ for each in subclasses(Displayed) if each.__module__ == __name__}
    assert names == {*SHAPES, *OF_PRODUCTS} == set(values)


def test_every_class_of_a_line_writes_its_own_summary() -> None:
    for each in subclasses(OneLine):
        if is_dataclass(each):
            assert "_summary" in vars(each), each
            assert "__repr__" not in vars(each), f"{each}: declare it with repr=False"


@pytest.mark.parametrize("name", sorted({*SHAPES, *OF_PRODUCTS}))
def test_a_value_prints_one_line_and_shows_a_safe_card(values: dict[str, Displayed], name: str) -> None:
    value = values[name]
    assert repr(value).startswith(f"<{name} ")
    assert_one_line(repr(value))
    assert_safe(value._repr_html_())


def test_the_lines_name_systems_values_and_counts(values: dict[str, Displayed], comparison: Comparison) -> None:
    about = comparison.measures[comparison.primary]
    line = repr(comparison)
    for part in ("weighted against plain", comparison.verdict.name, "nDCG@10", f"{abs(about.delta):.4f}", "8 queries"):
        assert part in line
    assert repr(values["TestSet"]) == "<TestSet small 3: 8 queries, 16 judgments>"
    assert repr(values["Run"]) == "<Run plain: 8 queries, 16 results>"
    assert repr(comparison.candidate).endswith("8 queries, 1 failed: no answer in 30 s>")
    assert repr(comparison.baseline.ranking) == "<Ranking 8 queries, 15 results>"
    assert repr(about).startswith("<MeasureComparison nDCG@10: ")


def test_what_a_comparison_holds_is_small_to_print_too(comparison: Comparison) -> None:
    for field in fields(comparison):
        assert len(repr(getattr(comparison, field.name))) < 6000, field.name


def test_the_card_of_a_comparison_has_the_verdict_its_facts_and_a_picture(comparison: Comparison) -> None:
    card = comparison._repr_html_()
    assert "No significant difference" in card
    assert comparison.verdict.sentence.split(":")[0] in card
    assert card.count("<svg") == 2  # of the page and of the phone
    assert "Is weighted better than plain?" in card


def test_a_card_says_that_scores_do_not_count(invalid: Comparison, pilot: Comparison) -> None:
    assert 'class="stamp">invalid' in invalid._repr_html_()
    assert "Invalid" in invalid._repr_html_()
    assert "PILOT" in pilot._repr_html_()
    assert "PILOT" in pilot.baseline.run._repr_html_()


def test_the_card_of_an_evaluation_has_means_with_intervals_and_counts(pair: tuple[Evaluation, Evaluation]) -> None:
    card = pair[1]._repr_html_()
    summary = pair[1].summaries["nDCG@10"]
    for part in (f"{summary.mean:.4f}", f"{summary.ci_low:.4f}", "<th>failed</th><td>1", "of the first 10"):
        assert part in card


def test_the_card_of_an_evaluation_with_classes_has_their_table_and_names_the_warnings() -> None:
    queries = tuple(Query(f"q{n}", query_class="canonical" if n < 4 else "root") for n in range(6))
    testset = TestSet("classed", queries, {query.id: {"d": 1} for query in queries})
    run = {query.id: {"d": 1.0, "x": 2.0 if n == 4 else 0.5} for n, query in enumerate(queries) if n != 5}
    found = evaluate(testset, run, measures=["RR"])
    card = found._repr_html_()
    # RR of the class root: 1/2, and 0 of the query without an answer
    table = re.sub(r"<[^>]+>|\s+", " ", card[card.rindex("<table") : card.rindex("</table>")]).split()
    assert (table[table.index("canonical") + 2], table[table.index("root") + 2]) == ("1.0000", "0.2500")
    assert found.warnings
    assert all(html.escape(str(warning), quote=False) in card for warning in found.warnings)


def test_hostile_texts_are_neither_markup_nor_control_characters(evil: Comparison) -> None:
    many = compare_many([*evil.evaluations, replace(evil.candidate, name="\x1b[2J\n<b>c")], limits=LENIENT)
    for value in (evil, evil.baseline, evil.baseline.testset, evil.baseline.run, many):
        assert_one_line(repr(value))
        assert_safe(value._repr_html_())


def test_the_card_of_many_queries_and_measures_stays_small() -> None:
    queries = tuple(Query(f"q{n}", f"text of {n} " * 20, {"class": f"class {n % 45}"}) for n in range(150))
    testset = TestSet("large", queries, {query.id: {f"{query.id}-{n}": 1 for n in range(4)} for query in queries})
    measures = [f"{name}@{k}" for name in ("nDCG", "P", "R") for k in range(1, 16)]

    def scored(name: str, shift: int) -> Evaluation:
        run = {query.id: [f"{query.id}-{(n * shift) % 7}" for n in range(4)] for query in queries}
        return evaluate(testset, run, measures=measures, name=name)

    systems = [scored(str(n) + " system" * 40, n) for n in (1, 2, 3)]
    found = compare(*systems[:2], draws=200)
    card = found._repr_html_()
    assert_safe(card)
    assert "35 more measures" in card
    for value in (found, systems[0], testset, compare_many(systems, draws=200)):
        assert_one_line(repr(value))
        assert_safe(value._repr_html_())


def test_a_card_that_would_be_too_large_has_fewer_rows_and_no_picture(comparison, monkeypatch) -> None:
    displays = importlib.import_module("cranfield.reporting.notebook")
    whole = comparison._repr_html_()
    monkeypatch.setattr(displays, "MAX_BYTES", len(whole.encode()) - 1)
    assert "<svg" not in comparison._repr_html_()
    monkeypatch.setattr(displays, "MAX_BYTES", 10)
    assert "No significant difference" in comparison._repr_html_()


def test_a_card_follows_the_theme_of_the_notebook_and_else_that_of_the_reader(comparison: Comparison) -> None:
    card = comparison._repr_html_()
    assert "prefers-color-scheme: dark" in card
    themes = {
        where: re.search(rf"{re.escape(where)} \.report\.card[^{{]*{{ --paper: (#\w+);", card)[1]
        for where in ('[data-jp-theme-light="true"]', '[data-jp-theme-light="false"]')
    }
    assert list(themes.values()) == ["#ffffff", "#14181d"]


def test_a_card_without_what_draws_says_so(comparison: Comparison, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert_safe(comparison._repr_html_())


@settings(deadline=None, max_examples=min(40, settings().max_examples))
@given(name=st.text(max_size=300), version=st.text(max_size=40), doc_id=st.text(min_size=1, max_size=40))
def test_any_name_prints_one_line(name: str, version: str, doc_id: str) -> None:
    testset = TestSet(name, (Query("q"),), {"q": {doc_id: 1}}, version=version)
    run = Run(name, {"q": Answer(Outcome.ANSWERED, (Hit(doc_id),))})
    assert_one_line(repr(testset))
    assert_one_line(repr(run))
    assert_one_line(repr(evaluate(testset, run, measures=["RR"])))
