"""The options of a test set are those of one table, and mean the same in every command and in the config."""

from __future__ import annotations

import inspect
import json
import subprocess
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from tests.command import call

from cranfield.app.commands.evaluate import compare_command, evaluate_command, power_command
from cranfield.app.commands.explain import explain_command
from cranfield.app.commands.run import components_command, grid_command, run_command
from cranfield.cli.build import command_of, parameter_of
from cranfield.config.declared import SetOptions
from cranfield.evaluation.options.blocks import SET_OPTIONS, TestSetOptions
from cranfield.evaluation.options.declaration import declared
from cranfield.gate.commands.baseline import accept_command
from cranfield.gate.commands.gate import gate_command
from cranfield.testsets.commands.testset import overfit_command, show_command, stats_command, validate_command

SET = """cranfield_testset: 1
name: own
queries:
- {id: q1, text: one, judgments: {a: 1}}
- {id: q2, text: two, judgments: {b: 1}}
- {id: q3, text: three, judgments: {c: 1}}
- {id: q4, text: four, judgments: {d: 1}}
"""
QRELS = "q1 0 a 1\nq2 0 x 1\n"
"""q2 has another answer here; q3 and q4 are not judged."""
RUN = "q1 Q0 a 1 1.0 t\nq2 Q0 b 1 2.0 t\nq2 Q0 x 2 1.0 t\nq3 Q0 c 1 1.0 t\nq4 Q0 d 1 1.0 t\n"
CONFIG = """testset: set.yaml
{options}
measures: [RR, P@1]
primary: RR
systems:
  mine: {{run: a.run}}
gate: {{rules: [floor: {{measure: RR, at_least: 0.1}}]}}
"""
FAILING = """testset: set.yaml
measures: [RR, P@1]
primary: RR
limits: {max_failed_share: 1}
systems:
  mine: {command: ["{python}", system.py, "{query}"], extract: {regex: "[a-z]+"}, empty: "^$"}
gate: {rules: [floor: {measure: RR, at_least: 0.1}]}
"""
OPTIONS = "options: {qrels: new.qrels%s, depth: 1, strata: 'half=first:1-2,last:3-4', line_base: 0}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "set.yaml").write_text(SET)
    (tmp_path / "new.qrels").write_text(QRELS)
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "cranfield.yaml").write_text(CONFIG.format(options=""))
    return tmp_path


