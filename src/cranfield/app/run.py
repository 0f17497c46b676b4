"""`cranfield run`: collect, evaluate, compare and report, for one test set or several."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cranfield.app.experiment import AnswerCache, Experiment, prepare, prepare_all, require_one_set
from cranfield.app.history import remember
from cranfield.app.loading import NO_OVERRIDES, SetOverrides
from cranfield.app.rescoring import rescore_command
from cranfield.app.saved_runs import note_runs
from cranfield.base.errors import ConfigError, CranfieldError, TestSetError, UnknownNameError, UsageError
from cranfield.config import Config, SystemConfig, expand_preset, load_config, public_config, system_config
from cranfield.config.presets import PRESETS, Preset
from cranfield.config.services import McpServer
from cranfield.config.systems import FusionConfig, HttpConfig, McpConfig, PresetConfig, with_explanations
from cranfield.evaluation.compare import compare as compare_evaluations
from cranfield.evaluation.evidence.values import void_sentences
from cranfield.evaluation.testset.judging_notes import guidelines_differ
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.formats.io.files import check_inside, refusal
from cranfield.formats.sniff import detect_format
from cranfield.measures import Measure
from cranfield.model import Run, Scalar, TestSet
from cranfield.reporting import comparison_document, evaluation_document, save_reports
from cranfield.reporting.document import (
    CALLS,
    PILOT_STAMP,
    Brief,
    Bullets,
    Cell,
    Code,
    Column,
    Document,
    Link,
    Section,
    Table,
    TonedCell,
)
from cranfield.reporting.sections.many import check_order, means_table
from cranfield.reporting.sections.subject import Preflight
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec
from cranfield.systems import progress_on
from cranfield.systems.collect.collection import PARTIAL, RUNS

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from cranfield.evaluation.evaluate import ContrastSpec
    from cranfield.evaluation.many import ManyComparison
    from cranfield.evaluation.sensitivity import Sensitivity


REPORT_FILES = ("results.json", "report.html", "report.md")
"""Written into the output folder, next to the runs."""


class JudgedFloors(Protocol):
    """What the floors of a call came to."""

    @property
    def is_broken(self) -> bool:
        """Whether a system does not keep one."""

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each floor, with its system."""

    @property
    def record(self) -> dict[str, Any]:
        """What the JSON of a report says of them."""

    def added_to(self, document: Document) -> Document:
        """A report with the floors of its call."""


