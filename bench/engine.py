"""From files to values, whole processes: Cranfield beside the other tools. `python bench/engine.py S M [--resume]`.

Each tool reads a run file and judgments and writes seven measures of every query and their means. A round calls every
tool once, so that a slow moment of the machine falls on all; ratios are taken within a round, and their median shown.
Start-up, reading, checks and writing are inside the time. The values are compared before the times are.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generate import SIZES as DATA_SIZES
from generate import excerpt, make
from tables import agreement_table, engine_table, verdict
from tools import BENCH, DATA, OURS, RECORDS, SIZES, THEIRS, VALUES, Tool, clean_environment, fingerprint, say, tools

Record = dict[str, Any]


def available_bytes() -> int:
    """Memory that a new process may take."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return sys.maxsize


def run_once(tool: Tool, files: tuple[Path, Path], out: Path, environment: Mapping[str, str] | None = None) -> Record:
    """Call a tool once on (qrels, run): its cost, or why it failed."""
    if tool.forget is not None:
        shutil.rmtree(tool.forget, ignore_errors=True)
        tool.forget.mkdir(parents=True)
    stdout = out if tool.output == "stdout" and tool.values != "none" else Path("/dev/null")
    argv = [word.format(qrels=files[0], run=files[1], out=out) for word in tool.argv]
    called = subprocess.run(
        [str(OURS), "-I", "-S", str(BENCH / "timed.py"), str(stdout), *argv],
        env=clean_environment({**tool.environment, **(environment or {})}),
        capture_output=True,
        text=True,
        check=False,
    )
    record: Record = {"status": called.returncode} if called.returncode else json.loads(called.stdout)
    if record["status"]:
        record["error"] = (called.stderr.strip().splitlines() or [f"exit code {record['status']}"])[-1]
        if out.is_file():
            out.unlink()  # no values of a tool that failed
    return record


def obstacle(tool: Tool, size: str) -> str:
    """Why this tool is not run on this size, or nothing."""
    needed = tool.memory_factor * (DATA / f"{size}.run").stat().st_size
    if needed > available_bytes():
        return f"needs about {needed / 1e9:.0f} GB"
    return ""


def code_of(tool: Tool) -> str:
    """Changes when what the tool runs does."""
    return fingerprint(OURS if tool.values == "cranfield" else THEIRS)


def records_file(size: str) -> Path:
    """Where the rounds of a size are kept."""
    return RECORDS / f"engine-{size}.jsonl"


def read_records(size: str) -> list[Record]:
    """What was measured of a size so far."""
    path = records_file(size)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def warm_up(size: str, chosen: list[Tool]) -> None:
    """Call every tool on a few queries, untimed: bytecode, pages of the libraries, and numba's code, for that depends
    on how wide the ids are.
    """
    files = excerpt(size, DATA)
    for tool in chosen:
        if not tool.missing and tool.rounds.get(size, 0):
            record = run_once(tool, files, Path("/dev/null"))
            say(f"{size} warm-up  {tool.key:20} {record.get('wall', 0):7.2f} s {record.get('error', '')}")


def unfinished(size: str, chosen: list[Tool], rounds: int | None, data_digest: str) -> list[tuple[int, Tool]]:
    """The rounds still to be measured, in order; what is already recorded of the same data is not measured again."""
    good = [record for record in read_records(size) if record["data"] == data_digest and not record["status"]]
    done = {(record["tool"], record["round"], record["code"]) for record in good}
    codes = {tool.key: code_of(tool) for tool in chosen}
    plan = {tool.key: min(n, rounds or n) for tool in chosen if not tool.missing and (n := tool.rounds.get(size, 0))}
    return [
        (round_, tool)
        for round_ in range(max(plan.values(), default=0))
        for tool in chosen
        if round_ < plan.get(tool.key, 0) and (tool.key, round_, codes[tool.key]) not in done
    ]


