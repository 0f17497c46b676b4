"""The one table of verdicts: code, text, tone and meaning. Reports, JSON, `--fail-on` and the glossary read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from cranfield.errors import UnknownNameError

VerdictTone = Literal["good", "bad", "even", "open", "void"]


class VerdictCode(StrEnum):
    """What programs decide on, and what JSON and CSV hold. People read `text`."""

    BETTER = "better"
    WORSE = "worse"
    NOT_SIGNIFICANT = "not_significant"
    EQUIVALENT = "equivalent"
    NON_INFERIOR = "non_inferior"
    MIXED = "mixed"
    INVALID = "invalid"
    ONE_BEST = "one_best"
    SEVERAL_BEST = "several_best"
    HELPS = "helps"
    HURTS = "hurts"
    FASTER = "faster"
    SLOWER = "slower"

    @property
    def text(self) -> str:
        """The words of reports and messages: `no significant difference`."""
        return VERDICTS[self].text

    @property
    def tone(self) -> VerdictTone:
        """How a report colours it."""
        return VERDICTS[self].tone


@dataclass(frozen=True, slots=True)
class VerdictSpec:
    """One row of the table."""

    code: VerdictCode
    text: str
    tone: VerdictTone
    meaning: str
    """A sentence for the glossary."""
    former: tuple[str, ...] = ()
    """Spellings of earlier versions, still read."""


_ROWS = (
    VerdictSpec(
        VerdictCode.BETTER,
        "better",
        "good",
        "The confidence interval of the difference lies wholly on the side of the candidate.",
    ),
    VerdictSpec(
        VerdictCode.WORSE,
        "worse",
        "bad",
        "The confidence interval of the difference lies wholly on the side of the baseline.",
    ),
    VerdictSpec(
        VerdictCode.NOT_SIGNIFICANT,
        "no significant difference",
        "open",
        "The confidence interval contains zero. The report gives the smallest difference that this many queries could detect.",
        ("not distinguished",),
    ),
    VerdictSpec(
        VerdictCode.EQUIVALENT,
        "equivalent",
        "even",
        "A margin is declared, and the whole confidence interval lies within it.",
    ),
    VerdictSpec(
        VerdictCode.NON_INFERIOR,
        "non-inferior",
        "even",
        "A margin is declared, and a one-sided t test rules out a loss of the margin or more. Given as a reason beside the "
        "verdict, never as the verdict.",
    ),
    VerdictSpec(
        VerdictCode.MIXED,
        "mixed",
        "open",
        "Better in one query class and worse in another. Reserved: no comparison reports it yet.",
    ),
    VerdictSpec(
        VerdictCode.INVALID,
        "invalid",
        "void",
        "The comparison does not count: too many queries failed, or too few of the results are judged.",
    ),
    VerdictSpec(
        VerdictCode.ONE_BEST,
        "one best",
        "good",
        "Of three systems or more, exactly one is significantly worse than no other.",
    ),
    VerdictSpec(
        VerdictCode.SEVERAL_BEST,
        "several best",
        "even",
        "Of three systems or more, several are significantly worse than no other, or each is worse than some other.",
    ),
    VerdictSpec(
        VerdictCode.HELPS,
        "helps",
        "good",
        "Of a component: the system is significantly worse without it.",
    ),
    VerdictSpec(
        VerdictCode.HURTS,
        "hurts",
        "bad",
        "Of a component: the system is significantly better without it.",
    ),
    VerdictSpec(
        VerdictCode.FASTER,
        "faster",
        "good",
        "Of latency: the confidence interval of the difference lies wholly below zero.",
    ),
    VerdictSpec(
        VerdictCode.SLOWER,
        "slower",
        "bad",
        "Of latency: the confidence interval of the difference lies wholly above zero.",
    ),
)

VERDICTS: Mapping[VerdictCode, VerdictSpec] = MappingProxyType({row.code: row for row in _ROWS})


def parse_verdict(spelling: str) -> VerdictCode:
    """The verdict of a code, a text or a former spelling; blanks, hyphens and underscores count as the same.

    Example:
        >>> parse_verdict("not-distinguished").text
        'no significant difference'

    Raises:
        UnknownNameError: no verdict is spelled so.
    """
    key = _normalised(spelling)
    for row in _ROWS:
        if key in {_normalised(known) for known in (row.code, row.text, *row.former)}:
            return row.code
    raise UnknownNameError.among("verdict", spelling, list(VerdictCode))


def is_former(spelling: str) -> bool:
    """Whether this spelling is one of an earlier version."""
    return _normalised(spelling) in {_normalised(known) for row in _ROWS for known in row.former}


def _normalised(spelling: str) -> str:
    return spelling.lower().replace("-", "_").replace(" ", "_")
