"""Text of results: where it lies in its document, which part of an expected passage it holds, and what of it was returned before.

A passage is recognised by its characters where a result says which it is, else by its quote where the result has a text, else by its
page. The parts that results hold are intervals of a *region*: the document, or the quote where its place in a document is not known.
"""

from __future__ import annotations

import functools
import math
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cranfield.base.errors import MissingExtraError
from cranfield.model import Hit, MatchingRules, Passage, Span
from cranfield.model.texts import Interval, Part, QueryTexts, ResultText, char_range, covered
from cranfield.ranking.matching.criteria import nested_fields, values_of
from cranfield.ranking.matching.place import path_of, place_of

Unit = Literal["characters", "lines", "pages"]

PAGES = ("page", "page_number", "page_no", "pages", "page_label")
SHORTEST_PART = 12
"""Characters, white space not counted, of the shortest part of a quote that is recognised at the edge of a result, or as a whole
result; a shorter one could stand there by chance."""
WINDOW = 8
"""Words in a row that were returned before, so that they count as returned again."""


def text_of(hit: Hit) -> str | None:
    """The text of a result; None where it has none."""
    return next(values_of(hit, "text", _RULES), None)


_RULES = MatchingRules()


def characters_of(hit: Hit) -> tuple[int, int] | None:
    """The characters of its document that a result is, counted from 0, the end not included; None where it does not say."""
    values = {name: value for level in reversed(nested_fields(hit)) for name, value in level.items()}
    return char_range(values, text_of(hit))


def pages_of(hit: Hit, rules: MatchingRules) -> tuple[int, int] | None:
    """First and last page of a result, counted from 1; None where it does not say."""
    for name in PAGES:
        for value in values_of(hit, name, rules):
            first, _, last = value.partition("-")
            if first.strip().isdecimal() and (last or first).strip().isdecimal():
                shift = 0 if name == "page_label" else 1 - rules.page_base
                return int(first) + shift, int(last or first) + shift
    return None


def documents_of(hit: Hit, rules: MatchingRules) -> tuple[str, ...]:
    """The documents that a result may lie in, in the one form: what its fields say, then its id, the only one where they say none."""
    by_id, *named = (path_of(path, rules) for path in values_of(hit, "path", rules))
    return (*dict.fromkeys(named), by_id)


def passage_place(hit: Hit, rules: MatchingRules) -> str | None:
    """Where in its document a result lies, for people: its span, its characters or its pages."""
    if hit.span is not None:
        return hit.public_span
    if hit.fields is None:
        return None
    if characters := characters_of(hit):
        return f"characters {characters[0]}-{characters[1]}"
    pages = pages_of(hit, rules)
    return None if pages is None else f"page {pages[0]}" if pages[0] == pages[1] else f"pages {pages[0]}-{pages[1]}"


def lacks_place(passage: Passage, hit: Hit, rules: MatchingRules) -> bool:
    """Whether a result says nothing that a passage could be recognised by."""
    has_place = bool(passage.chars) and characters_of(hit) is not None
    has_text = bool(passage.quote) and text_of(hit) is not None
    return not (has_place or has_text or (passage.pages and pages_of(hit, rules) is not None))


def passage_test(passage: Passage, rules: MatchingRules) -> Callable[[Hit], bool]:
    """The function that tells whether a result holds a part of a passage."""
    finder = _Finder.of(passage, rules)
    return lambda hit: bool(finder.intervals(hit))


def place_key(hit: Hit) -> tuple[object, ...]:
    """What tells two results of one id apart, where passages are expected."""
    return (hit.span, characters_of(hit), pages_of(hit, _RULES), text_of(hit))


@dataclass(frozen=True, slots=True)
class ExpectedTexts:
    """The expected passages of one query, as text."""

    unit: Unit
    whole: tuple[Part, ...]
    """All of each passage."""
    finders: tuple[Callable[[Hit], list[Interval]], ...]
    """Per passage: the intervals of it that a result holds; none where it holds nothing of it."""
    size_of: Callable[[Hit], float]
    """Units of a result; NaN where they are not known."""

    def parts(self, hit: Hit) -> Iterator[Part]:
        """What a result holds."""
        for passage, find in zip(self.whole, self.finders, strict=True):
            for interval in find(hit):
                yield Part(passage.item, passage.region, interval)


