"""The answers that a gate judges are of this call; what is read, it lists, and what is deeper than k, it cuts."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cranfield.app.run import run_job
from cranfield.base.errors import CranfieldError
from cranfield.gate.use_cases.gate import AnswerSource, GateJob, run_gate
from cranfield.model import Answer, CallLog, Query
from cranfield.reporting import render
from cranfield.systems import Interrupted
from cranfield.systems.collect.progress import Silent

QUERIES = "abcd"
CONFIG = """\
testset: queries.yaml
measures: [RR, R@1000]
limits: {max_failed_share: null}
gate:
  rules:
    - floor: {measure: RR, at_least: 0.80}
systems:
"""
AT_TEN = CONFIG.replace("RR, at_least: 0.80", "RR, at_least: 0.05").replace(
    "measures: [RR, R@1000]", "k: 10\nmeasures: [RR]"
)
LIVE = "  new: {command: [sh, answer.sh, '{query}'], extract: {regex: 'doc-\\S+'}}\n"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four queries, each with one relevant document; the system returns it first while `right` says so."""
    monkeypatch.delenv("CI", raising=False)
    lines = ["cranfield_testset: 1", "name: letters", "queries:"]
    lines += [f"  - {{id: {query}, text: {query}, judgments: {{doc-{query}: 1}}}}" for query in QUERIES]
    (tmp_path / "queries.yaml").write_text("\n".join(lines) + "\n")
    (tmp_path / "answer.sh").write_text('echo "$1" >> asked.txt; cat right >/dev/null && echo "doc-$1"\n')
    (tmp_path / "right").touch()
    (tmp_path / "cranfield.yaml").write_text(CONFIG + LIVE)
    return tmp_path / "cranfield.yaml"


def gated(config: Path, source: AnswerSource | None = None, ref: str | None = None) -> GateJob:
    return run_gate(config, out=config.parent / "out", source=source, baseline_ref=ref)


def message(config: Path, source: AnswerSource | None = None, ref: str | None = None) -> str:
    with pytest.raises(CranfieldError) as caught:
        gated(config, source, ref)
    assert caught.value.exit_code == 2
    return str(caught.value)


def asked(config: Path) -> str:
    return "".join(sorted((config.parent / "asked.txt").read_text().split()))


class Stops(Silent):
    """Ctrl-C after two answers."""

    def __init__(self) -> None:
        self.left = 2

    def advance(self, system: str, query: Query, answer: Answer, log: CallLog) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.fixture
def interrupt(config: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], object]], Interrupted]]:
    """Interrupt a call after two answers."""

    def call(action: Callable[[], object]) -> Interrupted:
        with monkeypatch.context() as patch:
            patch.setattr("cranfield.app.experiment.progress_on", lambda _: Stops())
            with pytest.raises(Interrupted) as caught:
                action()
        return caught.value

    return call


Interrupt = Callable[[Callable[[], object]], Interrupted]


def left(config: Path) -> list[Path]:
    return sorted((config.parent / "out").glob(".gate-*"))


def test_answers_that_lay_there_are_not_judged(config: Path, interrupt: Interrupt) -> None:
    """Of an interrupted `cranfield run` into the same folder, or of a pull request that commits a journal."""
    interrupt(lambda: run_job(config, out=config.parent / "out"))
    assert (config.parent / "out/.partial/new.jsonl").is_file()
    (config.parent / "right").unlink()
    assert gated(config).results[""].rules[0].status == "failed"
    assert asked(config) == "aabbcd"


def test_the_folder_of_a_collection_is_private_and_goes_when_it_is_done(config: Path) -> None:
    modes = config.parent / "modes"
    (config.parent / "answer.sh").write_text(f'stat -c %a out/.gate-* > {modes}; echo "doc-$1"\n')
    assert gated(config).status == "passed"
    assert modes.read_text().split() == ["700"]
    assert left(config) == []
    assert (config.parent / "out/runs/new.jsonl").is_file()
    assert (config.parent / "out/runs/new.log.jsonl").is_file()
    assert stat.S_IMODE((config.parent / "out/runs").stat().st_mode) == 0o700


def test_an_interrupted_gate_is_resumed_by_name_alone_and_the_report_says_so_first(
    config: Path, interrupt: Interrupt
) -> None:
    stopped = interrupt(lambda: gated(config))
    (folder,) = left(config)
    assert str(stopped) == (
        f"interrupted: 2 of 4 answers were collected; add --resume {folder} to the same command to use them; "
        "otherwise the next finished gate removes them."
    )
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    job = gated(config, AnswerSource(resume=folder))
    assert asked(config) == "abcd"
    assert left(config) == []
    for form in ("text", "markdown", "html"):
        text = render(job.document, form)
        assert text.index("2 of 4 answers are from an earlier call") < text.index("he rule is kept")
        assert "Read, not made in this call" in text
    found = json.loads(render(job.document, "json"))
    assert list(found).index("not_of_this_call") < list(found).index("status")
    assert (found["not_of_this_call"]["n_answers"], found["not_of_this_call"]["of"]) == (2, 4)
    (source,) = found["gates"][0]["earlier"]
    assert (source["path"], source["kind"], source["n_answers"]) == (str(folder), "interrupted gate", 2)
    assert source["digest"].startswith("sha256:")
    assert source["oldest"] == found["not_of_this_call"]["oldest"] <= source["latest"]


