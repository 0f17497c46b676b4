"""The pytest plugin: a marker says what is measured, a fixture measures it once a session, asserts do the rest.

    pytestmark = pytest.mark.cranfield(testset="golden.json", system="search:find")

    def test_the_first_hit_comes_early(evaluation):
        assert evaluation.mean("RR") >= 0.40

What is missing (a file, an index, a system) is an error, never a skip. pytest loads this module at every start, so nothing
but pytest is imported before one of its fixtures is used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cranfield.gate.use_cases.calibration import LazyEvaluation, Scores

CONFIG = "cranfield_config"
DEFAULT_CONFIG = "cranfield.yaml"
MARKER = (
    "cranfield(testset=, system=, run=, k=, convention=, max_failed_share=): input of the fixture `evaluation`: "
    "a test set and a system (module:function) or a run file, relative to the test file; or a system of the config."
)
SECTION = "cranfield: worst queries"

_requests_key = pytest.StashKey[list[Any]]()
"""Measures that the running test has requested."""
_scored_key = pytest.StashKey[dict[object, Any]]()
"""Evaluations of this session, or the error of each; with its settings, so that ids of objects stay unique."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--cranfield-config` and the setting `cranfield_config`."""
    parser.addini(
        CONFIG, f"config file with the systems to evaluate, relative to the root; {DEFAULT_CONFIG} by default"
    )
    group = parser.getgroup("cranfield", "quality of search")
    group.addoption("--cranfield-config", metavar="FILE", help="config file with the systems to evaluate")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and refuse a config that is not there."""
    config.addinivalue_line("markers", MARKER)
    config.stash[_requests_key] = []
    config.stash[_scored_key] = {}
    named = config.getoption("--cranfield-config")
    if named is not None and not Path(named).is_file():
        raise pytest.UsageError(f"--cranfield-config: file not found: {named}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Clear the requests of the test before."""
    item.config.stash[_requests_key].clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failed test the queries that did worst by the measure it requested last."""
    report = yield
    requests = item.config.stash[_requests_key]
    if call.when == "call" and report.failed and requests:
        scores, measure = requests[-1]
        report.sections.append((SECTION, scores.describe_worst(measure)))
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
            pytest.fail("the marker accepts only keyword arguments: testset=, system= ...", pytrace=False)
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
    """Scores from this session, or made now; one of our errors ends the fixture with its message alone."""
    from cranfield.base.errors import CranfieldError
    from cranfield.gate.use_cases.calibration import LazyEvaluation, Scores

    known = config.stash[_scored_key]
    key = (folder, *sorted((name, _identity(value)) for name, value in settings.items()))
    if key not in known:
        try:
            known[key] = settings, _measured(settings, folder, config_file)
        except CranfieldError as error:
            known[key] = settings, error
    found: LazyEvaluation | CranfieldError = known[key][1]
    if isinstance(found, LazyEvaluation):
        return Scores.of(found, config.stash[_requests_key])
    pytest.fail(str(found), pytrace=False)


def _identity(value: object) -> str:
    """Equal for two settings that are the same: the text of a value, the id of any other object."""
    return repr(value) if isinstance(value, str | int | float | Path | None) else str(id(value))


def _measured(settings: dict[str, Any], folder: Path, config_file: Path) -> LazyEvaluation:
    from dataclasses import fields

    from cranfield.base.errors import UnknownNameError
    from cranfield.gate.use_cases.calibration import LazyEvaluation
    from cranfield.gate.use_cases.ci import MarkerSettings, measure

    known = [field.name for field in fields(MarkerSettings)]
    for name in settings:
        if name not in known:
            raise UnknownNameError.among("setting of the marker cranfield", name, known)
    return LazyEvaluation(measure(MarkerSettings(**settings), folder=folder, config_path=config_file))
