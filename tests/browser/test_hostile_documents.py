"""Hostile documents on the judging page, in Chromium with and without the policy of the server: nothing of them runs or loads."""

from __future__ import annotations

import base64
import socket
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, expect

from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.settings import BookSettings
from cranfield.books.store.store import open_store
from cranfield.judging.documents.texts import DocumentTexts
from cranfield.workbench.config import load_workbench
from cranfield.workbench.server.app import create_app
from cranfield.workbench.server.options import ServerOptions

pytestmark = [pytest.mark.browser, pytest.mark.slow]
RUN = "window.hacked=1;fetch('https://evil.test/')"
HOSTILE = [
    f"<script>{RUN}</script>",
    f"<img src=x onerror=\"{RUN}\"><img src='https://evil.test/track.png'>",
    f'<svg onload="{RUN}"><script>{RUN}</script><image href="https://evil.test/a.png"/></svg>',
    f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror={RUN}&gt;'>",
    f'<noscript><p title="</noscript><img src=x onerror={RUN}>"></noscript>',
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe><iframe src="https://evil.test/"></iframe>',
    "<style>@import 'https://evil.test/a.css'; body{display:none}</style><p style='position:fixed;inset:0;background:red'>x</p>",
    "<link rel=stylesheet href='https://evil.test/a.css'><meta http-equiv=refresh content='0;url=https://evil.test/'>",
    "<base href='https://evil.test/'><form action='https://evil.test/'><input name=a autofocus><button>Go</button></form>",
    f'<a href="javascript:{RUN}" id=judge>x</a><p id=main name=csrf>y</p>',
    "</div></div></article></main></body><h1>out</h1><p>after",
    "<details open ontoggle='window.hacked=1'><summary>x</summary></details><video src='https://evil.test/v' autoplay></video>",
    "<div>" * 5_000 + "deep",
    "<textarea><plaintext><xmp>" + "rest",
]
CONFIG = """
documents:
- match: html.*
  fields: {text: page}
  format: html
  template: '<h1>{{ title }}</h1>{{ body }}<script>{{ fields.page | safe }}</script>{{ fields.page | safe }}'
- match: md.*
  fields: {text: page}
  format: markdown
- fields: {text: page}
"""


def png() -> str:
    """A picture of two pixels, as an address."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 2, 1, 8, 0, 0, 0, 0)
    data = (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\x00\xff")) + chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(data).decode()


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "workbench.yaml").write_text(CONFIG)
    store = open_store(tmp_path / "books.db")
    items = tuple(
        PooledItem(
            query="q",
            doc=f"{kind}{number}",
            fields={
                "title": f"<b onclick='{RUN}'>{kind} {number}",
                "page": content,
                "image": png(),
                "url": "javascript:1",
            },
            runs={"r": 1},
        )
        for number, content in enumerate(HOSTILE)
        for kind in ("html", "md", "text")
    )
    query = PooledQuery(id="q", text="<img src=x onerror=alert(1)> x script", need="<script>1</script>")
    run = PooledRun(name="r", digest="sha256:0")
    pool = Pool(name="p", method="depth", depth=1, runs=(run,), queries=(query,), items=items)
    store.books.create("hostile", pool, BookSettings())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        options = ServerOptions(port=int(probe.getsockname()[1]))
    texts = DocumentTexts(load_workbench(tmp_path / "workbench.yaml"))
    app = create_app(store, options, texts=texts)
    server = uvicorn.Server(uvicorn.Config(app, port=options.port, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    yield f"{options.public}/start?token={options.start_token}&next=/books/hostile/judge"
    server.should_exit = True
    thread.join(20)
    texts.close()
    store.close()


@pytest.mark.parametrize("bypass_csp", [False, True], ids=["policy", "no policy"])
def test_nothing_of_a_hostile_document_runs(address: str, browser: Browser, bypass_csp: bool) -> None:
    context = browser.new_context(bypass_csp=bypass_csp)
    page = context.new_page()
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    page.wait_for_selector("#judge[data-ready]")
    for number in range(3 * len(HOSTILE)):
        expect(page.locator("body")).to_be_visible()
        if number % 7 == 0:
            page.wait_for_function(
                "() => [...document.images].every(image => image.complete && image.naturalWidth === 2)"
            )
            assert page.locator("img").count() > 0
        page.keyboard.press("1")
    page.wait_for_timeout(300)
    assert page.evaluate("window.hacked") is None
    assert (
        page.locator("iframe, object, embed, svg image, main style, main script, main form[action*=evil]").count() == 0
    )
    origin = address.partition("/start")[0]
    assert [url for url in requests if not url.startswith((origin, "data:"))] == []
    assert messages == []
    context.close()
