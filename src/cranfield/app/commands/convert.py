"""`cranfield convert`: a run in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cranfield.app.command import note, takes_runs
from cranfield.app.commands.shared import ConventionOption, ForceOption, OutArgument, ToOption, refuse_existing
from cranfield.evaluation.options.declaration import Argument


@takes_runs("run")
def convert_command(
    run: Annotated[Path, Argument("Run in any format that `cranfield evaluate` reads.", metavar="RUN")],
    out: OutArgument,
    *,
    to: ToOption = None,
    convention: ConventionOption = "trec",
    force: ForceOption = False,
) -> None:
    """Convert a run to another format.

    `.run` (TREC), `.jsonl` or `.csv`: only `.jsonl` stores fields and failed queries.
    """
    from cranfield.base.words import count_noun
    from cranfield.formats.convert import chosen_format, write_run
    from cranfield.ranking.collected import read_run_file

    refuse_existing(out, force=force)
    found = read_run_file(run, None, convention)
    for sentence in (*found.notes, *write_run(found, out, to)):
        note(f"note: {sentence}")
    n_empty = sum(not answer.hits for answer in found.answers.values())
    if n_empty and chosen_format(out, to, "run").name != "jsonl":
        note(f"note: not carried over: {count_noun(n_empty, 'queries')} without results")
    note(f"wrote {out}: {count_noun(len(found.answers), 'queries')}")
