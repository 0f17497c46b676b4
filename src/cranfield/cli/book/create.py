"""`cranfield book create`: a book of a pool."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.book_options import DEFAULT_DATABASE, BookArgument, DbOption, open_books
from cranfield.words import command_word

if TYPE_CHECKING:
    from cranfield.judging.pools.pool_file import Pool
    from cranfield.judging.settings import BookSettings, GradeScale


PoolOption = Annotated[Path, typer.Option("--pool", metavar="FILE", help="Pool that `cranfield pool` wrote.")]
ScaleOption = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar="NAME",
        help="Grades: binary, graded, detail, or a YAML file with levels; default: those that the test set of the pool "
        "declares, else graded.",
    ),
]
PreferenceOption = Annotated[
    bool, typer.Option("--preference", help="Ask which of two lists is better; each item of the pool holds both.")
]
RatersOption = Annotated[int, typer.Option("--raters", metavar="N", min=1, max=10, help="Raters of each item.")]
OverlapOption = Annotated[
    float,
    typer.Option(
        "--overlap",
        metavar="SHARE",
        min=0,
        max=1,
        help="Share of the items that get as many raters; the rest get one.",
    ),
]
MostRatersOption = Annotated[
    int,
    typer.Option("--most-raters", metavar="N", min=1, max=20, help="Raters of an item before it is adjudicated."),
]
EscalateFromOption = Annotated[
    int,
    typer.Option("--escalate-from", metavar="N", min=1, help="Range of grades from which another rater is needed."),
]
QuotaOption = Annotated[
    int | None, typer.Option("--quota", metavar="N", min=1, help="Most judgments of one rater; default: no limit.")
]
RepeatsOption = Annotated[
    float,
    typer.Option(
        "--repeats", metavar="SHARE", min=0, max=0.5, help="Share of a rater's items that are shown a second time."
    ),
]
CalibrationFirstOption = Annotated[
    int,
    typer.Option(
        "--calibration-first",
        metavar="N",
        min=0,
        help="Calibration items that each rater should grade; 0: queries with them do not come first.",
    ),
]
LeaseSecondsOption = Annotated[
    int,
    typer.Option("--lease-seconds", metavar="S", min=10, max=86_400, help="Time for which a rater holds an item."),
]
ConsensusOption = Annotated[str, typer.Option("--consensus", metavar="RULE", help="Rule by which grades are combined.")]
KappaLimitOption = Annotated[
    float | None,
    typer.Option(
        "--kappa-limit",
        metavar="X",
        min=-1,
        max=1,
        help="Freeze only if Cohen's kappa is above; default: no limit.",
    ),
]
BlindOption = Annotated[
    bool, typer.Option("--blind", help="Never show ranks, systems and other grades, not even after grading.")
]
SeedOption = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Random seed for orders and overlap.")]
GuidelineOption = Annotated[
    Path | None,
    typer.Option("--guideline", metavar="FILE", help="Guidelines for raters, as Markdown; default: built in."),
]


def create_command(
    name: BookArgument,
    *,
    pool: PoolOption,
    scale: ScaleOption = None,
    preference: PreferenceOption = False,
    raters: RatersOption = 1,
    overlap: OverlapOption = 1.0,
    most_raters: MostRatersOption = 3,
    escalate_from: EscalateFromOption = 2,
    quota: QuotaOption = None,
    repeats: RepeatsOption = 0.0,
    calibration_first: CalibrationFirstOption = 5,
    lease_seconds: LeaseSecondsOption = 600,
    consensus: ConsensusOption = "median",
    kappa_limit: KappaLimitOption = None,
    blind: BlindOption = False,
    seed: SeedOption = 0,
    guideline: GuidelineOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Make a book of a pool. What the pool brings with it, carried over or prefilled by a rule, no rater is asked for."""
    from cranfield.judging.pools.pool_io import read_pool
    from cranfield.judging.settings import BookSettings, Mode, scale_of

    content = read_pool(pool)
    settings = BookSettings(
        mode=Mode.PREFERENCE if preference else Mode.GRADE,
        scale=scale_of(content.scale) if scale is None else read_scale(scale),
        raters_per_item=raters,
        overlap=overlap,
        most_raters=most_raters,
        escalate_from=escalate_from,
        quota=quota,
        repeats=repeats,
        calibration_first=calibration_first,
        lease_seconds=lease_seconds,
        consensus=check_rule(consensus),
        kappa_limit=kappa_limit,
        reveal="never" if blind else "after",
        seed=seed,
    )
    make_book(name, content, settings, guideline, db)


def make_book(name: str, pool: Pool, settings: BookSettings, guideline: Path | None, db: str) -> None:
    """Make the book, and print what it holds."""
    from cranfield.judging.pools.pool_io import require_texts
    from cranfield.words import n_of

    text = None if guideline is None else read_guideline(guideline)
    require_texts(pool)
    with closing(open_books(db, create=True)) as store:
        info = store.books.create(name, pool, settings, guideline=text)
    documents, queries = n_of(info.n_items, "documents"), n_of(info.n_queries, "queries")
    typer.echo(f"book {info.name}: {documents} of {queries}, in {store.where}")
    typer.echo(f"next: `cranfield judge {command_word(info.name)}`")


def read_scale(given: str) -> GradeScale:
    """A scale by name, or of a YAML file with `name` and `levels`.

    Raises:
        UsageError: there is none of this name; or the file is no scale, with all of its problems.
    """
    from cranfield.errors import ConfigError, UnknownNameError
    from cranfield.formats.io.validation import load_model
    from cranfield.judging.settings import SCALES, GradeScale

    if given in SCALES:
        return SCALES[given]
    if not given.endswith((".yaml", ".yml", ".json")):
        raise UnknownNameError.among("scale", given, SCALES)
    return load_model(Path(given), GradeScale, ConfigError)


def check_rule(name: str) -> str:
    """The name of a consensus rule.

    Raises:
        UnknownNameError: there is none of this name.
    """
    from cranfield.errors import UnknownNameError
    from cranfield.stats.consensus import CONSENSUS

    if name not in CONSENSUS:
        raise UnknownNameError.among("consensus rule", name, CONSENSUS)
    return name


def read_guideline(path: Path) -> str:
    """The text of a file of guidelines.

    Raises:
        InputError: it cannot be read, is not text, or is empty.
    """
    from cranfield.errors import InputError
    from cranfield.formats.io.files import decode, read_bytes

    text = decode(read_bytes(path, InputError), path, InputError)
    if not text.strip():
        raise InputError("the guidelines are empty", path=str(path))
    return text
