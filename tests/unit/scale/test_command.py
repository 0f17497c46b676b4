"""Parquet runs of any size on the command line, and from Python."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import cranfield
from cranfield.cli.main import command_line
from cranfield.scale.checkpoint import Pace
from cranfield.scale.commands import RowProgress, line_of
from cranfield.scale.local import LocalEvaluation

MEASURES = ("-m", "nDCG@10", "-m", "AP")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Qrels, the rows of two systems in one table of several files, and the same systems as TREC runs."""
    folder, draw = tmp_path_factory.mktemp("large"), random.Random(5)
    qrels, rows = [], []
    for number in range(60):
        judged = draw.sample(range(40), 8)
        qrels += [f"q{number} 0 d{doc} {draw.randint(0, 2)}\n" for doc in judged]
        for system, skill in (("old", 0.0), ("new", 2.0)):
            if system == "new" and number == 7:
                continue
            scores = {doc: round(draw.random() * 4 + skill * (doc in judged), 1) for doc in draw.sample(range(40), 30)}
            rows += [(system, f"q{number}", f"d{doc}", score) for doc, score in scores.items()]
    (folder / "qrels.txt").write_text("".join(qrels))
    draw.shuffle(rows)
    (folder / "run").mkdir()
    for number in range(3):
        columns = zip(*rows[number::3], strict=True)
        table = pa.table(dict(zip(("system", "query_id", "doc_id", "score"), columns, strict=True)))
        pq.write_table(table, folder / "run" / f"part-{number}.parquet", row_group_size=100)
    for system in ("old", "new"):
        lines = (f"{query} Q0 {doc} 1 {score} {system}\n" for owner, query, doc, score in rows if owner == system)
        (folder / f"{system}.run").write_text("".join(lines))
    users = "".join(f"q{number},u{number % 20},{'de' if number % 3 else 'en'}\n" for number in range(60))
    (folder / "queries.csv").write_text("query_id,user,language\n" + users)
    return folder


@pytest.fixture(autouse=True)
def here(made, monkeypatch):
    monkeypatch.chdir(made)


def run(*args):
    done = CliRunner().invoke(command_line(args[0]), [str(arg) for arg in args], prog_name="cranfield")
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("place", ["run", "run/part-*.parquet", "run/*.parquet"])
def test_means_are_those_of_run_files(place):
    code, out, error = run("evaluate", "qrels.txt", place, *MEASURES, "--format", "json")
    assert (code, error) == (0, "")
    found = {system["name"]: system["measures"] for system in json.loads(out)["systems"]}
    code, out, _ = run("evaluate", "qrels.txt", "new.run", "old.run", *MEASURES, "--format", "json")
    for evaluation in json.loads(out)["systems"]:
        for measure, summary in evaluation["measures"].items():
            same = found[evaluation["name"]][measure]
            for part in ("mean", "ci_low", "ci_high", "std"):
                assert same[part] == pytest.approx(summary[part], abs=1e-12), (measure, part)


def test_a_comparison_of_two_systems_of_a_table():
    code, out, error = run("compare", "qrels.txt", "run", "--baseline-system", "old", *MEASURES, "--fail-on", "better")
    assert code == 1, error
    assert "new is better than old" in out
    assert "new does not answer 1 of 60 queries" in out
    code, out, _ = run("compare", "qrels.txt", "old.run", "new.run", *MEASURES, "--format", "json")
    expected = json.loads(out)
    code, out, _ = run("compare", "qrels.txt", "run", "--baseline-system", "old", *MEASURES, "--format", "json")
    pair = json.loads(out)["pairs"][0]
    assert pair["verdict"]["code"] == expected["verdict"] == "better"
    found, theirs = pair["measures"]["nDCG@10"], expected["comparisons"]["nDCG@10"]
    for part in ("delta", "ci_low", "ci_high"):
        assert found[part] == pytest.approx(theirs[part], abs=1e-12)


@pytest.mark.parametrize("limit", [0.1, 0.3, 0.6])
def test_the_judged_share_is_that_of_run_files(limit):
    options = ("-m", "nDCG@10", "-m", "P@3", "--primary", "nDCG@10", "--min-judged", limit, "--format", "json")
    _, out, _ = run("compare", "qrels.txt", "old.run", "new.run", *options)
    expected = json.loads(out)
    _, out, error = run("compare", "qrels.txt", "run", "--baseline-system", "old", *options)
    found = json.loads(out)
    assert found["pairs"][0]["verdict"]["code"] == expected["verdict"], error
    theirs = {each["name"]: each for each in expected["systems"]}
    for system in found["systems"]:
        assert system["judged_share"] == pytest.approx(theirs[system["name"]]["judged"]["mean"], abs=1e-12)


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_one_file_of_several_systems_is_read_by_system(command, tmp_path):
    rows = pa.concat_tables([pq.read_table(path) for path in sorted(Path("run").iterdir())])
    pq.write_table(rows, tmp_path / "all.parquet")
    code, out, error = run(command, "qrels.txt", tmp_path / "all.parquet", *MEASURES, "--format", "json")
    assert (code, error) == (0, "")
    _, expected, _ = run("evaluate", "qrels.txt", "run", *MEASURES, "--format", "json")
    means = [
        [(s["name"], s["measures"]["AP"]["mean"]) for s in json.loads(text)["systems"]] for text in (out, expected)
    ]
    assert means[0] == means[1]
    one = rows.filter(pa.array([name == "old" for name in rows["system"].to_pylist()]))
    pq.write_table(one, tmp_path / "one.parquet")
    code, out, _ = run("evaluate", "qrels.txt", tmp_path / "one.parquet", *MEASURES)
    assert (code, "median" in out) == (0, True)  # one name: read as a whole


