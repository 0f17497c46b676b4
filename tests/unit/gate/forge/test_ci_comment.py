"""`cranfield ci comment` against two forges on this machine: one comment, ours, whatever stands beside it."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

MARK = "<!-- cranfield: report -->"
BOT, PERSON, OTHER_BOT = 41, 7, 42
EDIT = {"github": "PATCH", "gitlab": "PUT"}


def test_the_first_report_is_a_new_comment(forge: Any, report: Path) -> None:
    with forge.start(str(report)) as process:
        out, err = process.communicate(timeout=90)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("comment created")
    assert forge.bodies() == [f"{MARK}\n# Gate: passed\n\nnDCG@10 is 0.41, as it was.\n"]


def test_the_next_report_is_written_over_it(forge: Any, report: Path) -> None:
    forge.run(str(report))
    report.write_text("# Gate: failed\n")
    done = forge.run(str(report))
    assert (done.returncode, done.stdout.startswith("comment updated")) == (0, True)
    assert forge.bodies() == [f"{MARK}\n# Gate: failed\n"]


def test_the_same_report_is_not_written_again(forge: Any, report: Path) -> None:
    forge.run(str(report))
    forge.comments[0]["body"] = forge.comments[0]["body"].replace("\n", "\r\n").rstrip()  # as forges give it back
    forge.asked.clear()
    done = forge.run(str(report))
    assert (done.returncode, done.stdout.startswith("comment unchanged")) == (0, True)
    assert EDIT[forge.kind] not in forge.methods()


def test_ours_is_found_on_a_later_page_among_those_of_others(forge: Any, report: Path) -> None:
    quoted = f"{MARK}\ncopied by a person"
    forge.add(PERSON, quoted)
    forge.add(OTHER_BOT, quoted)
    forge.add(BOT, f"look at this:\n\n> {MARK}\n> a quote of ours, by us")
    forge.add(BOT, "another tool of ours")
    forge.add(BOT, "<!-- cranfield: other -->\nanother report")
    forge.add(PERSON, "nice")
    forge.add(BOT, f"{MARK}\nold")
    before = forge.bodies()[:-1]
    done = forge.run(str(report))
    assert (done.returncode, done.stderr) == (0, "")
    assert forge.bodies() == [*before, f"{MARK}\n# Gate: passed\n\nnDCG@10 is 0.41, as it was.\n"]


def test_a_comment_of_somebody_who_left_is_nobodys(forge: Any, report: Path) -> None:
    forge.add(PERSON, f"{MARK}\ncopied")[{"github": "user", "gitlab": "author"}[forge.kind]] = None
    forge.add(PERSON, "")["body"] = None
    assert forge.run(str(report)).returncode == 0
    assert len(forge.comments) == 3


def test_a_report_may_come_from_standard_input(github: Any, report: Path) -> None:
    with report.open() as stdin, github.start("-", stdin=stdin) as process:
        _, err = process.communicate(timeout=90)
    assert (process.returncode, err) == (0, "")
    assert github.bodies() == [f"{MARK}\n{report.read_text()}"]


def test_what_gitlab_writes_itself_is_no_comment(gitlab: Any, report: Path) -> None:
    gitlab.add(BOT, f"{MARK}\nchanged the description", system=True)
    gitlab.run(str(report))
    assert len(gitlab.comments) == 2


def test_another_marker_is_another_comment(forge: Any, report: Path) -> None:
    assert forge.run(str(report)).returncode == 0
    assert forge.run(str(report), "--marker", "docs-search").returncode == 0
    firsts = [body.partition("\n")[0] for body in forge.bodies()]
    assert firsts == [MARK, "<!-- cranfield: docs-search -->"]


@pytest.mark.parametrize("marker", ["-->", "a--b", "", "a\nb", "a-", "<b>", "x" * 101])
def test_a_marker_that_says_more_is_refused(forge: Any, report: Path, marker: str) -> None:
    done = forge.run(str(report), f"--marker={marker}")
    assert (done.returncode, forge.asked) == (2, [])
    assert "use a few plain words as the marker" in done.stderr


def test_several_of_ours_become_one_the_oldest(forge: Any, report: Path) -> None:
    oldest = forge.add(BOT, f"{MARK}\nfirst")
    forge.add(PERSON, "between")
    forge.add(BOT, f"{MARK}\nsecond")
    forge.add(BOT, f"{MARK}\nthird")
    done = forge.run(str(report))
    assert "2 others removed" in done.stdout
    assert [comment["id"] for comment in forge.comments if comment["body"].startswith(MARK)] == [oldest["id"]]
    assert "between" in forge.bodies()


def test_two_jobs_at_once_leave_one_comment(forge: Any, tmp_path: Path) -> None:
    """Both look before either has written: a barrier sees to it."""
    forge.first_lists = Barrier(2)
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(f"report of {name}\n")
    jobs = [forge.start(str(tmp_path / f"{name}.md")) for name in ("one", "two")]
    ended = [(job.communicate(timeout=90), job.returncode) for job in jobs]
    assert [code for _, code in ended] == [0, 0], ended
    assert forge.methods().count("POST") >= 2  # both did write one
    assert len(forge.comments) == 1
    assert forge.bodies()[0] in {f"{MARK}\nreport of one\n", f"{MARK}\nreport of two\n"}


def test_a_comment_taken_away_while_it_is_written_is_made_anew(forge: Any, report: Path) -> None:
    forge.add(BOT, f"{MARK}\nold")

    def vanish() -> tuple[int, dict[str, str], object]:
        forge.comments.clear()
        return 404, {}, {"message": "Not Found"}

    forge.instead.append((EDIT[forge.kind], vanish))
    done = forge.run(str(report))
    assert (done.returncode, done.stdout.startswith("comment created")) == (0, True)
    assert len(forge.comments) == 1


@pytest.mark.parametrize(
    "reply",
    [
        (429, {"Retry-After": "0"}, {"message": "slow down"}),
        (500, {}, {"message": "oh"}),
        (502, {}, b"<html>bad gateway</html>"),
        (503, {"Retry-After": "0"}, None),
        (403, {"Retry-After": "0"}, {"message": "You have exceeded a secondary rate limit"}),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, {"message": "API rate limit exceeded"}),
    ],
    ids=["429", "500", "502", "503", "secondary", "spent"],
)
def test_what_passes_is_tried_again(forge: Any, report: Path, reply: Any) -> None:
    forge.instead += [("GET", reply), ("POST", reply), ("POST", reply)]
    done = forge.run(str(report))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(forge.comments) == 1


def test_an_answer_that_was_lost_leaves_no_second_comment(forge: Any, report: Path) -> None:
    """The comment was written, and the answer says otherwise: the next try writes another, and one is taken away."""

    def written_all_the_same() -> tuple[int, dict[str, str], object]:
        forge.add(BOT, f"{MARK}\n{report.read_text()}")
        return 502, {}, None

    # GitHub's first POST asks who we are.
    forge.instead += [("POST", lambda: None)] * (forge.kind == "github") + [("POST", written_all_the_same)]
    assert forge.run(str(report)).returncode == 0
    assert len(forge.comments) == 1


def test_what_does_not_pass_is_given_up_and_said(forge: Any, report: Path) -> None:
    forge.instead += [("GET", (503, {"Retry-After": "0"}, {"message": "under repair"}))] * 5
    done = forge.run(str(report))
    assert (done.returncode, forge.comments) == (2, [])
    assert "refused GET with HTTP status 503" in done.stderr
    assert "under repair" in done.stderr
    assert forge.methods().count("GET") == 5


def test_a_forge_that_asks_to_wait_for_an_hour_is_not_waited_for(forge: Any, report: Path) -> None:
    forge.instead.append(("GET", (429, {"Retry-After": "3600"}, {"message": "slow down"})))
    done = forge.run(str(report))
    assert done.returncode == 2
    assert forge.methods().count("GET") == 1
    assert "more than a minute" in done.stderr


FORBIDDEN = {"message": "Resource not accessible by integration"}


def test_a_token_that_only_reads_is_told_what_it_lacks(forge: Any, report: Path) -> None:
    forge.instead += [("POST", lambda: None)] * (forge.kind == "github") + [("POST", (403, {}, FORBIDDEN))]
    done = forge.run(str(report))
    assert (done.returncode, forge.comments) == (2, [])
    assert "refused POST with HTTP status 403" in done.stderr
    expected = {"github": "`permissions: pull-requests: write`", "gitlab": "the scope `api`"}[forge.kind]
    assert expected in done.stderr
    assert "fork" in done.stderr


def test_a_wrong_token_is_said_and_not_shown(forge: Any, report: Path) -> None:
    done = forge.run(str(report), **{f"{forge.kind.upper()}_TOKEN": "s3cret-and-wrong"})
    assert done.returncode == 2
    assert "HTTP status 401" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout


def test_a_next_page_on_another_server_is_not_asked(forge: Any, report: Path, started: Any) -> None:
    elsewhere = started(forge.kind)
    link = {"Link": f'<{elsewhere.url}/x?page=2>; rel="next"'}
    user = [("GET", lambda: None)] * (forge.kind == "gitlab")
    forge.instead += [*user, ("GET", (200, link, []))]
    done = forge.run(str(report), "--url", forge.url.replace("127.0.0.1", "localhost"))
    assert (done.returncode, elsewhere.asked) == (2, [])
    assert "another server" in done.stderr


@pytest.mark.parametrize(
    ("kind", "changes", "expected"),
    [
        ("github", {"GITHUB_TOKEN": None}, "GITHUB_TOKEN in the environment"),
        ("gitlab", {"GITLAB_TOKEN": None}, "GITLAB_TOKEN in the environment"),
        ("gitlab", {"GITLAB_TOKEN": None, "CI_JOB_TOKEN": "j"}, "CI_JOB_TOKEN cannot write comments"),
        ("github", {"GITHUB_REF": "refs/heads/main"}, "run the job `on: pull_request`"),
        ("gitlab", {"CI_MERGE_REQUEST_IID": None}, "merge_request_event"),
        ("github", {"GITHUB_REPOSITORY": None}, "--repo OWNER/NAME"),
        ("github", {"GITHUB_REPOSITORY": "../x"}, "not a repository name"),
        ("gitlab", {"CI_PROJECT_ID": "a b"}, "not a project"),
        ("github", {"GITHUB_ACTIONS": None, "GITHUB_TOKEN": None}, "no forge given"),
        ("github", {"GITHUB_API_URL": "http://127.0.0.1:1"}, "cannot be reached (tried 5 times)"),
        ("github", {"GITHUB_TOKEN": "to\u2026ken"}, "the token for GitHub is invalid"),
        ("gitlab", {"GITLAB_TOKEN": "to\nken"}, "the token for GitLab is invalid"),
        ("github", {"GITHUB_API_URL": "nowhere"}, "this is not an address of GitHub"),
        ("github", {"GITHUB_API_URL": "file:///x"}, "this is not an address of GitHub"),
        ("github", {"GITHUB_API_URL": "http://127.0.0.1:65536"}, "this is not an address of GitHub"),
        ("github", {"GITHUB_API_URL": "http://127.0.0.1:99999999999999999999"}, "this is not an address of GitHub"),
        ("github", {"GITHUB_API_URL": "http://127.0.0.1:-1"}, "this is not an address of GitHub"),
        ("gitlab", {"CI_API_V4_URL": "http://"}, "this is not an address of GitLab"),
    ],
)
def test_what_is_missing_is_said_at_once(
    started: Any, report: Path, kind: str, changes: dict[str, str | None], expected: str
) -> None:
    forge = started(kind)
    done = forge.run(str(report), **changes)
    assert (done.returncode, forge.asked) == (2, [])
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert "ken'" not in done.stderr


@pytest.mark.parametrize(
    ("event", "status"),
    [
        ({"pull_request": {"number": 12}}, 0),
        ({"issue": {"number": 12, "pull_request": {}}}, 0),
        ({"workflow_run": {"pull_requests": [{"number": 12}]}}, 0),
        ({"issue": {"number": 12}}, 2),
        ({"workflow_run": {"pull_requests": []}}, 2),
        ({"pull_request": {"number": True}}, 2),
        ([12], 2),
    ],
)
def test_the_number_is_in_what_started_the_job(
    github: Any, report: Path, tmp_path: Path, event: object, status: int
) -> None:
    """As for `pull_request_target` and the like, whose ref is that of the branch."""
    (tmp_path / "event.json").write_text(json.dumps(event))
    changes = {"GITHUB_REF": "refs/heads/main", "GITHUB_EVENT_PATH": str(tmp_path / "event.json")}
    assert github.run(str(report), **changes).returncode == status


def test_a_pipeline_of_a_fork_comments_where_the_request_is(gitlab: Any, report: Path) -> None:
    done = gitlab.run(str(report), CI_PROJECT_ID="99", CI_MERGE_REQUEST_PROJECT_ID="34")
    assert (done.returncode, len(gitlab.comments)) == (0, 1)


def test_everything_but_the_token_can_be_said_in_the_call(forge: Any, report: Path) -> None:
    nothing = dict.fromkeys(forge.environment()) | {f"{forge.kind.upper()}_TOKEN": "token-of-the-bot"}
    repo = {"github": "owner/name", "gitlab": "group/name"}[forge.kind]
    options = ["--forge", forge.kind, "--repo", repo, "--number", "12", "--url", forge.url + "/"]
    done = forge.run(str(report), *options, **nothing)
    assert (done.returncode, done.stderr, len(forge.comments)) == (0, "", 1)


def test_a_report_too_long_for_the_forge_is_cut_and_says_so(github: Any, report: Path) -> None:
    folded = "<details>\n<summary>all queries</summary>\n\n" + "| a | b |\n" * 8_000 + "</details>\n"
    report.write_text(f"# Gate: failed\n\nRecall fell.\n\n{folded}\nThe end.\n")
    done = github.run(str(report))
    assert (done.returncode, done.stderr) == (0, "")
    (body,) = github.bodies()
    assert "Recall fell." in body
    assert "The end." in body
    assert "1 of its 1 collapsed sections are omitted. The full report is in `report.md`" in body


@pytest.mark.parametrize(
    ("content", "expected"), [(b"", "the report is empty"), (b"\xff", "not UTF-8"), (None, "no such file")]
)
def test_a_report_that_is_none_is_refused(forge: Any, report: Path, content: bytes | None, expected: str) -> None:
    report.unlink()
    if content is not None:
        report.write_bytes(content)
    done = forge.run(str(report))
    assert (done.returncode, forge.asked) == (2, [])
    assert expected in done.stderr


def test_a_server_that_is_no_forge_is_told(forge: Any, report: Path) -> None:
    method = {"github": "POST", "gitlab": "GET"}[forge.kind]
    forge.instead.append((method, (200, {}, b"<html>hello</html>")))
    done = forge.run(str(report))
    assert done.returncode == 2
    assert "did not answer in JSON" in done.stderr


@pytest.mark.parametrize("said", [{"data": None}, {"data": {"viewer": None}}, [], {}, "x", {"id": None}])
def test_a_forge_that_does_not_say_whose_token_it_is_is_written_nothing(forge: Any, report: Path, said: object) -> None:
    method = {"github": "POST", "gitlab": "GET"}[forge.kind]
    forge.instead.append((method, (200, {}, said)))
    done = forge.run(str(report))
    assert (done.returncode, forge.comments) == (2, [])
    assert "did not return the owner of the token" in done.stderr


def test_the_token_is_not_posted_with_a_report_that_holds_it(github: Any, report: Path) -> None:
    report.write_text("# Gate: passed\n\nd1 token-of-the-bot\n")
    assert github.run(str(report)).returncode == 0
    assert "d1 (the token)" in github.bodies()[0]
