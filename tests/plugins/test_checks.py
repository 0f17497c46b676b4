"""Checks of test sets that an installed package adds."""

from __future__ import annotations

from datetime import date

import pytest

from cranfield.base.errors import UsageError
from cranfield.evaluation.testset.validate import validate
from cranfield.model import Query, TestSet

TESTSET = TestSet("tiny", (Query("q1", "lost key"), Query("q2", "LOST KEY")), {"q1": {"d1": 1}, "q2": {"d1": 1}})
TODAY = date(2026, 1, 1)
SHOUTING = """
from cranfield.evaluation.testset.validate import Check

def find(subject):
    for query in subject.testset.queries:
        if query.text.isupper():
            yield query.id, "the text is in capitals"

check = Check("shouting", "error", "No text is in capitals.", find)
"""


def test_a_check_of_a_package_finds_and_is_named(install):
    install("cranfield.checks", "check", SHOUTING)
    found = [one for one in validate(TESTSET, today=TODAY).findings if one.check == "shouting"]
    assert [(one.level, one.query_id, one.message) for one in found] == [("error", "q2", "the text is in capitals")]


def test_without_the_package_the_check_is_not_there():
    assert "shouting" not in {one.check for one in validate(TESTSET, today=TODAY).findings}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("check = 3", "check plugin 'toy' of cranfield-toy 1.0: cranfield_toy:check has the wrong type"),
        ("1 / 0", "check plugin 'toy' of cranfield-toy 1.0 failed: ZeroDivisionError: division by zero"),
        (SHOUTING.replace('"shouting"', '"ids"'), "two checks have the name 'ids'"),
    ],
)
def test_a_check_that_cannot_be_used_is_an_error(install, source, message):
    install("cranfield.checks", "check", source)
    with pytest.raises(UsageError) as caught:
        validate(TESTSET, today=TODAY)
    assert caught.value.problems[0].message == message
