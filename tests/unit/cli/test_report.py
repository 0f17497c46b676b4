"""`cranfield report`: every form of a report again, of saved results alone."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest

JUDGED = {f"q{n}": {f"d{n}": 1, "other": 0} for n in range(8)}
SEARCH = """case $1 in *3) echo no index >&2; exit 4;; esac
if test $2 = worse; then echo other; fi
echo d${1#words q}; echo x
"""
SYSTEM = "  {name}: {{command: [sh, search.sh, '{{query}}', {how}], extract: {{regex: '(?m)^(\\S+)'}}}}\n"


@pytest.fixture(params=[("trec", 1), ("octocode", 2), ("trec", 3)], ids=lambda param: "-".join(map(str, param)))
def text(request, call, tmp_path, monkeypatch):
    """The whole report of a run with a convention and some systems, as `run` prints it; its results are in `out`."""
    convention, n = request.param
    monkeypatch.chdir(tmp_path)
    queries = [
        {"id": q, "text": f"words {q}", "strata": {"half": str(q < "q4")}, "judgments": judged}
        for q, judged in JUDGED.items()
    ]
    Path("set.yaml").write_text(json.dumps({"cranfield_testset": 1, "name": "s", "queries": queries}))
    Path("search.sh").write_text(SEARCH)
    systems = [SYSTEM.format(name=f"s{place}", how=how) for place, how in enumerate(("better", "worse", "better")[:n])]
    head = f"testset: set.yaml\nmeasures: [nDCG@10, RR@10]\nconvention: {convention}\ncollect: {{repeats: 2}}\n"
    Path("cranfield.yaml").write_text(f"{head}limits: {{max_failed_share: 0.5}}\nsystems:\n{''.join(systems)}")
    done = call("run", "--out", "out", "--full", "--keep-going")
    assert "wrote results.json, report.html, report.md" in done.stderr, done.stderr
    return done.stdout


def test_every_form_is_as_the_run_wrote_it(text, call):
    results = "out/results.json"
    by_query = ("--by-query",) if "Per-query results" in text else ()
    assert call("report", results, "--full", *by_query).stdout == text
    assert call("report", results, "--html", "again.html", *by_query).returncode == 0
    assert Path("again.html").read_bytes() == Path("out/report.html").read_bytes()
    assert call("report", results, "--format", "markdown", *by_query).stdout == Path("out/report.md").read_text()
    printed = json.loads(call("report", results, "--format", "json").stdout)
    saved = json.loads(Path(results).read_text())
    saved["systems"] = [system | {"headroom": None} for system in saved["systems"]]
    if causes := saved.get("causes"):
        saved["causes"] = causes | {"queries": {}}
    assert printed == saved | {"queries": None}


def test_a_file_is_written_in_the_form_of_its_suffix(text, call):
    results = "out/results.json"
    done = call("report", results, "--save", "again.xlsx", "--save", "again.md")
    assert "wrote again.xlsx, again.md" in done.stderr
    assert openpyxl.load_workbook("again.xlsx").sheetnames[0] in {"Verdict", "Report"}
    assert Path("again.md").read_text().startswith("# ")
    assert call("report", results, "--save", "again.tex").returncode == 0
    assert r"\toprule" in Path("again.tex").read_text()
    piped = subprocess.run(
        [sys.executable, "-m", "cranfield", "report", results, "--format", "xlsx"], capture_output=True, check=True
    )
    assert piped.stdout == Path("again.xlsx").read_bytes()


def test_a_suffix_without_a_form_is_refused_before_anything_is_read(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call("report", "no-such-file.json", "--save", "again.pdf", "--save", "other.gif")
    assert done.returncode == 2
    assert "other.gif: the format" in done.stderr
    assert "again.pdf: the format cannot be derived from the suffix; expected one of .txt" in done.stderr


def test_without_the_calls_all_but_times_and_outputs_is_there(text, call):
    shutil.copy("out/results.json", "alone.json")
    alone = call("report", "alone.json", "--full").stdout
    assert "no index" in text
    assert "no index" not in alone
    assert "Latency" not in alone
    assert "1 of 8 queries failed" in alone


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json", "expected the results.json of an evaluation or a comparison"),
        ("[]", "expected the results.json of an evaluation or a comparison"),
        ('{"kind": "gate"}', "kind is 'gate', and not one of evaluation, comparison, many"),
        ('{"kind": "comparison"}', "validation errors for ComparisonResult"),
    ],
)
def test_what_is_no_result_is_refused(call, tmp_path, content, message):
    path = tmp_path / "results.json"
    path.write_text(content)
    done = call("report", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Hint: run the command that wrote it again" in done.stderr


def test_printed_json_has_no_answers_to_report(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("q.qrels").write_text("q1 0 a 1\n")
    Path("a.run").write_text("q1 Q0 a 1 1.0 a\n")
    Path("printed.json").write_text(call("evaluate", "q.qrels", "a.run", "--format", "json").stdout)
    done = call("report", "printed.json")
    assert done.returncode == 2
    assert "this is printed JSON, without the answers of the systems" in done.stderr
