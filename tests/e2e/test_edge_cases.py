"""Where tools disagree, row by row: what we chose, on files, through the public door.

Each row of docs/explanation/differences.md has a test here whose name begins with the row. What both readers read is read by both.
"""

from __future__ import annotations

import csv
import io
import os
import subprocess
from collections.abc import Callable, Mapping
from math import log2
from pathlib import Path

import pytest

from cranfield import CranfieldError, Evaluation, evaluate, load, parse
from cranfield.ranking import c_reader

Values = dict[str, dict[str, float | None]]


@pytest.fixture(params=["native", "python"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The reader that `CRANFIELD_ENGINE` asks for."""
    if request.param == "native" and not c_reader.available():
        pytest.skip(f"the native reader was not built: {c_reader.why_not()}")
    monkeypatch.setenv("CRANFIELD_ENGINE", request.param)
    return request.param


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | bytes, str | bytes], None]:
    """Write qrels.txt and a.run into the folder we are in."""
    monkeypatch.chdir(tmp_path)

    def write(qrels: str | bytes, run: str | bytes) -> None:
        for name, text in (("qrels.txt", qrels), ("a.run", run)):
            Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


@pytest.fixture
def score(files: Callable[..., None]) -> Callable[..., Evaluation]:
    """Evaluate a run against qrels, both as text of files."""

    def scored(qrels: str | bytes, run: str | bytes, *measures: str, **options: str) -> Evaluation:
        files(qrels, run)
        return evaluate(load("qrels.txt"), "a.run", measures=measures or ["RR"], **options)

    return scored


@pytest.fixture
def refusal(files: Callable[..., None]) -> Callable[..., str]:
    """Evaluate what cannot be: the words of the error."""

    def refused(qrels: str | bytes, run: str | bytes, *measures: str, **options: str) -> str:
        files(qrels, run)
        with pytest.raises(CranfieldError) as caught:
            evaluate(load("qrels.txt"), "a.run", measures=measures or ["RR"], **options)
        return str(caught.value)

    return refused


def values(evaluation: Evaluation) -> Values:
    """Measure to query to value."""
    return {
        str(measure): {query_id: evaluation.value(measure, query_id) for query_id in evaluation.query_ids}
        for measure in evaluation.measures
    }


def value(evaluation: Evaluation, measure: str = "RR", query_id: str = "q1") -> float | None:
    return evaluation.value(parse(measure), query_id)


def mean(evaluation: Evaluation, measure: str = "RR") -> float | None:
    return evaluation.summaries[parse(measure)].mean


def command(*words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the command."""
    done = subprocess.run(["cranfield", *words], capture_output=True, text=True, check=False, env=os.environ)
    return done.returncode, done.stdout, done.stderr


def complaint(*words: str) -> str:
    """What the command says of bad input, having printed nothing else."""
    code, stdout, stderr = command(*words)
    assert (code, stdout) == (2, "")
    return stderr


def told(stdout: str) -> Mapping[tuple[str, str], float]:
    """Query and measure to value, of `--format csv`."""
    return {(row["query"], row["measure"]): float(row["value"]) for row in csv.DictReader(io.StringIO(stdout))}


# ---------------------------------------------------------------- the order of a run


TIED = "q1 Q0 a 1 1.0 t\nq1 Q0 x 2 1.0 t\nq1 Q0 b 3 0.5 t\n"


@pytest.mark.parametrize(
    ("convention", "rr", "rr_10"),
    [
        ("trec", 1 / 2, 1 / 2),  # x before a: the larger id
        ("ir_measures", 1 / 2, 1 / 1),  # and with a cutoff the smaller one
        ("msmarco", 1 / 1, 1 / 1),
    ],
)
def test_ties_fall_to_the_larger_document_id_for_every_measure(score, convention, rr, rr_10):
    found = score("q1 0 a 1\n", TIED, "RR", "RR@10", convention=convention)
    assert values(found) == {"RR": {"q1": rr}, "RR@10": {"q1": rr_10}}


def test_ties_are_counted_with_the_range_of_values_they_allow(score):
    found = score("q1 0 a 1\nq1 0 b 1\n", TIED, "AP")
    # x a b: (1/2 + 2/3) / 2; a x b: (1/1 + 2/3) / 2
    assert value(found, "AP") == pytest.approx((1 / 2 + 2 / 3) / 2)
    # and the rank column, which has a before x, does not disagree with the scores
    assert found.warnings == (
        "1 result ties with the previous result; ties are ordered by document id, descending",
        "judged documents in ties: 1 in 1 of 1 queries; AP is between 0.5833 and 0.8333, depending on the order of the ties",
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # z is smaller than é in bytes (7A, C3 A9), whatever an alphabet says
        (("z", "é"), 1.0),
        # U+FF5E is smaller than U+1D4B3 in bytes (EF BD 9E, F0 9D 92 B3) and larger in 16-bit units
        (("\uff5e", "\U0001d4b3"), 1.0),
        # upper case before lower case
        (("Z", "a"), 1.0),
        # no number is read from an id
        (("d10", "d9"), 1.0),
    ],
)
def test_ids_beyond_ascii_tie_in_byte_order(score, lines, expected):
    run = "".join(f"q1 Q0 {doc_id} 1 1.0 t\n" for doc_id in lines)
    assert value(score(f"q1 0 {lines[1]} 1\n", run)) == expected
    assert value(score(f"q1 0 {lines[1]} 1\n", run, convention="msmarco")) == expected / 2


@pytest.mark.parametrize(("convention", "expected"), [("trec", 1.0), ("trec9", 0.5), ("ir_measures", 0.5)])
def test_scores_that_tie_in_32_bits_differ_in_64(score, convention, expected):
    run = "q1 Q0 a 1 1.00000001 t\nq1 Q0 x 2 1.00000000 t\n"
    assert value(score("q1 0 a 1\n", run, convention=convention)) == expected


def test_rank_column_is_ignored_with_a_warning_where_it_disagrees(score):
    found = score("q1 0 a 1\nq2 0 c 1\n", "q1 Q0 x 1 1.0 t\nq1 Q0 a 2 2.0 t\nq2 Q0 c 1 1.0 t\n")
    assert values(found) == {"RR": {"q1": 1.0, "q2": 1.0}}
    assert found.warnings == ("the rank column disagrees with the order by score in 1 query (q1); the score is used",)


# ---------------------------------------------------------------- which queries


QRELS_OF_TWO = "q1 0 a 1\nq2 0 c 1\n"


def test_query_missing_from_the_run_counts_as_0_and_is_named(score):
    found = score(QRELS_OF_TWO, "q1 Q0 a 1 1.0 t\n")
    assert values(found) == {"RR": {"q1": 1.0, "q2": 0.0}}
    assert mean(found) == 1 / 2
    assert found.warnings == ("not returned: no answer in the run for 1 of 2 queries (counted as 0): q2",)


@pytest.mark.parametrize("how", [{"missing": "skip"}, {"convention": "trec9"}])
def test_query_missing_from_the_run_is_left_out_on_request(score, how):
    found = score(QRELS_OF_TWO, "q1 Q0 a 1 1.0 t\n", **how)
    assert values(found) == {"RR": {"q1": 1.0}}
    assert mean(found) == 1.0
    assert found.warnings == ("not returned: no answer in the run for 1 of 2 queries (excluded from the means): q2",)


def test_query_without_judgments_is_ignored_and_named(score):
    found = score("q1 0 a 1\n", "q1 Q0 a 1 1.0 t\nq8 Q0 a 1 1.0 t\nq9 Q0 a 1 1.0 t\n")
    assert values(found) == {"RR": {"q1": 1.0}}
    assert found.warnings == ("queries of the run that are not in the test set, ignored: 2 (q8, q9)",)


def test_query_without_a_relevant_document_is_0_averaged_in_and_named(score):
    found = score("q1 0 a 1\nq2 0 c 0\n", "q1 Q0 a 1 1.0 t\nq2 Q0 c 1 1.0 t\n", "RR", "AP", "nDCG")
    assert values(found) == {name: {"q1": 1.0, "q2": 0.0} for name in ("RR", "AP", "nDCG")}
    assert mean(found, "AP") == 1 / 2
    assert found.warnings == ("judged, none relevant: 1 of 2 queries (counted as 0): q2",)


def test_no_query_in_common_is_an_error_with_ids_of_both_sides(files):
    files(QRELS_OF_TWO, "q8 Q0 a 1 1.0 t\nq9 Q0 c 1 1.0 t\n")
    assert complaint("evaluate", "qrels.txt", "a.run") == (
        "error: test set 'qrels' and the run share no query id; expected ids such as 'q1', 'q2', got 'q8', 'q9'.\n"
        "Hint: are these the queries the run was made for?\n"
    )


# ---------------------------------------------------------------- judgments


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("RR", 1 / 2),  # n is a result that is not relevant
        ("nDCG", (1 / log2(3)) / (1 / log2(2))),
        ("Bpref", 1.0),  # and none that was judged so
        ("RR(judged_only=True)", 1 / 1),  # -J drops it
        ("Judged@2", 1 / 2),  # b of n and b
        ("NumNonRelJudgedRet", 0.0),
        # at rank 2 of the pool: 1/2 of itself, and 1/2 of the one above, which is neither (0 + e) / (0 + 0 + 2 e)
        ("infAP", 1 / 2 + 1 / 2 * 1 / 2),
    ],
)
def test_grade_under_0_is_in_the_pool_and_not_judged(score, measure, expected):
    found = score("q1 0 n -1\nq1 0 b 1\n", "q1 Q0 n 1 2.0 t\nq1 Q0 b 2 1.0 t\n", measure)
    assert value(found, measure) == pytest.approx(expected, abs=1e-4)


