"""Section on why values changed: the traits of what came up and of what went down, and the documents behind each query's difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from cranfield.base.numbers import MINUS, format_average, format_count, format_delta, format_p, format_percent
from cranfield.base.words import and_list, capitalised, count_noun, join_first, printable, shorten_to, shown_id
from cranfield.evaluation.causes import (
    MIN_RETURNED,
    Causes,
    DocumentEffect,
    Known,
    Move,
    OneSided,
    QueryCause,
    Side,
)
from cranfield.evaluation.score_terms import WeightChange
from cranfield.evaluation.traits import SHARE, Trait, TraitContrast, TraitKind
from cranfield.measures import Measure
from cranfield.reporting.document import Block, Bullets, Details, Paragraph, Section
from cranfield.reporting.sections.subject import Subject, query_text
from cranfield.reporting.table_spec import Col, Columns, TableSpec

SHOWN_QUERIES, OPEN_QUERIES = 10, 2
SHOWN_TRAITS = 5
SHOWN_EFFECTS = 3
"""Documents that the sentence of a query names: those that make up most of its difference."""
SHOWN_SHARE = 0.8
"""Share of the effects that a sentence covers, where so many documents do."""
SHOWN_DOCS = 3
ID_COLUMNS, QUERY_COLUMNS = 30, 60
SHOWN_WEIGHTS = 12
READ_EFFECTS = (
    "A document adds the value of the list down to it, less that of the list down to the judged document above; the effects of all "
    "documents of a query add up to its difference."
)
READ_TRAITS = (
    "Share of the change: of the size of all differences, the part in queries where the trait differs in this direction, less the "
    "part where it differs in the other. q: adjusted for all traits that were tried (Benjamini-Yekutieli). A trait that goes with a "
    "change need not be its cause."
)


def causes(subject: Subject) -> Section | None:
    """Why values changed; None unless a pair is compared and its scores count."""
    found = None if subject.pair is None or subject.is_void else subject.pair.causes
    if found is None:
        return None
    if found.refused:
        refused = Paragraph(f"Not parted by document: {found.refused}.")
        return Section("causes", "Why it changed", (*_weights(found), refused))
    if not found.queries:
        return None
    rows = list(found.queries.values())
    shown = rows[:SHOWN_QUERIES]
    which = (
        f"the {len(shown)} largest of {format_count(len(rows))} differences"
        if len(shown) < len(rows)
        else "all that differ"
    )
    blocks: list[Block] = [*_weights(found)]
    if found.one_sided is not None:
        blocks.append(Paragraph(f"{capitalised(cause_of_all(found.one_sided))}. {_examples(found.one_sided)}"))
    blocks += _traits(found)
    lines = [_of_query(subject, each, found.measure) for each in shown]
    blocks.append(Paragraph(f"{found.measure} by query, {which}:"))
    blocks.append(Bullets(tuple(lines[:OPEN_QUERIES])))
    if more := lines[OPEN_QUERIES:]:
        blocks.append(Details(f"{count_noun(len(more), 'queries')} more", (Bullets(tuple(more)),), in_text=True))
    notes = [Paragraph(READ_EFFECTS), *([Paragraph(READ_TRAITS)] if found.traits else [])]
    blocks.append(Details("How to read this", tuple(notes), in_text=True))
    return Section("causes", "Why it changed", tuple(blocks))


def _short(name: str) -> str:
    """An id on a line with others."""
    return shown_id(shorten_to(name, ID_COLUMNS), quoted=False)


def _of_query(subject: Subject, cause: QueryCause, measure: Measure) -> str:
    text = query_text(subject.record, cause.query)
    name = (
        f"{_short(cause.query)} “{printable(shorten_to(text, QUERY_COLUMNS))}”"
        if text and text != cause.query
        else _short(cause.query)
    )
    return f"{name} ({format_delta(cause.difference)}): {cause_sentence(cause, measure)}"


def _examples(found: OneSided) -> str:
    docs = join_first([_short(doc) for doc in found.docs], SHOWN_DOCS)
    opposite = f"; {count_noun(found.n_other, 'documents', format_count)} the other way round" if found.n_other else ""
    return f"Such as {docs}{opposite}. Each is returned for at least {MIN_RETURNED} queries."


def first_cause(subject: Subject) -> tuple[str, ...]:
    """What explains most of the change, as a line of the short form; none where nothing does."""
    found = None if subject.pair is None or subject.is_void else subject.pair.causes
    return (f"Why: {cause_of_all(found.ordered[0])}",) if found is not None and found.ordered else ()


def _weights(found: Causes) -> Iterator[Block]:
    """What the explanations of the scores say was changed."""
    settings = [weight_words(each) for each in found.weights if each.is_setting]
    others = [each for each in found.weights if not each.is_setting]
    if settings:
        yield Bullets(tuple(f"{words}." for words in settings[:SHOWN_WEIGHTS]))
    if len(settings) > SHOWN_WEIGHTS:
        yield Paragraph(f"{count_noun(len(settings) - SHOWN_WEIGHTS, 'further settings')} differ.", "note")
    if others:
        columns: Columns[WeightChange] = (
            Col("factor", lambda row: row.factor),
            Col("baseline", lambda row: row.baseline, "average"),
            Col("candidate", lambda row: row.candidate, "average"),
            Col("queries", lambda row: row.n_queries, "count"),
        )
        caption = "Factors of the scores that are constant on each system and differ: of the index, or of the documents"
        yield TableSpec(caption, others, columns).table(shown=SHOWN_QUERIES)


def weight_words(found: WeightChange) -> str:
    """`weight of title is 5 on the candidate, 1 on the baseline`."""
    name = f"{found.name} of {found.of}" if found.of else found.name
    if found.baseline is None or found.candidate is None:
        alone, value = ("candidate", found.candidate) if found.baseline is None else ("baseline", found.baseline)
        return f"{name} is {_number(value)} on the {alone}; no score of the other system has it"
    return f"{name} is {_number(found.candidate)} on the candidate, {_number(found.baseline)} on the baseline"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}".replace("-", MINUS)


def _traits(found: Causes) -> Iterator[Block]:
    if not found.traits:
        if found.n_tried:
            yield Paragraph(
                f"No trait sets the results that came up apart from those that went down over all queries, of {count_noun(found.n_tried, 'traits', format_count)} tried."
            )
        return
    columns: Columns[TraitContrast] = (
        Col("trait", lambda row: trait_name(row.trait)),
        Col("came up", lambda row: trait_figure(row.trait, row.up)),
        Col("went down", lambda row: trait_figure(row.trait, row.down)),
        Col("queries", lambda row: f"{row.n_same_way} of {row.n_queries}"),
        Col("share of the change", lambda row: format_percent(row.share)),
        Col("q", lambda row: format_p(row.q)),
    )
    caption = f"What sets results that came up apart from those that went down: {count_noun(len(found.traits), 'traits')} of {format_count(found.n_tried)} tried"
    yield TableSpec(caption, found.traits, columns).table(shown=SHOWN_TRAITS)


def trait_name(trait: Trait) -> str:
    """`type is pdf`, `words of the query in title`."""
    return {
        TraitKind.VALUE: f"{trait.field} is {trait.value}",
        TraitKind.MATCH: f"words of the query in {trait.field}",
        TraitKind.BALANCE: f"words of the query in {trait.field}, less those in {trait.value}",
        TraitKind.NUMBERS: "numbers of the query",
        TraitKind.OTHER_FORM: "words of the query in another form alone",
        TraitKind.NO_MATCH: "words of the query in no form",
        TraitKind.EXPLANATION: f"share of the score by {trait.field}"
        if trait.value == SHARE
        else f"{trait.field} in the score",
        TraitKind.NUMBER: trait.field,
        TraitKind.DATE: trait.field,
        TraitKind.LENGTH: f"length of {trait.field}",
    }[trait.kind]


def trait_figure(trait: Trait, value: float) -> str:
    """The mean of a trait as it is read: a share, a date, a number of characters."""
    if trait.kind in {TraitKind.NUMBER, TraitKind.LENGTH} or (
        trait.kind is TraitKind.EXPLANATION and trait.value != SHARE
    ):
        return format_average(value)
    if trait.kind is TraitKind.DATE:
        return datetime.fromtimestamp(value, UTC).date().isoformat()
    return format_percent(value)


def trait_words(found: TraitContrast) -> str:
    """`words of the query in title: 83 % of what came up, 20 % of what went down`."""
    up, down = (trait_figure(found.trait, value) for value in (found.up, found.down))
    return f"{trait_name(found.trait)}: {up} where it came up, {down} where it went down"


def cause_of_all(found: WeightChange | OneSided | TraitContrast) -> str:
    """A cause of the change as a whole, as a sentence without a full stop."""
    if isinstance(found, WeightChange):
        return weight_words(found)
    if isinstance(found, TraitContrast):
        return trait_words(found)
    other = "candidate" if found.only is Side.BASELINE else "baseline"
    which = f", all with {and_list([trait_name(trait) for trait in found.common])}" if found.common else ""
    return (
        f"{count_noun(found.n_docs, 'documents', format_count)} that the {found.only.value} returns for several queries and the {other} "
        f"for none{which}: {format_percent(found.share)} of what {'left or fell' if found.only is Side.BASELINE else 'entered or rose'}"
    )


def cause_sentence(cause: QueryCause, measure: Measure) -> str:
    """What became of the documents that make up most of a difference, and what those that came before them have in common."""
    return "; ".join(cause_lines(cause, measure))


def cause_lines(cause: QueryCause, measure: Measure) -> list[str]:
    """The same, a part each."""
    total = sum(abs(each.effect) for each in cause.effects)
    named: list[DocumentEffect] = []
    for effect in cause.effects[:SHOWN_EFFECTS]:
        if named and sum(abs(each.effect) for each in named) >= SHOWN_SHARE * total:
            break
        named.append(effect)
    parts = [effect_words(effect, measure) for effect in named]
    left = cause.effects[len(named) :]
    if left:
        parts.append(
            f"{count_noun(len(left), 'further documents')} ({format_delta(sum(each.effect for each in left))})"
        )
    if cause.rest:
        parts.append(f"other numbers of results that are not judged ({format_delta(cause.rest)})")
    return [*parts, *map(trait_words, cause.traits)]


def effect_words(effect: DocumentEffect, measure: Measure) -> str:
    """`d1 fell from 4 to 14, out of the first 10 (−.21): behind 3 unjudged results (a, b, c)`."""
    ranks = _ranks(effect, measure)
    words = f"{_short(effect.doc)} {ranks} ({format_delta(effect.effect)})"
    if effect.overtaken_by:
        words += f": behind {_neighbours(effect.overtaken_by)}"
    elif effect.no_longer_before:
        words += f": no longer behind {_neighbours(effect.no_longer_before)}"
    return words


def _ranks(effect: DocumentEffect, measure: Measure) -> str:
    before, after = effect.baseline_rank, effect.candidate_rank
    limit = f"the first {measure.depth}" if measure.depth is not None else "the list"
    match effect.move:
        case Move.LEFT:
            return f"fell from {before} to {after}, out of {limit}" if after else f"was at {before} and is not returned"
        case Move.ENTERED:
            return f"rose from {before} to {after}, into {limit}" if before else f"is new at {after}"
        case Move.STAYED:
            return f"stays at {after}"
        case _:
            return f"{effect.move.value} from {before} to {after}"


def _neighbours(found: Mapping[str, Known]) -> str:
    """`2 unjudged and 1 relevant results (a, b, c)`."""
    counts = Counter(found.values())
    kinds = and_list(
        [
            f"{counts[known]} {known.value}"
            for known in (Known.UNJUDGED, Known.NOT_RELEVANT, Known.RELEVANT)
            if counts[known]
        ]
    )
    docs = join_first([_short(doc) for doc in found], SHOWN_DOCS)
    return f"{kinds} {'result' if len(found) == 1 else 'results'} ({docs})"
