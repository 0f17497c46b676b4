"""Functions that `cranfield init` is given, `module:function` or `search.py:function`: what they take, and what they return.

The module is imported in a process of its own, which says what the function takes; then the function is called with a few queries as
a system is. `main` is that process.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cranfield.app.init.shape import K_NAMES, QUERY_NAMES, FoundSystem, Settings, Trial, TrialTarget
from cranfield.app.init.trial import UNREAD, TrialReading, answers_of, query_hint, reading_of
from cranfield.base.errors import Problem, UsageError, shorten
from cranfield.base.words import and_list, last_lines, printable, shorten_to
from cranfield.model import Outcome
from cranfield.systems.calls.answer_schema import to_answer
from cranfield.systems.calls.extract import load_json
from cranfield.systems.calls.stages import CheckFailedError

FUNCTION = re.compile(
    r"(?P<module>(?:.*[\\/])?[\w-]+\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
)
"""A function of a module or of a file."""
FUNCTION_WORDS = ("search", "retrieve", "query", "find", "rank", "lookup", "ask")
"""Words in the name of a function that searches, the likeliest first."""
EXPECTED_RESULTS = (
    "a list of ids, of pairs of an id and its score, or of objects or dicts with an id; or a dict with such a list"
)
LOAD_S = 120.0
"""Time limit of the import, in seconds."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function."""

    name: str
    by_position: bool
    by_name: bool
    is_required: bool
    type: str = ""
    """`str` or `int`, of its annotation or its default; empty where neither says."""


@dataclass(frozen=True, slots=True)
class Described:
    """What is known of a function before it is called."""

    name: str
    signature: str
    parameters: tuple[Parameter, ...]
    takes_any: bool
    """Whether it takes any names (`**kwargs`)."""
    is_made: bool
    """Whether it is made by calling the object first, a class or a factory: the system has `with`."""


def function_system(target: TrialTarget, trial: Trial) -> FoundSystem:
    """Find out what a function takes, call it, and find out how what it returns is read.

    Raises:
        UsageError: it is not there, takes something else, fails, or returns no results.
    """
    found = FUNCTION.fullmatch(target.given)
    if found is None:
        raise UsageError(
            "not the name of a function", path=target.given, expected="module:function, or file.py:function"
        )
    return _system(found["module"], found["name"], target, trial)


def functions_of_file(target: TrialTarget, trial: Trial) -> FoundSystem | None:
    """The function of a file that searches, by its name and its first parameter; None where no function may be one.

    Raises:
        UsageError: as of `function_system`.
    """
    module, folder = _module_of(target.given)
    with suppress(UsageError):
        usable = [each for each in _ask_process(module, "", folder, trial, target.given) if _is_search(each)]
        if usable:
            usable.sort(key=lambda each: _rank(each.name))
            best = [each.name for each in usable if _rank(each.name) == _rank(usable[0].name)]
            name = best[0] if len(best) == 1 else trial.ask("Which function searches?", best[0], best)
            return _system(target.given, name, target, trial)
    return None


def _rank(name: str) -> int:
    words = name.lower()
    return next((place for place, word in enumerate(FUNCTION_WORDS) if word in words), len(FUNCTION_WORDS))


def _is_search(described: Described) -> bool:
    return any(parameter.name in QUERY_NAMES and parameter.type != "int" for parameter in described.parameters)