def test_every_grade_under_0_is_a_query_without_a_relevant_document(score):
    found = score("q1 0 a -1\nq1 0 b -2\n", "q1 Q0 a 1 2.0 t\n", "AP", "Bpref", "infAP", "Judged@2")
    assert values(found) == {name: {"q1": 0.0} for name in ("AP", "Bpref", "infAP", "Judged@2")}
    assert found.warnings == ("in the pool, none judged: 1 of 1 queries (counted as 0): q1",)


def test_duplicate_judgment_that_agrees_is_taken_once(score):
    found = score("q1 0 a 1\nq1 0 a 1\nq1 0 b 1\n", "q1 Q0 a 1 2.0 t\n", "AP", "NumRel")
    assert values(found) == {"AP": {"q1": 1 / 2}, "NumRel": {"q1": 2.0}}


def test_duplicate_judgment_that_disagrees_is_an_error_with_both_lines(files):
    files("q1 0 a 1\nq1 0 b 1\nq1 0 a 2\n", "q1 Q0 a 1 2.0 t\n")
    assert complaint("evaluate", "qrels.txt", "a.run") == (
        "error: qrels.txt:3: query 'q1', document 'a' is judged twice; expected 1, as on line 1, got 2.\n"
        "Hint: keep one of the two lines.\n"
    )


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("DCG@3", 0.5 / log2(2) + 1.5 / log2(3) + 2 / log2(4)),
        ("CG@3", 0.5 + 1.5 + 2),
        ("P@3", 2 / 3),  # levels 0, 1 and 2
        ("P(rel=2)@3", 1 / 3),
        ("RR", 1 / 2),
    ],
)
def test_grade_that_is_no_whole_number_is_a_gain_and_is_rounded_down_to_a_level(score, measure, expected):
    run = "q1 Q0 a 1 3.0 t\nq1 Q0 b 2 2.0 t\nq1 Q0 c 3 1.0 t\n"
    assert value(score("q1 0 a 0.5\nq1 0 b 1.5\nq1 0 c 2\n", run, measure), measure) == pytest.approx(expected)


