import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from cranfield.base.errors import UnknownNameError
from cranfield.benefit.codecheck.external import ExternalChecker, arguments
from cranfield.benefit.codecheck.python.checker import PythonChecker
from cranfield.benefit.codecheck.registry import checker_for, with_preset
from cranfield.benefit.codecheck.report import CheckReport, CheckState, CodeCheck, Target
from cranfield.benefit.codecheck.settings import CheckerSettings

STAND_IN = Path(__file__).with_name("swiftc_stand_in.py")
MACOS_14 = Target("swift", "macos", "14.0")


@pytest.fixture
def swiftc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "swiftc"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S {STAND_IN} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def check(files: Mapping[str, str], target: Target = MACOS_14, tests: str = "", **settings: object) -> CheckReport:
    configured = {target.language: CheckerSettings.model_validate({"preset": "swiftc", **settings})}
    return asyncio.run(checker_for(target, configured).check(files, target, tests))


PLANTED = """import NoSuchKit
let a = "x".frobnicate()
let b = Widgetry()
func c(_ d: Gadget) {}
let e = stride(from: 0, strideBy: 2)
task.resume(immediately: true)
f(label: 3)
let g = [1].toSortedTwice()
let h: UIWebView
let n: Int = "x"
var unused = 1
let c = NSURLConnection()
"""


@pytest.mark.usefixtures("swiftc")
def test_planted_errors_of_swift_are_found_by_line_and_symbol(capsys: pytest.CaptureFixture[str]):
    report = check({"main.swift": PLANTED})
    found = [(finding.line, finding.check, finding.symbol) for finding in report.findings]
    expected = [
        (1, CodeCheck.SYMBOLS, "NoSuchKit"),
        (2, CodeCheck.SYMBOLS, "frobnicate"),
        (3, CodeCheck.SYMBOLS, "Widgetry"),
        (4, CodeCheck.SYMBOLS, "Gadget"),
        (5, CodeCheck.SYMBOLS, "strideBy"),
        (6, CodeCheck.SYMBOLS, ""),
        (7, CodeCheck.SYMBOLS, "label:"),
        (8, CodeCheck.AVAILABLE, "toSortedTwice()"),
        (9, CodeCheck.AVAILABLE, "UIWebView"),
        (10, CodeCheck.COMPILES, ""),
        (12, CodeCheck.NOT_DEPRECATED, "NSURLConnection"),
    ]
    hits = len(set(found) & set(expected))
    with capsys.disabled():
        print(
            f"\nswiftc, a stand-in: planted errors: {len(expected)}; precision {hits}/{len(found)}, recall {hits}/{len(expected)}"
        )
    assert found == expected
    assert report.findings[-1].current == "URLSession"
    assert report.states == {
        CodeCheck.COMPILES: CheckState.FAILED,
        CodeCheck.SYMBOLS: CheckState.FAILED,
        CodeCheck.AVAILABLE: CheckState.FAILED,
        CodeCheck.NOT_DEPRECATED: CheckState.FAILED,
    }
    assert {finding.file for finding in report.findings} == {"main.swift"}
    assert report.versions["swiftc"].startswith("swift-driver version: 1.115 Apple Swift version 6.0.3")


@pytest.mark.usefixtures("swiftc")
def test_a_symbol_that_is_too_new_is_there_on_a_newer_platform():
    files = {"main.swift": "let g = [1].toSortedTwice()\n"}
    old, new = check(files), check(files, Target("swift", "macos", "15.0"))
    assert (old.states[CodeCheck.AVAILABLE], old.states[CodeCheck.SYMBOLS]) == (CheckState.FAILED, CheckState.PASSED)
    assert set(new.states.values()) == {CheckState.PASSED}


@pytest.mark.usefixtures("swiftc")
def test_an_error_without_a_check_of_its_own_fails_compiling_too():
    report = check({"main.swift": 'let a = "x".frobnicate()\n'})
    assert [(each.check, each.message) for each in report.findings] == [
        (CodeCheck.SYMBOLS, "value of type 'String' has no member 'frobnicate'"),
        (CodeCheck.COMPILES, "not compiled: value of type 'String' has no member 'frobnicate'"),
    ]


