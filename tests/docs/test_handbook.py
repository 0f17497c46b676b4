"""The files of examples/handbook are those the tutorial writes, so that README and tutorial speak of one search."""

import re

import pytest

FILE = re.compile(r"`(?P<name>[\w./-]+)`:\n\n```\w+\n(?P<text>.*?)```", re.DOTALL)


@pytest.mark.parametrize("name", ["handbook.json", "search.py", "queries.yaml", "cranfield.yaml"])
def test_the_handbook_is_the_tutorials(checkout, name):
    tutorial = (checkout / "docs" / "tutorial.md").read_text(encoding="utf-8")
    written = {match["name"]: match["text"] for match in FILE.finditer(tutorial)}
    assert (checkout / "examples" / "handbook" / name).read_text(encoding="utf-8") == written[name]
