"""Values of the evidence checks: what a check reads, what it finds, and how a caller changes it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from cranfield.errors import shorten
from cranfield.options.limits import Consequence, Setting
from cranfield.words import and_list

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cranfield.measures import Measure
    from cranfield.model import Run, TestSet
    from cranfield.ranking.value import FloatQ, Ranking


_NUMBER = re.compile(r"\d+")
_BEHIND_NUMBERS = re.compile(r"(.*\d[^\s:;,]*(?: [^()\d]*\)| %)?)([:;,]?(?: [^\s\d]+){3,})")
"""A sentence up to its last number, or the end of the brackets around it, and three or more words behind it."""
MOST_LISTED = 4
"""Findings of one check that each have their own sentence."""
Settings = Mapping[str, Setting]
"""Name of a check to its setting; a check that is missing is as in the table."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the function of a check found."""

    sentence: str
    """What is wrong and where, with counts."""
    query_ids: tuple[str, ...] = ()
    """Queries that show it."""
    count: int = 0
    """How many queries, results or systems it is about."""
    total: int = 0
    """Of how many."""
    of_testset: bool = False
    """Whether it is about the test set, and its sentence names no system."""

    @classmethod
    def of(cls, sentence: str, query_ids: Collection[str], total: int) -> Found:
        """Some queries of a total."""
        return cls(sentence, tuple(query_ids), len(query_ids), total)


@dataclass(frozen=True, slots=True)
class Finding:
    """A check that found something."""

    check: str
    """Name in the table of checks."""
    consequence: Consequence
    system: str
    """Empty where it is about all systems of a comparison."""
    sentence: str
    query_ids: tuple[str, ...] = ()
    count: int = 0
    total: int = 0
    text: str = ""
    """The sentence without the name of the system; empty where it has none."""

    @property
    def is_void(self) -> bool:
        """Whether the scores do not count."""
        return self.consequence is Consequence.VOID


class Scored(Protocol):
    """The part of an evaluation that checks read."""

    @property
    def name(self) -> str:
        """What the system is called."""

    @property
    def testset(self) -> TestSet:
        """What its answers were judged by."""

    @property
    def ranking(self) -> Ranking:
        """Its results, ranked and joined."""

    @property
    def run(self) -> Run | None:
        """The collected run; None for a run file without a log."""

    @property
    def run_digest(self) -> str:
        """Identity of the run."""

    @property
    def reading(self) -> Mapping[str, str | int | None]:
        """Options of the reader; `ids` is the rule of the run's ids, where it is another than the set's."""

    @property
    def query_ids(self) -> tuple[str, ...]:
        """Q."""

    @property
    def extra_queries(self) -> tuple[str, ...]:
        """Ids of the run that the test set does not have."""

    @property
    def values(self) -> Mapping[Measure, FloatQ]:
        """float64[Q] of each measure."""

    @property
    def scored(self) -> Mapping[Measure, NDArray[np.bool_]]:
        """bool[Q] of each measure: where it has a value."""


def without_secrets(findings: tuple[Finding, ...], systems: Iterable[Scored]) -> tuple[Finding, ...]:
    """Findings whose sentences name no id that holds a secret of a system: checks compare the ids that were returned."""
    if not findings:
        return findings
    answers = [answer for system in systems if system.run is not None for answer in system.run.answers.values()]
    hidden = {hit.id: hit.public_id for answer in answers for hit in answer.hits if hit.redacted_id is not None}

    def public(sentence: str) -> str:
        for name in sorted(hidden, key=len, reverse=True):
            sentence = sentence.replace(name, hidden[name]).replace(shorten(name), shorten(hidden[name]))
        return sentence

    return (
        tuple(replace(finding, sentence=public(finding.sentence), text=public(finding.text)) for finding in findings)
        if hidden
        else findings
    )


def void_sentences(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The sentences of what makes scores void; empty where they count."""
    return _counted_once(finding for finding in findings if finding.is_void)


def caveat_sentences(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The sentences of caveats, each once."""
    return _counted_once(finding for finding in findings if not finding.is_void)


def _counted_once(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The sentences, each once; where one check found something in many systems, one of them with their number."""
    by_check: dict[str, dict[str, Finding]] = {}
    for finding in findings:
        by_check.setdefault(finding.check, {}).setdefault(finding.sentence, finding)
    sentences: list[str] = []
    for found in by_check.values():
        systems = {finding.system for finding in found.values()}
        if len(systems) <= MOST_LISTED:
            sentences += merged(
                (each.system if each.text else "", each.text or sentence) for sentence, each in found.items()
            )
        else:
            sentences.append(f"{len(systems)} systems, for example {next(iter(found))}")
    return tuple(sentences)


def merged(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Sentences about systems, `(system, sentence)`: those of several systems that differ in numbers alone are one.

    `a: 20 of 40 results (50.0 %) and b: 10 of 40 results (25.0 %) repeat an id of their list and are dropped`
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for system, sentence in pairs:
        alike.setdefault(_NUMBER.sub("#", sentence), []).append((system, sentence))
    sentences: list[str] = []
    for group in alike.values():
        systems, texts = zip(*group, strict=True)
        parts = [_BEHIND_NUMBERS.fullmatch(text) for text in texts]
        if len(set(texts)) == 1 and all(systems):
            sentences.append(f"{and_list(systems)}: {texts[0]}")
        elif len(set(systems)) == len(systems) > 1 and (found := [part for part in parts if part]):
            sentences.append(
                and_list([f"{system}: {part[1]}" for system, part in zip(systems, found, strict=True)]) + found[0][2]
            )
        else:
            sentences += [": ".join(filter(None, each)) for each in group]
    return sentences
