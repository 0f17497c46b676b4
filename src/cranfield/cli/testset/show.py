"""`cranfield testset show`: queries with what is expected of each."""

from __future__ import annotations

from typing import Annotated

import typer

from cranfield.cli.shared import Format, FormatOption, deliver
from cranfield.cli.testset.common import SetArgument, SetFormatOption, load_set


def show_command(
    testset: SetArgument,
    query_ids: Annotated[
        list[str] | None, typer.Argument(metavar="QUERY_ID", help="Show these queries in full; default: list all.")
    ] = None,
    *,
    output: FormatOption = Format.TEXT,
    testset_format: SetFormatOption = None,
) -> None:
    """Show queries with their judgments and expected items. Without ids, list all queries, one per line."""
    from cranfield.errors import UsageError
    from cranfield.reporting.documents.testset import queries_document

    judged = load_set(testset, testset_format)
    missing = [query_id for query_id in query_ids or () if query_id not in judged.by_id]
    if missing:
        some = ", ".join(map(repr, judged.query_ids[:3]))
        raise UsageError(f"there is no query {', '.join(map(repr, missing))}", path=str(testset), expected=f"{some}, …")
    deliver(queries_document(judged, query_ids or ()), output, None)
