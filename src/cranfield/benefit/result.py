"""The result of an experiment, as `benefit_vX.Y.json` holds it and reports show it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ValidationError, model_validator

from cranfield.agents.answers.rows import AnswerRow
from cranfield.agents.recording import TreeRecord
from cranfield.base.errors import InputError, Problem
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import CellEnd, CellUsage, Delivery, ScoreReason
from cranfield.formats.io.delimited import FileVersion, file_versions
from cranfield.formats.io.files import read_bytes, shown, write_text
from cranfield.formats.io.validation import ClosedModel, Filled


class StratumVerdict(StrEnum):
    """What a stratum shows, by the rule of the plan."""

    PAYS_OFF = "pays off"
    NET_COST = "net cost"
    NO_DIFFERENCE = "no difference shown"
    INSUFFICIENT = "insufficient data"
    VOID = "void"
    """The comparison is invalid, and `validity` says why: no stratum has another verdict."""


class SuccessVerdict(StrEnum):
    """What a stratum shows of success alone."""

    HIGHER = "higher success"
    LOWER = "lower success"
    SAME = "same success"
    """In every task; `success_lift` has the exact bound of what so few tasks exclude."""
    NOT_SHOWN = "no difference in success shown"
    INSUFFICIENT = "too few tasks for success"


class CostVerdict(StrEnum):
    """What a stratum shows of tokens alone, those that the rule counts."""

    CHEAPER = "cheaper"
    DEARER = "more expensive"
    NOT_SHOWN = "no difference in tokens shown"
    INSUFFICIENT = "tokens not known"


class Estimate(ClosedModel):
    """A paired difference or ratio over tasks, with its interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    """Student's t on task means; None: no interval, and `note` says why."""
    bootstrap: tuple[float, float] | None = None
    """Bootstrap interval over tasks, in addition; from 30 tasks on."""
    p: float | None = None
    p_adjusted: float | None = None
    """By Holm, over the strata of its kind."""
    n: int
    """Tasks with a value in both arms."""
    n_missing: int = 0
    """Tasks without."""
    note: str = ""


class ArmMeans(ClosedModel):
    """One arm in a stratum: means over tasks of means over seeds."""

    success: float | None
    tokens: float | None
    weighted_tokens: float | None
    tool_calls: float | None
    turns: float | None
    wall_s: float | None
    money: float | None
    n_cells: int
    n_failed: int
    """By a limit or without an answer: scored as failures."""
    n_unscored: int
    """Scored runs whose success is not decided."""
    n_infrastructure: int
    """Cells without a scored run."""
    offered: float | None = None
    """Share of the cells; None: no tool under test."""
    called: float | None = None
    answered: float | None = None
    schema_tokens: float | None = None
    """Tokens of the schemas in one request, measured."""
    schema_tokens_estimated: float | None = None
    """By the length of the schemas."""
    payload_tokens: float | None = None
    """Estimated, of all results of the tools."""
    instructions_tokens: float | None = None
    """Estimated."""
    tokens_per_success: float | None = None


class McNemar(ClosedModel):
    """On one binary per task."""

    n: int
    both: int
    only_treatment: int
    only_control: int
    neither: int
    p: float | None
    p_adjusted: float | None = None


class StratumKind(StrEnum):
    """What a row of the result is about."""

    CELL = "cell"
    """A combination of all strata of the plan."""
    MARGIN = "margin"
    """One value of one stratum."""
    BASELINE = "baseline_answerable"
    ALL = "all"
    """Every task: for the sentence on the success of all tasks; never the headline."""


class StratumResult(ClosedModel):
    """Both arms over the tasks of a stratum."""

    kind: StratumKind
    stratum: Mapping[str, str]
    """Name to value: `{"task_type": "locate", "difficulty": "easy"}`."""
    n_tasks: int
    n_seeds: int
    arms: Mapping[ArmRole, ArmMeans]
    success_lift: Estimate
    token_ratio: Estimate
    """Geometric mean over tasks of treatment over control; under 1 the treatment is cheaper."""
    net_tokens: Estimate
    """Saved per task: control less treatment, of all tokens, those of the tool included."""
    net_tokens_weighted: Estimate
    net_tokens_per_success: Estimate
    """Tokens per success of control less that of treatment: ratios of sums."""
    net_tokens_both: Estimate
    """Saved over tasks in which both arms succeed: a selection, which favours neither arm by itself."""
    tool_calls: Estimate
    turns: Estimate
    latency_ratio: Estimate
    per_protocol_lift: Estimate | None = None
    """Lift in success over the cells whose tool was called; not randomised, so no verdict rests on it."""
    mcnemar: McNemar
    minimal_detectable_lift: float | None
    verdict: StratumVerdict
    success: SuccessVerdict
    cost: CostVerdict
    """Each of its own, by the p-values that the verdict rests on: a stratum may have the same success and be cheaper."""
    reason: Filled
    """One sentence: which part of the rule decides."""

    @property
    def claims(self) -> str:
        """`same success, cheaper`; empty where the comparison is invalid."""
        if self.verdict is StratumVerdict.VOID:
            return ""
        if self.success is SuccessVerdict.NOT_SHOWN and self.cost is CostVerdict.NOT_SHOWN:
            return "neither differs significantly"
        return f"{self.success.value}, {self.cost.value}"

    @property
    def label(self) -> str:
        """`task_type=locate, difficulty=easy`; `all tasks`."""
        return ", ".join(f"{name}={value}" for name, value in self.stratum.items()) or "all tasks"


