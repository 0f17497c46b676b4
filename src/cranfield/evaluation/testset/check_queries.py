"""Checks of the queries themselves, their strata and the metadata. Each yields the id of a query and what is wrong."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from cranfield.base.words import count_noun
from cranfield.evaluation.testset.check_judgments import Complaint
from cranfield.evaluation.testset.edit import counts_of
from cranfield.evaluation.testset.expected import names_of
from cranfield.evaluation.testset.split import strata_keys, stratum
from cranfield.model import TestSet

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


MIN_FOR_A_TEST = 6
"""All differences of one sign have a two-sided p of 2 / 2^n: .0625 at 5 queries, .03125 at 6."""
NO_TEXTS = "no query has a text: systems cannot be run, and queries cannot be compared"
SHORTEST_NAME = 3
"""Shorter identifiers are words that any question may hold."""
_CODE_MARK = re.compile(r"[_\d]|[a-z][A-Z]")


def repeated_ids(testset: TestSet) -> Iterator[Complaint]:
    """Ids that several queries have."""
    for query_id, n in Counter(query.id for query in testset.queries).items():
        if n > 1:
            yield query_id, f"{n} queries have this id"


def missing_texts(testset: TestSet) -> Iterator[Complaint]:
    """Queries without a text; one complaint where none has one."""
    blank = [query.id for query in testset.queries if not query.text.strip()]
    if blank and len(blank) == len(testset.queries):
        yield "", NO_TEXTS
    else:
        yield from ((query_id, "it has no text") for query_id in blank)


def leaks(testset: TestSet) -> Iterator[Complaint]:
    """Queries whose text holds an identifier of what they expect.

    The rule: an expected entity gives the names of its symbol (`Index` and `add` of `src/index.py::Index.add`), another
    place in a file the stem of the file where it looks like code (a digit, `_`, or a capital inside). The text holds a
    name as a whole word, in the same case. Names of under 3 characters do not count.
    """
    for query in testset.queries:
        words = set(re.findall(r"\w+", query.text))
        names: dict[str, None] = {}
        for target in testset.targets.get(query.id, ()):
            is_symbol = "::" in target.label
            names |= dict.fromkeys(name for name in names_of(target) if is_symbol or _CODE_MARK.search(name))
        found = [name for name in names if len(name) >= SHORTEST_NAME and _holds(query.text, words, name)]
        if found:
            yield query.id, f"its text contains what it should find: {', '.join(found)}"


def _holds(text: str, words: set[str], name: str) -> bool:
    if name in words:
        return True
    return not name.isidentifier() and bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))


def near_repeats(testset: TestSet) -> Iterator[Complaint]:
    """Queries whose words are nearly those of an earlier one."""
    texts = testset.by_id
    pairs, n_cut = near_duplicates((query.id, query.text) for query in testset.queries)
    for earlier, query_id in pairs:
        yield (
            query_id,
            f"its text is nearly the same as that of query {earlier}: {texts[query_id].text!r}, {texts[earlier].text!r}",
        )
    if n_cut:
        yield "", too_many_met(n_cut)


def small_strata(testset: TestSet) -> Iterator[Complaint]:
    """Strata and classes with fewer queries than any test needs to say something at .05."""
    for key in strata_keys(testset):
        for value, n in Counter(stratum(query, key) for query in testset.queries).items():
            if value and n < MIN_FOR_A_TEST:
                yield (
                    "",
                    f"{key} {value} has {count_noun(n, 'queries')}: a two-sided sign or permutation test needs 6 to reach .05",
                )


def wrong_counts(testset: TestSet) -> Iterator[Complaint]:
    """Counts in the metadata that the content does not have."""
    actual = counts_of(testset)
    for name, written in testset.meta.counts.items():
        if actual.get(name, 0) != written:
            yield "", f"the metadata give {written} {name}, but the set has {actual.get(name, 0)}"
    unwritten = [name for name in actual if testset.meta.counts and name not in testset.meta.counts]
    if unwritten:
        yield "", f"the metadata have no count of {', '.join(unwritten)}"


def lost_split(testset: TestSet) -> Iterator[Complaint]:
    """Held-out queries that are not there."""
    split = testset.meta.split
    gone = [] if split is None else [query_id for query_id in split.held_out if query_id not in testset.by_id]
    if gone:
        are = "is" if len(gone) == 1 else "are"
        yield "", f"{count_noun(len(gone), 'held-out queries')} {are} not in the set: {', '.join(gone[:5])}"


def unreadable_date(testset: TestSet) -> Iterator[Complaint]:
    """A date of making that is none."""
    if testset.meta.made and _date(testset.meta.made) is None:
        yield "", f"`made` in the metadata is {testset.meta.made!r}, not a date such as 2026-11-21"


def overdue(testset: TestSet, today: date) -> Iterator[Complaint]:
    """A set older than its refresh interval."""
    late, meta = testset.meta.days_overdue(today), testset.meta
    if late:
        yield "", f"its refresh is overdue by {late} days: made {meta.made}, every {meta.refresh_days} days"


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