@pytest.mark.parametrize("grade", ["x", "nan", "inf", "1,5"])
def test_grade_that_is_no_number_is_an_error_with_its_line(refusal, grade):
    assert refusal(f"q1 0 a 1\nq1 0 b {grade}\n", "q1 Q0 a 1 1.0 t\n") == (
        f"qrels.txt:2: the grade is not a finite number; expected a number in column 4, got '{grade}'."
    )


# ---------------------------------------------------------------- lines of a run


def test_duplicate_document_in_a_run_is_an_error_with_both_lines(files):
    files("q1 0 a 1\n", "q1 Q0 a 1 3.0 t\nq1 Q0 b 2 2.0 t\nq1 Q0 a 3 1.0 t\n")
    assert complaint("evaluate", "qrels.txt", "a.run") == (
        "error: a.run:3: query 'q1' lists document 'a' twice; expected each document once per query, got the same document on "
        "line 1.\nHint: --duplicates first keeps the best-ranked one.\n"
    )


def test_duplicate_document_in_a_run_is_kept_at_its_best_rank_on_request(score):
    run = "q1 Q0 x 1 3.0 t\nq1 Q0 a 2 1.0 t\nq1 Q0 a 3 2.0 t\nq1 Q0 b 4 0.5 t\n"
    found = score("q1 0 a 1\nq1 0 b 1\n", run, "AP", "NumRet", duplicates="first")
    # x a b: (1/2 + 2/3) / 2, and 3 results
    assert values(found) == {"AP": {"q1": pytest.approx((1 / 2 + 2 / 3) / 2)}, "NumRet": {"q1": 3.0}}
    assert found.warnings[-1] == "duplicate results dropped, the first of each kept: 1 in 1 of 1 queries"


