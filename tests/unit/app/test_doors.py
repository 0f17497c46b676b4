"""Every way in gives the same numbers: files, mappings, frames, tables."""

import pytest

from cranfield import compare, evaluate, load
from cranfield.app.evaluate import with_measure
from cranfield.base.errors import UsageError
from cranfield.measures import parse

QRELS = {"q1": {"a": 2, "b": 1, "n": 0}, "q2": {"c": 1}, "q3": {"d": 1}}
RUN = {"q1": {"x": 9.5, "a": 9.5, "b": 8.0, "y": 7.25}, "q2": {"y": 3.0, "c": 2.0}, "q9": {"a": 1.0}}
MEASURES = ["nDCG@10", "AP", "RR@10", "P@5", "R@10", "Judged@10"]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "qrels").write_text(
        "".join(f"{q} 0 {d} {g}\n" for q, judged in QRELS.items() for d, g in judged.items())
    )
    lines = [f"{q} Q0 {d} 1 {score} tag\n" for q, docs in RUN.items() for d, score in docs.items()]
    (tmp_path / "run").write_text("".join(lines))
    return tmp_path


@pytest.fixture
def from_files(files):
    return evaluate(files / "qrels", files / "run", measures=MEASURES)


def rows(table, *names):
    return [dict(zip(names, (q, d, v), strict=True)) for q, inner in table.items() for d, v in inner.items()]


def frames(kind):
    qrels, run = rows(QRELS, "query_id", "doc_id", "grade"), rows(RUN, "query_id", "doc_id", "score")
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(qrels), pd.DataFrame(run)
    if kind == "polars":
        import polars as pl

        return pl.DataFrame(qrels), pl.DataFrame(run)
    import pyarrow as pa

    return pa.Table.from_pylist(qrels), pa.Table.from_pylist(run)


def same(one, other):
    for measure in one.measures:
        assert one.values[measure].tolist() == other.values[measure].tolist()
        assert one.scored[measure].tolist() == other.scored[measure].tolist()
    return one.warnings == other.warnings and dict(one.ranking.top) == dict(other.ranking.top)


def test_known_values(from_files):
    # q1: x ties with a and is the larger id: a is second, b third. AP = (1/2 + 2/3) / 2; q2: c second; q3: no answer
    assert from_files.values[parse("AP")].tolist() == pytest.approx([(1 / 2 + 2 / 3) / 2, 1 / 2, 0])


def test_mappings_are_as_files(from_files):
    assert same(from_files, evaluate(QRELS, RUN, measures=MEASURES))


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_are_as_files(from_files, kind):
    assert same(from_files, evaluate(*frames(kind), measures=MEASURES))


def test_parquet_is_as_files(from_files, tmp_path):
    qrels, run = frames("polars")
    qrels.write_parquet(tmp_path / "qrels.parquet")
    run.write_parquet(tmp_path / "run.parquet")
    assert same(from_files, evaluate(tmp_path / "qrels.parquet", tmp_path / "run.parquet", measures=MEASURES))


def test_lists_are_taken_in_their_order():
    found = evaluate(QRELS, {"q1": ["a", "x"], "q2": ["c"], "q3": []}, measures=["RR"])
    assert found.values[parse("RR")].tolist() == [1, 1, 0]


def test_depth_cuts_every_kind_of_run(files):
    for run in (files / "run", RUN, {q: sorted(d, key=lambda x: -RUN[q][x]) for q, d in RUN.items()}):
        found = evaluate(load(QRELS), run, measures=["NumRet"], depth=1)
        assert found.ranking.n_returned.tolist() == [1, 1, 0]
    with pytest.raises(UsageError, match="depth is 0"):
        evaluate(QRELS, RUN, depth=0)


def test_a_convention_says_what_becomes_of_missing_queries(files):
    for run in (files / "run", RUN):
        assert evaluate(QRELS, run, convention="trec9", measures=["RR"]).query_ids == ("q1", "q2")
        assert evaluate(QRELS, run, convention="trec9", missing="zero", measures=["RR"]).query_ids == ("q1", "q2", "q3")


@pytest.mark.parametrize(("convention", "value"), [("trec", 1 / 2), ("msmarco", 1.0)])
def test_ties_fall_as_the_convention_has_it_in_every_kind_of_run(tmp_path, convention, value):
    from cranfield.model import Answer, Hit, Outcome, Run

    tied = {"q1": {"a": 1.0, "x": 1.0}}
    (tmp_path / "run").write_text("q1 Q0 a 1 1 t\nq1 Q0 x 2 1 t\n")
    answer = Answer(Outcome.ANSWERED, (Hit("a", 1.0), Hit("x", 1.0)))
    for run in (tmp_path / "run", tied, Run("run", {"q1": answer}, order="descending")):
        found = evaluate({"q1": {"a": 1}}, run, measures=["RR"], convention=convention)
        assert found.values[parse("RR")].tolist() == [value]


