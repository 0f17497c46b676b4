"""Where a result lies: lines, paths and entities, as systems write them."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base import patterns
from cranfield.base.errors import InputError
from cranfield.model import Entity, File, Hit, MatchingRules, Query, Span, TestSet, convention_named
from cranfield.ranking.matching.expectation import expect
from cranfield.ranking.matching.place import Place, lines_of, overlap, path_of, place_of

RULES, FROM_0 = MatchingRules(), MatchingRules(line_base=0)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("12-40", (12, 40)),
        ("12:40", (12, 40)),
        ("12,40", (12, 40)),
        ("L12-L40", (12, 40)),
        ("L12-40", (12, 40)),
        ("12", (12, 12)),
        (" 12-40 ", (12, 40)),
        ("0-3", (0, 3)),
        ("40-12", None),
        ("12-", None),
        ("-12", None),
        ("a-b", None),
        ("", None),
        ("12-40-50", None),
        ("1.5-3", None),
        ("1234567890-1234567891", None),  # no file has so many lines
        ("١٢-٤٠", (12, 40)),  # digits of any script are digits
    ],
)
def test_lines_are_read_as_systems_write_them(text, lines):
    assert lines_of(text, RULES) == lines


@pytest.mark.parametrize(("text", "lines"), [("0-39", (1, 40)), ("0", (1, 1)), ("11-11", (12, 12))])
def test_lines_from_0_are_moved_to_lines_from_1(text, lines):
    assert lines_of(text, FROM_0) == lines


@pytest.mark.parametrize(
    ("doc_id", "span", "place"),
    [
        ("src/a.rs", "12-40", Place("src/a.rs", (12, 40), "src/a.rs")),
        ("src/a.rs:12-40", None, Place("src/a.rs", (12, 40), "src/a.rs")),
        ("src/a.rs#L12-L40", None, Place("src/a.rs", (12, 40), "src/a.rs")),
        ("src/a.rs#L12", None, Place("src/a.rs", (12, 12), "src/a.rs")),
        ("src/a.rs:12", None, Place("src/a.rs", (12, 12), "src/a.rs")),
        ("src/a.rs:1-9", "12-40", Place("src/a.rs", (12, 40), "src/a.rs")),  # the span says more than the id
        ("src/a.rs:1-9", "somewhere", Place("src/a.rs", (1, 9), "src/a.rs")),
        ("C:\\repo\\src\\a.rs:12-40", None, Place("C:/repo/src/a.rs", (12, 40), "C:/repo/src/a.rs")),
        ("src/a.py::Index.add", None, Place("src/a.py", None, "src/a.py::Index.add")),
        ("src/a.py::Index.add::0", None, Place("src/a.py", None, "src/a.py::Index.add")),
        ("src/a.py::Index.add::12", "3-4", Place("src/a.py", (3, 4), "src/a.py::Index.add")),
        ("src\\a.py::Index.add", None, Place("src/a.py", None, "src/a.py::Index.add")),
        ("src/a.cpp::ns::Type::go", None, Place("src/a.cpp", None, "src/a.cpp::ns.Type.go")),
        ("src/a.py::prompt#3", None, Place("src/a.py", None, "src/a.py::prompt")),  # a definition, and no line 3
        ("src/a.py::prompt#3:12-40", None, Place("src/a.py", (12, 40), "src/a.py::prompt")),
        ("src/a.py::prompt#L12", None, Place("src/a.py", (12, 12), "src/a.py::prompt")),
        ("src/a.py::prompt#12-40", None, Place("src/a.py", (12, 40), "src/a.py::prompt")),
        ("src/a.js::Context#forward", None, Place("src/a.js", None, "src/a.js::Context.forward")),
        ("src/a.py::outer.<locals>.inner", None, Place("src/a.py", None, "src/a.py::outer.inner")),
        ("a.md::Known > Issue #2", None, Place("a.md", None, "a.md::Known > Issue #2")),  # of the heading
        ("src/a.py::0", None, Place("src/a.py", None, "src/a.py")),
        ("src/a.rs:12:5", None, Place("src/a.rs", (12, 12), "src/a.rs")),  # a line and a column
        ("a:12:5-14:9", None, Place("a", (12, 14), "a")),
        ("src/a.rs#L12C5-L14C9", None, Place("src/a.rs", (12, 14), "src/a.rs")),
        ("src/a.py::Index.add:3-9", None, Place("src/a.py", (3, 9), "src/a.py::Index.add")),
        ("src/a.py::Index.add::2:3-9", None, Place("src/a.py", (3, 9), "src/a.py::Index.add")),
        ("http://host:8080/a.rs:3-9", None, Place("http:/host:8080/a.rs", (3, 9), "http:/host:8080/a.rs")),
        ("http://host:8080", None, Place("http:/host:8080", None, "http:/host:8080")),  # a port is no line
        ("", None, Place("", None, "")),
    ],
)
def test_the_place_of_a_result_is_read_from_id_and_span(doc_id, span, place):
    assert place_of(Hit(doc_id, span=span), RULES) == place


@pytest.mark.parametrize(
    ("path", "rules", "one_form"),
    [
        ("./src/a.rs", {}, "src/a.rs"),
        ("src/./b/../a.rs", {}, "src/a.rs"),
        ("src//a.rs", {}, "src/a.rs"),
        ("//src/a.rs", {}, "/src/a.rs"),
        ("src\\sub\\a.rs", {}, "src/sub/a.rs"),
        ("../a.rs", {}, "../a.rs"),
        ("/build/checkout/src/a.rs", {"strip": ("/build/checkout/",)}, "src/a.rs"),
        ("/build/checkout/src/a.rs", {"strip": ("/build/checkout",)}, "src/a.rs"),
        ("/build/checkout2/src/a.rs", {"strip": ("/build/checkout",)}, "/build/checkout2/src/a.rs"),  # another folder
        ("/build/checkout/src/a.rs", {"strip": ("/build", "/build/checkout")}, "src/a.rs"),  # the longest that fits
        ("C:\\repo\\src\\a.rs", {"strip": ("C:\\repo\\",)}, "src/a.rs"),
        ("/src/a.rs", {"strip": ("/",)}, "src/a.rs"),
        ("file:///ci/me/src/a.rs", {"strip": ("file:///ci/me",)}, "src/a.rs"),
        ("/build/checkout", {"strip": ("/build/checkout",)}, "/build/checkout"),  # nothing would be left
        ("/anywhere/at/all/src/a.rs", {"roots": ("src", "tests")}, "src/a.rs"),
        ("/x/tests/src/a.rs", {"roots": ("src", "tests")}, "tests/src/a.rs"),  # the first of them
        ("/x/lib/a.rs", {"roots": ("src",)}, "/x/lib/a.rs"),
        ("/x/mysrc/a.rs", {"roots": ("src",)}, "/x/mysrc/a.rs"),  # whole names
        ("/b/pkg/src/a.rs", {"strip": ("/b",), "roots": ("src",)}, "src/a.rs"),
    ],
)
def test_paths_have_one_form(path, rules, one_form):
    assert path_of(path, MatchingRules(**rules)) == one_form


@given(st.text("ab./\\", max_size=20))
def test_the_one_form_of_a_path_stays_as_it_is(path):
    assert path_of(path_of(path, RULES), RULES) == path_of(path, RULES)


@pytest.mark.parametrize(
    ("one", "other", "lines"),
    [
        ((1, 40), (41, 61), 0),
        ((1, 41), (41, 61), 1),  # ends that touch share a line
        ((61, 80), (41, 61), 1),
        ((1, 100), (41, 61), 21),
        ((50, 50), (41, 61), 1),
        ((1, 10), (41, 61), -30),
    ],
)
def test_overlap_counts_the_lines_shared_both_ends_included(one, other, lines):
    assert overlap(one, other) == overlap(other, one) == lines


# what an expected place matches -----------------------------------------------------------------------------------------


def found(target, hit, **rules):
    testset = TestSet("set", (Query("q"),), targets={"q": (target,)}, matching=MatchingRules(**rules))
    return bool(expect(testset, "q", convention_named("trec")).matches(hit))


TRUTH = Span("src/a.rs", 41, 61)


@pytest.mark.parametrize(
    ("hit", "rules", "matches"),
    [
        (Hit("src/a.rs", span="1-41"), {}, True),
        (Hit("src/a.rs", span="1-40"), {}, False),
        (Hit("src/a.rs", span="1-40"), {"line_base": 0}, True),  # lines 2 to 41
        (Hit("src/a.rs", span="61-61"), {"line_base": 0}, False),  # line 62
        (Hit("src/a.rs", span="1-45"), {"min_overlap": 5}, True),  # 41 to 45
        (Hit("src/a.rs", span="1-44"), {"min_overlap": 5}, False),
        (Hit("src/b.rs", span="41-61"), {}, False),
        (Hit("src/A.rs", span="41-61"), {}, False),  # case is not folded
        (Hit("src/a.rs"), {}, False),  # it does not say which lines
        (Hit("src/a.rs", span="61-41"), {}, False),
        (Hit("src/a.rs:41-61"), {}, True),
        (Hit("./src/a.rs#L61-L90"), {}, True),
        (Hit("C:\\ci\\src\\a.rs", span="50"), {"strip": ("C:/ci",)}, True),
        (Hit("/ci/src/a.rs:50"), {"roots": ("src",)}, True),
    ],
)
def test_a_span_is_matched_by_lines_of_its_file(hit, rules, matches):
    assert found(TRUTH, hit, **rules) is matches


def test_a_place_shorter_than_the_bound_is_matched_by_all_of_its_lines():
    short = Span("a", 10, 11)
    assert found(short, Hit("a", span="1-20"), min_overlap=5)
    assert not found(short, Hit("a", span="1-10"), min_overlap=5)  # 1 of its 2 lines


@pytest.mark.parametrize(
    ("hit", "rules", "matches"),
    [
        ("src/a.py::Index.add", {}, True),
        ("src/a.py::Index.add::0", {}, True),
        ("src/a.py::Index.add::17", {}, True),
        ("/ci/src/a.py::Index.add::0", {"strip": ("/ci/",)}, True),
        ("/ci/src/a.py::Index.add::0", {"roots": ("src",)}, True),
        ("src/a.py::Index", {}, False),
        ("src/a.py::Index.add_all", {}, False),
        ("src/a.py", {}, False),
        ("src/a.py::Index.add@2", {"chunk_suffix": r"@\d+$"}, True),
        ("src/a.py::Index.add::0", {"chunk_suffix": ""}, False),
    ],
)
def test_an_entity_is_matched_by_its_id_and_by_its_chunks(hit, rules, matches):
    assert found(Entity("src/a.py::Index.add"), Hit(hit), **rules) is matches


@pytest.mark.parametrize(
    ("hit", "matches"),
    [
        (Hit("src/a.py"), True),
        (Hit("src/a.py", span="1-3"), True),
        (Hit("src/a.py:1-3"), True),
        (Hit("src/a.py::Index.add::2"), True),
        (Hit("./src\\a.py"), True),
        (Hit("src/a.pyc"), False),
        (Hit("lib/src/a.py"), False),
    ],
)
def test_a_file_is_matched_by_whatever_lies_in_it(hit, matches):
    assert found(File("src/a.py"), hit) is matches


spans = st.tuples(st.integers(1, 60), st.integers(0, 30)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(spans, spans, st.integers(1, 5))
def test_overlap_is_the_size_of_the_intersection_of_the_lines(one, other, least):
    shared = set(range(one[0], one[1] + 1)) & set(range(other[0], other[1] + 1))
    assert max(overlap(one, other), 0) == len(shared)
    whole = other[1] - other[0] + 1
    hit = Hit("a", span=f"{one[0]}-{one[1]}")
    assert found(Span("a", *other), hit, min_overlap=least) == (len(shared) >= min(least, whole))
    moved = Hit("a", span=f"{one[0] - 1}-{one[1] - 1}")
    assert found(Span("a", *other), moved, min_overlap=least, line_base=0) == found(
        Span("a", *other), hit, min_overlap=least
    )


def test_a_suffix_of_chunks_that_finds_no_end_is_an_error_and_stops_no_other_thread(monkeypatch):
    monkeypatch.setattr(patterns, "SEARCH_S", 0.4)
    rules = MatchingRules(chunk_suffix="(a|a)*$x")
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(place_of, Hit("a" * 30), rules)
        with pytest.raises(InputError, match=r"chunk_suffix \(a\|a\)\*\$x: matching did not end within"):
            running.result(timeout=5)
    assert place_of(Hit("b.py::f"), rules) == Place("b.py", None, "b.py::f")
