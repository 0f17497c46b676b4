"""The `gate:` block of cranfield.yaml as pydantic models: the rules that a system must keep, a model for each kind.

A bound is an exact decimal, as in the file: 0.70 is seventy hundredths and not the float next to it. What a rule means is
in the table of rules, `cranfield.gate.rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, Tag, ValidationInfo, model_validator

from cranfield.base.errors import CranfieldError, Problem
from cranfield.config.amount import Amount, AnAmount, Bound
from cranfield.config.declared import MeanMeasureName, TestName
from cranfield.config.reading import check_answer_rule
from cranfield.config.services import Duration
from cranfield.config.strict import (
    Finding,
    ProductBlock,
    Strict,
    by_key,
    checked,
    exclusive_keys,
    known_in,
    raise_findings,
)
from cranfield.evaluation.options.blocks import DEFAULT_TEST
from cranfield.model.kinds import Text

if TYPE_CHECKING:
    from cranfield.config.models import Config


Where = Annotated[dict[str, Text], Field(min_length=1, json_schema_extra={"additionalProperties": {"type": "string"}})]
"""Stratum to value."""


def _check_correct(text: str) -> Iterator[Finding]:
    from cranfield.measures.threshold import parse_threshold

    try:
        parse_threshold(text)
    except CranfieldError as error:
        yield from (((), problem) for problem in error.problems)


CorrectRule = Annotated[str, checked(_check_correct)]


def _shares(model: Strict, *names: str) -> Iterator[Finding]:
    for name in names:
        bound = getattr(model, name)
        if bound is not None and not 0 <= bound <= 1:
            yield (name,), Problem(f"{name} is {bound:f}", expected="a number from 0 to 1")


class EveryAnswer(Strict):
    """Rule that a field of every answer must satisfy."""

    rule: Annotated[Text, checked(check_answer_rule)]
    """Rule on a field: `mode = semantic`, `confidence >= 0.5`."""
    at_most: AnAmount | None = None
    """Number of answers, `3`, or share of them, `2 %`, that may break it; default: none."""
    where: Where | None = None
    """Only queries of these strata."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"rule": value} if isinstance(value, str) else value

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """A number of answers that is not whole."""
        if self.at_most is not None:
            yield from whole_number(self.at_most, "answers")


def whole_number(amount: Amount, things: str) -> Iterator[Finding]:
    """The problem that a number of things is not whole."""
    number = amount.number
    if not amount.is_percent and number != number.to_integral_value():
        yield (), Problem(f"at_most is {amount}: write a whole number of {things}, or a share such as 2 %")


