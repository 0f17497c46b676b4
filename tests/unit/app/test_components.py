"""Which variants a system with components is measured as, and what is refused before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.app.experiment import collect_options
from cranfield.app.grid import run_components, variants_of
from cranfield.base.errors import TestSetError, UnknownNameError, UsageError
from cranfield.config import Config
from cranfield.config.grid import with_systems
from cranfield.config.load import load_config
from cranfield.model import Query
from cranfield.systems import build_systems
from cranfield.systems.kinds.build import systems_to_check

TESTSET = "cranfield_testset: 1\nname: t\nqueries:\n  - {id: q1, text: a, params: {lang: en}, judgments: {x: 1}}\n"
PART = '{command: [touch, asked, "{query}"], extract: {regex: a}}'
CONFIG = f"""\
testset: queries.yaml
baseline: bm25
candidate: dense
systems:
  bm25: {PART}
  splade: {PART}
  dense: {PART}
  three: {{fusion: {{of: [bm25, splade, dense], weights: {{dense: 2}}}}}}
  two: {{fusion: {{of: [bm25, splade, dense], weights: {{dense: 0}}}}}}
  one: {{fusion: {{of: [bm25, dense], weights: {{dense: 0}}}}}}
  flags: {{command: [touch, asked, "{{query}}", "{{params.components}}"], extract: {{regex: a}}, components: [lex, sem, fuzzy]}}
"""


def project(folder: Path, text: str = CONFIG) -> Path:
    (folder / "queries.yaml").write_text(TESTSET)
    (folder / "cranfield.yaml").write_text(text)
    return folder / "cranfield.yaml"


def weights(config: Config, name: str) -> dict[str, dict[str, float]]:
    found = {}
    for one, system in variants_of(config, name).systems.items():
        assert system.fusion is not None
        found[one] = {part: system.fusion.weights.get(part, 1) for part in system.fusion.of}
    return found


def test_a_fusion_is_measured_whole_each_part_alone_and_all_but_each(tmp_path: Path) -> None:
    assert weights(load_config(project(tmp_path)), "three") == {
        "three.all": {"bm25": 1, "splade": 1, "dense": 2},
        "three.only-bm25": {"bm25": 1, "splade": 0, "dense": 0},
        "three.only-splade": {"bm25": 0, "splade": 1, "dense": 0},
        "three.only-dense": {"bm25": 0, "splade": 0, "dense": 2},
        "three.without-bm25": {"bm25": 0, "splade": 1, "dense": 2},
        "three.without-splade": {"bm25": 1, "splade": 0, "dense": 2},
        "three.without-dense": {"bm25": 1, "splade": 1, "dense": 0},
    }


def test_of_two_components_alone_and_all_but_one_are_the_same_and_run_once(tmp_path: Path) -> None:
    variants = variants_of(load_config(project(tmp_path)), "two")
    assert list(variants.systems) == ["two.all", "two.only-bm25", "two.only-splade"]
    assert variants.without == {"bm25": "two.only-splade", "splade": "two.only-bm25"}


def test_a_system_with_components_is_told_which_are_on(tmp_path: Path) -> None:
    config = load_config(project(tmp_path))
    variants = variants_of(config, "flags")
    made = build_systems(with_systems(config, variants.systems), variants.systems)
    params = {system.name: system.params_of(Query("q1", "a")) for system in made}
    assert {name: said["components"] for name, said in params.items()} == {
        "flags.all": "lex,sem,fuzzy",
        "flags.only-lex": "lex",
        "flags.only-sem": "sem",
        "flags.only-fuzzy": "fuzzy",
        "flags.without-lex": "sem,fuzzy",
        "flags.without-sem": "lex,fuzzy",
        "flags.without-fuzzy": "lex,sem",
    }
    assert params["flags.without-sem"] == {"components": "lex,fuzzy", "lex": True, "sem": False, "fuzzy": True}
    assert len({system.config_digest for system in made}) == 7


@pytest.mark.parametrize(("name", "n"), [("three", 1), ("flags", 7)])
def test_the_parts_of_a_fusion_are_checked_once_however_many_variants_ask_them(
    tmp_path: Path, name: str, n: int
) -> None:
    config = load_config(project(tmp_path))
    variants = variants_of(config, name)
    made = build_systems(with_systems(config, variants.systems), variants.systems)
    assert len(made) == 7
    assert len(systems_to_check(made)) == n


def test_how_systems_are_asked_is_read_from_the_config(tmp_path: Path) -> None:
    text = CONFIG + "collect: {warm_up: 2, repeats: 3, cache_h: 1, seed: 5}\n"
    config = load_config(project(tmp_path, text))
    options = collect_options(config)
    assert (options.warm_up, options.repeats, options.cache_h, options.seed) == (2, 3, 1, 5)
    assert options.cache_dir == tmp_path / ".cranfield" / "answers"
    assert collect_options(config, "off").cache_dir is None
    assert collect_options(config, "refresh").refresh


@pytest.mark.parametrize("name", ["bm25", "one"])
def test_a_system_of_one_piece_has_no_components(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"system {name} has no components"):
        run_components(name, project(tmp_path), out=tmp_path / "out")


def test_an_unknown_system_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="thre"):
        run_components("thre", project(tmp_path), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("components: [lex", "params: {lex: true}, components: [lex"), "the system sets the parameter lex"),
        (("components: [lex, sem, fuzzy]", "components: [lex, lang]"), "query q1 sets the parameter lang"),
    ],
)
def test_a_parameter_that_would_switch_a_component_is_refused(tmp_path: Path, change, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run_components("flags", project(tmp_path, CONFIG.replace(*change)), out=tmp_path / "out")
    assert not (tmp_path / "asked").exists()


def test_of_several_test_sets_one_has_to_be_named(tmp_path: Path) -> None:
    text = CONFIG.replace(
        "testset: queries.yaml", "testsets: {small: {path: queries.yaml}, none: {path: nothing.yaml}}"
    )
    with pytest.raises(UsageError, match="2 test sets; expected testset with one of small, none"):
        run_components("three", project(tmp_path, text), out=tmp_path / "out")
    with pytest.raises(UnknownNameError, match="smal"):
        run_components("three", project(tmp_path, text), out=tmp_path / "out", testset="smal")
    with pytest.raises(TestSetError, match=r"nothing\.yaml"):
        run_components("three", project(tmp_path, text), out=tmp_path / "out", testset="none")
    with pytest.raises(UsageError, match="the config has one test set, without a name"):
        run_components("three", project(tmp_path), out=tmp_path / "out", testset="small")
    assert not (tmp_path / "asked").exists()


def test_a_file_where_the_results_should_go_is_found_before_anything_is_asked(tmp_path: Path) -> None:
    config = project(tmp_path)
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match="this is a file"):
        run_components("three", config, out=tmp_path / "out")
    assert not (tmp_path / "asked").exists()
