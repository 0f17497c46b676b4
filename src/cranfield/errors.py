"""Every error Cranfield raises on purpose, and the words it says them in.

    CranfieldError                 exit code
    ├── InputError                 2   something in your files
    │   ├── TestSetError               a test set or qrels file
    │   ├── RunFormatError             a run file
    │   ├── ConfigError                cranfield.yaml
    │   └── NoCommonQueryError         test set and run share no query
    ├── UsageError                 2   something in your call
    │   ├── UnknownNameError           a measure, test, convention or system nobody registered
    │   ├── MeasureError               a measure whose parameters, or data, do not allow it
    │   └── MissingExtraError          an optional library that is not installed
    ├── SystemUnderTestError       3   the program being measured
    │   └── PreflightError             it would not have worked: found out before the first query
    └── InternalError              70  ours; please report it

An error carries one or more `Problem` values, so that a command line prints lines, a server returns fields and a test
compares fields. Readers gather every problem of a file before they raise: see `ProblemList`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

GOT_CHARS = 80
"""A quoted piece of the user's input is cut at this many characters."""

SHOWN_PROBLEMS = 20
LISTED_NAMES = 12
"""Known names that a message lists; of more it says how many there are."""
"""A message lists at most this many problems and counts the rest."""


def shorten(value: object) -> str:
    """Quote `value` for a message: its `repr`, cut to `GOT_CHARS`."""
    text = repr(value)
    return text if len(text) <= GOT_CHARS else text[: GOT_CHARS - 1] + "…"


Spelling = Callable[[str, str], str]
"""From the name of a parameter and its value, or no value, to how a caller writes it."""


def spell_parameter(name: str, value: str) -> str:
    """`name=value`, as Python writes it."""
    return f"{name}={value}" if value else name


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, where it is, and what to do next."""

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
        return self.spelled(text if text.endswith((".", "!", "?")) else f"{text}.", spell)

    def spelled(self, text: str, spell: Spelling = spell_parameter) -> str:
        """A text of the problem with its parameters as a caller writes them."""
        for name in self.parameters:
            text = re.sub(rf"{{{name}(?:=([^{{}}]*))?}}", lambda found, name=name: spell(name, found[1] or ""), text)  # type: ignore[misc]
        return text

    def __str__(self) -> str:
        """The sentence and, on the next line, the hint."""
        return self.sentence() + (f"\nHint: {self.spelled(self.hint)}" if self.hint else "")


class CranfieldError(Exception):
    """The root: catch this one to catch all of ours."""

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

    def __str__(self) -> str:
        """All problems, a paragraph each; the count of those not shown."""
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if len(self.problems) > SHOWN_PROBLEMS:
            lines.append(f"… and {len(self.problems) - SHOWN_PROBLEMS} more problems.")
        return "\n".join(lines)


class InputError(CranfieldError):
    """Something in the user's files."""

    exit_code = 2


class TestSetError(InputError):
    """A test set or qrels file that cannot be trusted as it stands."""

    __test__ = False  # pytest: the name is the field's, not a test class


class RunFormatError(InputError):
    """A run file that cannot be read as one."""


class ConfigError(InputError):
    """cranfield.yaml says something that cannot be done."""


class NoCommonQueryError(InputError):
    """A test set and a run that share no query id: nothing could be scored."""


class UsageError(CranfieldError):
    """Something in the call: an option, an argument, a parameter."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that is not in the table it should come from."""

    @classmethod
    def among(cls, kind: str, got: str, known: Iterable[str], *, command: str | None = None) -> UnknownNameError:
        """Say that `got` is no `kind`, and name the nearest one that is."""
        return cls(unknown_name(kind, got, known, command=command))


class MeasureError(UsageError):
    """A measure with a parameter out of bounds, or asked of data that cannot carry it."""


class MissingExtraError(UsageError):
    """An optional library is not installed."""

    @classmethod
    def for_extra(cls, purpose: str, extra: str) -> MissingExtraError:
        """Name the extra that brings what `purpose` needs."""
        return cls(f"{purpose} needs an extra that is not installed", hint=f"pip install 'cranfield[{extra}]'")


class SystemUnderTestError(CranfieldError):
    """The program being measured failed in a way that ends the work."""

    exit_code = 3


class PreflightError(SystemUnderTestError):
    """A check spelled in the config did not hold; no query was run."""


class InternalError(CranfieldError):
    """A state we believed impossible."""


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
    import difflib

    from cranfield.words import plural

    names = sorted(known)
    candidates = [*names, *sorted(aliases)]
    near = difflib.get_close_matches(got, candidates, n=1, cutoff=0.6)
    if not near:
        near = [name for name in candidates if name.lower() == got.lower()][:1]
    hints = [f"did you mean {near[0]}?"] if near else []
    if command:
        hints.append(f"`{command}` lists them.")
    listed = ", ".join(names) if len(names) <= LISTED_NAMES else f"one of {len(names)} {plural(kind)}"
    return Problem(
        f"unknown {kind} {shorten(got)}", path=path, expected=listed, hint=" ".join(hints) if hints else None
    )


@dataclass
class ProblemList:
    """Gathers the problems of one input, so that the user sees all of them at once."""

    error: type[CranfieldError]
    problems: list[Problem] = field(default_factory=list)

    def add(self, message: str, **fields: object) -> None:
        """Note one more problem; `fields` are those of `Problem`."""
        self.problems.append(Problem(message, **fields))  # type: ignore[arg-type]  # as above

    def raise_if_any(self) -> None:
        """Raise the gathered problems as one error, in the order of their lines."""
        if self.problems:
            ordered = sorted(self.problems, key=lambda problem: (problem.path or "", problem.line or 0))
            raise self.error(ordered)