@pytest.mark.usefixtures("swiftc")
def test_what_is_not_decided_behind_a_syntax_error_is_missing():
    states = check({"main.swift": "let = 1\n"}).states
    assert states.pop(CodeCheck.COMPILES) is CheckState.FAILED
    assert set(states.values()) == {CheckState.MISSING}


@pytest.mark.usefixtures("swiftc")
def test_what_is_deprecated_and_not_in_the_map_is_a_note():
    report = check({"main.swift": "obscure()\n"})
    assert report.states[CodeCheck.NOT_DEPRECATED] is CheckState.PASSED
    assert report.notes == ("main.swift:1: obscure() is deprecated, but not in the map",)


@pytest.mark.usefixtures("swiftc")
def test_entries_of_a_plan_take_the_place_of_the_map_of_the_package():
    entry = {"symbol": "Old.obscure()", "since": "12.0", "platform": "macos", "current": "clear()", "source": "manual"}
    files = {"main.swift": "obscure()\nlet c = NSURLConnection()\n"}
    found = check(files, deprecations=[entry]).findings
    assert [(each.line, each.symbol, each.current) for each in found] == [(1, "obscure()", "clear()")]
    assert check(files, Target("swift", "macos", "11.0"), deprecations=[entry]).findings == ()


def test_the_memory_of_a_checker_is_limited():
    command = [sys.executable, "-S", "-c", "bytearray(2 << 30)"]
    report = check({"a": ""}, Target("lua"), preset="", command=command, line="x", memory_mb=512)
    assert set(report.states.values()) == {CheckState.MISSING}
    assert "Traceback" in report.notes[0]


@pytest.mark.usefixtures("swiftc")
@pytest.mark.parametrize(
    ("name", "target", "settings", "note"),
    [
        ("main.swift", Target("swift", "macos", "9.9"), {}, "swiftc: <unknown>: unable to load standard library"),
        ("main.swift", Target("swift", "amiga", "3.1"), {}, "swiftc: no target for platform 'amiga'"),
        ("HANG.swift", MACOS_14, {"timeout_s": 0.3}, "swiftc: time limit of 0.3 s exceeded"),
        ("main.swift", MACOS_14, {"command": ["no-such-compiler"]}, "swiftc: exit status 127: "),
        ("main.swift", MACOS_14, {"command": ["sh", "-c", "kill -9 $$"]}, "swiftc: killed by SIGKILL"),
        ("main.swift", MACOS_14, {"command": ["sh", "-c", "echo internal; exit 3"]}, "swiftc: exit status 3: internal"),
    ],
)
def test_a_compiler_that_cannot_check_is_a_missing_check_and_no_failure(
    name: str, target: Target, settings: Mapping[str, object], note: str
):
    report = check({name: "let a = 1\n"}, target, **settings)
    assert set(report.states.values()) == {CheckState.MISSING}
    assert report.findings == ()
    assert report.notes[-1].startswith(note)


@pytest.mark.usefixtures("swiftc")
def test_files_that_are_no_source_are_not_written_and_tests_are_not_run():
    files = {"main.swift": "let a = 1\n", "Package.swift.json": "{}", "../x.swift": "", "/etc/y.swift": ""}
    report = check(files, tests="assert true")
    assert report.states[CodeCheck.COMPILES] is CheckState.PASSED
    assert report.states[CodeCheck.TESTS] is CheckState.MISSING
    assert report.notes == (
        "a command checker does not run tests",
        "../x.swift: not checked: outside the folder of the answer",
        "/etc/y.swift: not checked: outside the folder of the answer",
        "Package.swift.json: not checked: not a source file of the language",
    )
    nothing = check({"README.md": "no code"})
    assert nothing.states[CodeCheck.COMPILES] is CheckState.FAILED
    assert [finding.message for finding in nothing.findings] == ["no source file in this language"]