def lost_and_found(n_lost):
    """Twenty queries: B loses the answer to some, and finds the others at rank 1 instead of 2."""
    qrels = {f"q{i:02}": {"a": 1} for i in range(20)}
    before = {q: ["x", "a"] for q in qrels}
    after = {q: ["x"] if i < n_lost else ["a"] for i, q in enumerate(qrels)}
    return [evaluate(qrels, run, measures=["RankOfFirst"], name=name) for run, name in ((before, "A"), (after, "B"))]


def test_queries_with_a_value_on_one_side_only_are_told_and_too_many_void_the_verdict():
    few = compare(*lost_and_found(1))
    assert few.verdict.name == "better"
    assert few.verdict.disagreements[0] == (
        "queries with a value of RankOfFirst on one side are in no pair: 1 on A only"
    )
    many = compare(*lost_and_found(9))
    assert many.verdict.name == "invalid"
    (reason,) = many.verdict.reasons
    assert reason == (
        "9 of 20 queries have a value of RankOfFirst on one side only (45.0 %); "
        "the limit is 10.0 % (limits.max_failed_share)"
    )


def test_a_run_that_finds_nothing_leaves_the_other_measures_their_values():
    found = evaluate(QRELS, {"q1": ["x"], "q2": ["x"], "q3": ["x"]}, measures=["RankOfFirst", "RR"])
    assert found.summaries[parse("RankOfFirst")].mean is None
    assert found.summaries[parse("RR")].mean == 0


def test_measures_are_summed_up_as_they_say():
    found = evaluate(QRELS, RUN, measures=["GMAP", "NumRet"])
    gmap, retrieved = (found.summaries[measure] for measure in found.measures)
    # AP is 7/12, 1/2 and 0, which counts as 0.00001; 4 + 2 + 0 results
    assert (gmap.mean, gmap.aggregate) == (pytest.approx((7 / 12 / 2 * 1e-5) ** (1 / 3)), "geometric mean")
    assert (retrieved.mean, retrieved.aggregate) == (6, "sum")
    with pytest.raises(UsageError, match="GMAP, NumRet: one number over all queries"):
        compare(found, found)


def test_what_was_asked_of_the_reading_is_recorded_and_has_to_agree():
    cut, whole = evaluate(QRELS, RUN, depth=1, measures=["RR"]), evaluate(QRELS, RUN, measures=["RR"])
    assert cut.reading == {"depth": 1, "missing": "zero", "duplicates": "error"}
    with pytest.raises(UsageError, match="read to different depths; got 1 and None"):
        compare(cut, whole)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "foo"}, "missing is 'foo'; expected 'zero' or 'skip'"),
        ({"duplicates": "last"}, "duplicates is 'last'; expected 'error' or 'first'"),
        ({"depth": "5"}, "depth is '5'; expected a whole number of 1 or more"),
    ],
)
def test_an_option_that_is_none_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        evaluate(QRELS, RUN, **options)


@pytest.mark.parametrize("answer", [[("d1", "x")], [["d1"]], [b"d1"], [None], "d1", b"d1", 3])
def test_an_answer_that_is_no_list_of_ids_is_refused_and_never_scored_as_nothing(answer):
    with pytest.raises(UsageError):
        evaluate(QRELS, {"q1": answer})


def test_one_measure_may_be_a_text_and_values_are_asked_for_by_its_name():
    found = evaluate(QRELS, RUN, measures="AP")
    assert found.value("AP", "q2") == 1 / 2
    with pytest.raises(UsageError, match="nDCG@5 was not evaluated; expected AP"):
        found.value("nDCG@5", "q2")
    with pytest.raises(UsageError, match="there is no query 'q7' here"):
        found.value("AP", "q7")


def test_a_measure_added_later_says_nothing_twice():
    one, added = (
        with_measure(evaluate({"q1": {"a": 1}, "q2": {"b": 0}}, {"q1": ["a"]}, measures=["AP"]), primary)
        for primary in ("AP", "RR")
    )
    assert [str(measure) for measure in added.measures] == ["AP", "RR"]
    assert added.value("RR", "q1") == 1.0
    assert added.warnings == one.warnings
    assert len(set(added.warnings)) == len(added.warnings)
