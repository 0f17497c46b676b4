"""Import modules and look symbols up in them: `importer.py REQUEST PACKAGES...` answers each lookup.

Started as a script in a sandbox, because importing a package runs its code. The request is a JSON file:
`packages` (names of top-level modules), `imports` (modules in the order in which code imports them) and `lookups`:

    ["module", "a.b"]              whether it can be imported
    ["name", "a", "b"]             what `from a import b` binds
    ["member", "a", "b.c"]         the attribute `b.c` of a module that has been imported
    ["parameter", "a", "b", "x"]   whether `a.b` takes the argument `x`
    ["class", "C", "x", "object"]  whether a class of the packages that is named C, or an object of it, has the attribute x

An answer is a line of its own: the line that came by stdin, which packages cannot know, and JSON with the number of the
lookup. What packages themselves write to open files is no such line.

Only the standard library is imported here.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

NO_SUCH_NAME = "cranfield_no_such_name"
"""What has an attribute of this name has one of every name."""
_DIRECTIVE = re.compile(r"^\.\. deprecated::(?P<text>[^\n]*(?:\n[ \t]+[^\n]*)*)", re.MULTILINE)
_SUMMARY = re.compile(r"(?:[^.\n][^\n]*\n)*\s*\Z")
"""Matches the text before a directive that is about the whole symbol: one paragraph at most."""
_SETS_ATTRIBUTES = {"__dict__", "setattr"}
_CHARS = 200
_CATEGORIES = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)

Answer = dict[str, Any]


def there(value: Any, warned: Iterable[str] = ()) -> Answer:
    """A symbol that exists, and why it is deprecated, or why it may be."""
    text = next(iter(warned), "") or deprecation_of(value)
    directive = directive_of(value)
    key = "deprecated" if text or directive["is_of_whole"] else "perhaps_deprecated"
    return {"state": "there", key: text or directive["text"]}


def missing(why: str = "") -> Answer:
    """A symbol that does not exist."""
    return {"state": "missing", "why": why}


def unknown(why: str) -> Answer:
    """A symbol of which nothing is known."""
    return {"state": "unknown", "why": why[:_CHARS]}


def deprecation_of(value: Any) -> str:
    """What `warnings.deprecated` says of an object itself; empty: it is not marked so."""
    marked = _own(value).get("__deprecated__")
    return (marked[:_CHARS] or "deprecated") if isinstance(marked, str) else ""


def directive_of(value: Any) -> Answer:
    """The directive of deprecation in a docstring: after the summary it is about the symbol, elsewhere perhaps about an argument."""
    document = _own(value).get("__doc__")
    text = inspect.cleandoc(document) if isinstance(document, str) else ""
    found = _DIRECTIVE.search(text)
    if found is None:
        return {"text": "", "is_of_whole": False}
    of_whole = _SUMMARY.match(text[: found.start()]) is not None
    return {"text": f"deprecated: {' '.join(found['text'].split())}"[:_CHARS], "is_of_whole": of_whole}


def _own(value: Any) -> dict[str, Any]:
    if isinstance(value, property):
        value = value.fget
    value = getattr(value, "__func__", value)
    if isinstance(value, type):
        return dict(vars(value))
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType | types.ModuleType):
        return {name: getattr(value, name, None) for name in ("__deprecated__", "__doc__")}
    return {}


def read(owner: Any, name: str) -> tuple[Any, list[str]]:
    """An attribute, and the warnings of deprecation that reading it gave."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        value = getattr(owner, name)
    return value, [str(each.message)[:_CHARS] for each in warned if issubclass(each.category, _CATEGORIES)]


@cache
def import_module(name: str) -> Answer:
    """Import a module and those above it; what it warns of, it warns of the first time."""
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        is_it = error.name is not None and (name == error.name or name.startswith(f"{error.name}."))
        return missing() if is_it else unknown(f"{name} cannot be imported: {error}")
    except BaseException as error:  # noqa: BLE001 - whatever the code of a package does
        return unknown(f"{name} cannot be imported: {type(error).__name__}: {error}")
    subject = re.compile(
        rf"\W*(the )?((module|package) )?\W?{re.escape(name)}\W?( (module|package))? (is|was|has|will)\b", re.IGNORECASE
    )
    texts = [str(row.message)[:_CHARS] for row in warned if issubclass(row.category, _CATEGORIES)]
    texts = [text for text in texts if subject.match(text)]
    return there(module, texts)


def name_of(module: str, name: str) -> Answer:
    """`from module import name`."""
    found = import_module(module)
    if found["state"] != "there":
        return found if found["state"] == "unknown" else missing(f"there is no module {module}")
    answer = member_of(module, name)
    if answer["state"] == "missing":
        submodule = import_module(f"{module}.{name}")
        return answer if submodule["state"] == "missing" else submodule
    return answer


def member_of(module: str, path: str) -> Answer:
    """A dotted attribute of a module that has been imported."""
    if module not in sys.modules:
        found = import_module(module)
        if found["state"] != "there":
            return unknown(found.get("why") or f"{module} cannot be imported")
    owner: Any = sys.modules[module]
    answer = there(owner)
    for name in path.split("."):
        try:
            value, warned = read(owner, name)
        except BaseException as error:  # noqa: BLE001 - whatever the code of a package does
            return _not_read(owner, name, error)
        if _takes_any_name(owner) and not _is_defined(owner, name):
            return unknown(f"{_described(owner)} has an attribute of every name")
        answer, owner = there(value, warned), value
    return answer