def test_a_folder_without_parquet_files_says_so(tmp_path):
    (tmp_path / "run.txt").write_text("q1 Q0 d1 1 1.0 old\n")
    code, _, error = run("evaluate", "qrels.txt", tmp_path, *MEASURES)
    assert (code, "no Parquet file here; expected a file, a folder or a pattern" in error) == (2, True)


def test_a_run_of_text_is_no_parquet_file():
    code, _, error = run("evaluate", "qrels.txt", "old.run", "--memory", "1GB", *MEASURES)
    assert (code, "old.run: this is not a Parquet file" in error, "without the options" in error) == (2, True, True)


def test_ids_of_another_form_have_no_verdict(tmp_path):
    for name in ("old", "new"):
        rows = [(f"q{number}", f"/docs/d{doc}.html", 1.0 / (doc + 1)) for number in range(60) for doc in range(5)]
        columns = zip(*rows, strict=True)
        table = pa.table(dict(zip(("query_id", "doc_id", "score"), columns, strict=True)))
        pq.write_table(table, tmp_path / f"{name}.parquet")
    runs = [tmp_path / f"{name}.parquet" for name in ("old", "new")]
    code, out, _ = run("compare", "qrels.txt", *runs, "--memory", "1GB", *MEASURES)
    assert (code, "VERDICT: invalid" in out) == (3, True)
    assert "no result of 60 queries is judged for its query" in out
    code, out, _ = run("evaluate", "qrels.txt", runs[0], "--memory", "1GB", *MEASURES)
    assert (code, "no result of 60 queries is judged" in out) == (0, True)


