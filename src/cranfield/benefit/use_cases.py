"""Benefit experiments: run, score, report, repeat, gate and history.

The history has a line for each result, in `.cranfield/benefit.jsonl` of the folder of results; void results are marked. git ignores
it and does not ignore the results: those without a line, as in another clone, are read from their files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cranfield.agents.answers.judge import Judge, JudgeSettings
from cranfield.agents.answers.rows import read_answers
from cranfield.agents.answers.score import BlindAnswers, ScoredAnswers, blind_answers, redaction, score_answers
from cranfield.agents.budget import Budget, PriceList, Spent
from cranfield.agents.protocol import Backend, FailureKind
from cranfield.agents.recording import MANIFEST, Kept, charge, now
from cranfield.agents.settings import Connection, connected
from cranfield.app.history import FOLDER, append
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import (
    ConfigError,
    InputError,
    Problem,
    SystemUnderTestError,
    UnknownNameError,
    UsageError,
    shorten,
    unknown_name,
)
from cranfield.base.words import count_noun, join_first
from cranfield.benefit.assemble import assemble, last_scores
from cranfield.benefit.codecheck.registry import checker_for
from cranfield.benefit.errors import CellError
from cranfield.benefit.experiment import RunOptions, execute, preflights_of, write_experiment
from cranfield.benefit.folder import ExperimentFile, ExperimentFolder
from cranfield.benefit.plan import ArmRole, BenefitPlan, load_plan
from cranfield.benefit.plan_check import CheckedPlan, check_plan, machine_problems
from cranfield.benefit.records import CellRecord, PreflightRecord, ScoreReason, ScoreRecord, deciding_facts
from cranfield.benefit.redaction import LeakFinder, redaction_of
from cranfield.benefit.result import (
    RESULT,
    BenefitResult,
    StratumKind,
    StratumVerdict,
    ValidityKind,
    read_result,
    write_result,
)
from cranfield.benefit.runner import schedule
from cranfield.benefit.score import Checkers, Scorer, SealedAnswer, seal, unscored, unseal
from cranfield.benefit.source import TreeCheck, record_tree
from cranfield.benefit.status import BenefitHistory, PastResult, PastStratum
from cranfield.benefit.tool_check import check_scoring, scoring_problems, tool_changes, try_tools
from cranfield.benefit.validity import ExperimentRecords
from cranfield.formats.io.delimited import file_versions, newest_version
from cranfield.formats.io.files import read_inside, refusal, shown, write_text
from cranfield.model import TestSet
from cranfield.model.results import DamagedLine
from cranfield.repo.git import is_same_commit, standing

FILE = "benefit.jsonl"


def remember_result(result: BenefitResult, path: Path) -> str | None:
    """Append a result to the history of its folder.

    Args:
        result: as it was written.
        path: of its file.

    Returns:
        Why it was not written; None where it was. The file of the result matters more.
    """
    try:
        where = standing(path.parent)
        past = _past_of(
            result,
            path,
            time=now(),
            git_commit=None if where is None else where.commit,
            dirty=where is not None and where.dirty,
        )
        append(path.parent, past, file=FILE)
    except UsageError as error:
        return f"the history was not written: {error}"
    return None


def _past_of(result: BenefitResult, path: Path, *, time: str, **fields: Any) -> PastResult:
    return PastResult(
        time=time,
        file=path.name,
        strata=tuple(
            PastStratum.model_validate(each.model_dump(include=set(PastStratum.model_fields))) for each in result.strata
        ),
        is_void=result.is_void,
        uncommitted=result.tree.uncommitted,
        arms={role.value: name for role, name in result.arms.items()},
        **result.model_dump(include={"name", "run", "version", "plan_digest", "labels_digest", "commit", "sentence"}),
        **fields,
    )


def read_results(folder: Path) -> BenefitHistory:
    """Read the history of a folder of results, and the results that have no line in it, in the order of their times.

    Raises:
        UsageError: the history cannot be read.
        InputError: a result without a line is damaged.
    """
    history = _read_lines(folder)
    known = {past.file for past in history.results}
    without = [path for path in file_versions(folder, RESULT).values() if path.name not in known]
    if not without:
        return history
    results = [(read_result(path), path) for path in without]
    found = [_past_of(result, path, time=result.made_at or "unknown") for result, path in results]
    return replace(history, results=tuple(sorted((*history.results, *found), key=lambda past: past.time)))


def _read_lines(folder: Path) -> BenefitHistory:
    path = folder / FOLDER / FILE
    try:
        text = read_inside(folder, path)
    except FileNotFoundError:
        return BenefitHistory()
    except OSError as error:
        raise UsageError(refusal(path, error)) from error
    found: dict[str, PastResult] = {}
    damaged: list[DamagedLine] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            past = PastResult.model_validate_json(line)
            found.pop(past.run, None)
            found[past.run] = past
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            damaged.append(DamagedLine(number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}".lstrip(": ")))
    return BenefitHistory(results=tuple(found.values()), damaged=tuple(damaged))


JUDGE_CALLS = "judge.jsonl"
"""Answers of the judge, by their requests: one file for both arms."""


@dataclass(frozen=True, slots=True)
class ScoringOutcome:
    """What a call of the scorer did."""

    n_cells: int
    """Cells of the experiment that have ended."""
    n_scored: int
    """By this call."""
    n_undecided: int
    """Cells of the experiment that are not decided."""
    n_leaks: int
    """Answers of all that name a tool or an arm, which was removed."""
    n_failed: int
    """Undecided cells whose judge failed."""
    first_missing: str
    """Cell and statement of the first vote that is missing, and what came instead; empty: none is."""
    judge: Judge | None
    """That this call asked; None: the plan has none."""
    spent: Spent
    """What the judge used, by all calls."""
    prices: PriceList


def score_experiment(path: Path, *, checkers: Checkers | None = None, source: Backend | None = None) -> ScoringOutcome:
    """Score the cells that have ended and have no score, or one that may be decided now.

    Args:
        path: folder of the experiment.
        checkers: target of code to its checker; default: those of the plan and of the package.
        source: answers in the place of the judge, for tests.

    Raises:
        UsageError: there is no experiment, or another process writes in it.
        InputError: a file of it is damaged.
    """
    with ExperimentFolder.writing(path) as folder:
        record_tree(folder, "score")
        return event_loop().run(_score(folder, checkers, source))


def configured_checkers(plan: BenefitPlan) -> Checkers:
    """The checkers of the plan and of the package."""
    return partial(checker_for, configured=plan.success.checkers)


async def _score(folder: ExperimentFolder, checkers: Checkers | None, source: Backend | None) -> ScoringOutcome:
    plan, tasks, runs = folder.plan, folder.tasks(), folder.cells()
    cells = {run.key: run for run in runs if run.end.is_scored}
    redact = redaction_of(plan, runs, folder.preflights())
    before = last_scores(folder.scores())
    sealed = seal(unscored(list(cells.values()), before.values()), plan.seed)
    leaks = LeakFinder(redact, tasks)
    budget = Budget(plan.budget.judge_tokens, plan.budget.judge_money, plan.budget.prices)
    async with AsyncExitStack() as stack:
        judge = await _judge(plan, folder.path, budget, stack, source)
        checks = checkers or configured_checkers(plan)
        scorer = Scorer(tasks, plan.success, redact=redact, judge=judge, checkers=checks)

        async def score(answer: SealedAnswer) -> None:
            found = {answer.sealed_id: await scorer.score(answer)}
            for record in unseal(sealed, found, cells, tasks, leaks):
                known = before.get(record.key)
                if known is None or known.model_dump_json() != record.model_dump_json():
                    folder.append(ExperimentFile.SCORES, record)

        async with asyncio.TaskGroup() as group:
            for answer in sealed.answers:
                group.create_task(score(answer))
    scores = last_scores(folder.scores()).values()
    return ScoringOutcome(
        len(cells),
        len(sealed.answers),
        sum(score.success is None for score in scores),
        sum(bool(score.redacted) for score in scores),
        sum(score.why is ScoreReason.JUDGE_FAILED for score in scores),
        next(_missing(scores), ""),
        judge,
        budget.spent,
        budget.prices,
    )


def _missing(scores: Iterable[ScoreRecord]) -> Iterator[str]:
    for score in scores:
        if score.why is ScoreReason.JUDGE_FAILED:
            for fact in deciding_facts(score.why, score.facts):
                yield from (f"{score.key}, {fact.id}: {vote.problem}" for vote in fact.votes if vote.problem)


async def _judge(
    plan: BenefitPlan, folder: Path, budget: Budget, stack: AsyncExitStack, source: Backend | None
) -> Judge | None:
    """The judge of the plan, within a budget; None: it has none, or needs none."""
    settings = plan.judge
    if settings is None:
        return None
    backend = await stack.enter_async_context(connected(settings.connection, budget, source))
    kept = stack.enter_context(closing(Kept(folder / JUDGE_CALLS, backend, keeps_rejections=False)))
    charge(budget, kept.usages())
    more = {} if settings.max_tokens is None else {"max_tokens": settings.max_tokens}
    judge_settings = JudgeSettings(
        settings.model,
        plan.success.judge_votes,
        settings.temperature,
        settings.seed or 0,
        settings.output_mode,
        settings.concurrency,
        timeout_s=settings.timeout_s,
        attempts=settings.attempts,
        **more,
    )
    return Judge(kept, judge_settings)


def result_of(path: Path) -> BenefitResult:
    """The result of an experiment, of the pairs that are complete.

    Raises:
        UsageError: there is no experiment, no cell of it ended, or cells are not scored.
        InputError: a file of it is damaged.
    """
    folder = ExperimentFolder.open(path)
    plan, tasks, runs = folder.plan, folder.tasks(), folder.cells()
    scores = last_scores(folder.scores())
    ended = [run.key for run in runs if run.end.is_scored]
    if not ended:
        raise UsageError(
            "no cell of this experiment is finished",
            path=shown(path),
            hint=f"`cranfield benefit run --resume {shown(path)}` continues it",
        )
    if missing := [str(key) for key in ended if key not in scores]:
        hint = f"score them first: cranfield benefit score {shown(path)}"
        raise UsageError(
            f"{count_noun(len(missing), 'cells')} without a score", path=shown(path), got=join_first(missing), hint=hint
        )
    evidence = ExperimentRecords(
        plan,
        schedule(plan, tasks.tasks),
        runs,
        scores,
        folder.preflights(),
        tasks.commit,
        folder.manifest.commit,
        folder.manifest.tree,
        folder.read(ExperimentFile.TREES, TreeCheck),
    )
    return assemble(evidence, tasks, run=path.resolve().name)


def publish(result: BenefitResult, folder: Path) -> tuple[Path, str | None]:
    """Write a result under its version, and add it to the history of the folder.

    Returns:
        The file, and why the history was not written; None where it was.
    """
    path = write_result(result, folder)
    return path, remember_result(read_result(path), path)


OnProgress = Callable[[str, int, int], None]
"""Called with what is done, how many cells have ended, and how many there are."""


def unchanged_since(path: Path, results: Path) -> tuple[str, BenefitResult] | None:
    """The last result of an experiment, and the name of its file, where another run would measure the same.

    That is so where it is valid, and plan, tasks, commit, the folder of the repository and all that the tools say of themselves are what they were.
    A source without commits may always have changed.

    Args:
        path: folder of the new experiment. Its tools are asked; no cell is run.
        results: folder of results with its history.

    Raises:
        PreflightError: a tool is not as the plan wants it.
        InputError: the last result is damaged.
    """
    folder = ExperimentFolder.open(path)
    manifest = folder.manifest
    past = next((each for each in reversed(read_results(results).results) if each.name == manifest.name), None)
    if past is None or past.is_void or not (results / past.file).is_file():
        return None
    now = (manifest.plan_digest, manifest.labels_digest, manifest.commit)
    if now != (past.plan_digest, past.labels_digest, past.commit) or (folder.plan.repo and not manifest.commit):
        return None
    earlier = read_result(results / past.file)
    if manifest.tree.digest != earlier.tree.digest:
        return None
    found = {record.tool: record for record in preflights_of(path)}
    same = all(_is_same(record, earlier) for record in found.values())
    return (past.file, earlier) if same and set(found) <= set(earlier.tools) else None


def _is_same(record: PreflightRecord, earlier: BenefitResult) -> bool:
    known = earlier.tools.get(record.tool, {}).get("preflight")
    return known is not None and not tool_changes(record, PreflightRecord(**{**known, "arm": record.arm}))


def rerun(path: Path, results: Path, on_progress: OnProgress) -> tuple[str, BenefitResult, str | None]:
    """Run the cells of an experiment that have no end, score them, and write the result.

    A budget that is used up ends the cells: the result is that of the pairs that are complete, and says so.

    Returns:
        Name of the file, the result, and why the history was not written; None where it was.

    Raises:
        SystemUnderTestError: cells have no end because of a server, a tool or an agent, or the judge failed: the same call
            goes on with them.
        UsageError: the source is another than when the experiment began.
        InputError: the folder is damaged.
    """
    folder = ExperimentFolder.open(path)
    n_cells = len(schedule(folder.plan, folder.tasks().tasks))
    ended = set(folder.scored_cells())
    on_progress("running cells", len(ended), n_cells)

    def on_cell(cell: CellRecord) -> None:
        if cell.end.is_scored:
            ended.add(cell.key)
        on_progress("running cells", len(ended), n_cells)

    outcome = execute(path, RunOptions(on_cell=on_cell))
    if not outcome.is_complete and outcome.stopped != CellError.BUDGET:
        first = outcome.waiting[0] if outcome.waiting else None
        why = f": {first.key}, {first.error}: {first.message}" if first else ""
        message = f"{count_noun(n_cells - outcome.n_scored, 'cells')} of {n_cells} are unfinished{why}"
        raise SystemUnderTestError(message, hint="a retry continues with them")
    on_progress("scoring", len(ended), n_cells)
    scored = score_experiment(path)
    stopped = None if scored.judge is None else scored.judge.stopped
    is_budget = stopped is not None and stopped.kind is FailureKind.BUDGET
    if scored.n_failed and not is_budget:
        message = (
            f"votes of the judge are missing in {count_noun(scored.n_failed, 'cells')}, first {scored.first_missing}"
        )
        raise SystemUnderTestError(message, hint="a retry scores them again")
    file, not_remembered = publish(result_of(path), results)
    return file.name, read_result(file), not_remembered


def checked_plan(path: Path, experiments: Path, *, allow_dirty: bool = False) -> CheckedPlan:
    """A plan that can be run, over tasks that can be scored. No model is called, and no tool under test.

    Args:
        path: of the plan.
        experiments: folder of all experiments, which is not looked at where it lies in the repository.
        allow_dirty: accept a repository with uncommitted changes.

    Raises:
        ConfigError: with every problem of the plan, and all that this machine lacks; else with every task that cannot be scored.
    """
    plan = load_plan(path)
    problems = machine_problems(plan)
    try:
        checked = check_plan(plan, path.parent, allow_dirty=allow_dirty, without=(path, experiments))
    except ConfigError as error:
        raise ConfigError([*error.problems, *problems]) from None
    if problems:
        raise ConfigError(problems)
    faults = event_loop().run(check_scoring(plan, checked.tasks, configured_checkers(plan)))
    if faults:
        raise ConfigError(scoring_problems(faults))
    return checked


def tried_tools(checked: CheckedPlan) -> list[PreflightRecord]:
    """What the tools under test of a plan serve now, each started and ended.

    Raises:
        PreflightError: with every tool that is not as the plan wants it.
        CranfieldError: this machine lacks what its tools need.
    """
    return event_loop().run(try_tools(checked.plan, checked.commit))


def begin_experiment(path: Path, experiments: Path, *, allow_dirty: bool = False) -> Path:
    """Check a plan, and make the folder of an experiment of it.

    Raises:
        ConfigError: as `checked_plan`.
    """
    return write_experiment(checked_plan(path, experiments, allow_dirty=allow_dirty), path.parent, experiments)


def read_source(source: Path) -> tuple[BenefitResult, Path | None]:
    """A result, and the folder of its experiment where that was named, from which it is made anew.

    Of a folder of results the newest version is read.

    Raises:
        UsageError: there is no such folder, or its cells are not scored.
        InputError: it cannot be read.
    """
    path = source if (source / MANIFEST).is_file() else newest_version(source, RESULT)
    return (result_of(path), path) if path.is_dir() else (read_result(path), None)


def transcripts_file(html: Path) -> Path:
    """`report.transcripts.html` of `report.html`."""
    return html.with_suffix(".transcripts.html")


def loss_transcripts(result: BenefitResult, run: Path, page: Path) -> list[Path]:
    """Write the transcripts of both arms of every task where the treatment was worse.

    Raises:
        InputError: a transcript is missing or damaged.
    """
    write_transcripts(
        run, page, f"{result.name}: tasks where the treatment was worse", tasks=[loss.task_id for loss in result.losses]
    )
    return [page]


def write_transcripts(
    run: Path, page: Path, title: str, *, tasks: Sequence[str] = (), arms: Collection[ArmRole] = tuple(ArmRole)
) -> tuple[int, list[str]]:
    """Write the transcripts of an experiment as one page, by task, seed and arm, each with its score where it has one.

    Args:
        run: folder of the experiment.
        page: HTML file.
        title: of the page.
        tasks: ids, in this order; empty: all tasks.
        arms: of these runs.

    Returns:
        How many there are, and the runs that have none: their agent crashed, or a tool did not start.

    Raises:
        UnknownNameError: with every task that the experiment has not.
        UsageError: there is no experiment.
        InputError: a transcript is missing or damaged.
    """
    from cranfield.reporting.transcripts import transcripts_page

    folder = ExperimentFolder.open(run)
    names, known = folder.plan.arms, [task.id for task in folder.tasks().tasks]
    if unknown := [unknown_name("task", name, known) for name in tasks if name not in known]:
        raise UnknownNameError(unknown)
    places = {name: place for place, name in enumerate(tasks or known)}
    cells = [cell for cell in folder.cells() if cell.key.task_id in places and cell.key.arm in arms]
    cells.sort(key=lambda cell: (places[cell.key.task_id], cell.key.seed, list(ArmRole).index(cell.key.arm)))
    scores, records, without = last_scores(folder.scores()), list[Mapping[str, Any]](), list[str]()
    for cell in cells:
        key, transcript = cell.key, folder.transcript(cell.transcript) if cell.transcript else {}
        if not transcript:
            without.append(str(key))
            continue
        score = _words(scores.get(key)) if cell.end.is_scored else "failed, not scored"
        role = f"{key.arm.value} ({names[key.arm].name}), seed {key.seed}{score and ': '}{score}"
        records.append(transcript | {"query_id": key.task_id, "role": role, "attempt": cell.attempt})
    write_text(page, [transcripts_page(records, title)])
    return len(records), without


def _words(score: ScoreRecord | None) -> str:
    """The score of a cell; empty: it has none yet."""
    if score is None:
        return ""
    end = {True: "success", False: "no success", None: "not decided"}[score.success]
    which = "; ".join(f"{fact.id}: {fact.statement}" for fact in deciding_facts(score.why, score.facts))
    return f"{end}, {score.why.value}{which and f' ({which})'}" if score.why else end


_SOUND: Mapping[ValidityKind, str] = {
    ValidityKind.UNCOMMITTED: "the code is that of a commit",
    ValidityKind.RESULTS_FLAWED: "the tool delivered content",
    ValidityKind.ANSWERS_NOT_READ: "the answers are based on what was read",
}
"""What a caution puts in doubt: no verdict passes or fails a gate on it alone."""
_CLOCKS_DIFFER = timedelta(hours=1)
"""Largest difference of the clocks of two machines: a result that is later is of a wrong clock, and its age is not
known."""


class RuleState(StrEnum):
    """Whether a rule holds."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    """There is not enough data."""
    INVALID = "invalid"
    """The comparison is, or the result is of something else: no rule is judged on it."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A stratum that must have a verdict."""

    stratum: Mapping[str, str]
    verdict: StratumVerdict


