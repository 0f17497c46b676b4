"""What makes a comparison invalid, and what is a caveat of it: a table of rules over the records of an experiment.

| kind | void |
|---|---|
| `control_incompetent` | yes: see `competence`; no where the plan gives the control no tools |
| `control_competence_unknown` | no: see `competence` |
| `control_without_native_tools` | no: it was planned |
| `native_tools_differ` | yes |
| `preflight_failed`, `tool_changed`, `commit_differs` | yes |
| `index_unknown` | no |
| `tool_not_delivered` | over 10 % of the cells of an arm |
| `tool_not_answered` | over `delivery.silent` of the cells that called it: no result had content |
| `results_flawed` | no; first where over `delivery.flawed` of the results of an arm are empty, read as an error, are cut, or are the same; or over `delivery.foreign` are not about the repository |
| `results_unknown` | no |
| `results_of_other_source` | yes: one result is enough |
| `answers_not_read` | no; first where over `delivery.unread` of the successes of an arm are without a gold line that was read |
| `tool_never_called` | no: the lift is that of offering it |
| `tool_calls_unknown` | no: the lift is that of offering it |
| `incomplete` | under half of the pairs |
| `infrastructure_differs` | yes: one arm lost over 5 % of its cells more than the other |
| `model_differs`, `agent_differs` | between the arms: yes; over time: no |
| `uncommitted_changes`, `folder_has_more` | no: they were allowed, or no commit would end them |
| `tree_changed` | while cells were run, files that git does not ignore, without `--allow-dirty`: yes; otherwise no |
| `undecided` | over 10 % of the cells of an arm |
| `model_unknown`, `leak`, `same_answers`, `unmeasured_tokens`, `judge_is_agent`, `code_not_run`, `symbols_unknown` | no |
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cranfield.agents.recording import TreeRecord
from cranfield.base.errors import shorten
from cranfield.base.words import and_list, count_noun
from cranfield.benefit.codecheck.report import CodeCheck
from cranfield.benefit.content import notes_of, same_for_different_tasks
from cranfield.benefit.errors import CellError
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.records import CellKey, CellRecord, Flaw, PreflightRecord, ScoreRecord
from cranfield.benefit.result import DeliveredResults, Validity, ValidityKind
from cranfield.benefit.source import TreeCheck
from cranfield.repo.git import is_same_commit

MAX_UNDELIVERED = 0.1
MIN_PAIRS = 0.5
MAX_UNDECIDED = 0.1
MAX_LOST_MORE = 0.05
SAME_ANSWERS = 0.5
MAX_NOTES = 2
CALLS_HINT = "set `agent.usage.tool_calls` of the plan to their path in the output of the agent"
_COMMIT = "commit"
_PREFLIGHT_HINT = "set `preflight` of the tool in the plan"


@dataclass(frozen=True)
class ExperimentRecords:
    """The records of an experiment."""

    plan: BenefitPlan
    planned: Sequence[CellKey]
    runs: Sequence[CellRecord]
    """Every run of every cell."""
    scores: Mapping[CellKey, ScoreRecord]
    preflights: Sequence[PreflightRecord]
    commit: str
    """Commit of the golden set; empty: it has none."""
    read_commit: str
    """Commit of the repository that was read; empty: without git."""
    tree: TreeRecord = field(default_factory=TreeRecord)
    """State of the folder of the repository when the experiment began."""
    tree_checks: Sequence[TreeCheck] = ()
    """Every time it was found otherwise."""

    @cached_property
    def cells(self) -> Mapping[CellKey, CellRecord]:
        """The scored run of each cell that has one."""
        return {run.key: run for run in self.runs if run.end.is_scored}

    @cached_property
    def by_arm(self) -> Mapping[ArmRole, Sequence[CellRecord]]:
        """Scored runs, by arm."""
        return {role: [cell for key, cell in self.cells.items() if key.arm is role] for role in ArmRole}

    @cached_property
    def delivered(self) -> Mapping[ArmRole, DeliveredResults]:
        """What the tools under test gave, of each arm that has some."""
        return {role: self._delivered(self.by_arm[role]) for role, arm in self.plan.arms.items() if arm.tools}

    def _delivered(self, cells: Sequence[CellRecord]) -> DeliveredResults:
        notes = [note for cell in cells for note in notes_of(cell)]
        counts = Counter(flaw for note in notes for flaw in note.flaws)
        return DeliveredResults(
            n=len(notes),
            empty=counts[Flaw.EMPTY],
            error=counts[Flaw.ERROR],
            cut=counts[Flaw.CUT],
            same=same_for_different_tasks(cells),
            other_source=counts[Flaw.OTHER_SOURCE],
            with_lines=sum(note.shows_lines for note in notes),
            foreign=sum(
                note.has_content and not note.shows_lines and not note.names_files for note in notes if self.plan.repo
            ),
            cells_unknown=sum(
                cell.delivery is not None and bool(cell.delivery.called) and cell.delivery.results is None
                for cell in cells
            ),
        )

    def unread(self, role: ArmRole) -> tuple[int, int]:
        """Successes of an arm in which no gold line was read, and those of which that is known."""
        known = [score.gold_recall for score in self.scores_of(role) if score.success and score.gold_recall is not None]
        return sum(not recall for recall in known), len(known)

    def scores_of(self, role: ArmRole) -> Sequence[ScoreRecord]:
        """Scores of the scored runs of an arm."""
        return [self.scores[cell.key] for cell in self.by_arm[role] if cell.key in self.scores]

    @cached_property
    def pairs(self) -> Sequence[tuple[CellRecord, CellRecord]]:
        """Treatment and control of every task and seed of which both are scored."""
        found = defaultdict[tuple[str, int], dict[ArmRole, CellRecord]](dict)
        for key, cell in self.cells.items():
            found[key.task_id, key.seed][key.arm] = cell
        return [(arms[ArmRole.TREATMENT], arms[ArmRole.CONTROL]) for arms in found.values() if len(arms) > 1]

    def name(self, role: ArmRole) -> str:
        """`treatment (knowcode)`."""
        return f"{role.value} ({self.plan.arms[role].name})"


Rule = Callable[[ExperimentRecords], Iterator[Validity]]


def validity(evidence: ExperimentRecords) -> tuple[Validity, ...]:
    """Everything that is wrong."""
    return tuple(each for rule in RULES for each in rule(evidence))


def _uncommitted(evidence: ExperimentRecords) -> Iterator[Validity]:
    if evidence.tree.uncommitted:
        message = (
            f"{evidence.tree.uncommitted}; agents read the commit, but a tool that reads the folder finds those files"
        )
        yield Validity(kind=ValidityKind.UNCOMMITTED, is_void=False, leads=True, message=message)


def _tree_changed(evidence: ExperimentRecords) -> Iterator[Validity]:
    for check in evidence.tree_checks:
        yield Validity(kind=ValidityKind.TREE_CHANGED, is_void=check.is_void, message=check.sentence)


def _folder_has_more(evidence: ExperimentRecords) -> Iterator[Validity]:
    if evidence.tree.notes:
        message = " ".join(evidence.tree.notes).removesuffix(".")
        yield Validity(kind=ValidityKind.FOLDER_HAS_MORE, is_void=False, message=message)


def _native_tools(evidence: ExperimentRecords) -> Iterator[Validity]:
    if not evidence.plan.repo:
        return
    treatment, control = (frozenset(evidence.plan.arms[role].native) for role in ArmRole)
    if not control and not evidence.plan.arms[ArmRole.CONTROL].tools:
        message = "the control arm has no tools to search and read, so the lift is relative to an agent without access to the code"
        yield Validity(kind=ValidityKind.CONTROL_WITHOUT_NATIVE, is_void=False, message=message)
    elif treatment != control:
        names = and_list(sorted(treatment ^ control))
        message = f"only one arm has {names}: the arms differ in more than the tool under test"
        yield Validity(kind=ValidityKind.NATIVE_TOOLS_DIFFER, is_void=True, message=message)


def _preflights(evidence: ExperimentRecords) -> Iterator[Validity]:
    """No cell is run after a preflight that failed: it says nothing of the cells that were run."""
    by_tool = defaultdict[tuple[ArmRole, str], list[PreflightRecord]](list)
    for record in evidence.preflights:
        by_tool[record.arm, record.tool].append(record)
    for role in evidence.plan.arms:
        for tool in evidence.plan.arms[role].tools:
            records = by_tool[role, tool]
            good = [record for record in records if record.ok]
            if not good:
                why = records[-1].message if records else "its index and version were not requested"
                message = f"{tool} of {evidence.name(role)}: {why or 'its preflight failed'}"
                yield Validity(kind=ValidityKind.PREFLIGHT_FAILED, is_void=True, message=message)
            elif not good[-1].found:
                message = (
                    f"the index and version served by {tool} of {evidence.name(role)} are unknown: {_PREFLIGHT_HINT}"
                )
                yield Validity(kind=ValidityKind.INDEX_UNKNOWN, is_void=False, message=message)
            comparable = [record for record in records if record.ok or (record.after_run and record.found)]
            states = [(record.found, record.server, record.tools, record.schema_digest) for record in comparable]
            if any(state != states[0] for state in states):
                message = f"{tool} of {evidence.name(role)} changed during the run"
                yield Validity(kind=ValidityKind.TOOL_CHANGED, is_void=True, message=message)


def _commits(evidence: ExperimentRecords) -> Iterator[Validity]:
    found = {"the repository": evidence.read_commit}
    found |= {record.tool: str(record.found.get(_COMMIT) or "") for record in evidence.preflights if record.ok}
    for name, commit in found.items():
        if commit and evidence.commit and not is_same_commit(commit, evidence.commit):
            message = f"{name} is at commit {commit[:12]}, the golden set at {evidence.commit[:12]}"
            yield Validity(kind=ValidityKind.COMMIT_DIFFERS, is_void=True, message=message)


def _delivery(evidence: ExperimentRecords) -> Iterator[Validity]:
    for role, cells in evidence.by_arm.items():
        if not evidence.plan.arms[role].tools:
            continue
        arm, never_up = evidence.name(role), _lost(evidence, role, CellError.TOOL_NOT_STARTED)
        n = len(cells) + len(never_up)
        without = sum(cell.delivery is None or not cell.delivery.offered for cell in cells) + len(never_up)
        if without:
            message = f"the tool did not start in {without} of {count_noun(n, 'cells')} of {arm}"
            is_void = without > MAX_UNDELIVERED * n
            yield Validity(kind=ValidityKind.TOOL_NOT_DELIVERED, is_void=is_void, message=message)
        calling = [cell.delivery for cell in cells if cell.delivery is not None and cell.delivery.called]
        blind = sum(cell.delivery is not None and cell.delivery.called is None for cell in cells)
        if blind:
            message = f"it is unknown whether the tool was called in {blind} of {count_noun(len(cells), 'cells')} of {arm}, because tool calls are not reported: the lift is that of offering the tool ({CALLS_HINT})"
            yield Validity(kind=ValidityKind.CALLS_UNKNOWN, is_void=False, message=message)
        elif not calling and without < len(cells):
            message = f"no agent of {arm} called the tool: the lift is that of offering the tool"
            yield Validity(kind=ValidityKind.TOOL_NEVER_CALLED, is_void=False, message=message)
        silent = sum(not delivery.answered for delivery in calling)
        if silent:
            found = evidence.delivered[role]
            kinds = {"empty": found.empty, "reading as an error": found.error, "of another index": found.other_source}
            why = and_list([f"{n} {kind}" for kind, n in kinds.items() if n])
            of_all = f": of {count_noun(found.n, 'results')} {why}" if why else ""
            message = f"no result of the tool had content in {silent} of {count_noun(len(calling), 'cells')} of {arm} that called it{of_all}"
            is_void = silent > evidence.plan.delivery.silent * len(calling)
            yield Validity(kind=ValidityKind.TOOL_NOT_ANSWERED, is_void=is_void, message=message)


def _results(evidence: ExperimentRecords) -> Iterator[Validity]:
    for role, found in evidence.delivered.items():
        name = evidence.name(role)
        if found.cells_unknown:
            message = f"the results of the tool are unknown in {count_noun(found.cells_unknown, 'cells')} of {name} that called it, because the agent does not report them; it is unknown whether they had content"
            yield Validity(kind=ValidityKind.RESULTS_UNKNOWN, is_void=False, message=message)
        if found.other_source:
            message = f"{found.other_source} of {count_noun(found.n, 'results')} of the tool in {name} report a different index, version or commit than its preflight"
            yield Validity(kind=ValidityKind.RESULTS_OF_OTHER_SOURCE, is_void=True, message=message)
        bounds = evidence.plan.delivery
        kinds = {
            "are empty": (found.empty, bounds.flawed),
            "read as an error": (found.error, bounds.flawed),
            "were cut": (found.cut, bounds.flawed),
            "are the same for different tasks": (found.same, bounds.flawed),
            "show no line and name no file of the repository": (found.foreign, bounds.foreign),
        }
        for kind, (n, bound) in kinds.items():
            if n > bound * found.n:
                message = f"{n} of {count_noun(found.n, 'results')} of the tool in {name} {kind} ({n / found.n:.0%}; the plan allows {bound:.0%})"
                yield Validity(kind=ValidityKind.RESULTS_FLAWED, is_void=False, leads=True, message=message)


def _not_read(evidence: ExperimentRecords) -> Iterator[Validity]:
    bound = evidence.plan.delivery.unread
    for role in ArmRole:
        n, known = evidence.unread(role)
        if n > bound * known:
            message = f"in {n} of {count_noun(known, 'successes')} of {evidence.name(role)} no gold line was read, from the repository or from a result, so the answers seem to come from elsewhere (the plan allows {bound:.0%})"
            yield Validity(kind=ValidityKind.ANSWERS_NOT_READ, is_void=False, leads=True, message=message)


def _complete(evidence: ExperimentRecords) -> Iterator[Validity]:
    n_pairs = len({(key.task_id, key.seed) for key in evidence.planned})
    n = len(evidence.pairs)
    lost = {role: len(_lost(evidence, role)) for role in ArmRole}
    if n < n_pairs:
        failed = f"; infrastructure failed in {count_noun(sum(lost.values()), 'cells')}" if any(lost.values()) else ""
        message = f"partial: {n} of {count_noun(n_pairs, 'pairs')} of cells are scored{failed}"
        is_void = n < MIN_PAIRS * n_pairs
        yield Validity(kind=ValidityKind.INCOMPLETE, is_void=is_void, message=message)
    more = max(ArmRole, key=lambda role: lost[role])
    less = min(ArmRole, key=lambda role: lost[role])
    if lost[more] - lost[less] > max(1, MAX_LOST_MORE * n_pairs):
        message = f"infrastructure failed in {lost[more]} cells of {evidence.name(more)} and in {lost[less]} of {evidence.name(less)}: the remaining cells are a selection"
        yield Validity(kind=ValidityKind.INFRASTRUCTURE_DIFFERS, is_void=True, message=message)


def _lost(evidence: ExperimentRecords, role: ArmRole, error: CellError | None = None) -> set[CellKey]:
    """Cells that were run and have no scored run: all, or those whose last run ended with an error."""
    last = {run.key: run.error for run in evidence.runs if run.key.arm is role and run.key not in evidence.cells}
    return {key for key, name in last.items() if error is None or name == error}


def _models(evidence: ExperimentRecords) -> Iterator[Validity]:
    names = {role: {name for cell in cells for name in cell.models} for role, cells in evidence.by_arm.items()}
    unknown = [evidence.name(role) for role, cells in evidence.by_arm.items() if cells and not names[role]]
    if unknown:
        message = f"no provider reported the model of {and_list(unknown)}, so it is unknown whether both arms used the same model"
        yield Validity(kind=ValidityKind.MODEL_UNKNOWN, is_void=False, message=message)
    yield from _differing(evidence, ValidityKind.MODEL_DIFFERS, "the model", names)


def _agents(evidence: ExperimentRecords) -> Iterator[Validity]:
    found: dict[str, dict[ArmRole, set[str]]] = defaultdict(lambda: {role: set() for role in ArmRole})
    for role, cells in evidence.by_arm.items():
        for cell in cells:
            for name, version in cell.versions.items():
                found[name][role].add(version)
    for name, versions in found.items():
        yield from _differing(evidence, ValidityKind.AGENT_DIFFERS, f"the version of {name}", versions)


def _differing(
    evidence: ExperimentRecords, kind: ValidityKind, what: str, values: Mapping[ArmRole, set[str]]
) -> Iterator[Validity]:
    """Void where the arms differ; a caveat where both had the same values, and several."""
    if not all(values[role] for role in ArmRole):
        return
    treatment, control = values[ArmRole.TREATMENT], values[ArmRole.CONTROL]
    if treatment != control:
        sides = [f"{and_list(sorted(values[role]))} in {evidence.name(role)}" for role in ArmRole]
        yield Validity(kind=kind, is_void=True, message=f"{what} was {' and '.join(sides)}")
    elif len(treatment) > 1:
        message = f"{what} changed over the run, in both arms: {and_list(sorted(treatment))}"
        yield Validity(kind=kind, is_void=False, message=message)


def _undecided(evidence: ExperimentRecords) -> Iterator[Validity]:
    for role in ArmRole:
        scores = evidence.scores_of(role)
        open_scores = [score for score in scores if score.success is None]
        if open_scores:
            reasons = and_list(sorted({score.why.value for score in open_scores if score.why is not None}))
            notes = and_list(
                list(dict.fromkeys(shorten(note) for score in open_scores for note in score.notes))[:MAX_NOTES]
            )
            message = f"{len(open_scores)} of {count_noun(len(scores), 'cells')} of {evidence.name(role)} are not decided: {reasons}"
            message += f" ({notes})" if notes else ""
            is_void = len(open_scores) > MAX_UNDECIDED * len(scores)
            yield Validity(kind=ValidityKind.UNDECIDED, is_void=is_void, message=message)


def _leaks(evidence: ExperimentRecords) -> Iterator[Validity]:
    found = {role: [score for score in evidence.scores_of(role) if score.redacted] for role in ArmRole}
    if any(found.values()):
        counts = and_list([f"{len(found[role])} of {evidence.name(role)}" for role in ArmRole])
        names = and_list(sorted({name for scores in found.values() for score in scores for name in score.redacted})[:5])
        message = f"answers with names of tools or arms, removed before scoring: {counts} ({names})"
        yield Validity(kind=ValidityKind.LEAK, is_void=False, message=message)


def _same_answers(evidence: ExperimentRecords) -> Iterator[Validity]:
    answered = [(left, right) for left, right in evidence.pairs if left.answer or left.files]
    same = sum((left.answer, left.files) == (right.answer, right.files) for left, right in answered)
    if same and same >= SAME_ANSWERS * len(answered):
        message = f"both arms gave the same answer in {same} of {count_noun(len(answered), 'pairs')}"
        yield Validity(kind=ValidityKind.SAME_ANSWERS, is_void=False, message=message)


def _unmeasured(evidence: ExperimentRecords) -> Iterator[Validity]:
    for role, cells in evidence.by_arm.items():
        without = sum(cell.usage.total is None for cell in cells)
        if without:
            message = f"tokens are unknown for {without} of {count_noun(len(cells), 'cells')} of {evidence.name(role)}"
            yield Validity(kind=ValidityKind.UNMEASURED_TOKENS, is_void=False, message=message)


def _judge(evidence: ExperimentRecords) -> Iterator[Validity]:
    judge, model = evidence.plan.success.judge, evidence.plan.agent.model
    if judge is not None and model is not None and judge.model == model.model:
        message = f"{judge.model} judges its own answers in both arms"
        yield Validity(kind=ValidityKind.JUDGE_IS_AGENT, is_void=False, message=message)


def _code_not_run(evidence: ExperimentRecords) -> Iterator[Validity]:
    checked = {key.task_id: score.checks for key, score in evidence.scores.items() if score.checks}
    is_run = CodeCheck.TESTS in evidence.plan.success.checks
    n = sum(not is_run or CodeCheck.TESTS not in checks for checks in checked.values())
    if n:
        message = f"no test decides {n} of {count_noun(len(checked), 'tasks')}: code that passes the other checks counts as a success there, whatever it does"
        yield Validity(kind=ValidityKind.CODE_NOT_RUN, is_void=False, message=message)


def _symbols_unknown(evidence: ExperimentRecords) -> Iterator[Validity]:
    found = []
    for role in ArmRole:
        scores = evidence.scores_of(role)
        counts = [score.unknown_symbols for score in scores if score.unknown_symbols]
        if counts:
            n = count_noun(sum(counts), "symbols")
            found.append(f"{n} in {len(counts)} of {count_noun(len(scores), 'answers')} of {evidence.name(role)}")
    if found:
        message = f"it is unknown whether symbols of the code exist: {and_list(found)}; only tests that run the code decide there"
        yield Validity(kind=ValidityKind.SYMBOLS_UNKNOWN, is_void=False, message=message)


RULES: Iterable[Rule] = (
    _uncommitted, _tree_changed, _native_tools, _preflights, _commits, _delivery, _results, _not_read, _complete,
    _models, _agents, _undecided, _leaks, _same_answers, _unmeasured, _judge, _code_not_run, _symbols_unknown,
    _folder_has_more,
)  # fmt: skip
