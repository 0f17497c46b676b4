"""Every measure with the largest cutoff, and with parameters of any size, takes less than a second and little memory."""

from __future__ import annotations

import time
import tracemalloc
from contextlib import suppress

import pytest

from cranfield.app.evaluate import score
from cranfield.base.errors import CranfieldError
from cranfield.evaluation.options.blocks import ScoringOptions
from cranfield.formats.testsets.trec import read_judge_qrels, read_preferences, read_qrels, read_subtopic_qrels
from cranfield.measures import parse
from cranfield.measures.catalogue import CATALOGUE
from cranfield.measures.sums import AT_ONCE, log_discounts
from cranfield.model import TestSet

LARGEST = 2**31 - 1
SETS = {
    read_qrels: "q1 0 a 2\nq1 0 b 1\nq1 0 c 0\nq2 0 a 1\nq2 0 d 1\n",
    read_subtopic_qrels: "q1 1 a 2\nq1 2 b 1\nq1 1 c 0\nq2 1 a 1\nq2 2 d 1\n",
    read_judge_qrels: "q1 1 a 2\nq1 2 b 1\nq1 1 c 0\nq2 1 a 1\nq2 2 d 1\n",
    read_preferences: "q1 1 0 a 2\nq1 1 0 b 1\nq2 1 0 a 1\nq2 1 0 d 2\n",
}
RUN = {"q1": {"b": 3.0, "a": 2.0, "x": 1.0}, "q2": {"d": 3.0, "y": 1.0}}
VALUES = (LARGEST, 10**18, 10**400, 1e300, -1e300, 1e-300, 0, "x" * 5000)


@pytest.fixture(scope="module")
def testsets(tmp_path_factory) -> list[TestSet]:
    folder, found = tmp_path_factory.mktemp("sets"), []
    for read, text in SETS.items():
        (folder / "set").write_text(text)
        found.append(read(folder / "set"))
    return found


def spellings(name: str) -> list[str]:
    cutoffs = [f"{name}@{cutoff}" for cutoff in (LARGEST, LARGEST - 1, 10**12, 10**400)]
    parameters = [f"{name}({p.name}={value!r})" for p in CATALOGUE[name].parameters for value in VALUES]
    return [*cutoffs, *(text + cut for text in parameters for cut in ("", "@10", f"@{LARGEST}"))]


def check(testsets: list[TestSet], spelling: str) -> None:
    begin = time.process_time()
    for testset in testsets:
        with suppress(CranfieldError):
            score(testset, RUN, [parse(spelling)], ScoringOptions())
    assert time.process_time() - begin < 1.0, spelling


def test_the_largest_cutoff_of_every_measure_takes_no_time(testsets):
    tracemalloc.start()
    for name in ("SDCG", "alpha_DCG", "NRBP", "nERR", "nDCG", "BPM", "INST", "Compat"):
        check(testsets[1:2], f"{name}@{LARGEST}")
    check(testsets[1:2], f"alpha_DCG(alpha=1e-300)@{LARGEST}")
    assert tracemalloc.get_traced_memory()[1] < 150_000_000
    tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CATALOGUE])
def test_no_size_of_a_parameter_takes_time(testsets, name):
    for spelling in spellings(name):
        check(testsets, spelling)


def test_a_sum_over_many_ranks_is_that_of_its_terms():
    # sum of 1 / log2(i + 1) to 2^20 + 3: added one by one
    assert log_discounts(AT_ONCE + 3) == pytest.approx(log_discounts(AT_ONCE) + 3 / 20.0000027, rel=1e-12)
    assert log_discounts(5_000_000) == pytest.approx(241657.42528178392, rel=1e-14)