@dataclass(frozen=True, slots=True)
class BenefitRules:
    """What a result must keep."""

    forbid: Sequence[StratumVerdict] = (StratumVerdict.NET_COST,)
    """In no cell of task type and difficulty, and in no margin; of tasks without strata, not over all of them."""
    require: Sequence[Requirement] = ()
    max_age: timedelta | None = None
    commit: str = ""
    """That the tasks must be about."""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """A rule and its state."""

    rule: str
    state: RuleState
    sentence: str
    strata: tuple[str, ...] = ()
    """Those that break it, each with its reason."""

    @property
    def text(self) -> str:
        """The sentence, and a line for each stratum that breaks the rule."""
        return "\n".join((self.sentence, *(f"  {each}" for each in self.strata)))


@dataclass(frozen=True, slots=True)
class BenefitGate:
    """All rules."""

    outcomes: tuple[RuleOutcome, ...]

    @property
    def state(self) -> RuleState:
        """The worst: invalid, then failed, then inconclusive."""
        found = {each.state for each in self.outcomes}
        order = (RuleState.INVALID, RuleState.FAILED, RuleState.INCONCLUSIVE)
        return next((state for state in order if state in found), RuleState.PASSED)


def parse_requirement(text: str) -> Requirement:
    """`task_type=explain,difficulty=hard:pays off`.

    Raises:
        UsageError: it is not of that form.
    """
    strata, _, verdict = text.rpartition(":")
    pairs = [part.partition("=") for part in strata.split(",")]
    if verdict.strip() not in set(StratumVerdict) or not all(
        name.strip() and value.strip() for name, _, value in pairs
    ):
        expected = f"STRATUM=VALUE,...:VERDICT, a verdict of {', '.join(StratumVerdict)}"
        raise UsageError("not a stratum and its verdict", got=shorten(text), expected=expected)
    return Requirement({name.strip(): value.strip() for name, _, value in pairs}, StratumVerdict(verdict.strip()))


