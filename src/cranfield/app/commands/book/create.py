"""`cranfield book create`: a book of a pool."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge, Interval

from cranfield.app.command import say
from cranfield.app.commands.book_options import DEFAULT_DATABASE, BookArgument, DbOption, open_books
from cranfield.options.declaration import Option
from cranfield.words import command_word

if TYPE_CHECKING:
    from cranfield.judging.pools.pool_file import Pool
    from cranfield.judging.settings import BookSettings, GradeScale


PoolOption = Annotated[Path, Option("Pool that `cranfield pool` wrote.", flag="--pool", metavar="FILE")]
ScaleOption = Annotated[
    str | None,
    Option(
        "Grades: binary, graded, detail, or a YAML file with levels; default: those that the test set of the pool "
        "declares, else graded.",
        flag="--scale",
        metavar="NAME",
    ),
]
PreferenceOption = Annotated[
    bool, Option("Ask which of two lists is better; each item of the pool holds both.", flag="--preference")
]
RatersOption = Annotated[int, Option("Raters of each item.", flag="--raters", metavar="N"), Interval(ge=1, le=10)]
OverlapOption = Annotated[
    float,
    Option("Share of the items that get as many raters; the rest get one.", flag="--overlap", metavar="SHARE"),
    Interval(ge=0, le=1),
]
MostRatersOption = Annotated[
    int,
    Option("Raters of an item before it is adjudicated.", flag="--most-raters", metavar="N"),
    Interval(ge=1, le=20),
]
EscalateFromOption = Annotated[
    int,
    Option("Range of grades from which another rater is needed.", flag="--escalate-from", metavar="N"),
    Ge(1),
]
QuotaOption = Annotated[
    int | None, Option("Most judgments of one rater; default: no limit.", flag="--quota", metavar="N"), Ge(1)
]
RepeatsOption = Annotated[
    float,
    Option("Share of a rater's items that are shown a second time.", flag="--repeats", metavar="SHARE"),
    Interval(ge=0, le=0.5),
]
CalibrationFirstOption = Annotated[
    int,
    Option(
        "Calibration items that each rater should grade; 0: queries with them do not come first.",
        flag="--calibration-first",
        metavar="N",
    ),
    Ge(0),
]
LeaseSecondsOption = Annotated[
    int,
    Option("Time for which a rater holds an item.", flag="--lease-seconds", metavar="S"),
    Interval(ge=10, le=86_400),
]
ConsensusOption = Annotated[str, Option("Rule by which grades are combined.", flag="--consensus", metavar="RULE")]
KappaLimitOption = Annotated[
    float | None,
    Option("Freeze only if Cohen's kappa is above; default: no limit.", flag="--kappa-limit", metavar="X"),
    Interval(ge=-1, le=1),
]
BlindOption = Annotated[
    bool, Option("Never show ranks, systems and other grades, not even after grading.", flag="--blind")
]
SeedOption = Annotated[int, Option("Random seed for orders and overlap.", flag="--seed", metavar="N"), Ge(0)]
GuidelineOption = Annotated[
    Path | None,
    Option("Guidelines for raters, as Markdown; default: built in.", flag="--guideline", metavar="FILE"),
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
    say(f"book {info.name}: {documents} of {queries}, in {store.where}")
    say(f"next: `cranfield judge {command_word(info.name)}`")


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
