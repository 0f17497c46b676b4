"""The demo's test set: it reads, it has what it promises, and its judgments are true of the running Python.

Where a rule says what counts (D: a part of a name, H: an attribute), the rule is written here and the lists are derived
again; a list that has too few or too many fails.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing

import pytest

from cranfield.demo.build import QUESTIONS, DemoFiles
from cranfield.demo.entity import Corpus
from cranfield.demo.search import identifier_parts, open_read_only
from cranfield.formats.testset_yaml import read_testset_yaml
from cranfield.model import Query, TestSet

COUNTS = {"A": 30, "B": 20, "C": 15, "D": 20, "E": 30, "F": 25, "G": 15, "H": 15}

DATETIME_MOVED = "3.12 moved the Python source of datetime to _pydatetime.py"
PATHLIB_MOVED = "3.13 made pathlib a package"
RESOURCES_MOVED = "3.13 replaced the deprecated functions of importlib.resources by new ones of the same name"
VERSION_DEPENDENT = {
    **{
        f"{file}::{name}": DATETIME_MOVED
        for file in ("datetime.py", "_pydatetime.py")
        for name in (
            *("datetime.now", "datetime.utcnow", "datetime.fromtimestamp", "datetime.utcfromtimestamp"),
            *("datetime.astimezone", "tzinfo", "tzinfo.fromutc"),
        )
    },
    **{f"{file}::Path.open": PATHLIB_MOVED for file in ("pathlib.py", "pathlib/_local.py")},
    **{
        f"importlib/resources/{file}.py::{name}": RESOURCES_MOVED
        for file in ("_legacy", "_functional")
        for name in ("read_binary", "read_text")
    },
    "io::IncrementalNewlineDecoder": "early 3.11 did not list it in io.__all__",
    "nntplib.py::NNTPTemporaryError": "3.13 removed nntplib",
    "configparser.py::LegacyInterpolation": "3.13 removed it",
    "configparser.py::MultilineContinuationError": "new in 3.13",
    "datetime.py::IsoCalendarDate": "3.12 made it private",
    "socketserver.py::ForkingUnixDatagramServer": "new in 3.12",
    "ipaddress.py::IPv4Address.ipv6_mapped": "new in 3.13",
}
"""Judged ids that some supported Python lacks, and why."""


@pytest.fixture(scope="module")
def testset() -> TestSet:
    return read_testset_yaml(QUESTIONS)


def of_class(testset: TestSet, name: str) -> list[Query]:
    return [query for query in testset.queries if query.strata["class"] == name]


def here(testset: TestSet, query: Query, corpus: Corpus) -> set[str]:
    return {entity_id for entity_id in testset.grades[query.id] if entity_id in corpus}


def test_every_class_has_its_number_of_queries(testset: TestSet) -> None:
    assert Counter(query.strata["class"] for query in testset.queries) == COUNTS
    assert COUNTS["A"] + COUNTS["B"] >= 50


def test_ids_number_the_queries_of_a_class(testset: TestSet) -> None:
    assert list(testset.query_ids) == [f"{name}{i:02}" for name, count in COUNTS.items() for i in range(1, count + 1)]


def test_no_text_is_asked_twice(testset: TestSet) -> None:
    texts = Counter(query.text.lower() for query in testset.queries)
    assert [text for text, count in texts.items() if count > 1] == []


def test_strata_are_the_ones_described(testset: TestSet) -> None:
    for query in testset.queries:
        extra = {"E": {"legacy"}, "F": {"authority"}}.get(query.strata["class"], set())
        assert set(query.strata) == {"class", "difficulty"} | extra, query.id
        assert query.strata["difficulty"] in {"easy", "medium", "hard"}


def test_every_query_has_an_answer_and_grades_are_0_1_or_2(testset: TestSet) -> None:
    for query in testset.queries:
        grades = list(testset.grades.get(query.id, {}).values())
        grades += [pattern.grade for pattern in testset.targets.get(query.id, ())]
        assert 2 in grades, query.id
        assert set(grades) <= {0, 1, 2}, query.id


def test_every_judged_entity_exists_or_depends_on_the_version(testset: TestSet, corpus: Corpus) -> None:
    judged = {entity_id for grades in testset.grades.values() for entity_id in grades}
    assert sorted(judged - set(corpus.by_id) - set(VERSION_DEPENDENT)) == []


def test_no_version_dependent_id_is_listed_in_vain(testset: TestSet) -> None:
    judged = {entity_id for grades in testset.grades.values() for entity_id in grades}
    assert sorted(set(VERSION_DEPENDENT) - judged) == []


def test_the_answer_to_a_canonical_lookup_bears_the_name_that_was_asked_for(testset: TestSet, corpus: Corpus) -> None:
    for query in of_class(testset, "A"):
        best = [entity_id for entity_id, grade in testset.grades[query.id].items() if grade == 2]
        assert len(best) == 1, query.id
        words = re.split(r"[\s.]+", query.text)
        assert corpus.by_id[best[0]].name in words, query.id


def test_the_root_of_a_module_is_one_module(testset: TestSet, corpus: Corpus) -> None:
    for query in of_class(testset, "B"):
        (pattern,) = testset.targets[query.id]
        matched = [entity for entity in corpus if re.search(pattern.regex, entity.id)]
        assert [entity.kind for entity in matched] == ["module"], query.id
        assert matched[0].qualname in query.text, query.id


def test_an_acronym_is_not_the_name_of_what_it_stands_for(testset: TestSet, corpus: Corpus) -> None:
    differ = [
        query.id
        for query in of_class(testset, "C")
        if not any(corpus.by_id[i].name == query.text for i, grade in testset.grades[query.id].items() if grade == 2)
    ]
    # mmap is its own name; it stands for memory mapping, which no text of the library says.
    assert {query.id for query in of_class(testset, "C")} - set(differ) == {"C05"}


def has_part(name: str, fragment: str) -> bool:
    """True when a name has `fragment` as one of its capitalised parts: `JSONDecoder`, not `decode` or `Decoders`."""
    return fragment in name and fragment.lower() in identifier_parts(name)


def test_fragments_list_every_class_and_function_whose_name_has_them(testset: TestSet, corpus: Corpus) -> None:
    for query in of_class(testset, "D"):
        derived = {
            entity.id
            for entity in corpus
            if entity.kind in {"class", "function"}
            and "." not in entity.id.partition("::")[2]
            and has_part(entity.name, query.text)
        }
        assert here(testset, query, corpus) == derived, query.id
        assert set(testset.grades[query.id].values()) == {2}
        assert len(derived) >= 2


def test_the_rule_for_fragments_can_fail() -> None:
    assert has_part("JSONDecoder", "Decoder")
    assert not has_part("decoder", "Decoder")
    assert not has_part("DecoderBase2x", "Base2")
    assert not has_part("Decoders", "Decoder")


def test_legacy_forms_are_judged_lower_than_modern_ones(testset: TestSet, corpus: Corpus) -> None:
    for query in of_class(testset, "E"):
        grades = testset.grades[query.id]
        spellings = query.strata["legacy"].split()
        assert all(grades[entity_id] < 2 for entity_id in spellings), query.id
        assert sum(entity_id in corpus for entity_id in spellings) == 1, query.id
        assert {grades[entity_id] for entity_id in spellings} <= {0, 1}


def test_the_corpus_itself_calls_some_of_the_legacy_forms_deprecated(testset: TestSet, corpus: Corpus) -> None:
    """No more than a check that the pairs are not the wrong way round: the modern forms are never deprecated."""
    queries = of_class(testset, "E")
    modern = {i for query in queries for i, grade in testset.grades[query.id].items() if grade == 2 and i in corpus}
    legacy = {i for query in queries for i in query.strata["legacy"].split() if i in corpus}
    assert [entity_id for entity_id in modern if corpus.by_id[entity_id].is_deprecated] == []
    assert sum(corpus.by_id[entity_id].is_deprecated for entity_id in legacy) >= 6


def source_of(entity_id: str) -> str:
    if entity_id.startswith("topics::"):
        return "topics"
    return "api" if "::" in entity_id else "module"


def test_the_best_grade_belongs_to_the_source_of_authority_and_another_source_speaks_of_it_too(
    testset: TestSet,
) -> None:
    sources_of_all = Counter()
    for query in of_class(testset, "F"):
        grades = testset.grades[query.id]
        assert {source_of(i) for i, grade in grades.items() if grade == 2} == {query.strata["authority"]}, query.id
        assert len({source_of(entity_id) for entity_id in grades}) > 1, query.id
        sources_of_all[query.strata["authority"]] += 1
    assert set(sources_of_all) == {"topics", "module", "api"}


def test_prose_has_several_answers_and_does_not_name_them(testset: TestSet, corpus: Corpus) -> None:
    for query in of_class(testset, "G"):
        best = [i for i, grade in testset.grades[query.id].items() if grade == 2 and i in corpus]
        assert len(best) >= 2, query.id
        assert len(query.text.split()) >= 5
        names = {corpus.by_id[entity_id].name.lower() for entity_id in best}
        # `wait` and `start` are plain words of the sentence as well as names.
        assert names & set(query.text.lower().split()) <= {"wait", "start"}, query.id


ATTRIBUTES = {
    "H01": "module = 'asyncio.streams' AND is_async",
    "H02": "module = 'asyncio.locks' AND is_async",
    "H03": "module = 'ast' AND is_generator",
    "H04": "module = 'urllib.parse' AND kind = 'function' AND ' ' || parameters || ' ' LIKE '% encoding %'",
    "H05": "module = 'subprocess' AND kind IN ('function', 'method') AND ' ' || parameters || ' ' LIKE '% timeout %'",
    "H06": "module = 'heapq' AND ' ' || parameters || ' ' LIKE '% key %'",
    "H07": "module = 'typing' AND kind = 'class' AND ' ' || decorators || ' ' LIKE '% runtime\\_checkable %' ESCAPE '\\'",
    "H08": "module = 'selectors' AND decorators LIKE '%abstractmethod%'",
    "H09": "module = 'threading' AND is_deprecated",
    "H10": "module = 'urllib.parse' AND is_deprecated",
    "H11": "module = 'configparser' AND kind = 'class' AND (bases LIKE '%Error' OR bases = 'Exception')",
    "H12": "module = 'tempfile' AND is_context_manager",
    "H13": "module LIKE 'logging%' AND kind = 'class' AND bases IN ('Handler', 'logging.Handler')",
    "H14": "module = 'os' AND ' ' || parameters || ' ' LIKE '% dir\\_fd %' ESCAPE '\\'",
    "H15": "id LIKE 'ipaddress.py::IPv4Address.%' AND kind = 'property'",
}
"""What counts for each query of class H, as a filter over the table `entity` of the demo's databases."""


@pytest.mark.parametrize("query_id", ATTRIBUTES)
def test_attributes_list_everything_that_has_them(
    testset: TestSet, corpus: Corpus, demo: DemoFiles, query_id: str
) -> None:
    with closing(open_read_only(str(demo.databases[0]))) as connection:
        derived = {row[0] for row in connection.execute(f"SELECT id FROM entity WHERE {ATTRIBUTES[query_id]}")}
    assert here(testset, testset.by_id[query_id], corpus) == derived
    assert set(testset.grades[query_id].values()) == {2}
    assert len(derived) >= 2


def test_every_attribute_query_has_its_rule(testset: TestSet) -> None:
    assert set(ATTRIBUTES) == {query.id for query in of_class(testset, "H")}
