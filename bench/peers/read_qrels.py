"""Seconds of processor time that the readers of other libraries take for a file of qrels, the best of three: `read_qrels.py FILE`."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

READERS = {
    "pytrec_eval.parse_qrel": lambda library, path: library.parse_qrel(path.open()),
    "ir_measures.read_trec_qrels": lambda library, path: list(library.read_trec_qrels(str(path))),
    "ranx.Qrels.from_file": lambda library, path: library.Qrels.from_file(str(path), kind="trec"),
}


def main(path: Path) -> None:
    """Print a line for each: name and seconds, or name alone where it is not installed."""
    for name, read in READERS.items():
        try:
            library = importlib.import_module(name.partition(".")[0])
        except ImportError:
            print(name)
            continue
        times = []
        for _ in range(3):
            start = time.process_time()
            read(library, path)
            times.append(time.process_time() - start)
        print(name, min(times))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
