"""Ids of queries where a format has none: the rules that make them, and the id of a question from its content."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

from cranfield.model.query import Query, Scalar

IdRule = Literal["content", "row", "text"]
ID_RULES: Mapping[IdRule, str] = {
    "content": "words of the question and a short hash of it",
    "row": "number of the query in the file, from 1",
    "text": "the question itself",
}
"""Rule to what an id is under it. The first is the default."""
DEFAULT_ID_RULE: IdRule = "content"
SLUG_LENGTH = 40
HASH_LENGTH = 10
"""Hexadecimal digits: 40 bits."""
NO_WORDS = "q"
"""Stands for the words of a question that has none in ASCII."""
_NO_WORD = re.compile("[^a-z0-9]+")
_HASHED = b"cranfield query id 1\n"


def question_of(text: str) -> str:
    """A question as its id sees it: in Unicode's composed form, with single blanks."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def content_id(text: str, params: Mapping[str, Scalar] | None = None) -> str:
    """Id of a question from its content alone: printable ASCII without blanks, of `SLUG_LENGTH + HASH_LENGTH + 1` at most.

    Args:
        text: the question. White space around and between its words does not count.
        params: parameters of the query, which make it another question.

    Example:
        >>> content_id("smart merging of single line declarations into blocks")
        'smart-merging-of-single-line-fdf72d8da4'
    """
    question = question_of(text)
    content = question if not params else json.dumps([question, dict(params)], sort_keys=True, ensure_ascii=False)
    number = sha256(_HASHED + content.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
    return f"{_slug(question) or NO_WORDS}-{number}"


def _slug(question: str) -> str:
    """The first words in lower case, accents removed; whole words where the first one is short enough."""
    plain = unicodedata.normalize("NFKD", question.casefold()).encode("ascii", "ignore").decode()
    words = _NO_WORD.sub("-", plain).strip("-")
    if len(words) <= SLUG_LENGTH:
        return words
    cut = words[: SLUG_LENGTH + 1].rpartition("-")[0]
    return cut or words[:SLUG_LENGTH]


def id_of(query: Query) -> str:
    """`content_id` of a query."""
    return content_id(query.text, query.params)


@dataclass(frozen=True)
class QueryIds:
    """What the queries of a set are called under each rule, where its format has no ids."""

    names: Mapping[IdRule, Mapping[str, str]] = field(default_factory=dict)
    """Rule to the id of each query under it to the id that it has in the set. A rule that cannot name them all is absent.
    No rule: as the reader of the format left it, which named the queries by `meta.ids`."""
    digests: Mapping[IdRule, str] = field(default_factory=dict)
    """Rule to the digest of the set as its file has it, under that rule."""
