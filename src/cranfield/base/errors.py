"""The exceptions of Cranfield and the format of their messages.

    CranfieldError                 exit code
    ├── InputError                 2   something in your files
    │   ├── TestSetError               a test set or qrels file
    │   ├── RunFormatError             a run file
    │   ├── ConfigError                cranfield.yaml
    │   ├── NoCommonQueryError         test set and run share no query
    │   └── BookFileError              a file of a whole book
    ├── UsageError                 2   something in your call
    │   ├── UnknownNameError           an unknown measure, test, convention or system
    │   │   └── NotEvaluatedError      a measure that was not evaluated
    │   ├── MeasureError               a measure whose parameters, or data, do not allow it
    │   ├── MissingExtraError          an optional library that is not installed
    │   ├── PlatformError              this operating system cannot do it
    │   ├── BookClosedError            a judgment for a book that is closed
    │   ├── NotAllowedError            an account may not do this
    │   ├── NoAgreementError           raters who agree less than their book asks for
    │   ├── LogError                   a log of queries that cannot be read
    │   ├── QueueFullError             an account has too many jobs in the queue
    │   ├── KeyConflictError           the idempotency key of another request
    │   └── ChangedMeanwhileError      what was to follow has another successor by now
    ├── ApiError                   2   an answer of the REST API, to its client
    │   ├── RefusedError               the request is wrong
    │   │   └── NotFoundError          there is no such thing
    │   ├── NotAuthorisedError         the token does not allow it
    │   ├── JobFailedError         3   the job failed or was cancelled
    │   └── ApiUnavailableError    3   the server does not answer
    ├── SystemUnderTestError       3   the program being measured
    │   ├── PreflightError             a check before the first query failed
    │   └── AllFailAlikeError          the first queries of a system all failed alike
    └── InternalError              70  a bug in Cranfield; please report it

An error carries one or more `Problem` values, so that a command line prints lines, a server returns fields and a test
compares fields. Readers collect every problem of a file before they raise: see `ProblemList`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

GOT_CHARS = 80
"""A quoted piece of the user's input is cut at this many characters."""

SHOWN_PROBLEMS = 20
"""A message lists at most this many problems, and the number of the others."""
LISTED_NAMES = 12
"""A message lists at most this many known names; of more it gives the number."""


def shorten(value: object) -> str:
    """Quote `value` for a message: its `repr`, cut to `GOT_CHARS`."""
    text = repr(value)
    return text if len(text) <= GOT_CHARS else text[: GOT_CHARS - 1] + "…"


def _ended(text: str) -> str:
    """A sentence with its period."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


Spelling = Callable[[str, str], str]
"""From the name of a parameter and its value, or no value, to how a caller writes it."""


def spell_parameter(name: str, value: str) -> str:
    """`name=value`, as Python writes it."""
    return f"{name}={value}" if value else name


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem: what is wrong, where, what was expected, and what to do next."""

    message: str
    """What is wrong, without its place: `5 columns`."""
    path: str | None = None
    """File, option or field that holds it, as the user wrote it."""
    line: int | None = None
    """1-based line in `path`."""
    column: int | None = None
    """1-based column in `line`."""
    expected: str | None = None
    got: str | None = None
    hint: str | None = None
    """The next step, as a sentence or a command."""
    parameters: tuple[str, ...] = ()
    """Names of the call's parameters that the texts mention as `{name}` or `{name=value}`; the command line writes its options."""

    @property
    def where(self) -> str:
        """`path:line:column`, as far as known; empty when nowhere in particular."""
        if self.path is None:
            return ""
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)

    def sentence(self, spell: Spelling = spell_parameter) -> str:
        """`<where>: <message>; expected <what>, got <what>.`"""
        text = f"{self.where}: {self.message}" if self.where else self.message
        detail = [f"expected {self.expected}"] if self.expected else []
        detail += [f"got {self.got}"] if self.got else []
        if detail:
            text += "; " + ", ".join(detail)
        return self.spelled(_ended(text), spell)

    def hint_sentence(self, spell: Spelling = spell_parameter) -> str:
        """The hint, ended by a period; empty without one."""
        return _ended(self.spelled(self.hint, spell)) if self.hint else ""

    def spelled(self, text: str, spell: Spelling = spell_parameter) -> str:
        """A text of the problem with its parameters as a caller writes them."""
        for name in self.parameters:
            text = re.sub(rf"{{{name}(?:=([^{{}}]*))?}}", lambda found, name=name: spell(name, found[1] or ""), text)  # type: ignore[misc]
        return text

    def __str__(self) -> str:
        """The sentence and, on the next line, the hint."""
        hint = self.hint_sentence()
        return self.sentence() + (f"\nHint: {hint}" if hint else "")


