"""One query to a system, in a program of its own: what hangs is ended, and what breaks breaks nothing else.

`python -P -m cranfield.workbench.service.probe` reads what to ask from a line of standard input, and prints each exchange as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield.base.concurrency.child_process import ChildProcess, NotStartedError, TooMuchOutputError
from cranfield.base.concurrency.loop import event_loop
from cranfield.base.errors import CranfieldError, Problem
from cranfield.config import load_config
from cranfield.model import Scalar
from cranfield.workbench.config import Workbench
from cranfield.workbench.service.children import child_command, system_environment
from cranfield.workbench.service.tuning import tuned_config

LIMIT_S = 60.0
"""Longest time of a probe, preflight included."""
MAX_CHARS = 20_000
"""Most characters of a request, an output or what was written to stderr that are shown."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A query and its answer, with secrets hidden; or why there is none."""

    settings: Mapping[str, Scalar]
    """Values that are other than the config's."""
    exchange: Mapping[str, Any]
    """As `cranfield system probe --format json` has it; empty where there was no call."""
    problems: tuple[Problem, ...] = ()

    @property
    def hits(self) -> Sequence[Mapping[str, Any]]:
        """The results, in the order of the output: id, title, span and score; None where the system gives none."""
        return [{name: hit[name] for name in ("id", "title", "span", "score")} for hit in self.exchange.get("hits", ())]


def probe_in_child(
    config_path: Path,
    workbench: Workbench | None,
    system: str,
    query: str,
    k: int,
    settings: Sequence[Mapping[str, Scalar]] = ({},),
    *,
    limit_s: float = LIMIT_S,
) -> tuple[Probed, ...]:
    """Send a query to a system of a config, once with each of several settings.

    Args:
        config_path: cranfield.yaml.
        workbench: the operator's file, which opens parameters.
        system: its name.
        query: its text.
        k: results to ask for.
        settings: place in the system to its value; empty: as the config has it.
        limit_s: seconds for all of it.

    Raises:
        UsageError: a setting that is not open.
        CranfieldError: the config, with what is wrong.
    """
    config = load_config(config_path)
    for each in settings:
        tuned_config(config, workbench, system, each)
    tunable = {} if workbench is None else workbench.model_dump(include={"tunable"}, exclude_unset=True)
    order = {"config": str(config_path), "workbench": tunable, "system": system, "query": query, "k": k}
    line = json.dumps(order | {"settings": list(map(dict, settings))})
    output, problem = _run_child(line, system_environment(workbench, config), limit_s)
    try:
        answers = json.loads(output)
    except ValueError:
        broken = Problem(problem, path=system, hint="the probe was stopped")
        return tuple(Probed(each, {}, (broken,)) for each in settings)
    return tuple(_probed(each, answer) for each, answer in zip(settings, answers, strict=True))


def _run_child(order: str, env: Mapping[str, str], limit_s: float) -> tuple[bytes, str]:
    """What the program of a probe printed, and why that may be nothing."""
    try:
        status, output = event_loop().run(_output_of_child(order, env, limit_s))
    except TimeoutError:
        return b"", f"no answer within {limit_s:g} s"
    except TooMuchOutputError:
        return b"", "the answer is too large"
    except NotStartedError as error:
        return b"", f"the probe could not be started: {error}"
    return output, f"the probe ended with exit code {status}"


async def _output_of_child(order: str, env: Mapping[str, str], limit_s: float) -> tuple[int, bytes]:
    argv = child_command("cranfield.workbench.service.probe")
    child = await ChildProcess.start(argv, cwd=Path.cwd(), env=env, stdin=True)
    try:
        async with asyncio.timeout(limit_s):
            with suppress(OSError):  # it has ended already: its exit status says so
                await child.write_line(order)
            return await child.run(), bytes(child.stdout)
    finally:
        await child.end()


def _probed(settings: Mapping[str, Scalar], answer: Mapping[str, Any]) -> Probed:
    problems = (Problem(each["message"], path=each["path"], hint=each["hint"]) for each in answer["problems"])
    return Probed(settings, answer["exchange"], tuple(problems))


def _ask(order: Mapping[str, Any], settings: Mapping[str, Scalar]) -> dict[str, Any]:
    from cranfield.app.probing import probe_system
    from cranfield.model.results import to_jsonable

    try:
        config = load_config(Path(order["config"]))
        tuned = tuned_config(config, Workbench.model_validate(order["workbench"]), order["system"], settings)
        exchange = to_jsonable(probe_system(tuned, order["system"], order["query"], k=order["k"]).result)
    except CranfieldError as error:
        problems = [
            {"message": each.spelled(each.message), "path": each.path, "hint": each.hint} for each in error.problems
        ]
        return {"exchange": {}, "problems": problems}
    for name in ("request", "output", "stderr"):
        text = exchange[name]
        exchange[name] = text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]} …"
    return {"exchange": exchange, "problems": []}


def main() -> None:
    """Read what to ask, ask, and print the answers."""
    order = json.loads(sys.stdin.readline())
    answers = [_ask(order, settings) for settings in order["settings"]]
    sys.stdout.write(json.dumps(answers, default=str))


if __name__ == "__main__":
    main()
