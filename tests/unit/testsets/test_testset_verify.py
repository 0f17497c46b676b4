"""`cranfield testset verify` and `rehash`, and the file beside a set whose format has no room."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from cranfield.base.errors import TestSetError
from cranfield.cli.build import command_of
from cranfield.formats.io.files import meta_path
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.storage import read_meta, with_meta, write_meta
from cranfield.model import Anchor, Meta, Split, TestSet
from cranfield.testsets.commands.upkeep import rehash_command, verify_command

CODE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
YAML = """\
cranfield_testset: 1
name: code
queries:
  - id: q1
    text: the first
    entities: [src/a.py::one]
  - id: q2
    text: the second
    spans: [src/a.py:5-6]
"""
QRELS = "q1 0 src/a.py::one 1\nq2 0 src/a.py:5-6 1\n"


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    app.command("verify")(command_of(verify_command))
    app.command("rehash")(command_of(rehash_command))
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "code/src").mkdir(parents=True)
    (tmp_path / "code/src/a.py").write_text(CODE)
    (tmp_path / "set.yaml").write_text(YAML)
    (tmp_path / "set.qrels").write_text(QRELS)
    return tmp_path


def rehashed(folder: Path, name: str) -> Path:
    done = run("rehash", folder / name, "--repo", folder / "code")
    assert done.exit_code == 0, done.output
    return folder / name


def test_a_yaml_set_is_written_again_with_its_anchors(folder: Path) -> None:
    path = rehashed(folder, "set.yaml")
    read = read_testset(path)
    assert set(read.meta.anchors) == {"src/a.py::one", "src/a.py:5-6"}
    assert read.queries[0].text == "the first"
    assert not meta_path(path).exists()


def test_qrels_get_a_file_beside_them_and_stay_as_they_are(folder: Path) -> None:
    path = rehashed(folder, "set.qrels")
    assert path.read_text() == QRELS
    tied = with_meta(read_testset(path), path)
    assert set(tied.meta.anchors) == {"src/a.py::one", "src/a.py:5-6"}
    assert tied.meta.counts == {"queries": 2}


@pytest.mark.parametrize("name", ["set.yaml", "set.qrels"])
def test_verify_exits_with_1_when_something_drifted(folder: Path, name: str) -> None:
    path = rehashed(folder, name)
    fine = run("verify", path, "--repo", folder / "code")
    assert (fine.exit_code, "2 expected places, 0 drifted" in fine.output) == (0, True)
    (folder / "code/src/a.py").write_text(CODE.replace("return 2", "return 22"))
    drifted = run("verify", path, "--repo", folder / "code")
    assert (drifted.exit_code, "2 expected places, 1 drifted" in drifted.output) == (1, True)


def test_verify_as_json(folder: Path) -> None:
    path = rehashed(folder, "set.yaml")
    (folder / "code/src/a.py").write_text("\n" + CODE.replace("return 1", "return 11"))
    done = run("verify", path, "--repo", folder / "code", "--format", "json")
    told = json.loads(done.output)
    assert told["counts"] == {"unchanged": 0, "moved": 1, "edited": 1, "renamed": 0, "gone": 0, "unanchored": 0}
    keys = ("label", "kind", "state", "now", "detail", "queries")
    assert [tuple(place[key] for key in keys) for place in told["findings"]] == [
        ("src/a.py::one", "entity", "edited", "", "its text differs; now on lines 2-3", ["q1"]),
        ("src/a.py:5-6", "span", "moved", "src/a.py:6-7", "", ["q2"]),
    ]
    assert told["by_query"] == {"q1": {"edited": 1}, "q2": {"moved": 1}}


def test_moved_lines_are_no_drift_and_are_written_where_they_are(folder: Path) -> None:
    path = rehashed(folder, "set.yaml")
    (folder / "code/src/a.py").write_text("import os\n" + CODE)
    healed = folder / "healed.yaml"
    done = run("verify", path, "--repo", folder / "code", "--out", healed, "--format", "json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["counts"] == {"unchanged": 1, "moved": 1, "edited": 0, "renamed": 0, "gone": 0, "unanchored": 0}
    assert [(place["label"], place["now"]) for place in told["findings"] if place["state"] == "moved"] == [
        ("src/a.py:5-6", "src/a.py:6-7")
    ]
    assert [target.label for target in read_testset(healed).targets["q2"]] == ["src/a.py:6-7"]
    assert run("rehash", path, "--repo", folder / "code").exit_code == 2
    assert run("rehash", healed, "--repo", folder / "code").exit_code == 0


def test_healed_qrels_have_a_file_beside_them_too(folder: Path) -> None:
    path = rehashed(folder, "set.qrels")
    (folder / "code/src/a.py").write_text("import os\n" + CODE)
    healed = folder / "healed.qrels"
    assert run("verify", path, "--repo", folder / "code", "--out", healed).exit_code == 0
    assert healed.read_text().splitlines()[1].split() == ["q2", "0", "src/a.py:6-7", "1"]
    assert "src/a.py:6-7" in read_meta(meta_path(healed)).anchors


def test_rehash_leaves_the_set_as_it_is_where_another_file_is_named(folder: Path) -> None:
    out = folder / "tied.yaml"
    assert run("rehash", folder / "set.yaml", "--repo", folder / "code", "--out", out).exit_code == 0
    assert (folder / "set.yaml").read_text() == YAML
    assert read_testset(out).meta.source_files


def test_what_is_known_of_a_set_is_read_as_it_was_written(tmp_path: Path) -> None:
    meta = Meta(
        review="reviewed",
        scale=(0.0, 1.0, 2.0),
        made="2026-11-21",
        refresh_days=30,
        commit="abc",
        source_files={"src/a.py": "12"},
        anchors={"src/a.py:5-6": Anchor("src/a.py::two", "34", 0, 2)},
        counts={"queries": 2},
        split=Split(7, 0.2, ("q1",), by=("kind",)),
        previous="sha256:1",
        history=("made", "rehashed"),
    )
    for known in (meta, Meta()):
        write_meta(TestSet("any", (), meta=known), tmp_path / "m.meta.json")
        assert read_meta(tmp_path / "m.meta.json") == known


def test_a_set_without_a_file_beside_it_keeps_what_it_says(tmp_path: Path) -> None:
    own = TestSet("any", (), meta=Meta(review="own"))
    assert with_meta(own, tmp_path / "set.qrels") is own
    write_meta(replace(own, meta=Meta(review="beside")), tmp_path / "set.qrels.meta.json")
    assert with_meta(own, tmp_path / "set.qrels").meta.review == "beside"


def test_a_set_that_is_the_folder_we_are_in_has_its_file_beside_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert meta_path(Path()) == tmp_path.resolve().with_name(f"{tmp_path.name}.meta.json")


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ('{\n  "anchor": {}\n}', 2, 3, "unknown key 'anchor'"),
        ('{\n  "counts": {"queries": "many"}\n}', 2, 25, "wrong value for counts.queries"),
        ('{"anchors": {"a.py:1-2": {"symbol": "a.py::f"}}}', 1, 26, "missing key 'body'"),
        ('{"anchors": ', 1, 13, "not valid JSON"),
        ("[]", 1, 1, "a list at the top of the file"),
    ],
    ids=["unknown-key", "wrong-kind", "missing-key", "cut-short", "list"],
)
def test_a_malformed_file_says_where_and_what(tmp_path: Path, text: str, line: int, column: int, words: str) -> None:
    path = tmp_path / "set.csv.meta.json"
    path.write_text(text)
    with pytest.raises(TestSetError) as caught:
        read_meta(path)
    problem = caught.value.problems[0]
    assert (problem.line, problem.column) == (line, column)
    assert words in problem.message
