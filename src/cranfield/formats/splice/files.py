"""The files of a changed test set, made of the files that are there.

A format's writer writes the old set and the new one; what differs between the two is made in the text of the old file.
The result is read back: it is used only where it is the changed set.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from cranfield.base.errors import CranfieldError
from cranfield.formats.io.files import BYTE_ORDER_MARK, GZIP_MAGIC, META_SUFFIX, ZSTD_MAGIC, meta_path, unpacked_name
from cranfield.formats.io.located import located_text
from cranfield.formats.io.tree import Unreadable, plain_values
from cranfield.formats.registry import Format
from cranfield.formats.splice.parts import SplicePart, UnspliceableError, json_lines_part, json_part, yaml_part
from cranfield.formats.splice.rows import splice_rows
from cranfield.formats.splice.trees import splice_tree
from cranfield.formats.testsets.golden_json import COUNTED_REVIEW, with_counts_of
from cranfield.formats.testsets.native import plain
from cranfield.formats.testsets.span_csv import rebased
from cranfield.model import Meta, TestSet

_CORPUS = "corpus.jsonl"
SAME = ("digest", "labels", "version", "description", "matching", "databases", "sources", "consensus")
"""What has to be equal when a spliced file is read back, beside metadata and name."""


@dataclass(frozen=True, slots=True)
class Splice:
    """The files of a changed test set."""

    files: Mapping[Path, bytes]
    """Content of each file that differs from the one that is there."""


def spliced(path: Path, before: TestSet, after: TestSet, entry: Format, target: Path) -> Splice | None:
    """A change made in the text of the file it is about; None where the text has no room for it.

    Args:
        path: the file, or the folder, of the test set.
        before: the test set as it is read from it.
        after: the changed test set, as far as the format holds it.
        entry: its format.
        target: where the changed set is to be; `path`, or another name that ends alike.
    """
    if unpacked_name(target) != target.name or (entry.is_folder and path.is_file()):
        return None
    has_meta = "meta" in entry.holds
    plain = (before, after) if has_meta else tuple(replace(t, meta=Meta()) for t in (before, after))
    try:
        old, new = (_written(testset, entry, target.name) for testset in plain)
        files = {
            name: content
            for name in {**old, **new}
            if (content := _file(_source(path, target, name), old.get(name), new.get(name), entry)) is not None
        }
        if not _reads_back(path, target, files, plain[1], entry):
            return None
    except (UnspliceableError, CranfieldError, OSError, UnicodeError, ValueError, RecursionError):
        return None
    if entry.is_folder:
        changed = {target / name: data for name, data in files.items()}
        sources = {target / name: path / name for name in files}
    else:
        changed = {target.with_name(name): data for name, data in files.items()}
        sources = {target.with_name(name): _source(path, target, name) for name in files}
    return Splice(
        {
            place: data
            for place, data in changed.items()
            if place != sources[place] or not place.exists() or place.read_bytes() != data
        }
    )


def _written(testset: TestSet, entry: Format, name: str) -> dict[str, str]:
    """Text of each file that a format writes of a test set, by its path from the folder of the set, or from the set."""
    write = cast("Callable[[TestSet, Path], None]", entry.write)
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        draft = Path(folder) / name
        write(testset, draft)
        top = draft if entry.is_folder else Path(folder)
        return {
            str(file.relative_to(top)): file.read_bytes().decode("utf-8")
            for file in sorted(top.rglob("*"))
            if file.is_file()
        }


def _source(path: Path, target: Path, name: str) -> Path:
    """The file that is there for one that is written; one beside it is called after the set, as `set.meta.json`."""
    if path.is_dir():
        return path / name
    return path if name == target.name else path.with_name(path.stem + name.removeprefix(target.stem))


def _file(source: Path, old: str | None, new: str | None, entry: Format) -> bytes | None:
    """The changed content of a file; None where it is not there, and does not have to be.

    Raises:
        UnspliceableError: the change cannot be made in its text.
    """
    if not source.is_file():
        if entry.is_folder and old == new:
            raise UnspliceableError  # a folder whose files are called otherwise
        return None if new is None or old == new else new.encode("utf-8")
    data = source.read_bytes()
    if data.startswith((GZIP_MAGIC, ZSTD_MAGIC)):
        raise UnspliceableError
    if old == new:
        return data
    if old is None or new is None:
        raise UnspliceableError
    mark = BYTE_ORDER_MARK if data.startswith(BYTE_ORDER_MARK) else b""
    text = data[len(mark) :].decode("utf-8")
    if entry.name == "golden-json" and source.name.endswith(META_SUFFIX):
        old = with_counts_of(text, old)
    if entry.name == "spans-csv":
        old, new = rebased(old, text), rebased(new, text)
    return mark + splice_text(text, old, new, entry.layout).encode("utf-8")


def splice_text(text: str, old: str, new: str, layout: str) -> str:
    """A text with what differs between two others.

    Args:
        text: JSON, JSON Lines, YAML or rows.
        old: what a format writes of it.
        new: what the format writes after a change.
        layout: `tree`, `table` or `columns`, where the text is neither JSON nor JSON Lines.

    Raises:
        UnspliceableError: it has no room for the change.
    """
    if layout == "columns":
        return splice_rows(text, old, new, "columns")
    root = _root(text, layout)
    if root is None:
        return splice_rows(text, old, new, "table")
    lines = root.style == "lines"
    is_yaml = layout == "tree" and text.lstrip()[:1] not in {"{", "["}
    return splice_tree(text, root, _data(old, lines=lines), _data(new, lines=lines), is_yaml=is_yaml)


def tree_of(text: str, *, is_list: bool) -> tuple[SplicePart, bool]:
    """JSON, JSON Lines or YAML as a tree, and whether it is YAML.

    Args:
        text: of the file.
        is_list: whether its data are a list: then an object at its beginning is the first line of several.

    Raises:
        UnspliceableError: it is none of them.
    """
    begin = text.lstrip()[:1]
    if begin == "{" and is_list:
        return json_lines_part(text), False
    return (json_part(text), False) if begin in {"{", "["} else (yaml_part(text), True)


def _root(text: str, layout: str) -> SplicePart | None:
    """The text as a tree, or as lines of JSON; None where it is a table of cells."""
    if layout == "table":
        return json_lines_part(text) if text.startswith("{") else None
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return json_part(text)
        except UnspliceableError:
            if layout == "":
                return json_lines_part(text)
    if layout == "tree":
        return yaml_part(text)
    raise UnspliceableError


def _data(text: str, *, lines: bool = False) -> Any:
    if lines:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    try:
        return plain_values(located_text(text, Path(), is_json=False).top)
    except Unreadable:
        raise UnspliceableError from None


def _reads_back(path: Path, target: Path, files: Mapping[str, bytes], after: TestSet, entry: Format) -> bool:
    read = entry.read
    if read is None:
        return False
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        draft = Path(folder) / target.name
        if entry.is_folder:
            _linked(path, draft)
        for name, data in files.items():
            file = (draft if entry.is_folder else Path(folder)) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            file.write_bytes(data)
        again = read(draft)
        if not isinstance(again, TestSet):
            return False
    same = all(getattr(again, name) == getattr(after, name) for name in SAME)
    is_named = again.name == after.name or target.name != path.name or entry.is_folder
    return same and is_named and ("meta" not in entry.holds or _declared(again.meta) == _declared(after.meta))


def _declared(meta: Meta) -> Meta:
    """Metadata without a review that is only counted."""
    return replace(meta, review="") if COUNTED_REVIEW.fullmatch(meta.review) else meta


def _linked(folder: Path, copy: Path) -> None:
    """A folder of links to the files of another one; a corpus is not looked into again."""
    for file in folder.rglob("*"):
        if file.is_file() and not file.name.startswith(_CORPUS):
            place = copy / file.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(file.resolve())


def spliced_meta(path: Path, target: Path, before: Meta, after: Meta) -> tuple[Path, bytes | None] | None:
    """The file of metadata beside a test set, changed; None where nothing changed, and no content where nothing is left."""
    source, place = meta_path(path), meta_path(target)
    if before == after:
        return (place, source.read_bytes()) if source != place and source.is_file() else None
    if after == Meta():
        return (place, None) if place.is_file() else None
    old, new = (
        json.dumps(cast("dict[str, Any]", plain(meta)), ensure_ascii=False, indent=2) for meta in (before, after)
    )
    if source.is_file():
        try:
            return place, _file(source, old, new, _META)
        except (UnspliceableError, UnicodeError):
            pass
    return place, f"{new}\n".encode()


_META = Format("meta", "testset", "metadata", lambda _: False, layout="tree")
