"""Measures of text: values worked by hand, an oracle of sets of characters, and what no way of cutting a text may change."""

import itertools
import math
import string

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cranfield import evaluate
from cranfield.base.errors import MeasureError
from cranfield.measures import compute, parse
from cranfield.model import Answer, Hit, MatchingRules, Outcome, Passage, Query, Run, Span, TestSet, convention_named
from cranfield.ranking import rank_run


def ranking_of(targets, hits, rules=None):
    testset = TestSet("set", (Query("q"),), targets={"q": tuple(targets)}, matching=rules or MatchingRules())
    run = Run("run", {"q": Answer(Outcome.ANSWERED if hits else Outcome.EMPTY, tuple(hits))})
    return rank_run(testset, run, convention_named("trec"))


def value(measure, targets, hits, rules=None):
    values, scored, reasons = compute(parse(measure), ranking_of(targets, hits, rules))
    return float(values[0]) if scored[0] else str(reasons["q"])


def chunk(start, end, path="a.md", **more):
    return Hit(f"{path}#{start}", fields={"path": path, "start_char": start, "end_char": end}, **more)


# Two passages: characters 10 to 49 and 40 to 59 of one document, together 50 characters.
TWO = (Passage(path="a.md", chars="10-50", grade=2.0), Passage(path="a.md", chars="40-60"))
# 0 to 44 holds 35 of them; 30 to 99 holds 10 of the same, and 15 more up to 59.
CHUNKS = (chunk(0, 45), chunk(30, 100))


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("TextRecall@1", 35 / 50),
        ("TextRecall", 50 / 50),
        ("TextRecall(rel=2)@1", 35 / 40),  # of the 40 characters of grade 2
        ("TextPrecision@1", 35 / 45),
        ("TextPrecision", 50 / (45 + 70)),  # 15 characters are returned twice, and count twice
        ("TextIoU@1", 35 / (45 + 50 - 35)),
        ("TextIoU", 50 / (115 + 50 - 50)),
        ("Redundancy@1", 0.0),
        ("Redundancy", 15 / 115),  # 30 to 44
        ("TextRecall(characters=45)", 35 / 50),  # the first fits, the second does not
        ("TextRecall(characters=44)", 0.0),
        ("TextRecall(characters=115)", 1.0),
        ("RR", 1.0),
        ("Success@1", 1.0),
    ],
)
def test_values_worked_by_hand(measure, expected):
    hits = [
        Hit(hit.id, fields={**hit.fields, "text": "x" * (hit.fields["end_char"] - hit.fields["start_char"])})
        for hit in CHUNKS
    ]
    assert value(measure, TWO, hits) == pytest.approx(expected, abs=1e-12)


def test_a_budget_is_of_tokens_and_a_result_that_does_not_fit_ends_it():
    hits = [chunk(10, 30, tokens=5), chunk(30, 50, tokens=20), chunk(50, 60, tokens=1)]
    assert value("TextRecall(budget=24)", TWO, hits) == 20 / 50  # the third would fit, and comes after the end
    assert value("TextRecall(budget=25)", TWO, hits) == 40 / 50
    assert value("TextRecall(budget=26)", TWO, hits) == 1.0
    unknown = [chunk(10, 30, tokens=5), chunk(30, 50)]
    assert "or its cost" in value("TextRecall(budget=25)", TWO, unknown)
    assert value("TextRecall(budget=4)", TWO, unknown) == 0.0  # the first does not fit: what follows is not read


def test_a_list_that_was_cut_before_the_budget_was_used_has_no_value():
    hits = [chunk(10, 30, tokens=5), chunk(30, 50, tokens=5)]
    testset = TestSet("set", (Query("q"),), targets={"q": TWO})
    for depth, recall in (
        (2, None),
        (3, 40 / 50),
        (None, 40 / 50),
    ):  # of three results requested, two came: that is all
        run = Run("run", {"q": Answer(Outcome.ANSWERED, tuple(hits))}, depth=depth)
        ranking = rank_run(testset, run, convention_named("trec"))
        values, scored, reasons = compute(parse("TextRecall(budget=100)"), ranking)
        assert (values[0] if scored[0] else None) == recall
        assert scored[0] or "the list was cut before the budget was used" in reasons["q"]
        # What ends before the cut is known, by the budget or by the cutoff.
        for measure in ("TextRecall(budget=9)", "TextRecall(budget=100)@2", "TextRecall"):
            assert compute(parse(measure), ranking)[1].all(), measure


