"""A system that echoes its secrets in ids, titles, spans, reasons and output: scores are those of the ids, no report shows them."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from html import escape
from urllib.parse import quote

import pytest

from cranfield.app.experiment import prepare
from cranfield.app.probing import probe
from cranfield.app.run import run_job
from cranfield.config import load_config
from cranfield.formats.runs.jsonl import read_run
from cranfield.model import Hit
from cranfield.reporting import render
from cranfield.systems.calls.redact import Redactor

SECRET = 's3cr3t "k<e>y/&'
FORMS = {
    "as it is": SECRET,
    "percent-encoded": quote(SECRET, safe=""),
    "as JSON": json.dumps(SECRET)[1:-1],
    "as JSON of Go": json.dumps(SECRET)[1:-1].replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
    "as HTML": escape(SECRET),
    "as HTML of Jinja": escape(SECRET).replace("&quot;", "&#34;"),
    "in Base64": b64encode(SECRET.encode()).decode(),
    **{
        f"in Base64, {n} bytes in": b64encode(b"u" * n + SECRET.encode() + b"more").decode()[(0, 2, 3)[n] :][
            : (20, 19, 19)[n]
        ]
        for n in range(3)
    },
}
SYSTEM = """
import json, os, sys
secret = os.environ["TOKEN"]
print(secret, file=sys.stderr)
if sys.argv[1] == "three":
    sys.exit("no access with " + secret)
hit = lambda name: {"id": name, "score": 1, "title": "T " + secret, "span": "1-2 " + secret}
names = [secret + "/d1", "other " + secret, "d2"] if sys.argv[1] == "one" else ["d2", secret]
print(json.dumps({"results": [hit(name) for name in names], "mode": "by " + secret}))
"""
CONFIG = """
testset: set.yaml
k: 5
measures: [RR, nDCG@5]
systems:
  new:
    command: ["{python}", "-I", "-S", system.py, "{query}"]
    env: {TOKEN: %s}
    extract: {json: "results[]", id: id, score: score, title: title, span: span, fields: {mode: mode}}
    order: given
  old: {run: old.run}
"""
QUERIES = """
cranfield_testset: 1
name: s
queries:
  - {id: q1, text: one, judgments: %s}
  - {id: q2, text: two, judgments: {d2: 1}}
  - {id: q3, text: three, judgments: {d3: 1}}
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "system.py").write_text(SYSTEM)
    (tmp_path / "set.yaml").write_text(QUERIES % json.dumps({"other " + SECRET: 1}))
    (tmp_path / "old.run").write_text("q1 Q0 d9 1 1 t\nq2 Q0 d2 1 1 t\nq3 Q0 d3 1 1 t\n")
    text = CONFIG % json.dumps(SECRET)
    (tmp_path / "cranfield.yaml").write_text(text.replace("{python}", sys.executable))
    return tmp_path / "cranfield.yaml"


def leaks(text: str, public: str = "") -> list[str]:
    """The forms of the secret in a text, without what the test set itself names."""
    for form in (public, json.dumps(public)[1:-1], escape(public), escape(public).replace("&quot;", "&#34;")):
        text = text.replace(form, "") if form else text
    return [name for name, form in FORMS.items() if form in text]


def test_no_report_shows_a_secret_and_the_scores_are_those_of_the_ids(config, tmp_path):
    out = tmp_path / "out"
    run_job(config, out=out)
    public = "other " + SECRET
    shown = [path for path in out.rglob("*") if path.is_file() and path.parent.name != "runs"]
    assert {path.name for path in shown} >= {"results.json", "report.html", "report.md"}
    for path in shown:
        assert leaks(path.read_text(), public) == [], path
    assert "${TOKEN}/d1" in (out / "report.md").read_text()
    run = read_run(out / "runs" / "new.jsonl")
    first, second, _ = run.answers["q1"].hits
    assert (first.id, first.public_id, first.public_span) == (SECRET + "/d1", "${TOKEN}/d1", "1-2 ${TOKEN}")
    assert first.title == "T ${TOKEN}"
    evaluation = prepare(load_config(config), "", ["new"], cache="off").evaluate(run)
    assert evaluation.value("RR", "q1") == 0.5
    assert [hit.id for hit in evaluation.ranking.top["q1"]] == ["${TOKEN}/d1", second.id, "d2"]
    assert leaks((out / "runs" / "new.log.jsonl").read_text()) == []


def test_what_one_query_brings_is_shown_without_secrets(config):
    document = probe(config, "new", "one").document
    for form in ("text", "json", "markdown", "html"):
        assert leaks(render(document, form)) == [], form


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_redacted_in_every_form(form):
    text = Redactor({"TOKEN": SECRET}).redact(f"before {FORMS[form]} after")
    assert FORMS[form] not in text
    assert "${TOKEN}" in text


def test_a_result_without_a_secret_stays_as_it_is():
    hit = Hit("a", 1.0, "t", "1-2")
    assert Redactor({"TOKEN": SECRET}).redact_hit(hit) is hit
    assert Redactor({"C": "C"}).redact_hit(hit) is hit
