"""The pytest plugin: a marker says what is measured, a fixture measures it once a session, asserts do the rest.

    pytestmark = pytest.mark.cranfield(testset="golden.json", system="search:find")

    def test_the_first_hit_comes_early(evaluation):
        assert evaluation.mean("RR") >= 0.40

What is missing (a file, an index, a system) is an error, never a skip. pytest loads this module at every start, so nothing
but pytest is imported before a fixture of ours is used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cranfield.project.asserted import Asked
    from cranfield.project.scores import Scores, Shared

CONFIG = "cranfield_config"
DEFAULT_CONFIG = "cranfield.yaml"
MARKER = (
    "cranfield(testset=, system=, run=, k=, convention=, max_failed_share=): what the fixture `evaluation` measures: a "
    "test set and a system (module:function), or a run file, relative to the test's file; or a system of the config."
)
SECTION = "cranfield: queries that did worst"

_asked_key = pytest.StashKey[list[Any]]()
"""What the test that runs has asked of its scores."""
_scored_key = pytest.StashKey[dict[object, Any]]()
"""What has been measured in this session, or the error that it ended in; with its settings, which live as long."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--cranfield-config` and the setting `cranfield_config`."""
    parser.addini(CONFIG, f"config file whose systems are measured, relative to the root; {DEFAULT_CONFIG} by default")
    group = parser.getgroup("cranfield", "quality of search")
    group.addoption("--cranfield-config", metavar="FILE", help="config file whose systems are measured")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and refuse a config that is not there."""
    config.addinivalue_line("markers", MARKER)
    config.stash[_asked_key] = []
    config.stash[_scored_key] = {}
    named = config.getoption("--cranfield-config")
    if named is not None and not Path(named).is_file():
        raise pytest.UsageError(f"--cranfield-config: there is no file {named}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget what the test before has asked."""
    item.config.stash[_asked_key].clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say, of a test that failed, which queries did worst by the measure that it asked for last."""
    report = yield
    asked = item.config.stash[_asked_key]
    if call.when == "call" and report.failed and asked:
        scores, measure = asked[-1]
        report.sections.append((SECTION, scores.told(measure)))
    return report


@pytest.fixture(scope="session")
def cranfield_config(pytestconfig: pytest.Config) -> Path:
    """The config file: of the command line, else of pytest's own settings, else `cranfield.yaml` in the root."""
    named = pytestconfig.getoption("--cranfield-config")
    if named is not None:
        return Path(named).absolute()
    return pytestconfig.rootpath / (pytestconfig.getini(CONFIG) or DEFAULT_CONFIG)


@pytest.fixture
def evaluation(request: pytest.FixtureRequest, cranfield_config: Path) -> Scores:
    """What the marker names, scored; measured once a session (under xdist: once a worker)."""
    settings: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("cranfield"))):  # the closest is last, and wins
        if marker.args:
            pytest.fail("the marker cranfield takes settings by name: testset=, system= ...", pytrace=False)
        settings |= marker.kwargs
    return _scored(request.config, settings, request.path.parent, cranfield_config)


@pytest.fixture(scope="session")
def cranfield_evaluate(pytestconfig: pytest.Config, cranfield_config: Path) -> Callable[..., Scores]:
    """A function that scores what it is given: `cranfield_evaluate("golden.json", find)`.

    Its first argument is the test set, its second the system; the rest are the settings of the marker. Paths are relative
    to the root.
    """

    def scores(testset: object = None, system: object = None, **settings: object) -> Scores:
        given = {"testset": testset, "system": system, **settings}
        return _scored(pytestconfig, given, pytestconfig.rootpath, cranfield_config)

    return scores


def _scored(config: pytest.Config, settings: dict[str, Any], folder: Path, config_file: Path) -> Scores:
    """Scores from this session, or made now; an error of ours ends the fixture with its message alone."""
    from cranfield.errors import CranfieldError
    from cranfield.project.scores import Scores, Shared

    known = config.stash[_scored_key]
    key = (folder, *sorted((name, _same(value)) for name, value in settings.items()))
    if key not in known:
        try:
            known[key] = settings, _measured(settings, folder, config_file)
        except CranfieldError as error:
            known[key] = settings, error
    found: Shared | CranfieldError = known[key][1]
    if isinstance(found, Shared):
        return Scores.of(found, config.stash[_asked_key])
    pytest.fail(str(found), pytrace=False)


def _same(value: object) -> str:
    """What makes a setting the same as one before: its text, or which object it is."""
    return repr(value) if isinstance(value, str | int | float | Path | None) else str(id(value))


def _measured(settings: dict[str, Any], folder: Path, config_file: Path) -> Shared:
    from cranfield.project.asserted import scored

    return scored(_asked(settings), folder=folder, config=config_file)


def _asked(settings: dict[str, Any]) -> Asked:
    from dataclasses import fields

    from cranfield.errors import UnknownNameError
    from cranfield.project.asserted import Asked

    known = [one.name for one in fields(Asked)]
    for name in settings:
        if name not in known:
            raise UnknownNameError.among("setting of the marker cranfield", name, known)
    return Asked(**settings)
