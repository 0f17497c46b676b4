"""Programs that stay: asked a line at a time, ended and started anew when nothing they say can be believed any more."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from cranfield.base.errors import PreflightError
from cranfield.model import Answer, Hit, Outcome, Query
from cranfield.systems.calls import deaths
from cranfield.systems.calls.deaths import MAX_DEATHS
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.line_program import LinesSystem
from cranfield.systems.system import CallInterruptedError

HEAD = """
import json, os, sys, time

def say(**record):
    sys.stdout.write(json.dumps(record) + "\\n")
    sys.stdout.flush()

def calls():
    for line in sys.stdin:
        yield json.loads(line)
"""
ECHO = (
    HEAD
    + """
for call in calls():
    say(id=call["id"], hits=[{"id": call["query"], "score": 0.5, "title": "T", "span": "1-2", "tokens": 7}],
        fields={"k": call["k"], "params": call["params"], "pid": os.getpid()})
"""
)


@pytest.fixture
def program(tmp_path: Path, script):
    """A system whose program is given as source; ended when the test is over."""
    made = []

    def _program(source: str, **config) -> LinesSystem:
        name = script(source, f"program{len(made)}.py")
        made.append(LinesSystem.of("sut", folder=tmp_path, lines=["{python}", "-I", "-S", name], **config))
        return made[-1]

    yield _program
    for system in made:
        system.close()


def ask(system, text="grid", k=10, **params):
    return system.search(Query("q1", text, params=params), k)


def in_threads(system, *texts: str):
    """Ask several queries at a time; what each was answered, by its text."""
    answers = {}

    def one(text: str) -> None:
        answers[text] = ask(system, text)

    threads = [threading.Thread(target=one, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


def test_a_hit_and_the_fields_come_through_with_all_that_they_say(program):
    answer, log = ask(program(ECHO), "grid", 3, lang="en")
    assert answer.hits == (Hit("grid", 0.5, "T", "1-2", 7.0),)
    assert (answer.fields["k"], answer.fields["params"]) == (3, {"lang": "en"})
    assert json.loads(log.stdout_head)["hits"][0]["id"] == "grid"


def test_one_program_answers_all_queries_and_is_gone_when_closed(program, gone):
    system = program(ECHO)
    pids = {ask(system, f"word {number}")[0].fields["pid"] for number in range(20)}
    assert len(pids) == 1
    system.close()
    assert gone(pids.pop())


def test_a_closed_system_is_started_again_when_it_is_asked(program):
    system = program(ECHO)
    first = ask(system)[0].fields["pid"]
    system.close()
    assert ask(system)[0].fields["pid"] != first


@pytest.mark.parametrize("text", ["a\nb", "\u2028\u2029\x85", '"\\', "\ud800", "{query}", "é" * 5000, ""])
def test_any_text_is_one_line_and_comes_back_as_it_was_sent(program, text):
    source = HEAD + 'for call in calls():\n    say(id=call["id"], hits=[], fields={"query": call["query"]})\n'
    assert ask(program(source), text)[0].fields == {"query": text}


def test_an_answer_without_an_id_is_of_the_oldest_call(program):
    source = HEAD + 'for call in calls():\n    say(hits=[call["query"]])\n'
    system = program(source)
    assert [ask(system, text)[0].hits for text in ("a", "b")] == [(Hit("a"),), (Hit("b"),)]


def test_answers_in_any_order_reach_the_calls_that_they_are_of(program):
    # The program answers only when it has four calls, the latest first: all must be under way in it at once.
    source = (
        HEAD
        + """
held = []
for call in calls():
    held.append(call)
    if len(held) == 4:
        while held:
            call = held.pop()
            say(id=call["id"], hits=[call["query"]])