@pytest.mark.parametrize("word", ["nan", "-nan", "NaN", "inf", "-Infinity"])
def test_score_that_is_not_finite_is_an_error_with_its_line(refusal, word):
    assert refusal("q1 0 a 1\n", f"q1 Q0 x 1 9.0 t\nq1 Q0 a 2 {word} t\n") == (
        f"a.run:2: the score is not a finite number; expected a number in column 5, got '{word}'."
    )


@pytest.mark.parametrize("word", ["high", "0x10", "1,5", "1_000", "--1", "."])
def test_score_that_is_no_number_is_an_error_with_its_line(refusal, word):
    assert refusal("q1 0 a 1\n", f"q1 Q0 x 1 9.0 t\nq1 Q0 a 2 {word} t\n") == (
        f"a.run:2: the score is not a finite number; expected a number in column 5, got '{word}'."
    )


def test_fewer_than_six_columns_is_an_error_with_the_line_and_what_was_expected(refusal):
    assert refusal("q1 0 a 1\n", "q1 Q0 x 1 9.0 t\nq1 Q0 a 2 8.0\n") == (
        "a.run:2: 5 columns; expected 6: query Q0 document rank score tag, got 'q1 Q0 a 2 8.0'."
    )


def test_all_problems_of_a_run_are_reported_at_once(files):
    files("q1 0 a 1\n", "q1 Q0 a 1 3.0 t\nq1 Q0 b 2 nan t\nq1 Q0 c 3\nq1 Q0 d 4 high t\n")
    assert complaint("evaluate", "qrels.txt", "a.run") == (
        "error: a.run:2: the score is not a finite number; expected a number in column 5, got 'nan'.\n"
        "error: a.run:3: 4 columns; expected 6: query Q0 document rank score tag, got 'q1 Q0 c 3'.\n"
        "error: a.run:4: the score is not a finite number; expected a number in column 5, got 'high'.\n"
    )


def test_error_of_an_invalid_first_line_describes_the_format_of_a_run(refusal):
    line = "q1 Q0 a 1 high t"
    assert refusal("q1 0 a 1\n", line + "\n") == (
        'a.run: not a run; expected a collected run (first line `{"cranfield_run":1,…}`), a TREC run (lines `query Q0 '
        f"document rank score tag`), or another format that can be detected from the content, got '{line}'.\n"
        "Hint: name the format: run_format=NAME."
    )
    assert refusal("q1 0 a 1\n", line + "\n", run_format="trec") == (
        "a.run:1: the score is not a finite number; expected a number in column 5, got 'high'."
    )


