"""Real search engines over one corpus, and every way a system under test can be reached, around them.

As a module it has a function an engine. As a program: `engines.py build CORPUS`, `ask ENGINE QUERY K`, `lines ENGINE`,
`http ENGINE`, `mcp ENGINE [http]`. The indexes are in the folder that this file is in. A server prints its port.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

HERE = Path(__file__).parent
WORD = re.compile(r"[a-z0-9]+")
STOPWORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "was",
        "were",
        "what",
        "which",
        "with",
    ]
)


def build(corpus: str) -> None:
    """Index a JSONL file of `_id`, `title` and `text` for SQLite, and copy it, into the folder."""
    documents = [json.loads(line) for line in Path(corpus).read_text(encoding="utf-8").splitlines()]
    with sqlite3.connect(HERE / "fts.db") as database:
        database.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, body, tokenize='porter unicode61')")
        rows = [(one["_id"], one["title"], one["text"]) for one in documents]
        database.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
    (HERE / "corpus.jsonl").write_text(Path(corpus).read_text(encoding="utf-8"), encoding="utf-8")


def words(query: str) -> list[str]:
    return list(dict.fromkeys(WORD.findall(query.lower())))


def _fts(query: str, k: int, weights: str) -> list[tuple[str, float]]:
    asked = " OR ".join(f'"{word}"' for word in words(query))
    sql = (
        f"SELECT id, -bm25(docs, {weights}) AS score FROM docs WHERE docs MATCH ? ORDER BY score DESC, id DESC LIMIT ?"
    )
    with sqlite3.connect(f"file:{HERE / 'fts.db'}?mode=ro", uri=True) as database:
        return [] if not asked else database.execute(sql, (asked, k)).fetchall()


def fts_plain(query: str, k: int) -> list[tuple[str, float]]:
    return _fts(query, k, "0, 1, 1")


def fts_titles(query: str, k: int) -> list[tuple[str, float]]:
    return _fts(query, k, "0, 5, 1")


def _documents() -> list[dict]:
    return [json.loads(line) for line in (HERE / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]


@cache
def _tantivy():
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("id", stored=True, tokenizer_name="raw")
    schema.add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(schema.build())
    writer = index.writer(num_threads=1)
    for one in _documents():
        writer.add_document(tantivy.Document(id=[one["_id"]], text=[one["title"] + " " + one["text"]]))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index, index.searcher()


def tantivy(query: str, k: int) -> list[tuple[str, float]]:
    index, searcher = _tantivy()
    asked = index.parse_query(" ".join(words(query)), ["text"])
    found = searcher.search(asked, k).hits
    return [(searcher.doc(address)["id"][0], score) for score, address in found]


@cache
def _bm25s():
    import bm25s

    documents = _documents()
    model = bm25s.BM25()
    model.index([_tokens(one["title"] + " " + one["text"]) for one in documents], show_progress=False)
    return model, [one["_id"] for one in documents]


def _tokens(text: str) -> list[str]:
    return [word for word in WORD.findall(text.lower()) if word not in STOPWORDS]


def bm25s(query: str, k: int) -> list[tuple[str, float]]:
    model, ids = _bm25s()
    places, scores = model.retrieve([_tokens(query)], k=k, show_progress=False, n_threads=1)
    return [(ids[place], float(score)) for place, score in zip(places[0], scores[0], strict=True)]


async def later(query: str, k: int) -> list[tuple[str, float]]:
    """The first engine again, as a coroutine."""
    return fts_plain(query, k)


ENGINES = {"fts_plain": fts_plain, "fts_titles": fts_titles, "tantivy": tantivy, "bm25s": bm25s}


def hits(engine: str, query: str, k: int) -> list[dict]:
    return [{"id": doc_id, "score": score} for doc_id, score in ENGINES[engine](query, k)]


def serve_lines(engine: str) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"id": asked["id"], "hits": hits(engine, asked["query"], asked["k"])}), flush=True)


def serve_http(engine: str) -> None:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            body = json.dumps({"results": hits(engine, asked["q"][0], int(asked["size"][0]))}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def serve_mcp(engine: str, transport: str = "stdio") -> None:
    from mcp.server import MCPServer

    server = MCPServer("engines", log_level="ERROR")

    @server.tool()
    def search(query: str, limit: int) -> dict:
        """Search the corpus."""
        return {"results": hits(engine, query, limit)}

    if transport == "stdio":
        server.run()
        return
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    print(port, flush=True)
    server.run("streamable-http", host="127.0.0.1", port=port)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "build":
        build(*rest)
    elif what == "ask":
        for hit in hits(rest[0], rest[1], int(rest[2])):
            print(json.dumps(hit))
    else:
        {"lines": serve_lines, "http": serve_http, "mcp": serve_mcp}[what](*rest)
