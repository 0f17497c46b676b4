"""Index functions and classes of some modules of Python itself. Usage: build_index.py [FILE]"""

import ast
import re
import sqlite3
import sys
import sysconfig
from pathlib import Path

FOLDER = Path(__file__).parent
STDLIB = Path(sysconfig.get_paths()["stdlib"])
MODULES = [
    "bisect",
    "calendar",
    "colorsys",
    "configparser",
    "contextlib",
    "copy",
    "csv",
    "difflib",
    "filecmp",
    "fnmatch",
    "fractions",
    "glob",
    "graphlib",
    "gzip",
    "heapq",
    "linecache",
    "mimetypes",
    "random",
    "secrets",
    "shlex",
    "shutil",
    "statistics",
    "string",
    "tempfile",
    "textwrap",
    "timeit",
    "json/__init__",
    "html/__init__",
    "urllib/parse",
]


def definitions(path, body, prefix=""):
    """Id, name and text of everything in a module that says what it does."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            says = ast.get_docstring(node)
            if says:
                words = re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", node.name)
                yield f"{path}::{prefix}{node.name}", f"{node.name} {words}", says
            if isinstance(node, ast.ClassDef):
                yield from definitions(path, node.body, f"{prefix}{node.name}.")


def build(target):
    rows = []
    for module in MODULES:
        path = f"{module}.py"
        rows += definitions(path, ast.parse((STDLIB / path).read_text(encoding="utf-8")).body)
    Path(target).unlink(missing_ok=True)
    with sqlite3.connect(target) as index:
        index.execute("CREATE VIRTUAL TABLE entity USING fts5(id UNINDEXED, name, text, tokenize='porter')")
        index.executemany("INSERT INTO entity VALUES (?, ?, ?)", rows)
    index.close()
    return len(rows)


if __name__ == "__main__":
    print(build(sys.argv[1] if sys.argv[1:] else FOLDER / "index.db"), "entities")
