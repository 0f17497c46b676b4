"""Import user modules from the folders of a config.

The folders are on `sys.path` only during the import. Modules of the same name in the folders of two systems do not
conflict: those of other folders are removed from `sys.modules` during the import.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import PathFinder
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cranfield.systems.calls.stages import CheckFailedError
from cranfield.systems.kinds.function import error_text, error_text_with_place

if TYPE_CHECKING:
    from modulefinder import ModuleFinder

PACKAGE = 5
"""Kind of a package in the triples of `ModuleFinder`."""

_lock = RLock()
_own: dict[tuple[str, ...], dict[str, ModuleType]] = {}
"""Modules imported from each sequence of folders."""


def import_name(module: str, name: str, folders: Sequence[Path]) -> object:
    """Import an object from a module.

    Args:
        module: dotted name of the module.
        name: dotted name of the object in it.
        folders: searched first.

    Raises:
        CheckFailedError: with the error of the import, and its file and line.
    """
    with _first_on_path(folders):
        found: object = _imported(module, folders)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            known = sorted(key for key in vars(found) if not key.startswith("_")) if hasattr(found, "__dict__") else []
            hint = f"it has {', '.join(known[:12])}." if known else None
            raise CheckFailedError(f"{name} in the module {module}", "nothing of that name", hint) from None
        except Exception as error:  # noqa: BLE001 - module code may raise anything
            raise CheckFailedError(f"{name} in the module {module}", error_text(error)) from None
    return found


def module_files(module: str, folders: Sequence[Path]) -> Iterator[Path]:
    """Files of a module and of the modules that it imports from the same folders; nothing is executed.

    For a module outside of the folders, only its own file.
    """
    inside = _module_finder([str(folder) for folder in folders])
    with suppress(ImportError, SyntaxError, OSError, ValueError, RecursionError):
        inside.import_hook(module)
    named = (getattr(found, "__file__", None) for found in inside.modules.values())
    files = {Path(file) for file in named if file}
    if not files:
        *packages, last = module.split(".")
        for folder in map(Path, sys.path):
            base = folder.joinpath(*packages)
            candidates = (base / f"{last}.py", base / last / "__init__.py")
            if (file := next((path for path in candidates if path.is_file()), None)) is not None:
                files = {file}
                break
    yield from sorted(files)


def _module_finder(folders: list[str]) -> ModuleFinder:
    """A finder that also follows packages without an `__init__.py`, at which `ModuleFinder` raises AttributeError."""
    from modulefinder import ModuleFinder

    class Finder(ModuleFinder):
        def find_module(self, name: str, path: Any, parent: Any = None) -> Any:
            spec = PathFinder.find_spec(name, self.path if path is None else path)
            if spec is not None and spec.loader is None and spec.submodule_search_locations:
                return None, next(iter(spec.submodule_search_locations)), ("", "", PACKAGE)
            return super().find_module(name, path, parent)

        def load_package(self, fqname: str, pathname: str) -> Any:
            if (Path(pathname) / "__init__.py").is_file():
                return super().load_package(fqname, pathname)
            package: Any = self.add_module(fqname)
            package.__path__ = [pathname]
            return package

    return Finder(path=folders)


def _imported(module: str, folders: Sequence[Path]) -> ModuleType:
    expected = f"the module {module}"
    try:
        found = importlib.import_module(module)
    except SyntaxError as error:
        where = f"{Path(error.filename or module).name}, line {error.lineno}"
        raise CheckFailedError(expected, f"{where}: {error.msg}") from None
    except ModuleNotFoundError as error:
        hint = "modules are searched for in cwd, in the config's folder, and where Python is installed."
        missing = f"no module named {error.name}" if error.name == module else error_text_with_place(error)
        raise CheckFailedError(expected, missing, hint) from None
    except (Exception, SystemExit) as error:
        raise CheckFailedError(expected, error_text_with_place(error)) from error
    top = module.partition(".")[0]
    here = PathFinder.find_spec(top, [str(folder) for folder in folders])
    loaded = getattr(sys.modules.get(top), "__file__", None)
    if here is not None and here.origin is not None and loaded is not None and not _is_same(here.origin, loaded):
        hint = "give the file another name."
        raise CheckFailedError(f"{expected} of the system's folder", "another module of that name, loaded before", hint)
    return found


@contextmanager
def _first_on_path(folders: Sequence[Path]) -> Iterator[None]:
    """Put folders first on `sys.path`, and hide modules of other systems' folders."""
    mine = tuple(dict.fromkeys(str(folder) for folder in folders))
    with _lock:
        for key, modules in _own.items():
            for name, module in modules.items() if key != mine else ():
                if sys.modules.get(name) is module and PathFinder.find_spec(name.partition(".")[0], list(mine)):
                    del sys.modules[name]
        sys.modules.update(_own.get(mine, {}))
        before = set(sys.modules)
        sys.path[:0] = mine
        importlib.invalidate_caches()
        try:
            yield
        finally:
            for folder in mine:  # additions of the module to the path remain
                with suppress(ValueError):
                    sys.path.remove(folder)
            new = {name: sys.modules[name] for name in set(sys.modules) - before}
            own = {name: module for name, module in new.items() if _lies_in(module, mine)}
            _own.setdefault(mine, {}).update(own)


def _lies_in(module: ModuleType, folders: Sequence[str]) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and any(Path(file).is_relative_to(folder) for folder in folders)


def _is_same(path: str, other: str) -> bool:
    with suppress(OSError):
        return Path(path).samefile(other)
    return path == other
