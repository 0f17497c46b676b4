"""Entry of the standalone program: the command, and the Python of the programs that it starts.

Cranfield runs some of its own modules, and the Python of a config (`{python}`, `python: module:function`), in processes of
`sys.executable`. In the standalone program that is the program itself: called with an option of an interpreter, or with a file
that ends in .py, it acts as one. It has Python's library and the packages that are built in, and no others.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

SWITCHES = {"-I", "-S", "-P", "-s", "-E", "-B", "-u", "-q"}
"""Options of an interpreter without a value: nothing but what is built in can be imported, whatever they say."""
WITH_VALUE = {"-W", "-X"}


def as_interpreter(arguments: list[str]) -> bool:
    """Whether the arguments are those of an interpreter; if so, what they name has been run."""
    begin = 0
    while begin < len(arguments) and arguments[begin] in SWITCHES | WITH_VALUE:
        begin += 2 if arguments[begin] in WITH_VALUE else 1
    switches, rest = arguments[:begin], arguments[begin:]
    if not rest or not (rest[0] in {"-c", "-m"} or rest[0].endswith((".py", ".pyc"))):
        return False
    is_alone = not {"-I", "-P"}.isdisjoint(switches)
    if rest[0] == "-c" and len(rest) > 1:
        sys.argv = ["-c", *rest[2:]]
        sys.path[:0] = [] if is_alone else [""]
        exec(compile(rest[1], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})  # noqa: S102
    elif rest[0] == "-m" and len(rest) > 1:
        sys.argv = rest[1:]
        sys.path[:0] = [] if is_alone else [str(Path.cwd())]
        runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
    else:
        path = rest[0].removesuffix(
            "c"
        )  # a module that is built in has a file that ends in .pyc, and its source beside it
        sys.argv = [path, *rest[1:]]
        sys.path[:0] = [] if is_alone else [str(Path(path).resolve().parent)]
        runpy.run_path(path, run_name="__main__")
    return True


if __name__ == "__main__":
    sys.frozen = False  # the packages that look for it would start this program in other ways
    if not as_interpreter(sys.argv[1:]):
        from cranfield.cli.main import main

        main()
