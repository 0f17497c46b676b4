"""The grid of a config: its places and points, what is wrong with them and where, and how queries are held out."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.app.grid import halves_of, run_grid
from cranfield.base.errors import ConfigError, UsageError
from cranfield.config.grid import grid_points
from cranfield.config.load import load_config
from cranfield.config.models import GridConfig
from cranfield.model import Meta, Query, Split, TestSet

PART = '{command: [touch, asked, "{params.boost}", "{query}"], extract: {regex: a}}'
CONFIG = f"""\
testset: queries.yaml
baseline: a
candidate: b
systems:
  a: {PART}
  b: {PART}
  mix: {{fusion: {{of: [a, b], weights: {{b: 2}}}}}}
  plain: {{command: [touch, asked, "{{query}}"], extract: {{regex: a}}, env: {{TOKEN: hush}}}}
grid:
  system: mix
  over:
"""


def project(folder: Path, over: str, system: str = "mix") -> Path:
    (folder / "cranfield.yaml").write_text(CONFIG.replace("system: mix", f"system: {system}") + over)
    return folder / "cranfield.yaml"


def problems(folder: Path, over: str, system: str = "mix") -> list[tuple[int | None, str]]:
    with pytest.raises(ConfigError) as caught:
        load_config(project(folder, over, system))
    return [(problem.line, str(problem).partition(": error: ")[2] or str(problem)) for problem in caught.value.problems]


def test_every_combination_is_a_point_and_those_that_are_the_same_system_are_one(tmp_path: Path) -> None:
    over = "    fusion.method: [rrf, sum]\n    fusion.rrf_k: [60, 10]\n    fusion.weights.a: [1, 3]\n"
    config = load_config(project(tmp_path, over))
    assert config.grid is not None
    points = grid_points(config, config.grid)
    assert [(point.name == "mix", *point.settings.values()) for point in points] == [
        (True, "rrf", 60, 1),  # as written: weight 1 is what is not said
        (False, "rrf", 60, 3),
        (False, "rrf", 10, 1),
        (False, "rrf", 10, 3),
        (False, "sum", 60, 1),
        (False, "sum", 60, 3),
    ]
    assert len({point.name for point in points}) == 6
    assert [[same["fusion.rrf_k"] for same in point.same] for point in points] == [[], [], [], [], [10], [10]]
    fusions = [point.system.fusion for point in points]
    assert [(how.rrf_k, dict(how.weights)) for how in fusions if how is not None][3] == (10, {"a": 3, "b": 2})


def test_settings_that_one_part_alone_does_not_see_are_one_point(tmp_path: Path) -> None:
    over = "    fusion.method: [rrf, sum]\n    fusion.rrf_k: [60, 10]\n    fusion.weights.a: [0, 1]\n"
    config = load_config(project(tmp_path, over))
    assert config.grid is not None
    counts = [(point.settings["fusion.weights.a"], len(point.same)) for point in grid_points(config, config.grid)]
    assert counts == [(0, 3), (1, 0), (1, 0), (1, 1)]


def test_a_point_has_the_same_name_in_another_grid(tmp_path: Path) -> None:
    named = []
    for over in ("    fusion.rrf_k: [10, 20]\n", "    fusion.method: [sum, rrf]\n    fusion.rrf_k: [30, 20, 10]\n"):
        config = load_config(project(tmp_path, over))
        assert config.grid is not None
        points = grid_points(config, config.grid)
        named.append({point.system.fusion.rrf_k: point.name for point in points if point.system.fusion.method == "rrf"})
    assert named[0][10] == named[1][10] != named[0][20] == named[1][20]


def test_params_that_something_takes_and_settings_of_any_system_can_be_varied(tmp_path: Path) -> None:
    config = load_config(project(tmp_path, "    params.boost: [1, 5]\n    timeout_s: [1, 2]\n", "a"))
    assert config.grid is not None
    points = grid_points(config, config.grid)
    assert [(point.system.params["boost"], point.system.timeout_s) for point in points] == [
        (1, 1),
        (1, 2),
        (5, 1),
        (5, 2),
    ]


@pytest.mark.parametrize(
    ("over", "line", "said"),
    [
        ("    fusion.rrfk: [1]\n", 12, "unknown place 'fusion.rrfk'"),
        ("    fusion.weights.c: [1]\n", 12, "unknown place 'fusion.weights.c'"),
        ("    params.bost: [1]\n", 12, "unknown place 'params.bost'"),
        ("    rrf_k: [1]\n", 12, "unknown place 'rrf_k'"),
        ("    fusion.rrf_k: [10, -1]\n", 12, "fusion.rrf_k"),
        ("    fusion.method: [rrf, borda]\n", 12, "fusion.method"),
        ("    fusion.depth: [10]\n    fusion.of: [[b, z]]\n", 13, "unknown system 'z'"),
        ("    fusion.weights.a: [0, 1]\n    fusion.weights.b: [0]\n", 12, "every part of the fusion has weight 0"),
        ("    fusion.rrf_k: [1, 1]\n", 12, "fusion.rrf_k lists a value twice"),
        ("    fusion.rrf_k: []\n", 12, "over"),
        ("    env.TOKEN: [a]\n", 12, "reports show all values of a grid, and env contains secrets"),
        (f"    fusion.rrf_k: {list(range(501))}\n", 12, "points of the grid"),
        ("    fusion.rrf_k: [1]\n  held_out: 1.5\n", 13, "held_out"),
        ("    fusion.rrf_k: [1]\n  held_out: split\n", 13, "what is held out"),
        ("    fusion.rrf_k: [1]\n  seed: -1\n", 13, "seed"),
    ],
    ids=lambda value: str(value).strip()[:40] if isinstance(value, str) else None,
)
def test_what_is_wrong_with_a_grid_is_said_with_its_line(tmp_path: Path, over: str, line: int, said: str) -> None:
    found = problems(tmp_path, over)
    assert [at for at, _ in found] == [line] * len(found)
    assert said in found[0][1]


def test_everything_wrong_with_a_grid_is_said_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, "    fusion.rrfk: [1]\n    fusion.rrf_k: [-1, x]\n    params.bost: [1]\n")
    assert [line for line, _ in found] == [12, 13, 13, 14]
    assert problems(tmp_path, "    fusion.rrf_k: [1]\n", "mxi")[0][0] == 10


def test_a_parameter_that_a_system_would_not_see_is_no_place(tmp_path: Path) -> None:
    assert "params.boost" in problems(tmp_path, "    params.boost: [1]\n", "plain")[0][1]


def test_more_points_than_fit_are_counted(tmp_path: Path) -> None:
    (only,) = problems(tmp_path, f"    fusion.rrf_k: {list(range(26))}\n    fusion.weights.a: {list(range(20))}\n")
    assert "expected at most 500" in only[1]
    assert "520" in only[1]


def test_a_config_without_a_grid_says_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "cranfield.yaml").write_text(CONFIG.partition("grid:")[0])
    with pytest.raises(UsageError, match="the config has no grid"):
        run_grid(tmp_path / "cranfield.yaml", out=tmp_path / "out")


# The queries held out ----------------------------------------------------------------------------------------------------

QUERIES = tuple(
    Query(f"q{i}", strata={"kind": "easy" if i < 10 else "hard", "split": "test" if i % 4 == 0 else "dev"})
    for i in range(20)
)
TESTSET = TestSet("t", QUERIES, {query.id: {"x": 1} for query in QUERIES})
STORED = TestSet("t", QUERIES, TESTSET.grades, meta=Meta(split=Split(0, 0.1, ("q3", "q4"))))


def grid(**settings) -> GridConfig:
    return GridConfig.model_validate({"system": "s", "over": {"k": [1]}, **settings})


@pytest.mark.parametrize(
    ("testset", "settings", "n", "said"),
    [
        (TESTSET, {}, 6, "drawn within kind, split, share 0.3, seed 0"),
        (TESTSET, {"held_out": 0.2, "seed": 4}, 4, "drawn within kind, split, share 0.2, seed 4"),
        (TESTSET, {"held_out": "split=test"}, 5, "those of stratum split=test"),
        (STORED, {}, 2, "the held-out queries of the test set"),
        (STORED, {"held_out": 0.5}, 2, "the held-out queries of the test set"),
    ],
    ids=["usual", "share", "stratum", "stored", "stored before share"],
)
def test_queries_are_held_out_as_the_config_or_the_test_set_says(testset, settings, n: int, said: str) -> None:
    halves = halves_of(testset, grid(**settings))
    tuning, held_out = set(halves.tuning.query_ids), set(halves.held_out.query_ids)
    assert len(held_out) == n
    assert not tuning & held_out
    assert tuning | held_out == set(testset.query_ids)
    assert halves.sentence == (f"chosen on {20 - n} queries, judged on the {n} others ({said}); no query is in both")


def test_the_draw_is_the_same_for_the_same_seed_and_fair_within_the_strata() -> None:
    one, again, other = (halves_of(TESTSET, grid(held_out=0.5, seed=seed)).held_out.query_ids for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert sum(int(query_id[1:]) < 10 for query_id in one) == 5


def test_a_stratum_that_goes_before_a_stored_split_says_whose_queries_had_a_say() -> None:
    halves = halves_of(STORED, grid(held_out="split=test"))  # q4 is held out in both, q3 only as stored
    assert halves.notes == ("1 query that the test set holds out were used for the choice",)


@pytest.mark.parametrize("held_out", ["split=train", "genre=x"])
def test_a_stratum_without_queries_is_refused(held_out: str) -> None:
    with pytest.raises(UsageError):
        halves_of(TESTSET, grid(held_out=held_out))