"""
    )
    answers = in_threads(program(source, concurrency=4), "a", "b", "c", "d")
    assert {text: answer.hits[0].id for text, (answer, _) in answers.items()} == {text: text for text in "abcd"}


@pytest.mark.parametrize(
    ("said", "outcome", "reason"),
    [
        ('say(id=call["id"], hits=[])', Outcome.EMPTY, None),
        ('say(id=call["id"], error="no index\\nfile x")', Outcome.ERROR, "no index"),
        ('say(id=call["id"], error={"code": 7})', Outcome.ERROR, '{"code": 7}'),
        ('say(id=call["id"])', Outcome.UNPARSABLE, 'the answer is an object without "hits"'),
        ('say(id=call["id"], hits="d1")', Outcome.UNPARSABLE, "the answer is text, not a list of hits, or an object"),
        ('say(id=call["id"], hits=[{"doc": "d1"}])', Outcome.UNPARSABLE, "result 1 has no id"),
        ('say(id=call["id"], hits=["d1", {"id": "d2", "score": "x"}])', Outcome.UNPARSABLE, "result 2 has no score"),
        ('say(id=call["id"], hits=["d1"], fields=[1])', Outcome.UNPARSABLE, "fields are a list, not an object"),
        ('say(id=call["id"] + 7, hits=[])', Outcome.UNPARSABLE, "an answer to a call that is not pending"),
        ('say(id="x", hits=[])', Outcome.UNPARSABLE, "an answer to a call that is not pending"),
        ('print("loading", flush=True)', Outcome.UNPARSABLE, "the program wrote a line that is not JSON"),
        ('print("[1]", flush=True)', Outcome.UNPARSABLE, "a line that is a list, not an object"),
    ],
)
def test_what_it_says_is_read_or_refused_with_a_reason(program, said, outcome, reason):
    answer, _ = ask(program(HEAD + f"for call in calls():\n    {said}\n"))
    assert answer.outcome is outcome
    assert (reason or "") in (answer.reason or "")
    assert (answer.reason is None) == (reason is None)


def test_extract_reads_the_object_of_the_reply(program):
    source = HEAD + 'for call in calls():\n    say(id=call["id"], found=[{"uri": "d1", "w": 3}], took=5)\n'
    extract = {"json": "found", "id": "uri", "tokens": "w", "fields": {"took": "took"}}
    answer, _ = ask(program(source, extract=extract))
    assert (answer.hits, answer.fields) == ((Hit("d1", tokens=3.0),), {"took": 5})


def test_after_rubbish_the_program_is_another_one(program, gone):
    source = (
        HEAD
        + """
for call in calls():
    if call["query"] == "bad":
        print(f"rubbish from {os.getpid()}", flush=True)
        time.sleep(60)
    say(id=call["id"], hits=["d1"], fields={"pid": os.getpid()})
"""
    )
    system = program(source)
    first = ask(system)[0].fields["pid"]
    bad, log = ask(system, "bad")
    assert (bad.outcome, log.stdout_head) == (Outcome.UNPARSABLE, f"rubbish from {first}")
    assert ask(system)[0].fields["pid"] != first
    assert gone(first)


def test_calls_beside_one_that_met_rubbish_are_asked_again(program, tmp_path):
    # "bad" is the oldest: it came first, and the program waits for both others before it writes what nobody can read.
    source = (
        HEAD
        + """
held = []
for call in calls():
    held.append(call)
    if os.path.exists("spoilt"):
        say(id=call["id"], hits=[call["query"]])
    elif len(held) == 3:
        open("spoilt", "w").close()
        print("rubbish", flush=True)
"""
    )
    answers = in_threads(program(source, concurrency=3), "a", "b", "c")
    outcomes = sorted(answer.outcome for answer, _ in answers.values())
    assert outcomes == [Outcome.ANSWERED, Outcome.ANSWERED, Outcome.UNPARSABLE]
    assert all(answer.hits == (Hit(text),) for text, (answer, _) in answers.items() if answer.hits)


def test_a_second_answer_that_nobody_asked_for_is_never_the_next_querys(program, wait_for, tmp_path):
    source = (
        HEAD
        + """
for call in calls():
    say(hits=[call["query"]])
    say(hits=["from " + call["query"]])
    open("said", "w").close()
