"""The page about installing names every dependency but the one that draws."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_commands_for_musl_install_every_dependency_but_the_one_that_draws() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs/how-to/install.md").read_text()
    block = next(each for each in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "--no-deps" in each)
    named = set(re.findall(r"'([^']+)'", block))
    assert named == {each for each in project["dependencies"] if not each.startswith("vl-convert-python")}
    assert any(each.startswith("vl-convert-python") and "sys_platform" in each for each in project["dependencies"])
