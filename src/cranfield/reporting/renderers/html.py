"""A Document as one HTML file that needs nothing else, and its blocks for the pages of a server.

The file has one style sheet and one script, both inside it, and a policy that allows these two and no request. Without the script
it reads the same; with it tables sort and every query opens. Pictures are drawn by vl-convert while the page is made, without a
network and without a browser. What it returns is taken apart and put together again from a list of allowed elements and
attributes: no script, no style, no link, no id that another picture could have too.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any

from cranfield.base.words import printable, printable_lines
from cranfield.reporting.document import (
    Block,
    Chart,
    Details,
    Document,
    Payload,
    QueryViewContent,
    Section,
    with_fewer_rows,
)

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

    from jinja2 import Environment, Template
    from markupsafe import Markup

_CODE = re.compile("`([^`]+)`")
"""A command or a name in a sentence."""
NO_CHARTS = "This report has tables in place of charts: vl-convert-python, which draws charts, is not installed."
VEGA_LITE = "5.20"
SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "g", "path", "line", "rect", "circle", "text", "tspan"}
ATTRIBUTES = {
    "d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "r", "cx", "cy", "width", "height", "viewBox", "transform",
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-linecap", "stroke-miterlimit",
    "stroke-dasharray", "opacity", "text-anchor", "font-size", "font-weight",
}  # fmt: skip
MAX_ROWS = 2000
"""Rows of a table in a file that has the query view, which has all queries."""
MAX_CHARS, PIECE = 1000, 100
"""Characters of a text that are shown at first, and without a place where the line may break; as in `static/report/text.js`."""
CHUNK = 64
"""Queries that are unpacked at once."""
PackedDocument = tuple[str, str]
"""Id and title."""
LEADING_SECTIONS = 3
"""Sections of which the first picture stands in the panel of the verdict."""
MODULES = (
    "report/text", "report/tables", "report/charts", "report/folded", "report/query_source", "report/query_detail",
    "report/query_view", "report",
)  # fmt: skip
"""Modules of the script of a report, each after those that it imports; no two define the same name."""
LIGHT_THEMES = ('[data-jp-theme-light="true"]', ".vscode-light", 'html[theme="light"]')
DARK_THEMES = ('[data-jp-theme-light="false"]', ".vscode-dark", 'html[theme="dark"]')
"""Ancestors of a card in JupyterLab, VS Code and Colab."""
_COMMENTS = re.compile(r"/\*.*?\*/\n?", re.DOTALL)
_COLOURS = re.compile(r"(?:--[\w-]+: [^;{}]+;\s*)+")
_IDS = re.compile(r' (?:id|aria-labelledby)="[^"]*"')
_MODULE_LINES = re.compile(r"^import .*\n|^export ", re.MULTILINE)
_LONG_NUMBER = re.compile(r"\d+\.\d{3,}")


@dataclass(frozen=True, slots=True)
class _View:
    """Where the query view is on the page, and where its data are."""

    before: str
    """Name of the section that follows it; empty: it is the last one."""
    chunk: int = 0
    """Queries in a packed part; 0 where the data are on a server."""
    index: str = ""
    query: str = ""
    """Addresses on the server."""


def render_html(document: Document) -> str:
    """The whole page."""
    style = _read("static/report.css") + _read("renderers/page.css")
    # The modules of `static/report.js` as one script, for a page that requests nothing.
    text = "".join(_read(f"static/{name}.js") for name in MODULES)
    script = f'"use strict";\n{{\n{_MODULE_LINES.sub("", text)}}}\n'
    packed = pack(document.queries) if document.queries else ()
    if packed:
        document = _with_fewer_rows(document, MAX_ROWS)
    page = _template("page.html").render(
        document=document,
        style=style,
        script=script,
        policy=content_policy(style, script),
        view=_View(_place_of_view(document), CHUNK) if packed else None,
        packed=packed,
    )
    return page.strip() + "\n"


def static_page(name: str, **values: object) -> str:
    """A page without a script: `renderers/NAME.html` with the style of reports and that of `renderers/NAME.css`."""
    style = _read("static/report.css") + _read("renderers/page.css") + _read(f"renderers/{name}.css")
    return _template(f"{name}.html").render(style=style, policy=content_policy(style, ""), **values).strip() + "\n"


def render_card(document: Document) -> str:
    """A Document as a card in a notebook: its own style, no script, no request, and the theme of the notebook where it has one.

    A notebook shows many cards on one page: no element has an id.
    """
    card = _template("card.html").render(document=document, style=_card_style())
    return _IDS.sub("", card).strip() + "\n"


@cache
def _card_style() -> str:
    """The style of the blocks, in the colours of the notebook's theme, or else of the reader's."""
    style = _COMMENTS.sub("", _read("static/report.css"))
    light, dark, *_ = _COLOURS.findall(style)
    themed = (
        f"{', '.join(f'{where} .report.card' for where in places)} {{ {colours} }}"
        for places, colours in ((LIGHT_THEMES, light), (DARK_THEMES, dark))
    )
    return "\n".join((style, _COMMENTS.sub("", _read("renderers/card.css")), *themed))


def render_blocks(
    document: Document,
    *,
    queries: tuple[str, str] | None = None,
    most_rows: int | None = None,
) -> Markup:
    """Verdict and sections of a Document, for a page with a frame of its own.

    The page links the style `static/report.css` and the script `static/report.js`, a module.

    Args:
        document: the report.
        queries: the addresses that answer `query_index`, and `query_detail` for `?id=`; None leaves the query view out.
        most_rows: rows of a table that are shown; None: all.
    """
    from markupsafe import Markup

    if most_rows is not None:
        document = _with_fewer_rows(document, most_rows)
    view = _View(_place_of_view(document), 0, *queries) if queries else None
    body = str(_template("blocks.html").module.sections(document, view, _first_figure(document)))  # type: ignore[attr-defined]  # a macro of the template
    return Markup('<div class="report">\n{}\n</div>').format(Markup(body))  # noqa: S704 - escaped by the template


def _with_fewer_rows(document: Document, most: int) -> Document:
    sections = (replace(each, blocks=with_fewer_rows(each.blocks, most)) for each in document.sections)
    return replace(document, sections=tuple(sections))


def _place_of_view(document: Document) -> str:
    """The section before which queries are found one by one: the first one that is closed."""
    return next((section.name for section in document.sections if section.key_figure), "")


@cache
def _read(name: str) -> str:
    return (files("cranfield.reporting") / name).read_text(encoding="utf-8")


def content_policy(style: str, script: str) -> str:
    """The Content-Security-Policy: nothing but this very style sheet, this very script, and the empty icon."""
    of_style, of_script = (base64.b64encode(sha256(text.encode()).digest()).decode("ascii") for text in (style, script))
    return (
        f"default-src 'none'; style-src 'sha256-{of_style}'; script-src 'sha256-{of_script}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _template(name: str) -> Template:
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup, escape

    def safe(value: object) -> object:
        """Every text of the page passes here before it is escaped."""
        return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=safe,
        loader=FunctionLoader(lambda name: _read(f"renderers/{name}")),
        auto_reload=False,
    )
    environment.filters["cell"] = lambda cell, column: column.text(cell)
    environment.filters["long"], environment.filters["cut"] = _long, _cut
    environment.filters["tone"] = lambda cell: getattr(cell, "tone", "")
    environment.filters["shade"] = _shade
    environment.filters["is_shaded"] = lambda table: any(_shade(cell) for row in table.rows for cell in row)
    environment.filters["href"] = lambda cell: getattr(cell, "href", "")
    environment.filters["lines"] = lambda text: Markup("{}").format(escape(printable_lines(text)))
    environment.filters["code"] = lambda text: Markup("").join(
        Markup("<code>{}</code>").format(safe(part)) if place % 2 else escape(safe(part))
        for place, part in enumerate(_CODE.split(text))
    )
    environment.filters["pictures"], environment.filters["has_figures"] = _pictures, _has_figures
    environment.filters["first_figure"] = _first_figure
    environment.globals["no_charts"] = NO_CHARTS
    environment.globals["can_draw"] = can_draw
    return environment


def _cut(text: str) -> str:
    """A text that is cut where pages are no longer read."""
    text = printable(text)
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"


def _long(text: str) -> str:
    """The same with all of it in details, in pieces between which a line may break.

    A browser takes minutes to lay out a word of 100,000 characters in some scripts, or with so many accents.
    """
    from markupsafe import Markup

    whole, shown = printable(text), _cut(text)
    if shown == whole:
        return shown
    pieces = Markup("<wbr>").join(whole[at : at + PIECE] for at in range(0, len(whole), PIECE))
    details = Markup(
        ' <details class="long"><summary>All {:,} characters</summary><span class="whole">{}</span></details>'
    )
    return Markup("{}").format(shown) + details.format(len(whole), pieces)


def _shade(cell: object) -> str:
    """The class of a cell that is coloured by its distance from the mean of its row: `above-3`, `below-1`."""
    distance = getattr(cell, "distance", 0)
    return f"{'above' if distance > 0 else 'below'}-{abs(distance)}" if distance else ""


def can_draw() -> bool:
    """Whether the library that draws is installed; for some platforms it has no wheel."""
    try:
        import vl_convert  # noqa: F401  whether it is there
    except ImportError:
        return False
    return True


def _pictures(figure: Chart) -> tuple[Markup, ...]:
    """The chart for the page and for the phone."""
    from markupsafe import Markup

    return tuple(Markup(draw(spec, printable(figure.alt))) for spec in (figure.spec, figure.narrow_spec))  # noqa: S704 - cleaned by `draw`


def _has_figures(part: Document | Section | Block) -> bool:
    if isinstance(part, Document):
        return any(map(_has_figures, part.sections))
    return isinstance(part, Chart) or (isinstance(part, Section | Details) and any(map(_has_figures, part.blocks)))


def _first_figure(document: Document) -> Chart | None:
    """The picture that stands in the panel of the verdict and not in its section, where that is open and has more to show."""
    if document.verdict is None or not can_draw():
        return None
    opened = [section for section in document.sections if not section.key_figure][:LEADING_SECTIONS]
    blocks = [block for section in opened if len(section.blocks) > 1 for block in section.blocks]
    return next((block for block in blocks if isinstance(block, Chart)), None)


def load_renderer() -> None:
    """Load the templates and what draws, once: the first page of a process would take a second more than the next."""
    _template("blocks.html")
    with suppress(ImportError):
        draw({"data": {"values": []}, "mark": "point"}, "")


def draw(spec: Mapping[str, Any], label: str) -> str:
    """The picture as an `<svg>` element.

    Args:
        spec: Vega-Lite, with its data inside.
        label: what it shows, for readers who do not see it.
    """
    return _drawn(json.dumps(spec), label)


@lru_cache(maxsize=64)
def _drawn(spec: str, label: str) -> str:
    """The same from the specification as JSON: a server shows a report many times."""
    from xml.etree import ElementTree as ET

    import vl_convert

    drawn = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[])
    root = ET.fromstring(drawn)  # noqa: S314 - what our own renderer wrote, not what a user sent
    view_box = root.get("viewBox", "0 0 1 1")
    _clean(root)
    role = "group" if _link(root) else "img"  # what is in an image cannot be focused
    root.attrib = {"viewBox": view_box, "role": role, "aria-label": label, "width": root.get("width", "")}
    return ET.tostring(root, encoding="unicode")


def _clean(root: ET.Element) -> None:
    """Remove, in place, everything but the allowed elements and attributes, and what shows nothing."""
    from cranfield.reporting.charts.spec import TIP, ZERO_WIDTH

    for element in reversed(list(root.iter())):  # children before their parents
        element[:] = [child for child in element if _is_visible(child)]
        element.tag = element.tag.removeprefix(SVG)
        words, *leads = element.get("aria-label", "").split(TIP)
        tips = {"data-tip": words} if leads else {}
        tips |= {name: to for name, to in zip(("data-q", "href"), leads, strict=False) if to}
        element.attrib = tips | {
            name: _LONG_NUMBER.sub(lambda found: f"{float(found.group()):.2f}", value)
            for name, value in element.attrib.items()
            if name in ATTRIBUTES or name == "display"
        }
        element.text, element.tail = (element.text or "").replace(ZERO_WIDTH, ""), None


def _link(root: ET.Element) -> bool:
    """Put each mark that leads to an address into a link, in place; false where there is none."""
    from xml.etree import ElementTree as ET

    found = [(parent, child) for parent in root.iter() for child in parent if "href" in child.attrib]
    for parent, mark in found:
        words = mark.attrib.pop("data-tip", "")
        link = ET.Element("a", {"href": mark.attrib.pop("href"), "data-tip": words, "aria-label": words})
        title = ET.SubElement(mark, "title")
        title.text = words
        parent[list(parent).index(mark)] = link
        link.append(mark)
    return bool(found)


def _is_visible(element: ET.Element) -> bool:
    """Whether a cleaned element is allowed and shows something: Vega draws an empty frame around every group."""
    if element.tag not in ELEMENTS or element.attrib.pop("display", None) == "none":
        return False
    if element.tag == "path":
        return any(element.get(paint, "none") != "none" for paint in ("fill", "stroke"))
    return element.tag != "g" or len(element) > 0


def pack(queries: QueryViewContent) -> tuple[str, ...]:
    """The data of the query view, packed into a page: JSON, compressed by gzip, each part in base64.

    Part 0 is the index and part 1 the documents: id and title of each result, once. The others are the details of `CHUNK` queries
    each, where a result is two numbers: its document, and its place in the list of how the results of that part were judged. A
    browser unpacks the parts that it needs; `static/report/query_source.js` reads what is written here.
    """
    seen: dict[PackedDocument, int] = {}
    details = iter(queries.details())
    chunks = []
    while chunk := list(islice(details, CHUNK)):
        chunks.append(_Chunk(chunk, seen))
    # Neighbours in the order of the ids are alike, and take less room.
    ordered = sorted(range(len(seen)), key=(documents := list(seen)).__getitem__)
    number = {old: new for new, old in enumerate(ordered)}
    table = {name: [documents[old][at] for old in ordered] for at, name in enumerate(("ids", "titles"))}
    return tuple(map(_packed, (queries.index(), table, *(chunk.record(number) for chunk in chunks))))


def _packed(part: Mapping[str, Any]) -> str:
    """ASCII, because any text can be written so, a half of a character too."""
    text = json.dumps(part, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode("ascii")


class _Chunk:
    """The details of some queries, their results as numbers."""

    def __init__(self, details: list[Payload], seen: dict[PackedDocument, int]) -> None:
        self.kinds: dict[tuple[tuple[str, Any], ...], int] = {}
        self.seen = seen
        self.details = [
            dict(detail) | {"sides": [dict(side) | {"hits": list(self._hits(side))} for side in detail["sides"]]}
            for detail in details
        ]

    def _hits(self, side: Mapping[str, Any]) -> Iterator[int]:
        for hit in side["hits"]:
            rest = {name: value for name, value in hit.items() if name not in {"rank", "id", "title"}}
            if rest.get("item") == hit["id"]:
                rest["item"] = True
            yield self.seen.setdefault((hit["id"], hit["title"]), len(self.seen))
            yield self.kinds.setdefault(tuple(rest.items()), len(self.kinds))

    def record(self, number: Mapping[int, int]) -> dict[str, Any]:
        """The part, with the final numbers of the documents."""
        for detail in self.details:
            for side in detail["sides"]:
                side["hits"][::2] = map(number.__getitem__, side["hits"][::2])
        return {"kinds": list(map(dict, self.kinds)), "details": self.details}