class Floors(Protocol):
    """Bounds on means of every system of a call, which a product judges."""

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that they are on."""

    def check(self, evaluation: Evaluation) -> None:
        """Refuse floors that a test set does not allow."""

    def judge(self, evaluations: Sequence[Evaluation]) -> JudgedFloors:
        """The result of each floor for each system."""

    def join(self, judged: Mapping[str, JudgedFloors]) -> JudgedFloors:
        """The results on several test sets, by name, together."""


def require_folder(out: Path) -> None:
    """Refuse an output folder that cannot be made or leads elsewhere, before any query is sent.

    Raises:
        UsageError: a file is in the way, or a link in the place of a file or folder in it.
    """
    try:
        in_the_way = next((path for path in (out, *out.parents) if path.exists() and not path.is_dir()), None)
    except OSError as error:
        raise UsageError(refusal(out, error)) from error
    if in_the_way is not None:
        expected = "a folder for the results, {out}"
        raise UsageError("this is a file", path=str(in_the_way), expected=expected, parameters=("out",))
    for name in (PARTIAL, RUNS):
        check_inside(out, out / name, is_folder=True)
    for name in (*REPORT_FILES, CALLS):
        check_inside(out, out / name)


def systems_document(config_path: Path) -> Document:
    """The systems of a config, a line each; nothing is started."""
    config = load_config(config_path)
    columns: Columns[tuple[str, SystemConfig]] = (
        Col("system", lambda row: row[0]),
        Col("kind", lambda row: f"preset {row[1].preset}" if isinstance(row[1], PresetConfig) else row[1].kind),
        Col("target", lambda row: _target(expand_preset(row[1]))),
        Col("timeout", lambda row: f"{row[1].timeout_s:g} s"),
        Col("concurrency", lambda row: row[1].concurrency, "count"),
        Col("components", lambda row: ", ".join(row[1].components or ())),
    )
    spec = TableSpec(
        "`cranfield system probe NAME QUERY` sends a query to one of them", list(config.systems.items()), columns
    )
    return Document(
        title=f"{len(spec.rows)} systems" if len(spec.rows) > 1 else "1 system",
        subtitle=(str(config_path),),
        sections=(Section("systems", "Systems", (spec.table(wrap=True),)),),
        tidy=spec.tidy,
        payload=lambda: {"systems": {name: public_config(system) for name, system in config.systems.items()}},
    )


def _target(system: SystemConfig) -> str:
    """The command, address, function or file, as written."""
    if isinstance(system, HttpConfig):
        return system.http.url
    if isinstance(system, McpConfig):
        tool = system.mcp
        return f"{tool.tool} of {tool.url if isinstance(tool, McpServer) else ' '.join(tool.command)}"
    if isinstance(system, FusionConfig):
        return f"{system.fusion.method} of {', '.join(system.fusion.of)}"
    written = getattr(system, system.kind)
    return " ".join(written) if isinstance(written, list) else str(written)


def filled_yaml(config_path: Path, name: str) -> str:
    """A system of a config as YAML, its preset filled in."""
    config = load_config(config_path)
    if name not in config.systems:
        raise UnknownNameError.among("system", name, config.systems)
    return _yaml({name: public_config(expand_preset(config.systems[name]))})


def _yaml(value: object) -> str:
    import yaml

    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
    return text


def presets_document(name: str | None = None) -> Document:
    """The table of presets; or one of them, with the settings of `with` and its expansion."""
    if name is not None and name not in PRESETS:
        raise UnknownNameError.among("preset", name, PRESETS)
    if name is not None:
        return _preset_document(PRESETS[name])
    columns: Columns[Preset] = (
        Col("preset", lambda preset: preset.name),
        Col("description", lambda preset: preset.title),
        Col("needs", lambda preset: ", ".join(n for n, field in _settings(preset) if field.is_required())),
    )
    spec = TableSpec("`cranfield system presets NAME` shows one in full", list(PRESETS.values()), columns)
    return Document(
        title="Presets",
        subtitle=("forms of other kinds of system, filled in",),
        sections=(Section("presets", "Presets", (spec.table(),)),),
        tidy=spec.tidy,
        payload=lambda: {preset.name: preset.settings.model_json_schema() for preset in PRESETS.values()},
    )


def _settings(preset: Preset) -> list[tuple[str, FieldInfo]]:
    """The settings of `with`, by the names that a config gives them."""
    return [(field.alias or name, field) for name, field in preset.settings.model_fields.items()]


def _preset_document(preset: Preset) -> Document:
    columns: Columns[tuple[str, FieldInfo]] = (
        Col("setting", lambda row: row[0]),
        Col("required", lambda row: "yes" if row[1].is_required() else ""),
        Col("meaning", lambda row: " ".join((row[1].description or "").split())),
    )
    spec = TableSpec("Settings of `with`", _settings(preset), columns)
    example = {"preset": preset.name, "with": dict(preset.example)}
    yaml_text = _yaml(example)
    comes_to = _yaml(public_config(expand_preset(system_config("example", example))))
    return Document(
        title=f"preset {preset.name}",
        subtitle=(preset.title,),
        sections=(
            Section("settings", "Settings", (spec.table(wrap=True),)),
            Section(
                "example",
                "Example",
                (Code(yaml_text, "in the config", in_text=True), Code(comes_to, "expanded", in_text=True)),
            ),
        ),
        tidy=spec.tidy,
        payload=lambda: dict(preset.settings.model_json_schema()),
    )


@dataclass(frozen=True)
class SetResult:
    """The result of one test set, as the summary shows it."""

    name: str
    testset: TestSet
    params: Mapping[str, Scalar]
    document: Document
    report: str
    """File name of its report, in the folder of its name."""
    measure: str
    n: int
    means: tuple[float | None, float | None, float | None] = (None, None, None)
    """Means of A, of B, and their difference, on the measure."""
    verdict: Cell = ""
    remark: str = ""
    """What judgments of the unjudged results, and queries of an unseen kind, can make of the verdict."""
    evaluations: tuple[Evaluation, ...] = ()
    """Evaluation of each system, in order."""


def summary_document(results: Sequence[SetResult]) -> Document:
    """A row for each test set, with a link to its own report."""
    documents = [result.document for result in results]
    guidelines = (guidelines_differ(*(each.testset for each in two)) for two in pairwise(results))
    sentences = tuple(
        f"{result.name}: {result.document.verdict.sentence}" + (f" Here {result.remark}." if result.remark else "")
        for result in results
        if result.document.verdict is not None
    )
    return Document(
        title=f"{len(results)} test sets: {', '.join(result.name for result in results)}",
        subtitle=tuple(dict.fromkeys(document.title for document in documents)),
        sections=(
            Section("sets", "Test sets", (_table(results), Bullets((*filter(None, guidelines), *sentences)))),
            Section("scores", "Scores", (_scores(results),)),
        ),
        tidy=lambda: _tidy(results),
        payload=lambda: {"testsets": {result.name: result.document.payload() for result in results}},
        stamps=tuple(
            dict.fromkeys(stamp for document in documents for stamp in document.stamps if stamp == PILOT_STAMP)
        ),
        made_by=documents[0].made_by,
        brief=lambda: Brief(_brief_table(results), doubts=tuple(sentences)),
    )


def _table(results: Sequence[SetResult]) -> Table:
    columns: Columns[SetResult] = (
        Col("test set", lambda row: Link(row.name, f"{row.name}/{row.report}")),
        Col(
            "params", lambda row: ", ".join(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in row.params.items())
        ),
        Col("queries", lambda row: row.n, "count"),
        Col("measure", lambda row: row.measure),
        Col("A", lambda row: row.means[0], "value"),
        Col("B", lambda row: row.means[1], "value"),
        Col("difference", lambda row: row.means[2], "delta"),
        Col("verdict", lambda row: row.verdict),
    )
    caption = f"Each test set has its own report, in the folder of its name: NAME/{results[0].report}"
    return TableSpec(caption, results, columns).table()


def _brief_table(results: Sequence[SetResult]) -> Table:
    """The verdict of each test set, without its link and parameters; the scores where one system ran on each."""
    if all(len(each.evaluations) == 1 for each in results):
        return _scores(results)
    columns: Columns[SetResult] = (
        Col("test set", lambda row: row.name),
        Col("verdict", lambda row: row.verdict),
        Col("measure", lambda row: row.measure),
        Col("difference", lambda row: row.means[2], "delta"),
        Col("queries", lambda row: row.n, "count"),
    )
    return TableSpec("Test sets", results, columns).table(shown=20)


def _scores(results: Sequence[SetResult]) -> Table:
    """The mean of every measure, the primary ones first, for each test set and system."""
    rows = [(each.name, evaluation) for each in results for evaluation in each.evaluations]
    primary = {each.measure for each in results}
    measures = sorted(
        dict.fromkeys(measure for _, evaluation in rows for measure in evaluation.measures),
        key=lambda measure: str(measure) not in primary,
    )
    columns: Columns[tuple[str, Evaluation]] = (
        Col("test set", lambda row: row[0]),
        Col("system", lambda row: row[1].name),
        Col("queries", lambda row: len(row[1].query_ids), "count"),
        Cols(measures, lambda row, m: row[1].summaries[m].mean if m in row[1].summaries else None, "value"),
    )
    return TableSpec("Mean of each measure", rows, columns).table(shown=20)


def _tidy(results: Sequence[SetResult]) -> Table:
    tables = {result.name: result.document.tidy() for result in results}
    columns = list(dict.fromkeys(column for table in tables.values() for column in table.columns))
    rows = []
    for name, table in tables.items():
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            rows.append((name, *(cells.get(column) for column in columns)))
    return Table((Column("test set"), *columns), rows, "Every value", shown=None)


_, REPORT, MARKDOWN = REPORT_FILES
MEANS_FILE = "means.csv"
"""Written where three systems or more are compared."""


@dataclass(frozen=True)
class CompletedRun:
    """What a run of the job made."""

    document: Document
    """The report; of several test sets a summary."""
    evaluations: tuple[Evaluation, ...]
    """Evaluations of one test set; empty for several."""
    comparison: Comparison | None
    """Comparison of two systems; None for one, for three or more, and for several test sets."""
    void: tuple[str, ...]
    """Why the scores do not count; empty where they do."""
    written: tuple[Path, ...]
    report: Path
    primary: Measure | None = None
    """The measure that decides; None for several test sets."""
    many: ManyComparison | None = None
    """Comparison of three systems or more."""
    parts: tuple[CompletedRun, ...] = ()
    """Completed run of each test set, where there are several."""
    floors: JudgedFloors | None = None
    """What the floors of the call came to."""
    rescore: str = ""
    """Command that scores the runs again by other measures; empty for several test sets."""


@dataclass(frozen=True)
class Extras:
    """What reports show besides the results."""

    contrasts: tuple[ContrastSpec, ...] = ()
    today: date | None = None
    sensitivity: bool = False
    allow_drift: bool = False
    sort: str = "mean"
    pairs: bool = False
    floors: Floors | None = None

    def check(self, experiments: Sequence[Experiment]) -> None:
        """Refuse, before a query is sent, strata, an order, floors and a list of pairs that no report can have."""
        from cranfield.evaluation.evaluate import contrast_strata

        compared = [experiment for experiment in experiments if len(experiment.systems) > 2]
        if not compared and (self.pairs or self.sort != "mean"):
            parameter = "pairs" if self.pairs else "sort"
            raise UsageError(f"{{{parameter}}} needs three or more systems", parameters=(parameter,))
        for experiment in compared:
            check_order(self.sort, experiment.dry.measures)
        for experiment in experiments:
            for contrast in self.contrasts:
                contrast_strata(experiment.dry, *contrast)
            if self.floors is not None:
                self.floors.check(experiment.dry)


def run_job(  # noqa: PLR0913 - each is an option of the command, and is typed by name
    config_path: Path,
    *,
    out: Path,
    systems: Sequence[str] | None = None,
    seed: int = 0,
    pilot: bool = False,
    allow_drift: bool = False,
    contrasts: Sequence[ContrastSpec] = (),
    sensitivity: bool = False,
    sort: str = "mean",
    pairs: bool = False,
    cache: AnswerCache = "use",
    explain: bool = False,
    today: date | None = None,
    overrides: SetOverrides = NO_OVERRIDES,
    floors: Floors | None = None,
    targets: Sequence[str] = (),
) -> CompletedRun:
    """Collect the systems of a config, score and compare them, and write the results into `out`.

    Everything that can be checked beforehand is checked before the first query is sent. Every evaluation is added to the
    history next to the config.

    Args:
        config_path: cranfield.yaml; with `targets` not read.
        out: folder of `results.json`, `report.html`, `report.md` and `runs/`. With several test sets each has these in a
            folder of its name, and `report.html` and `report.md` at the top are a summary.
        systems: one name to evaluate it alone, two to compare (baseline first), more to compare all of them; None is the
            pair of the config, or all of its systems.
        seed: of everything random.
        pilot: mark everything made as not for the record.
        allow_drift: accept a test set that no longer matches its repository.
        contrasts: (key, value, value) of strata to contrast.
        sensitivity: of two systems, add a sensitivity analysis.
        sort: order of three systems or more: mean, rank (mean rank), name, given or a measure.
        pairs: list all pairs of three systems or more, however many.
        cache: what is done with the answers of earlier runs.
        explain: every system that can says how the score of each result came about.
        today: to report that a test set is overdue for new queries; None does not report it.
        overrides: options of the test set, and measures, in place of those of the config.
        floors: bounds on means of every system.
        targets: test set and systems as `cranfield init` takes them, in place of a config.

    Raises:
        InputError: config or test set, with all their problems.
        PreflightError: a check failed; no query was sent.
        Interrupted: the same call continues where it stopped.
    """
    config = _config(config_path, targets, overrides)
    if explain:
        systems_explained = {name: with_explanations(system) for name, system in config.systems.items()}
        config = config.model_copy(update={"systems": systems_explained})
    if allow_drift and not any(settings.repo for settings in config.sets.values()):
        hint = "name it in the config with `repo: DIR`"
        raise UsageError("{allow_drift} needs a repository", hint=hint, parameters=("allow_drift",))
    require_one_set(config, overrides)
    require_folder(out)

    def prepare_set(name: str) -> Experiment:
        chosen = _systems_of_set(config, name, systems)
        made = prepare(config, name, chosen, seed=seed, allow_drift=allow_drift, cache=cache, overrides=overrides)
        needed = [*overrides.measures, *(() if floors is None else floors.measures)]
        return replace(made, k=config.results_requested(config.sets[name], needed))

    extras = Extras(tuple(contrasts), today, sensitivity, allow_drift, sort, pairs, floors)
    with prepare_all(prepare_set, config.sets, lambda experiment: experiment.checks) as experiments:
        extras.check(experiments)
        if config.testsets is not None:
            return _run_sets(config, experiments, extras, out, pilot=pilot)
        with experiments[0].collected(out, pilot=pilot) as runs:
            return _finish(config, experiments[0], runs, extras, out)


def _config(path: Path, targets: Sequence[str], overrides: SetOverrides) -> Config:
    """The config of a file, or what `init` infers, whose primary measure is the first that the call gives."""
    if not targets:
        try:
            return load_config(path)
        except ConfigError as error:
            _refuse_testset(path)
            raise error from None
    from cranfield.app.init.start import config_of

    config = config_of(targets, Path.cwd())
    return config.model_copy(update={"primary": overrides.measures[0]}) if overrides.measures else config


def _refuse_testset(path: Path) -> None:
    """Name the argument that is missing where a test set stands in place of a config.

    Raises:
        UsageError: the file is a test set.
    """
    try:
        detect_format(path, "testset", None, TestSetError)
    except CranfieldError:
        return
    raise UsageError(
        "a test set without a system",
        path=str(path),
        expected="a config; or a test set and its systems",
        hint=f"cranfield run {shlex.quote(str(path))} './search {{query}}'; a system is a command, an address or a run file",
    )


def _run_sets(
    config: Config, experiments: Sequence[Experiment], extras: Extras, out: Path, *, pilot: bool
) -> CompletedRun:
    """Run each of several test sets in a folder of its name, and write the summary."""
    jobs: dict[str, CompletedRun] = {}
    with ExitStack() as stack:  # answers of every test set are kept until the summary stands
        for experiment in experiments:
            folder, progress = out / experiment.name, progress_on(sys.stderr)
            progress.note(f"test set {experiment.name}:")
            runs = stack.enter_context(experiment.collected(folder, root=out, pilot=pilot, progress=progress))
            jobs[experiment.name] = _finish(config, experiment, runs, extras, folder, root=out)
        judged = {name: job.floors for name, job in jobs.items() if job.floors is not None}
        floors = None if extras.floors is None else extras.floors.join(judged)
        summary = summary_document([_set_result(experiment, jobs[experiment.name]) for experiment in experiments])
        document = summary if floors is None else floors.added_to(summary)
        document = replace(document, payload=summary.payload)  # each test set has its own floors there
        written = (
            *(path for job in jobs.values() for path in job.written),
            *save_reports(document, out, (REPORT, MARKDOWN)),
        )
    broken = tuple(f"{name}: {limit}" for name, job in jobs.items() for limit in job.void)
    return CompletedRun(document, (), None, broken, written, out / REPORT, parts=tuple(jobs.values()), floors=floors)


def _systems_of_set(config: Config, name: str, systems: Sequence[str] | None) -> Sequence[str]:
    """The systems that are run on a test set: those of the call, of the set, the pair of the config, or all."""
    if systems is None:
        return config.sets[name].systems or config.pair or list(config.systems)
    if len(set(systems)) < len(systems):
        raise UsageError("{systems} names a system twice", got=", ".join(systems), parameters=("systems",))
    return systems


def _finish(
    config: Config, experiment: Experiment, runs: dict[str, Run], extras: Extras, out: Path, *, root: Path | None = None
) -> CompletedRun:
    """Score, compare and report the runs of one test set, in a folder of the user's or below one."""
    evaluations = tuple(experiment.evaluate(run) for run in runs.values())
    options = experiment.options
    document, comparison, many = compared(config, experiment, evaluations, extras, experiment.check_rows)
    floors = None if extras.floors is None else extras.floors.judge(evaluations)
    document = document if floors is None else floors.added_to(document)
    written = save_reports(document, out, REPORT_FILES, root=root)
    note_runs(config.folder, experiment.name, runs, out)
    if why := remember(config.folder, evaluations, experiment.primary, report=out / REPORT, declared=options):
        progress_on(sys.stderr).note(why)
    if many is not None:
        # Write the means of many systems as CSV, one line a system.
        from cranfield.evaluation.result import result_of
        from cranfield.reporting.renderers.data import save_table

        save_table(means_table(result_of(many), extras.sort), out / MEANS_FILE, root=root or out)
        written = (*written, (out / MEANS_FILE))
    result = comparison or many or evaluations[0]
    void = void_sentences(result.evidence)
    rescore = rescore_command(config, experiment, list(runs), out, allow_drift=extras.allow_drift)
    return CompletedRun(
        document,
        evaluations,
        comparison,
        void,
        written,
        out / REPORT,
        experiment.primary,
        many,
        floors=floors,
        rescore=rescore,
    )


