"""The runner of the fuzz targets: `python tests/fuzz/TARGET.py --inputs N --seed S [--seconds T]`.

A target is a module with `make(draw)`, which draws an input, and `check(given)`, which returns what is wrong with its
treatment, or None, and ends its file with
`sys.exit(main(make, check, inputs=N))`. Input number I of a seed is the same every time:
`--first I --inputs 1` repeats it. An exception, more CPU time than LIMIT_S, or more memory than LIMIT_BYTES is a finding.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

try:
    import resource
except ImportError:  # not a POSIX system
    resource = None  # type: ignore[assignment]

LIMIT_S = 5.0
"""CPU time of one input."""
LIMIT_BYTES = 4 << 30
"""Address space of the process."""
MAX_FINDINGS = 20
"""The run ends when it has found so many."""

Make = Callable[[random.Random], Any]
Check = Callable[[Any], str | None]


class TooSlow(BaseException):
    """An input took more CPU time than LIMIT_S; no `except Exception` stops it."""


@dataclass
class Findings:
    """What a run found."""

    n_inputs: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    slowest: int = 0
    """The number of the input that took longest."""
    found: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.n_inputs / max(self.seconds, 1e-9)
        figures = f"{self.n_inputs} inputs, {self.seconds:.1f} s, {rate:.0f} a second"
        return f"{figures}; slowest {self.slowest_s * 1000:.0f} ms (input {self.slowest}); {len(self.found)} findings"


def fuzz(
    make: Make, check: Check, *, inputs: int, seed: int = 1, first: int = 0, seconds: float | None = None
) -> Findings:
    """Check `inputs` inputs, or as many as there is time for."""
    findings, begin = Findings(), time.monotonic()
    with _alarm():
        for number in range(first, first + inputs):
            if len(findings.found) >= MAX_FINDINGS or (seconds is not None and time.monotonic() - begin > seconds):
                break
            given: Any = None
            started = time.process_time()
            try:
                _set_alarm(LIMIT_S)
                given = make(random.Random(f"{seed}:{number}"))
                fault = check(given)
            except (Exception, TooSlow) as error:  # noqa: BLE001 - whatever it is, it is a finding
                fault = "".join(traceback.format_exception(error, limit=-8))
            finally:
                _set_alarm(0)
            took = time.process_time() - started
            if took > findings.slowest_s:
                findings.slowest_s, findings.slowest = took, number
            findings.n_inputs += 1
            if fault:
                findings.found.append(f"input {number} of seed {seed}: {fault}\n  {given!r:.2000}")
    findings.seconds = time.monotonic() - begin
    return findings


def main(make: Make, check: Check, *, inputs: int) -> int:
    """Run a target as a script, with `inputs` inputs by default; 1 where something was found."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--inputs", type=int, default=inputs, metavar="N", help=f"how many ({inputs})")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="which ones (1)")
    parser.add_argument("--first", type=int, default=0, metavar="I", help="number of the first (0)")
    parser.add_argument("--seconds", type=float, default=None, metavar="T", help="stop after that long")
    given = parser.parse_args()
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    found = fuzz(make, check, inputs=given.inputs, seed=given.seed, first=given.first, seconds=given.seconds)
    for finding in found.found:
        print(finding, file=sys.stderr)
    print(f"{sys.argv[0]}: {found}")
    return 1 if found.found else 0


@contextmanager
def _alarm() -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise TooSlow(f"more than {LIMIT_S:g} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, before)


def _set_alarm(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, seconds)
