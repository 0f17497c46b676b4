"""Completion as a shell asks for it: through the program, by the protocol of bash and zsh."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cranfield.cli import registries
from cranfield.cli.main import command_table
from cranfield.measures import parse
from cranfield.model import CONVENTIONS

CRANFIELD = Path(sys.executable).parent / "cranfield"
BASH = shutil.which("bash")


def completed(line):
    """What the program prints for a line whose last word is completed."""
    words = line.split(" ")
    asked = {"_CRANFIELD_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(["cranfield"], env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cranfield ", set(command_table().modules)),
        ("cranfield com", {"compare", "components"}),
        ("cranfield --ver", {"--version"}),
        ("cranfield system ", {"probe", "list", "show", "presets"}),
        ("cranfield testset dif", {"diff"}),
        ("cranfield compare --memo", {"--memory"}),
        ("cranfield compare docs ol", set()),
        ("cranfield evaluate docs old -m nDCG@1", {"nDCG@10"}),
        ("cranfield compare old newer --primary Succ", {"Success@5", "Success"}),
        ("cranfield measures nD", {"nDCG@10", "nDCG", "nDCGRel"}),
        ("cranfield evaluate docs old --convention ", set(CONVENTIONS)),
        ("cranfield explain docs old quep", {"quepid"}),
        ("cranfield compare --test wil", {"wilcoxon"}),
        ("cranfield compare --adjust ", {"max-t", "holm"}),
        ("cranfield compare --fail-on no", {"not-significant"}),
        ("cranfield compare --format j", {"json"}),
        ("cranfield compare --run-format tre", {"trec"}),
        ("cranfield compare --testset-format qr", {"qrels"}),
        ("cranfield --debug compa", {"compare"}),
    ],
)
def test_names_of_every_kind_complete(line, expected):
    assert set(completed(line)) == expected


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_completes_by_the_script_that_is_printed():
    shown = subprocess.run(
        [BASH, "-c", f"{CRANFIELD} --show-completion; true"], capture_output=True, text=True, check=True
    )
    program = (
        f"PATH={CRANFIELD.parent}:$PATH\n{shown.stdout}\n"
        "COMP_WORDS=(cranfield explain docs old quep); COMP_CWORD=4\n"
        '_cranfield_completion cranfield\nprintf "%s\\n" "${COMPREPLY[@]}"\ncomplete -p cranfield\n'
    )
    done = subprocess.run([BASH, "--norc", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "quepid"
    assert "-F _cranfield_completion cranfield" in done.stdout


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_completion_is_installed_for_the_shell_that_asks(tmp_path):
    home = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(
        [BASH, "--norc", "-c", f"{CRANFIELD} --install-completion; true"],
        env=home,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "bash completion installed in" in done.stdout
    assert any("_cranfield_completion" in path.read_text() for path in tmp_path.glob(".bash_completions/*"))


def test_measures_are_the_default_ones_and_those_of_the_catalogue():
    offered = registries.measures()
    assert len(offered) == len(set(offered))
    assert offered[0] == str(parse("nDCG@10"))
    assert {"AP", "nDCG"} <= set(offered)
