"""The harness that cranfield.yaml replaces: python replaced_eval.py"""

import json
import math
import subprocess
import sys
from pathlib import Path

BASELINE = Path("eval-baseline.json")
MAX_DROP = 0.05


def matches(source, expected):
    return source == expected or source.endswith("/" + expected)


def evaluate(case, results):
    expected = case["expected_sources"]
    gains, seen = [], set()
    for result in results:
        new = [name for name in expected if matches(result["source"], name) and name not in seen]
        seen.update(new)
        gains.append(1 if new else 0)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, len(expected) + 1))
    forbidden = [r for r in results[:5] if any(matches(r["source"], name) for name in case.get("must_not", []))]
    return {
        "mrr": 1 / (gains.index(1) + 1) if 1 in gains else 0,
        "ndcg10": sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:10], start=1)) / ideal,
        "p5": sum(gains[:5]) / 5,
        "r5": sum(gains[:5]) / len(expected),
        "r10": sum(gains[:10]) / len(expected),
        "success1": sum(gains[:1]),
        "forbidden": len(forbidden),
    }


def main():
    cases = [json.loads(line) for line in Path("golden.jsonl").read_text(encoding="utf-8").splitlines() if line.strip()]
    requests = "".join(json.dumps({"id": n, "query": case["question"], "k": 10}) + "\n" for n, case in enumerate(cases))
    done = subprocess.run(["python", "search.py"], input=requests, capture_output=True, text=True, timeout=60)
    if done.returncode:
        sys.exit(done.stderr)
    answers = {answer["id"]: answer["results"] for answer in map(json.loads, done.stdout.splitlines())}
    rows, failed = [], False
    for n, case in enumerate(cases):
        row = evaluate(case, answers[n])
        rows.append(row)
        if row["mrr"] < case.get("min_mrr", 0) or row["r5"] < case.get("min_recall", 0) or row["forbidden"]:
            print("FAILED", case["question"], row)
            failed = True
    means = {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}
    means["forbidden"] = sum(row["forbidden"] for row in rows) / sum("must_not" in case for case in cases)
    for name, value in means.items():
        print(f"{name:<9} {value:.4f}")
    if "--update" in sys.argv:
        BASELINE.write_text(json.dumps(means))
    elif BASELINE.exists() and means["mrr"] < json.loads(BASELINE.read_text())["mrr"] * (1 - MAX_DROP):
        failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
