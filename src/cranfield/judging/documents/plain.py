"""HTML and Markdown as plain text."""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections import Counter

from cranfield.base.errors import MissingExtraError
from cranfield.config.documents import DocumentFormat, Images
from cranfield.judging.documents.guard import Resolver, system_resolver
from cranfield.judging.documents.values import DocumentError, DocumentFailureKind, Image
from cranfield.judging.documents.web import WebClient

_BLOCK_NAMES = (
    "address article aside blockquote br dd div dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header hr li main nav "
    "ol p pre section summary table td th tr ul"
)
_DROPPED_NAMES = "script style template noscript iframe object embed svg math title head textarea select"
DROPPED = frozenset(_DROPPED_NAMES.split())
"""Elements whose content is no text of the document."""
_TAG = re.compile(r"</?[a-z0-9]+>")
_TITLE = re.compile(r"<title[^<>]*>([^<]*)<", re.IGNORECASE)
_MAX_CHARS = 1_000_000
_MAX_DEPTH = 300
_OPENED_OR_CLOSED = re.compile(r"<(/?)([a-z][a-z0-9]*)", re.IGNORECASE)
_NOT_NESTED_NAMES = (
    "area base br col dd dt hr img input li link meta option p source tbody td tfoot th thead tr track wbr"
)
_NOT_NESTED = frozenset(_NOT_NESTED_NAMES.split())
"""Elements that need no end tag."""
_TITLE_CHARS = 20_000
"""A title is looked for in so many characters at the beginning."""


def plain_text(content: str, kind: DocumentFormat) -> str:
    """The text without markup; Markdown is its own plain text."""
    if kind != "html":
        return content
    try:
        import nh3
    except ImportError:
        raise MissingExtraError.for_extra("reading HTML", "web") from None
    blocks = nh3.clean(
        without_depth(content[:_MAX_CHARS]),
        tags=set(_BLOCK_NAMES.split()),
        clean_content_tags=set(DROPPED),
        attributes={},
        link_rel=None,
    )
    text = html.unescape(_TAG.sub("\n", blocks))
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()


def without_depth(markup: str) -> str:
    """HTML up to where its elements are nested too deeply: the time of a parser is quadratic in the depth."""
    unclosed: Counter[str] = Counter()
    depth = 0
    for found in _OPENED_OR_CLOSED.finditer(markup):
        name = found[2].lower()
        if name in _NOT_NESTED:
            continue
        if not found[1]:
            unclosed[name] += 1
            depth += 1
        elif unclosed[name]:
            unclosed[name] -= 1
            depth -= 1
        if depth > _MAX_DEPTH:
            return markup[: found.start()]
    return markup


def html_title(content: str) -> str:
    """The title of a page; empty without one."""
    found = _TITLE.search(content[:_TITLE_CHARS])
    return " ".join(html.unescape(found[1]).split()) if found else ""


_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
"""First bytes to content type. No SVG: it can hold scripts."""


def read_image(reference: str, config: Images, resolver: Resolver = system_resolver) -> Image:
    """The image that a document names.

    Args:
        reference: a `data:` address, or one of http or https.
        config: the operator's.
        resolver: of host names.

    Raises:
        DocumentError: it cannot be had.
    """
    if reference.startswith("data:"):
        data = _inline(reference, config.max_bytes)
    elif reference.startswith(("http://", "https://")):
        client = WebClient(
            allow=config.allow,
            timeout_s=config.timeout_s,
            max_bytes=config.max_bytes,
            hosts=config.hosts,
            resolver=resolver,
        )
        data = client.get(reference, "image/png, image/jpeg, image/webp, image/gif").body
    else:
        raise DocumentError(DocumentFailureKind.REFUSED, "The image is neither in the record nor on the web.")
    return Image(data, image_type(data))


def _inline(reference: str, most: int) -> bytes:
    head, comma, text = reference.partition(",")
    if not comma or not head.endswith(";base64"):
        raise DocumentError(DocumentFailureKind.REFUSED, "The image is not in Base64.")
    if len(text) > most * 4 / 3 + 4:
        raise DocumentError(DocumentFailureKind.TOO_LARGE, f"The image is larger than {most:,} bytes.")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise DocumentError(DocumentFailureKind.FAILED, "The image is not in Base64.") from None


def image_type(data: bytes) -> str:
    """The content type by the first bytes of an image, whatever the server calls it.

    Raises:
        DocumentError: it is no image that pages show.
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    for start, content_type in _KINDS.items():
        if data.startswith(start):
            return content_type
    raise DocumentError(DocumentFailureKind.REFUSED, "The image is not PNG, JPEG, GIF or WebP.")
