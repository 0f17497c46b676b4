"""The tests that peers publish with their packages, against our drop-in modules."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

NO_FILE = "the published package lacks the file that this test reads"
NO_DEFINE = (
    "`define` and `define_byquery` are not offered: a measure of one's own goes by `cranfield.measures.own.define`"
)
INSIDES = "it reaches for `ir_measures.util`, which is not offered"
DIFFERENCES = {
    "test_compat.test_measures": NO_FILE,
    "test_cwl_eval.test_measures": NO_FILE,
    "test_gdeval.test_ERR": "gdeval.pl prints five decimals; the values are equal to those",
    "test_gdeval.test_nDCG": (
        "asked directly, gdeval has exponential gains whatever the measure says: .6201 is nDCG(dcg='exp-log2')@20. "
        "Asked as its users do, ir_measures itself gives .6585 for nDCG@20, as we do"
    ),
    "test_providers.test_empty": "an empty run, and one of no judged query, is refused by name, and is not worth 0",
    "test_ranx.test_P": "SetP@k is of one of its libraries alone: P@k is that number",
    "test_runtime.test_define": NO_DEFINE,
    "test_runtime.test_define_byquery": NO_DEFINE,
    "test_runtime.test_non_doc_qrels": NO_DEFINE,
    "test_runtime.test_run_qrel_inputs": NO_DEFINE,
    "test_util.test_parse_measure": "two cutoffs, as in nDCG(cutoff=20)@10, are refused; there the second counts",
    "test_util.test_parse_trec_measure": "`official` has trec_eval's measures in trec_eval's order, GMAP among them",
    "test_util.test_qrels_converter": INSIDES,
    "test_util.test_run_converter": INSIDES,
}
"""Test to why it does not pass; a test that passes although it stands here fails too."""


def test_ir_measures():
    place = Path(os.environ["CRANFIELD_PEERS"])
    (place / "tests" / "__init__.py").touch()
    words = [
        "-q",
        "-p",
        "as_ir_measures",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "--junitxml=found.xml",
        "tests",
    ]
    paths = os.pathsep.join([str(Path(__file__).parent), str(place)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=place,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (place / "found.xml").exists(), done.stdout + done.stderr
    cases = ET.parse(place / "found.xml").getroot().iter("testcase")
    failed: dict[str, list[str]] = {}
    passed: set[str] = set()
    for case in cases:
        name = f"{case.get('classname', '').split('.')[1]}.{case.get('name')}"
        problems = [each.get("message", "") for each in case if each.tag in {"failure", "error"}]
        passed.add(name)
        failed.setdefault(name, []).extend(problems)
    wrong = {name: problems for name, problems in failed.items() if problems}
    print(f"\nir_measures: {len(passed)} tests, {len(passed) - len(wrong)} passed, {len(wrong)} differ")
    for name, problems in wrong.items():
        print(f"  {name}: {DIFFERENCES.get(name, '; '.join(problems)[:300])}")
    assert wrong.keys() == DIFFERENCES.keys(), done.stdout[-5000:]
