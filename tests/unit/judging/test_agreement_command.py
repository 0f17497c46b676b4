"""`cranfield agreement` as people and scripts use it."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from typer.testing import CliRunner

from cranfield.cli.main import command_line

RATINGS = """\
cranfield_testset: 1
name: shop
queries:
- id: q1
  text: wool socks
  strata: {kind: head}
  ratings:
    d1: {ann: 3, bob: 3}
    d2: {ann: 2, bob: 0}
    d3: {ann: 0, bob: 0}
    d4: {ann: null, bob: null}
- id: q2
  text: blue
  strata: {kind: tail}
  ratings:
    d1: {ann: 1, bob: 1}
    d5: {ann: 3, bob: 2}
    d6: {ann: 0, bob: 0}
    d7: {ann: 1, bob: 0}
"""
JUDGES = "q1 ann a 1\nq1 bob a 0\nq1 ann b 1\nq1 bob b 1\n"


@pytest.fixture
def cranfield(tmp_path, monkeypatch):
    """Run the command in a folder with some test sets; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name, text in (("set.yaml", RATINGS), ("judges.qrels", JUDGES), ("plain.qrels", "q1 0 a 1\nq1 0 b 0\n")):
        (tmp_path / name).write_text(text)

    def run(*args):
        done = CliRunner().invoke(command_line("agreement", "measures"), ["agreement", *args], prog_name="cranfield")
        return done.exit_code, done.stdout, done.stderr

    return run


def test_it_says_coverage_agreement_disagreements_and_consensus(cranfield):
    code, out, err = cranfield("set.yaml")
    assert (code, err) == (0, "")
    assert "rated by two or more         7 of 8 (87.5 %)" in out
    assert "slots filled                 14 of 16 (87.5 %)" in out
    # both say 3, 0, 1, 0 of d1, d3, d1, d6: 4 of 7
    assert "raw agreement                     0.5714" in out
    assert "ann 2, bob 0" in out
    assert "Consensus: median" in out
    assert "Notes" not in out


def test_as_json(cranfield):
    code, out, _ = cranfield("set.yaml", "--format", "json", "--by", "kind", "--rule", "majority", "--seed", "3")
    result = json.loads(out)
    assert code == 0
    assert result["testset"]["name"] == "shop"
    found = result["agreement"]
    assert (found["n_items"], found["n_twice"], result["scale"], found["seed"]) == (8, 7, "graded", 3)
    assert set(found["coefficients"]) == {
        "agreement", "cohen", "cohen-linear", "cohen-quadratic", "fleiss", "alpha-nominal", "alpha-ordinal",
        "alpha-interval",
    }  # fmt: skip
    kappa = found["coefficients"]["cohen"]
    assert kappa["ci_low"] < kappa["value"] < kappa["ci_high"]
    assert result["by_key"] == "kind"
    assert list(result["by"]) == ["head", "tail"]
    assert result["by"]["head"]["coefficients"]["cohen"]["note"] == "too few items to resample (n < 6)"
    # d2 and d7 are one against one
    assert result["tie_rate"] == {"n_ties": 2, "n_rated": 7, "share": 2 / 7, "note": ""}
    assert result["outcome"] == {"rule": "majority", "grades": {"0.0": 2, "1.0": 3}, "n_ties": 2, "n_unfilled": 1}
    assert result["disagreements"][0] == {"query_id": "q1", "doc_id": "d2", "ratings": {"ann": 2, "bob": 0}}


def test_as_csv_it_is_a_row_a_measure(cranfield):
    _, out, _ = cranfield("set.yaml", "--format", "csv", "--by", "kind")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 3 * 8
    raw = next(row for row in rows if row["measure"] == "agreement" and row["value"] == "")
    assert float(raw["estimate"]) == pytest.approx(4 / 7)
    assert raw["pairs"] == "7"


def test_as_markdown(cranfield):
    _, out, _ = cranfield("set.yaml", "--format", "markdown")
    assert out.startswith("# Agreement of raters\n")
    assert "| Cohen's kappa |" in out


def test_the_judges_of_qrels_are_raters(cranfield):
    code, out, _ = cranfield("judges.qrels", "--testset-format", "judges", "--format", "json")
    result = json.loads(out)
    assert code == 0
    assert result["agreement"]["by_rater"] == {"ann": 2, "bob": 2}
    assert result["agreement"]["coefficients"]["agreement"]["value"] == 0.5


