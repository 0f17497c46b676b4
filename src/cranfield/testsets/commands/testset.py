"""Manage test sets: convert, show, validate, edit, refresh."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from cranfield.app.command import Exit, Output, OutputFormat, Report, note
from cranfield.app.commands.shared import (
    ConventionOption,
    ForceOption,
    MeasureOption,
    OutArgument,
    OutOption,
    SeedOption,
    SetArgument,
    SetFormatOption,
    TodayOption,
    ToOption,
    day_of,
    load_set,
    refuse_existing,
    save_set,
)
from cranfield.base.errors import CranfieldError, UsageError
from cranfield.base.words import count_noun
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.plugins import provided

if TYPE_CHECKING:
    from cranfield.evaluation.options.blocks import TestSetOptions
    from cranfield.evaluation.testset.validate import Validation
    from cranfield.model import Target

SUBCOMMANDS = {
    "convert": __name__,
    "show": __name__,
    "validate": __name__,
    "stats": __name__,
    "verify": "cranfield.testsets.commands.upkeep",
    "rehash": "cranfield.testsets.commands.upkeep",
    "add": __name__,
    "diff": __name__,
    "split": __name__,
    "overfit": __name__,
}
"""Command to its module, in the order help lists them."""
EXIT_ERRORS = 2
EXIT_WARNINGS = 1


def show_command(
    testset: SetArgument,
    query_ids: Annotated[
        list[str] | None, Argument("Show these queries in full; default: list all.", metavar="QUERY_ID")
    ] = None,
    *,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> Report:
    """Show queries with their judgments and expected items. Without ids, list all queries, one per line."""
    from cranfield.evaluation.testset.expected import queries_of
    from cranfield.testsets.reports.testset import queries_document

    judged = load_set(testset, testset_format, options=options)
    query_ids = query_ids or []
    missing = [query_id for query_id in query_ids if query_id not in judged.by_id]
    if missing:
        some = ", ".join(map(repr, judged.query_ids[:3]))
        raise UsageError(f"unknown query {', '.join(map(repr, missing))}", path=str(testset), expected=f"{some}, …")
    return Report(document=queries_document(queries_of(judged, query_ids), in_full=bool(query_ids)))


def validate_command(
    testsets: Annotated[list[Path], Argument("Test set, in any supported format; one or more.", metavar="SET")],
    *,
    runs: Annotated[
        list[Path] | None,
        Option("Run to check patterns, ids and places against; repeat for more.", flag="--run", metavar="RUN"),
    ] = None,
    strict: Annotated[bool, Option("Also exit with 1 on warnings.")] = False,
    today: TodayOption = None,
    output: Output,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> Iterator[Report | CranfieldError]:
    """Check test sets and report all findings with their rules. Exits with 2 on errors."""
    from cranfield.testsets.reports.testset import findings_document

    if len(testsets) > 1:
        _refuse_several(testsets, runs, output)
    levels: set[str] = set()
    for testset in testsets:
        try:
            found = _validated(testset, runs, day_of(today), testset_format, options)
        except CranfieldError as error:
            if len(testsets) == 1:
                raise
            yield error  # the others are checked too
            levels.add("error")
        else:
            yield Report(document=findings_document(found))
            levels |= {finding.level for finding in found.findings}
    if "error" in levels:
        raise Exit(EXIT_ERRORS)
    if strict and levels:
        raise Exit(EXIT_WARNINGS)


def _refuse_several(testsets: Sequence[Path], runs: Sequence[Path] | None, output: Output) -> None:
    """Refuse what is of one test set."""
    given = {
        "--run": bool(runs),
        "--html": output.html is not None,
        "--open": output.open,
        f"--format {output.format}": output.format in {OutputFormat.JSON, OutputFormat.CSV},
    }
    if names := [name for name, is_given in given.items() if is_given]:
        raise UsageError(f"{names[0]} applies to a single test set", expected="one SET", got=f"{len(testsets)}")


def _validated(
    testset: Path, runs: Sequence[Path] | None, day: date, testset_format: str | None, options: TestSetOptions
) -> Validation:
    """Check one test set."""
    from cranfield.evaluation.testset.validate import validate

    if not runs and (large := _validated_in_parts(testset, testset_format, options)) is not None:
        for each in large.testset.notes:
            note(f"note: {each}")
        return large
    judged = load_set(testset, testset_format, ask=bool(runs), options=options)
    answers = {}
    if runs:
        from cranfield.app.named_runs import answers_of

        answers = {f"{place} {run}": answers_of(judged, run)[1] for place, run in enumerate(runs)}
    return validate(judged, today=day, runs=answers)


def _validated_in_parts(path: Path, testset_format: str | None, options: TestSetOptions) -> Validation | None:
    """The findings of a large set, with progress on stderr; None where it is read whole, which is noted if that costs memory."""
    in_parts = provided("large_test_sets")
    if in_parts is None:
        return None
    large: Validation | None = in_parts.validate_with_progress(path, testset_format, options)
    if large is None and in_parts.size_of(path) >= in_parts.LARGE_BYTES:
        note(
            "note: this test set is loaded as a whole, which takes many times its size in memory; TREC "
            "qrels, CSV, TSV, Parquet and BEIR folders are checked in parts if --queries FILE (lines of id and text, or JSON lines) is the only option"
        )
    return large


def stats_command(
    testset: SetArgument,
    *,
    by: Annotated[
        list[str] | None,
        Option(
            (
                "Stratum to cross-tabulate with the others; repeat to cross-tabulate only these; default: all "
                "strata that group queries."
            ),
            metavar="KEY",
        ),
    ] = None,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> Report:
    """Count the queries, judgments, grades and strata of a test set. Pairs of strata are cross-tabulated."""
    from itertools import combinations

    from cranfield.evaluation.testset.split import check_keys, strata_keys
    from cranfield.testsets.reports.testset import statistics_document
    from cranfield.testsets.statistics import statistics

    judged = load_set(testset, testset_format, options=options)
    check_keys(judged, by or ())
    keys = list(dict.fromkeys(by or ()))
    pairs = list(combinations(keys, 2)) if keys else None
    if len(keys) == 1:
        pairs = [(keys[0], other) for other in strata_keys(judged) if other != keys[0]]
    return Report(document=statistics_document(statistics(judged, pairs)))


def diff_command(
    old: Annotated[Path, Argument("Old version.", metavar="OLD")],
    new: Annotated[Path, Argument("New version.", metavar="NEW")],
    *,
    runs: Annotated[
        list[str] | None,
        Option("Score this run on both versions; repeat for more.", flag="--run", metavar="[NAME=]RUN"),
    ] = None,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
) -> Report:
    """Show the changes between two versions of a test set. With --run, also show how the means of the runs change."""
    from cranfield.testsets.diff import ScoreMove, diff
    from cranfield.testsets.reports.versions import difference_document

    before, after = load_set(old, ask=bool(runs)), load_set(new, ask=bool(runs))
    moves: tuple[ScoreMove, ...] = ()
    if runs:
        from cranfield.app.named_runs import named_runs
        from cranfield.testsets.diff import score_moves

        moves = score_moves(before, after, named_runs(runs), measures=measures or None, convention=convention)
    return Report(document=difference_document(diff(before, after, moves)))


def overfit_command(
    testset: SetArgument,
    run: Annotated[Path, Argument("Run with results for the queries of both parts.", metavar="RUN")],
    *,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
    seed: SeedOption = 0,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> Report:
    """Compare the scores of evaluated and held-out queries. A higher score on evaluated queries indicates overfitting."""
    from cranfield.testsets.diff import overfitting
    from cranfield.testsets.reports.versions import overfit_document

    judged = load_set(testset, testset_format, ask=True, options=options)
    found = overfitting(judged, run, measures=measures or None, convention=convention, seed=seed)
    return Report(document=overfit_document(found))


_SPAN = re.compile(r"(?P<path>.+):(?P<start>\d+)-(?P<end>\d+)")


def _many(flag: str, metavar: str, sentence: str) -> object:
    return Option(sentence, flag=flag, metavar=metavar)


IdOption = Annotated[
    str, _many("--id", "ID", "Id of a new or existing query; default, if the format has no ids: derived from the text.")
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
    from cranfield.evaluation.testset.edit import Addition, added, id_for, sentence_of
    from cranfield.formats.testsets.storage import lock_testset

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
    note(f"wrote {out or testset}: {what}; {count_noun(len(changed.queries), 'queries')}, {changed.digest[:19]}")


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    from cranfield.base.errors import UsageError, shorten

    wrong = [text for text in texts if not text.partition("=")[0] or not text.partition("=")[2]]
    if wrong:
        raise UsageError(f"--stratum {shorten(wrong[0])}", expected="KEY=VALUE")
    return {text.partition("=")[0]: text.partition("=")[2] for text in texts}


def _refuse_repeats(texts: Sequence[str]) -> None:
    from cranfield.base.errors import Problem, UsageError

    names = [_graded(text, "--relevant")[0] for text in texts]
    twice = sorted({name for place, name in enumerate(names) if name in names[:place]})
    if twice:
        raise UsageError([Problem(f"--relevant {name!r} is given twice") for name in twice])


def _graded(text: str, flag: str) -> tuple[str, float]:
    """What is judged, and its grade after the last `=`; 1 where none is written."""
    from cranfield.base.errors import UsageError, shorten

    name, equals, grade = text.rpartition("=")
    if not equals:
        return text, 1.0
    try:
        number = float(grade)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        hint = f"give an id that contains `=` with its grade: {flag} {shorten(text + '=1')}"
        raise UsageError(
            f"{flag} {shorten(text)}", expected="a number after the last `=`", got=shorten(grade), hint=hint
        )
    if not name:
        raise UsageError(f"{flag} {shorten(text)}", expected="a document, place or symbol before `=GRADE`")
    return name, number


def _targets(
    entities: Sequence[str], spans: Sequence[str], patterns: Sequence[str], files: Sequence[str]
) -> tuple[Target, ...]:
    from cranfield.base.errors import Problem, UsageError, shorten
    from cranfield.formats.io.delimited import pattern_error
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
    from cranfield.base.errors import UsageError
    from cranfield.evaluation.testset.split import split, with_split
    from cranfield.formats.testsets.storage import lock_testset

    with lock_testset(testset):
        judged = read_stored(testset)
        if judged.meta.split is not None and not force:
            raise UsageError(
                "the test set already has a held-out part",
                path=str(testset),
                hint="--force draws a new sample; the previously held-out queries may already have been inspected",
            )
        if out is not None:
            refuse_existing(out, force=force)
        drawn = split(judged, share=share, seed=seed, by=by)
        save_set(with_split(judged, drawn, day_of(today)), testset, out)
    n = len(drawn.held_out)
    within = f", stratified by {', '.join(drawn.by)}" if drawn.by else ""
    note(
        f"wrote {out or testset}: {count_noun(len(judged.queries) - n, 'queries')} to evaluate, {n} held out{within}, seed {seed}"
    )


@contextmanager
def _hint(sentence: str) -> Iterator[None]:
    """The next step, for problems of a test set that name none."""
    from cranfield.base.errors import TestSetError

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

    In the same format, only what the options change is written anew. Over a golden file of any form (with --force, or --to mapped),
    what changed is written back into it, and the rest of the file stays.
    """
    from cranfield.app.loading import apply_options, mapping_of, read_stored
    from cranfield.evaluation.options.blocks import NO_OPTIONS
    from cranfield.formats.convert import chosen_format, convert
    from cranfield.formats.io.files import STDIN
    from cranfield.formats.testsets.mapping_back import write_back
    from cranfield.formats.testsets.storage import format_of, save_spliced
    from cranfield.model import NoteKind

    refuse_existing(out, force=force)
    mapping = mapping_of(source, source_format, options.map)
    testset = read_stored(source, source_format, mapping)
    if options != NO_OPTIONS or testset.ratings:
        testset = apply_options(testset, options, source.parent)
    copied, same_format = None, ""
    if to == "mapped" or (to is None and out.is_file() and format_of(out).name == "mapped"):
        base = out if out.is_file() else source
        n = write_back(testset, base, out, mapping if base == source else mapping_of(out, None, {}))
        note(f"wrote {out}: {count_noun(n, 'queries')} changed, added or removed")
        return
    if str(source) != STDIN:
        entry = format_of(source, source_format)
        if entry is chosen_format(out, to):
            copied = save_spliced(testset, source, out, entry)
        elif entry.writer and source.suffix == out.suffix:
            same_format = f"--to {entry.name} keeps the format and all data of {source}"
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
    note(f"wrote {out}: {of}{count_noun(n_read, 'queries')}, {written.digest[:19]}")
