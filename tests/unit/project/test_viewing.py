"""Reports in a browser: what is found, what a server on this machine answers with, and what it refuses."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cranfield import Query, TestSet, compare, evaluate
from cranfield.errors import UsageError
from cranfield.project.job import run_job
from cranfield.project.viewing.browser import can_open, open_report
from cranfield.project.viewing.find import report_names, shown_at
from cranfield.project.viewing.pages import parse_page, target_of
from cranfield.project.viewing.server import ReportServer, served
from cranfield.project.viewing.site import STRICT
from cranfield.reporting import comparison_document, save_reports

CONFIG = """\
testset: queries.yaml
measures: [RR]
systems:
  old: {run: old.trec}
  new: {run: new.trec}
"""
TESTSET = "cranfield_testset: 1\nname: t\nqueries:\n" + "".join(
    f"  - {{id: q{n}, text: a, judgments: {{d1: 1}}}}\n" for n in range(8)
)
LINKED = '<html class="report"><title>{title}</title><a href="{href}">one</a>'


def project(folder: Path) -> Path:
    """A project with two run files, whose reports lie in `cranfield-out`."""
    (folder / "queries.yaml").write_text(TESTSET)
    (folder / "cranfield.yaml").write_text(CONFIG)
    for name, first in (("old", "d2"), ("new", "d1")):
        lines = (f"q{n} Q0 {doc} {rank} {9 - rank} x" for n in range(8) for rank, doc in enumerate((first, "d1x"), 1))
        (folder / f"{name}.trec").write_text("\n".join(lines) + "\n")
    run_job(folder / "cranfield.yaml", out=folder / "cranfield-out")
    return folder / "cranfield-out"


def report(path: Path, title: str = "one", href: str = "#top") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(LINKED.format(title=title, href=href))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two test sets, a history that links to one, a file that a report links to, and what is nobody's business."""
    out = tmp_path / "out"
    report(out / "a" / "report.html", "set a", "means.csv")
    report(out / "b" / "report.html", "set b", "../a/report.html#q=q1")
    report(out / "history.html", "history", "a/report.html")
    (out / "a" / "means.csv").write_text("system,mean\n")
    (out / "a" / "results.json").write_text("{}")
    (out / "secret.html").write_text("<title>not ours</title>")
    (tmp_path / "outside.html").write_text(LINKED.format(title="outside", href="x"))
    return out


@pytest.fixture
def server(folder: Path) -> Iterator[ReportServer]:
    with served(shown_at(folder)) as running:
        yield running


def get(
    server: ReportServer, path: str, *, host: str | None = None, method: str = "GET"
) -> tuple[int, dict[str, str], bytes]:
    """The answer to a request whose path is sent as it is, without a client's corrections."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    if host != "":
        connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def inside(server: ReportServer, name: str) -> str:
    return f"/{server.site.token}/{name}"


def test_a_report_of_a_run_is_served_with_the_policy_of_its_page(tmp_path: Path) -> None:
    out = project(tmp_path)
    with served(shown_at(out)) as server:
        status, headers, body = get(server, urlsplit(server.url).path)
        assert status == 200
        assert body == (out / "report.html").read_bytes()
        own = parse_page(body).policy
        assert "sha256-" in own
        assert headers["Content-Security-Policy"] == f"{own}; frame-ancestors 'none'"
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        for name in ("results.json", "runs/old.jsonl", "runs/old.log.jsonl", "runs/", "../cranfield.yaml"):
            assert get(server, inside(server, name))[0] == 404, name


def test_several_reports_have_a_list_that_links_to_each(server: ReportServer) -> None:
    assert server.url.endswith(f"/{server.site.token}/")
    status, headers, body = get(server, urlsplit(server.url).path)
    assert status == 200
    page = parse_page(body)
    assert page.links >= {"history.html", "a/report.html", "b/report.html"}
    assert "secret.html" not in page.links
    assert b"set b" in body
    assert headers["Content-Security-Policy"].startswith(page.policy)
    for name in ("history.html", "a/report.html", "b/report.html"):
        assert get(server, inside(server, name))[0] == 200


def test_a_file_is_served_if_a_report_links_to_it(server: ReportServer) -> None:
    status, headers, body = get(server, inside(server, "a/means.csv"))
    assert (status, body) == (200, b"system,mean\n")
    assert headers["Content-Security-Policy"] == f"{STRICT}; frame-ancestors 'none'"
    assert get(server, inside(server, "a/results.json"))[0] == 404
    assert get(server, inside(server, "secret.html"))[0] == 404, "HTML that Cranfield did not write"


@pytest.mark.parametrize(
    "name",
    [
        "../outside.html",
        "..%2foutside.html",
        "%2e%2e/outside.html",
        "a/../../outside.html",
        "a/../history.html",
        "./history.html",
        "a//report.html",
        "/etc/passwd",
        "//etc/passwd",
        "%2fetc%2fpasswd",
        "..\\outside.html",
        "history.html%00.png",
        "a",
        "a/",
        "%c3%a9",
    ],
)
def test_no_other_path_leads_anywhere(server: ReportServer, name: str) -> None:
    assert get(server, inside(server, name))[0] == 404


@pytest.mark.parametrize(
    "path", ["/", "/history.html", "/wrong/history.html", "//x/y", "http://127.0.0.1/", "/%00", "*"]
)
def test_without_the_segment_that_was_printed_there_is_nothing(server: ReportServer, path: str) -> None:
    assert get(server, path)[0] == 404


def test_links_of_the_file_system_are_not_followed(folder: Path, server: ReportServer) -> None:
    (folder / "link.html").symlink_to(folder.parent / "outside.html")
    (folder / "linked").symlink_to(folder.parent)
    report(folder / "c.html", "links to links", "link.html")
    report(folder / "d.html", "links to links", "linked/outside.html")
    names = set(report_names(folder))
    assert {"c.html", "d.html"} <= names
    assert names.isdisjoint({"link.html", "linked/outside.html"})
    for name in ("link.html", "linked/outside.html"):
        status, _, body = get(server, inside(server, name))
        assert status in {403, 404}
        assert b"outside</title>" not in body


def test_a_pipe_is_not_waited_for(folder: Path, server: ReportServer) -> None:
    os.mkfifo(folder / "pipe.html")
    report(folder / "c.html", "links to a pipe", "pipe.html")
    assert get(server, inside(server, "pipe.html"))[0] == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}", ""]
)
def test_another_host_is_not_answered(server: ReportServer, host: str) -> None:
    """A name of the attacker's that leads to this machine (DNS rebinding) arrives as the Host."""
    status, _, body = get(server, inside(server, "history.html"), host=host.format(port=server.server_port))
    assert status in {400, 421}
    assert b"history" not in body


