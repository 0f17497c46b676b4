"""The example of `examples/benefit`: its models are served, and a plan points at them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml


@dataclass
class Example:
    """The example in a folder of its own."""

    place: Path
    folder: Path
    server: Any
    asked: Any
    call: Callable[..., Any]

    def plan(self, index: str = "index.json", model: str = "agent", tool: Any = None, **changes: Any) -> Path:
        """The plan of the example, with changes."""
        plan = yaml.safe_load((self.folder / "plan.yaml").read_text())
        source = str(self.place / "harbour")
        served = str(self.folder / index) if index.endswith(".json") else index
        plan["agent"]["model"] |= {"model": f"openai:{model}", "base_url": self.server.url}
        plan["success"]["judge"]["base_url"] = self.server.url
        command = ["{python}", str(self.folder / "search_server.py"), source, served]
        plan["tools"]["beacon"] |= {"command": command, **(tool or {})}
        plan |= {"repo": source, "tasks": {"testset": str(self.folder / "golden.json")}, **changes}
        path = self.place / "plan.json"
        path.write_text(json.dumps(plan))
        return path

    def run(self, plan: Path, status: int = 0) -> Path:
        """The folder of the experiment, when all cells have ended."""
        ran = self.call("benefit", "run", plan, "--out", self.place / "runs")
        assert ran.returncode == status, ran.stderr
        return max((self.place / "runs").iterdir(), key=lambda path: path.stat().st_mtime)

    def result(self, run: Path) -> dict[str, Any]:
        """Of a run, scored."""
        scored = self.call("benefit", "score", run)
        assert scored.returncode == 0, scored.stderr
        out = self.place / "results"
        written = self.call("benefit", "result", run, "--out", out)
        assert written.returncode in {0, 4}, written.stderr
        found: dict[str, Any] = json.loads(
            max(out.glob("benefit_v*.json"), key=lambda p: p.stat().st_mtime).read_text()
        )
        return found


@pytest.fixture
def example(
    load_script: Callable[[Path], ModuleType], model_server: Any, checkout: Path, tmp_path: Path, call: Any
) -> Iterator[Example]:
    """With nothing run yet."""
    folder = checkout / "examples" / "benefit"
    models: Any = load_script(folder / "models.py")
    models.make_repository(tmp_path / "harbour")
    asked = models.Models()
    with model_server.ModelServer(asked.script(model_server.Reply)) as server:
        yield Example(tmp_path, folder, server, asked, call)
