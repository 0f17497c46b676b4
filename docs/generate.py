"""Reference pages, written from the tables in the code: what the page lists is what the program knows.

They lie in the repository, to be read there too: `make docs` writes them, `make check` and the tests find those that are out of date.

    python docs/generate.py [--check] [FOLDER]
"""

from __future__ import annotations

import html
import importlib
import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from generate_systems import presets_page, pytest_page, rules_page
from python_markdown import attributes, docstring, fence, field_sentences, first_line, signature, table
from typer.main import get_command
from typer.testing import CliRunner

import cranfield
from cranfield.base import errors
from cranfield.base.concurrency.orphans import MARK_NAME
from cranfield.base.platforms import FEATURES as PLATFORM_FEATURES
from cranfield.benefit.codecheck.python.install import PACKAGES_VARIABLE
from cranfield.cli.main import command_line, command_table, requested_command
from cranfield.evaluation.evidence.inspection import CHECKS
from cranfield.formats.features import FEATURES
from cranfield.formats.registry import never
from cranfield.formats.sniff import FORMATS
from cranfield.measures import CATALOGUE, DEFAULT_MEASURES, MeasureSpec, ParameterSpec
from cranfield.measures.catalogue import by_family
from cranfield.measures.described import trec_names
from cranfield.measures.measure import spell
from cranfield.model import CONVENTIONS, DEFAULT_CONVENTION, QUERY_CLASSES, Convention, convention_named
from cranfield.model.convention import CHOICES, differing
from cranfield.ranking.engine import ENGINE_VARIABLE, JOBS_VARIABLE
from cranfield.ranking.file import FOLDER_VARIABLE
from cranfield.scale import plan
from cranfield.stats.coefficients import COEFFICIENTS
from cranfield.stats.consensus import CONSENSUS, DEFAULT_RULE
from cranfield.stats.scale import MAPS
from cranfield.stats.table import ADJUSTMENTS, TESTS
from cranfield.workbench.client import errors as client_errors
from cranfield.workbench.mcp.http import VARIABLE as TOKEN_VARIABLE
from cranfield.workbench.server.options import KEY_VARIABLE
from cranfield.workbench.server.v1.openapi import description
from cranfield.workbench.service.metrics.families import FAMILIES as METRIC_FAMILIES
from cranfield.workbench.service.metrics.one_shot import AUTH_VARIABLE

OF_MODULES = {
    "cranfield.base.display": ("Displayed", "DisplayedByQuery", "QueryDisplay"),
    "cranfield.measures.own": ("define", "QueryView", "forget"),
    "cranfield.model": (
        "convention_named",
        "Span",
        "Entity",
        "File",
        "Predicate",
        "Negative",
        "Legacy",
        "Source",
        "Meta",
    ),
    "cranfield.evaluation.margins": ("tie_margin", "unjudged_margin", "Margin"),
    "cranfield.ranking.memory": ("rank_mapping", "rank_frame", "rank_arrays"),
    "cranfield.ranking.join": ("RankedRun",),
    "cranfield.compat.pytrec_eval": ("RelevanceEvaluator", "compute_aggregated_measure", "parse_qrel", "parse_run"),
    "cranfield.compat.ir_measures": ("calc", "calc_aggregate", "iter_calc", "evaluator", "parse_measure"),
}
"""What the pages show that is not on the package's face, by module."""


