"""From dicts in memory to values: Cranfield beside the other tools. `python bench/memory_door.py S M`.

Judgments and run are dicts of dicts, loaded before the clock starts; each case has a process of its own. First is the
first call in that process, best the smallest of all. Peak memory is that of the process, the loaded dicts included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from generate import SIZES as DATA_SIZES
from generate import excerpt, make
from tables import memory_table
from tools import BENCH, DATA, NUMBA_CACHE, OURS, RECORDS, THEIRS, clean_environment, fingerprint, say

REPEATS = {"S": 7, "M": 3}
CASES = {
    "cranfield": ("Cranfield: evaluate(test set, dict)", OURS),
    "cranfield-arrays": ("Cranfield: evaluate(test set, ids=, scores=)", OURS),
    "cranfield-order": ("Cranfield: evaluate(test set, ids=)", OURS),
    "cranfield-pandas": ("Cranfield: evaluate(test set, pandas frame)", OURS),
    "cranfield-polars": ("Cranfield: evaluate(test set, Polars frame)", OURS),
    "cranfield-ranking": ("Cranfield: a ranking made before", OURS),
    "pytrec_eval": ("pytrec_eval-terrier: evaluator, evaluate", THEIRS),
    "ranx": ("ranx: Qrels(dict), Run(dict), evaluate", THEIRS),
    "ranx-built": ("ranx: evaluate of objects made before", THEIRS),
    "ir_measures": ("ir_measures: iter_calc", THEIRS),
    "ir_measures-pandas": ("ir_measures: iter_calc of pandas frames", THEIRS),
}


def measure(case: str, files: tuple[Path, Path], repeats: int) -> dict[str, Any]:
    """One case on (qrels, run)."""
    interpreter = CASES[case][1]
    called = subprocess.run(
        [str(interpreter), str(BENCH / "doors.py"), case, *map(str, files), str(repeats)],
        env=clean_environment({"NUMBA_CACHE_DIR": str(NUMBA_CACHE)}),
        capture_output=True,
        text=True,
        check=False,
    )
    if called.returncode:
        return {"error": called.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(called.stdout.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="+", choices=sorted(REPEATS))
    parser.add_argument("--cases", help="with commas between: " + ", ".join(CASES))
    parser.add_argument("--resume", action="store_true", help="keep what was measured, and go on")
    options = parser.parse_args()
    RECORDS.mkdir(parents=True, exist_ok=True)
    failed = 0
    for size in options.sizes:
        digest = make(DATA_SIZES[size], DATA)["run_sha256"]
        path = RECORDS / f"memory-{size}.json"
        held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if held.get("data") != digest:
            held = {"data": digest, "cases": {}}
        for case in options.cases.split(",") if options.cases else CASES:
            label, interpreter = CASES[case]
            code, earlier = fingerprint(interpreter), held["cases"].get(case, {"error": ""})
            if options.resume and "error" not in earlier and earlier["code"] == code:
                continue
            say(f"{size} in memory  {case} …")
            if case.startswith("ranx"):
                measure(case, excerpt(size, DATA), 1)  # its code is compiled for ids of this width, and kept
            found = measure(case, (DATA / f"{size}.qrels", DATA / f"{size}.run"), REPEATS[size])
            held["cases"][case] = {"label": label, "code": code, **found}
            held["cases"] = {known: held["cases"][known] for known in CASES if known in held["cases"]}
            path.write_text(json.dumps(held, indent=1), encoding="utf-8")
            cost = f"{found['walls'][0]:.3f} s first, {min(found['walls']):.3f} s best" if "walls" in found else ""
            failed |= "error" in found
            say(f"{size} in memory  {case}: {cost}{found.get('error', '')}")
        print("\n" + memory_table(size, held["cases"]))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