def test_a_first_line_with_five_columns_is_counted_whether_or_not_the_format_is_named(refusal):
    counted = "a.run:1: 5 columns; expected 6: query Q0 document rank score tag, got 'q1 Q0 a 1 3.0'."
    assert refusal("q1 0 a 1\n", "q1 Q0 a 1 3.0\n") == (
        f"{counted}\nHint: add the missing columns, or write a table of results whose first line names its columns."
    )
    assert refusal("q1 0 a 1\n", "q1 Q0 a 1 3.0\n", run_format="trec") == counted


@pytest.mark.parametrize(
    "run",
    [
        "# made by a tool\nq1 Q0 #x 1 3.0 t\n# q1 Q0 y 2 2.5 t\nq1 Q0 a 2 2.0 t # no comment\n",
        "\n\nq1 Q0 #x 1 3.0 t\n   \t\n\nq1 Q0 a 2 2.0 t\n\n",
        "q1 Q0 #x 1 3.0 a tag with spaces\nq1 Q0 a 2 2.0 another one\n",
        "q1\tQ0\t#x\t1\t3.0\tt\nq1\tQ0\ta\t2\t2.0\tt\n",
        "  q1   Q0 \t #x    1   3.0   t  \nq1   Q0   a  2      2.0 t\n",
        "q1 Q0 #x 1 3.0 t\r\nq1 Q0 a 2 2.0 t\r\n",
        b"\xef\xbb\xbfq1 Q0 #x 1 3.0 t\nq1 Q0 a 2 2.0 t",
    ],
    ids=["comment lines", "blank lines", "tag with spaces", "tabs", "many spaces", "CRLF", "byte order mark"],
)
def test_readable_lines_of_a_run_are_accepted(score, run):
    found = score("q1 0 a 1\nq1 0 #x 0\n", run, "RR", "NumRet", "Judged@2")
    assert values(found) == {"RR": {"q1": 1 / 2}, "NumRet": {"q1": 2.0}, "Judged@2": {"q1": 1.0}}
    assert found.warnings == ()


@pytest.mark.parametrize(
    "qrels",
    [
        "# judged by two\nq1 0 a 1\n#\nq1 0 #x 0\n",
        "\nq1 0 a 1\n \t \nq1 0 #x 0\n\n",
        "q1\t0\ta\t1\nq1\t0\t#x\t0\n",
        "  q1  0    a 1 \nq1 0 #x   0\n",
        "q1 0 a 1\r\nq1 0 #x 0\r\n",
        b"\xef\xbb\xbfq1 0 a 1\nq1 0 #x 0",
    ],
    ids=["comment lines", "blank lines", "tabs", "many spaces", "CRLF", "byte order mark"],
)
def test_readable_judgments_are_accepted(score, qrels):
    found = score(qrels, "q1 Q0 #x 1 3.0 t\nq1 Q0 a 2 2.0 t\n", "RR", "Judged@2")
    assert values(found) == {"RR": {"q1": 1 / 2}, "Judged@2": {"q1": 1.0}}


def test_interleaved_queries_are_accepted(score):
    scattered = "q1 Q0 x 1 3.0 t\nq2 Q0 c 1 9.0 t\nq1 Q0 a 2 4.0 t\nq2 Q0 x 2 9.5 t\nq1 Q0 b 3 5.0 t\n"
    found = score("q1 0 a 1\nq1 0 b 1\nq2 0 c 1\n", scattered, "AP", "NumRet")
    # q1: b a x; q2: x c
    assert values(found) == {"AP": {"q1": 1.0, "q2": 1 / 2}, "NumRet": {"q1": 3.0, "q2": 2.0}}


def test_interleaved_queries_are_checked_for_duplicates(refusal):
    assert refusal("q1 0 a 1\n", "q1 Q0 a 1 3.0 t\nq2 Q0 c 1 9.0 t\nq1 Q0 a 2 2.0 t\n") == (
        "a.run:3: query 'q1' lists document 'a' twice; expected each document once per query, got the same document on line 1.\n"
        "Hint: duplicates=first keeps the best-ranked one."
    )


# ---------------------------------------------------------------- measures


FIVE = "".join(f"q1 0 {doc_id} 1\n" for doc_id in "abcde")
FOUND = "q1 Q0 a 1 6.0 t\nq1 Q0 x 2 5.0 t\nq1 Q0 b 3 4.0 t\nq1 Q0 c 4 3.0 t\nq1 Q0 d 5 2.0 t\nq1 Q0 e 6 1.0 t\n"


