"""Runs, judgments, strata, baselines and histories that name queries by another rule of ids than the test set."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cranfield import evaluate, load
from cranfield.errors import InputError, NoCommonQueryError
from cranfield.formats.testsets.overlay import with_judgments, with_strata
from cranfield.gate.baseline import baseline_of, misfits, with_ids_of
from cranfield.model import Answer, Hit, Outcome, Run, TestSet, content_id
from cranfield.project.history import append, history_record, read_history, remember
from cranfield.project.history_files import KeptValues
from cranfield.project.history_gate import GateJudge
from cranfield.project.loading import TestSetOptions

RATED = "query,docid,rating\nred boots,d1,3\nblue,d2,1\ngreen,d3,1\n"
BY_ROW = {"1": ["d1"], "2": ["x", "d2"], "3": ["x"]}
NAMES = [content_id(text) for text in ("red boots", "blue", "green")]
RRS = [1.0, 0.5, 0.0]


@pytest.fixture
def rated(tmp_path: Path) -> Path:
    path = tmp_path / "rated.csv"
    path.write_text(RATED)
    return path


def values(evaluation) -> list[float]:
    return [evaluation.value("RR", name) for name in NAMES]


def trec(path: Path, names: list[str]) -> Path:
    lists = dict(zip(names, BY_ROW.values(), strict=True))
    path.write_text("".join(f"{q} Q0 {d} {r} {9 - r} t\n" for q, ds in lists.items() for r, d in enumerate(ds, 1)))
    return path


KINDS = ["lists", "scores", "table", "jsonl"]
ROWS, TEXTS = ["1", "2", "3"], ["red boots", "blue", "green"]  # no column of TREC holds blanks


@pytest.mark.parametrize(
    ("kind", "names"), [("trec", ROWS), *((kind, names) for kind in KINDS for names in (ROWS, TEXTS))]
)
def test_a_run_of_another_rule_has_the_values_of_its_queries(rated, tmp_path, kind, names):
    lists = dict(zip(names, BY_ROW.values(), strict=True))
    run: object = lists
    if kind == "scores":
        run = {q: {d: 9.0 - r for r, d in enumerate(ds)} for q, ds in lists.items()}
    elif kind == "trec":
        run = trec(tmp_path / "a.run", names)
    elif kind == "table":
        run = tmp_path / "run.csv"
        rows = [f"{q},{r},{d}" for q, ds in lists.items() for r, d in enumerate(ds, 1)]
        run.write_text("\n".join(["query_id,rank,doc_id", *rows, ""]))
    elif kind == "jsonl":
        run = Run("r", {q: Answer(Outcome.ANSWERED, tuple(map(Hit, ds))) for q, ds in lists.items()})
    found = evaluate(load(rated), run, measures=["RR"])
    assert values(found) == RRS
    assert [found.value("RR", name) for name in names] == RRS
    rule = "row" if names[0] == "1" else "text"
    assert f"names queries by the rule `{rule}`" in found.warnings[0]
    assert ("row-ids" in {finding.check for finding in found.evidence}) == (rule == "row")


def test_a_run_that_says_its_version_is_matched_without_doubt_or_refused(rated):
    by_row = load(rated, options=TestSetOptions(ids="row"))
    run = Run("old", {q: Answer(Outcome.ANSWERED, tuple(map(Hit, ds))) for q, ds in BY_ROW.items()})
    run = replace(run, testset_digest=by_row.digest)
    found = evaluate(load(rated), run, measures=["RR"])
    assert values(found) == RRS
    assert found.run_digest == run.digest
    assert not any("version" in warning for warning in found.warnings)
    rated.write_text(RATED.replace("red boots", "new,d9,1\nred boots", 1))
    with pytest.raises(InputError, match="collected on another version of the test set: its rows may be other queries"):
        evaluate(load(rated), run, measures=["RR"])


def test_a_run_with_a_row_beyond_the_last_is_of_another_set(rated, tmp_path):
    with pytest.raises(InputError, match="names queries by row, and the test set has 3 rows"):
        evaluate(load(rated), trec(tmp_path / "a.run", ["2", "3", "4"]), measures=["RR"])
    with pytest.raises(NoCommonQueryError):
        evaluate(load(rated), {"7": ["d1"]}, measures=["RR"])


@pytest.mark.parametrize("kind", ["lists", "trec"])
def test_a_run_that_ends_before_the_last_row_needs_the_rule_to_be_named(rated, tmp_path, kind):
    run = trec(tmp_path / "a.run", ROWS) if kind == "trec" else BY_ROW
    rated.write_text(RATED.replace("red boots", "new,d9,1\nred boots", 1))
    with pytest.raises(InputError, match="names queries by row up to 3, and the test set has 4 rows"):
        evaluate(load(rated), run, measures=["RR"])
    found = evaluate(load(rated, options=TestSetOptions(ids="row")), run, measures=["RR"])
    assert found.value("RR", "4") == 0


def test_a_set_by_row_takes_a_run_of_content_ids(rated):
    by_row = load(rated, options=TestSetOptions(ids="row"))
    found = evaluate(by_row, dict(zip(NAMES, BY_ROW.values(), strict=True)), measures=["RR"])
    assert [found.value("RR", row) for row in BY_ROW] == RRS


def test_strata_and_judgments_of_another_rule_are_matched(rated, tmp_path):
    testset = load(rated)
    (tmp_path / "strata.csv").write_text("query_id,kind\n1,easy\n3,hard\n")
    grouped = with_strata(testset, tmp_path / "strata.csv")
    assert [query.strata for query in grouped.queries] == [{"kind": "easy"}, {}, {"kind": "hard"}]
    assert "the table names queries by the rule `row`" in str(grouped.notes[-1])
    judged = TestSet("other", load(rated, options=TestSetOptions(ids="text")).queries, {"blue": {"d7": 2.0}})
    assert with_judgments(testset, judged).grades == {NAMES[1]: {"d7": 2.0}}


def test_a_baseline_by_row_is_compared_query_by_query(rated):
    by_row = load(rated, options=TestSetOptions(ids="row"))
    old = baseline_of(
        evaluate(by_row, BY_ROW, measures=["RR"]), k=10, accepted="2026-11-21", commit="", reason="", config_digest=""
    )
    now = evaluate(load(rated), BY_ROW, measures=["RR"])
    assert misfits(old, now, k=10, measures=["RR"], name="b")
    same = with_ids_of(old, now.testset)
    assert misfits(same, now, k=10, measures=["RR"], name="b") == ()
    assert [same.values_of("RR")[name] for name in NAMES] == RRS
    assert same.matched is not None
    assert same.matched.rule == "row"
    rated.write_text(RATED.replace("blue,d2,1", "blue,d2,2"))
    assert with_ids_of(old, load(rated)) is old


@pytest.mark.parametrize("rule", ["row", "content"])
def test_a_baseline_holds_for_the_queries_that_it_has_after_others_were_added(rated, rule):
    before = load(rated, options=TestSetOptions(ids=rule))
    old = baseline_of(
        evaluate(before, BY_ROW, measures=["RR"]), k=10, accepted="2026-11-21", commit="", reason="", config_digest=""
    )
    rated.write_text(RATED + "more,d4,1\n")
    new = load(rated)
    same = with_ids_of(old, new)
    assert same.added == (content_id("more"),)
    assert same.testset_digest == new.digest
    assert [same.values_of("RR")[name] for name in NAMES] == RRS
    rated.write_text(RATED.replace("red boots", "more,d4,1\nred boots", 1))
    moved = with_ids_of(old, load(rated))
    assert (moved.added == (content_id("more"),)) == (rule == "content")
    assert (moved is old) == (rule == "row")
    rated.write_text("".join(RATED.splitlines(keepends=True)[:-1]))
    assert with_ids_of(old, load(rated)) is old


def test_a_history_by_row_goes_on_under_content_ids(rated, tmp_path):
    when = datetime(2026, 11, 21, tzinfo=UTC)
    by_row = evaluate(load(rated, options=TestSetOptions(ids="row")), BY_ROW, measures=["RR"])
    line = history_record(by_row, when=when)
    line["testset"].pop("same")  # as lines were written before there were rules
    append(tmp_path, line, history_record(evaluate(load(rated), BY_ROW, measures=["RR"]), when=when))
    old, new = read_history(tmp_path).points
    assert old.digest == new.digest == load(rated).digest
    append(tmp_path, history_record(by_row, when=when))
    assert len({point.digest for point in read_history(tmp_path).points}) == 1
    lines = (tmp_path / ".cranfield" / "history.jsonl").read_text().splitlines()
    assert json.loads(lines[1])["testset"]["same"]["row"] == by_row.testset.digest


def test_the_values_of_a_history_are_those_of_the_same_queries_under_another_rule(rated, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = "systems: {s: {command: [s, '{query}'], extract: {regex: x}}}\ntestset: rated.csv\nids: row\n"
    (tmp_path / "cranfield.yaml").write_text(config + "gate: {rules: [{ratchet: {measure: RR, queries: ['2']}}]}\n")
    worse = {"1": ["d1"], "2": ["x"], "3": ["x"]}
    for options, run in ((TestSetOptions(ids="row"), BY_ROW), (None, worse), (TestSetOptions(ids="row"), worse)):
        testset = load(rated, options=options) if options else load(rated)
        named = dict(zip(testset.query_ids, run.values(), strict=True))
        assert remember(tmp_path, [evaluate(testset, named, measures=["RR"])]) is None
    points, kept = read_history(tmp_path).points, KeptValues(tmp_path / ".cranfield")
    assert [kept(point, "RR") for point in points] == [
        dict(zip(NAMES, column, strict=True)) for column in (RRS, [1.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    ]
    judge = GateJudge(tmp_path / "cranfield.yaml", "RR", kept)
    assert judge(points[0], None) == judge(points[0], points[0]) == ""
    assert "2 0.5000 to 0.0000" in judge(points[1], points[0])
