"""A choice behind the path of a file of traces stands wherever a path of a run does."""

from pathlib import Path

import pytest

from cranfield.app.difference import difference_of_files
from cranfield.app.loading import can_be_name
from cranfield.app.named_runs import named_runs
from cranfield.evaluation.options.blocks import DifferenceOptions

MADE = Path(__file__).parents[1] / "formats/traces/otel.jsonl"
HANDBOOK, WIKI = "traces.jsonl#name=handbook", "traces.jsonl#name=wiki"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "traces.jsonl").write_bytes(MADE.read_bytes())
    monkeypatch.chdir(tmp_path)


def test_a_choice_has_an_equals_sign_and_is_no_name():
    assert named_runs([f"a={HANDBOOK}", f"b={WIKI}"]) == {"a": Path(HANDBOOK), "b": Path(WIKI)}
    assert named_runs([HANDBOOK]) == {Path(HANDBOOK).stem: Path(HANDBOOK)}
    assert not can_be_name(Path(HANDBOOK))
    assert can_be_name(Path("other.jsonl#name=handbook"))


def test_two_steps_of_one_file_are_compared(caplog):
    found = difference_of_files(Path(HANDBOOK), Path(WIKI), DifferenceOptions())
    assert (found.baseline, found.candidate) == ("traces-handbook", "traces-wiki")
    assert "note: traces-handbook: failed: 1 span; no other for 1 query" in caplog.text