class StatedConfidenceRule(Strict):
    """What rules on a confidence have in common."""

    field: Text
    """Field of the answers with the confidence, a number from 0 to 1."""
    correct: CorrectRule
    """What makes an answer correct: a measure, with a bound unless it is 1: `Success@5`, `R@10 >= 0.5`."""
    where: Where | None = None
    """Only queries of these strata."""
    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Significance level; default: that of the config."""


class Ece(StatedConfidenceRule):
    """Largest expected calibration error of a confidence."""

    at_most: Bound
    """Largest ECE, in 10 bins of equal width."""
    significant: bool = False
    """An ECE above the bound that a calibrated score could have by chance, with these scores, is inconclusive."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """A bound that is no share."""
        yield from _shares(self, "at_most")


class CorrectAt(StatedConfidenceRule):
    """Smallest share of correct answers among the confident ones."""

    threshold: Bound = Decimal("0.8")
    """Confidence from which on an answer counts."""
    at_least: Bound
    """Smallest share of correct answers among them."""
    significant: bool = False
    """Use Wilson's interval of the share: the rule passes if its lower bound is at least `at_least`, fails if its upper bound
    is under it, and is inconclusive otherwise."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """Bounds that are no shares."""
        yield from _shares(self, "threshold", "at_least")


class Accuracy(Strict):
    """How often a field of the answers is the expected value of a stratum."""

    field: Text
    """Field of the answers that predicts a stratum: `task_type`."""
    stratum: Text | None = None
    """Stratum of the queries that it predicts; default: the one of the same name."""
    at_least: Bound | None = None
    """Smallest share of right predictions."""
    each_at_least: Bound | None = None
    """Smallest share of right predictions for each expected value."""

    @property
    def expected_stratum(self) -> str:
        """The stratum that is predicted."""
        return self.stratum or self.field

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """No bound at all, or one that is no share."""
        if self.at_least is None and self.each_at_least is None:
            yield (), Problem("no bound", expected="at_least or each_at_least")
        yield from _shares(self, "at_least", "each_at_least")


AnswerTerms = EveryAnswer | Ece | CorrectAt | Accuracy
"""What has to hold, of a rule on the fields of answers."""

TESTSET_PART = "{testset}"
"""In the path of a baseline: the name of the test set, where a config has several."""
BASELINE_FILE = "cranfield-baseline.json"
BASELINE_FILES = "cranfield-baseline-{testset}.json"
SystemName = Annotated[str, AfterValidator(known_in("systems", "system"))]
TestsetName = Annotated[str, AfterValidator(known_in("testsets", "test set"))]


def _exclusive(*names: str) -> ConfigDict:
    return ConfigDict(json_schema_extra={"oneOf": [{"required": [name]} for name in names]})


class Floor(Strict):
    """Bound on a measure."""

    model_config = _exclusive("at_least", "above", "at_most", "every_query")

    measure: MeanMeasureName
    """A measure that is averaged over queries."""
    at_least: Bound | None = None
    """Lower bound of the mean, inclusive."""
    above: Bound | None = None
    """Lower bound of the mean, exclusive."""
    at_most: Bound | None = None
    """Upper bound of the mean, for measures where lower is better."""
    every_query: Bound | None = None
    """Bound for every query."""
    where: Where | None = None
    """Only queries of these strata: `{difficulty: easy}`."""
    by: Text | None = None
    """Apply the rule to each value of this stratum separately."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """Not exactly one bound, or a bound on the side where the worst system keeps it."""
        yield from exclusive_keys(self, "at_least", "above", "at_most", "every_query")
        yield from _over_a_part(self.measure, {"where": self.where, "by": self.by, "every_query": self.every_query})
        if self.every_query is not None and self.by is not None:
            yield (), Problem("every_query already checks each query", hint="leave `by` out.")
        from cranfield.measures import CATALOGUE, parse

        higher = CATALOGUE[parse(self.measure).name].higher_is_better
        if higher and self.at_most is not None:
            problem = Problem(f"higher is better for {self.measure}", expected="at_least or above", got="at_most")
            yield ("measure",), problem
        elif not higher and self.at_most is None and self.every_query is None:
            got = "above" if self.above is not None else "at_least"
            yield ("measure",), Problem(f"lower is better for {self.measure}", expected="at_most", got=got)


def _over_a_part(measure: str, given: Mapping[str, object]) -> Iterator[Finding]:
    """Settings by which a rule takes a part of the queries, or each of them, which a weighted sum has no value for."""
    from cranfield.measures.catalogue import is_composed

    hint = "name the stratum in the sum, as in RR[tier=hard], and leave this out."
    for key in [key for key, value in given.items() if value is not None] if is_composed(measure) else ():
        yield (key,), Problem(f"{measure} is one number over all queries, which {key} does not apply to", hint=hint)


class Drop(Strict):
    """Largest drop of the mean of a measure below that of the baseline."""

    measure: MeanMeasureName
    """A measure that is averaged over queries."""
    at_most: AnAmount
    """Largest drop: `0.02` in units of the measure, or `5 %` of the baseline's mean. A drop of exactly this size passes."""
    significant: bool = False
    """Use the CI of the drop: the rule fails if the CI lies entirely beyond `at_most`, passes if it lies entirely within, and
    is inconclusive otherwise."""
    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Significance level of the interval; default: that of the config."""
    test: TestName | None = None
    """Test of the mean difference whose interval is used; default: that of the config."""
    where: Where | None = None
    """Only queries of these strata."""
    by: Text | None = None
    """Apply the rule to each value of this stratum separately."""

    def problems(self, file: Mapping[str, Any]) -> Iterator[Finding]:
        """Settings of an interval that is not used, or a test that has none."""
        yield from _over_a_part(self.measure, {"where": self.where, "by": self.by})
        if not self.significant:
            if self.alpha is not None or self.test is not None:
                yield (), Problem("alpha and test require `significant: true`")
            return
        from cranfield.stats.table import MEAN_DIFFERENCE, TESTS

        declared = file.get("test", DEFAULT_TEST)
        place, test = ("significant", declared) if self.test is None else ("test", self.test)
        able = [name for name, spec in TESTS.items() if spec.can_declare and spec.estimates == MEAN_DIFFERENCE]
        if test in TESTS and test not in able:
            hint = f"use test: {able[0]} in this rule."
            yield (
                (place,),
                Problem(f"test {test} has no confidence interval of a mean", expected=" or ".join(able), hint=hint),
            )


class NoWorse(Strict):
    """No significant loss against the baseline, over all queries or in any class."""

    measure: MeanMeasureName
    """A measure that is averaged over queries."""
    by: Text | None = None
    """Key of the strata that are the classes: `class`, or a stratum; default: the classes of the verdict, which are `strata` of the
    config or the query classes, and none under `verdict: pooled`."""
    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Significance level, over all classes; default: that of the config."""
    test: TestName | None = None
    """Paired test; default: that of the config."""
    where: Where | None = None
    """Only queries of these strata."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """A weighted sum over a part of the queries."""
        return _over_a_part(self.measure, {"where": self.where, "by": self.by})


class Ratchet(Strict):
    """Named queries may not get worse than they are in the baseline."""

    model_config = _exclusive("queries", "where")

    measure: MeanMeasureName
    """Measure that is compared for each query."""
    queries: Annotated[list[Text], Field(min_length=1)] | None = None
    """Ids of the queries."""
    where: Where | None = None
    """All queries of these strata, instead of ids."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """Not exactly one way to name queries."""
        return exclusive_keys(self, "queries", "where")


class JudgedShare(Strict):
    """Share of the results that must be judged."""

    k: Annotated[int, Field(ge=1)] = 10
    """Number of results of each query that are counted."""
    at_least: AnAmount
    """Smallest mean judged share: `0.8` or `80 %`."""
    where: Where | None = None
    """Only queries of these strata."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """A share above 1."""
        if self.at_least.share > 1:
            yield (), Problem(f"at_least is {self.at_least}, but a share cannot exceed 1")


class Failures(Strict):
    """Largest number of queries that may fail or have no answer."""

    at_most: AnAmount
    """A number of queries, `0`, or a share of them, `2 %`."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """A number of queries that is not whole."""
        yield from whole_number(self.at_most, "queries")


class Requirements(Strict):
    """Largest number of requirements of the test set itself that may be broken."""

    at_most: AnAmount = Amount(Decimal(0))
    """A number of requirements, or a share of them, `2 %`; default: none."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """A number of requirements that is not whole."""
        yield from whole_number(self.at_most, "requirements")


class LatencyCeiling(Strict):
    """Largest latency of calls, by percentile."""

    p50_ms: Bound | None = None
    """Largest median latency, in milliseconds."""
    p95_ms: Bound | None = None
    """Largest 95th percentile, in milliseconds."""
    p99_ms: Bound | None = None
    """Largest 99th percentile, in milliseconds."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """No ceiling at all."""
        if not self.bounds:
            yield (), Problem("no ceiling", expected="p50_ms, p95_ms or p99_ms")

    @property
    def bounds(self) -> Mapping[int, Decimal]:
        """Percentile to its ceiling."""
        ceilings = {50: self.p50_ms, 95: self.p95_ms, 99: self.p99_ms}
        return {percentile: bound for percentile, bound in ceilings.items() if bound is not None}


Terms = Floor | Drop | NoWorse | Ratchet | JudgedShare | Failures | Requirements | LatencyCeiling | AnswerTerms


class BaseRule(Strict):
    """Keys common to all kinds of rule."""

    kind: ClassVar[str]
    needs_baseline: ClassVar[bool] = False

    testsets: Annotated[list[TestsetName], Field(min_length=1)] | None = None
    """Test sets to which the rule applies, if the config has several; default: all."""
    wait: Annotated[Duration | None, Field(alias="for")] = None
    """How long the rule must be broken before its alert fires, `15m`; default: at once."""
    severity: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", max_length=40)] | None = None
    """Label `severity` of its alert; default: `warning`."""

    @property
    def terms(self) -> Terms:
        """What has to hold."""
        terms: Terms = getattr(self, self.kind)
        return terms


class FloorRule(BaseRule):
    """Bound on a measure."""

    kind = "floor"

    floor: Floor
    """Bound on a measure: on its mean, its mean in each stratum, or every query."""


class DropRule(BaseRule):
    """Limit on the drop of a mean below the baseline's."""

    kind = "drop"
    needs_baseline = True

    drop: Drop
    """Largest drop of a mean below the baseline's."""


