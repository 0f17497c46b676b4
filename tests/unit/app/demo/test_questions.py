"""The demo's test set: it reads, it has what it promises, and its judgments are true of the running Python.

Where a rule says what counts (D: a part of a name), the rule is written here and the lists are derived again; a list
that has too few or too many fails. Where a predicate does (H: an attribute), the lists are here, written by hand.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from contextlib import closing

import pytest

from cranfield.app.demo.build import QUESTIONS, DemoFiles
from cranfield.app.demo.entity import Corpus
from cranfield.app.demo.search import confidence, identifier_parts, open_read_only
from cranfield.formats.testsets.native import read_testset_yaml
from cranfield.model import LETTERS, Negative, Pattern, Predicate, Query, TestSet
from cranfield.systems.predicates.databases import ask

COUNTS = {"A": 30, "B": 20, "C": 15, "D": 20, "E": 30, "F": 25, "G": 15, "H": 15, "N": 18}

DATETIME_MOVED = "3.12 moved the Python source of datetime to _pydatetime.py"
PATHLIB_MOVED = "3.13 made pathlib a package"
RESOURCES_MOVED = "3.13 replaced the deprecated functions of importlib.resources by new ones of the same name"
VERSION_DEPENDENT = {
    **{
        f"{file}::{name}": DATETIME_MOVED
        for file in ("datetime.py", "_pydatetime.py")
        for name in (
            "datetime.now",
            "datetime.utcnow",
            "datetime.fromtimestamp",
            "datetime.utcfromtimestamp",
            "datetime.astimezone",
            "tzinfo",
            "tzinfo.fromutc",
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


def judged_ids(testset: TestSet) -> set[str]:
    """Every id that a judgment, a legacy form or a hand-written list names."""
    named = {entity_id for grades in testset.grades.values() for entity_id in grades}
    named |= {entity_id for legacy in testset.legacy.values() for entity_id in legacy.ids}
    return named | {entity_id for ids in ATTRIBUTES.values() for entity_id in ids}


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
        assert set(query.strata) == {"class", "difficulty"}, query.id
        assert query.query_class == LETTERS[query.strata["class"]]
        assert query.strata["difficulty"] in {"easy", "medium", "hard"}


def test_every_query_has_an_answer_and_grades_are_0_1_or_2(testset: TestSet) -> None:
    for query in testset.queries:
        if query.negative is not None:
            continue
        grades = list(testset.grades.get(query.id, {}).values())
        grades += [target.grade for target in testset.targets.get(query.id, ())]
        assert 2 in grades, query.id
        assert set(grades) <= {0, 1, 2}, query.id


def test_every_judged_entity_exists_or_depends_on_the_version(testset: TestSet, corpus: Corpus) -> None:
    judged = judged_ids(testset)
    assert sorted(judged - set(corpus.by_id) - set(VERSION_DEPENDENT)) == []


def test_no_version_dependent_id_is_listed_in_vain(testset: TestSet) -> None:
    judged = judged_ids(testset)
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
        assert isinstance(pattern, Pattern)
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
        spellings = testset.legacy[query.id].ids
        assert all(grades[entity_id] < 2 for entity_id in spellings), query.id
        assert sum(entity_id in corpus for entity_id in spellings) == 1, query.id
        assert {grades[entity_id] for entity_id in spellings} <= {0, 1}


def test_the_corpus_itself_calls_some_of_the_legacy_forms_deprecated(testset: TestSet, corpus: Corpus) -> None:
    """No more than a check that the pairs are not the wrong way round: the modern forms are never deprecated."""
    queries = of_class(testset, "E")
    modern = {i for query in queries for i, grade in testset.grades[query.id].items() if grade == 2 and i in corpus}
    legacy = {i for query in queries for i in testset.legacy[query.id].ids if i in corpus}
    assert [entity_id for entity_id in modern if corpus.by_id[entity_id].is_deprecated] == []
    assert sum(corpus.by_id[entity_id].is_deprecated for entity_id in legacy) >= 6


def source_of(testset: TestSet, entity_id: str) -> str:
    return next(source.name for source in testset.sources if re.search(source.pattern, entity_id))


def test_every_entity_is_of_the_source_of_its_kind(testset: TestSet, corpus: Corpus) -> None:
    assert [source.name for source in testset.sources] == ["topics", "module", "api"]
    kinds = {"topic": "topics", "module": "module"}
    assert [entity.id for entity in corpus if source_of(testset, entity.id) != kinds.get(entity.kind, "api")] == []


def test_the_first_source_that_answers_is_graded_best_and_another_source_speaks_of_it_too(testset: TestSet) -> None:
    order = [source.name for source in testset.sources]
    first_of_all = Counter()
    for query in of_class(testset, "F"):
        grades = testset.grades[query.id]
        first = min((source_of(testset, i) for i, grade in grades.items() if grade > 0), key=order.index)
        assert {grade for i, grade in grades.items() if source_of(testset, i) == first and grade > 1} == {2}, query.id
        assert len({source_of(testset, entity_id) for entity_id in grades}) > 1, query.id
        first_of_all[first] += 1
    assert first_of_all == {"topics": 19, "module": 6}


def test_prose_has_several_answers_and_does_not_name_them(testset: TestSet, corpus: Corpus) -> None:
    for query in of_class(testset, "G"):
        best = [i for i, grade in testset.grades[query.id].items() if grade == 2 and i in corpus]
        assert len(best) >= 2, query.id
        assert len(query.text.split()) >= 5
        names = {corpus.by_id[entity_id].name.lower() for entity_id in best}
        # `wait` and `start` are plain words of the sentence as well as names.
        assert names & set(query.text.lower().split()) <= {"wait", "start"}, query.id


ATTRIBUTES = {
    "H01": (
        "asyncio/streams.py::StreamReader.read",
        "asyncio/streams.py::StreamReader.readexactly",
        "asyncio/streams.py::StreamReader.readline",
        "asyncio/streams.py::StreamReader.readuntil",
        "asyncio/streams.py::StreamWriter.drain",
        "asyncio/streams.py::StreamWriter.start_tls",
        "asyncio/streams.py::StreamWriter.wait_closed",
        "asyncio/streams.py::open_connection",
        "asyncio/streams.py::open_unix_connection",
        "asyncio/streams.py::start_server",
        "asyncio/streams.py::start_unix_server",
    ),
    "H02": (
        "asyncio/locks.py::Barrier.abort",
        "asyncio/locks.py::Barrier.reset",
        "asyncio/locks.py::Barrier.wait",
        "asyncio/locks.py::Condition.wait",
        "asyncio/locks.py::Condition.wait_for",
        "asyncio/locks.py::Event.wait",
        "asyncio/locks.py::Lock.acquire",
        "asyncio/locks.py::Semaphore.acquire",
    ),
    "H03": (
        "ast.py::iter_child_nodes",
        "ast.py::iter_fields",
        "ast.py::walk",
    ),
    "H04": (
        "urllib/parse.py::parse_qs",
        "urllib/parse.py::parse_qsl",
        "urllib/parse.py::quote",
        "urllib/parse.py::quote_plus",
        "urllib/parse.py::unquote",
        "urllib/parse.py::unquote_plus",
        "urllib/parse.py::urlencode",
    ),
    "H05": (
        "subprocess.py::Popen.communicate",
        "subprocess.py::Popen.wait",
        "subprocess.py::call",
        "subprocess.py::check_output",
        "subprocess.py::run",
    ),
    "H06": (
        "heapq.py::merge",
        "heapq.py::nlargest",
        "heapq.py::nsmallest",
    ),
    "H07": (
        "typing.py::SupportsAbs",
        "typing.py::SupportsBytes",
        "typing.py::SupportsComplex",
        "typing.py::SupportsFloat",
        "typing.py::SupportsIndex",
        "typing.py::SupportsInt",
        "typing.py::SupportsRound",
    ),
    "H08": (
        "selectors.py::BaseSelector.get_map",
        "selectors.py::BaseSelector.register",
        "selectors.py::BaseSelector.select",
        "selectors.py::BaseSelector.unregister",
    ),
    "H09": (
        "threading.py::Condition.notifyAll",
        "threading.py::Event.isSet",
        "threading.py::Thread.getName",
        "threading.py::Thread.isDaemon",
        "threading.py::Thread.setDaemon",
        "threading.py::Thread.setName",
        "threading.py::activeCount",
        "threading.py::currentThread",
    ),
    "H10": (
        "urllib/parse.py::splitattr",
        "urllib/parse.py::splithost",
        "urllib/parse.py::splitnport",
        "urllib/parse.py::splitpasswd",
        "urllib/parse.py::splitport",
        "urllib/parse.py::splitquery",
        "urllib/parse.py::splittag",
        "urllib/parse.py::splittype",
        "urllib/parse.py::splituser",
        "urllib/parse.py::splitvalue",
        "urllib/parse.py::to_bytes",
    ),
    "H11": (
        "configparser.py::DuplicateOptionError",
        "configparser.py::DuplicateSectionError",
        "configparser.py::Error",
        "configparser.py::InterpolationDepthError",
        "configparser.py::InterpolationError",
        "configparser.py::InterpolationMissingOptionError",
        "configparser.py::InterpolationSyntaxError",
        "configparser.py::MissingSectionHeaderError",
        "configparser.py::MultilineContinuationError",
        "configparser.py::NoOptionError",
        "configparser.py::NoSectionError",
        "configparser.py::ParsingError",
    ),
    "H12": (
        "tempfile.py::SpooledTemporaryFile",
        "tempfile.py::TemporaryDirectory",
    ),
    "H13": (
        "logging/__init__.py::NullHandler",
        "logging/__init__.py::StreamHandler",
        "logging/handlers.py::BufferingHandler",
        "logging/handlers.py::HTTPHandler",
        "logging/handlers.py::NTEventLogHandler",
        "logging/handlers.py::QueueHandler",
        "logging/handlers.py::SMTPHandler",
        "logging/handlers.py::SocketHandler",
        "logging/handlers.py::SysLogHandler",
    ),
    "H14": (
        "os.py::fwalk",
        "os::access",
        "os::chmod",
        "os::chown",
        "os::lstat",
        "os::mkdir",
        "os::mkfifo",
        "os::mknod",
        "os::open",
        "os::readlink",
        "os::remove",
        "os::rmdir",
        "os::stat",
        "os::symlink",
        "os::unlink",
        "os::utime",
    ),
    "H15": (
        "ipaddress.py::IPv4Address.ipv6_mapped",
        "ipaddress.py::IPv4Address.is_global",
        "ipaddress.py::IPv4Address.is_link_local",
        "ipaddress.py::IPv4Address.is_loopback",
        "ipaddress.py::IPv4Address.is_multicast",
        "ipaddress.py::IPv4Address.is_private",
        "ipaddress.py::IPv4Address.is_reserved",
        "ipaddress.py::IPv4Address.is_unspecified",
        "ipaddress.py::IPv4Address.packed",
    ),
}
"""What counts for each query of class H: written by hand, to be found again by its predicate."""


@pytest.fixture(scope="module")
def asked(built_demo: DemoFiles) -> TestSet:
    """The written test set, its database asked."""
    return ask(read_testset_yaml(built_demo.testset), built_demo.folder)


@pytest.mark.parametrize("query_id", ATTRIBUTES)
def test_a_predicate_names_everything_that_has_the_attribute_and_nothing_else(
    asked: TestSet, corpus: Corpus, query_id: str
) -> None:
    (predicate,) = asked.targets[query_id]
    assert isinstance(predicate, Predicate)
    assert predicate.ids == tuple(sorted(entity_id for entity_id in ATTRIBUTES[query_id] if entity_id in corpus))
    assert len(predicate.ids) >= 2
    assert predicate.grade == 2


def test_every_attribute_query_is_judged_by_a_predicate(testset: TestSet) -> None:
    assert set(ATTRIBUTES) == {query.id for query in of_class(testset, "H")}
    assert set(ATTRIBUTES) & set(testset.grades) == set()


def test_what_nothing_answers_is_declared_and_names_nothing_of_the_library(testset: TestSet, corpus: Corpus) -> None:
    titles = {entity.qualname.lower() for entity in corpus}
    for query in of_class(testset, "N"):
        assert query.negative == Negative(0.5, "confidence"), query.id
        assert query.text.lower() not in titles
    assert [query.id for query in testset.queries if query.negative is not None] == [
        query.id for query in of_class(testset, "N")
    ]


def test_the_confidence_is_of_what_the_best_result_holds(built_demo: DemoFiles) -> None:
    """All of its own name, none of a word that nothing holds, and of the two together the part of the commoner word."""
    with closing(open_read_only(str(built_demo.databases[0]))) as connection:
        sure = {
            text: confidence(connection, text, "json/decoder.py::JSONDecoder")
            for text in ("JSONDecoder", "zzyzx", "JSONDecoder zzyzx")
        }
        ((n_entities,),) = connection.execute("SELECT count(*) FROM entity")
        ((n_holding,),) = connection.execute("SELECT count(*) FROM everything WHERE everything MATCH '\"jsondecoder\"'")
    assert sure["JSONDecoder"] == 1
    assert sure["zzyzx"] == 0
    known, unknown = math.log(1 + n_entities / n_holding), math.log(1 + n_entities / 0.5)
    assert sure["JSONDecoder zzyzx"] == pytest.approx(known / (known + unknown), abs=1e-6)
