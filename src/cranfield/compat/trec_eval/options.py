"""The options of trec_eval, parsed from the command line as trec_eval parses them.

The parser and the help use one table of options. `names` documents the parameters of measures.
"""

from __future__ import annotations

import getopt
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from cranfield.base.errors import Problem, UsageError, unknown_name

Version = Literal[9, 10]
VERSIONS: dict[str, Version] = {"9": 9, "9.0.8": 9, "10": 10, "10.0": 10}
QrelsFormat = Literal["qrels", "qrels_jg", "prefs", "qrels_prefs"]
QRELS_FORMATS: dict[str, QrelsFormat] = {name: name for name in get_args(QrelsFormat)}
RESULTS_FORMAT = "trec_results"
HELP_HINT = "`cranfield trec_eval --help` lists the options."


@dataclass(frozen=True, slots=True)
class MeasureArgument:
    """One `-m`: a measure name of trec_eval, and the text after its first point."""

    name: str
    parameters: str | None = None

    def __str__(self) -> str:
        return self.name if self.parameters is None else f"{self.name}.{self.parameters}"


@dataclass(frozen=True, slots=True)
class Options:
    """The parsed command line."""

    wants: Literal["values", "help", "version"] = "values"
    qrels: str = ""
    run: str = ""
    """A path, or `-` for stdin."""
    version: Version = 10
    measures: tuple[MeasureArgument, ...] = ()
    """Empty: the official ones."""
    by_query: bool = False
    summary: bool = True
    complete: bool = False
    level: int = 1
    depth: int | None = None
    judged_only: bool = False
    collection_size: int = 0
    qrels_format: QrelsFormat = "qrels"
    zscores: str | None = None
    only_query: str | None = None


def _switch(field: str, *, on: bool = True) -> Callable[[Options, str, str], Options]:
    return lambda options, _flag, _text: replace(options, **{field: on})  # type: ignore[arg-type]  # a switch


def _number(field: str, least: int) -> Callable[[Options, str, str], Options]:
    def read(options: Options, flag: str, text: str) -> Options:
        return replace(options, **{field: _whole(flag, text, least)})  # type: ignore[arg-type]  # a number

    return read


def _whole(flag: str, text: str, least: int) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
        raise UsageError(f"{flag} is {text!r}", expected=f"a whole number of {least} or more")
    return int(text)


def _known(flag: str, text: str, known: Iterable[str]) -> str:
    if text not in known:
        raise UsageError(unknown_name(f"value of {flag}", text, known))
    return text


def _measure(options: Options, _flag: str, text: str) -> Options:
    name, point, parameters = text.partition(".")
    if point and not parameters:
        raise UsageError(f"-m {text}: the part after the dot is empty", expected="NAME or NAME.PARAMETERS")
    return replace(options, measures=(*options.measures, MeasureArgument(name, parameters if point else None)))


def _qrels_format(options: Options, flag: str, text: str) -> Options:
    return replace(options, qrels_format=QRELS_FORMATS[_known(flag, text, QRELS_FORMATS)])


def _version(options: Options, flag: str, text: str) -> Options:
    return replace(options, version=VERSIONS[_known(flag, text, VERSIONS)])


def _results_format(options: Options, flag: str, text: str) -> Options:
    _known(flag, text, [RESULTS_FORMAT])
    return options


def _debug(options: Options, flag: str, text: str) -> Options:
    level, _, query_id = text.partition(".")
    _whole(flag, level, 0)
    return replace(options, only_query=query_id or None)


@dataclass(frozen=True, slots=True)
class CommandOption:
    """One option of the command line."""

    letter: str
    """Empty where it has none."""
    name: str
    """Long name, without the dashes; any unambiguous prefix is accepted."""
    argument: str
    """Placeholder of the argument in the help; empty for a switch."""
    sentence: str
    read: Callable[[Options, str, str], Options]
    """(options so far, flag as written, argument) to the updated options."""

    @property
    def flag(self) -> str:
        """Spelling in messages and in the help."""
        return f"-{self.letter}" if self.letter else f"--{self.name}"


