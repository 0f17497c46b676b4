import itertools
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cranfield.base import patterns
from cranfield.base.errors import InputError
from cranfield.base.patterns import Expression, PatternError, any_match, compile_pattern, search_limit, time_limit

ENDLESS = r"(a+)+$"
TEXT = "a" * 60 + "b"
"""`ENDLESS` takes 2^60 steps on it."""


@pytest.fixture(autouse=True)
def short_limits(monkeypatch):
    monkeypatch.setattr(patterns, "SEARCH_S", 0.05)
    monkeypatch.setattr(patterns, "_COMPILE_S", 0.05)


@pytest.mark.parametrize("pattern", [r"((a*){65000}){65000}", r"(a{0,4294967294}){4294967294}"])
def test_a_pattern_that_takes_too_long_on_the_empty_text_does_not_compile(pattern):
    with pytest.raises(PatternError, match=r"over 0\.05 s"):
        compile_pattern(pattern)


def test_huge_counts_alone_are_no_problem():
    assert compile_pattern(r"(a{65000}){65000}").pattern == r"(a{65000}){65000}"


def test_a_pattern_that_does_not_compile_is_explained():
    with pytest.raises(PatternError, match="missing \\), unterminated subpattern at position 0"):
        compile_pattern("(")


def test_a_search_without_end_is_an_error_that_names_what_was_searched():
    with (
        pytest.raises(InputError, match="expressions of query q7: matching did not end within"),
        search_limit("expressions of query q7"),
    ):
        re.search(ENDLESS, TEXT)
    with pytest.raises(InputError, match=re.escape(f"regular expression {ENDLESS}")):
        any_match(ENDLESS, [TEXT])


def test_the_handler_and_the_timer_of_the_caller_are_kept():
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(30, RuntimeError):
        assert signal.getsignal(signal.SIGALRM) is not before
        with time_limit(0.001, RuntimeError):  # a timer is running: it is left alone
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 1
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0]) == (before, 0)


def in_thread(function):
    """The result of a function in another thread, and how long other threads had to wait for the interpreter meanwhile."""
    with ThreadPoolExecutor(1) as threads:
        running, longest, before = threads.submit(function), 0.0, time.monotonic()
        while not running.done():
            time.sleep(0.001)
            longest, before = max(longest, time.monotonic() - before), time.monotonic()
    return running, longest


def test_a_timer_in_another_thread_is_an_error():
    def wait():
        with time_limit(1, RuntimeError):
            pass

    running, _ = in_thread(wait)
    with pytest.raises(RuntimeError, match="outside the main thread"):
        running.result()


def test_a_search_without_end_in_another_thread_ends_and_stops_no_other_thread(monkeypatch):
    monkeypatch.setattr(patterns, "SEARCH_S", 0.6)
    running, longest = in_thread(lambda: any_match(ENDLESS, [TEXT]))
    with pytest.raises(InputError, match=re.escape(f"regular expression {ENDLESS}: matching did not end within")):
        running.result()
    assert longest < 0.5


def test_the_length_of_an_expression_counts(monkeypatch):
    monkeypatch.setattr(patterns, "SEARCH_S", 1.0)
    running, longest = in_thread(lambda: any_match("[ab]" * 4_999 + "c", ["a" * 400_000]))
    with pytest.raises(InputError, match="matching did not end within"):
        running.result()
    assert longest < 0.8


def test_a_pattern_that_is_too_long_does_not_compile():
    with pytest.raises(PatternError, match="over 20,000 characters"):
        compile_pattern("[ab]" * 5_001)


def test_another_thread_finds_what_the_main_thread_finds(monkeypatch):
    monkeypatch.setattr(patterns, "SEARCH_S", 10)
    cases = [("a+b", 0), (r"(a|b)+$", 0), (r"(A|B)*$", re.IGNORECASE), ("(é|\ud800)*x", 0), (r"(?x) (a) +", 0)]
    texts = ["aab", "xé\ud800x", "", "a" * 2000, "zz\n"]

    def found():
        with search_limit("here"):
            return [Expression(each, flags).found_in(text) for each, flags in cases for text in texts]

    def replaced():
        with search_limit("here"):
            return [Expression(each, flags).replaced_in(text, "-") for each, flags in cases for text in texts]

    for search in (found, replaced):
        running, _ = in_thread(search)
        assert running.result() == search()


def test_many_short_searches_in_another_thread_have_one_limit():
    running, _ = in_thread(lambda: any_match("b$", itertools.repeat(TEXT[:-1])))
    with pytest.raises(InputError, match="matching did not end within"):
        running.result()


def test_a_search_in_another_thread_needs_a_limit():
    running, _ = in_thread(lambda: Expression("b$").found_in(TEXT))
    with pytest.raises(RuntimeError, match="outside of `limited`"):
        running.result()


@pytest.mark.parametrize("pattern", [r"((a*){65000}){65000}", "(", "(a)*(", "a{4294967296}"])
def test_another_thread_compiles_nothing_else(pattern, monkeypatch):
    with pytest.raises(PatternError) as here:
        compile_pattern(pattern)
    running, _ = in_thread(lambda: compile_pattern(pattern))
    with pytest.raises(PatternError) as there:
        running.result()
    assert str(there.value) == str(here.value)
    monkeypatch.setattr(patterns, "_COMPILE_S", 10.0)  # the end of the test is no measure of this machine
    assert in_thread(lambda: compile_pattern("(a+)+$"))[0].result() == re.compile("(a+)+$")


def test_a_process_that_has_ended_is_replaced_and_its_pipes_are_closed(monkeypatch):
    monkeypatch.setattr(patterns, "SEARCH_S", 10)
    ended = []
    for text in ("aaa", "aab"):
        assert in_thread(lambda text=text: any_match(r"(a|b)+$", [text]))[0].result()
        for child in patterns._idle:
            child.kill()
            child.wait()
            ended.append(child)
    assert in_thread(lambda: any_match(r"(a|b)+$", ["ab"]))[0].result()
    gone = [child for child in ended if child not in patterns._idle]
    assert gone
    assert all(child.stdin.closed and child.stdout.closed for child in gone)