def test_more_than_two_raters_are_shown_two_by_two(cranfield, tmp_path):
    (tmp_path / "three.yaml").write_text(re.sub(r"(bob: \w+)}", r"\1, cas: 1}", RATINGS))
    _, out, _ = cranfield("three.yaml")
    assert "Pairs of raters" in out
    assert "bob, cas" in out
    assert "raters with fewer than 20 items in common: ann and bob (7), ann and cas (7), bob and cas (7)" in out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("plain.qrels",), "error: test set 'plain' holds no ratings; expected the grade of each rater"),
        (("missing.yaml",), "missing.yaml"),
        (("set.yaml", "--rule", "medan"), "unknown consensus rule 'medan'"),
        (("set.yaml", "--scale", "binary"), "grades 2, 3 are not on the scale binary; expected 0, 1"),
        (("set.yaml", "--to-scale", "detail"), "no map from graded to detail"),
        (("set.yaml", "--by", "level"), "no query has the stratum 'level'; expected class, kind"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_printed(cranfield, args, says):
    code, out, err = cranfield(*args)
    assert (code, out) == (2, "")
    assert says in err


def test_the_same_seed_prints_the_same(cranfield):
    assert cranfield("set.yaml", "--seed", "5") == cranfield("set.yaml", "--seed", "5")


ODD = (0, 0, 0, 2, 2, 1, 1, 0, 2, 1, 0, 2)
TRUTH = (2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1)


@pytest.fixture
def raters(cranfield, tmp_path):
    """A file for each of four raters, of whom one guesses."""
    for name, grades in (("ann", TRUTH), ("bob", TRUTH), ("cas", (1, *TRUTH[1:])), ("odd", ODD)):
        lines = [f"q{n // 3} 0 d{n} {grade}\n" for n, grade in enumerate(grades * 3)]
        (tmp_path / f"{name}.qrels").write_text("".join(lines))
    return cranfield


FILES = ("ann.qrels", "bob.qrels", "cas.qrels", "odd.qrels")


def test_a_file_for_each_rater_names_the_one_who_does_not_fit(raters):
    code, out, err = raters(*FILES[:3], "guess=odd.qrels")
    assert (code, err) == (0, "")
    assert "ann + bob + cas + guess: 12 queries" in out
    flat = " ".join(out.split())
    assert re.search(
        r"guess is an outlier: alpha is 0\.\d+ without guess and 0\.\d+ with all raters \(\+0\.\d+, 95 %", flat
    )
    assert "queries are resampled, and the raters are permuted within each query (12)" in flat
    result = json.loads(raters(*FILES, "--format", "json")[1])
    without = result["misfit"]
    assert result["misfit_sentence"].startswith("odd is an outlier: alpha is 0.")
    assert [rater["fits"] for rater in without["raters"]] == [True, True, True, False]
    assert without["raters"][3]["p_value"] < 0.05
    assert len(result["confusion"]) == 6
    first = result["confusion"][0]
    assert (first["first"], first["second"], first["n"], first["grades"]) == ("ann", "bob", 36, [0, 1, 2])
    assert first["counts"] == [[12, 0, 0], [0, 12, 0], [0, 0, 12]]


def test_a_threshold_makes_every_rating_binary_and_several_are_compared(raters):
    result = json.loads(raters(*FILES[:2], "--binary-at", "2", "--format", "json")[1])
    assert (result["levels"], result["scale"], result["thresholds"]) == ([0, 1], "binary", {})
    assert result["confusion"][0]["counts"] == [[24, 0], [0, 12]]
    assert "relevant from grade 2 on: each rating is mapped to 0 or 1 first" in result["notes"]
    code, out, _ = raters(*FILES, "--binary-at", "1", "--binary-at", "2")
    assert code == 0
    assert "Agreement at thresholds" in out
    result = json.loads(raters(*FILES, "--binary-at", "1", "--binary-at", "2", "--format", "json")[1])
    assert list(result["thresholds"]) == ["1.0", "2.0"]
    assert set(result["thresholds"]["1.0"]["coefficients"]) == set(result["agreement"]["coefficients"])


def test_any_scale_may_be_declared(raters):
    result = json.loads(raters(*FILES, "--scale", "0-4", "--format", "json")[1])
    assert (result["scale"], result["levels"]) == ("0, 1, 2, 3, 4", [0, 1, 2, 3, 4])
    assert result["confusion"][0]["grades"] == [0, 1, 2, 3, 4]
    assert "unknown: the scale does not define" in raters(*FILES, "--scale", "0-4")[1]


def test_csv_has_the_agreement_without_each_rater_and_at_each_threshold(raters):
    rows = list(
        csv.DictReader(io.StringIO(raters(*FILES, "--binary-at", "1", "--binary-at", "2", "--format", "csv")[1]))
    )
    assert [row["first rater"] for row in rows if row["measure"] == "alpha-ordinal change"] == [
        "ann",
        "bob",
        "cas",
        "odd",
    ]
    assert {row["value"] for row in rows if row["stratum"] == "relevant from"} == {"1", "2"}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((*FILES[:2], "--scale", "0,1"), "grade 2 is not on the scale 0,1; expected 0, 1"),
        ((*FILES[:2], "--scale", "low-high"), "scale is 'low-high'; expected binary, graded, detail"),
        ((*FILES[:2], "--binary-at", "9"), "at a threshold of 9, all grades are not relevant"),
        ((*FILES[:2], "--binary-at", "1", "--to-scale", "binary"), "--to-scale and --binary-at both map the ratings"),
        (
            (*FILES[:2], "--scale", "0-4", "--rule", "majority"),
            "Hint: map each rating to 0 or 1 with --binary-at GRADE",
        ),
        (("ann.qrels", "ann.qrels"), "two files have the rater 'ann'"),
        (("=ann.qrels", "bob.qrels"), "a rater without a name"),
        (("ann.qrels", "set.yaml", "gone.qrels"), "gone.qrels"),
        (("ann.qrels", "plain.qrels"), "no query occurs in two of the files ann, plain"),
    ],
)
def test_several_files_that_do_not_go_together_are_refused(raters, tmp_path, args, says):
    (tmp_path / "plain.qrels").write_text("other 0 a 1\n")
    code, out, err = raters(*args)
    assert (code, out) == (2, "")
    assert says in err


def test_files_with_ratings_keep_their_raters(raters, tmp_path):
    (tmp_path / "more.qrels").write_text("q1 0 d1 2\nq1 0 d2 0\nq2 0 d5 3\n")
    result = json.loads(raters("set.yaml", "eve=more.qrels", "--format", "json")[1])
    assert result["agreement"]["by_rater"] == {"ann": 7, "bob": 7, "eve": 3}
    assert result["testset"]["name"] == "set + eve"
