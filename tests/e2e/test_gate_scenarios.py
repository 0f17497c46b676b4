"""What authors of pull requests, systems under test and bad days do to a gate: a table of what is done, the exit code, and why.

A row changes a project in which all is well: 20 queries, of which odd ones are easy and even ones hard, a run file with the
relevant document first for each, an accepted baseline; all of it is on `main`, and the branch `change` is checked out.
After each row a gate that ended with 0, 1 or 4 has written a complete report that says so, and stderr shows no traceback.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

QUERIES = [f"{number:02}" for number in range(1, 21)]
RULES = ("floor: {measure: P@1, at_least: 0.80}", "drop: {measure: RR, at_most: 5 %}", "failures: {at_most: 2}")
CONFIG = """\
testset: queries.yaml
measures: [RR, P@1]
gate:
  rules:
RULES
systems:
  new: {run: new.run}
"""
STATUS = {0: "passed", 1: "failed", 3: "invalid", 4: "inconclusive"}
IDS = "{regex: '(?:doc|oth)-\\d+'}"
RIGHT = 'echo "doc-$1 oth-$1"\n'
SECRET = "hunter2-of-the-job"


def run_lines(right: int = 20, tag: str = "new") -> list[str]:
    """Two results a query: the relevant document first for so many queries, second for the others."""
    lines = []
    for place, query in enumerate(QUERIES):
        pair = (f"doc-{query}", f"oth-{query}")
        lines += [
            f"q{query} Q0 {doc} {rank} {9 - rank} {tag}"
            for rank, doc in enumerate(pair[:: 1 if place < right else -1], 1)
        ]
    return lines


def twenty_queries(queries: list[str] = QUERIES, grade: int = 1) -> str:
    lines = ["cranfield_testset: 1", "name: twenty", "queries:"]
    for query in queries:
        kind = "easy" if int(query) % 2 else "hard"
        lines.append(
            f"  - {{id: q{query}, text: '{query}', strata: {{kind: {kind}}}, judgments: {{doc-{query}: {grade}}}}}"
        )
    return "\n".join(lines) + "\n"


class Project:
    """A folder, what a row does to it, and the gate that is called at the end."""

    def __init__(self, folder: Path, call: Callable[..., Any], serve: Callable[..., Any]) -> None:
        self.folder, self.call, self.serve = folder, call, serve
        self.arguments: list[str] = ["gate"]
        self.script: str | None = None
        self.shown: list[str] = []
        self.hidden: list[str] = []
        self.report: bool | None = None
        self.kept: dict[str, bytes] = {}

    def write(self, name: str, content: str | bytes) -> Project:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return self

    def edit(self, old: str, new: str, name: str = "cranfield.yaml") -> Project:
        text = (self.folder / name).read_text()
        assert old in text, f"{name} has no {old!r}"
        return self.write(name, text.replace(old, new))

    def top(self, line: str) -> Project:
        """A key at the top of the config."""
        return self.edit("measures: [RR, P@1]", f"measures: [RR, P@1]\n{line}")

    def rules(self, *rules: str) -> Project:
        head, _, rest = (self.folder / "cranfield.yaml").read_text().partition("  rules:\n")
        systems = rest[rest.index("systems:") :]
        return self.write(
            "cranfield.yaml", f"{head}  rules:\n" + "".join(f"    - {rule}\n" for rule in rules) + systems
        )

    def right(self, n: int, name: str = "new.run") -> Project:
        """So many queries have the relevant document first."""
        return self.write(name, "\n".join(run_lines(n)) + "\n")

    def without(self, n: int) -> Project:
        """So many queries are not in the run."""
        return self.write("new.run", "\n".join(run_lines()[2 * n :]) + "\n")

    def system(self, settings: str, also: str = "") -> Project:
        head = (self.folder / "cranfield.yaml").read_text().partition("  new: ")[0]
        return self.write("cranfield.yaml", f"{head}  new: {{{settings}}}\n{also}")

    def program(self, body: str, extract: str = IDS, settings: str = "") -> Project:
        """A shell script with the text of the query as `$1`."""
        self.write("answer.sh", body)
        return self.system(f"command: [sh, answer.sh, '{{query}}'], extract: {extract}{settings}")

    def function(self, body: str, settings: str = ", timeout_s: 2") -> Project:
        """The body of `find(query, k)`, after what imports it needs; the right answer is `right(query)`."""
        name = f"search_{self.folder.name}"
        head = "import os, signal, sys, threading, time\n\ndef right(query):\n    return [f'doc-{query}', f'oth-{query}']\n\n"
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        self.write(f"{name}.py", f"{head}def find(query, k):\n{lines}")
        return self.system(f"python: '{name}:find'{settings}")

    def http(self, raw: Callable[[str], bytes], settings: str = "") -> Project:
        """A server that sends these bytes, after HTTP's first line, for the text of a query."""
        url = self.serve(lambda received: raw(received.path.rpartition("=")[2]))
        return self.system(
            f"http: {{url: '{url}/?q={{query}}', method: GET}}, extract: {{json: hits}}, retries: 0, timeout_s: 5{settings}"
        )

    def accept(self, *options: str) -> Project:
        done = self.call("baseline", "accept", *options)
        assert done.returncode == 0, done.stderr
        return self

    def git(self, *arguments: str) -> Project:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)
        return self

    def merge(self) -> Project:
        """What there is now is on main."""
        return self.git("add", "-A").git("commit", "-qm", "main").git("update-ref", "refs/heads/main", "HEAD")

    def gate(self, *arguments: str) -> Project:
        self.arguments += arguments
        return self

    def ref(self, *arguments: str) -> Project:
        """A pull request: the rules and the baseline are those of main."""
        return self.gate("--baseline-ref", "main", *arguments)

    def bad(self) -> Project:
        """The pull request makes search worse: P@1 is .5, and RR .75."""
        return self.right(10).ref()

    def shell(self, script: str) -> Project:
        """Call it by a shell in a process of its own; `GATE` stands for the arguments."""
        self.script = script
        return self

    def process(self) -> Project:
        """Call it in a process of its own, which may die."""
        return self.shell("cranfield GATE")

    def real(self) -> Project:
        """A process that Python started, with its streams as they are."""
        assert self.script is not None
        self.script = self.script.replace("cranfield GATE", "python -m cranfield GATE")
        return self

    def keeps(self, name: str) -> Project:
        """The content of a file stays as it is now."""
        self.kept[name] = (self.folder / name).read_bytes()
        return self

    def shows(self, *texts: str) -> Project:
        self.shown += texts
        return self

    def hides(self, *texts: str) -> Project:
        self.hidden += texts
        return self

    def no_report(self) -> Project:
        """The report goes elsewhere."""
        self.report = False
        return self

    def run(self) -> subprocess.CompletedProcess[str]:
        if self.script is None:
            return self.call(*self.arguments)
        script = self.script.replace("GATE", shlex.join(self.arguments))
        return subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=self.folder,
        )


def signalled(name: str) -> str:
    """The gate in a process group of its own, as in a terminal, with a signal once its system has been asked."""
    wait = "until [ -e asked ]; do sleep .05; done"
    return f"set -m; python -m cranfield GATE & {wait}; kill -{name} $!; wait $!"


class Row(NamedTuple):
    """A scenario."""

    name: str
    do: Callable[[Project], object]
    exit: int
    why: str


def hard_wrong() -> str:
    """Easy queries are right, hard ones wrong."""
    right, wrong = run_lines(20), run_lines(0)
    return (
        "\n".join(line for place in range(0, 40, 2) for line in (wrong if place % 4 else right)[place : place + 2])
        + "\n"
    )


FIELDS = 'echo "doc-$1 oth-$1 mode=%s"\n'
FIELD = "{regex: '(?:doc|oth)-\\d+', fields: {mode: 'mode=(\\w+)'}}"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(9 * ['*' + old])}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


FLOOR = "floor: {measure: P@1, at_least: 0.80}"
ANY = "floor: {measure: P@1, at_least: 0}"
SIGNIFICANT = "drop: {measure: RR, at_most: %s, significant: true}"