def expected_texts(targets: Sequence[object], rules: MatchingRules) -> ExpectedTexts | None:
    """What targets are as text; None where one of them is neither a passage nor lines, or they are not of one unit.

    Args:
        targets: of one query, in the order of its expected items.
        rules: how results are compared.
    """
    if targets and all(isinstance(target, Span) for target in targets):
        spans = [target for target in targets if isinstance(target, Span)]
        wholes = [(path_of(span.path, rules), (span.start, span.end + 1)) for span in spans]
        return ExpectedTexts(
            "lines",
            tuple(Part(item, *whole) for item, whole in enumerate(wholes)),
            tuple(functools.partial(_common_lines, path, whole, rules) for path, whole in wholes),
            lambda hit: _length(_lines(hit, rules)),
        )
    passages = [target for target in targets if isinstance(target, Passage)]
    by_page = [not passage.quote and not passage.chars for passage in passages]
    if not passages or len(passages) < len(targets) or (any(by_page) and not all(by_page)):
        return None
    found = [_Finder.of(passage, rules) for passage in passages]
    return ExpectedTexts(
        "pages" if all(by_page) else "characters",
        tuple(Part(item, finder.region, finder.whole) for item, finder in enumerate(found)),
        tuple(finder.intervals for finder in found),
        (lambda hit: _length(_pages(hit, rules)))
        if all(by_page)
        else functools.partial(_characters, is_placed=all(passage.chars for passage in passages)),
    )


def _common_lines(path: str, whole: Interval, rules: MatchingRules, hit: Hit) -> list[Interval]:
    place = place_of(hit, rules)
    return _common(whole, _lines(hit, rules)) if place.path == path else []


def _lines(hit: Hit, rules: MatchingRules) -> Interval | None:
    lines = place_of(hit, rules).lines
    return None if lines is None else (lines[0], lines[1] + 1)


def _pages(hit: Hit, rules: MatchingRules) -> Interval | None:
    pages = pages_of(hit, rules)
    return None if pages is None else (pages[0], pages[1] + 1)


def _characters(hit: Hit, *, is_placed: bool) -> float:
    """Characters of a result: as its place says, or of its text; where passages have no place, without white space."""
    place, text = characters_of(hit), text_of(hit)
    if text is None or (is_placed and place is not None):
        return _length(place)
    return float(len(text if is_placed else "".join(text.split())))


def _length(interval: Interval | None) -> float:
    return math.nan if interval is None else interval[1] - interval[0]


def _common(first: Interval, second: Interval | None) -> list[Interval]:
    if second is None:
        return []
    start, end = max(first[0], second[0]), min(first[1], second[1])
    return [(start, end)] if start < end else []


@dataclass(frozen=True, slots=True)
class _Finder:
    """One passage, made ready to be looked for."""

    rules: MatchingRules
    path: str
    """In the one form; empty: in any document."""
    characters: Interval | None
    pages: Interval | None
    quote: str
    """In the form that it is compared in."""

    @classmethod
    def of(cls, passage: Passage, rules: MatchingRules) -> _Finder:
        first, _, last = passage.pages.partition("-")
        start, _, end = passage.chars.partition("-")
        return cls(
            rules,
            path_of(passage.path, rules),
            (int(start), int(end)) if passage.chars else None,
            (int(first), int(last or first) + 1) if passage.pages else None,
            comparable(passage.quote, rules),
        )

    @property
    def region(self) -> str:
        return self.path if self.characters or not self.quote else f"\0{self.path}\0{self.quote}"

    @property
    def whole(self) -> Interval:
        return self.characters or ((0, len(self.quote)) if self.quote else self.pages) or (0, 0)

    def intervals(self, hit: Hit) -> list[Interval]:
        """The parts of the passage that a result holds."""
        documents = documents_of(hit, self.rules) if self.path else ()
        is_elsewhere = bool(self.path) and self.path not in documents
        if is_elsewhere and (len(documents) > 1 or not self.quote):
            return []
        if self.characters and not is_elsewhere and (place := characters_of(hit)) is not None:
            return _common(self.characters, place)
        if self.quote and (text := text_of(hit)) is not None:  # of a result that names no document, its quote decides
            start, end = self.whole
            scale = (end - start) / len(self.quote)
            found = quoted_parts(self.quote, comparable(text, self.rules), self.rules)
            return [(start + scale * first, start + scale * last) for first, last in found]
        if self.pages and not is_elsewhere and (pages := _pages(hit, self.rules)) and _common(self.pages, pages):
            # A result that says its page alone holds all of the passage: which part of it is not known.
            return _common(self.whole, pages) if not self.quote and not self.characters else [self.whole]
        return []


def comparable(text: str, rules: MatchingRules) -> str:
    """Text in the form that quotes are compared in."""
    if rules.quotes == "exact":
        return text
    plain = "".join(unicodedata.normalize("NFKC", text).replace("\xad", "").split())
    return plain.casefold() if rules.quotes == "fuzzy" else plain


