"""A repository with a tool that searches it; and retries without waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cranfield.agents import retrying
from cranfield.benefit.plan import ToolServer

SERVER = Path(__file__).with_name("code_search_server.py")


@pytest.fixture
def code_search(tmp_path: Path) -> Any:
    """A plan's entry of the tool, by the modes of its server; its folder is `index` in `tmp_path`."""
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / "store.py").write_text("def add(item):\n    rows.append(item)\n\n\ndef rows_of(name):\n    return rows\n")

    def server(*modes: str, **fields: Any) -> ToolServer:
        fields.setdefault("tools", ("find_code",))
        return ToolServer(command=("{python}", "-I", "-S", str(SERVER), str(folder), *modes), **fields)

    return server


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat a request to a model at once."""
    policy = retrying.retry_policy
    monkeypatch.setattr(
        retrying, "retry_policy", lambda *given, **more: {**policy(*given, **more), "wait": lambda _: 0.0}
    )