RULE_ROWS = [
    Row("nothing changed", lambda p: p, 0, "every rule holds"),
    Row("a floor is met exactly", lambda p: p.rules(FLOOR).right(16), 0, "a mean of .80 is at least 0.80"),
    Row("a floor is missed by a query", lambda p: p.rules(FLOOR).right(15), 1, ".75 is under the floor"),
    Row(
        "above excludes the bound",
        lambda p: p.rules("floor: {measure: P@1, above: 0.80}").right(16),
        1,
        ".80 is not above .80",
    ),
    Row(
        "a mean hides a stratum",
        lambda p: p.rules("floor: {measure: P@1, by: kind, above: 0}").write("new.run", hard_wrong()),
        1,
        "all hard queries are wrong",
    ),
    Row(
        "each stratum has a hit",
        lambda p: p.rules("floor: {measure: P@1, by: kind, above: 0}").right(2),
        0,
        "one easy, one hard query is right",
    ),
    Row(
        "every easy query is right",
        lambda p: p.rules("floor: {measure: P@1, where: {kind: easy}, every_query: 1}").write("new.run", hard_wrong()),
        0,
        "only hard ones are wrong",
    ),
    Row(
        "one easy query is wrong",
        lambda p: p.rules("floor: {measure: P@1, where: {kind: easy}, every_query: 1}").right(18),
        1,
        "q19 is easy, and wrong",
    ),
    Row(
        "a stratum that is not there",
        lambda p: p.rules("floor: {measure: P@1, where: {kind: odd}, at_least: 0}"),
        2,
        "an error of the rule",
    ),
    Row(
        "a measure that is not there",
        lambda p: p.rules("floor: {measure: NDCG2@10, at_least: 0}"),
        2,
        "an error of the rule",
    ),
    Row(
        "a drop of exactly 5 %",
        lambda p: p.rules("drop: {measure: RR, at_most: 5 %}").right(18),
        0,
        "RR is .95, 5 % under 1",
    ),
    Row("a drop of 7.5 %", lambda p: p.rules("drop: {measure: RR, at_most: 5 %}").right(17), 1, "RR is .925"),
    Row(
        "a drop in units at its bound",
        lambda p: p.rules("drop: {measure: RR, at_most: 0.05}").right(18),
        0,
        "1 - .95 is at most .05",
    ),
    Row(
        "a drop in a stratum",
        lambda p: p.rules("drop: {measure: RR, at_most: 30 %, by: kind}").write("new.run", hard_wrong()),
        1,
        "hard falls by half, the mean by a quarter",
    ),
    Row(
        "a significant drop beyond the margin",
        lambda p: p.rules(SIGNIFICANT % 0.05).right(2),
        1,
        "the whole interval is beyond .05",
    ),
    Row(
        "an interval across the margin",
        lambda p: p.rules(SIGNIFICANT % 0.05).right(17),
        4,
        "the mean dropped by .075; the interval has .05 in it",
    ),
    Row("an interval within the margin", lambda p: p.rules(SIGNIFICANT % 0.5).right(19), 0, "the drop is at most .5"),
    Row("significantly worse", lambda p: p.rules("no_worse: {measure: RR}").right(5), 1, "15 of 20 queries lost"),
    Row("no loss", lambda p: p.rules("no_worse: {measure: RR}"), 0, "no query changed"),
    Row(
        "a class is worse, and the mean with it",
        lambda p: p.rules("no_worse: {measure: RR, by: kind}").write("new.run", hard_wrong()),
        1,
        "all ten hard queries lost",
    ),
    Row(
        "too few queries to show a loss",
        lambda p: (
            p.rules("no_worse: {measure: RR}").write("queries.yaml", twenty_queries(QUERIES[:4])).accept().right(2)
        ),
        4,
        "with four queries no p-value is under .05",
    ),
    Row(
        "a query of the ratchet got worse",
        lambda p: p.rules("ratchet: {measure: RR, queries: [q20]}").right(19),
        1,
        "q20 fell to .5",
    ),
    Row(
        "another query got worse",
        lambda p: p.rules("ratchet: {measure: RR, queries: [q01]}").right(19),
        0,
        "q01 is as before",
    ),
    Row(
        "a stratum of the ratchet got worse",
        lambda p: p.rules("ratchet: {measure: RR, where: {kind: hard}}").right(19),
        1,
        "q20 is hard",
    ),
    Row(
        "a query of the ratchet that is not there",
        lambda p: p.rules("ratchet: {measure: RR, queries: [q99]}"),
        2,
        "an error of the rule",
    ),
    Row("half of the results are judged", lambda p: p.rules("judged: {k: 2, at_least: 50 %}"), 0, "one of two"),
    Row("more must be judged", lambda p: p.rules("judged: {k: 2, at_least: 60 %}"), 1, "50 % are"),
    Row(
        "two queries without an answer, two allowed",
        lambda p: p.rules("failures: {at_most: 2}").without(2),
        0,
        "2 are at most 2",
    ),
    Row(
        "two queries without an answer, one allowed",
        lambda p: p.rules("failures: {at_most: 1}").without(2),
        1,
        "2 are more than 1",
    ),
    Row("a share of failures", lambda p: p.rules("failures: {at_most: 4 %}").without(1), 1, "1 of 20 is 5 %"),
    Row(
        "a query that fails counts as 0",
        lambda p: p.rules("floor: {measure: P@1, at_least: 0.96}").without(1),
        1,
        "P@1 is .95",
    ),
    Row(
        "slower than allowed",
        lambda p: p.rules("latency: {p95_ms: 1}").function("time.sleep(0.005)\nreturn right(query)"),
        1,
        "each call takes 5 ms",
    ),
    Row(
        "fast enough",
        lambda p: p.rules("latency: {p95_ms: 5000}").function("return right(query)"),
        0,
        "a call takes less",
    ),
    Row(
        "answers of another mode",
        lambda p: p.rules("every_answer: mode = full").program(FIELDS % "lexical", FIELD),
        1,
        "every answer is lexical",
    ),
    Row(
        "answers of the mode",
        lambda p: p.rules("every_answer: mode = full").program(FIELDS % "full", FIELD),
        0,
        "every answer is full",
    ),
    Row("an unknown kind of rule", lambda p: p.rules("ceiling: {measure: RR}"), 2, "an error of the config"),
    Row(
        "no rules",
        lambda p: (
            p.edit("    - failures: {at_most: 2}\n", "")
            .edit(f"    - {FLOOR}\n", "")
            .edit("    - drop: {measure: RR, at_most: 5 %}\n", "    []\n")
        ),
        2,
        "a gate without a rule would pass all",
    ),
    Row(
        "rules of a test set that is not there",
        lambda p: p.rules(f"{{testsets: [code], {FLOOR}}}"),
        2,
        "an error of the rule",
    ),
    Row("no gate", lambda p: p.edit("gate:\n  rules:", "grid:\n  rules:"), 2, "nothing to check"),
    Row("no YAML", lambda p: p.write("cranfield.yaml", "testset: [\n"), 2, "a syntax error"),
    Row("a key twice", lambda p: p.top("k: 10\nk: 1"), 2, "one of them would be ignored"),
    Row("an empty config", lambda p: p.write("cranfield.yaml", ""), 2, "nothing to check"),
    Row("a config of bytes", lambda p: p.write("cranfield.yaml", bytes(range(256))), 2, "not UTF-8"),
    Row(
        "aliases that grow without bound",
        lambda p: p.write("cranfield.yaml", BOMB),
        2,
        "aliases are bounded, or are an error",
    ),
    Row(
        "a config nested ten thousand deep",
        lambda p: p.write("cranfield.yaml", "[" * 10_000),
        2,
        "no recursion of ours is unbounded",
    ),
]

