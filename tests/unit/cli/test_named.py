"""Names of systems where paths of runs are taken; the test set and the settings that come from the config with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cranfield.app.saved_runs import saved_run
from cranfield.cli.main import command_line, run_command_line

SET = {
    "cranfield_testset": 1,
    "name": "cf",
    "queries": [
        {"id": "q1", "text": "alpha", "judgments": {"a": 1, "b": 2}},
        {"id": "q2", "text": "gamma", "judgments": {"c": 1}},
        {"id": "q3", "text": "delta", "judgments": {"d": 1}},
    ],
}


def system(*ids):
    return {"command": ["sh", "-c", f"echo {' '.join(ids)}", "sh", "{query}"], "extract": {"regex": r"\S+"}}


CONFIG = {
    "testset": "cf.yaml",
    "k": 5,
    "measures": ["nDCG@2", "R@2"],
    "primary": "R@2",
    "margin": 0.3,
    "draws": 500,
    "options": {"depth": 2},
    "systems": {"old": system("a", "x", "c"), "new": system("b", "a", "d")},
}


def write(folder: Path, **changes):
    (folder / "cf.yaml").write_text(yaml.safe_dump(SET))
    (folder / "cranfield.yaml").write_text(yaml.safe_dump(CONFIG | changes, sort_keys=False))


@pytest.fixture
def project(tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments, code=0):
    runner = CliRunner()
    words = [str(word) for word in arguments]
    result = runner.invoke(command_line(words[0]), words)
    assert result.exit_code == code, result.stderr
    return result


def fails(capsys, *arguments):
    """The errors of a call; those that come before a command runs are reported by the program itself."""
    assert run_command_line([str(word) for word in arguments]) == 2
    return capsys.readouterr().err


RUNS = "cranfield-out/runs"


def test_two_names_give_what_the_paths_and_the_settings_of_the_config_give(project):
    call("run")
    named = call("compare", "old", "new", "--format", "json")
    settings = ("-m", "nDCG@2", "-m", "R@2", "--primary", "R@2", "--margin", "0.3", "--draws", "500", "--depth", "2")
    paths = call("compare", "cf.yaml", f"{RUNS}/old.jsonl", f"{RUNS}/new.jsonl", *settings, "--format", "json")
    assert named.stdout == paths.stdout
    ours, results = json.loads(named.stdout), json.loads(Path("cranfield-out/results.json").read_text())
    assert ours["verdict"] == results["verdict"]
    assert "note: from cranfield.yaml: cf.yaml -m nDCG@2" in named.stderr
    assert f"old is {RUNS}/old.jsonl" in named.stderr


def test_what_a_call_gives_itself_takes_the_place_of_the_config(project):
    call("run")
    found = json.loads(call("compare", "old", "new", "-m", "P@1", "--primary", "P@1", "--format", "json").stdout)
    assert found["primary"] == "P@1"
    assert "R@2" not in json.dumps(found)


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "old"),
        ("evaluate", "old", "new"),
        ("compare", "new", "old"),
        ("power", "old", "new"),
        ("explain", "old", "trec", "trec9"),
        ("holes", "old", "new"),
        ("pool", "old", "new"),
        ("pool", "build", "A=old", "new"),
        ("pool", "check", "old", "new"),
        ("convert", "old", "old.run"),
        ("evaluate", "cf.yaml", "old"),
        ("evaluate", "cf", "old"),
        ("compare", "old", f"{RUNS}/new.jsonl"),
    ],
)
def test_every_command_that_takes_runs_takes_names(project, words):
    call("run")
    call(*words)


def test_a_name_finds_the_run_where_out_put_it_and_from_a_folder_below(project, monkeypatch):
    call("run", "--out", "elsewhere/first")
    assert saved_run(project, "", "old") == Path("elsewhere/first/runs/old.jsonl")
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    assert "elsewhere/first/runs/old.jsonl" in call("evaluate", "old").stderr


def test_the_last_run_counts_for_each_system_on_its_own(project):
    call("run", "--out", "first")
    call("run", "--out", "second", "--system", "new")
    assert saved_run(project, "", "old") == Path("first/runs/old.jsonl")
    assert saved_run(project, "", "new") == Path("second/runs/new.jsonl")
    Path("second/runs/new.jsonl").unlink()
    assert saved_run(project, "", "new") is None  # an earlier run is not the last one


def test_another_config_is_named_by_an_option(project, monkeypatch, tmp_path_factory):
    call("run")
    monkeypatch.chdir(tmp_path_factory.mktemp("outside"))
    call("compare", "old", "new", "--config", project / "cranfield.yaml")


def test_a_path_that_exists_wins(project):
    call("run")
    Path("old").write_text("q1 Q0 b 1 1.0 filed\n")
    found = call("evaluate", "cf.yaml", "old", "--format", "json")
    assert json.loads(found.stdout)["convention"] == "trec"
    assert "note: old is" not in found.stderr


def test_a_name_without_a_saved_run_names_the_command_that_saves_one(project):
    found = call("evaluate", "cf.yaml", "old", code=2)
    assert "error: cranfield.yaml: system old has no saved run" in found.stderr
    assert "`cranfield run`" in found.stderr


def test_an_unknown_name_lists_the_systems(project):
    call("run")
    found = call("compare", "cf.yaml", "old", "nwe", code=2)
    assert "no run 'nwe'; expected a path, or a system of cranfield.yaml: old, new" in found.stderr
    assert "did you mean new?" in found.stderr


@pytest.mark.parametrize(
    "words", [("compare", "cf.yaml", "olld.run", "neww"), ("evaluate", "cf.yaml", "olld.run", "neww")]
)
def test_where_the_config_is_wrong_a_run_that_is_no_file_is_named_first(project, words):
    write(project, measuress=["RR"])
    error = call(*words, code=2).stderr
    lines = [line for line in error.splitlines() if line.startswith("error: ")]
    why = "no such file; systems cannot be looked up by name, because cranfield.yaml is invalid."
    assert lines[:2] == [f"error: olld.run: {why}", f"error: neww: {why}"]
    assert "unknown key 'measuress'" in lines[2]


def test_without_a_project_a_name_is_a_path(tmp_path, monkeypatch):
    (tmp_path / "cf.yaml").write_text(yaml.safe_dump(SET))
    monkeypatch.chdir(tmp_path)
    assert "old: no such file" in call("evaluate", "cf.yaml", "old", code=2).stderr


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"systems": {**CONFIG["systems"], "new": system("b", "z")}}, "the settings of new"),
        ({"k": 4}, "k"),
        ({"options": {"line_base": 1}}, ""),  # the answers to the questions are the same
    ],
)
def test_a_run_of_another_config_is_called_stale(project, changes, said):
    call("run")
    write(project, **changes)
    found = call("compare", "old", "new").stderr
    assert ("stale" in found) == bool(said)
    assert said in found


@pytest.mark.parametrize("form", ["text", "brief", "markdown"])
def test_a_stale_run_is_stamped_on_the_report(project, form):
    call("run")
    assert "STALE" not in call("compare", "old", "new", "--format", form).stdout
    write(project, k=4)
    found = call("compare", "old", "new", "--format", form, "--html", "report.html").stdout
    stamp = "STALE: saved before the config or test set changed: old, new"
    assert stamp in found
    assert stamp in Path("report.html").read_text()
    assert "STALE" not in call("compare", "cf.yaml", f"{RUNS}/old.jsonl", f"{RUNS}/new.jsonl").stdout


def test_a_path_that_hides_a_system_is_named(project, capsys):
    call("run")
    Path("old").mkdir()
    assert "note: old is read as a path, although cranfield.yaml has a system of that name" in fails(
        capsys, "compare", "old", "new"
    )


def test_a_run_of_another_test_set_is_called_stale(project):
    call("run")
    (project / "cf.yaml").write_text(yaml.safe_dump(SET | {"queries": SET["queries"][:2]}))
    found = call("evaluate", "old").stderr
    assert "warning: the saved run of old is stale: the test set changed since; update it with `cranfield run`" in found


def test_of_several_test_sets_one_is_named_first(project, capsys):
    write(project, testsets={"one": {"path": "cf.yaml"}, "two": {"path": "two.yaml"}})
    config = yaml.safe_load(Path("cranfield.yaml").read_text())
    del config["testset"]
    Path("cranfield.yaml").write_text(yaml.safe_dump(config))
    Path("two.yaml").write_text(yaml.safe_dump(SET | {"name": "second"}))
    call("run")
    assert "expected a test set first: one of one, two" in fails(capsys, "compare", "old", "new")
    assert "cranfield-out/two/runs/old.jsonl" in call("compare", "two", "old", "new").stderr
    assert "cranfield-out/one/runs/old.jsonl" in call("compare", "cf.yaml", "old", "new").stderr
    assert "has a saved run on several test sets" in call("convert", "old", "old.run", code=2).stderr


def test_a_test_set_wins_over_a_system_of_its_name(project):
    config = CONFIG | {"systems": {"cf": system("a"), "new": system("b")}}
    Path("cranfield.yaml").write_text(yaml.safe_dump(config))
    call("run")
    found = call("evaluate", "cf", "new")
    assert "note: new is" in found.stderr
    assert "cf is" not in found.stderr


def test_every_command_takes_the_config_by_one_option(project, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("outside"))
    config = project / "cranfield.yaml"
    call("run", "--config", config, "--out", project / "out")
    call("history", "--config", config)
    call("system", "list", "--config", config)
    call("compare", "old", "new", "--config", config)
    found = call("run", "other.yaml", "--config", config, code=2).stderr
    assert "the config is given twice; expected CONFIG or --config, got other.yaml and" in found
