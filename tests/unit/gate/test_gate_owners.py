"""With a baseline ref, what could loosen a gate is the ref's: each key of the config, the test set, options of the call."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from cranfield.app.drift import rehash
from cranfield.app.loading import NO_OVERRIDES, SetOverrides, load
from cranfield.app.run import run_job
from cranfield.base.errors import CranfieldError
from cranfield.config.load import load_config
from cranfield.config.models import Config
from cranfield.config.owners import OWNERS, Key, OfChange, keys_of, merged, owner_of
from cranfield.config.presets import PRESETS
from cranfield.config.strict import Strict
from cranfield.config.systems import CommandConfig, HttpConfig, PythonConfig
from cranfield.evaluation.options.blocks import TestSetOptions
from cranfield.evaluation.options.declaration import declared
from cranfield.formats.testsets.native import write_testset_yaml
from cranfield.gate.use_cases.baseline import accept
from cranfield.gate.use_cases.gate import AnswerSource, GateJob, run_gate
from cranfield.gate.use_cases.plan import GatePlan, planned
from cranfield.model.testset import Meta

KEYS = list(keys_of(Config))


def test_every_key_of_the_config_has_an_owner() -> None:
    """A key that is new needs a decision; one without a marker in its annotation is listed here."""
    assert [".".join(key.place) for key in KEYS if key.owner is None] == []
    assert {key.owner for key in KEYS} == {*OWNERS, "each"}
    assert len(KEYS) > 100


def test_the_walk_finds_a_key_without_an_owner() -> None:
    class Inner(Strict):
        old: OfChange[int] = 0
        new: int = 0

    class Outer(Strict):
        block: OfChange[dict[str, list[Inner] | None]]

    assert [key for key in keys_of(Outer) if key.owner is None] == [Key(("block", "NAME", "new"), None)]


def test_what_is_inside_of_a_block_of_the_change_is_the_change_s() -> None:
    """Such a block is taken as a whole, so that no key inside can have another owner."""
    owners = {key.place: key.owner for key in KEYS}
    inside = [key for key in KEYS if owners.get(key.place[:-1]) == "change"]
    assert inside
    assert {key.owner for key in inside} == {"change"}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_sets_nothing_that_the_ref_decides(name: str) -> None:
    """Its settings are the change's as a whole: they may only become keys that are the change's too."""
    preset = PRESETS[name]
    form = preset.fill(preset.settings.model_validate(preset.example))
    model = HttpConfig if "http" in form else PythonConfig
    of_model = {field.alias or key: owner_of(field) for key, field in model.model_fields.items()}
    assert {of_model[key] for key in form if key != "depends"} == {"change"}  # its files are added to those of the ref


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("ref", "k limits evidence convention alpha draws test margin verdict strata repo options collect measures primary adjust gate"),
        ("ref", "testsets.NAME.k testsets.NAME.repo testsets.NAME.params testsets.NAME.options"),
        ("ref", "systems.NAME.timeout_s systems.NAME.retries systems.NAME.backoff_s systems.NAME.empty systems.NAME.preflight systems.NAME.depends"),
        ("ref", "systems.NAME.concurrency systems.NAME.rate_per_s"),
        ("digest", "testset testsets.NAME.path"),
        ("change", "systems.NAME.command systems.NAME.params systems.NAME.extract systems.NAME.order systems.NAME.run systems.NAME.with"),
        ("none", "grid diff confusion"),
    ],
)  # fmt: skip
def test_decisions(key: str, place: str) -> None:
    owners = {".".join(found.place): found.owner for found in KEYS}
    assert {name: owners[name] for name in place.split()} == dict.fromkeys(place.split(), key)


def test_a_part_is_merged_as_if_it_had_been_written_so() -> None:
    """Spelled-out defaults are another configuration: what the ref does not set is not set."""
    of_change = {"command": ["new", "{query}"], "extract": {"regex": "d"}, "timeout_s": 99, "empty": "none", "cwd": "x"}
    of_ref = {"command": ["old", "{query}"], "extract": {"regex": "e"}, "retries": 2, "timeout_s": 30}
    change, ref = CommandConfig.model_validate(of_change), CommandConfig.model_validate(of_ref)
    found = merged(change, ref)
    assert found.model_dump(exclude_unset=True) == {
        "command": ["new", "{query}"],
        "extract": {"regex": "d"},
        "cwd": "x",
        "timeout_s": 30,
        "retries": 2,
    }
    assert change.timeout_s == 99
    alone = merged(change, None)  # a system that the ref does not have: defaults, not what the change says
    assert "timeout_s" not in alone.model_fields_set
    assert (alone.timeout_s, alone.empty) == (30.0, None)


def git(folder: Path, *arguments: str) -> None:
    command = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
    subprocess.run(command, check=True, capture_output=True)


QUERIES = "abcd"
CONFIG = """\
testset: queries.yaml
measures: [RR]
gate:
  rules:
    - floor: {measure: RR, at_least: 0.80}
    - failures: {at_most: 0}
systems:
  new: {command: [sh, answer.sh, '{query}'], extract: {regex: 'doc-\\S+'}}
