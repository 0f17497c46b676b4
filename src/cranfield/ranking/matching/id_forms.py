"""Ids that are the same in another form: case, blanks, padding, separators, Unicode normalisation, a constant prefix or suffix."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from cranfield.base.words import shown_id

Form = Callable[[str], str]

_FOLDED = "upper and lower case, blanks and punctuation were ignored"
_LOOSEST = "upper and lower case, blanks, punctuation and leading zeros were ignored"


def folded(text: str) -> str:
    """An id without case, blanks and punctuation."""
    return re.sub(r"[\W_]+", "", text.casefold())


FORMS: Mapping[str, Form] = {
    "upper and lower case were ignored": str.casefold,
    "blanks at both ends were removed": str.strip,
    "percent-encoding was decoded": unquote,
    "backslashes were written as slashes": lambda text: text.replace("\\", "/"),
    "leading zeros of numbers were removed": lambda text: re.sub(r"(?<!\d)0+(?=\d)", "", text),
    "a slash at the end was removed": lambda text: text.rstrip("/"),
    "http://, https:// and www. were removed": lambda text: re.sub(r"^https?://(www\.)?", "", text),
    "characters were normalised (Unicode NFC)": lambda text: unicodedata.normalize("NFC", text),
    _FOLDED: folded,
}
"""What is done to both ids, to the function that does it; the first of those that make most queries match is named."""


def _loosest(text: str) -> str:
    folded = re.sub(r"[\W_]+", "-", unicodedata.normalize("NFKC", text).casefold()).strip("-")
    return re.sub(r"(?<!\d)0+(?=\d)", "", folded)


_QUERY_FORMS: Mapping[str, Form] = {
    **FORMS,
    "characters were normalised (Unicode NFKC)": lambda text: unicodedata.normalize("NFKC", text),
    "characters that are not shown were removed": lambda text: "".join(filter(str.isprintable, text)),
    "`.0` at the end of numbers was removed": lambda text: re.sub(r"(?<=\d)\.0+$", "", text),
    _LOOSEST: _loosest,
}
_LOOSE = (_FOLDED, _LOOSEST)
"""Forms in which ids of other queries may be equal."""
_PROVES = 2
"""Queries that prove a loose form, or a prefix or suffix, where they are also half of the ids without a match on either side."""


@dataclass(frozen=True, slots=True)
class QueryForm:
    """How query ids of a run differ from those of a test set."""

    what: str
    """What would make them match, as a clause: `leading zeros of numbers were removed`."""
    names: Mapping[str, str]
    """Id of the run to the one of the test set that it then is."""

    @property
    def example(self) -> tuple[str, str]:
        """An id of the run and the one of the test set that it then is, as they are shown."""
        in_run, in_set = next(iter(self.names.items()))
        return shown_id(in_run), shown_id(in_set)


def query_form(extra: Collection[str], unanswered: Iterable[str], limit: float = 0) -> QueryForm | None:
    """The form in which most query ids of a run that a test set does not have are ids of it that the run does not answer.

    Args:
        extra: ids of the run that the test set does not have.
        unanswered: ids of the test set that the run does not answer.
        limit: least share of these ids that it pairs, of the side that has fewer.

    Returns:
        The form, with the ids that it pairs one to one; None where there is none.
    """
    wanted = list(unanswered)
    if not extra or not wanted:
        return None
    enough = max(_PROVES, len(extra) / 2, len(wanted) / 2)
    strict = {what: _pairs(extra, wanted, form) for what, form in _QUERY_FORMS.items()}
    loose = {what: strict.pop(what) for what in _LOOSE} | _by_affix(extra, wanted)
    proven = strict | {what: names for what, names in loose.items() if len(names) >= enough}
    what = max(proven, key=lambda each: len(proven[each]))
    is_found = proven[what] and len(proven[what]) >= limit * min(len(extra), len(wanted))
    return QueryForm(what, proven[what]) if is_found else None


def _pairs(extra: Iterable[str], wanted: Iterable[str], form: Form) -> dict[str, str]:
    """Each id that is equal in a form to one of the others, and to no second one."""
    in_set, in_run = (_once((form(each), each) for each in ids) for ids in (wanted, extra))
    return {in_run[key]: in_set[key] for key in in_run if key and key in in_set}


def _once(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Key to value, of the keys that come once."""
    known = list(pairs)
    counts = Counter(key for key, _ in known)
    return {key: value for key, value in known if counts[key] == 1}


def _by_affix(extra: Iterable[str], wanted: Iterable[str]) -> dict[str, dict[str, str]]:
    """The prefix or suffix of one side that makes most ids match."""
    in_set, in_run = set(wanted), set(extra)
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for of, longer, shorter in (("run", in_run, in_set), ("test set", in_set, in_run)):
        for text in longer:
            for side, affix, rest in _divided(text):
                if rest in shorter:
                    pair = {text: rest} if of == "run" else {rest: text}
                    found.setdefault((side, affix, of), {}).update(pair)
    best = max(found, key=lambda each: (len(found[each]), each), default=None)
    if best is None:
        return {}
    side, affix, of = best
    return {f"the {side} {affix!r} of the ids of the {of} was removed": found[best]}


def _divided(text: str) -> Iterator[tuple[str, str, str]]:
    """Every way to take a prefix or a suffix off an id, but not within a word or a number."""
    for at in range(1, len(text)):
        if is_boundary(text[at - 1], text[at]):
            yield "prefix", text[:at], text[at:]
            yield "suffix", text[at:], text[:at]


def is_boundary(before: str, after: str) -> bool:
    """Whether an id can be divided between two characters: not within a word or a number."""
    return not (before.isalpha() and after.isalpha()) and not (before.isdigit() and after.isdigit())
