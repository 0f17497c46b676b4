"""A model behind OpenAI's Responses API on this machine: a function decides what it answers, and every request is kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = Mapping[str, Any]
INPUT, CACHED, OUTPUT, REASONING = 1000, 600, 20, 5
"""Tokens of each answer."""


class ModelServer:
    def __init__(self, decide: Callable[[Request], Sequence[Request] | int]) -> None:
        self.decide = decide
        self.requests: list[Request] = []
        self.keys: list[str] = []
        self.url = ""

    def answer(self, request: Request) -> tuple[int, str, bytes]:
        self.requests.append(request)
        items = self.decide(request)
        if isinstance(items, int):
            return items, "application/json", json.dumps({"error": {"message": "no"}}).encode()
        usage = {
            "input_tokens": INPUT,
            "input_tokens_details": {"cached_tokens": CACHED},
            "output_tokens": OUTPUT,
            "output_tokens_details": {"reasoning_tokens": REASONING},
            "total_tokens": INPUT + OUTPUT,
        }
        end = {"id": "r", "model": f"{request['model']}-2026", "usage": usage, "output": []}
        events = [("response.created", {"response": {"id": "r"}})]
        events += [("response.output_item.done", {"item": item}) for item in items]
        events += [("response.completed", {"response": end})]
        texts = [f"event: {kind}\ndata: {json.dumps({'type': kind, **value})}\n\n" for kind, value in events]
        return 200, "text/event-stream", "".join(texts).encode()


@contextmanager
def model_server(decide: Callable[[Request], Sequence[Request] | int]) -> Iterator[ModelServer]:
    """A server; `decide` gives the items of an answer, or a status."""
    model = ModelServer(decide)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.send(404, "application/json", b"{}")

        def do_POST(self) -> None:
            model.keys.append(self.headers.get("Authorization", ""))
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send(*model.answer(json.loads(body)))

        def send(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def says(text: str) -> Request:
    return {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": text}]}


def calls(name: str, arguments: Mapping[str, Any], id_: str, namespace: str = "") -> Request:
    call = {"type": "function_call", "name": name, "arguments": json.dumps(arguments), "call_id": id_}
    return {**call, "namespace": namespace} if namespace else call


def outputs(request: Request) -> list[str]:
    """What the tools of a conversation returned so far."""
    return [str(item.get("output")) for item in request["input"] if str(item["type"]).endswith("_output")]
