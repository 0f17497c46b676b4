"""What a list of results shows beside an id: the title, else the beginning of the text."""

import pytest

from cranfield import evaluate, load, report
from cranfield.model import Hit


@pytest.mark.parametrize(
    ("title", "fields", "shown"),
    [
        ("Title", {"text": "a text"}, "Title"),
        (None, {"text": "a\n  text"}, "a text"),
        (None, {"text": " ", "content": "more"}, "more"),
        (None, {"snippet": "short", "text": "long"}, "short"),
        (None, {"url": "http://a.example"}, None),
        (None, {"text": 3}, None),
        (None, None, None),
        ("", {"text": "a text"}, "a text"),
    ],
)
def test_the_beginning_of_the_text_stands_for_a_title(title, fields, shown):
    assert Hit("d", title=title, fields=fields).shown_title == shown


def test_a_long_text_is_cut():
    shown = Hit("d", fields={"text": "word " * 1_000_000}).shown_title
    assert len(shown) <= 120
    assert shown.endswith("…")


def test_lists_of_a_report_show_it():
    hits = (
        Hit("d1", fields={"text": "how to change a tyre"}),
        Hit("d2", title="Deposit", fields={"text": "not shown"}),
    )
    shown = report(evaluate(load({"q1": {"d2": 1}}), {"q1": hits}, measures=["RR"]), format="html")
    assert "how to change a tyre" in shown
    assert "not shown" not in shown