"""
    )
    system = program(source)
    assert ask(system, "a")[0].hits == (Hit("a"),)
    wait_for((tmp_path / "said").exists)
    wait_for(lambda: system._program._run._unsolicited)  # both lines were read
    second, _ = ask(system, "b")
    assert (second.outcome, second.hits) == (Outcome.UNPARSABLE, ())
    assert ask(system, "c")[0].hits == (Hit("c"),)


@pytest.mark.parametrize("status", [0, 3])
def test_a_program_that_dies_in_the_middle_fails_the_call_and_the_next_one_starts_it(program, status):
    source = (
        HEAD
        + f"""
for call in calls():
    if call["query"] == "die":
        print("out of memory", file=sys.stderr, flush=True)
        sys.exit({status})
    say(id=call["id"], hits=["d1"])
"""
    )
    system = program(source)
    answer, log = ask(system, "die")
    assert (answer.outcome, answer.reason) == (Outcome.ERROR, f"ended with exit status {status}")
    assert log.stderr_head == "out of memory\n"
    after, log = ask(system)
    assert (after.hits, log.stderr_head) == ((Hit("d1"),), "")


def test_a_program_that_died_between_two_calls_is_started_anew(program, gone):
    system = program(ECHO)
    first = ask(system)[0].fields["pid"]
    os.kill(first, signal.SIGKILL)
    assert gone(first)
    # Whether the next call finds it gone or sees it go is a matter of moments; the one after that is answered.
    ask(system)
    assert ask(system)[0].fields["pid"] != first


def test_all_calls_under_way_fail_when_the_program_is_killed(program):
    source = (
        HEAD
        + """
held = []
for call in calls():
    held.append(call)
    if len(held) == 2:
        os.kill(os.getpid(), 9)
"""
    )
    answers = in_threads(program(source, concurrency=2), "a", "b")
    assert [answer.reason for answer, _ in answers.values()] == ["was killed by SIGKILL"] * 2


def test_a_broken_program_is_tried_again_where_retries_are_asked_for(program):
    source = (
        HEAD
        + """
if not os.path.exists("second"):
    open("second", "w").close()
    sys.exit(1)
for call in calls():
    say(id=call["id"], hits=["d1"])
"""
    )
    answer, log = ask(program(source, retries=1, backoff_s=0.01))
    assert (answer.hits, log.attempts) == ((Hit("d1"),), 2)


LATE = (
    HEAD
    + """
for call in calls():
    if call["query"] == "slow":
        open("slow", "w").write(str(os.getpid()))
        time.sleep(60)
    say(hits=[call["query"]])
"""
)


def test_a_call_out_of_time_is_a_timeout_and_its_program_ends(program, tmp_path, gone, set_timeout):
    system = program(LATE)
    assert ask(system, "a")[0].hits == (Hit("a"),)
    set_timeout(system, 1)
    late, _ = ask(system, "slow")
    assert (late.outcome, late.reason) == (Outcome.TIMEOUT, "no answer in 1 s")
    set_timeout(system, 60)
    # The program answers in order and without ids: only a new one can have answered this.
    assert ask(system, "b")[0].hits == (Hit("b"),)
    assert gone(int((tmp_path / "slow").read_text()))


def test_a_program_that_reads_nothing_does_not_hold_a_call_beyond_its_time(program):
    answer, _ = ask(program("import time\ntime.sleep(60)\n", timeout_s=0.5), "x" * 1_000_000)
    assert answer.outcome is Outcome.TIMEOUT


def test_an_interruption_ends_the_call_and_the_program(program, tmp_path, wait_for, gone):
    system = program(LATE, timeout_s=60)
    raised = []

    def call() -> None:
        with pytest.raises(CallInterruptedError) as caught:
            ask(system, "slow")
        raised.append(caught)

    thread = threading.Thread(target=call)
    thread.start()
    wait_for(lambda: (tmp_path / "slow").exists() and (tmp_path / "slow").read_text())
    system.interrupt()
    thread.join(20)
    assert raised
    assert gone(int((tmp_path / "slow").read_text()))
    assert ask(system, "b")[0].hits == (Hit("b"),)


def test_much_on_stderr_does_not_hold_the_program_up_and_its_end_is_kept(program):
    source = (
        HEAD
        + """
