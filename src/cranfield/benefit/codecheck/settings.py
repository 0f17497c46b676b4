"""Settings of a checker that is a command: read from a plan, or from a preset of the package in the same format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from cranfield.benefit.codecheck.report import CodeCheck, Deprecation
from cranfield.formats.io.validation import ClosedModel, Filled


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return text


_Regex = Annotated[str, AfterValidator(_regex)]


class DiagnosticRule(ClosedModel):
    """Which check a diagnostic belongs to: the first rule that matches it decides."""

    check: CodeCheck | Literal["unknown"]
    """`unknown`: a symbol of which nothing is known: no check of symbols fails or passes by it."""
    code: _Regex = ""
    """Regular expression for the whole code of the diagnostic; empty: any."""
    text: _Regex = ""
    """Found in its message; its groups `symbol` and `current` are those of the finding. Empty: any."""
    severity: tuple[Filled, ...] = ()
    """Empty: any."""


class CheckerSettings(ClosedModel):
    """A command that checks files, and how its diagnostics are read."""

    preset: Literal["", "tsc", "swiftc"] = ""
    """Where fields that are not given come from."""
    command: tuple[Filled, ...] = ()
    """Program and arguments; no shell reads it. Placeholders: {files} (an argument a file), {platform}, {version}, {target},
    {presets} (folder of the presets), and the names of `values`. Where one is empty, its argument is left out, and with it an
    option that stands before it."""
    version_command: tuple[Filled, ...] = ()
    """Prints the version in its first line; empty: it is not recorded."""
    values: Mapping[str, str] = {}
    """What further placeholders of the command stand for, such as `sdk: /path`."""
    targets: Mapping[str, str] = {}
    """Platform to `{target}`, such as `macos: arm64-apple-macosx{version}`; empty: it is the version."""
    source_files: _Regex = ""
    """Regular expression for the path of a file that is written and checked: an answer's own settings of tools are not.
    Empty: every file."""
    line: _Regex = ""
    """Regular expression for a diagnostic in the output: groups `file`, `line`, `severity`, `message`, and `code` where
    there are codes. A file such as `<unknown>` is no file of the answer: such an error is one of the checker."""
    json_list: str = ""
    """In the place of `line`: JMESPath of the list of diagnostics in the JSON output, each with the groups of `line` as keys, and `symbol`."""
    error_severities: tuple[Filled, ...] = ("error", "fatal error")
    """Those that fail compiling."""
    rules: tuple[DiagnosticRule, ...] = ()
    env: Mapping[str, str] = {}
    """Environment variables of the command, besides PATH, LANG, and a HOME and a TMPDIR of its own."""
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 60.0
    memory_mb: Annotated[int, Field(ge=64)] | None = None
    """Limit on the address space of each process, in MiB, where the operating system has such a limit; None: none."""
    deprecations: tuple[Deprecation, ...] | None = None
    """Deprecated symbols with a current alternative, in the place of the map of the package."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.preset:
            return self
        if not self.command:
            raise ValueError("a checker needs either a `command` or a `preset`")
        if bool(self.line) == bool(self.json_list):
            raise ValueError("give either `line` or `json_list` to read diagnostics")
        return self
