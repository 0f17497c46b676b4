from __future__ import annotations

import base64
import gzip
import html as entities
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.base.words import printable
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.reporting import comparison_document, evaluation_document, render
from cranfield.reporting.document import (
    Bullets,
    Code,
    Column,
    Details,
    Document,
    HitLine,
    HitList,
    HitLists,
    KeyValues,
    Link,
    Paragraph,
    Section,
    Table,
    VerdictBlock,
    VerdictFact,
)
from cranfield.reporting.query_data import query_detail, query_index
from cranfield.reporting.renderers.html import (
    ATTRIBUTES,
    ELEMENTS,
    NO_CHARTS,
    load_renderer,
    render_blocks,
    render_html,
)

ALLOWED_ELEMENTS = ELEMENTS | {
    "html",
    "head",
    "meta",
    "title",
    "link",
    "style",
    "body",
    "a",
    "p",
    "header",
    "h1",
    "h2",
    "ul",
    "ol",
    "li",
    "div",
    "nav",
    "main",
    "section",
    "span",
    "dl",
    "dt",
    "dd",
    "figure",
    "figcaption",
    "table",
    "thead",
    "tbody",
    "tfoot",
    "tr",
    "th",
    "td",
    "details",
    "summary",
    "code",
    "pre",
    "strong",
    "footer",
    "aside",
    "script",
    "form",
    "label",
    "input",
    "select",
    "option",
    "button",
    "dialog",
    "kbd",
}
ALLOWED_ATTRIBUTES = {name.lower() for name in ATTRIBUTES} | {
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "rel",
    "href",
    "class",
    "id",
    "role",
    "tabindex",
    "scope",
    "value",
    "open",
    "aria-label",
    "aria-labelledby",
    "aria-hidden",
    "hidden",
    "type",
    "autocomplete",
    "placeholder",
    "data-part",
    "data-for",
    "data-chunk",
    "data-tip",
    "data-q",
    "autofocus",
}
VOID = {"meta", "link", "input"}