def test_a_gate_without_resume_removes_what_an_interrupted_one_left_when_it_is_done(
    config: Path, interrupt: Interrupt, capfd: pytest.CaptureFixture[str]
) -> None:
    interrupt(lambda: gated(config))
    interrupt(lambda: gated(config))
    assert len(left(config)) == 2
    capfd.readouterr()
    assert gated(config).results[""].n_earlier == 0
    assert (
        "answers of an interrupted gate are not used, and will be removed when this gate finishes"
        in capfd.readouterr().err
    )
    assert left(config) == []


def test_a_gate_that_was_killed_before_its_report_is_resumed_without_a_call(
    config: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own = (config.parent / "answer.sh").read_text()
    (config.parent / "answer.sh").write_text(own + "mkdir -p out/gate.json\n")  # the report cannot be written
    assert "gate.json" in message(config)
    assert "the answers are kept: add --resume" in capfd.readouterr().err
    (folder,) = left(config)
    (config.parent / "out/gate.json").rmdir()
    job = gated(config, AnswerSource(resume=folder))
    assert (job.status, job.results[""].n_earlier, asked(config)) == ("passed", 4, "abcd")
    assert left(config) == []


def test_in_ci_and_with_a_ref_nothing_is_kept_and_nothing_resumed(
    config: Path, interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(lambda: gated(config))
    (folder,) = left(config)
    monkeypatch.setenv("CI", "true")
    assert "resume is not allowed: in CI" in message(config, AnswerSource(resume=folder))
    stopped = interrupt(lambda: gated(config))
    assert "no answers are kept: in CI" in str(stopped)
    assert left(config) == [folder]
    monkeypatch.setenv("CI", "false")
    assert gated(config, AnswerSource(resume=folder)).status == "passed"


@pytest.mark.parametrize("source", [AnswerSource(folder=Path("x")), AnswerSource(run=Path("x"))])
def test_resume_goes_with_no_finished_run(config: Path, source: AnswerSource) -> None:
    from dataclasses import replace

    assert "exclude each other" in message(config, replace(source, resume=Path("y")))


@pytest.mark.parametrize("planted", ["nothing", "another name", "link"])
def test_only_a_folder_that_a_gate_left_is_resumed(config: Path, planted: str) -> None:
    out = config.parent / "out"
    out.mkdir()
    (config.parent / "elsewhere").mkdir()
    place = out / (".partial" if planted == "another name" else ".gate-x")
    if planted == "link":
        place.symlink_to(config.parent / "elsewhere")
    elif planted == "another name":
        place.mkdir()
    assert "no interrupted gate found" in message(config, AnswerSource(resume=place))
    assert (config.parent / "elsewhere").is_dir()


def test_a_disk_that_is_full_names_the_folder_that_is_resumed(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(Silent):
        def advance(self, system: str, query: Query, answer: Answer, log: CallLog) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("cranfield.app.experiment.progress_on", lambda _: Full())
    text = message(config)
    (folder,) = left(config)
    assert "no space left on device" in text
    assert f"add --resume {folder} to the same command to use them" in text


@pytest.mark.parametrize("place", ["out/runs", "out/gate.md"])
def test_a_planted_link_is_an_error_and_its_target_stays(config: Path, place: str) -> None:
    target = config.parent / "target"
    target.mkdir() if place == "out/runs" else target.write_text("mine")
    (config.parent / "out").mkdir()
    (config.parent / place).symlink_to(target)
    assert "this is a symbolic link" in message(config)
    assert not (config.parent / "asked.txt").exists()
    assert list(target.iterdir()) == [] if target.is_dir() else target.read_text() == "mine"


def test_two_gates_do_not_share_an_output_folder(config: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    (config.parent / "out").mkdir()
    handle = os.open(config.parent / "out", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert "another collection is writing here" in message(config)
    os.close(handle)


def write_trec(path: Path, rank: int) -> Path:
    """The relevant document of each query at this rank."""
    lines = [f"{query} Q0 x{place} {place} {1000 - place} t" for query in QUERIES for place in range(1, rank)]
    path.write_text(
        "\n".join([*lines, *(f"{query} Q0 doc-{query} {rank} {1000 - rank} t" for query in QUERIES)]) + "\n"
    )
    return path


@pytest.mark.parametrize("form", ["trec", "jsonl", "run"])
def test_results_beyond_k_do_not_count(config: Path, form: str) -> None:
    """RR is 1/12 where all results count, and k is 10."""
    config.write_text(AT_TEN + LIVE)
    deep = write_trec(config.parent / "deep.run", 12)
    if form == "jsonl":
        from cranfield.formats.runs.jsonl import write_run
        from cranfield.ranking.collected import read_run_file

        write_run(read_run_file(deep), config.parent / "deep.jsonl")
        deep = config.parent / "deep.jsonl"
    if form == "run":
        config.write_text(AT_TEN + "  new: {run: deep.run}\n")
    job = gated(config, None if form == "run" else AnswerSource(run=deep))
    result = job.results[""]
    assert (result.rules[0].status, result.rules[0].got) == ("failed", "0.0000")
    assert "8 results of 4 queries beyond k = 10 are not counted: the gate requests 10 results" in result.notes
    assert result.evaluation.reading["depth"] is None
    within = write_trec(config.parent / "deep.run", 10)
    job = gated(config, None if form == "run" else AnswerSource(run=within))
    assert (job.status, any("beyond" in note for note in job.results[""].notes)) == ("passed", False)


def test_run_files_are_listed_with_digest_and_count(config: Path) -> None:
    path = write_trec(config.parent / "some.run", 1)
    for source, kind in ((AnswerSource(run=path), "run file"), (None, "run file of the config")):
        if source is None:
            config.write_text(CONFIG + "  new: {run: some.run}\n")
        (listed,) = gated(config, source).results[""].earlier
        assert (listed.kind, listed.n_answers, listed.oldest) == (kind, 4, "")
        assert listed.digest.startswith("sha256:")
    text = render(gated(config, None).document)
    assert "The rule is kept. 4 of 4 answers are from an earlier call; the time is not known." in text


def test_run_files_that_a_fusion_is_made_of_are_listed(config: Path) -> None:
    write_trec(config.parent / "some.run", 1)
    fused = "  old: {run: some.run}\n" + LIVE.replace("new:", "live:") + "  new: {fusion: {of: [old, live]}}\n"
    config.write_text(CONFIG.replace("gate:\n", "gate:\n  system: new\n") + fused)
    result = gated(config).results[""]
    assert [(listed.path, listed.kind, listed.n_answers) for listed in result.earlier] == [
        ("some.run", "run file of the config", 4)
    ]
    assert result.n_earlier == 4


@pytest.mark.parametrize("removed", ["testset_digest", "config_digest", "depth"])
def test_a_collected_run_without_a_digest_is_refused(config: Path, removed: str) -> None:
    run_job(config, out=config.parent / "done")
    path = config.parent / "done/runs/new.jsonl"
    head, _, rest = path.read_text().partition("\n")
    header = json.loads(head)
    del header[removed]
    path.write_text(json.dumps(header) + "\n" + rest)
    what = {"testset_digest": "test set", "config_digest": "config of the system", "depth": "k"}[removed]
    for source in (AnswerSource(folder=config.parent / "done"), AnswerSource(run=path)):
        assert f"the run does not state its {what}" in message(config, source)


def test_a_run_of_a_program_without_any_of_them_is_a_run_file(config: Path) -> None:
    path = config.parent / "own.jsonl"
    answers = [{"query_id": query, "outcome": "answered", "hits": [{"id": f"doc-{query}"}]} for query in QUERIES]
    path.write_text("\n".join(json.dumps(record) for record in [{"cranfield_run": 1, "name": "own"}, *answers]) + "\n")
    assert gated(config, AnswerSource(run=path)).status == "passed"
    (config.parent / "done/runs").mkdir(parents=True)
    path.rename(config.parent / "done/runs/new.jsonl")
    assert "does not state its test set" in message(config, AnswerSource(folder=config.parent / "done"))


def test_diagnostic_measures_have_no_colour(config: Path) -> None:
    from cranfield.gate.use_cases.baseline import accept
    from cranfield.reporting.document import Table, TonedCell

    config.write_text(CONFIG.replace("RR, R@1000", "RR, Judged@1") + LIVE)
    accept(config, out=config.parent / "out", accepted="2026-01-31")
    (config.parent / "answer.sh").write_text('echo "doc-x"\n')
    table = next(
        block
        for section in gated(config).document.sections
        for block in section.blocks
        if isinstance(block, Table) and block.columns[0].title == "measure"
    )
    tones = {str(row[0]): cell.tone for row in table.rows for cell in row if isinstance(cell, TonedCell)}
    assert tones == {"RR": "bad", "Judged@1": ""}


def test_a_baseline_of_answers_that_are_not_of_this_call_says_so(config: Path) -> None:
    from cranfield.gate.use_cases.baseline import accept

    path = write_trec(config.parent / "some.run", 1)
    done = accept(config, out=config.parent / "out", accepted="2026-01-31", source=AnswerSource(run=path), dry_run=True)
    assert "4 of 4 answers are from an earlier call" in render(done.document)
