"""TREC qrels read and written, TREC runs written."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import RunFormatError, TestSetError
from cranfield.formats.io.files import GZIP_MAGIC, MAX_PROBLEMS, ZSTD_MAGIC
from cranfield.formats.runs.files import write_trec_run
from cranfield.formats.testsets.trec import read_qrels, write_qrels
from cranfield.model import CONVENTIONS, Answer, Hit, Order, Outcome, Query, Run, TestSet
from cranfield.ranking import rank_file
from cranfield.ranking.collected import rank_run


def qrels(tmp_path: Path, data: bytes, name: str = "a.qrels") -> TestSet:
    path = tmp_path / name
    path.write_bytes(data)
    return read_qrels(path)


@pytest.mark.parametrize(
    ("data", "grades"),
    [
        (b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\n", {"q1": {"d1": 1.0, "d2": 0.0}, "q2": {"d1": 2.0}}),
        (b"q1\t0\td1\t1\n", {"q1": {"d1": 1.0}}),
        (b"q1 0 d1 1\r\nq1 0 d2 2\r\n", {"q1": {"d1": 1.0, "d2": 2.0}}),
        (b"  q1   0 \t d1  1  ", {"q1": {"d1": 1.0}}),
        (b"\n\nq1 0 d1 1\n \n", {"q1": {"d1": 1.0}}),
        (b"# comment q1 0 d9 1\nq1 0 d1 1\n", {"q1": {"d1": 1.0}}),
        (b"q1 0 d#1 1\nq1 0 #2 1\n", {"q1": {"d#1": 1.0, "#2": 1.0}}),
        (b" #1 0 d1 1\n", {"#1": {"d1": 1.0}}),  # only a # in the first column begins a comment
        (b"q1 0 d1 0.25\nq1 0 d2 -1\nq1 0 d3 1e2\n", {"q1": {"d1": 0.25, "d2": -1.0, "d3": 100.0}}),
        (b"q1 0 d1 1\nq2 0 d1 1\nq1 0 d2 1\n", {"q1": {"d1": 1.0, "d2": 1.0}, "q2": {"d1": 1.0}}),
        (b"\xef\xbb\xbfq1 0 d1 1\n", {"q1": {"d1": 1.0}}),
        (b"q\xff 0 d\xe9 1\n", {"q\udcff": {"d\udce9": 1.0}}),  # bytes that are no UTF-8 are kept
        ("q\u00e9 0 a\u00a0b 1\n".encode(), {"q\u00e9": {"a\u00a0b": 1.0}}),  # a no-break space is no column
    ],
)
def test_qrels_are_read(tmp_path: Path, data: bytes, grades: dict[str, dict[str, float]]) -> None:
    testset = qrels(tmp_path, data)
    assert testset.grades == grades
    assert testset.queries == tuple(Query(query_id) for query_id in grades)
    assert not testset.targets


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.qrels", "a"), ("msmarco.dev.qrels", "msmarco.dev"), ("a.qrels.gz", "a"), ("a", "a"), ("qrels.123", "qrels")],
)
def test_a_test_set_of_qrels_is_named_after_the_file(tmp_path: Path, name: str, expected: str) -> None:
    assert qrels(tmp_path, b"q1 0 d1 1\n", name).name == expected


def test_a_repeated_judgment_counts_once(tmp_path: Path) -> None:
    file = qrels(tmp_path, b"q1 0 d1 1\nq1 0 d2 0\nq1 1 d1 1.0\nq2 0 d1 1\nq1 0 d1 01\n")
    assert file.grades == {"q1": {"d1": 1.0, "d2": 0.0}, "q2": {"d1": 1.0}}


def test_the_digest_is_blind_to_spelling_and_order(tmp_path: Path) -> None:
    one = qrels(tmp_path, b"q1 0 d1 1\nq2 0 d2 -0\n").digest
    other = qrels(tmp_path, b"q2 Q0 d2 0.0\n# x\nq1 0 d1 1.0\n").digest
    assert one == other


def test_packed_qrels_are_told_by_their_content(tmp_path: Path) -> None:
    assert qrels(tmp_path, gzip.compress(b"q1 0 d1 1\n"), "a.txt").grades == {"q1": {"d1": 1.0}}


def test_all_problems_are_collected_up_to_a_limit(tmp_path: Path) -> None:
    with pytest.raises(TestSetError) as caught:
        qrels(tmp_path, b"q1 0 d1 1\n" + b"q1 0 d1\n" * 50)
    assert [problem.line for problem in caught.value.problems] == list(range(2, 52))
    with pytest.raises(TestSetError) as caught:
        qrels(tmp_path, b"no qrels\n" * (MAX_PROBLEMS + 5))
    assert len(caught.value.problems) == MAX_PROBLEMS == 1000


def test_conflicts_name_the_first_line_of_each_pair(tmp_path: Path) -> None:
    with pytest.raises(TestSetError) as caught:
        qrels(tmp_path, b"q1 0 d1 1\nq1 0 d2 1\nq1 0 d2 2\nq1 0 d1 0\nq1 0 d1 3\n")
    assert [(p.line, p.expected, p.got) for p in caught.value.problems] == [
        (3, "1, as on line 2", "2"),
        (4, "1, as on line 1", "0"),
        (5, "1, as on line 1", "3"),
    ]


@pytest.mark.parametrize(
    ("name", "n_judgments", "n_queries", "n_relevant"),
    # counted with: grep -v '^#' FILE | wc -l; cut -d' ' -f1 | sort -u | wc -l; awk '$4 >= 1' | wc -l
    [
        ("qrels.test", 3681, 3, 561),
        ("qrels.test.with-comments", 3681, 3, 561),
        ("qrels.comment.test", 5890, 31, 4463),
        ("qrels.rel_level", 3681, 3, 559),
    ],
)
def test_qrels_of_the_field_are_read(
    shared_data: Path, name: str, n_judgments: int, n_queries: int, n_relevant: int
) -> None:
    testset = read_qrels(shared_data / "trec_eval" / name)
    assert len(testset.queries) == n_queries
    grades = [grade for judged in testset.grades.values() for grade in judged.values()]
    assert len(grades) == n_judgments
    assert sum(grade >= 1 for grade in grades) == n_relevant


def test_judgments_of_several_raters_in_one_file_are_refused(shared_data: Path) -> None:
    with pytest.raises(TestSetError) as caught:
        read_qrels(shared_data / "trec_eval" / "qrels.123")
    problem = caught.value.problems[0]
    assert (problem.line, problem.expected, problem.got) == (3686, "0, as on line 5", "3")
    assert problem.hint == (
        "column 2 has several values, such as several raters or subtopics in one file: keep one of them, or read "
        "them all with {format=judges} or {format=subtopics}"
    )


def test_comments_do_not_change_what_qrels_mean_but_for_ids_with_a_hash(shared_data: Path) -> None:
    plain = read_qrels(shared_data / "trec_eval" / "qrels.test").grades
    commented = read_qrels(shared_data / "trec_eval" / "qrels.test.with-comments").grades
    undone = {
        query_id: {doc_id.replace("#", ""): grade for doc_id, grade in judged.items()}
        for query_id, judged in commented.items()
    }
    assert undone == plain


ids = st.binary(min_size=1, max_size=6).filter(lambda data: len(data.split()) == 1 and data.split()[0] == data)
doc_ids = ids.map(lambda data: data.decode("utf-8", "surrogateescape"))
first_bytes = (b"#", b"\xef\xbb\xbf", GZIP_MAGIC, ZSTD_MAGIC)
query_ids = ids.filter(lambda data: not data.startswith(first_bytes)).map(
    lambda data: data.decode("utf-8", "surrogateescape")
)
grades = st.floats(allow_nan=False, allow_infinity=False).map(lambda grade: grade + 0.0) | st.integers(-2, 4).map(float)


@given(
    judged=st.dictionaries(query_ids, st.dictionaries(doc_ids, grades, min_size=1, max_size=4), min_size=1, max_size=4)
)
def test_qrels_survive_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, judged: dict[str, dict[str, float]]
) -> None:
    testset = TestSet("t", tuple(Query(query_id) for query_id in judged), judged)
    path = tmp_path_factory.getbasetemp() / "t.qrels"
    write_qrels(testset, path)
    read = read_qrels(path)
    assert read == testset
    assert read.digest == testset.digest


def test_written_qrels_have_whole_grades_without_a_point(tmp_path: Path) -> None:
    testset = TestSet("t", (Query("q1", "text is lost"),), {"q1": {"d1": 2.0, "d2": 0.5, "d3": -1}})
    write_qrels(testset, tmp_path / "t.qrels")
    assert (tmp_path / "t.qrels").read_bytes() == b"q1 0 d1 2\nq1 0 d2 0.5\nq1 0 d3 -1\n"


def run(order: Order, *hits: Hit, depth: int | None = None, name: str = "my run") -> Run:
    return Run(name, {"q1": Answer(Outcome.ANSWERED, hits)}, depth, order)


def written(run: Run, tmp_path: Path) -> str:
    write_trec_run(run, tmp_path / "a.trec")
    return (tmp_path / "a.trec").read_bytes().decode()


@pytest.mark.parametrize(
    ("given_run", "lines"),
    [
        # given order: positions become scores where the system's own do not fall
        (run("given", Hit("a"), Hit("b")), ["q1 Q0 a 1 2.0 my_run", "q1 Q0 b 2 1.0 my_run"]),
        (run("given", Hit("a", 1.0), Hit("b", 3.0)), ["q1 Q0 a 1 2.0 my_run", "q1 Q0 b 2 1.0 my_run"]),
        (run("given", Hit("a", 1.0), Hit("b", 1.0)), ["q1 Q0 a 1 2.0 my_run", "q1 Q0 b 2 1.0 my_run"]),
        (run("given", Hit("a", 1.0), Hit("b")), ["q1 Q0 a 1 2.0 my_run", "q1 Q0 b 2 1.0 my_run"]),
        (run("given", Hit("a", math.nan), Hit("b", 0.1)), ["q1 Q0 a 1 2.0 my_run", "q1 Q0 b 2 1.0 my_run"]),
        (run("given", Hit("a", 0.5), Hit("b", 0.1)), ["q1 Q0 a 1 0.5 my_run", "q1 Q0 b 2 0.1 my_run"]),
        # declared order: sorted, ties to the larger id; small scores first are written with their sign changed
        (run("descending", Hit("a", 0.5), Hit("b", 0.5)), ["q1 Q0 b 1 0.5 my_run", "q1 Q0 a 2 0.5 my_run"]),
        (run("ascending", Hit("a", -2.0), Hit("b", -3.0)), ["q1 Q0 b 1 3.0 my_run", "q1 Q0 a 2 2.0 my_run"]),
        # the first of each id, then the depth
        (run("given", Hit("a"), Hit("a"), Hit("b"), Hit("c"), depth=2), ["q1 Q0 a 1 2.0 my_run", "q1 Q0 b 2 1.0 my_run"]),
        (run("given", name=""), []),
        (run("given", Hit("a"), name=" "), ["q1 Q0 a 1 1.0 _"]),
        (run("given", Hit("a"), name=""), ["q1 Q0 a 1 1.0 run"]),
    ],
)  # fmt: skip
def test_a_run_is_written_so_that_score_order_is_its_order(tmp_path: Path, given_run: Run, lines: list[str]) -> None:
    assert written(given_run, tmp_path) == "".join(line + "\n" for line in lines)


@given(
    hits=st.lists(st.builds(Hit, doc_ids, st.sampled_from([0.0, -1.0, 1.0, 1.00000001, 1e-300, 1e300, 2.5])), max_size=8),
    order=st.sampled_from(["given", "descending", "ascending"]),
    depth=st.none() | st.integers(1, 5),
)  # fmt: skip
def test_a_written_run_is_ranked_as_the_run_itself(
    tmp_path_factory: pytest.TempPathFactory, hits: list[Hit], order: Order, depth: int | None
) -> None:
    hits = [*hits, Hit("relevant", 1.0)]
    collected = Run("r", {"q1": Answer(Outcome.ANSWERED, tuple(hits))}, depth, order)
    testset = TestSet("t", (Query("q1"),), {"q1": {"relevant": 1.0, **{hit.id: 2.0 for hit in hits[:2]}}})
    path = tmp_path_factory.getbasetemp() / "ranked.trec"
    write_trec_run(collected, path)
    ours = rank_run(testset, collected, CONVENTIONS["trec"])
    theirs = rank_file(testset, path, CONVENTIONS["trec"]).ranking
    assert [hit.id for hit in theirs.top["q1"]] == [hit.id for hit in ours.top["q1"]]
    assert theirs.rank.tolist() == ours.rank.tolist()


def test_a_run_that_cannot_be_ordered_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(RunFormatError, match="hit 1 has no score"):
        written(run("descending", Hit("a", math.nan)), tmp_path)
    assert list(tmp_path.iterdir()) == []
