import io
import re
import sys

import pytest

from cranfield.base.words import printable, shorten_to
from cranfield.model import Answer, CallLog, Hit, Outcome, Query
from cranfield.systems.collect.progress import SHOWN_CHARS, SHOWN_FAILURES, Live, Plain, progress_on, quiet

FOUND = Answer(Outcome.ANSWERED, (Hit("a"),))
HANG = Answer(Outcome.TIMEOUT, reason="no answer in 30 s")
LOG = CallLog(1.0)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def queries(n):
    return [Query(f"q{number}", f"text {number}") for number in range(1, n + 1)]


@pytest.fixture
def plain():
    stream = io.StringIO()
    return Plain(stream), lambda: stream.getvalue().splitlines()


@pytest.fixture
def live(monkeypatch):
    from rich.console import Console

    monkeypatch.setenv("TERM", "xterm")  # a terminal that calls itself dumb has no cursor to move
    stream = Terminal()
    console = Console(file=stream, force_terminal=True, width=120, color_system=None)
    return Live(stream, console), stream.getvalue


def test_a_log_has_a_line_every_ten_seconds_and_one_at_the_end_with_rate_and_time_left(plain, monkeypatch):
    """60 queries of one second each: lines at 10, 20, 30, 40, 50 and 60 s, the last of which is the end."""
    progress, lines = plain
    seconds = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: seconds[0])
    progress.start("old", 60, 0)
    for query in queries(60):
        seconds[0] += 1
        progress.advance("old", query, FOUND, LOG)
    progress.finish()
    assert [line.split("  (")[0] for line in lines()] == [f"old [{n}/60] text {n}" for n in (10, 20, 30, 40, 50, 60)]
    assert re.fullmatch(r"old \[10/60\] text 10  \(1\.0/s, 50 s left\)", lines()[0])
    assert re.fullmatch(r"old \[60/60\] text 60  \(1\.0/s, took 1 min 00 s\)", lines()[-1])


def test_a_log_has_the_first_failures_and_the_last_query(plain):
    progress, lines = plain
    progress.start("old", 101, 0)
    for number, query in enumerate(queries(101), start=1):
        progress.advance("old", query, HANG if number >= 7 and number < 100 else FOUND, LOG)
    assert [line.split("  (")[0] for line in lines()] == [
        *(f"old [{n}/101] text {n}  timeout: no answer in 30 s" for n in range(7, 7 + SHOWN_FAILURES)),
        "old [101/101] text 101",
    ]


def test_systems_that_take_turns_each_have_their_own_count(plain):
    progress, lines = plain
    for system in ("old", "new"):
        progress.start(system, 2, 0)
    for query in queries(2):
        for system in ("old", "new"):
            progress.advance(system, query, FOUND, LOG)
    progress.finish()
    assert [line.split("  (")[0] for line in lines()] == ["old [2/2] text 2", "new [2/2] text 2"]


def test_a_quiet_collection_shows_notes_and_the_number_of_failures_alone():
    stream = io.StringIO()
    quiet(on=True)
    try:
        progress = progress_on(stream)
    finally:
        quiet(on=False)
    progress.start("old", 2, 0)
    progress.note("a note")
    for query, answer in zip(queries(2), (FOUND, HANG), strict=True):
        progress.advance("old", query, answer, LOG)
    progress.finish()
    assert stream.getvalue().splitlines() == ["a note", "old [2/2] 1 failed"]
    assert isinstance(progress_on(stream), Plain)


def test_the_end_says_how_many_failed_and_how_many_were_tried_again_where_any_were(plain):
    progress, lines = plain
    for system in ("old", "new"):
        progress.start(system, 3, 0)
    for query, answer, attempts in zip(queries(3), [FOUND, HANG, FOUND], [3, 2, 1], strict=True):
        progress.advance("old", query, answer, CallLog(1.0, attempts=attempts))
        progress.advance("new", query, FOUND, LOG)
    progress.finish()
    assert lines()[3:] == ["old [3/3] 1 failed, 2 tried more than once"]


def test_what_was_collected_before_is_counted_but_does_not_make_it_look_faster(plain, monkeypatch):
    clock = iter([100.0, 100.0, 110.0, 110.0])
    monkeypatch.setattr("cranfield.systems.collect.progress.time.monotonic", lambda: next(clock))
    progress, lines = plain  # its own first clock was read before
    progress.start("old", 50, 40)
    progress.advance("old", Query("q", "grid"), FOUND, LOG)
    # one in 10 s; 9 left: 90 s
    assert lines() == ["old [41/50] grid  (10.0 s each, 1 min 30 s left)"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (HANG, "timeout: no answer in 30 s"),
        (Answer(Outcome.NONZERO_EXIT, reason="exit status 3"), "failed: exit status 3"),
        (Answer(Outcome.UNPARSABLE, reason="result 2 has no id"), "unparsable: result 2 has no id"),
    ],
)
def test_each_kind_of_failure_is_called_by_its_name(plain, answer, said):
    progress, lines = plain
    progress.start("old", 1, 0)
    progress.advance("old", Query("q", "grid"), answer, LOG)
    assert said in lines()[0]