class VarianceAdvice(ClosedModel):
    """Where another run would help: more tasks, or more seeds."""

    quantity: Filled
    between_tasks: float | None
    within_tasks: float | None
    icc: float | None
    """Share of the variance that lies between tasks."""
    advice: str


class Loss(ClosedModel):
    """A task in which the treatment did worse."""

    task_id: str
    stratum: Mapping[str, str]
    success: Mapping[ArmRole, float | None]
    tokens: Mapping[ArmRole, float | None]
    transcripts: Mapping[ArmRole, tuple[str, ...]]


class ValidityKind(StrEnum):
    """What can be wrong with a comparison."""

    UNCOMMITTED = "uncommitted_changes"
    TREE_CHANGED = "tree_changed"
    FOLDER_HAS_MORE = "folder_has_more"
    CONTROL_INCOMPETENT = "control_incompetent"
    COMPETENCE_UNKNOWN = "control_competence_unknown"
    CONTROL_WITHOUT_NATIVE = "control_without_native_tools"
    NATIVE_TOOLS_DIFFER = "native_tools_differ"
    PREFLIGHT_FAILED = "preflight_failed"
    INDEX_UNKNOWN = "index_unknown"
    TOOL_CHANGED = "tool_changed"
    TOOL_NOT_DELIVERED = "tool_not_delivered"
    TOOL_NOT_ANSWERED = "tool_not_answered"
    RESULTS_FLAWED = "results_flawed"
    RESULTS_UNKNOWN = "results_unknown"
    RESULTS_OF_OTHER_SOURCE = "results_of_other_source"
    ANSWERS_NOT_READ = "answers_not_read"
    TOOL_NEVER_CALLED = "tool_never_called"
    CALLS_UNKNOWN = "tool_calls_unknown"
    INCOMPLETE = "incomplete"
    INFRASTRUCTURE_DIFFERS = "infrastructure_differs"
    COMMIT_DIFFERS = "commit_differs"
    MODEL_DIFFERS = "model_differs"
    MODEL_UNKNOWN = "model_unknown"
    AGENT_DIFFERS = "agent_differs"
    UNDECIDED = "undecided"
    LEAK = "leak"
    SAME_ANSWERS = "same_answers"
    UNMEASURED_TOKENS = "unmeasured_tokens"
    JUDGE_IS_AGENT = "judge_is_agent"
    CODE_NOT_RUN = "code_not_run"
    SYMBOLS_UNKNOWN = "symbols_unknown"


class Validity(ClosedModel):
    """Something that makes the comparison invalid, or a caveat of it."""

    kind: ValidityKind
    is_void: bool
    leads: bool = False
    """A caveat that stands before every verdict: without it, the verdict would be read wrongly."""
    message: Filled


class DeliveredResults(ClosedModel):
    """What the tools under test gave in one arm: results that are no error by their server, by what they hold."""

    n: int
    """Whose texts are known."""
    empty: int
    error: int
    """They read as an error."""
    cut: int
    same: int
    """The most frequent one, word for word, where it was given to different calls of several tasks."""
    other_source: int
    """They state another index, version or commit than the preflight did."""
    with_lines: int
    """Lines of the repository stand in them."""
    foreign: int
    """They have content, and neither show a line of the repository nor name a file of it. 0 without a repository."""
    cells_unknown: int = 0
    """Cells in which the tool was called and the texts of its results are not known."""


class Reading(ClosedModel):
    """What one arm read of the gold lines: means over tasks of means over seeds."""

    n_tasks: int
    """With gold lines, and with a run of which it is known what was read."""
    gold_recall: float | None
    """Explored: share of the gold lines among what was read."""
    gold_used: float | None
    """Used: share of the gold spans that were read and that the answer names."""
    lines_read: float | None
    """Lines of all files, each once a cell."""
    recall_by_turn: tuple[float, ...] = ()
    """Recall after turn 1, 2, ...; a cell that ended keeps its last value."""
    n_successes: int = 0
    """Successes among the cells with gold lines of which it is known what was read."""
    n_unread: int = 0
    """Those of them in which no gold line was read: the answer came from elsewhere."""


class CellRow(AnswerRow):
    """A cell with its scores and its cost: the row of a single-arm harness, and what an experiment adds."""

    seed: int
    end: CellEnd
    success: bool | None
    why: ScoreReason | None
    checks: Mapping[str, str] = {}
    findings: tuple[Mapping[str, Any], ...] = ()
    usage: CellUsage
    delivery: Delivery | None
    gold_recall: float | None
    gold_used: float | None
    transcript: str
    """Name of its file in the folder of the experiment."""


