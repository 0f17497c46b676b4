"""The packages that code may import: what lies in their folder, read without running any of it."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from cranfield.benefit.codecheck.python.ty import CheckerError

_MODULE_SUFFIXES = {".py", ".so", ".pyd", ".pyi"}
_STUBS = "-stubs"
_CLASS = re.compile(r"^\s*class\s+(\w+)", re.MULTILINE)
_MAX_BYTES = 256 << 20
"""Most bytes of texts that are searched for the names of classes."""
OF_FOLDER, OF_LINKED = PACKAGES = ("/packages/folder", "/packages/linked")
"""Where packages lie in a sandbox."""


@dataclass(frozen=True)
class Environment:
    """Packages in a folder, and the Python that they are of."""

    folder: Path | None = None
    """Folder of packages; None: there are none besides the standard library."""
    linked: tuple[Path, ...] = ()
    """Folders and files of modules that lie elsewhere, as those of editable installations do."""
    version: str = ""
    """Version of Python: `3.12`."""
    python: str = ""
    """Path of a Python of this version; empty: there is none here."""
    left_out: tuple[str, ...] = ()
    """What is not read of it, with the reason."""

    @property
    def inside(self) -> dict[str, Path]:
        """Its packages by their paths in a sandbox: below `PACKAGES`, and nothing else of the folders that they lie in."""
        found = {f"{OF_LINKED}/{path.name}": path for path in self.linked}
        return {OF_FOLDER: self.folder, **found} if self.folder else found

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Versions of packages, by name."""
        return {_normal(each.name): each.version for each in self._distributions}

    @cached_property
    def modules(self) -> Mapping[str, str]:
        """Modules of the first level, and which packages they are of: `numpy 2.3.5`; empty: no package says."""
        packages: dict[str, set[str]] = defaultdict(set)
        for each in self._distributions:
            for top in _top_modules(each):
                packages[top].add(f"{each.name} {each.version}")
        return {name: ", ".join(sorted(packages[name])[:3]) for name in map(_module, self._paths)}

    @cached_property
    def typed(self) -> frozenset[str]:
        """Modules of the first level that come with types."""
        stubs = {path.name.removesuffix(_STUBS) for path in self._content if path.name.endswith(_STUBS)}
        typed = {_module(path) for path in self._paths if path.suffix == ".pyi" or (path / "py.typed").is_file()}
        return frozenset(stubs | typed)

    def package_of(self, module: str) -> str:
        """The packages of a module, with versions; empty: it is of none."""
        return self.modules.get(module.partition(".")[0], "")

    def has(self, module: str) -> bool:
        """Whether a module is of a package."""
        return module.partition(".")[0] in self.modules

    def is_untyped(self, module: str) -> bool:
        """Whether a module is of a package that comes without types."""
        return self.has(module) and module.partition(".")[0] not in self.typed

    def may_define(self, name: str) -> bool:
        """Whether a package without types has a class of a name, by its text."""
        untyped = [path for path in self._paths if _module(path) not in self.typed]
        names = _classes(tuple((path, path.stat().st_mtime_ns) for path in untyped))
        return names is None or name in names

    def require(self, packages: Mapping[str, str]) -> None:
        """Compare with the packages that a target names.

        Raises:
            CheckerError: one is not there, or in another version.
        """
        wrong = []
        for name, version in packages.items():
            there = self.versions.get(_normal(name), "")
            if not there:
                wrong.append(f"{name} is not there")
            elif version and not f"{there}.".startswith(f"{version}."):
                wrong.append(f"{name} is {there}; expected {version}")
        if wrong:
            raise CheckerError(f"the packages do not match the target: {'; '.join(wrong)}")

    @cached_property
    def _distributions(self) -> Sequence[Distribution]:
        return _distributions_in([*([self.folder] if self.folder else []), *{path.parent: 0 for path in self.linked}])

    @cached_property
    def _content(self) -> Sequence[Path]:
        return sorted(self.folder.iterdir()) if self.folder else []

    @cached_property
    def _paths(self) -> Sequence[Path]:
        """Modules of the first level."""
        return [path for path in (*self._content, *self.linked) if _is_module(path)]