def measures_page() -> str:
    defaults = ", ".join(f"`{name}`" for name in DEFAULT_MEASURES)
    intro = (
        "A measure is written in one way, `NAME(parameter=value)@cutoff`, on the command line, in files, as a key of JSON "
        "and as the heading of a table. `cranfield measures` prints this list. "
        "[How to choose and spell one](../../how-to/measures.md)."
    )
    sections = [
        "# Measures",
        intro,
        f"Without `-m`: {defaults}. The first is the primary measure.",
    ]
    for family, specs in by_family().items():
        rows = ((f"[`{spec.spelling}`](#{anchor(spec.name)})", spec.sentence, range_of(spec)) for spec in specs)
        sections += [f"**{family}**", table(("measure", "what it is", "range"), rows)]
    for spec in CATALOGUE.values():
        facts = [
            *([("question", spec.question)] if spec.question else []),
            *([("in plain words", spec.plain)] if spec.plain else []),
            ("spelling", f"`{spec.spelling}`" + (" (the cutoff is required)" if spec.cutoff == "required" else "")),
            ("formula", f"`{spec.formula}`"),
            (
                "range",
                f"{range_of(spec)}, {'higher' if spec.higher_is_better else 'lower'} is better",
            ),
            ("defined for", spec.defined_for),
            *([("unscored", f"where {spec.why_unscored}")] if spec.why_unscored else []),
            *([("needs", NEEDED[spec.needs])] if spec.needs else []),
            *([("aggregate", f"the {spec.aggregate} over queries")] if spec.aggregate != "mean" else []),
            *([("also read as", ", ".join(f"`{alias}`" for alias in spec.aliases))] if spec.aliases else []),
            *([("in trec_eval", ", ".join(f"`{name}`" for name in trec_names(spec)))] if trec_names(spec) else []),
            ("source", spec.source),
        ]
        parameters = [(f"`{p.name}`", f"`{default_of(p)}`", p.sentence) for p in spec.parameters]
        sections += [f"## {spec.name}", f"{spec.title.capitalize()}. {spec.sentence}", table(("", ""), facts)]
        if parameters:
            sections.append(table(("parameter", "default", "what it does"), parameters))
    return "\n\n".join(sections)


def anchor(name: str) -> str:
    """The anchor of a heading, as code hosts and MyST make it."""
    return name.lower()


NEEDED = {
    "subtopic": "judgments by subtopic",
    "judge": "judgments by more than one judge",
    "preference": "preferences between documents",
    "tokens": "what each result costs in tokens",
    "files": "files that the results should cover",
    "legacy": "the legacy form of the answer",
    "sources": "sources by authority",
    "silence": "negative queries",
    "forbidden": "results that must not be found",
    "texts": "texts of results, or their places in documents",
    "passages": "passages of text or lines that are expected",
}


def range_of(spec: MeasureSpec) -> str:
    low, high = (f"{bound:g}" if math.isfinite(bound) else "any number" for bound in spec.range)
    return f"{low} or more" if high == "any number" and low != high else f"{low} to {high}"


def default_of(parameter: ParameterSpec) -> str:
    return "each grade is its own gain" if parameter.default == () else spell(parameter.default)


def conventions_page() -> str:
    default = convention_named(DEFAULT_CONVENTION)
    meaning = field_sentences(Convention)
    intro = (
        "Tools that print the same measure disagree on details. A convention is a named set of choices; "
        f"`{DEFAULT_CONVENTION}` is the default, and every report says which one scored it. "
        "[How to choose one](../../how-to/conventions.md)."
    )
    sections = [
        "# Conventions",
        intro,
        "## The choices",
        "In the order they apply: the run, the results, the measure, the mean.",
        table(
            ("choice", f"in `{DEFAULT_CONVENTION}`", "what it decides"),
            ((f"`{name}`", f"`{choice_of(default, name)}`", meaning[name]) for name in CHOICES),
        ),
    ]
    for convention in CONVENTIONS.values():
        sections += [f"## {convention.name}", f"{opened(convention.sentence)}."]
        if differs := differing(default, convention):
            rows = (
                (f"`{name}`", f"`{choice_of(convention, name)}`", f"`{choice_of(default, name)}`") for name in differs
            )
            sections.append(table(("choice", convention.name, f"in `{DEFAULT_CONVENTION}`"), rows))
        else:
            sections.append(
                "The choices above." if convention == default else f"The same choices as `{DEFAULT_CONVENTION}`."
            )
    return "\n\n".join(sections)


def opened(sentence: str) -> str:
    """With a capital, unless it begins with a tool and its version."""
    return sentence if re.match(r"\S+ \d", sentence) else sentence[0].upper() + sentence[1:]


def choice_of(convention: Convention, name: str) -> object:
    """What a convention chooses, in words."""
    choice = getattr(convention, name)
    return "none" if choice is None else choice


