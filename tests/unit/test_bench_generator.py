"""The data of the benchmark: the same seed gives the same bytes, and they are what the tools expect."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture(scope="module")
def generate(checkout: Path, load_script: Callable[[Path], ModuleType]) -> ModuleType:
    return load_script(checkout / "bench" / "generate.py")


def tiny(generate: ModuleType, name: str):
    judged = {"S": (10, 20), "M": (7, 0)}[name]
    return replace(generate.SIZES[name], n_queries=5, depth=40, judged=judged)


@pytest.mark.parametrize("name", ["S", "M"])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(generate, tmp_path, name):
    size = tiny(generate, name)
    first, again = (generate.make(size, tmp_path / folder, seed=3) for folder in ("a", "b"))
    assert first == again
    other = generate.make(size, tmp_path / "c", seed=4)
    assert other["run_sha256"] != first["run_sha256"]
    assert other["qrels_sha256"] != first["qrels_sha256"]


def test_the_bytes_of_a_seed_do_not_change_from_version_to_version(generate, tmp_path):
    made = generate.make(tiny(generate, "S"), tmp_path, seed=3)
    assert made["run_sha256"] == "61fa6d63093ecca29115d27e27348913e2f5eff9acea48699668b67244ffe4d8"
    assert made["qrels_sha256"] == "32e03ceef1498aaf81943a87ed67a781e6c766bd547124099f140448aebbe8cf"


def test_what_is_there_is_not_made_again(generate, tmp_path):
    size = tiny(generate, "M")
    generate.make(size, tmp_path)
    run = tmp_path / "M.run"
    before = run.stat().st_mtime_ns
    generate.make(size, tmp_path)
    assert run.stat().st_mtime_ns == before
    run.write_bytes(run.read_bytes()[:-1])  # cut short: made anew
    generate.make(size, tmp_path)
    assert run.read_bytes().endswith(b" run\n")


def test_the_run_is_in_trec_format_with_falling_scores_and_no_document_twice(generate, tmp_path):
    size = replace(tiny(generate, "S"), depth=1000)
    generate.make(size, tmp_path)
    lines = (tmp_path / "S.run").read_text().splitlines()
    assert len(lines) == 5 * 1000
    assert all(re.fullmatch(r"\d+ Q0 FBIS3-\d+ \d+ \d+\.\d{6} run", line) for line in lines)
    rows = [line.split() for line in lines]
    for query in {row[0] for row in rows}:
        own = [row for row in rows if row[0] == query]
        assert [int(row[3]) for row in own] == list(range(1, 1001))
        assert len({row[2] for row in own}) == 1000
        gaps = [float(a[4]) - float(b[4]) for a, b in pairwise(own)]
        assert min(gaps) >= 0
        single = [np.float32(row[4]) for row in own]
        assert [float(gap) == 0 for gap in gaps] == [a == b for a, b in pairwise(single)]  # 32 bits see the same order
    ties = sum(a[0] == b[0] and a[4] == b[4] for a, b in pairwise(rows))
    assert 20 <= ties <= 80  # 10 of 1,024 pairs: 48.8 expected of 4,995, standard deviation 7


def test_graded_judgments_are_a_pool_and_binary_ones_are_counted(generate, tmp_path):
    generate.make(replace(tiny(generate, "S"), depth=1000, judged=(100, 194)), tmp_path)
    rows = [line.split() for line in (tmp_path / "S.qrels").read_text().splitlines()]
    assert {row[3] for row in rows} == {"0", "1", "2", "3"}
    assert all(100 <= count <= 194 for count in Counter(row[0] for row in rows).values())
    assert len({(row[0], row[2]) for row in rows}) == len(rows)
    generate.make(tiny(generate, "M"), tmp_path)
    rows = [line.split() for line in (tmp_path / "M.qrels").read_text().splitlines()]
    assert sorted(Counter(row[0] for row in rows).values()) == [1, 1, 1, 2, 2]  # 7 judgments of 5 queries
    assert {row[3] for row in rows} == {"1"}


def test_the_record_names_the_queries_whose_judged_documents_tie(generate, tmp_path):
    size = replace(tiny(generate, "S"), depth=1000)
    made = generate.make(size, tmp_path)
    judged = {tuple(line.split()[::2]) for line in (tmp_path / "S.qrels").read_text().splitlines()}
    rows = [line.split() for line in (tmp_path / "S.run").read_text().splitlines()]
    tied = set()
    for a, b in pairwise(rows):
        if (a[0], a[4]) == (b[0], b[4]) and {(a[0], a[2]), (b[0], b[2])} & judged:
            tied.add(a[0])
    assert tied
    assert set(made["tied_judged_queries"]) == tied
