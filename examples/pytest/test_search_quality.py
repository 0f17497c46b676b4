"""What this search must be able to do. Build the index first (build_index.py), then: pytest"""

import pytest

pytestmark = pytest.mark.cranfield(testset="golden.json", system="search:find", k=10)


def test_the_first_right_result_comes_early(evaluation):
    assert evaluation.mean("RR") >= 0.40


def test_half_of_what_is_expected_is_found(evaluation):
    assert evaluation.mean("R@10") >= 0.50


def test_half_of_the_files_are_among_the_first_five(evaluation):
    assert evaluation.mean("FileCoverage@5") >= 0.50


def test_every_easy_query_has_its_answer_at_rank_one(evaluation):
    assert evaluation.where(difficulty="easy").worst("P@1") == 1


def test_what_is_to_be_located_comes_early(evaluation):
    assert evaluation.where(task_type="locate").mean("RR") >= 0.60


def test_no_type_of_task_finds_nothing(evaluation):
    for task_type, queries in evaluation.by("task_type").items():
        assert queries.mean("R@10") > 0, task_type