def tests_page() -> str:
    declarable = ", ".join(f"`{name}`" for name, spec in TESTS.items() if spec.can_declare)
    intro = (
        "Every comparison runs all of these that its data allow. One is declared, and its interval makes the verdict: "
        f"`--test`, or `test:` in the config, takes {declarable}."
    )
    sections = ["# Paired tests", intro]
    for name, spec in TESTS.items():
        needs = [
            *(["values of 0 and 1"] if spec.needs_binary else []),
            *(["a margin"] if spec.needs_margin else []),
        ]
        facts = [
            ("interval", spec.interval_method or "none"),
            ("may decide", "yes" if spec.can_declare else "no"),
            *([("needs", ", ".join(needs))] if needs else []),
            ("source", spec.source),
        ]
        sections += [f"## {name}", f"{spec.title[0].upper()}{spec.title[1:]}. {spec.sentence}", table(("", ""), facts)]
    rows = [
        (f"`{spec.name}`", f"{spec.title}. {spec.sentence}", ", ".join(spec.tests) or "all", spec.source)
        for spec in ADJUSTMENTS.values()
    ]
    about = "With three or more systems, the p-values of all pairs are adjusted together: `--adjust`, or `adjust:` in the config."
    sections += ["## Adjustments of many systems", about, table(("name", "adjustment", "tests", "source"), rows)]
    return "\n\n".join(sections)


def evidence_page() -> str:
    intro = (
        "Checks between collection and verdict. `void` makes the verdict invalid, `caveat` stands with it; `evidence:` in "
        "the config and `--evidence NAME=VALUE` change a check by its name. In a formula `t` is the threshold. "
        "[How to read and change them](../../explanation/evidence.md)."
    )
    rows = ((f"[`{check.name}`](#{check.name})", check.consequence, check.sentence) for check in CHECKS.values())
    sections = ["# Evidence checks", intro, table(("check", "consequence", "finding"), rows)]
    for check in CHECKS.values():
        threshold = "none" if check.threshold is None else f"{check.threshold:g}"
        facts = [
            ("formula", f"`{check.formula}`"),
            ("threshold", f"{threshold}; `limits.{check.limit}`" if check.limit else threshold),
            ("consequence", check.consequence),
            ("about", "each system" if check.system is not None else "the systems of a comparison"),
            *([("left out after", ", ".join(f"`{name}`" for name in check.unless))] if check.unless else []),
            ("what to do", check.cause),
        ]
        sections += [f"## {check.name}", check.sentence, table(("", ""), facts)]
    return "\n\n".join(sections)


def errors_page() -> str:
    tree = inspect.getdoc(errors) or ""
    public = (errors.__name__, client_errors.__name__)  # what is loaded besides depends on the pages before
    found = (cls for cls in subclasses(errors.CranfieldError) if cls.__module__ in public)
    classes = sorted(found, key=lambda cls: (cls.exit_code, cls.__name__))
    rows = [(f"`{cls.__name__}`", cls.exit_code, first_line(cls.__doc__)) for cls in classes]
    codes = [
        (0, "done"),
        (1, "a verdict that `--fail-on` names, or a rule of a gate that is broken"),
        (2, "usage, bad input, or a file or an output that could not be written"),
        (
            3,
            "scores that do not count, by a limit or an evidence check; or a system that was not ready for the first query",
        ),
        (4, "no significant difference, with `--fail-on not-significant`, or an inconclusive gate rule"),
        (70, "a bug, or a plugin or a function that raised what it may not; `--debug` shows where"),
        (130, "interrupted; what was collected is kept"),
    ]
    about_streams = (
        "Nothing but a verdict gives 1, and nothing but a complete report 0. A reader of stdout that leaves (`| head`) and closed streams "
        "change no code: a gate writes `gate.json` before it prints. Output that cannot be written (a full disk) gives 2 in place of 0. "
        "A process that a signal ends has 128 and the number of the signal, as in every shell."
    )
    about_problems = (
        "Every error carries `problems`: values with `message`, `path`, `line`, `column`, `expected`, `got` and `hint`. "
        "A file's problems are reported together. `--debug` shows the traceback."
    )
    return "\n\n".join(
        [
            "# Errors and exit codes",
            "## Exit codes",
            table(("code", "what happened"), codes),
            about_streams,
            "## The tree",
            about_problems,
            fence(tree),
            "## Classes",
            table(("error", "exit code", "meaning"), rows),
        ]
    )


def security_page() -> str:
    """SECURITY.md of the project, with its links as they are from here."""
    text = (Path(__file__).parents[1] / "SECURITY.md").read_text().rstrip("\n")
    for begins, here in (
        ("docs/reference/generated/", ""),
        ("docs/", "../../"),
        ("tests/", "../../../tests/"),
    ):
        text = text.replace(f"]({begins}", f"]({here}")
    return text


