"""Parquet files that are evaluated on this machine: parts, memory, interruptions, and what is wrong with their rows."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.scale_contract import CASES, Case, check

from cranfield.base.errors import RunFormatError, UsageError
from cranfield.ranking.counting import FILTER_BITS, Counting
from cranfield.scale import local, source
from cranfield.scale.checkpoint import NAME
from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.local import LocalEvaluation
from cranfield.scale.plan import Size, human, memory_bytes
from cranfield.scale.scoring import Scoring
from cranfield.scale.source import ParquetRuns, RunFiles, find_runs, is_large_run

GB = 10**9


def striped(table, folder, n_files=4, row_group_size=16):
    """The rows of a table over several files, each of which has a part of every query."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(n_files):
        rows = table.take(list(range(number, len(table), n_files)))
        pq.write_table(rows, folder / f"part-{number:02d}.parquet", row_group_size=row_group_size)
    return folder


def evaluation(case, runs, folder=None, **options):
    scoring = Scoring.of(
        runs.systems(), list(map(str, case.scoring.measures)), duplicates=options.pop("duplicates", "error")
    )
    return LocalEvaluation(runs, case.judgments, scoring, options.pop("memory", GB), folder, **options)


def results_of(made):
    batches = []
    counted = made.run(batches.append)
    return pa.Table.from_batches(batches), counted


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("n_parts", [1, 5])
def test_the_contract(case, n_parts, tmp_path, monkeypatch):
    monkeypatch.setattr(Size, "n_parts", lambda *_: n_parts)
    name = case.systems[0] if len(case.systems) == 1 else "all"
    runs = ParquetRuns(find_runs([str(striped(case.table(), tmp_path / name))]), "score")
    assert runs.systems() == tuple(sorted(case.systems))
    results, counted = results_of(evaluation(case, runs))
    check(case, results, drops_rows_without_query=True)
    without = [row for row in case.rows if row[1] not in case.qrels]
    assert counted.unjudged.sum() == len(without)
    assert set(counted.extra_queries) == {row[1] for row in without}
    assert counted.n_duplicates == 0


def test_systems_in_files_of_their_own(tmp_path):
    case = CASES[2]
    for system in case.systems:
        rows = [row for row in case.rows if row[0] == system]
        striped(Case("", tuple(rows), case.qrels).table(systems=False), tmp_path / system)
    runs = ParquetRuns(find_runs([str(tmp_path / system) for system in case.systems]), "score")
    results, _ = results_of(evaluation(case, runs))
    check(case, results, drops_rows_without_query=True)


def test_ranks_order_a_file_that_has_no_scores(tmp_path):
    case = CASES[2]
    table = case.table()
    ranks = pc.cast(pc.rank(table["score"], "descending", tiebreaker="min"), pa.int32())
    ranked = table.set_column(table.schema.get_field_index("score"), "rank", ranks)
    by_score, by_rank = (
        results_of(evaluation(case, ParquetRuns(find_runs([str(striped(each, tmp_path / name))]), "score")))[0]
        for name, each in (("scores", table), ("ranks", ranked))
    )
    assert by_rank.drop_columns(["problem"]) == by_score.drop_columns(["problem"])


@pytest.mark.parametrize("n_parts", [1, 3])
def test_an_interrupted_evaluation_goes_on(n_parts, tmp_path, monkeypatch):
    monkeypatch.setattr(Size, "n_parts", lambda *_: n_parts)
    monkeypatch.setattr(local, "SHOWN_EVERY_S", 0.0005)
    monkeypatch.setenv("CRANFIELD_JOBS", "1")
    case = CASES[2]
    runs = ParquetRuns(find_runs([str(striped(case.table(), tmp_path / "runs"))]), "score")
    whole, counted = results_of(evaluation(case, runs))
    folder, read, resumed = tmp_path / "out", [], 0
    kept = LocalEvaluation._read
    monkeypatch.setattr(
        LocalEvaluation, "_read", lambda self, chunk, look: (read.append(chunk), kept(self, chunk, look))
    )
    draw = random.Random(n_parts)
    for _ in range(1000):
        calls = iter(range(draw.randint(1, 6)))

        def stop(pace, calls=calls):
            if next(calls, None) is None:
                raise KeyboardInterrupt

        made = evaluation(case, runs, folder, on_progress=stop)
        try:
            results, again = results_of(made)
            break
        except KeyboardInterrupt:
            resumed += 1
            assert (folder / NAME).exists()
            assert 0 <= made.pace.done <= made.pace.total
    assert resumed > 2
    assert results == whole
    assert (again.unjudged == counted.unjudged).all()
    assert again.extra_queries == counted.extra_queries
    assert len(read) == 2 * n_parts * len(runs.chunks()), "a row group was read again"
    assert list(folder.iterdir()) == []


