"""trec_eval's measures: their names, parameters and order in one table, and which measure of the catalogue each is.

What the catalogue knows is read from it (`trec_name`, `trec_cut_name`, `needs`, `aggregate`) and not written again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from cranfield.base.errors import Problem, UsageError, unknown_name
from cranfield.base.words import join_first
from cranfield.compat.trec_eval.options import MeasureArgument, Options, QrelsFormat, Version
from cranfield.measures import CATALOGUE, Measure, MeasureSpec
from cranfield.measures.measure import Gains, Parameter
from cranfield.measures.parse import MAX_CUTOFF

Takes = Literal["nothing", "ranks", "shares", "numbers", "pairs"]
"""Parameters: cutoffs at ranks; at shares; numbers whose order counts; or a gain for each grade."""
RANKS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
TENTHS = tuple(tenth / 10 for tenth in range(11))
MULTIPLES = tuple(fifth / 5 for fifth in range(1, 11))
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
LEAST = 1e-5
"""Under a geometric mean, smaller values count as this."""


@dataclass(frozen=True, slots=True)
class TrecMeasure:
    """One measure of trec_eval."""

    name: str
    takes: Takes = "nothing"
    defaults: tuple[float, ...] = ()
    """Cutoffs where none is given."""
    fills: tuple[str, ...] = ()
    """Parameters of our measure that its numbers are, in order."""
    since: Version = 9
    catalogue_name: str = ""
    """Name in the catalogue, where defaults differ and the catalogue cannot say it is the same."""
    sets: tuple[tuple[str, Parameter], ...] = ()
    """Parameters that make it the same."""

    @property
    def usual_cutoffs(self) -> list[int] | list[float]:
        """Ranks or shares where none is given, in ascending order."""
        return sorted(self.defaults) if self.takes == "shares" else sorted(map(int, self.defaults))


TABLE = (
    TrecMeasure("runid"),
    TrecMeasure("num_q"),
    TrecMeasure("num_ret"),
    TrecMeasure("num_rel"),
    TrecMeasure("num_rel_ret"),
    TrecMeasure("map"),
    TrecMeasure("gm_map"),
    TrecMeasure("Rprec"),
    TrecMeasure("bpref"),
    TrecMeasure("recip_rank"),
    TrecMeasure("iprec_at_recall", "shares", TENTHS),
    TrecMeasure("P", "ranks", RANKS),
    TrecMeasure("relstring", "numbers", (10,)),
    TrecMeasure("recall", "ranks", RANKS),
    TrecMeasure("infAP"),
    TrecMeasure("gm_bpref"),
    TrecMeasure("Rprec_mult", "shares", MULTIPLES),
    TrecMeasure("utility", "numbers", fills=("found", "wrong", "missed", "spared")),
    TrecMeasure("11pt_avg", "numbers"),
    TrecMeasure("binG"),
    TrecMeasure("G", "pairs"),
    TrecMeasure("dcg", "pairs", since=10),
    TrecMeasure("ideal_dcg", "pairs", since=10),
    TrecMeasure("ndcg", "pairs"),
    TrecMeasure("ndcg_rel", "pairs"),
    TrecMeasure("Rndcg", "pairs"),
    TrecMeasure("ndcg_cut", "ranks", RANKS),
    TrecMeasure("map_cut", "ranks", RANKS),
    TrecMeasure("relative_P", "ranks", RANKS),
    TrecMeasure("success", "ranks", (1, 5, 10)),
    TrecMeasure("set_P"),
    TrecMeasure("set_relative_P"),
    TrecMeasure("set_recall"),
    TrecMeasure("set_map"),
    TrecMeasure("set_F", "numbers", fills=("beta",)),
    TrecMeasure("num_nonrel_judged_ret"),
    TrecMeasure("prefs_num_prefs_poss"),
    TrecMeasure("prefs_num_prefs_ful"),
    TrecMeasure("prefs_num_prefs_ful_ret"),
    TrecMeasure("prefs_simp"),
    TrecMeasure("prefs_pair"),
    TrecMeasure("prefs_avgjg"),
    TrecMeasure("prefs_avgjg_Rnonrel"),
    TrecMeasure("prefs_simp_ret"),
    TrecMeasure("prefs_pair_ret"),
    TrecMeasure("prefs_avgjg_ret"),
    TrecMeasure("prefs_avgjg_Rnonrel_ret"),
    TrecMeasure("prefs_simp_imp"),
    TrecMeasure("prefs_pair_imp"),
    TrecMeasure("prefs_avgjg_imp"),
    TrecMeasure("map_avgjg"),
    TrecMeasure("P_avgjg", "ranks", RANKS),
    TrecMeasure("Rprec_mult_avgjg", "shares", MULTIPLES),
    TrecMeasure("yaap"),
    TrecMeasure("rbp", "pairs", since=10, catalogue_name="RBP", sets=(("p", 0.9), ("depth", 0))),
    TrecMeasure("rbp_resid", "pairs", since=10),
    TrecMeasure("unj", "ranks", (5, 10, 20), since=10),
)
"""In the order trec_eval prints them."""
ROWS = {row.name: row for row in TABLE}
SPECS: dict[str, MeasureSpec] = {
    name: spec for spec in CATALOGUE.values() for name in (spec.trec_name, spec.trec_cut_name) if name in ROWS
} | {row.name: CATALOGUE[row.catalogue_name] for row in TABLE if row.catalogue_name}
"""trec_eval's name to the row of the catalogue. Only `runid` and `relstring`, which are no numbers, have none."""

