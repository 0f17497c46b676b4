"""What was measured, as one page: `python bench/results.py [--write]` prints it, or writes bench/RESULTS.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

from engine import read_records
from generate import paths
from tables import agreement_table, engine_table, markdown, memory_table, parts_table
from tools import BENCH, CHECKOUT, DATA, OURS, RECORDS, SIZES, THEIRS, tools

PAGE = BENCH / "RESULTS.md"
PACKAGES = (
    "cranfield", "numpy", "scipy", "pytrec-eval-terrier", "ranx", "numba", "ir-measures", "polars", "duckdb",
    "pandas", "pyarrow",
)  # fmt: skip
PRINTED = {
    "significance": "Permutation and bootstrap",
    "judgments": "Judgments, format by format",
    "startup": "Start-up",
    "judging_load": "Raters who judge at once",
    "scale": "Runs larger than memory, by `make bench-scale`",
    "report_page": "The report of very many queries in a browser",
    "server_load": "Load on the server, by wrk on loopback",
}
"""Programs whose output the page shows as they printed it, each with its heading."""
VERSIONS = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""
HOW = """
Times are of whole processes: start-up, reading, checks, measures and writing included; the files are in the page cache,
and every tool was called once before on a few queries of the same kind. A round calls each tool once, in turn; "n" is
the number of rounds. "× NAME" says how many times as fast as NAME a tool was: the median of the ratios taken within each
round. Processor time includes that of child processes; peak memory is that of the largest process, and cannot show less
than about 10 MB. The measures are nDCG@10, AP, RR@10, P@10, R@100, R@1000 and Success@5, of every query and in the mean.
Each tool writes them as JSON. Cranfield's time also holds the digest of the run, the search for duplicate documents, the
confidence intervals and the rest of its JSON; pytrec_eval's run is read by a plain loop, which is faster than its own
reader.

The data is made by `bench/generate.py` from a seed: 1,000 results a query, 50 queries with graded judgments (S), 6,980
with about one relevant document each (M), 50,000 likewise (L).
"""


def first_line(command: list[str]) -> str:
    """What a program says of itself, or that it is not there."""
    if shutil.which(command[0]) is None:
        return "none"
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return (said.stdout or said.stderr).strip().splitlines()[0]


def processor() -> str:
    """Model, as the kernel names it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def versions(interpreter: Path) -> dict[str, str]:
    """Installed versions of the packages that matter."""
    called = [str(interpreter), "-c", VERSIONS, *PACKAGES]
    found: dict[str, str] = json.loads(subprocess.run(called, capture_output=True, text=True, check=True).stdout)
    return found


def git(*words: str) -> str:
    """What git says of the checkout; nothing where there is none."""
    called = subprocess.run(["git", *words], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return called.stdout.strip()


def commit() -> str:
    """The commit measured, and whether anything was changed since."""
    name = git("rev-parse", "--short", "HEAD") or "unknown"
    changed = git("status", "--porcelain", "--", "src")
    return f"{name}, with changes in src/" if changed else name


def machine() -> str:
    """Where it was measured, and with what."""
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    ours, theirs = versions(OURS), versions(THEIRS)
    packages = ", ".join(f"{name} {version}" for name, version in (theirs | {"cranfield": ours["cranfield"]}).items())
    trec_eval = RECORDS / "trec_eval.txt"
    rows = [
        ("date", time.strftime("%Y-%m-%d")),
        ("commit", commit()),
        ("processor", f"{processor()}, {os.cpu_count()} cores"),
        ("memory", f"{int(memory.split()[1]) / 1024**2:.0f} GB"),
        ("system", f"{platform.system()} {platform.release()}, {first_line(['ldd', '--version'])}"),
        ("compiler", first_line(["cc", "--version"])),
        ("Python", f"{platform.python_version()} ({platform.python_compiler()})"),
        ("libraries", packages),
        ("trec_eval", trec_eval.read_text(encoding="utf-8") if trec_eval.exists() else "not measured"),
    ]
    return markdown(["", ""], rows, words=(0, 1))


def data_lines() -> list[str]:
    """Digest of each size that is there."""
    lines = []
    for size in SIZES:
        record = paths(DATA, size)[2]
        if record.exists():
            made = json.loads(record.read_text(encoding="utf-8"))
            counts = f"{made['run_lines']:,} results, {made['run_bytes']:,} bytes, {made['qrels_lines']:,} judgments"
            lines.append(f"- {size}: {counts}; run sha256 `{made['run_sha256'][:16]}…`, seed {made['seed']}")
    return lines


def page() -> str:
    """Everything recorded, as Markdown."""
    everything = tools()
    blocks = ["# What the benchmark measured", machine(), HOW.strip(), "\n".join(data_lines())]
    commands = "make bench                        # S and M; a few minutes on an idle machine\n"
    commands += "make bench SIZES=L                # about a quarter of an hour, 20 GB of memory\n"
    commands += 'make bench ARGS="--resume"        # go on after an interruption\n'
    commands += 'make bench ARGS="--write"         # and write this page\n'
    commands += "TREC_EVAL=path/to/trec_eval make bench"
    blocks.append(f"```sh\n{commands}\n```")
    for kind, heading in (("engine", "From files to values"), ("memory", "In memory"), ("parts", "Parts")):
        blocks += [f"## {heading}", *section(kind, everything)]
    for name, heading in PRINTED.items():
        record = RECORDS / f"{name}.txt"
        if record.exists():
            blocks += [f"## {heading}", f"```text\n{record.read_text(encoding='utf-8').strip()}\n```"]
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def section(kind: str, everything: list) -> list[str]:
    """The tables of one kind, size by size."""
    blocks = []
    for size in SIZES:
        if kind == "engine" and (records := read_records(size)):
            blocks.append(engine_table(size, records, everything))
            agreement = RECORDS / f"agree-{size}.json"
            if agreement.exists():
                blocks.append(agreement_table(size, json.loads(agreement.read_text()), everything))
        path = RECORDS / f"{kind}-{size}.json"
        if kind == "memory" and path.exists():
            blocks.append(memory_table(size, json.loads(path.read_text())["cases"]))
        if kind == "parts" and path.exists():
            blocks.append(parts_table(size, json.loads(path.read_text())))
    return blocks or ["Not measured."]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write bench/RESULTS.md")
    options = parser.parse_args()
    if options.write:
        PAGE.write_text(page(), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(CHECKOUT)}")
    else:
        print(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