LIMIT_ROWS = [
    Row(
        "three of twenty without an answer",
        lambda p: p.rules(ANY).without(3),
        3,
        "15 % are over limits.max_failed_share",
    ),
    Row(
        "the same, where a rule allows it",
        lambda p: p.rules(ANY, "failures: {at_most: 3}").without(3),
        0,
        "the rule replaces the limit",
    ),
    Row(
        "scores that do not count, and a broken rule",
        lambda p: p.rules(FLOOR).write("new.run", "\n".join(run_lines(5)[6:])),
        3,
        "3 takes precedence over 1",
    ),
    Row(
        "a broken rule, and an inconclusive one",
        lambda p: p.rules(FLOOR, SIGNIFICANT % 0.3).right(8),
        1,
        "1 takes precedence over 4",
    ),
    Row("too few judged results", lambda p: p.rules(ANY).top("limits: {min_judged_share: 0.9}"), 3, "half are judged"),
    Row(
        "no result at all",
        lambda p: p.rules(ANY).write("new.run", ""),
        3,
        "a check before the first query: an empty file is no run",
    ),
    Row(
        "nearly every list is empty",
        lambda p: p.rules(ANY).program("echo", settings=", empty: '^$'"),
        3,
        "an evidence check: void",
    ),
    Row("one list for every query", lambda p: p.rules(ANY).program("echo doc-01 doc-02"), 3, "an evidence check: void"),
    Row("ids of another form", lambda p: p.rules(ANY).edit("doc-", "x:/DOC_", "new.run"), 3, "an evidence check: void"),
    Row(
        "ids of another form, where the check is off",
        lambda p: p.rules(ANY).top("evidence: {id-form: off, nothing-matched: off}").edit("doc-", "x:/DOC_", "new.run"),
        0,
        "the config turned the checks off, and says so in a caveat",
    ),
    Row(
        "a pilot",
        lambda p: p.rules(ANY).gate("--from", "cranfield-out") if p.call("run", "--pilot") else None,
        2,
        "a pilot passes no gate",
    ),
]

BASELINE_ROWS = [
    Row("no baseline", lambda p: (p.folder / "cranfield-baseline.json").unlink(), 2, "a rule compares with it"),
    Row(
        "no baseline, and no rule that compares",
        lambda p: (p.rules(FLOOR).folder / "cranfield-baseline.json").unlink(),
        0,
        "it is not needed",
    ),
    Row(
        "a value of the baseline is edited",
        lambda p: p.edit('"RR": 1.0}', '"RR": 0.5}', BASELINE),
        2,
        "its digest differs",
    ),
    Row(
        "a key is added to the baseline",
        lambda p: p.edit('"digest"', '"accepted_by": "me", "digest"', BASELINE),
        2,
        "an unknown key",
    ),
    Row(
        "the baseline is cut short", lambda p: p.write(BASELINE, (p.folder / BASELINE).read_bytes()[:900]), 2, "no JSON"
    ),
    Row("the baseline is empty", lambda p: p.write(BASELINE, ""), 2, "no JSON"),
    Row("the baseline is not UTF-8", lambda p: p.write(BASELINE, b"\xff\xfe{}"), 2, "no JSON"),
    Row(
        "the baseline is a folder",
        lambda p: [(p.folder / BASELINE).unlink(), (p.folder / BASELINE).mkdir()],
        2,
        "no file",
    ),
    Row(
        "the baseline has a number as large as JSON can",
        lambda p: p.edit('"k": 10', '"k": 1e999', BASELINE),
        2,
        "no depth",
    ),
    Row(
        "the baseline is nested ten thousand deep",
        lambda p: p.write(BASELINE, "[" * 10_000),
        2,
        "no JSON that can be read",
    ),
    Row("another k", lambda p: p.top("k: 5"), 2, "the baseline has a different k"),
    Row("another convention", lambda p: p.top("convention: ranx"), 2, "the baseline has a different convention"),
    Row(
        "a measure that the baseline has not",
        lambda p: p.rules("drop: {measure: nDCG@10, at_most: 0}"),
        2,
        "accept it with the measure first",
    ),
    Row(
        "a query is removed",
        lambda p: p.write("queries.yaml", twenty_queries(QUERIES[:-1])),
        2,
        "the baseline has a different test set",
    ),
    Row(
        "a grade is changed",
        lambda p: p.write("queries.yaml", twenty_queries(grade=2)),
        2,
        "the baseline has a different test set",
    ),
    Row(
        "the text of a query is changed",
        lambda p: p.edit("text: '01'", "text: 'one'", "queries.yaml"),
        2,
        "the baseline has a different test set",
    ),
    Row(
        "a second relevant document",
        lambda p: p.edit("{doc-20: 1}", "{doc-20: 1, oth-20: 1}", "queries.yaml"),
        2,
        "the baseline has a different test set",
    ),
    Row(
        "a query is added",
        lambda p: (
            p.edit("name: twenty", "name: twenty", "queries.yaml")
            .write("queries.yaml", twenty_queries() + MORE)
            .write("new.run", "\n".join([*run_lines(), "q21 Q0 doc-21 1 1 new\n"]))
        ),
        0,
        "the others are compared",
    ),
    Row(
        "a query is added, and fails",
        lambda p: (
            p.rules("floor: {measure: P@1, every_query: 1}")
            .write("queries.yaml", twenty_queries() + MORE)
            .write("new.run", "\n".join([*run_lines(), "q21 Q0 oth-21 1 1 new\n"]))
        ),
        1,
        "it counts",
    ),
    Row("a test set that cannot be read", lambda p: p.write("queries.yaml", "queries: 7\n"), 2, "no test set"),
    Row(
        "an id twice in the test set",
        lambda p: p.write("queries.yaml", twenty_queries([*QUERIES, "20"])),
        2,
        "no test set",
    ),
    Row(
        "the test set is a broken link",
        lambda p: [(p.folder / "queries.yaml").unlink(), (p.folder / "queries.yaml").symlink_to("none")],
        2,
        "no such file",
    ),
    Row(
        "the test set links to itself",
        lambda p: [(p.folder / "queries.yaml").unlink(), (p.folder / "queries.yaml").symlink_to("queries.yaml")],
        2,
        "no such file",
    ),
]
BASELINE = "cranfield-baseline.json"
MORE = "  - {id: q21, text: '21', strata: {kind: easy}, judgments: {doc-21: 1}}\n"


def loosened(key: str, do: Callable[[Project], object], why: str) -> Row:
    """The pull request makes search worse and loosens a key: main decides."""
    return Row(f"worse, and {key}", lambda p: do(p.bad()), 1, why)