class TaskRow(ClosedModel):
    """A task with the scored cells of both arms."""

    task_id: str
    strata: Mapping[str, str]
    baseline_answerable: bool | None
    arms: Mapping[ArmRole, tuple[CellRow, ...]]


class BenefitResult(ClosedModel):
    """An experiment with its verdicts."""

    cranfield_benefit_result: Literal[1] = 1
    tree: TreeRecord = TreeRecord()
    """The folder of the repository when the experiment began: a result of uncommitted changes says so first."""
    version: str = ""
    """`1.0`: another minor number for another run of the same plan, another major one for another plan."""
    run: str = ""
    """Name of the folder of the experiment."""
    made_at: str = ""
    """Start of the last cell that is scored: a result of old cells is old, whenever it was written."""
    name: str
    plan_digest: str
    labels_digest: str = ""
    task_set: str = ""
    """Name and version of the golden set that the tasks are of, and who reviewed it."""
    commit: str = ""
    cranfield_version: str
    agent: Mapping[str, Any]
    """Kind, model as configured and as reported, sampling, versions, digests of prompts."""
    arms: Mapping[ArmRole, str]
    tools: Mapping[str, Any]
    rule: Mapping[str, Any]
    sentence: str
    """The success of both arms on all tasks, in a sentence."""
    validity: tuple[Validity, ...]
    strata: tuple[StratumResult, ...]
    variance: tuple[VarianceAdvice, ...]
    delivered: Mapping[ArmRole, DeliveredResults] = {}
    """Delivered results of the arms with a tool under test."""
    reading: Mapping[ArmRole, Reading]
    losses: tuple[Loss, ...]
    tasks: tuple[TaskRow, ...]
    errors: Mapping[str, int]
    """Name in the catalogue of errors to its number."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        both = set(ArmRole)
        if set(self.arms) != both or any(set(row.arms) != both for row in self.strata):
            raise ValueError("an arm is missing")
        if len({tuple(row.stratum) for row in self.strata if row.kind is StratumKind.CELL}) > 1:
            raise ValueError("cells of different strata")
        alpha = self.rule.get("alpha")
        if not isinstance(alpha, float) or not 0 < alpha < 1:
            raise ValueError("the rule has no alpha between 0 and 1")
        if not self.strata:
            raise ValueError("no strata")
        return self

    @property
    def commit_text(self) -> str:
        """`1f2e3d4c5b6a`, with `*` where the folder of the repository had uncommitted changes; empty without a commit."""
        return f"{self.commit[:12]}{'*' if self.tree.uncommitted else ''}" if self.commit else ""

    @property
    def first_strata(self) -> Sequence[StratumResult]:
        """Those whose verdicts come first: the cells of the matrix; where tasks have no strata, the others, and all tasks last."""
        for kinds in ({StratumKind.CELL}, set(StratumKind) - {StratumKind.ALL}):
            if found := [row for row in self.strata if row.kind in kinds]:
                return found
        return self.strata

    @property
    def cells(self) -> Iterator[tuple[str, ArmRole, CellRow]]:
        """Task, arm and row of every scored cell."""
        return ((task.task_id, role, cell) for task in self.tasks for role in ArmRole for cell in task.arms[role])

    @property
    def cautions(self) -> tuple[str, ...]:
        """What must be known before a verdict is read."""
        return tuple(each.message for each in self.validity if each.leads)

    @property
    def is_void(self) -> bool:
        """Whether something makes it invalid."""
        return any(each.is_void for each in self.validity)


RESULT = "benefit"
"""Begins their names."""


def read_result(path: Path) -> BenefitResult:
    """Read a result.

    Raises:
        InputError: the file is none, with what does not fit.
    """
    try:
        return BenefitResult.model_validate_json(read_bytes(path, InputError))
    except ValidationError as error:
        problems = []
        for each in error.errors(include_url=False, include_input=False)[:5]:
            text = f"{'.'.join(map(str, each['loc']))}: {each['msg'].removeprefix('Value error, ')}".lstrip(": ")
            problems.append(Problem(f"not a result of an experiment: {text}", path=shown(path)))
        raise InputError(problems) from None


def write_result(result: BenefitResult, folder: Path) -> Path:
    """Write a result under its version: that of the same run where the folder has it; else the next one.

    Raises:
        InputError: a result of the folder is damaged.
    """
    known = {version: read_result(path) for version, path in file_versions(folder, RESULT).items()}
    version = next((version for version, other in known.items() if other.run == result.run), None)
    if version is None:
        version = _next(result, known)
    path = folder / version.file_name(RESULT)
    record = result.model_copy(update={"version": str(version)}).model_dump(mode="json")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, [json.dumps(record, ensure_ascii=True, indent=1, allow_nan=False) + "\n"])
    return path


def _next(result: BenefitResult, known: dict[FileVersion, BenefitResult]) -> FileVersion:
    same = [version.major for version, other in known.items() if other.plan_digest == result.plan_digest]
    if not same:
        return FileVersion(max((version.major for version in known), default=0) + 1, 0)
    minors = [version.minor for version in known if version.major == same[-1]]
    return FileVersion(same[-1], max(minors) + 1)
