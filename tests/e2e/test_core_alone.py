"""The core without a product: what it needs of one is named, and everything else works."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import cranfield
from cranfield.plugins import BUILT_IN

CORE = (
    "base", "model", "stats", "formats", "ranking", "measures", "evaluation", "config", "systems", "reporting",
    "repo", "app", "cli", "plugins.py", "__init__.py", "__main__.py",
)  # fmt: skip
CALLS = """
import json, os, sys
for name in [name for name in sys.modules if name.partition(".")[0] == "cranfield"]:
    del sys.modules[name]
sys.path.insert(0, os.environ["PYTHONPATH"])
from cranfield.cli.main import run_command_line
print(json.dumps([run_command_line(arguments) for arguments in json.loads(sys.argv[1])]), file=sys.stderr)
"""
TESTSET = "q1 0 a 1\nq2 0 b 1\n"
SHOP = """
def old(query, k):
    return ["c", "a"][:k]

def new(query, k):
    return ["a", "b"][:k]
"""
CONFIG = """
testset: shop.qrels
primary: RR
systems:
  old: {python: "shop:old"}
  new: {python: "shop:new"}
"""
GATE = """
gate:
  system: new
  rules:
    - floor: {measure: RR, at_least: 0.5}
"""


@pytest.fixture
def shop(tmp_path: Path, quick_python: str) -> Path:
    files = {"shop.qrels": TESTSET, "queries.tsv": "q1\tred shoes\nq2\train coat\n", "shop.py": SHOP}
    files |= {"cranfield.yaml": CONFIG.replace("primary", "options: {queries: queries.tsv}\nprimary")}
    files |= {"gate.yaml": files["cranfield.yaml"] + GATE}
    files |= {"a.run": "q1 Q0 c 1 2 x\nq1 Q0 a 2 1 x\nq2 Q0 b 1 2 x\n", "b.run": "q1 Q0 a 1 2 y\nq2 Q0 b 1 2 y\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def called(folder: Path, rooms: tuple[str, ...], *calls: str) -> tuple[list[int], str, str]:
    """Exit codes, stdout and stderr of command lines, in a package that has these rooms alone."""
    package = folder / "site" / "cranfield"
    package.mkdir(parents=True)
    for name in rooms:
        (package / name).symlink_to(Path(cranfield.__file__).parent / name)
    (folder / "calls.py").write_text(CALLS)
    command = ["quick-python", "calls.py", json.dumps([call.split() for call in calls])]
    environment = {"PYTHONPATH": str(package.parent), "PATH": os.environ["PATH"], "PYTHONSAFEPATH": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    *err, codes = done.stderr.splitlines()
    return json.loads(codes), done.stdout, "\n".join(err)


def test_without_any_product_the_core_evaluates_compares_and_runs(shop: Path) -> None:
    codes, out, err = called(
        shop,
        CORE,
        "--help",
        "evaluate shop.qrels a.run -m RR",
        "compare shop.qrels a.run b.run -m RR",
        "run cranfield.yaml --out out",
        "evaluate shop.qrels a.run --floor RR=0.5",
        "evaluate shop.qrels a.run --memory 1GB",
        "run gate.yaml --out gated",
        "gate gate.yaml",
    )
    assert codes == [0, 0, 0, 0, 2, 2, 2, 2], err
    assert "  evaluate " in out
    assert "\n  baseline " not in out
    assert (shop / "out" / "report.html").exists()
    assert "the part of Cranfield for floors is not installed" in err
    assert "the part of Cranfield for large runs is not installed" in err
    assert "unknown key 'gate'" in err
    assert "No such command 'gate'" in err


def test_the_gate_needs_no_other_product(shop: Path) -> None:
    codes, out, err = called(shop, (*CORE, "gate"), "gate gate.yaml", "evaluate shop.qrels a.run -m RR --floor RR=0.8")
    assert codes == [0, 1], err
    assert "passed" in out


@pytest.mark.parametrize("left_out", BUILT_IN)
def test_without_a_product_the_commands_of_all_others_are_listed(shop: Path, left_out: str) -> None:
    rooms = tuple(name for name in (*CORE, "agents", "books", *BUILT_IN) if name != left_out)
    groups = [f"{group} --help" for group in ("testset", "pool", "baseline", "golden", "benefit") if group != left_out]
    codes, out, err = called(shop, rooms, "--help", *groups)
    assert codes[0] == 0, err
    assert set(codes) <= {0, 2}, err  # 2: no such command, of the product that is left out
    assert ("\n  serve " in out) is (left_out not in {"testsets", "gate", "judging", "benefit", "workbench"})
    assert "internal error" not in err
