"""What a gate said as JUnit XML: valid whatever the text, nothing hidden, in the shape that CI servers read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Query, TestSet, evaluate
from cranfield.base.errors import UsageError
from cranfield.config.models import Limits
from cranfield.gate.gate_input import GateInput
from cranfield.gate.junit import junit_xml
from cranfield.gate.result import BaselineFacts, GateResult, GateStatus, RuleResult, Status
from cranfield.gate.use_cases.ci import write_junit
from cranfield.gate.verdict import GateTerms, judge_all
from cranfield.measures import parse

HOSTILE = "]]> <b>&amp; \x00\x08\x1b[31m\ud800\ufffe \u202e \U0001f642 \"'\r\n\ttail"
# Of each element: attributes that must be there, attributes that may be, and children in their order; as the schema that
# Jenkins publishes for its JUnit reader has them.
SHAPE: Mapping[str, tuple[set[str], set[str], list[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "disabled", "errors"}, ["testsuite"]),
    "testsuite": (
        {"name", "tests"},
        {"failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package"},
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "properties": (set(), set(), ["property"]),
    "property": ({"name", "value"}, set(), []),
    "testcase": (
        {"name", "classname"},
        {"assertions", "time", "status"},
        ["skipped", "error", "failure", "system-out", "system-err"],
    ),
    "failure": (set(), {"type", "message"}, []),
    "error": (set(), {"type", "message"}, []),
    "system-out": (set(), set(), []),
}


def check_shape(element: ET.Element) -> None:
    required, allowed, children = SHAPE[element.tag]
    assert required <= set(element.keys()) <= required | allowed, element.tag
    places = [children.index(child.tag) for child in element]
    assert places == sorted(places), element.tag
    for child in element:
        check_shape(child)


def rule(
    status: Status, *, kind: str = "floor", queries: tuple[str, ...] = (), words: str = "RR is at least 0.4"
) -> RuleResult:
    return RuleResult(
        kind, words, status, "0.3500", "at least 0.4", "RR is 0.3500, at least 0.4 is required (n = 2)", queries
    )


def result(
    *rules: RuleResult, status: GateStatus = "failed", text: str = "apple", baseline: BaselineFacts | None = None
) -> tuple[GateResult, TestSet]:
    testset = TestSet("fruit", (Query("q1", text), Query("q2", "pear")), grades={"q1": {"a": 1}, "q2": {"b": 1}})
    evaluation = evaluate(testset, {"q1": ["a"], "q2": ["x", "b"]}, measures=["RR"], name="mine")
    found = judge_all(GateInput(evaluation), GateTerms((), Limits(), parse("RR"), baseline))
    return replace(found, status=status, explanation=f"1 of {len(rules)} rules", rules=rules), testset


def parsed(*results: tuple[str, tuple[GateResult, TestSet]]) -> ET.Element:
    root = ET.fromstring(junit_xml([(replace(found, name=name), of) for name, (found, of) in results]).encode())
    check_shape(root)
    for counted in (root, *root):
        cases = list(counted.iter("testcase"))
        assert int(counted.attrib["tests"]) == len(cases)
        assert int(counted.attrib["failures"]) == sum(case.find("failure") is not None for case in cases)
        assert int(counted.attrib["errors"]) == sum(case.find("error") is not None for case in cases)
    return root


def test_a_rule_is_a_test_case_that_names_its_queries_with_their_texts() -> None:
    root = parsed(
        (
            "",
            result(
                rule("passed", queries=("q1",)),
                rule("failed", kind="ratchet", words="RR does not get worse", queries=("q2", "q1")),
            ),
        )
    )
    names = [(case.attrib["classname"], case.attrib["name"]) for case in root.iter("testcase")]
    assert names == [
        ("cranfield.gate.mine", "floor: RR is at least 0.4"),
        ("cranfield.gate.mine", "ratchet: RR does not get worse"),
    ]
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("2", "1", "0"), "one of two rules"
    failures = list(root.iter("failure"))
    assert failures[0].attrib == {"type": "ratchet", "message": "RR is 0.3500, at least 0.4 is required (n = 2)"}
    assert "expected: at least 0.4\ngot: 0.3500\nquery: q2 pear\nquery: q1" in (failures[0].text or "")


def test_inconclusive_is_an_error_of_its_own_and_nothing_is_skipped() -> None:
    root = parsed(("", result(rule("passed"), rule("inconclusive", kind="drop"), status="inconclusive")))
    assert [error.attrib["type"] for error in root.iter("error")] == ["inconclusive"]
    assert (root.attrib["failures"], root.attrib["errors"]) == ("0", "1")
    assert not list(root.iter("skipped"))
    assert {suite.attrib["skipped"] for suite in root} == {"0"}


@pytest.mark.parametrize("status", ["failed", "inconclusive", "invalid"])
def test_a_gate_that_is_not_passed_is_never_all_green(status: GateStatus) -> None:
    root = parsed(("", result(rule("passed"), status=status)))
    (error,) = root.iter("error")
    assert error.attrib == {"type": status, "message": f"{status}: 1 of 1 rules"}


def test_a_gate_that_is_passed_is_all_green() -> None:
    root = parsed(("", result(rule("passed"), rule("passed", kind="failures"), status="passed")))
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("2", "0", "0")


def test_each_test_set_is_a_suite() -> None:
    root = parsed(("code", result(rule("failed"))), ("docs", result(rule("passed"), status="passed")))
    assert [suite.attrib["name"] for suite in root] == ["gate: mine on code", "gate: mine on docs"]
    assert [suite.attrib["failures"] for suite in root] == ["1", "0"]
    assert {case.attrib["classname"] for case in root.iter("testcase")} == {
        "cranfield.gate.code.mine",
        "cranfield.gate.docs.mine",
    }


def test_what_was_compared_is_named() -> None:
    facts = BaselineFacts("baseline.json", "origin/main", "mine", "abc123", "2026-11-20")
    root = parsed(("", result(rule("passed"), status="passed", baseline=facts)))
    properties = {one.attrib["name"]: one.attrib["value"] for one in root.iter("property")}
    assert properties["baseline"] == "baseline.json"
    assert (properties["baseline.ref"], properties["baseline.commit"]) == ("origin/main", "abc123")
    assert properties["testset"].startswith("sha256:")


def test_hostile_text_is_valid_xml_and_shown_by_its_number() -> None:
    root = parsed(("", result(rule("failed", queries=("q1", HOSTILE), words=HOSTILE), text=HOSTILE)))
    text = ET.tostring(root, encoding="unicode")
    for spelled in ("\\x00", "\\x1b[31m", "\\ud800", "\\ufffe"):
        assert spelled in text
    assert "\x1b" not in text
    assert all("\n" not in case.attrib["name"] for case in root.iter("testcase"))


@given(st.text(st.characters(), max_size=30))
def test_any_text_gives_valid_xml(text: str) -> None:
    parsed((text, result(rule("failed", words=text, queries=(text,)))))


def test_it_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    write_junit([result(rule("failed"))], path)
    assert ET.fromstring(path.read_bytes()).tag == "testsuites"
    assert path.read_text().startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites')
    with pytest.raises(UsageError, match="no such file"):
        write_junit([result(rule("failed"))], tmp_path / "gone" / "junit.xml")
