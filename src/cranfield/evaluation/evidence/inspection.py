"""The table of evidence checks, and the inspection that runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cranfield.base.errors import CranfieldError, Problem, UnknownNameError, UsageError, shorten, unknown_name
from cranfield.evaluation.evidence.checks import (
    broken_answer_rules,
    changed_meanwhile,
    cut_short,
    duplicates,
    empty_answers,
    empty_on_one_side,
    failed_queries,
    few_ids,
    identical_runs,
    judged_gap,
    kept_answers,
    low_judged_share,
    missing_family,
    missing_queries,
    mostly_unjudged,
    never_judged_queries,
    nothing_judged,
    nothing_matched,
    nothing_relevant,
    one_id,
    queries_noted,
    query_form_differs,
    results_without_lines,
    resumed_answers,
    reversed_order,
    same_list,
    same_results,
    self_retrieval,
    shifted_answers,
    short_lists,
    tied_scores,
    uncommitted_changes,
    unpaired_queries,
)
from cranfield.evaluation.evidence.likeness import id_form
from cranfield.evaluation.evidence.values import (
    Finding,
    Found,
    Inspected,
    Scored,
    Settings,
    Sides,
    without_secrets,
)
from cranfield.evaluation.options.blocks import Consequence, Limits, Setting, as_setting
from cranfield.measures import Measure
from cranfield.model import NoteKind


@dataclass(frozen=True, slots=True)
class EvidenceCheck:
    """One evidence check; exactly one of its two functions is there."""

    name: str
    """As in the config: kebab-case."""
    sentence: str
    """What is wrong where it finds something."""
    formula: str
    """When it finds something, in terms of its threshold `t`."""
    threshold: float | None
    """`t`; None where a limit of the config sets it, and the check is off without."""
    consequence: Consequence
    system: Callable[[Inspected, float], Iterator[Found]] | None = None
    """Check of one system."""
    systems: Callable[[Sides, float], Iterator[Found]] | None = None
    """Check of the systems of a comparison together."""
    limit: str = ""
    """The key of `limits:` that sets the threshold, where one does."""
    unless: tuple[str, ...] = ()
    """Checks whose finding about the same system explains this one, which is then left out."""
    cause: str = ""
    """The usual cause and what to do about it, for the documentation."""


_SAME_LIST = (
    "different expectations with the most frequent list / all different expectations >= t, 10 or more, or 4 or more with a "
    "list of 5 results or more"
)
_REHASH = (
    "Look at the places that changed, correct the test set, and rehash it: `cranfield testset rehash SET --repo DIR`."
)
_ROWS = (
    EvidenceCheck(
        "uncommitted-changes",
        "The repository has, or had when the set was made, uncommitted changes (--allow-dirty).",
        "files that differ from the commit > t",
        0,
        Consequence.CAVEAT,
        system=uncommitted_changes,
        cause="Commit them, or name a commit with --at. To tie a stored set to a new commit, run "
        "`cranfield testset rehash SET --repo DIR`.",
    ),
    EvidenceCheck(
        "kept-answers",
        "Answers were reused from an earlier run, and the system was not queried again.",
        "kept answers > t",
        0,
        Consequence.CAVEAT,
        system=kept_answers,
        cause="Run again with --refresh, or without cache_h in the config.",
    ),
    EvidenceCheck(
        "resumed-answers",
        "Answers were given before the run was interrupted, and the system may have changed until it was resumed.",
        "answers of the interrupted part that are older than t hours, or 1 hour where `depends` is unchanged > 0",
        0,
        Consequence.CAVEAT,
        system=resumed_answers,
        cause="To send every query again, remove the folder .partial in the output folder before repeating a run; or list in "
        "`depends` what the answers depend on.",
    ),
    EvidenceCheck(
        "changed-meanwhile",
        "The dependencies of the system (`depends`) changed while the queries were sent.",
        "digest of `depends` after the last query != digest before the first",
        0,
        Consequence.CAVEAT,
        system=changed_meanwhile,
        cause="Run again while the index is not being built.",
    ),
    EvidenceCheck(
        "failed-queries",
        "The system failed on too many queries, or has no answer to them.",
        "(failed + unanswered queries) / queries > t",
        0.1,
        Consequence.VOID,
        system=failed_queries,
        limit="max_failed_share",
        cause="Read the reasons of the failures in the report; raise the limit only if the failures are valid answers.",
    ),
    EvidenceCheck(
        "judged-share",
        "Too few of the results are judged.",
        "mean Judged@k < t, k the cutoff of the primary measure or 10",
        None,
        Consequence.VOID,
        system=low_judged_share,
        limit="min_judged_share",
        cause="Judge the results of every system to the depth of the primary measure.",
    ),
    EvidenceCheck(
        "unpaired-queries",
        "Too many queries have a value for some systems only, so they cannot be paired.",
        "queries with a value for some systems and not for all / queries > t",
        0.1,
        Consequence.VOID,
        systems=unpaired_queries,
        limit="max_failed_share",
        cause="Run every system on all queries.",
    ),
    EvidenceCheck(
        "never-judged",
        "A large part of the queries have no judgment and are left out of the means.",
        "queries without a judgment / queries > t",
        0.1,
        Consequence.CAVEAT,
        systems=never_judged_queries,
        cause="Judge these queries, or score them by the test set's own judgments with --qrels-fallback.",
    ),
    EvidenceCheck(
        "nothing-judged",
        "No result is judged yet, as in a starter test set: every grade is under 0.",
        "queries whose grades are all under 0 / queries that expect something >= t",
        1,
        Consequence.VOID,
        systems=nothing_judged,
        cause="Judge results of the test set, or give judgments with --qrels.",
    ),
    EvidenceCheck(
        "query-form",
        "The run answers queries under ids in another form than those of the test set, and they count as unanswered.",
        "unanswered queries that a transformation pairs with queries that only the run has / queries without a pair, of the "
        "side that has fewer >= t",
        0.5,
        Consequence.VOID,
        system=query_form_differs,
        cause="Write the query ids of the run as the test set has them: the transformation is named with an example. A table "
        "whose ids were read as numbers has lost their zeros: read that column as text.",
    ),
    EvidenceCheck(
        "answer-rules",
        "Answers break a rule that the config of their system declares for every answer.",
        "answers that break a rule of `preflight: every_answer` / answers > t",
        0,
        Consequence.VOID,
        system=broken_answer_rules,
        cause="The system answered in another mode than it was configured for: correct that, and run it again.",
    ),
    EvidenceCheck(
        "empty-answers",
        "Nearly all queries have no result, because the system is empty, filters everything out or failed.",
        "queries without a result / queries that expect one >= t, of 5 queries or more, or all of 3 or more",
        0.9,
        Consequence.VOID,
        system=empty_answers,
        cause="Send one query with `cranfield system probe NAME QUERY --raw`, and read its raw output.",
    ),
    EvidenceCheck(
        "nothing-matched",
        "No result of any query is a document, place or symbol that the test set judges, for this query or any other.",
        "queries with results >= t, and the ids of the results and of the test set have none in common; of fewer queries, "
        "where a transformation makes ids of two queries match, or where every expected id has a character that no result "
        "has, or the reverse",
        10,
        Consequence.VOID,
        system=nothing_matched,
        cause="The ids have another form, or the corpus is different: compare the two examples in the message.",
    ),
    EvidenceCheck(
        "unjudged-results",
        "Most of the results are unjudged.",
        "mean Judged@k < t, k the cutoff of the primary measure or 10, for one system and for three or more; for two, if the "
        "effect of judgments on the verdict is not bounded",
        0.5,
        Consequence.CAVEAT,
        systems=mostly_unjudged,
        unless=("nothing-judged", "nothing-matched"),
        cause="Judge results of every system; for two systems, `cranfield holes A B --testset SET` lists the results that can change the verdict.",
    ),
    EvidenceCheck(
        "results-without-lines",
        "The test set expects lines of files, or fields of results, that the results do not have.",
        "results without lines that match nothing / results of these queries >= t",
        0.9,
        Consequence.VOID,
        system=results_without_lines,
        cause="Extract `span` as `12-40`, or ids such as `src/a.rs:12-40`.",
    ),
    EvidenceCheck(
        "one-id",
        "One id is a large part of all results and repeats within their lists, so it does not identify a result.",
        "results with the most frequent id, where it is not expected / all results >= t, more than one per query, 10 queries or more",
        0.5,
        Consequence.VOID,
        system=one_id,
        cause="The id is read from the wrong place: in a regular expression the group of the id must hold the whole id.",
    ),
    EvidenceCheck(
        "same-list",
        "Queries that expect different documents get the same list.",
        _SAME_LIST,
        0.9,
        Consequence.VOID,
        system=same_list,
        unless=("one-id",),
        cause="The query does not reach the system: look for `{query}` in its command, body or arguments.",
    ),
    EvidenceCheck(
        "shifted-answers",
        "The answers belong to the previous or the next query: ids and answers are paired wrongly.",
        "queries that match only what the query before them expects (or after) / queries with results >= t, 5 or more, and four "
        "times those that match what they expect",
        0.4,
        Consequence.VOID,
        system=shifted_answers,
        unless=("one-id", "same-list"),
        cause="Answers are written in a different order than the queries, because of a header line or calls that finish out of order.",
    ),
    EvidenceCheck(
        "tied-scores",
        "All results of a query have one score, so that their order is that of the document ids.",
        "queries whose judged results tie with the whole list / queries with two results or more >= t, of 10 or more",
        0.9,
        Consequence.VOID,
        system=tied_scores,
        cause="Write the scores, or falling numbers; or choose a convention that orders by rank.",
    ),
    EvidenceCheck(
        "nothing-relevant",
        "No result of any query is relevant.",
        "queries with results that expect one >= t, and none has a relevant result",
        3,
        Consequence.CAVEAT,
        system=nothing_relevant,
        unless=("empty-answers", "nothing-matched", "results-without-lines", "one-id", "same-list", "shifted-answers"),
        cause="Check the form of the ids, the corpus and the test set; a system that finds nothing at all is rare.",
    ),
    EvidenceCheck(
        "id-form",
        "Results would be relevant if their ids had the form of the expected ones; the transformation is named.",
        "queries without a relevant result that one transformation would give one / queries >= t, 3 or more",
        0.1,
        Consequence.CAVEAT,
        system=id_form,
        unless=("nothing-matched",),
        cause="Change the extraction, the ids of the test set, or its matching rules (`strip`, `roots`).",
    ),
    EvidenceCheck(
        "self-retrieval",
        "Queries are documents of the corpus, and most of them return themselves as the first result.",
        "queries whose first result has their id, which is not expected / queries with results >= t, 2 or more",
        0.5,
        Consequence.CAVEAT,
        system=self_retrieval,
        cause="Leave these results out with --ignore-identical-ids, `ignore_identical_ids` under `options` of the config, or "
        "`matching: {ignore_identical_ids: true}` in the test set.",
    ),
    EvidenceCheck(
        "repeated-list",
        "Many queries that expect different documents get the same list, as from a fallback.",
        _SAME_LIST,
        0.3,
        Consequence.CAVEAT,
        system=same_list,
        unless=("same-list", "one-id"),
        cause="Look at the answers of these queries: a part of them fails inside the system, and a fixed list is returned.",
    ),
    EvidenceCheck(
        "few-ids",
        "The results have few distinct ids, and most of them repeat an id of their list.",
        "distinct ids / results <= t, half of the results or more repeated in their list, 30 results or more",
        0.1,
        Consequence.CAVEAT,
        system=few_ids,
        unless=("one-id",),
        cause="A part of the id was extracted, or the results are chunks of few documents.",
    ),
    EvidenceCheck(
        "duplicates",
        "A large part of the results repeat an id of their list, and are dropped.",
        "dropped results / results >= t",
        0.25,
        Consequence.CAVEAT,
        system=duplicates,
        unless=("one-id", "few-ids"),
        cause="Extract the id of the chunk, or its `span`; or request more results than are shown.",
    ),
    EvidenceCheck(
        "missing-queries",
        "A run file has no line for some queries, which count as 0.",
        "queries without a line / queries that expect a result >= t, of 5 queries or more",
        0.1,
        Consequence.CAVEAT,
        system=missing_queries,
        unless=("query-form",),
        cause="The file was cut short, or is of another test set; `--missing skip` leaves these queries out.",
    ),
    EvidenceCheck(
        "reversed-order",
        "Relevant results are nearer to the end of their list than to its beginning, beyond chance.",
        "(mean place - 0.5) * sqrt(12 n) >= t, where a place is (rank - 0.5) / length, n relevant results, 30 or more",
        4,
        Consequence.CAVEAT,
        system=reversed_order,
        cause="The scores are distances: declare `order: ascending`, or write them with the other sign.",
    ),
    EvidenceCheck(
        "empty-on-one-side",
        "One system has no result for many queries that another answers.",
        "queries without a result that another system has results for / queries that expect one >= t, 2 or more",
        0.3,
        Consequence.CAVEAT,
        systems=empty_on_one_side,
        cause="A part of the index is missing, a filter or a strict parser of queries removes everything, or the pattern `empty` "
        "matches answers with results.",
    ),
    EvidenceCheck(
        "cut-short",
        "The lists were cut before the cutoff of the primary measure.",
        "depth of the run, or --depth, < cutoff of the primary measure, and a list as long as that depth",
        0,
        Consequence.VOID,
        systems=cut_short,
        cause="`k` of the config, or of the saved run, is smaller than the cutoff: raise it, or leave it out, and collect again.",
    ),
    EvidenceCheck(
        "short-lists",
        "The lists of one system are far shorter than those of another.",
        "mean length / longest mean length < t, to the depth of the primary measure, of queries with results",
        0.5,
        Consequence.CAVEAT,
        systems=short_lists,
        cause="Request as many results from every system.",
    ),
    EvidenceCheck(
        "missing-family",
        "Queries expect ids of one family (a scheme, a folder, a collection), and no system ever returns such an id.",
        "(1 - share of other queries with a relevant result) ^ queries of the family <= t, 3 queries or more",
        0.001,
        Consequence.CAVEAT,
        systems=missing_family,
        cause="That part of the corpus is not indexed, or its ids have another form.",
    ),
    EvidenceCheck(
        "same-results",
        "Two systems return the same results on every query, although their runs differ.",
        "the lists are equal on every query, of t queries or more",
        10,
        Consequence.CAVEAT,
        systems=same_results,
        cause="The setting that differs has no effect, or is not passed on.",
    ),
    EvidenceCheck(
        "judged-gap",
        "The results of one system are judged far more often than those of another.",
        "largest - smallest mean Judged@k >= t, where documents are judged not relevant too",
        0.2,
        Consequence.CAVEAT,
        systems=judged_gap,
        cause="The judgments were made from the results of one system: judge those of the other too.",
    ),
    EvidenceCheck(
        "intact-queries",
        "Queries were left out because places that they expect have changed (--intact).",
        "queries left out > t",
        0,
        Consequence.CAVEAT,
        system=queries_noted(NoteKind.INTACT),
        cause=_REHASH,
    ),
    EvidenceCheck(
        "drifted-queries",
        "Queries expect places that have changed, which was accepted (--allow-drift).",
        "queries with a changed place > t",
        0,
        Consequence.CAVEAT,
        system=queries_noted(NoteKind.DRIFT),
        cause=_REHASH,
    ),
    EvidenceCheck(
        "identical-runs",
        "Two systems have the same run: usually a file or a setting was named twice.",
        "digests of two runs are equal",
        0,
        Consequence.CAVEAT,
        systems=identical_runs,
        cause="Check the paths and the settings of both systems.",
    ),
)
CHECKS: Mapping[str, EvidenceCheck] = {check.name: check for check in _ROWS}
"""Every check by name, in the order findings are shown."""


def inspect_systems(systems: Sequence[Scored], primary: Measure | None, limits: Limits) -> tuple[Finding, ...]:
    """What every check finds: of each system, and of two or more together; what is void comes first.

    Args:
        systems: on one test set.
        primary: the measure that decides; None where no measure has a value.
        limits: their thresholds, and how checks differ from the table.

    Raises:
        UnknownNameError: there is no such check.
    """
    refuse_unknown(limits)
    settings = limits.evidence
    shares = {"max_failed_share": limits.max_failed_share, "min_judged_share": limits.min_judged_share}
    findings: list[Finding] = []
    views = [Inspected(system, None if primary is None else primary.depth) for system in systems]
    for check in CHECKS.values():
        consequence, threshold = _rule(check, settings.get(check.name, Setting()), shares)
        if consequence is Consequence.OFF or threshold is None:
            continue
        for system, found in _apply(check, views, primary, threshold):
            if any(other.check in check.unless and system in {"", other.system} for other in findings):
                continue
            text = "" if found.of_testset else found.sentence
            sentence = f"{system}: {text}" if system and text else found.sentence
            findings.append(
                Finding(
                    check.name,
                    consequence,
                    system,
                    sentence,
                    found.query_ids,
                    found.count,
                    found.total,
                    text=text if system else "",
                )
            )
    sorted_ = tuple(sorted(findings, key=lambda finding: not finding.is_void))
    return without_secrets(sorted_, systems)


def refuse_unknown(limits: Limits) -> None:
    """Refuse settings of checks that there are not.

    Raises:
        UnknownNameError: with each of them.
    """
    problems = [unknown_name("evidence check", name, CHECKS) for name in limits.evidence if name not in CHECKS]
    if problems:
        raise UnknownNameError(problems)


def threshold_of(name: str, settings: Settings) -> float | None:
    """The threshold of a check that no limit sets; None where the check is off."""
    consequence, threshold = _rule(CHECKS[name], settings.get(name, Setting()), {})
    return None if consequence is Consequence.OFF else threshold


def _rule(
    check: EvidenceCheck, setting: Setting, limits: Mapping[str, float | None]
) -> tuple[Consequence, float | None]:
    """The consequence and the threshold of a check; no threshold where a limit is switched off."""
    threshold = limits.get(check.limit, check.threshold) if check.limit else check.threshold
    return setting.consequence or check.consequence, threshold if setting.threshold is None else setting.threshold


def _apply(
    check: EvidenceCheck, systems: Sequence[Inspected], primary: Measure | None, threshold: float
) -> Iterator[tuple[str, Found]]:
    if check.system is not None:
        for system in systems:
            for found in check.system(system, threshold):
                yield system.name, found
    if check.systems is not None and primary is not None:
        for found in check.systems(Sides(systems, primary), threshold):
            yield "", found


def known_setting(name: str, value: object) -> Setting:
    """A setting of a check that there is; see `as_setting`.

    Raises:
        UnknownNameError: there is no such check.
        UsageError: the value is none.
    """
    if name not in CHECKS:
        raise UnknownNameError.among("evidence check", name, CHECKS)
    return as_setting(name, value)


def parse_settings(written: Sequence[str]) -> dict[str, Setting]:
    """Settings as the command line writes them: `same-list=off`, `duplicates=0.4`; a check named twice has both.

    Raises:
        UsageError: with every one that is none.
    """
    settings: dict[str, Setting] = {}
    problems: list[Problem] = []
    for text in written:
        name, equals, value = (part.strip() for part in text.partition("="))
        try:
            if not equals:
                raise UsageError(f"--evidence is {shorten(text)}", expected="NAME=VALUE such as same-list=off")
            setting, former = known_setting(name, _number(value)), settings.get(name, Setting())
        except CranfieldError as error:
            problems += error.problems
            continue
        settings[name] = Setting(
            setting.consequence or former.consequence,
            former.threshold if setting.threshold is None else setting.threshold,
        )
    if problems:
        raise UsageError(problems)
    return settings


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