def test_a_program_that_ended_is_shown_with_the_last_line_of_its_stderr(plain):
    progress, lines = plain
    progress.start("old", 1, 0)
    answer = Answer(Outcome.NONZERO_EXIT, reason="exit status 1")
    progress.advance("old", Query("q", "grid"), answer, CallLog(1.0, stderr_head="Traceback\nKeyError: 'x'\n"))
    assert "failed: exit status 1: KeyError: 'x'" in lines()[0]


def test_an_empty_list_is_no_failure(plain):
    progress, lines = plain
    progress.start("old", 1, 0)
    progress.advance("old", Query("q", "grid"), Answer(Outcome.EMPTY), LOG)
    assert "empty" not in lines()[0]


HOSTILE = "a\x1b[31m\nb\r[red]c[/red] [/] :smile: \u202ed\x00"


def test_hostile_text_stays_on_its_line_and_controls_nothing(plain):
    progress, lines = plain
    progress.start("old", 1, 0)
    progress.advance("old", Query("q", HOSTILE), Answer(Outcome.UNPARSABLE, reason="odd \x1b]0;title\x07\n"), LOG)
    assert len(lines()) == 1
    assert not re.search(r"[\x00-\x1f\x7f\u202e]", lines()[0])
    assert r"a\x1b[31m b [red]c[/red] [/] :smile: \u202ed" in lines()[0]


def test_on_a_terminal_hostile_text_is_neither_markup_nor_control(live):
    progress, shown = live
    progress.start("old", 2, 0)
    progress.advance("old", Query("q", HOSTILE), HANG, LOG)
    progress.note(f"{HOSTILE}: a note")
    progress.finish()
    assert "\x1b[31m" not in shown()
    assert "[red]c[/red] [/] :smile:" in shown()
    assert "\u202e" not in shown()


def test_on_a_terminal_failures_scroll_by_and_the_last_line_says_how_far_it_came(live):
    progress, shown = live
    progress.start("old", 3, 0)
    for query, answer in zip(queries(3), [FOUND, HANG, FOUND], strict=True):
        progress.advance("old", query, answer, LOG)
    progress.finish()
    assert "old [2/3] text 2  timeout: no answer in 30 s" in shown()
    assert re.search(r"old \[3/3\] \d+\.\d/s, took 0 s, 1 failed\n$", shown())
    assert "\x1b[?25h" in shown(), "the cursor is given back"


def test_on_a_terminal_each_system_has_a_line_and_leaves_one(live):
    progress, shown = live
    for system in ("old", "new"):
        progress.start(system, 2, 0)
    for query in queries(2):
        progress.advance("new", query, FOUND, CallLog(1.0, attempts=2))
    progress.finish()
    old, new = shown().split("\n")[-3:-1]
    assert old.endswith("old [0/2] no calls yet")
    assert re.fullmatch(r"new \[2/2\] \d+\.\d/s, took 0 s, 2 tried more than once", new)


def test_on_a_terminal_stdout_is_left_alone_meanwhile(live):
    progress, _ = live
    before = sys.stdout, sys.stderr
    progress.start("old", 1, 0)
    try:
        assert (sys.stdout, sys.stderr) == before
    finally:
        progress.finish()


def test_lines_where_there_is_no_terminal_and_a_live_line_where_there_is():
    assert isinstance(progress_on(io.StringIO()), Plain)
    assert isinstance(progress_on(Terminal()), Live)


def test_a_log_that_nobody_reads_any_more_is_no_reason_to_stop():
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    progress = Plain(Closed())
    progress.start("old", 1, 0)
    progress.advance("old", Query("q", "grid"), FOUND, LOG)
    progress.note("still here")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "\u2026"),
        ("\x1b" * 20, "\\x1b" * 14 + "\\x1" + "\u2026"),
        ("\u4e2d", "\u4e2d"),
    ],
)
def test_text_is_cut_after_what_cannot_be_seen_is_spelled_out(text, shown):
    assert shorten_to(printable(text), SHOWN_CHARS) == shown
    assert len(shown) <= 60


def test_at_80_columns_bar_count_and_rate_stay_and_the_query_gives_way():
    from rich.console import Console

    name = "a system with a name that goes on and on"
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    live = Live(console.file, console)
    live.start(name, 188, 0)
    for _ in range(9):
        live.advance(name, Query("q", "words " * 40), FOUND, LOG)
    shown = Console(file=io.StringIO(), width=80)
    shown.print(live._bar.get_renderable())
    live.finish()
    (line,) = (line for line in shown.file.getvalue().splitlines() if line.strip())
    assert "[9/188]" in line
    assert re.search(r"\[9/188\] \S {19} [\d.]+/s, \d+ s left", line), line  # 20 columns of bar, nearly nothing done
    assert len(line) <= 80
