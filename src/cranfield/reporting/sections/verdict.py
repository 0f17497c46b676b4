"""The verdict and the handful of numbers it rests on: the first thing a reader sees."""

from __future__ import annotations

from cranfield.evaluation.many_values import ManyComparison
from cranfield.evaluation.values import Comparison
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.numbers import format_delta, format_delta_interval, format_level, format_p, format_value
from cranfield.reporting.document import Fact, VerdictBlock
from cranfield.reporting.sections.labels import interval_tone, lettered
from cranfield.reporting.sections.subject import Subject


def verdict_block(subject: Subject) -> VerdictBlock | None:
    """The verdict with its sentence, its numbers, and whatever contradicts it; None without a comparison."""
    result = subject.result
    if result is None:
        return None
    facts = _pair_facts(result) if isinstance(result, Comparison) else _many_facts(result)
    varied = subject.sensitivity
    if varied is not None and varied.variations:
        facts = (*facts, Fact("Sensitivity", f"{varied.n_agree} of {len(varied.variations)}", "analyses agree"))
    verdict = result.verdict
    return VerdictBlock(
        verdict.name, verdict.sentence, verdict.code.tone, facts, verdict.reasons, verdict.disagreements
    )


def _many_facts(many: ManyComparison) -> tuple[Fact, ...]:
    tests, best = many.omnibus, many.verdict.best
    n_claims = sum(pair.verdict is not VerdictCode.NOT_SIGNIFICANT for pair in many.pairs)
    return (
        Fact("Systems", str(len(many.names)), f"{len(best)} best" if best else ""),
        Fact("Significant pairs", f"{n_claims} of {len(many.pairs)}", f"{many.options.test}, Holm"),
        Fact("Queries", str(len(many.query_ids)), f"{len(many.dropped)} left out" if many.dropped else "all of them"),
        Fact("Omnibus test", format_p(tests["permutation"].p_two_sided), "p, permutation"),
        Fact("Friedman test", format_p(tests["friedman"].p_two_sided), "p"),
    )


def _pair_facts(comparison: Comparison) -> tuple[Fact, ...]:
    about = comparison.measures[comparison.primary]
    declared = about.tests.get(comparison.test)
    name_a, name_b = lettered((comparison.baseline, comparison.candidate))
    measure = str(comparison.primary)
    tone = interval_tone(about.delta, about.ci_low, about.ci_high, comparison.primary)
    if comparison.verdict.code is VerdictCode.INVALID:
        tone = ""  # a difference that does not count is no news
    return (
        Fact(name_a, format_value(about.baseline.mean), f"mean {measure}"),
        Fact(name_b, format_value(about.candidate.mean), f"mean {measure}"),
        Fact("Difference", format_delta(about.delta), "B minus A", tone),
        Fact(
            f"{format_level(comparison.alpha)} CI",
            format_delta_interval((about.ci_low, about.ci_high)),
            about.interval_method,
        ),
        Fact("p", format_p(declared.p_two_sided if declared else None), f"{comparison.test}, two-sided"),
        Fact("Queries", str(about.n), f"{about.n_nonzero} differ"),
    )
