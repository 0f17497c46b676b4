"""Documents as HTML that is safe to show: Markdown and HTML sanitised, templates in a sandbox, terms marked.

Whatever the source, template and format, the last steps are the same: nh3 with a list of allowed elements, then the marks.
"""

from __future__ import annotations

import html
import logging
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from cranfield.base.errors import shorten
from cranfield.base.words import printable
from cranfield.config.documents import DocumentFormat
from cranfield.judging.documents.records import DROPPED, without_depth
from cranfield.judging.documents.values import DocumentFailureKind, DocumentProblem, DocumentText

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jinja2 import Template
    from markdown_it import MarkdownIt

    from cranfield.books.store.values import BookInfo


MAX_TERMS = 40
MAX_MARKS = 500
"""Marks in one document: more help no reader."""
_LONGEST_TERM = 64
_TAG = re.compile(r'(<(?:[^<>"]|"[^"]*")*>)')
"""A tag as nh3 writes it: attributes are in double quotes."""
_WORD = re.compile(r"\w+")
_NO_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts that write words without spaces between them: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
_UNSPACED = re.compile(f"[{_NO_SPACES}]")
_FUNCTION_WORD_TEXT = (
    "a an and are as at be by can do does for from has have how i in is it my not of on or that the this to was what "
    "when where which who why will with you your"
)
_FUNCTION_WORDS = frozenset(_FUNCTION_WORD_TEXT.split())


def query_terms(query: str) -> list[str]:
    """The words of a query to mark, folded, the longest first; function words only where there is no other."""
    folded, _ = _folded(query[: 20 * _LONGEST_TERM])
    words = [word for word in dict.fromkeys(_WORD.findall(folded)) if len(word) <= _LONGEST_TERM]
    content = [word for word in words if word not in _FUNCTION_WORDS] or words
    return sorted(content[:MAX_TERMS], key=lambda word: (-len(word), word))


def highlight(markup: Markup, query: str) -> Markup:
    """Sanitised HTML with the terms of a query in `<mark>`, whatever their case and accents are.

    Args:
        markup: as nh3 or `escape` writes it. Tags are not changed, text is escaped anew.
        query: its text.
    """
    terms = query_terms(query)
    if not terms:
        return markup
    spaced = "|".join(re.escape(term) for term in terms if not _UNSPACED.search(term))
    unspaced = [re.escape(term) for term in terms if _UNSPACED.search(term)]
    alternatives = ([rf"(?<!\w)(?:{spaced})(?!\w)"] if spaced else []) + unspaced
    pattern = re.compile("|".join(alternatives))
    left = MAX_MARKS
    parts = _TAG.split(markup)
    for index in range(0, len(parts), 2):  # between two tags
        if left > 0 and parts[index]:
            parts[index], n_marks = _marked(html.unescape(parts[index]), pattern, left)
            left -= n_marks
    return Markup("".join(parts))  # noqa: S704  the tags of `markup`, and text that is escaped


def _marked(text: str, pattern: re.Pattern[str], most: int) -> tuple[str, int]:
    """A text with marks, escaped, and their number."""
    folded, places = _folded(text)
    pieces: list[str] = []
    end = n_marks = 0
    for found in pattern.finditer(folded):
        if n_marks == most:
            break
        start, stop = places[found.start()], places[found.end()]
        pieces += [html.escape(text[end:start]), "<mark>", html.escape(text[start:stop]), "</mark>"]
        end = stop
        n_marks += 1
    return "".join([*pieces, html.escape(text[end:])]), n_marks


def _folded(text: str) -> tuple[str, list[int]]:
    """A text without case and accents, and for each of its characters, and its end, the place in the original."""
    folded: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        plain = char.lower() if char.isascii() else _plain(char)
        folded.append(plain)
        places += [place] * len(plain)
    return "".join(folded), [*places, len(text)]


def _plain(char: str) -> str:
    """A character without its accents, in lower case; nothing for an accent by itself."""
    return "".join(part for part in unicodedata.normalize("NFKD", char).casefold() if not unicodedata.combining(part))


MAX_CHARS = 200_000
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
    body = sanitise(_RENDERERS[document.format](document.content[:MAX_CHARS], document.first_line))
    if len(document.content) > MAX_CHARS:
        body += Markup("<p>{}</p>").format(_CUT.format(most=MAX_CHARS, all=len(document.content)))
    if document.template is None:
        return body
    values = {
        "id": document.doc_id,
        "title": document.title,
        "text": document.text[:MAX_CHARS],
        "url": document.url,
        "fields": document.values,
        "body": body,
    }
    try:
        # What a template gives, up to a length.
        template = _template(document.template)
        pieces: list[str] = []
        length = 0
        for piece in template.generate(values):
            pieces.append(piece)
            length += len(piece)
            if length > 4 * MAX_CHARS:
                break
        return sanitise("".join(pieces))
    except Exception as error:  # a template of the operator, with values of any kind
        LOG.exception("template for document %s", shorten(document.doc_id))
        return Markup("<p>The template of this source failed: {}.</p>").format(type(error).__name__) + body


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

Place = tuple[str | int, ...]
"""Part of a request, then names and positions in it: `("body", "entries", 0, "key")`."""
_UNFIT = re.compile("[\x00\ud800-\udfff]")
"""What neither PostgreSQL, nor the name of a file, nor UTF-8 can hold."""


def unfit_texts(texts: Iterable[tuple[Place, object]]) -> Iterator[dict[str, Any]]:
    """The texts that no database and no answer can hold, as the framework reports what is wrong with a request.

    Args:
        texts: place in the request to its value, as JSON has it.
    """
    waiting = [*texts]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            waiting += (((*place, name), inner) for name, inner in value.items())
            waiting += (((*place, name), name) for name in value)
        elif isinstance(value, list):
            waiting += (((*place, number), inner) for number, inner in enumerate(value))
        elif isinstance(value, str) and _UNFIT.search(value):
            shown = tuple(printable(each) if isinstance(each, str) else each for each in place)
            hint = "remove U+0000 and unpaired surrogates"
            yield {
                "type": "text",
                "loc": shown,
                "msg": "the text contains characters that cannot be stored",
                "ctx": {"hint": hint},
            }
