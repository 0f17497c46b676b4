"""Passages: found by quote, by characters and by page, whatever a framework calls its fields."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import TestSetError
from cranfield.formats.testsets.native import read_testset_yaml, write_testset_yaml
from cranfield.model import Answer, Hit, MatchingRules, Outcome, Passage, Query, Run, TestSet, convention_named
from cranfield.ranking import rank_run
from cranfield.ranking.matching.passages import (
    SHORTEST_PART,
    characters_of,
    comparable,
    pages_of,
    passage_test,
    quoted_parts,
)

QUOTE = "Excessive bail shall not be required"


def holds(passage, rules=None, **fields):
    hit = Hit(fields.pop("id", "c1"), fields=fields or None)
    return passage_test(passage, rules or MatchingRules())(hit)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"Amendment VIII. {QUOTE}, nor excessive fines imposed.", True),
        ("Excessive  bail\nshall not be\u00a0required", True),  # white space does not count
        ("Excessive bail shall not be requi\u00adred", True),  # nor does a hyphen that only breaks a line
        ("in other words: Excessive bail shall", True),  # the result ends within it
        ("shall not be required. Next.", True),  # it begins within it
        ("bail shall not be", True),  # it is a part of it
        ("excessive bail shall not be required", False),  # case counts
        ("bail shall", False),  # too short a part: 9 letters
        ("all of it: Excessive", False),
        ("", False),
    ],
)
def test_a_quote_is_found_in_the_text_of_a_result(text, found):
    assert holds(Passage(QUOTE), text=text) is found
    assert holds(Passage(QUOTE), metadata={"page_content": text}) is found


def test_exact_quotes_compare_each_character():
    exact = MatchingRules(quotes="exact")
    assert holds(Passage(QUOTE), exact, text=f"so {QUOTE}.")
    assert not holds(Passage(QUOTE), exact, text=QUOTE.replace(" ", "  "))


def test_fuzzy_quotes_differ_by_no_more_than_the_stated_share():
    fuzzy = MatchingRules(quotes="fuzzy")
    # 31 letters, one replaced: 1 deleted, 1 inserted of 62 in both: 1 - 2 / 62 = .968
    assert holds(Passage(QUOTE), fuzzy, text="Thus EXCESSIVE bajl shall not be required by anyone")
    strict = MatchingRules(quotes="fuzzy", quote_similarity=0.97)
    assert not holds(Passage(QUOTE), strict, text="Thus EXCESSIVE bajl shall not be required by anyone")
    assert not holds(Passage(QUOTE), fuzzy, text="Excessive fines shall never be imposed")
    assert holds(Passage(QUOTE), fuzzy, text="bajl shall not be required")  # the result lies within the quote


@pytest.mark.parametrize(
    "fields",
    [
        {"path": "a.md", "start_char": 10, "end_char": 20},
        {"source": "a.md", "start_index": 10, "page_content": "ten chars."},  # as LangChain's splitters say it
        {"metadata": {"source": "./a.md", "start_index": 10}, "page_content": "ten chars."},
        {"file_path": "a.md", "start_char_idx": 10, "end_char_idx": 20},  # LlamaIndex
        {"meta": {"file_path": "a.md", "start_char": 10.0, "end_char": 20.0}},
    ],
)
def test_characters_are_found_under_the_names_that_frameworks_have(fields):
    hit = Hit("c1", fields=fields)
    assert characters_of(hit) == (10, 20)
    for chars, found in (("0-10", False), ("0-11", True), ("19-30", True), ("20-30", False), ("12-13", True)):
        assert holds(Passage(path="a.md", chars=chars), **fields) is found
    assert not holds(Passage(path="b.md", chars="10-20"), **fields)


def test_the_id_is_the_document_where_no_field_says_one():
    assert holds(Passage(path="a.md", chars="10-20"), id="a.md", start_char=0, end_char=11)
    assert not holds(Passage(path="a.md", chars="10-20"), id="a.md", path="b.md", start_char=30, end_char=40)
    # A quote decides alone where the result names no document; where it names another, it is another passage.
    assert holds(Passage(QUOTE, path="a.md"), id="c17", text=QUOTE)
    assert not holds(Passage(QUOTE, path="a.md"), id="c17", source="b.md", text=QUOTE)


@pytest.mark.parametrize(
    ("fields", "rules", "pages"),
    [
        ({"page": 3}, MatchingRules(), (3, 3)),
        ({"page": 2, "page_label": "iii"}, MatchingRules(page_base=0), (3, 3)),
        ({"page_label": "3"}, MatchingRules(page_base=0), (3, 3)),  # what is printed on the page counts from 1
        ({"pages": "3-5"}, MatchingRules(), (3, 5)),
        ({"metadata": {"page_number": "3"}}, MatchingRules(), (3, 3)),
        ({"page": "cover"}, MatchingRules(), None),
    ],
)
def test_pages(fields, rules, pages):
    assert pages_of(Hit("c1", fields=fields), rules) == pages
    assert holds(Passage(path="a.pdf", pages="3"), rules, source="a.pdf", **fields) is (pages is not None)
    assert not holds(Passage(path="a.pdf", pages="6-9"), rules, source="a.pdf", **fields)


def test_results_with_one_id_and_different_places_are_different_results():
    testset = TestSet("set", (Query("q"),), targets={"q": (Passage(path="a.md", chars="50-60"),)})
    hits = tuple(Hit("a.md", fields={"start_char": start, "end_char": start + 30}) for start in (0, 30, 30))
    ranking = rank_run(testset, Run("run", {"q": Answer(Outcome.ANSWERED, hits)}), convention_named("trec"))
    assert (ranking.n_returned.tolist(), ranking.n_duplicates.tolist(), ranking.rank.tolist()) == ([2], [1], [2])
    assert [hit.span for hit in ranking.top["q"]] == ["characters 0-30", "characters 30-60"]


def test_results_that_say_nothing_to_recognise_them_by_are_counted():
    testset = TestSet("set", (Query("q"),), targets={"q": (Passage(QUOTE), Passage(path="a.md", chars="5-9"))})
    hits = (Hit("a.md"), Hit("c2", fields={"text": "something else"}), Hit("c3", fields={"title": "no text"}))
    ranking = rank_run(testset, Run("run", {"q": Answer(Outcome.ANSWERED, hits)}), convention_named("trec"))
    assert ranking.unplaced.tolist() == [2]


@given(st.text("abcd ", min_size=1, max_size=60), st.text("abcd ", max_size=80), st.sampled_from(["spaces", "exact"]))
def test_parts_of_a_quote_are_there(quote, text, mode):
    rules = MatchingRules(quotes=mode)
    quote, text = comparable(quote, rules), comparable(text, rules)
    parts = quoted_parts(quote, text, rules)
    assert all(0 <= start < end <= len(quote) and quote[start:end] in text for start, end in parts)
    assert all(end - start >= min(SHORTEST_PART, len(quote)) for start, end in parts)
    assert (parts == [(0, len(quote))]) is (bool(quote) and quote in text)


NATIVE = """\
cranfield_testset: 1
name: law
matching: {quotes: fuzzy, quote_similarity: 0.8}
queries:
- id: q1
  text: is torture forbidden
  passages:
  - nor cruel and unusual punishments inflicted
  - {quote: Excessive bail, path: law.txt, chars: 10-24, grade: 2}
  - {path: law.pdf, pages: 3}
