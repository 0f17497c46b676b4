"""Symbols of packages that do not exist: how many are found, and how much that is right is called wrong. `code_symbols.py [CORPUS]` prints a table.

`code_symbols.yaml` has sixty snippets of ten packages, half of them with one symbol that was invented, misspelled or removed;
the others are right, and their reasons say why they look doubtful. The packages are installed in the pinned versions, into the cache.

A snippet is called wrong where `symbols` or `available` fails, and a right one where any check does. Precision is the share of these that are labelled wrong, and that
name the symbol of the label; recall the share of the wrong ones that are called wrong so. "unknown" counts snippets whose
wrong symbol, or some symbol of a right one, could not be looked up: these are no hits, and no false alarms. The last
columns count symbols: all that were looked at, and those that are unknown.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cranfield.base.concurrency.loop import event_loop
from cranfield.benefit.codecheck.python.checker import PythonChecker
from cranfield.benefit.codecheck.report import CheckReport, CodeCheck, CodeFinding, Target

CORPUS = Path(__file__).with_name("code_symbols.yaml")
EXISTENCE = {CodeCheck.SYMBOLS, CodeCheck.AVAILABLE}


@dataclass
class Counts:
    """Of the snippets of a package."""

    wrong: int = 0
    found: int = 0
    wrong_unknown: int = 0
    passed: int = 0
    """Wrong snippets in which everything passed."""
    right: int = 0
    alarms: int = 0
    right_unknown: int = 0
    symbols: int = 0
    unknown: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Of both."""
        return Counts(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


def names(finding: CodeFinding, symbol: str) -> bool:
    """Whether a finding is about a symbol."""
    return symbol in re.split(r"[\s().`=]+", f"{finding.symbol} {finding.message}")


def judge(snippet: dict[str, Any], report: CheckReport) -> Counts:
    """Counts of one snippet."""
    failed = [finding for finding in report.findings if finding.check in EXISTENCE]
    unknown = [finding for finding in report.unknown if finding.check is CodeCheck.SYMBOLS]
    counts = Counts(symbols=report.n_symbols, unknown=len(unknown))
    if symbol := snippet.get("wrong"):
        hits = [finding for finding in failed if names(finding, symbol)]
        counts.wrong, counts.found = 1, int(bool(hits))
        counts.wrong_unknown = int(not hits and any(names(finding, symbol) for finding in unknown))
        counts.passed = int(not hits and not counts.wrong_unknown)
        counts.alarms = int(any(finding not in hits for finding in failed))
    else:
        failed = list(report.findings)
        counts.right, counts.alarms = 1, int(bool(failed))
        counts.right_unknown = int(bool(unknown) and not failed)
    return counts


def main() -> None:
    """Check all snippets, and print the table and what is not as labelled."""
    corpus = yaml.safe_load(Path(sys.argv[1] if sys.argv[1:] else CORPUS).read_text(encoding="utf-8"))
    packages = {name: str(version) for name, version in corpus["packages"].items()}
    target = Target("python", "linux", corpus["python"], packages)
    checker, found, details = PythonChecker(), defaultdict[str, Counts](Counts), list[str]()
    for snippet in corpus["snippets"]:
        report = event_loop().run(checker.check({"main.py": snippet["code"]}, target))
        if report.n_symbols == 0:
            sys.exit(f"{snippet['package']}: nothing was looked at: {'; '.join(report.notes)}")
        counts = judge(snippet, report)
        found[snippet["package"]] += counts
        if counts.alarms or counts.passed or counts.wrong_unknown or counts.right_unknown:
            what = f"wrong: {snippet['wrong']}" if "wrong" in snippet else f"right: {snippet['right']}"
            said = [f"{each.line} {each.symbol}: {each.message}" for each in (*report.findings, *report.unknown)]
            details.append(
                f"- {snippet['package']}, {what} ({snippet['reason']}): {'; '.join(said) or 'everything passed'}"
            )
    print_table({**found, "all": sum(found.values(), Counts())}, packages)
    print("\nSnippets with something unknown, missed or called wrong:\n")
    print("\n".join(details))


def print_table(found: dict[str, Counts], packages: dict[str, str]) -> None:
    """One row a package."""
    print(
        "| package | precision | recall | wrong: found, unknown, passed | right: passed, unknown, called wrong | unknown of symbols |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    for name, each in found.items():
        called = each.found + each.alarms
        row = [
            f"{name} {packages.get(name, '')}".strip(),
            f"{each.found}/{called} = {each.found / called:.2f}" if called else "none called wrong",
            f"{each.found}/{each.wrong} = {each.found / each.wrong:.2f}",
            f"{each.found}, {each.wrong_unknown}, {each.passed}",
            f"{each.right - each.alarms - each.right_unknown}, {each.right_unknown}, {each.alarms}",
            f"{each.unknown} of {each.symbols} ({100 * each.unknown / each.symbols:.1f} %)",
        ]
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
