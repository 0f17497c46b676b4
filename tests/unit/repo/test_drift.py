"""What becomes of expected places when a repository changes under them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.formats.sniff import read_testset
from cranfield.model import (
    CONVENTIONS,
    Anchor,
    Entity,
    Fact,
    File,
    GroupedJudgment,
    Hit,
    Label,
    Lines,
    Meta,
    Pattern,
    Query,
    Rating,
    Span,
    Target,
    TestSet,
)
from cranfield.ranking.matching.expectation import expect
from cranfield.repo.anchor import Outlines, anchor_of, places
from cranfield.repo.drift import STATES, DriftReport, reanchored, verify
from cranfield.repo.snapshot import Snapshot, take


def expecting(*targets: Target) -> TestSet:
    """One query a target."""
    queries = tuple(Query(f"q{place}") for place in range(1, len(targets) + 1))
    return TestSet("code", queries, targets={f"q{n}": (target,) for n, target in enumerate(targets, 1)})


def anchored(testset: TestSet, snapshot: Snapshot) -> TestSet:
    outlines = Outlines(snapshot)
    found = {label: anchor_of(place, outlines) for label, place in places(testset, snapshot).items()}
    return replace(testset, meta=Meta(anchors={label: at for label, at in found.items() if isinstance(at, Anchor)}))


def states(report: DriftReport) -> dict[str, str]:
    return {finding.label: finding.state for finding in report.findings}


def span_of(testset: TestSet, query_id: str) -> Span:
    (target,) = testset.targets[query_id]
    assert isinstance(target, Span)
    return target


def lines_of(repository: Any, path: str, first: str, last: str) -> Span:
    """The span from the line that begins with `first` to the next that begins with `last`."""
    lines = (repository.root / path).read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines, 1) if line.startswith(first))
    end = next(n for n, line in enumerate(lines, 1) if n >= start and line.startswith(last))
    return Span(path, start, end)


@pytest.fixture
def held(repository: Any) -> TestSet:
    """Seven places of every kind, anchored to the first commit."""
    testset = expecting(
        Entity("src/numbers.py::format_delta"),
        Entity("src/errors.py::ProblemList.add"),
        lines_of(repository, "src/matching/place.py", "def overlap", "    return min"),
        lines_of(repository, "src/numbers.py", "def format_p", "    if value is None"),
        Entity("src/index.rs::Index::add"),
        Entity("docs/guide.md::Guide > Install > Linux"),
        File("src/model/target.py"),
    )
    return anchored(testset, take(repository.root))


def test_nothing_changed_is_all_unchanged(repository: Any, held: TestSet) -> None:
    report = verify(held, take(repository.root))
    assert set(states(report).values()) == {"unchanged"}
    assert report.counts == dict.fromkeys(STATES, 0) | {"unchanged": 7}
    assert report.drifted == ()


def test_a_commit_that_touches_nothing_expected_changes_nothing(repository: Any, held: TestSet) -> None:
    repository.change("src/model/testset.py", lambda text: text.replace("min_overlap", "least_overlap"))
    repository.change("src/errors.py", lambda text: text.replace("GOT_CHARS = 80", "GOT_CHARS = 90"))
    repository.write("src/new.py", "def format_delta():\n    return 1\n")
    repository.commit()
    assert set(states(verify(held, take(repository.root))).values()) == {"unchanged"}


def test_lines_that_moved_are_found_and_still_match(repository: Any, held: TestSet) -> None:
    span = span_of(held, "q3")
    repository.change("src/matching/place.py", lambda text: "# one\n# two\n" + text)
    report = verify(held, take(repository.root))
    (moved,) = report.moved
    assert (moved.label, moved.now) == (span.label, f"{span.path}:{span.start + 2}-{span.end + 2}")
    assert report.drifted == ()
    healed = reanchored(held, report)
    hit = Hit(f"{span.path}:{span.end + 1}-{span.end + 2}")  # overlaps the new lines alone
    assert list(expect(held, "q3", CONVENTIONS["trec"]).matches(hit)) == []
    assert list(expect(healed, "q3", CONVENTIONS["trec"]).matches(hit)) == [0]
    assert set(states(verify(healed, take(repository.root))).values()) == {"unchanged"}


def test_line_ranges_and_citations_of_labels_move_and_drift_as_targets_do(repository: Any) -> None:
    span = lines_of(repository, "src/matching/place.py", "def overlap", "    return min")
    cited = lines_of(repository, "src/numbers.py", "def format_delta", "    return _signed")
    place, lines = Lines(span.path, span.start, span.end), Lines(cited.path, cited.start, cited.end)
    label = Label(
        line_ranges=(place,), must_mention=(Fact("a", (place, lines)),), must_not_mention=(Fact("b", (lines,)),)
    )
    testset = TestSet("code", (Query("q"),), targets={"q": (span,)}, labels={"q": label})
    testset = anchored(testset, take(repository.root))
    assert set(testset.meta.anchors) == {str(place), str(lines)}
    repository.change("src/matching/place.py", lambda text: "# one\n# two\n" + text)
    healed = reanchored(testset, verify(testset, take(repository.root)))
    moved = Lines(place.file, place.start + 2, place.end + 2)
    assert healed.labels["q"] == Label(
        line_ranges=(moved,), must_mention=(Fact("a", (moved, lines)),), must_not_mention=label.must_not_mention
    )
    assert healed.targets["q"] == (Span(moved.file, moved.start, moved.end),)
    assert set(states(verify(healed, take(repository.root))).values()) == {"unchanged"}
    repository.change("src/numbers.py", lambda text: text.replace("_signed(value, 4)", "_signed(value, 5)"))
    (drifted,) = verify(healed, take(repository.root)).drifted
    assert (drifted.label, drifted.state, drifted.queries) == (str(lines), "edited", ("q",))


def test_an_edit_of_the_body_is_an_edit(repository: Any, held: TestSet) -> None:
    repository.change(
        "src/numbers.py", lambda text: text.replace("return _signed(value, 4)", "return _signed(value, 5)")
    )
    repository.change("docs/guide.md", lambda text: text.replace("With apt.", "With dnf."))
    repository.change("src/index.rs", lambda text: text.replace("        1\n", "        2\n"))
    found = states(verify(held, take(repository.root)))
    assert [label for label, state in found.items() if state == "edited"] == [
        "src/numbers.py::format_delta",
        "src/index.rs::Index::add",
        "docs/guide.md::Guide > Install > Linux",
    ]


def test_blanks_at_line_ends_and_windows_line_ends_are_no_edit(repository: Any, held: TestSet) -> None:
    for path in ("src/numbers.py", "src/errors.py", "src/index.rs", "docs/guide.md"):
        repository.change(path, lambda text: text.replace("\n", "  \n", 3))
        data = (repository.root / path).read_bytes()
        (repository.root / path).write_bytes(data.replace(b"\n", b"\r\n"))
    assert set(states(verify(held, take(repository.root))).values()) == {"unchanged"}


def test_a_function_of_another_name_is_renamed(repository: Any, held: TestSet) -> None:
    repository.change("src/numbers.py", lambda text: text.replace("def format_delta(", "def format_difference("))
    (drifted,) = verify(held, take(repository.root)).drifted
    assert (drifted.state, drifted.now, drifted.detail) == ("renamed", "src/numbers.py::format_difference", "")


def test_lines_of_a_function_of_another_name_are_renamed(repository: Any, held: TestSet) -> None:
    span = span_of(held, "q4")
    repository.change("src/numbers.py", lambda text: "\n" + text.replace("def format_p(", "def format_probability("))
    (drifted,) = verify(held, take(repository.root)).drifted
    assert (drifted.label, drifted.state) == (span.label, "renamed")
    assert drifted.now == f"src/numbers.py:{span.start + 1}-{span.end + 1}"
    assert drifted.detail == "in src/numbers.py::format_probability"


def test_a_file_of_another_name_renames_all_in_it(repository: Any, held: TestSet) -> None:
    repository.git("mv", "src/matching/place.py", "src/matching/spot.py")
    repository.git("mv", "src/index.rs", "src/store.rs")
    repository.git("mv", "docs/guide.md", "docs/manual.md")
    repository.git("mv", "src/model/target.py", "src/model/goal.py")
    span = span_of(held, "q3")
    report = verify(held, take(repository.root))
    assert {finding.label: (finding.state, finding.now) for finding in report.drifted} == {
        span.label: ("renamed", f"src/matching/spot.py:{span.start}-{span.end}"),
        "src/index.rs::Index::add": ("renamed", "src/store.rs::Index.add"),
        "docs/guide.md::Guide > Install > Linux": ("renamed", "docs/manual.md::Guide > Install > Linux"),
        "src/model/target.py": ("renamed", "src/model/goal.py"),
    }


def test_what_is_deleted_is_gone(repository: Any, held: TestSet) -> None:
    repository.git("rm", "--quiet", "src/model/target.py", "src/index.rs")
    repository.change(
        "src/errors.py",
        lambda text: text.replace("    def add(", "    def note(").replace("Add a problem", "One more"),
    )
    found = states(verify(held, take(repository.root)))
    assert {label for label, state in found.items() if state == "gone"} == {
        "src/model/target.py",
        "src/index.rs::Index::add",
        "src/errors.py::ProblemList.add",
    }


def test_an_expected_file_may_change_as_long_as_it_is_there(repository: Any, held: TestSet) -> None:
    repository.change("src/model/target.py", lambda text: text + "\nMORE = 1\n")
    assert states(verify(held, take(repository.root)))["src/model/target.py"] == "unchanged"


def test_moving_a_function_into_a_class_is_a_rename_and_no_edit(repository: Any) -> None:
    repository.write("a.py", "def area(side):\n    return side * side\n")
    repository.commit()
    testset = anchored(expecting(Entity("a.py::area")), take(repository.root))
    repository.write("a.py", "class Square:\n    def area(side):\n        return side * side\n")
    (found,) = verify(testset, take(repository.root)).findings
    assert (found.state, found.now) == ("renamed", "a.py::Square.area")


def test_text_that_stands_twice_is_said_to_be_ambiguous(repository: Any) -> None:
    repository.write("a.py", "def one(x):\n    y = x + 1\n    return y\n")
    repository.commit()
    testset = anchored(expecting(Entity("a.py::one"), Span("a.py", 2, 3)), take(repository.root))
    body = "(x):\n    y = x + 1\n    return y\n"
    repository.write("a.py", f"def two{body}\n\ndef three{body}")
    entity, span = verify(testset, take(repository.root)).findings
    assert (entity.state, entity.now) == ("renamed", "a.py::two")
    assert entity.detail == "ambiguous: the same text is also a.py::three"
    assert span.state == "unchanged"  # the same lines say the same, whatever holds them
    repository.write("a.py", f"# above\ndef two{body}\n\ndef three{body}")
    _, span = verify(testset, take(repository.root)).findings
    assert (span.state, span.now) == ("moved", "a.py:3-4")
    assert span.detail.endswith("to a.py::two; ambiguous: the same text also begins on line 8")


def test_lines_that_changed_are_not_taken_for_the_same_lines_of_another_function(repository: Any) -> None:
    repository.write("a.py", "def one(x):\n    y = x\n    return None\n\n\ndef two():\n    return None\n")
    repository.commit()
    testset = anchored(expecting(Span("a.py", 3, 3)), take(repository.root))
    repository.change("a.py", lambda text: text.replace("    y = x\n    return None", "    y = x\n    return y"))
    (found,) = verify(testset, take(repository.root)).findings
    assert found.state == "edited"
    assert found.detail == "its text differs; a.py::one is on lines 1-3; the same text begins on line 7"


def test_lines_that_outlive_their_function_are_said_to_have_left_it(repository: Any) -> None:
    repository.write("a.py", "def one(x):\n    y = x + 1\n    return y\n")
    repository.commit()
    testset = anchored(expecting(Span("a.py", 2, 3)), take(repository.root))
    repository.write("a.py", "import os\n\n\ndef two(x):\n    x = 2 * x\n    y = x + 1\n    return y\n")
    (found,) = verify(testset, take(repository.root)).findings
    assert (found.state, found.now) == ("moved", "a.py:6-7")
    assert found.detail == "moved from a.py::one, which no longer exists, to a.py::two"


def test_a_place_without_an_anchor_is_looked_up(repository: Any) -> None:
    testset = expecting(
        Entity("src/numbers.py::format_p"),
        Entity("src/numbers.py::format_nothing"),
        Span("src/numbers.py", 90_000, 90_001),
        Span("src/none.py", 1, 2),
        Pattern("anything"),
    )
    report = verify(testset, take(repository.root))
    assert [(finding.state, finding.detail.partition(";")[0]) for finding in report.findings[:2]] == [
        ("unanchored", "it exists"),
        ("gone", "the file has no such symbol"),
    ]
    length = len((repository.root / "src/numbers.py").read_text(encoding="utf-8").splitlines())
    assert (
        report.findings[2].detail == f"lines 90000-90001 are out of range: the file has {length}; no anchor was stored"
    )
    assert report.findings[3].detail == "the file does not exist; no anchor was stored"
    assert len(report.findings) == 4  # a pattern is no place


def test_a_stored_hash_alone_finds_a_file_again(repository: Any) -> None:
    digest = take(repository.root).sha256("src/numbers.py")
    assert digest is not None
    testset = replace(expecting(Entity("src/numbers.py::format_p")), meta=Meta(source_files={"src/numbers.py": digest}))
    assert states(verify(testset, take(repository.root))) == {"src/numbers.py::format_p": "unchanged"}
    repository.git("mv", "src/numbers.py", "src/figures.py")
    (found,) = verify(testset, take(repository.root)).findings
    assert (found.state, found.now) == ("renamed", "src/figures.py::format_p")


def test_a_file_with_the_stored_hash_is_not_parsed(repository: Any) -> None:
    repository.write("broken.py", "def f(:\n")
    repository.commit()
    snapshot = take(repository.root)
    digest = snapshot.sha256("broken.py")
    testset = anchored(expecting(File("broken.py")), snapshot)
    assert digest is not None
    known = replace(testset, meta=replace(testset.meta, source_files={"broken.py": digest}))
    assert verify(known, take(repository.root)).unparsed == {}


def test_a_file_that_does_not_parse_is_said_and_its_lines_are_still_found(repository: Any, held: TestSet) -> None:
    repository.change("src/numbers.py", lambda text: "def broken(:\n" + text)
    report = verify(held, take(repository.root))
    found = states(report)
    span = span_of(held, "q4")
    assert found["src/numbers.py::format_delta"] == "edited"
    assert found[span.label] == "moved"
    assert report.unparsed == {"src/numbers.py": "line 1: invalid syntax"}


def test_an_edit_of_an_overload_or_a_setter_is_an_edit_of_the_name(repository: Any) -> None:
    text = "class K:\n    @property\n    def p(self):\n        return 1\n\n    @p.setter\n    def p(self, v):\n        self.v = v\n"
    repository.write("k.py", text)
    repository.commit()
    testset = anchored(expecting(Entity("k.py::K.p")), take(repository.root))
    repository.write("k.py", text.replace("@p.setter", "\n    @p.setter"))
    assert set(states(verify(testset, take(repository.root))).values()) == {"unchanged"}
    repository.write("k.py", text.replace("self.v = v", "self.w = v"))
    assert set(states(verify(testset, take(repository.root))).values()) == {"edited"}


def test_a_commit_is_looked_at_as_a_folder_is(repository: Any, held: TestSet) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.change("src/numbers.py", lambda text: text.replace("def format_delta(", "def format_difference("))
    second = repository.commit()
    repository.git("rm", "--quiet", "-r", "src")  # neither commit cares
    at_first, at_second = verify(held, take(repository.root, first)), verify(held, take(repository.root, second))
    assert (at_first.commit, at_second.commit) == (first, second)
    assert at_first.counts["unchanged"] == 7
    assert [(one.state, one.now) for one in at_second.drifted] == [("renamed", "src/numbers.py::format_difference")]


def test_graded_ids_that_are_places_move_too_and_others_are_left_alone(repository: Any) -> None:
    repository.write("a.py", "\n".join(f"x{n} = {n}" for n in range(1, 11)) + "\n")
    repository.commit()
    grades = {
        "a.py#L3-L4": 2.0,
        "a.py:7": 1.0,
        "a.py::x9": 1.0,
        "std::sort": 1.0,
        "d12": 1.0,
        "a.py": 1.0,
        "a.py:1-1": 0.0,
    }
    testset = TestSet("ids", (Query("q1"),), {"q1": grades})
    snapshot = take(repository.root)
    assert list(places(testset, snapshot)) == ["a.py#L3-L4", "a.py:7", "a.py::x9", "a.py"]
    testset = anchored(testset, snapshot)
    repository.change("a.py", lambda text: "# more\n" + text)
    report = verify(testset, take(repository.root))
    assert states(report) == {"a.py#L3-L4": "moved", "a.py:7": "moved", "a.py::x9": "unchanged", "a.py": "unchanged"}
    assert reanchored(testset, report).grades["q1"] == {
        "a.py#L4-L5": 2.0,
        "a.py:8": 1.0,
        "a.py::x9": 1.0,
        "std::sort": 1.0,
        "d12": 1.0,
        "a.py": 1.0,
        "a.py:1-1": 0.0,
    }


def test_ratings_and_groups_move_with_the_ids_they_rate(repository: Any) -> None:
    repository.write("a.py", "x = 1\ny = 2\n")
    repository.commit()
    testset = TestSet(
        "rated",
        (Query("q1"),),
        {"q1": {"a.py:2": 1.0}},
        groups={"q1": (GroupedJudgment("a.py:2", "s1", 1.0),)},
        grouping="subtopic",
        ratings={"q1": (Rating("a.py:2", "ann", 1.0), Rating("other", "ann", 0.0))},
    )
    testset = anchored(testset, take(repository.root))
    repository.change("a.py", lambda text: "\n" + text)
    healed = reanchored(testset, verify(testset, take(repository.root)))
    assert healed.grades == {"q1": {"a.py:3": 1.0}}
    assert [one.doc_id for one in healed.groups["q1"]] == ["a.py:3"]
    assert [one.doc_id for one in healed.ratings["q1"]] == ["a.py:3", "other"]


def test_a_healed_set_is_not_taken_for_true_of_the_old_lines(repository: Any) -> None:
    repository.write("a.py", "x = 1\ny = 2\n")
    repository.commit()
    old = take(repository.root, "HEAD")
    testset = anchored(expecting(Span("a.py", 2, 2)), old)
    testset = replace(
        testset, meta=replace(testset.meta, commit=old.commit, source_files={"a.py": old.sha256("a.py") or ""})
    )
    repository.change("a.py", lambda text: "\n" + text)
    healed = reanchored(testset, verify(testset, take(repository.root)))
    assert healed.meta.commit == ""
    assert states(verify(healed, take(repository.root))) == {"a.py:3-3": "unchanged"}
    (back,) = verify(healed, take(repository.root, old.commit)).findings
    assert (back.state, back.now) == ("moved", "a.py:2-2")


def test_a_published_set_of_code_has_its_places_counted(shared_data: Path, tmp_path: Path) -> None:
    testset = read_testset(shared_data / "knowcode/golden_v1.0.json")
    (tmp_path / "src/knowcode/indexing").mkdir(parents=True)
    (tmp_path / "src/knowcode/indexing/scanner.py").write_text("class Scanner:\n    pass\n")
    report = verify(testset, take(tmp_path))
    kinds = Counter(finding.kind for finding in report.findings)
    assert kinds == {"entity": 92, "file": 36}
    there = {finding.label for finding in report.findings if finding.state == "unanchored"}
    assert there == {"src/knowcode/indexing/scanner.py::Scanner", "src/knowcode/indexing/scanner.py"}


def test_places_are_counted_by_query(repository: Any) -> None:
    testset = TestSet(
        "shared",
        (Query("q1"), Query("q2")),
        targets={
            "q1": (Entity("docs/guide.md::Guide > Use"), File("none.py")),
            "q2": (Entity("docs/guide.md::Guide > Use"),),
        },
        files={"q2": ("none.py",)},
    )
    report = verify(testset, take(repository.root))
    assert report.by_query == {"q1": {"unanchored": 1, "gone": 1}, "q2": {"unanchored": 1, "gone": 1}}
    assert [finding.queries for finding in report.findings] == [("q1", "q2"), ("q1", "q2")]


FUNCTIONS = tuple(f"def f{n}(x):\n    y = x + {n}\n\n    return y * {n}" for n in range(4))
ABOVE = st.lists(
    st.sampled_from(["", "\n\n", "# said", "def other(a):\n    return a", "class More:\n    z = 1"]), max_size=4
)


@given(st.lists(ABOVE, min_size=4, max_size=4), st.integers(0, 3), st.sampled_from([(0, 3), (1, 1), (1, 3)]))
def test_what_is_inserted_above_never_makes_a_place_worse_than_moved(
    tmp_path_factory: pytest.TempPathFactory, above: list[list[str]], n: int, lines: tuple[int, int]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    (root / "a.py").write_text("\n".join(FUNCTIONS) + "\n")
    first = n * 4 + 1
    testset = expecting(Entity(f"a.py::f{n}"), Span("a.py", first + lines[0], first + lines[1]), File("a.py"))
    testset = anchored(testset, take(root))
    (root / "a.py").write_text("\n".join("\n".join([*more, text]) for more, text in zip(above, FUNCTIONS, strict=True)))
    entity, span, file = verify(testset, take(root)).findings
    assert (entity.state, file.state) == ("unchanged", "unchanged")
    inserted = sum(text.count("\n") + 1 for more in above[: n + 1] for text in more)
    assert span.state == ("moved" if inserted else "unchanged")
    assert not inserted or span.lines == (first + lines[0] + inserted, first + lines[1] + inserted)


def test_a_heading_that_ends_in_a_number_and_one_that_stands_twice_are_places_of_their_own(repository: Any) -> None:
    repository.write(
        "a.md", "# In C#11\nold words\n\n# In C#12\nnew words\n\n# Notes\nfirst note\n\n# Notes\nsecond note\n"
    )
    repository.commit()
    places_of = [Entity("a.md::In C#11"), Entity("a.md::In C#12"), Entity("a.md::Notes"), Entity("a.md::Notes#2")]
    held = anchored(expecting(*places_of, Span("a.md", 11, 11)), take(repository.root))
    repository.write(
        "a.md",
        "# Intro\n\n# In C#11\nold words\n\n# In C#12\nnewer words\n\n# Notes\nfirst note\n\n# Notes\nsecond note\n",
    )
    assert states(verify(held, take(repository.root))) == {
        "a.md::In C#11": "unchanged",
        "a.md::In C#12": "edited",
        "a.md::Notes": "unchanged",
        "a.md::Notes#2": "unchanged",
        "a.md:11-11": "moved",
    }


def test_a_method_that_a_second_trait_has_too_is_known_by_its_full_name(repository: Any) -> None:
    display = "impl Display for Cart {\n    fn fmt(&self) { Cart::show(self) }\n}\n"
    debug = "impl Debug for Cart {\n    fn fmt(&self) { self.raw() }\n}\n"
    repository.write("a.rs", display)
    repository.commit()
    held = anchored(expecting(Entity("a.rs::Cart::fmt"), Span("a.rs", 2, 2)), take(repository.root))
    repository.write("a.rs", debug + display)
    found = verify(held, take(repository.root)).findings
    assert [(each.state, each.now) for each in found] == [
        ("renamed", "a.rs::<Cart as Display>.fmt"),
        ("moved", "a.rs:5-5"),
    ]
    both = anchored(
        expecting(Entity("a.rs::<Cart as Display>.fmt"), Entity("a.rs::<Cart as Debug>::fmt")), take(repository.root)
    )
    repository.write("a.rs", (debug + display).replace("raw", "bare"))
    assert [each.state for each in verify(both, take(repository.root)).findings] == ["unchanged", "edited"]
