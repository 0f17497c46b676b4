"""`cranfield testset split`: hold queries back, and store which."""

from __future__ import annotations

from typing import Annotated

import typer

from cranfield.cli.testset.common import (
    ForceOption,
    OutOption,
    SetArgument,
    TodayOption,
    day_of,
    note,
    refuse_existing,
    save_set,
)


def split_command(
    testset: SetArgument,
    *,
    share: Annotated[float, typer.Option("--share", metavar="SHARE", help="Share of the queries to hold out.")] = 0.2,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Random seed.")] = 0,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="KEY",
            help="Sample within this stratum; repeat for more; default: all strata that group queries.",
        ),
    ] = None,
    out: OutOption = None,
    force: ForceOption = False,
    today: TodayOption = None,
) -> None:
    """Split a test set into evaluated and held-out queries. The split is stratified and stored in the test set."""
    from cranfield.errors import UsageError
    from cranfield.testsets.split import split, with_split
    from cranfield.testsets.storage import folder_lock, read_stored
    from cranfield.words import n_of

    with folder_lock(testset):
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
