"""All that `make bench` measures: start-up, judgments, significance, raters at once, reports, files, memory, parts. `everything.py S M [--resume] [--write]`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from tools import BENCH, OURS, RECORDS, SIZES, say


def call(program: str, *arguments: str, keep: str | None = None) -> int:
    """Run one of the programs beside this one, and keep what it printed where asked."""
    argv = [str(OURS), str(BENCH / program), *arguments]
    called = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    print(called.stdout, flush=True)
    if keep is not None:
        (RECORDS / keep).write_text(called.stdout, encoding="utf-8")
    return called.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="+", choices=SIZES)
    parser.add_argument("--rounds", help="at most this many of each tool, files to values")
    parser.add_argument("--resume", action="store_true", help="keep what was measured, and go on")
    parser.add_argument("--trec-eval", metavar="PATH", help="a trec_eval binary; also $TREC_EVAL")
    parser.add_argument("--write", action="store_true", help="write bench/RESULTS.md")
    options = parser.parse_args()
    began = time.monotonic()
    RECORDS.mkdir(parents=True, exist_ok=True)
    resume = ["--resume"] if options.resume else []
    engine = ["--rounds", options.rounds] if options.rounds else []
    engine += ["--trec-eval", options.trec_eval] if options.trec_eval else []
    in_memory = [size for size in options.sizes if size != "L"]
    failed = call("startup.py", keep="startup.txt")
    failed |= call("judgments.py", keep="judgments.txt")
    failed |= call("significance.py", keep="significance.txt")
    failed |= call("judging_load.py", "--seconds", "600", keep="judging_load.txt")
    failed |= call("report_page.py", keep="report_page.txt")
    failed |= call("server_load.py", "60", keep="server_load.txt")
    failed |= call("engine.py", *options.sizes, *resume, *engine)
    if in_memory:
        failed |= call("memory_door.py", *in_memory, *resume)
        failed |= call("parts.py", *in_memory)
    if options.write:
        failed |= call("results.py", "--write")
    say(f"{time.monotonic() - began:.0f} s in all")
    return failed


if __name__ == "__main__":
    sys.exit(main())
