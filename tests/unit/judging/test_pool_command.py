"""`cranfield pool` as people and scripts use it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cranfield.cli.main import command_line
from cranfield.formats.sniff import read_testset
from cranfield.judging.pools.pool_io import read_pool

FILES = {
    "web.qrels": "q1 0 a 2\nq1 0 b 0\nq1 0 e -1\nq2 0 x 1\n",
    "texts.tsv": "q1\twool socks\nq2\tblue\n",
    "a.run": "q1 Q0 a 1 3 A\nq1 Q0 n 2 2 A\nq2 Q0 x 1 1 A\nq9 Q0 z 1 1 A\n",
    "b.jsonl": '{"cranfield_run":1,"name":"B"}\n'
    '{"query_id":"q1","outcome":"answered","hits":[{"id":"b","title":"Bee"},{"id":"e"},{"id":"n","title":"En"}]}\n',
    "c.csv": "query_id,doc_id,rank\nq2,y,1\n",
    "bad.run": "q1 Q0 a 1 x A\nq1 Q0 b 1 1 A\n",
}
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cranfield(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)

    def run(*arguments: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(command_line("pool"), ["pool", *arguments], prog_name="cranfield")
        return done.exit_code, done.stdout, done.stderr

    return run


def test_a_pool_is_previewed_and_nothing_written(cranfield: Command, tmp_path: Path) -> None:
    code, out, err = cranfield("a.run", "b.jsonl", "c.csv", "--testset", "web.qrels", "--queries", "texts.tsv")
    assert (code, err) == (0, "")
    assert "web: fixed depth, depth 10, 3 runs, for web" in out
    assert "judged, left out    3" in out
    assert "to judge            3" in out
    assert "to judge per query  1 to 2, median 1.5" in out
    assert "in the runs, but not in the test set, left out: 1 query (q9)" in out
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)


def test_runs_of_every_format_are_pooled_under_their_names(cranfield: Command) -> None:
    given = ("Ay=a.run", "b.jsonl", "c.csv", "--testset", "web.qrels", "--queries", "texts.tsv", "--out", "pool.json")
    code, _, err = cranfield(*given)
    assert (code, err) == (0, "wrote pool.json\n")
    pool = read_pool("pool.json")
    assert [(item.query, item.doc, item.runs, item.fields) for item in pool.items] == [
        ("q1", "e", {"B": 2}, {}),
        ("q1", "n", {"Ay": 2, "B": 3}, {"title": "En"}),
        ("q2", "y", {"c": 1}, {}),
    ]
    assert [query.text for query in pool.queries] == ["wool socks", "blue"]
    assert (pool.name, pool.testset, pool.depth) == ("web", "web", 10)


def test_what_a_pattern_matches_is_graded_by_the_rule(cranfield: Command, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        'cranfield_testset: 1\nname: rules\nqueries:\n- {id: q1, text: socks, patterns: [{regex: "^[ab]$", grade: 2}]}\n'
    )
    code, out, _ = cranfield("a.run", "b.jsonl", "--testset", "rules.yaml", "--out", "pool.json")
    assert code == 0
    assert "graded by rule, in the pool  2" in out
    assert [(item.doc, item.prefilled) for item in read_pool("pool.json").items] == [
        ("a", 2.0),
        ("b", 2.0),
        ("e", None),
        ("n", None),
    ]


def test_queries_alone_are_enough(cranfield: Command) -> None:
    code, _, _ = cranfield("a.run", "--queries", "texts.tsv", "--out", "pool.json", "--name", "mine")
    pool = read_pool("pool.json")
    assert (code, [query.id for query in pool.queries], len(pool.items), pool.name) == (0, ["q1", "q2"], 3, "mine")


def test_a_preview_is_json_and_html_too(cranfield: Command, tmp_path: Path) -> None:
    given = ("a.run", "b.jsonl", "--testset", "web.qrels", "--sample", "11-20:50%", "--format", "json")
    code, out, err = cranfield(*given, "--html", "pool.html")
    found = json.loads(out)
    assert (code, err) == (0, "wrote pool.html\n")
    assert found["pool"]["method"] == "stratified"
    assert found["per_query"] == {"min": 0, "median": 1, "max": 2}
    assert found["shared"] == [[3, 1], [1, 3]]
    assert [each["n_only"] for each in found["systems"]] == [2, 2]
    assert "stratified sample" in (tmp_path / "pool.html").read_text()


def test_a_sample_of_several_ranges(cranfield: Command) -> None:
    given = ("b.jsonl", "--depth", "1", "--sample", "2-2:50%", "--sample", "3-9:100%", "--out", "pool.json")
    assert cranfield(*given)[0] == 0
    assert [(item.doc, item.stratum) for item in read_pool("pool.json").items] == [
        ("b", "1-1"),
        ("e", "2-2"),
        ("n", "3-9"),
    ]


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (("a.run", "nowhere.run", "bad.run", "web.qrels"), ["nowhere.run: no such file", "bad.run:1:", "web.qrels: not a run"]),
        (("a.run", "--sample", "x", "--sample", "9"), ["got 'x'", "got '9'"]),
        (("a.run", "--budget", "2", "--sample", "11-20:5%", "--depth", "0"), ["the depth of the pool is 0", "exclude"]),
        (("a.run", "a=b.jsonl"), ["two runs are called 'a'"]),
        (("=a.run",), ["a run without a name or a file"]),
        (("-", "-"), ["standard input (-) is named more than once"]),
        (("a.run", "--convention", "trek"), ["did you mean trec"]),
        (("a.run", "--raters", "0", "--seconds", "-1"), ["0 raters", "-1 seconds"]),
        (("a.run", "--testset", "web.qrels", "--book", "tonight"), ["1 query of the pool without a text"]),
        (("c.csv", "--testset", "a.run"), ["not a test set"]),
        (("a.run", "--out", "none/pool.json"), ["the pool cannot be written"]),
        (("check", "a.run", "b.jsonl"), ["no test set given"]),
        (("check", "a.run", "--testset", "web.qrels"), ["leave-one-out needs another run"]),
        (("check", "a.run", "b.jsonl", "--testset", "web.qrels", "-m", "nDGC@10"), ["did you mean nDCG@10"]),
        (("export", "web.qrels", "--out", "x"), ["not a pool"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_all_at_once(cranfield: Command, arguments: tuple[str, ...], messages: list[str]) -> None:
    code, _, err = cranfield(*arguments)
    assert code == 2, err
    for message in messages:
        assert message in err


def test_qrels_of_a_pool_keep_three_things_apart_up_to_the_report(cranfield: Command, tmp_path: Path) -> None:
    cranfield("a.run", "b.jsonl", "--depth", "2", "--testset", "web.qrels", "--out", "pool.json")
    code, out, _ = cranfield("export", "pool.json", "--testset", "web.qrels", "--out", "all.qrels")
    assert (code, out) == (0, "wrote all.qrels: 3 judged, 2 pooled and unjudged (-1)\n")
    assert read_testset(tmp_path / "all.qrels").grades == {
        "q1": {"a": 2.0, "b": 0.0, "e": -1.0, "n": -1.0},
        "q2": {"x": 1.0},
    }
    code, _, err = cranfield("export", "pool.json", "--out", "all.qrels")
    assert code == 2
    assert "name it: --testset FILE" in err


def test_the_check_shows_each_run_without_what_only_it_found(cranfield: Command) -> None:
    given = ("check", "a.run", "b.jsonl", "--testset", "web.qrels", "-m", "P@1")
    code, out, err = cranfield(*given)
    assert (code, err) == (0, "")
    # P@1 of A: a and x relevant, 1.0; both are its own. B: b is not relevant, q2 is not answered.
    assert "a         2         2  1.0000    0.0000  −1.0000     1              1" in out
    found = json.loads(cranfield(*given, "--format", "json")[1])
    (check,) = found["checks"]
    assert (check["measure"], check["n_moved"], check["systems"][0]["without"]) == ("P@1", 0, 0.0)


def test_help_names_the_commands(cranfield: Command) -> None:
    code, out, _ = cranfield("--help")
    assert code == 0
    for name in ("build", "check", "export"):
        assert name in out


def test_a_book_is_made_at_once(cranfield: Command, tmp_path: Path) -> None:
    from cranfield.books.store.store import open_store

    given = (
        "a.run",
        "b.jsonl",
        "--testset",
        "web.qrels",
        "--queries",
        "texts.tsv",
        "--raters",
        "2",
        "--book",
        "tonight",
    )
    code, _, err = cranfield(*given, "--db", "books.db")
    made, note = err.splitlines()
    assert (code, made) == (0, "created book tonight: 2 documents of 1 query")
    assert note.startswith("note: the scale of the book is graded (0, 1, 2, 3): the test set declares no scale; ")
    store = open_store(tmp_path / "books.db")
    info = store.books.get("tonight")
    assert (info.settings.raters_per_item, info.source["method"], info.n_items) == (2, "depth", 2)
    store.close()
    code, _, err = cranfield(*given, "--db", "books.db")
    assert code == 2
    assert "tonight" in err


def test_a_pool_names_runs_by_the_digest_that_scoring_reports(cranfield: Command, tmp_path: Path) -> None:
    from cranfield import evaluate, load

    for depth in ("1", "9"):
        assert cranfield("a.run", "b.jsonl", "--depth", depth, "--out", "pool.json")[0] == 0
        testset = load(tmp_path / "web.qrels")
        digests = [evaluate(testset, tmp_path / name).run_digest for name in ("a.run", "b.jsonl")]
        assert [run.digest for run in read_pool("pool.json").runs] == digests


def test_estimates_are_made_of_a_pool_its_runs_and_the_judged_set(cranfield: Command, tmp_path: Path) -> None:
    cranfield("a.run", "b.jsonl", "--depth", "1", "--sample", "2-3:50%", "--out", "pool.json")
    drawn = [item for item in read_pool("pool.json").items if item.stratum == "2-3"]
    assert [(item.query, item.inclusion) for item in drawn] == [("q1", 0.5)]  # e or n
    (tmp_path / "all.qrels").write_text("q1 0 a 1\nq1 0 b 0\nq1 0 n 1\nq1 0 e 1\nq2 0 x 1\nq9 0 z 0\n")
    code, out, _ = cranfield(
        "estimate", "pool.json", "a.run", "--testset", "all.qrels", "--cutoff", "1", "--cutoff", "3"
    )
    assert code == 0
    assert "P@1        0.6667  0.0000 to 1.0000       0.6667" in out  # a, x and not z
    code, out, _ = cranfield("estimate", "pool.json", "a.run", "--testset", "all.qrels", "--format", "json")
    assert json.loads(out)["precision"][0]["k"] == 1
    code, _, err = cranfield("estimate", "pool.json", "a.run")
    assert (code, "no test set given" in err) == (2, True)
