"""What `cranfield init` works with: targets as given, systems and test sets as found, questions that stay open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from cranfield.config.template import REQUEST_PLACEHOLDERS, is_placeholder, placeholders
from cranfield.model import Query

Settings = Mapping[str, Any]
"""The keys of a system, as they stand in cranfield.yaml."""
FIRST_QUERIES = 3
"""Queries of the test set that a system is tried with, at most."""
MAX_ID = 500
"""Characters of a value that patterns are tried on."""
UNLIKELY = "qzxv7f3a91"
"""A word that no document holds."""
QUERY_NAMES = (
    *("query", "q", "text", "question", "search", "search_query", "query_text", "queryText", "searchTerm", "term"),
    *("terms", "keyword", "keywords", "kw", "phrase", "input", "prompt", "s", "wt_query", "search_text"),
)
"""What the parameter of a query is called, the likeliest first."""
K_NAMES = (
    *("k", "limit", "size", "n", "top_k", "topk", "topK", "top_n", "top", "rows", "num", "count", "hits"),
    *("max_results", "maxResults", "num_results", "n_results", "numResults", "per_page", "perPage", "page_size"),
    *("pageSize", "result_count", "max", "nb_results"),
)
"""What the parameter of the number of results is called."""


class Ask(Protocol):
    """Asks a person what could not be found out."""

    def __call__(self, question: str, default: str, choices: Sequence[str] = ()) -> str:
        """The answer; one of `choices`, where there are any."""
        ...


def take_default(question: str, default: str, choices: Sequence[str] = ()) -> str:  # noqa: ARG001 - the signature of `Ask`
    """The default, without a question."""
    return default


@dataclass(frozen=True, slots=True)
class Target:
    """One argument: a file or folder, an address, or a command."""

    given: str
    """As the user wrote it, without the name."""
    kind: Literal["path", "url", "command"]
    name: str = ""
    """The name of the system, from `NAME=TARGET`."""
    argv: tuple[str, ...] = ()
    """Of a command."""
    is_certain: bool = True
    """Whether the command has a `{query}`, and so is a search; if not, it may be an MCP server."""

    @property
    def path(self) -> Path:
        """Of a file or folder."""
        return Path(self.given)


@dataclass(frozen=True, slots=True)
class FoundSystem:
    """A system under test."""

    given: str
    name: str
    """A proposal; made unique later."""
    settings: Settings
    what: str
    """What it is, in a sentence."""
    ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Text of a query that was tried to the ids of its results."""
    notes: tuple[str, ...] = ()
    """What stays open, a sentence each."""
    run: Path | None = None
    """Of a run file."""
    checks: Sequence[Settings] = ()
    """Preflight checks of config files beside its program, which are offered."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the test set expects: it tells the field of the id from other fields."""

    ids: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is expected."""
        return bool(self.ids or self.patterns)

    def count(self, values: Iterable[str]) -> int:
        """How many of some values are expected by a query."""
        return sum(value in self.ids or any(p.search(value[:MAX_ID]) for p in self.patterns) for value in values)


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial needs to know besides the target."""

    folder: Path
    """Folder of the config."""
    queries: tuple[Query, ...] = ()
    """First queries of the test set that have a text."""
    known: Known = field(default_factory=Known)
    ask: Ask = take_default
    k: int = 10
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request over HTTP; secrets as `{env.NAME}`."""

    def texts(self, *first: str) -> tuple[str, ...]:
        """Queries to try, those given first."""
        found = dict.fromkeys([*first, *(query.text for query in self.queries)])
        return tuple(found)[: FIRST_QUERIES + len(first)]


@dataclass(frozen=True, slots=True)
class Shape:
    """How results are read."""

    extract: Mapping[str, Any]
    what: str
    """What was found, in words: ``JSON, results in `hits.hits`, ids in `_id` ``."""
    n_known: int = 0
    """Results that the test set expects."""
    other_ids: tuple[str, ...] = ()
    """Other paths that could be the id, where nothing tells which."""
    rank: tuple[float, ...] = field(default=(), compare=False)


def literal(text: str) -> str:
    """A text of the user with what would be read as an unknown placeholder in double braces."""
    for name in dict.fromkeys(placeholders(text)):
        if not is_placeholder(name, REQUEST_PLACEHOLDERS):
            text = text.replace(f"{{{name}}}", f"{{{{{name}}}}}")
    return text
