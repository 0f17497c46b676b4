"""`cranfield testset convert`: a test set in another format, and what that format cannot hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.option_groups import option_groups
from cranfield.cli.testset.common import ForceOption, note, refuse_existing

if TYPE_CHECKING:
    from cranfield.project.testset_options import TestSetOptions


@option_groups
def convert_command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Test set, in any supported format.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Output file; its extension selects the format.")],
    *,
    source_format: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="Format of IN; default: detected from the content.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="Format of OUT; default: from its extension.")
    ] = None,
    force: ForceOption = False,
    options: TestSetOptions,
) -> None:
    """Convert a test set to another format. Information that the format cannot store is reported."""
    from cranfield.formats.convert import convert
    from cranfield.formats.testsets.meta_file import format_of
    from cranfield.project.testset_options import NO_OPTIONS, apply_options
    from cranfield.testsets.storage import read_stored
    from cranfield.words import n_of

    refuse_existing(out, force=force)
    testset = read_stored(source, source_format)
    if options != NO_OPTIONS or testset.ratings:
        testset = apply_options(testset, options, source.parent)
    written, losses = convert(testset, out, to)
    if source_format is None:
        note(f"{source} is read as {format_of(source).sentence}")
    for sentence in (*testset.notes, *losses):
        note(f"note: {sentence}")
    n, n_read = len(written.queries), len(testset.queries)
    of = "" if n == n_read else f"{n} of "
    note(f"wrote {out}: {of}{n_of(n_read, 'queries')}, {written.digest[:19]}")
