"""Carrying runs, logs, journals, baselines, histories and splits over to the ids that a test set has now."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cranfield import evaluate, load, write_run
from cranfield.cli.main import command_line
from cranfield.errors import InputError, TestSetError, UsageError
from cranfield.formats.runs.jsonl import log_path, read_run
from cranfield.gate.baseline import baseline_of, misfits, read_baseline, write_baseline
from cranfield.model import Answer, CallLog, Hit, Outcome, Run, content_id
from cranfield.project.history import append, history_record, read_history
from cranfield.project.id_renaming import renaming
from cranfield.project.loading import TestSetOptions
from cranfield.project.migrate_ids import _write_all, migrate_ids
from cranfield.systems.collect.journal import Journal, KeptAnswer

TRUTH = "query,result1\nred boots,a.rs:1-2:2\nblue,b.rs:3-4:1\ngreen,c.rs:5-6:1\n"
NAMES = [content_id(text) for text in ("red boots", "blue", "green")]
ROW = TestSetOptions(ids="row")
ANSWERS = {q: Answer(Outcome.ANSWERED, (Hit(f"{d}.rs", span="1-6"),)) for q, d in zip("123", "axc", strict=True)}
TREC = "1 Q0 d1 1 9 t\n 2\tQ0 d2 1 9 t\n# 3\n3 Q0 d3 1 9 t\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project as it was under row ids: every kind of file, all of one run."""
    (tmp_path / "truth.csv").write_text(TRUTH)
    testset = load(tmp_path / "truth.csv", options=ROW)
    run = Run("bm25", ANSWERS, testset_digest=testset.digest, logs={q: CallLog(1.0) for q in ANSWERS})
    write_run(run, tmp_path / "bm25.jsonl")
    scored = evaluate(testset, run, measures=["RR"])
    old = baseline_of(scored, k=10, accepted="2026-11-21", commit="", reason="", config_digest="")
    write_baseline(old, tmp_path / "baseline.json")
    line = history_record(scored, when=datetime(2026, 11, 21, tzinfo=UTC))
    del line["testset"]["same"]
    append(tmp_path, line)
    (tmp_path / "truth.csv.meta.json").write_text(
        json.dumps({"review": "reviewed", "split": {"seed": 1, "share": 0.3, "held_out": ["2"]}})
    )
    (tmp_path / ".partial").mkdir()
    journal = Journal(tmp_path / ".partial", "bm25", {"testset": testset.digest, "k": 10})
    journal.append("1", KeptAnswer(ANSWERS["1"], CallLog(1.0), 1.0))
    journal.append_again("1", 2.0, None)
    journal.close()
    (tmp_path / "old.run").write_text(TREC)
    (tmp_path / "table.csv").write_text('query_id,rank,doc_id\n1,1,"a,b"\n3,1,c\n')
    (tmp_path / "notes.txt").write_text("1 is better\n")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_one_command_carries_every_kind_of_file_over(project):
    before = contents(project)
    testset = load(project / "truth.csv")
    rows = {str(row.path.relative_to(project)): row for row in migrate_ids(renaming(testset), [project])}
    assert {name: (row.kind, row.state, row.rule) for name, row in rows.items()} == {
        name: (kind, "carried over", "row")
        for name, kind in {
            "bm25.jsonl": "run",
            "bm25.log.jsonl": "run log",
            "baseline.json": "baseline",
            ".cranfield/history.jsonl": "history",
            "truth.csv.meta.json": "metadata",
            ".partial/bm25.jsonl": "journal",
            "old.run": "run",
            "table.csv": "run",
        }.items()
    }
    assert {name for name, data in contents(project).items() if data == before[name]} == {
        "truth.csv", "notes.txt", ".cranfield/.gitignore",
    }  # fmt: skip
    run = read_run(project / "bm25.jsonl")
    assert (list(run.answers), list(run.logs), run.testset_digest) == (NAMES, NAMES, testset.digest)
    assert evaluate(testset, run, measures=["RR"]).warnings == ()
    assert read_history(project).points[0].digest == testset.digest
    again = load(project / "truth.csv")
    assert (again.meta.split.held_out, again.meta.ids, again.meta.review) == ((NAMES[1],), "content", "reviewed")
    journal = Journal(project / ".partial", "bm25", {"testset": testset.digest, "k": 10})
    assert (list(journal.kept), journal.restart_reason) == ([NAMES[0]], None)
    journal.close()
    one, two, three = NAMES
    assert (project / "old.run").read_text() == TREC.replace("1 Q0", f"{one} Q0", 1).replace(
        " 2\t", f" {two}\t"
    ).replace("3 Q0", f"{three} Q0")
    assert (project / "table.csv").read_text() == f'query_id,rank,doc_id\n{one},1,"a,b"\n{three},1,c\n'