def judge_result(result: BenefitResult, rules: BenefitRules, now: datetime) -> BenefitGate:
    """Judge a result.

    Args:
        result: of an experiment.
        rules: what it must keep.
        now: for its age, with a time zone.

    Raises:
        InputError: a rule names a stratum that the result does not have.
    """
    wrong = _wrong(result, rules, now)
    if wrong:
        return BenefitGate(tuple(wrong))
    cautions = [
        RuleOutcome(_SOUND[each.kind], RuleState.INCONCLUSIVE, each.message) for each in result.validity if each.leads
    ]
    judged = (*(_forbidden(result, verdict) for verdict in rules.forbid), *_required(result, rules))
    if cautions:
        judged = tuple(
            replace(each, state=RuleState.INCONCLUSIVE) if each.state is RuleState.FAILED else each for each in judged
        )
    return BenefitGate((*cautions, *judged))


def _wrong(result: BenefitResult, rules: BenefitRules, now: datetime) -> list[RuleOutcome]:
    """Why no rule is judged."""
    found = [
        RuleOutcome("the comparison is valid", RuleState.INVALID, each.message)
        for each in result.validity
        if each.is_void
    ]
    if not result.tasks:
        found.append(RuleOutcome("the comparison is valid", RuleState.INVALID, "there are no tasks"))
    if rules.commit and not is_same_commit(rules.commit, result.commit):
        sentence = f"its commit is {result.commit[:12]}" if result.commit else "its commit is unknown"
        found.append(RuleOutcome(f"the result is of commit {rules.commit[:12]}", RuleState.INVALID, sentence))
    elif rules.commit and result.tree.uncommitted:
        found.append(
            RuleOutcome(f"the result is of commit {rules.commit[:12]}", RuleState.INVALID, result.tree.uncommitted)
        )
    if rules.max_age is not None:
        found += _wrong_age(result, rules.max_age, now)
    return found


