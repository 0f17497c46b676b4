"""`cranfield system` as people and scripts use it."""

from __future__ import annotations

import json

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
    code, out, _ = cranfield("probe", "echo", "grid")
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
    assert (found["k"], found["outcome"], found["attempts"], found["hits"]) == (7, "answered", 1, [{"id": "doc:grid"}])
    assert list(found) == [
        *("system", "kind", "query", "k", "request", "output", "stderr", "outcome", "reason", "fields", "hits"),
        *("latency_ms", "attempts", "evidence"),
    ]
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
