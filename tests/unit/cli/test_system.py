"""`cranfield system` as people and scripts use it."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from cranfield.cli.main import command_line

CONFIG = """\
testset: queries.yaml
k: 3
systems:
  echo:
    command: [sh, -c, 'echo "$TOKEN" >&2; echo "doc:$1 of $2"', sh, "{query}", "{params.shelf}"]
    params: {shelf: top}
    extract: {regex: 'doc:\\S+'}
    env: {TOKEN: sesame-open}
  broken:
    command: [sh, -c, 'exit 3', sh, "{query}"]
    extract: {regex: x}
  gone:
    command: [./not-there, "{query}"]
    extract: {regex: x}
"""


@pytest.fixture
def cranfield(tmp_path, monkeypatch):
    """Run a command of the group in a folder with a config; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "cranfield.yaml").write_text(CONFIG)

    def run(*args):
        done = CliRunner().invoke(command_line("system"), ["system", *args], prog_name="cranfield")
        return done.exit_code, done.stdout, done.stderr

    return run


def test_a_probe_shows_request_raw_answer_and_hits_and_no_secret(cranfield):
    code, out, _ = cranfield("probe", "echo", "grid", "--raw")
    assert code == 0
    request, rest = out.split("Raw output")
    assert "sh grid top" in request
    assert "doc:grid of top" in rest
    assert "${TOKEN}" in rest
    assert "sesame-open" not in out
    assert "   1  doc:grid" in rest