def compared(
    config: Config,
    experiment: Experiment,
    evaluations: tuple[Evaluation, ...],
    extras: Extras,
    preflight: Preflight = (),
) -> tuple[Document, Comparison | None, ManyComparison | None]:
    """The report of the systems of one test set, and the comparison of two of them or of more.

    Args:
        config: names the baseline of three systems or more.
        experiment: what is declared.
        evaluations: of the systems, in order.
        extras: what the report shows besides.
        preflight: (system, check, found) of the checks that passed.
    """
    shown: dict[str, Any] = {"preflight": preflight, "contrasts": extras.contrasts, "today": extras.today}
    if len(evaluations) == 2:
        comparison = compare_evaluations(evaluations[0], evaluations[1], experiment.options)
        document = comparison_document(comparison, sensitivity=_sensitivity(comparison, extras), **shown)
        return document, comparison, None
    if len(evaluations) > 2:
        from cranfield.evaluation.many import compare_many

        names = {evaluation.name for evaluation in evaluations}
        baseline = config.baseline if config.baseline in names else None
        many = compare_many(evaluations, experiment.options, baseline=baseline)
        return comparison_document(many, sort=extras.sort, show_pairs=extras.pairs, **shown), None, many
    return evaluation_document(evaluations, by_query=True, **shown), None, None