def _system(written: str, name: str, target: TrialTarget, trial: Trial) -> FoundSystem:
    module, folder = _module_of(written)
    (described,) = _ask_process(module, name, folder, trial, target.given)
    arguments, has_k = arguments_of(described, _param_names(trial), target.given)
    place = Path.cwd() if folder is None else folder
    settings: dict[str, Any] = {"python": f"{module}:{name}"}
    if place.resolve() != trial.folder.resolve():
        settings["cwd"] = Path(os.path.relpath(place, trial.folder)).as_posix()
    settings |= {"with": {}} if described.is_made else {}
    settings |= {"arguments": arguments} if arguments is not None else {}
    answers = answers_of({**settings, **UNREAD}, trial.texts(), trial.folder, k=trial.k, params=trial.params)
    what = f"{name}{described.signature}"
    if answers.problem and not answers.outputs:
        raise UsageError("the function failed", path=target.given, expected=EXPECTED_RESULTS, got=answers.problem.partition("; it wrote ")[0],
                         hint=f"it was called as {shown_call(name, arguments)}")  # fmt: skip
    reading = _reading(settings, answers.outputs, trial)
    if reading is None:
        raise UsageError(Problem("no results in what the function returns", path=target.given, expected=EXPECTED_RESULTS,
                                 got=_returned(answers.outputs), hint=query_hint(trial), parameters=("query",)))  # fmt: skip
    whole, ids, form = reading
    notes = []
    if not has_k:
        notes.append(
            f"no parameter for the number of results was found; it returns at most {max(map(len, ids.values()))}"
        )
    return FoundSystem(
        target.given,
        target.name or name.rpartition(".")[2],
        whole,
        f"a Python function {shorten_to(printable(what), 60)}: {form}",
        ids,
        tuple(notes),
    )


def shown_call(name: str, arguments: Mapping[str, Any] | None) -> str:
    """How a function is called, for messages."""
    listed = ["query", "k"] if arguments is None else [f"{key}={value}" for key, value in arguments.items()]
    return f"{name}({', '.join(listed)})"


def _module_of(written: str) -> tuple[str, Path | None]:
    """The module, and the folder of its file; None for a module that is found by its name."""
    if not written.endswith(".py"):
        return written, None
    path = Path(written)
    if not path.stem.isidentifier():
        raise UsageError(
            "the file is no module", path=written, expected="a name of letters, digits and _, to import it"
        )
    return path.stem, path.absolute().parent


def _param_names(trial: Trial) -> list[str]:
    return list(dict.fromkeys(name for query in trial.queries for name in query.params))


def arguments_of(described: Described, params: Sequence[str], given: str) -> tuple[dict[str, str] | None, bool]:
    """The arguments by name, or None where `(query, k)` will do; and whether it is request for a number of results.

    Args:
        described: the function.
        params: names of the parameters that queries have.
        given: as the user named it.

    Raises:
        UsageError: no parameter is the query, or others have no value.
    """
    parameters = described.parameters
    if not parameters and described.takes_any:
        return None, True
    query = _query_parameter(parameters)
    problem = f"{described.name}{described.signature}"
    if query is None:
        raise UsageError("no parameter of the function is the query", path=given, got=printable(problem),
                         expected=f"a parameter of a text, named {', '.join(QUERY_NAMES[:4])} or another, for the query")  # fmt: skip
    k = _k_parameter([each for each in parameters if each is not query])
    accepted = [each.name for each in parameters if each.name in params and each not in (query, k)]
    missing = [
        each.name for each in parameters if each.is_required and each not in (query, k) and each.name not in accepted
    ]
    if missing:
        hint = f"give {'it a default' if len(missing) == 1 else 'them defaults'}, or name a function that does: def search(query, k): ..."
        raise UsageError(f"no value is known for {and_list(missing)}", path=given, got=printable(problem),
                         expected="a query, and perhaps a number of results, as the required parameters", hint=hint)  # fmt: skip
    positional = [each for each in parameters if each.by_position]
    takes_all = described.takes_any or set(params) <= {each.name for each in parameters}
    has_others = any(each.is_required and each not in (query, k) for each in parameters)
    if k is not None and positional[:2] == [query, k] and takes_all and not has_others:
        return None, True
    unnamed = [each.name for each in (query, *([k] if k else [])) if not each.by_name]
    if unnamed:
        raise UsageError(f"{and_list(unnamed)} cannot be passed by name", path=given, got=printable(problem),
                         expected="parameters query and k in this order, or parameters with names")  # fmt: skip
    arguments = {query.name: "{query}"} | ({k.name: "{k}"} if k is not None else {})
    return arguments | {name: f"{{params.{name}}}" for name in accepted}, k is not None


