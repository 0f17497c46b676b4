"""`cranfield book` and `cranfield db`, as commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cranfield.books.store.schema import Action
from cranfield.books.store.store import open_store
from cranfield.books.store.values import SaveRequest
from cranfield.cli.main import command_line
from cranfield.formats.sniff import read_testset

POOL = {
    "cranfield_pool": 1,
    "name": "p",
    "method": "depth",
    "depth": 2,
    "runs": [],
    "queries": [{"id": "q1", "text": "wool socks"}],
    "items": [{"query": "q1", "doc": "a"}, {"query": "q1", "doc": "b", "judged": 0}],
}
Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run a command in a folder with a pool."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CRANFIELD_DB", raising=False)
    (tmp_path / "pool.json").write_text(json.dumps(POOL))

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(command_line(*words[:2]), words)
        assert done.exit_code == code, done.output
        return done.output

    return run


def test_a_book_from_its_pool_to_its_log(call) -> None:
    assert "2 documents of 1 query" in call("book", "create", "shop", "--pool", "pool.json", "--scale", "binary")
    assert "item 3: document c of query q1" in call("book", "add-item", "shop", "q1", "c", "--field", "title=Hat")
    with closing(open_store("cranfield-books.db")) as store:
        ann = store.people.add("ann").id
        store.people.join(1, ann)
        store.log.save(SaveRequest(1, 1, ann, Action.GRADE, "k", 1))
    Path("new.md").write_text("Be strict")
    assert "version 2 holds" in call("book", "guideline", "shop", "new.md")
    assert "already has this text" in call("book", "guideline", "shop", "new.md")
    assert call("book", "guideline", "shop") == "Be strict\n"
    again = ("book", "reopen", "shop", "--before-guideline", "2", "--reason", "new guidelines")
    assert "1 item would be reopened" in call(*again, "--dry-run")
    shown = json.loads(call("book", "show", "shop", "--format", "json"))
    counts = shown["coverage"]
    assert (counts["judged_lowest"], counts["judged_higher"], counts["unjudged"]) == (1, 1, 1)
    assert shown["raters"][0]["progress"]["n_done"] == 1
    assert "1 item reopened" in call(*again)
    assert [json.loads(line)["action"] for line in call("book", "log", "shop").splitlines()] == [
        "carry",
        "grade",
        "reopen",
    ]
    assert call("book", "log", "shop", "--after", "3") == ""
    call("book", "close", "shop")
    assert "closed" in call("book", "list")
    call("book", "open", "shop")
    assert "Book shop" in call("book", "show", "shop")


def test_calibration_items_of_a_file(call) -> None:
    call("book", "create", "shop", "--pool", "pool.json")
    Path("gold.csv").write_text("query,doc,grade,reason\nq1,a,3,clear\nq1,z,0,\n")
    printed = call("book", "calibrate", "shop", "gold.csv")
    assert "2 calibration items\n1 without a title or text in the book" in printed
    Path("bad.csv").write_text("query,doc,grade\nq1,a,x\n,b,1\n")
    problems = call("book", "calibrate", "shop", "bad.csv", code=2)
    assert "bad.csv:2: the grade is not a number; got 'x'" in problems
    assert "bad.csv:3: the line has no query or no document" in problems
    Path("none.csv").write_text("a,b\n")
    assert "no column query, doc, grade" in call("book", "calibrate", "shop", "none.csv", code=2)


def test_an_own_scale(call) -> None:
    Path("scale.yaml").write_text("name: yes-no\nlevels:\n- {grade: 0, label: no}\n- {grade: 5, label: yes}\n")
    call("book", "create", "shop", "--pool", "pool.json", "--scale", "scale.yaml")
    assert "scale yes-no (0, 5)" in call("book", "show", "shop")
    assert "did you mean graded" in call("book", "create", "two", "--pool", "pool.json", "--scale", "grade", code=2)


def test_without_a_scale_it_is_that_of_the_pools_test_set(call) -> None:
    Path("declared.json").write_text(json.dumps({**POOL, "scale": [0, 1, 2]}))
    for name in ("pool", "declared"):
        call("book", "create", name, "--pool", f"{name}.json")
    assert "scale graded (0, 1, 2, 3)" in call("book", "show", "pool")
    assert "scale own (0, 1, 2)" in call("book", "show", "declared")


def test_a_rater_sees_the_texts_of_the_sources_of_cranfield_yaml(call) -> None:
    assert "Warm and soft" not in call("book", "text", "a")
    Path("corpus.jsonl").write_text('{"id": "a", "text": "Warm and soft"}\n')
    Path("cranfield.yaml").write_text(
        "testset: set.yaml\nsystems: {a: {run: a.run}}\ndocuments: [{corpus: {path: corpus.jsonl}}]\n"
    )
    assert "Warm and soft" in call("book", "text", "a")


REFUSED = [
    (("book", "show", "shop"), "no book database found"),
    (("book", "create", "shop", "--pool", "none.json"), "none.json"),
    (("book", "create", "shop", "--pool", "pool.json", "--consensus", "medan"), "did you mean median"),
    (("book", "reopen", "shop"), "no items selected"),
    (("book", "reopen", "shop", "--state", "don"), "did you mean done"),
    (("book", "add-item", "shop", "q1", "c", "--field", "title"), "expected NAME=TEXT"),
    (("db", "upgrade"), "no book database found"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_what_is_refused_says_why(call, words, message) -> None:
    assert message in call(*words, code=2)


def test_the_revision_of_a_database(call) -> None:
    assert call("db", "revision").splitlines()[0] == "database: none"
    call("book", "create", "shop", "--pool", "pool.json")
    assert call("db", "revision").splitlines()[0] != "database: none"
    assert "the latest" in call("db", "upgrade")
    assert "account 'eve' not found" in call("book", "reopen", "shop", "--stale", "--by", "eve", code=2)


SHOP = "q1 0 a 2\nq1 0 b 0\nq1 0 old 1\nq2 0 x 1\n"
SHOP_RUN = "q1 Q0 a 1 3 A\nq1 Q0 n 2 2 A\nq2 Q0 x 1 1 A\n"


GRADES_OF_TWO = "grades on two scales: test set none declared, book 0, 1, 2, 3; the new version declares no scale"


def frozen_grades(name: str) -> dict[str, dict[str, float]]:
    found = read_testset(Path(name))
    return {query_id: dict(grades) for query_id, grades in found.grades.items()}


@pytest.fixture
def judged_pool(call) -> Call:
    """A book of a pool over four judgments, of which the pool leaves out two and never had two; `n` is graded 1."""
    Path("shop.qrels").write_text(SHOP)
    Path("texts.tsv").write_text("q1\twool socks\nq2\tblue\n")
    Path("a.run").write_text(SHOP_RUN)
    call(
        "pool",
        "build",
        "a.run",
        "--testset",
        "shop.qrels",
        "--queries",
        "texts.tsv",
        "--out",
        "shop.json",
        "--book",
        "shop",
    )
    with closing(open_store("cranfield-books.db")) as store:
        ann = store.people.add("ann").id
        store.people.join(1, ann)
        store.log.save(SaveRequest(1, 1, ann, Action.GRADE, "k", 1))
    return call


def test_a_book_over_a_test_set_freezes_onto_it_and_keeps_every_earlier_judgment(judged_pool) -> None:
    shown = judged_pool("book", "freeze", "shop", "--out", "next.yaml")
    assert "next version of shop.qrels, other judgments kept" in shown
    # The four of shop.qrels, and the one that was graded.
    assert frozen_grades("next.yaml") == {"q1": {"a": 2, "b": 0, "old": 1, "n": 1}, "q2": {"x": 1}}
    assert [query.text for query in read_testset(Path("next.yaml")).queries] == ["wool socks", "blue"]


@pytest.mark.parametrize(
    ("words", "scale", "note"),
    [((), "own (0, 1, 2, 3, 4)", ""), (("--scale", "graded"), "graded (0, 1, 2, 3)", GRADES_OF_TWO)],
)
def test_grades_over_three_are_judged_on_their_own_scale_and_a_frozen_file_can_be_read(
    call, words, scale, note
) -> None:
    """Grades to 4 without a declared scale: on the usual one, 0 to 3, the earlier judgments would not be allowed."""
    Path("shop.qrels").write_text(SHOP.replace("q1 0 a 2", "q1 0 a 4"))
    Path("texts.tsv").write_text("q1\twool socks\nq2\tblue\n")
    Path("a.run").write_text(SHOP_RUN)
    call("pool", "build", "a.run", "--testset", "shop.qrels", "--queries", "texts.tsv", "--out", "shop.json")
    call("book", "create", "shop", "--pool", "shop.json", *words)
    assert f"scale {scale}" in call("book", "show", "shop")
    with closing(open_store("cranfield-books.db")) as store:
        ann = store.people.add("ann").id
        store.people.join(1, ann)
        store.log.save(SaveRequest(1, 1, ann, Action.GRADE, "k", 3))
    assert note in call("book", "freeze", "shop", "--out", "next.yaml")
    assert frozen_grades("next.yaml")["q1"] == {"a": 4, "b": 0, "old": 1, "n": 3}


def test_a_file_without_earlier_judgments_is_made_on_request_alone(judged_pool) -> None:
    shown = judged_pool("book", "freeze", "shop", "--out", "bare.yaml", "--without-earlier")
    assert "not included: those of the 4 judgments of the test set 'shop' that are not in the book" in shown
    assert frozen_grades("bare.yaml") == {"q1": {"n": 1}}
    both = ("book", "freeze", "shop", "--out", "no.yaml", "--onto", "shop.qrels", "--without-earlier")
    assert "--onto with --without-earlier; expected one of them" in judged_pool(*both, code=2)


@pytest.mark.parametrize("name", ["own.yaml", "own.qrels", "own.csv"])
def test_an_export_says_that_earlier_judgments_are_not_in_it_and_what_writes_them(judged_pool, name) -> None:
    shown = judged_pool("book", "export", "shop", name)
    sentence = (
        "not included: those of the 4 judgments of the test set 'shop' that are not in the book; "
        "`cranfield book freeze shop --out FILE` writes the next version of that test set with both"
    )
    assert f"note: {sentence}\n" in shown
    assert "old" not in frozen_grades(name)["q1"]
    if name == "own.yaml":
        assert read_testset(Path(name)).meta.history == (sentence,)
    judged_pool("book", "freeze", "shop", "--out", "next.yaml")
    assert frozen_grades("next.yaml")["q1"]["old"] == 1


def test_an_export_of_a_book_of_its_own_has_no_such_note(call) -> None:
    call("book", "create", "shop", "--pool", "pool.json")
    assert "not included" not in call("book", "export", "shop", "own.yaml")


def test_a_test_set_that_is_not_there_stops_the_freezing(judged_pool) -> None:
    Path("shop.qrels").rename("moved.qrels")
    refused = judged_pool("book", "freeze", "shop", "--out", "next.yaml", code=2)
    assert "the 4 earlier judgments of 'shop'" in refused
    assert "expected the test set at shop.qrels" in refused
    assert "name the test set with --onto, or leave its judgments out with --without-earlier" in refused
    assert not Path("next.yaml").exists()
    judged_pool("book", "freeze", "shop", "--out", "next.qrels", "--onto", "moved.qrels")
    assert frozen_grades("next.qrels")["q1"] == {"a": 2, "b": 0, "old": 1, "n": 1}


def test_a_book_made_by_judge_freezes_onto_its_test_set(call) -> None:
    from cranfield.formats.sniff import read_testset as read
    from cranfield.workbench.commands.judge import book_of_runs

    Path("shop.qrels").write_text(SHOP)
    Path("a.run").write_text(SHOP_RUN)
    with closing(open_store("books.db", create=True)) as store:
        name = book_of_runs(store, ["a.run"], read(Path("shop.qrels")), 10, Path("shop.qrels"))
        source = store.books.get(name).source
    assert (source["testset_file"], source["n_earlier"]) == ("shop.qrels", 4)