def _sensitivity(comparison: Comparison, extras: Extras) -> Sensitivity | None:
    if not extras.sensitivity:
        return None
    from cranfield.app.sensitivity import sensitivity

    return sensitivity(comparison)


def _set_result(experiment: Experiment, job: CompletedRun) -> SetResult:
    """The row of one test set in the summary."""
    measure, verdict = experiment.primary, job.document.verdict
    row = partial(
        SetResult,
        experiment.name,
        experiment.testset,
        experiment.params,
        job.document,
        job.report.name,
        str(measure),
        evaluations=job.evaluations,
    )
    shown = TonedCell(verdict.name, verdict.tone) if verdict is not None else ""
    compared = job.many or job.comparison
    found = () if compared is None else (compared.unjudged, compared.verdict.unseen)
    remark = "; ".join(each.sentence for each in found if each is not None and each.sentence)
    if job.many is not None:
        return row(len(job.many.query_ids), verdict=shown, remark=remark)
    if job.comparison is not None:
        about = job.comparison.measures[measure]
        return row(about.n, (about.baseline.mean, about.candidate.mean, about.delta), shown, remark)
    summary = job.evaluations[0].summaries[measure]
    return row(
        summary.n,
        (summary.mean, None, None),
        VerdictCode.INVALID.text if job.void else "one system",
    )
