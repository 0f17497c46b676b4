"""The demo's folder: complete, the same every time, and an ordinary project that the rest of the package can run."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cranfield.app.demo.build import QUESTIONS, DemoFiles, build_demo
from cranfield.app.demo.entity import Corpus
from cranfield.base.errors import UsageError
from cranfield.config import load_config
from cranfield.formats.testsets.native import read_testset_yaml
from cranfield.judging.documents.texts import DocumentTexts
from cranfield.model import Outcome, TestSet
from cranfield.systems import build_systems, collect_all
from cranfield.systems.collect.preflight import preflight
from cranfield.workbench.config import load_workbench
from cranfield.workbench.server.documents import rendered

FILES = ["corpus.db", "cranfield.yaml", "fields.db", "plain.db", "search.py", "testset.yaml", "workbench.yaml"]


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


def test_the_folder_holds_what_was_promised(built_demo: DemoFiles, corpus: Corpus) -> None:
    assert sorted(path.name for path in built_demo.folder.iterdir()) == FILES
    assert (built_demo.config, built_demo.testset) == (
        built_demo.folder / "cranfield.yaml",
        built_demo.folder / "testset.yaml",
    )
    assert [path.name for path in built_demo.databases] == ["plain.db", "fields.db"]
    assert built_demo.n_entities == len(corpus)


def test_the_test_set_is_the_packages_own_but_for_what_this_python_lacks(built_demo: DemoFiles, corpus: Corpus) -> None:
    written, source = read_testset_yaml(built_demo.testset), read_testset_yaml(QUESTIONS)
    assert len(written.queries) == built_demo.n_queries == len(source.queries) - len(built_demo.drift.queries)
    for query_id, grades in written.grades.items():
        assert grades == {i: grade for i, grade in source.grades[query_id].items() if i in corpus}
    left_out = {i for grades in source.grades.values() for i in grades} - set(corpus.by_id)
    assert {entity_id for _, entity_id in built_demo.drift.ids} == left_out
    said = " ".join(built_demo.drift.sentences())
    assert all(entity_id in said for entity_id in left_out)


def test_no_query_is_lost_on_the_pythons_it_was_written_for(built_demo: DemoFiles) -> None:
    assert (3, 11) <= sys.version_info < (3, 14), "look at the questions again for this Python, then widen this"
    assert (built_demo.drift.queries, built_demo.drift.targets, built_demo.drift.legacy) == ((), (), ())


def test_the_config_loads_and_its_systems_pass_their_preflight(built_demo: DemoFiles) -> None:
    config = load_config(built_demo.config)
    assert (config.pair, config.k) == (("plain", "fields"), 10)
    held = preflight(build_systems(config), k=config.k)
    assert {entry.system for entry in held} == {"plain", "fields"}


def test_both_systems_answer_through_the_config(built_demo: DemoFiles, tmp_path: Path) -> None:
    config = load_config(built_demo.config)
    testset = read_testset_yaml(built_demo.testset)
    few = tuple(query for query in testset.queries if query.id in {"A01", "B01", "E06", "G01"})
    part = TestSet("part", few, {query.id: testset.grades.get(query.id, {}) for query in few})
    runs = collect_all(part, build_systems(config), out_dir=tmp_path, k=config.k)
    for run in runs.values():
        assert {answer.outcome for answer in run.answers.values()} == {Outcome.ANSWERED}
        assert all(len(answer.hits) == 10 for query_id, answer in run.answers.items() if query_id != "A01")
        best = run.answers["A01"].hits[0]
        assert best.score is not None
        assert best.title is not None
        assert best.title.startswith("json.")
    assert runs["plain"].digest != runs["fields"].digest


def test_raters_get_the_kind_the_place_and_the_documentation(built_demo: DemoFiles) -> None:
    with closing(DocumentTexts(load_workbench(built_demo.folder / "workbench.yaml"))) as texts:
        document = texts.get("json/decoder.py::JSONDecoder.raw_decode")
        assert document.text.startswith("raw_decode(s, idx=0)\n\nDecode a JSON document")
        assert "<p>method <code>json/decoder.py 3" in rendered(document, "").html
        assert texts.get("topics::lambda").text.startswith("Lambdas")


def test_nothing_written_says_where_it_was_written_or_who_made_it(built_demo: DemoFiles) -> None:
    places = {str(built_demo.folder), str(Path.home()), sys.prefix, sys.base_prefix, str(Path(os.__file__).parent)}
    telling = [place for place in places if len(place) > len("/root")]
    for path in built_demo.folder.iterdir():
        content = path.read_bytes()
        assert [place for place in telling if place.encode() in content] == [], path.name


@pytest.mark.slow
def test_a_second_pass_over_the_library_elsewhere_gives_the_same_bytes(
    built_demo: DemoFiles, demo_of_the_command: Path
) -> None:
    """The other one was made by `cranfield demo`, in a process of its own."""
    other = digests(demo_of_the_command)
    assert {name: other[name] for name in FILES} == digests(built_demo.folder)


def test_building_over_a_demo_replaces_its_files_and_leaves_others(
    built_demo: DemoFiles, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cranfield.app.demo.build.build_corpus", lambda **_: corpus)
    (tmp_path / "plain.db").write_text("broken")
    (tmp_path / "notes.txt").write_text("mine")
    messages: list[str] = []
    files = build_demo(tmp_path, progress=messages.append)
    assert files.drift == built_demo.drift
    assert (tmp_path / "notes.txt").read_text() == "mine"
    (tmp_path / "notes.txt").unlink()
    assert digests(tmp_path) == digests(built_demo.folder)
    assert [line.split()[0] for line in messages] == ["indexing", "indexing", "writing"]


def test_the_folder_is_made_with_those_above_it(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cranfield.app.demo.build.build_corpus", lambda **_: Corpus(corpus.entities[::20]))
    assert build_demo(tmp_path / "new" / "folder").config.is_file()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError) as caught:
        build_demo(tmp_path / "file" / "demo")
    assert "file" in str(caught.value.problems[0].path)
