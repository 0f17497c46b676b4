"""Query ids of a run that are those of a test set in another form."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Answer, Hit, Outcome, Query, Run, TestSet, evaluate
from cranfield.base.errors import NoCommonQueryError
from cranfield.base.words import shown_id
from cranfield.cli.main import run_command_line
from cranfield.formats.runs.jsonl import read_run, write_run
from cranfield.ranking.matching.id_forms import query_form

NFC, NFD = "café", unicodedata.normalize("NFD", "café")


@pytest.mark.parametrize(
    ("theirs", "ours", "what"),
    [
        ("1", "01", "leading zeros of numbers were removed"),
        (NFD, NFC, "characters were normalised (Unicode NFC)"),
        ("q1 ", "q1", "blanks at both ends were removed"),
        ("Q1", "q1", "upper and lower case were ignored"),
        ("1.0", "1", "`.0` at the end of numbers was removed"),
        ("q%201", "q 1", "percent-encoding was decoded"),
        ("q1\u200b", "q1", "characters that are not shown were removed"),
        ("\uff51\u0031", "q1", "characters were normalised (Unicode NFKC)"),
    ],
)
def test_one_id_in_another_form_is_paired(theirs: str, ours: str, what: str) -> None:
    found = query_form([theirs], [ours, "other"])
    assert found is not None
    assert (found.what, dict(found.names)) == (what, {theirs: ours})


@pytest.mark.parametrize(
    ("theirs", "ours", "what"),
    [
        (["topic-1", "topic-2"], ["1", "2"], "the prefix 'topic-' of the ids of the run was removed"),
        (["1", "2"], ["1@en", "2@en"], "the suffix '@en' of the ids of the test set was removed"),
        (["Q 01", "Q 02"], ["q_1", "q_2"], "upper and lower case, blanks, punctuation and leading zeros were ignored"),
    ],
)
def test_a_loose_form_needs_two_queries_that_are_half_of_both_sides(
    theirs: list[str], ours: list[str], what: str
) -> None:
    found = query_form(theirs, ours)
    assert found is not None
    assert (found.what, dict(found.names)) == (what, dict(zip(theirs, ours, strict=True)))
    assert query_form(theirs[:1], ours[:1]) is None
    assert query_form([*theirs, "a", "b", "c"], ours) is None
    assert query_form(theirs, [*ours, "x", "y", "z"]) is None


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (["12", "13"], ["2", "3"]),  # within a number nothing is divided
        (["q3-p", "q4-p", "q5-p", "q6-p", "q7-p"], ["q3", "q4"]),  # other questions, two of which seem to match
        (["1", "01"], ["001"]),  # which of them is not known
        (["x"], []),
        ([], ["x"]),
    ],
)
def test_other_queries_are_no_form(theirs: list[str], ours: list[str]) -> None:
    assert query_form(theirs, ours) is None


@given(st.sets(st.text(st.characters(codec="utf-8"), min_size=1, max_size=6), max_size=12), st.data())
def test_pairs_are_one_to_one_and_of_the_given_ids(ids: set[str], data: st.DataObject) -> None:
    theirs = data.draw(st.sets(st.sampled_from(sorted(ids))) if ids else st.just(set()))
    found = query_form(theirs, ids - theirs)
    if found is not None:
        assert set(found.names) <= theirs
        assert set(found.names.values()) <= ids - theirs
        assert len(set(found.names.values())) == len(found.names) > 0


def test_ids_that_look_alike_are_shown_escaped() -> None:
    assert [shown_id(text) for text in (NFC, NFD, "q1 ", "q1\u200b", "q1")] == [
        "'café'",
        r"'cafe\u0301'",
        "'q1 '",
        r"'q1\u200b'",
        "'q1'",
    ]


def test_a_run_without_a_query_in_common_names_the_form() -> None:
    testset = TestSet("set", (Query("01", "a"), Query("02", "b")), {"01": {"d": 1}, "02": {"e": 1}})
    lists = {"1": ["d"], "2": ["e"]}
    run = Run("new", {name: Answer(Outcome.ANSWERED, tuple(map(Hit, ids))) for name, ids in lists.items()})
    for given_run in (lists, run, {name: dict.fromkeys(ids, 1.0) for name, ids in lists.items()}):
        with pytest.raises(
            NoCommonQueryError, match="leading zeros of numbers were removed: write '1' of the run as '01'"
        ):
            evaluate(testset, given_run)


def test_the_verdict_of_files_in_another_form_is_invalid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [f"{number:02d}" for number in range(1, 13)]
    texts = {
        "qrels.txt": [f"{query_id} 0 d{query_id} 1\n" for query_id in ids],
        "a.run": [f"{query_id} Q0 d{query_id} 1 9 a\n" for query_id in ids],
        "b.run": [f"{int(query_id)} Q0 d{query_id} 1 9 b\n" for query_id in ids],
    }
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    assert run_command_line(["compare", *(str(tmp_path / name) for name in texts), "-m", "RR"]) == 3
    printed = " ".join(capsys.readouterr().out.split())
    assert "VERDICT: invalid" in printed
    assert (
        "b: 9 queries of the test set have no answer, but would match an answer of the run if leading zeros of numbers were removed "
        "(in the run '1', in the test set '01')"
    ) in printed


def config_with_ids_in_another_form(folder: Path, unmatched: int, n_others: int) -> Path:
    """A config of two run files with the same lists, of which the second writes some ids without their zeros; and a gate.

    Both begin with other queries, which the test set does not have in any form.
    """
    ids = [f"{number:02d}" for number in range(1, 51)]
    (folder / "qrels.txt").write_text("".join(f"{query_id} 0 d{query_id} 1\n" for query_id in ids), encoding="utf-8")
    for name, other in (("old", 0), ("new", unmatched)):
        lines = [f"other{number} Q0 d 1 9 {name}\n" for number in range(n_others)]
        lines += [f"{int(each) if at < other else each} Q0 d{each} 1 9 {name}\n" for at, each in enumerate(ids)]
        (folder / f"{name}.run").write_text("".join(lines), encoding="utf-8")
    config = folder / "cranfield.yaml"
    config.write_text(
        "testset: qrels.txt\nmeasures: [RR]\nsystems:\n  old: {run: old.run}\n  new: {run: new.run}\n"
        "  fused: {fusion: {of: [old, new]}}\nbaseline: old\n"
        "gate: {system: fused, rules: [floor: {measure: RR, at_least: 0.5}]}\n",
        encoding="utf-8",
    )
    return config


@pytest.mark.parametrize(("unmatched", "n_others"), [(4, 0), (9, 2000)])
def test_run_files_of_a_config_in_another_form_have_no_verdict_and_pass_no_gate(
    unmatched: int, n_others: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = str(config_with_ids_in_another_form(tmp_path, unmatched, n_others))
    for command, names in (
        (["run", "--config", config, "--quiet"], ["new and fused"]),
        (["gate", config], ["fused"]),
    ):
        assert run_command_line(command) == 3
        printed = capsys.readouterr()
        text = " ".join((printed.out + printed.err).split())
        for name in names:
            assert (
                f"{name}: {unmatched} queries of the test set have no answer, but would match an answer of the run if leading zeros of "
                "numbers were removed (in the run '1', in the test set '01')"
            ) in text


def test_a_stored_run_keeps_ids_that_the_test_set_does_not_have(tmp_path: Path) -> None:
    run = Run("new", {"01": Answer(Outcome.MISSING)}, extra_queries=("1", "2"))
    write_run(run, tmp_path / "new.jsonl")
    assert read_run(tmp_path / "new.jsonl") == run
