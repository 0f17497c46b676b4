"""Writes the diagnostics that a Swift compiler has for known fragments, in its format: a stand-in where there is none."""

import os
import re
import sys
from pathlib import Path

VERSION = "swift-driver version: 1.115 Apple Swift version 6.0.3 (swiftlang-6.0.3.1.10 clang-1600.0.30.1)"
SINCE = {"toSortedTwice()": (15, 0), "Observable": (14, 0)}
KNOWN = [
    (r"frobnicate", "error", "value of type 'String' has no member 'frobnicate'"),
    (r"Widgetry\(", "error", "cannot find 'Widgetry' in scope"),
    (r": Gadget", "error", "cannot find type 'Gadget' in scope"),
    (r"import NoSuchKit", "error", "no such module 'NoSuchKit'"),
    (r"strideBy:", "error", "extra argument 'strideBy' in call"),
    (r"resume\(immediately", "error", "argument passed to call that takes no arguments"),
    (r"label: 3", "error", "incorrect argument label in call (have 'label:', expected 'count:')"),
    (
        r"NSURLConnection\(",
        "warning",
        "'NSURLConnection' was deprecated in macOS 10.11: Use NSURLSession (see NSURLSession.h)",
    ),
    (r"obscure\(\)", "warning", "'obscure()' is deprecated: nobody knows why"),
    (r"UIWebView", "error", "'UIWebView' is unavailable in macOS"),
    (r"let n: Int = \"", "error", "cannot convert value of type 'String' to specified type 'Int'"),
    (r"let = 1", "error", "expected pattern"),
    (r"var unused", "warning", "variable 'unused' was never used; consider replacing with '_' or removing it"),
]


def main() -> int:
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print(VERSION)
        return 0
    files = [name for name in arguments if name.endswith(".swift")]
    target = arguments[arguments.index("-target") + 1] if "-target" in arguments else ""
    minimum = re.search(r"macosx(\d+)\.(\d+)", target)
    if "HANG" in files[0]:
        os.execvp("sleep", ["sleep", "60"])
    if target.endswith("macosx9.9"):
        print(f"<unknown>:0: error: unable to load standard library for target '{target}'", file=sys.stderr)
        return 1
    failed = False
    for name in files:
        for number, text in enumerate(Path(name).read_text(encoding="utf-8").splitlines(), 1):
            found = [(kind, message, re.search(pattern, text)) for pattern, kind, message in KNOWN]
            for symbol, since in SINCE.items():
                if minimum and tuple(map(int, minimum.groups())) < since and symbol in text:
                    place = re.search(re.escape(symbol), text)
                    found.append(
                        ("error", f"'{symbol}' is only available in macOS {since[0]}.{since[1]} or newer", place)
                    )
            for kind, message, place in found:
                if place is not None:
                    failed = failed or kind == "error"
                    print(f"{Path(name).resolve()}:{number}:{place.start() + 1}: {kind}: {message}", file=sys.stderr)
                    print(text.rstrip() + "\n" + " " * place.start() + "^", file=sys.stderr)
                    print(
                        f"{Path(name).resolve()}:{number}:1: note: add 'if #available' version check", file=sys.stderr
                    )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