"""


def write_testset(folder: Path, queries: str) -> None:
    lines = ["cranfield_testset: 1", "name: letters", "queries:"]
    lines += [f"  - {{id: {query}, text: {query}, judgments: {{doc-{query}: 1}}}}" for query in queries]
    (folder / "queries.yaml").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gate")
    write_testset(folder, QUERIES)
    (folder / "answer.sh").write_text('echo "$1" >> asked.txt; echo "doc-$1"\n')
    (folder / "cranfield.yaml").write_text(CONFIG)
    accept(folder / "cranfield.yaml", out=folder / "out", accepted="2026-01-31")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "cranfield.yaml", "queries.yaml", "answer.sh", "cranfield-baseline.json")
    git(folder, "commit", "-qm", "a gate")
    return folder


@pytest.fixture
def config(committed: Path) -> Path:
    git(committed, "checkout", "-q", "main", "--", ".")
    (committed / "asked.txt").unlink(missing_ok=True)
    return committed / "cranfield.yaml"


def gated(config: Path, source: AnswerSource | None = None, overrides: SetOverrides = NO_OVERRIDES) -> GateJob:
    return run_gate(config, out=config.parent / "out", source=source, baseline_ref="main", overrides=overrides)


def plan_of(config: Path, text: str) -> GatePlan:
    config.write_text(text)
    return planned(config, "main")


LOOSE: tuple[tuple[str, str, Callable[[Config], Any]], ...] = (
    ("systems.new.timeout_s", "{timeout_s: 3600, ", lambda config: config.systems["new"].timeout_s),
    ("systems.new.retries", "{retries: 20, ", lambda config: config.systems["new"].retries),
    ("systems.new.backoff_s", "{backoff_s: 60, ", lambda config: config.systems["new"].backoff_s),
    ("systems.new.concurrency", "{concurrency: 64, ", lambda config: config.systems["new"].concurrency),
    ("systems.new.rate_per_s", "{rate_per_s: 0.1, ", lambda config: config.systems["new"].rate_per_s),
    ("systems.new.empty", "{empty: Traceback, ", lambda config: config.systems["new"].empty),
    ("systems.new.preflight", "{preflight: [{probe: a}], ", lambda config: config.systems["new"].preflight),
    ("draws", "draws: 2\n", lambda config: config.draws),
    ("margin", "margin: 1\n", lambda config: config.margin),
    ("repo", "repo: .\n", lambda config: config.repo),
    ("k", "k: 1000\n", lambda config: config.k),
    ("options", "options: {depth: 1}\n", lambda config: config.options),
    ("evidence", "evidence: {same-list: off}\n", lambda config: config.evidence),
    ("collect", "collect: {repeats: 3}\n", lambda config: config.collect),
)


@pytest.mark.parametrize(("key", "text", "value"), LOOSE, ids=[key for key, _, _ in LOOSE])
def test_a_key_that_the_ref_decides_is_taken_from_there_and_named(
    config: Path, key: str, text: str, value: Callable[[Config], Any]
) -> None:
    expected = value(load_config(config))
    written = CONFIG.replace("new: {", f"new: {text}") if text.startswith("{") else text + CONFIG
    plan = plan_of(config, written.replace("new: {{", "new: {"))
    assert value(plan.config) == expected
    assert value(load_config(config)) != expected
    assert plan.notes == (f"different from main, whose values are used: {key}",)


def test_a_system_that_is_the_same_keeps_its_digest(config: Path) -> None:
    from cranfield.config.systems import config_digest

    ruled, own = planned(config, "main").config.systems["new"], load_config(config).systems["new"]
    assert config_digest(ruled) == config_digest(own)


def test_a_part_that_the_ref_does_not_have_gets_the_limits_of_what_it_is_a_part_of(config: Path) -> None:
    git(config.parent, "checkout", "-qB", "strict", "main")
    config.write_text(CONFIG.replace("new: {", "new: {timeout_s: 2, preflight: [{probe: a}], empty: '^$', "))
    git(config.parent, "commit", "-qam", "limits")
    part = "{timeout_s: 3600, command: [sh, answer.sh, '{query}'], extract: {regex: 'doc-\\S+'}}"
    head = CONFIG.partition("  new:")[0].replace("gate:\n", "gate:\n  system: new\n")
    config.write_text(f"{head}  a: {part}\n  b: {part}\n  new: {{fusion: {{of: [a, b]}}}}\n")
    systems = planned(config, "strict").config.systems
    part_a = systems["a"]
    assert isinstance(part_a, CommandConfig)
    assert (part_a.timeout_s, part_a.preflight, part_a.empty) == (2, [], None)
    assert len(systems["new"].preflight) == 1
    git(config.parent, "checkout", "-qf", "main")


@pytest.mark.parametrize("name", [row.name for row in fields(TestSetOptions)] + ["depth"])
def test_options_of_the_call_that_change_what_counts_are_refused(config: Path, name: str) -> None:
    values = {"strata": ("x",), "databases": {"x": "y"}, "part": "all", "line_base": 1, "min_overlap": 1}
    if name == "depth":
        overrides = SetOverrides(depth=3)
    else:
        overrides = SetOverrides(
            replace(
                TestSetOptions(),
                **{name: values.get(name, True if declared(TestSetOptions)[name].bare is bool else Path("x"))},
            )
        )
    if name == "databases":  # a baseline holds a digest of what they answered
        assert gated(config, overrides=overrides).status == "passed"
        return
    with pytest.raises(CranfieldError, match="the ref defines the test set") as caught:
        gated(config, overrides=overrides)
    assert caught.value.exit_code == 2
    assert name in caught.value.problems[0].parameters


def test_only_databases_are_taken_from_the_call() -> None:
    assert {row.name for row in fields(SetOverrides)} == {"options", "depth", "measures", "keep_going"}
    assert [name for name, each in declared(TestSetOptions).items() if each.option.owner != "ref"] == ["databases"]


@pytest.mark.parametrize("finished", [False, True])
def test_easy_queries_that_a_change_adds_lift_no_mean(config: Path, *, finished: bool) -> None:
    """Three of four are wrong: RR .25; with sixteen right ones it would be .85."""
    folder = config.parent
    (folder / "answer.sh").write_text(
        'echo "$1" >> asked.txt; case $1 in [abc]) echo doc-y doc-a doc-b doc-c;; *) echo "doc-$1";; esac\n'
    )
    write_testset(folder, "abcdefghijklmnopqrst")
    if finished:
        run_job(config, out=folder / "done")
    result = gated(config, AnswerSource(folder=folder / "done") if finished else None).results[""]
    assert result.rules[0].status == "failed"
    assert result.evaluation.n_queries == 4
    assert any(
        note.startswith("16 queries added since the baseline was accepted, not part of this gate: e, f")
        for note in result.notes
    )
    assert ("e" in (folder / "asked.txt").read_text().split()) is finished


def test_what_differs_is_printed_also_where_the_gate_ends_before_its_report(
    config: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config.write_text("k: 3\n" + CONFIG)
    write_testset(config.parent, "abc")
    with pytest.raises(CranfieldError):
        gated(config)
    assert "different from main, whose values are used: k" in capfd.readouterr().err


def test_a_run_with_other_settings_than_the_ref_says_what_to_do(config: Path) -> None:
    config.write_text(CONFIG.replace("new: {", "new: {timeout_s: 9, "))
    run_job(config, out=config.parent / "slower")
    with pytest.raises(CranfieldError, match="the run has a different config of the system") as caught:
        gated(config, AnswerSource(folder=config.parent / "slower"))
    assert "set the keys that the ref decides to the values of the ref" in (caught.value.problems[0].hint or "")


def test_resume_is_refused(config: Path) -> None:
    with pytest.raises(CranfieldError, match="resume is not allowed: with a baseline ref"):
        gated(config, AnswerSource(resume=config.parent / "out"))


@pytest.fixture
def code(config: Path) -> Iterator[Path]:
    """A test set of places in code, tied to its repository, on a branch; the code has been edited since."""
    folder = config.parent
    git(folder, "checkout", "-qB", "code", "main")
    (folder / "a.py").write_text("def one():\n    return 1\n")
    git(folder, "add", "a.py")
    (folder / "queries.yaml").write_text(
        "cranfield_testset: 1\nname: code\nqueries:\n  - {id: a, text: a, entities: ['a.py::one']}\n"
    )
    write_testset_yaml(rehash(load(folder / "queries.yaml"), folder, allow_dirty=True), folder / "queries.yaml")
    config.write_text("repo: .\n" + CONFIG.replace("doc-", "a.py::"))
    (folder / "answer.sh").write_text("echo a.py::one\n")
    accept(config, out=folder / "out", accepted="2026-01-31")
    git(folder, "add", "cranfield.yaml", "queries.yaml", "a.py", "answer.sh", "cranfield-baseline.json")
    git(folder, "commit", "-qm", "code")
    (folder / "a.py").write_text("def one():\n    return 2\n")
    yield config
    git(folder, "checkout", "-qf", "main")


def refused(config: Path) -> str:
    with pytest.raises(CranfieldError) as caught:
        run_gate(config, out=config.parent / "out", baseline_ref="code")
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_change_that_deletes_the_repository_is_checked_for_drift(code: Path) -> None:
    assert "1 of 1 expected place changed" in refused(code)
    code.write_text(code.read_text().replace("repo: .\n", ""))
    assert "1 of 1 expected place changed" in refused(code)


def test_a_change_that_deletes_what_drift_is_found_by_is_refused(code: Path) -> None:
    path = code.parent / "queries.yaml"
    write_testset_yaml(replace(load(path), meta=Meta()), path)
    assert "1 place checked for drift in code, but not here: a.py::one" in refused(code)


def test_a_change_that_ties_the_test_set_anew_is_judged(code: Path) -> None:
    folder = code.parent
    write_testset_yaml(
        rehash(load(folder / "queries.yaml"), folder, allow_drift=True, allow_dirty=True), folder / "queries.yaml"
    )
    assert run_gate(code, out=folder / "out", baseline_ref="code").status == "passed"