for call in calls():
    sys.stderr.write("x" * 1_000_000 + "\\n")
    say(id=call["id"], hits=["d1"])
"""
    )
    system = program(source)
    assert [ask(system)[0].outcome for _ in range(3)] == [Outcome.ANSWERED] * 3


def test_a_line_beyond_all_bounds_is_refused(program):
    source = HEAD + 'for call in calls():\n    say(id=call["id"], hits=["x" * 40_000_000])\n'
    answer, _ = ask(program(source))
    assert (answer.outcome, answer.reason) == (Outcome.UNPARSABLE, "the program wrote a line of over 16 MB")


def test_the_environment_is_the_programs_and_its_values_are_hidden(program):
    source = HEAD + 'for call in calls():\n    say(id=call["id"], error="denied for " + os.environ["TOKEN"])\n'
    answer, log = ask(program(source, env={"TOKEN": "open-sesame"}))
    assert answer.reason == "denied for ${TOKEN}"
    assert "sesame" not in log.stdout_head


def test_what_the_program_started_ends_with_it(program, gone):
    source = (
        "import subprocess\n"
        + HEAD
        + """
child = subprocess.Popen(["sleep", "60"])
for call in calls():
    say(id=call["id"], hits=[], fields={"child": child.pid})
"""
    )
    system = program(source)
    child = ask(system)[0].fields["child"]
    system.close()
    assert gone(child)


def test_nothing_is_left_when_we_are_killed(tmp_path, script, forks, wait_for, gone):
    name = script(
        ECHO.replace("for call in calls():", 'open("pid", "w").write(str(os.getpid()))\nfor call in calls():')
    )
    user = f"""
import time
from cranfield.model import Query
from cranfield.systems.kinds.line_program import LinesSystem
system = LinesSystem.of("sut", folder={str(tmp_path)!r}, lines=["{{python}}", {name!r}])
system.search(Query("q1", "x"), 1)
open({str(tmp_path / "asked")!r}, "w").close()
time.sleep(60)
"""
    script(user, "user.py")
    ours = forks.start(tmp_path / "user.py")
    wait_for((tmp_path / "asked").exists)
    ours.send_signal(signal.SIGKILL)
    ours.wait()
    assert gone(int((tmp_path / "pid").read_text()))


def test_nothing_is_left_when_we_end_without_closing(tmp_path, script, forks, gone):
    name = script(ECHO)
    user = f"""
