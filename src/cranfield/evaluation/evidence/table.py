"""The table of evidence checks. The config, `--evidence`, the reports, the documentation and the tests read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from cranfield.evaluation.evidence.answers import broken_answer_rules
from cranfield.evaluation.evidence.freshness import kept_answers, resumed_answers
from cranfield.evaluation.evidence.limits import failed_queries, identical_runs, judged_share, unpaired_queries
from cranfield.evaluation.evidence.values import Consequence, Found, Scored, Sides
from cranfield.measures import Measure


@dataclass(frozen=True, slots=True)
class Check:
    """One evidence check; exactly one of its two functions is there."""

    name: str
    """As in the config: kebab-case."""
    sentence: str
    """What is wrong where it finds something."""
    formula: str
    """When it finds something, in terms of its threshold `t`."""
    threshold: float | None
    """`t`; None where a limit of the config sets it, and the check is off without."""
    consequence: Consequence
    system: Callable[[Scored, Measure | None, float], Iterator[Found]] | None = None
    """Of one system; the measure is the primary one, None where no measure has a value."""
    systems: Callable[[Sides, float], Iterator[Found]] | None = None
    """Of the systems of a comparison together."""
    limit: str = ""
    """The key of `limits:` that sets the threshold, where one does."""
    cause: str = ""
    """The usual cause and what to do about it, for the documentation."""


_ROWS = (
    Check(
        "kept-answers",
        "Answers were kept from an earlier run, and the system was not asked again.",
        "kept answers > t",
        0,
        Consequence.CAVEAT,
        system=kept_answers,
        cause="Run again with --refresh, or without cache_h in the config.",
    ),
    Check(
        "resumed-answers",
        "Answers of a run that was interrupted were old when it was resumed.",
        "answers of the interrupted part that are older than t hours > 0",
        1,
        Consequence.CAVEAT,
        system=resumed_answers,
        cause="Remove the folder .partial in the output folder before a run is repeated, to ask every query again.",
    ),
    Check(
        "failed-queries",
        "The system failed on too many queries, or has no answer to them.",
        "(failed + unanswered queries) / queries > t",
        0.1,
        Consequence.VOID,
        system=failed_queries,
        limit="max_failed_share",
        cause="Read the reasons of the failures in the report; raise the limit only where the failures are answers.",
    ),
    Check(
        "judged-share",
        "Too few of the results are judged.",
        "mean Judged@k < t, k the cutoff of the primary measure or 10",
        None,
        Consequence.VOID,
        system=judged_share,
        limit="min_judged_share",
        cause="Judge the results of every system to the depth of the primary measure.",
    ),
    Check(
        "unpaired-queries",
        "Too many queries have a value for some systems only, and are in no pair.",
        "queries with a value for some systems and not for all / queries > t",
        0.1,
        Consequence.VOID,
        systems=unpaired_queries,
        limit="max_failed_share",
        cause="Run every system on all queries.",
    ),
    Check(
        "answer-rules",
        "Answers break a rule that the config of their system declares for every answer.",
        "answers that break a rule of `preflight: every_answer` / answers > t",
        0,
        Consequence.VOID,
        system=broken_answer_rules,
        cause="The system answered in another mode than it was configured for: correct that, and run it again.",
    ),
    Check(
        "identical-runs",
        "Two systems have the same run: usually a file or a setting was named twice.",
        "digests of two runs are equal",
        0,
        Consequence.CAVEAT,
        systems=identical_runs,
        cause="Check the paths and the settings of both systems.",
    ),
)
CHECKS: Mapping[str, Check] = {check.name: check for check in _ROWS}
"""Every check by name, in the order findings are shown."""
