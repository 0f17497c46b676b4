"""A test set by its name, where a path would stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cranfield.app.loading import catalogue_name, load, named_testset, sets_by_name
from cranfield.base.errors import UsageError
from cranfield.cli.main import command_line

SET = "cranfield_testset: 1\nname: docs-search\nqueries:\n- {id: q1, text: one, judgments: {a: 1}}\n"
CONFIG = """\
testsets:
  main: {path: sets/main.yaml}
systems:
  a: {run: a.run}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets/main.yaml").write_text(SET.replace("docs-search", "m"))
    (tmp_path / "docs.yaml").write_text(SET)
    (tmp_path / "web.qrels").write_text("q1 0 a 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 a 1 1.0 a\n")
    (tmp_path / "notes.txt").write_text("no test set\n")
    (tmp_path / "cranfield.yaml").write_text(CONFIG)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_names_are_those_of_the_config_of_sets_and_of_files(folder):
    assert {name: [str(path) for path in paths] for name, paths in sets_by_name(Path()).items()} == {
        "main": ["sets/main.yaml"],
        "docs": ["docs.yaml"],
        "docs-search": ["docs.yaml"],
        "web": ["web.qrels"],
    }


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("ir_datasets:beir/scifact/test", "ir_datasets:beir/scifact/test"),
        ("{folder}/ir_datasets:beir/scifact/test", "ir_datasets:beir/scifact/test"),
        ("{folder}/hf:mteb/scifact:dev", "hf:mteb/scifact:dev"),
        ("{folder}/hf:inside:dev", "hf:{folder}/inside:dev"),
        ("hf:inside", "hf:inside"),
        ("{folder}/docs.yaml", "{folder}/docs.yaml"),
    ],
)
def test_a_name_of_a_catalogue_is_none_of_the_folder_that_a_config_joins_it_to(tmp_path, given, name):
    (tmp_path / "inside").mkdir()
    assert str(catalogue_name(Path(given.format(folder=tmp_path)))) == name.format(folder=tmp_path)


@pytest.mark.parametrize("given", ["docs.yaml", "-", "other.yaml", "sets/none", "ir_datasets:cranfield"])
def test_a_path_stays_as_it_is(folder, given):
    assert named_testset(Path(given)) == Path(given)


def test_a_set_is_found_from_below_the_folder_of_the_config(folder, monkeypatch):
    monkeypatch.chdir(folder / "below")
    assert load("docs-search").name == "docs-search"
    assert load("main").name == "m"


def test_an_unknown_name_lists_the_names(folder):
    with pytest.raises(UsageError) as caught:
        load("doc-search")
    (problem,) = caught.value.problems
    assert problem.message == "no test set 'doc-search'"
    assert problem.expected == "a path, or one of docs, docs-search, main, web"
    assert "docs-search" in (problem.hint or "")


def test_a_name_of_two_files_is_refused(folder):
    (folder / "again.yaml").write_text(SET)
    with pytest.raises(UsageError, match="is used by several test sets"):
        load("docs-search")


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "docs-search", "a.run", "-m", "RR", "--format", "csv"),
        ("testset", "show", "docs-search"),
        ("testset", "stats", "main"),
        ("testset", "validate", "web"),
    ],
)
def test_commands_take_a_name(folder, command):
    done = CliRunner().invoke(
        command_line(*command[:2]) if command[0] == "testset" else command_line(command[0]), list(command)
    )
    assert done.exit_code == 0, done.stderr


def test_a_command_says_which_names_there_are(folder):
    done = CliRunner().invoke(command_line("evaluate"), ["evaluate", "nothing", "a.run"])
    assert done.exit_code == 2
    assert "error: no test set 'nothing'; expected a path, or one of docs, docs-search, main, web." in done.stderr
