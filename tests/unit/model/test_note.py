"""Notes are decided on by kind and printed by text."""

from __future__ import annotations

from cranfield.model import Note, NoteKind
from cranfield.model.note import info, not_carried


def test_a_note_prints_its_text():
    assert f"note: {Note(NoteKind.CONSENSUS, 'by the rule mean')}" == "note: by the rule mean"


def test_notes_of_a_kind_are_made_of_texts():
    assert info("a", "b") == (Note(NoteKind.INFO, "a"), Note(NoteKind.INFO, "b"))
    assert not_carried(["1 weight"]) == (Note(NoteKind.NOT_CARRIED, "not carried over: 1 weight"),)