def subclasses(root: type) -> Iterable[type]:
    yield root
    for child in root.__subclasses__():
        yield from subclasses(child)


def cli_page() -> str:
    sections = [
        "# Command line",
        "stdout carries only the result; progress and notes go to stderr. Errors are lines that start with `error:`.",
        fence(help_of()),
    ]
    for command in command_table().modules:
        sections += [f"## cranfield {command}", fence(help_of(command))]
        for inner in subcommands(command):
            sections += [f"### cranfield {command} {inner}", fence(help_of(command, inner))]
    sections += ["## Environment variables", table(("variable", "meaning"), variables().items())]
    return "\n\n".join(sections)


def subcommands(command: str) -> tuple[str, ...]:
    """What a group of commands holds, in its order; nothing for a command."""
    if command not in command_table().groups:
        return ()
    return tuple(command_table().commands_of(command))


def variables() -> dict[str, str]:
    """Every environment variable: those that stand for an option, with its help, and the others."""
    found = {}
    for command in command_table().modules:
        group = get_command(command_line(command)).commands[command]
        for each in (*getattr(group, "commands", {}).values(), group):
            found |= {f"`{option.envvar}`": option.help for option in each.params if isinstance(option.envvar, str)}
    return found | VARIABLES


VARIABLES = {
    f"`{ENGINE_VARIABLE}`": "The reader of TREC runs: `native` (the C kernel; an error where it was not built), `python`, or "
    "`auto`, the default: the kernel where there is one.",
    f"`{JOBS_VARIABLE}`": "Threads of the kernel, from 1 to 256. Unset: as many as there are processors, at most 8.",
    f"`{FOLDER_VARIABLE}`": "Folder of the cached scans of large run files, or `off`. Unset: `cranfield/scans` in the cache folder of "
    "the user (`XDG_CACHE_HOME`, else `~/.cache`).",
    f"`{PACKAGES_VARIABLE}`": "Folder of the packages that checks of Python code install. Unset: `cranfield/packages` in the cache folder "
    "of the user (`XDG_CACHE_HOME`, else `~/.cache`).",
    f"`{TOKEN_VARIABLE}`": "Token that callers of `cranfield mcp --http` send, 32 characters or more. Unset: it is made, and printed.",
    f"`{KEY_VARIABLE}`": "Key that signs the cookies of the judging server, 32 characters or more. Unset: a file that is made once in "
    "`cranfield/` in the data folder of the user (`XDG_DATA_HOME`, else `~/.local/share`).",
    f"`{AUTH_VARIABLE}`": "User and password of a Pushgateway, `USER:PASSWORD`, for `cranfield metrics RESULTS --push URL`.",
    f"`{MARK_NAME}`": "Set by Cranfield, not by you: the mark by which it finds the processes of a system to end them.",
}


def classes_page() -> str:
    """Query classes, from the table that evaluation and reports read."""
    intro = (
        "A query may have a class, by name or letter. Reports then contain measures and a test for each class. "
        "[How to use query classes](../../explanation/query-classes.md)."
    )
    sections = ["# Query classes", intro]
    for query_class in QUERY_CLASSES.values():
        facts = [
            ("letter", query_class.letter),
            ("right answer", query_class.sentence),
            ("measures, the first decides", ", ".join(f"`{name}`" for name in query_class.measures)),
            ("test", TESTS[query_class.test].title),
            *([("refused", ", ".join(f"`{name}`" for name in query_class.refused))] if query_class.refused else []),
            *(
                [("refused", f"all but {', '.join(f'`{name}`' for name in query_class.measures)}")]
                if query_class.others_refused
                else []
            ),
            *(
                [("because", why)]
                if (why := "; ".join(dict.fromkeys(query_class.refused.values())) or query_class.others_refused)
                else []
            ),
        ]
        sections += [f"## {query_class.name}", f"{opened(query_class.title)}.", table(("", ""), facts)]
    return "\n\n".join(sections)


