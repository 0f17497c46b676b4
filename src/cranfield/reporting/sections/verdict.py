"""The verdict and the handful of numbers it rests on: the first thing a reader sees."""

from __future__ import annotations

from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.values import Comparison
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.numbers import format_delta, format_delta_interval, format_level, format_p, format_value
from cranfield.reporting.document import Fact, VerdictBlock
from cranfield.reporting.sections.naming import interval_tone, side_names


def verdict_block(comparison: Comparison, sensitivity: Sensitivity | None = None) -> VerdictBlock:
    """The verdict with its sentence, its numbers, and whatever speaks against it."""
    verdict = comparison.verdict
    varied: tuple[Fact, ...] = ()
    if sensitivity is not None and sensitivity.variations:
        varied = (Fact("Sensitivity", f"{sensitivity.n_agree} of {len(sensitivity.variations)}", "analyses agree"),)
    return VerdictBlock(
        name=verdict.name,
        sentence=verdict.sentence,
        tone=verdict.code.tone,
        facts=(*_facts(comparison), *varied),
        reasons=verdict.reasons,
        disagreements=verdict.disagreements,
    )


def _facts(comparison: Comparison) -> tuple[Fact, ...]:
    about = comparison.measures[comparison.primary]
    declared = about.tests.get(comparison.test)
    name_a, name_b = side_names(comparison)
    measure = str(comparison.primary)
    tone = interval_tone(about.delta, about.ci_low, about.ci_high, comparison.primary)
    if comparison.verdict.code is VerdictCode.INVALID:
        tone = ""  # a difference that does not count is no news
    return (
        Fact(name_a, format_value(about.baseline.mean), f"mean {measure}"),
        Fact(name_b, format_value(about.candidate.mean), f"mean {measure}"),
        Fact(
            "Difference",
            format_delta(about.delta),
            "B minus A",
            tone,
        ),
        Fact(
            f"{format_level(comparison.alpha)} CI",
            format_delta_interval((about.ci_low, about.ci_high)),
            about.interval_method,
        ),
        Fact("p", format_p(declared.p_two_sided if declared else None), f"{comparison.test}, two-sided"),
        Fact("Queries", str(about.n), f"{about.n_nonzero} differ"),
    )