def cranfield(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call(*arguments, folder=folder)


def test_every_field_of_a_test_set_is_an_option() -> None:
    assert set(declared(TestSetOptions)) == {field.name for field in fields(TestSetOptions)}
    assert set(SET_OPTIONS) == set(SetOptions.model_fields)


@pytest.mark.parametrize(
    "command", [run_command, gate_command, accept_command, grid_command, components_command, power_command]
)
def test_every_command_with_a_config_takes_the_options(command: Callable[..., None]) -> None:
    assert set(map(parameter_of, SET_OPTIONS.values())) <= set(inspect.signature(command_of(command)).parameters)


@pytest.mark.parametrize(
    "command",
    [
        evaluate_command,
        compare_command,
        explain_command,
        show_command,
        validate_command,
        stats_command,
        overfit_command,
    ],
)
def test_every_command_with_a_test_set_takes_the_options(command: Callable[..., None]) -> None:
    assert set(map(parameter_of, declared(TestSetOptions).values())) <= set(
        inspect.signature(command_of(command)).parameters
    )


def test_reports_on_a_test_set_look_at_the_other_judgments(folder: Path) -> None:
    found = cranfield(folder, "testset", "validate", "set.yaml", "--qrels", "new.qrels")
    assert found.returncode == 2
    assert "never judged, and it is not declared negative" in found.stdout
    assert (
        cranfield(folder, "testset", "validate", "set.yaml", "--qrels", "new.qrels", "--qrels-fallback").returncode == 0
    )


def test_explain_looks_at_the_first_results(folder: Path) -> None:
    flags = ["explain", "set.yaml", "a.run", "trec", "trec9", "-m", "RR", "--qrels", "new.qrels", "--format", "json"]
    whole, first = (json.loads(cranfield(folder, *flags, *depth).stdout) for depth in ([], ["--depth", "1"]))
    means = [
        found["measures"][0]["a"] if isinstance(found["measures"], list) else found["measures"]["RR"]["a"]
        for found in (whole, first)
    ]
    assert means == [3 / 4, 1 / 2]


@pytest.mark.parametrize(
    ("fallback", "mean", "n"),
    # at depth 1 q1 is found and q2 is not (x is at rank 2); by the set's own truth q3 and q4 are found
    [(False, 1 / 2, 2), (True, 3 / 4, 4)],
    ids=["without", "fallback"],
)
@pytest.mark.parametrize("place", ["evaluate", "run", "config", "gate", "gate config"])
def test_other_judgments_give_the_same_figures_everywhere(
    folder: Path, place: str, fallback: bool, mean: float, n: int
) -> None:
    flags = ["--qrels", "new.qrels", "--depth", "1", "--strata", "half=first:1-2,last:3-4", "--line-base", "0"]
    flags += ["--qrels-fallback"] if fallback else []
    if "config" in place:
        options = OPTIONS % (", qrels_fallback: true" if fallback else "")
        (folder / "cranfield.yaml").write_text(CONFIG.format(options=options))
        flags = []
    command = place.removesuffix(" config").replace("config", "run")
    arguments = {
        "evaluate": ["evaluate", "set.yaml", "a.run", "-m", "RR"],
        "run": ["run", "cranfield.yaml"],
        "gate": ["gate", "cranfield.yaml"],
    }[command]
    done = cranfield(folder, *arguments, *flags, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if command == "gate":
        (gate,) = found["gates"]
        assert [(one["measure"], one["current"], one["n"]) for one in gate["measures"]] == [
            ("RR", mean, n),
            ("P@1", mean, n),
        ]
        assert gate["testset"]["other_judgments"]["n_unjudged"] == (0 if fallback else 2)
        return
    (system,) = found["systems"]
    assert (system["measures"]["RR"]["mean"], system["measures"]["RR"]["n"]) == (mean, n)
    assert [(part["value"], part["measures"]["RR"]["n"]) for part in system["by_stratum"]] == [
        ("first", 2),
        ("last", 2 * fallback),
    ]
    qrels = found["testset"]["other_judgments"]
    assert {key: value for key, value in qrels.items() if key != "digest"} == {
        "name": "new", "fallback": fallback, "n_judged": 2, "n_own": 2 * fallback, "n_unjudged": 2 * (not fallback),
    }  # fmt: skip
    sentence = (
        "not judged in new, scored by the judgments of the test set: 2 of 4 queries"
        if fallback
        else "never judged: 2 of 4 queries (excluded from the means): q3, q4"
    )
    assert sentence in [each["sentence"] for each in system["warnings"]]


def test_the_digest_tells_other_judgments_and_the_fallback_apart(folder: Path) -> None:
    digests = []
    for flags in ([], ["--qrels", "new.qrels"], ["--qrels", "new.qrels", "--qrels-fallback"]):
        found = json.loads(cranfield(folder, "evaluate", "set.yaml", "a.run", *flags, "--format", "json").stdout)
        digests.append(found["testset"]["digest"])
    assert len(set(digests)) == 3


def test_the_command_that_scores_again_gives_the_same_figures(folder: Path) -> None:
    done = cranfield(
        folder, "run", "--qrels", "new.qrels", "--depth", "1", "--strata", "half=first:1-2,last:3-4", "--full"
    )
    command = done.stderr.strip().splitlines()[-1].strip()
    assert "--qrels new.qrels" in command
    assert "--depth 1" in command
    again = subprocess.run(
        f"{command} --format json", shell=True, cwd=folder, capture_output=True, text=True, check=True
    )
    (system,) = json.loads(again.stdout)["systems"]
    assert (system["measures"]["RR"]["mean"], system["measures"]["RR"]["n"]) == (1 / 2, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "set.yaml", "a.run", "--qrels-fallback"], "--qrels-fallback needs other judgments"),
        (["run", "--qrels-fallback"], "--qrels-fallback needs other judgments"),
        (["run", "--qrels", "none.qrels"], "none.qrels"),
        (["gate", "--depth", "0"], "--depth"),
        (["run", "--strata", "half=a:1-9"], "the rows 1-9"),
    ],
)
def test_a_mistake_in_the_options_is_a_message(folder: Path, arguments: list[str], message: str) -> None:
    done = cranfield(folder, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_judgments_for_one_of_several_sets_are_given_in_the_config(folder: Path) -> None:
    several = CONFIG.replace(
        "testset: set.yaml",
        "testsets:\n  a: {{path: set.yaml, options: {{qrels: new.qrels}}}}\n  b: {{path: set.yaml}}",
    )
    (folder / "cranfield.yaml").write_text(several.format(options="options: {depth: 1}"))
    refused = cranfield(folder, "run", "--qrels", "new.qrels")
    assert refused.returncode == 2
    assert "--qrels applies to one test set, but the config has 2" in refused.stderr
    assert cranfield(folder, "run").returncode == 0
    ns = [
        json.loads((folder / f"cranfield-out/{name}/results.json").read_text())["systems"][0]["measures"]["RR"]["n"]
        for name in "ab"
    ]
    assert ns == [2, 4]


@pytest.mark.parametrize("convention", ["trec", "octocode", "searchtweak"])
def test_run_and_gate_count_failures_alike_and_so_does_the_command_that_scores_again(
    folder: Path, convention: str
) -> None:
    (folder / "system.py").write_text(
        "import sys\nif sys.argv[1] == 'two': sys.exit(3)\nprint({'one': 'a', 'four': 'd'}.get(sys.argv[1], ''))\n"
    )
    (folder / "cranfield.yaml").write_text(FAILING + f"convention: {convention}\n")
    run = cranfield(folder, "run", "--format", "json")
    assert run.returncode == 0, run.stderr
    (system_found,) = json.loads(run.stdout)["systems"]
    (gate,) = json.loads(cranfield(folder, "gate", "--format", "json").stdout)["gates"]
    command = run.stderr.strip().splitlines()[-1].strip()
    again = subprocess.run(
        f"{command} --format json", shell=True, cwd=folder, capture_output=True, text=True, check=False
    )
    (scored,) = json.loads(again.stdout)["systems"]
    # q1 and q4 are found; q2 failed and q3 has no result: 0 and 0
    assert [(found["measures"]["RR"]["mean"], found["measures"]["RR"]["n"]) for found in (system_found, scored)] == [
        (0.5, 4)
    ] * 2
    assert (gate["measures"][0]["current"], gate["measures"][0]["n"]) == (0.5, 4)
    left_out = {"trec": 0, "octocode": 1, "searchtweak": 2}[convention]
    sentence = f"the convention {convention} leaves out failed queries or empty lists; {left_out} of 4 queries counted as 0 here"
    assert [
        sentence in notes
        for notes in (
            [each["sentence"] for each in system_found["warnings"]],
            gate["notes"],
            [each["sentence"] for each in scored["warnings"]],
        )
    ] == [left_out > 0] * 3