def measure(size: str, chosen: list[Tool], rounds: int | None, data_digest: str) -> None:
    """All rounds of a size that are not measured yet."""
    subprocess.run(["cat", DATA / f"{size}.run"], stdout=subprocess.DEVNULL, check=True)  # into the page cache
    files = DATA / f"{size}.qrels", DATA / f"{size}.run"
    for round_, tool in unfinished(size, chosen, rounds, data_digest):
        name = f"{size} round {round_ + 1}  {tool.key:20}"
        if why := obstacle(tool, size):
            record: Record = {"status": -1, "error": why}
        else:
            say(f"{name} …")
            record = run_once(tool, files, VALUES / f"{size}-{tool.key}")
        record |= {"tool": tool.key, "round": round_, "data": data_digest, "code": code_of(tool), "at": time.time()}
        with records_file(size).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
        cost = f"{record['wall']:7.2f} s {record['peak_kb'] // 1024:6} MB" if "wall" in record else ""
        say(f"{name} {cost} {record.get('error', '')}")


def compare_values(size: str) -> Record:
    """Set the values side by side, in a process of its own."""
    called = subprocess.run([str(OURS), str(BENCH / "agree.py"), size], capture_output=True, text=True, check=True)
    (RECORDS / f"agree-{size}.json").write_text(called.stdout, encoding="utf-8")
    found: Record = json.loads(called.stdout)
    return found


def complaints(size: str, found: Record, everything: list[Tool]) -> list[str]:
    """What makes the speed of this size no fair comparison: tools that failed, or gave other values without a reason."""
    named = [
        f"{size}: {key}: {why}"
        for key, about in found["tools"].items()
        if "UNEXPLAINED" in (why := verdict(key, about))
    ]
    records = read_records(size)
    for tool in everything:
        last = next((record for record in reversed(records) if record["tool"] == tool.key), None)
        if last is not None and last["status"] > 0:
            named.append(f"{size}: {tool.key}: {last['error']}")
    return named


def note_version(trec_eval: Tool | None) -> None:
    """Keep what the trec_eval binary says of itself for the page of results."""
    if trec_eval is not None and not trec_eval.missing:
        called = subprocess.run([trec_eval.argv[0], "--version"], capture_output=True, text=True, check=False)
        said = (called.stdout + called.stderr).strip().splitlines() or ["version unknown"]
        (RECORDS / "trec_eval.txt").write_text(said[0], encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="+", choices=SIZES)
    parser.add_argument("--tools", help="keys, with commas between: " + ", ".join(tool.key for tool in tools()))
    parser.add_argument("--rounds", type=int, help="at most this many of each tool")
    parser.add_argument(
        "--resume", action="store_true", help="keep what was measured of the same code and data, and go on"
    )
    parser.add_argument("--trec-eval", metavar="PATH", help="a trec_eval binary; also $TREC_EVAL")
    options = parser.parse_args()
    everything = tools(options.trec_eval)
    keys = options.tools.split(",") if options.tools else [tool.key for tool in everything]
    if unknown := sorted(set(keys) - {tool.key for tool in everything}):
        parser.error(f"no such tool: {', '.join(unknown)}")
    chosen = [tool for tool in everything if tool.key in keys]
    RECORDS.mkdir(parents=True, exist_ok=True)
    note_version(next(tool for tool in chosen if tool.key == "trec_eval") if "trec_eval" in keys else None)
    VALUES.mkdir(parents=True, exist_ok=True)
    made = {size: make(DATA_SIZES[size], DATA) for size in options.sizes}
    if not options.resume:
        for size in options.sizes:
            records_file(size).unlink(missing_ok=True)
            for path in VALUES.glob(f"{size}-*"):
                path.unlink()
    firsts = [tool for tool in chosen if tool.forget is not None]
    others = [tool for tool in chosen if tool.forget is None]
    wrong: list[str] = []
    for size in options.sizes:
        digest = made[size]["run_sha256"]
        measure(size, firsts, options.rounds, digest)
        if unfinished(size, others, options.rounds, digest):
            warm_up(size, others)
        measure(size, others, options.rounds, digest)
        found = compare_values(size)
        wrong += complaints(size, found, everything)
        print("\n" + engine_table(size, read_records(size), everything))
        print(agreement_table(size, found, everything), flush=True)
    for line in wrong:
        say(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
