"""Parameters that the operator opens: what may be set, what is refused, and the system that results."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.base.errors import ConfigError, UnknownNameError, UsageError
from cranfield.config import load_config
from cranfield.workbench.config import load_workbench
from cranfield.workbench.service.tuning import config_value, label, opened, read_settings, shown_range, tuned_config

CONFIG = """\
testset: set.yaml
systems:
  search: {command: [search, "{query}", "{params.boost}", "{params.mode}"], extract: {jsonl: true, id: id}, params: {boost: 1, mode: plain}}
  dense: {command: [dense, "{query}"], extract: {jsonl: true, id: id}}
  hybrid: {fusion: {of: [search, dense], weights: {dense: 0.5}}}
"""
WORKBENCH = """\
tunable:
  search:
    params.boost: {min: 0, max: 5}
    params.mode: [plain, fuzzy, true]
    timeout_s: {min: 1, max: 9, step: 0.5}
  hybrid:
    fusion.weights.dense: {min: 0.0, max: 1}
"""


@pytest.fixture
def files(tmp_path: Path):
    (tmp_path / "cranfield.yaml").write_text(CONFIG)
    (tmp_path / "workbench.yaml").write_text(WORKBENCH)
    return load_config(tmp_path / "cranfield.yaml"), load_workbench(tmp_path / "workbench.yaml")


def test_what_is_open_becomes_a_system(files):
    config, workbench = files
    tuned = tuned_config(config, workbench, "search", {"boost": 3, "params.mode": "fuzzy", "timeout_s": 2.5})
    assert (tuned.systems["search"].params, tuned.systems["search"].timeout_s) == ({"boost": 3, "mode": "fuzzy"}, 2.5)
    assert tuned.systems["dense"] is config.systems["dense"]
    assert config.systems["search"].params["boost"] == 1
    assert tuned_config(config, workbench, "hybrid", {"fusion.weights.dense": 0.25}).systems[
        "hybrid"
    ].fusion.weights == {"dense": 0.25}


@pytest.mark.parametrize(
    ("system", "params", "expected"),
    [
        ("search", {"boost": 6}, "0 to 5, whole"),
        ("search", {"boost": 2.5}, "0 to 5, whole"),
        ("search", {"boost": True}, "0 to 5, whole"),
        ("search", {"boost": "2"}, "0 to 5, whole"),
        ("search", {"boost": float("nan")}, "0 to 5, whole"),
        ("search", {"timeout_s": 1.3}, "1 to 9 in steps of 0.5"),
        ("search", {"mode": "exact"}, "plain, fuzzy, true"),
        ("search", {"mode": 1}, "plain, fuzzy, true"),
        ("search", {"command": "rm"}, "params.boost"),
        ("search", {"env.KEY": "x"}, "params.boost"),
        ("dense", {"boost": 1}, "none is open"),
    ],
)
def test_all_else_is_refused(files, system, params, expected):
    with pytest.raises(UsageError) as caught:
        tuned_config(*files, system, params)
    (problem,) = caught.value.problems
    assert problem.expected is not None
    assert expected in problem.expected


def test_all_problems_at_once(files):
    with pytest.raises(UsageError) as caught:
        tuned_config(*files, "search", {"boost": 9, "mode": "x", "other": 1})
    assert len(caught.value.problems) == 3
    with pytest.raises(UnknownNameError):
        tuned_config(*files, "nosuch", {})


def test_nothing_is_open_without_a_file(files):
    assert opened(None, "search") == {}
    with pytest.raises(UsageError):
        tuned_config(files[0], None, "search", {"boost": 2})


def test_a_form_sends_texts(files):
    config, workbench = files
    written = {"params.boost": "2", "params.mode": "true", "timeout_s": ""}
    assert read_settings(workbench, "search", written) == {"params.boost": 2, "params.mode": True}
    assert isinstance(read_settings(workbench, "search", {"params.boost": "2"})["params.boost"], int)
    assert read_settings(workbench, "hybrid", {"fusion.weights.dense": "0.3"}) == {"fusion.weights.dense": 0.3}
    with pytest.raises(UsageError):
        read_settings(workbench, "search", {"params.boost": "two"})
    assert [config_value(config, "search", place) for place in opened(workbench, "search")] == ["1", "plain", ""]
    assert config_value(config, "hybrid", "fusion.weights.dense") == "0.5"


def test_names(files):
    _, workbench = files
    assert label({"params.mode": "fuzzy", "params.boost": 2.0}) == "tried: boost=2, mode=fuzzy"
    assert shown_range(workbench.tunable["hybrid"]["fusion.weights.dense"]) == "0 to 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tunable: {search: {params.boost: {min: 5, max: 1}}}", "ends before it begins"),
        ("tunable: {search: {env.KEY: [a]}}", "env holds secrets"),
        ("tunable: {search: {params.boost: {min: 0, max: 2, step: 0}}}", "step"),
        ("tunable: {search: {params.boost: {from: 0, max: 2}}}", "from"),
        ("tunable: {search: {params.boost: []}}", "params.boost"),
        ("tunable: {search: {}}", "search"),
    ],
)
def test_a_block_that_says_nothing_is_refused(tmp_path, text, message):
    (tmp_path / "workbench.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_workbench(tmp_path / "workbench.yaml")
