"""Kinds of systems that a package brings: really installed, with its metadata, in a folder on the path."""

import importlib
import sys
from pathlib import Path

import pytest

from cranfield.base.errors import PreflightError
from cranfield.model import Hit, Outcome, Query
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.python import PluginSystem

SOURCE = '''
from cranfield.model import Answer, CallLog, Hit, Outcome

class Engine:
    def __init__(self, name, settings, folder, params):
        self.said = f"{name} {settings} {folder.name} {params}"
        self.closes = settings.get("closes")
    def search(self, query, k, **params):
        return [{"id": self.said}, f"{query} {k} {params}"]
    def close(self):
        if self.closes:
            open(self.closes, "w").close()

class Whole:
    """A System of its own."""
    name, order, concurrency, config_digest = "whole", "given", 1, "x"
    def __init__(self, **given):
        pass
    def public_config(self):
        return {}
    def search(self, query, k):
        return Answer(Outcome.ANSWERED, (Hit(f"{query.text} {query.params}"),)), CallLog(1.0)

async def asked(query, k):
    return [query]

def function(**given):
    return asked

def broken(**given):
    raise ValueError("no licence")

def nothing(**given):
    return None

constant = 3
'''


@pytest.fixture
def install(tmp_path: Path):
    """Install a package of entry points; it is gone when the test is over."""
    site = tmp_path / "site"
    installed = []

    def _install(entry_points: str, *, package: str = "acme_search", version: str = "1.2") -> None:
        site.mkdir(exist_ok=True)
        (site / f"{package}.py").write_text(SOURCE, encoding="utf-8")
        info = site / f"{package}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[cranfield.systems]\n{entry_points}\n")
        (info / "RECORD").write_text(f"{package}.py,,\n{info.name}/METADATA,,\n{info.name}/RECORD,,\n")
        installed.append(package)
        importlib.invalidate_caches()

    sys.path.insert(0, str(site))
    yield _install
    sys.path.remove(str(site))
    for package in installed:
        sys.modules.pop(package, None)


@pytest.fixture
def plugin(tmp_path: Path):
    made = []

    def _plugin(name: str, **config) -> PluginSystem:
        made.append(PluginSystem.of("sut", folder=tmp_path, plugin=name, **config))
        return made[-1]

    yield _plugin
    for system in made:
        system.close()


def ask(system, **params):
    return system.search(Query("q1", "grid", params=params), 3)


def refused(system) -> str:
    with pytest.raises(PreflightError) as caught:
        preflight([system])
    return str(caught.value)


def test_a_package_makes_the_system_of_its_settings(install, plugin, tmp_path):
    install("acme = acme_search:Engine")
    system = plugin("acme", with_={"index": "old"}, params={"boost": 2})
    made = f"sut {{'index': 'old'}} {tmp_path.name} {{'boost': 2}}"
    assert ask(system, lang="en")[0].hits == (Hit(made), Hit("grid 3 {'boost': 2, 'lang': 'en'}"))
    assert [(one.check, one.found) for one in preflight([system])][1:] == [("plugin acme", "made of acme_search 1.2")]


def test_what_it_made_is_closed(install, plugin, tmp_path):
    install("acme = acme_search:Engine")
    system = plugin("acme", with_={"closes": str(tmp_path / "closed")})
    ask(system)
    system.close()
    assert (tmp_path / "closed").exists()


def test_a_package_may_bring_a_system_of_its_own(install, plugin):
    install("whole = acme_search:Whole")
    assert ask(plugin("whole"), lang="en")[0].hits == (Hit("grid {'lang': 'en'}"),)


def test_a_package_may_bring_an_async_function(install, plugin):
    install("function = acme_search:function")
    assert ask(plugin("function"))[0].hits == (Hit("grid"),)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            "broken",
            (
                "expected plugin broken of acme_search 1.2 to create a system, got acme_search.py, line 31: "
                "ValueError: no licence.\nHint: fix acme_search:broken, or uninstall the package."
            ),
        ),
        (
            "nothing",
            "expected plugin nothing of acme_search 1.2 to create an object with a method search, got a NoneType",
        ),
        ("constant", "expected plugin constant of acme_search 1.2 to create a system, got TypeError: 'int' object"),
        ("absent", "expected plugin absent of acme_search 1.2 to create a system, got AttributeError: module"),
    ],
)
def test_a_broken_plugin_fails_the_preflight_with_the_name_of_its_package(install, plugin, entry, said):
    install(f"{entry} = acme_search:{entry}")
    system = plugin(entry)
    assert said in refused(system)
    assert ask(system)[0].outcome is Outcome.ERROR


def test_a_plugin_that_nobody_brings_fails_the_preflight_with_the_nearest_name(install, plugin):
    install("acme = acme_search:Engine")
    said = refused(plugin("acne"))
    assert "got no installed package provides a plugin of that name" in said
    assert "did you mean acme?" in said


def test_two_packages_that_bring_one_name_are_refused(install, plugin):
    install("acme = acme_search:Engine")
    install("acme = other_search:Engine", package="other_search")
    assert "got several: acme_search:Engine, other_search:Engine" in refused(plugin("acme"))


def test_another_version_of_the_package_is_another_system(install, plugin):
    install("acme = acme_search:Engine")
    names = [path.name for path in plugin("acme").depends_on()]
    assert sorted(names) == ["METADATA", "RECORD", "acme_search.py"]
