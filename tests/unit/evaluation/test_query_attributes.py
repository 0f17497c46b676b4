"""Attributes of queries: what a text says of itself, how many documents have its words, and columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import compare, evaluate
from cranfield.evaluation.query_attributes import (
    FEW_DOCUMENTS,
    Condition,
    conditions_of,
    is_typo,
    language_of,
    question_of,
    typing_errors,
)
from cranfield.evaluation.traits import words
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet


def conditions(queries, *, min_size=1, columns=None, texts=None, titles=None):
    """Texts of the conditions of queries, each with the ids of those that meet it."""
    testset = TestSet("set", tuple(queries), {query.id: {"d": 1} for query in queries})
    hits = tuple(Hit(f"d{at}", title=title) for at, title in enumerate(titles or ("nothing",)))
    answers = {query.id: Answer(Outcome.ANSWERED, hits) for query in queries}
    pair = compare(*(evaluate(testset, Run(name, answers), measures=["RR"]) for name in "AB"))
    ids = [query.id for query in queries]
    found = conditions_of(pair, ids, min_size, columns or {}, texts)
    return {each.text: [ids[at] for at in np.flatnonzero(each.members)] for each in found}


def of_texts(*texts, **options):
    return conditions([Query(str(at), text) for at, text in enumerate(texts)], **options)


def test_the_text_of_a_query_says_what_kind_it_is():
    found = of_texts("How many CVE-2021-44228 fixes?", "nginx", 'the "exact phrase" in Berlin', "ALL CAPS")
    assert found["with a digit"] == ["0"]
    assert found["with a code such as ABC-123"] == ["0"]
    assert found["that ask how many"] == found["that start with a question word"] == ["0"]
    assert found["that end with ?"] == ["0"]
    assert found["in lower case"] == ["1"]
    assert found["in capitals"] == ["3"]
    assert found["with a quoted phrase"] == found["with a capitalised word inside"] == ["2"]
    assert found["without a digit"] == ["1", "2", "3"]


def test_numbers_are_cut_at_their_terciles_and_named_with_their_bounds():
    """Words 1 to 9: the values at 3 / 9 and 6 / 9 are 4 and 7."""
    found = of_texts(*(" ".join("abcdefghi"[: n + 1]) for n in range(9)))
    assert found["of 4 or fewer words"] == ["0", "1", "2", "3"]
    assert found["of 5 or more words"] == ["4", "5", "6", "7", "8"]
    assert found["of 7 or more words"] == ["6", "7", "8"]
    assert found["of 6 or fewer words"] == ["0", "1", "2", "3", "4", "5"]
    assert found["of 5 to 6 words"] == ["4", "5"]


def test_one_value_and_the_others():
    found = of_texts("a", "b", "c", "d", "e f")
    assert found["of 1 word"] == ["0", "1", "2", "3"]
    assert found["of 2 words"] == ["4"]


@given(st.lists(st.text("ab 1?", max_size=12), min_size=4, max_size=12), st.integers(1, 3))
def test_no_condition_has_fewer_queries_than_the_smallest_slice(texts, min_size):
    found = of_texts(*texts, min_size=min_size)
    assert all(min_size <= len(members) <= len(texts) - min_size for members in found.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what is the age of the universe", "English"),
        ("wie alt ist das universum", "German"),
        ("quel est le plus grand lac", "French"),
        ("cuál es el lago más grande", "Spanish"),
        ("возраст вселенной", "Cyrillic script"),
        ("宇宙的年龄", "Chinese script"),
        ("universe", ""),
        ("", ""),
    ],
)
def test_language_by_script_and_stop_words(text, expected):
    assert language_of(text, words(text)) == expected


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("was ist das", "German", "what"),
        ("was he there", "English", ""),
        ("warum nicht", "", "why"),
        ("¿Cómo funciona?", "Spanish", "how"),
        ("combien de temps", "French", "how many"),
        ("how much time", "", "how many"),
        ("how it works", "", "how"),
        ("layer", "", ""),
    ],
)
def test_question_words_by_their_meaning(text, language, expected):
    assert question_of(words(text), language) == expected


def test_a_language_is_an_attribute_where_there_are_two():
    german, english = ["wie ist das"] * 3, ["what is the"] * 3
    assert of_texts(*german, *english, min_size=2)["in German"] == ["0", "1", "2"]
    assert not [each for each in of_texts(*english, "layer", "flow", min_size=2) if each.startswith("in E")]


@pytest.mark.parametrize(
    ("word", "other", "expected"),
    [
        ("retreival", "retrieval", True),  # swap
        ("retrival", "retrieval", True),  # deletion
        ("retrieeval", "retrieval", True),  # insertion
        ("retrievel", "retrieval", True),  # substitution
        ("engines", "engine", False),  # an ending
        ("retrieval", "retrieval", False),
        ("abcde", "bcdea", False),  # one letter moved over four
        ("flow", "layer", False),
    ],
)
def test_what_is_a_typing_error(word, other, expected):
    assert is_typo(word, other) is is_typo(other, word) is expected


def test_typing_errors_are_next_to_common_words_alone():
    counts = {"retrieval": 9, "boundary": 4, "layer": 9}
    assert typing_errors({"retreival", "boundray", "layre", "layer", "laye7"}, counts) == {"retreival", "layre"}
    assert typing_errors({"layer"}, counts) == set()


def test_how_many_documents_have_the_words_of_a_query():
    """Of 60 titles all have `layer`, 20 `flow`, none `laminar` or `layre`."""
    titles = ["layer flow"] * 20 + ["layer"] * 40
    found = of_texts("layer", "layer flow", "laminar layer", "layre", titles=titles, texts=titles)
    assert found["with a word that no document has"] == ["2", "3"]
    assert found["with a likely typing error"] == ["3"]
    assert found["whose rarest word is in 20 or more documents"] == ["0", "1"]


def test_titles_of_the_results_stand_for_the_corpus():
    """12 queries, 5 results each: 60 titles, of which every one has `layer` and 5 have `flow`."""
    texts = {str(at): "layer" if at else "layer flow" for at in range(12)}
    testset = TestSet("set", tuple(Query(*each) for each in texts.items()), {name: {"d": 1} for name in texts})
    answers = {
        query: Answer(
            Outcome.ANSWERED, tuple(Hit(f"{query}-{rank}", title=f"the {text}") for rank in range(FEW_DOCUMENTS // 10))
        )
        for query, text in texts.items()
    }
    pair = compare(*(evaluate(testset, Run(name, answers), measures=["RR"]) for name in "AB"))
    named = {each.text: each.members.sum() for each in conditions_of(pair, list(texts), 1, {}, None)}
    assert named["whose rarest word is in 60 documents of the results"] == 11
    fewer = {query: Answer(Outcome.ANSWERED, answer.hits[:4]) for query, answer in answers.items()}  # 48 documents
    pair = compare(*(evaluate(testset, Run(name, fewer), measures=["RR"]) for name in "AB"))
    assert not [each.text for each in conditions_of(pair, list(texts), 1, {}, None) if "rarest" in each.text]


def test_strata_classes_parameters_and_own_columns_are_attributes():
    queries = [
        Query("a", "x", {"type": "how-to"}, {"fuzzy": True}, query_class="prose"),
        Query("b", "x", {"type": "how-to"}, {"fuzzy": False}),
        Query("c", "x", {"type": "{error}"}),
    ]
    found = conditions(queries, columns={"cluster": {"a": 3, "c": 7}, "age": {"a": 1.5}})
    assert found["with type how-to"] == ["a", "b"]
    assert found["with type {error}"] == ["c"]
    assert found["of class prose"] == ["a"]
    assert found["with parameter fuzzy true"] == ["a"]
    assert found["with cluster 3"] == ["a"]
    assert found["with cluster 7"] == ["c"]
    assert found["with age 1.5"] == ["a"]


def test_a_column_of_many_numbers_is_cut_and_one_of_text_is_not():
    queries = [Query(str(at), "x", {"length": str(at * 10)}) for at in range(12)]
    found = conditions(queries, min_size=3)
    assert found["with length 80 or more"] == ["8", "9", "10", "11"]
    mixed = conditions([Query(str(at), "x", {"length": f"{at}m"}) for at in range(12)])
    assert mixed["with length 3m"] == ["3"]


def test_the_number_of_relevant_documents_is_an_attribute():
    queries = tuple(Query(str(at)) for at in range(6))
    grades = {str(at): {f"d{doc}": int(doc <= at) for doc in range(6)} for at in range(6)}
    testset = TestSet("set", queries, grades)
    sides = (evaluate(testset, {str(at): {"d0": 1.0} for at in range(6)}, measures=["RR"], name=name) for name in "AB")
    found: list[Condition] = conditions_of(compare(*sides), [str(at) for at in range(6)], 1, {}, None)
    by_text = {each.text: each.members.tolist() for each in found}
    assert by_text["with 5 or more relevant documents"] == [False] * 4 + [True] * 2
    assert not [text for text in by_text if "judged" in text]  # each has 6
