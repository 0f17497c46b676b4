"""Fields of results: what a system says of a document, kept for raters."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.base.errors import RunFormatError
from cranfield.config import system_config
from cranfield.formats.runs.jsonl import read_run, write_run
from cranfield.judging.pools.results import fields_of
from cranfield.model import Answer, Hit, Outcome, Run
from cranfield.systems.calls.answer_schema import to_answer
from cranfield.systems.calls.extract import Extractor
from cranfield.systems.calls.redact import Redactor

FIELDS = {"text": "wool", "image": {"src": "a.png", "width": 3}, "tags": ["x"]}


def run_with(fields: dict[str, object] | None) -> Run:
    return Run("r", {"q": Answer(Outcome.ANSWERED, (Hit("d", 1.0, fields=fields),))})


def test_a_run_file_keeps_the_fields_of_its_results(tmp_path: Path) -> None:
    write_run(run_with(FIELDS), tmp_path / "r.jsonl")
    assert read_run(tmp_path / "r.jsonl").answers["q"].hits == (Hit("d", 1.0, fields=FIELDS),)


def test_fields_are_content_of_a_run_and_without_them_its_digest_is_as_before() -> None:
    assert run_with(FIELDS).digest != run_with(None).digest
    assert run_with(FIELDS).digest == run_with(dict(reversed(FIELDS.items()))).digest
    assert run_with(None).digest == "sha256:2c4b7f93eb2d01d6095a4158a5b9a9d73b62c9183c3f483f44737d444c6da6f9"


def test_fields_that_are_no_object_are_a_problem_of_the_line(tmp_path: Path) -> None:
    write_run(run_with({"text": "x"}), tmp_path / "r.jsonl")
    path = tmp_path / "r.jsonl"
    path.write_text(path.read_text().replace('{"text":"x"}', '"x"'))
    with pytest.raises(RunFormatError, match=r"r.jsonl:2: wrong value for hits\[0\].fields; expected an object"):
        read_run(path)


def test_an_answer_has_fields_of_its_results() -> None:
    answer = to_answer([{"id": "d", "fields": FIELDS}, {"id": "e", "fields": {}}, "f"], 10, "given")
    assert [hit.fields for hit in answer.hits] == [FIELDS, None, None]
    assert to_answer([Hit("d", fields=FIELDS)], 10, "given").hits == (Hit("d", fields=FIELDS),)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("text", "result 1 has text for fields, not an object"),
        ({"x": object()}, "fields of result 1 cannot be written as JSON"),
    ],
)
def test_other_fields_are_an_unparsable_answer(fields: object, reason: str) -> None:
    answer = to_answer([{"id": "d", "fields": fields}], 10, "given")
    assert (answer.outcome, answer.reason) == (Outcome.UNPARSABLE, reason)


def test_a_path_in_a_result_gives_a_field() -> None:
    extract = {"json": "hits", "id": "id", "result_fields": {"text": "doc.body", "url": "link"}}
    system = system_config("sut", {"command": ["x", "{query}"], "extract": extract})
    output = '{"hits": [{"id": "a", "doc": {"body": "wool"}, "link": null}, {"id": "b"}]}'
    assert [hit.fields for hit in Extractor(system).read(output, 10).hits] == [{"text": "wool"}, None]


def test_secrets_are_redacted_in_fields() -> None:
    hit = Hit("d", fields={"url": "http://x/?key=s3cr3t-value", "n": 1})
    redacted = Redactor({"TOKEN": "s3cr3t-value"}).redact_hit(hit)
    assert "s3cr3t" not in str(redacted.fields)
    assert redacted.fields is not None
    assert redacted.fields["n"] == 1


def test_a_pool_takes_fields_that_files_and_databases_can_hold() -> None:
    hit = Hit("d", title="T", span="1-2", fields={"text": "a\0b", "more": ["\ud800", {"\0": 1}], "title": "better"})
    assert fields_of(hit) == {"title": "better", "span": "1-2", "text": "a\ufffdb", "more": ["?", {"\ufffd": 1}]}