def raters_page() -> str:
    """Rules and coefficients for several raters, from their tables."""
    intro = (
        "A test set may hold the ratings of several raters. A rule makes one grade of them, and coefficients say how far the "
        "raters agree. [How to combine the grades of several raters](../../how-to/several-raters.md)."
    )
    rules = ((f"`{name}`", rule.sentence, rule.source) for name, rule in CONSENSUS.items())
    coefficients = ((f"`{name}`", spec.title, spec.sentence, spec.source) for name, spec in COEFFICIENTS.items())
    maps = (
        (f"`{scale}`", f"`{to}`", ", ".join(f"{grade:g} is {made:g}" for grade, made in made_of.items()))
        for (scale, to), made_of in MAPS.items()
    )
    return "\n\n".join(
        [
            "# Raters",
            intro,
            "## Consensus",
            f"`consensus:` in a test set, or `--consensus`. Without it: `{DEFAULT_RULE}`.",
            table(("rule", "the grade it makes", "source"), rules),
            "## Agreement",
            "The name is the key in JSON and CSV.",
            table(("name", "coefficient", "what it is", "source"), coefficients),
            "## Scale maps",
            "`--to-scale` maps each rating before the ratings become one grade.",
            table(("from", "to", "grades"), maps),
        ]
    )


def formats_page() -> str:
    """The formats of files by name, from the table that recognises them."""
    intro = (
        "The format of a file is detected from its content; where that is ambiguous, the option decides. "
        "[Read, write and convert them](../../how-to/formats.md), [score TREC runs](../../how-to/trec-eval.md), "
        "[subtopics, judges and preferences](../../how-to/measures.md), [frames and Parquet](../../how-to/use-from-python.md#dicts-data-frames-and-parquet-files)."
    )
    sections = ["# File formats", intro]
    for kind, title, option in FORMAT_KINDS:
        rows = (
            (
                f"`{name}`",
                opened(entry.sentence),
                "by name only" if name in NAMED_ONLY else "by content",
                "read, written" if entry.writer else "read",
                entry.suffix and f"`{entry.suffix}`",
                entry.source,
            )
            for name, entry in FORMATS.items()
            if entry.kind == kind
        )
        head = (f"`{option}`" if option else "name", "what it is", "recognised by", "is", "ends in", "source")
        sections += [f"## {title}", table(head, rows)]
    written = [entry for entry in FORMATS.values() if entry.kind == "testset" and entry.writer]
    held = (
        (f"`{entry.name}`", ", ".join(feature.noun for name, feature in FEATURES.items() if name in entry.holds))
        for entry in written
    )
    rest = (
        "What is not listed is counted and reported when a test set is written; a query that loses all of its expected items "
        "is left out and reported."
    )
    sections += [
        "## What a test set keeps in each",
        rest,
        table(("format", "what it holds"), held),
    ]
    return "\n\n".join(sections)


NAMED_ONLY = tuple(name for name, entry in FORMATS.items() if entry.fits is never)
"""Formats whose files look like another's."""
FORMAT_KINDS: tuple[tuple[str, str, str], ...] = (
    ("testset", "Test sets", "--testset-format"),
    ("run", "Runs", "--run-format"),
    ("queries", "Texts of queries", ""),
)


def help_of(*words: str) -> str:
    names = requested_command(words)
    arguments = [*words, "--help"]
    return CliRunner().invoke(command_line(*names), arguments, prog_name="cranfield", terminal_width=98).stdout


def library_page() -> str:
    sections = [
        "# Library",
        "Everything here is `from cranfield import NAME`, and is imported when it is first used.",
    ]
    for name in cranfield.__all__:
        sections += described("##", name, getattr(cranfield, name))
    sections += ["## In modules of their own", "What these headings name is imported from that module."]
    for home, names in OF_MODULES.items():
        module = importlib.import_module(home)
        sections += [f"### {home}", *docstring(module)]
        for name in names:
            sections += described("####", name, getattr(module, name))
    return "\n\n".join(sections)


def described(level: str, name: str, thing: Any) -> list[str]:
    return [f"{level} {name}", fence(signature(name, thing), "python"), *docstring(thing), *attributes(thing)]


def schema_page(title: str, intro: str, schema: Mapping[str, Any]) -> str:
    return "\n\n".join(
        [
            f"# {title}",
            intro,
            *schema_tables(schema),
            "## JSON Schema",
            fence(json.dumps(schema, indent=2, ensure_ascii=False), "json"),
        ]
    )