OPTIONS = (
    CommandOption("q", "query_eval_wanted", "", "Also print the values of each query.", _switch("by_query")),
    CommandOption("m", "measure", "NAME[.PARAMETERS]", "Measure or set of measures; repeat for more.", _measure),
    CommandOption(
        "c",
        "complete_rel_info_wanted",
        "",
        "Average over all judged queries; queries missing from RUN count as 0.",
        _switch("complete"),
    ),
    CommandOption("l", "level_for_rel", "N", "Lowest relevant grade; default: 1.", _number("level", 1)),
    CommandOption("n", "nosummary", "", "Do not print the summary over all queries.", _switch("summary", on=False)),
    CommandOption("J", "Judged_docs_only", "", "Ignore unjudged documents.", _switch("judged_only")),
    CommandOption(
        "M", "Max_retrieved_per_topic", "N", "Use only the first N results of each query.", _number("depth", 1)
    ),
    CommandOption(
        "N",
        "Number_docs_in_coll",
        "N",
        "Number of documents in the collection; used by utility.",
        _number("collection_size", 0),
    ),
    CommandOption("R", "Rel_info_format", "FORMAT", f"Format of QRELS: {', '.join(QRELS_FORMATS)}.", _qrels_format),
    CommandOption(
        "T", "Results_format", "FORMAT", f"Format of RUN; only {RESULTS_FORMAT} is supported.", _results_format
    ),
    CommandOption(
        "Z",
        "Zscore",
        "FILE",
        "Print z-scores; lines of FILE: `query measure mean deviation`.",
        lambda options, _flag, text: replace(options, zscores=text),
    ),
    CommandOption("D", "Debug_level", "N[.QUERY]", "Score only this query; no debugging output is printed.", _debug),
    CommandOption("o", "Output_old_results_format", "", "Accepted and ignored.", lambda options, _flag, _text: options),
    CommandOption("", "as", "VERSION", "Version of trec_eval to reproduce: 10 (default) or 9 (9.0.8).", _version),
    CommandOption(
        "v",
        "version",
        "",
        "Print the version and exit.",
        lambda options, _flag, _text: replace(options, wants="version"),
    ),
    CommandOption(
        "h",
        "help",
        "",
        "Show this message and exit.",
        lambda options, _flag, _text: replace(options, wants="help"),
    ),
)


def parse_arguments(words: Sequence[str]) -> Options:
    """Parse the arguments of `cranfield trec_eval`.

    As with GNU getopt, options and files come in any order, switches may share a dash (`-qc`), an option's argument may
    follow without a space (`-M100`, `-mndcg_cut.5,10`), and long names may be cut short.

    Raises:
        UsageError: naming each thing wrong with the call.
    """
    letters = "".join(option.letter + (":" if option.argument else "") for option in OPTIONS if option.letter)
    names = [option.name + ("=" if option.argument else "") for option in OPTIONS]
    try:
        given, files = getopt.gnu_getopt(list(words), letters, names)
    except getopt.GetoptError as error:
        raise UsageError(f"trec_eval: {error.msg}", hint=HELP_HINT) from None
    options, problems = Options(), list[Problem]()
    for flag, text in given:
        option = next(option for option in OPTIONS if flag in {f"-{option.letter}", f"--{option.name}"})
        try:
            options = option.read(options, option.flag, text)
        except UsageError as error:
            problems.extend(error.problems)
        if options.wants != "values":
            return options
    if len(files) != 2:
        problems.append(Problem(f"trec_eval: {len(files)} files", expected="two, QRELS and RUN", hint=HELP_HINT))
    if problems:
        raise UsageError(problems)
    return replace(options, qrels=files[0], run=files[1])


def help_lines() -> list[tuple[str, str]]:
    """Spelling and description of every option."""
    return [
        (
            f"{f'{option.flag}, ' if option.letter else ''}--{option.name}{' ' * bool(option.argument)}{option.argument}",
            option.sentence,
        )
        for option in OPTIONS
    ]
