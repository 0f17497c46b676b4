"""`cranfield diff`: two runs without judgments."""

from __future__ import annotations

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from cranfield.cli.main import command_line

OLD = {"red shoes": ["a", "b", "c"], "blue hat": ["d", "e"], "green coat": ["f", "g"]}
NEW = {"red shoes": ["b", "a", "c"], "blue hat": ["d", "e"], "green coat": ["x", "y"]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.json").write_text(json.dumps(OLD))
    (tmp_path / "new.json").write_text(json.dumps(NEW))
    return tmp_path


def diff(*arguments, code=0):
    done = CliRunner().invoke(command_line("diff"), ["diff", *map(str, arguments)])
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr)
    return done


def record(*arguments, code=0):
    return json.loads(diff(*arguments, "--format", "json", code=code).stdout)


def test_each_query_and_the_means(folder):
    found = record("old.json", "new.json", "-k", 3)
    assert (found["kind"], found["verdict"], found["n_compared"]) == ("difference", "different", 3)
    assert [(each["query"], each["overlap"]) for each in found["queries"]] == [
        ("green coat", 0.0),
        ("red shoes", 1.0),
        ("blue hat", 1.0),
    ]
    assert found["overlap"]["mean"] == pytest.approx(2 / 3)
    assert found["jaccard"]["mean"] == pytest.approx(2 / 3)
    assert found["rbo"]["mean"] == pytest.approx((0 + 0.9 + 1) / 3)
    assert (found["first_changed"]["count"], found["changed"]["count"]) == (2, 2)
    assert found["queries"][0]["new"] == [{"doc": "x", "rank": 1}, {"doc": "y", "rank": 2}]
    assert found["queries"][1]["first_difference"] == 1
    assert found["queries"][2]["first_difference"] is None


def test_a_swap_below_the_depth_is_no_change(folder):
    (folder / "new.json").write_text(json.dumps({**OLD, "red shoes": ["a", "c", "b"]}))
    assert record("old.json", "new.json", "-k", 1)["verdict"] == "identical"
    assert record("old.json", "new.json", "-k", 2)["queries"][0]["first_difference"] == 2


def test_two_identical_systems_are_named(folder):
    done = diff("old.json", "old.json")
    assert "old and old give the same first 10 results in the same order for all 3 queries." in done.stdout
    assert "What to judge first" not in diff("old.json", "old.json", "--full").stdout


@pytest.mark.parametrize(
    ("bounds", "code"),
    [
        (["--max-first-changed", "10%"], 1),
        (["--max-first-changed", "0.67"], 0),
        (["--min-overlap", "0.7"], 1),
        (["--min-overlap", "0.6", "--min-rbo", "0.6"], 0),
        (["--min-rbo", "0.64"], 1),
    ],
)
def test_a_bound_that_is_broken_fails_the_call(folder, bounds, code):
    assert ("broken" in diff("old.json", "new.json", *bounds, code=code).stdout) is bool(code)


@pytest.mark.parametrize(
    "wrong", [["--max-first-changed", "x"], ["--min-overlap", "2"], ["-k", "0"], ["--persistence", "1"]]
)
def test_a_bound_that_is_none_is_refused(folder, wrong):
    done = diff("old.json", "new.json", *wrong, code=2)
    assert wrong[0].lstrip("-")[:3] in done.stderr or "rank-biased" in done.stderr


def test_a_query_without_an_answer_is_named_and_the_result_is_invalid(folder):
    (folder / "new.json").write_text(json.dumps({name: NEW[name] for name in ("red shoes", "blue hat")}))
    found = record("old.json", "new.json", code=3)
    assert (found["verdict"], found["n_queries"], found["n_compared"]) == ("invalid", 3, 2)
    assert [(each["query"], each["system"], each["outcome"]) for each in found["not_compared"]] == [
        ("green coat", "new", "missing")
    ]
    done = diff("old.json", "new.json", code=3)
    assert "1 of 3 queries have no answer on one side and are not compared: green coat" in done.stdout


def test_an_empty_list_is_an_answer(folder):
    (folder / "new.json").write_text(json.dumps({**OLD, "blue hat": []}))
    found = record("old.json", "new.json")
    assert (found["n_compared"], found["queries"][0]["query"], found["queries"][0]["rbo"]) == (3, "blue hat", 0.0)
    assert found["first_changed"]["count"] == 1


def test_queries_of_a_test_set_have_their_texts_and_what_is_judged_is_not_proposed(folder):
    (folder / "set.yaml").write_text(
        "cranfield_testset: 1\nname: shop\nqueries:\n"
        "  - {id: red shoes, text: shoes in red, judgments: {a: 1}}\n  - {id: green coat, text: coats, judgments: {f: 0}}\n"
    )
    found = record("old.json", "new.json", "--queries", "set.yaml")
    assert (found["n_queries"], found["queries"][0]["text"]) == (2, "coats")
    assert [(each["query"], each["doc"]) for each in found["to_judge"]] == [
        ("green coat", "x"),
        ("green coat", "g"),
        ("green coat", "y"),
        ("red shoes", "b"),
    ]
    assert found["to_judge"][0]["weight"] == pytest.approx(0.1)  # (1 - .9) * .9^0, and nothing on the other side
    assert found["to_judge"][3]["weight"] == pytest.approx(0.1 - 0.09)


