"""Files that people show in reports of other tools: read as what they are, on both sides of an evaluation."""

import json
from pathlib import Path
from types import SimpleNamespace

import cbor2
import lz4.frame
import openpyxl
import pytest

from cranfield import evaluate, load
from cranfield.base.errors import CranfieldError
from cranfield.formats.sniff import read_testset, sniff_run


def put(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def by_query(testset: object, run: object, measure: str) -> dict[str, float | None]:
    evaluation = evaluate(testset, run, measures=[measure])
    return {query_id: evaluation.value(measure, query_id) for query_id in evaluation.query_ids}


QRELS = {"q1": {"d5": 1}, "q2": {"q1": 1}}
RUN = {"q1": {"d5": 3.2, "zz": 9.1}, "q2": {"q1": 1.0}}
RR = {"q1": 0.5, "q2": 1.0}  # zz (9.1) stands before d5 (3.2): 1/2; the one result is right: 1/1


def test_json_dicts_are_judgments_and_runs(tmp_path: Path) -> None:
    qrels, run = put(tmp_path / "qrels.json", json.dumps(QRELS)), put(tmp_path / "run.json", json.dumps(RUN, indent=2))
    assert by_query(qrels, run, "RR") == RR
    lists = put(tmp_path / "lists.json", '{"q1": ["zz", "d5"], "q2": [["q1", 1.0]]}')
    assert by_query(qrels, lists, "RR") == RR


def test_ranx_lz4_is_packed_cbor_and_plain_lz4_is_what_it_holds(tmp_path: Path) -> None:
    packed = tmp_path / "run.lz4"
    packed.write_bytes(lz4.frame.compress(lz4.frame.compress(cbor2.dumps(RUN))))  # as ranx.io.save_lz4
    assert by_query(QRELS, packed, "RR") == RR
    once = tmp_path / "qrels.lz4"
    once.write_bytes(lz4.frame.compress(json.dumps(QRELS).encode()))
    assert read_testset(once).grades == QRELS
    once.write_bytes(once.read_bytes()[:-9])
    with pytest.raises(CranfieldError, match=r"qrels.lz4: the LZ4 data are damaged or cut short"):
        read_testset(once)


def test_sets_and_lists_of_ids_are_judgments_of_grade_1_and_pairs_are_ids_with_scores() -> None:
    testset = load({"q1": {"d1", "d2"}, "q2": ["d3"]})
    assert testset.grades == {"q1": {"d1": 1.0, "d2": 1.0}, "q2": {"d3": 1.0}}
    run = {"q1": [("d1", 3.0), ("d9", 2.0)], "q2": ["d8", "d3"]}
    assert by_query(testset, run, "RR") == {"q1": 1.0, "q2": 0.5}
    assert by_query(testset, run, "R@2") == {"q1": 0.5, "q2": 1.0}  # one of two; one of one
    assert by_query({"q": [1, 2]}, {"q": [7, 1]}, "RR") == {"q": 0.5}


def test_msmarco_runs_are_queries_documents_and_ranks(tmp_path: Path) -> None:
    run = put(tmp_path / "run.tsv", "q1\tzz\t1\nq1\td5\t2\nq2\tq1\t1\n")
    assert by_query(QRELS, run, "RR@10") == RR
    wrong = put(tmp_path / "wrong.tsv", "q1\tzz\t1\nq1\td5\t1\nq2\tq1\n")
    with pytest.raises(CranfieldError) as caught:
        evaluate(QRELS, wrong)
    assert [problem.line for problem in caught.value.problems] == [2, 3]
    scores = put(tmp_path / "scores.tsv", "q1 zz 12\nq1 d5 11\n")
    with pytest.raises(CranfieldError, match="the ranks of query 'q1' begin at 11"):
        evaluate(QRELS, scores)


LLAMA = {"queries": {"a1": "what is x", "a2": "how to y"}, "corpus": {"n1": "text one", "n2": "text two"}}


def test_a_dataset_of_llama_index_has_texts_and_judgments(tmp_path: Path) -> None:
    data = {**LLAMA, "relevant_docs": {"a1": ["n1"], "a2": ["n2"]}, "mode": "text"}
    testset = read_testset(put(tmp_path / "dataset.json", json.dumps(data)))
    assert {query.id: query.text for query in testset.queries} == LLAMA["queries"]
    assert testset.grades == {"a1": {"n1": 1.0}, "a2": {"n2": 1.0}}
    broken = {**LLAMA, "relevant_docs": {"a1": "n1", "a3": ["n2"]}}
    with pytest.raises(CranfieldError) as caught:
        read_testset(put(tmp_path / "broken.json", json.dumps(broken)))
    assert [problem.message for problem in caught.value.problems] == [
        "query 'a1' has no list of documents",
        "query 'a3' is not one of the queries",
    ]


def test_lines_of_ranklib_and_letor_leave_their_features_out(tmp_path: Path) -> None:
    lines = "2 qid:1 1:0.5 2:0.1 # docid1\n0 qid:1 1:0.2 2:0.9 #docid = docid2 inc = 1 prob = 0.08\n"
    testset = read_testset(put(tmp_path / "judgments.txt", lines))
    assert testset.grades == {"1": {"docid1": 2.0, "docid2": 0.0}}
    assert [str(note) for note in testset.notes] == ["not carried over: 4 features"]


RAGAS = [
    {"user_input": "what is x", "retrieved_contexts": ["text one", "text two"], "reference_contexts": ["text one"]},
    {"user_input": "how to y", "retrieved_contexts": ["text three"], "reference_contexts": ["text two"]},
]
DEEPEVAL = [
    {"input": row["user_input"], "retrieval_context": row["retrieved_contexts"], "context": row["reference_contexts"]}
    for row in RAGAS
]


@pytest.mark.parametrize("records", [RAGAS, DEEPEVAL])
@pytest.mark.parametrize("lines", [True, False])
def test_one_file_of_samples_is_the_test_set_and_the_run(tmp_path: Path, records: list[object], *, lines: bool) -> None:
    text = "".join(json.dumps(record) + "\n" for record in records) if lines else json.dumps(records)
    path = put(tmp_path / "samples.jsonl", text)
    assert list(by_query(path, path, "R@10").values()) == [1.0, 0.0]  # context recall
    assert list(by_query(path, path, "RR").values()) == [1.0, 0.0]


def test_samples_with_ids_go_by_them(tmp_path: Path) -> None:
    sample = {"user_input": "x", "reference_context_ids": ["c2"], "retrieved_context_ids": ["c1", "c2"]}
    path = put(tmp_path / "samples.jsonl", json.dumps(sample) + "\n")
    assert list(by_query(path, path, "RR").values()) == [0.5]


def test_samples_without_reference_contexts_are_no_test_set(tmp_path: Path) -> None:
    path = put(tmp_path / "s.jsonl", '{"question": "x", "contexts": ["t"], "answer": "y"}\n')
    with pytest.raises(CranfieldError, match="no sample has reference contexts"):
        read_testset(path)
    assert sniff_run(path).name == "samples-run"


SOURCES = {"return an item": {"kb/returns.md": 1}, "opening hours": {"kb/contact.md": 1}}


def test_documents_of_langchain_and_haystack_go_by_their_source(tmp_path: Path) -> None:
    lines = [
        {
            "question": "return an item",
            "documents": [{"page_content": "t", "id": None, "metadata": {"source": "kb/returns.md", "start_index": 0}}],
        },
        {
            "question": "opening hours",
            "documents": [
                {"id": "c9", "content": "t", "meta": {"source": "kb/home.md"}, "score": 0.9},
                {"id": "c4", "content": "t", "meta": {"source": "kb/contact.md"}, "score": 0.7},
            ],
        },
    ]
    path = put(tmp_path / "run.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    expected = {"return an item": 1.0, "opening hours": 0.5}
    assert by_query(SOURCES, path, "RR") == expected
    by_key = put(tmp_path / "run.json", json.dumps({line["question"]: line["documents"] for line in lines}))
    assert by_query(SOURCES, by_key, "RR") == expected

    def document(source: str) -> SimpleNamespace:
        return SimpleNamespace(page_content="t", id=None, metadata={"source": source, "start_index": 7})

    objects = {
        "return an item": [document("kb/returns.md")],
        "opening hours": [
            (document("kb/home.md"), 0.2),
            (document("kb/contact.md"), 0.4),
        ],  # with scores: in their order
    }
    assert by_query(SOURCES, objects, "RR") == expected


def test_a_document_without_id_and_source_is_named(tmp_path: Path) -> None:
    path = put(tmp_path / "run.json", '{"q1": [{"content": "t", "meta": {"page": 3}}]}')
    with pytest.raises(
        CranfieldError, match=r"query 'q1', result 1: a document without an id; expected id, or metadata.source"
    ):
        evaluate(QRELS, path)


def workbook(path: Path, *sheets: list[list[object]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"s{number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_an_excel_sheet_is_a_table(tmp_path: Path) -> None:
    qrels = workbook(tmp_path / "q.xlsx", [["query_id", "doc_id", "grade"], ["q1", "d5", 1], ["q2", "q1", 1.0]], [])
    run = workbook(
        tmp_path / "r.xlsx", [["query_id", "doc_id", "rank"], ["q1", "zz", 1], ["q1", "d5", 2], ["q2", "q1", 1]]
    )
    assert by_query(qrels, run, "RR") == RR
    two = workbook(tmp_path / "two.xlsx", [["query_id"]], [["other"]])
    with pytest.raises(
        CranfieldError, match=r"two.xlsx: 2 sheets have cells; expected one sheet with cells, got s0, s1"
    ):
        read_testset(two)


@pytest.mark.parametrize("text", ["queries:\n  - colour: red\n", '{"queries": [{"size": 3}], "version": 3}'])
def test_a_file_of_another_tool_with_queries_is_no_broken_file_of_ours(tmp_path: Path, text: str) -> None:
    with pytest.raises(CranfieldError) as caught:
        read_testset(put(tmp_path / "eval.yaml", text))
    assert [problem.message for problem in caught.value.problems] == [
        "not a test set: `queries` without `cranfield_testset`"
    ]
