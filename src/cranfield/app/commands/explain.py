"""`cranfield explain`: why one run scores differently under two conventions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from cranfield.app.command import Report, fields, takes_runs
from cranfield.app.commands.shared import MeasureOption, TestSetFormatOption
from cranfield.evaluation.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.evaluation.options.blocks import ScoringOptions, TestSetOptions
    from cranfield.model import Convention, TestSet
    from cranfield.ranking import Ranking


@takes_runs("run")
def explain_command(
    testset: Annotated[Path, Argument("Test set file or TREC qrels.", metavar="TESTSET")],
    run: Annotated[Path, Argument("TREC run file, or a run written by `cranfield run`.", metavar="RUN")],
    a: Annotated[
        str,
        Argument("First convention, such as trec.", metavar="A", choices="conventions"),
    ],
    b: Annotated[
        str,
        Argument("Second convention, such as trec9.", metavar="B", choices="conventions"),
    ],
    *,
    measures: MeasureOption = None,
    top: Annotated[int, Option("Number of queries to show per measure.", metavar="N"), Ge(1)] = 10,
    ties: Annotated[bool, Option("Add the worst and best case of tie breaking.")] = False,
    unjudged: Annotated[
        bool,
        Option("Add the lowest and highest possible values if unjudged results were judged."),
    ] = False,
    scoring: Annotated[ScoringOptions, fields("missing", "duplicates", "depth", "run_format")],
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> Report:
    """Explain why a run scores differently under two conventions.

    The effect of each choice on each query.
    """
    from cranfield.app.loading import load
    from cranfield.evaluation.explain import explain, explanation_result
    from cranfield.measures import DEFAULT_MEASURES, parse_all
    from cranfield.model import convention_named
    from cranfield.reporting.documents.explain import explanation_document

    sides = convention_named(a), convention_named(b)
    chosen = parse_all(measures or DEFAULT_MEASURES)
    judged = load(testset, format=testset_format, options=options)
    rank, name = _ranker(judged, run, scoring)
    explanation = explain(judged, rank, *sides, chosen, run=name)
    return Report(document=explanation_document(explanation_result(explanation, ties=ties, unjudged=unjudged), top=top))


def _ranker(testset: TestSet, path: Path, scoring: ScoringOptions) -> tuple[Callable[[Convention], Ranking], str]:
    """What ranks the run under a convention, and what to call the run."""
    from cranfield.formats.runs.files import read_whole
    from cranfield.formats.sniff import sniff_run
    from cranfield.ranking import rank_file, rank_run

    found = sniff_run(path, scoring.run_format)
    if found.read is not None:
        collected = read_whole(found, path)

        def rank_collected(rules: Convention) -> Ranking:
            return rank_run(testset, collected, rules, missing=scoring.missing or rules.missing, depth=scoring.depth)

        return rank_collected, collected.name

    def rank(rules: Convention) -> Ranking:
        ranked = rank_file(
            testset,
            path,
            rules,
            missing=scoring.missing or rules.missing,
            duplicates=scoring.duplicates or rules.duplicates,
            depth=scoring.depth,
        )
        return ranked.ranking

    return rank, path.stem