def _wrong_age(result: BenefitResult, most: timedelta, now: datetime) -> list[RuleOutcome]:
    rule = f"the result is at most {count_noun(most.days, 'days')} old"
    try:
        made = datetime.fromisoformat(result.made_at).astimezone(UTC)
    except ValueError:
        return [RuleOutcome(rule, RuleState.INVALID, "it has no timestamp")]
    age = now - made
    if age < -_CLOCKS_DIFFER:
        return [
            RuleOutcome(rule, RuleState.INVALID, f"it was made on {made:%Y-%m-%d %H:%M} UTC, which is in the future")
        ]
    if age <= most:
        return []
    return [RuleOutcome(rule, RuleState.INVALID, f"it was made on {made:%Y-%m-%d}, {count_noun(age.days, 'days')} ago")]


def _forbidden(result: BenefitResult, verdict: StratumVerdict) -> RuleOutcome:
    judged = [row for row in result.strata if row.kind is not StratumKind.ALL] or result.strata
    bad = [row for row in judged if row.verdict is verdict]
    unknown = [row for row in judged if row.verdict is StratumVerdict.INSUFFICIENT]
    rule = f"no stratum has the verdict {verdict.value}"
    if bad:
        sentence = f"{len(bad)} of {count_noun(len(judged), 'strata')}:"
        return RuleOutcome(rule, RuleState.FAILED, sentence, tuple(f"{row.label}: {row.reason}" for row in bad))
    if len(unknown) == len(judged):
        return RuleOutcome(rule, RuleState.INCONCLUSIVE, f"none of {count_noun(len(judged), 'strata')} has enough data")
    left = f"; {len(unknown)} without enough data" if unknown else ""
    return RuleOutcome(rule, RuleState.PASSED, f"none of {count_noun(len(judged), 'strata')} has it{left}")