def test_an_argument_without_a_value_is_left_out_with_its_option():
    command = ["c", "-target", "{target}", "-sdk", "{sdk}", "-v{version}", "{files}", "{other}"]
    values = {"target": "", "sdk": "/sdk", "version": "1"}
    assert list(arguments(command, values, ["a.c", "b.c"])) == ["c", "-sdk", "/sdk", "-v1", "a.c", "b.c", "{other}"]


def test_a_checker_of_another_language_is_a_command_that_writes_json():
    rows = [
        {"file": "main.lua", "line": 2, "severity": "error", "message": "undefined global 'prnt'", "code": "E113"},
        {"file": "main.lua", "line": 3, "severity": "hint", "message": "shadowing", "code": "W4"},
    ]
    settings = {
        "preset": "",
        "command": [sys.executable, "-S", "-c", f"print({json.dumps(json.dumps({'found': rows}))})", "{files}"],
        "json_list": "found",
        "rules": [{"check": "symbols", "code": "E113", "text": "'(?P<symbol>\\w+)'"}],
    }
    report = check({"main.lua": "prnt('x')"}, Target("lua", "", "5.4"), **settings)
    assert [(each.check, each.line, each.symbol, each.rule) for each in report.findings] == [
        (CodeCheck.SYMBOLS, 2, "prnt", "E113"),
        (CodeCheck.COMPILES, 2, "", ""),
    ]
    assert report.states[CodeCheck.AVAILABLE] is CheckState.MISSING
    assert report.notes == (
        "available: the checker has no rule for it",
        "not_deprecated: the checker has no rule for it",
    )


@pytest.mark.parametrize(
    ("output", "note"), [("text", "the output is not JSON: text"), ("[]", "the output has no list")]
)
def test_an_output_that_cannot_be_read_is_a_missing_check(output: str, note: str):
    settings = {"preset": "", "command": ["echo", output], "json_list": "found"}
    report = check({"main.lua": ""}, Target("lua"), **settings)
    assert set(report.states.values()) == {CheckState.MISSING}
    assert report.notes[0].startswith(note)


def test_the_environment_of_a_checker_is_an_allow_list(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("API_KEY", "secret")
    script = "import os,json; print(json.dumps({'found': [{'file': 'a', 'message': ' '.join(sorted(os.environ))}]}))"
    settings = {
        "preset": "",
        "command": [sys.executable, "-S", "-c", script],
        "json_list": "found",
        "env": {"A_B": "1"},
    }
    report = check({"a": ""}, Target("lua"), **settings)
    names = {name for name in report.findings[0].message.split() if not name.startswith(("_", "CRANFIELD_", "LC_"))}
    assert names - {"PWD", "SHLVL", "OLDPWD"} == {"A_B", "HOME", "LANG", "PATH", "TMPDIR"}


def test_settings_of_a_preset_are_replaced_one_by_one():
    settings = with_preset(
        CheckerSettings.model_validate({"preset": "swiftc", "values": {"sdk": "/sdk"}, "timeout_s": 5})
    )
    assert settings.values == {"sdk": "/sdk", "swift": "", "module_cache": ""}
    assert (settings.timeout_s, settings.command[0]) == (5, "swiftc")


def test_every_language_has_its_checker_and_a_configured_one_comes_first():
    assert isinstance(checker_for(Target("typescript"), {}), ExternalChecker)
    assert isinstance(checker_for(Target("python"), {}), PythonChecker)
    assert isinstance(checker_for(Target("python"), {"python": CheckerSettings(preset="tsc")}), ExternalChecker)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "a checker needs either a `command` or a `preset`"),
        ({"command": ["x"]}, "give either"),
        ({"command": ["x"], "line": "a", "json_list": "b"}, "give either"),
        ({"command": ["x"], "line": "("}, "is not a regular expression"),
    ],
)
def test_settings_that_say_nothing_are_refused(settings: Mapping[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        CheckerSettings.model_validate(settings)


def test_a_language_without_a_checker_is_refused():
    with pytest.raises(UnknownNameError, match="unknown language of a checker 'cobol'"):
        checker_for(Target("cobol"), {})