def test_the_baseline_is_that_of_the_same_values(project):
    testset = load(project / "truth.csv")
    before = read_baseline(project / "baseline.json")
    migrate_ids(renaming(testset), [project / "baseline.json"])
    after = read_baseline(project / "baseline.json")
    assert [after.values[name] for name in NAMES] == [before.values[row] for row in "123"]
    scored = evaluate(testset, read_run(project / "bm25.jsonl"), measures=["RR"])
    assert misfits(after, scored, k=10, measures=["RR"], name="b") == ()


def test_a_second_time_changes_nothing_and_so_does_a_dry_run(project):
    plan = renaming(load(project / "truth.csv"))
    before = contents(project)
    assert {row.state for row in migrate_ids(plan, [project], dry_run=True)} == {"carried over"}
    assert contents(project) == before
    migrate_ids(plan, [project])
    after = contents(project)
    assert {row.state for row in migrate_ids(renaming(load(project / "truth.csv")), [project])} == {"unchanged"}
    assert contents(project) == after


def test_files_of_an_earlier_version_follow_its_rows(project):
    (project / "before.csv").write_text(TRUTH)
    (project / "truth.csv").write_text(TRUTH.replace("red boots", "new,z.rs:1-2:1\nred boots").replace("green", "lime"))
    testset, old = load(project / "truth.csv"), load(project / "before.csv")
    with pytest.raises(InputError, match="was made with another version of the test set"):
        migrate_ids(renaming(testset), [project / "bm25.jsonl"])
    (row,) = migrate_ids(renaming(testset, old), [project / "bm25.jsonl"])
    assert list(read_run(project / "bm25.jsonl").answers) == NAMES
    assert row.gone == (NAMES[2],)
    assert "1 not in the set" not in row.sentence.split(";")[0]
    scored = evaluate(testset, read_run(project / "bm25.jsonl"), measures=["RR"])
    assert [scored.value("RR", name) for name in NAMES[:2]] == [1.0, 0.0]


def test_nothing_is_written_where_one_file_cannot_be_carried_over(project):
    (project / "odd.run").write_text("77 Q0 d1 1 9 t\n")
    (project / "bad.jsonl").write_text('{"cranfield_run":1,"name":"x"}\nnot json\n')
    before = contents(project)
    with pytest.raises(InputError) as caught:
        migrate_ids(renaming(load(project / "truth.csv")), [project])
    assert {Path(problem.path).name for problem in caught.value.problems} == {"odd.run", "bad.jsonl"}
    assert contents(project) == before


def test_a_disk_that_fails_in_the_middle_leaves_the_old_files(project):
    paths = [project / "old.run", project / "table.csv"]
    before = contents(project)

    def write(path, parts):
        if path == paths[1]:
            raise OSError(28, "No space left on device")
        path.write_bytes(b"".join(parts))

    with pytest.raises(UsageError, match="table"):
        _write_all([(path, path.read_bytes(), b"new") for path in paths], write)
    assert contents(project) == before


def test_what_is_no_such_file_is_refused(project):
    plan = renaming(load(project / "truth.csv"))
    with pytest.raises(InputError, match="no file that names queries by id"):
        migrate_ids(plan, [project / "notes.txt"])
    with pytest.raises(UsageError, match="no such file"):
        migrate_ids(plan, [project / "gone.run"])
    (project / "own.csv").write_text("id,query,result1\nx,a,b.rs:1-2:1\n")
    with pytest.raises(TestSetError, match="stand in its file"):
        renaming(load(project / "own.csv"))


def test_the_command_says_what_it_writes(project, monkeypatch):
    monkeypatch.chdir(project)

    def command(*arguments):
        return CliRunner().invoke(command_line("testset"), ["testset", "migrate-ids", "truth.csv", *arguments])

    assert "would write 8 of 8 files, rule content" in command(".", "--dry-run").stderr
    done = command(".")
    assert done.exit_code == 0
    assert "run old.run: 3 queries carried over from the rule row" in done.stderr
    assert log_path(project / "bm25.jsonl").read_text().count(NAMES[0]) == 1
    assert "wrote 0 of 8 files" in command(".").stderr
    assert command("notes.txt").exit_code == 2
