"""Queries that say nearly the same, found without comparing each with each.

The words of a query are its runs of letters and digits, case folded. Two queries are near duplicates when the words they
share are at least `NEAR` of the words that either has (Jaccard). Such a pair must share one of the rarest words of
each, as many as `_prefix` says; so only queries that meet at such a word are compared.

Source: Bayardo, Ma and Srikant 2007, WWW ("Scaling up all pairs similarity search"), the prefix filter.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

MAX_COMPARED = 500
"""A text is compared with so many earlier ones at most: where all texts are made of a few words, many meet at each."""
NEAR = (4, 5)
"""Share of words, as a fraction: 4 of 5."""
_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> frozenset[str]:
    """The words of a text, case folded; the text itself where it has none."""
    return frozenset(_WORD.findall(text.casefold())) or frozenset({text.strip()})


def same_form(text: str) -> str:
    """A text as people would call it the same: case folded, blanks run together."""
    return " ".join(text.casefold().split())


def near(words: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sets of words are near duplicates."""
    shared = len(words & other)
    return shared * NEAR[1] >= NEAR[0] * (len(words) + len(other) - shared)


def _prefix(size: int) -> int:
    """How many of its rarest words a query of `size` words is looked up by: size - ceil(.8 size) + 1."""
    return size - -(-size * NEAR[0] // NEAR[1]) + 1


@dataclass
class Lookup:
    """Texts seen so far, by their rarest words."""

    frequency: Mapping[str, int]
    """How many texts hold each word; any fixed numbers give the same answers, the true ones give them soonest."""
    n_cut: int = 0
    """Texts that met more earlier ones than they were compared with."""
    _by_word: dict[str, list[tuple[str, frozenset[str]]]] = field(default_factory=dict)

    def nearest(self, text: str) -> str | None:
        """The first text added that is a near duplicate of this one; its key, None where there is none."""
        words = words_of(text)
        met = itertools.chain.from_iterable(self._by_word.get(word, ()) for word in self._rarest(words))
        for key, other in itertools.islice(met, MAX_COMPARED):
            if near(words, other):
                return key
        self.n_cut += next(met, None) is not None
        return None

    def add(self, key: str, text: str) -> None:
        """Remember a text."""
        words = words_of(text)
        for word in self._rarest(words):
            self._by_word.setdefault(word, []).append((key, words))

    def _rarest(self, words: frozenset[str]) -> Sequence[str]:
        return sorted(words, key=lambda word: (self.frequency.get(word, 0), word))[: _prefix(len(words))]


def lookup_for(texts: Iterable[str]) -> Lookup:
    """An empty lookup that knows how frequent words are in the texts to come."""
    return Lookup(Counter(word for text in texts for word in words_of(text)))


def near_duplicates(texts: Iterable[tuple[str, str]]) -> tuple[list[tuple[str, str]], int]:
    """The texts that nearly repeat an earlier one.

    Args:
        texts: key and text, in order. Texts that are blank are no duplicates of each other.

    Returns:
        For each the earlier one's key, and its own; and how many texts were not compared with all that they met.
    """
    filled = [(key, text) for key, text in texts if text.strip()]
    lookup = lookup_for(text for _, text in filled)
    pairs = []
    for key, text in filled:
        earlier = lookup.nearest(text)
        if earlier is None:
            lookup.add(key, text)
        else:
            pairs.append((earlier, key))
    return pairs, lookup.n_cut


def too_many_met(n: int) -> str:
    """What the second number of `near_duplicates` says, in a sentence's words."""
    return f"texts that share rare words with more than {MAX_COMPARED} earlier texts, and were compared with only that many: {n}"
