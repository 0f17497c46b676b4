"""Symbols that no check could look up: they are counted, and no answer is a success by them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from tests.unit.benefit.test_score import C, T, cell, coding, plan, score_all

from cranfield.benefit.codecheck.report import CheckReport, CheckState, CodeCheck, CodeFinding, Target
from cranfield.benefit.plan import Success, SuccessBy
from cranfield.benefit.records import ScoreReason
from cranfield.benefit.reports.sections import _passed_text
from cranfield.benefit.result import ValidityKind
from cranfield.benefit.score import Scorer
from cranfield.benefit.tool_check import ScoringFault, check_scoring
from cranfield.benefit.validity import ExperimentRecords, validity

NOTE = "2 of 3 symbols are unknown: a.py:1 x.y: the type of the object is unknown"


class HalfBlind:
    """Knows nothing of two symbols in code with `x.y`; tests pass where there are some."""

    async def check(self, files: Mapping[str, str], target: Target, tests: str = "") -> CheckReport:
        text = "".join(files.values())
        is_known = "x.y" not in text
        state = CheckState.PASSED if is_known else CheckState.UNKNOWN
        states = dict.fromkeys(CodeCheck, CheckState.PASSED) | dict.fromkeys(
            (CodeCheck.SYMBOLS, CodeCheck.AVAILABLE), state
        )
        states |= {CodeCheck.TESTS: CheckState.FAILED} if "wrong" in text or text == "pass\n" else {}
        unknown = (
            ()
            if is_known
            else (CodeFinding(CodeCheck.SYMBOLS, "a.py", 1, "x.y", "the type of the object is unknown"),) * 2
        )
        return CheckReport(states, unknown=unknown, notes=() if is_known else (NOTE,), n_symbols=3)


@pytest.mark.parametrize(
    ("code", "tests", "success", "why"),
    [
        ("x.y", "import a", True, None),
        ("x.y", "", None, ScoreReason.SYMBOLS_UNKNOWN),
        ("x.y # wrong", "import a", False, ScoreReason.TESTS),
        ("fine", "", True, None),
    ],
)
def test_only_tests_that_pass_decide_an_answer_with_unknown_symbols(
    code: str, tests: str, success: bool | None, why: ScoreReason | None
) -> None:
    scorer = Scorer(coding(tests=tests), Success(by=SuccessBy.CODE), checkers=lambda _: HalfBlind())
    (score,) = score_all([cell("c1", T, files={"a.py": code})], scorer).values()
    assert (score.success, score.why) == (success, why)
    is_unknown = "x.y" in code
    assert (score.unknown_symbols, score.notes) == ((2, (NOTE,)) if is_unknown else (0, ()))
    assert score.checks["symbols"] == ("unknown" if is_unknown else "passed")


def test_a_comparison_says_in_how_many_answers_of_each_arm_symbols_are_unknown() -> None:
    scorer = Scorer(coding(), Success(by=SuccessBy.CODE), checkers=lambda _: HalfBlind())
    cells = [cell("c1", T, files={"a.py": "x.y"}), cell("c1", C, files={"a.py": "fine"})]
    scores = score_all(cells, scorer)
    given = ExperimentRecords(plan(Success(by=SuccessBy.CODE)), [each.key for each in cells], cells, scores, [], "", "")
    (found,) = (each for each in validity(given) if each.kind is ValidityKind.SYMBOLS_UNKNOWN)
    assert not found.is_void
    assert "2 symbols in 1 of 1 answer of" in found.message
    assert given.name(T) in found.message
    assert given.name(C) not in found.message


def test_a_plan_without_tests_is_refused_where_the_reference_itself_has_unknown_symbols() -> None:
    tasks = coding(tests="", reference={"a.py": "x.y"})
    (fault,) = asyncio.run(check_scoring(plan(Success(by=SuccessBy.CODE)), tasks, lambda _: HalfBlind()))
    assert fault.kind is ScoringFault.SYMBOLS_UNKNOWN
    assert NOTE in fault.sentence


def test_the_report_does_not_count_unknown_as_passed() -> None:
    assert _passed_text(["passed", "unknown", "missing", "passed"]) == "2 of 4, 1 with unknown symbols, 1 not decided"
