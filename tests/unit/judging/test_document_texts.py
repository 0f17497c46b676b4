"""Texts of documents: the runs, a program, files."""

import pytest

from cranfield.judging.documents.texts import DocumentTexts


def test_the_fields_of_the_runs_are_the_default():
    document = DocumentTexts().get("d1", {"title": " A  lock ", "snippet": "How to lock", "url": "https://x.org/1"})
    assert (document.title, document.text, document.url) == ("A lock", "How to lock", "https://x.org/1")
    assert document.problem is None


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://", "http://[", "//x", 7, None, "data:text/html,x"])
def test_an_address_that_no_browser_should_open_is_left_out(url):
    assert DocumentTexts().get("d1", {"text": "x", "url": url}).url == ""
