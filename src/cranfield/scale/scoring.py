"""What is computed of a run that is read in parts, as one value that can be sent to another machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cranfield.base.errors import MeasureError, Problem, UsageError
from cranfield.evaluation.absence import JUDGED_DEPTH
from cranfield.measures import CATALOGUE, DEFAULT_MEASURES, Measure, parse_all
from cranfield.measures.catalogue import is_composed
from cranfield.model import DEFAULT_CONVENTION, Convention, convention_named
from cranfield.ranking.scan import Duplicates, Missing


@dataclass(frozen=True, slots=True)
class Scoring:
    """Measures, and how the rows of a query are ordered, cut and counted."""

    measures: tuple[Measure, ...]
    convention: Convention
    systems: tuple[str, ...]
    """Names, in the order of the results."""
    missing: Missing = "zero"
    duplicates: Duplicates = "error"
    depth: int | None = None
    judged_depth: int = JUDGED_DEPTH
    """Depth of the judged share: the first k results."""

    @property
    def judged(self) -> Measure:
        """The share of the first results that is judged."""
        return Measure("Judged", (), self.judged_depth)

    @classmethod
    def of(
        cls,
        systems: Sequence[str],
        measures: Sequence[str] | None = None,
        *,
        convention: str | Convention = DEFAULT_CONVENTION,
        missing: Missing | None = None,
        duplicates: Duplicates | None = None,
        depth: int | None = None,
        primary: Measure | None = None,
    ) -> Scoring:
        """The same from names, with the defaults of the convention.

        The judged share is of the depth of the primary measure, by default the first one that can be.

        Raises:
            MeasureError: a measure is unknown, or needs more than ranks and grades.
            UsageError: no or equal names of systems, or a convention whose results depend on more than that.
        """
        rules = convention_named(convention)
        if duplicates is not None:
            rules = replace(rules, repeats="dropped")
        twice = {name for name in systems if list(systems).count(name) > 1}
        if not systems or twice:
            got = ", ".join(map(repr, sorted(twice))) or "none"
            raise UsageError("the systems have no distinct names", expected="a name for each, all different", got=got)
        _check_convention(rules)
        chosen = parse_all(DEFAULT_MEASURES if measures is None else measures)
        _check_measures(chosen)
        if depth is not None and depth < 1:
            raise UsageError(f"depth is {depth}", expected="a whole number of 1 or more")
        deeper = [each for each in chosen if depth is not None and each.depth is not None and each.depth > depth]
        if measures is None:
            chosen = tuple(each for each in chosen if each not in deeper)
        elif deeper:
            raise UsageError(
                f"depth is {depth}, and the cutoff of {', '.join(map(str, deeper))} is deeper",
                expected="a larger depth",
            )
        names, rest = tuple(systems), (missing or rules.missing, duplicates or rules.duplicates, depth)
        return cls(chosen, rules, names, *rest, _primary_depth(chosen, primary))


def _primary_depth(measures: Sequence[Measure], primary: Measure | None) -> int:
    if primary is None:
        primary = next(iter(quality_measures(measures) or measures), None)
    return (primary.depth if primary is not None else None) or JUDGED_DEPTH


def quality_measures(measures: Sequence[Measure]) -> list[Measure]:
    """Those that can decide a verdict."""
    rows = [(measure, CATALOGUE[measure.name]) for measure in measures]
    return [measure for measure, row in rows if row.aggregate == "mean" and not row.diagnostic]


def _check_convention(rules: Convention) -> None:
    problems = []
    if rules.name == "searchtweak":
        problems.append("has a scale for each measure")
    if rules.repeats == "kept":
        problems.append("keeps repeated results of a list")
    if rules.orders != "one":
        problems.append("orders ties differently for each measure")
    if problems:
        raise UsageError(
            f"convention {rules.name} {' and '.join(problems)}, which a run that is read in parts cannot follow",
            expected="a convention with one order for all measures",
            hint="evaluate a file that fits into memory, or choose another with --convention",
        )


def _check_measures(measures: Sequence[Measure]) -> None:
    problems = [
        Problem(f"{measure} needs more than ranks and grades ({need})", hint="leave it out")
        for measure in measures
        if (need := CATALOGUE[measure.name].needs or ("strata" if is_composed(measure) else ""))
    ]
    if problems:
        raise MeasureError(problems)
