"""Names of ir_datasets' catalogue, with data sets made here and put into its registry: nothing is fetched."""

import itertools
import subprocess
import sys
from typing import NamedTuple

import ir_datasets
import pytest
from ir_datasets.formats import BaseQrels, BaseQueries, TrecSubQrels, TsvQueries
from ir_datasets.util import Cache, LocalDownload, RequestsDownload

from cranfield.base.errors import TestSetError, UnknownNameError
from cranfield.formats.sniff import read_testset
from cranfield.model import GroupedJudgment, Query

_NAMES = (f"cranfield-test-{n}" for n in itertools.count())


class TopicOnly(NamedTuple):
    query_id: str
    weight: int
    need: str


class OddQueries(BaseQueries):
    """Queries of a class that does not say which of its fields is the text."""

    def queries_iter(self):
        return iter([TopicOnly("1", 3, "what is told apart")])

    def queries_cls(self):
        return TopicOnly


class OddQrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: object


class OddQrels(BaseQrels):
    def qrels_iter(self):
        return iter([OddQrel("1", "d", None)])

    def qrels_cls(self):
        return OddQrel

    def qrels_defs(self):
        return {}


@pytest.fixture
def registered(tmp_path):
    """Put a data set of files into the registry; gives its name."""

    def register(queries="", qrels="", *parts, below=""):
        name = next(_NAMES)
        (tmp_path / "q.tsv").write_text(queries)
        (tmp_path / "qrels").write_text(qrels)
        dataset = ir_datasets.create_dataset(
            queries_tsv=tmp_path / "q.tsv" if queries else None, qrels_trec=tmp_path / "qrels" if qrels else None
        )
        dataset = ir_datasets.Dataset(*dataset._constituents, *parts)
        ir_datasets.registry.register(name, dataset)
        if below:
            ir_datasets.registry.register(f"{name}/{below}", dataset)
        return name

    return register


def test_texts_and_judgments_are_those_of_the_library(registered):
    name = registered("q1\tred shoes\nq2\tboots\n", "q1 0 d1 2\nq1 0 d2 -1\nq2 0 d1 0\n")
    testset = read_testset(f"ir_datasets:{name}")
    assert testset.name == name
    assert testset.queries == (Query("q1", "red shoes"), Query("q2", "boots"))
    assert testset.grades == {"q1": {"d1": 2, "d2": -1}, "q2": {"d1": 0}}
    assert tuple(map(str, testset.notes)) == ()


def test_what_is_left_out_or_chosen_is_said(registered):
    name = registered("q1\tred shoes\nq2\tboots\n", "q1 0 d1 1\nq1 1 d1 3\nq1 2 d1 2\nq9 0 d1 1\n")
    testset = read_testset(f"ir_datasets:{name}")
    assert testset.queries == (Query("q1", "red shoes"), Query("q9"))
    assert testset.grades == {"q1": {"d1": 3}, "q9": {"d1": 1}}
    assert tuple(map(str, testset.notes)) == (
        "1 unjudged query, left out",
        "1 judged query without a text",
        "2 judgments that contradict an earlier one: the highest grade is used",
    )


def test_judgments_by_subtopic_are_groups(registered, tmp_path):
    (tmp_path / "sub").write_text("q1 a d1 1\nq1 b d1 2\n")
    name = registered("q1\tx\n", "", TrecSubQrels(LocalDownload(tmp_path / "sub"), {}))
    testset = read_testset(f"ir_datasets:{name}")
    assert testset.grouping == "subtopic"
    assert testset.groups == {"q1": (GroupedJudgment("d1", "a", 1), GroupedJudgment("d1", "b", 2))}
    assert testset.grades == {"q1": {"d1": 2}}


def test_a_query_class_that_names_no_text_gives_its_first_text(registered):
    name = registered("", "1 0 d 1\n", OddQueries())
    assert read_testset(f"ir_datasets:{name}").queries == (Query("1", "what is told apart"),)


def test_a_judgment_that_is_no_number_is_an_error(registered):
    name = registered("1\tx\n", "", OddQrels())
    with pytest.raises(TestSetError, match=r"query '1', document 'd': the grade is not a finite number; .* got None"):
        read_testset(f"ir_datasets:{name}")


def test_a_data_set_without_judgments_names_those_below_it(registered):
    name = registered("q1\tx\n", below="test")
    with pytest.raises(TestSetError) as caught:
        read_testset(f"ir_datasets:{name}")
    assert str(caught.value) == (
        f"ir_datasets:{name}: '{name}' has no judgments; expected a data set with queries and judgments.\n"
        f"Hint: below it: {name}/test."
    )


def test_an_unknown_name_is_an_error_with_the_nearest_one():
    with pytest.raises(UnknownNameError, match=r"unknown ir_datasets name 'cranfeild'.*\nHint: did you mean cranfield"):
        read_testset("ir_datasets:cranfeild")


def test_data_that_cannot_be_fetched_are_named_with_their_address(registered, tmp_path, monkeypatch):
    monkeypatch.setenv("IR_DATASETS_DL_TRIES", "1")
    download = Cache(RequestsDownload("http://127.0.0.1:9/queries.tsv"), tmp_path / "fetched.tsv")
    name = registered("", "q1 0 d1 1\n", TsvQueries(download))
    with pytest.raises(TestSetError) as caught:
        read_testset(f"ir_datasets:{name}")
    assert str(caught.value) == (
        f"ir_datasets:{name}: the data of '{name}' could not be fetched from http://127.0.0.1:9/queries.tsv.\n"
        "Hint: ir_datasets downloads them from their owners; see its documentation for the requirements."
    )


def test_data_that_are_not_where_they_should_be_are_named(registered, tmp_path):
    name = registered("", "q1 0 d1 1\n", TsvQueries(LocalDownload(tmp_path / "missing.tsv")))
    with pytest.raises(TestSetError, match="could not be fetched or read: '/"):
        read_testset(f"ir_datasets:{name}")


def test_without_the_library_the_extra_is_named():
    code = (
        "import sys; sys.modules['ir_datasets'] = None\n"
        "from cranfield.base import errors\nfrom cranfield.formats.sniff import read_testset\n"
        "try: read_testset('ir_datasets:cranfield')\nexcept errors.MissingExtraError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "ir_datasets:cranfield needs an extra that is not installed" in said
    assert "pip install 'cranfield[datasets]'" in said