ANY_FORMAT = frozenset({"runid", "num_q"})
OUTSIDE_ALL_TREC = frozenset({"dcg", "ideal_dcg", "yaap"})
SUMMED_UP = frozenset({"runid", "num_q", "num_ret", "num_rel", "num_rel_ret"})


def _reads(row: TrecMeasure) -> tuple[QrelsFormat, ...]:
    """Formats of QRELS that a measure can be had from."""
    needs = SPECS[row.name].needs if row.name in SPECS else None
    formats: dict[str | None, tuple[QrelsFormat, ...]] = {
        "preference": ("prefs", "qrels_prefs"),
        "judge": ("qrels_jg",),
        None: ("qrels",),
    }
    return ("qrels", "qrels_jg", "prefs", "qrels_prefs") if row.name in ANY_FORMAT else formats[needs]


def _read_from(qrels_format: QrelsFormat) -> frozenset[str]:
    return frozenset(row.name for row in TABLE if qrels_format in _reads(row))


NICKNAMES: dict[str, frozenset[str]] = {
    "official": SUMMED_UP | {"map", "gm_map", "Rprec", "bpref", "recip_rank", "iprec_at_recall", "P"},
    "set": SUMMED_UP | {"utility", "set_P", "set_recall", "set_relative_P", "set_map", "set_F"},
    "all_trec": _read_from("qrels") - OUTSIDE_ALL_TREC,
    "all_prefs": _read_from("prefs"),
    "prefs": ANY_FORMAT
    | {"prefs_num_prefs_poss", "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret"}
    | {"prefs_simp", "prefs_pair", "prefs_avgjg"},
    "qrels_jg": _read_from("qrels_jg"),
}


@dataclass(frozen=True, slots=True)
class PrintedColumn:
    """One value that is printed, for every query and for all of them."""

    label: str
    """As printed."""
    row: TrecMeasure
    measures: tuple[Measure, ...]
    """Its value is their mean; none where it is no number."""
    length: int = 0
    """Length of a relstring."""

    @property
    def aggregate(self) -> Literal["mean", "sum", "geometric mean", "none"]:
        """How it is summed up over queries."""
        return SPECS[self.row.name].aggregate if self.row.name in SPECS else "none"


@dataclass(frozen=True, slots=True)
class PrintPlan:
    """What to print, in order, and what of the call has no effect."""

    columns: tuple[PrintedColumn, ...]
    notes: tuple[str, ...]


