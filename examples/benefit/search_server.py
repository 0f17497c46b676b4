"""An MCP server that searches code by what it does: `search_server.py SOURCE INDEX`, on stdio.

INDEX is a file of descriptions by entity (`index.json`), or one of the ways in which a tool can be worth nothing:

    literal   it finds the lines that a search for words finds
    padded    as literal, with pages of text above the lines
    never     it does not start
    late      it starts after some seconds
    stale     it serves an index of another commit
    moved     it serves another index after some calls
    silent    no result has content
    failing   every result is an error in words, which the server does not call one
    same      every result is the same
    foreign   it serves the code of something else
    telling   it gives the answers, and no line of the source
"""

import ast
import hashlib
import json
import re
import subprocess
import sys
import time
from collections import Counter
from math import fsum, log
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

SOURCE, INDEX = Path(sys.argv[1]), sys.argv[2]
server = MCPServer("beacon", version="0.1", instructions="Describe in your own words what the code does.")


def entities() -> dict[str, dict[str, Any]]:
    """Functions of the source, with their places and texts."""
    found = {}
    for path in sorted((SOURCE / "src").rglob("*.py")):
        text, name = path.read_text(), path.relative_to(SOURCE).as_posix()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                code = "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno])
                lines = {"start": node.lineno, "end": node.end_lineno}
                found[f"{name}::{node.name}"] = {"file": name, **lines, "code": code, "module": text}
    return found


def words(text: str) -> set[str]:
    return {word[:6] for word in re.findall(r"[a-z]{4,}", text.lower())}


ENTITIES = entities()
is_described = INDEX.endswith(".json") or INDEX == "telling"
DESCRIPTIONS = Path(INDEX) if INDEX.endswith(".json") else Path(__file__).with_name("index.json")
DESCRIBED = json.loads(DESCRIPTIONS.read_text()) if is_described else {}
FIXED: dict[str, list[Any]] = {
    "silent": [],
    "failing": ["Error: the index is locked"],
    "same": ["The source has five modules, and each begins with a docstring that says what it holds."],
}
calls = Counter[str]()
LINES = [
    f"{name}:{number}:{line}"
    for name, text in {entity["file"]: entity["module"] for entity in ENTITIES.values()}.items()
    for number, line in enumerate(text.splitlines(), 1)
]
WORDS = {name: words(f"{name} {entity['code']} {DESCRIBED.get(name, '')}") for name, entity in ENTITIES.items()}
RARE = {word: log(1 + len(WORDS) / n) for word, n in Counter(w for found in WORDS.values() for w in found).items()}
MAX_BEFORE_IT_MOVES = 50
PADDING = 120 * "The harbour is open on all days but those of storm, and its office answers questions of all kinds. "


@server.tool()
def find_code(query: str, limit: int = 8) -> list[Any]:
    """Finds code by what it does, and shows it with its module."""
    calls["find_code"] += 1
    if INDEX in FIXED:
        return FIXED[INDEX]
    if INDEX == "foreign":
        return [
            {"file": "lib/tide.py", "code": f"def {word}():\n    return moon.phase"} for word in sorted(words(query))
        ]
    if not is_described:
        n_words = {line: len(words(query) & words(line)) for line in LINES}
        best = sorted((line for line in LINES if n_words[line]), key=lambda line: -n_words[line])[:limit]
        return [PADDING, *best] if INDEX == "padded" else best
    scores = {name: fsum(RARE.get(word, 0) for word in words(query) & found) for name, found in WORDS.items()}
    best = sorted(scores, key=lambda name: (-scores[name], name))[:limit]
    if INDEX == "telling":
        return [{"file": ENTITIES[name]["file"], "code": told(ENTITIES[name]["code"])} for name in best]
    return [{"entity": name, **ENTITIES[name]} for name in best]


def told(code: str) -> str:
    """What a function says of itself, in a line that is not one of the source."""
    return f'it says """{ast.get_docstring(ast.parse(code).body[0])}"""'


@server.tool()
def index_status() -> dict[str, str]:
    """Says which index is served, and of which commit."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=SOURCE, capture_output=True, text=True, check=True).stdout
    content = DESCRIPTIONS.read_bytes() if is_described else INDEX.encode()
    if INDEX == "moved" and calls["find_code"] > MAX_BEFORE_IT_MOVES:
        content += b"2"
    digest = hashlib.sha256(content).hexdigest()[:12]
    return {"index": digest, "version": "0.1", "commit": "0" * 40 if INDEX == "stale" else commit.strip()}


if __name__ == "__main__":
    if INDEX == "never":
        sys.exit("the index cannot be read")
    if INDEX == "late":
        time.sleep(3)
    server.run("stdio")
