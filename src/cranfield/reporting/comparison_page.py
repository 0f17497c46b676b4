"""What a server's page about a comparison shows: its sections as HTML, and the data of its queries.

It takes seconds to make for thousands of queries, and never changes: it is made once, packed, and stored with the comparison. The
number of the comparison is not known then: the HTML has a mark in its place.
"""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from cranfield.reporting.document import Block, Details, Document, HitLists, Link, Table
from cranfield.reporting.documents.comparison import subject_document
from cranfield.reporting.query_data import QueryData, data_json
from cranfield.reporting.renderers.html import render_blocks
from cranfield.reporting.sections.subject import Subject
from cranfield.version import __version__

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from cranfield.evaluation.values import Comparison

MOST_ROWS = 30
"""Of a table of the report in the page: the query view has all queries."""


@dataclass(frozen=True)
class ComparisonPage:
    """The contents of the page of a comparison."""

    content: str
    """Safe HTML."""
    index_json: bytes
    """`query_index` as JSON."""
    details: tuple[bytes, ...]
    """`query_detail` of each query as JSON, in the order of the index."""

    @cached_property
    def _places(self) -> dict[str, int]:
        return {query_id: place for place, query_id in enumerate(json.loads(self.index_json)["ids"])}

    def detail(self, query_id: str) -> dict[str, Any]:
        """As of `query_detail`.

        Raises:
            KeyError: there is no such query.
        """
        found: dict[str, Any] = json.loads(self.details[self._places[query_id]])
        return found


def made_page(comparison: Comparison) -> tuple[str, bytes]:
    """The page of a comparison: its version, and compressed lines of JSON."""
    subject = Subject.of(comparison)
    mark, data = secrets.token_hex(16), QueryData(subject)
    document = _with_query_pages(subject_document(subject), mark)
    addresses = (f"/comparisons/{mark}/queries.json", f"/comparisons/{mark}/query.json")
    content = render_blocks(document, queries=addresses, most_rows=MOST_ROWS)
    head = data_json({"mark": mark, "content": str(content)})
    return page_version(), zlib.compress(b"\n".join((head, data.index_json, *map(data_json, data.details()))))


def unpack_page(packed: bytes, number: int) -> ComparisonPage:
    """The page that `made_page` of this version made, of the comparison of a number."""
    head, index, *details = zlib.decompress(packed).split(b"\n")
    found = json.loads(head)
    return ComparisonPage(found["content"].replace(found["mark"], str(number)), index, tuple(details))


@cache
def page_version() -> str:
    """Of what makes pages, the templates among them: a page of another one is made again."""
    digest = sha256(__version__.encode())
    for each in _sources(files("cranfield.reporting")):
        digest.update(each.read_bytes())
    return digest.hexdigest()


def _sources(folder: Traversable) -> Iterator[Traversable]:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir() and each.name != "__pycache__":
            yield from _sources(each)
        elif each.is_file():
            yield each


def _with_query_pages(document: Document, mark: str) -> Document:
    """The report for a page whose queries have pages of their own: links to them, instead of lists of results."""
    sections = []
    for section in document.sections:
        kept = (each for each in section.blocks if not isinstance(each, Details) or not _is_lists(each))
        sections.append(replace(section, blocks=tuple(_linked(each, mark) for each in kept)))
    return replace(document, sections=tuple(sections))


def _is_lists(block: Details) -> bool:
    return all(isinstance(each, HitLists) for each in block.blocks)


def _linked(block: Block, mark: str) -> Block:
    if not isinstance(block, Table) or not block.columns or block.columns[0].kind != "query id":
        return block
    rows = [(Link(str(query), f"{mark}/queries/{query}"), *rest) for query, *rest in block.rows]
    return replace(block, rows=rows)
