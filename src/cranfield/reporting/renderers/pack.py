"""The data of the query view, packed into a page: JSON, compressed by gzip, in base64.

Part 0 is the index and part 1 the documents: id and title of each result, once. The others are the details of `CHUNK` queries
each, where a result is two numbers: its document, and its place in the list of how the results of that part were judged. A
browser unpacks the parts that it needs; `static/report/query_source.js` reads what is written here.
"""

from __future__ import annotations

import base64
import gzip
import json
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cranfield.reporting.document import Payload, QueryViewContent

CHUNK = 64
"""Queries that are unpacked at once."""
Document = tuple[str, str]
"""Id and title."""


def pack(queries: QueryViewContent) -> tuple[str, ...]:
    """The parts, each as base64."""
    seen: dict[Document, int] = {}
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

    def __init__(self, details: list[Payload], seen: dict[Document, int]) -> None:
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
