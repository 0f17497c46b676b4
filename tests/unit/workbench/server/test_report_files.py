"""The style and the script of reports, on the server."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient


@pytest.mark.parametrize(
    ("name", "kind"), [("report.css", "text/css"), ("report.js", "text/javascript"), ("base.css", "text/css")]
)
def test_the_style_of_reports_is_served_beside_that_of_the_pages(team_app: FastAPI, name: str, kind: str) -> None:
    hosts = team_app.state.options.hosts
    answer = TestClient(team_app, base_url=f"http://{next(iter(hosts))}").get(f"/static/{name}")
    assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (200, kind)