def plan(options: Options) -> PrintPlan:
    """Turn the `-m` of a command line into columns.

    As in trec_eval, the order is that of the table, a measure is printed once however often it is requested, and the
    first parameters given for it hold.

    Raises:
        UsageError: naming every measure that is unknown, has parameters that make no sense, or cannot be had from this
            format of QRELS.
    """
    arguments = options.measures or (MeasureArgument("official"),)
    problems: list[Problem] = []
    marked: set[str] = set()
    given: dict[str, str] = {}
    notes: list[str] = []
    known = {row.name for row in TABLE if row.since <= options.version}
    for argument in arguments:
        names = NICKNAMES.get(argument.name, {argument.name}) & known
        if not names:
            problems.append(_unknown(argument, options.version, known))
        marked |= names
        if argument.parameters is not None and names:
            note = _note_parameters(argument, given)
            notes += [note] if note else []
    problems += _wrong_format(marked, options.qrels_format)
    columns: list[PrintedColumn] = []
    for row in TABLE:
        if row.name in marked:
            try:
                columns += _columns(row, given.get(row.name), options)
            except UsageError as error:
                problems += error.problems
    if problems:
        raise UsageError(problems)
    return PrintPlan(tuple(columns), tuple(notes))


def _unknown(argument: MeasureArgument, version: Version, known: Iterable[str]) -> Problem:
    if argument.name in ROWS:
        return Problem(f"-m {argument}: trec_eval {version} has no such measure", hint="--as 10 has it.")
    return unknown_name("trec_eval measure", argument.name, [*known, *NICKNAMES])


def _note_parameters(argument: MeasureArgument, given: dict[str, str]) -> str | None:
    """Keep the parameters of a measure, or say why they have no effect."""
    if argument.name in NICKNAMES:
        return f"-m {argument}: {argument.name} is a set of measures; its parameters have no effect"
    if ROWS[argument.name].takes == "nothing":
        return f"-m {argument}: {argument.name} takes no parameters; they have no effect"
    first = given.setdefault(argument.name, argument.parameters or "")
    if first != argument.parameters:
        return f"-m {argument}: has no effect after -m {argument.name}.{first}"
    return None


def _wrong_format(marked: set[str], qrels_format: QrelsFormat) -> list[Problem]:
    wrong = [row for row in TABLE if row.name in marked and qrels_format not in _reads(row)]
    if not wrong:
        return []
    names = join_first((row.name for row in wrong), 3)
    fitting = {"qrels": "all_trec", "qrels_jg": "qrels_jg"}.get(qrels_format, "all_prefs")
    needed = " or ".join(f"-R {name}" for name in _reads(wrong[0]))
    return [
        Problem(
            f"judgments in the format {qrels_format} are not enough for {names}",
            expected=needed,
            hint=f"-m {fitting} prints what -R {qrels_format} allows.",
        )
    ]


def _columns(row: TrecMeasure, given: str | None, options: Options) -> list[PrintedColumn]:
    """The columns of one measure, with these parameters or its own."""
    if row.name not in SPECS:
        length = 0 if row.takes == "nothing" else _length(row, given)
        return [PrintedColumn(_label(row, given), row, (), length)]
    common = common_parameters(SPECS[row.name], options) | dict(row.sets)
    make = partial(measure_with, SPECS[row.name], common)
    if row.takes in {"ranks", "shares"}:
        cutoffs = _cutoffs(row, given)
        form: Callable[[float], str] = str if row.takes == "ranks" else "{:3.2f}".format
        return [PrintedColumn(f"{row.name}_{form(cutoff)}", row, (make({}, cutoff),)) for cutoff in cutoffs]
    if given is None:
        return [PrintedColumn(row.name, row, (make({}),))]
    if row.name == "11pt_avg":
        points = _numbers(row, given)
        shares = [measure_with(SPECS["iprec_at_recall"], common, {}, point) for point in points]
        return [PrintedColumn(_label(row, given), row, tuple(shares))]
    return [PrintedColumn(_label(row, given), row, (make(_parameters(row, given)),))]


def _label(row: TrecMeasure, given: str | None) -> str:
    return row.name if given is None else f"{row.name}_{given}"


