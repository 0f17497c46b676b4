"""The tests that peers publish with their packages, against our drop-in modules."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

NO_DEFINE = (
    "has no attribute 'define",
    "`define` and `define_byquery` are not offered: a measure of one's own goes by `cranfield.measures.own.define`",
)
INSIDES = "has no attribute 'util'", "it reaches for `ir_measures.util`, which is not offered"
DIFFERENCES = {
    "test_compat.test_measures": ("compat.qrels: no such file", "compat.qrels and compat.run are not in the package"),
    "test_cwl_eval.test_measures": ("cwl.qrels: no such file", "cwl.qrels and cwl.run are not in the package"),
    "test_providers.test_empty": (
        "no row in this run",
        "an empty run, and one of no judged query, is refused by name, and is not worth 0",
    ),
    "test_runtime.test_define": NO_DEFINE,
    "test_runtime.test_define_byquery": NO_DEFINE,
    "test_runtime.test_non_doc_qrels": NO_DEFINE,
    "test_runtime.test_run_qrel_inputs": NO_DEFINE,
    "test_util.test_parse_measure": (
        "has two cutoffs",
        "two cutoffs, as in nDCG(cutoff=20)@10, are refused; there the second counts",
    ),
    "test_util.test_parse_trec_measure": (
        "Lists differ: [NumQ, NumRet, NumRel, NumRelRet, AP, GMAP",
        "`official` has trec_eval's measures in trec_eval's order, GMAP among them",
    ),
    "test_util.test_qrels_converter": INSIDES,
    "test_util.test_run_converter": INSIDES,
}
"""Test to what its failure says, and why; one that fails otherwise, and one that passes although it stands here, fail too."""
NO_TESTS = "pytrec_eval-terrier, ranx, rank_eval, trectools"
"""Values are compared with their live code, in tests/parity and tests/unit."""


@pytest.fixture(scope="module")
def outcomes():
    """Test to the messages of its failures: none where it passed."""
    place = Path(os.environ["CRANFIELD_PEERS"])
    (place / "tests" / "__init__.py").touch()
    plugins = ["-p", "as_ir_measures", "-p", "no:randomly", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, "--junitxml=found.xml", "tests"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(place)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (place / "found.xml").exists(), done.stdout + done.stderr
    found: dict[str, list[str]] = {}
    for case in ET.parse(place / "found.xml").getroot().iter("testcase"):
        name = f"{case.get('classname', '').split('.')[1]}.{case.get('name')}"
        messages = [each.get("message", "") for each in case if each.tag in {"failure", "error"}]
        found.setdefault(name, []).extend(messages)
    return found


def test_ir_measures(outcomes):
    failed = {name: messages for name, messages in outcomes.items() if messages}
    other = {
        name: messages
        for name, messages in failed.items()
        if name not in DIFFERENCES or not all(DIFFERENCES[name][0] in message for message in messages)
    }
    passed = DIFFERENCES.keys() - failed.keys()
    row = "{:<14}{:>7}{:>8}{:>8}{:>11}".format
    print(f"\n\n{row('suite', 'tests', 'passed', 'failed', 'declared')}")
    print(row("ir_measures", len(outcomes), len(outcomes) - len(failed), len(failed), len(DIFFERENCES)))
    for name, (_, reason) in DIFFERENCES.items():
        print(f"  {name}: {reason}")
    print(f"no tests in the package: {NO_TESTS}")
    assert not other, f"not as declared: {other}"
    assert not passed, f"declared as different, and passed: {sorted(passed)}"
