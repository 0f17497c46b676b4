"""The limits that the page states are those of the code."""

from pathlib import Path

import pytest

from cranfield.base import patterns
from cranfield.base.concurrency import retry
from cranfield.formats.io import files
from cranfield.gate.forge import api
from cranfield.repo import git
from cranfield.systems.calls import deaths

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "collect-runs.md"


@pytest.mark.parametrize(
    "text",
    [
        f"{patterns.SEARCH_S:g} s for a query",
        f"at most {retry.MAX_WAIT_S:g} s; after {deaths.MAX_UNREACHED} queries in a row",
        f"after {deaths.MAX_DEATHS} queries in a row",
        f"again after {deaths.PAUSE_S:g} s",
        f"opens for writing: {files.WRITER_S:g} s",
        f"{api.TOTAL_S:g} s for a request, {api.ATTEMPTS} requests",
        f"{git.GIT_S} s; it runs without a terminal",
    ],
)
def test_a_limit_of_the_page_is_that_of_the_code(text):
    _, _, section = PAGE.read_text().partition("## What ends a wait")
    assert text in section.partition("\n## ")[0]
