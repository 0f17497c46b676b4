"""What a result is like: its fields, and how it matches its query; and what sets those that came up apart from those that went down."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

import numpy as np

from cranfield.evaluation.score_terms import factors_of
from cranfield.model import Hit
from cranfield.model.run import TEXTS
from cranfield.stats.paired import sign_test
from cranfield.stats.result import benjamini_yekutieli

MAX_TEXT = 20_000
"""Characters of a text that are read for words."""
SHORT = 40
"""Most characters of a value that stands for a kind of document, such as `pdf`."""
STEM = 4
"""Fewest letters at the beginning of a word that make another word a form of it."""
MIN_QUERIES = 6
"""Fewest queries in which a trait has to differ to be tested: the smallest p-value of a sign test on five is .06."""
MAX_BALANCED = 4
"""Fields of text that are compared with one another."""
MAX_OF_QUERY = 2
"""Traits that are named of one query."""
SHARE = "share"
"""Value of a trait that is a share of a score."""
_WORD = re.compile(r"\w+")
_IS_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class TraitKind(StrEnum):
    """What is looked at; of traits that explain as much, the first one is the more specific."""

    VALUE = "value"
    """A field has a value: `type` is `pdf`."""
    BALANCE = "balance"
    """The share of the query's words that one field has (`field`), less the share that another has (`value`)."""
    NUMBERS = "numbers"
    """The share of the query's numbers that the document has."""
    OTHER_FORM = "other form"
    """The share of the query's words that the document has in another form alone: `cats` for `cat`."""
    NO_MATCH = "no match"
    """The share of the query's words that the document has in no form."""
    MATCH = "match"
    """The share of the query's words that a field has."""
    EXPLANATION = "explanation"
    """A factor of the score, as the engine explains it; of a part of the score (`value` is `share`) the share that it gives."""
    DATE = "date"
    NUMBER = "number"
    """A field is a number."""
    LENGTH = "length"
    """Characters of a field."""


@dataclass(frozen=True, slots=True, order=True)
class Trait:
    """A trait of a result, a number for each."""

    kind: TraitKind
    field: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class TraitContrast:
    """A trait that results which came up have more or less of than results which went down."""

    trait: Trait
    up: float
    """Mean of those that came up; of a value the share that has it, of a date seconds since 1970."""
    down: float
    n_up: int
    n_down: int
    """Results of which it is known."""
    n_queries: int
    """Queries in which it differs."""
    n_same_way: int
    """Those of them in which it differs in the direction of the majority."""
    share: float
    """Share of the whole change, up and down, in the queries that it differs in: those in this direction less the others."""
    separation: float
    """How far apart the two are: their mean difference within queries over the spread of all results, in standard deviations."""
    p: float | None
    """By a sign test over the queries; None of one query."""
    q: float | None
    """The same, adjusted for all traits that were tried (Benjamini-Yekutieli); None of one query."""


Described = Mapping[Trait, float]


@dataclass(frozen=True)
class Sides:
    """The results of one query that came up, and those that went down in their stead."""

    query: str
    weight: float
    """Size of the difference of its value."""
    up: Sequence[Described]
    down: Sequence[Described]


def described(text: str, hit: Hit) -> dict[Trait, float]:
    """The traits of a result of a query.

    Args:
        text: of the query.
        hit: with its title, the fields that the system says of it, and the explanation of its score.
    """
    found = _explained(hit)
    texts: list[tuple[str, str]] = []
    for name, value in _fields(hit):
        if isinstance(value, bool):
            found[Trait(TraitKind.VALUE, name, str(value).lower())] = 1.0
        elif isinstance(value, int | float):
            if math.isfinite(value):
                found[Trait(TraitKind.NUMBER, name)] = float(value)
        elif (moment := _moment(value)) is not None:
            found[Trait(TraitKind.DATE, name)] = moment
        elif name == "title" or name in TEXTS or len(value) > SHORT:
            found[Trait(TraitKind.LENGTH, name)] = float(len(value))
            texts.append((name, value))
        else:
            found[Trait(TraitKind.VALUE, name, value)] = 1.0
    wanted = list(dict.fromkeys(words(text)))
    return found | _matches(wanted, texts) if wanted and texts else found


def _explained(hit: Hit) -> dict[Trait, float]:
    if hit.explanation is None:
        return {}
    shares, numbers = factors_of(hit.explanation)
    found = {Trait(TraitKind.EXPLANATION, name, SHARE): share for name, share in shares.items()}
    return found | {Trait(TraitKind.EXPLANATION, name): number for name, number in numbers.items()}


def _matches(wanted: Sequence[str], texts: Sequence[tuple[str, str]]) -> dict[Trait, float]:
    """How the texts of a result match the words of a query."""
    n, by_field = len(wanted), [(name, set(words(value))) for name, value in texts]
    shares = {name: sum(word in here for word in wanted) / n for name, here in by_field}
    found = {Trait(TraitKind.MATCH, name): share for name, share in shares.items()}
    for field, other in itertools.combinations(itertools.islice(shares, MAX_BALANCED), 2):
        found[Trait(TraitKind.BALANCE, field, other)] = shares[field] - shares[other]
    if set(shares) <= {"title"}:
        return found  # of a title alone it is not known what else the document has
    known = set[str]().union(*(here for _, here in by_field))
    missing = [word for word in wanted if word not in known]
    other_form = sum(any(is_form(word, each) for each in known) for word in missing)
    found[Trait(TraitKind.OTHER_FORM)] = other_form / n
    found[Trait(TraitKind.NO_MATCH)] = (len(missing) - other_form) / n
    if numbers := [word for word in wanted if word.isdigit()]:
        found[Trait(TraitKind.NUMBERS)] = sum(word in known for word in numbers) / len(numbers)
    return found