PULL_REQUEST_ROWS = [
    Row("a pull request that changes nothing", lambda p: p.ref(), 0, "every rule of main holds"),
    Row(
        "a pull request that makes search better",
        lambda p: p.right(18).accept().merge().right(20).ref(),
        0,
        "every rule of main holds",
    ),
    Row("a pull request that makes search worse", lambda p: p.bad(), 1, "two rules of main are broken"),
    loosened("another bound", lambda p: p.edit("0.80", "0.10").edit("5 %", "90 %"), "the rules of main count"),
    loosened("other rules", lambda p: p.rules(ANY), "the rules of main count"),
    loosened(
        "no rule on drops", lambda p: p.edit("    - drop: {measure: RR, at_most: 5 %}\n", ""), "the rules of main count"
    ),
    loosened("no gate", lambda p: p.edit("gate:\n  rules:\n", "").edit("    - ", "# "), "the gate of main counts"),
    loosened("its own baseline", lambda p: p.call("baseline", "accept"), "the baseline of main counts"),
    loosened("no baseline file", lambda p: (p.folder / BASELINE).unlink(), "the baseline of main counts"),
    loosened(
        "another path of the baseline",
        lambda p: [
            p.call("baseline", "accept"),
            p.edit("gate:", "gate:\n  baseline: lax.json"),
            shutil.copy(p.folder / BASELINE, p.folder / "lax.json"),
        ],
        "the path of main counts",
    ),
    loosened(
        "another system",
        lambda p: (
            p.edit("gate:", "gate:\n  system: old")
            .edit("systems:", "baseline: new\ncandidate: old\nsystems:\n  old: {run: old.run}")
            .right(20, "old.run")
        ),
        "the system of main is gated",
    ),
    loosened("k: 1", lambda p: p.top("k: 1"), "the k of main counts"),
    loosened("k: 200", lambda p: p.top("k: 200"), "the k of main counts"),
    loosened(
        "other measures", lambda p: p.edit("measures: [RR, P@1]", "measures: [R@10]"), "the measures of main count"
    ),
    loosened("another primary measure", lambda p: p.top("primary: P@1"), "it decides nothing here"),
    loosened("another convention", lambda p: p.top("convention: ranx"), "the convention of main counts"),
    loosened("alpha: 0.999", lambda p: p.top("alpha: 0.999"), "alpha of main counts"),
    loosened("two draws", lambda p: p.top("draws: 2"), "draws decide no plain rule"),
    loosened("another test", lambda p: p.top("test: sign"), "the test of main counts"),
    loosened("one verdict for all", lambda p: p.top("verdict: pooled"), "the verdict of main counts"),
    loosened("other classes", lambda p: p.top("strata: kind"), "the classes of main count"),
    loosened("a margin", lambda p: p.top("margin: 0.9"), "a margin decides no rule"),
    loosened("a warm-up", lambda p: p.top("collect: {warm_up: 10}"), "the collection of main counts"),
    loosened(
        "slow calls without a timing", lambda p: p.top("latency: {skip_first: 999}"), "the latency rule of main counts"
    ),
    loosened("a hundred repeats", lambda p: p.top("collect: {repeats: 3}"), "the collection of main counts"),
    loosened("kept answers", lambda p: p.top("collect: {cache_h: 1000}"), "a gate asks"),
    loosened("only the held-out part", lambda p: p.top("options: {part: held-out}"), "the options of main count"),
    loosened("a pool of depth 1", lambda p: p.top("options: {depth: 1}"), "the options of main count"),
    loosened("intact patterns", lambda p: p.top("options: {intact: true}"), "the options of main count"),
    loosened("a confusion matrix", lambda p: p.top("confusion: {kind: kind}"), "it decides no rule"),
    Row(
        "failures, and no limit",
        lambda p: p.rules(FLOOR).merge().top("limits: {max_failed_share: 1}").without(4).ref(),
        3,
        "the limits of main count",
    ),
    Row(
        "unjudged results, and no limit",
        lambda p: p.rules(ANY).top("limits: {min_judged_share: 0.9}").merge().edit("0.9", "0.0").ref(),
        3,
        "the limits of main count",
    ),
    Row(
        "void scores, and no evidence checks",
        lambda p: (
            p.rules(ANY)
            .merge()
            .program("echo doc-01 doc-02")
            .top("evidence: {few-ids: off, same-list: off, repeated-list: off}")
            .ref()
        ),
        3,
        "the checks of main count",
    ),
    Row(
        "a hard query is left out",
        lambda p: p.bad().write("queries.yaml", twenty_queries(QUERIES[:10])),
        2,
        "the baseline has a different test set",
    ),
    Row(
        "hard judgments are easier",
        lambda p: p.bad().write("queries.yaml", twenty_queries().replace("}}", ", x: 1}}")),
        2,
        "the baseline has a different test set",
    ),
    Row(
        "another test set",
        lambda p: [p.bad().edit("queries.yaml", "mine.yaml"), p.write("mine.yaml", twenty_queries(QUERIES[:10]))],
        2,
        "the baseline has a different test set",
    ),
    Row(
        "the system is gone",
        lambda p: p.edit("  new: {run: new.run}", "  other: {run: new.run}").ref(),
        2,
        "main gates the system new",
    ),
    Row("the config is gone", lambda p: [(p.ref().folder / "cranfield.yaml").unlink()], 2, "no config"),
    Row("a ref that is not there", lambda p: p.gate("--baseline-ref", "origin/none"), 2, "it was not fetched"),
    Row("a ref that is an option of git", lambda p: p.gate("--baseline-ref", "--output=x"), 2, "no ref"),
    Row("a ref with a path", lambda p: p.gate("--baseline-ref", "main:queries.yaml"), 2, "no commit"),
    Row(
        "a ref without a gate",
        lambda p: [
            p.edit("gate:\n  rules:", "x:\n  rules:"),
            p.merge().git("checkout", "-q", "HEAD~1", "--", ".").ref(),
        ],
        2,
        "nothing to check there",
    ),
    Row(
        "a ref without a baseline",
        lambda p: [(p.folder / BASELINE).unlink(), p.merge().git("checkout", "-q", "HEAD~1", "--", ".").ref()],
        2,
        "nothing to compare with",
    ),
    Row("no repository", lambda p: [shutil.rmtree(p.folder / ".git"), p.ref()], 2, "a ref needs one"),
]


WRONG = 'echo "oth-$1 doc-$1"\n'
DIES = 'if [ "$1" = 09 ]; then kill -9 $PPID; fi\n'


def interrupted(p: Project, *command: str) -> Project:
    """A system that is right, and a command that is killed at the ninth query; then the system is wrong."""
    p.rules(FLOOR).merge().program(". ./helper.sh\n").write("helper.sh", DIES + RIGHT)
    words = shlex.join(command or ("gate",))
    done = subprocess.run(["bash", "-c", f"cranfield {words}"], capture_output=True, cwd=p.folder, timeout=60)
    assert done.returncode in {137, -9}, done
    return p.write("helper.sh", WRONG)


def left(p: Project) -> str:
    """The folder that an interrupted gate left."""
    (found,) = (p.folder / "cranfield-gate").glob(".gate-*")
    return str(found.relative_to(p.folder))


def set_run(p: Project, old: str, new: str, count: int = -1) -> Project:
    """Change the finished run in `cranfield-out`."""
    path = "cranfield-out/runs/new.jsonl"
    text = (p.folder / path).read_text()
    assert re.search(old, text), text[:500]
    return p.write(path, re.sub(old, new, text, count=max(count, 0)))


def finished(p: Project, *options: str) -> Project:
    """A finished run of a program, and a gate on it."""
    p.rules(FLOOR).program(RIGHT).merge()
    assert p.call("run", *options).returncode == 0
    return p.gate("--from", "cranfield-out")


