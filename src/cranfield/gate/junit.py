"""A GateResult as JUnit XML, for the test page of a CI server.

Each rule is a test case. A broken rule is a failure; an inconclusive rule is an error of the type `inconclusive`, because
skipped tests are shown as successes. The queries that broke a rule are in the text of its case: cases are rules, and no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

from cranfield.gate.result import GateResult, RuleResult
from cranfield.model import TestSet

_NOT_XML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids or discourages: control characters, surrogates."""
_BLANKS = re.compile(r"\s+")
COUNTS = ("tests", "failures", "errors")
"""Of the root: sums of those of its suites."""


def junit_xml(results: Sequence[tuple[GateResult, TestSet]]) -> str:
    """Results of a gate as the text of a JUnit XML file: one suite per test set. The XML is valid for any text.

    Args:
        results: each with its test set, for the texts of the queries.
    """
    root = ET.Element("testsuites", {"name": "cranfield gate"})
    for result, testset in results:
        _add_suite(root, result, testset)
    for count in COUNTS:
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    return _written(root)


def _written(root: ET.Element) -> str:
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def junit_of_cases(name: str, suite_name: str, cases: Sequence[tuple[str, str, str]]) -> str:
    """Rules of a gate that is not on an evaluation, as the text of a JUnit XML file.

    Args:
        name: of the gate.
        suite_name: of what is gated.
        cases: rule, status and sentence of each.
    """
    root = ET.Element("testsuites", {"name": name})
    suite = ET.SubElement(root, "testsuite", {"name": _line(suite_name), "skipped": "0", "time": "0"})
    for rule, status, sentence in cases:
        case = _empty_case(_line(name.replace(" ", ".")), rule)
        if status != "passed":
            tag = "failure" if status == "failed" else "error"
            ET.SubElement(case, tag, {"type": status, "message": _line(sentence)}).text = _text(sentence)
        suite.append(case)
    for count, tag in {"failures": "failure", "errors": "error"}.items():
        suite.set(count, str(sum(case.find(tag) is not None for case in suite)))
    suite.set("tests", str(len(cases)))
    root.attrib.update({count: suite.get(count, "0") for count in COUNTS})
    return _written(root)


def _add_suite(root: ET.Element, result: GateResult, testset: TestSet) -> None:
    system, of = result.evaluation.name, result.name or result.testset.name or "the test set"
    classname = _line(".".join(["cranfield", "gate", *([result.name] if result.name else []), system]))
    cases = list(_cases(result, classname, {query.id: query.text for query in testset.queries}))
    found = {"failures": "failure", "errors": "error"}
    counts = {count: str(sum(case.find(tag) is not None for case in cases)) for count, tag in found.items()}
    suite = ET.SubElement(root, "testsuite", {"name": _line(f"gate: {system} on {of}"), "tests": str(len(cases))})
    suite.attrib.update({**counts, "skipped": "0", "time": "0"})
    properties = ET.SubElement(suite, "properties")
    for key, value in _properties(result):
        ET.SubElement(properties, "property", {"name": key, "value": _line(value)})
    suite.extend(cases)
    nearest = [(rule.rule, rule.nearest_unseen) for rule in result.rules]
    unseen = [f"{rule}: {unseen.sentence}" for rule, unseen in nearest if unseen is not None]
    ET.SubElement(suite, "system-out").text = _text(
        "\n".join([result.sentence, *unseen, *result.overruled, *result.notes])
    )


def _properties(result: GateResult) -> Iterator[tuple[str, str]]:
    yield "status", result.status
    yield "system", result.evaluation.name
    yield "primary", result.primary
    yield "testset", result.testset.digest
    yield "run", result.evaluation.digest
    if (baseline := result.baseline) is not None:
        yield "baseline", baseline.path
        yield from (
            (f"baseline.{key}", value) for key in ("ref", "commit", "accepted") if (value := getattr(baseline, key))
        )


def _cases(result: GateResult, classname: str, texts: Mapping[str, str | None]) -> Iterator[ET.Element]:
    for rule in result.rules:
        yield _case(classname, rule, texts)
    if result.status == "invalid" or (not result.is_passed and all(rule.status == "passed" for rule in result.rules)):
        case = _empty_case(classname, "the evaluation counts")
        found = {"type": result.status, "message": _line(result.sentence)}
        ET.SubElement(case, "error", found).text = _text(result.sentence)
        yield case


def _case(classname: str, rule: RuleResult, texts: Mapping[str, str | None]) -> ET.Element:
    case, details = _empty_case(classname, f"{rule.kind}: {rule.rule}"), _details(rule, texts)
    if rule.status == "failed":
        ET.SubElement(case, "failure", {"type": rule.kind, "message": _line(rule.sentence)}).text = _text(details)
    elif rule.status == "inconclusive":
        ET.SubElement(case, "error", {"type": "inconclusive", "message": _line(rule.sentence)}).text = _text(details)
    return case


def _empty_case(classname: str, name: str) -> ET.Element:
    return ET.Element("testcase", {"classname": classname, "name": _line(name), "time": "0"})


def _details(rule: RuleResult, texts: Mapping[str, str | None]) -> str:
    lines = [rule.sentence, f"rule: {rule.rule}", f"expected: {rule.expected}", f"got: {rule.got}"]
    return "\n".join(
        [*lines, *(f"query: {query_id} {texts.get(query_id) or ''}".rstrip() for query_id in rule.queries)]
    )


def _text(text: str) -> str:
    """Text for XML; characters that it forbids are replaced by their code points."""
    return _NOT_XML.sub(_spelled, text)


def _line(text: str) -> str:
    return _BLANKS.sub(" ", _text(text)).strip()


def _spelled(found: re.Match[str]) -> str:
    number = ord(found.group())
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
