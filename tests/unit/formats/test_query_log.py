"""Lists of queries without ids, and how they are told from test sets and from queries with ids."""

from __future__ import annotations

import pytest

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_query_list

RED, HAT = ("red shoes", "red shoes", 1.0), ("blue hat", "blue hat", 1.0)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("red shoes\nblue hat\n", [RED, HAT]),
        ("red  shoes\n\nblue hat\nred shoes\n", [("red shoes", "red shoes", 2.0), HAT]),
        (
            "query\tcount\nblue hat\t3\nred shoes\t12\n",
            [("red shoes", "red shoes", 12.0), ("blue hat", "blue hat", 3.0)],
        ),
        ("red shoes\t12\nblue hat\t3\n", [("red shoes", "red shoes", 12.0), ("blue hat", "blue hat", 3.0)]),
        ('{"query": "red shoes", "count": 2}\n{"query": "blue hat"}\n', [("red shoes", "red shoes", 2.0), HAT]),
        ("q1\tred shoes\nq2\tblue hat\n", [("q1", "red shoes", 1.0), ("q2", "blue hat", 1.0)]),
        ("query_id\ttext\n1\t42\n", [("1", "42", 1.0)]),
        ('{"_id": "q1", "text": "red shoes"}\n', [("q1", "red shoes", 1.0)]),
        ('{"id": "q1", "query": "red shoes"}\n', [("q1", "red shoes", 1.0)]),
        ("q1 0 d1 1\n", [("q1", "", 1.0)]),
    ],
)
def test_what_a_list_of_queries_is(tmp_path, content, expected):
    path = tmp_path / "queries.txt"
    path.write_text(content)
    assert [(query.id, query.text, query.weight) for query in read_query_list(path).queries] == expected


@pytest.mark.parametrize("content", ["", "[1, 2]\n", "<html></html>\n", "a\tb\tc\n", '{"text": 1}\n', "a\0b\n"])
def test_what_is_no_list_of_queries_is_refused(tmp_path, content):
    path = tmp_path / "queries.txt"
    path.write_text(content)
    with pytest.raises(TestSetError, match=r"queries\.txt"):
        read_query_list(path)