EARLIER_ROWS = [
    Row("a gate was killed, and its system broke", interrupted, 1, "all is asked again"),
    Row("a gate was killed, its system broke, with a ref", lambda p: interrupted(p).ref(), 1, "all is asked again"),
    Row(
        "a run was killed in the folder of the gate",
        lambda p: interrupted(p, "run", "--out", "cranfield-gate"),
        1,
        "all is asked again",
    ),
    Row(
        "a journal is committed",
        lambda p: interrupted(p, "run", "--out", "cranfield-gate").git("add", "-f", ".").ref(),
        1,
        "all is asked again",
    ),
    Row(
        "a gate is resumed",
        lambda p: interrupted(p).gate("--resume", left(p)).write("helper.sh", RIGHT).shows("from an earlier call"),
        0,
        "a person named the folder, and the report says so",
    ),
    Row(
        "a gate is resumed, and its system is broken",
        lambda p: interrupted(p).gate("--resume", left(p)),
        1,
        "eight answers are right",
    ),
    Row(
        "a gate is resumed, with a ref",
        lambda p: interrupted(p).ref("--resume", left(p)),
        2,
        "with a ref only answers of this call count",
    ),
    Row(
        "a gate is resumed in CI",
        lambda p: [interrupted(p).gate("--resume", left(p)).shell("CI=true cranfield GATE")],
        2,
        "in CI only answers of this call count",
    ),
    Row("a gate is resumed from nowhere", lambda p: p.gate("--resume", "nowhere"), 2, "no such folder"),
    Row(
        "a gate is resumed from a folder of others",
        lambda p: p.write("x/y", "z").gate("--resume", "x"),
        2,
        "no gate left it",
    ),
    Row(
        "answers are kept",
        lambda p: [
            p.rules(FLOOR)
            .program(RIGHT, settings=", depends: [data]")
            .top("collect: {cache_h: 100}")
            .write("data", "1"),
            p.call("run"),
            p.write("answer.sh", WRONG),
        ],
        1,
        "a gate asks",
    ),
    Row(
        "a report of an earlier gate",
        lambda p: [p.call("gate"), p.edit("RR, P@1", "RR, NONE@1")],
        2,
        "no report of another call stands for this one",
    ),
    Row("a finished run", finished, 0, "its answers are right"),
    Row(
        "a finished run, with a ref",
        lambda p: finished(p).ref(),
        0,
        "its answers are right, and the report says where they come from",
    ),
    Row("a finished run that is not there", lambda p: p.gate("--from", "cranfield-out"), 2, "run not found"),
    Row(
        "a finished run of another config", lambda p: finished(p).edit("command:", "timeout_s: 7, command:"), 2, "stale"
    ),
    Row(
        "a finished run of another test set",
        lambda p: finished(p).write("queries.yaml", twenty_queries(QUERIES[:19])).accept("--run", "new.run"),
        2,
        "stale",
    ),
    Row("a finished run of another k", lambda p: finished(p).top("k: 5").accept("--run", "new.run"), 2, "stale"),
    Row(
        "a finished run without the digest of its config",
        lambda p: set_run(finished(p), '"config_digest": ?"[^"]*",? ?', ""),
        2,
        "refused: nothing says what it is of",
    ),
    Row(
        "a finished run without the digest of its test set",
        lambda p: set_run(finished(p), '"testset_digest": ?"[^"]*",? ?', ""),
        2,
        "refused: nothing says what it is of",
    ),
    Row(
        "a finished run that is cut short",
        lambda p: p.write(
            "cranfield-out/runs/new.jsonl", (finished(p).folder / "cranfield-out/runs/new.jsonl").read_bytes()[:-200]
        ),
        2,
        "no whole run",
    ),
    Row(
        "a finished run with a query twice", lambda p: set_run(finished(p), "(?m)^(.*q20.*)$", r"\\1\n\\1"), 2, "no run"
    ),
    Row("two sources", lambda p: finished(p).gate("--run", "new.run"), 2, "they exclude each other"),
    Row("a run file", lambda p: p.gate("--run", "new.run"), 0, "its answers are right"),
    Row("a worse run file", lambda p: p.right(10, "x.run").gate("--run", "x.run"), 1, "its answers are wrong"),
    Row(
        "a run file with a byte-order mark",
        lambda p: (
            p.rules("floor: {measure: P@1, every_query: 1}")
            .write("x.run", "\ufeff" + "\n".join(run_lines()))
            .gate("--run", "x.run")
        ),
        0,
        "the first query is read too",
    ),
    Row(
        "a system of a run file with a byte-order mark",
        lambda p: p.rules("floor: {measure: P@1, every_query: 1}").write("new.run", "\ufeff" + "\n".join(run_lines())),
        0,
        "as by --run",
    ),
    Row(
        "a run file with lines of Windows",
        lambda p: p.write("x.run", "\r\n".join(run_lines())).gate("--run", "x.run"),
        0,
        "the same run",
    ),
    Row(
        "a run file in gzip",
        lambda p: p.write("x.run.gz", gzip.compress("\n".join(run_lines()).encode())).gate("--run", "x.run.gz"),
        0,
        "the same run",
    ),
    Row(
        "a run file in gzip that is cut short",
        lambda p: p.write("x.run.gz", gzip.compress("\n".join(run_lines()).encode())[:-20]).gate("--run", "x.run.gz"),
        2,
        "damaged",
    ),
    Row(
        "a run file whose last line is cut",
        lambda p: p.write("x.run", "\n".join(run_lines())[:-8]).gate("--run", "x.run"),
        2,
        "five columns",
    ),
    Row(
        "a score that is no number",
        lambda p: p.edit(" 8 new", " NaN new", "new.run").gate("--run", "new.run"),
        2,
        "no order",
    ),
    Row(
        "a document twice",
        lambda p: p.edit("oth-01", "doc-01", "new.run").gate("--run", "new.run"),
        2,
        "one result, and two ranks",
    ),
    Row(
        "relevant documents behind rank k",
        lambda p: p.rules("floor: {measure: AP, at_least: 0.401}").write("x.run", deep_run()).gate("--run", "x.run"),
        1,
        "a gate looks at k results: AP is 8 / 20 = .4, and .403 with those at rank 201",
    ),
    Row("a run file of binary data", lambda p: p.write("x.run", os.urandom(4096)).gate("--run", "x.run"), 2, "no run"),
    Row("a run file that is a folder", lambda p: p.gate("--run", "."), 2, "no file"),
    Row("a run file that is a device", lambda p: p.gate("--run", "/dev/zero"), 2, "no file"),
    Row(
        "a line of two megabytes",
        lambda p: p.write("x.run", "q01 Q0 " + "d" * 2_000_000 + " 1 1 x\n").gate("--run", "x.run"),
        2,
        "no line of a run",
    ),
]


def deep_run() -> str:
    """The relevant document at rank 201."""
    ranked = [(f"n{rank}" if rank <= 200 else "doc", rank) for rank in range(1, 202)]
    lines = (f"q{q} Q0 {doc + '-' + q} {rank} {999 - rank} x" for q in QUERIES[8:] for doc, rank in ranked)
    return "\n".join([*run_lines()[:16], *lines])


def dies(name: str, body: str, why: str = "three of twenty queries failed", status: int = 3) -> Row:
    """A function that does this at the last three queries."""
    at_last = f"if query < '18':\n    return right(query)\n{body}"
    return Row(f"a function that {name}", lambda p: p.rules(ANY).function(at_last).process(), status, why)


def answers(name: str, raw: Callable[[str], bytes], why: str, status: int = 3) -> Row:
    """A server that answers so."""
    return Row(f"a server that {name}", lambda p: p.rules(ANY).http(raw), status, why)


PATCH = """\
import cranfield.gate.commands.gate, cranfield.gate.verdict
cranfield.gate.commands.gate.EXIT_CODES.update(failed=0)
cranfield.gate.verdict.judge_all = None
return right(query)[:: 1 if query < '10' else -1]
"""


def hits(query: str) -> bytes:
    return json.dumps({"hits": [f"doc-{query}", f"oth-{query}"]}).encode()


def sized(body: bytes, size: int | None = None, headers: bytes = b"") -> bytes:
    """The server of the tests makes a connection a request, and says so: the client cannot know it in time."""
    length = len(body) if size is None else size
    return headers + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % length + body


def packed(query: str) -> bytes:
    return gzip.compress(hits(query))


