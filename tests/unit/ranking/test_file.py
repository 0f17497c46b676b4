"""What the reader of TREC run files accepts, refuses and notices."""

import dataclasses
import gzip
import subprocess
import sys

import pytest

from cranfield.base.errors import NoCommonQueryError, RunFormatError
from cranfield.measures import compute, parse
from cranfield.model import Outcome, Query, TestSet, convention_named
from cranfield.ranking import rank_file
from cranfield.ranking.file import FileReading

TESTSET = TestSet("set", (Query("q1"), Query("q2")), {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}})
TREC = convention_named("trec")


def write(tmp_path, text):
    path = tmp_path / "a.run"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def ids(ranked, query_id="q1"):
    return [hit.id for hit in ranked.ranking.top[query_id]]


def test_score_orders_and_ties_fall_to_the_larger_id_in_bytes(tmp_path):
    path = write(tmp_path, "q1 Q0 a 1 1.0 t\nq1 Q0 b 2 1.0 t\nq1 Q0 é 3 1.0 t\nq1 Q0 z 4 0.5 t\nq1 Q0 c 5 9 t\n")
    ranked = rank_file(TESTSET, path, TREC)
    assert ids(ranked) == ["c", "é", "b", "a", "z"]
    assert ranked.n_tied == 2
    assert ranked.misranked == ("q1",)


def test_the_order_given_stands_under_a_convention_that_says_so(tmp_path):
    path = write(tmp_path, "q1 Q0 a 1 1.0 t\nq1 Q0 b 2 5.0 t\n")
    assert ids(rank_file(TESTSET, path, convention_named("cupertino"))) == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "q1\tQ0\ta\t1\t2.0\ttag\nq1\tQ0\tb\t2\t1.0\ttag\n",
        "q1 Q0 a 1 2.0 tag with words\r\nq1 Q0 b 2 1.0 tag\r\n",
        "# a comment\n\nq1   Q0  a 1 2.0 tag\nq1 Q0 b 2 1.0 tag",
        gzip.compress(b"q1 Q0 a 1 2.0 tag\nq1 Q0 b 2 1.0 tag\n", mtime=0),
        b"\xef\xbb\xbfq1 Q0 a 1 2.0 tag\nq1 Q0 b 2 1.0 tag\n",
    ],
    ids=["tabs", "CRLF and a tag of three words", "comment, blank line, no final newline", "gzip", "byte order mark"],
)
def test_any_spelling_of_a_line(tmp_path, text):
    assert ids(rank_file(TESTSET, write(tmp_path, text), TREC)) == ["a", "b"]


def test_interleaved_queries_are_put_together(tmp_path):
    path = write(tmp_path, "q1 Q0 a 1 2 t\nq2 Q0 c 1 2 t\nq1 Q0 b 2 3 t\n")
    ranked = rank_file(TESTSET, path, TREC)
    assert ids(ranked) == ["b", "a"]
    assert ids(ranked, "q2") == ["c"]


def test_every_bad_line_is_named_at_once(tmp_path):
    path = write(tmp_path, "q1 Q0 a 1 2 t\nq1 Q0 b 2 t\nq1 Q0 c 3 nan t\nq1 Q0 d 4 high t\nq1 Q0 e 5 inf t\n")
    with pytest.raises(RunFormatError) as caught:
        rank_file(TESTSET, path, TREC)
    assert str(caught.value).splitlines() == [
        f"{path}:2: 5 columns; expected 6: query Q0 document rank score tag, got 'q1 Q0 b 2 t'.",
        f"{path}:3: the score is not a finite number; expected a number in column 5, got 'nan'.",
        f"{path}:4: the score is not a finite number; expected a number in column 5, got 'high'.",
        f"{path}:5: the score is not a finite number; expected a number in column 5, got 'inf'.",
    ]


def test_a_duplicate_names_both_lines(tmp_path):
    path = write(tmp_path, "q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq1 Q0 a 3 1 t\n")
    with pytest.raises(RunFormatError, match=r"lists document 'a' twice") as caught:
        rank_file(TESTSET, path, TREC)
    assert caught.value.problems[0].line == 3
    assert "line 1" in str(caught.value)


