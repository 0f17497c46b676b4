"""Random draws depend on the seed and the position, on nothing else, for ever; sums that no order changes."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.stats import bootstrap as resampling
from cranfield.stats.bootstrap import CHUNK_ROWS, fixed_point, index_blocks, subset_blocks


def rows(blocks):
    return np.concatenate([block for _, block in blocks])


def test_subsets_of_a_seed_never_change():
    # The first raw numbers of the first chunk are f20043987c113044, 696910ccf8423a72 and aa05163c1df7180e. Their bits from
    # the lowest: 0x44 is 00100010 read backwards, 0x30 goes on with 00; 0x72 is 01001110, 0x3a 01; 0x0e is 01110000, 0x18 00.
    assert ["".join(map(str, row)) for row in rows(subset_blocks(0, 3, 10)).tolist()] == [
        "0010001000",
        "0100111001",
        "0111000000",
    ]


def test_indices_of_a_seed_never_change():
    assert rows(index_blocks(0, 3, 5)).tolist() == [[0, 1, 3, 0, 0], [0, 0, 4, 4, 4], [4, 1, 0, 2, 3]]


@pytest.mark.parametrize("blocks", [subset_blocks, index_blocks])
def test_more_rows_begin_with_the_same_rows(blocks):
    few, many = rows(blocks(7, CHUNK_ROWS + 5, 9)), rows(blocks(7, 3 * CHUNK_ROWS, 9))
    assert (many[: len(few)] == few).all()


@pytest.mark.parametrize("blocks", [subset_blocks, index_blocks])
def test_every_block_says_where_it_begins(blocks, monkeypatch):
    whole = rows(blocks(7, 2500, 9))
    monkeypatch.setattr(resampling, "BLOCK_CELLS", 100)
    placed = np.full((2500, 9), 99)
    for start, block in blocks(7, 2500, 9):
        assert block.size <= 100
        placed[start : start + len(block)] = block
    assert (placed == whole).all()


@pytest.mark.parametrize("blocks", [subset_blocks, index_blocks])
def test_chunks_and_seeds_do_not_repeat_each_other(blocks):
    drawn = rows(blocks(0, 2 * CHUNK_ROWS, 40))
    other = rows(blocks(1, CHUNK_ROWS, 40))
    assert (drawn[:CHUNK_ROWS] != drawn[CHUNK_ROWS:]).any(axis=1).all()
    assert (drawn[:CHUNK_ROWS] != other).any(axis=1).all()


def test_long_rows_come_in_small_chunks():
    for blocks in (subset_blocks, index_blocks):
        sizes = [block.nbytes for _, block in blocks(0, 40, 1_000_000)]
        assert max(sizes) <= 8_000_000
        assert len(sizes) == 40


def test_each_thing_is_in_half_the_subsets_and_each_index_drawn_equally_often():
    share = rows(subset_blocks(3, 20_000, 70)).mean(axis=0)
    assert np.abs(share - 0.5).max() < 5 * 0.5 / np.sqrt(20_000)
    counts = np.bincount(rows(index_blocks(3, 2_000, 70)).ravel(), minlength=70)
    assert counts.sum() == 140_000
    assert np.abs(counts - 2_000).max() < 5 * np.sqrt(2_000)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=200), st.randoms())
def test_whole_units_sum_to_the_same_in_any_order(values, random):
    units = fixed_point(np.array(values)).units.tolist()
    assert all(unit == int(unit) for unit in units)
    forwards = sum(units)
    random.shuffle(units)
    assert sum(units) == forwards == math.fsum(units)
    assert abs(forwards) < 2**53


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=100))
def test_whole_units_are_the_values_to_a_few_parts_in_10_to_the_16_of_their_sum(values):
    fixed = fixed_point(np.array(values))
    size = math.fsum(map(abs, values))
    for value, unit in zip(values, fixed.units.tolist(), strict=True):
        assert abs(Fraction(value) - Fraction(unit) * Fraction(2) ** fixed.exponent) <= Fraction(size) / 2**51
        assert fixed.value(unit) == pytest.approx(value, abs=size * 1e-14, rel=1e-14)


def test_a_value_comes_back_without_made_up_digits():
    fixed = fixed_point(np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))
    assert math.ldexp(float(fixed.units[0]), fixed.exponent) == 0.09999999999999964
    assert fixed.value(float(fixed.units[0])) == 0.1
    assert fixed.value(0.25) > 0  # a mean under one unit is not rounded away


def test_sums_within_rounding_of_zero_are_zero():
    fixed = fixed_point(np.array([0.1, 0.2, -0.3]))
    total = fixed.total
    assert fixed.zero_rounding(np.array([total, fixed.units[0]])).tolist() == [0.0, fixed.units[0]]
    assert fixed_point(np.zeros(3)).zero_rounding(np.zeros(1)).tolist() == [0.0]