def test_equal_scores_share_a_rank(folder):
    (folder / "a.run").write_text("q Q0 x 1 2 a\nq Q0 y 2 2 a\n")
    (folder / "b.run").write_text("q Q0 y 1 3 b\nq Q0 x 2 2 b\n")
    # a: both at rank 1; b: y, x. A_1 = 2 * 1 / (2 + 1), A_2 = 1: .1/.9 (2/3 * .9 + .81) + .81
    expected = 0.1 / 0.9 * (2 / 3 * 0.9 + 0.81) + 0.81
    assert record("a.run", "b.run")["rbo"]["mean"] == pytest.approx(expected)


def test_runs_of_other_queries_are_refused(folder):
    (folder / "new.json").write_text(json.dumps({"hats": ["a"]}))
    done = diff("old.json", "new.json", code=2)
    assert "old and new have no query that both answer" in done.stderr


def test_everything_that_is_wrong_is_named_at_once(folder):
    wrong = diff("gone.json", "lost.json", "--queries", "nowhere.yaml", "--min-overlap", 2, code=2).stderr
    assert all(name in wrong for name in ("gone.json", "lost.json", "nowhere.yaml", "--min-overlap is 2"))


def test_every_form_has_it(folder):
    rows = list(csv.DictReader(io.StringIO(diff("old.json", "new.json", "--format", "csv").stdout)))
    assert [row["query"] for row in rows] == ["green coat", "red shoes", "blue hat"]
    assert (rows[0]["n_new"], rows[1]["first_difference"], rows[2]["first_difference"]) == ("2", "1", "")
    diff("old.json", "new.json", "--html", "d.html")
    page = (folder / "d.html").read_text()
    assert "not in the other list" in page
    assert ">Expected<" not in page
    assert "Expected" not in diff("old.json", "new.json", "--format", "markdown").stdout
    assert "rank 2 in the other list" in page


SEARCH = """import json, sys
found = {found!r}.get(sys.argv[1], [])
print(json.dumps([{{"id": each}} for each in found]))
"""


def config(folder, *, block="", queries="queries.txt", names=("plain", "boosted")):
    for name, found in zip(names, (OLD, NEW, OLD), strict=False):
        (folder / f"{name}.py").write_text(SEARCH.format(found=found))
    systems = "".join(
        f'  {name}: {{command: ["{{python}}", {name}.py, "{{query}}"], extract: {{json: "[]", id: id}}}}\n'
        for name in names
    )
    (folder / "cranfield.yaml").write_text(f"testset: {queries}\n{block}systems:\n{systems}")
    (folder / "queries.txt").write_text("red shoes\nblue hat\ngreen coat\nred shoes\n")


def test_without_runs_the_systems_of_the_config_answer_a_list_of_queries(folder):
    config(folder)
    found = record()
    assert (found["baseline"], found["candidate"], found["n_compared"], found["k"]) == ("plain", "boosted", 3, 10)
    assert [(each["query"], each["overlap"]) for each in found["queries"]] == [
        ("green coat", 0.0),
        ("red shoes", 1.0),
        ("blue hat", 1.0),
    ]


def test_bounds_of_the_config_hold_unless_the_call_has_others(folder):
    config(folder, block="diff: {k: 2, max_first_changed: 10 %, min_overlap: 0.5}\n")
    found = record(code=1)
    assert found["k"] == 2
    assert [(each["kind"], each["bound"], each["holds"]) for each in found["bounds"]] == [
        ("max-first-changed", 0.1, False),
        ("min-overlap", 0.5, True),
    ]
    assert [each["bound"] for each in record("--max-first-changed", "70%")["bounds"]] == [0.7, 0.5]


def test_captured_queries_take_the_place_of_the_test_set(folder):
    (folder / "set.yaml").write_text(
        "cranfield_testset: 1\nname: s\nqueries:\n  - {id: q, text: t, judgments: {a: 1}}\n"
    )
    config(folder, queries="set.yaml")
    (folder / "log.jsonl").write_text('{"query": "blue hat", "count": 9}\n{"query": "red shoes"}\n')
    assert [each["query"] for each in record("--queries", "log.jsonl")["queries"]] == ["red shoes", "blue hat"]
    assert record()["queries"][0]["text"] == "t"


def test_two_of_three_systems_are_named(folder):
    config(folder, names=("plain", "boosted", "third"))
    assert "--system BASELINE --system CANDIDATE" in diff(code=2).stderr
    assert record("--system", "third", "--system", "plain")["verdict"] == "identical"
    assert "baseline first" in diff("--system", "third", code=2).stderr


def test_a_call_is_of_runs_or_of_a_config(folder):
    config(folder)
    wrong = diff("old.json", "new.json", "--system", "plain", "--testset", "x", code=2).stderr
    assert "--system is given" in wrong
    assert "--testset is given" in wrong
    assert "one run is given" in diff("old.json", code=2).stderr


@pytest.mark.parametrize(
    "block", ["{max_first_changed: 110 %}", "{min_rbo: 2}", "{k: 0}", "{persistence: 1}", "{max: 1}"]
)
def test_a_block_that_cannot_be_is_refused_at_its_line(folder, block):
    config(folder, block=f"diff: {block}\n")
    assert "cranfield.yaml:2:" in diff(code=2).stderr
