"""Rows of an existing set, checked by votes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.agents.protocol import Failure, FailureKind, ModelAnswer, Request
from cranfield.agents.recording import Scripted
from cranfield.cli.main import run_command_line
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.records import CitedLines, RowCheck
from cranfield.golden.rows import (
    CheckedRow,
    RowState,
    corrected,
    decide,
    keep_last_rows,
    mechanical_problem,
    queries_without_rows,
    rows_of,
)
from cranfield.golden.use_cases.assemble import CheckOptions, check_set
from cranfield.model import Entity, File, Pattern, Query, Span, TestSet
from cranfield.repo.snapshot import take

SOURCE = "def load(path):\n    return path\n\n\ndef save(path):\n    return path\n"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> ParsedSource:
    root = tmp_path_factory.mktemp("repo")
    (root / "a.py").write_text(SOURCE)
    return ParsedSource(take(root))


def set_of(*targets: Span | Entity | File | Pattern) -> TestSet:
    return TestSet("rows", (Query("q1", "where are files read"),), targets={"q1": targets})


def vote(place: tuple[str, int, int] | None = None, grade: int = 2) -> RowCheck:
    lines = None if place is None else CitedLines(file=place[0], start=place[1], end=place[2])
    return RowCheck(place=lines, grade=grade, reason="read it")


def state_of(votes: list[RowCheck], source: ParsedSource, n_votes: int = 3) -> tuple[RowState, object]:
    (row,) = rows_of(set_of(Span("a.py", 1, 2, 2.0)))
    found = decide(row, votes, n_votes, source)
    return found.state, found.target


@pytest.mark.parametrize(
    ("targets", "problems"),
    [
        ([Entity("a.py::load", 1, ((1, 2),))], [None]),
        ([Entity("a.py::load", 1, ((5, 6),))], ["a.py:5-6: outside every expected entity; a.py::save holds it"]),
        ([Entity("a.py::load", 1, ((5, 6),)), Entity("a.py::save", 1, ((1, 2),))], [None, None]),  # of the other one
        ([Entity("a.py::load"), Span("a.py", 3, 4)], [None, "a.py:3-4: outside every expected entity"]),
        ([Span("a.py", 3, 4)], [None]),
    ],
)
def test_a_row_with_lines_outside_every_expected_entity_is_broken(
    targets: list[Span | Entity], problems: list[str | None], source: ParsedSource
) -> None:
    assert [mechanical_problem(row, source) for row in rows_of(set_of(*targets))] == problems


@pytest.mark.parametrize(
    ("votes", "expected", "target"),
    [
        ([vote(), vote(), vote(("a.py", 5, 6))], RowState.CONFIRMED, Span("a.py", 1, 2, 2.0)),
        ([vote(grade=1), vote(grade=1), vote()], RowState.CORRECTED, Span("a.py", 1, 2, 1.0)),
        ([vote(("a.py", 5, 6))] * 2 + [vote()], RowState.CORRECTED, Span("a.py", 5, 6, 2.0)),
        ([vote(grade=0), vote(grade=0), vote()], RowState.REMOVED, None),
        ([vote(("a.py", 5, 6)), vote(("a.py", 4, 6)), vote()], RowState.NO_MAJORITY, None),
        ([vote(grade=0), vote(grade=1), vote()], RowState.NO_MAJORITY, None),
        # Three votes for lines that do not exist are no majority for anything.
        ([vote(("a.py", 90, 91))] * 3, RowState.NO_MAJORITY, None),
        ([vote()], RowState.UNANSWERED, None),
    ],
)
def test_a_majority_of_the_votes_asked_for_decides(
    votes: list[RowCheck], expected: RowState, target: Span | None, source: ParsedSource
) -> None:
    assert state_of(votes, source) == (expected, target)


def test_votes_that_did_not_come_count_for_nothing(source: ParsedSource) -> None:
    assert state_of([vote(), vote()], source, n_votes=3)[0] is RowState.CONFIRMED
    assert state_of([vote(), vote()], source, n_votes=4)[0] is RowState.UNANSWERED


choices = st.builds(vote, st.sampled_from([None, ("a.py", 5, 6), ("a.py", 2, 2)]), st.integers(0, 3))


@given(st.lists(choices, max_size=5), st.randoms())
def test_the_order_of_the_votes_does_not_matter(source: ParsedSource, votes: list[RowCheck], rng) -> None:
    assert state_of(votes, source, 5) == state_of(rng.sample(votes, len(votes)), source, 5)


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (Span("a.py", 1, 2), None),
        (Span("a.py", 1, 99), "a.py:1-99: the file has 6 lines"),
        (Span("b.py", 1, 2), "b.py: no such file"),
        (Entity("a.py::load", lines=((1, 2),)), None),
        (Entity("a.py::lost"), "a.py::lost: the file has no such symbol"),
        (Entity("a.py::load", lines=((1, 99),)), "a.py:1-99: the file has 6 lines"),
        (File("a.py"), None),
        (File("b.py"), "b.py: no such file"),
    ],
)
def test_what_does_not_exist_is_not_put_to_the_vote(
    target: Span | Entity | File, problem: str | None, source: ParsedSource
) -> None:
    (row,) = rows_of(set_of(target))
    assert mechanical_problem(row, source) == problem


def test_other_lines_of_an_entity_are_for_a_person_and_its_grade_is_not(source: ParsedSource) -> None:
    (row,) = rows_of(set_of(Entity("a.py::load")))
    elsewhere = decide(row, [vote(("a.py", 5, 6))] * 3, 3, source)
    assert (elsewhere.state, elsewhere.problem) == (RowState.OTHER_PLACE, "the majority names a.py:5-6")
    assert decide(row, [vote(grade=3)] * 3, 3, source).target == Entity("a.py::load", 3.0)


def test_corrections_change_the_targets_of_their_query_alone(source: ParsedSource) -> None:
    first, second, third = Span("a.py", 1, 2, 2), Span("a.py", 5, 6), Span("a.py", 2, 2)
    rows = rows_of(testset := set_of(first, second, third))
    checked = [
        decide(rows[0], [vote(("a.py", 5, 6))] * 3, 3, source),  # becomes the second row, with a higher grade
        decide(rows[1], [vote(grade=1)] * 3, 3, source),
        decide(rows[2], [vote(grade=0)] * 3, 3, source),
    ]
    assert corrected(testset, checked).targets == {"q1": (Span("a.py", 5, 6, 2.0),)}
    assert [each.state for each in checked].count(RowState.REMOVED) == 1


def test_no_query_loses_its_last_row(source: ParsedSource) -> None:
    rows = rows_of(testset := set_of(Span("a.py", 1, 2), Span("a.py", 5, 6)))
    checked = keep_last_rows([CheckedRow(row, RowState.REMOVED) for row in rows])
    assert {each.state for each in checked} == {RowState.LAST_ROW}
    assert corrected(testset, checked) == testset
    one_left = keep_last_rows([CheckedRow(rows[0], RowState.REMOVED), CheckedRow(rows[1], RowState.NO_MAJORITY)])
    assert one_left[0].state is RowState.REMOVED


def test_queries_that_expect_no_place_are_named() -> None:
    assert queries_without_rows(set_of(Pattern("a.*"))) == ("q1",)


CSV = """\
# checked by hand
query,result1,result2
where are files read,a.py:1-2:2,a.py:5-6:1
where are files written,a.py:4-6:2,
where is the cache,b.py:1-9:2,
"""


def answers(request: Request) -> str:
    """Scripted checkers: they agree on everything but the last question; the second row of the first has another grade."""
    prompt = request.messages[0].text
    if "written" in prompt:
        return vote(("a.py", 5, 6)).model_dump_json()
    return vote(grade=2 if '"lines": [1, 2]' in prompt.replace("\n", "") else 0).model_dump_json()


def check(folder: Path, script: Callable[[Request], str | ModelAnswer] = answers, votes: int = 3, **options):
    (folder / "repo").mkdir(exist_ok=True)
    (folder / "repo/a.py").write_text(SOURCE)
    if not (path := folder / "code.csv").exists():
        path.write_text(CSV)
    backend = Scripted(script)
    settings = CheckOptions(("test:a", "test:b"), votes, source=backend)
    return check_set(
        path, folder / "repo", folder / "out", settings, **{"today": date(2026, 11, 23), **options}
    ), backend


def test_a_set_is_corrected_by_a_diff_and_people_get_the_rest(tmp_path: Path) -> None:
    report, backend = check(tmp_path)
    states = [each.state for each in report.result.checked]
    assert states == [RowState.CONFIRMED, RowState.REMOVED, RowState.CORRECTED, RowState.BROKEN]
    assert len(backend.requests) == 9  # three rows, three votes; the broken one is not put to the vote
    assert {request.sampling.seed for request in backend.requests} == {0, 1, 2}
    assert {request.model for request in backend.requests} == {"test:a", "test:b"}
    assert [line for line in report.diff.splitlines() if line[:1] in "+-"][2:] == [
        "-where are files read,a.py:1-2:2,a.py:5-6:1",
        "-where are files written,a.py:4-6:2,",
        "+where are files read,a.py:1-2:2,",
        "+where are files written,a.py:5-6:2,",
    ]
    assert (tmp_path / "code.csv").read_text() == CSV
    (line,) = (tmp_path / "out/for_people.jsonl").read_text().splitlines()
    assert json.loads(line) | {"query": ""} == {
        "text": "where is the cache",
        "query": "",
        "row": "b.py:1-9",
        "grade": 2.0,
        "state": "broken",
        "becomes": "",
        "votes": "",
        "why": "b.py: no such file",
        "reasons": [],
    }
    lines = [json.loads(line) for line in (tmp_path / "out/rows.jsonl").read_text().splitlines()]
    assert [line["reasons"] for line in lines] == [["read it"] * 3] * 3 + [[]]
    assert (tmp_path / "out/corrections.diff").read_text() == report.diff
    assert len((tmp_path / "out/transcripts.jsonl").read_text().splitlines()) == 9


def test_the_corrections_are_applied_in_place_and_answers_are_not_asked_for_again(tmp_path: Path) -> None:
    check(tmp_path)
    _, backend = check(tmp_path, apply=True)
    assert backend.requests == []
    text = (tmp_path / "code.csv").read_text()
    assert text.splitlines()[:3] == ["# checked by hand", "query,result1,result2", "where are files read,a.py:1-2:2,"]
    assert "a.py:5-6:2" in text
    meta = json.loads((tmp_path / "code.csv.meta.json").read_text())
    assert "2 rows corrected by 3 votes of test:a, test:b" in meta["history"][-1]
    again, _ = check(tmp_path)
    assert again.diff == ""


def test_votes_that_fail_are_counted_and_their_rows_go_to_a_person(tmp_path: Path) -> None:
    report, _ = check(tmp_path, lambda request: ModelAnswer(failure=Failure(FailureKind.FILTERED, "no")), votes=2)
    assert [each.state for each in report.result.checked][:3] == [RowState.UNANSWERED] * 3
    assert report.result.missing == {"filtered": 6}
    assert report.diff == ""


def test_the_command_prints_rows_and_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(tmp_path)
    arguments = ["golden", "check", str(tmp_path / "code.csv"), "--repo", str(tmp_path / "repo"), "--model", "test:a"]
    arguments += ["--model", "test:b", "--out", str(tmp_path / "again"), "--replay", str(tmp_path / "out/calls.jsonl")]
    assert run_command_line(arguments) == 1
    out, err = capsys.readouterr()
    assert "a.py:1-2 confirmed\n" in err
    assert "+where are files written,a.py:5-6:2," in out
    assert run_command_line([*arguments, "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["rows"][0]["state"] == "confirmed"
    assert run_command_line(["golden", "transcripts", str(tmp_path / "again"), "--html", str(tmp_path / "t.html")]) == 0
    assert "where are files written" in (tmp_path / "t.html").read_text()


def test_the_diff_can_be_applied_where_the_last_line_has_no_end(tmp_path: Path) -> None:
    path = tmp_path / "code.csv"
    path.write_text("query,result1\nwhere are files read,a.py:1-2:1\nwhere are files written,a.py:4-6:2")
    report, _ = check(tmp_path)
    path.with_name("changes.diff").write_text(report.diff)
    subprocess.run(["git", "apply", "-p0", "--unsafe-paths", "--directory=/", "changes.diff"], cwd=tmp_path, check=True)
    assert path.read_text() == "query,result1\nwhere are files read,a.py:1-2:2\nwhere are files written,a.py:5-6:2"


def test_corrections_over_uncommitted_changes_are_said_in_the_set(tmp_path: Path) -> None:
    check(tmp_path)
    repo = tmp_path / "repo"
    for command in (["init", "--quiet"], ["add", "a.py"], ["commit", "--quiet", "--message", "one"]):
        subprocess.run(["git", "-C", repo, "-c", "user.name=n", "-c", "user.email=n@e", *command], check=True)
    (repo / "new.py").write_text("")
    settings = CheckOptions(("test:a", "test:b"), allow_dirty=True, source=Scripted(answers))
    check_set(tmp_path / "code.csv", repo, tmp_path / "out", settings, apply=True)
    meta = json.loads((tmp_path / "code.csv.meta.json").read_text())
    assert meta["uncommitted"].startswith("When rows were checked: Uncommitted changes: 1 file")
