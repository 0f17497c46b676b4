"""A server that speaks OpenAI's chat completions on 127.0.0.1: what tests and examples call in place of a model.

A script answers each request. Without one it is a rater by the share of the words of the query in the document, and says
so in the form that the request asks for: the schema of the response, a tool, or JSON in text. As a program it serves the
class `Models` of a file, on a free port where none is named, and prints its address:

    python model_server.py [MODELS.py [PORT]]
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 12,
    "total_tokens": 112,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 5},
}


@dataclass(frozen=True)
class Reply:
    """What is sent back."""

    text: str = ""
    tool_calls: Sequence[tuple[str, str]] = ()
    """Name and arguments."""
    usage: Mapping[str, Any] | None = field(default_factory=lambda: USAGE)
    finish: str = "stop"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    """In place of everything else."""
    wait_for: threading.Event | None = None
    """Not answered before it is set."""
    drop: bool = False
    """The connection is closed without an answer."""


Script = Callable[[dict[str, Any]], Reply]


def grade_by_words(body: dict[str, Any]) -> Reply:
    """Grades the document between the delimiters by its words, in the form that was asked for."""
    prompt = "\n".join(str(message["content"]) for message in body["messages"] if message["role"] == "user")
    found = re.search(r"Query: (.*)", prompt)
    words = set(re.findall(r"\w+", found[1].lower())) if found else set()
    grades = []
    for number, text in re.findall(r"<document-\w+ number=\"(\d+)\">(.*?)</document-\w+>", prompt, re.DOTALL):
        share = len(words & set(re.findall(r"\w+", text.lower()))) / max(len(words), 1)
        grades.append({"number": int(number), "grade": round(3 * share), "reason": f"{share:.0%} of the words"})
    schema = json.dumps(body)
    single = '\\"grades\\"' not in schema and '"grades"' not in schema
    answer = {key: grades[0][key] for key in ("grade", "reason")} if single and grades else {"grades": grades}
    tools = body.get("tools") or []
    if tools:
        return Reply(tool_calls=[(tools[0]["function"]["name"], json.dumps(answer))], finish="tool_calls")
    return Reply(json.dumps(answer))


class ModelServer:
    """The server, as a context; `requests` are the bodies that came in, `headers` theirs."""

    def __init__(self, script: Script = grade_by_words, port: int = 0) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                with suppress(BrokenPipeError, ConnectionResetError):
                    owner.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            self.requests.append(body)
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            reply = self.script(body)
            if reply.wait_for is not None:
                reply.wait_for.wait(60)
        finally:
            with self._lock:
                self._at_once -= 1
        if reply.drop:
            handler.close_connection = True
            return
        payload = reply.raw if reply.raw is not None else json.dumps(self._payload(body, reply)).encode()
        handler.send_response(reply.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(payload)), **reply.headers}
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(payload)

    def _payload(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        if reply.status >= 400:
            return {"error": {"message": reply.text or "no", "type": "error", "code": None}}
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.tool_calls:
            message["tool_calls"] = [
                {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for n, (name, arguments) in enumerate(reply.tool_calls)
            ]
        return {
            "id": f"chatcmpl-{len(self.requests)}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": f"{body['model']}-2026-01-01",
            "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
            **({} if reply.usage is None else {"usage": dict(reply.usage)}),
        }


def script_of(models: Path) -> Script:
    """Of a file, as `benefit/models.py` is one."""
    sys.path.insert(0, str(models.resolve().parent))
    script: Script = importlib.import_module(models.stem).Models().script(Reply)
    return script


def serve(script: Script = grade_by_words, port: int = 0) -> None:
    """Answer requests until the process is ended."""
    with ModelServer(script, port) as server:
        print(server.url, flush=True)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            serve()
        case [models]:
            serve(script_of(Path(models)))
        case [models, port]:
            serve(script_of(Path(models)), int(port))
        case _:
            sys.exit(__doc__)
