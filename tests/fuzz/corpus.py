"""Write inputs for the fuzzer to begin with: `corpus.py FOLDER`. Eight bytes of options, then a run file."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

LINES = {
    "plain": "q1 Q0 d1 1 3.5 tag\nq1 Q0 d2 2 2.5 tag\nq2 Q0 a 1 9 tag\nq9 Q0 d1 1 1 tag\n",
    "ties": "".join(f"q1 Q0 d{i % 40:02} {i} {1 + i % 3}.0 t\n" for i in range(40)),
    "unsorted": "".join(f"7 Q0 x{i * 7 % 90} {i} {i * 37 % 90}.25 t\n" for i in range(90)),
    "duplicates": "q1 Q0 d1 1 1 t\nq1 Q0 d2 2 2 t\nq1 Q0 d1 3 3 t\nq1 Q0 d2 3 2 t\n",
    "interleaved": "q1 Q0 d1 1 2 t\nq2 Q0 a 1 2 t\nq1 Q0 d2 2 3 t\nx Q0 a 1 1 t\nq2 Q0 b 1 2 t\nx Q0 b 1 1 t\n",
    "problems": "q1 Q0 d1 1 t\nq1 Q0 d1 1 nan t\nq1 Q0 d1 1 1 t\rx\nq1 Q0 d1 x 1 t\n#\n \n\nq1\n",
    "spaces": "q1\tQ0\td1\t1\t2.0\ta tag\r\n  q1   Q0 d2 2 \v 1.0\ftag \r\n\r\nq1 Q0 d3 3 .5 t",
    "mark": "\ufeffq1 Q0 é 1 1 t\n",
    "long": f"a-query-with-a-long-name Q0 {'d' * 70} 1 1 t\nq1 Q0 d1 1 1 {'t' * 90}\nq1 Q0 {'e' * 30} 2 -5 t\n",
    "strangers": "".join(f"s{i} Q0 d1 1 1 t\n" for i in range(90)) + "q1 Q0 d1 1 1 t\n",
    "digits": f"q1 Q0 d1 1 1.{'3' * 150} t\nq1 Q0 d2 2 -{'1' * 140}e-150 t\nq1 Q0 d3 3 1e-310 t\n",
    "numbers": "".join(
        f"q1 Q0 n{i} {rank} {score} t\n"
        for i, (rank, score) in enumerate(
            zip(
                itertools.cycle(["1", "-2", "+3", "000000000000000004", "999999999"]),
                ["0.12345678901234567", "12345678.12345678", "1e-5", "-0", "5.", ".5", "1e308", "2E+22", "9" * 25],
                strict=False,
            )
        )
    ),
}


def main(folder: Path) -> None:
    """Write each text under some options."""
    draw = random.Random(20260101)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in LINES.items():
        for number in range(3):
            head = bytes(draw.randrange(256) for _ in range(8)) if number else bytes(8)
            (folder / f"{name}-{number}").write_bytes(head + text.encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
