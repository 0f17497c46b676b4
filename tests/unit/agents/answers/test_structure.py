"""Structure of answers: what is named in fields and in text, and its score."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.agents.answers.rows import Answered, ExpectedAnswer, expected_places, named_places
from cranfield.agents.answers.structure import AnswerPart, score_structure
from cranfield.model import Entity, File, MatchingRules, Query, Span, Target, TestSet
from cranfield.model.judging import Lines

AGENT, STORE = "src/kc/agent.py::Agent.answer", "src/kc/store.py::load"
EXPECTED = ExpectedAnswer((AGENT, STORE), ("src/kc/agent.py", "src/kc/store.py"), (Lines("src/kc/agent.py", 10, 20),))
RULES = MatchingRules(roots=("src",))


def named(text: str, expected: ExpectedAnswer = EXPECTED) -> tuple[set[str], set[str], set[str]]:
    found = named_places(Answered(text), expected, RULES)
    return set(found.entities), set(found.files), set(map(str, found.spans))


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        (f"It is decided in {AGENT}.", {AGENT}),
        (f"- `{AGENT}`, lines 3 and 4", {AGENT}),
        ("/build/me/src/kc/agent.py::Agent.answer", {AGENT}),
        ("See Agent.answer, which asks the store.", {AGENT}),
        ("kc.agent.Agent.answer decides.", {AGENT}),
        ("Agent::answer decides.", {AGENT}),
        # `answer` alone is prose, and as code says nothing of its class unless the file is named
        ("The answer of the Agent.", set()),
        ("`answer` decides.", set()),
        ("`answer` in src/kc/agent.py decides.", {AGENT}),
        # `load` is a whole qualified name, and prose where it is no code
        ("Then we load the file.", set()),
        ("Then `load` reads it.", {STORE}),
        ("Then load() reads it.", {STORE}),
        ("```\nstore = load(path)\n```", {STORE}),
        ("Agent.answers and reload() and `load_all`", set()),
        ("src/kc/agent.py::Agent.other is named too.", {"src/kc/agent.py::Agent.other"}),
        ("See https://example.org/src/kc/agent.py::Agent.answer_all for more.", set()),
    ],
)
def test_entities_of_a_text(text: str, entities: set[str]) -> None:
    assert named(text)[0] == entities


@pytest.mark.parametrize(
    ("text", "files", "spans"),
    [
        ("In src/kc/agent.py.", {"src/kc/agent.py"}, set()),
        ("In `./src/kc/agent.py`, (src\\kc\\store.py)", {"src/kc/agent.py", "src/kc/store.py"}, set()),
        ("src/kc/agent.py:12-40 and src/kc/store.py#L3-L5", {"src/kc/agent.py", "src/kc/store.py"},
         {"src/kc/agent.py:12-40", "src/kc/store.py:3-5"}),
        ("agent.py and/or 1.5/2.0 and src/kc/", set(), set()),
        ("x" * 5_000 + "/a.py", set(), set()),
    ],
)  # fmt: skip
def test_files_and_lines_of_a_text(text: str, files: set[str], spans: set[str]) -> None:
    assert named(text)[1:] == (files, spans)


def test_a_file_at_the_root_and_a_section_of_markdown() -> None:
    expected = ExpectedAnswer(("docs/guide.md::Guide > First steps",), ("Makefile",))
    entities, files, _ = named("See Makefile, and docs/guide.md::Guide > First steps.", expected)
    assert entities == {"docs/guide.md::Guide > First steps"}
    assert files == {"Makefile", "docs/guide.md"}


def test_one_name_of_two_files_needs_the_file() -> None:
    expected = ExpectedAnswer(("src/a.py::run", "src/b.py::run"))
    assert named("`run` starts it", expected)[0] == set()
    assert named("`run` of src/b.py starts it", expected)[0] == {"src/b.py::run"}


def test_the_gold_answer_scores_1_and_the_empty_one_0() -> None:
    gold = score_structure(Answered("", EXPECTED.entities, EXPECTED.files, EXPECTED.spans), EXPECTED, RULES)
    empty = score_structure(Answered(""), EXPECTED, RULES)
    assert (gold.score, gold.complete) == (1.0, True)
    assert (empty.score, empty.complete) == (0.0, False)
    assert not any(part.missing or part.extra for part in gold.parts.values())


def test_arithmetic_of_a_part() -> None:
    score = score_structure(Answered("", (AGENT, "src/kc/x.py::x"), ()), EXPECTED, RULES)
    entities = score.parts[AnswerPart.ENTITIES]
    assert (entities.recall, entities.precision, entities.f1) == (0.5, 0.5, 0.5)  # 1 of 2, 1 of 2
    assert (entities.missing, entities.extra) == ((STORE,), ("src/kc/x.py::x",))
    # An id names its file: 1 of 2 files, and x.py besides. The lines do not decide where entities are expected.
    assert score.parts[AnswerPart.FILES].f1 == 0.5
    assert score.parts[AnswerPart.SPANS].f1 == 0.0
    assert score.score == 0.5
    assert not score.complete


def test_lines_decide_where_no_entity_is_expected() -> None:
    expected = ExpectedAnswer((), (), (Lines("src/a.py", 10, 20), Lines("src/b.py", 5, 5)))
    answered = Answered("", spans=(Lines("src/a.py", 20, 30), Lines("src/b.py", 1, 9), Lines("src/c.py", 1, 9)))
    part = score_structure(answered, expected, RULES).parts[AnswerPart.SPANS]
    assert (part.missing, part.extra) == ((), ("src/c.py:1-9",))
    assert part.f1 == pytest.approx(0.8)  # recall 2 of 2, precision 2 of 3: 2 * (2/3) / (5/3)
    score = score_structure(answered, expected, MatchingRules(min_overlap=3))
    assert score.parts[AnswerPart.SPANS].missing == ("src/a.py:10-20",)  # one line shared; b.py:5 has but one
    assert not score.complete


def test_nothing_expected_is_never_complete() -> None:
    score = score_structure(Answered("src/a.py", ("x",)), ExpectedAnswer())
    assert (score.complete, score.score, ExpectedAnswer()) == (False, 0.0, ExpectedAnswer())
    assert not ExpectedAnswer()


def test_what_a_test_set_expects() -> None:
    targets: dict[str, tuple[Target, ...]] = {
        "q1": (Entity("src/a.py::A", lines=((3, 4),)), Entity("src/b.py::B", grade=0)),
        "q2": (Span("src/a.py", 1, 2), File("src/c.py")),
    }
    testset = TestSet("t", (Query("q1"), Query("q2"), Query("q3")), targets=targets, files={"q1": ("src/a.py",)})
    assert expected_places(testset, "q1") == ExpectedAnswer(("src/a.py::A",), ("src/a.py",), (Lines("src/a.py", 3, 4),))
    assert expected_places(testset, "q2") == ExpectedAnswer((), ("src/c.py",), (Lines("src/a.py", 1, 2),))
    assert not expected_places(testset, "q3")


PATHS = st.builds(
    "{}/{}.{}".format, st.sampled_from(["src", "src/kc", "docs"]), st.text("abcxyz_", min_size=1, max_size=5),
    st.sampled_from(["py", "rs", "md"]),
)  # fmt: skip
NAMES = st.lists(st.text("abcXYZ_1", min_size=1, max_size=4).filter(str.isidentifier), min_size=1, max_size=3).map(
    ".".join
)


@given(
    st.lists(st.tuples(PATHS, NAMES), min_size=1, max_size=4),
    st.lists(PATHS, max_size=3),
    st.lists(st.tuples(PATHS, NAMES), max_size=3),
)
def test_the_ids_written_out_score_1_and_others_only_lower_it(
    entities: list[tuple[str, str]], files: list[str], others: list[tuple[str, str]]
) -> None:
    ids = tuple(f"{path}::{name}" for path, name in entities)
    expected = ExpectedAnswer(ids, tuple(dict.fromkeys([*(path for path, _ in entities), *files])))
    text = "It is " + ", ".join(f"`{name}`" for name in (*ids, *expected.files)) + "."
    assert score_structure(Answered(text), expected).score == 1.0
    more = score_structure(Answered(text + " ".join(f"\n{path}::{name}" for path, name in others)), expected)
    assert more.complete
    assert (more.score == 1.0) == all(f"{path}::{name}" in ids for path, name in others)
