"""Golden sets, and experiments with agents."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from scenes.scene import FORMS, TEXT_AND_JSON, UNWATCHED, Scene, forms

CHECKOUT = Path(__file__).resolve().parents[3]
CART = '''\
"""The cart."""

RATE = 0.2


class Cart:
    def __init__(self, items):
        self.items = items

    def total(self):
        return sum(item.price for item in self.items)


def with_tax(price):
    return price * (1 + RATE)
'''
RECORDS = [
    {
        "query_id": "q1",
        "query_text": "Where are the prices added up?",
        "task_type": "locate",
        "difficulty": "easy",
        "expected_entities": [{"entity_id": "src/cart.py::Cart.total", "role": "primary"}],
        "expected_files": ["src/cart.py"],
        "expected_line_ranges": [{"file": "src/cart.py", "start": 10, "end": 11}],
        "must_mention_facts": [
            {"fact": "It adds the price of every item.", "citations": [{"file": "src/cart.py", "start": 11, "end": 11}]}
        ],
        "must_not_mention_facts": ["It adds the tax."],
    },
    {
        "query_id": "q2",
        "query_text": "Where is the rate applied?",
        "task_type": "locate",
        "difficulty": "easy",
        "expected_entities": ["src/cart.py::with_vat"],
        "expected_files": ["src/cart.py"],
    },
]
SECOND_BATCH = [
    {**RECORDS[0], "query_id": f"b{n}", "query_text": f"Where is the sum of {n} prices made?"} for n in range(8)
]
ROWS = (
    "query,result1,result2\nwhere are the prices added up,src/cart.py:10-11:2,src/cart.py:3-3:1\n"
    "how is the tax applied,src/cart.py:14-14:2,\nwhere is the stock kept,src/stock.py:1-9:2,\n"
)
PLAN = """\
cranfield_plan: 1
name: small
total: 4
scope: [src/cranfield]
cells:
  - {task_type: locate, difficulty: easy, n: 3}
  - {task_type: explain, difficulty: medium, n: 1}
models:
  author: {model: "openai:author", limits: {turns: 6}}
  oracle: {model: "openai:oracle", limits: {turns: 6}}
  adversary: {model: "openai:adversary", limits: {turns: 6}}
  judge: {model: "openai:judge", limits: {turns: 6}}
budget:
  tokens: 1000000
"""
TASKS = [
    {
        "query_id": f"t{i}",
        "query_text": f"Where is {i}?",
        "task_type": "locate",
        "difficulty": "easy",
        "expected_entities": [{"entity_id": f"a.py::get_{i}"}],
        "expected_files": ["a.py"],
    }
    for i in range(3)
]
TRIAL = {
    "cranfield_benefit": 1,
    "name": "trial",
    "tasks": {"testset": "golden.json"},
    "agent": {
        "kind": "command",
        "command": ["sh", "{prompt}", "{mcp_config}"],
        "usage": {"answer": "a", "offered": "o"},
        "model": {"model": "test:m"},
    },
    "tools": {"find": {"command": ["sh"]}},
    "arms": {"treatment": {"name": "with", "tools": ["find"]}, "control": {"name": "without"}},
    "seeds": 2,
    "limits": {"tokens": 250, "seconds": 60},
    "success": {"by": "structure"},
    "strata": ["difficulty"],
}


def named(command: str, folder: str) -> Callable[[], None]:
    """A command on the one folder of runs in a folder, whose name has the time in it."""

    def call() -> None:
        from cranfield.cli.main import run_command_line

        (run,) = Path(folder).iterdir()
        status = run_command_line([str(run) if word == "RUN" else word for word in shlex.split(command)])
        print(f"exit {status}")

    call.__name__ = command
    return call


def named_forms(command: str, folder: str) -> list[Callable[[], None]]:
    return [named(each, folder) for each in forms(command)]


def script_module(path: Path) -> Any:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def committed(folder: str) -> None:
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Source"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


def shop_is_committed() -> None:
    committed("shop")


def rows_are_voted_on() -> None:
    from cranfield.agents.recording import Scripted
    from cranfield.golden.use_cases.assemble import CheckOptions, check_set

    def vote(request: Any) -> str:
        asked = request.messages[0].text
        place, grade = None, 2
        if "tax" in asked:
            place = {"file": "src/cart.py", "start": 14, "end": 15}
        elif "3" in asked.partition('"lines"')[2][:12]:
            grade = 0
        return json.dumps({"place": place, "grade": grade, "reason": "read"})

    options = CheckOptions(("test:checker",), votes=3, source=Scripted(vote))
    report = check_set(Path("code.csv"), Path("shop"), Path(UNWATCHED) / "row-check", options)
    for row in report.result.checked:
        print(row.row.target.label, row.state, row.problem)
    print(report.diff)


def golden_with_scripted_models() -> None:
    """The models of the example, over a part of the program's own source: what holds of the source is left out."""
    from cranfield.cli.main import run_command_line

    models = script_module(CHECKOUT / "examples" / "golden" / "models.py")
    source, runs, answers = (Path(UNWATCHED) / name for name in ("source", "runs", "answers.jsonl"))
    source.parent.mkdir()
    models.make_repository(source)
    models.record(Path("plan.yaml"), source, answers)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        run_command_line(["golden", "plan", "plan.yaml", "--repo", str(source)])
        run_command_line(
            ["golden", "run", "plan.yaml", "--repo", str(source), "--replay", str(answers), "--out", str(runs)]
        )
        (run,) = runs.iterdir()
        run_command_line(["golden", "status", str(run)])
        run_command_line(["golden", "models", str(run)])
        run_command_line(
            ["golden", "assemble", str(run), "--repo", str(source), "--out", f"{UNWATCHED}/set", "--draft"]
        )
        run_command_line(["golden", "transcripts", str(run), "--html", f"{UNWATCHED}/transcripts.html"])
    print(re.sub(r"\b[0-9a-f]{7,64}\b", "{digest}", printed.getvalue()))