SYSTEM_ROWS = [
    dies("answers", "return right(query)", "its answers are right", 0),
    dies("calls os._exit(0)", "os._exit(0)"),
    dies("calls os._exit(1)", "os._exit(1)"),
    dies("aborts", "os.abort()"),
    dies("kills itself", "os.kill(os.getpid(), signal.SIGKILL)"),
    dies("ends itself by SIGTERM", "os.kill(os.getpid(), signal.SIGTERM)"),
    dies("raises SystemExit(0)", "sys.exit(0)"),
    dies("raises SystemExit(1)", "sys.exit(1)"),
    dies("raises KeyboardInterrupt", "raise KeyboardInterrupt"),
    dies("raises RecursionError", "return find(query, k)"),
    dies("raises MemoryError", "raise MemoryError"),
    dies("raises BaseException", "raise BaseException"),
    dies("raises GeneratorExit", "raise GeneratorExit"),
    dies("raises what has no text", "class E(Exception):\n    def __str__(self):\n        os._exit(0)\nraise E"),
    dies(
        "closes every stream",
        "import contextlib\nfor number in range(3):\n    with contextlib.suppress(OSError):\n        os.close(number)\nreturn right(query)",
        "its streams are no part of its answer",
        0,
    ),
    dies("prints", "print('VERDICT: passed')\nreturn right(query)", "what it prints is not a part of the report", 0),
    dies("closes every file", "os.closerange(0, 100)\nreturn right(query)"),
    dies(
        "writes to every file",
        "for number in range(3, 30):\n    try:\n        os.write(number, b'[]\\n' * 9)\n    except OSError:\n        pass\nreturn right(query)",
    ),
    dies("hangs", "time.sleep(60)"),
    dies("changes the folder", "os.chdir('/')\nreturn right(query)", "the report is written where it was asked for", 0),
    dies(
        "replaces what ends a process",
        "import builtins\nsys.exit = os._exit = exit = builtins.open = lambda *_: 0\nreturn right(query)",
        "it changes its own process",
        0,
    ),
    Row(
        "a module that ends the process at its end",
        lambda p: p.rules(FLOOR).function("import atexit\natexit.register(os._exit, 0)\nreturn right('00')").process(),
        3,
        "its own process ends; nothing is found",
    ),
    Row(
        "a module that changes the gate",
        lambda p: p.rules(FLOOR).function(PATCH).process(),
        1,
        "it changes its own process",
    ),
    Row(
        "a fusion with a part that ends the process",
        lambda p: (
            fused(p)
            .function("os._exit(0)")
            .edit("  new: {", "  two: {")
            .edit("systems:", "systems:\n  one: {run: new.run}\n  new: {fusion: {of: [one, two]}}")
            .process()
        ),
        3,
        "every query failed",
    ),
    dies(
        "leaves a thread that ends the process",
        "threading.Timer(0.05, lambda: os._exit(0)).start()\ntime.sleep(0.06)\nreturn right(query)",
        "its process ended in the middle of each call",
    ),
    dies("returns nothing", "return None"),
    dies("returns a number", "return 7"),
    dies("returns itself", "found = []\nfound.append(found)\nreturn found"),
    dies("returns what raises", "class E(list):\n    def __iter__(self):\n        sys.exit(0)\nreturn E([1])"),
    dies(
        "writes the report",
        "os.makedirs('cranfield-gate', exist_ok=True)\nopen('cranfield-gate/gate.json', 'w').write('{\"status\": \"passed\"}')\nos._exit(0)",
        "the report is written at the end",
    ),
    Row(
        "a module that ends the process when it is imported",
        lambda p: p.rules(ANY).write("mine.py", "import os\nos._exit(0)\n").system("python: 'mine:find'").process(),
        3,
        "a check before the first query",
    ),
    Row(
        "a module that raises SystemExit(0)",
        lambda p: p.rules(ANY).write("mine2.py", "raise SystemExit(0)\n").system("python: 'mine2:find'").process(),
        3,
        "a check before the first query",
    ),
    Row(
        "a program that kills the gate",
        lambda p: p.rules(ANY).program("kill -9 $PPID\n").process(),
        137,
        "not 0, not 1, no report",
    ),
    Row(
        "a program that interrupts the gate",
        lambda p: p.rules(ANY).program("kill -INT $PPID\nsleep 5\n").process(),
        130,
        "not 0, not 1, no report",
    ),
    Row("a program that ends with 0 and says nothing", lambda p: p.rules(ANY).program("exit 0\n"), 3, "no answer"),
    Row("a program that ends with 3", lambda p: p.rules(ANY).program(RIGHT + "exit 3\n"), 3, "every query failed"),
    Row(
        "a program that dies after it answered",
        lambda p: p.rules(ANY).program(RIGHT + "kill -9 $$\n"),
        3,
        "every query failed",
    ),
    Row(
        "a program that dies at one query",
        lambda p: p.program('[ "$1" = 03 ] && kill -9 $$\n' + RIGHT),
        0,
        "one failure is allowed, and counts as 0: RR is .95",
    ),
    Row(
        "a program that hangs at three queries",
        lambda p: p.rules(ANY).program('[ "$1" -gt 17 ] && sleep 9\n' + RIGHT, settings=", timeout_s: 0.2"),
        3,
        "three of twenty failed",
    ),
    Row(
        "a program that prints without end",
        lambda p: p.rules(ANY).program('[ "$1" -gt 17 ] && exec yes\n' + RIGHT, settings=", timeout_s: 0.2"),
        3,
        "every query failed",
    ),
    Row(
        "a program that prints binary data",
        lambda p: p.rules(ANY).program("head -c 1000 /dev/urandom\n"),
        3,
        "no answer",
    ),
    Row(
        "a program that is not there",
        lambda p: p.rules(ANY).system("command: [./none, '{query}'], extract: {json: hits}"),
        3,
        "a check before the first query",
    ),
    Row(
        "a program of lines that ends with 0",
        lambda p: p.rules(ANY).system("lines: [sh, -c, 'exit 0']"),
        3,
        "every query failed",
    ),
    Row(
        "a program of lines that answers another query",
        lambda p: p.rules(ANY).system("lines: [sh, -c, 'while read x; do echo 7; done']"),
        3,
        "every query failed",
    ),
    answers("answers", lambda q: sized(hits(q)), "its answers are right", 0),
    answers("cuts its answer", lambda q: sized(hits(q)[:-4]), "no JSON"),
    answers("says that more follows", lambda q: sized(hits(q), 999), "the body is shorter than its Content-Length"),
    answers("packs its answer", lambda q: sized(packed(q), headers=b"Content-Encoding: gzip\r\n"), "whole", 0),
    answers(
        "cuts its gzip",
        lambda q: sized(packed(q)[:-9], headers=b"Content-Encoding: gzip\r\n"),
        "a part of a body is no body",
    ),
    answers(
        "cuts the check of its gzip",
        lambda q: sized(packed(q)[:-1], headers=b"Content-Encoding: gzip\r\n"),
        "a part of a body is no body",
    ),
    answers(
        "packs what is not packed",
        lambda q: sized(hits(q), headers=b"Content-Encoding: gzip\r\n"),
        "it cannot be decoded",
    ),
    answers(
        "cuts its chunks",
        lambda q: b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(hits(q)), hits(q)),
        "the last chunk is missing",
    ),
    answers(
        "answers without results", lambda _: sized(b'{"hits": []}'), "an evidence check: nothing but empty answers"
    ),
    answers("answers something else", lambda _: sized(b'{"error": "none"}'), "no hits"),
    answers("closes the connection", lambda _: b"", "no answer"),
    Row(
        "a server that is not there",
        lambda p: p.rules(ANY).system("http: {url: 'http://127.0.0.1:1/{query}'}, extract: {json: hits}, retries: 0"),
        3,
        "every query failed",
    ),
    Row(
        "a port that cannot be",
        lambda p: p.rules(ANY).system("http: {url: 'http://127.0.0.1:65536/{query}'}, extract: {json: hits}"),
        2,
        "an error of the config",
    ),
    Row(
        "a port under 0",
        lambda p: p.rules(ANY).system("http: {url: 'http://127.0.0.1:-1/{query}'}, extract: {json: hits}"),
        2,
        "an error of the config",
    ),
    Row(
        "a port of the environment that cannot be",
        lambda p: p.rules(ANY).system(
            "http: {url: '{env.U}/{query}'}, extract: {json: hits}, retries: 0, env: {U: 'http://127.0.0.1:65536'}"
        ),
        3,
        "no request can be made",
    ),
    Row(
        "a regular expression that does not end",
        lambda p: p.rules(ANY).program(
            '[ "$1" -gt 17 ] && set -- "$(printf %%1000s | tr " " a)"\necho "doc-$1"\n'.replace("%%", "%"),
            "{regex: '(?:doc-\\d+$|doc-(?:a+)+b)'}",
            ", timeout_s: 0.5",
        ),
        3,
        "three of twenty queries failed",
    ),
    Row(
        "a regular expression that is too large",
        lambda p: p.rules(ANY).program(RIGHT, "{regex: '((a*){65000}){65000}'}"),
        2,
        "an error of the config",
    ),
    Row(
        "a run file from a pipe of the shell",
        lambda p: p.shell("python -m cranfield GATE --run <(cat new.run)"),
        0,
        "as from a file",
    ),
    Row(
        "a program that leaves a daemon",
        lambda p: p.rules(ANY).program("setsid sleep 30 >/dev/null 2>&1 &\n" + RIGHT).process(),
        0,
        "it is ended with the gate",
    ),
    answers(
        "answers a part",
        lambda q: sized(hits(q), headers=b"Content-Range: bytes 0-9/99\r\n"),
        "a header that a whole answer has not, on a whole answer",
        0,
    ),
    Row(
        "a program of lines that answers a key twice",
        lambda p: p.rules(ANY).system(
            """lines: [sh, -c, 'while read x; do echo "{\\"hits\\": [], \\"hits\\": [\\"doc-01\\"]}"; done']"""
        ),
        3,
        "no answer",
    ),
    Row(
        "a server of MCP that ends",
        lambda p: p.rules(ANY).system(
            "mcp: {command: [sh, -c, 'exit 0'], tool: x, arguments: {q: '{query}'}}, extract: {json: hits}"
        ),
        3,
        "a check before the first query",
    ),
    Row(
        "a system of a run file with a document twice",
        lambda p: p.rules(ANY).edit("oth-01", "doc-01", "new.run"),
        3,
        "as by --run: no run",
    ),
    Row(
        "a cutoff as large as can be",
        lambda p: p.rules("floor: {measure: SDCG@2147483647, at_least: 0}"),
        0,
        "in bounded time: k is 1000 then; the baseline, whose k is 10, is left out: no rule needs it",
    ),
    Row(
        "a secret in every id",
        lambda p: (
            p.rules(ANY)
            .program('echo "doc-$1 $TOKEN"\n', f"{{regex: 'doc-\\d+|{SECRET}'}}", f", env: {{TOKEN: {SECRET}}}")
            .hides(SECRET)
        ),
        0,
        "redacted in report and log",
    ),
    Row(
        "a secret in an error",
        lambda p: (
            p.rules(ANY).program('echo "no $TOKEN" >&2; exit 1\n', settings=f", env: {{TOKEN: {SECRET}}}").hides(SECRET)
        ),
        3,
        "redacted in report and log",
    ),
]


