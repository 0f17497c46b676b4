"""Test sets by name: where a path would stand, the name of a set in the folder of the config; which config that is."""

from __future__ import annotations

import re
from pathlib import Path

from cranfield.errors import TestSetError, UsageError, did_you_mean, shorten

CONFIG = "cranfield.yaml"
_HEAD = 4096
_OWN = re.compile(r"""^["']?cranfield_testset["']?\s*:|["']cranfield_testset["']\s*:""", re.MULTILINE)
_NAME = re.compile(r"""^\s*["']?name["']?\s*:\s*["']?([^"'#\r\n,]+?)["']?\s*(?:[#,].*)?$""", re.MULTILINE)
_NO_NAME = re.compile(r"[/\\:*?]")
_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".csv", ".tsv", ".qrels", ".txt")
_OTHERS = (".meta.json", ".schema.json")


def project_config(given: Path | None = None) -> Path | None:
    """The config of the project: the one that is given, else the nearest `cranfield.yaml`, here or above; None: there is none."""
    if given is not None:
        return given
    here = Path()
    return next((above / CONFIG for above in (here, *here.resolve().parents) if (above / CONFIG).is_file()), None)


def can_be_name(given: Path) -> bool:
    """Whether a path that is not there may be a name: it has no folder and no pattern, and is not `-`."""
    name = str(given)
    return not (_NO_NAME.search(name) or name in {"", "-", ".", ".."} or given.exists())


def named_testset(given: Path, config: Path | None = None) -> Path:
    """The path of a test set that is given by its path or by its name.

    A name is one of `testsets` in the config, the name that a test set has, or the name of its file without its end. The
    folder is that of the config, or the working folder where there is none.

    Args:
        given: path or name.
        config: of the project; None: the nearest `cranfield.yaml`, here or above.

    Raises:
        UsageError: there is no such file, and no set of that name; lists the names. Or several files have it.
    """
    if not can_be_name(given) or given.suffix in _SUFFIXES:
        return given
    name = str(given)
    config = project_config(config)
    found = sets_by_name(Path() if config is None else config.parent, config)
    if name in found:
        paths = found[name]
        if len(paths) > 1:
            raise UsageError(
                f"the name {shorten(name)} is that of several test sets",
                expected="a path",
                got=", ".join(map(str, paths)),
            )
        return paths[0]
    raise UsageError(
        f"no test set {shorten(name)}",
        expected="a path, or one of " + ", ".join(sorted(found)) if found else "the path of a test set",
        hint=did_you_mean(name, sorted(found)),
    )


def sets_by_name(folder: Path, config: Path | None = None) -> dict[str, tuple[Path, ...]]:
    """Name of each test set of a folder to its files; one where no two have a name in common.

    Args:
        folder: to look in.
        config: whose names of test sets are known; None: `cranfield.yaml` in the folder.
    """
    config = config or folder / CONFIG
    found: dict[str, dict[Path, None]] = {}
    declared = _declared(config)
    for name, path in declared.items():
        found[name] = {path: None}
    for path in sorted(folder.iterdir()):
        if not path.name.startswith(".") and path.name not in {CONFIG, config.name} and _is_testset(path):
            for name in dict.fromkeys(
                [path.name.removesuffix(path.suffix) if path.is_file() else path.name, *_names_in(path)]
            ):
                if name not in declared:
                    found.setdefault(name, {}).setdefault(path)
    return {name: tuple(paths) for name, paths in found.items()}


def _declared(config: Path) -> dict[str, Path]:
    """The names under `testsets` in a config."""
    if not config.is_file():
        return {}
    from cranfield.config.load import load_config

    sets = load_config(config).sets
    return {name: config.parent / chosen.path for name, chosen in sets.items() if name}


def _is_testset(path: Path) -> bool:
    if path.is_file() and (path.suffix not in _SUFFIXES or path.name.endswith(_OTHERS)):
        return False
    from cranfield.formats.sniff import detect_format

    try:
        detect_format(path, "testset", None, TestSetError)
    except (TestSetError, OSError):
        return False
    return True


def _names_in(path: Path) -> list[str]:
    """The name that a test set of Cranfield's own form has."""
    if path.suffix not in {".yaml", ".yml", ".json"}:
        return []
    with path.open("rb") as stream:
        head = stream.read(_HEAD).decode("utf-8", "replace")
    found = _NAME.search(head) if _OWN.search(head) else None
    return [found[1].strip()] if found else []
