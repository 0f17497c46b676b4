"""The packages of docs/how-to/extend.md, really installed: each example does what the page says."""

from __future__ import annotations

import importlib
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from subprocess import CompletedProcess, run
from types import ModuleType, SimpleNamespace

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from cranfield import PythonSystem, TestSet, evaluate, load
from cranfield.base.errors import UsageError
from cranfield.books.store.store import open_store
from cranfield.cli.main import command_line, command_table
from cranfield.evaluation.testset.validate import validate
from cranfield.measures.own import forget
from cranfield.model import Query
from cranfield.plugins import EXTENSION_POINTS, Product
from cranfield.reporting import evaluation_document, render
from cranfield.systems.kinds.python import PluginSystem
from cranfield.workbench.server.access import declared_access
from cranfield.workbench.server.app import create_app, routers
from cranfield.workbench.server.navigation import entries
from cranfield.workbench.server.options import ServerOptions

Call = Callable[..., CompletedProcess[str]]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "extend.md").read_text(encoding="utf-8")
MODULES = dict(re.findall(r"^`(acme_\w+\.py)`:\n\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
GROUPS = tomllib.loads(re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0])["project"][
    "entry-points"
]


@pytest.fixture(autouse=True)
def acme(tmp_path: Path) -> Iterator[None]:
    """The package, with the metadata that an installer writes from its pyproject.toml."""
    site = tmp_path / "site"
    info = site / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    for name, source in MODULES.items():
        (site / name).write_text(source, encoding="utf-8")
    lines = [f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in points.items()) for group, points in GROUPS.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    sys.path.insert(0, str(site))
    importlib.invalidate_caches()
    for cached in (command_line, command_table):
        cached.cache_clear()
    yield
    for cached in (command_line, command_table):
        cached.cache_clear()
    sys.path.remove(str(site))
    for name in MODULES:
        sys.modules.pop(name.removesuffix(".py"), None)


def test_the_page_names_every_group_with_its_contract() -> None:
    assert set(GROUPS) == set(EXTENSION_POINTS)
    rows = {
        group: (contract, loaded)
        for group, contract, loaded in re.findall(r"^\| `(\S+)` \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
    }
    assert rows == {point.group: (point.contract, point.loaded) for point in EXTENSION_POINTS.values()}


def test_its_measure_is_computed() -> None:
    try:
        scored = evaluate(
            {"q1": {"d1": 1}, "q2": {"d1": 1}}, {"q1": ["d1"], "q2": ["d2", "d1"]}, measures=["FirstRank"]
        )
        assert scored.mean("FirstRank") == 0.75  # (1 + 0.5) / 2
    finally:
        forget("FirstRank")


def test_its_system_answers(tmp_path: Path) -> None:
    system = PluginSystem.of(
        "shop", folder=tmp_path, plugin="acme", **{"with": {"documents": ["red bicycle", "blue bicycle"]}}
    )
    answer, _ = system.search(Query("q1", "blue"), 10)
    assert [hit.id for hit in answer.hits] == ["blue bicycle"]
    assert not isinstance(system, PythonSystem)


def test_its_format_is_read_by_content(tmp_path: Path) -> None:
    path = tmp_path / "monday.txt"
    path.write_text("ACME CLICKS\nlost key|d1\nhelmet size|d7\n")
    assert load(path).grades == {"lost key": {"d1": 1}, "helmet size": {"d7": 1}}


def test_its_check_finds() -> None:
    testset = TestSet("tiny", (Query("q1", "helmet size?"), Query("q2", "lost key")), {"q1": {"d": 1}, "q2": {"d": 1}})
    found = [finding for finding in validate(testset, today=date(2026, 1, 1)).findings if finding.check == "questions"]
    assert [(one.level, one.query_id) for one in found] == [("warning", "q2")]


@pytest.mark.parametrize(("strata", "shown"), [({"shop": "north"}, True), ({}, False)])
def test_its_section_is_in_the_report_where_it_applies(strata: dict[str, str], *, shown: bool) -> None:
    testset = TestSet("tiny", (Query("q1", strata=strata),), {"q1": {"d1": 1}})
    report = render(evaluation_document([evaluate(testset, {"q1": ["d1"]}, measures=["RR"])]), "markdown")
    assert ("The queries are from 1 shops." in report) is shown


def test_its_product_has_a_command_with_a_report(tmp_path: Path, call: Call) -> None:
    (tmp_path / "votes.txt").write_text("old\nnew\nnew\n")
    assert re.search(r"^  polls +Count the votes that people gave to systems\.$", call("--help").stdout, re.MULTILINE)
    printed = call("polls", "votes.txt", "--format", "csv", folder=tmp_path)
    assert (printed.returncode, printed.stdout) == (0, "system,votes\nnew,2\nold,1\n")
    assert "new" in call("polls", folder=tmp_path).stdout
    assert call("polls", "votes.txt", "--html", "polls.html", folder=tmp_path).returncode == 0
    assert "<title>Polls" in (tmp_path / "polls.html").read_text()


def test_its_product_has_a_page_for_those_who_see_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    routes = {route.path: route for router in routers() for route in router.routes if isinstance(route, APIRoute)}
    assert declared_access([routes["/polls"]]) == {("GET", "/polls"): "results"}
    monkeypatch.chdir(tmp_path)
    Path("votes.txt").write_text("old\nnew\nnew\n")
    with closing(open_store(tmp_path / "books.db")) as store:
        options = ServerOptions(port=8000)
        browser = TestClient(create_app(store, options), base_url=str(options.public), headers={"accept": "text/html"})
        shown = browser.get(f"/start?token={options.start_token}&next=/polls")
    # In the frame of the server, without a style or a script that its Content-Security-Policy refuses.
    assert (shown.status_code, '<th scope="row">new</th>' in shown.text, "/static/report.css" in shown.text) == (
        200,
        True,
        True,
    )
    assert ("<style" in shown.text, "style=" in shown.text, '<nav class="menu"' in shown.text) == (False, False, True)
    menu = [entry.title for entry, _ in entries(SimpleNamespace(may=lambda access: True), "/polls")]  # type: ignore[arg-type]
    assert menu[-1] == "Polls"


def test_a_page_that_does_not_say_who_may_use_it_is_refused_with_its_product(monkeypatch: pytest.MonkeyPatch) -> None:
    toys = ModuleType("toys")
    toys.router = APIRouter()  # type: ignore[attr-defined]
    toys.router.get("/toys")(lambda: "all of them")
    monkeypatch.setitem(sys.modules, "toys", toys)
    monkeypatch.setattr(
        "cranfield.workbench.server.app.products", lambda: [Product(name="toys", pages=("toys:router",))]
    )
    with pytest.raises(UsageError, match=r"pages of the product toys do not declare who may use them: GET /toys"):
        routers()


BROKEN = """
from cranfield.plugins import Product
PRODUCT = Product(
    name="toy", commands={"Evaluate": {"toys": "toy_gone", "compare": "toy_gone"}}, config={"toy": "toy_gone:Model"}
)
"""


def test_a_product_that_cannot_be_imported_breaks_no_other_command(tmp_path: Path) -> None:
    """In a process of its own: the models of the config are made once in each."""
    site = tmp_path / "other"
    (site / "toys-1.0.dist-info").mkdir(parents=True)
    (site / "toy.py").write_text(BROKEN)
    (site / "toys-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (site / "toys-1.0.dist-info" / "entry_points.txt").write_text("[cranfield.products]\ntoy = toy:PRODUCT\n")
    (tmp_path / "cranfield.yaml").write_text("testset: a.qrels\nsystems: {a: {run: a.run}}\n")
    (tmp_path / "a.qrels").write_text("q1 0 d1 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 1 x\n")
    code = "import sys; from cranfield.cli.main import run_command_line; sys.exit(run_command_line(sys.argv[1:]))"

    def called(*words: str) -> CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *filter(None, sys.path)])}
        command = [sys.executable, "-c", code, *words]
        return run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    listed = called("--help")
    assert (listed.returncode, "  compare " in listed.stdout, "  toys " in listed.stdout) == (0, True, False)
    assert "warning: command toys: toy_gone of a product failed: ModuleNotFoundError" in listed.stderr
    assert "warning: the command compare exists already; the one of toy is ignored" in listed.stderr
    asked = called("toys")
    assert (asked.returncode, "internal error" in asked.stderr) == (2, False)
    ran = called("run")
    assert (ran.returncode, "the key toy of the config is not known" in ran.stderr) == (0, True)