"""


def test_a_test_set_with_passages_is_written_as_it_was_read(tmp_path):
    path = tmp_path / "law.yaml"
    path.write_text(NATIVE, encoding="utf-8")
    testset = read_testset_yaml(path)
    assert testset.targets["q1"] == (
        Passage("nor cruel and unusual punishments inflicted"),
        Passage("Excessive bail", "law.txt", "10-24", grade=2.0),
        Passage(path="law.pdf", pages="3"),
    )
    write_testset_yaml(testset, tmp_path / "again.yaml")
    assert read_testset_yaml(tmp_path / "again.yaml") == testset
    assert "- nor cruel and unusual punishments inflicted\n" in (tmp_path / "again.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("passage", "message"),
    [
        ("{path: a.md}", "is not identified; expected a quote; or a path with chars (`120-340`) or pages (`12`)"),
        ("{chars: 10-20}", "names no document; expected the path that its chars or pages are of"),
        (
            "{path: a.md, chars: 20-10}",
            "are no characters; expected the first, counted from 0, and the end, as 120-340",
        ),
        (
            "{path: a.md, pages: 0}",
            "are no pages; expected a page, counted from 1, or the first and the last, as 12-13",
        ),
        ("{path: a.md, chars: 1-2, page: 1}", "page"),
        ("7", "is no passage"),
    ],
)
def test_a_passage_that_says_too_little_is_refused_at_its_line(tmp_path, passage, message):
    path = tmp_path / "law.yaml"
    path.write_text(f"cranfield_testset: 1\nname: x\nqueries:\n- id: q1\n  text: a\n  passages:\n  - {passage}\n")
    with pytest.raises(TestSetError) as caught:
        read_testset_yaml(path)
    assert message in str(caught.value)
    assert "law.yaml:7" in str(caught.value)
