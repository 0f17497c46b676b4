"""The tools of the benchmark: how each is called, with which interpreter, and how often."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

BENCH = Path(__file__).resolve().parent
CHECKOUT = BENCH.parent
DATA = BENCH / "data"
RECORDS = DATA / "results"
"""What was measured, as JSON, so that a run can be resumed and written up."""
VALUES = DATA / "values"
NUMBA_CACHE = DATA / "numba"
OURS = CHECKOUT / ".venv" / "bin" / "python"
"""Cranfield runs where `make setup` put it, the others in bench/.venv; both are the same Python and the same numpy."""
THEIRS = BENCH / ".venv" / "bin" / "python"
COMMAND = OURS.with_name("cranfield")
SIZES = ("S", "M", "L")
MEASURES = ("nDCG@10", "AP", "RR@10", "P@10", "R@100", "R@1000", "Success@5")
TREC_EVAL_MEASURES = ["ndcg_cut.10", "map", "recip_rank", "P.10", "recall.100,1000", "success.5"]
REFERENCES = ("pytrec_eval", "trec_eval", "ranx")
"""Every tool is set against these, round by round."""

ValuesFormat = Literal["cranfield", "peer", "trec_eval", "none"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A way from files to values, or a floor: the least that reading takes."""

    key: str
    label: str
    argv: tuple[str, ...]
    """Words of the command; {qrels}, {run} and {out} stand for files."""
    values: ValuesFormat
    """How its output is read; `none` gives no values."""
    rounds: Mapping[str, int] = field(default_factory=lambda: {"S": 5, "M": 3, "L": 3})
    """Rounds per size; a size that is not named is not measured."""
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_factor: float = 0.0
    """Bytes in memory per byte of run file, where that may be more than a machine has."""
    forget: Path | None = None
    """A folder removed before each round."""
    output: Literal["stdout", "out"] = "stdout"
    missing: str = ""
    """Why it cannot be run here."""


def _cranfield(key: str, label: str, rounds: Mapping[str, int], environment: Mapping[str, str]) -> Tool:
    measures = [word for measure in MEASURES for word in ("-m", measure)]
    argv = (str(COMMAND), "evaluate", "{qrels}", "{run}", *measures, "--format", "json", "--no-cache")
    return Tool(key, label, argv, "cranfield", rounds, environment)


def _peer(key: str, label: str, rounds: Mapping[str, int], factor: float) -> Tool:
    program = str(BENCH / "peers" / f"with_{key}.py")
    numba = {"NUMBA_CACHE_DIR": str(NUMBA_CACHE)}
    argv = (str(THEIRS), program, "{qrels}", "{run}", "{out}")
    return Tool(key, label, argv, "peer", rounds, numba, factor, output="out")


def _floor(key: str, label: str) -> Tool:
    return Tool(key, label, (str(THEIRS), str(BENCH / "peers" / f"{key}.py"), "{run}"), "none")


def _trec_eval(binary: str | None) -> Tool:
    found = shutil.which(binary) if binary else None
    asked = tuple(word for measure in TREC_EVAL_MEASURES for word in ("-m", measure))
    missing = "" if found else f"{binary} is not a program" if binary else "not built: --trec-eval PATH names a binary"
    argv = (found or "trec_eval", "-q", *asked, "{qrels}", "{run}")
    rounds = {"S": 5, "M": 3, "L": 1}
    return Tool("trec_eval", "trec_eval", argv, "trec_eval", rounds, memory_factor=2.5, missing=missing)


def _cold_ranx() -> Tool:
    argv = (str(THEIRS), str(BENCH / "peers" / "with_ranx.py"), "{qrels}", "{run}", "{out}")
    numba = {"NUMBA_CACHE_DIR": str(NUMBA_CACHE)}
    label = "ranx, first ever (nothing compiled)"
    return Tool("ranx-cold", label, argv, "peer", {"S": 1}, numba, forget=NUMBA_CACHE, output="out")


def tools(trec_eval: str | None = None) -> list[Tool]:
    """Every tool, in the order of a round; ranx without its compiled code comes first, and so compiles it for the rest.

    Args:
        trec_eval: the binary; by default that of the environment variable TREC_EVAL.
    """
    slow = {"S": 5, "M": 3, "L": 1}
    return [
        _cold_ranx(),
        Tool("wc", "floor: wc -l", ("/usr/bin/wc", "-l", "{run}"), "none"),
        _floor("parse_polars", "floor: Polars parses three columns"),
        _floor("parse_duckdb", "floor: DuckDB parses three columns"),
        _cranfield("cranfield", "Cranfield", {"S": 5, "M": 3, "L": 3}, {}),
        _cranfield("cranfield-1", "Cranfield, 1 thread", {"S": 5, "M": 3, "L": 3}, {"CRANFIELD_JOBS": "1"}),
        _cranfield(
            "cranfield-python", "Cranfield without its kernel", {"S": 5, "M": 1}, {"CRANFIELD_ENGINE": "python"}
        ),
        _trec_eval(trec_eval or os.environ.get("TREC_EVAL")),
        _peer("pytrec_eval", "pytrec_eval-terrier", slow, 5.2),
        _peer("ranx", "ranx (compiled code cached)", {"S": 3, "M": 3, "L": 1}, 10.0),
        _peer("ir_measures", "ir_measures", slow, 9.5),
    ]


def fingerprint(interpreter: Path) -> str:
    """Changes when what is measured does: our sources and compiled kernel, or the pins and programs of the others."""
    if interpreter == OURS:
        files = sorted(
            path for path in (CHECKOUT / "src" / "cranfield").rglob("*") if path.suffix in {".py", ".c", ".so"}
        )
    else:
        files = [BENCH / "requirements.txt", *sorted((BENCH / "peers").glob("*.py"))]
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Ours, with compiled bytecode kept between starts as on a user's machine, and no engine chosen beforehand."""
    dropped = {"PYTHONDONTWRITEBYTECODE", "CRANFIELD_ENGINE", "CRANFIELD_JOBS", "CRANFIELD_CACHE"}
    return {key: value for key, value in os.environ.items() if key not in dropped} | dict(extra)


def say(text: str) -> None:
    """Progress goes to stderr."""
    print(text, file=sys.stderr, flush=True)