def test_the_first_of_a_duplicate_is_kept_on_request_and_counted(tmp_path):
    path = write(tmp_path, "q1 Q0 a 1 1 t\nq1 Q0 b 2 2 t\nq1 Q0 a 3 3 t\n")
    ranked = rank_file(TESTSET, path, TREC, duplicates="first")
    assert ids(ranked) == ["a", "b"]
    assert ranked.ranking.n_duplicates.tolist() == [1, 0]


def test_a_missing_query_counts_as_zero_or_is_left_out(tmp_path):
    path = write(tmp_path, "q1 Q0 a 1 1 t\n")
    zero = rank_file(TESTSET, path, TREC).ranking
    assert zero.outcomes == (Outcome.ANSWERED, Outcome.MISSING)
    assert compute(parse("RR"), zero)[0].tolist() == [1.0, 0.0]
    assert rank_file(TESTSET, path, TREC, missing="skip").ranking.query_ids == ("q1",)


def test_extra_queries_are_ignored_and_named(tmp_path):
    path = write(tmp_path, "q1 Q0 a 1 1 t\nq9 Q0 a 1 1 t\n")
    assert rank_file(TESTSET, path, TREC).extra_queries == ("q9",)


def test_no_common_query_is_an_error(tmp_path):
    with pytest.raises(NoCommonQueryError, match="share no query id"):
        rank_file(TESTSET, write(tmp_path, "x1 Q0 a 1 1 t\n"), TREC)


def test_an_empty_file_is_an_error(tmp_path):
    with pytest.raises(RunFormatError, match="no line in this run"):
        rank_file(TESTSET, write(tmp_path, "\n# nothing\n"), TREC)


def test_the_digest_is_that_of_the_content_not_of_its_packing(tmp_path):
    text = b"q1 Q0 a 1 2.0 tag\n"
    plain = rank_file(TESTSET, write(tmp_path, text), TREC).digest
    assert rank_file(TESTSET, write(tmp_path, gzip.compress(text)), TREC).digest == plain
    assert rank_file(TESTSET, write(tmp_path, b"q1 Q0 a 1 2.5 tag\n"), TREC).digest != plain


def test_lines_that_end_in_a_lone_carriage_return_are_refused(tmp_path):
    # read as one line, everything after the first result would be its tag
    with pytest.raises(RunFormatError, match="1: lines end in a lone carriage return"):
        rank_file(TESTSET, write(tmp_path, "q1 Q0 a 1 2.0 tag\rq1 Q0 b 2 1.0 tag\r"), TREC)


def test_a_packed_run_that_was_cut_short_is_refused(tmp_path):
    text = b"".join(b"q1 Q0 d%d 1 %d t\n" % (i * 7919 % 100_003, 100_000 - i) for i in range(100_000))
    path = write(tmp_path, gzip.compress(text)[:-1000])
    with pytest.raises(RunFormatError, match="the gzip data are damaged or cut short"):
        rank_file(TESTSET, path, TREC)


def test_a_run_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RunFormatError, match="no such file"):
        rank_file(TESTSET, tmp_path / "none.run", TREC)


def test_a_run_file_can_be_read_before_numpy_is_imported():
    modules = (
        "cranfield.app.commands.evaluate, cranfield.app.loading, cranfield.app.read_ahead, cranfield.ranking.c_reader"
    )
    code = f"import sys, {modules}; print([name for name in ('numpy', 'scipy', 'logging') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_reading_that_was_started_gives_the_same_ranking(tmp_path):
    path = write(tmp_path, "q1 Q0 a 1 1 t\nq1 Q0 b 2 2 t\n")
    reading = FileReading(TESTSET, path, TREC, "zero", "error", depth=None, keep=10, cache=False)
    reading.start()
    started, read = reading.result(), rank_file(TESTSET, path, TREC)
    reading.close()
    assert started == dataclasses.replace(read, ranking=started.ranking)
    assert started.ranking.rank.tolist() == read.ranking.rank.tolist()
    assert started.digest == read.digest
