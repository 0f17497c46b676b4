"""`cranfield agreement`: how far the raters of a test set agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Report
from cranfield.app.commands.shared import SeedOption, TestSetFormatOption, require_single_stdin
from cranfield.evaluation.options.blocks import RULES, SCALES, TARGETS
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.formats.io.files import stem

if TYPE_CHECKING:
    from cranfield.model import TestSet


FilesArgument = Annotated[
    list[str],
    Argument(
        "Test set with ratings, or qrels by judge; or several files, each with the judgments of one rater.",
        metavar="[NAME=]FILE",
    ),
]
BinaryAtOption = Annotated[
    list[float] | None,
    Option(
        "Map each rating to relevant (from GRADE on) or not first; repeat to compare thresholds.",
        flag="--binary-at",
        metavar="GRADE",
    ),
]


def agreement_command(
    files: FilesArgument,
    *,
    rule: Annotated[
        str | None,
        Option(f"Consensus rule: {RULES}; default: the rule of the test set, or median.", metavar="RULE"),
    ] = None,
    scale: Annotated[
        str | None,
        Option(f"Scale of the ratings: {SCALES}; a list (0,1,2,4) or a range (1-5).", metavar="SCALE"),
    ] = None,
    to_scale: Annotated[str | None, Option(f"Convert the ratings first, to {TARGETS}.", metavar="SCALE")] = None,
    binary_at: BinaryAtOption = None,
    by: Annotated[
        str | None,
        Option("Also show the agreement for each value of this stratum.", metavar="STRATUM"),
    ] = None,
    seed: SeedOption = 0,
    testset_format: TestSetFormatOption = None,
) -> Report:
    """Report rater agreement.

    Coefficients with intervals, confusion matrices, and the rater who does not fit.
    """
    from cranfield.judging.raters.raters import rater_report
    from cranfield.judging.reports.agreement import agreement_document

    report = rater_report(
        _rated(files, testset_format), rule=rule, scale=scale, to=to_scale, binary_at=binary_at or (), by=by, seed=seed
    )
    return Report(document=agreement_document(report))


def _rated(files: Sequence[str], testset_format: str | None) -> TestSet:
    """The ratings of one file, or of several with a rater each."""
    from cranfield.base.errors import UsageError
    from cranfield.formats.sniff import read_testset
    from cranfield.judging.raters.raters import merge_raters

    if len(files) == 1 and ("=" not in files[0] or Path(files[0]).exists()):
        return read_testset(Path(files[0]), testset_format)
    named: dict[str, Path] = {}
    for spec in files:
        name, equals, place = spec.partition("=")
        path = Path(spec) if not equals or Path(spec).exists() else Path(place)
        name = stem(path) if not equals or Path(spec).exists() else name
        if not name:
            raise UsageError("a rater without a name", got=spec, expected="NAME=FILE")
        if name in named:
            hint = "use NAME=FILE to name the rater"
            raise UsageError(f"two files have the rater {name!r}", got=f"{named[name]} and {path}", hint=hint)
        named[name] = path
    require_single_stdin(list(named.values()))
    return merge_raters({name: read_testset(path, testset_format) for name, path in named.items()})
