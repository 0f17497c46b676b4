"""Half of the documents are deleted, the index is built again, the store is deleted: no figure is yesterday's."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cranfield.formats.runs.jsonl import read_run

SEARCH = """\
echo "$1" >> asked.txt
exec < index.txt || exit 1
read -r version
hit=
while read -r word; do [ "$word" = "$1" ] && hit="\\"doc-$word\\""; done
case $1 in
--version) echo "$version" ;;
*) printf '{"hits": [%s], "index": "%s"}' "$hit" "$version" ;;
esac
"""
WORDS = [f"word{number}" for number in range(12)]
CONFIG = """\
testset: queries.yaml
primary: RR
measures: [RR, R@10]
baseline: old
candidate: new
systems:
  old: {{command: [sh, search.sh, "{{query}}"], extract: {{json: hits, fields: {{index: index, build: build}}}}{depends}}}
  new: {{command: [sh, ./search.sh, "{{query}}"], extract: {{json: hits, fields: {{index: index, build: build}}}}{depends}}}
"""
DEPENDS = {
    "files": "[index.txt]",
    "folder": "[.data]",
    "command": "[{command: [sh, search.sh, --version]}]",
    "field": "[{field: index}]",
}


class Project:
    """A search over twelve documents, one for each query, and two systems of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "search.sh").write_text(SEARCH)
        (folder / ".data").mkdir()
        self.index(12, "2026-11-01")
        queries = "".join(f"  - {{id: {word}, text: {word}, judgments: {{doc-{word}: 1}}}}\n" for word in WORDS)
        (folder / "queries.yaml").write_text("cranfield_testset: 1\nname: t\nqueries:\n" + queries)
        self.config()

    def config(self, depends: str | None = None, hours: float | None = None) -> None:
        text = CONFIG.format(depends="" if depends is None else f", depends: {depends}")
        hours_text = "" if hours is None else f"collect: {{cache_h: {hours}}}\n"
        (self.folder / "cranfield.yaml").write_text(text + hours_text)

    def index(self, n: int, version: str) -> None:
        """Build the index of the first `n` documents."""
        text = "".join(f"{line}\n" for line in (version, *WORDS[:n]))
        (self.folder / "index.txt").write_text(text)
        (self.folder / ".data" / "part").write_text(text)

    def run(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["cranfield", "run", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == code, done.stderr
        return done

    def n_asked(self) -> int:
        """Queries that were sent since the last call; calls for a version are not counted."""
        path = self.folder / "asked.txt"
        words = [line for line in path.read_text().split() if line != "--version"] if path.exists() else []
        path.unlink(missing_ok=True)
        return len(words)

    def mean(self) -> float:
        """Reciprocal rank of the baseline, as reported."""
        results = json.loads((self.folder / "cranfield-out" / "results.json").read_text())
        return results["systems"][0]["measures"]["RR"]["mean"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_every_run_asks_and_the_figures_are_those_of_the_index_as_it_is(project: Project) -> None:
    project.run()
    assert (project.n_asked(), project.mean()) == (24, 1.0)
    project.index(6, "2026-11-02")
    project.run()
    assert (project.n_asked(), project.mean()) == (24, 0.5)
    (project.folder / "index.txt").unlink()
    assert "the first 10 queries all failed in the same way" in project.run(code=3).stderr
    assert 10 <= project.n_asked() < 24  # it stops as soon as one of the two has failed ten times


def test_hours_without_depends_ask_again_and_say_what_is_missing(project: Project) -> None:
    project.config(hours=24)
    project.run()
    project.index(6, "2026-11-02")
    done = project.run()
    assert (project.n_asked(), project.mean()) == (48, 0.5)
    for system in ("old", "new"):
        assert f"{system}: every query is sent, and no answer is kept: list in its `depends`" in done.stderr


SLOW = pytest.mark.slow


@pytest.mark.parametrize("how", ["files", "field", *(pytest.param(how, marks=SLOW) for how in ("folder", "command"))])
def test_kept_answers_are_used_only_while_what_the_system_depends_on_is_the_same(project: Project, how: str) -> None:
    project.config(DEPENDS[how], hours=24)
    project.run()
    extra = 4 if how == "field" else 0  # of each system: before the first query, and at the end
    assert project.n_asked() == 24 + extra
    done = project.run()
    assert project.n_asked() == extra // 2
    assert "old: 12 of 12 answers from the cache, the oldest from 20" in done.stderr
    project.index(6, "2026-11-02")
    project.run()
    assert (project.n_asked(), project.mean()) == (24 + extra, 0.5)


@pytest.mark.parametrize(
    ("depends", "why"),
    [
        ("[indx.txt]", "indx.txt, named in its `depends`, does not exist"),
        pytest.param(
            "[{command: [no-such-program]}]",
            "`no-such-program`, named in its `depends`, could not be started",
            marks=SLOW,
        ),
        pytest.param(
            "[{command: [sh, -c, exit 3]}]",
            "`sh -c 'exit 3'`, named in its `depends`, ended with exit status 3",
            marks=SLOW,
        ),
        pytest.param("[{command: ['true']}]", "`true`, named in its `depends`, printed nothing", marks=SLOW),
        pytest.param("[{field: build}]", "the answer to its first query has no field build", marks=SLOW),
    ],
)
def test_what_cannot_be_read_keeps_no_answer_and_says_why(project: Project, depends: str, why: str) -> None:
    project.config(depends, hours=24)
    project.run()
    project.n_asked()
    done = project.run()
    assert project.n_asked() >= 24
    assert f"old: every query is sent, and no answer is kept: {why}" in done.stderr


def test_a_store_that_was_deleted_is_asked_and_fails_whatever_was_kept(project: Project) -> None:
    project.config("[index.txt]", hours=24)
    project.run()
    (project.folder / "index.txt").unlink()
    assert "the first 10 queries all failed in the same way" in project.run(code=3).stderr


def test_the_first_caveat_says_how_many_answers_were_kept_and_how_old_they_are(project: Project) -> None:
    project.config("[index.txt]", hours=24)
    assert "were kept" not in project.run().stdout
    short, full = (" ".join(project.run(*how).stdout.split()) for how in ((), ("--full",)))
    kept = (
        r"12 of 12 answers were kept from an earlier run \(the oldest from \d{4}-\d\d-\d\d \d\d:\d\d UTC, "
        r"\d+ (s|min) before\)"
    )
    pair = f"(old and new: {kept}|old: {kept} and new: {kept}), and not"
    both = f"{pair} requested again"
    # Where the answers of the two are not of the same second, the caveat is longer than the short report shows.
    assert re.match(rf" ({both}|{pair} …) !", short.partition("!")[2]), short
    assert re.match(rf" - {both} - ", full.partition(" Caveats:")[2]), full[:1500]
    page = (project.folder / "cranfield-out" / "report.html").read_text()
    first = page.partition('<div class="caveats">')[2].partition("<li>")[2]
    assert re.match(both, first)
    assert "were kept" not in project.run("--refresh").stdout


@pytest.mark.parametrize(
    ("how", "hours"),
    [
        ("files", 24),
        *(
            pytest.param(how, hours, marks=SLOW)
            for how, hours in (("field", None), ("files", None), ("command", None), ("command", 24), ("field", 24))
        ),
    ],
)
def test_an_index_that_is_built_while_it_is_asked_is_a_caveat_and_keeps_nothing(
    project: Project, how: str, hours: float | None
) -> None:
    project.config(DEPENDS[how], hours=hours)
    build = "[ $1 != word7 ] || sed -i 1s/.*/rebuilt/ index.txt\n"
    (project.folder / "search.sh").write_text(SEARCH + build)
    done = project.run()
    assert (
        "old and new: its dependencies (`depends`) changed while the queries were sent: the answers may come from two"
        in " ".join(done.stdout.split())
    )
    assert not list((project.folder / ".cranfield").glob("answers/*.jsonl"))
    (project.folder / "search.sh").write_text(SEARCH)
    assert "changed while it was asked" not in project.run().stdout


def test_the_sidecar_has_the_time_and_the_age_of_every_kept_answer(project: Project) -> None:
    project.config("[index.txt]", hours=24)
    runs = project.folder / "cranfield-out" / "runs"
    project.run()
    first = read_run(runs / "old.jsonl").logs
    assert all(log.at and log.age_s is None for log in first.values())
    project.run()
    second = read_run(runs / "old.jsonl").logs
    assert [log.at for log in second.values()] == [log.at for log in first.values()]
    assert all(log.cached and log.age_s is not None for log in second.values())


@pytest.fixture
def interrupted(project: Project) -> Path:
    """A run of the project that was interrupted after some answers; its journal of the system `old`."""
    project.config("[index.txt]")
    (project.folder / "search.sh").write_text("[ ! -e slow ] || sleep .2\n" + SEARCH)
    (project.folder / "slow").touch()
    journal = project.folder / "cranfield-out" / ".partial" / "old.jsonl"
    command = [sys.executable, "-m", "cranfield", "run"]
    with subprocess.Popen(command, cwd=project.folder, stderr=subprocess.DEVNULL) as first:
        while first.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") > 3):
            time.sleep(0.02)
        first.send_signal(signal.SIGINT)
    assert first.returncode == 130
    (project.folder / "slow").unlink()
    assert 0 < project.n_asked() < 24
    return journal


def test_an_interrupted_run_resumes_and_reports_the_age_of_what_it_resumes(project: Project, interrupted: Path) -> None:
    records = [json.loads(line) for line in interrupted.read_text().splitlines()]
    for record in records[1:]:
        record["at"] -= 5 * 3600
    interrupted.write_text("".join(json.dumps(record) + "\n" for record in records))
    n = len(records) - 1
    done = project.run()
    assert project.n_asked() < 24
    assert f"old: resuming after {n} of 12 answers, the oldest from 20" in done.stderr
    ages = [log.age_s for log in read_run(project.folder / "cranfield-out" / "runs" / "old.jsonl").logs.values()]
    assert sum(age is not None and age > 4 * 3600 for age in ages) == n


@SLOW
def test_an_interrupted_run_starts_over_where_the_index_changed_meanwhile(project: Project, interrupted: Path) -> None:
    assert interrupted.exists()
    project.index(6, "2026-11-02")
    done = project.run()
    assert (project.n_asked(), project.mean()) == (24, 0.5)
    assert "old: starting over, because the dependencies of the system changed" in done.stderr
