"""Documents as HTML that is safe to show: Markdown and HTML sanitised, templates in a sandbox, terms marked.

Whatever the source, template and format, the last steps are the same: nh3 with a list of allowed elements, then the marks.
"""

from __future__ import annotations

import html
import logging
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

from markupsafe import Markup

from cranfield.config.documents import DocumentFormat
from cranfield.errors import shorten
from cranfield.judging.documents.plain import DROPPED, without_depth
from cranfield.judging.documents.texts import DocumentTexts
from cranfield.judging.documents.values import DocumentProblem, DocumentText, FailureKind, Image
from cranfield.server.highlight import highlight

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jinja2 import Template
    from markdown_it import MarkdownIt

    from cranfield.judging.store.values import BookInfo

MOST_CHARS = 200_000
"""Characters of a document that are shown."""
_TAG_NAMES = (
    "a abbr article b blockquote br caption cite code col colgroup dd del details dfn div dl dt em figcaption figure "
    "footer h2 h3 h4 h5 h6 header hr i ins kbd li ol p pre q s samp section small span strong sub summary sup table "
    "tbody td tfoot th thead time tr u ul var wbr"
)
TAGS = frozenset(_TAG_NAMES.split())
"""Elements of a document. No image, form, style, script, frame or id: headings begin below that of the page."""
ATTRIBUTES = {
    "a": {"href"},
    "*": {"lang", "dir", "title"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "ol": {"start"},
    "span": {"data-line"},
}
_H1 = re.compile(r"(</?)h1\b", re.IGNORECASE)
_log = logging.getLogger(__name__)
_CUT = "Only the first {most:,} of {all:,} characters are shown."


class Item(Protocol):
    """An item of a book, as far as its document is shown."""

    @property
    def doc_id(self) -> str:
        """Id of the document."""
        ...

    @property
    def fields(self) -> Mapping[str, object]:
        """What the runs give."""
        ...


@dataclass(frozen=True, slots=True)
class RenderedDocument:
    """A document as a page shows it."""

    title: str
    """Text, not HTML."""
    html: Markup
    """Safe; empty with a problem."""
    digest: str
    """For `SaveRequest.doc_digest`; empty with a problem."""
    open_url: str | None
    """http or https."""
    has_image: bool
    """`DocumentPages.image` may have it."""
    problem: str | None
    """Why it cannot be shown, as a sentence."""
    problem_kind: str | None
    """A `FailureKind`."""
    document: DocumentText


class DocumentPages:
    """Documents as HTML. Safe to use in several threads."""

    def __init__(self, texts: DocumentTexts) -> None:
        self.texts = texts

    def render(self, item: Item, *, terms: str = "") -> RenderedDocument:
        """The document of an item; never raises for a document.

        Args:
            item: of a book.
            terms: text of the query, whose words are marked by `<mark>`.
        """
        return rendered(self.texts.get(item.doc_id, item.fields), terms)

    def image(self, item: Item) -> Image:
        """The image of an item; never raises for a document."""
        return self.texts.image(item.doc_id, item.fields)

    def close(self) -> None:
        """End what sources have open."""
        self.texts.close()


def guideline_html(book: BookInfo) -> Markup:
    """The guidelines of a book, which are Markdown."""
    return rendered(DocumentText("", "", "", book.guideline, "markdown", "")).html


def rendered(document: DocumentText, terms: str = "") -> RenderedDocument:
    """A document as HTML."""
    problem = document.problem
    body = Markup("")
    if problem is None:
        try:
            body = Markup(highlight(_body(document), terms))  # noqa: S704  sanitised right before
        except Exception:  # noqa: BLE001  a document of any content must not stop the page of a rater
            _log.warning("document %s cannot be shown", shorten(document.doc_id), exc_info=True)
            problem = DocumentProblem(FailureKind.FAILED, "This document cannot be shown.")
    return RenderedDocument(
        document.title,
        body,
        document.digest if problem is None else "",
        document.url or None,
        bool(document.image),
        None if problem is None else problem.message,
        None if problem is None else problem.kind.value,
        document,
    )


def _body(document: DocumentText) -> str:
    """The whole document, sanitised."""
    body = sanitise(_as_html(document.content[:MOST_CHARS], document.format, document.first_line))
    if len(document.content) > MOST_CHARS:
        body += f"<p>{_CUT.format(most=MOST_CHARS, all=len(document.content))}</p>"
    if document.template is None:
        return body
    values = {
        "id": document.doc_id,
        "title": document.title,
        "text": document.text[:MOST_CHARS],
        "url": document.url,
        "fields": document.values,
        "body": Markup(body),  # noqa: S704  sanitised right before
    }
    try:
        return sanitise(_filled(_template(document.template), values))
    except Exception as error:  # noqa: BLE001  a template of the operator, with values of any kind
        reason = html.escape(f"The template of this source failed: {type(error).__name__}.")
        return f"<p>{reason}</p>{body}"


def _filled(template: Template, values: Mapping[str, object]) -> str:
    """What a template gives, up to a length."""
    pieces: list[str] = []
    length = 0
    for piece in template.generate(values):
        pieces.append(piece)
        length += len(piece)
        if length > 4 * MOST_CHARS:
            break
    return "".join(pieces)


@cache
def _template(text: str) -> Template:
    from jinja2 import ChainableUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(autoescape=True, undefined=ChainableUndefined).from_string(text)


def sanitise(markup: str) -> str:
    """HTML with allowed elements and attributes alone; links open in a page of their own and name no referrer."""
    import nh3

    return nh3.clean(
        _H1.sub(r"\1h2", without_depth(markup)),
        tags=set(TAGS),
        clean_content_tags=set(DROPPED),
        attributes={name: set(allowed) for name, allowed in ATTRIBUTES.items()},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
        allowed_classes={"pre": {"code", "text"}, "span": {"line"}},
    )


def _as_html(content: str, kind: DocumentFormat, first_line: int) -> str:
    return _RENDERERS[kind](content, first_line)


def _text(content: str, _: int) -> str:
    return f'<pre class="text">{html.escape(content)}</pre>'


def _code(content: str, first_line: int) -> str:
    lines = content.removesuffix("\n").split("\n")
    rows = (
        f'<span class="line" data-line="{number}">{html.escape(line)}\n</span>'
        for number, line in enumerate(lines, start=first_line)
    )
    return f'<pre class="code"><code>{"".join(rows)}</code></pre>'


def _html(content: str, _: int) -> str:
    return content


def _markdown(content: str, _: int) -> str:
    return str(_markdown_parser().render(content))


@cache
def _markdown_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 30}).enable(["table", "strikethrough"])


_RENDERERS: Mapping[DocumentFormat, Callable[[str, int], str]] = {
    "text": _text,
    "markdown": _markdown,
    "html": _html,
    "code": _code,
}
