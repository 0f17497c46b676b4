"""One query to a system in a program of its own."""

from __future__ import annotations

import json
import sys

import pytest

from cranfield.base.errors import UsageError
from cranfield.workbench.config import Workbench
from cranfield.workbench.service.probe import Probed, probe_in_child

pytestmark = pytest.mark.slow
SEARCH = """\
import json, os, sys, time
if sys.argv[1] == "hang":
    time.sleep(600)
if sys.argv[1] == "variables":
    for name in ("CRANFIELD_DB", "CRANFIELD_SECRET", "CHAT_KEY", "SHOP_KEY"):
        if name in os.environ:
            print(json.dumps({"id": name}))
print(json.dumps({"id": sys.argv[1] + " " + sys.argv[2], "title": "key " + os.environ["KEY"]}))
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "search.py").write_text(SEARCH)
    (tmp_path / "set.yaml").write_text("cranfield_testset: 1\nname: s\nqueries: [{id: q, text: t}]\n")
    command = json.dumps([sys.executable, "-S", str(tmp_path / "search.py"), "{query}", "{params.boost}"])
    system = f"{{command: {command}, extract: {{jsonl: true, id: id, title: title}}, params: {{boost: 1}}, env: {{KEY: s3cret-s3cret}}}}"
    (tmp_path / "cranfield.yaml").write_text(f"testset: set.yaml\nsystems: {{shop: {system}}}\n")
    return tmp_path / "cranfield.yaml"


@pytest.fixture
def workbench():
    return Workbench.model_validate({"tunable": {"shop": {"params.boost": {"min": 0, "max": 5}}}})


def test_a_query_with_the_values_of_the_config_and_others(config, workbench):
    plain, tuned = probe_in_child(config, workbench, "shop", "red", 5, ({}, {"params.boost": 3}))
    assert ([hit["id"] for hit in plain.hits], [hit["id"] for hit in tuned.hits]) == (["red 1"], ["red 3"])
    assert plain.exchange["outcome"] == "answered"
    assert "red" in plain.exchange["request"]
    assert "s3cret" not in json.dumps([plain.exchange, tuned.exchange])


def test_a_system_sees_no_variable_of_the_server_and_the_process_takes_no_file_for_a_module(
    config, monkeypatch, tmp_path
):
    workbench = Workbench.model_validate({"webhooks": [{"url": "https://chat.example", "secret": "env:CHAT_KEY"}]})
    for name in ("CRANFIELD_DB", "CRANFIELD_SECRET", "CHAT_KEY", "SHOP_KEY"):
        monkeypatch.setenv(name, "none of its business")
    (tmp_path / "jmespath.py").write_text("raise SystemExit('a file of the working directory was imported')")
    monkeypatch.chdir(tmp_path)
    (found,) = probe_in_child(config, workbench, "shop", "variables", 20)
    seen = {hit["id"] for hit in found.hits} & {"CRANFIELD_DB", "CRANFIELD_SECRET", "CHAT_KEY", "SHOP_KEY"}
    assert (found.problems, seen) == ((), {"SHOP_KEY"})


def test_what_hangs_is_ended(config, workbench):
    (found,) = probe_in_child(config, workbench, "shop", "hang", 5, limit_s=3)
    assert found == Probed({}, {}, found.problems)
    assert "no answer within 3 s" in found.problems[0].message


def test_a_system_that_cannot_run_has_a_reason(config):
    config.write_text(config.read_text().replace(json.dumps(sys.executable), '"nosuch-program"'))
    (found,) = probe_in_child(config, None, "shop", "red", 5)
    assert "nosuch-program" in str(found.problems[0])


def test_what_is_not_open_is_not_sent(config, workbench):
    with pytest.raises(UsageError):
        probe_in_child(config, workbench, "shop", "red", 5, ({"params.boost": 9},))
