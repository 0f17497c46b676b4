"""The table of verdicts: every code has one row, and every spelling, old or new, is read."""

from __future__ import annotations

import json

import pytest

from cranfield.base.errors import UnknownNameError
from cranfield.evaluation.verdict_table import VerdictCode, parse_verdict

TEXTS = {
    "better": "better",
    "worse": "worse",
    "not_significant": "no significant difference",
    "equivalent": "equivalent",
    "non_inferior": "non-inferior",
    "mixed": "mixed",
    "invalid": "invalid",
    "one_best": "one best",
    "several_best": "several best",
    "helps": "helps",
    "hurts": "hurts",
    "faster": "faster",
    "slower": "slower",
    "negligible": "negligible",
    "not_claimed": "no verdict",
}


def test_every_code_has_one_row_and_its_text() -> None:
    assert {code.value: code.text for code in VerdictCode} == TEXTS
    assert all(VerdictCode(code.value) is code and code.meaning.endswith(".") for code in VerdictCode)
    assert json.dumps({"verdict": VerdictCode.NOT_SIGNIFICANT}) == '{"verdict": "not_significant"}'


@pytest.mark.parametrize("code", VerdictCode)
def test_a_verdict_is_read_by_code_and_by_text(code: VerdictCode) -> None:
    for spelling in (code.value, code.text, code.value.replace("_", "-"), code.text.upper()):
        assert parse_verdict(spelling) is code


def test_an_unknown_verdict_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="beter") as caught:
        parse_verdict("beter")
    assert "better" in str(caught.value)
