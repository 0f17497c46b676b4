"""TypeScript by the library of its compiler, installed from npm in one pinned version."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.npm_package import node_modules

from cranfield.benefit.codecheck.registry import checker_for
from cranfield.benefit.codecheck.report import CheckReport, CheckState, CodeCheck, Target, packaged_deprecations
from cranfield.benefit.codecheck.settings import CheckerSettings

pytestmark = pytest.mark.slow  # a compiler is installed from npm, and started some ten times

PACKAGE = Path(__file__).with_name("typescript")
MODERN = Target("typescript", "", "es2022")


@pytest.fixture(scope="module")
def typescript() -> str:
    """Folder of the package."""
    return str(node_modules(PACKAGE) / "typescript")


def check(typescript: str, files: Mapping[str, str], target: Target = MODERN, **values: str) -> CheckReport:
    settings = {"typescript": CheckerSettings(preset="tsc", values={"typescript": typescript, **values})}
    return asyncio.run(checker_for(target, settings).check(files, target))


PLANTED = {
    'import { pad } from "left-pad-9";': (CodeCheck.SYMBOLS, "left-pad-9"),
    'import { nothing } from "./other";': (CodeCheck.SYMBOLS, "nothing"),
    'const a = "x".replaceEvery("a", "b");': (CodeCheck.SYMBOLS, "replaceEvery"),
    "const b = new Date().toTimeZone(1);": (CodeCheck.SYMBOLS, "toTimeZone"),
    "structuredCloned(1);": (CodeCheck.SYMBOLS, "structuredCloned"),
    'parseInt("1", 2, 3);': (CodeCheck.SYMBOLS, "3"),
    'fetch("x", { methods: "GET" });': (CodeCheck.SYMBOLS, "methods"),
    "let c: Itl.DateTimeFormat;": (CodeCheck.SYMBOLS, "Itl"),
    "const d = [2, 1].toSorted();": (CodeCheck.AVAILABLE, "toSorted"),
    "const e = Object.groupBy([1], () => 1);": (CodeCheck.AVAILABLE, "groupBy"),
    "const f = new Set([1]).union(new Set([2]));": (CodeCheck.AVAILABLE, "union"),
    'const g = "x".substr(1);': (CodeCheck.NOT_DEPRECATED, "String.substr"),
    'escape("x");': (CodeCheck.NOT_DEPRECATED, "escape"),
    'document.execCommand("copy");': (CodeCheck.NOT_DEPRECATED, "Document.execCommand"),
    "addEventListener('keydown', (x) => x.keyCode);": (CodeCheck.NOT_DEPRECATED, "KeyboardEvent.keyCode"),
    "// @ts-ignore\n[1].findBest();": (CodeCheck.SYMBOLS, "findBest"),
    "// @ts-expect-error\n[1].findWorst();": (CodeCheck.SYMBOLS, "findWorst"),
    "Math.max(true);": (CodeCheck.COMPILES, "true"),
    "const h: number = 'x';": (CodeCheck.COMPILES, "h"),
}
RIGHT = """
export function words(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [word] of text.matchAll(/\\p{L}+/gu)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}
export const last = <T>(items: readonly T[]): T | undefined => items.at(-1);
export async function getJson(url: string): Promise<unknown> {
  const reply = await fetch(url, { headers: { accept: "application/json" } });
  if (!reply.ok) throw new Error(`${reply.status}`, { cause: reply });
  return structuredClone(await reply.json());
}
export class Counter {
  #n = 0;
  increment(by = 1): this { this.#n += by; return this; }
  get value(): number { return this.#n; }
}
export const parts = new Intl.DateTimeFormat("de", { month: "long" }).formatToParts(new Date(0));
export const safe = encodeURIComponent("a b").replaceAll("%20", "+");
export const has = Object.hasOwn({ a: 1 }, "a") && "abc".slice(-2).trimStart().includes("b");
"""


def test_planted_errors_are_found_and_nothing_else_is(typescript: str, capsys: pytest.CaptureFixture[str]):
    lines, expected = ["/// <reference lib='esnext' />"], set()
    for text, (kind, symbol) in PLANTED.items():
        lines += text.split("\n")
        expected.add((len(lines), kind, symbol))
    report = check(typescript, {"main.ts": "\n".join(lines), "other.ts": RIGHT})
    found = {(each.line, each.check, each.symbol) for each in report.findings if each.file == "main.ts"}
    with capsys.disabled():
        hits = len(found & expected)
        print(
            f"\ntsc: precision {hits / len(found):.3f}, recall {hits / len(expected):.3f} on {len(expected)} planted errors"
        )
    assert found == expected
    assert [each for each in report.findings if each.file == "other.ts"] == []
    assert report.versions == {"tsc": "Version 5.9.3"}


def test_right_code_passes_every_check(typescript: str):
    report = check(typescript, {"main.ts": RIGHT})
    assert set(report.states.values()) == {CheckState.PASSED}
    assert (report.findings, report.unknown, report.notes) == ((), (), ())


def test_a_later_edition_has_what_an_earlier_one_lacks(typescript: str):
    files = {"main.ts": "export const d = [2, 1].toSorted();"}
    assert check(typescript, files).states[CodeCheck.AVAILABLE] is CheckState.FAILED
    assert set(check(typescript, files, Target("typescript", "", "es2023")).states.values()) == {CheckState.PASSED}
    notes = check(typescript, files, Target("typescript", "", "es1999")).notes
    assert "unknown edition es1999" in notes[0]


def test_a_syntax_error_leaves_the_other_checks_open(typescript: str):
    report = check(typescript, {"main.ts": "const = 1;"})
    assert report.states.pop(CodeCheck.COMPILES) is CheckState.FAILED
    assert set(report.states.values()) == {CheckState.MISSING}


def test_what_is_declared_and_not_defined_is_unknown(typescript: str):
    report = check(typescript, {"main.ts": "declare function ghost(): void;\nghost();", "ghost.d.ts": "export {};"})
    assert report.states.pop(CodeCheck.COMPILES) is CheckState.PASSED
    assert set(report.states.values()) == {CheckState.UNKNOWN}
    assert [(each.line, each.rule) for each in report.unknown] == [(1, "ambient")]
    assert report.notes == ("ghost.d.ts: not checked: not a source file of the language",)


def test_a_platform_without_a_browser_has_no_document(typescript: str):
    report = check(typescript, {"main.ts": "document.title;"}, Target("typescript", "node", "es2022"))
    assert next((each.check, each.symbol) for each in report.findings) == (CodeCheck.AVAILABLE, "document")


def test_packages_of_a_folder_may_be_imported(typescript: str, tmp_path: Path):
    package = tmp_path / "small"
    package.mkdir()
    (package / "package.json").write_text('{"name": "small", "types": "index.d.ts"}')
    (package / "index.d.ts").write_text("export function there(): number;")
    code = 'import { there, gone } from "small";\nthere();'
    found = check(typescript, {"main.ts": code}, modules=str(tmp_path)).findings
    assert next((each.check, each.symbol) for each in found) == (CodeCheck.SYMBOLS, "gone")


def test_the_compiler_knows_every_deprecated_symbol_of_the_map(typescript: str):
    uses = {
        "String": '"x".NAME', "Document": "document.NAME", "Event": "(null! as Event).NAME", "UIEvent": "(null! as UIEvent).NAME",
        "KeyboardEvent": "(null! as KeyboardEvent).NAME", "Performance": "performance.NAME", "": "NAME",
    }  # fmt: skip
    entries = packaged_deprecations("typescript").entries
    names = [entry.symbol.rpartition(".")[::2] for entry in entries]
    code = "\n".join(f"void {uses[owner].replace('NAME', name)};" for owner, name in names)
    report = check(typescript, {"main.ts": code})
    assert [(each.symbol, each.current) for each in report.findings] == [
        (each.symbol, each.current) for each in entries
    ]
