"""What the programs that a server starts are given."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import cranfield
from cranfield.config import load_config
from cranfield.workbench.config import Workbench
from cranfield.workbench.service.children import OF_SERVER, database_variables, reader_environment, system_environment

OF_DATABASE = {"PGPASSWORD", "PGSERVICEFILE"}

WORKBENCH = Workbench.model_validate(
    {
        "server": {"db": "postgresql://books"},
        "webhooks": [{"url": "env:CHAT_URL", "secret": "env:CHAT_KEY"}],
        "documents": [
            {"sql": {"database": "env:TEXTS_DB", "query": "SELECT text FROM doc WHERE id = :id"}},
            {"command": ["show", "{id}"], "env": ["WIKI_TOKEN"]},
        ],
    }
)
KNOWN = dict.fromkeys(
    [
        *OF_SERVER,
        "CRANFIELD_SERVE_URL",
        "PGPASSWORD",
        "PGSERVICEFILE",
        "CHAT_URL",
        "CHAT_KEY",
        "TEXTS_DB",
        "WIKI_TOKEN",
        "PATH",
        "HOME",
        "SHOP_KEY",
        "CRANFIELD_CACHE",
    ],
    "x",
)


def test_a_system_has_no_variable_of_the_server_and_none_that_its_operator_named():
    assert set(system_environment(WORKBENCH, None, KNOWN)) == {"PATH", "HOME", "SHOP_KEY", "CRANFIELD_CACHE"}
    assert set(system_environment(None, None, KNOWN)) == set(KNOWN) - OF_SERVER - OF_DATABASE - {"CRANFIELD_SERVE_URL"}
    assert set(database_variables(KNOWN)) == OF_DATABASE
    assert set(reader_environment(KNOWN)) == {"PATH", "HOME", "PYTHONWARNINGS"}


@pytest.mark.parametrize(
    "system",
    [
        {
            "http": {"url": "https://shop.example/?q={query}", "headers": {"Authorization": "Bearer {env.CHAT_KEY}"}},
            "extract": {"json": "hits[]", "id": "id"},
        },
        {"preset": "postgres", "with": {"dsn_env": "CHAT_KEY", "table": "docs", "columns": {"title": "A"}}},
    ],
)
def test_a_variable_that_the_config_names_too_is_passed_on(system, tmp_path):
    (tmp_path / "set.yaml").write_text("cranfield_testset: 1\nname: s\nqueries: [{id: q, text: t}]\n")
    (tmp_path / "cranfield.yaml").write_text(json.dumps({"testset": "set.yaml", "systems": {"shop": system}}))
    found = system_environment(WORKBENCH, load_config(tmp_path / "cranfield.yaml"), KNOWN)
    assert set(KNOWN) - set(found) == {
        *OF_SERVER,
        *OF_DATABASE,
        "CRANFIELD_SERVE_URL",
        "CHAT_URL",
        "TEXTS_DB",
        "WIKI_TOKEN",
    }


def test_a_variable_of_postgresql_that_the_config_names_is_passed_on(tmp_path):
    system = {"command": ["find", "{query}"], "extract": {"json": "hits[]", "id": "id"}}
    system["env"] = {"PGPASSWORD": "{env.PGPASSWORD}"}
    (tmp_path / "set.yaml").write_text("cranfield_testset: 1\nname: s\nqueries: [{id: q, text: t}]\n")
    (tmp_path / "cranfield.yaml").write_text(json.dumps({"testset": "set.yaml", "systems": {"shop": system}}))
    found = system_environment(WORKBENCH, load_config(tmp_path / "cranfield.yaml"), KNOWN)
    assert OF_DATABASE & set(found) == {"PGPASSWORD"}


@pytest.mark.parametrize(("path", "passed"), [("/a::/b:", "/a:/b"), ("", None), (":", None)])
def test_an_empty_entry_of_the_path_of_modules_is_left_out(path, passed):
    known = {"PYTHONPATH": path}
    assert system_environment(None, None, known).get("PYTHONPATH") == passed
    assert reader_environment(known).get("PYTHONPATH") == passed


def test_every_python_program_is_started_without_the_working_directory_in_its_path():
    """`-P`, or `-I` which implies it: a file there could have the name of a module."""
    started = [
        (str(path.relative_to(Path(cranfield.__file__).parent)), found[1])
        for path in Path(cranfield.__file__).parent.rglob("*.py")
        for found in re.finditer(r"\[sys\.executable, (\"[^\"]*\"|\w+)", path.read_text(encoding="utf-8"))
    ]
    assert len(started) > 5
    assert [each for each in started if each[1] not in {'"-P"', '"-I"'}] == []
