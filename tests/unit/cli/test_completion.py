"""Completion as a shell asks for it: through the console script, by the protocol of bash and zsh."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cranfield.cli.completion import COMPLETERS, MEASURE_NAMES, USUAL, VARIABLE
from cranfield.cli.main import COMMANDS
from cranfield.measures import parse
from cranfield.model import CONVENTIONS

CRANFIELD = Path(sys.executable).parent / "cranfield"
BASH = shutil.which("bash")
PROJECT = """\
testsets:
  docs: {path: docs.yaml}
  code: {path: code.yaml}
systems:
  old: {run: old.run}
  newer: {run: new.run}
  novel: {run: novel.run}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "cranfield.yaml").write_text(PROJECT)
    (tmp_path / "new.run").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completed(line, program=CRANFIELD):
    """What the program prints for a line whose last word is completed."""
    words = line.split(" ")
    asked = {VARIABLE: "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([program], env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cranfield ", set(COMMANDS)),
        ("cranfield com", {"compare", "components"}),
        ("cranfield --ver", {"--version"}),
        ("cranfield system ", {"probe", "list", "show", "presets"}),
        ("cranfield testset dif", {"diff"}),
        ("cranfield compare --memo", {"--memory"}),
        ("cranfield compare n", {"newer", "novel", "new.run"}),
        ("cranfield compare docs ol", {"old"}),
        ("cranfield compare d", {"docs"}),
        ("cranfield compare a b c ne", {"newer", "new.run"}),
        ("cranfield evaluate docs old -m nDCG@1", {"nDCG@10"}),
        ("cranfield compare old newer --primary Succ", {"Success@1", "Success@5"}),
        ("cranfield evaluate docs old --convention ", set(CONVENTIONS)),
        ("cranfield explain docs old quep", {"quepid"}),
        ("cranfield compare --test wil", {"wilcoxon"}),
        ("cranfield compare --adjust ", {"max-t", "holm"}),
        ("cranfield compare --fail-on no", {"not-significant"}),
        ("cranfield compare --format j", {"json"}),
        ("cranfield system probe no", {"novel"}),
        ("cranfield components no", {"novel"}),
        ("cranfield run --system ol", {"old"}),
        ("cranfield grid --testset c", {"code"}),
        ("cranfield people add ol", set()),
        ("cranfield measures nD", {"nDCG", "nDCGRel"}),
        ("cranfield --debug compa", {"compare"}),
    ],
)
def test_names_of_every_kind_complete(folder, line, expected):
    assert set(completed(line)) == expected


def test_another_config_gives_the_systems(folder, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("outside"))
    assert completed("cranfield compare ol") == []
    assert completed(f"cranfield compare --config {folder / 'cranfield.yaml'} ol") == ["old"]


def test_a_config_that_cannot_be_read_completes_nothing(folder):
    (folder / "cranfield.yaml").write_text("systems: [")
    assert completed("cranfield compare ol") == []


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_completes_by_the_script_that_is_printed(folder):
    shown = subprocess.run(
        [BASH, "-c", f"{CRANFIELD} --show-completion; true"], capture_output=True, text=True, check=True
    )
    program = (
        f"PATH={CRANFIELD.parent}:$PATH\n{shown.stdout}\n"
        "COMP_WORDS=(cranfield compare docs ol); COMP_CWORD=3\n"
        '_cranfield_completion cranfield\nprintf "%s\\n" "${COMPREPLY[@]}"\ncomplete -p cranfield\n'
    )
    done = subprocess.run([BASH, "--norc", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "old"
    assert "-F _cranfield_completion cranfield" in done.stdout


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_completion_is_installed_for_the_shell_that_asks(folder):
    home = {**os.environ, "HOME": str(folder)}
    done = subprocess.run(
        [BASH, "--norc", "-c", f"{CRANFIELD} --install-completion; true"],
        env=home,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "bash completion is installed in" in done.stdout
    assert any("_cranfield_completion" in path.read_text() for path in folder.glob(".bash_completions/*"))


LINES = ("cranfield com", "cranfield compare docs ol", "cranfield testset ", "cranfield compare -m nD")


@pytest.mark.parametrize("line", LINES)
def test_completion_imports_nothing_heavy(folder, line):
    program = (
        "import sys\nfrom cranfield.cli.completion import complete\n"
        "from cranfield.cli.main import COMMANDS, command_line, requested_command\n"
        "complete(command_line, requested_command, COMMANDS)\n"
        "print([name for name in ('numpy', 'pydantic', 'scipy', 'rich') if name in sys.modules])"
    )
    asked = {VARIABLE: "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert len(done.stdout.splitlines()) > 1


def test_the_measures_that_are_offered_are_those_of_the_catalogue():
    code = "from cranfield.cli.completion import catalogue_names; print(*catalogue_names())"
    # here a page may have defined another measure
    own = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert json.loads(MEASURE_NAMES.read_text(encoding="utf-8")) == own, (
        "`python -m cranfield.cli.completion` writes them"
    )
    offered = list(COMPLETERS["measures"](None))
    assert {name.partition("@")[0] for name in offered} == set(own)
    assert len(offered) == len(set(offered))
    for spelling in USUAL:
        parse(spelling)


def test_every_completer_is_of_a_parameter_of_a_command():
    from tests.unit.cli.test_help import PATHS, leaf

    assert set(COMPLETERS) <= {each.name for path in PATHS for each in leaf(*path).params}