def test_localhost_is_this_machine(server: ReportServer) -> None:
    assert get(server, inside(server, "history.html"), host=f"LOCALHOST:{server.server_port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_can_be_sent(server: ReportServer, method: str) -> None:
    assert get(server, inside(server, "history.html"), method=method)[0] == 501


def test_head_has_no_body(server: ReportServer) -> None:
    status, headers, body = get(server, inside(server, "history.html"), method="HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 0


def test_it_listens_on_loopback_alone_and_ends(folder: Path) -> None:
    with served(shown_at(folder)) as server:
        assert server.server_address[0] == "127.0.0.1"
        port = server.server_port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=2)


def test_a_new_report_is_shown_without_a_restart(folder: Path, server: ReportServer) -> None:
    report(folder / "new.html", "newer")
    assert b"newer" in get(server, inside(server, "new.html"))[2]
    report(folder / "new.html", "newest")
    assert b"newest" in get(server, inside(server, "new.html"))[2]


def test_a_port_that_is_taken_is_an_error_with_a_way_out(folder: Path, server: ReportServer) -> None:
    with pytest.raises(UsageError, match=f"port {server.server_port}"), served(shown_at(folder), server.server_port):
        pass


def test_one_report_is_the_first_page(tmp_path: Path) -> None:
    report(tmp_path / "deep" / "set" / "report.html")
    assert shown_at(tmp_path).start == "deep/set/report.html"
    report(tmp_path / "report.html", "summary", "deep/set/report.html")
    assert shown_at(tmp_path).start == "report.html"
    with served(shown_at(tmp_path)) as server:
        assert get(server, f"/{server.site.token}")[1]["Location"] == f"/{server.site.token}/"


def test_a_file_is_shown_alone_and_its_link_is_followed_once_because_a_person_named_it(tmp_path: Path) -> None:
    page = tmp_path / "real" / "any.html"
    page.parent.mkdir()
    page.write_text("<title>any</title>")
    (tmp_path / "link.html").symlink_to(page)
    shown = shown_at(tmp_path / "link.html")
    assert (shown.root, shown.start) == (page.parent.resolve(), "any.html")
    with served(shown) as server:
        status, headers, _ = get(server, urlsplit(server.url).path)
        assert (status, headers["Content-Security-Policy"]) == (200, f"{STRICT}; frame-ancestors 'none'")


@pytest.mark.parametrize("where", ["missing", "empty", "text.txt", "bad.json", "other.json"])
def test_where_there_is_no_report_the_error_names_a_command(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("x")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(UsageError) as caught:
        shown_at(tmp_path / where)
    if where in {"missing", "empty"}:
        assert "cranfield run" in (caught.value.problems[0].hint or "")
    assert where in str(caught.value)


def test_results_without_a_report_get_one_from_the_saved_runs(tmp_path: Path) -> None:
    out = project(tmp_path)
    before = (out / "report.html").read_text()
    (out / "report.html").unlink()
    for target in (out / "results.json", out):
        shown = shown_at(target)
        assert (shown.root.resolve(), shown.start, shown.warnings) == (out.resolve(), "report.html", ())
    again = (out / "report.html").read_text()
    assert parse_page(again.encode()).title == parse_page(before.encode()).title
    assert parse_page(again.encode()).digests == parse_page(before.encode()).digests


def test_without_the_test_set_of_the_results_the_command_is_named(tmp_path: Path) -> None:
    out = project(tmp_path)
    (out / "report.html").unlink()
    (tmp_path / "queries.yaml").write_text(TESTSET.replace("d1: 1", "d1: 2"))
    with pytest.raises(UsageError) as caught:
        shown_at(out / "results.json")
    hint = caught.value.problems[0].hint or ""
    assert hint.startswith("cranfield compare TESTSET ")
    assert hint.endswith(f"--html {out / 'report.html'}")


def test_a_report_of_other_inputs_is_stale(tmp_path: Path) -> None:
    out = project(tmp_path)
    assert shown_at(out).warnings == ()
    old = (out / "report.html").read_bytes()
    (tmp_path / "old.trec").write_text((tmp_path / "old.trec").read_text().replace("d2", "d3"))
    run_job(tmp_path / "cranfield.yaml", out=out)
    (out / "report.html").write_bytes(old)
    (warning,) = shown_at(out).warnings
    assert "is of other inputs than results.json" in warning


def test_a_report_that_is_much_older_than_the_results_is_stale(tmp_path: Path) -> None:
    out = project(tmp_path)
    at = (out / "results.json").stat().st_mtime - 3600
    os.utime(out / "report.html", (at, at))
    (warning,) = shown_at(out / "results.json").warnings
    assert "is older than results.json" in warning


@pytest.mark.parametrize(
    ("page", "link", "target"),
    [
        ("report.html", "a/b.html", "a/b.html"),
        ("a/b/report.html", "../c.html", "a/c.html"),
        ("report.html", "..", None),
        ("a/report.html", "../../x", None),
        ("report.html", "/x", None),
    ],
)
def test_a_link_leads_to_a_place_below_the_root(page: str, link: str, target: str | None) -> None:
    assert target_of(page, link) == target


@pytest.mark.parametrize(
    ("href", "links"),
    [
        ("a.html#q=1", {"a.html"}),
        ("a%20b.html?x", {"a b.html"}),
        ("https://example.org/a.html", set()),
        ("//example.org/a.html", set()),
        ("javascript:alert(1)", set()),
        ("data:text/html,x", set()),
        ("#here", set()),
        ("http://[", set()),
    ],
)
def test_links_of_a_page_are_its_relative_ones(href: str, links: set[str]) -> None:
    assert parse_page(f'<svg><a href="{href}"></a></svg>'.encode()).links == links


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, sys.platform in {"darwin", "win32"}),
        ({"DISPLAY": ":0"}, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({"DISPLAY": ":10", "SSH_CONNECTION": "1 2 3 4"}, False),
        ({"SSH_TTY": "/dev/pts/1", "BROWSER": "w3m"}, True),
    ],
)
def test_a_browser_opens_where_the_person_is(environment: dict[str, str], *, expected: bool) -> None:
    assert can_open(environment) is expected


