"""Formats that an installed package adds."""

from __future__ import annotations

import pytest

from cranfield import evaluate, load
from cranfield.base.errors import RunFormatError, TestSetError, UnknownNameError, UsageError

ACME = """
from cranfield import Answer, Hit, Outcome, Query, Run, TestSet
from cranfield.formats.registry import Format

def read_judgments(path):
    rows = [line.split("|") for line in path.read_text().splitlines()[1:]]
    return TestSet(path.stem, tuple(Query(row[0]) for row in rows), {row[0]: {row[1]: 1} for row in rows})

def read_run(path):
    rows = [line.split("|") for line in path.read_text().splitlines()[1:]]
    return Run(path.stem, {row[0]: Answer(Outcome.ANSWERED, tuple(map(Hit, row[1:]))) for row in rows})

judgments = Format("acme-judgments", "testset", "an Acme list of clicks", lambda head: head.data.startswith(b"ACME CLICKS"),
                   "cranfield_toy:read_judgments")
run = Format("acme-run", "run", "an Acme list of results", lambda head: head.data.startswith(b"ACME RUN"),
             "cranfield_toy:read_run")
wrong = Format("acme-run", "run", "an Acme list of results", lambda head: head.data.startswith(b"ACME RUN"),
               "cranfield_toy:read_judgments")
twice = Format("qrels", "testset", "qrels again", lambda head: False)
"""


@pytest.fixture
def clicks(tmp_path):
    path = tmp_path / "clicks.acme"
    path.write_text("ACME CLICKS\nq1|d1\nq2|d7\n")
    return path


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.acme"
    path.write_text("ACME RUN\nq1|d2|d1\nq2|d7\n")
    return path


@pytest.mark.parametrize("name", [None, "acme-judgments"])
def test_a_test_set_in_the_format_of_a_package_is_read(install, clicks, name):
    install("cranfield.formats", "judgments", ACME)
    assert load(clicks, format=name).grades == {"q1": {"d1": 1}, "q2": {"d7": 1}}


@pytest.mark.parametrize("name", [None, "acme-run"])
def test_a_run_in_the_format_of_a_package_is_scored(install, results, name):
    install("cranfield.formats", "run", ACME)
    scored = evaluate({"q1": {"d1": 1}, "q2": {"d7": 1}}, results, measures=["RR"], run_format=name)
    assert scored.mean("RR") == 0.75  # (1/2 + 1/1) / 2


def test_without_the_package_the_file_is_of_no_known_format(clicks):
    with pytest.raises(TestSetError, match="not a test set"):
        load(clicks)
    with pytest.raises(UnknownNameError, match="acme-judgments"):
        load(clicks, format="acme-judgments")


def test_a_format_of_a_package_is_named_where_another_name_is_unknown(install, clicks):
    install("cranfield.formats", "judgments", ACME)
    with pytest.raises(UnknownNameError, match="did you mean acme-judgments"):
        load(clicks, format="acme-judgment")


def test_a_reader_that_returns_no_run_is_named(install, results):
    install("cranfield.formats", "wrong", ACME)
    with pytest.raises(RunFormatError, match=r"reader of the format 'acme-run' returned no run; .* got TestSet"):
        evaluate({"q1": {"d1": 1}}, results)


def test_a_format_with_the_name_of_another_is_an_error(install, clicks):
    install("cranfield.formats", "twice", ACME)
    with pytest.raises(UsageError, match="with the name of a built-in format, 'qrels'"):
        load(clicks)