@pytest.mark.parametrize(
    ("convention", "expected"), [("trec", 1 / 5), ("quepid", 1 / 2), ("opensearch", 1 / 2), ("searchtweak", 1 / 1)]
)
def test_fewer_than_k_results_are_divided_by_k(score, convention, expected):
    # a is relevant, x unjudged: over k, over the results, over the judged ones
    found = score("q1 0 a 1\n", "q1 Q0 a 1 2.0 t\nq1 Q0 x 2 1.0 t\n", "P@5", convention=convention)
    assert value(found, "P@5") == expected


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("nDCG@10", (1 / log2(2) + 2 / log2(3)) / (2 / log2(2) + 1 / log2(3))),
        ("nDCG(dcg='exp-log2')@10", (1 / log2(2) + 3 / log2(3)) / (3 / log2(2) + 1 / log2(3))),
        ("ndcg_burges@10", (1 / log2(2) + 3 / log2(3)) / (3 / log2(2) + 1 / log2(3))),
        ("nDCG(gains={1: 5, 2: 9})@10", (5 / log2(2) + 9 / log2(3)) / (9 / log2(2) + 5 / log2(3))),
    ],
)
def test_gain_of_ndcg_is_the_grade_and_others_are_named(score, measure, expected):
    found = score("q1 0 a 2\nq1 0 b 1\n", "q1 Q0 b 1 2.0 t\nq1 Q0 a 2 1.0 t\n", measure)
    assert value(found, measure) == pytest.approx(expected, abs=1e-15)


def test_ndcg_has_no_relevance_level(refusal):
    assert refusal("q1 0 a 2\n", "q1 Q0 a 1 1.0 t\n", "nDCG(rel=2)@10") == (
        "unknown parameter of nDCG 'rel'; expected dcg, gains, judged_only."
    )


def test_relevance_level_of_the_drop_in_does_not_reach_ndcg(files):
    files("q1 0 a 2\nq1 0 b 1\n", "q1 Q0 b 1 2.0 t\nq1 Q0 a 2 1.0 t\n")
    _, stdout, stderr = command("trec_eval", "-l", "2", "-m", "ndcg", "-m", "recip_rank", "qrels.txt", "a.run")
    # ndcg (1 + 2 / log2 3) / (2 + 1 / log2 3) = 2.2619 / 2.6309; recip_rank 1/2, because b is of level 1
    assert stdout == "recip_rank            \tall\t0.5000\nndcg                  \tall\t0.8597\n"
    assert stderr == ""


def test_ideal_dcg_without_a_cutoff_holds_all_that_is_judged_even_beyond_the_run(score):
    found = score("q1 0 a 1\nq1 0 b 1\nq1 0 c 1\n", "q1 Q0 a 1 1.0 t\n", "nDCG", "nDCG@1")
    ideal = 1 / log2(2) + 1 / log2(3) + 1 / log2(4)
    assert values(found) == {"nDCG": {"q1": pytest.approx(1 / ideal)}, "nDCG@1": {"q1": 1.0}}


def test_rr_takes_a_cutoff(score):
    found = score("q1 0 b 1\n", FOUND, "RR", "RR@3", "RR@2", "MRR@2")
    assert values(found) == {"RR": {"q1": 1 / 3}, "RR@3": {"q1": 1 / 3}, "RR@2": {"q1": 0.0}}
    # a depth cuts for every measure
    assert values(score("q1 0 b 1\n", FOUND, "RR", depth=2)) == {"RR": {"q1": 0.0}}


def test_recall_at_k_divides_by_all_that_is_relevant_and_capped_recall_by_what_fits(score):
    found = score(FIVE, FOUND, "R@3", "RCap@3")
    # a and b of five; of the three that could be there
    assert values(found) == {"R@3": {"q1": 2 / 5}, "RCap@3": {"q1": 2 / 3}}


