"""What ties a test set to its repository, in a gate with a baseline ref: it is no part of the digest of the test set.

A change that moves code writes it anew (`cranfield testset rehash`), which a review sees; a change that only removes it
would switch the drift check off.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cranfield.errors import CranfieldError, Problem
from cranfield.formats.io.files import meta_path, shown
from cranfield.gate.ref import Ref
from cranfield.model.testset import Meta
from cranfield.project.gate_plan import Plan
from cranfield.project.loading import read_stored
from cranfield.project.named_testset import named_testset
from cranfield.words import first_of, n_of


def lost_anchors(plan: Plan, name: str) -> Iterator[Problem]:
    """Places and files that the ref checks for drift, and the change does not; nothing for a test set without a repository."""
    chosen = plan.config.sets[name]
    if plan.ref is None or chosen.repo is None:
        return
    path = named_testset(plan.config.folder / chosen.path)
    there = _meta_at(plan.ref, path)
    if there is None:
        return
    here = read_stored(path).meta
    for what, lost in (
        ("places", there.anchors.keys() - here.anchors),
        ("files", there.source_files.keys() - here.source_files),
    ):
        if lost:
            message = (
                f"{n_of(len(lost), what)} checked for drift in {plan.ref.name}, and not here: {first_of(sorted(lost))}"
            )
            hint = "write what ties the test set to the repository anew: `cranfield testset rehash SET --repo DIR`"
            yield Problem(message, path=shown(path), hint=hint)


def _meta_at(ref: Ref, path: Path) -> Meta | None:
    """The metadata of a test set at a ref; None where it is no file there."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        try:
            copy.write_bytes(ref.read(path, hint=""))
        except CranfieldError:  # a folder, or outside of the repository
            return None
        with suppress(CranfieldError):  # the file holds its metadata, or has none
            meta_path(copy).write_bytes(ref.read(meta_path(path), hint=""))
        return read_stored(copy).meta