def schema_tables(schema: Mapping[str, Any]) -> Iterable[str]:
    """A table of keys for the top and for each part that it refers to."""
    for name, part in {"The file": schema, **schema.get("$defs", {})}.items():
        if not part.get("properties"):
            continue
        required = part.get("required", [])
        rows = [
            (
                f"`{key}`" + (" (required)" if key in required else ""),
                kind_of(value),
                f"`{json.dumps(value['default'])}`" if "default" in value else "",
                value.get("description", ""),
            )
            for key, value in part["properties"].items()
        ]
        yield f"## {name}"
        if part.get("description"):
            yield str(part["description"])
        yield table(("key", "type", "default", "meaning"), rows)


def kind_of(value: Mapping[str, Any]) -> str:
    """`text`, `list of Check`, `text or null`: the type of a value in words."""
    words = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "mapping"}
    alternatives = value.get("anyOf") or value.get("oneOf")
    if "$ref" in value:
        text = str(value["$ref"]).rpartition("/")[2]
    elif "enum" in value or "const" in value:
        text = " or ".join(f"`{json.dumps(choice)}`" for choice in value.get("enum", [value.get("const")]))
    elif alternatives and "type" not in value:
        text = " or ".join(dict.fromkeys(kind_of(part) for part in alternatives))
    elif isinstance(value.get("type"), list):
        text = " or ".join(words.get(part, part) for part in value["type"])
    elif value.get("type") == "array" and value.get("items"):
        text = "list of " + kind_of(value["items"])
    elif inner := inner_kind(value):
        text = "mapping of " + inner
    else:
        text = words.get(str(value.get("type")), str(value.get("type", "anything")))
    return text


def inner_kind(value: Mapping[str, Any]) -> str:
    """What the values of a mapping with free keys are, or nothing."""
    inner = value.get("additionalProperties") or next(iter(value.get("patternProperties", {}).values()), None)
    return kind_of(inner) if isinstance(inner, Mapping) and inner else ""


def testset_page() -> str:
    intro = "A test set is one YAML or JSON file. [How to write one](../../how-to/write-a-test-set.md)."
    return schema_page("Test set", intro, published_schema("testset"))


def golden_page() -> str:
    intro = (
        "A golden set is a JSON list of such records; metadata lie in a file beside it. "
        "[How its labels are read and written](../../how-to/formats.md#golden-sets)."
    )
    return schema_page("Golden record", intro, published_schema("golden"))


def golden_run_page() -> str:
    intro = (
        "The folder of a run holds a file a step, one record a line. "
        "[How a golden set is made](../../how-to/golden-sets.md#where-every-record-stands)."
    )
    return schema_page("Records of a golden run", intro, published_schema("golden_run"))


def benefit_result_page() -> str:
    intro = "What `cranfield benefit result` writes. [How to read it](../../how-to/benefit-experiment.md#the-file)."
    return schema_page("Result of an experiment", intro, published_schema("benefit_result"))


def config_page() -> str:
    intro = (
        "`cranfield.yaml` says what is compared, how the systems are called, and what decides. "
        "[How to put a system under test](../../how-to/systems.md). What `with` of a preset takes is on "
        "[a page of its own](presets.md), and so are [the rules of a gate](gate.md)."
    )
    return schema_page("Config", intro, published_schema("cranfield"))


def workbench_page() -> str:
    intro = (
        "The operator's file of the judging workbench, `workbench.yaml`: where the texts of documents are. "
        "[How to show documents to raters](../../how-to/document-texts.md)."
    )
    return schema_page("Workbench", intro, published_schema("workbench"))


def published_schema(name: str) -> Mapping[str, Any]:
    """A JSON Schema that lies in the package."""
    (path,) = Path(cranfield.__file__).parent.rglob(f"{name}.schema.json")
    schema: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def metrics_page() -> str:
    """The Prometheus metrics, from the table that writes them."""
    intro = (
        "Names are with the default prefix; the [operator's file](workbench.md) changes prefix, names and labels. A value that "
        "is not known has no series: it is never 0. [How to use them](../../how-to/monitor-search-quality.md#metrics-alerts-and-a-dashboard)."
    )
    subject = ("system", "testset", "variant", "components")
    rows = []
    for family in METRIC_FAMILIES.values():
        labels = (*(("measure", "k") if family.of_measure else ()), *family.labels)
        labels += (*(subject if family.of_subject else ()), *(("stratum",) if family.of_measure else ()))
        rows.append((f"`cranfield_{family.name}`", family.kind, ", ".join(f"`{name}`" for name in labels), family.help))
    return "\n\n".join(["# Metrics for Prometheus", intro, table(("metric", "type", "labels", "what it is"), rows)])