def test_bpref_without_judged_nonrelevant_documents_counts_each_relevant_result(score):
    found = score(FIVE, "q1 Q0 x 1 9.0 t\nq1 Q0 a 2 8.0 t\nq1 Q0 b 3 7.0 t\n", "Bpref")
    assert value(found, "Bpref") == 2 / 5


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        # (1 - p) * sum of p^(rank - 1) * gain; gain = grade / 3, the highest judged
        ("RBP", 0.2 * (1 / 3 + 0.8 * 3 / 3)),
        ("RBP(p=0.9)", 0.1 * (1 / 3 + 0.9 * 3 / 3)),
        ("rbp", 0.1 * (1 / 3 + 0.9 * 3 / 3)),
        ("RBP(p=0.5, rel=1)", 0.5 * (1 + 0.5)),
        ("RBP(p=0.5, rel=2)", 0.5 * (0 + 0.5)),
    ],
)
def test_rbp_of_grades_is_scaled_by_the_highest_grade_and_p_is_in_the_name(score, measure, expected):
    found = score("q1 0 a 3\nq1 0 b 1\nq1 0 c 0\n", "q1 Q0 b 1 2.0 t\nq1 Q0 a 2 1.0 t\n", measure)
    assert value(found, measure) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("convention", "at_two_fifths", "eleven_points"),
    [
        # a x b of a b c. Precision from the first on 1, from the second on 2/3, of the third 0.
        # 3 * .4 = 1.2: the nearest is 1; up it is 2. Of 11 points 0 to 10 tenths ask for 0 0 1 1 1 2 2 2 2 3 3.
        ("trec", 1 / 1, (5 * 1 + 4 * 2 / 3) / 11),
        # Whole part of 3 r + .9, in floats: 0 1 1 1 2 2 2 2 3 3 3 (at .7 just under 3)
        ("trec9", 2 / 3, (4 * 1 + 4 * 2 / 3) / 11),
    ],
)
def test_iprec_recall_levels_are_rounded_to_the_nearest(score, convention, at_two_fifths, eleven_points):
    run = "q1 Q0 a 1 3.0 t\nq1 Q0 x 2 2.0 t\nq1 Q0 b 3 1.0 t\n"
    found = score("q1 0 a 1\nq1 0 b 1\nq1 0 c 1\n", run, "IPrec@0.4", "AP11", convention=convention)
    assert value(found, "IPrec@0.4") == at_two_fifths
    assert value(found, "AP11") == pytest.approx(eleven_points)


def test_iprec_where_judged_only_leaves_nothing_is_0(score):
    found = score("q1 0 a 1\n", "q1 Q0 x 1 1.0 t\n", "AP11(judged_only=True)", "IPrec(judged_only=True)@0.1")
    assert values(found) == {name: {"q1": 0.0} for name in ("AP11(judged_only=True)", "IPrec(judged_only=True)@0.1")}


def test_gains_closer_than_1_are_sorted_exactly(score):
    found = score("q1 0 a 1\nq1 0 b 2\n", "q1 Q0 a 1 2.0 t\nq1 Q0 b 2 1.0 t\n", "nDCG(gains={1: 0.5, 2: 0.9})")
    expected = (0.5 / log2(2) + 0.9 / log2(3)) / (0.9 / log2(2) + 0.5 / log2(3))
    assert value(found, "nDCG(gains={1: 0.5, 2: 0.9})") == pytest.approx(expected)


def test_rndcg_where_no_gain_is_above_0_is_0(score):
    found = score("q1 0 a 1\n", "q1 Q0 a 1 1.0 t\n", "RnDCG(gains={1: 0})")
    assert value(found, "RnDCG(gains={1: 0})") == 0.0


MISSING_ONE = ("q1 0 a 1\nq2 0 b 2\nq2 0 c 1\n", "q1 Q0 a 1 3.0 t\nq1 Q0 x 2 2.0 t\n")


def test_query_missing_from_the_run_has_the_utility_of_returning_nothing(score, files):
    found = score(*MISSING_ONE, "Utility(missed=-1)")
    # q1: 1 found, 1 wrong; q2: 2 missed
    assert values(found) == {"Utility(missed=-1)": {"q1": 0.0, "q2": -2.0}}
    # trec_eval's made-up document is wrong too, and the drop-in prints what it prints
    _, stdout, _ = command("trec_eval", "-q", "-c", "-m", "utility.1,-1,-1,0", "qrels.txt", "a.run")
    assert "utility_1,-1,-1,0     \tq2\t-3.0000\n" in stdout


