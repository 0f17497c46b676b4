"""JUnit XML, for the test page of a CI server: valid for any text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

_NOT_XML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids or discourages: control characters, surrogates."""
_BLANKS = re.compile(r"\s+")
COUNTS = ("tests", "failures", "errors")
"""Counts of the root: sums of those of its suites."""


def written_xml(root: ET.Element) -> str:
    """The text of a file."""
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
    suite = ET.SubElement(root, "testsuite", {"name": xml_line(suite_name), "skipped": "0", "time": "0"})
    for rule, status, sentence in cases:
        case = empty_case(xml_line(name.replace(" ", ".")), rule)
        if status != "passed":
            tag = "failure" if status == "failed" else "error"
            ET.SubElement(case, tag, {"type": status, "message": xml_line(sentence)}).text = xml_text(sentence)
        suite.append(case)
    for count, tag in {"failures": "failure", "errors": "error"}.items():
        suite.set(count, str(sum(case.find(tag) is not None for case in suite)))
    suite.set("tests", str(len(cases)))
    root.attrib.update({count: suite.get(count, "0") for count in COUNTS})
    return written_xml(root)


def empty_case(classname: str, name: str) -> ET.Element:
    """A case that passed."""
    return ET.Element("testcase", {"classname": classname, "name": xml_line(name), "time": "0"})


def xml_text(text: str) -> str:
    """Text for XML; characters that it forbids are replaced by their code points."""
    return _NOT_XML.sub(_spelled, text)


def xml_line(text: str) -> str:
    """Text for XML, in one line."""
    return _BLANKS.sub(" ", xml_text(text)).strip()


def _spelled(found: re.Match[str]) -> str:
    number = ord(found.group())
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
