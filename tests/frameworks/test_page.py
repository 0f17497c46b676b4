"""The examples of the page on frameworks."""

from pathlib import Path

import pytest
from sybil import Document
from tests.docs.test_examples import CHECKOUT, FRAMEWORK_PAGES, UPDATES, failures, parse_page, update_page


@pytest.mark.parametrize("page", sorted(FRAMEWORK_PAGES))
def test_the_examples_have_the_output_that_the_page_shows(
    page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "my_rag", raising=False)
    document = Document.parse(str(CHECKOUT / page), parse_page)
    found = failures(document)
    if UPDATES in document.namespace:
        update_page(CHECKOUT / page, document)
    assert not found, "\n\n".join(found)
