"""Ids of queries where a format has none: each is made from the question, whatever row it stands in.

Other tools name such queries by their texts or by their rows: what runs and tables name so is matched with the ids.
"""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TypeVar

from cranfield.model.kinds import Scalar
from cranfield.model.query import Query
from cranfield.model.testset import TestSet

T = TypeVar("T")
SLUG_LENGTH = 40
HASH_LENGTH = 10
"""Hexadecimal digits: 40 bits."""
NO_WORDS = "q"
"""Stands for the words of a question that has none in ASCII."""
BY_TEXT = "names queries by their texts; they were matched with the ids of the set"
BY_ROW = (
    "names queries by row number; they were matched with the rows of the set. The matches are wrong if rows were "
    "inserted, removed or moved since then"
)
"""Go on after the name of a file."""
_NO_WORD = re.compile("[^a-z0-9]+")
_HASHED = b"cranfield query id 1\n"
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What no id has."""


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


def needs_no_ids(testset: TestSet) -> bool:
    """Whether a format without ids makes the ids of a set again when it is read."""
    return all(query.id == id_of(query) for query in testset.queries)


def is_unfit(text: str) -> bool:
    """Whether a text has line breaks or control characters, so that it is no id."""
    return bool(_UNFIT.search(text))


def text_ids(texts: Sequence[str]) -> list[str]:
    """Texts as ids, in order; each one once, and by content where it is no id."""
    ids: dict[int, str] = {}
    taken: set[str] = set()
    for number, text in enumerate(texts):
        if text not in taken and not is_unfit(text):
            ids[number] = text
            taken.add(text)
    for number, text in enumerate(texts):
        if number not in ids:
            base = content_id(text) if is_unfit(text) else text
            names = itertools.chain([base], (f"{base} ({n})" for n in itertools.count(2)))
            ids[number] = next(name for name in names if name not in taken)
            taken.add(ids[number])
    return [ids[number] for number in range(len(texts))]


def text_names(testset: TestSet) -> dict[str, str]:
    """Texts that one query has, and that are no id of the set, to the id of the query."""
    counts = Counter(query.text for query in testset.queries if query.text)
    known = testset.by_id
    return {query.text: query.id for query in testset.queries if counts[query.text] == 1 and query.text not in known}


def row_names(testset: TestSet) -> dict[str, str]:
    """Row numbers in the file to the ids of queries, where the file of the set has no ids; else empty."""
    return {str(row): query_id for row, query_id in enumerate(testset.made_ids, start=1)}


def are_rows(testset: TestSet, given: Collection[str]) -> bool:
    """Whether all given ids are rows of the file, up to the last one: with fewer, the file may have had other rows."""
    rows = row_names(testset)
    return str(len(rows)) in given and all(name in rows for name in given)


def ids_by_text(testset: TestSet, given: Collection[str]) -> dict[str, str]:
    """Given texts of queries to their ids; empty where the file of the set has ids and one of the given names is one."""
    if not testset.made_ids and any(name in testset.by_id for name in given):
        return {}
    known = text_names(testset)
    return {name: known[name] for name in given if name in known and known[name] not in given}


def ids_by_row(testset: TestSet, given: Collection[str]) -> dict[str, str]:
    """Given rows to the ids of their queries; empty where one of them is no row, or the last row is not among them."""
    return row_names(testset) if are_rows(testset, given) else {}


def renamed(testset: TestSet, names: Mapping[str, str]) -> TestSet:
    """A set with other ids: judgments, targets, ratings and labels go along.

    Args:
        testset: the set.
        names: id of a query to its new id; others keep theirs.
    """

    def moved(values: Mapping[str, T]) -> dict[str, T]:
        return {names.get(query_id, query_id): value for query_id, value in values.items()}

    return replace(
        testset,
        queries=tuple(replace(query, id=names.get(query.id, query.id)) for query in testset.queries),
        grades=moved(testset.grades),
        targets=moved(testset.targets),
        groups=moved(testset.groups),
        files=moved(testset.files),
        legacy=moved(testset.legacy),
        forbidden=moved(testset.forbidden),
        ratings=moved(testset.ratings),
        labels=moved(testset.labels),
    )


def ids_digest(query_ids: Iterable[str]) -> str:
    """Digest of a set of ids.

    Example:
        >>> ids_digest(["q2", "q1"]) == ids_digest(["q1", "q2"])
        True
    """
    return "sha256:" + sha256(json.dumps(sorted(query_ids)).encode()).hexdigest()