def browser_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of a browser; what it was asked to open is in the file."""
    program, opened = folder / "browser.sh", folder / "opened.txt"
    program.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    return opened


def test_a_report_that_was_written_is_opened_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testset = TestSet("set", (Query("q1"),), {"q1": {"d1": 1}})
    sides = [evaluate(testset, {"q1": ["d1"]}, measures=["RR"], name=name) for name in ("old", "new")]
    (tmp_path / "my out").mkdir()
    save_reports(comparison_document(compare(*sides)), tmp_path / "my out", ("report.html",))
    page = tmp_path / "my out" / "report.html"
    opened = browser_in(tmp_path, monkeypatch)
    assert open_report(page) is None
    assert opened.read_text().strip() == page.resolve().as_uri()
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    if sys.platform == "linux":
        assert open_report(page) == page.resolve().as_uri()


def test_the_command_opens_the_browser_prints_the_address_and_ends_on_ctrl_c(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = browser_in(folder.parent, monkeypatch)
    command = [sys.executable, "-m", "cranfield", "view", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        url = urlsplit(running.stdout.readline().strip())
        connection = http.client.HTTPConnection(url.netloc, timeout=10)
        connection.request("GET", url.path + "a/report.html")
        assert connection.getresponse().status == 200
        connection.close()
        assert running.stderr is not None
        assert "Ctrl-C ends it" in running.stderr.readline()
        assert opened.read_text().strip() == url.geturl()
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=10) == 0


def test_a_file_is_opened_without_a_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = browser_in(folder.parent, monkeypatch)
    page = folder / "a" / "report.html"
    command = [sys.executable, "-m", "cranfield", "view", "--file"]
    done = subprocess.run([*command, str(page)], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == page.resolve().as_uri() == opened.read_text().strip()
    several = subprocess.run([*command, str(folder)], capture_output=True, text=True, timeout=30, check=False)
    assert several.returncode == 2
    assert "the path of one" in several.stderr