def _query_parameter(parameters: Sequence[Parameter]) -> Parameter | None:
    """The parameter of the query: one with a usual name, else the first that is required and may be a text."""
    texts = [each for each in parameters if each.type in {"", "str"} and each.name not in K_NAMES]
    usual = [each for each in texts if each.name in QUERY_NAMES]
    return next((each for each in (*usual, *texts) if each in usual or each.is_required), None)


def _k_parameter(others: Sequence[Parameter]) -> Parameter | None:
    """The parameter of the number of results: one with a usual name, else the only whole number."""
    usual = [each for each in others if each.name in K_NAMES and each.type != "str"]
    numbers = [each for each in others if each.type == "int"]
    return usual[0] if usual else numbers[0] if len(numbers) == 1 else None


def _reading(
    settings: Settings, outputs: Mapping[str, str], trial: Trial
) -> tuple[Settings, Mapping[str, Sequence[str]], str] | None:
    """The settings, the ids by query and the form of what was returned; None without results.

    Ids, pairs, hits and documents of frameworks are read without `extract`; fields of dicts and objects are named there.
    """
    plain = {text: _plain_ids(output, trial.k) for text, output in outputs.items()}
    shaped: TrialReading | None = reading_of(settings, outputs, trial.known, k=trial.k)
    plain_known = trial.known.count(each for ids in plain.values() for each in ids)
    is_plain = any(plain.values()) and not any(_has_dicts(output) for output in outputs.values())
    is_named = shaped is not None and "id" in shaped.shape.extract
    if shaped is not None and (
        not any(plain.values()) or (is_named and (shaped.shape.n_known > plain_known or not is_plain))
    ):
        return shaped.settings, shaped.ids, shaped.shape.what
    if any(plain.values()):
        return settings, plain, _form(outputs)
    return None


def _form(outputs: Mapping[str, str]) -> str:
    """What results that need no `extract` are."""
    for output in outputs.values():
        value = load_json(output)
        results = value.get("hits") if isinstance(value, dict) else value
        if isinstance(results, list) and results:
            first = results[0]
            is_pair, is_document = isinstance(first, list), isinstance(first, dict)
            return f"a list of {'pairs of an id and a score' if is_pair else 'documents' if is_document else 'ids'}"
    return "documents"


def _plain_ids(output: str, k: int) -> list[str]:
    """The ids of results that need no `extract`."""
    try:
        answer = to_answer(load_json(output), k, "given")
    except (ValueError, RecursionError):
        return []
    return [hit.public_id for hit in answer.hits] if answer.outcome is Outcome.ANSWERED else []


def _has_dicts(output: str) -> bool:
    """Whether results are dicts that are no documents of a framework."""
    value = load_json(output)
    results = value.get("hits") if isinstance(value, dict) else value
    first = next(iter(results), None) if isinstance(results, list) else value
    return isinstance(first, dict) and not any(isinstance(first.get(name), dict) for name in ("metadata", "meta"))


def _returned(outputs: Mapping[str, str]) -> str:
    first = next((output for output in outputs.values() if output.strip()), "")
    return shorten(printable(first)) if first and first not in {"[]", "{}", "null"} else "nothing"


def _ask_process(module: str, name: str, folder: Path | None, trial: Trial, given: str) -> list[Described]:
    """What a process that imports the module says of the function, or of every function where `name` is empty.

    Raises:
        UsageError: the module cannot be imported, or it has no such function.
    """
    folders = [str(folder or Path.cwd()), str(trial.folder)]
    request = {"path": sys.path, "module": module, "name": name, "folders": list(dict.fromkeys(folders))}
    command = [sys.executable, "-P", "-m", __name__]
    try:
        done = subprocess.run(
            command, input=json.dumps(request), capture_output=True, text=True, timeout=LOAD_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            "the module is not imported", path=given, got=f"no end of the import in {LOAD_S:g} s"
        ) from None
    try:
        found = json.loads(done.stdout.strip().rpartition("\n")[2])
    except ValueError:
        got = last_lines(done.stderr, 3) or f"the process ended with {done.returncode}"
        raise UsageError(
            "the module is not imported", path=given, got=shorten(got), expected="a module that can be imported"
        ) from None
    if "problem" in found:
        raise UsageError(
            Problem(
                "the function is not found",
                path=given,
                expected=found["expected"],
                got=found["problem"],
                hint=found["hint"],
            )
        )
    return [
        Described(**{**each, "parameters": tuple(Parameter(**parameter) for parameter in each["parameters"])})
        for each in found["functions"]
    ]


