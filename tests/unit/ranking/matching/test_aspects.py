"""What is looked for beside the expected items."""

from cranfield.model import Hit, Legacy, MatchingRules, Pattern, Query, Source, TestSet
from cranfield.ranking.matching.expectation import looks_for

SOURCES = (Source("api", "^api/"), Source("new api", "^api/v2/"), Source("guide", "^guide/"))


def set_of(**more):
    return TestSet("set", (Query("q"), Query("p")), {"q": {"api/a": 2, "guide/b": 0}}, **more)


def test_a_query_looks_for_nothing_unless_the_test_set_says_so():
    assert not looks_for(set_of(), "q")
    assert not looks_for(set_of(files={"p": ("a",)}, legacy={"p": Legacy(("a",))}), "q")
    assert looks_for(set_of(files={"q": ("a",)}), "q")
    assert looks_for(set_of(legacy={"q": Legacy(("a",))}), "q")
    assert looks_for(set_of(sources=SOURCES), "p")  # sources are the whole test set's


def test_files_have_one_form_and_count_once():
    looked = looks_for(
        set_of(files={"q": ("./src/a.py", "/ci/src/a.py", "b.py")}, matching=MatchingRules(roots=("src",))), "q"
    )
    assert looked.files == ("src/a.py", "b.py")
    assert looked.file_of(Hit("/anywhere/src/a.py::Thing::3")) == "src/a.py"


def test_a_result_is_of_the_first_source_that_fits():
    looked = looks_for(set_of(sources=SOURCES), "q")
    assert [looked.source_of(doc_id) for doc_id in ("api/v2/x", "guide/x", "my/api/x")] == [0, 2, None]


def test_the_sources_that_have_an_answer_are_known_from_the_documents_that_are_relevant():
    assert looks_for(set_of(sources=SOURCES), "q").answered_by == frozenset({0})  # guide/b is judged 0
    assert looks_for(set_of(sources=SOURCES), "p").answered_by == frozenset()
    by_pattern = set_of(sources=SOURCES, targets={"p": (Pattern("x"),)})
    assert looks_for(by_pattern, "p").answered_by == frozenset()  # nobody knows


def test_legacy_is_told_by_id_or_by_pattern():
    is_legacy = looks_for(set_of(legacy={"q": Legacy(("old",), ("^NS", "deprecated"))}), "q").is_legacy
    told = {doc_id: is_legacy(doc_id) for doc_id in ("old", "older", "NSArray", "xNS", "a/deprecated/b")}
    assert told == {"old": True, "older": False, "NSArray": True, "xNS": False, "a/deprecated/b": True}