def quoted_parts(quote: str, text: str, rules: MatchingRules) -> list[tuple[int, int]]:
    """The parts of a quote that a text holds: all of it, or what stands at the edges of the text, or the whole text.

    Args:
        quote: in the comparable form.
        text: of a result, in the same form.
        rules: whether it may differ, and by how much.

    Example:
        >>> quoted_parts("the quick brown fox jumps", "she saw the quick brown", MatchingRules(quotes="exact"))
        [(0, 15)]
    """
    if not quote or not text:
        return []
    if quote in text:
        return [(0, len(quote))]
    least = min(SHORTEST_PART, len(quote))
    if len(text) < least:
        return []
    if text in quote:
        return [(place, place + len(text)) for place in _places(quote, text)]
    parts = []
    ends = [len(text) - at for at in _places(text, quote[:least]) if quote.startswith(text[at:])]
    if ends:  # the result ends within the quote
        parts.append((0, max(ends)))
    starts = [at + least for at in _places(text, quote[-least:]) if quote.endswith(text[: at + least])]
    if starts:  # it begins within the quote
        parts.append((len(quote) - max(starts), len(quote)))
    if not parts and rules.quotes == "fuzzy":
        try:
            from rapidfuzz import fuzz
        except ImportError:
            raise MissingExtraError.for_extra("fuzzy quotes", "fuzzy") from None
        found = fuzz.partial_ratio_alignment(quote, text, score_cutoff=100 * rules.quote_similarity)
        if found is not None:
            parts.append((0, len(quote)) if len(quote) <= len(text) else (found.src_start, found.src_end))
    return parts


def _places(text: str, part: str) -> list[int]:
    """Where a part begins in a text."""
    places, at = [], text.find(part)
    while at >= 0:
        places.append(at)
        at = text.find(part, at + 1)
    return places


@dataclass(frozen=True)
class ReturnedTexts:
    """The results of queries as text, each query read when a measure asks for it."""

    lists: Mapping[str, tuple[ExpectedTexts | None, Sequence[Hit]]]
    """Query id to what it expects, and its results, rank 1 first."""
    rules: MatchingRules
    _read: dict[str, QueryTexts] = field(default_factory=dict, compare=False, repr=False)

    @property
    def expects_passages(self) -> bool:
        """Whether any query expects passages, or lines."""
        return any(expected is not None for expected, _ in self.lists.values())

    def of(self, query_id: str) -> QueryTexts:
        """The results of a query; none of one that was not answered."""
        if query_id not in self._read:
            expected, hits = self.lists.get(query_id, (None, ()))
            before = _Before(self.rules)
            results = []
            for hit in hits:
                size = _characters(hit, is_placed=True) if expected is None else expected.size_of(hit)
                again = before.see(hit, size, "characters" if expected is None else expected.unit)
                tokens = math.nan if hit.tokens is None else hit.tokens
                parts = () if expected is None else tuple(expected.parts(hit))
                results.append(ResultText(size, again, tokens, _characters(hit, is_placed=True), parts))
            whole = None if expected is None else expected.whole
            self._read[query_id] = QueryTexts(whole, tuple(results))
        return self._read[query_id]

    def renamed(self, names: Mapping[str, str]) -> ReturnedTexts:
        """The same of queries with other ids."""
        return ReturnedTexts({names.get(query, query): each for query, each in self.lists.items()}, self.rules)


_OF_UNIT: Mapping[Unit, Callable[[Hit, MatchingRules], Interval | None]] = {"lines": _lines, "pages": _pages}


class _Before:
    """What results have held so far: places, and words of those that say no place."""

    def __init__(self, rules: MatchingRules) -> None:
        self.rules = rules
        self._places: dict[str, list[Interval]] = {}
        self._windows: set[tuple[str, ...]] = set()

    def see(self, hit: Hit, size: float, unit: Unit) -> float:
        """Take the next result, and give the units of it that were there before."""
        place = characters_of(hit) if unit == "characters" else _OF_UNIT[unit](hit, self.rules)
        documents = documents_of(hit, self.rules)
        if place is not None:
            region = self._places.setdefault(documents[0], [])
            again = covered([each for before in region for each in _common(place, before)])
            region.append(place)
            return again
        text = text_of(hit) if unit == "characters" else None
        if text is None:
            return math.nan
        words = text.split()
        length = min(WINDOW, len(words))
        windows = [tuple(words[at : at + length]) for at in range(len(words) - length + 1)] if words else []
        seen = {at + each for at, window in enumerate(windows) if window in self._windows for each in range(length)}
        self._windows.update(windows)
        total = sum(map(len, words))
        return size * sum(len(words[at]) for at in seen) / total if total else 0.0