def describe(found: object, name: str) -> Described:
    """What a function, a class, a factory or an object takes; a class and a factory are called first.

    Raises:
        CheckFailedError: it is none of them, or cannot be called without arguments.
    """
    from cranfield.systems.kinds.function import find_callable
    from cranfield.systems.kinds.sources import call_factory

    is_made = inspect.isclass(found) or _is_factory(found)
    made = found
    if is_made:
        try:
            made = call_factory(found, name, {}, {"folder": Path.cwd(), "environment": dict(os.environ)})
        except CheckFailedError as problem:
            hint = f"write its arguments under `with`, below `python: ...:{name}` in the config, or name an object that is made already"
            raise CheckFailedError(f"{name} to be called without arguments", problem.found, hint) from None
    function: Callable[..., Any] = find_callable(made, name)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # implemented in C without a signature
        return Described(name, "(...)", (), takes_any=True, is_made=is_made)
    found_parameters = list(signature.parameters.values())
    any_kinds = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    parameters = tuple(_parameter(each) for each in found_parameters if each.kind not in any_kinds)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in found_parameters)
    return Described(name, str(signature), parameters, takes_any, is_made)


def _parameter(parameter: inspect.Parameter) -> Parameter:
    has_default = parameter.default is not parameter.empty
    written = parameter.annotation
    text = written if isinstance(written, str) else getattr(written, "__name__", str(written))
    kinds = [kind for kind in ("str", "int") if re.search(rf"\b{kind}\b", text)]
    by_default = type(parameter.default).__name__ if has_default else ""
    kind = kinds[0] if kinds else by_default if by_default in {"str", "int"} else ""
    if parameter.annotation is not parameter.empty and not kinds:
        kind = "other"
    return Parameter(
        parameter.name,
        parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD},
        parameter.kind is not parameter.POSITIONAL_ONLY,
        not has_default,
        kind,
    )


def _is_factory(found: object) -> bool:
    """Whether it is a function that makes the system: it needs nothing, and takes no query."""
    if not inspect.isfunction(found) or inspect.iscoroutinefunction(found):
        return False
    parameters = inspect.signature(found).parameters.values()
    is_callable_alone = all(
        each.default is not each.empty or each.kind in {each.VAR_POSITIONAL, each.VAR_KEYWORD} for each in parameters
    )
    return is_callable_alone and not any(
        each.name in QUERY_NAMES or each.kind is each.VAR_POSITIONAL for each in parameters
    )


def _functions(names: Mapping[str, Any]) -> Iterator[Described]:
    """The functions of a module that may be a search; classes and objects are named by the user."""
    for name, found in names.items():
        if inspect.isfunction(found) and found.__module__ == names["__name__"] and not name.startswith("_"):
            with suppress(CheckFailedError):
                described = describe(found, name) if not _is_factory(found) else None
                if described is not None:
                    yield described


def main() -> None:
    """Import a module and write what its function takes: a line of JSON in, one out."""
    from cranfield.systems.kinds.modules import import_name

    request = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the module prints goes to stderr
    sys.stdout = sys.stderr
    sys.path[:] = request["path"]
    folders = [Path(folder) for folder in request["folders"]]
    try:
        if request["name"]:
            found = import_name(request["module"], request["name"], folders)
            reply: dict[str, Any] = {"functions": [asdict(describe(found, request["name"]))]}
        else:
            names: Any = import_name(request["module"], "__dict__", folders)
            reply = {"functions": [asdict(each) for each in _functions(names)]}
    except CheckFailedError as problem:
        reply = {"expected": problem.expected, "problem": problem.found, "hint": problem.hint or ""}
    answers.write(json.dumps(reply) + "\n")
    answers.flush()
    os._exit(0)  # threads of the module do not hold it


if __name__ == "__main__":
    main()
