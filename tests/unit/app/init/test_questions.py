"""Tables of questions with and without a header, and arguments of the command."""

from __future__ import annotations

import pytest

from cranfield.app.init.start import read_questions
from cranfield.app.init.targets import targets_of
from cranfield.base.errors import TestSetError, UsageError


@pytest.mark.parametrize(
    ("text", "texts", "patterns"),
    [
        ("question\nhow\nwhy\n", ["how", "why"], [(), ()]),
        ("id,query\n7,how\n9,why\n", ["how", "why"], [(), ()]),
        (
            "q,pattern\nHashable,^apple-docs://swift/hashable($|/)\n",
            ["Hashable"],
            [("^apple-docs://swift/hashable($|/)",)],
        ),
        ("Hashable,^docs://a$\nView,^docs://b$\n", ["Hashable", "View"], [("^docs://a$",), ("^docs://b$",)]),
        ("View,^docs://a$\nView,^docs://b$\n", ["View"], [("^docs://a$", "^docs://b$")]),
        ("# a comment\nhow to\n\nwhy not\n", ["how to", "why not"], [(), ()]),
        ('query\n"one, with a comma"\n', ["one, with a comma"], [()]),
    ],
)
def test_questions_of_a_table(tmp_path, text, texts, patterns):
    path = tmp_path / "questions.csv"
    path.write_text(text)
    found = read_questions(path)
    assert [query.text for query in found.queries] == texts
    assert [tuple(target.regex for target in found.targets.get(query.id, ())) for query in found.queries] == patterns


def test_a_pattern_that_does_not_compile_is_named_with_its_line(tmp_path):
    path = tmp_path / "questions.csv"
    path.write_text("query,regexp\na,x\nb,(\n")
    with pytest.raises(TestSetError) as raised:
        read_questions(path)
    (problem,) = raised.value.problems
    assert (problem.line, problem.got) == (3, "'('")


@pytest.mark.parametrize("text", ["", "\n", "a,b,c\nd,e,f\n"])
def test_a_table_without_questions_is_refused(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(TestSetError):
        read_questions(path)


def test_what_arguments_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 1 a\n")
    (tmp_path / "search.py").write_text("")
    (tmp_path / "search.sh").write_text("#!/bin/sh\n")
    (tmp_path / "search.sh").chmod(0o755)
    written = [
        "a.run",
        "new=a.run",
        "http://h/s?q=a",
        "web=https://h/s",
        "cat {query}",
        "true",
        "search.py",
        "search.sh",
    ]
    found = [(target.kind, target.name, target.argv) for target in targets_of(written)]
    assert found == [
        ("path", "", ()),
        ("path", "new", ()),
        ("url", "", ()),
        ("url", "web", ()),
        ("command", "", ("cat", "{query}")),
        ("command", "", ("true",)),
        ("command", "", ("{python}", "search.py")),
        ("command", "", ("./search.sh",)),
    ]
    assert [target.given for target in targets_of([])] == ["."]


def test_every_argument_that_is_nothing_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as raised:
        targets_of(["nothing.txt", "no-such-program {query}", "cat 'x"])
    assert [problem.message for problem in raised.value.problems] == [
        "no such file, folder or program",
        "no program 'no-such-program'",
        "the command cannot be split into words: no closing quotation",
    ]


def test_a_column_of_right_answers_is_kept_and_other_columns_are_named(tmp_path):
    path = tmp_path / "golden.csv"
    path.write_text("question,answer_doc,owner\nwhat is x,d1,ann\nwhat is x,d2,ann\nhow to y,d3,bob\n")
    testset = read_questions(path)
    assert testset.grades == {"q1": {"d1": 1.0, "d2": 1.0}, "q2": {"d3": 1.0}}
    assert [str(note).partition(";")[0] for note in testset.notes] == ["not carried over: column 'owner'"]


def test_a_row_without_a_query_is_named_and_an_id_without_a_text_is_kept(tmp_path):
    path = tmp_path / "golden.csv"
    path.write_text("id,question\n7,\n8,what\n")
    assert [(query.id, query.text) for query in read_questions(path).queries] == [("7", ""), ("8", "what")]
    path.write_text("question,answer_doc\n,d1\nwhat,d2\n")
    with pytest.raises(TestSetError, match=r"golden.csv:2: no query"):
        read_questions(path)
