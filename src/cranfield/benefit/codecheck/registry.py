"""Which checker reads a language: one that is configured, or one of the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from cranfield.base.errors import ConfigError, UnknownNameError
from cranfield.benefit.codecheck.external import PRESETS, ExternalChecker
from cranfield.benefit.codecheck.python.checker import PythonChecker
from cranfield.benefit.codecheck.report import Checker, Deprecation, Target, packaged_deprecations
from cranfield.benefit.codecheck.settings import CheckerSettings
from cranfield.formats.io.validation import load_model

PYTHON = "python"
BY_PRESET: Mapping[str, CheckerSettings] = {
    "typescript": CheckerSettings(preset="tsc"),
    "swift": CheckerSettings(preset="swiftc"),
}
"""Languages whose checker is a preset when nothing else is configured."""


def checker_for(target: Target, configured: Mapping[str, CheckerSettings]) -> Checker:
    """The checker of a language.

    Args:
        target: of the code.
        configured: checkers that are commands, by language; they come before those of the package.

    Raises:
        UnknownNameError: the language has no checker.
    """
    language = target.language
    if language == PYTHON and language not in configured:
        return PythonChecker()
    if language not in configured and language not in BY_PRESET:
        raise UnknownNameError.among("language of a checker", language, {*configured, *BY_PRESET, PYTHON})
    settings = configured.get(language) or BY_PRESET[language]
    return ExternalChecker(with_preset(settings), partial(current_symbol, _deprecations(language, settings)))


def current_symbol(entries: Sequence[Deprecation], symbol: str, target: Target) -> str:
    """What replaces a symbol by a map; empty: it has no entry that holds on the target.

    A compiler may name a symbol without its type, and with the labels of its arguments: `launch()` is `Process.launch`.
    """
    name = _base(symbol)
    for entry in entries:
        known = _base(entry.symbol)
        is_same = name == known or ("." not in name and name == known.rpartition(".")[2])
        if is_same and (entry.is_deprecated(target) or not target.version):
            return entry.current
    return ""


def _base(symbol: str) -> str:
    return symbol.partition("(")[0].strip("`")


def _deprecations(language: str, settings: CheckerSettings) -> Sequence[Deprecation]:
    if settings.deprecations is not None:
        return settings.deprecations
    return packaged_deprecations(language).entries if language in BY_PRESET else ()


def with_preset(settings: CheckerSettings) -> CheckerSettings:
    """Settings with the fields that they leave to their preset; `values` and `targets` are merged."""
    if not settings.preset:
        return settings
    preset = _preset(settings.preset)
    own = {name: getattr(settings, name) for name in settings.model_fields_set}
    merged = {name: {**getattr(preset, name), **own.get(name, {})} for name in ("values", "targets", "env")}
    return preset.model_copy(update={**own, **merged})


@cache
def _preset(name: str) -> CheckerSettings:
    return load_model(Path(PRESETS / f"{name}.yaml"), CheckerSettings, ConfigError)
