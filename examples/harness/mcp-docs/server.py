"""The documentation server for coding assistants: a tool that searches the pages of one library."""

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

PAGES = json.loads(Path(__file__).with_name("pages.json").read_text(encoding="utf-8"))
COMMON = set("a an and are can do for from how i in is it its my of on or the to when where which with".split())
server = MCPServer("docs")


def words(text: str) -> Counter[str]:
    return Counter(word.rstrip("s") for word in re.findall(r"\w+", text.lower()) if word not in COMMON)


@server.tool()
def search_docs(query: str, library: str, limit: int = 5) -> list[dict[str, Any]]:
    """Search the documentation of a library; returns sections with their addresses, best first."""
    pages = [page for page in PAGES if page["library"] == library]
    counts = [words(f"{page['title']} {page['title']} {page['text']}") for page in pages]
    found = []
    for page, count in zip(pages, counts, strict=True):
        score = 0.0
        for word in words(query):
            n = sum(word in other for other in counts)
            score += math.log(1 + len(pages) / (n + 1)) * count[word] / (count[word] + 1)
        if score:
            found.append(
                {"url": page["url"], "title": page["title"], "snippet": page["text"], "score": round(score, 4)}
            )
    return sorted(found, key=lambda hit: (-hit["score"], hit["url"]))[:limit]


if __name__ == "__main__":
    server.run("stdio")