class CranfieldError(Exception):
    """Base class of all exceptions of Cranfield."""

    exit_code = 70

    def __init__(self, message: str | Problem | Sequence[Problem], **fields: object) -> None:
        if isinstance(message, str):
            # The fields are those of Problem; spelling them out again would be a second list of them.
            problems: tuple[Problem, ...] = (Problem(message, **fields),)  # type: ignore[arg-type]
        elif isinstance(message, Problem):
            problems = (message,)
        else:
            problems = tuple(message)
        self.problems = problems
        super().__init__(problems)

    def hide_folder(self, folder: Path) -> None:
        """Name files of a temporary folder without it: its path tells nothing, and is of the machine of a server."""

        def hidden(text: str | None) -> str | None:
            return text and text.replace(f"{folder}{os.sep}", "")

        self.problems = tuple(
            replace(
                each,
                message=hidden(each.message) or "",
                path=hidden(each.path),
                expected=hidden(each.expected),
                got=hidden(each.got),
                hint=hidden(each.hint),
            )
            for each in self.problems
        )
        self.args = (self.problems,)

    def __str__(self) -> str:
        """All problems, a paragraph each; the count of those not shown."""
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if len(self.problems) > SHOWN_PROBLEMS:
            lines.append(f"… and {len(self.problems) - SHOWN_PROBLEMS} more problems.")
        return "\n".join(lines)


class InputError(CranfieldError):
    """A problem in an input file."""

    exit_code = 2


class TestSetError(InputError):
    """A problem in a test set or qrels file."""

    __test__ = False  # pytest: the name is the field's, not a test class


class RunFormatError(InputError):
    """A problem in a run file."""


class ConfigError(InputError):
    """A problem in cranfield.yaml."""


class NoCommonQueryError(InputError):
    """A test set and a run without a common query id."""


class UsageError(CranfieldError):
    """A problem in the call: an option, an argument, a parameter."""

    exit_code = 2


class UnknownNameError(UsageError):
    """An unknown name."""

    @classmethod
    def among(cls, kind: str, got: str, known: Iterable[str]) -> UnknownNameError:
        """The error for an unknown name `got`, with the nearest known name."""
        return cls(unknown_name(kind, got, known))


class NotEvaluatedError(UnknownNameError, KeyError):
    """A measure that a result does not have; mappings of measures raise it as their KeyError."""


class MeasureError(UsageError):
    """A measure with a parameter out of bounds, or one that the data do not allow."""


class MissingExtraError(UsageError):
    """An optional library is not installed."""

    @classmethod
    def for_package(cls, purpose: str, package: str, installed_by: str) -> MissingExtraError:
        """The error that names the package which `purpose` needs, and what to install."""
        return cls(f"{purpose} needs {package}, which is not installed", hint=f"run `pip install {installed_by}`")

    @classmethod
    def for_extra(cls, purpose: str, extra: str) -> MissingExtraError:
        """The error that names the extra which `purpose` needs."""
        from cranfield.base.installation import this_installation

        return cls(f"{purpose} needs an extra that is not installed", hint=f"run `{this_installation().add(extra)}`")


class PlatformError(UsageError):
    """This operating system cannot do it: see `cranfield.base.platforms`."""


class SystemUnderTestError(CranfieldError):
    """The system under test failed, and the command cannot go on."""

    exit_code = 3


class PreflightError(SystemUnderTestError):
    """A check of the config failed before the first query."""


class InternalError(CranfieldError):
    """A bug in Cranfield: a state that should be impossible."""


def did_you_mean(got: str, candidates: Sequence[str]) -> str | None:
    """The hint `did you mean <name>?` with the nearest name; None where none is near."""
    near = nearest_name(got, candidates)
    return None if near is None else f"did you mean {near}?"


def nearest_name(got: str, candidates: Sequence[str]) -> str | None:
    """The nearest name; None where none is near.

    A name of one letter is only near to the same letter in the other case: it is near to every short name.
    """
    import difflib

    near = difflib.get_close_matches(got, [name for name in candidates if len(name) > 1], n=1, cutoff=0.6)
    if not near:
        near = [name for name in candidates if name.lower() == got.lower()][:1]
    return near[0] if near else None


def unknown_name(
    kind: str,
    got: str,
    known: Iterable[str],
    *,
    aliases: Iterable[str] = (),
    path: str | None = None,
    command: str | None = None,
) -> Problem:
    """Build the problem `unknown <kind> <got>` with the nearest known name as its hint.

    `aliases` are other names that are understood: they can be the nearest one, and are not listed.
    """
    from cranfield.base.words import plural

    names = sorted(known)
    hints = [did_you_mean(got, [*names, *sorted(aliases)]), f"`{command}` lists them." if command else None]
    listed = ", ".join(names) if len(names) <= LISTED_NAMES else f"one of {len(names)} {plural(kind)}"
    return Problem(
        f"unknown {kind} {shorten(got)}", path=path, expected=listed, hint=" ".join(filter(None, hints)) or None
    )


@dataclass
class ProblemList:
    """Collects the problems of an input, so that all are reported at once."""

    error: type[CranfieldError]
    problems: list[Problem] = field(default_factory=list)

    def add(self, message: str, **fields: object) -> None:
        """Add a problem; `fields` are those of `Problem`."""
        self.problems.append(Problem(message, **fields))  # type: ignore[arg-type]  # as above

    def raise_if_any(self) -> None:
        """Raise the collected problems as one error, in the order of their lines."""
        if self.problems:
            ordered = sorted(self.problems, key=lambda problem: (problem.path or "", problem.line or 0))
            raise self.error(ordered)


def traceback_of(error: BaseException, *, with_messages: bool) -> str:
    """The traceback of an error, for a log; without messages, which may quote anything, its kind and its frames alone."""
    import traceback

    if with_messages:
        return "".join(traceback.format_exception(error))
    frames = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    return "\n".join([*frames, type(error).__name__])
