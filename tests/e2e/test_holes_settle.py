"""On real data: judging in the order of holes settles the verdict after at most half as many judgments as in rank order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).parents[2] / "bench" / "holes.py"
HIDINGS = 8


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.6, 0.9])
def test_the_true_verdict_settles_after_half_the_judgments(shared_data, load_script, share, record_property):
    bench = load_script(BENCH)
    folder = shared_data / "cranfield"
    if not folder.is_dir():
        pytest.skip("the Cranfield collection is not here: CRANFIELD_DATA names the folder that has it")
    judgments = bench.read_judgments(folder)
    sides = (bench.fts5("unicode61", 1, folder), bench.fts5("porter unicode61", 1, folder))
    needed: dict[str, list[int]] = {}
    for seed in range(HIDINGS):
        pair, grades = bench.hide(judgments, sides, share, seed)
        for name, order in (("holes", bench.by_effect(pair, grades)), ("rank", bench.by_rank(pair))):
            assert sorted(order) == list(range(len(grades)))
            needed.setdefault(name, []).append(bench.settled_after(pair, order, grades))
    holes, rank = np.array(needed["holes"]), np.array(needed["rank"])
    record_property("ratio", float(holes.sum() / rank.sum()))
    assert holes.sum() <= rank.sum() / 2
    assert np.median(holes) <= np.median(rank) / 2
