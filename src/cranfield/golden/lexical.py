"""Words of queries and of names, and what they share: leaks, overlap, near duplicates, and what a plain search finds."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from cranfield.golden.parsed import LineCoverage, Lines, ParsedSource, Place, module_parts
from cranfield.golden.rules import Bounds
from cranfield.ranking.matching.place import ENTITY_MARK, parts_of
from cranfield.repo.symbols import language_of

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_TOKEN = re.compile(r"[^\W_][\w-]*|_+\w[\w-]*")
CODE = re.compile(r"`([^`\n]+)`")
_QUOTED = re.compile(r"`([^`\n]{3,})`|\"([^\"\n]{3,})\"|(?<!\w)'([^'\n]{3,})'(?!\w)")
CALL = re.compile(r"\((?!(?:s|es|ies|d|ed|r|er|n|y|ly|al|ing)\))")
"""Follows a name that is called; `file(s)` is no call."""
_SUFFIXES = ("ations", "ation", "ings", "ing", "ions", "ion", "ers", "er", "ors", "or", "ed", "es", "s", "ly", "e")
_SHORTEST = 3
_STOP_WORDS = """
    a about after all also an and any are as at be because been before being between both but by can could did do does
    doing done each else even ever every for from get gets getting go goes got had has have having how i if in inside into is
    it its itself just let like made make makes making many may me might mine more most much must my need needs no nor not of
    off on once one only onto or other our out over own please same see shall she should show so some such take takes tell
    than that the their them then there these they thing things this those through to too under until up upon us use used
    uses using very via want wants was we were what when where whether which while who whom whose why will with within
    without would yes yet you your code function class method file files module explain walk happens happen work works
    working find look looking place start add new step review audit don doesn didn isn aren won couldn wouldn shouldn
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing of a subject, and those that the phrasings of a task type are made of."""


def stem(word: str) -> str:
    """A word without its ending: `parsers`, `parsing` and `parse` are one. Crude, and the same on both sides."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST and not word.endswith("ss"):
            word = word[: -len(suffix)]
            break
    return word[:-1] if len(word) > _SHORTEST and word[-1] == word[-2] else word


def name_parts(name: str) -> list[str]:
    """The words of a name, case folded: `read_fileText2` is read, file, text, 2."""
    return [part.casefold() for part in _PART.findall(name)]


@lru_cache(maxsize=4096)
def content_words(text: str) -> frozenset[str]:
    """The stems of the words that carry the subject of a text; names are split into their parts."""
    return frozenset(stem(part) for part in name_parts(text) if len(part) >= 2 and part not in STOP_WORDS)


def jaccard(first: frozenset[str], second: frozenset[str]) -> Fraction:
    """Common words, as a part of all; 0 where there are none."""
    either = first | second
    return Fraction(len(first & second), len(either)) if either else Fraction(0)


def target_names(entity_ids: Iterable[str], files: Iterable[str], source: ParsedSource) -> list[str]:
    """Names, titles and headings of targets: qualified names, stems of files, and the first heading of a page."""
    names = []
    for entity in entity_ids:
        path, _, name = entity.partition(ENTITY_MARK)
        names += [name, _stem_of(path)]
    for path in files:
        names.append(_stem_of(path))
        outline = source.outline(path) if language_of(path) == "markdown" else None
        if outline is not None and len(outline.symbols) > 1:
            names += outline.symbols[1].names
    return list(dict.fromkeys(names))


def overlap(query: str, names: Iterable[str]) -> tuple[int, int]:
    """How many of the content words of a query stand in names, and how many it has."""
    words = content_words(query)
    known = frozenset(word for name in names for word in content_words(name))
    return len(words & known), len(words)


def is_distinctive(name: str) -> bool:
    """Whether a name is no word of prose: it has `_`, a digit or an inner capital letter; `JSON`, all of capitals, is one."""
    if "_" in name or any(char.isdigit() for char in name):
        return True
    return any(char.isupper() for char in name[1:]) and not name.isupper()


