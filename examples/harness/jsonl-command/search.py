"""The search of the support bot: a line of JSON for each question, `{"query": "refund", "k": 5}`, and a line for each answer."""

import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

HANDBOOK = Path(__file__).with_name("handbook")
COMMON = set(
    "a an and are at be by can do does for from how i in is it long my of on or the to was what when with".split()
)


def words(text):
    return [
        re.sub(r"(?<=...)(ies|ing|ed|es|s|e)$", "", word)
        for word in re.findall(r"\w+", text.lower())
        if word not in COMMON
    ]


def read_chunks():
    """A chunk for each heading of each page, with the words of its page's title."""
    for path in sorted(HANDBOOK.rglob("*.md")):
        source = f"handbook/{path.relative_to(HANDBOOK).as_posix()}"
        if source.startswith("handbook/archive/"):
            continue  # withdrawn: kept for the lawyers, not for customers
        title, *sections = re.split(r"(?m)^#+ ", path.read_text(encoding="utf-8"))[1:]
        for number, section in enumerate(sections, start=1):
            heading, _, text = section.partition("\n")
            counts = Counter(words(f"{title} {heading} {heading} {text}"))
            yield {"chunk_id": f"{source}#{number}", "source": source, "heading": heading, "counts": counts}


def search(chunks, query, k):
    scored = []
    for chunk in chunks:
        score = 0.0
        for word in set(words(query)):
            n = sum(word in other["counts"] for other in chunks)
            count = chunk["counts"][word]
            score += math.log(1 + len(chunks) / (n + 1)) * count / (count + 1)
        if score:
            scored.append((-score, chunk["chunk_id"], chunk))
    found = [(chunk, -score) for score, _, chunk in sorted(scored, key=lambda each: each[:2])[:k]]
    return [
        {"chunk_id": c["chunk_id"], "source": c["source"], "heading": c["heading"], "score": round(s, 4)}
        for c, s in found
    ]


if __name__ == "__main__":
    chunks = list(read_chunks())
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"id": request.get("id"), "results": search(chunks, request["query"], request.get("k", 5))}
        print(json.dumps(answer), flush=True)