class Page(HTMLParser):
    """What a page is made of; complains where an element is closed that was not open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]

    @property
    def text(self) -> str:
        return "".join(self.words)


@pytest.fixture(scope="module")
def page(comparison: Comparison) -> str:
    return render(comparison_document(comparison, preflight=[("plain", "binary search", "on PATH")]), "html")


def test_the_page_is_made_of_known_elements_and_attributes(evil: Comparison) -> None:
    found = Page(render(comparison_document(evil), "html"))
    assert set(found.elements) <= ALLOWED_ELEMENTS
    assert {name for _, name, _ in found.attributes} <= ALLOWED_ATTRIBUTES
    assert [value for tag, name, value in found.attributes if (tag, name) == ("script", "type")] == [
        "application/octet-stream"
    ] * (found.elements["script"] - 1)  # packed data, and our own script
    assert "style" not in {name for _, name, _ in found.attributes}
    assert not [name for _, name, _ in found.attributes if name.startswith("on")]


def test_text_from_systems_is_shown_and_not_obeyed(evil: Comparison) -> None:
    found = Page(render(comparison_document(evil), "html"))
    assert "<script>alert(1)</script>" in found.text
    assert '"><img src=x onerror=alert(1)>' in found.text
    assert "\\x1b[31mred\\u202e" in found.text
    assert "half \\x80 of it" in found.text
    assert found.elements["img"] == 0


def test_a_command_in_a_sentence_is_code(comparison: Comparison) -> None:
    reasons = ("2 judgments could change it: `cranfield holes <a> b`", "one ` alone")
    verdict = replace(comparison.verdict, reasons=reasons)
    result = replace(comparison, verdict=verdict)
    for page in (render(comparison_document(result), "html"), result._repr_html_()):
        assert "<li>2 judgments could change it: <code>cranfield holes &lt;a&gt; b</code></li>" in page
        assert "<li>one ` alone</li>" in page
    assert "`cranfield holes <a> b`" in " ".join(render(comparison_document(result), "text").split())


@settings(max_examples=min(60, settings().max_examples))
@given(st.text(st.characters(exclude_characters="`"), max_size=40))  # between two of those stands code
def test_any_text_in_any_place_comes_out_as_itself(text: str) -> None:
    table = Table(
        (Column(text), Column(text, "code"), Column("n", "count")), [(text, text, text)], text, footer=(text, text, 1)
    )
    hits = HitLists(text, (HitList(text, text, (HitLine(1, text, text, text, "good"),)),))
    blocks = (
        Paragraph(text),
        Bullets((text,)),
        table,
        hits,
        KeyValues(((text, text),), text),
        Details(text, (Code(text, "code"),)),
    )
    verdict = VerdictBlock("better", text, "good", (VerdictFact(text, text, text),), (text,), (text,))
    page = render_html(
        Document(text, (text,), (Section("one", text, blocks),), table, {}, verdict=verdict, stamps=(text,))
    )
    plain = render_html(
        Document("x", ("x",), (Section("one", "x", ()),), table, {}, verdict=replace(verdict, sentence="x"))
    )
    found = Page(page)
    assert set(found.elements) <= ALLOWED_ELEMENTS
    assert set(found.elements) >= set(Page(plain).elements)
    shown = printable(text)
    # title, h1, subtitle, stamp, paragraph, bullet, cells, hits ...: at least twenty places
    assert found.text.count(shown) >= 20 or not shown


def test_the_policy_allows_this_style_sheet_this_script_and_nothing_else(page: str) -> None:
    policy = entities.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1))
    digests = [
        base64.b64encode(sha256(text.encode()).digest()).decode()
        for text in re.findall(r"<(?:style|script)>(.*?)</(?:style|script)>", page, re.DOTALL)
    ]
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digests[0]}'",
        f"script-src 'sha256-{digests[1]}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_the_page_asks_for_nothing(page: str) -> None:
    found = Page(page)
    assert [value for value in found.values("href") if not value.startswith("#")] == ["data:,"]
    assert "src" not in {name for _, name, _ in found.attributes}
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page)


def test_every_link_leads_somewhere_and_every_id_is_one(page: str) -> None:
    found = Page(page)
    ids = found.values("id")
    assert len(set(ids)) == len(ids)
    assert not [name for name in ids if re.search(r"\s", name)]
    targets = [value[1:] for value in found.values("href") if value.startswith("#")] + found.values("aria-labelledby")
    assert targets
    assert set(targets) <= set(ids)


def test_the_verdict_is_in_words_and_comes_first(page: str, comparison: Comparison) -> None:
    text = Page(page[page.index("<main") : page.index("</main>") + 7]).text
    assert text.split()[:3] == ["Verdict", "?", "No"]
    assert text.index(comparison.verdict.sentence) < text.index("Measures")


def test_headings_are_one_h1_and_an_h2_for_every_section(page: str, comparison: Comparison) -> None:
    found = Page(page)
    assert found.elements["h1"] == 1
    # The query view has three: its section, an opened query, the keys.
    assert found.elements["h2"] == 1 + len(comparison_document(comparison).sections) + 3
    # What is closed cannot be seen: headings stand in the lines that open it.
    closed = re.findall(r"</summary>.*?(?=<summary|</details>)", page, re.DOTALL)
    assert not [inside for inside in closed if re.search(r"<h\d", inside)]


def test_every_picture_has_its_words_two_sizes_and_a_table(page: str) -> None:
    figures = re.findall(r'<figure class="picture".*?</figure>', page, re.DOTALL)
    assert len(figures) == Page(page).elements["svg"] // 2 == 4  # intervals, differences, movement, one stratum
    # The table of the stratum follows its picture, and is not shown twice.
    assert [figure.count("<summary>Show data") for figure in figures].count(0) == 1
    for figure in figures:
        assert figure.count("<svg") == 2
        assert figure.count("<table") == figure.count("<summary>Show data")
        assert re.search(r'role="img" aria-label="[^"]{20,}"', figure)


def test_a_box_that_scrolls_can_be_reached_by_keyboard(page: str) -> None:
    boxes = re.findall(r'<div class="scroll"[^>]*>', page)
    assert len(boxes) == Page(page).elements["table"]
    assert all('tabindex="0"' in box and 'role="region"' in box and 'aria-label="' in box for box in boxes)


def test_hits_are_marked_on_both_sides(page: str) -> None:
    text = re.sub(r"\s+", " ", Page(page).text)
    assert "q1 “json dumps”: +0.3303 (A rank 2, B rank 1)" in text  # 1 - (2/log2(3) + 1/2) / (2 + 1/log2(3)) = .3303
    assert "2 q1-a expected, grade 2 About q1-a" in text
    assert "timeout: no answer in 30 s" in text
    assert "boom: index locked" in text


def test_the_same_document_gives_the_same_page(comparison: Comparison) -> None:
    assert render(comparison_document(comparison), "html") == render(comparison_document(comparison), "html")


def test_on_a_platform_that_cannot_draw_the_tables_stay_and_the_page_says_why(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)  # how Python marks a module that cannot be imported
    found = Page(render(comparison_document(comparison), "html"))
    assert found.elements["svg"] == 0
    assert found.text.count(NO_CHARTS) == 1
    assert 'class="picture"' not in render(comparison_document(comparison), "html")
    assert "Changes of rank" in found.text  # the data of a chart that has no other table
    assert found.text.count("B against A. * primary measure") == 1
    load_renderer()


def test_what_was_loaded_at_the_start_draws_and_writes_at_once() -> None:
    code = (
        "import sys, cranfield.reporting.renderers.html as html; html.load_renderer(); before = set(sys.modules);"
        "html._template('blocks.html').render(); html.draw({'data': {'values': []}, 'mark': 'bar'}, ''); print(set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_blocks_of_a_document_are_those_of_its_page(page: str, comparison: Comparison) -> None:
    blocks = str(render_blocks(comparison_document(comparison, preflight=[("plain", "binary search", "on PATH")])))
    assert blocks.startswith('<div class="report">')
    inner = blocks.removeprefix('<div class="report">').removesuffix("</div>").strip()
    start, end = page.index('<section id="query-view"'), page.index("</section>", page.index('id="query-keys"'))
    without = page[:start] + page[end + len("</section>") :]
    assert re.sub(r"\s+", "", inner) in re.sub(r"\s+", "", without)


def test_blocks_for_a_server_say_where_the_queries_are_and_cut_long_tables(comparison: Comparison) -> None:
    document = comparison_document(comparison)
    blocks = str(render_blocks(document, queries=("/c/1/queries", "/c/1/query?a=1&b=2"), most_rows=2))
    assert 'data-index="/c/1/queries" data-query="/c/1/query?a=1&amp;b=2"' in blocks
    assert "data-chunk" not in blocks
    assert re.search(r"\(the first 1 and the last 1 of \d+ rows\)", blocks)
    is_folded = [bool(section.key_figure) for section in document.sections]
    assert blocks.count('<details class="folded">') == sum(is_folded)
    assert sorted(is_folded) == is_folded  # closed sections are last, and the query view is before them
    assert blocks.index("query-view") < blocks.index("folded")
    assert re.search(
        r'<h2 id="provenance-heading">Provenance</h2> <span class="key-figure">[^<]+</span></summary>', blocks
    )
    assert Page(blocks).elements["tr"] < Page(render_html(document)).elements["tr"]


def unpacked(page: str) -> list[Any]:
    """What the query view of a page holds: the index, then parts of the details."""
    packed = re.findall(r'<script type="application/octet-stream" class="query-data">([^<]*)</script>', page)
    return [json.loads(gzip.decompress(base64.b64decode(part))) for part in packed]


def test_every_query_is_packed_into_the_page(page: str, comparison: Comparison) -> None:
    index, documents, *parts = unpacked(page)
    details = [detail for part in parts for detail in part["details"]]
    assert index == json.loads(json.dumps(query_index(comparison)))
    queries = comparison.baseline.testset.queries
    assert [detail["id"] for detail in details] == index["ids"] == [query.id for query in queries]
    whole = query_detail(comparison, "q1")
    for side, packed in zip(whole["sides"], details[0]["sides"], strict=True):
        numbers = packed["hits"]
        kinds = [parts[0]["kinds"][kind] for kind in numbers[1::2]]
        assert [
            {"rank": rank, "id": documents["ids"][number], "title": documents["titles"][number]}
            | kind
            | ({"item": documents["ids"][number]} if kind.get("item") is True else {})
            for rank, (number, kind) in enumerate(zip(numbers[::2], kinds, strict=True), start=1)
        ] == side["hits"]
    assert {name: value for name, value in details[0].items() if name != "sides"} == {
        name: value for name, value in whole.items() if name != "sides"
    }


def test_a_report_that_is_not_about_queries_has_no_data(comparison: Comparison) -> None:
    page = render_html(replace(comparison_document(comparison), queries=None))
    assert unpacked(page) == []
    assert "query-view" not in page[: page.index("<script>")].replace(page[: page.index("</style>")], "")


def test_a_pilot_says_so_on_top_over_each_query_and_at_the_end(pilot: Comparison) -> None:
    text = Page(render(comparison_document(pilot), "html")).text
    assert text.count("PILOT: not for the record") == 3  # and over each query that is opened


def test_one_system_has_its_lowest_queries_and_no_verdict(patterned: Evaluation) -> None:
    page = render(evaluation_document([patterned], by_query=True), "html")
    text = re.sub(r"\s+", " ", Page(page).text)
    assert "Verdict" not in text
    assert "matches ^doc://a, grade 1" in text
    assert "No Judged@10: it is judged by a rule, so no result is unjudged." in text


def test_pages_and_pictures_are_made_with_libraries_imported_late() -> None:
    code = "import sys, cranfield.reporting; print({'jinja2', 'vl_convert', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("path", "href"),
    [
        ("code/report.html", "code/report.html"),
        ("a b/ü?#.html", "a%20b/%C3%BC%3F%23.html"),
        ("javascript:alert(1)", "javascript%3Aalert%281%29"),
        ('"><script>', "%22%3E%3Cscript%3E"),
        ("/etc/passwd", ""),
        ("//elsewhere.example/x", ""),
        ("", ""),
        ("\\\\elsewhere", "%5C%5Celsewhere"),
    ],
)
def test_a_link_leads_to_a_relative_path_or_nowhere(path: str, href: str) -> None:
    cell = Link("<b>code</b>", path)
    assert cell.href == href
    table = Table((Column("test set"),), [(cell,)], "Sets")
    sections = (Section("one", "One", (table,)),)
    shown = render_html(Document("Title", (), sections, lambda: table, dict))
    assert "&lt;b&gt;code&lt;/b&gt;" in shown
    assert (f'<a href="{href}">&lt;b&gt;code&lt;/b&gt;</a>' in shown) == bool(href)
    assert shown.count("<a ") == 2 + bool(href)  # the way to the content, one section, and the cell


def test_the_script_makes_elements_from_text_alone(page: str) -> None:
    script = page[page.rindex("<script>") :]
    assert "DecompressionStream" in script
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc", script)