def leaks(query: str, entity_ids: Iterable[str], files: Iterable[str]) -> list[str]:
    """What of the names of its targets a query contains.

    A leak is:

    - a name that is no word of prose (`smart_answer`, `MarkdownParser`, `bm25`), in any case, also with its parts run together
      or joined by hyphens (`smartanswer`, `smart-answer`) as one token. The parts as words of their own (`smart answer`) are
      none: that is how people speak;
    - a name of one word of prose (`run`, `_run`, `JSON`, `Snapshot`) where it is written as code: in backticks, before `(`,
      after a dot, `::` or `#`, with its leading `_`; and, where it begins with a capital, written so within a sentence;
    - the name of a file: `parser.py`, its stem by the same rules, and with its folder, `tools/parser`;
    - a heading of two words or more, word by word.
    """
    found: dict[str, None] = {}
    files = list(dict.fromkeys([*files, *(entity.partition(ENTITY_MARK)[0] for entity in entity_ids)]))
    for path in files:
        if re.search(rf"(?<!\w){re.escape(posixpath.basename(path))}(?!\w)", query, re.IGNORECASE):
            found[posixpath.basename(path)] = None
        elif _has_name(query, _stem_of(path)):
            found[_stem_of(path)] = None
        elif len(parts := module_parts(path)) > 1 and _stands_in(query, "/".join(parts[-2:])):
            found["/".join(parts[-2:])] = None
    for entity in entity_ids:
        path, _, qualified = entity.partition(ENTITY_MARK)
        if language_of(path) == "markdown":
            words = qualified.rpartition(" > ")[2].split()
            heading = r"\W+".join(map(re.escape, words))
            if len(words) > 1 and re.search(rf"(?<!\w){heading}(?!\w)", query, re.IGNORECASE):
                found[" ".join(words)] = None
            continue
        for name in parts_of(entity):
            if name and _has_name(query, name):
                found[name] = None
    return list(found)


def grep_terms(query: str) -> list[str]:
    """What a person would search for: each word of three letters or more that carries the subject, and what is quoted."""
    quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(query)]
    words = [token for token in _TOKEN.findall(query) if len(token) >= _SHORTEST]
    return list(dict.fromkeys([*quoted, *(word for word in words if word.casefold() not in STOP_WORDS)]))


def found_by_grep(
    query: str, targets: Mapping[str, Sequence[Lines]], source: ParsedSource, bounds: Bounds
) -> list[str]:
    """The terms by which a plain search alone answers a query; none where it does not.

    The test: `grep -i -F` for one term of the query at a time (`grep_terms`), over all text files. A term counts where it is
    on at most `grep_lines` lines of at most `grep_files` files. The search answers the query where every target has a line
    that such a term finds.

    Args:
        query: its text.
        targets: label of each target to its lines.
        source: the files.
        bounds: see there.
    """
    finding: dict[str, None] = {}
    missing = set(targets)
    for term in grep_terms(query):
        places = source.lines_with(term)
        if places is None or not _is_selective(places, bounds):
            continue
        hits = LineCoverage((path, line, line) for path, line in places)
        hit = {target for target, lines in targets.items() if any(hits.shared(*part) for part in lines)}
        if hit:
            finding[term] = None
            missing -= hit
    return list(finding) if targets and not missing else []


def _is_selective(places: Sequence[Place], bounds: Bounds) -> bool:
    return len(places) <= bounds.grep_lines and len({path for path, _ in places}) <= bounds.grep_files


def _has_name(query: str, name: str) -> bool:
    """Whether a query contains a name by the rules of `leaks`."""
    if name.startswith("_") and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query):
        return True
    name = name.strip("_") or name
    if is_distinctive(name):
        wanted = _run_together(name)
        return any(_run_together(token) == wanted for token in _tokens(query))
    word = re.escape(name)
    as_code = rf"(?<!\w){word}{CALL.pattern}|(?:\.|::|\w#){word}(?!\w)|(?:\bdef|\bclass|\bfn|\bfunc) {word}(?!\w)"
    if re.search(as_code, query) or any(name in re.findall(r"\w+", code) for code in CODE.findall(query)):
        return True
    return name[:1].isupper() and not name.isupper() and bool(re.search(rf"(?<=[^.?!:\s] ){word}(?!\w)", query))


def _stands_in(query: str, path: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w-])", query.replace("\\", "/")) is not None


def _tokens(query: str) -> Iterator[str]:
    """Runs of letters, digits, `_` and `-`, and the parts that hyphens join."""
    for token in _TOKEN.findall(query):
        yield token
        if "-" in token:
            yield from token.split("-")


def _run_together(name: str) -> str:
    return re.sub(r"[_-]", "", name).casefold()


def _stem_of(path: str) -> str:
    """`parser` of `src/parser.py`; of `__init__.py` and the like, the name of the folder."""
    stem_ = posixpath.splitext(posixpath.basename(path))[0]
    if stem_ in {"__init__", "__main__", "index", "mod", "lib", "main", "README"}:
        return posixpath.basename(posixpath.dirname(path)) or stem_
    return stem_