def test_lines_are_a_unit_too():
    spans = (Span("a.py", 10, 19), Span("a.py", 15, 24))  # 15 lines
    hits = [Hit("a.py:1-12"), Hit("a.py:12-24")]  # lines 10 to 12, then 12 to 24
    assert value("TextRecall@1", spans, hits) == 3 / 15
    assert value("TextRecall", spans, hits) == 1.0
    assert value("TextPrecision", spans, hits) == 15 / (12 + 13)
    assert value("Redundancy", spans, hits) == 1 / 25  # line 12


def test_pages_are_a_unit_too():
    pages = (Passage(path="a.pdf", pages="3-4"),)
    hits = [
        Hit("1", fields={"metadata": {"source": "a.pdf", "page": 2}}),
        Hit("2", fields={"source": "a.pdf", "page": 3}),
    ]
    assert value("TextRecall", pages, hits) == 1 / 2
    assert (
        value("TextRecall", pages, hits, MatchingRules(page_base=0)) == 1.0
    )  # the results count from 0: pages 3 and 4


def test_text_that_is_returned_again_is_known_by_its_words_where_places_are_not():
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    again = "eight nine ten eleven " + " ".join(words)
    hits = [
        Hit("1", fields={"text": " ".join(words)}),
        Hit("2", fields={"text": again}),
        Hit("3", fields={"text": "one two"}),
    ]
    letters = [len("".join(words)), len("".join(again.split())), 6]
    # All ten words of the first come again in the second; `one two` is no window of eight words, and no text that was returned.
    sizes = [len(" ".join(words)), len(again), 7]
    assert value("Redundancy", (Passage("never returned, and long enough"),), hits) == pytest.approx(
        letters[0] / sum(letters)
    )
    run = Run("run", {"q": Answer(Outcome.ANSWERED, tuple(hits))})
    plain = rank_run(TestSet("set", (Query("q"),), {"q": {"1": 1}}), run, convention_named("trec"))
    values, scored, _ = compute(parse("Redundancy"), plain)  # judged by id: texts are compared all the same
    assert scored.all()
    assert values[0] == pytest.approx(letters[0] / letters[1] * sizes[1] / sum(sizes))


def test_what_a_query_expects_beside_passages_has_no_recall_of_text():
    with pytest.raises(MeasureError, match="the test set expects no passages of text, and no lines"):
        evaluate(TestSet("set", (Query("q"),), {"q": {"a": 1}}), {"q": {"a": 1.0}}, measures=["TextRecall"])
    assert value("TextRecall", TWO, []) == 0.0
    assert value("TextPrecision", TWO, []) == 0.0
    assert "nothing was returned" in value("Redundancy", TWO, [])


paths = st.sampled_from(["a.md", "b.md"])
intervals = st.tuples(st.integers(0, 60), st.integers(1, 40)).map(lambda pair: (pair[0], sum(pair)))
places = st.lists(st.tuples(paths, intervals), max_size=6)


@given(places.filter(bool), places, st.integers(1, 6))
def test_the_measures_are_those_of_sets_of_characters(expected, returned, cutoff):
    """Smith & Troynikov 2024, computed of sets: what is returned twice counts twice in what is retrieved, once in what is found."""
    targets = [Passage(path=path, chars=f"{start}-{end}") for path, (start, end) in expected]
    hits = [
        Hit(str(number), fields={"path": path, "start_char": start, "end_char": end})
        for number, (path, (start, end)) in enumerate(returned)
    ]
    wanted = {(path, at) for path, span in expected for at in range(*span)}
    lists = [[(path, at) for at in range(*span)] for path, span in returned[:cutoff]]
    seen = {each for characters in lists for each in characters}
    n_read, held = sum(map(len, lists)), len(wanted & seen)
    assert value(f"TextRecall@{cutoff}", targets, hits) == pytest.approx(held / len(wanted))
    assert value(f"TextPrecision@{cutoff}", targets, hits) == pytest.approx(held / n_read if n_read else 0.0)
    assert value(f"TextIoU@{cutoff}", targets, hits) == pytest.approx(held / (n_read + len(wanted) - held))
    if n_read:
        assert value(f"Redundancy@{cutoff}", targets, hits) == pytest.approx(1 - len(seen) / n_read)


texts = st.text(alphabet=string.ascii_lowercase[:6] + "  \n", min_size=60, max_size=300).filter(
    lambda text: text.split()
)


def cuts_of(text, positions):
    """The chunks that a text falls into when it is cut at some positions."""
    ends = sorted({0, len(text), *(position % len(text) for position in positions)})
    return list(itertools.pairwise(ends))