def test_what_was_saved_of_other_files_is_not_used(tmp_path):
    case = CASES[0]
    folder = striped(case.table(), tmp_path / "runs")
    runs = ParquetRuns(find_runs([str(folder)]), "score")
    made = evaluation(case, runs, tmp_path)
    (tmp_path / NAME).write_bytes(b"not ours")
    check(case, _renamed(results_of(made)[0], case), drops_rows_without_query=True)
    made = evaluation(case, runs, tmp_path, saved_every_s=0.0)
    made._checkpoint.save({"part": np.array([7])})
    pq.write_table(case.table().take(list(range(len(case.rows)))[::-1]), folder / "part-00.parquet")
    for path in sorted(folder.iterdir())[1:]:
        path.unlink()
    again = evaluation(case, ParquetRuns(find_runs([str(folder)]), "score"), tmp_path)
    assert again._checkpoint.load() is None
    check(case, _renamed(results_of(again)[0], case), drops_rows_without_query=True)


@pytest.mark.parametrize("change", ["order of the judgments", "column", "runs", "damage"])
def test_what_was_saved_of_another_reading_is_not_used(change, tmp_path):
    case = CASES[0]
    table = case.table(systems=False)
    folder = striped(table.append_column("bm25", table["score"]), tmp_path / "runs")
    names = [str(tmp_path / "runs" / f"part-0{number}.parquet") for number in range(4)]
    groups = [[(0, 4)], [(0, 2), (2, 4)]]

    def made(columns=None, judgments=case.judgments, split=0):
        found = [RunFiles(f"run{begin}", tuple(map(Path, names[begin:end]))) for begin, end in groups[split]]
        runs = ParquetRuns(found, "score", columns)
        return LocalEvaluation(runs, judgments, Scoring.of(["run0", "run2"][: split + 1], ["AP"]), GB, folder)

    first = made()
    first._checkpoint.save({"part": np.array([7])})
    assert made()._checkpoint.load() is not None
    rows = case.judgments.rows()
    turned = JudgmentTable.from_rows(
        *(rows[name][::-1] for name in ("query_id", "doc_id", "grade")), name="", digest=case.judgments.digest
    )
    if change == "damage":
        first._checkpoint.path.write_bytes(first._checkpoint.path.read_bytes()[:-30])
    other = {
        "order of the judgments": lambda: made(judgments=turned),
        "column": lambda: made({"score": "bm25"}),
        "runs": lambda: made(split=1),
        "damage": made,
    }[change]()
    assert other._checkpoint.load() is None


def _renamed(results, case):
    """The same with the system's name of the case."""
    names = pa.array([case.systems[0]] * len(results))
    return results.set_column(results.schema.get_field_index("system"), "system", names)


def run_of(tmp_path, rows, name="run.parquet"):
    query, doc, score = zip(*rows, strict=True)
    pq.write_table(pa.table({"query_id": query, "doc_id": doc, "score": score}), tmp_path / name)
    return tmp_path / name


def problems(tmp_path, *texts, **options):
    case = Case("", (), {"q": {"a": 1, "b": 2}})
    runs = ParquetRuns(find_runs([str(tmp_path / text) for text in texts]), "score")
    with pytest.raises(RunFormatError) as raised:
        results_of(evaluation(case, runs, **options))
    return [str(problem) for problem in raised.value.problems]


def test_a_document_twice_is_named_with_both_places(tmp_path):
    (tmp_path / "run").mkdir()
    run_of(tmp_path / "run", [("q", "x", 1.0), ("q", "b", 4.0)], "one.parquet")
    run_of(tmp_path / "run", [("z", "x", 1.0), ("q", "b", 3.0), ("q", "x", 1.0), ("q", "x", 0.5)], "two.parquet")
    found = problems(tmp_path, "run")
    assert len(found) == 3
    assert "two.parquet" in found[0]
    assert "row 1, and row 1 of one.parquet: query 'q' lists document 'b' twice" in found[0]
    assert "row 2, and row 0 of one.parquet: query 'q' lists document 'x' twice" in found[1]
    assert "--duplicates first" in found[2]


