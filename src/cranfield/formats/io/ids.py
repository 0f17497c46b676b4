"""Ids as text and as the bytes they were read from."""

from __future__ import annotations


def id_text(data: bytes) -> str:
    """An id as text; bytes that are not UTF-8 become lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def id_bytes(text: str) -> bytes:
    """The bytes an id was read from. Ties are broken by them; other lone surrogates are kept as they are."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