@given(texts, st.lists(st.integers(0, 10_000), max_size=12), intervals, st.randoms(use_true_random=False))
def test_any_cutting_of_a_text_keeps_the_recall_of_text_at_full_budget(text, positions, span, random):
    """Passages by their characters: exactly 1 whatever the chunks are, in any order, with any overlap."""
    start, end = span[0] % (len(text) - 1), 0
    end = min(start + span[1], len(text))
    chunks = cuts_of(text, positions)
    chunks = [(max(first - random.randrange(5), 0), last) for first, last in chunks]
    random.shuffle(chunks)
    hits = [
        Hit(str(n), fields={"path": "a.md", "start_char": first, "end_char": last, "text": text[first:last]})
        for n, (first, last) in enumerate(chunks)
    ]
    assert value("TextRecall", [Passage(path="a.md", chars=f"{start}-{end}")], hits) == 1.0
    assert value("TextRecall(characters=1000000)", [Passage(path="a.md", chars=f"{start}-{end}")], hits) == 1.0


WORDS = " ".join(f"{first}{second}{first}" for first in string.ascii_lowercase for second in string.ascii_lowercase[:9])
"""A text of which no 12 letters in a row stand twice."""


@given(
    st.integers(0, len(WORDS) - 200),
    st.integers(60, 199),
    st.lists(st.integers(0, 10_000), max_size=12),
    st.sampled_from([" ", "\n", "  \n\t", " "]),
)
@example(0, 100, [50], "\n")
def test_a_quote_keeps_its_recall_where_no_cut_leaves_too_little_of_it(start, length, positions, blank):
    """Each piece that a cut leaves of the quote is found, if it has 12 letters or more; else what is missed is shorter than that."""
    quote = WORDS[start : start + length].strip()
    start = WORDS.index(quote)
    assume(len("".join(quote.split())) >= 24)
    chunks = cuts_of(WORDS, positions)
    hits = [Hit(str(n), fields={"text": WORDS[a:b].replace(" ", blank)}) for n, (a, b) in enumerate(chunks)]
    pieces = [
        WORDS[max(a, start) : min(b, start + len(quote))] for a, b in chunks if a < start + len(quote) and b > start
    ]
    letters = [len("".join(piece.split())) for piece in pieces]
    found = value("TextRecall", [Passage(quote)], hits)
    if all(piece >= 12 for piece in letters if piece):
        assert found == 1.0
    else:
        missed = sum(piece for piece in letters if piece < 12)
        assert 1 - missed / sum(letters) - 1e-9 <= found <= 1.0


# Verdicts of the retrieved contexts in order, and Ragas' context precision of them: the mean of the precision at the ranks of the
# relevant ones, sum(P@i * v_i) / sum(v_i).
RAGAS = {
    "1": 1.0,
    "0": 0.0,
    "10": 1.0,
    "01": 1 / 2,
    "11": 1.0,
    "00": 0.0,
    "100": 1.0,
    "010": 1 / 2,
    "001": 1 / 3,
    "110": 1.0,
    "101": (1 + 2 / 3) / 2,
    "011": (1 / 2 + 2 / 3) / 2,
    "111": 1.0,
    "0101": (1 / 2 + 2 / 4) / 2,
    "1001": (1 + 2 / 4) / 2,
    "0011": (1 / 3 + 2 / 4) / 2,
    "1011": (1 + 2 / 3 + 3 / 4) / 3,
    "01010": (1 / 2 + 2 / 4) / 2,
    "10101": (1 + 2 / 3 + 3 / 5) / 3,
    "00001": 1 / 5,
}


@pytest.mark.parametrize("verdicts", RAGAS)
def test_context_precision_is_that_of_ragas(verdicts):
    """Ragas adds 1e-10 to the divisor, so that its figures are smaller by less than 1e-10."""
    relevant = [int(verdict) for verdict in verdicts]
    published = sum(sum(relevant[: i + 1]) / (i + 1) * v for i, v in enumerate(relevant)) / (sum(relevant) + 1e-10)
    testset = TestSet("set", (Query("q"),), {"q": {f"d{i}": v for i, v in enumerate(relevant)} | {"never found": 1}})
    run = Run("run", {"q": Answer(Outcome.ANSWERED, tuple(Hit(f"d{i}") for i in range(len(relevant))))})
    evaluation = evaluate(
        testset, run, measures=["context_precision", f"context_precision@{len(relevant)}", "context_recall"]
    )
    values = [evaluation[measure].mean for measure in evaluation.measures]
    assert values[0] == values[1] == pytest.approx(RAGAS[verdicts], abs=1e-12)
    assert values[0] == pytest.approx(published, abs=1e-9)
    assert values[2] == pytest.approx(sum(relevant) / (sum(relevant) + 1))
    assert not math.isnan(values[2])
