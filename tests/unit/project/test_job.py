"""The job before its first query: everything wrong with the call and its config."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.errors import ConfigError, UsageError
from cranfield.project.job import run_job

TESTSET = "cranfield_testset: 1\nname: t\nqueries:\n  - {id: q1, text: a, patterns: [{regex: ^a$}]}\n"
CONFIG = """\
testset: queries.yaml
{rules}
systems:
  old: {{command: [touch, asked, "{{query}}"], extract: {{regex: a}}}}
  new: {{command: [touch, asked, "{{query}}"], extract: {{regex: a}}}}
"""


def project(folder: Path, rules: str) -> Path:
    (folder / "queries.yaml").write_text(TESTSET)
    (folder / "cranfield.yaml").write_text(CONFIG.format(rules=rules))
    return folder / "cranfield.yaml"


def test_measures_and_tests_nobody_knows_are_named_with_their_lines_beside_all_else(tmp_path: Path) -> None:
    config = project(tmp_path, "measures: [RRR@10, P@0]\nprimary: foo\ntest: permutatin\nk: 0")
    with pytest.raises(ConfigError) as caught:
        run_job(config, out=tmp_path / "out")
    assert [(problem.line, problem.message.split(":")[0]) for problem in caught.value.problems] == [
        (2, "measures[0]"),
        (2, "measures[1]"),
        (3, "primary"),
        (4, "test"),
        (5, "wrong value for k"),
    ]
    assert caught.value.problems[3].hint == "did you mean permutation?"
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("out", ["taken", "taken/deeper"])
def test_a_file_where_the_results_should_go_is_found_before_anything_is_asked(tmp_path: Path, out: str) -> None:
    config = project(tmp_path, "measures: [RR]")
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(UsageError, match=r"taken: this is a file; expected a folder for the results"):
        run_job(config, out=tmp_path / out)
    assert not (tmp_path / "asked").exists()
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_primary_measure_alone_does_not_ask_for_what_patterns_do_not_allow(tmp_path: Path) -> None:
    job = run_job(project(tmp_path, "primary: P@1\nlimits: {max_failed_share: null}"), out=tmp_path / "out")
    assert job.comparison is not None
    assert str(job.comparison.primary) == "P@1"
    assert [str(measure) for measure in job.evaluations[0].measures][-2:] == ["Success@5", "P@1"]
