"""The description of the API is true: schemathesis calls every route of it, with good and bad data and in sequences."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

SEED = 20261123
EXAMPLES = 5
"""Of each operation and phase."""
FUZZED = 12
"""Random examples of each operation, on each database."""
REFUSED_BY_MEANING = ["2xx", "400", "401", "403", "404", "409", "412", "413", "415", "422", "424", "429"]
"""Data that the schema allows, and that name nothing there is: a measure, a test set, a file that is none."""


def findings(bench: Any, capsys: pytest.CaptureFixture[str], examples: int, phases: dict[str, Any]) -> list[str]:
    """What schemathesis finds in some phases with a token that may do everything."""
    import schemathesis
    from schemathesis.config import SchemathesisConfig
    from schemathesis.engine import from_schema
    from schemathesis.engine.events import FatalError, NonFatalError

    lead = bench.team.store.people.get("lee").id
    token = bench.team.store.people.add_token(lead, "t", "manage", 10**9)
    config = SchemathesisConfig.from_dict(
        {
            "seed": SEED,
            "headers": {"Authorization": f"Bearer {token}"},
            "base-url": "http://127.0.0.1:8000",
            "generation": {"max-examples": examples, "database": "none"},
            "checks": {"positive_data_acceptance": {"expected-statuses": REFUSED_BY_MEANING}},
            "phases": phases,
            "suppress-health-check": ["too_slow"],  # of making data, on a machine that does other things
        }
    )
    with capsys.disabled():
        print(f"\nschemathesis: seed {SEED}, {examples} examples", file=sys.stderr)
    host = {"Host": "127.0.0.1:8000"}
    schema = schemathesis.openapi.from_asgi("/openapi.json", bench.team.app, config=config, headers=host)
    found: dict[str, str] = {}
    for event in from_schema(schema).execute():
        if isinstance(event, NonFatalError | FatalError):
            found[str(event)] = ""
        for label, check in failed_checks(event):
            failure = check.failure_info.failure
            title = f"{label}: {check.name}: {failure.title}"
            found.setdefault(title, f"{failure.message}\n{check.failure_info.code_sample}")
    return [f"{title}\n{text}" for title, text in found.items()]


def failed_checks(event: Any) -> Iterator[tuple[str, Any]]:
    """Operation and check of each failure of a scenario."""
    recorder = getattr(event, "recorder", None)
    for case_id, checks in recorder.checks.items() if recorder is not None else ():
        for check in checks:
            if check.failure_info is not None:
                yield recorder.cases[case_id].value.operation.label, check


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
def test_schemathesis_finds_nothing(bench: Any, capsys: pytest.CaptureFixture[str]) -> None:
    bench.team.app.state.stopping.set()  # no worker takes the jobs: no call waits for one, and streams end at once
    try:
        stateful = {"generation": {"max-examples": EXAMPLES}}
        found = findings(bench, capsys, EXAMPLES, {"stateful": stateful, "fuzzing": {"enabled": False}})
    finally:
        bench.team.app.state.stopping.clear()
    assert not found, "\n\n".join(found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
def test_random_requests_find_nothing(idle_bench: Any, capsys: pytest.CaptureFixture[str]) -> None:
    others = {name: {"enabled": False} for name in ("examples", "coverage", "stateful")}
    found = findings(idle_bench, capsys, FUZZED, {"fuzzing": {"enabled": True}, **others})
    assert not found, "\n\n".join(found)
