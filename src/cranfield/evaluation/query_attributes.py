"""What kind of query a query is: conditions on its words, its judgments and its own columns, each with the queries that meet it.

All attributes are of the query, or the same for both systems: one that depends on how well a system does, such as the value of
the baseline, goes with the difference by chance alone (regression to the mean).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.base.words import noun
from cranfield.evaluation.traits import words
from cranfield.evaluation.values import Comparison
from cranfield.model import Query, Scalar
from cranfield.model.query import CLASS, query_strata
from cranfield.model.run import TEXTS

Columns = Mapping[str, Mapping[str, Scalar]]
"""Name of a column to query id to value."""

MAX_VALUES = 20
"""Most values of a column that are conditions, the commonest first."""
MANY_NUMBERS = 8
"""A column of more different numbers is cut at its terciles; of fewer each is a value."""
MAX_DOCUMENTS, MAX_HITS, MAX_TEXT = 5_000, 10, 500
"""Documents of the results that are read for words, evenly spaced by id; results of a list; characters of a document."""
FEW_DOCUMENTS = 50
"""Under so many documents with a text, nothing is derived of how many have a word."""
COMMON = 5
"""Documents that have a word from which on it is no typing error itself."""
SHORTEST_TYPO = 5
"""Letters of a word from which on it can be a typing error."""

QUESTIONS = {
    "who": "who whom whose wer wen wem wessen qui quién quien quiénes quienes",
    "what": "what que quoi qué was",
    "which": "which welche welcher welches welchen quel quelle quels quelles cuál cual cuáles",
    "how": "how wie comment cómo como",
    "how many": "wieviel wieviele combien cuánto cuánta cuántos cuántas",
    "when": "when wann quand cuándo cuando",
    "where": "where wo wohin woher où dónde donde",
    "why": "why warum weshalb wieso pourquoi",
}
"""Question words of English, German, French and Spanish, by their meaning."""
MEANING = {word: meaning for meaning, listed in QUESTIONS.items() for word in listed.split()}
ENGLISH = "English"
STOP_WORDS = {
    ENGLISH: "the of and to in is for on with that by how what which are from at as it this be or when where do does a an",
    "German": "der die das und ist nicht mit für von den im ein eine wie auf zu was wird bei dem des einer werden oder sind",
    "French": "le la les des et est une pour dans que du sur avec qui au aux un comment quel quelle par sont en ou",
    "Spanish": "el la los las de y es una para con que en del por un como cómo qué cuál se al o son dónde",
}
LANGUAGES_OF = {
    word: [language for language, listed in STOP_WORDS.items() if word in listed.split()]
    for word in {word for listed in STOP_WORDS.values() for word in listed.split()}
}
SCRIPTS = (
    ("Greek", 0x370, 0x3FF), ("Cyrillic", 0x400, 0x52F), ("Hebrew", 0x590, 0x5FF), ("Arabic", 0x600, 0x77F),
    ("Devanagari", 0x900, 0x97F), ("Thai", 0xE00, 0xE7F), ("Japanese", 0x3040, 0x30FF), ("Chinese", 0x4E00, 0x9FFF),
    ("Korean", 0xAC00, 0xD7AF),
)  # fmt: skip
"""Scripts with their first and last letters; any other letter counts as Latin."""
_CODE = re.compile(r"(?<![\w-])[^\W\d_]\w*(?:[-./]\w+)*")
_DIGIT = re.compile(r"\d")
_QUOTED = re.compile(r'"[^"]+"|„[^“”]+[“”]|“[^”]+”|«[^»]+»')
_INSIDE = re.compile(r"(?<=\w[\s,])[A-ZÄÖÜÀ-Þ][^\W\d_]*[a-zß-ÿ]")


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """A condition on one attribute, and the queries that meet it."""

    attribute: str
    text: str
    """What follows `queries`: `of 4 or more words`, `with a digit`."""
    members: NDArray[np.bool_]


def conditions_of(
    comparison: Comparison, query_ids: Sequence[str], min_size: int, columns: Columns, texts: Iterable[str] | None
) -> list[Condition]:
    """The conditions that enough queries meet and enough do not meet, in a fixed order.

    Args:
        comparison: whose test set has the queries.
        query_ids: the queries, in the order of `Condition.members`.
        min_size: queries that are enough.
        columns: further columns.
        texts: of the corpus; None: of the results of both systems.
    """
    testset = comparison.baseline.testset
    queries = [testset.by_id[query_id] for query_id in query_ids]
    found = (
        *_of_words(queries, min_size),
        *_of_documents(comparison, queries, texts),
        *_of_judgments(comparison, queries),
        *_of_columns(queries, columns),
    )
    return [each for each in found if min_size <= int(each.members.sum()) <= len(queries) - min_size]


def _of_words(queries: Sequence[Query], min_size: int) -> Iterator[Condition]:
    """What the text of a query says of it."""
    texts = [query.text for query in queries]
    if not any(texts):
        return
    split = [words(text) for text in texts]
    yield from _numeric("words", "of", "words", [len(each) for each in split])
    yield from _numeric("characters", "of", "characters", [len(text) for text in texts])
    languages = [language_of(text, each) for text, each in zip(texts, split, strict=True)]
    meanings = [question_of(each, language) for each, language in zip(split, languages, strict=True)]
    yield from _flag("digits", ("with a digit", "without a digit"), [_DIGIT.search(text) is not None for text in texts])
    yield from _values("case", "{}".format, [case_of(text) for text in texts])
    yield from _flag("question word", ("that start with a question word", "that start with no question word"), meanings)
    yield from _values("question word", "that ask {}".format, meanings)
    yield from _flag(
        "question mark", ("that end with ?", "that do not end with ?"), [text.rstrip().endswith("?") for text in texts]
    )
    if sum(n >= min_size for n in Counter(filter(None, languages)).values()) > 1:
        yield from _values("language", "in {}".format, languages)
    names = [case_of(text) == MIXED and _INSIDE.search(text) is not None for text in texts]
    yield from _flag("name", ("with a capitalised word inside", "without a capitalised word inside"), names)
    yield from _flag(
        "code", ("with a code such as ABC-123", "without a code such as ABC-123"), [has_code(text) for text in texts]
    )
    yield from _flag(
        "quotes",
        ("with a quoted phrase", "without a quoted phrase"),
        [_QUOTED.search(text) is not None for text in texts],
    )


LOWER, UPPER, MIXED = "in lower case", "in capitals", "with capitals"


def case_of(text: str) -> str:
    """The case of a text: all lower, all capitals, or with capitals; empty where no letter has a case.

    Example:
        >>> [case_of(text) for text in ("boundary layer", "NASA TN", "Boundary layer", "747")]
        ['in lower case', 'in capitals', 'with capitals', '']
    """
    if text.islower():
        return LOWER
    if text.isupper():
        return UPPER if sum(map(str.isupper, text)) > 1 else MIXED
    return MIXED if any(map(str.isupper, text)) else ""


def has_code(text: str) -> bool:
    """Whether a word of a text begins with a letter and has a digit: `ABC-123`, `x86_64`.

    Example:
        >>> [has_code(text) for text in ("error ABC-123", "python3", "3 engines", "3-dimensional")]
        [True, True, False, False]
    """
    return _DIGIT.search(text) is not None and any(map(_DIGIT.search, _CODE.findall(text)))


def language_of(text: str, split: Sequence[str]) -> str:
    """The language of a text by its script, and of Latin letters by stop words; empty where two have as many, or none.

    Example:
        >>> [
        ...     language_of(text, text.split())
        ...     for text in ("wie alt ist der baum", "как это", "taxi", "the age of le mans")
        ... ]
        ['German', 'Cyrillic script', '', 'English']
    """
    if not text.isascii():
        letters = (ord(each) for each in text if each.isalpha())
        scripts = Counter(next((name for name, low, high in SCRIPTS if low <= each <= high), "") for each in letters)
        if scripts and (name := scripts.most_common(1)[0][0]):
            return f"{name} script"
    counts = Counter(language for word in split if word in LANGUAGES_OF for language in LANGUAGES_OF[word])
    first = counts.most_common(2)
    return first[0][0] if first and (len(first) == 1 or first[0][1] > first[1][1]) else ""


def question_of(split: Sequence[str], language: str) -> str:
    """The meaning of the question word that a text starts with; empty where it starts with none.

    Example:
        >>> [question_of(text.split(), "") for text in ("wie alt", "how many engines", "por qué no", "flow")]
        ['how', 'how many', 'why', '']
    """
    first, second = (*split[:2], "", "")[:2]
    if (first, second) in {("how", "many"), ("how", "much")}:
        return "how many"
    if (first, second) in {("por", "qué"), ("por", "que")}:
        return "why"
    if first == "was" and language in {"", ENGLISH}:
        return ""
    return MEANING.get(first, "")


def _of_documents(comparison: Comparison, queries: Sequence[Query], texts: Iterable[str] | None) -> Iterator[Condition]:
    """How many documents have the words of a query."""
    if not any(query.text for query in queries):
        return
    found = list(_texts(comparison, queries) if texts is None else texts)
    if len(found) < FEW_DOCUMENTS:
        return
    counts: Counter[str] = Counter()
    for text in found:
        counts.update(set(words(text)))
    split = [list(dict.fromkeys(words(query.text))) for query in queries]
    where = "documents" if texts is not None else "documents of the results"
    fewest = [min((counts[word] for word in each), default=None) for each in split]
    yield from _numeric("rarest word", "whose rarest word is in", where, fewest)
    mean = [
        None if not each else math.fsum(math.log((len(found) + 1) / (counts[word] + 1)) for word in each) / len(each)
        for each in split
    ]
    yield from _numeric("IDF", "with a mean IDF of", "", mean)
    yield from _flag(
        "unknown word",
        (f"with a word that no {noun(1, where)} has", f"whose words all are in {where}"),
        [None if each is None else not each for each in fewest],
    )
    typos = typing_errors({word for each in split for word in each}, counts)
    yield from _flag(
        "typing error",
        ("with a likely typing error", "without a likely typing error"),
        [not typos.isdisjoint(each) for each in split],
    )


def _texts(comparison: Comparison, queries: Sequence[Query]) -> Iterator[str]:
    """Titles and texts of the results of both systems, each document once."""
    found: dict[str, str] = {}
    for side in comparison.evaluations:
        answers = {} if side.run is None else side.run.answers
        for query in queries:
            answer = answers.get(query.id)
            for hit in () if answer is None else answer.hits[:MAX_HITS]:
                if hit.id not in found and (hit.title or hit.fields):
                    known = (value for name in TEXTS if isinstance(value := (hit.fields or {}).get(name), str))
                    found[hit.id] = f"{hit.title or ''} {next(known, '')}"[:MAX_TEXT].strip()
    documents = sorted(each for each, text in found.items() if text)
    step = max(1.0, len(documents) / MAX_DOCUMENTS)
    for place in range(min(len(documents), MAX_DOCUMENTS)):
        yield found[documents[int(place * step)]]


def typing_errors(wanted: Iterable[str], counts: Mapping[str, int]) -> set[str]:
    """Words in no document that one insertion, deletion, substitution or swap of two letters turns into a common word.

    An ending of one letter is no error: `engines` for `engine`.

    Example:
        >>> sorted(
        ...     typing_errors({"retreival", "engines", "vector", "zzzzz"}, {"retrieval": 9, "engine": 9, "vector": 2})
        ... )
        ['retreival']
    """
    unknown = {word for word in wanted if len(word) >= SHORTEST_TYPO and word.isalpha() and not counts.get(word)}
    if not unknown:
        return set()
    shorter: dict[str, set[str]] = {}
    for word in unknown:
        for form in (word, *_without_a_letter(word)):
            shorter.setdefault(form, set()).add(word)
    found: set[str] = set()
    for word, n in counts.items():
        if n < COMMON or len(word) < SHORTEST_TYPO - 1:
            continue
        for form in (word, *_without_a_letter(word)):
            if form in shorter:
                found |= {each for each in shorter[form] if is_typo(each, word)}
    return found


def _without_a_letter(word: str) -> Iterator[str]:
    return (word[:at] + word[at + 1 :] for at in range(len(word)))


def is_typo(word: str, other: str) -> bool:
    """Whether two words differ in one letter or in the order of two neighbours, and not by a letter at the end alone."""
    shorter, longer = sorted((word, other), key=len)
    at = next((place for place, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    if len(longer) == len(shorter) + 1:
        return at < len(shorter) and shorter[at:] == longer[at + 1 :]
    if len(longer) != len(shorter) or at == len(shorter):
        return False
    return shorter[at + 1 :] == longer[at + 1 :] or (
        shorter[at : at + 2] == longer[at : at + 2][::-1] and shorter[at + 2 :] == longer[at + 2 :]
    )


def _of_judgments(comparison: Comparison, queries: Sequence[Query]) -> Iterator[Condition]:
    """How many documents are judged, and how many of them are relevant."""
    testset, ranking = comparison.baseline.testset, comparison.baseline.ranking
    judged = [len(testset.grades.get(query.id, ())) for query in queries]
    if any(judged):
        yield from _numeric("judged documents", "with", "judged documents", judged)
    relevant = np.bincount(ranking.expected_query[ranking.expected_level >= 1], minlength=len(ranking.query_ids))
    counts = [int(relevant[comparison.baseline.index[query.id]]) for query in queries]
    yield from _numeric("relevant documents", "with", "relevant documents", counts)


def _of_columns(queries: Sequence[Query], columns: Columns) -> Iterator[Condition]:
    """Strata and class, parameters, and further columns."""
    sources: list[tuple[str, Callable[[Query], Mapping[str, Scalar]]]] = [
        ("", query_strata),
        ("parameter ", lambda query: query.params),
    ]
    for prefix, read in sources:
        rows = [read(query) for query in queries]
        for name in dict.fromkeys(key for row in rows for key in row):
            yield from _column(f"{prefix}{name}", [row.get(name) for row in rows])
    for name, column in columns.items():
        yield from _column(name, [column.get(query.id) for query in queries])


def _column(name: str, values: Sequence[Scalar | None]) -> Iterator[Condition]:
    known = [value for value in values if value is not None and value != ""]
    numbers = [_number(value) for value in values]
    if len(set(known)) > MANY_NUMBERS and sum(each is not None for each in numbers) == len(known):
        yield from _numeric(name, f"with {name}", "", numbers)
        return
    shown = ["" if value is None else str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    yield from _values(name, ("of class {}" if name == CLASS else f"with {_braced(name)} {{}}").format, shown)


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _number(value: Scalar | None) -> float | None:
    try:
        number = float(value) if value is not None and not isinstance(value, bool) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _flag(attribute: str, named: tuple[str, str], values: Sequence[object]) -> Iterator[Condition]:
    """A condition and its opposite, over the queries of which it is known."""
    known = np.array([value is not None for value in values], dtype=np.bool_)
    met = np.array([bool(value) for value in values], dtype=np.bool_)
    yield Condition(attribute, named[0], met)
    yield Condition(attribute, named[1], known & ~met)


def _values(attribute: str, text: Callable[[str], str], values: Sequence[str]) -> Iterator[Condition]:
    """A condition for each of the commonest values; an empty one is not known."""
    array = np.array(values, dtype=object)
    counts = sorted(Counter(filter(None, values)).items(), key=lambda each: (-each[1], each[0]))
    for value, _ in counts[:MAX_VALUES]:
        yield Condition(attribute, text(value), np.asarray(array == value, dtype=np.bool_))


def _numeric(attribute: str, lead: str, things: str, values: Sequence[float | None]) -> Iterator[Condition]:
    """The lowest, the highest and the middle third, and all but the lowest or the highest."""
    array = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    levels = np.unique(array[~np.isnan(array)])
    if len(levels) < 2:
        return
    ordered = np.sort(array[~np.isnan(array)])
    low, high = (float(ordered[int(share * len(ordered))]) for share in (1 / 3, 2 / 3))
    # Where a third is all one value, the next value is the bound.
    low = low if low < levels[-1] else float(levels[-2])
    high = float(levels[levels >= max(high, levels[levels > low][0])][0])
    after, before = float(levels[levels > low][0]), float(levels[levels < high][-1])
    ranges = [(None, low), (after, None), (high, None), (None, before), (after, before)]
    for first, last in dict.fromkeys(ranges):
        if first is not None and last is not None and first > last:
            continue
        members = ~np.isnan(array)
        members &= (array >= first) if first is not None else True
        members &= (array <= last) if last is not None else True
        bounds = (
            levels[0] if first is None and last == levels[0] else first,
            levels[-1] if last is None and first == levels[-1] else last,
        )
        yield Condition(attribute, _range_text(lead, things, *bounds), members)


def _range_text(lead: str, things: str, first: float | None, last: float | None) -> str:
    """`of 4 or more words`, `of 1 word`, `of 2 to 3 words`."""
    if first is None:
        amount = f"{_number_text(last)} or fewer" if things else f"{_number_text(last)} or less"
    elif last is None:
        amount = f"{_number_text(first)} or more"
    else:
        amount = _number_text(first) if first == last else f"{_number_text(first)} to {_number_text(last)}"
    return f"{lead} {amount} {noun(1 if amount == '1' else 2, things) if things else ''}".rstrip()


def _number_text(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}" if value == int(value) else f"{value:.3g}"
