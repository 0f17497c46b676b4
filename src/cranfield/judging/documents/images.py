"""Images of documents: part of a record, or on a host that the operator's file names."""

from __future__ import annotations

import base64
import binascii

from cranfield.config.documents import Images
from cranfield.judging.documents.guard import Resolver, system_resolver
from cranfield.judging.documents.values import DocumentError, DocumentFailureKind, Image
from cranfield.judging.documents.web import WebClient

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
        raise DocumentError(DocumentFailureKind.REFUSED, "The image is neither part of the record nor on the web.")
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
