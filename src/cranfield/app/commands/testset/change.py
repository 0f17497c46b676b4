"""Commands that write a changed test set: add, split, convert."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from cranfield.app.command import note
from cranfield.app.commands.testset.common import (
    ForceOption,
    OutArgument,
    OutOption,
    SetArgument,
    TodayOption,
    ToOption,
    day_of,
    refuse_existing,
    save_set,
)
from cranfield.options.declaration import Argument, Option
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.model import Target
    from cranfield.options.testset import TestSetOptions

_SPAN = re.compile(r"(?P<path>.+):(?P<start>\d+)-(?P<end>\d+)")


def _many(flag: str, metavar: str, sentence: str) -> object:
    return Option(sentence, flag=flag, metavar=metavar)


IdOption = Annotated[
    str, _many("--id", "ID", "Id of a new or existing query; default, where the format has none: from the text.")
]
StratumOption = Annotated[list[str] | None, _many("--stratum", "KEY=VALUE", "Stratum of the query; repeat for more.")]
RelevantOption = Annotated[
    list[str] | None,
    _many("--relevant", "DOC[=GRADE]", "Judged document; the grade follows the last `=`; repeat for more."),
]
EntityOption = Annotated[list[str] | None, _many("--entity", "PATH::NAME[=GRADE]", "Expected symbol; repeat for more.")]
SpanOption = Annotated[list[str] | None, _many("--span", "PATH:FIRST-LAST[=GRADE]", "Expected lines; repeat for more.")]
PatternOption = Annotated[
    list[str] | None, _many("--pattern", "REGEX", "Pattern that matches document ids, grade 1; repeat for more.")
]


def add_command(
    testset: SetArgument,
    *,
    query_id: IdOption = "",
    text: Annotated[str, Option("Text of the query.", metavar="TEXT")] = "",
    strata: StratumOption = None,
    query_class: Annotated[str, Option("Class of the query: a name or letter.", flag="--class", metavar="CLASS")] = "",
    negative: Annotated[bool, Option("Negative query: no document is relevant.")] = False,
    relevant: RelevantOption = None,
    entities: EntityOption = None,
    spans: SpanOption = None,
    patterns: PatternOption = None,
    files: Annotated[list[str] | None, _many("--file", "PATH[=GRADE]", "Expected file; repeat for more.")] = None,
    out: OutOption = None,
    force: ForceOption = False,
    today: TodayOption = None,
) -> None:
    """Add a query, or judgments of a query. Counts, date and history of the test set are updated.

    The grade follows the last `=` and defaults to 1. An id that contains `=` must be followed by a grade: `a=b=1`.
    """
    from cranfield.app.loading import read_stored
    from cranfield.testsets.edit import Addition, added, id_for, sentence_of
    from cranfield.testsets.storage import lock_testset

    _refuse_repeats(relevant or ())
    if out is not None:
        refuse_existing(out, force=force)
    addition = Addition(
        query_id,
        text,
        _pairs(strata or ()),
        query_class,
        negative=negative,
        grades=dict(_graded(text, "--relevant") for text in relevant or ()),
        targets=_targets(entities or (), spans or (), patterns or (), files or ()),
    )
    with lock_testset(testset):
        stored = read_stored(testset)
        addition = replace(addition, query_id=id_for(stored, query_id, text))
        old = stored.by_id.get(addition.query_id)
        changed = added(stored, addition, day_of(today))
        what = sentence_of(old, changed.by_id[addition.query_id], addition)
        saved = save_set(changed, testset, out)
    for path in saved:
        if path != (out or testset) and (out or testset).is_file():
            note(f"wrote {path}: counts, date and history")
    note(f"wrote {out or testset}: {what}; {n_of(len(changed.queries), 'queries')}, {changed.digest[:19]}")


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    from cranfield.errors import UsageError, shorten

    wrong = [text for text in texts if not text.partition("=")[0] or not text.partition("=")[2]]
    if wrong:
        raise UsageError(f"--stratum {shorten(wrong[0])}", expected="KEY=VALUE")
    return {text.partition("=")[0]: text.partition("=")[2] for text in texts}


def _refuse_repeats(texts: Sequence[str]) -> None:
    from cranfield.errors import Problem, UsageError

    names = [_graded(text, "--relevant")[0] for text in texts]
    twice = sorted({name for place, name in enumerate(names) if name in names[:place]})
    if twice:
        raise UsageError([Problem(f"--relevant {name!r} is given twice") for name in twice])


def _graded(text: str, flag: str) -> tuple[str, float]:
    """What is judged, and its grade after the last `=`; 1 where none is written."""
    from cranfield.errors import UsageError, shorten

    name, equals, grade = text.rpartition("=")
    if not equals:
        return text, 1.0
    try:
        number = float(grade)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        hint = f"an id that holds `=` is given with its grade: {flag} {shorten(text + '=1')}"
        raise UsageError(
            f"{flag} {shorten(text)}", expected="a number after the last `=`", got=shorten(grade), hint=hint
        )
    if not name:
        raise UsageError(f"{flag} {shorten(text)}", expected="what is judged, before `=GRADE`")
    return name, number


def _targets(
    entities: Sequence[str], spans: Sequence[str], patterns: Sequence[str], files: Sequence[str]
) -> tuple[Target, ...]:
    from cranfield.errors import Problem, UsageError, shorten
    from cranfield.formats.io.cells import pattern_error
    from cranfield.model import Entity, File, Pattern, Span

    problems = []
    found: list[Target] = [Entity(*_graded(text, "--entity")) for text in entities]
    for text in spans:
        place, grade = _graded(text, "--span")
        match = _SPAN.fullmatch(place)
        if match is None or not 1 <= int(match["start"]) <= int(match["end"]):
            problems.append(
                Problem(f"--span {shorten(text)}", expected="PATH:FIRST-LAST[=GRADE], lines counted from 1")
            )
        else:
            found.append(Span(match["path"], int(match["start"]), int(match["end"]), grade))
    for text in patterns:
        if why := pattern_error(text):
            problems.append(Problem(f"--pattern {shorten(text)} does not compile: {why}"))
        else:
            found.append(Pattern(text))
    found += [File(*_graded(text, "--file")) for text in files]
    if problems:
        raise UsageError(problems)
    return tuple(found)


def split_command(
    testset: SetArgument,
    *,
    share: Annotated[float, Option("Share of the queries to hold out.", metavar="SHARE")] = 0.2,
    seed: Annotated[int, Option("Random seed.", metavar="N"), Ge(0)] = 0,
    by: Annotated[
        list[str] | None,
        Option("Sample within this stratum; repeat for more; default: all strata that group queries.", metavar="KEY"),
    ] = None,
    out: OutOption = None,
    force: ForceOption = False,
    today: TodayOption = None,
) -> None:
    """Split a test set into evaluated and held-out queries. The split is stratified and stored in the test set."""
    from cranfield.app.loading import read_stored
    from cranfield.errors import UsageError
    from cranfield.testsets.split import split, with_split
    from cranfield.testsets.storage import lock_testset

    with lock_testset(testset):
        judged = read_stored(testset)
        if judged.meta.split is not None and not force:
            raise UsageError(
                "the set has a held-out part already",
                path=str(testset),
                hint="--force draws anew: what was held out may have been looked at",
            )
        if out is not None:
            refuse_existing(out, force=force)
        drawn = split(judged, share=share, seed=seed, by=by)
        save_set(with_split(judged, drawn, day_of(today)), testset, out)
    n = len(drawn.held_out)
    within = f", drawn within {', '.join(drawn.by)}" if drawn.by else ""
    note(
        f"wrote {out or testset}: {n_of(len(judged.queries) - n, 'queries')} to evaluate, {n} held out{within}, seed {seed}"
    )


@contextmanager
def _hint(sentence: str) -> Iterator[None]:
    """The next step, for problems of a test set that name none."""
    from cranfield.errors import TestSetError

    try:
        yield
    except TestSetError as error:
        raise TestSetError([replace(each, hint=each.hint or sentence) for each in error.problems]) from None


def convert_command(
    source: Annotated[Path, Argument("Test set, in any supported format.", metavar="IN")],
    out: OutArgument,
    *,
    source_format: Annotated[
        str | None,
        Option(
            "Format of IN; default: detected from the content.",
            flag="--from",
            metavar="FORMAT",
            choices="testset_formats",
        ),
    ] = None,
    to: ToOption = None,
    force: ForceOption = False,
    options: TestSetOptions,
) -> None:
    """Convert a test set to another format. Information that the format cannot store is reported.

    In the same format, only what the options change is written anew.
    """
    from cranfield.app.loading import apply_options, read_stored
    from cranfield.formats.convert import chosen_format, convert
    from cranfield.formats.io.files import STDIN
    from cranfield.formats.testsets.meta_file import format_of
    from cranfield.model import NoteKind
    from cranfield.options.testset import NO_OPTIONS
    from cranfield.testsets.storage import save_spliced

    refuse_existing(out, force=force)
    testset = read_stored(source, source_format)
    if options != NO_OPTIONS or testset.ratings:
        testset = apply_options(testset, options, source.parent)
    copied, same_format = None, ""
    if str(source) != STDIN:
        entry = format_of(source, source_format)
        if entry is chosen_format(out, to):
            copied = save_spliced(testset, source, out, entry)
        elif entry.writer and source.suffix == out.suffix:
            same_format = f"--to {entry.name} keeps the format of {source}, and everything that it says"
    with _hint(same_format):
        written, losses = (testset, copied.notes) if copied is not None else convert(testset, out, to)
    if source_format is None:
        note(f"{source} is read as {format_of(source).sentence}")
    noticed = [item for item in testset.notes if copied is None or item.kind is not NoteKind.NOT_CARRIED]
    for sentence in (*noticed, *losses):
        note(f"note: {sentence}")
    is_lossy = bool(losses) or any(item.kind is NoteKind.NOT_CARRIED for item in noticed)
    if is_lossy and same_format:
        note(f"hint: {same_format}")
    n, n_read = len(written.queries), len(testset.queries)
    of = "" if n == n_read else f"{n} of "
    note(f"wrote {out}: {of}{n_of(n_read, 'queries')}, {written.digest[:19]}")