class NoWorseRule(BaseRule):
    """No significant loss against the baseline."""

    kind = "no_worse"
    needs_baseline = True

    no_worse: NoWorse
    """The verdict against the baseline may not be worse or mixed."""


class RatchetRule(BaseRule):
    """Named queries may not get worse."""

    kind = "ratchet"
    needs_baseline = True

    ratchet: Ratchet
    """Queries that may not get worse."""


class JudgedRule(BaseRule):
    """Limit on the judged share."""

    kind = "judged"

    judged: JudgedShare
    """Smallest judged share."""


class FailuresRule(BaseRule):
    """Limit on failed queries."""

    kind = "failures"

    failures: Failures
    """Number or share of queries that may fail or have no answer."""


class RequirementsRule(BaseRule):
    """Limit on broken requirements of the test set."""

    kind = "requirements"

    requirements: Requirements
    """Floors of single queries, and forbidden results, of the test set: how many may be broken."""


class LatencyLimitRule(BaseRule):
    """Limit on the latency of calls."""

    kind = "latency"

    latency: LatencyCeiling
    """Upper bounds of the latency, by percentile."""


def _or_text(schema: dict[str, Any]) -> None:
    """In the published schema: text alone, or the object."""
    schema["anyOf"] = [{"type": "string"}, {"$ref": schema.pop("$ref")}]