def words(text: str) -> list[str]:
    """Words without case, in their order."""
    return _WORD.findall(text[:MAX_TEXT].casefold())


def is_form(word: str, other: str) -> bool:
    """Whether two words are forms of one by their first letters: `connected` and `connection`, `policy` and `policies`."""
    shorter, longer = sorted((word, other), key=len)
    if len(shorter) < STEM:
        return longer == f"{shorter}s"
    common = next((at for at, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    return common >= max(STEM, len(shorter) - 3) and len(longer) - common <= STEM


def _fields(hit: Hit) -> Iterator[tuple[str, Any]]:
    """Fields that hold a text, a number or a truth value; each text of a list; those of a mapping by `outer.inner`."""
    if hit.title:
        yield "title", hit.title
    waiting = list((hit.fields or {}).items())
    while waiting:
        name, value = waiting.pop(0)
        if isinstance(value, Mapping):
            waiting += [(f"{name}.{key}", each) for key, each in value.items()]
        elif isinstance(value, list | tuple):
            yield from ((name, each) for each in itertools.islice(value, 20) if isinstance(each, str) and each)
        elif isinstance(value, str | int | float) and value != "":
            yield name, value


def _moment(value: str) -> float | None:
    """A date or a time as seconds since 1970."""
    if not _IS_DATE.match(value):
        return None
    try:
        found = (
            datetime.fromisoformat(value)
            if len(value) > 10
            else datetime.combine(date.fromisoformat(value), datetime.min.time())
        )
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def contrasts_of(queries: Sequence[Sides]) -> tuple[tuple[TraitContrast, ...], int]:
    """Traits that set the results that came up apart from those that went down.

    Of several queries, those whose direction over the queries is no accident at a false-discovery rate of 5 % over all traits
    that were tried; the largest share of the change first. Of one query, which has no test, those that part all results of
    one side from all of the other.

    Returns:
        The contrasts, and how many traits were tried.
    """
    total = math.fsum(each.weight for each in queries)
    names = Counter(trait for each in queries for trait in {trait for row in (*each.up, *each.down) for trait in row})
    only = len(queries) == 1
    found = [
        contrast
        for trait, n in names.items()
        if only or n >= MIN_QUERIES
        if (contrast := _contrast(trait, queries, total)) is not None
    ]
    if only:
        clear = sorted(
            (each for each in found if each.trait.kind is not TraitKind.LENGTH and _parts(each.trait, queries[0])),
            key=lambda each: (list(TraitKind).index(each.trait.kind), each.trait),
        )
        return tuple(clear[:MAX_OF_QUERY]), len(found)
    adjusted = benjamini_yekutieli([each.p for each in found])
    kept = [replace(each, q=q) for each, q in zip(found, adjusted, strict=True) if q is not None and q <= 0.05]
    return tuple(sorted(kept, key=_rank)), len(found)


def _rank(found: TraitContrast) -> tuple[float, int, Trait]:
    """First those that explain most and part the results most clearly, in steps; within them the more specific trait."""
    strength = found.share * min(found.separation, 1.0)
    if found.trait.kind is TraitKind.LENGTH:
        strength /= 2  # a field that has more of the words is longer
    return -round(strength, 1), list(TraitKind).index(found.trait.kind), found.trait


def _contrast(trait: Trait, queries: Sequence[Sides], total: float) -> TraitContrast | None:
    """The contrast of a trait; None where it differs in too few queries."""
    steps, weights = [], []
    up_all, down_all = [], []
    for each in queries:
        up, down = (_known(trait, rows) for rows in (each.up, each.down))
        if not up or not down:
            continue
        up_all += up
        down_all += down
        step = float(np.mean(up) - np.mean(down))
        if step:
            steps.append(step)
            weights.append(each.weight)
    if not steps or (len(queries) > 1 and len(steps) < MIN_QUERIES):
        return None
    signs = np.sign(steps)
    way = 1.0 if float(signs @ np.array(weights)) >= 0 else -1.0
    p = sign_test(signs).p_two_sided if len(queries) > 1 else None
    share = way * float(signs @ np.array(weights)) / total if total else 0.0
    spread = float(np.std([*up_all, *down_all]))
    return TraitContrast(
        trait,
        float(np.mean(up_all)),
        float(np.mean(down_all)),
        len(up_all),
        len(down_all),
        len(steps),
        int((signs == way).sum()),
        share,
        abs(float(np.mean(steps))) / spread if spread else 0.0,
        p,
        None,
    )


def _known(trait: Trait, rows: Sequence[Described]) -> list[float]:
    """The trait of each result; a value that a document does not have is 0 where it has another one in the field."""
    if trait.kind is TraitKind.VALUE:
        has_field = [
            row for row in rows if any(each.kind is TraitKind.VALUE and each.field == trait.field for each in row)
        ]
        return [row.get(trait, 0.0) for row in has_field]
    return [row[trait] for row in rows if trait in row]


def _parts(trait: Trait, query: Sides) -> bool:
    """Whether a trait parts all results that came up from all that went down."""
    up, down = _known(trait, query.up), _known(trait, query.down)
    if len(up) < len(query.up) or len(down) < len(query.down):
        return False
    if trait.kind is TraitKind.VALUE and max(sum(up), sum(down)) < 2:
        return False  # what one document alone is, every document is
    return min(up) > max(down) or max(up) < min(down)
