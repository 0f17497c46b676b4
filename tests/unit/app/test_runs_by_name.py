"""Runs, judgments and strata that name queries by text or by row, of a test set whose file has no ids."""

from pathlib import Path

import pytest

from cranfield import evaluate, load
from cranfield.app.runs_by_name import read_for
from cranfield.base.errors import NoCommonQueryError
from cranfield.evaluation.testset.split import only
from cranfield.formats.testsets.overlay import with_judgments, with_strata
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet, content_id
from cranfield.model.query_ids import BY_ROW, BY_TEXT

RATED = "query,docid,rating\nred boots,d1,3\nblue,d2,1\ngreen,d3,1\n"
BY_ROWS = {"1": ["d1"], "2": ["x", "d2"], "3": ["x"]}
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
    lists = dict(zip(names, BY_ROWS.values(), strict=True))
    path.write_text("".join(f"{q} Q0 {d} {r} {9 - r} t\n" for q, ds in lists.items() for r, d in enumerate(ds, 1)))
    return path


KINDS = ["lists", "scores", "table", "jsonl"]
ROWS, TEXTS = ["1", "2", "3"], ["red boots", "blue", "green"]  # no column of TREC holds blanks


@pytest.mark.parametrize(
    ("kind", "names"), [("trec", ROWS), *((kind, names) for kind in KINDS for names in (ROWS, TEXTS))]
)
def test_a_run_by_text_or_by_row_has_the_values_of_its_queries(rated, tmp_path, kind, names):
    lists = dict(zip(names, BY_ROWS.values(), strict=True))
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
    assert found.warnings[0].endswith(BY_ROW if names is ROWS else BY_TEXT)
    second = only(load(rated), [NAMES[1]])
    part = evaluate(second, run, measures=["RR"])
    assert part.value("RR", NAMES[1]) == 0.5


def test_a_run_of_other_rows_is_of_another_set(rated, tmp_path):
    for names in (["2", "3", "4"], ["7", "8", "9"]):
        with pytest.raises(NoCommonQueryError):
            evaluate(load(rated), trec(tmp_path / "a.run", names), measures=["RR"])
    rated.write_text(RATED.replace("red boots", "new,d9,1\nred boots", 1))
    for run in (BY_ROWS, trec(tmp_path / "a.run", ROWS)):
        with pytest.raises(NoCommonQueryError):
            evaluate(load(rated), run, measures=["RR"])


def test_a_run_file_as_a_system_answers_by_row(rated, tmp_path):
    run = read_for(load(rated), "trec", trec(tmp_path / "a.run", ROWS))
    assert list(run.answers) == NAMES


def test_strata_and_judgments_by_text_are_matched(rated, tmp_path):
    testset = load(rated)
    (tmp_path / "strata.csv").write_text("query,kind\nred boots,easy\ngreen,hard\n")
    grouped = with_strata(testset, tmp_path / "strata.csv")
    assert [query.strata for query in grouped.queries] == [{"kind": "easy"}, {}, {"kind": "hard"}]
    assert str(grouped.notes[-1]) == f"the table {BY_TEXT}"
    judged = with_judgments(testset, TestSet("other", (Query("blue"),), {"blue": {"d7": 2.0}}))
    assert judged.grades == {NAMES[1]: {"d7": 2.0}}
    assert f"the file of judgments {BY_TEXT}" in map(str, judged.notes)