def test_a_probe_as_json_holds_all_of_it(cranfield):
    code, out, _ = cranfield("probe", "echo", "grid", "-k", "7", "--param", "shelf=low", "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert found["request"].endswith("sh grid low")
    assert (found["k"], found["outcome"], found["attempts"]) == (7, "answered", 1)
    assert [hit["id"] for hit in found["hits"]] == ["doc:grid"]
    assert found["output"] == "doc:grid of low\n"
    assert found["stderr"] == "${TOKEN}\n"


def test_a_probe_whose_call_fails_says_how_and_exits_with_3(cranfield):
    code, out, _ = cranfield("probe", "broken", "grid")
    assert code == 3
    assert "nonzero exit: exit status 3" in out


def test_a_probe_of_a_system_that_is_not_ready_says_what_is_missing(cranfield):
    code, out, err = cranfield("probe", "gone", "grid")
    assert (code, out) == (3, "")
    assert "command ./not-there" in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("probe", "ecko", "grid"), "error: unknown system 'ecko'; expected broken, echo, gone."),
        (("probe", "echo", "grid", "--param", "shelf"), "error: --param is 'shelf'; expected NAME=VALUE."),
        (("probe", "echo", "grid", "--testset", "docs"), "error: the config has one test set, without a name."),
        (("show", "ecko"), "error: unknown system 'ecko'"),
        (("presets", "elastic"), "error: unknown preset 'elastic'"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(cranfield, args, said):
    code, out, err = cranfield(*args)
    assert (code, out) == (2, "")
    assert err.startswith(said)


def test_the_list_says_what_each_system_is(cranfield):
    code, out, _ = cranfield("list")
    assert code == 0
    assert "3 systems" in out
    rows = {line.split()[0]: line for line in out.splitlines() if line[:1].isalpha()}
    assert "./not-there {query}" in rows["gone"]
    assert "30 s" in rows["gone"]


def test_one_system_is_shown_as_yaml_without_its_secret(cranfield):
    code, out, _ = cranfield("show", "echo")
    assert code == 0
    assert out.startswith("echo:\n  command:\n")
    assert "sesame-open" not in out


def test_every_preset_shows_its_settings_and_what_it_comes_to(cranfield):
    from cranfield.config.presets import PRESETS

    code, out, _ = cranfield("presets")
    assert code == 0
    assert list(PRESETS) == [
        line.split()[0] for line in out.splitlines() if line.split()[:1] and line.split()[0] in PRESETS
    ]
    for name in PRESETS:
        code, out, _ = cranfield("presets", name)
        assert code == 0
        assert f"preset: {name}" in out
        assert "expanded" in out


KNOWN = """\
cranfield_testset: 1
name: shelves
queries:
- {id: q1, text: grid, params: {shelf: low}, judgments: {"doc:grid": 2, "doc:row": 1}}
"""


def test_a_probe_of_a_query_of_the_test_set_has_grades_and_lists_results_once(cranfield, tmp_path):
    (tmp_path / "queries.yaml").write_text(KNOWN)
    code, out, _ = cranfield("probe", "echo", "grid")
    assert code == 0
    assert "query q1 of the test set" in out
    assert "sh grid low" in out  # with the params of the query
    assert re.search(r"^ +1 +2 +doc:grid", out, re.MULTILINE)
    assert out.count("doc:grid") == 1
    assert "--raw shows it" in out
    by_id, by_text = (json.loads(cranfield("probe", "echo", asked, "--format", "json")[1]) for asked in ("q1", "grid"))
    assert by_id["query"] == by_text["query"] == "grid"
    assert by_id["graded"] == by_text["graded"]
    assert [(hit["rank"], hit["id"], hit["grade"]) for hit in by_id["graded"]] == [(1, "doc:grid", "2")]


def test_a_result_that_nobody_judged_says_so(cranfield, tmp_path):
    (tmp_path / "queries.yaml").write_text(KNOWN.replace('"doc:grid": 2, ', ""))
    assert re.search(r"^ +1 +unjudged +doc:grid", cranfield("probe", "echo", "grid")[1], re.MULTILINE)


def test_a_probe_of_another_query_needs_no_test_set(cranfield):
    code, out, _ = cranfield("probe", "echo", "grid")
    assert code == 0
    assert "of the test set" not in out


SQLITE = """\
testset: queries.yaml
systems:
  fts:
    preset: sqlite
    with: {database: docs.db, table: docs, title_column: title, where: ":lang IS NULL OR title <> ':__k'"}
  both: {fusion: {method: rrf, of: [fts, fts2], depth: 20}}
  fts2: {preset: sqlite, with: {database: docs.db, table: docs}}
"""


@pytest.mark.parametrize("query", ["alpha beta", "it's", 'say "alpha" now'])
def test_the_sql_that_is_shown_gives_the_results_that_are_shown(cranfield, tmp_path, query):
    rows = [("a", "A", "alpha beta"), ("b", "B", "alpha"), ("x", "X", "beta it's gamma"), ("c", "C", "say so")]
    with closing(sqlite3.connect(tmp_path / "docs.db")) as database:
        database.execute("create virtual table docs using fts5(id unindexed, title, body)")
        database.executemany("insert into docs values (?, ?, ?)", rows)
        database.commit()
        (tmp_path / "cranfield.yaml").write_text(SQLITE)
        found = json.loads(cranfield("probe", "fts", query, "--param", "lang=en", "--format", "json")[1])
        call, statement = found["request"].split("\n")
        assert call.startswith("searcher(")
        assert ":" not in statement.replace("':__k'", "")
        assert [row[1] for row in database.execute(statement)] == [hit["id"] for hit in found["hits"]]
    both = json.loads(cranfield("probe", "both", query, "--format", "json")[1])
    assert both["request"].count("SELECT") == 2
    assert both["request"].count("LIMIT 20") == 2


def test_the_request_of_a_service_is_shown_with_its_parameters(cranfield, tmp_path):
    (tmp_path / "cranfield.yaml").write_text(
        "testset: queries.yaml\nsystems:\n  web:\n"
        "    http: {url: 'http://127.0.0.1:1/s', method: POST, parameters: {n: '{k}'}, json: {q: '{query}'}}\n"
        "    extract: {json: 'hits[]', id: id}\n    retries: 0\n"
    )
    out = cranfield("probe", "web", "wing flutter", "-k", "7")[1]
    assert "POST http://127.0.0.1:1/s?n=7" in out
    assert '{"q": "wing flutter"}' in out or '{"q":"wing flutter"}' in out
