"""Files of other tools are told by their content, each as one format; and nothing else is taken for one of theirs."""

from pathlib import Path

import pytest

from cranfield import evaluate
from cranfield.formats.registry import HEAD_BYTES, OTHER_TOOLS, Head, top_keys
from cranfield.formats.sniff import FORMATS, read_testset

SAMPLES = {
    "quepid-csv": [
        b"query,docid,rating\na,1,2\n",
        b"\nquery,docid,rating\na,1,2",
        b"\xef\xbb\xbfquery,docid,rating\r\na,1,2\r\n",
        b"Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating\nt,c,1,a,1,1,x,2\n",
        b"Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating,genre\nt,c,1,a,1,1,x,2,y\n",
    ],
    "quepid-ltr": [
        b"\n3 qid:1 # 1370 star trek\n",
        b"0    qid:2 #    9755 star trek\n",
        b"2 qid:1 1:0.5 2:0.1 #docid = d1\n",
    ],
    "quepid-book": [b'{"name": "b", "query_doc_pairs": [{"query_text": "a", "doc_id": "1"}]}'],
    "searchtweak": [b"grade,keyword,doc\n0.33,a,d\n"],
    "opensearch": [
        b'{"judgmentRatings": [{"query": "a", "ratings": []}]}',
        b'{"hits": {"hits": [{"_source": {"judgmentRatings": [{"query": "a", "ratings": []}]}}]}}',
    ],
    "rank-eval": [b'{"requests": [{"id": "a", "ratings": [{"_index": "i", "_id": "d", "rating": 1}]}]}'],
    "rre": [
        b'{"index": "i", "topics": [{"query_groups": [{"queries": [{"placeholders": {"$query": "a"}}]}]}]}',
        b'{"query_groups": [{"queries": [{"placeholders": {"$query": "a"}}]}]}',
        b'{"queries": [{"placeholders": {"$query": "a"}, "relevant_documents": {"1": ["d"]}}]}',
    ],
    "llama-index": [b'{"queries": {"a": "what"}, "corpus": {}, "relevant_docs": {"a": ["n"]}, "mode": "text"}'],
    "samples": [
        b'[{"input": "a", "context": ["c"], "retrieval_context": ["d"]}]',
        b'{"user_input": "a", "reference_contexts": []}\n',
    ],
    "documents": [
        b'{"question": "a", "documents": [{"page_content": "t", "metadata": {"source": "a.md"}}]}\n',
        b'{"a": [[{"content": "t", "meta": {"source": "a.md"}}, 0.5]]}',
    ],
    "json": [b'{"a": {}, "b": {"d": 1}}', b'{"a": ["d", "e"]}', b'{"a": [["d", 1.5]]}', b'{"a": [42, 3]}'],
    "msmarco": [b"a\td\t1\n", b"a d 1\na e 2\n"],
}
"""Format to the beginnings of its files."""
SAME_FILES = {"samples": ["samples-run"], "json": ["json-run"]}
"""Formats of test sets whose files may be runs too."""

OTHERS = [
    b'{"cranfield_testset": 1, "name": "query_doc_pairs", "queries": [{"id": "a", "text": "\\"placeholders\\": judgmentRatings"}]}',
    b'{"cranfield_testset": 1, "queries": [{"id": "a", "strata": {"ratings": "x", "requests": "y"}}]}',
    b"cranfield_testset: 1\nname: query,docid,rating\nqueries: []\n",
    b"1 0 d1 1\n1 0 d2 0\n",
    b"1 Q0 d1 1 0.5 tag\n",
    b'{"cranfield_run":1}\n',
    b"query_id,doc_id,grade\na,d,1\n",
    b"query,docid,grade\na,d,1\n",
    b"grade,keyword,doc,position\n1,a,d,1\n",
    b"Query Text,Doc ID,Doc Position\na,1,1\n",
    b"3 qid:1 1:0.5 2:0.1\n",
    b'[{"judgmentRatings": []}]',
    b'{"querySetQueries": [{"queryText": "a"}]}',
    b'{"requests": [{"id": "a"}]}',
    b"",
]
"""Files of somebody else, some of which hold the words that tell a tool's."""


def claimed(data, path=Path("x")):
    return [entry.name for entry in OTHER_TOOLS if entry.fits(Head(data.removeprefix(b"\xef\xbb\xbf"), path))]


@pytest.mark.parametrize(
    ("name", "data"),
    [(name, data) for name, samples in SAMPLES.items() for data in samples],
    ids=lambda value: str(value)[:24],
)
def test_a_file_is_told_as_one_format_and_read(tmp_path, name, data):
    assert claimed(data) == [name, *SAME_FILES.get(name, [])]
    first = next(
        entry.name for entry in FORMATS.values() if entry.fits(Head(data.removeprefix(b"\xef\xbb\xbf"), Path("x")))
    )
    assert first == name
    path = tmp_path / "file"
    path.write_bytes(data)
    if FORMATS[name].kind == "run":
        assert evaluate({"a": {"d": 1}}, path).run_digest == evaluate({"a": {"d": 1}}, path, run_format=name).run_digest
    elif b"[]" not in data and b'[["d"' not in data:  # without a reference context, or with scores, it is a run alone
        assert read_testset(path).digest == read_testset(path, name).digest


@pytest.mark.parametrize("data", OTHERS, ids=lambda value: str(value)[:24])
def test_a_file_of_somebody_else_is_left_alone(data):
    assert claimed(data) == []


def test_a_name_of_the_catalogue_is_no_file():
    assert claimed(b"", Path("ir_datasets:beir/scifact/test")) == ["ir_datasets"]
    assert claimed(b"x", Path("ir_datasets:x")) == []
    hub = FORMATS["huggingface"]
    assert hub.fits(Head(b"", Path("hf:mteb/scifact:dev")))
    assert not hub.fits(Head(b"x", Path("hf:x")))


def test_real_files_of_other_kinds_are_left_alone(shared_data):
    files = [path for path in sorted(shared_data.rglob("*")) if path.is_file()]
    assert len(files) > 10
    taken = {}
    for path in files:
        with path.open("rb") as stream:
            if found := claimed(stream.read(HEAD_BYTES), path):
                taken[path.name] = found
    assert taken == {}


def test_every_row_names_its_source_and_what_it_holds():
    assert [entry.name for entry in OTHER_TOOLS if "github.com/" not in entry.source] == []
    assert [entry.name for entry in OTHER_TOOLS if entry.writer and "grades" not in entry.holds] == []
    same = {name for names in SAME_FILES.values() for name in names}
    elsewhere = {"huggingface", "ir_datasets", "quepid-book-csv", "label-studio", "argilla"}  # see test_annotations
    assert set(SAMPLES) == {entry.name for entry in OTHER_TOOLS} - same - elsewhere


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b' {"a": {"b": 1}, "c\\"d" : [{"e": "f"}], "g', {"a", 'c\\"d'}),
        (b'{"a": "{", "b": "x: {}"}', {"a", "b"}),
        (b'["a"]', set()),
        (b"a: 1", set()),
    ],
)
def test_only_keys_at_the_top_tell_a_json_file(data, keys):
    assert top_keys(data) == keys