def _required(result: BenefitResult, rules: BenefitRules) -> list[RuleOutcome]:
    outcomes, problems = [], []
    for each in rules.require:
        label = ", ".join(each.stratum.values())
        row = next((row for row in result.strata if row.stratum == each.stratum), None)
        if row is None:
            known = "; ".join(dict.fromkeys(row.label for row in result.strata if row.stratum))
            got = ", ".join(f"{name}={value}" for name, value in each.stratum.items())
            problems.append(Problem("the result has no such stratum", got=got, expected=known))
            continue
        state = RuleState.FAILED
        if row.verdict is each.verdict:
            state = RuleState.PASSED
        elif row.verdict is StratumVerdict.INSUFFICIENT:
            state = RuleState.INCONCLUSIVE
        found = "" if state is RuleState.PASSED else f"it is {row.verdict.value}. "
        outcomes.append(RuleOutcome(f"{label}: {each.verdict.value}", state, f"{found}{row.reason}"))
    if problems:
        raise InputError(problems)
    return outcomes


@dataclass(frozen=True)
class JudgedBy:
    """The model of a judge."""

    connection: Connection
    settings: JudgeSettings
    budget: Budget = field(default_factory=Budget)
    calls: Path | None = None
    """File in which its answers are kept: what it has is not requested again, in this run or another."""


