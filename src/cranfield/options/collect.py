"""Options of a collection: how queries are sent to systems."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Interval

from cranfield.options.declaration import Option, check

CONFIG = ("config",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectOptions:
    """Options of a collection: warm-up, repetitions, use of cached answers."""

    warm_up: Annotated[
        int,
        Option(help="Queries sent to each system beforehand; their answers are discarded.", places=CONFIG),
        Ge(0),
    ] = 0
    repeats: Annotated[
        int,
        Option(
            help="Times each query is sent. The first answer is scored; later differences are reported.", places=CONFIG
        ),
        Interval(ge=1, le=100),
    ] = 1
    cache_h: Annotated[
        float,
        Option(
            help="Hours for which answers are kept and used again, of systems that say in `depends` what their answers depend "
            "on; 0, the default, keeps none: every run asks the systems. The report says which answers were kept, and how old "
            "they are.",
            places=CONFIG,
        ),
        Ge(0),
    ] = 0
    seed: Annotated[int, Option(help="Random seed of the order in which systems take turns.", places=CONFIG), Ge(0)] = 0
    keep_going: Annotated[
        bool,
        Option(help="Send every query also to a system whose first ten queries all fail alike; default: stop."),
    ] = False
    cache_dir: Path | None = None
    """Folder of cached answers; None: no cache."""
    cache_root: Path | None = None
    """A folder above `cache_dir`, below which no link is followed; None: `cache_dir`, which may be a link."""
    refresh: bool = False
    """Replace cached answers by new ones."""
    if_interrupted: str = ""
    """What becomes of the answers of an interrupted collection, and how to go on; empty: the same command resumes it."""

    def __post_init__(self) -> None:
        check(self)
