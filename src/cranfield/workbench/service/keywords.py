"""Keywords that a person pastes, one a line, as a test set without judgments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cranfield.base.errors import ProblemList, UsageError, shorten
from cranfield.model import Query, TestSet
from cranfield.model.query_ids import is_unfit, text_ids

MOST_KEYWORDS = 20_000
MOST_CHARS = 1_000
"""Of one keyword."""


@dataclass(frozen=True, slots=True)
class Keywords:
    """What was pasted."""

    texts: tuple[str, ...]
    """Each once, in the order of the first."""
    repeated: tuple[tuple[int, int, str], ...]
    """Line, the line that it repeats, and its text."""
    blank: tuple[int, ...]
    """Lines without a keyword that have one after them."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """A sentence for each line that is left out."""
        lines = [(line, f"line {line} repeats line {first}: {shorten(text)}") for line, first, text in self.repeated]
        lines += [(line, f"line {line} is blank") for line in self.blank]
        return tuple(sentence for _, sentence in sorted(lines))


def read_keywords(pasted: str) -> Keywords:
    r"""Read one keyword a line; spaces around it do not count, and a tab counts as a space.

    Raises:
        UsageError: with every line that is no keyword, or there is none.

    Example:
        >>> found = read_keywords("red shoes\n\nboots\nred shoes\n")
        >>> found.texts, found.left_out
        (('red shoes', 'boots'), ('line 2 is blank', "line 4 repeats line 1: 'red shoes'"))
    """
    problems = ProblemList(UsageError)
    lines = [line.replace("\t", " ").strip() for line in pasted.rstrip().replace("\r\n", "\n").split("\n")]
    first: dict[str, int] = {}
    repeated, blank = [], []
    for number, text in enumerate(lines, start=1):
        if not text:
            blank.append(number)
        elif is_unfit(text):
            problems.add("the keyword has a control character", path=f"line {number}", got=shorten(text))
        elif len(text) > MOST_CHARS:
            problems.add(
                "the keyword is too long",
                path=f"line {number}",
                expected=f"at most {MOST_CHARS} characters",
                got=str(len(text)),
            )
        elif text in first:
            repeated.append((number, first[text], text))
        else:
            first[text] = number
    if len(first) > MOST_KEYWORDS:
        problems.add("too many keywords", expected=f"at most {MOST_KEYWORDS}", got=str(len(first)))
    if not first and not problems.problems:
        problems.add("there is no keyword", expected="one a line")
    problems.raise_if_any()
    return Keywords(tuple(first), tuple(repeated), tuple(blank))


def keyword_testset(name: str, texts: Sequence[str]) -> TestSet:
    """A test set of queries without judgments. The id of a query is its text, so that a later list knows it again."""
    queries = tuple(Query(query_id, text) for query_id, text in zip(text_ids(texts), texts, strict=True))
    return TestSet(name, queries, {})