def existing_environment(given: str) -> Environment:
    """The packages of an environment that a user has made. Nothing in it is run.

    Args:
        given: folder of the environment, or its Python.

    Raises:
        CheckerError: it is no environment of Python, or one that shares the packages of another.
    """
    path = Path(given)
    root = path.parent.parent if path.is_file() else path
    config = root / "pyvenv.cfg"
    try:
        settings = config.read_text("utf-8") if config.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CheckerError(f"environment {given}: {config.name} cannot be read: {why}") from None
    if re.search(r"(?im)^include-system-site-packages\s*=\s*true", settings):
        raise CheckerError(
            f"environment {given} shares the packages of another Python (include-system-site-packages); "
            "expected a separate environment"
        )
    folders = sorted(root.glob("lib/python3*/site-packages"))
    if not folders:
        raise CheckerError(
            f"environment {given} has no lib/python3.*/site-packages; expected the folder of an environment, "
            "such as .venv, or its Python"
        )
    if len(folders) > 1 and not path.is_file():
        raise CheckerError(f"environment {given} has several Python versions; expected the path of its Python")
    version = folders[0].parent.name.removeprefix("python")
    if len(folders) > 1:
        version = re.sub(r"^python", "", path.resolve().name) or version
        folders = [folder for folder in folders if folder.parent.name == f"python{version}"]
    python = (path if path.is_file() else root / "bin" / "python").resolve()
    found = folders[0].resolve()
    linked, left_out = _linked(found)
    return Environment(found, linked, version, str(python) if python.is_file() else "", left_out)


def _linked(folder: Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Modules in folders that `.pth` files name, as far as a package names them; and what is left out.

    A folder within an editable project, such as its `src`, is of that package; of every other folder, as the whole project or
    the whole disk, only what has the name of a module of a package is read.
    """
    places = list(_places(folder))
    editable = [each for each in _distributions_in([folder, *places]) if not _module_files(each)]
    names = frozenset().union(*map(_top_modules, editable))
    projects = [project for each in editable for project in _project(each)]
    found: dict[str, Path] = {}
    left_out = []
    for place in places:
        is_of_project = any(project in place.parents for project in projects)
        taken = [path for path in _listed(place)
                 if _is_module(path) and (is_of_project or _module(path) in names)]  # fmt: skip
        found = {**{path.name: path for path in taken}, **found}
        if not taken:
            left_out.append(
                f"{place}, listed in a .pth file of the environment, is not read, because no package lists its modules"
            )
    return tuple(found.values()), tuple(left_out)


def _places(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.glob("*.pth")):
        for line in file.read_text("utf-8", errors="replace").splitlines():
            with suppress(OSError, ValueError):  # no path
                path = folder / line.strip()
                if line.strip() and not line.startswith(("#", "import ", "import\t")) and path.is_dir():
                    yield path.resolve()


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _project(package: Distribution) -> Iterator[Path]:
    """Folder of the project of an editable installation."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        yield Path(unquote(urlsplit(json.loads(package.read_text("direct_url.json") or "")["url"]).path)).resolve()


def _distributions_in(folders: Sequence[Path]) -> list[Distribution]:
    # A package without a readable name, version or list of files is left out: its modules are found by their files.
    return [each for each in distributions(path=[str(folder) for folder in folders]) if _is_readable(each)]


def _is_readable(package: Distribution) -> bool:
    try:
        _module_files(package)
        return bool(package.metadata["Name"] and package.metadata["Version"])
    except (OSError, ValueError, csv.Error):
        return False


def _module(path: Path) -> str:
    return path.name.partition(".")[0]


def _is_module(path: Path) -> bool:
    name = path.name if path.is_dir() else _module(path)
    return name.isidentifier() and name != "__pycache__" and (path.suffix in _MODULE_SUFFIXES or path.is_dir())


@lru_cache(maxsize=16)
def _classes(places: tuple[tuple[Path, int], ...]) -> frozenset[str] | None:
    """Names of classes in the texts of modules, given with the times of their last change; None: they are too large."""
    names, n_bytes = set[str](), 0
    for place, _ in places:
        for path in place.rglob("*.py") if place.is_dir() else (place,):
            if path.suffix == ".py" and path.is_file():
                n_bytes += path.stat().st_size
                if n_bytes > _MAX_BYTES:
                    return None
                names.update(_CLASS.findall(path.read_text("utf-8", errors="replace")))
    return frozenset(names)


def _module_files(package: Distribution) -> set[str]:
    paths = [PurePosixPath(str(file)) for file in package.files or ()]
    found = {path.parts[0].partition(".")[0] for path in paths if path.suffix in _MODULE_SUFFIXES}
    return found - {""}  # of `..`


def _top_modules(package: Distribution) -> set[str]:
    named = package.read_text("top_level.txt") or _normal(package.name).replace("-", "_")
    return _module_files(package) or set(named.split())


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
