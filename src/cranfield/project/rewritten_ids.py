"""Files that name queries by id, each kind of them with other ids: everything else in a file stays as it is."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cranfield.errors import InputError
from cranfield.formats.io.delimited import RUN_COLUMNS, separator_of
from cranfield.formats.io.files import BYTE_ORDER_MARK, META_SUFFIX, decode, shown
from cranfield.formats.registry import HEAD_BYTES, Head
from cranfield.formats.runs.record import json_line
from cranfield.formats.sniff import FORMATS
from cranfield.gate.baseline import baseline_text, parse_baseline
from cranfield.model import IdRule
from cranfield.project.id_renaming import Renaming

Kind = Literal["run", "run log", "journal", "baseline", "history", "metadata"]
_FIRST_COLUMN = re.compile(rb"^([ \t]*)([^\s#]\S*)", re.MULTILINE)
_LINE_KEYS: Mapping[str, Kind] = {
    "cranfield_run": "run",
    "cranfield_run_log": "run log",
    "journal": "journal",
    "cranfield_history": "history",
}
"""Key of the first line of a file of JSON lines to its kind."""
_DIGEST_KEYS: Mapping[Kind, str] = {"run": "testset_digest", "journal": "testset"}


@dataclass(frozen=True)
class Rewritten:
    """A file with other ids."""

    kind: Kind
    data: bytes
    rule: IdRule | None
    """Rule that it followed; None where it has the ids of the set."""
    ids: tuple[str, ...] = ()
    """New ids in it, each once."""


def kind_of(path: Path, data: bytes) -> Kind | None:
    """What a file is, by its content; None where it names no query."""
    if path.name.endswith(META_SUFFIX):
        return "metadata"
    first = data.lstrip()[:1]
    if first == b"{":
        if b'"cranfield_baseline"' in data:
            return "baseline"
        keys = _object(data.lstrip().split(b"\n", 1)[0])
        return next((kind for key, kind in _LINE_KEYS.items() if key in keys), None)
    head = Head(data[:HEAD_BYTES].removeprefix(BYTE_ORDER_MARK), path)
    is_run = FORMATS["trec"].fits(head) or FORMATS["run-table"].fits(head)
    return "run" if is_run else None


def rewrite(path: Path, kind: Kind, data: bytes, plan: Renaming) -> Rewritten:
    """A file with the ids of a set.

    Raises:
        InputError: it is damaged, or is of another version of the set.
    """
    if kind == "run" and not data.lstrip().startswith(b"{"):
        head = Head(data[:HEAD_BYTES].removeprefix(BYTE_ORDER_MARK), path)
        return _table(data, plan, path) if FORMATS["run-table"].fits(head) else _trec(data, plan)
    if kind == "baseline":
        return _baseline(path, data, plan)
    if kind == "history":
        return _history(data, plan)
    return _metadata(data, plan) if kind == "metadata" else _lines(path, kind, data, plan)


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _new_ids(given: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names[query_id] for query_id in given if query_id in names))


def _checked_rule(plan: Renaming, given: Iterable[str], digest: str | None, path: Path) -> IdRule | None:
    """The rule of the ids of a file, which must be that under which the set has its digest.

    Raises:
        InputError: it was made with another version of the set.
    """
    rule = plan.rule_of(given)
    if rule is not None and digest is not None and plan.rule_of_digest(digest) != rule:
        raise InputError(
            f"it names queries by the rule {rule}, and was made with another version of the test set",
            path=shown(path),
            expected="the digest of the set under that rule",
            got=digest[:19],
            hint="{old=FILE} names the version that it was made with",
            parameters=("old",),
        )
    return rule


def _lines(path: Path, kind: Kind, data: bytes, plan: Renaming) -> Rewritten:
    """A run, its log or a journal: lines of JSON, the first of which is a header."""
    records = [_object(line) for line in data.split(b"\n") if line.strip()]
    if not all(records):
        raise InputError("a line is not JSON", path=shown(path), hint="an interrupted collection leaves part of a line")
    header, answers = records[0], records[1:]
    given = [str(record["query_id"]) for record in answers if "query_id" in record]
    key = _DIGEST_KEYS.get(kind, "")
    digest = header.get(key)
    rule = _checked_rule(plan, given, digest if isinstance(digest, str) else None, path)
    if rule is None:
        return Rewritten(kind, data, None)
    names = plan.names[rule]
    if isinstance(digest, str):
        header[key] = plan.old.digest
    for record in answers:
        if "query_id" in record:
            record["query_id"] = names.get(record["query_id"], record["query_id"])
    text = "".join(map(json_line, (header, *answers)))
    return Rewritten(kind, text.encode("utf-8", "surrogatepass"), rule, _new_ids(given, names))


def _trec(data: bytes, plan: Renaming) -> Rewritten:
    given = [found[2].decode("utf-8", "surrogateescape") for found in _FIRST_COLUMN.finditer(data)]
    rule = plan.rule_of(given)
    if rule is None:
        return Rewritten("run", data, None)
    names = plan.names[rule]

    def new(found: re.Match[bytes]) -> bytes:
        query_id = found[2].decode("utf-8", "surrogateescape")
        return found[1] + names.get(query_id, query_id).encode("utf-8", "surrogateescape")

    return Rewritten("run", _FIRST_COLUMN.sub(new, data), rule, _new_ids(given, names))


def _table(data: bytes, plan: Renaming, path: Path) -> Rewritten:
    """A table of results; quotes are read and written as its separator asks for."""
    text = decode(data, path, InputError)
    lines = text.splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.strip() and not line.startswith("#"))
    separator = separator_of(lines[place].encode())
    end = "\r\n" if lines[place].endswith("\r\n") else "\n"
    header, *rows = _split_rows("".join(lines[place:]), separator)
    folded = [name.strip().strip('"').lower() for name in header]
    column = next(folded.index(name) for name in RUN_COLUMNS["query_id"] if name in folded)
    filled = [row for row in rows if len(row) > column and not row[0].startswith("#")]
    given = [row[column] for row in filled]
    rule = plan.rule_of(given)
    if rule is None:
        return Rewritten("run", data, None)
    names = plan.names[rule]
    for row in filled:
        row[column] = names.get(row[column], row[column])
    text = "".join(lines[:place]) + _joined_rows([header, *rows], separator, end)
    return Rewritten("run", text.encode(), rule, _new_ids(given, names))


def _split_rows(text: str, separator: str) -> list[list[str]]:
    """Cells of each row; between tabs, quotes are characters."""
    if separator == "\t":
        return [line.split(separator) for line in text.splitlines()]
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))


def _joined_rows(rows: list[list[str]], separator: str, end: str) -> str:
    if separator == "\t":
        return "".join(separator.join(row) + end for row in rows)
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=separator, lineterminator=end).writerows(rows)
    return out.getvalue()


def _baseline(path: Path, data: bytes, plan: Renaming) -> Rewritten:
    baseline = parse_baseline(decode(data, path, InputError), shown(path))
    rule = _checked_rule(plan, baseline.values, baseline.testset_digest, path)
    if rule is None:
        return Rewritten("baseline", data, None)
    names = plan.names[rule]
    new = replace(
        baseline,
        values={names.get(query_id, query_id): values for query_id, values in baseline.values.items()},
        outcomes={names.get(query_id, query_id): outcome for query_id, outcome in baseline.outcomes.items()},
        testset_digest=plan.old.digest,
    )
    text = baseline_text(new).encode("utf-8", "surrogatepass")
    return Rewritten("baseline", text, rule, _new_ids(baseline.values, names))


def _history(data: bytes, plan: Renaming) -> Rewritten:
    """Lines of the same set under another rule get its digest; all others stay, damaged ones too."""
    rules: list[IdRule] = []
    lines = []
    for line in data.split(b"\n"):
        testset = _object(line).get("testset") if line.strip() else None
        digest = testset.get("digest") if isinstance(testset, dict) else None
        rule = plan.rule_of_digest(digest) if isinstance(digest, str) else None
        if rule is None:
            lines.append(line)
            continue
        rules.append(rule)
        lines.append(line.replace(str(digest).encode(), plan.old.digest.encode(), 1))
    return Rewritten("history", b"\n".join(lines), rules[0] if rules else None)


def _metadata(data: bytes, plan: Renaming) -> Rewritten:
    """The split of a set, and the rule of its ids."""
    meta = _object(data)
    split = meta.get("split")
    held_out = list(split.get("held_out", ())) if isinstance(split, dict) else []
    rule = plan.rule_of(map(str, held_out)) if meta.get("ids", "") != plan.old.meta.ids else None
    if rule is None or not isinstance(split, dict):
        return Rewritten("metadata", data, None)
    names = plan.names[rule]
    split["held_out"] = [names.get(str(query_id), str(query_id)) for query_id in held_out]
    meta["ids"] = plan.old.meta.ids
    text = json.dumps(meta, ensure_ascii=False, indent=2) + "\n"
    return Rewritten("metadata", text.encode("utf-8", "surrogatepass"), rule, tuple(split["held_out"]))