def score_file(
    testset: TestSet,
    answers: Path,
    judged_by: JudgedBy | None = None,
    *,
    redact: tuple[str, ...] = (),
    seed: int = 0,
    source: Backend | None = None,
) -> ScoredAnswers:
    """Score the answers of a file.

    Args:
        testset: with labels, or with targets alone.
        answers: JSON Lines.
        judged_by: None: structure, and the facts that rules decide.
        redact: regular expressions of what no judge reads.
        seed: of the order in which answers are judged.
        source: answers in the place of the model, for tests.

    Raises:
        InputError: the file, or that of the kept answers, cannot be read.
        UsageError: an expression is none.
    """
    given, costs = read_answers(answers)
    blind = blind_answers(testset, given, redact=redaction(redact), seed=seed)
    scoring = score_answers(blind) if judged_by is None else _judged(blind, judged_by, source)
    return replace(event_loop().run(scoring), costs=costs)


async def _judged(blind: BlindAnswers, judged_by: JudgedBy, source: Backend | None) -> ScoredAnswers:
    async with connected(judged_by.connection, judged_by.budget, source) as backend:
        if judged_by.calls is None:
            return await score_answers(blind, Judge(backend, judged_by.settings))
        with closing(Kept(judged_by.calls, backend, keeps_rejections=False)) as kept:
            return await score_answers(blind, Judge(kept, judged_by.settings))