def test_rows_that_cannot_be_used_are_named_with_their_file(tmp_path):
    run_of(tmp_path, [("q", "x", 1.0), ("q", "b", float("inf"))])
    assert "row 1: the score is inf, which is not a finite number" in problems(tmp_path, "run.parquet")[0]


def test_rows_that_cannot_be_used_are_not_forgotten_by_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "SHOWN_EVERY_S", 0.0005)
    monkeypatch.setenv("CRANFIELD_JOBS", "1")
    rows = [("q", f"d{number}", float("nan") if number == 3 else 1.0) for number in range(40)]
    query, doc, score = zip(*rows, strict=True)
    table = pa.table({"query_id": query, "doc_id": doc, "score": score})
    pq.write_table(table, tmp_path / "run.parquet", row_group_size=2)
    case, folder = Case("", (), {"q": {"d1": 1}}), tmp_path / "out"
    runs = ParquetRuns(find_runs([str(tmp_path / "run.parquet")]), "score")

    def stop(pace):
        if pace.done >= 10:  # the wrong row was read
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        results_of(evaluation(case, runs, folder, on_progress=stop))
    with pytest.raises(RunFormatError, match="row 3: the score is nan"):
        results_of(evaluation(case, runs, folder))


def test_millions_of_repetitions_are_named_by_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr("cranfield.ranking.counting.MAX_SUSPECTS", 3)
    run_of(tmp_path, [("q", f"d{number % 5}", 1.0) for number in range(20)])
    assert "lists document 'd0' twice" in problems(tmp_path, "run.parquet")[0]
    assert "millions of rows repeat" in problems(tmp_path, "run.parquet", duplicates="first")[0]


def test_each_run_that_is_none_is_named(tmp_path):
    with pytest.raises(RunFormatError) as raised:
        find_runs([str(tmp_path / "absent"), str(tmp_path), str(tmp_path / "*.parquet")])
    assert len(raised.value.problems) == 3


def test_the_parts_of_one_run_are_no_systems(tmp_path):
    folder = striped(CASES[0].table(), tmp_path / "run")
    with pytest.raises(UsageError, match="look like the parts of one run"):
        find_runs(sorted(map(str, folder.iterdir())))
    assert len(find_runs([str(folder / "part-*.parquet")])[0].files) == 4
    assert is_large_run(str(folder))
    assert is_large_run(str(folder / "part-*.parquet"))
    assert not is_large_run(str(folder / "part-00.parquet"))
    assert not is_large_run(str(tmp_path / "run.txt"))


def test_what_an_engine_leaves_beside_its_parts_is_no_data(tmp_path):
    folder = striped(CASES[0].table(), tmp_path / "run")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "part-9.parquet").write_bytes(b"half a file")
    (folder / ".hidden.parquet").write_bytes(b"half a file")
    assert len(find_runs([str(folder)])[0].files) == 4


