"""What pages and examples say of the installation is true: an extra is added to what is installed, from wherever that came."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
EXTRAS = set(tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
INSTALLED_BY_TESTS = {"huggingface", "spark"}
"""Extras that `make setup` leaves out."""
OF_EXTRAS = re.compile(r"cranfield\[(?P<extras>[a-z,]+)\]")


def pages() -> Iterator[Path]:
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/how-to/*.md",
        "docs/explanation/*.md",
        "docs/studies/*.md",
        "examples/**/*",
    ):
        yield from (path for path in CHECKOUT.glob(pattern) if path.suffix in {".md", ".yml", ".yaml", ".ipynb"})


def wrong_installs(text: str) -> Iterator[str]:
    """Instructions that fail: a package index has no `cranfield`, so that a bare name finds nothing where it is not installed."""
    for found in re.finditer(r"pip install (?P<what>[^`\n]*)", text):
        for word in re.split(r"\s+", found["what"]):
            name = word.strip("'\"")
            if name == "cranfield" or re.match(r"cranfield[=<>~]", name):
                yield found[0]
    for found in OF_EXTRAS.finditer(text):
        if unknown := set(found["extras"].split(",")) - EXTRAS:
            yield f"{found[0]}: no extra {', '.join(sorted(unknown))}"


def test_every_instruction_to_install_names_what_can_be_installed() -> None:
    found = {path.relative_to(CHECKOUT).as_posix(): list(wrong_installs(path.read_text())) for path in pages()}
    assert len(found) > 80
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("`pip install .`", 0),
        ("pip install 'cranfield[web,mcp]'", 0),
        ("pip install pytest", 0),
        ("pip install cranfield", 1),
        ("pip install cranfield pytest", 1),
        ("pip install cranfield==0.1", 1),
        ("pip install 'cranfield[wbe]'", 1),
    ],
)
def test_a_wrong_instruction_is_found(text: str, n: int) -> None:
    assert len(list(wrong_installs(text))) == n


def test_pip_adds_an_extra_to_what_is_installed_without_an_index() -> None:
    extras = ",".join(sorted(EXTRAS - INSTALLED_BY_TESTS))
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-index", "--dry-run"]
    done = subprocess.run([*pip, f"cranfield[{extras}]"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Would install" not in done.stdout


def test_the_commands_for_musl_install_every_dependency_but_the_one_that_draws() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    page = (CHECKOUT / "docs/how-to/install.md").read_text()
    block = next(each for each in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "--no-deps" in each)
    named = set(re.findall(r"'([^']+)'", block))
    assert named == {each for each in project["dependencies"] if not each.startswith("vl-convert-python")}
    assert any(each.startswith("vl-convert-python") and "sys_platform" in each for each in project["dependencies"])
