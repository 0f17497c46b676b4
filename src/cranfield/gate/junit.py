"""A GateResult as JUnit XML, for the test page of a CI server.

Each rule is a test case. A broken rule is a failure; an inconclusive rule is an error of the type `inconclusive`, because
skipped tests are shown as successes. The queries that broke a rule are in the text of its case: cases are rules, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

from cranfield.gate.result import GateResult, RuleResult
from cranfield.model import TestSet
from cranfield.reporting.junit import COUNTS, empty_case, written_xml, xml_line, xml_text


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
    return written_xml(root)


def _add_suite(root: ET.Element, result: GateResult, testset: TestSet) -> None:
    system, of = result.evaluation.name, result.name or result.testset.name or "the test set"
    classname = xml_line(".".join(["cranfield", "gate", *([result.name] if result.name else []), system]))
    cases = list(_cases(result, classname, {query.id: query.text for query in testset.queries}))
    found = {"failures": "failure", "errors": "error"}
    counts = {count: str(sum(case.find(tag) is not None for case in cases)) for count, tag in found.items()}
    suite = ET.SubElement(root, "testsuite", {"name": xml_line(f"gate: {system} on {of}"), "tests": str(len(cases))})
    suite.attrib.update({**counts, "skipped": "0", "time": "0"})
    properties = ET.SubElement(suite, "properties")
    for key, value in _properties(result):
        ET.SubElement(properties, "property", {"name": key, "value": xml_line(value)})
    suite.extend(cases)
    nearest = [(rule.rule, rule.nearest_unseen) for rule in result.rules]
    unseen = [f"{rule}: {unseen.sentence}" for rule, unseen in nearest if unseen is not None]
    ET.SubElement(suite, "system-out").text = xml_text(
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
        case = empty_case(classname, "the evaluation counts")
        found = {"type": result.status, "message": xml_line(result.sentence)}
        ET.SubElement(case, "error", found).text = xml_text(result.sentence)
        yield case


def _case(classname: str, rule: RuleResult, texts: Mapping[str, str | None]) -> ET.Element:
    case, details = empty_case(classname, f"{rule.kind}: {rule.rule}"), _details(rule, texts)
    if rule.status == "failed":
        ET.SubElement(case, "failure", {"type": rule.kind, "message": xml_line(rule.sentence)}).text = xml_text(details)
    elif rule.status == "inconclusive":
        ET.SubElement(case, "error", {"type": "inconclusive", "message": xml_line(rule.sentence)}).text = xml_text(
            details
        )
    return case


def _details(rule: RuleResult, texts: Mapping[str, str | None]) -> str:
    lines = [rule.sentence, f"rule: {rule.rule}", f"expected: {rule.expected}", f"got: {rule.got}"]
    return "\n".join(
        [*lines, *(f"query: {query_id} {texts.get(query_id) or ''}".rstrip() for query_id in rule.queries)]
    )