def rest_page() -> str:
    """The routes of the REST API, from its OpenAPI document."""
    intro = (
        "From `GET /openapi.json` of a server, which has the models too. Each request has a token; every failure has the shape "
        "`ErrorResponse`. [How to use it](../../how-to/rest-and-agents.md)."
    )
    rows = []
    for path, operations in description()["paths"].items():
        for method, operation in operations.items():
            query = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
            what = " ".join(operation.get("description", "").split())
            rows.append((f"`{method.upper()} {path}`", ", ".join(f"`{name}`" for name in query), what))
    return "\n\n".join(["# REST API", intro, table(("request", "query", "what it does"), rows)])


INCLUDED = frozenset({"calculator", "platforms"})
"""Pages that stand within others, and not in the table of contents."""
CALCULATOR = (
    ("queries", "Queries", 100_000, "1"),
    ("results", "Results of each query", 1000, "1"),
    ("systems", "Systems", 1, "1"),
    ("judged", "Judgments of each query", 20, "any"),
    ("memory", "Memory of this machine, GB (--memory)", 1, "any"),
    ("threads", "Threads of this machine (CRANFIELD_JOBS)", 2, "1"),
    ("cores", "Cores of the cluster", 16, "1"),
)
"""Fields of the calculator: name, label, first value, step."""
ESTIMATES = (
    ("rows", "Rows"),
    ("judgments", "Judgments"),
    ("local", "Time on this machine"),
    ("memory", "Memory on this machine"),
    ("engine", "Time and memory on the cluster"),
)


def calculator_page() -> str:
    """A form that estimates sizes, by the constants of the plan."""
    constants = {name: value for name, value in vars(plan).items() if name.isupper() and isinstance(value, int | float)}
    fields = "".join(
        f'<label>{html.escape(label)} <input type="number" name="{name}" value="{value}" min="0" step="{step}"></label>\n'
        for name, label, value, step in CALCULATOR
    )
    found = "".join(f"<dt>{label}</dt><dd><output name='{name}'></output></dd>\n" for name, label in ESTIMATES)
    style = ".calculator label{display:flex;justify-content:space-between;gap:1em;max-width:34em;margin:.3em 0}"
    style += ".calculator input{width:10em;text-align:right}.calculator dt{font-weight:bold}"
    data = html.escape(json.dumps(constants))
    form = f'<form class="calculator" data-constants="{data}">\n{fields}<dl>\n{found}</dl>\n</form>'
    script = (Path(__file__).with_name("calculator.js")).read_text(encoding="utf-8")
    return f"```{{raw}} html\n<style>{style}</style>\n{form}\n<script>\n{script}</script>\n```\n"


def platforms_page() -> str:
    """The table of how-to/install.md#platforms-linux-macos-windows."""
    rows = [(each.title, each.linux, each.macos, each.windows) for each in PLATFORM_FEATURES]
    refused = [f"- {each.title}: {each.refused}." for each in PLATFORM_FEATURES if each.refused]
    columns = table(["", "Linux", "macOS", "Windows"], rows)
    return "\n".join([columns, "", "Refused there, with exit code 2:", "", *refused])


PAGES: Mapping[str, Callable[[], str]] = {
    "calculator": calculator_page,
    "measures": measures_page,
    "conventions": conventions_page,
    "tests": tests_page,
    "evidence": evidence_page,
    "errors": errors_page,
    "testset": testset_page,
    "golden": golden_page,
    "golden_run": golden_run_page,
    "benefit_result": benefit_result_page,
    "config": config_page,
    "workbench": workbench_page,
    "presets": presets_page,
    "gate": rules_page,
    "metrics": metrics_page,
    "rest": rest_page,
    "pytest": pytest_page,
    "platforms": platforms_page,
    "formats": formats_page,
    "classes": classes_page,
    "raters": raters_page,
    "cli": cli_page,
    "library": library_page,
    "security": security_page,
}


FOLDER = Path(__file__).parent / "reference" / "generated"


def write_pages(folder: Path) -> None:
    """Write every page whose text has changed (so that Sphinx rebuilds only those), and remove those that are no more."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {folder / f"{name}.md": page() + "\n" for name, page in PAGES.items()}
    present = {path: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    for path in present.keys() - texts.keys():
        path.unlink()
    for path, text in texts.items():
        if present.get(path) != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_pages(FOLDER)