from cranfield.model import Query
from cranfield.systems.kinds.line_program import LinesSystem
system = LinesSystem.of("sut", folder={str(tmp_path)!r}, lines=["{{python}}", {name!r}])
print(system.search(Query("q1", "x"), 1)[0].fields["pid"])
"""
    script(user, "user.py")
    ended = forks.start(tmp_path / "user.py")
    said, errors = ended.communicate()
    assert (ended.returncode, errors) == (0, "")
    assert gone(int(said))


def test_the_preflight_says_what_is_missing(tmp_path):
    absent = LinesSystem.of("sut", folder=tmp_path, lines=["./absent"])
    with pytest.raises(PreflightError, match=r"lines ./absent; expected an executable file, got nothing there"):
        preflight([absent])


def test_the_preflight_starts_the_program_which_then_answers(program):
    system = program(ECHO)
    held = preflight([system])
    assert [(one.check, one.found) for one in held] == [
        ("cwd .", "a folder"),
        ("lines {python} -I -S program0.py", "an executable file"),
    ]
    assert ask(system)[0].outcome is Outcome.ANSWERED


def test_files_that_its_arguments_name_are_what_it_depends_on(program, tmp_path):
    assert tmp_path / "program0.py" in program(ECHO).depends_on()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": 1, "hits": ["d1"], "hits": []}', "the program wrote a line with the key 'hits' twice in one object"),
        (b'{"id": 1, "hits": ["caf\xe9"]}', "the program wrote a line that is not UTF-8"),
        (b'{"id": true, "hits": []}', "the program wrote an answer to a call that is not pending"),
        (b'{"id": 1.0, "hits": []}', "the program wrote an answer to a call that is not pending"),
        (b'{"id": 1' + b"0" * 4000 + b', "hits": []}', "the program wrote an answer to a call that is not pending"),
        (b'{"id": 1, "hits": []} {"id": 2, "hits": []}', "the program wrote a line that is not JSON"),
        (b'{"id": 1, "hits": []}\0', "the program wrote a line that is not JSON"),
        (b"[" * 100_000, "the program wrote a line that is not JSON"),
    ],
    ids=["key", "latin", "true", "float", "huge", "two", "nul", "deep"],
)
def test_a_line_that_can_be_read_in_two_ways_is_no_answer(tmp_path, line, reason):
    (tmp_path / "line").write_bytes(line + b"\n")
    system = LinesSystem.of("sut", folder=tmp_path, lines=["sh", "-c", "read request; cat line; read more"])
    answer, _ = system.search(Query("q1", "grid"), 10)
    system.close()
    assert (answer.outcome, answer.reason, answer.hits) == (Outcome.UNPARSABLE, reason, ())


class TestDeathsInARow:
    """A program that ends on every call is not started for each of a thousand queries."""

    DIES = """
import os
with open("starts", "a") as starts:
    starts.write("x")
for call in calls():
    if call["query"] != "answered":
        sys.exit(3)
    say(id=call["id"], hits=[])
"""

    def starts(self, tmp_path):
        return len((tmp_path / "starts").read_text())

    def test_after_some_the_remaining_queries_are_not_asked(self, program, tmp_path):
        system = program(HEAD + self.DIES)
        asked = [ask(system) for _ in range(MAX_DEATHS + 2)]
        how = "the last time: ended with exit status 3"
        assert [answer.reason for answer, _ in asked] == [
            *["ended with exit status 3"] * MAX_DEATHS,
            *[f"not sent: the program ended {MAX_DEATHS} times in a row without an answer ({how})"] * 2,
        ]
        assert {answer.outcome for answer, _ in asked} == {Outcome.ERROR}
        assert [log.attempts for _, log in asked] == [*[1] * MAX_DEATHS, 0, 0]
        assert self.starts(tmp_path) == MAX_DEATHS

    def test_after_a_pause_it_is_tried_once_more(self, program, tmp_path, monkeypatch):
        system = program(HEAD + self.DIES)
        for _ in range(MAX_DEATHS):
            ask(system)
        monkeypatch.setattr(deaths, "PAUSE_S", 0.0)
        assert ask(system)[0].reason == "ended with exit status 3"
        monkeypatch.setattr(deaths, "PAUSE_S", 60.0)
        assert ask(system)[0].reason.startswith("not sent")
        assert self.starts(tmp_path) == MAX_DEATHS + 1

    def test_an_answer_between_them_starts_the_count_anew(self, program):
        system = program(HEAD + self.DIES)
        outcomes = [ask(system, text)[0].outcome for text in [*["x"] * (MAX_DEATHS - 1), "answered", "x", "answered"]]
        assert outcomes[-3:] == [Outcome.EMPTY, Outcome.ERROR, Outcome.EMPTY]

    def test_calls_under_way_at_a_time_end_together(self):
        counted = deaths.CircuitBreaker(3, is_program=True)
        for _ in range(3 * MAX_DEATHS - 1):
            counted.count(None, died=True)
        assert not counted.is_pausing
        counted.count(None, died=True)
        assert counted.is_pausing

    def test_a_timeout_is_neither(self):
        counted = deaths.CircuitBreaker(1, is_program=True)
        for _ in range(MAX_DEATHS):
            counted.count(Answer(Outcome.TIMEOUT, reason="late"), died=False)
            counted.count(None, died=True)
        assert counted.is_pausing