def link(p: Project, name: str, target: str = "precious.txt", text: str = "precious\n") -> Project:
    """A link at `name` to a file that stays as it is."""
    p.write("precious.txt", text).keeps("precious.txt")
    path = p.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(p.folder / target)
    return p


def fused(p: Project, other: int = 20) -> Project:
    """The system is the fusion of two run files."""
    also = "  one: {run: new.run}\n  two: {run: two.run}\n"
    return (
        p.rules(FLOOR)
        .right(other, "two.run")
        .edit("gate:", "gate:\n  system: new")
        .system("fusion: {of: [one, two]}", also)
    )


def new_part(p: Project) -> Project:
    """A part of the fusion is a program on main, and a run file here."""
    program = f"command: [sh, answer.sh, '{{query}}'], extract: {IDS}"
    fused(p).write("answer.sh", RIGHT).edit("two: {run: two.run}", f"two: {{{program}}}").merge()
    return p.edit(f"two: {{{program}}}", "two: {run: two.run}").ref()


def two_sets(p: Project, second: int = 20) -> Project:
    """Two test sets, ten queries each, and rules without a baseline; so many queries of all are right."""
    p.write("first.yaml", twenty_queries(QUERIES[:10])).write("second.yaml", twenty_queries(QUERIES[10:]))
    p.edit("testset: queries.yaml", "testsets: {first: {path: first.yaml}, second: {path: second.yaml}}")
    return p.rules(FLOOR).right(second)


def paths(name: str, do: Callable[[Project], object], status: int = 2, why: str = "a mistake of the call") -> Row:
    return Row(f"a path: {name}", do, status, why)


LONG = "a" * 300
FOLDER_ROWS = [
    Row("the report is a planted link", lambda p: link(p, "cranfield-gate/gate.json"), 2, "it is not followed"),
    Row("the page is a planted link", lambda p: link(p, "cranfield-gate/gate.html"), 2, "it is not followed"),
    Row(
        "the folder of runs is a planted link",
        lambda p: link(p.write("elsewhere/x", "y"), "cranfield-gate/runs", "elsewhere"),
        2,
        "it is not followed",
    ),
    Row(
        "our folder is a planted link",
        lambda p: [
            p.write("elsewhere/x", "y"),
            (p.folder / ".cranfield").is_dir() and shutil.rmtree(p.folder / ".cranfield"),
            (p.folder / ".cranfield").symlink_to("elsewhere"),
        ],
        2,
        "it is not followed",
    ),
    Row(
        "the history is a planted link",
        lambda p: link(p, ".cranfield/history.jsonl"),
        2,
        "nothing is appended to what it leads to",
    ),
    Row(
        "the history is a pipe",
        lambda p: [
            (p.folder / ".cranfield").mkdir(exist_ok=True),
            (p.folder / ".cranfield/history.jsonl").unlink(missing_ok=True),
            os.mkfifo(p.folder / ".cranfield/history.jsonl"),
        ],
        2,
        "nobody reads it",
    ),
    Row(
        "the output folder is a link",
        lambda p: [(p.folder / "other").mkdir(), (p.folder / "cranfield-gate").symlink_to("other")],
        2,
        "nobody named it: a change may have put it there",
    ),
    Row(
        "the baseline is a link",
        lambda p: [(p.folder / BASELINE).rename(p.folder / "kept.json"), (p.folder / BASELINE).symlink_to("kept.json")],
        0,
        "a file of the user's may be one",
    ),
    Row("the output folder is a file", lambda p: p.write("cranfield-gate", "").gate(), 2, "no folder"),
    Row(
        "the report is a folder",
        lambda p: (p.folder / "cranfield-gate/gate.json").mkdir(parents=True),
        2,
        "no report can be written",
    ),
    Row(
        "two gates in one folder",
        lambda p: (
            p.rules(ANY)
            .program("touch asked; while [ ! -e go ]; do sleep 0.05; done\n" + RIGHT)
            .shell(
                "cranfield gate >one.txt 2>&1 & while [ ! -e asked ]; do sleep 0.05; done; cranfield GATE; status=$?; touch go; wait; exit $status"
            )
            .no_report()
        ),
        2,
        "the second is refused",
    ),
    Row("a fusion", fused, 0, "both parts are right"),
    Row("a fusion with a worse part", lambda p: fused(p.right(5), 5), 1, "both parts are wrong"),
    Row(
        "a fusion with a part that is not there",
        lambda p: (fused(p).folder / "two.run").unlink(),
        3,
        "a check before the first query",
    ),
    Row("a fusion of itself", lambda p: fused(p).edit("of: [one, two]", "of: [one, new]"), 2, "an error of the config"),
    Row(
        "a fusion with a new part that is a run file",
        new_part,
        2,
        "main calls a program there",
    ),
    Row("two test sets", two_sets, 0, "each passes"),
    Row("two test sets, the second worse", lambda p: two_sets(p, 12), 1, "the worst decides"),
    Row(
        "two test sets, the first without answers",
        lambda p: two_sets(p).write("new.run", "\n".join(run_lines()[10:])),
        3,
        "the worst decides: 3",
    ),
    Row("two test sets and one run file", lambda p: two_sets(p).gate("--run", "new.run"), 2, "a run of one set"),
    Row(
        "two test sets, a rule for one",
        lambda p: two_sets(p, 12).edit(
            "- floor: {measure: P@1, at_least: 0.80}", "- {testsets: [first], floor: {measure: P@1, at_least: 0.80}}"
        ),
        1,
        "the second has no rule: nothing says that it passes",
    ),
    Row(
        "a test set is taken away",
        lambda p: (
            two_sets(p)
            .git("add", "-A")
            .merge()
            .edit(
                "testsets: {first: {path: first.yaml}, second: {path: second.yaml}}",
                "testsets: {first: {path: first.yaml}}",
            )
            .ref()
        ),
        2,
        "main gates it",
    ),
    Row(
        "a perfect run file in place of a system",
        lambda p: p.program(RIGHT).merge().right(20, "perfect.run").system("run: perfect.run").ref(),
        2,
        "main calls a program",
    ),
    Row(
        "a longer time limit",
        lambda p: (
            p.rules("failures: {at_most: 0}")
            .program('[ "$1" = 20 ] && sleep 3\n' + RIGHT, settings=", timeout_s: 1")
            .merge()
            .edit("timeout_s: 1", "timeout_s: 9")
            .ref()
        ),
        1,
        "the limit of main counts",
    ),
    Row(
        "any answer is an empty one",
        lambda p: (
            p.rules("failures: {at_most: 0}")
            .program('[ "$1" -lt 20 ] && ' + RIGHT)
            .merge()
            .edit("extract:", "empty: '^$', extract:")
            .ref()
        ),
        1,
        "what is empty is said by main",
    ),
    Row(
        "easy queries are added",
        lambda p: (
            p.rules(FLOOR)
            .right(12)
            .accept()
            .merge()
            .write("queries.yaml", twenty_queries() + "".join(MORE.replace("21", str(n)) for n in range(21, 60)))
            .write("new.run", "\n".join([*run_lines(12), *(f"q{n} Q0 doc-{n} 1 1 new" for n in range(21, 60))]) + "\n")
            .ref()
        ),
        1,
        "queries that main has not are no part of the gate",
    ),
    Row(
        "options that replace judgments",
        lambda p: p.write("mine", "q01 0 doc-01 1\n").ref("--qrels", "mine"),
        2,
        "main decides",
    ),
    Row("options that cut the results", lambda p: p.ref("--depth", "1"), 2, "main decides"),
    Row("a repository that the set must match", lambda p: p.top("repo: ."), 0, "the test set names no places in it"),
    paths("300 characters as config", lambda p: p.gate(LONG)),
    paths("5,000 characters as config", lambda p: p.gate("a" * 5000)),
    paths("300 characters as output folder", lambda p: p.gate("--out", LONG)),
    paths("300 characters in the config", lambda p: p.edit("run: new.run", f"run: {LONG}")),
    paths("300 characters as test set", lambda p: p.edit("testset: queries.yaml", f"testset: {LONG}")),
    paths("300 characters as run file", lambda p: p.gate("--run", LONG)),
    paths("300 characters as finished run", lambda p: p.gate("--from", LONG)),
    paths("300 characters as JUnit file", lambda p: p.gate("--junit", LONG + ".xml").no_report()),
    paths("300 characters as Markdown file", lambda p: p.gate("--markdown", LONG + ".md").no_report()),
    paths("300 characters as ref", lambda p: p.gate("--baseline-ref", LONG)),
    paths("300 characters as working folder", lambda p: p.program(RIGHT, settings=f", cwd: {LONG}")),
    paths("a null character in the config", lambda p: p.edit("run: new.run", 'run: "new\\0.run"')),
    paths("a null character as test set", lambda p: p.edit("testset: queries.yaml", 'testset: "q\\0.yaml"')),
    paths("no UTF-8 as config", lambda p: p.shell("cranfield GATE $'\\xff\\xfe.yaml'")),
    paths(
        "no UTF-8 as output folder",
        lambda p: p.shell("cranfield GATE --out $'\\xff\\xfe' && test -s $'\\xff\\xfe/gate.json'").no_report(),
        0,
        "a name that this machine allows",
    ),
    paths("a file where a folder is", lambda p: p.gate("new.run/cranfield.yaml")),
    paths("a folder where the config is", lambda p: p.gate(".")),
    paths("an empty name", lambda p: p.gate("")),
    paths("a device as output folder", lambda p: p.gate("--out", "/dev/full")),
    paths("a folder that takes no files", lambda p: p.gate("--out", "/proc/cranfield")),
    paths("a device as JUnit file", lambda p: p.gate("--junit", "/dev/full").no_report()),
    paths("an unknown option", lambda p: p.gate("--nosuch")),
    paths(
        "a file larger than allowed",
        lambda p: p.shell("ulimit -f 1; cranfield GATE").real(),
        2,
        "no report could be written",
    ),
    Row(
        "the reader of stdout leaves",
        lambda p: p.shell("cranfield GATE | true; exit ${PIPESTATUS[0]}"),
        0,
        "the status is of the gate",
    ),
    Row(
        "the reader of stdout leaves a gate that fails",
        lambda p: p.right(10).shell("cranfield GATE | true; exit ${PIPESTATUS[0]}"),
        1,
        "the status is of the gate",
    ),
    Row(
        "the reader of stdout leaves JSON",
        lambda p: p.right(10).gate("--format", "json").shell("cranfield GATE | head -c 10; exit ${PIPESTATUS[0]}"),
        1,
        "the status is of the gate",
    ),
    Row("stdout is closed", lambda p: p.shell("cranfield GATE >&-").real(), 0, "the report is in its file"),
    Row(
        "stdout is closed of a gate that fails",
        lambda p: p.right(10).shell("cranfield GATE >&-").real(),
        1,
        "the report is in its file",
    ),
    Row(
        "every stream is closed",
        lambda p: p.right(10).shell("cranfield GATE <&- >&- 2>&-").real(),
        1,
        "the report is in its file",
    ),
    Row("stderr is closed", lambda p: p.shell("cranfield GATE 2>&-").real(), 0, "the report is in its file"),
    Row(
        "stdout is full",
        lambda p: p.shell("cranfield GATE >/dev/full").no_report(),
        2,
        "an output that is lost is an error",
    ),
    Row(
        "stdout of a gate that fails is full",
        lambda p: p.right(10).shell("cranfield GATE >/dev/full"),
        1,
        "a broken rule stays one",
    ),
    Row("stderr is full", lambda p: p.shell("cranfield GATE 2>/dev/full"), 0, "progress is no result"),
    Row(
        "the summary is full",
        lambda p: p.gate("--step-summary").shell("GITHUB_STEP_SUMMARY=/dev/full cranfield GATE").no_report(),
        2,
        "an output that is lost is an error",
    ),
    Row("the summary is not named", lambda p: p.gate("--step-summary"), 2, "refused before a query is sent"),
    Row(
        "the gate is interrupted",
        lambda p: p.rules(ANY).program("touch asked\nsleep 30\n").shell(signalled("INT")),
        130,
        "no report, no verdict",
    ),
    Row(
        "the gate is ended by SIGTERM",
        lambda p: p.rules(ANY).program("touch asked\nsleep 30\n").shell(signalled("TERM")),
        130,
        "no report, no verdict",
    ),
    Row(
        "the gate is killed",
        lambda p: p.rules(ANY).program("kill -9 $PPID\n").shell("cranfield GATE; exit $?"),
        137,
        "no report, no verdict",
    ),
    Row(
        "help",
        lambda p: p.gate("--help").shell("cranfield GATE | true; exit ${PIPESTATUS[0]}").no_report(),
        0,
        "no gate is called",
    ),
]


