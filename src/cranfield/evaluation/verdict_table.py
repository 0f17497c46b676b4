"""The one table of verdicts: code, text, tone and meaning. Reports, JSON, `--fail-on` and the glossary read it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from cranfield.base.errors import UnknownNameError

VerdictTone = Literal["good", "bad", "even", "open", "void"]


class VerdictCode(StrEnum):
    """A verdict. Its value is the code that programs decide on, and that JSON and CSV hold; people read `text`."""

    text: str
    """The words of reports and messages: `no significant difference`."""
    tone: VerdictTone
    """How a report colours it."""
    meaning: str
    """A sentence for the glossary."""

    def __new__(cls, code: str, text: str, tone: VerdictTone, meaning: str) -> Self:
        """Make a row of the table."""
        row = str.__new__(cls, code)
        row._value_ = code
        row.text, row.tone, row.meaning = text, tone, meaning
        return row

    BETTER = (
        "better",
        "better",
        "good",
        "The confidence interval of the difference lies wholly in favour of the candidate; with classes, one is better and none worse.",
    )
    WORSE = (
        "worse",
        "worse",
        "bad",
        "The confidence interval of the difference lies wholly in favour of the baseline; with classes, one is worse and none better.",
    )
    NOT_SIGNIFICANT = (
        "not_significant",
        "no significant difference",
        "open",
        "The confidence interval contains zero, or no class confirms the difference. The report gives the smallest difference that this many queries could detect.",
    )
    EQUIVALENT = (
        "equivalent",
        "equivalent",
        "even",
        "A margin is declared, and the whole confidence interval lies within it.",
    )
    NON_INFERIOR = (
        "non_inferior",
        "non-inferior",
        "even",
        "A margin is declared, and a one-sided t test rules out a loss of the margin or more. Given as a reason, never as the verdict.",
    )
    MIXED = (
        "mixed",
        "mixed",
        "open",
        "Significantly better in one class of queries and significantly worse in another, whatever the mean over all queries.",
    )
    INVALID = (
        "invalid",
        "invalid",
        "void",
        "The scores do not count: too many queries failed, too few results are judged, or an evidence check found them void.",
    )
    ONE_BEST = (
        "one_best",
        "one best",
        "good",
        "With three or more systems, exactly one is significantly worse than no other.",
    )
    SEVERAL_BEST = (
        "several_best",
        "several best",
        "even",
        "With three or more systems, several are significantly worse than no other, or each is worse than some other.",
    )
    HELPS = "helps", "helps", "good", "Component: the system is significantly worse without it."
    HURTS = "hurts", "hurts", "bad", "Component: the system is significantly better without it."
    FASTER = (
        "faster",
        "faster",
        "good",
        "Latency: the confidence interval of the difference lies wholly below zero, and the difference is at least the smallest effect that counts.",
    )
    SLOWER = (
        "slower",
        "slower",
        "bad",
        "Latency: the confidence interval of the difference lies wholly above zero, and the difference is at least the smallest effect that counts.",
    )
    NEGLIGIBLE = (
        "negligible",
        "negligible",
        "even",
        "Latency: the confidence interval of the difference excludes zero, but the difference is below the smallest effect that counts.",
    )
    NOT_CLAIMED = (
        "not_claimed",
        "no verdict",
        "open",
        "Latency: the timings are not comparable, for the reasons given, such as no warm-up, cached answers or another day.",
    )


def parse_verdict(spelling: str) -> VerdictCode:
    """The verdict of a code or a text; blanks, hyphens and underscores count as the same.

    Example:
        >>> parse_verdict("not-significant").text
        'no significant difference'

    Raises:
        UnknownNameError: no verdict is spelled so.
    """
    key = _normalised(spelling)
    for code in VerdictCode:
        if key in {_normalised(known) for known in (code.value, code.text)}:
            return code
    raise UnknownNameError.among("verdict", spelling, list(VerdictCode))


def _normalised(spelling: str) -> str:
    return spelling.lower().replace("-", "_").replace(" ", "_")
