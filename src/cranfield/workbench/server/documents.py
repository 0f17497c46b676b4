"""Documents as HTML that is safe to show: Markdown and HTML sanitised, templates in a sandbox, terms marked.

Whatever the source, template and format, the last steps are the same: nh3 with a list of allowed elements, then the marks.
"""

from __future__ import annotations

import html
import logging
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from cranfield.base.errors import shorten
from cranfield.config.documents import DocumentFormat
from cranfield.judging.documents.plain import DROPPED, without_depth
from cranfield.judging.documents.values import DocumentFailureKind, DocumentProblem, DocumentText
from cranfield.workbench.server.highlight import highlight

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jinja2 import Template
    from markdown_it import MarkdownIt

    from cranfield.books.store.values import BookInfo

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
LOG = logging.getLogger(__name__)
_CUT = "Only the first {most:,} of {all:,} characters are shown."


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
    """`DocumentTexts.image` may have it."""
    problem: str | None
    """Why it cannot be shown, as a sentence."""
    problem_kind: str | None
    """A `DocumentFailureKind`."""
    document: DocumentText


def guideline_html(book: BookInfo) -> Markup:
    """The guidelines of a book, which are Markdown."""
    return rendered(DocumentText("", "", "", book.guideline, "markdown", "")).html


def rendered(document: DocumentText, terms: str = "") -> RenderedDocument:
    """A document as HTML; never raises for a document.

    Args:
        document: its text, or the problem.
        terms: text of the query, whose words are marked by `<mark>`.
    """
    problem = document.problem
    body = Markup("")
    if problem is None:
        try:
            body = highlight(_body(document), terms)
        except Exception:  # a document of any content must not stop the page of a rater
            LOG.exception("document %s cannot be shown", shorten(document.doc_id))
            problem = DocumentProblem(DocumentFailureKind.FAILED, "This document cannot be shown.")
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


def _body(document: DocumentText) -> Markup:
    """The whole document, sanitised."""
    body = sanitise(_RENDERERS[document.format](document.content[:MOST_CHARS], document.first_line))
    if len(document.content) > MOST_CHARS:
        body += Markup("<p>{}</p>").format(_CUT.format(most=MOST_CHARS, all=len(document.content)))
    if document.template is None:
        return body
    values = {
        "id": document.doc_id,
        "title": document.title,
        "text": document.text[:MOST_CHARS],
        "url": document.url,
        "fields": document.values,
        "body": body,
    }
    try:
        return sanitise(_filled(_template(document.template), values))
    except Exception as error:  # a template of the operator, with values of any kind
        LOG.exception("template for document %s", shorten(document.doc_id))
        return Markup("<p>The template of this source failed: {}.</p>").format(type(error).__name__) + body


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


def sanitise(markup: str) -> Markup:
    """HTML with allowed elements and attributes alone; links open in a page of their own and name no referrer."""
    import nh3

    clean = nh3.clean(
        _H1.sub(r"\1h2", without_depth(markup)),
        tags=set(TAGS),
        clean_content_tags=set(DROPPED),
        attributes={name: set(allowed) for name, allowed in ATTRIBUTES.items()},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
        allowed_classes={"pre": {"code", "text"}, "span": {"line"}},
    )
    return Markup(clean)  # noqa: S704  sanitised right before


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
