"""Store production queries: redacted, counted, exported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from cranfield.app.command import say
from cranfield.books.options import DEFAULT_DATABASE, DbOption, WorkbenchOption, open_books
from cranfield.evaluation.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.workbench.config import Intake
    from cranfield.workbench.service.intake.intake import IntakeCounts
    from cranfield.workbench.service.store.queries import ProductionQueries

SUBCOMMANDS = dict.fromkeys(("add", "list", "export", "purge"), __name__)
DEFAULT = "add"
DEFAULT_SOURCE = "production"
LogArgument = Annotated[Path, Argument("Log of queries, optionally compressed; - reads standard input.", metavar="LOG")]
SourceOption = Annotated[
    str, Option("Name of the source of the queries; use one name per log.", flag="--source", metavar="NAME")
]
FormatOption = Annotated[
    str,
    Option(
        (
            "lines, csv, tsv, traces (spans, JSON Lines), combined (access log), or a format of the operator's file; default: "
            "taken from the content or the extension, else lines."
        ),
        flag="--log-format",
        metavar="FORMAT",
    ),
]
OnlySourceOption = Annotated[
    str | None, Option("Only queries of this source; default: all.", flag="--source", metavar="NAME")
]
SinceOption = Annotated[
    str | None, Option("Only queries of this day (UTC) or later: 2026-11-23.", flag="--since", metavar="DAY")
]
LeastOption = Annotated[
    int,
    Option(
        "Only queries that occur at least this often; rare queries may be private.", flag="--min-count", metavar="N"
    ),
    Ge(1),
]
JsonOption = Annotated[bool, Option("Print JSON.", flag="--json")]


@contextmanager
def _opened(db: str, workbench: Path | None, *, create: bool = False) -> Iterator[tuple[ProductionQueries, Intake]]:
    """The stored queries, without those that are too old, and the operator's settings."""
    from cranfield.workbench.config import Workbench, load_workbench

    config = (load_workbench(workbench) if workbench is not None else Workbench()).intake
    with closing(open_books(db, create=create)) as store:
        from cranfield.workbench.service.intake.intake import purge
        from cranfield.workbench.service.store.queries import ProductionQueries

        queries = ProductionQueries(store.database, store.clock)
        purge(queries, config, store.clock)
        yield queries, config


def add_command(
    log: LogArgument,
    *,
    source: SourceOption = DEFAULT_SOURCE,
    log_format: FormatOption = "",
    workbench: WorkbenchOption = None,
    db: DbOption = DEFAULT_DATABASE,
    as_json: JsonOption = False,
) -> None:
    """Read a log of production queries, redact them, and count them by day and source.

    A file that begins with what was read before is read from there on: the same log, longer, rotated or compressed, does not count
    twice. Standard input counts each time.
    """
    from cranfield.workbench.service.intake.reading import (
        LONGEST_LINE,
        LONGEST_SPANS,
        TRACES,
        format_of_name,
        reader_of,
    )

    with _opened(db, workbench, create=True) as (queries, config):
        from cranfield.books.database.engine import now_ms
        from cranfield.workbench.service.intake.intake import Taking, check_source

        name = format_of_name(log_format, config.logs, str(log))
        taking = Taking(queries, config, check_source(source), now_ms)
        counts = taking.file(log, reader_of(name, config.logs), LONGEST_SPANS if name == TRACES else LONGEST_LINE)
    say(_as_json(counts) if as_json else "\n".join(_summary(counts, source)))


def _summary(counts: IntakeCounts, source: str) -> Iterator[str]:
    from cranfield.base.words import count_noun

    yield f"{source}: read {count_noun(counts.n_read, 'records')}, kept {counts.n_kept} ({count_noun(counts.n_queries, 'queries')})"
    if counts.dropped:
        parts = (f"{n} {reason.replace('_', ' ')}" for reason, n in counts.dropped.most_common())
        yield f"dropped {counts.dropped.total()}: {', '.join(parts)}"
    if counts.redacted.total():
        yield f"redacted: {', '.join(f'{n} {kind}' for kind, n in counts.redacted.most_common() if n)}"
    if counts.n_known:
        yield f"not counted again: {count_noun(counts.n_known, 'records')} (read before)"
    if counts.unfinished:
        yield "the last line of the file is incomplete: the next call reads it, once it ends with a line break"


def _as_json(counts: IntakeCounts) -> str:
    from cranfield.workbench.service.responses import IntakeResponse

    return IntakeResponse.model_validate(counts).model_dump_json(indent=2)


def list_command(
    *, workbench: WorkbenchOption = None, db: DbOption = DEFAULT_DATABASE, as_json: JsonOption = False
) -> None:
    """List the sources with their numbers of queries and their days."""
    import json
    from dataclasses import asdict

    from cranfield.base.words import count_noun

    with _opened(db, workbench) as (queries, config):
        found = queries.counts()
    if as_json:
        say(json.dumps([asdict(each) for each in found], indent=2))
        return
    for each in found:
        days = f"{each.first_day} to {each.last_day}"
        say(f"{each.source}: {count_noun(each.n, 'queries')}, {each.n_texts} of them different, {days}")
    if not found:
        say(f"no queries are stored (they are kept for {config.keep_days} days)")


def export_command(
    out: Annotated[Path, Argument("File of JSON Lines to write; - is standard output.", metavar="OUT")],
    *,
    source: OnlySourceOption = None,
    since: SinceOption = None,
    min_count: LeastOption = 1,
    force: Annotated[bool, Option("Replace an existing file.")] = False,
    workbench: WorkbenchOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Write the stored queries with their counts as a log for `cranfield testset refresh --log FILE`, the most frequent first."""
    import json

    from cranfield.app.command import note
    from cranfield.app.commands.shared import refuse_existing
    from cranfield.base.errors import UsageError
    from cranfield.base.words import count_noun
    from cranfield.formats.io.files import STDIN, write_text
    from cranfield.workbench.service.intake.intake import check_day

    to_file = str(out) != STDIN
    if to_file:
        refuse_existing(out, force=force)
    with _opened(db, workbench) as (queries, _):
        found = queries.top(source, check_day(since), None, at_least=min_count)
    if not found:
        raise UsageError(
            "no stored query matches these options",
            path=db,
            hint="`cranfield intake list` shows the sources and their days",
        )
    lines = [json.dumps({"query": each.text, "count": each.n}, ensure_ascii=False) + "\n" for each in found]
    if not to_file:
        say("".join(lines), end="")
        return
    write_text(out, lines)
    note(f"wrote {out}: {count_noun(len(found), 'queries')}, {count_noun(sum(each.n for each in found), 'times')}")


def purge_command(
    *,
    source: Annotated[str | None, Option("Delete all queries of this source.", metavar="NAME")] = None,
    workbench: WorkbenchOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Delete queries older than the retention period of the operator's file (every command does this), or all queries of a source."""
    from cranfield.base.words import count_noun

    with _opened(db, workbench) as (queries, config):
        if source is not None:
            say(f"deleted {count_noun(queries.delete(source), 'rows')} of {source}")
        kept = sum(each.n for each in queries.counts())
    say(f"{count_noun(kept, 'queries')} of the last {config.keep_days} days are stored")