class EveryAnswerRule(BaseRule):
    """Rule on a field of every answer."""

    kind = "every_answer"

    every_answer: Annotated[EveryAnswer, Field(json_schema_extra=_or_text)]
    """Rule on a field of every answer: `mode = semantic`; or the rule with `at_most` and `where`."""


class EceRule(BaseRule):
    """Limit on the calibration error of a confidence."""

    kind = "ece"

    ece: Ece
    """Largest expected calibration error of a confidence that answers state."""


class CorrectAtRule(BaseRule):
    """Bound on the confident answers."""

    kind = "correct_at"

    correct_at: CorrectAt
    """Smallest share of correct answers among those with a confidence from a threshold on."""


class AccuracyRule(BaseRule):
    """Bound on predicted strata."""

    kind = "accuracy"

    accuracy: Accuracy
    """Smallest share of answers whose field is the stratum of the query, such as the task type."""


Rule = Annotated[
    Annotated[FloorRule, Tag("floor")]
    | Annotated[DropRule, Tag("drop")]
    | Annotated[NoWorseRule, Tag("no_worse")]
    | Annotated[RatchetRule, Tag("ratchet")]
    | Annotated[JudgedRule, Tag("judged")]
    | Annotated[FailuresRule, Tag("failures")]
    | Annotated[RequirementsRule, Tag("requirements")]
    | Annotated[LatencyLimitRule, Tag("latency")]
    | Annotated[EveryAnswerRule, Tag("every_answer")]
    | Annotated[EceRule, Tag("ece")]
    | Annotated[CorrectAtRule, Tag("correct_at")]
    | Annotated[AccuracyRule, Tag("accuracy")],
    by_key(
        "floor",
        "drop",
        "no_worse",
        "ratchet",
        "judged",
        "failures",
        "requirements",
        "latency",
        "every_answer",
        "ece",
        "correct_at",
        "accuracy",
    ),
]
"""One rule of a gate."""
RULE_MODELS: Mapping[str, type[BaseRule]] = {
    model.kind: model
    for model in (
        FloorRule,
        DropRule,
        NoWorseRule,
        RatchetRule,
        JudgedRule,
        FailuresRule,
        RequirementsRule,
        LatencyLimitRule,
        EveryAnswerRule,
        EceRule,
        CorrectAtRule,
        AccuracyRule,
    )
}
"""Kind of rule to its model."""


def _check_path(path: str, info: ValidationInfo) -> str:
    if not path.endswith(".json"):
        raise_findings([((), Problem("the name of a baseline must end in .json", got=path))])
    if info.context and "testsets" not in info.context and TESTSET_PART in path:
        hint = "leave it out."
        raise_findings([((), Problem("{testset} requires a config with several test sets", hint=hint))])
    return path


class GateConfig(ProductBlock):
    """Rules for a system, and the baseline that some of them compare with."""

    about: ClassVar[str] = "Rules that `cranfield gate` checks."

    baseline: Annotated[Text, AfterValidator(_check_path)] | None = None
    """File written by `cranfield baseline accept`, relative to the config; default: `cranfield-baseline.json`. With several
    test sets, each has a file: `{testset}` in the path is replaced by its name."""
    system: SystemName | None = None
    """System that is gated; default: the candidate, or the only system."""
    rules: Annotated[list[Rule], Field(min_length=1)]
    """Rules; all must pass."""

    def problems(self, file: Mapping[str, Any]) -> Iterator[Finding]:
        """One baseline for several test sets."""
        is_shared = self.baseline is not None and TESTSET_PART not in self.baseline
        if "testsets" in file and is_shared and any(rule.needs_baseline for rule in self.rules):
            hint = "use baseline: cranfield-baseline-{testset}.json"
            yield ("baseline",), Problem("several test sets but one baseline: each test set needs its own", hint=hint)

    def baseline_of(self, testset: str) -> str:
        """Path of the baseline of a test set; its name is empty where there is one set alone."""
        path = self.baseline or (BASELINE_FILES if testset else BASELINE_FILE)
        return path.replace(TESTSET_PART, testset) if testset else path

    @property
    def measures(self) -> list[str]:
        """Measures of its rules."""
        return [measure for rule in self.rules if (measure := getattr(rule.terms, "measure", None))]

    @property
    def depths(self) -> list[int]:
        """Numbers of results that its rules look at."""
        return [k for rule in self.rules if isinstance(k := getattr(rule.terms, "k", None), int)]


def gate_of(config: Config) -> GateConfig | None:
    """The block `gate:` of a config."""
    found: GateConfig | None = config.block("gate")
    return found