def common_parameters(spec: MeasureSpec, options: Options) -> dict[str, Parameter]:
    """What options of the command line make of a measure's parameters."""
    defaults = {parameter.name: parameter.default for parameter in spec.parameters}
    common: dict[str, Parameter] = {}
    if defaults.get("rel") == 1:  # of num_ret it is 0: that counts every result
        common["rel"] = options.level
    if "own_list" in defaults:
        common["own_list"] = options.judged_only
    if "documents" in defaults:
        common["documents"] = options.collection_size
    return common


def measure_with(
    spec: MeasureSpec, common: Mapping[str, Parameter], more: Mapping[str, Parameter], cutoff: float | None = None
) -> Measure:
    """A measure with these parameters, without those at their defaults."""
    values = {**common, **more}
    parameters = tuple((p.name, values[p.name]) for p in spec.parameters if values.get(p.name, p.default) != p.default)
    return Measure(spec.name, parameters, cutoff)


def _cutoffs(row: TrecMeasure, given: str | None) -> list[int] | list[float]:
    """Ranks or shares, in ascending order."""
    if given is None:
        return row.usual_cutoffs
    cutoffs = sorted(_ranks(row, given) if row.takes == "ranks" else _numbers(row, given, least=0.0))
    if len(set(cutoffs)) < len(cutoffs):
        raise _bad(row, given, "a cutoff is given twice", "different cutoffs")
    return cutoffs


def _ranks(row: TrecMeasure, given: str) -> list[int]:
    """Ranks, digits behind a point dropped."""
    words = given.split(",")
    ranks = [int(word.partition(".")[0]) for word in words if re.fullmatch(r"\+?[0-9]{1,10}(\.[0-9]*)?", word)]
    if len(ranks) < len(words) or not all(1 <= rank <= MAX_CUTOFF for rank in ranks):
        raise _bad(row, given, "cannot read the cutoffs", "whole numbers of 1 or more, separated by commas")
    return ranks


def _numbers(row: TrecMeasure, given: str, *, least: float | None = None) -> list[float]:
    words = given.split(",")
    numbers = [float(word) for word in words if re.fullmatch(NUMBER, word)]
    if len(numbers) < len(words) or (least is not None and min(numbers) < least):
        bound = "" if least is None else f" of {least:g} or more"
        raise _bad(row, given, "cannot read the parameters", f"numbers{bound}, commas between")
    return numbers


def _length(row: TrecMeasure, given: str | None) -> int:
    return int(row.defaults[0] if given is None else max(_numbers(row, given)[0], 0.0))


def _parameters(row: TrecMeasure, given: str) -> dict[str, Parameter]:
    """Numbers by their place, or gains by grade; `p` of the rank-biased ones by its name."""
    if row.takes == "numbers":
        numbers = _numbers(row, given)
        if len(numbers) != len(row.fills):
            raise _bad(row, given, f"{len(numbers)} parameters", f"{len(row.fills)}")
        return dict(zip(row.fills, numbers, strict=True))
    pairs = [re.fullmatch(rf"([0-9]{{1,9}}|p)=({NUMBER})", word) for word in given.split(",")]
    found = [(pair[1], float(pair[2])) for pair in pairs if pair]
    takes_p = "p" in {parameter.name for parameter in SPECS[row.name].parameters}
    if len(found) < len(pairs) or (not takes_p and "p" in dict(found)):
        raise _bad(
            row, given, "cannot read the parameters", "GRADE=GAIN" + (" or p=P" if takes_p else "") + ", commas between"
        )
    if len(dict(found)) < len(found):
        raise _bad(row, given, "a parameter is given twice", "each grade once")
    parameters: dict[str, Parameter] = {name: value for name, value in found if name == "p"}
    gains: Gains = tuple(sorted((int(name), value) for name, value in found if name != "p"))
    return parameters | ({"gains": gains} if gains else {})


def _bad(row: TrecMeasure, given: str, message: str, expected: str) -> UsageError:
    return UsageError(f"-m {row.name}.{given}: {message}", expected=expected)