def test_runs_of_the_same_name_are_numbered(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        run_of(tmp_path / name, [("q", "x", 1.0)])
    assert [run.name for run in find_runs([str(tmp_path / name / "run.parquet") for name in "ab"])] == [
        "run-1",
        "run-2",
    ]


def test_each_missing_or_wrong_column_is_named(tmp_path):
    pq.write_table(pa.table({"query_id": [1.5], "score": ["x"]}), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    runs = find_runs([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")])
    with pytest.raises(RunFormatError) as raised:
        ParquetRuns(runs, "score")
    text = str(raised.value)
    for part in ("column query_id cannot be used", "no column doc_id", "column score cannot be used", "damaged"):
        assert part in text


def test_columns_by_other_names(tmp_path):
    table = pa.table({"topic": ["q"], "url": ["a"], "bm25": pa.array([1], pa.int64()), "variant": ["v2"]})
    pq.write_table(table, tmp_path / "run.parquet")
    named = {"query_id": "topic", "doc_id": "url", "score": "bm25", "system": "variant"}
    runs = ParquetRuns(find_runs([str(tmp_path / "run.parquet")]), "score", named)
    assert runs.systems() == ("v2",)
    results, _ = results_of(evaluation(Case("", (), {"q": {"a": 1}}), runs))
    assert results["RR"].to_pylist() == [1.0]
    with pytest.raises(UsageError, match="unknown column role"):
        ParquetRuns(find_runs([str(tmp_path / "run.parquet")]), "score", named | {"docs": "url"})


def test_repetitions_in_the_first_pass_are_not_held_without_end(tmp_path, monkeypatch):
    run_of(tmp_path, [("q", f"d{number % 400}", 1.0) for number in range(800)])
    monkeypatch.setattr("cranfield.ranking.counting.MAX_SUSPECTS", 30)
    monkeypatch.setattr(local, "LOOKED_FOR", 5)
    held = []
    turn = Counting.turn
    monkeypatch.setattr(Counting, "turn", lambda self: (held.append(sum(map(len, self.repeated))), turn(self)))
    monkeypatch.setattr(source, "ROWS_AT_ONCE", 50)
    assert re.search(r"lists document 'd\d+' twice", problems(tmp_path, "run.parquet")[0])
    assert "lower --memory" in str(problems(tmp_path, "run.parquet", duplicates="first"))
    assert max(held) < 100


def test_many_rows_that_repeat_nothing_are_not_taken_for_repetitions(tmp_path, monkeypatch):
    n = 60_000
    run_of(tmp_path, [("q", f"d{number}", 1.0) for number in range(n)])
    monkeypatch.setattr("cranfield.ranking.counting.MAX_SUSPECTS", 30)
    case = Case("", (), {"q": {"d1": 1}})
    runs = ParquetRuns(find_runs([str(tmp_path / "run.parquet")]), "score")
    results, counted = results_of(evaluation(case, runs))
    assert (results["n_rows"].to_pylist(), counted.n_duplicates) == ([n], 0)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("logs/day-*/*.parquet", "logs"),
        ("logs/bm25/*.parquet", "bm25"),
        ("*/*/*.parquet", "run"),
        ("logs/bm25", "bm25"),
    ],
)
def test_a_pattern_has_a_name_without_its_signs(pattern, name, tmp_path, monkeypatch):
    for folder in ("logs/day-1", "logs/day-2", "logs/bm25"):
        (tmp_path / folder).mkdir(parents=True)
        run_of(tmp_path / folder, [("q", "a", 1.0)])
    monkeypatch.chdir(tmp_path)
    assert [run.name for run in find_runs([pattern])] == [name]


def test_a_file_that_changes_is_noticed(tmp_path):
    case = CASES[0]
    folder = striped(case.table(), tmp_path / "run", n_files=1)
    runs = ParquetRuns(find_runs([str(folder)]), "score")
    made = evaluation(case, runs)
    pq.write_table(case.table().slice(0, 7), folder / "part-00.parquet")
    with pytest.raises(RunFormatError, match="damaged, cut short or changed"):
        results_of(made)


def test_parts_keep_within_the_memory():
    size = Size(n_rows=100_000_000, n_queries=100_000, n_judgments=1_850_000, n_systems=1, n_threads=2)
    assert size.n_parts(GB) == 1
    for memory in (400_000_000, 600_000_000, 800_000_000):
        n = size.n_parts(memory)
        assert size.bytes_of(n) <= memory < size.bytes_of(n - 1)
    with pytest.raises(UsageError, match="alone need more"):
        size.n_parts(200_000_000)


@pytest.mark.parametrize(
    "size",
    [
        Size(n_rows=10**9, n_queries=50_000_000, n_judgments=10**8, n_systems=90, n_threads=2),
        Size(n_rows=40 * 10**9, n_queries=10**6, n_judgments=10**7, n_systems=1, n_threads=2),
    ],
)
def test_parts_keep_within_what_their_numbers_hold(size):
    n = size.n_parts(10**15)
    assert math.ceil(size.n_queries / n) * size.n_systems < 2**31
    assert size.n_rows / n * FILTER_BITS / 64 < 2**32


@pytest.mark.parametrize(
    ("text", "expected"), [("1GB", GB), ("800 MB", 8 * 10**8), ("2GiB", 2**31), ("1.5gb", 15 * 10**8)]
)
def test_sizes(text, expected):
    assert memory_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "1", "GB", "1 XB", "-1GB"])
def test_no_sizes(text):
    with pytest.raises(UsageError, match="--memory"):
        memory_bytes(text)
    assert human(1_300_000_000) == "1.3 GB"