def _not_read(owner: Any, name: str, error: BaseException) -> Answer:
    if isinstance(error, AttributeError):
        return _absent(owner, name)
    if isinstance(error, ImportError) and not isinstance(error, ModuleNotFoundError):
        return missing(str(error).partition("\n")[0][:_CHARS])
    return unknown(f"reading {name} fails: {type(error).__name__}: {error}")


def _absent(owner: Any, name: str) -> Answer:
    if isinstance(owner, types.ModuleType):
        full = f"{owner.__name__}.{name}"
        try:
            is_module = hasattr(owner, "__path__") and importlib.util.find_spec(full) is not None
        except BaseException:  # noqa: BLE001 - whatever the code of a package does
            is_module = False
        return missing(f"{full} is a module that nothing imports: `import {full}`" if is_module else "")
    if isinstance(owner, type | types.FunctionType | types.BuiltinFunctionType):
        return missing()
    return unknown(f"{_described(owner)} has no such attribute when its module is imported")


def _takes_any_name(owner: Any) -> bool:
    try:
        getattr(owner, NO_SUCH_NAME)
    except BaseException:  # noqa: BLE001 - whatever the code of a package does
        return False
    return True


def _is_defined(owner: Any, name: str) -> bool:
    try:
        inspect.getattr_static(owner, name)
    except AttributeError:
        return False
    return True


def _described(owner: Any) -> str:
    return f"module {owner.__name__}" if isinstance(owner, types.ModuleType) else f"an object of {type(owner).__name__}"


def parameter_of(module: str, path: str, name: str) -> Answer:
    """Whether a function takes an argument of a name."""
    answer = member_of(module, path)
    if answer["state"] != "there":
        return unknown(answer.get("why", ""))
    value: Any = sys.modules[module]
    for part in path.split("."):
        value = getattr(value, part)
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return unknown(f"the arguments of {path} are unknown")
    parameters = signature.parameters.values()
    if any(each.kind is each.VAR_KEYWORD or (each.name == name and each.kind is not each.POSITIONAL_ONLY)
           for each in parameters):  # fmt: skip
        return {"state": "there"}
    if hasattr(value, "__wrapped__") or hasattr(value, "__signature__") or isinstance(value, type):
        return unknown(f"{path} may accept arguments that are not in its signature")
    return missing(f"{path} has no argument {name}")


def attribute_of(classes: Sequence[type], name: str, kind: str) -> Answer:
    """Whether any of the classes, or an object of one, has an attribute; an object of it may get more when it is made."""
    takes_any, modules = "", {"modules": sorted({each.__module__ for each in classes})}
    for each in classes:
        found = [each, *([type(each)] if kind == "class" else [])]
        for owner in found:
            try:
                return there(inspect.getattr_static(owner, name)) | {"modules": [each.__module__]}
            except AttributeError:
                pass
            for base in inspect.getmro(owner):
                if name in vars(base).get("__annotations__", {}) or name in vars(base).get("__slots__", ()):
                    return {"state": "there", "modules": [each.__module__]}
                if base not in {object, type}:
                    takes_any = takes_any or _own_attributes(base)
    if takes_any:
        return unknown(takes_any) | modules
    return missing() | modules if modules["modules"] else {"state": "absent"}


def _own_attributes(base: type) -> str:
    """How a class gives its objects attributes that it does not define; empty: it does not."""
    if {"__getattr__", "__getattribute__"} & vars(base).keys():
        return f"{base.__name__} defines attributes when they are read"
    for name in ("__init__", "__new__"):
        code = getattr(vars(base).get(name), "__code__", None)
        if code is not None and _SETS_ATTRIBUTES & set(code.co_names):
            return f"{base.__name__} sets attributes by name when an object is made"
    return ""


def classes_of(packages: set[str]) -> dict[str, list[type]]:
    """Classes of packages that are in memory, by name."""
    found: dict[str, list[type]] = {}
    for module in list(sys.modules.values()):
        for value in list(vars(module).values()) if isinstance(module, types.ModuleType) else ():
            if isinstance(value, type) and str(getattr(value, "__module__", "")).partition(".")[0] in packages:
                same = found.setdefault(value.__name__, [])
                if not any(value is other for other in same):
                    same.append(value)
    return found


def main() -> None:
    """Answer the lookups one after another, so that a lookup at which this process ends is known."""
    request, *packages = sys.argv[1:]
    given = json.loads(Path(request).read_text(encoding="utf-8"))
    sys.argv = [""]
    sys.path += packages
    token = sys.stdin.readline().strip()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")

    def write(answer: Answer) -> None:
        try:
            answers.write(f"\n{token}{json.dumps(answer)}\n")
            answers.flush()
        except OSError:  # a package has closed it
            os._exit(1)

    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    for name in given["imports"]:
        import_module(name)
        write({"imported": name})
    kinds: dict[str, Callable[..., Answer]] = {
        "module": import_module,
        "name": name_of,
        "member": member_of,
        "parameter": parameter_of,
    }
    classes: dict[str, list[type]] | None = None
    for number, (kind, *arguments) in enumerate(given["lookups"]):
        if kind == "class":
            if classes is None:
                classes = classes_of(set(given["packages"]))
            name, attribute, of = arguments
            answer = attribute_of(classes.get(name, []), attribute, of)
        else:
            answer = kinds[kind](*arguments)
        write({"number": number, **answer})
    os._exit(0)  # what packages registered for the end is not of interest


if __name__ == "__main__":
    main()
