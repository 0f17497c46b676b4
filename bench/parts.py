"""What each part of `cranfield evaluate` costs, with the kernel and without. `python bench/parts.py S M`."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from engine import run_once
from generate import SIZES as DATA_SIZES
from generate import excerpt, make
from tables import parts_table
from tools import BENCH, DATA, OURS, RECORDS, SIZES, clean_environment, say, tools

ROUNDS = 5
ENOUGH_SECONDS = 30.0
"""No further round of an engine is begun after this long."""
ENGINES = {"as installed": {}, "without the kernel": {"CRANFIELD_ENGINE": "python"}}


def bare_seconds() -> float:
    """A Python that does nothing."""
    began = time.perf_counter()
    subprocess.run([str(OURS), "-c", "pass"], check=True, env=clean_environment({}))
    return time.perf_counter() - began


def one_round(size: str, environment: dict[str, str]) -> dict[str, Any]:
    """The parts in one process, and the command as a whole in another."""
    tiny = excerpt("S", DATA, 1)
    files = DATA / f"{size}.qrels", DATA / f"{size}.run"
    argv = [str(OURS), str(BENCH / "spans.py"), *map(str, (*files, *tiny))]
    called = subprocess.run(
        argv,
        env=clean_environment({**environment, "CRANFIELD_CACHE": "off"}),
        capture_output=True,
        text=True,
        check=False,
    )
    if called.returncode:
        raise RuntimeError(called.stderr.strip().splitlines()[-1])
    found: dict[str, Any] = json.loads(called.stdout)
    command = next(tool for tool in tools() if tool.key == "cranfield")
    whole = run_once(command, files, Path("/dev/null"), environment)
    if whole["status"]:
        raise RuntimeError(whole["error"])
    return found | {"command": whole["wall"], "bare": bare_seconds()}


def middle(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over rounds, part by part."""
    numbers = {
        key: statistics.median(r[key] for r in rounds) for key in ("bare", "imports", "digest", "whole", "command")
    }
    parts = {part: statistics.median(r["parts"][part] for r in rounds) for part in rounds[0]["parts"]}
    last = rounds[-1]
    return numbers | {"parts": parts, "n": len(rounds), "engine": last["engine"], "json_bytes": last["json_bytes"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="+", choices=SIZES)
    options = parser.parse_args()
    RECORDS.mkdir(parents=True, exist_ok=True)
    for size in options.sizes:
        make(DATA_SIZES[size], DATA)
        make(DATA_SIZES["S"], DATA)
        found: dict[str, Any] = {}
        for name, environment in ENGINES.items():
            began, rounds = time.monotonic(), []
            while len(rounds) < ROUNDS and (not rounds or time.monotonic() - began < ENOUGH_SECONDS):
                try:
                    rounds.append(one_round(size, environment))
                except RuntimeError as error:
                    say(f"{size} parts, {name}: {error}")
                    return 1
                say(f"{size} parts, {name}, round {len(rounds)}: {rounds[-1]['command']:.2f} s")
            found[name] = middle(rounds)
        (RECORDS / f"parts-{size}.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
        print("\n" + parts_table(size, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
