"""The harness that cranfield.yaml replaces: python replaced_eval.py"""

import asyncio
import json
import math
import sys
from pathlib import Path
from urllib.parse import urldefrag

import yaml
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

BASELINE = Path("eval-baseline.json")
MIN_NDCG = 0.9
MAX_DROP = 0.05


def page(url):
    return urldefrag(url).url.rstrip("/")


def evaluate(qrels, urls):
    grades = {page(each["url"]): each["grade"] for each in qrels}
    gains, seen = [], set()
    for url in map(page, urls):
        gains.append(0 if url in seen else grades.get(url, 0))
        seen.add(url)
    best = max(grades.values())
    ideal = sorted(grades.values(), reverse=True)
    return {
        "ndcg10": dcg(gains) / dcg(ideal),
        "mrr": next((1 / rank for rank, gain in enumerate(gains, start=1) if gain), 0),
        "best_mrr": next((1 / rank for rank, gain in enumerate(gains, start=1) if gain == best), 0),
        "p5": sum(gain > 0 for gain in gains[:5]) / 5,
        "r5": sum(gain > 0 for gain in gains[:5]) / len(grades),
        "r10": sum(gain > 0 for gain in gains[:10]) / len(grades),
        "success1": int(any(gains[:1])),
    }


def dcg(gains):
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:10], start=1))


async def ask_all(entries):
    parameters = StdioServerParameters(command="python", args=["server.py"])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        for entry in entries:
            arguments = {"query": entry["query"], "library": entry["library"], "limit": 10}
            result = await session.call_tool("search_docs", arguments)
            if result.is_error:
                raise RuntimeError(f"{entry['query']}: {result.content}")
            yield [hit["url"] for hit in result.structured_content["result"]]


async def main():
    entries = [each["vars"] for each in yaml.safe_load(Path("golden.yaml").read_text(encoding="utf-8"))["entries"]]
    rows = []
    async for urls in ask_all(entries):
        rows.append(evaluate(entries[len(rows)]["qrels"], urls))
    means = {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}
    for name, value in means.items():
        print(f"{name:<8} {value:.4f}")
    for entry, row in zip(entries, rows, strict=True):
        if row["ndcg10"] < 0.5:
            print("low:", entry["library"], entry["query"])
    failed = means["ndcg10"] < MIN_NDCG
    if "--update" in sys.argv:
        BASELINE.write_text(json.dumps(means))
    elif BASELINE.exists():
        failed |= means["mrr"] < json.loads(BASELINE.read_text())["mrr"] * (1 - MAX_DROP)
    return int(failed)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