def test_number_of_relevant_documents_counts_those_of_the_level(score):
    found = score(*MISSING_ONE, "NumRel", "NumRel(rel=2)")
    assert values(found) == {"NumRel": {"q1": 1.0, "q2": 2.0}, "NumRel(rel=2)": {"q1": 0.0, "q2": 1.0}}
    # the drop-in's total counts grades above 0 with -c, as trec_eval's
    assert command("trec_eval", "-c", "-l", "2", "-m", "num_rel", "qrels.txt", "a.run") == (
        0,
        "num_rel               \tall\t3\n",
        "",
    )


def test_utility_with_nonretrieved_documents_needs_the_size_of_the_collection(refusal, score):
    assert refusal("q1 0 a 1\n", "q1 Q0 a 1 1.0 t\n", "Utility(spared=1)") == (
        "Utility(spared=1) cannot be computed for any query: how many documents match, or how many the collection holds "
        "(documents=), is not known.\nHint: leave it out."
    )
    # 1 found, and 9 of the 10 documents spared
    found = score("q1 0 a 1\n", "q1 Q0 a 1 1.0 t\n", "Utility(spared=1, documents=10)")
    assert value(found, "Utility(spared=1, documents=10)") == 1 + 9


def test_cutoff_0_is_an_error(files):
    files("q1 0 a 1\n", "q1 Q0 a 1 1.0 t\n")
    assert complaint("evaluate", "qrels.txt", "a.run", "-m", "P@0", "-m", "nDCG@0") == (
        "error: P@0: cutoff is 0; expected a whole number of 1 or more.\n"
        "error: nDCG@0: cutoff is 0; expected a whole number of 1 or more.\n"
    )


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"q1": {"a": 1.0, "x": 1.0}, "q2": {"c": 1.0}}, {"q1": 1 / 2, "q2": 1.0}),  # a tie
        ({"q1": {"a": 1.00000001, "x": 1.0}, "q2": {"c": 1.0}}, {"q1": 1.0, "q2": 1.0}),
        ({"q1": {"a": 1.0}}, {"q1": 1.0, "q2": 0.0}),
        ({"q1": {"a": 1.0}, "q2": {"c": 1.0}, "q9": {"a": 1.0}}, {"q1": 1.0, "q2": 1.0}),
        ({"q1": ["x", "a"], "q2": []}, {"q1": 1 / 2, "q2": 0.0}),
    ],
    ids=["ties", "score width", "query missing", "query nobody judged", "lists"],
)
def test_the_same_values_come_from_dicts(run, expected):
    assert values(evaluate({"q1": {"a": 1}, "q2": {"c": 1}}, run, measures=["RR"])) == {"RR": expected}


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            {"q1": {"a": float("nan")}},
            "run: query 'q1', document 'a': the score is not a finite number; expected a number, got nan.",
        ),
        (
            {"q9": {"a": 1.0}},
            (
                "test set 'qrels' and the run share no query id; expected ids such as 'q1', got 'q9'.\n"
                "Hint: are these the queries the run was made for?"
            ),
        ),
    ],
    ids=["score nan", "no query in common"],
)
def test_the_same_rows_are_refused_in_dicts(run, message):
    with pytest.raises(CranfieldError) as caught:
        evaluate({"q1": {"a": 1}}, run, measures=["RR"])
    assert str(caught.value) == message


def test_the_command_line_prints_the_same_values_as_the_library(score):
    found = score(FIVE, FOUND, "AP", "R@3", "Bpref")
    code, stdout, stderr = command(
        "evaluate", "qrels.txt", "a.run", "-m", "AP", "-m", "R@3", "-m", "Bpref", "--format", "csv"
    )
    assert (code, stderr) == (0, "")
    assert told(stdout) == {("q1", measure): of_query["q1"] for measure, of_query in values(found).items()}
