"""Both readers of TREC run files: what they accept, refuse and report, and that they agree.

Expected results are worked out by hand. On random files the C reader is compared with the Python reader, which is the
specification, and the ranks of both with `ranks_by_definition`, which counts the better results of each.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import RunFormatError
from cranfield.formats.io.files import GZIP_MAGIC, MAX_LINE_BYTES, ZSTD_MAGIC
from cranfield.ranking import c_reader, python_reader
from cranfield.ranking.scan import BLOCK_BYTES, UNJUDGED, JudgedIndex, Scan, ScanOptions

Reader = Callable[..., Scan]
INDEX = JudgedIndex((b"q1", b"q2", b"q3"), ((b"a", b"b", b"c", "é".encode()), (b"c",), ()))
TYPES = {
    **dict.fromkeys(("query", "rank", "item", "tie_first", "tie_last"), np.int32),
    **dict.fromkeys(("n_returned", "n_duplicates", "n_tied"), np.int32),
    **dict.fromkeys(("answered", "misranked"), np.bool_),
}
TOP_TYPES = {"start": np.int64, "offset": np.int64, "score": np.float64, "item": np.int32}


def in_python(source: Any, index: JudgedIndex, options: ScanOptions, **how: int) -> Scan:
    how.pop("threads", None)
    return python_reader.scan_file(source, index, options, **how)


def in_c(source: Any, index: JudgedIndex, options: ScanOptions, **how: int) -> Scan:
    return c_reader.scan_file(source, index, options, **{"threads": 1} | how)


@pytest.fixture(params=[in_python, in_c], ids=["python", "native"])
def read(request: pytest.FixtureRequest) -> Reader:
    if request.param is in_c and not c_reader.available():
        pytest.skip(f"the native reader was not built: {c_reader.why_not()}")
    return request.param


@pytest.fixture
def scan(read: Reader, tmp_path: Path) -> Callable[..., Result]:
    """Read the text of a run file."""

    def scanned(text: str | bytes, index: JudgedIndex = INDEX, **options: Any) -> Result:
        path = tmp_path / "a.run"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return result_of(read(path, index, ScanOptions(**options)), index)

    return scanned


@pytest.fixture
def problems(read: Reader, tmp_path: Path) -> Callable[..., list[str]]:
    """Read the text of a run file that is refused: its problems, without the path."""

    def found(text: str | bytes, index: JudgedIndex = INDEX, **options: Any) -> list[str]:
        path = tmp_path / "a.run"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(RunFormatError) as caught:
            read(path, index, ScanOptions(**options))
        return said(caught.value, path)

    return found


def said(error: RunFormatError, path: Path) -> list[str]:
    """The problems of an error, without the path."""
    return [str(problem).removeprefix(f"{path}:").strip() for problem in error.problems]


# ---------------------------------------------------------------- a scan, query by query


@dataclass
class Answer:
    """What a scan says of one query."""

    rows: list[tuple[int, int, int, int]]
    """(rank, item, tie_first, tie_last) of its judged results."""
    top: list[tuple[bytes, str, int]]
    """(document, score, item)"""
    n_returned: int = 0
    n_duplicates: int = 0
    n_tied: int = 0
    misranked: bool = False

    def ids(self) -> list[str]:
        return [doc_id.decode() for doc_id, _, _ in self.top]


@dataclass
class Result:
    """A scan as lists, for comparing and for asserting."""

    answers: dict[bytes, Answer | None]
    """None where the file has no line of the query."""
    n_lines: int
    tag: str | None
    digest: str
    extra_queries: tuple[str, ...]

    def __getitem__(self, query_id: str) -> Answer:
        answer = self.answers[query_id.encode()]
        assert answer is not None
        return answer

    def ids(self, query_id: str = "q1") -> list[str]:
        return self[query_id].ids()


def result_of(scan: Scan, index: JudgedIndex) -> Result:
    """Take a scan apart, once its columns were looked at as such."""
    rows = {name: getattr(scan, name) for name in ("query", "rank", "item", "tie_first", "tie_last")}
    assert {name: getattr(scan, name).dtype for name in TYPES} == TYPES
    assert {name: getattr(scan.top, name).dtype for name in TOP_TYPES} == TOP_TYPES
    assert {len(column) for column in rows.values()} == {len(scan.query)}
    assert {len(getattr(scan, name)) for name in TYPES if name not in rows} == {len(index.query_ids)}
    assert len(scan.top.start) == len(index.query_ids) + 1
    assert len(scan.top.score) == len(scan.top.item) == len(scan.top.offset) - 1 == scan.top.start[-1]
    assert len(scan.top.blob) == scan.top.offset[-1]
    order = np.lexsort((scan.rank, scan.query))
    assert order.tolist() == list(range(len(order)))
    answers: dict[bytes, Answer | None] = {}
    for query, query_id in enumerate(index.query_ids):
        of_query = scan.query == query
        answer = Answer(
            list(zip(*(rows[name][of_query].tolist() for name in list(rows)[1:]), strict=True)),
            [(doc_id, repr(score), item) for doc_id, score, item in scan.top.of(query)],
            *(getattr(scan, name)[query].item() for name in ("n_returned", "n_duplicates", "n_tied", "misranked")),
        )
        if not scan.answered[query]:
            assert answer == Answer([], [])
        answers[query_id] = answer if scan.answered[query] else None
    return Result(answers, scan.n_lines, scan.tag, scan.digest, scan.extra_queries)


def digest_of(data: bytes, block_bytes: int = BLOCK_BYTES) -> str:
    blocks = [data[at : at + block_bytes] for at in range(0, len(data), block_bytes)]
    return "sha256:" + hashlib.sha256(b"".join(hashlib.sha256(block).digest() for block in blocks)).hexdigest()


# ---------------------------------------------------------------- lines


@pytest.mark.parametrize(
    "text",
    [
        "q1 Q0 a 1 2.0 tag\nq1 Q0 b 2 1.0 tag\n",
        "q1\tQ0\ta\t1\t2.0\ttag\nq1\tQ0\tb\t2\t1.0\ttag\n",
        "q1 Q0 a 1 2.0 tag\r\nq1 Q0 b 2 1.0 tag\r\n",
        "  q1   Q0 \t a 1 2.0   tag  \nq1 Q0 b 2 1.0 tag\n",
        "q1\vQ0\fa\r1 2.0 tag\nq1 Q0 b 2 1.0 tag\n",
        "q1 Q0 a 1 2.0 tag\n\n \t\r\n\nq1 Q0 b 2 1.0 tag\n\n",
        "# a comment\n#\nq1 Q0 a 1 2.0 tag\n# q1 Q0 x 1 9.0 tag\nq1 Q0 b 2 1.0 tag\n",
        "q1 Q0 a 1 2.0 tag\nq1 Q0 b 2 1.0 tag",
        b"\xef\xbb\xbfq1 Q0 a 1 2.0 tag\nq1 Q0 b 2 1.0 tag\n",
        b"\xef\xbb\xbf# a comment\nq1 Q0 a 1 2.0 tag\nq1 Q0 b 2 1.0 tag\n",
        "q1 Q0 a 1 2.0 tag\nq1 Q0 b 2 1.0 another tag of six words and a # sign\n",
    ],
    ids=[
        "plain",
        "tabs",
        "CRLF",
        "many spaces",
        "every white space",
        "blank lines",
        "comments",
        "no last line feed",
        "byte order mark",
        "byte order mark before a comment",
        "a tag with spaces",
    ],
)
def test_any_spelling_of_a_line(scan, text):
    found = scan(text)
    assert found.ids() == ["a", "b"]
    assert found.n_lines == 2
    assert found.tag == "tag"


@pytest.mark.parametrize(
    ("sixth", "tag"),
    [
        ("tag with words", "tag with words"),
        ("tag\t and  more fields 7 8 \r", "tag\t and  more fields 7 8"),
        ("#tag", "#tag"),
        (b"\xff", "\ufffd"),
        ("\u00a0", "\u00a0"),
    ],
    ids=["words", "more than six fields", "hash", "not UTF-8", "a space that separates nothing"],
)
def test_the_tag_is_the_rest_of_the_first_result_line(scan, sixth, tag):
    sixth = sixth.encode() if isinstance(sixth, str) else sixth
    assert scan(b"# none\n\nq9 Q0 a 1 2.0 " + sixth + b"\nq1 Q0 b 2 1.0 other\n").tag == tag


def test_only_a_hash_in_the_first_column_makes_a_comment(scan):
    found = scan(" #q Q0 a 1 2 t\n#q Q0 a 1 2 t\nq1 Q0 #a 1 2 t\nq1 Q0 b#c 2 1 #\n")
    assert found.extra_queries == ("#q",)
    assert found.ids() == ["#a", "b#c"]


def test_a_byte_order_mark_counts_as_such_on_the_first_line_alone(scan):
    found = scan("\ufeffq1 Q0 a 1 2 t\n\ufeffq2 Q0 c 1 2 t\n\ufeff# Q0 c 1 2 t\n".encode())
    assert found.ids() == ["a"]
    assert found.extra_queries == ("\ufeffq2", "\ufeff#")


@pytest.mark.parametrize("doc_id", [b"\x00", b"\x1c\x1d", b"a\x85", b"\xc2\xa0", b"\xff\xfe", b"0" * 9, b"x" * 5000])
def test_an_id_is_any_bytes_but_white_space(scan, doc_id):
    index = JudgedIndex((b"q\x00" + doc_id, doc_id), ((doc_id,), (doc_id + b"0", doc_id)))
    lines = [b" ".join((query_id, b"Q0", doc_id, b"1 2 t\n")) for query_id in index.query_ids]
    assert [answer.rows for answer in scan(b"".join(lines), index).answers.values()] == [[(1, 0, 1, 1)], [(1, 1, 1, 1)]]


@pytest.mark.parametrize("length", [2, 7, 8, 9, 16, 255, 256, 257, 300])
def test_ids_that_differ_in_one_byte_are_different(scan, length):
    ids = [b"i" * place + b"j" + b"i" * (length - place) for place in (0, length // 2, length)] + [b"i" * length]
    index = JudgedIndex(tuple(ids), tuple(tuple(ids[place:]) for place in range(len(ids))))
    lines = [b"%s Q0 %s 1 %d t\n" % (q, d, place) for q in ids for place, d in enumerate(ids)]
    found = scan(b"".join(lines), index)
    assert [len(answer.rows) for answer in found.answers.values()] == [4, 3, 2, 1]
    assert [answer.n_duplicates for answer in found.answers.values()] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("q1 Q0 b 2 t", "5 columns; expected 6: query Q0 document rank score tag, got 'q1 Q0 b 2 t'."),
        ("x", "1 columns; expected 6: query Q0 document rank score tag, got 'x'."),
        (
            " q1 Q0  b " + "2" * 100,
            "4 columns; expected 6: query Q0 document rank score tag, got 'q1 Q0  b " + "2" * 69 + "….",
        ),
        (
            "q1 Q0 b 1 2.0 t\rq1 Q0 c 2 1.0 t\r",
            (
                "lines end in a lone carriage return; expected a line feed at the end of each line, "
                "got 'q1 Q0 b 1 2.0 t\\rq1 Q0 c 2 1.0 t'."
            ),
        ),
    ],
    ids=["five columns", "one column", "a long line", "lone carriage returns"],
)
@pytest.mark.parametrize("query_id", ["q1", "q9"], ids=["judged", "unjudged"])
def test_a_line_that_is_none_is_a_problem(problems, line, problem, query_id):
    line, problem = (text.replace("q1", query_id) for text in (line, problem))
    assert problems(f"q1 Q0 a 1 3 t\n{line}\n") == [f"2: {problem}"]


NUMBERS = [
    "0", "-0", "-0.0", "7", "+7", "1.", ".5", "-.5", "+.5", "007.250", "1e3", "1E+3", "1.5e-3", "-2.e2", "1e-400",
]  # fmt: skip
NUMBERS += [
    "12345678",
    "123456789",
    "-1234567.8",
    "12345678.9",
    "0.1",
    "0.123456789012345",
    "38.524251",
    "1e22",
    "1e23",
]
NUMBERS += ["9007199254740993", "9007199254740992", "1234567890123456", "999999999999999.9", "0.30000000000000004"]
NUMBERS += [
    "1.7976931348623157e308",
    "4.9e-324",
    "2.2250738585072011e-308",
    "0." + "0" * 400 + "1",
    "1" * 300,
    "1." + "9" * 60,
]
NUMBERS += [
    "179769313486231580793e288",
    "0.000000000000000000000000000000000000001",
    "5e-324",
    "0e999999999999999999999",
]


@pytest.mark.parametrize("text", NUMBERS)
def test_a_score_is_the_nearest_double(scan, text):
    assert scan(f"q1 Q0 a 1 {text} t\n")["q1"].top == [(b"a", repr(float(text)), 0)]


BAD_NUMBERS = [
    "nan", "NaN", "-nan", "inf", "-Infinity", "1e400", "-1e999999999999999999999", "high", "1_0", "_1", "0x10",
]  # fmt: skip
BAD_NUMBERS += [
    ".",
    "-",
    "+",
    "-.",
    "e5",
    ".e5",
    "1e",
    "1e+",
    "1.2.3",
    "1..2",
    "--1",
    "+-1",
    "1-",
    "1,5",
    "1.5f",
    "1d3",
    "\u0661",
]
BAD_NUMBERS += [
    "1\u00a0",
    "12345678.9.1",
    "1234567.1234567.1",
    "1\x000",
    "1e5.0",
    "infinity",
    "1e 5"[:2] + "-",
    "9" * 400,
]


@pytest.mark.parametrize("text", BAD_NUMBERS)
def test_a_score_that_is_no_finite_decimal_number_is_a_problem(problems, text):
    quoted = repr(text.strip())
    got = quoted if len(quoted) <= 80 else quoted[:79] + "…"
    expected = f"1: the score is not a finite number; expected a number in column 5, got {got}."
    assert problems(f"q1 Q0 a 1 {text} t\n") == [expected]


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n \n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_a_file_without_a_result_line_is_a_problem(problems, text):
    assert problems(text) == ["no line in this run; expected lines `query Q0 document rank score tag`."]


def test_a_file_of_unjudged_queries_is_a_scan_without_answers(scan):
    found = scan("q8 Q0 a 1 2 t\nq9 Q0 a 1 2 t\n")
    assert found.answers == {b"q1": None, b"q2": None, b"q3": None}
    assert (found.n_lines, found.extra_queries) == (2, ("q8", "q9"))


def test_nothing_need_be_judged(scan):
    found = scan("q8 Q0 a 1 2 t\nq9 Q0 a 1 2 t\n", JudgedIndex((), ()))
    assert found == Result({}, 2, "t", found.digest, ("q8", "q9"))


def test_every_bad_line_is_named_at_once(problems):
    text = "q1 Q0 a 1 2 t\nq1 Q0 b 2 t\nq9 Q0 c 3 nan t\nq1 Q0 d 4 high t\nq2 Q0 c 1 1 t\nq2 Q0 c 2 2 t\n"
    assert [line.split(";")[0] for line in problems(text)] == [
        "2: 5 columns",
        "3: the score is not a finite number",
        "4: the score is not a finite number",
        "6: query 'q2' lists document 'c' twice",
    ]


def test_the_first_twenty_problems_are_named(problems):
    lines = [f"q{i // 7} Q0 d{i} 1 {'high' if i % 2 else 1} t\n" for i in range(100)]
    assert [int(line.split(":")[0]) for line in problems("".join(lines))] == list(range(2, 42, 2))


def test_problems_are_the_first_that_are_met_and_a_duplicate_is_met_when_its_query_is_over(problems):
    # line 3 is said to repeat line 1 only when line 23 begins another query: 19 bad lines were met by then
    text = "q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq1 Q0 a 3 1 t\n" + "short\n" * 19 + "q2 Q0 c 1 1 t\n" + "short\n" * 9
    assert [int(line.split(":")[0]) for line in problems(text)] == [3, *range(4, 23)]


# ---------------------------------------------------------------- queries


def test_a_judged_query_that_is_not_in_the_file_is_not_answered(scan):
    found = scan("q2 Q0 x 1 1 t\n")
    assert found.answers[b"q1"] is None
    assert found["q2"] == Answer([], [(b"x", "1.0", UNJUDGED)], n_returned=1)


def test_queries_that_nobody_judged_are_named_in_the_order_met(scan):
    lines = ["q8 Q0 a 1 1 t", "q1 Q0 a 1 1 t", b"\xff".decode("latin-1") + " Q0 a 1 1 t", "q7 Q0 a 1 1 t"]
    assert scan("\n".join(lines).encode("latin-1")).extra_queries == ("q8", "\udcff", "q7")


def test_queries_come_in_any_order(scan):
    lines = ["q3 Q0 x 1 1 t", "q9 Q0 x 1 1 t", "q2 Q0 c 1 1 t", "q1 Q0 z 1 3 t", "q1 Q0 b 2 2 t", "q1 Q0 a 3 1 t"]
    found = scan("\n".join(lines))
    assert found["q1"].rows == [(2, 1, 2, 2), (3, 0, 3, 3)]
    assert [found.ids(query_id) for query_id in ("q1", "q2", "q3")] == [["z", "b", "a"], ["c"], ["x"]]


def test_interleaved_queries_are_put_together(scan):
    lines = ["q1 Q0 a 1 2 t", "q2 Q0 c 1 2 t", "q9 Q0 c 1 2 t", "q1 Q0 b 2 3 t", "q9 Q0 d 1 2 t", "q2 Q0 a 1 1 t"]
    found = scan("\n".join(lines))
    assert (found.ids("q1"), found.ids("q2")) == (["b", "a"], ["c", "a"])
    assert found["q1"].misranked
    assert (found.n_lines, found.extra_queries) == (6, ("q9",))


def test_problems_of_interleaved_queries_are_named_by_line(problems):
    lines = [
        "q1 Q0 a 1 2 t",
        "q2 Q0 c 1 2 t",
        "# none",
        "q1 Q0 b 2 3 t",
        "q2 Q0 d 1 x t",
        "q2 Q0 c 1 1 t",
        "q1 Q0 a 1 1 t",
    ]
    assert [line.split(";")[0] for line in problems("\n".join(lines))] == [
        "5: the score is not a finite number",
        "6: query 'q2' lists document 'c' twice",
        "7: query 'q1' lists document 'a' twice",
    ]


# ---------------------------------------------------------------- order, ties and ranks


def test_scores_order_and_the_rank_column_does_not(scan):
    found = scan("q1 Q0 a 1 1.0 t\nq1 Q0 b 2 5.0 t\nq1 Q0 c 3 -3 t\nq1 Q0 z 4 2 t\n")
    assert found.ids() == ["b", "z", "a", "c"]
    assert found["q1"].rows == [(1, 1, 1, 1), (3, 0, 3, 3), (4, 2, 4, 4)]


@pytest.mark.parametrize(
    ("ranks", "misranked"),
    [
        ("1 2 3", False),
        ("1 1 1", False),
        ("0 7 1000", False),
        ("-2 -1 +0", False),
        ("09 10 0011", False),
        ("1 3 2", True),
        ("10 9 8", True),
        ("9 10 8", True),
        ("-1 -2 -3", True),
        ("3 2 Q0", False),
        ("3 2 1.0", False),
        ("3 2 1_0", False),
        ("3 2 -", False),
        ("123456789012345678 -123456789012345678 2", True),
        ("1234567890123456789 2 1", False),
        ("123456789 12345678 1", True),
    ],
)
def test_a_rank_column_that_goes_down_by_score_is_noticed_where_it_is_all_whole_numbers(scan, ranks, misranked):
    lines = [
        f"q1 Q0 {doc} {rank} {9 - place} t\n"
        for place, (doc, rank) in enumerate(zip("abc", ranks.split(), strict=True))
    ]
    assert scan("".join(lines))["q1"].misranked is misranked


def test_ranks_are_looked_at_in_the_order_by_score(scan):
    assert scan("q1 Q0 a 3 1 t\nq1 Q0 b 2 2 t\nq1 Q0 c 1 3 t\nq2 Q0 c 1 1 t\nq2 Q0 d 2 1 t\n")["q1"].misranked is False


@pytest.mark.parametrize(
    ("ties", "order", "misranked"),
    [
        ("descending", ["c", "é", "b", "a", "z"], False),  # by ranks a, é, b: within a tie they may stand as they like
        ("ascending", ["c", "a", "b", "é", "z"], False),
        ("given", ["c", "a", "é", "b", "z"], False),
    ],
)
def test_ties_fall_by_the_bytes_of_the_id_or_as_the_lines_stand(scan, ties, order, misranked):
    # é is two bytes from 0xc3 on, so it comes after z
    lines = ["q1 Q0 a 2 1.0 t", "q1 Q0 é 3 1 t", "q1 Q0 b 4 1e0 t", "q1 Q0 z 5 0.5 t", "q1 Q0 c 1 9 t"]
    found = scan("\n".join(lines), ties=ties)
    assert found.ids() == order
    assert found["q1"].n_tied == 2
    assert sorted(row[1:] for row in found["q1"].rows) == [(0, 2, 4), (1, 2, 4), (2, 1, 1), (3, 2, 4)]
    assert found["q1"].misranked is misranked


def test_an_id_comes_before_those_that_begin_with_it(scan):
    lines = ["q1 Q0 d 1 1 t", "q1 Q0 d\x00 2 1 t", "q1 Q0 d1 3 1 t", "q1 Q0 d10 4 1 t", "q1 Q0 d9 4 1 t"]
    assert scan("\n".join(lines), ties="ascending").ids() == ["d", "d\x00", "d1", "d10", "d9"]
    assert scan("\n".join(lines), ties="descending").ids() == ["d9", "d10", "d1", "d\x00", "d"]


def test_zero_has_no_sign_when_scores_are_compared_and_keeps_it_when_they_are_shown(scan):
    found = scan("q1 Q0 a 1 -0.0 t\nq1 Q0 b 2 0 t\n")
    assert found["q1"].top == [(b"b", "0.0", 1), (b"a", "-0.0", 0)]
    assert found["q1"].n_tied == 1


@pytest.mark.parametrize(
    ("low", "high", "ties_at_32"),
    [
        ("1", "1.00000001", True),
        ("1", "1.0000001", False),
        ("16777216", "16777217", True),
        ("1e300", "2e300", True),
        ("-1e300", "1e300", False),
        ("1e-50", "2e-50", True),
    ],
)
def test_scores_are_compared_at_their_width_and_shown_as_written(scan, low, high, ties_at_32):
    text = f"q1 Q0 b 1 {low} t\nq1 Q0 a 2 {high} t\n"
    assert scan(text, width=64).ids() == ["a", "b"]
    found = scan(text, width=32)
    assert found["q1"].n_tied == ties_at_32
    first = (b"b", repr(float(low)), 1), (b"a", repr(float(high)), 0)
    assert found["q1"].top == list(first if ties_at_32 else reversed(first))


def test_the_order_given_stands_and_nothing_ties(scan):
    found = scan("q1 Q0 a 9 1.0 t\nq1 Q0 b x 5.0 t\nq1 Q0 c 2 5.0 t\n", order="given")
    assert found["q1"].rows == [(1, 0, 1, 1), (2, 1, 2, 2), (3, 2, 3, 3)]
    assert (found["q1"].n_tied, found["q1"].misranked) == (0, False)


def test_ranks_order_where_they_are_to_and_equal_ones_stand_as_their_lines_do(scan):
    lines = ["q1 Q0 a 10 9 t", "q1 Q0 b 9 8 t", "q1 Q0 c 010 7 t", "q1 Q0 d -3 6 t", "q1 Q0 e +9 5 t", "q2 Q0 c 1 1 t"]
    found = scan("\n".join(lines), order="rank")
    assert found.ids() == ["d", "b", "e", "a", "c"]
    assert found["q1"].rows == [(2, 1, 2, 2), (4, 0, 4, 4), (5, 2, 5, 5)]
    assert (found["q1"].n_tied, found["q1"].misranked) == (0, False)


@pytest.mark.parametrize("rank", ["Q0", "1.0", "1_0", "-", "+", "--1", "0x1", "1234567890123456789", "\u0661", "1e3"])
@pytest.mark.parametrize("query_id", ["q1", "q9"], ids=["judged", "unjudged"])
def test_a_rank_that_is_no_whole_number_is_a_problem_where_ranks_order(problems, query_id, rank):
    expected = "digits in column 4, because the rank orders this run"
    line = f"2: the rank is not a whole number; expected {expected}, got {rank!r}."
    assert problems(f"q1 Q0 a 1 1 t\n{query_id} Q0 b {rank} 2 t\n", order="rank") == [line]


def test_of_a_line_that_is_wrong_in_two_ways_the_first_is_said(problems):
    lines = problems("q1 Q0 a b\nq1 Q0 a b c t\rt\nq1 Q0 a b c t\nq1 Q0 a b 1 t\n", order="rank")
    assert [line.split(";")[0] for line in lines] == [
        "1: 4 columns",
        "2: lines end in a lone carriage return",
        "3: the score is not a finite number",
        "4: the rank is not a whole number",
    ]


# ---------------------------------------------------------------- duplicates, depth and what is kept


def test_a_duplicate_names_both_lines(problems):
    text = "q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\n\nq1 Q0 a 3 1 t\n"
    assert problems(text) == [
        (
            "4: query 'q1' lists document 'a' twice; expected each document once per query, got the same document on line 1.\n"
            "Hint: duplicates=first keeps the best-ranked one."
        )
    ]


def test_each_duplicate_names_the_line_of_the_best_ranked_one(problems):
    # by score line 3 is the first of a, then lines 1 and 4
    text = "q1 Q0 a 1 2 t\nq1 Q0 b 2 9 t\nq1 Q0 a 3 3 t\nq1 Q0 a 4 1 t\n"
    assert [re.sub(r";.*line", " …", line.split("\n")[0]) for line in problems(text)] == [
        "3: query 'q1' lists document 'a' twice … 1.",
        "4: query 'q1' lists document 'a' twice … 3.",
    ]


def test_the_same_document_in_two_queries_is_no_duplicate(scan):
    found = scan("q1 Q0 a 1 3 t\nq2 Q0 a 2 2 t\nq9 Q0 a 1 1 t\nq9 Q0 a 1 1 t\n")
    assert (found.ids("q1"), found.ids("q2")) == (["a"], ["a"])


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, [("a", 4), ("b", 3), ("c", 2)]),
        ({"order": "given"}, [("b", 3), ("a", 1), ("c", 2)]),
        ({"order": "rank"}, [("a", 1), ("c", 0), ("b", 3)]),
    ],
)
def test_the_first_of_a_duplicate_by_rank_is_kept_on_request_and_the_rest_are_counted(scan, options, kept):
    lines = ["q1 Q0 b 9 3 t", "q1 Q0 a 1 1 t", "q1 Q0 c 7 2 t", "q1 Q0 a 8 4 t", "q1 Q0 c 2 0 t", "q1 Q0 a 9 1 t"]
    found = scan("\n".join(lines), duplicates="first", **options)
    assert [(doc_id.decode(), float(score)) for doc_id, score, _ in found["q1"].top] == kept
    assert (found["q1"].n_returned, found["q1"].n_duplicates) == (3, 3)


def test_ties_are_among_the_results_that_are_left_and_counted_among_all(scan):
    # a 2, a 2, b 2, c 1, c 1: three tie with the one before them; a and b tie at ranks 1 and 2
    lines = ["q1 Q0 a 1 2 t", "q1 Q0 a 2 2 t", "q1 Q0 b 3 2 t", "q1 Q0 c 4 1 t", "q1 Q0 c 5 1 t"]
    found = scan("\n".join(lines), duplicates="first")
    assert found["q1"].rows == [(1, 1, 1, 2), (2, 0, 1, 2), (3, 2, 3, 3)]
    assert (found["q1"].n_tied, found["q1"].n_duplicates) == (3, 2)


@pytest.mark.parametrize(("depth", "rows"), [(None, 4), (4, 4), (3, 3), (2, 2), (1, 1)])
def test_the_depth_cuts_after_order_and_duplicates_and_ties_reach_beyond_it(scan, depth, rows):
    lines = ["q1 Q0 a 1 1 t", "q1 Q0 b 2 1 t", "q1 Q0 c 3 1 t", "q1 Q0 b 4 0 t", "q1 Q0 é 5 1 t"]
    answer = scan("\n".join(lines), duplicates="first", depth=depth)["q1"]
    assert answer.rows == [(1, 3, 1, 4), (2, 2, 1, 4), (3, 1, 1, 4), (4, 0, 1, 4)][:rows]
    assert answer.ids() == ["é", "c", "b", "a"][:rows]
    assert (answer.n_returned, answer.n_duplicates, answer.n_tied) == (rows, 1, 3)


def test_a_duplicate_beyond_the_depth_is_a_problem_all_the_same(problems):
    assert len(problems("q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq1 Q0 b 3 1 t\n", depth=1)) == 1


@pytest.mark.parametrize("keep", [0, 1, 3, 10, 1000])
def test_the_first_hits_are_kept_and_all_of_them_where_the_index_says_so(scan, keep):
    index = JudgedIndex((b"q1", b"q2"), ((b"d3",), ()), whole=(False, True))
    lines = [f"{query_id} Q0 d{i} 1 {20 - i} t\n" for query_id in ("q1", "q2") for i in range(20)]
    found = scan("".join(lines), index, keep=keep)
    assert found["q1"].top == [(b"d%d" % i, f"{20 - i}.0", 0 if i == 3 else UNJUDGED) for i in range(min(20, keep))]
    assert found["q2"].ids() == [f"d{i}" for i in range(20)]
    assert found["q1"].rows == [(4, 0, 4, 4)]
    assert scan("".join(lines), index, keep=keep, depth=5)["q2"].ids() == [f"d{i}" for i in range(5)]


# ---------------------------------------------------------------- files

TEXT = b"q1 Q0 a 1 2.0 tag\nq9 Q0 b 1 1.0 tag\nq1 Q0 b 2 1.0 tag\n"
"""Its queries come back, so whatever it is read from is read twice."""


@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(TEXT),
        gzip.compress(TEXT[:25]) + gzip.compress(TEXT[25:]),
        zstandard.compress(TEXT),
        zstandard.compress(TEXT[:25]) + zstandard.compress(TEXT[25:]),
    ],
    ids=["gzip", "two gzip members", "zst", "two zst frames"],
)
def test_packing_makes_no_difference(scan, packed):
    assert scan(packed) == scan(TEXT)


@pytest.mark.parametrize(
    ("packed", "problem"),
    [
        (gzip.compress(TEXT)[:-10], "the gzip data are damaged or cut short."),
        (zstandard.compress(TEXT)[:-3], "the Zstandard data are damaged or cut short."),
        (zstandard.compress(TEXT) + b"q1 Q0 a 1 1 t\n", "the Zstandard data are damaged or cut short."),
    ],
    ids=["gzip", "zst", "zst and something"],
)
def test_a_packed_file_that_is_damaged_is_refused(problems, packed, problem):
    assert problems(packed) == [problem]


def test_a_file_that_is_not_there_is_refused(read, tmp_path):
    with pytest.raises(RunFormatError, match="no such file"):
        read(tmp_path / "none.run", INDEX, ScanOptions())


def test_standard_input_is_read_like_a_file_and_named_as_such(read, scan, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    assert result_of(read(Path("-"), INDEX, ScanOptions()), INDEX) == scan(TEXT)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"q1 Q0 a\n")))
    with pytest.raises(RunFormatError, match=r"^<stdin>:1: 3 columns;"):
        read(Path("-"), INDEX, ScanOptions())


class Pipe(io.RawIOBase):
    """Gives a few bytes at a time, and cannot go back."""

    def __init__(self, data: bytes) -> None:
        self.data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        return self.data.readinto(memoryview(buffer)[:7])


@pytest.mark.parametrize("stream", [io.BytesIO, Pipe, lambda data: io.BufferedReader(Pipe(data))])
def test_a_stream_is_read_from_where_it_stands(read, scan, stream):
    opened = stream(b"12345" + TEXT)
    assert opened.read(5) == b"12345"
    assert result_of(read(opened, INDEX, ScanOptions()), INDEX) == scan(TEXT)


def test_the_digest_is_that_of_the_digests_of_the_blocks(scan):
    text = b"q1 Q0 a 1 1 t\n" + (b"# nothing but comments" + b"." * 999 + b"\n") * (BLOCK_BYTES // 800)
    assert len(text) > BLOCK_BYTES
    assert scan(text).digest == digest_of(text)
    assert scan(gzip.compress(text, 1)).digest == digest_of(text)


# ---------------------------------------------------------------- sharing out


def large_run(n_queries: int, n_lines: int, seed: int = 1) -> tuple[list[str], JudgedIndex]:
    """Lines of queries of different lengths, with ties, unjudged queries, and scores not in order here and there."""
    rng = random.Random(seed)
    lines, judged = [], {}
    for query in rng.sample(range(10 * n_queries), n_queries):
        doc_ids = rng.sample(range(100_000), rng.randint(1, 2 * n_lines // n_queries))
        scores = sorted((rng.randint(0, 20_000) / 1000 for _ in doc_ids), reverse=rng.random() < 0.9)
        lines += [
            f"q{query} Q0 d{doc} {i} {score} t" for i, (doc, score) in enumerate(zip(doc_ids, scores, strict=True))
        ]
        if query % 3:
            judged[b"q%d" % query] = tuple(b"d%d" % doc for doc in rng.sample([*doc_ids, -1, -2], min(3, len(doc_ids))))
    order = sorted(judged)
    return lines, JudgedIndex(tuple(order), tuple(judged[query_id] for query_id in order))


def text_of(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("block_bytes", [100, 5000, 1 << 16])
def test_several_threads_find_what_one_finds(read, tmp_path, threads, block_bytes):
    lines, index = large_run(60, 3000)
    path = tmp_path / "a.run"
    path.write_bytes(b"\xef\xbb\xbf# a comment\n" + text_of(lines)[:-1])
    one = read(path, index, ScanOptions(), threads=1, block_bytes=block_bytes)
    several = read(path, index, ScanOptions(), threads=threads, block_bytes=block_bytes)
    assert result_of(several, index) == result_of(one, index)
    assert several.answered.sum() == len(index.query_ids)
    assert several.digest != read(path, index, ScanOptions()).digest, "the size of a block is part of a digest"


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(
    ("spoiled", "problem"),
    [
        ({2990: "q1 Q0 a 1 high t"}, "2991: the score is not a finite number"),
        ({2990: "# fine", 2000: "q1 Q0 a 1 t"}, "2001: 5 columns"),
        ({2500: "q1 Q0 d1 1 2 t", 2501: "q1 Q0 d1 1 1 t"}, "2502: query 'q1' lists document 'd1' twice"),
    ],
    ids=["a score", "columns", "a duplicate"],
)
def test_a_problem_has_its_line_however_many_threads_read(read, tmp_path, threads, spoiled, problem):
    lines, index = large_run(60, 3000)
    index = JudgedIndex((*index.query_ids, b"q1"), (*index.doc_ids, ()))
    lines = [spoiled.get(place, line) for place, line in enumerate(lines * 2)][: len(lines)]
    path = tmp_path / "a.run"
    path.write_bytes(text_of(lines))
    with pytest.raises(RunFormatError) as caught:
        read(path, index, ScanOptions(), threads=threads, block_bytes=1000)
    assert [line.split(";")[0] for line in said(caught.value, path)] == [problem]


@pytest.mark.parametrize("threads", [1, 4])
def test_queries_that_come_back_in_another_range_are_put_together(read, tmp_path, threads):
    lines, index = large_run(40, 2000)
    path = tmp_path / "a.run"
    path.write_bytes(text_of(lines))
    whole = read(path, index, ScanOptions(), block_bytes=500)
    path.write_bytes(text_of(lines[1000:] + lines[:1000]))
    apart = read(path, index, ScanOptions(), threads=threads, block_bytes=500)
    assert result_of(apart, index).answers == result_of(whole, index).answers
    assert sorted(apart.extra_queries) == sorted(whole.extra_queries)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_query_may_be_larger_than_everything_else(read, tmp_path, threads):
    # one query of 3 MB between two small ones, in ranges of 4 kB and pieces of 1 MB
    lines = [f"q2 Q0 d{i} {i} {200_000 - i // 2} t" for i in range(100_000)]
    path = tmp_path / "a.run"
    path.write_bytes(text_of(["q1 Q0 a 1 1 t", *lines, "q3 Q0 a 1 1 t"]))
    index = JudgedIndex((b"q1", b"q2", b"q3"), ((b"a",), (b"d99999", b"d0", b"d77"), (b"a",)))
    found = result_of(read(path, index, ScanOptions(), threads=threads, block_bytes=1000), index)
    # scores fall by 1 every other line, so 2k and 2k + 1 tie, and the larger id in bytes is first
    assert found["q2"].rows == [(2, 1, 1, 2), (77, 2, 77, 78), (99_999, 0, 99_999, 100_000)]
    assert (found["q2"].n_returned, found["q2"].n_tied) == (100_000, 50_000)
    assert found["q1"].rows == found["q3"].rows == [(1, 0, 1, 1)]


# ---------------------------------------------------------------- both readers on random files

LONG = b"l" * 300
DOC_IDS = [b"a", b"b", b"c", b"aa", "é".encode(), b"\xff", b"a#", b"\x00", b"12345678", b"123456789", LONG, LONG + b"0"]
QUERY_IDS = [b"q1", b"q2", b"q", b"x", b"#q", b"\x1c", b"12345678", b"123456789", LONG, LONG + b"0"]
ANY_INDEX = JudgedIndex(
    (b"q2", b"q1", b"123456789", LONG, b"#q"),
    ((b"a", b"c", b"z"), tuple(DOC_IDS), (b"12345678",), (LONG,), ()),
    whole=(False, False, True, False, True),
)
SCORES = [
    b"1", b"1.0", b"2", b"1.00000001", b"-1", b"-0", b"0", b"1e300", b"2e300", b"0.1", b"12345678.25", b"+3", b".5",
    b"7.",
]  # fmt: skip
RANKS = [b"1", b"2", b"10", b"03", b"-1", b"+2", b"x", b"123456789", b"1234567890123456789"]
BAD_LINES = [b"q1 Q0 a 1 t", b"q1 Q0 a 1 nan t", b"x", b"q1 Q0 a 1 1 t\rt", b"q2 Q0 a 1 1_0 t", b"q1 Q0 a 1.5 1 t"]
IDLE_LINES = [b"", b" \t\r", b"# q1 Q0 a 1 1 t", b"#"]

options = st.builds(
    ScanOptions,
    order=st.sampled_from(["score", "score", "given", "rank"]),
    ties=st.sampled_from(["descending", "ascending", "given"]),
    width=st.sampled_from([64, 32]),
    duplicates=st.sampled_from(["first", "first", "error"]),
    depth=st.none() | st.integers(0, 4),
    keep=st.integers(0, 4),
)


@st.composite
def run_files(draw: st.DrawFn) -> bytes:
    """A file that is valid, or nearly so: queries in a row or not, some of one kind of lines, some of any."""
    often = st.sampled_from(SCORES[:3]) if draw(st.booleans()) else st.sampled_from(SCORES)
    ranks = st.sampled_from(RANKS[: draw(st.integers(1, len(RANKS)))])
    ids = st.sampled_from(DOC_IDS[: draw(st.integers(1, len(DOC_IDS)))])
    lines = draw(st.lists(st.tuples(st.sampled_from(QUERY_IDS), ids, ranks, often), max_size=30))
    if draw(st.booleans()):
        lines.sort(key=lambda line: line[0])
    if draw(st.booleans()):
        lines = list({line[:2]: line for line in lines}.values())
    gap, end = draw(st.sampled_from([b" ", b" ", b"\t", b"  "])), draw(st.sampled_from([b"\n", b"\n", b"\r\n", b" \n"]))
    texts = [gap.join((line[0], b"Q0", *line[1:], draw(st.sampled_from([b"t", b"u v"])))) for line in lines]
    for line in draw(st.lists(st.sampled_from(IDLE_LINES), max_size=3)):
        texts.insert(draw(st.integers(0, len(texts))), line)
    for line in draw(st.sampled_from([[], [], BAD_LINES[:1], BAD_LINES])):
        texts.insert(draw(st.integers(0, len(texts))), line)
    text = end.join(texts) + (end if draw(st.booleans()) else b"")
    return (b"\xef\xbb\xbf" if draw(st.booleans()) else b"") + text


PIECES = [b" ", b" ", b" ", b"\n", b"\n", b"q1", b"q2", b"Q0", b"a", b"1", b"2.5", b"#", b"\t", b"\r", b"\r\n", b"\v"]
PIECES += [b"\x00", b"_", b"nan", b"-", b".", b"e", b"\xef\xbb\xbf", b"\xff", b"\x1c", b"\x85", b"q1 Q0 a 1 1 t\n"]
soup = st.binary(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=150).map(b"".join)
soup = soup.filter(lambda data: not data.startswith((GZIP_MAGIC, ZSTD_MAGIC)))


def outcome(read: Reader, path: Path, options: ScanOptions, **how: int) -> Result | list[str]:
    try:
        return result_of(read(path, ANY_INDEX, options, **how), ANY_INDEX)
    except RunFormatError as error:
        return said(error, path)


@pytest.mark.parametrize("files", [run_files(), soup], ids=["run files", "soup"])
def test_both_readers_find_the_same_in_any_file(files, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "a.run"
    sizes = st.sampled_from([1, 20, 100, 1 << 20])

    @given(
        data=files, options=options, threads=st.integers(1, 3), block=st.sampled_from([7, 50, BLOCK_BYTES]), piece=sizes
    )
    def check(data: bytes, options: ScanOptions, threads: int, block: int, piece: int) -> None:
        path.write_bytes(data)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(python_reader, "PIECE_BYTES", piece)
            expected = outcome(in_python, path, options, block_bytes=block)
        if c_reader.available():
            assert outcome(in_c, path, options, threads=threads, block_bytes=block) == expected
        if isinstance(expected, Result):
            assert expected.digest == digest_of(data, block)
            for query_id, doc_ids in zip(ANY_INDEX.query_ids, ANY_INDEX.doc_ids, strict=True):
                answer = expected.answers[query_id]
                assert (answer and answer.rows) == rows_by_definition(data, query_id, doc_ids, options)

    check()


def rows_by_definition(
    data: bytes, query_id: bytes, doc_ids: tuple[bytes, ...], options: ScanOptions
) -> list[tuple[int, int, int, int]] | None:
    """(rank, item, tie_first, tie_last) without a sort: a rank is one more than the number of better documents.

    None where the file has no line of the query.
    """
    texts = [text.split(None, 5) for text in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if text[:1] != b"#"]
    lines = [columns for columns in texts if columns and columns[0] == query_id]
    best: dict[bytes, tuple[Any, ...]] = {}
    with np.errstate(over="ignore"):
        for place, (_, _, doc_id, rank, score, _) in enumerate(lines):
            value = float(np.float32(float(score))) if options.width == 32 else float(score)
            key = {"score": (-value,), "rank": (rank if options.order != "rank" else int(rank),), "given": (place,)}
            best[doc_id] = min(best.get(doc_id, (math.inf,)), (*key[options.order], place))
    is_better = {
        "descending": lambda a, b: best[a][0] < best[b][0] or (best[a][0] == best[b][0] and a > b),
        "ascending": lambda a, b: best[a][0] < best[b][0] or (best[a][0] == best[b][0] and a < b),
        "given": lambda a, b: best[a] < best[b],
    }[options.ties if options.order == "score" else "given"]
    rows = []
    for item, doc_id in enumerate(doc_ids):
        if doc_id not in best:
            continue
        rank = 1 + sum(is_better(other, doc_id) for other in best)
        first = 1 + sum(key[0] < best[doc_id][0] for key in best.values())
        last = sum(key[0] <= best[doc_id][0] for key in best.values())
        if options.depth is None or rank <= options.depth:
            rows.append((rank, item, first, last) if options.order == "score" else (rank, item, rank, rank))
    return sorted(rows) if lines else None


@given(
    st.decimals(allow_nan=False, allow_infinity=False).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.from_regex(r"[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)
def test_every_decimal_number_is_read_as_the_nearest_double(text):
    expected = float(text)
    index = JudgedIndex((b"q",), ((),), whole=(True,))
    stream = f"q Q0 a 1 {text} t\nq Q0 b 1 0 t\nq Q0 c 1 123456789.5 t\n".encode()
    for read in [in_python, in_c] if c_reader.available() else [in_python]:
        if math.isinf(expected):
            with pytest.raises(RunFormatError, match="not a finite number"):
                read(io.BytesIO(stream), index, ScanOptions(order="given"))
        else:
            scan = read(io.BytesIO(stream), index, ScanOptions(order="given"))
            assert repr(scan.top.score.tolist()) == repr([expected, 0.0, 123456789.5])


@given(data=st.data())
def test_both_readers_find_the_same_in_a_larger_file(data, tmp_path_factory):
    lines, index = large_run(data.draw(st.integers(1, 12)), 300, data.draw(st.integers(0, 1000)))
    options = ScanOptions(duplicates="first", depth=data.draw(st.none() | st.integers(1, 30)))
    if data.draw(st.booleans()):
        random.Random(len(lines)).shuffle(lines)
    path = tmp_path_factory.mktemp("runs") / "a.run"
    path.write_bytes(text_of(lines))
    expected = result_of(in_python(path, index, options), index)
    for query_id, doc_ids in zip(index.query_ids, index.doc_ids, strict=True):
        assert expected[query_id.decode()].rows == rows_by_definition(path.read_bytes(), query_id, doc_ids, options)
    if c_reader.available():
        assert result_of(in_c(path, index, options), index) == expected


# ---------------------------------------------------------------- long lines


LONG = "q1 Q0 a 1 1 " + "t" * MAX_LINE_BYTES
TOO_LONG = f"the line is longer than {MAX_LINE_BYTES} bytes; expected lines `query Q0 document rank score tag` that end in line feeds."


@pytest.mark.parametrize("end", ["\n", "", "\nq1 Q0 b 2 x t\n"])
@pytest.mark.parametrize(
    ("before", "line"),
    [("", 1), ("q1 Q0 b 2 1 t\n", 2), ("\ufeff# a\n\n", 3), ("q1 Q0 b 2 1 t\nq2 Q0 c 1 1 t\nq1 Q0 c 2 1 t\n", 4)],
)
def test_a_line_over_a_megabyte_ends_the_reading(problems, before, line, end):
    assert problems(before + LONG + end) == [f"{line}: {TOO_LONG}"]


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("before", ["", "q1 Q0 b 2 1 t\n" * 3])
def test_the_limit_of_a_line_is_the_same_to_the_byte(scan, problems, over, before):
    text = before.replace("b 2", "{} 2").format(*"bcd") + LONG[: MAX_LINE_BYTES + over] + "\n"
    if over:
        assert problems(text) == [f"{text.count(chr(10))}: {TOO_LONG}"]
    else:
        assert scan(text).n_lines == text.count("\n")


def test_problems_before_a_long_line_are_named_too(problems):
    assert problems("q1 Q0 a 1 x t\n" + LONG) == [
        "1: the score is not a finite number; expected a number in column 5, got 'x'.",
        f"2: {TOO_LONG}",
    ]


def test_a_file_without_line_feeds_is_not_read_to_its_end(read, tmp_path):
    class Endless(io.RawIOBase):
        n_read = 0

        def readable(self):
            return True

        def seekable(self):
            return True

        def tell(self):
            return 0

        def seek(self, place, whence=0):
            return 0

        def readinto(self, buffer):
            self.n_read += len(buffer)
            assert self.n_read < 20 * MAX_LINE_BYTES
            buffer[:] = b"x" * len(buffer)
            return len(buffer)

    with pytest.raises(RunFormatError, match="longer than"):
        read(io.BufferedReader(Endless()), INDEX, ScanOptions())
