"""A document as LaTeX tables with the rules of `booktabs`, for a paper: the leaderboard, or else every table of the report.

Text from systems and files is escaped: nothing of it is a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from cranfield.base.words import printable
from cranfield.reporting.document import Block, Cell, Column, Details, Document, Table

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "'": r"\textquotesingle{}",
    "–": "--", "−": "$-$", "…": r"\ldots{}", "×": r"$\times$", "\N{GREEK SMALL LETTER DELTA}": r"$\delta$",
}  # fmt: skip
_ANY_SPECIAL = re.compile("[" + re.escape("".join(_SPECIAL)) + "]")
_MARKS: Mapping[str, str] = {"": "%s", "best": r"\textbf{%s}", "second": r"\underline{%s}"}
PACKAGES = r"% \usepackage{booktabs} and, for quotes in names, \usepackage[T1]{fontenc} and \usepackage{textcomp}"


def escape(text: str) -> str:
    """Text in which nothing is a command."""
    return _ANY_SPECIAL.sub(lambda found: _SPECIAL[found.group()], printable(text))


def render_latex(document: Document) -> str:
    """The leaderboard; where a report has none, each of its tables."""
    if document.leaderboard is not None:
        tables = [_table(document.leaderboard())]
    else:
        found = [table for section in document.sections for table in _tables(section.blocks)]
        tables = [_table(table) for table in found]
    about = [PACKAGES, *(f"% {escape(stamp)}" for stamp in document.stamps)]
    if document.verdict is not None:
        about.append(f"% Verdict: {escape(document.verdict.name)}. {escape(document.verdict.sentence)}")
    return "\n\n".join(["\n".join(about), *tables]) + "\n"


def _tables(blocks: Sequence[Block]) -> Iterator[Table]:
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Details):
            yield from _tables(block.blocks)


def _table(table: Table) -> str:
    titles = [escape(column.title) for column in table.columns]
    rows = [
        [_cell(table, column, cell) for column, cell in zip(table.columns, row, strict=True)]
        for row in [*table.rows, *([] if table.footer is None else [table.footer])]
    ]
    last = rows.pop() if table.footer is not None else None
    caption = f"{table.caption}. {table.marks}." if table.marks else table.caption
    return _tabular(escape(caption), "".join("lr"[each.is_numeric] for each in table.columns), titles, rows, last)


def _cell(table: Table, column: Column, cell: Cell) -> str:
    mark, better_than = table.marked(cell)
    text = _MARKS[mark] % escape(column.text(cell))
    return f"{text}$^{{{','.join(map(escape, better_than))}}}$" if better_than else text


def _tabular(
    caption: str, columns: str, titles: Sequence[str], rows: Sequence[Sequence[str]], last: Sequence[str] | None = None
) -> str:
    """A floating table; every text is escaped before."""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
    ]
    lines += [_line(titles), r"\midrule", *map(_line, rows)]
    lines += [] if last is None else [r"\midrule", _line(last)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _line(cells: Sequence[str]) -> str:
    # A row that begins with [ would be an option of the line break before it.
    return rf"{{}}{' & '.join(cells)} \\" if cells and cells[0].startswith("[") else rf"{' & '.join(cells)} \\"
