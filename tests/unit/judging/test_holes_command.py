"""`cranfield holes` as people and scripts use it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from cranfield import compare, evaluate, load, parse
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.judging.pools.pool_io import read_pool
from cranfield.judging.reports.holes import holes_document
from cranfield.judging.use_cases import holes_of_files
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet
from cranfield.reporting import render

N = 12


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Qrels and two runs: of each query A has `x`, `hit` and B has `hit`, `y`; x is judged for all queries but the first three."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    judged = [f"q{n} 0 hit 2\nq{n} 0 y 0\n" + (f"q{n} 0 x 0\n" if n > 2 else "") for n in range(N)]
    Path("qrels.txt").write_text("".join(judged))
    for name, docs in (("a", ("x", "hit")), ("b", ("hit", "y"))):
        rows = [f"q{n} Q0 {doc} {rank} {9 - rank} {name}\n" for n in range(N) for rank, doc in enumerate(docs, start=1)]
        Path(f"{name}.run").write_text("".join(rows))
    return tmp_path


def test_the_report_has_the_verdict_its_cases_and_the_holes(folder, call):
    done = call("holes", "a.run", "b.run", "--testset", "qrels.txt", "-m", "P@1")
    assert done.returncode == 0, done.stderr
    for words in (
        "A a (baseline), B b (candidate)",
        "verdict now                 better: +1.0000",
        "worst case for B            better: +0.7500",
        "within reach                better",
        "excluded                    worse, no significant difference",
        "3 holes in 3 queries",
        "No judgment of these results can change the verdict (better).",
        "`--out holes.pool.json`",
        "3 queries with holes but without a text, which raters cannot judge: q0, q1, q2.",
    ):
        assert words in done.stdout, words


@pytest.mark.parametrize("form", ["markdown", "csv", "json"])
def test_every_form_has_every_hole(folder, call, form):
    done = call("holes", "a.run", "b.run", "--testset", "qrels.txt", "-m", "P@1", "--top", "1", "--format", form)
    assert done.returncode == 0, done.stderr
    if form == "json":
        found = json.loads(done.stdout)
        assert [hole["query"] for hole in found["holes"]] == ["q0", "q1", "q2"]
        assert (found["verdict"], found["reachable"], found["exact"]) == ("better", ["better"], True)
        assert found["worst"]["delta"] == pytest.approx(0.75)
    elif form == "csv":
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        assert [(row["query"], row["document"], row["rank_a"], row["rank_b"]) for row in rows] == [
            (f"q{n}", "x", "1", "") for n in range(3)
        ]
    else:
        assert "| q0 | x | 1 |" in done.stdout.replace("`", "")


def test_html_and_the_pool_are_written(folder, call):
    done = call(
        *("holes", "a.run", "b.run", "--testset", "qrels.txt", "-m", "P@1", "--top", "2", "--html", "h.html"),
        *("--out", "next.pool.json"),
    )
    assert done.returncode == 0, done.stderr
    assert "Holes" in Path("h.html").read_text()
    assert "next.pool.json" in done.stderr
    assert "cranfield book create NAME --pool next.pool.json" in done.stdout
    pool = read_pool("next.pool.json")
    assert (pool.method, pool.name, pool.depth, [run.name for run in pool.runs]) == ("holes", "next", 1, ["a", "b"])
    assert [(item.query, item.doc, item.runs, item.judged) for item in pool.items] == [
        ("q0", "x", {"a": 1}, None),
        ("q1", "x", {"a": 1}, None),
    ]
    assert pool.items[0].effect == pytest.approx(1 / 12)


def test_the_verdict_is_that_of_compare(folder, call):
    for measure in ("nDCG@2", "AP", "RR"):
        found = call("holes", "a.run", "b.run", "--testset", "qrels.txt", "-m", measure, "--format", "json")
        sides = (evaluate("qrels.txt", run, measures=[measure]) for run in ("a.run", "b.run"))
        declared = compare(*sides).measures[parse(measure)]
        ours = json.loads(found.stdout)
        assert [ours[name] for name in ("delta", "ci_low", "ci_high")] == [
            declared.delta,
            declared.ci_low,
            declared.ci_high,
        ]


def test_a_measure_without_bounds_is_an_error_with_the_reason(folder, call):
    done = call("holes", "a.run", "b.run", "--testset", "qrels.txt", "-m", "bpref")
    assert done.returncode == 2
    assert "no method for the difference" in done.stderr


def test_truth_by_patterns_takes_part_and_persons_win(folder):
    Path("set.yaml").write_text(
        "cranfield_testset: 1\nname: set\nqueries:\n"
        + "".join(f"- {{id: q{n}, text: t, patterns: [{{regex: ^hit$}}]}}\n" for n in range(N - 1))
        + f"- {{id: q{N - 1}, text: t, negative: true}}\n"
    )
    testset, declared = load("set.yaml"), CompareOptions()
    found = holes_of_files(testset, ["a.run", "b.run"], declared)
    assert len(found.analysis.holes) == 2 * (N - 1)
    assert found.closed is not None
    assert found.closed.verdict.code is found.analysis.verdict
    judged = holes_of_files(testset, ["a.run", "b.run"], declared, people={"q0": {"x": 1.0, "hit": 0.0}})
    assert len(judged.analysis.holes) == 2 * (N - 1) - 1
    assert [(each.query, each.doc, each.person) for each in judged.view.differences] == [("q0", "hit", 0.0)]
    assert judged.closed.measures == found.closed.measures


def test_places_of_one_file_are_pooled_as_two_documents(folder):
    Path("set.yaml").write_text(
        "cranfield_testset: 1\nname: set\nqueries:\n- {id: q0, text: t, spans: [{path: a.py, lines: 10-20}]}\n"
    )
    from cranfield.formats.runs.jsonl import write_run

    for name, spans in (("c", ("1-5", "12-14")), ("d", ("12-14", "30-40"))):
        hits = tuple(Hit("a.py", span=span) for span in spans)
        write_run(Run(name, {"q0": Answer(Outcome.ANSWERED, hits)}), Path(f"{name}.jsonl"))
    found = holes_of_files(load("set.yaml"), ["c.jsonl", "d.jsonl"], CompareOptions())
    assert {hole.doc for hole in found.analysis.holes} == {"a.py:1-5", "a.py:30-40"}
    pooled = {item.doc: item.prefilled for item in found.pool(5, "p").items}
    assert pooled == {"a.py:1-5": None, "a.py:12-14": 1, "a.py:30-40": None}  # what the rule grades comes along


def test_a_hidden_id_is_pooled_under_its_own_and_listed_under_the_public_one(folder):
    from cranfield.formats.runs.jsonl import write_run

    hits = (Hit("doc?key=s3cret", redacted_id="doc?key=***"), Hit("hit"))
    write_run(Run("c", {f"q{n}": Answer(Outcome.ANSWERED, hits) for n in range(N)}), Path("c.jsonl"))
    found = holes_of_files(load("qrels.txt"), ["c.jsonl", "b.run"], CompareOptions())
    assert {hole.doc for hole in found.analysis.holes} == {"doc?key=***"}
    assert {item.doc for item in found.pool(3, "p").items} == {"doc?key=s3cret"}


def test_grades_of_a_book_take_the_place_of_those_of_the_test_set(folder, call):
    pytest.importorskip("sqlalchemy")
    holes = ("holes", "a.run", "b.run", "--testset", "qrels.txt", "-m", "P@1")
    assert call(*holes, "--out", "h.pool.json").returncode == 0
    refused = call("book", "create", "h", "--pool", "h.pool.json", "--db", "h.db")
    assert refused.returncode == 2
    assert "3 queries of the pool without a text, which raters cannot judge: q0, q1, q2" in refused.stderr
    Path("texts.tsv").write_text("".join(f"q{n}\tquery {n}\n" for n in range(N)))
    assert call(*holes, "--out", "h.pool.json", "--queries", "texts.tsv").returncode == 0
    assert call("book", "create", "h", "--pool", "h.pool.json", "--db", "h.db").returncode == 0
    from cranfield.books.store.schema import Action, Role
    from cranfield.books.store.store import open_store
    from cranfield.books.store.values import SaveRequest

    store = open_store("h.db")
    book = store.books.get("h")
    ann = store.people.add("ann", Role.RATER)
    store.people.join(book.id, ann.id)
    for item in store.queue.next_items(book.id, ann.id, 1):
        store.log.save(SaveRequest(book.id, item.item_id, ann.id, Action.GRADE, grade=1.0, client_key="k"))
    store.close()
    done = call(*holes, "--book", "h", "--db", "h.db", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["holes"]) == 2
    frozen = call("book", "freeze", "h", "--db", "h.db", "--allow-partial", "--out", "h.qrels")
    assert "next version of qrels.txt, other judgments kept" in frozen.stderr
    whole = call(*("book", "freeze", "h", "--db", "h.db", "--allow-partial", "--out", "w.qrels", "--onto", "qrels.txt"))
    assert "not in it" not in whole.stderr


def test_the_grades_of_persons_are_counted_with_those_of_other_queries(folder):
    declared = CompareOptions(primary="P@1")
    people = {"q0": {"x": 1.0}, "other": {"x": 1.0, "y": 0.0}}
    found = holes_of_files(load("qrels.txt"), ["a.run", "b.run"], declared, people=people)
    (row,) = (line for line in render(holes_document(found.result()), "text").splitlines() if "persons" in line)
    assert row.endswith("1, and 2 of queries that the test set does not have")


def test_a_verdict_that_is_not_that_of_the_lowest_grades_has_a_row_for_them(folder):
    queries, declared = (Query("q0"), Query("q1")), CompareOptions(primary="P@1")
    for grades, is_shown in (({"q0": {"hit": 1}}, True), ({"q0": {"hit": 1}, "q1": {"hit": 1}}, False)):
        found = holes_of_files(TestSet("part", queries, grades), ["a.run", "b.run"], declared)
        text = render(holes_document(found.result()), "text")
        assert ("if all unjudged documents are not relevant" in text) is is_shown
        assert ("+0.5000 (95 % CI –), n = 2" in text) is is_shown


def test_without_any_judgment_a_pool_comes_first(folder, call):
    Path("none.txt").write_text("q0 0 hit -1\n")
    done = call("holes", "a.run", "b.run", "--testset", "none.txt")
    assert done.returncode == 2
    assert "the test set 'none' has no judgments" in done.stderr
    assert "cranfield pool" in done.stderr