@pytest.mark.parametrize(
    ("options", "extra"),
    [
        ((), "parquet"),
        (("--out", "values"), "parquet"),
        (("--memory", "1GB"), "parquet"),
        (("--engine", "spark"), "spark"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_without_pyarrow_the_extra_is_named(made, monkeypatch, command, options, extra):
    for name in ("pyarrow", "cranfield.scale.source"):
        monkeypatch.setitem(sys.modules, name, None)
    code, out, error = run(command, "qrels.txt", "run", *MEASURES, *options)
    assert (code, out) == (2, "")
    assert f"pip install 'cranfield[{extra}]'" in error
    assert not (made / "values").exists()
    assert run("evaluate", "qrels.txt", "old.run", *MEASURES)[0] == 0


def test_clusters_and_strata_of_a_table_of_queries():
    options = ("--query-table", "queries.csv", "--cluster", "user", "--stratum", "language")
    code, out, error = run("evaluate", "qrels.txt", "run", *MEASURES, *options)
    assert (code, error) == (0, "")
    assert "20 clusters" in out
    assert "language" in out


def test_an_interrupted_call_goes_on(monkeypatch, tmp_path, made):
    kept, calls = LocalEvaluation._read, []

    def stopped(self, chunk, look):
        calls.append(chunk)
        if len(calls) == 5:
            raise KeyboardInterrupt
        kept(self, chunk, look)

    monkeypatch.setenv("CRANFIELD_JOBS", "1")
    monkeypatch.setattr(LocalEvaluation, "_read", stopped)
    command = ("evaluate", "qrels.txt", "run", *MEASURES, "--out", tmp_path / "out")
    code, _, error = run(*command)
    assert code != 0
    assert "the same command resumes from here" in error
    assert not (tmp_path / "out" / "_evaluation.json").exists()
    code, out, error = run(*command)
    assert (code, error) == (0, "")
    n_chunks = sum(pq.ParquetFile(path).num_row_groups for path in (made / "run").iterdir())
    assert len(calls) == 2 * n_chunks + 1, "a row group was read again"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["_evaluation.json", "queries-00000.parquet"]
    assert run("evaluate", "qrels.txt", "run", *MEASURES)[1] == out


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        (
            ("--by-query", "--sort", "name"),
            ("--by-query cannot be used with", "--sort cannot be used with", "the folder of --out"),
        ),
        (
            ("--failed", "skip", "--evidence", "same-list=off"),
            ("--failed cannot be used with", "--evidence cannot be used with"),
        ),
        (("--memory", "lots"), ("--memory is 'lots'", "800MB")),
        (("--memory", "5MB"), ("alone need more",)),
        (("--columns", "score"), ("--columns is 'score'", "score=bm25")),
        (("--columns", "score=bm25"), ("no column score", "bm25")),
        (("--cluster", "user"), ("--cluster names a column", "--query-table")),
        (("--master", "local[2]"), ("--master belongs to another engine", "--engine spark")),
        (("--baseline-system", "older"), ("'older'", "old")),
        (("-m", "FileCoverage"), ("needs more than ranks and grades",)),
        (("--convention", "searchtweak"), ("no column rank",)),
        (("--convention", "ir_measures"), ("read in parts cannot follow",)),
    ],
)
def test_options_that_do_not_go_together_are_named(options, texts):
    code, _, error = run("evaluate", "qrels.txt", "run", *options)
    assert code == 2
    for text in texts:
        assert text in error


def test_one_run_has_nothing_to_be_compared_with():
    code, _, error = run("compare", "qrels.txt", "old.run")
    assert code == 2
    assert "a BASELINE and a CANDIDATE" in error


def test_identical_runs_are_pointed_out(made, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        table = pq.read_table(made / "run" / "part-0.parquet").drop_columns(["system"]).to_pandas()
        pq.write_table(pa.table(table.drop_duplicates(["query_id", "doc_id"])), tmp_path / name / f"{name}.parquet")
    code, out, error = run("compare", "qrels.txt", tmp_path / "one", tmp_path / "two", *MEASURES)
    assert (code, error) == (0, "")
    assert "the runs of one and two are identical" in " ".join(out.split())


def test_a_run_of_other_queries_is_no_bad_run(made, tmp_path):
    (tmp_path / "other.txt").write_text("x1 0 d1 1\n")
    code, out, error = run("evaluate", tmp_path / "other.txt", "run", "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert "share no query id; expected ids such as 'x1', got 'q0', 'q1', 'q10'" in error
    assert list((tmp_path / "out").iterdir()) == []
    rows = pq.read_table(made / "run" / "part-0.parquet", filters=[("system", "=", "old")])
    rows = rows.set_column(0, "system", pa.array(["elsewhere"] * len(rows))).set_column(
        1, "query_id", pa.array(["z"] * len(rows))
    )
    (tmp_path / "run").mkdir()
    pq.write_table(pa.concat_tables([pq.read_table(made / "run"), rows.slice(0, 1)]), tmp_path / "run" / "run.parquet")
    code, out, error = run("compare", "qrels.txt", tmp_path / "run", "--baseline-system", "old", "--fail-on", "worse")
    assert code == 3
    assert "elsewhere answers none of the queries" in " ".join(out.split())


@pytest.mark.parametrize("options", [(), ("--memory", "1GB")])
def test_a_pattern_without_quotes_makes_no_systems(made, options):
    code, out, error = run("evaluate", "qrels.txt", *sorted((made / "run").iterdir()), *MEASURES, *options)
    assert (code, out) == (2, "")
    assert "3 files of one folder look like the parts of one run" in error
    assert "in quotes" in error


def test_run_files_are_no_parquet():
    code, _, error = run("evaluate", "qrels.txt", "old.run", "--memory", "1GB")
    assert code == 2
    assert "old.run" in error
    assert "Parquet" in error


def test_from_python(tmp_path):
    summary = cranfield.evaluate_parquet(
        "qrels.txt", "run", measures=["nDCG@10", "AP"], out=tmp_path / "out", baseline_system="old", memory="500MB"
    )
    assert [system.name for system in summary.systems] == ["old", "new"]
    expected = cranfield.evaluate("qrels.txt", "new.run", measures=["nDCG@10"]).mean("nDCG@10")
    assert summary.systems[1].measures["nDCG@10"].mean == pytest.approx(expected, abs=1e-12)
    assert "new is better than old" in cranfield.report(summary, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000


class Terminal:
    def __init__(self, *, live):
        self.live, self.text = live, ""

    def isatty(self):
        return self.live

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_progress_says_how_far_how_fast_and_how_long(monkeypatch):
    pace = Pace(total=40_000_000, done=10_000_000, step="count", started=0.0)
    monkeypatch.setattr("cranfield.scale.checkpoint.time.monotonic", lambda: 2.0)
    assert line_of(pace) == "reading, second pass: 25% of 40,000,000 rows, 5,000,000 rows/s, 6 s left"
    live = Terminal(live=True)
    progress = RowProgress(live)
    progress(pace)
    progress.finish()
    assert live.text.startswith("\rreading")
    assert live.text.endswith(" \r")
    log = Terminal(live=False)
    RowProgress(log)(pace)
    assert log.text == ""  # a line every five seconds
