"""Folders of results: what is written is read, and what is incomplete, foreign or damaged is refused."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.result_folders import DIGEST, batch_of, noisy, results_of

from cranfield.base.errors import InputError, UsageError
from cranfield.scale.checkpoint import NAME, Checkpoint
from cranfield.scale.kernel import note_row
from cranfield.scale.results import INFO_FILE, ResultsInfo, ResultsWriter, finish_results, read_results
from cranfield.scale.scoring import Scoring


def all_of(results, rows=7):
    blocks = list(results.blocks(rows))
    ids = [query_id for block in blocks for query_id in block.query_ids.to_pylist()]
    names = [str(measure) for measure in results.about.scoring.measures]
    values = {name: np.concatenate([block.values[name] for block in blocks]) for name in names}
    return ids, values, np.concatenate([block.answered for block in blocks])


@settings(deadline=None, max_examples=min(25, settings().max_examples))
@given(
    n=st.integers(1, 40),
    n_systems=st.integers(1, 4),
    step=st.integers(1, 50),
    rows=st.integers(1, 60),
    holes=st.integers(0, 99),
)
def test_what_is_written_is_read_in_blocks_of_any_size(tmp_path_factory, n, n_systems, step, rows, holes):
    values = {"nDCG@10": noisy(n, n_systems, seed=holes), "RR": noisy(n, n_systems, seed=holes + 1)}
    rng = np.random.default_rng(holes)
    values["RR"][rng.random((n, n_systems)) < 0.2] = np.nan
    answered = rng.random((n, n_systems)) < 0.8
    systems = [f"s{place}" for place in range(n_systems)]
    folder = tmp_path_factory.mktemp("results")
    results = results_of(folder, values, answered=answered, systems=systems, step=step, n_rows=99)
    ids, found, there = all_of(results, rows)
    assert ids == [f"q{number}" for number in range(n)]
    for name, table in values.items():
        np.testing.assert_array_equal(found[name], table)
    np.testing.assert_array_equal(there, answered)
    assert read_results(folder).about == results.about
    assert (results.n_queries, results.about.n_rows) == (n, 99)


def test_the_same_inputs_give_the_same_bytes_and_replace_what_was_there(tmp_path):
    values = {"AP": noisy(50)}
    for name in ("one", "two"):
        results_of(tmp_path / name, values)
    results_of(tmp_path / "two", {"AP": noisy(20)})
    results_of(tmp_path / "two", values)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [INFO_FILE, "queries-00000.parquet"]
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_rows_without_a_query_that_an_engine_wrote_are_left_out(tmp_path):
    scoring = Scoring.of(["a", "b"], ["AP"])
    first, second = (batch_of(scoring, ids, {"AP": noisy(len(ids))}) for ids in (["q1", "q2"], ["q3"]))
    notes = note_row(scoring, system="a", n_rows=7)
    for number, batches in enumerate(([first, notes], [notes, second])):
        pq.write_table(pa.Table.from_batches(batches), tmp_path / f"part-{number}-c000.snappy.parquet")
    finish_results(tmp_path, ResultsInfo(scoring, "test", DIGEST, 3, 12, engine="spark"))
    ids, _, _ = all_of(read_results(tmp_path), 3)
    assert ids == ["q1", "q2", "q3"]


def interrupted(folder):
    scoring, n = Scoring.of(["a", "b"], ["AP"]), 80_000
    with ResultsWriter(folder, scoring) as writer:
        writer.write(batch_of(scoring, [f"q{number}" for number in range(n)], {"AP": noisy(n)}))
        raise RuntimeError


def test_a_folder_that_was_not_finished_is_incomplete(tmp_path):
    with pytest.raises(InputError, match="no results in this folder"):
        read_results(tmp_path)
    with pytest.raises(RuntimeError):
        interrupted(tmp_path)
    assert list(tmp_path.iterdir()) == []
    results_of(tmp_path, {"AP": noisy(10)})
    (tmp_path / INFO_FILE).unlink()
    with pytest.raises(InputError, match="incomplete"):
        read_results(tmp_path)


def test_a_file_too_few_or_too_many_is_found(tmp_path):
    results = results_of(tmp_path, {"AP": noisy(10)})
    (tmp_path / "queries-00001.parquet").write_bytes(results.files[0].read_bytes())
    with pytest.raises(InputError, match="of two evaluations") as raised:
        read_results(tmp_path)
    assert (raised.value.problems[0].expected, raised.value.problems[0].got) == ("20 rows", "40")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "results of another format"),
        ({"scoring": {"measures": ["nDGC@10"]}}, None),
        ({"scoring": {"measures": ["AP"], "convention": "trec"}}, "not a description of results"),
        ({"n_rows": None}, "not a description of results"),
    ],
)
def test_a_description_by_other_code_is_refused(tmp_path, change, message):
    results_of(tmp_path, {"AP": noisy(10)})
    path = tmp_path / INFO_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises((InputError, UsageError), match=message):
        read_results(tmp_path)


def test_a_damaged_file_is_named(tmp_path):
    results = results_of(tmp_path, {"AP": noisy(3000)})
    data = bytearray(results.files[0].read_bytes())
    data[100:4000] = bytes(3900)
    results.files[0].write_bytes(data)
    with pytest.raises(InputError, match=r"queries-00000\.parquet"):
        list(results.blocks())
    results.files[0].write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"queries-00000\.parquet.*damaged"):
        read_results(tmp_path)


@pytest.mark.parametrize("rows", [[0, 1, 2], [1, 0, 2, 3], [0, 1, 0, 1], [0, 3, 2, 1]])
def test_rows_that_are_not_of_whole_queries_are_refused(tmp_path, rows):
    scoring = Scoring.of(["a", "b"], ["AP"])
    table = pa.Table.from_batches([batch_of(scoring, ["q1", "q2"], {"AP": noisy(2)})]).take(rows)
    pq.write_table(table, tmp_path / "part-0.parquet")
    finish_results(tmp_path, ResultsInfo(scoring, "test", DIGEST, 2, 8))
    with pytest.raises(InputError, match=r"of whole queries|incomplete"):
        list(read_results(tmp_path).blocks())


def test_a_folder_of_other_parquet_files_is_left_alone(tmp_path):
    pq.write_table(pa.table({"query_id": ["q1"]}), tmp_path / "run.parquet")
    with pytest.raises(UsageError, match="other Parquet files"):
        ResultsWriter(tmp_path, Scoring.of(["a"], ["AP"]))
    assert (tmp_path / "run.parquet").is_file()


def test_a_file_that_was_put_beside_results_is_left_alone(tmp_path):
    results = results_of(tmp_path, {"AP": noisy(3)})
    own = results.files[0].rename(tmp_path / "part-00000-1b2c-c000.zstd.parquet")  # as an engine names it
    pq.write_table(pa.table({"query_id": ["q1"]}), tmp_path / "joined.parquet")
    with pytest.raises(UsageError, match=r"other Parquet files.*joined\.parquet"):
        ResultsWriter(tmp_path, results.about.scoring)
    (tmp_path / "joined.parquet").unlink()
    assert len(read_results(tmp_path).files) == 1
    ResultsWriter(tmp_path, results.about.scoring)
    assert not own.exists()


def test_large_results_are_in_several_files(tmp_path, monkeypatch):
    monkeypatch.setattr("cranfield.scale.results.ROWS_AT_ONCE", 40)
    monkeypatch.setattr("cranfield.scale.results.ROWS_PER_FILE", 100)
    results = results_of(tmp_path, {"AP": noisy(230)}, step=10)
    assert [path.name for path in results.files] == [f"queries-0000{number}.parquet" for number in range(4)]
    assert all_of(results)[0] == [f"q{number}" for number in range(230)]


@pytest.mark.parametrize("name", ["queries-00000.parquet", "run.parquet"])
def test_a_run_in_a_folder_of_results_is_not_removed(tmp_path, name):
    results_of(tmp_path, {"AP": noisy(20)})
    run = pa.table({"query_id": ["q1"], "doc_id": ["d1"], "score": [1.0]})
    pq.write_table(run, tmp_path / name)
    with pytest.raises(UsageError, match="other Parquet files"):
        ResultsWriter(tmp_path, Scoring.of(["a"], ["AP"]))
    assert pq.read_table(tmp_path / name).equals(run)
    assert (tmp_path / INFO_FILE).is_file()


def test_a_planted_link_is_not_followed(tmp_path):
    (tmp_path / "theirs").write_text("kept")
    folder = tmp_path / "out"
    folder.mkdir()
    scoring = Scoring.of(["a", "b"], ["AP"])
    with ResultsWriter(folder, scoring) as writer:
        (folder / "queries-00000.parquet.part").symlink_to(tmp_path / "theirs")
        writer.write(batch_of(scoring, ["q1"], {"AP": noisy(1)}))
        writer.finish(ResultsInfo(scoring, "test", DIGEST, 1, 4))
    checkpoint = Checkpoint(folder, "signed")
    (folder / "_unfinished.part").symlink_to(tmp_path / "theirs")
    checkpoint.save({"part": np.array([7])})
    assert checkpoint.load() == {"part": np.array([7])}
    (folder / f".{NAME}.{'0a' * 8}.part").write_bytes(b"of a process that was killed")
    checkpoint.remove()
    assert (tmp_path / "theirs").read_text() == "kept"
    assert sorted(path.name for path in folder.iterdir() if not path.is_symlink()) == [
        INFO_FILE,
        "queries-00000.parquet",
    ]


def test_what_was_written_in_part_is_removed(tmp_path):
    (tmp_path / f".queries-00001.parquet.{'0a' * 8}.part").write_bytes(b"PAR1")
    (tmp_path / "queries-00000.parquet").write_bytes(b"PAR1")
    results_of(tmp_path, {"AP": noisy(20)})
    assert sorted(path.name for path in tmp_path.iterdir()) == [INFO_FILE, "queries-00000.parquet"]
