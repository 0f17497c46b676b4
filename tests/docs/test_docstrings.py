"""Every example in a docstring of the package gives what it shows."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import cranfield

PACKAGE = Path(cranfield.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_give_what_they_show(name: str) -> None:
    module = importlib.import_module(name)
    n_examples = Path(module.__file__ or "").read_text(encoding="utf-8").count(">>> ")
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS) == (0, n_examples)
