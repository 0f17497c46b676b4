"""The packages that code may import: what lies in their folders, read without running any of it."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath

from cranfield.codecheck.python.ty import CheckerError

_MODULE_SUFFIXES = {".py", ".so", ".pyd", ".pyi"}
_STUBS = "-stubs"


@dataclass(frozen=True)
class Environment:
    """Packages in folders, and the Python that they are of."""

    folders: tuple[Path, ...] = ()
    """Of packages; empty: there are none besides the standard library."""
    version: str = ""
    """Of Python: `3.12`."""
    python: str = ""
    """Path of a Python of this version; empty: there is none here."""

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Versions of packages, by name."""
        return {_normal(each.name): each.version for each in self._distributions}

    @cached_property
    def modules(self) -> Mapping[str, str]:
        """Modules of the first level, and which packages they are of: `numpy 2.3.5`; empty: no package says."""
        found = dict.fromkeys(self._names, "")
        packages: dict[str, set[str]] = defaultdict(set)
        for each in self._distributions:
            for top in _top_modules(each):
                packages[top].add(f"{each.name} {each.version}")
        named = {name: ", ".join(sorted(packages[name])[:3]) for name in packages if name in found}
        return {**found, **named}

    @cached_property
    def typed(self) -> frozenset[str]:
        """Modules of the first level that come with types."""
        stubs = {path.name.removesuffix(_STUBS) for folder in self.folders for path in folder.glob(f"*{_STUBS}")}
        marked = {path.parent.name for folder in self.folders for path in folder.glob("*/py.typed")}
        return frozenset(stubs | marked | {path.stem for folder in self.folders for path in folder.glob("*.pyi")})

    def package_of(self, module: str) -> str:
        """The packages of a module, with versions; empty: it is of none."""
        return self.modules.get(module.partition(".")[0], "")

    def has(self, module: str) -> bool:
        """Whether a module is of a package."""
        return module.partition(".")[0] in self.modules

    def may_define(self, name: str) -> bool:
        """Whether a package without types has a class of a name, by its text."""
        pattern = re.compile(rf"^\s*class\s+{re.escape(name)}\b", re.MULTILINE)
        return any(pattern.search(text) for text in self._untyped_texts)

    @cached_property
    def _untyped_texts(self) -> tuple[str, ...]:
        untyped = self.modules.keys() - self.typed
        places = [folder / name for folder in self.folders for name in sorted(untyped)]
        files = [
            path for place in places for path in (place.with_suffix(".py"), *place.rglob("*.py")) if path.is_file()
        ]
        return tuple(path.read_text("utf-8", errors="replace") for path in files)

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
            raise CheckerError(f"the packages are not those of the target: {'; '.join(wrong)}")

    @cached_property
    def _distributions(self) -> Sequence[Distribution]:
        # A package without a readable name or version is left out: its modules are found by their files.
        found = distributions(path=[str(folder) for folder in self.folders])
        return [each for each in found if each.metadata["Name"] and each.metadata["Version"]]

    @cached_property
    def _names(self) -> frozenset[str]:
        paths = [path for folder in self.folders for path in folder.iterdir()]
        names = (path.name.partition(".")[0] for path in paths if path.is_dir() or path.suffix in _MODULE_SUFFIXES)
        return frozenset(name for name in names if name.isidentifier() and name != "__pycache__")


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
    if config.is_file() and re.search(r"(?im)^include-system-site-packages\s*=\s*true", config.read_text("utf-8")):
        raise CheckerError(
            f"environment {given}: it shares the packages of another Python (include-system-site-packages); expected "
            "one with packages of its own"
        )
    folders = sorted(root.glob("lib/python3*/site-packages"))
    if not folders:
        raise CheckerError(
            f"environment {given}: there is no lib/python3.*/site-packages; expected the folder of an environment, "
            "such as .venv, or its Python"
        )
    if len(folders) > 1 and not path.is_file():
        raise CheckerError(f"environment {given}: it is of several versions of Python; expected the path of its Python")
    version = folders[0].parent.name.removeprefix("python")
    if len(folders) > 1:
        version = re.sub(r"^python", "", path.resolve().name) or version
        folders = [folder for folder in folders if folder.parent.name == f"python{version}"]
    python = (path if path.is_file() else root / "bin" / "python").resolve()
    found = folders[0].resolve()
    return Environment((found, *_linked(found)), version, str(python) if python.is_file() else "")


def this_version() -> str:
    """Of the Python that runs this: `3.12`."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _linked(folder: Path) -> Iterator[Path]:
    """Folders that `.pth` files name, as those of editable installations do."""
    for file in sorted(folder.glob("*.pth")):
        for line in file.read_text("utf-8", errors="replace").splitlines():
            path = folder / line.strip()
            if line.strip() and not line.startswith(("#", "import ", "import\t")) and path.is_dir():
                yield path.resolve()


def _top_modules(package: Distribution) -> set[str]:
    files = package.files or ()
    paths = [PurePosixPath(str(file)) for file in files if PurePosixPath(str(file)).suffix in _MODULE_SUFFIXES]
    found = {path.parts[0].partition(".")[0] for path in paths if path.parts[0] != ".."}
    return found or set((package.read_text("top_level.txt") or _normal(package.name).replace("-", "_")).split())


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
