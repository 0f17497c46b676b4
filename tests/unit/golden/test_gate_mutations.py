"""The gate over Cranfield's own source: good records pass, and each way of breaking one is caught by the check that claims it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from cranfield.golden.gate import CHECKS, GateCheck


@pytest.fixture(scope="module")
def mutations(checkout: Path, load_script: Callable[[Path], ModuleType]) -> ModuleType:
    return load_script(checkout / "bench" / "gate_mutations.py")


def test_good_records_pass_and_every_kind_of_broken_one_is_caught_by_its_check(mutations):
    source = mutations.own_source()
    good = mutations.good_records(source)
    assert len(good) == 200
    failed = [
        report.checks
        for record in good
        if not (report := mutations.gate(record.candidate, record.answer, record.reads, source)).passed
    ]
    assert failed == []

    reports = list(mutations.run(source, good, each=4))
    assert Counter(kind for kind, _, _ in reports) == dict.fromkeys(mutations.KINDS, 4)
    claimed = {kind: check for kind, (check, _) in mutations.KINDS.items()}
    assert [kind for kind, _, report in reports if claimed[kind] and claimed[kind] not in report.failed] == []
    assert [kind for kind, _, report in reports if claimed[kind] is None and not report.passed] == []
    assert {check for check in claimed.values() if check} == set(GateCheck), "each check has a kind that it catches"
    assert "nothing expected" in mutations.table(reports)


def test_the_pages_list_every_kind_and_every_check(mutations, checkout):
    page = (checkout / "docs/how-to/golden-check.md").read_text()
    measured = (checkout / "docs/explanation/measurements.md").read_text()
    table = measured.partition("```text\nkind")[2].partition("```")[0].splitlines()[1:]
    assert [line[: line.index("  ")] for line in table] == list(mutations.KINDS)
    assert [row for check, spec in CHECKS.items() if (row := f"| `{check}` | {spec.what} |") not in page] == []