@pytest.fixture(scope="module")
def template(make_once: Callable[[str, Callable[[Path], object]], Path], call: Callable[..., Any]) -> Path:
    """The project in which all is well, in a git repository."""

    def fill(folder: Path) -> None:
        project = Project(folder, call, lambda _: "")
        project.write("cranfield.yaml", CONFIG.replace("RULES", "\n".join(f"    - {rule}" for rule in RULES)))
        project.write("queries.yaml", twenty_queries()).right(20)
        before = Path.cwd()
        os.chdir(folder)
        try:
            project.accept()
        finally:
            os.chdir(before)
        shutil.rmtree(folder / "cranfield-gate")
        project.git("init", "-q", "--template=", "-b", "main").merge().git("checkout", "-qb", "change")

    return make_once("gate-scenarios", fill)


@pytest.fixture
def project(
    template: Path,
    tmp_path: Path,
    call: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    load_script: Callable[[Path], Any],
) -> Iterator[Project]:
    services: list[Any] = []

    def serve(answer: Callable[[Any], bytes]) -> str:
        servers = load_script(Path(__file__).parents[1] / "unit/systems/servers.py")
        services.append(servers.Service(lambda received: servers.Sent(raw=b"HTTP/1.1 200 OK\r\n" + answer(received))))
        return str(services[-1].url)

    folder = tmp_path / f"p{tmp_path.parent.name.replace('-', '')}{tmp_path.name}"
    shutil.copytree(template, folder, symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    for name in ("CI", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    yield Project(folder, call, serve)
    for service in services:
        service.close()


ROWS = [*RULE_ROWS, *LIMIT_ROWS, *BASELINE_ROWS, *PULL_REQUEST_ROWS, *EARLIER_ROWS, *SYSTEM_ROWS, *FOLDER_ROWS]


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_gate_ends_with_the_exit_code_of_the_table(project: Project, row: Row) -> None:
    row.do(project)
    done = project.run()
    told = f"{row.why}\n{done.stdout}\n{done.stderr}"
    assert (128 - done.returncode if done.returncode < 0 else done.returncode) == row.exit, told
    assert "Traceback" not in done.stderr, told
    assert "internal error" not in done.stderr, told
    report = project.folder / "cranfield-gate" / "gate.json"
    if report.is_symlink() or report.is_dir():
        report = report.with_name("none")
    if row.exit in {0, 1, 4} and project.report is None:
        assert json.loads(report.read_text())["status"] == STATUS[row.exit]
    elif report.exists() and project.report is None:
        assert json.loads(report.read_text())["status"] == "invalid"
    assert {name: (project.folder / name).read_bytes() for name in project.kept} == project.kept
    printed = done.stdout + done.stderr + (report.read_text() if report.exists() else "")
    for text in project.shown:
        assert text in printed, told
    for text in project.hidden:
        assert text not in printed


def test_the_table_is_long_and_names_each_scenario_once() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert {row.exit for row in ROWS} >= {0, 1, 2, 3, 4}
    assert len(ROWS) >= 120
