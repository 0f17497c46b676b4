"""What a record has to look like: one table of task type x difficulty, and the bounds of facts and words.

The design that this follows, KnowCode's *Golden Dataset Pipeline* (schema 1.0.0), defines difficulty twice: once for every task
type (section 7.2: easy is one entity in one file, medium 2 to 3 entities, hard 3 or more in several modules), and again for
the author of each type (section 9.1). They disagree: a medium `locate` has one entity in 9.1 and 2 to 3 in 7.2, a hard one
2 to 3 and 3 or more. This table decides:

- of entities, it allows what either section allows;
- of files and folders, it demands what either section demands. A *module* is a file, since 9.1 calls both `parsers/` and
  `graph_builder.py` one; *layers* are folders;
- entities with the role `contextual` are not counted, nor are their files: they are there to be read, not to be found.

Other contradictions, and what holds here:

- the example q_00042 has a narrative of 49 words, and names entities that it does not list; 9.2 demands 80 to 250 words,
  and check 6 of section 5 that everything is listed. The demands hold, and the example fails;
- its evidence begins at line 0; lines count from 1;
- 9.1 suggests `Review <entity>` as the text of a query; a query that names its target can be answered by searching for that
  name. A leak is refused for every task type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from cranfield.base.words import count_noun
from cranfield.golden.parsed import folder_of
from cranfield.golden.records import Difficulty, GoldenModel, TaskType

_Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Bound:
    """From `least` to `most`, both included; None: no upper bound."""

    least: int
    most: int | None = None

    def __contains__(self, number: int) -> bool:
        return self.least <= number and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        """`1`, `2 to 5`, `3 or more`."""
        if self.most is None:
            return f"{self.least} or more"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


@dataclass(frozen=True, slots=True)
class DifficultyRule:
    """What the targets of a query are, for it to be of its difficulty."""

    entities: Bound
    """Bound on the number of targets that are no whole files: entities, or spans where there are no entities."""
    files: Bound
    folders: Bound
    source: str
    """Sections that it comes from, and where they differ."""

    def problems(self, extent: Extent) -> list[str]:
        """How targets differ from the rule; nothing where they fit."""
        wanted = {"entities": self.entities, "files": self.files, "folders": self.folders}
        counts = {"entities": extent.entities, "files": len(extent.files), "folders": len(extent.folders)}
        return [
            f"{count_noun(count, noun)} where there should be {wanted[noun]}"
            for noun, count in counts.items()
            if count is not None and count not in wanted[noun]
        ]


@dataclass(frozen=True, slots=True)
class Extent:
    """How far the targets of a query spread."""

    entities: int | None
    """None where the targets are whole files: they have no entities to count."""
    files: frozenset[str]

    @property
    def folders(self) -> frozenset[str]:
        """Folders of the files."""
        return frozenset(map(folder_of, self.files))


_ONE, _SEVERAL, _ANY = Bound(1, 1), Bound(2), Bound(1)
RULES: Mapping[tuple[TaskType, Difficulty], DifficultyRule] = {
    ("locate", "easy"): DifficultyRule(_ONE, _ONE, _ONE, "7.2 and 9.1"),
    ("locate", "medium"): DifficultyRule(Bound(1, 3), Bound(1, 3), _ANY, "7.2: 2 to 3; 9.1 and q_00042: 1"),
    ("locate", "hard"): DifficultyRule(Bound(2), _SEVERAL, _ANY, "7.2: 3 or more; 9.1: 2 to 3, across modules"),
    ("explain", "easy"): DifficultyRule(_ONE, _ONE, _ONE, "7.2 and 9.1"),
    ("explain", "medium"): DifficultyRule(
        Bound(2, 5), Bound(1, 5), _ANY, "7.2: 2 to 3; 9.1: a function and 2 to 4 that it calls"
    ),
    ("explain", "hard"): DifficultyRule(Bound(3), _SEVERAL, _ANY, "7.2 and 9.1: a flow across modules"),
    ("debug", "easy"): DifficultyRule(_ONE, _ONE, _ONE, "7.2 and 9.1"),
    ("debug", "medium"): DifficultyRule(Bound(2, 4), Bound(1, 4), _ANY, "7.2: 2 to 3; 9.1: a chain of 2 to 3 calls"),
    ("debug", "hard"): DifficultyRule(
        Bound(2), _SEVERAL, _ANY, "7.2: 3 or more; 9.1: root cause and symptom in two modules"
    ),
    ("extend", "easy"): DifficultyRule(
        Bound(1, 3), _ONE, _ONE, "7.2: 1; 9.1: a pattern with 2 examples or more in one file"
    ),
    ("extend", "medium"): DifficultyRule(Bound(2, 5), Bound(2, 3), _ANY, "7.2: 2 to 3 entities; 9.1: 2 to 3 files"),
    ("extend", "hard"): DifficultyRule(
        Bound(3), Bound(4), Bound(2), "7.2: 3 or more; 9.1: 4 files or more, in several layers"
    ),
    ("review", "easy"): DifficultyRule(_ONE, _ONE, _ONE, "7.2 and 9.1"),
    ("review", "medium"): DifficultyRule(Bound(1, 3), Bound(1, 3), _ANY, "7.2: 2 to 3; 9.1: code with an invariant"),
    ("review", "hard"): DifficultyRule(Bound(2), _SEVERAL, _ANY, "7.2: 3 or more; 9.1: a contract between two modules"),
    ("general", "easy"): DifficultyRule(_ONE, _ONE, _ONE, "7.2"),
    ("general", "medium"): DifficultyRule(Bound(2, 3), Bound(1, 3), _ANY, "7.2"),
    ("general", "hard"): DifficultyRule(Bound(3), _SEVERAL, _ANY, "7.2"),
}
"""Every task type in every difficulty."""

MUST_MENTION = Bound(3, 8)
"""Facts of a record that an answer must mention (9.2)."""
MUST_NOT_MENTION = Bound(1, 3)
"""Mistakes that an answer must not make (9.2)."""
NARRATIVE_WORDS = Bound(80, 250)
"""Words, by blanks (9.2)."""


class Bounds(GoldenModel):
    """Bounds of the screen and the gate that a plan may change."""

    hard_overlap: _Share = 0.35
    """A hard query shares less than this part of its words with the names, titles and headings of its targets."""
    target_overlap: _Share = 0.5
    """Most of the targets that two queries may share, as a part of the smaller set."""
    text_overlap: _Share = 0.8
    """From this part of common words (Jaccard) on, two queries are near duplicates."""
    grep_lines: Annotated[int, Field(ge=1, le=200)] = 20
    """A search with more lines than that answers nothing by itself."""
    grep_files: Annotated[int, Field(ge=1)] = 3
    """Or with lines in more files."""