def trial_is_run() -> None:
    """`benefit run` with agents that are scripts: the treatment finds what is asked, but for one task."""
    from cranfield.benefit import agent
    from cranfield.benefit.agent import CellRun
    from cranfield.benefit.plan import ArmRole
    from cranfield.benefit.records import CellEnd, CellUsage, Delivery, PreflightRecord
    from cranfield.cli.main import run_command_line

    class Scripted:
        def __init__(self, role: ArmRole) -> None:
            self.role = role

        async def preflight(self) -> tuple[PreflightRecord, ...]:
            if self.role is ArmRole.CONTROL:
                return ()
            return (PreflightRecord(arm=self.role, tool="find", ok=True, found={"index": "v1"}, message=""),)

        async def run(self, task: Any, seed: int, attempt: int) -> CellRun:
            finds = self.role is ArmRole.TREATMENT and task.id != "t2"
            delivery = Delivery(offered=True, called=1, answered=1) if self.role is ArmRole.TREATMENT else None
            answer = f"It is a.py::get_{task.id[1:]}." if finds else "I do not know."
            usage = CellUsage(total=100 + 20 * finds, requests=1, wall_s=0.1)
            return CellRun(CellEnd.ANSWERED, usage, {"role": self.role}, delivery=delivery, answer=answer)

        async def aclose(self) -> None: ...

    @contextlib.asynccontextmanager
    async def opened(_: object) -> AsyncIterator[Mapping[ArmRole, Scripted]]:
        yield {role: Scripted(role) for role in ArmRole}

    vars(agent)["open_scripted"] = opened
    vars(agent)["OPENERS"] = {"command": "cranfield.benefit.agent:open_scripted"}
    print("exit", run_command_line(["benefit", "run", "plan.json", "--out", f"{UNWATCHED}/trials"]))


def experiment_is_there() -> None:
    """The folder of an experiment with all cells and their scores, as the unit tests make one."""
    from cranfield.agents.recording import Scripted

    sys.path.insert(0, str(CHECKOUT))
    from tests.unit.benefit.test_result import absent, experiment, score_experiment

    path = experiment(Path(UNWATCHED))
    outcome = score_experiment(path, source=Scripted(absent))
    print(outcome.n_cells, outcome.n_scored, outcome.n_undecided)


def harbour_is_there() -> None:
    """The example's plan, and the repository that it is about."""
    copied = Path(UNWATCHED) / "examples" / "benefit"
    shutil.copytree("benefit", copied)
    script_module(copied / "models.py").make_repository(Path(UNWATCHED) / "harbour")
    plan = (copied / "plan.yaml").read_text()
    for path in ("examples/benefit/search_server.py", "harbour, ", "examples/benefit/index.json"):
        plan = plan.replace(path, f"{UNWATCHED}/{path}")
    (copied / "plan.yaml").write_text(plan)


TRIALS, RUNS = f"{UNWATCHED}/trials", f"{UNWATCHED}/runs"

SCENES = [
    Scene(
        "golden",
        [
            shop_is_committed,
            *forms("golden gate shop.json --repo shop"),
            "golden enter shop.json --repo shop --out unwatched/entered",
            *named_forms("golden status RUN", f"{UNWATCHED}/entered"),
            "golden enter shop.json --repo shop --step people --out unwatched/people",
            *[
                named(f"golden assemble RUN --repo shop --out golden --draft {form}".strip(), f"{UNWATCHED}/people")
                for form in ("", "--format json", "--html report.html")
            ],
            *forms("golden batch shop.json batch.json"),
            *[named(f"golden models RUN {form}".strip(), f"{UNWATCHED}/people") for form in TEXT_AND_JSON],
            named("golden review RUN --repo shop --book phase1", f"{UNWATCHED}/people"),
            "book show phase1",
            named("golden reviewed RUN --format json", f"{UNWATCHED}/people"),
            rows_are_voted_on,
        ],
        {
            "shop/src/cart.py": CART,
            "shop.json": json.dumps(RECORDS, indent=1),
            "batch.json": json.dumps(SECOND_BATCH, indent=1),
            "code.csv": ROWS,
        },
        timed=True,
    ),
    Scene("golden-run", [golden_with_scripted_models], {"plan.yaml": PLAN}, timed=True),
    Scene(
        "benefit",
        [
            harbour_is_there,
            *forms("benefit check unwatched/examples/benefit/plan.yaml", only=TEXT_AND_JSON),
            trial_is_run,
            *[named(f"benefit status RUN {form}".strip(), TRIALS) for form in TEXT_AND_JSON],
            named("benefit score RUN", TRIALS),
            named("benefit report RUN", TRIALS),
            experiment_is_there,
            *[named(f"benefit report RUN {form}", RUNS) for form in ("--full", *FORMS[1:5])],
            named("benefit report RUN", RUNS),
            named("benefit result RUN --out results", RUNS),
            named("benefit result RUN --out results", RUNS),
            *forms("benefit history results"),
            "benefit gate results --junit gate.xml",
            "benefit gate results --forbid 'insufficient data' --require 'task_type=locate,difficulty=easy:pays off'",
            "benefit report results --html report.html",
        ],
        {"golden.json": json.dumps(TASKS), "plan.json": json.dumps(TRIAL)},
        ["examples/benefit"],
        timed=True,
    ),
]
