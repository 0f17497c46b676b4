"""The page of transcripts: all of them, escaped, without a script or a request."""

from __future__ import annotations

import asyncio
import json
import time
from html.parser import HTMLParser
from typing import Any

import pytest
from pydantic import BaseModel

from cranfield.agents.loop import AgentLimits, AgentTask, Read, ToolResult, run_agent
from cranfield.agents.protocol import ModelAnswer, Tool, ToolCall, Usage
from cranfield.agents.recording import Scripted
from cranfield.base.errors import InputError
from cranfield.reporting.transcripts import transcripts_page

ATTACK = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>"


class Word(BaseModel):
    word: str


class Files:
    """A tool that shows a text."""

    tools = (Tool("read_file", "", {}),)

    def __init__(self, text: str) -> None:
        self.text = text

    async def call(self, call: ToolCall) -> ToolResult:
        if "bad" in call.arguments:
            return ToolResult("error: no such file", is_error=True)
        return ToolResult(self.text, (Read("src/a.py", 1, 40),))


def record(
    query_id: str, role: str, *, turns: int = 2, text: str = ATTACK, end: str = '{"word": "yes"}'
) -> dict[str, Any]:
    """A transcript of a scripted agent, as a line of a run folder."""
    usage = Usage(input=1000, cache_read=0, output=20)
    calls = [
        ModelAnswer(
            text=f"Reading {ATTACK}",
            tool_calls=(ToolCall(f"c{n}", "read_file", json.dumps({"path": "bad" if n == 1 else ATTACK})),),
            usage=usage,
            model="m-1",
        )
        for n in range(turns - 1)
    ]
    script = iter([*calls, ModelAnswer(text=end, output=Word(word="yes"), usage=usage)])
    task = AgentTask(f"openai:{ATTACK}", "System.", f"Where? {ATTACK}", Word, limits=AgentLimits(turns=turns))
    transcript = asyncio.run(run_agent(Scripted(lambda _: next(script)), task, Files(text)))
    return {"query_id": query_id, "role": role, "attempt": 1, "vote": 2, **transcript.record()}


class Page(HTMLParser):
    """Elements, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_shows_what_was_sent_called_read_and_answered_as_text() -> None:
    given = [record("q1", "author", turns=3), record("q1", ATTACK), record(f"q2 {ATTACK}", "oracle", end="word")]
    given[2] |= {"end": "turns", "failure": {"kind": "timeout", "message": f"no answer {ATTACK}"}}
    html = transcripts_page(given, "Run 1")
    page = Page(html)
    text = " ".join(" ".join(page.texts).split())
    assert not {"script", "img", "iframe", "object", "form", "input"} & set(page.elements)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in {"src", "style"}]
    assert {value for name, value in page.attributes if name == "href" and not str(value).startswith("#")} == {"data:,"}
    (policy,) = [value for name, value in page.attributes if name == "content" and "-src" in str(value)]
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")
    for words in (
        "Run 1",
        "2 records, 3 agents",
        "1 without an answer",
        "author, vote 2: answered, 3 requests, 2 calls of tools, 3060 tokens",
        "the model, request 1",
        "the model, request 3",
        "step 1, 0.00 s, read src/a.py:1-40",
        "step 2, 0.00 s, error",
        f"Where? {ATTACK}",
        f"Reading {ATTACK}",
        '"word": "yes"',
        "Timeout: no answer",
        "error: no such file",
    ):
        assert words in text
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids)), "every address on the page is one place"
    links = [str(value)[1:] for name, value in page.attributes if name == "href" and str(value).startswith("#")]
    assert set(links) <= set(ids)
    assert len(links) == 1 + 2 + 3


def test_words_without_end_can_be_broken_and_control_characters_are_shown() -> None:
    html = transcripts_page([record("q1", "oracle", text="&" * 3000 + "\x1b[31m\u202e")])
    assert html.count("<wbr>") >= 29
    assert "&amp;" * 100 in html
    assert "\\x1b[31m\\u202e" in html


def test_lines_that_are_no_transcripts_are_all_reported() -> None:
    good = record("q1", "oracle")
    broken: list[dict[str, Any]] = [{"query_id": "q2", "role": "oracle"}, {**good, "usage": None}, {**good, "uses": 3}]
    with pytest.raises(InputError) as raised:
        transcripts_page([good, *broken])
    assert [problem.line for problem in raised.value.problems] == [2, 3, 4]
    assert "0 records" in transcripts_page([])


@pytest.mark.slow  # 4,800 turns of scripted agents: 3 s
def test_a_whole_run_is_rendered_in_two_seconds() -> None:
    code = "    return self.items[place]  # the item, or <nothing>\n" * 40
    lines = [record(f"q{n}", role, turns=20, text=code) for n in range(60) for role in ("a", "b", "c", "d")]
    started = time.process_time()
    html = transcripts_page(lines)
    assert time.process_time() - started < 2
    assert len(html) < 25_000_000
