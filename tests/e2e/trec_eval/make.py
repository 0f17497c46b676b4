"""Make the inputs in this folder, and what trec_eval prints for every line of commands.txt.

python make.py TREC_EVAL_10 TREC_EVAL_9, the paths of two binaries; see README.md. Inputs are drawn with a fixed seed.
"""

import random
import shlex
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
UNDEFINED = ("rbp ", "Zrbp ")


def write(name, lines):
    (FOLDER / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def make_inputs(draw):
    names = [f"d{i:02}" for i in range(14)] + ["d-é", "d-Ω"]
    queries = ["q10", "q2", "q7", "q1"]
    qrels = {q: {d: draw.choice([-1, 0, 0, 1, 1, 2, 3]) for d in draw.sample(names, 11)} for q in queries}
    judgments = [f"{q} 0 {d} {g}" for q, judged in qrels.items() for d, g in judged.items()]
    write("graded.qrels", ["# judgments", *judgments])
    write("graded.uncommented.qrels", judgments)  # version 9 knows no comments
    write("levels.qrels", [line.replace(" -1", " 0") for line in judgments])

    scores = [0.5, 1.0, 1.25, 2.0, -3.5, 7.0]
    pool = [*names, "u1", "u2", "zz"]
    run = [(q, d, draw.choice(scores)) for q in queries for d in draw.sample(pool, 15)]
    draw.shuffle(run)  # lines of a query do not stand together
    rows = [f"{q} Q0 {d} {i} {s} {'first' if i else 'other'}" for i, (q, d, s) in enumerate(run)]
    write("tied.run", ["# results", *rows[:-1], rows[-1] + " and more words"])
    write("uncommented.run", rows)
    write("short.run", [row for row in rows if row.split()[0] in {"q10", "q1"}])

    near = {q: draw.sample(pool, 15) for q in queries}
    close = [(q, d, 1 + draw.randint(0, 3) * 2e-9) for q, ds in near.items() for d in ds]
    write("near.run", [f"{q} Q0 {d} 0 {s!r} near" for q, d, s in close])  # tied in 32 bits, apart in 64

    write(
        "judges.qrels",
        [f"{q} {j} {d} {draw.choice([-1, 0, 1, 2])}" for q in queries for j in "abc" for d in draw.sample(names, 8)],
    )
    preferences = []
    for q in queries:
        for group in ("one", "two"):
            worth = {d: draw.choice([0, 0, 0, 1, 2, 3]) for d in names}
            for part in range(draw.choice([1, 2, 3])):
                preferences += [f"{q} {group} part{part} {d} {worth[d] * (part + 1)}" for d in draw.sample(names, 6)]
    write("prefs", preferences)
    write("near.prefs", [f"{q} one all {d} {1 + draw.randint(0, 3) * 2e-9!r}" for q in queries for d in names[:8]])

    measures = [
        "num_ret",
        "num_rel",
        "num_rel_ret",
        "map",
        "gm_map",
        "P_5",
        "ndcg",
        "utility",
        "recall_10",
        "relstring",
    ]
    # trec_eval looks past the end of its table for a name behind the last one: so there is always a later name.
    write(
        "zscores",
        [
            f"{q} {m} {draw.choice([0, 0.25, 1, 2])} {draw.choice([0, 0.1, 0.33])}"
            for q in (*queries, "zzz")
            for m in (*draw.sample(measures, 8), "zzz")
        ],
    )


def commands():
    """(name, version, arguments) of every line of commands.txt."""
    for line in (FOLDER / "commands.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, version, *arguments = shlex.split(line)
            yield name, int(version), arguments


def main(binaries):
    make_inputs(random.Random(20))
    for name, version, arguments in commands():
        done = subprocess.run(
            [binaries[version], *arguments], cwd=FOLDER, stdin=subprocess.DEVNULL, capture_output=True, check=True
        )
        lines = done.stdout.decode().splitlines(keepends=True)
        assert "nan" not in done.stdout.decode(), name
        (FOLDER / "expected" / f"{name}.out").write_text(
            "".join(line for line in lines if not line.startswith(UNDEFINED))
        )


if __name__ == "__main__":
    main({10: sys.argv[1], 9: sys.argv[2]})
