"""Reference pages of presets, of the gate's rules and of the pytest plugin. For `generate`, which lists them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from python_markdown import docstring, fence, field_sentences, table

from cranfield import pytest_plugin
from cranfield.config import expand_preset, public_config, system_config
from cranfield.config.models import Config
from cranfield.config.owners import OWNERS, Owner, keys_of
from cranfield.config.presets import PRESETS, Preset
from cranfield.evaluation.options.blocks import SET_OPTIONS
from cranfield.gate.config import RULE_MODELS, GateConfig
from cranfield.gate.rules import RULES
from cranfield.gate.use_cases.calibration import Scores
from cranfield.gate.use_cases.ci import MarkerSettings

FIXTURES = ("evaluation", "cranfield_evaluate", "cranfield_config")
"""What the plugin gives to tests."""


def presets_page() -> str:
    """A section for each preset: what `with` takes, and what an example of it comes to."""
    intro = (
        "A preset is a form of another kind of system that is filled in. `cranfield system presets NAME` prints the same, and "
        "`cranfield system show NAME` what a system of yours comes to. [How to ask a search engine](../../how-to/http-and-engines.md#presets-for-search-engines)."
    )
    rows = (
        (f"[`{preset.name}`](#{preset.name})", preset.title, ", ".join(required(preset.settings)))
        for preset in PRESETS.values()
    )
    sections = ["# Presets", intro, table(("preset", "queries", "needs"), rows)]
    for preset in PRESETS.values():
        sections += [f"## {preset.name}", f"{preset.title}.", settings_table(preset.settings), *example_of(preset)]
    return "\n\n".join(sections)


def required(settings: type[BaseModel]) -> list[str]:
    return [f"`{field.alias or name}`" for name, field in settings.model_fields.items() if field.is_required()]


def settings_table(settings: type[BaseModel]) -> str:
    """The keys of a model with their defaults and sentences."""
    rows = (
        (
            f"`{field.alias or name}`" + (" (required)" if field.is_required() else ""),
            written(field.get_default(call_default_factory=True)),
            " ".join((field.description or "").split()),
        )
        for name, field in settings.model_fields.items()
    )
    return table(("key", "default", "meaning"), rows)


def written(default: Any) -> str:
    """A default as YAML has it; nothing where there is none or it is empty."""
    if default is PydanticUndefined or default is None or default in ({}, []):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def example_of(preset: Preset) -> list[str]:
    """What is written, and what stands for it."""
    shown = {"preset": preset.name, "with": dict(preset.example)}
    comes_to = public_config(expand_preset(system_config("example", shown)))
    return ["This", fence(as_yaml(shown), "yaml"), "comes to", fence(as_yaml(comes_to), "yaml")]


def as_yaml(value: object) -> str:
    import yaml

    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)
    return text


def rules_page() -> str:
    """A section for each rule of the gate, from the table that judges."""
    intro = (
        "The rules of `gate:` in `cranfield.yaml`, each with its keys. Every rule must pass. "
        "[How to check a system with a gate](../../how-to/gate.md)."
    )
    rows = (
        (f"[`{rule.name}`](#{rule.name})", rule.sentence, "yes" if RULE_MODELS[rule.name].needs_baseline else "")
        for rule in RULES.values()
    )
    sections = ["# Rules of a gate", intro, table(("rule", "what it is for", "needs a baseline"), rows)]
    for rule in RULES.values():
        keys = model_of(rule.name)
        examples = "gate:\n  rules:\n" + "".join(f"    - {example}\n" for example in rule.examples)
        sections += [f"## {rule.name}", rule.sentence, fence(examples, "yaml"), settings_table(keys)]
    about = (
        "A rule may also name `testsets`, where a config has several. `for` and `severity` are of its alert: "
        "`cranfield alerts` writes the rules for [Prometheus](../../how-to/monitor-search-quality.md#metrics-alerts-and-a-dashboard)."
    )
    return "\n\n".join([*sections, "## The block", about, settings_table(GateConfig), *owners_section()])


def kinds_text(found: set[str], all_kinds: set[str]) -> str:
    """The kinds of system that have a key; nothing where all have it."""
    rest = sorted(all_kinds - found)
    if not found or not rest:
        return ""
    return f"all but {', '.join(rest)}" if len(rest) < len(found) else ", ".join(sorted(found))


def owners_section() -> list[str]:
    """Who decides each key with `--baseline-ref`, read from the markers of the models."""
    intro = (
        "With `--baseline-ref` a key of `cranfield.yaml` is read from the ref where another value could loosen the gate, and "
        "from the working tree where it is under test. Every key has an owner beside its definition; a test fails for one without. "
        "A block that the ref decides is decided with all of its keys. `testsets.NAME` are those of the ref, `systems.NAME` those of the change; a part of "
        "a fusion that the ref does not have gets the limits of the system that it is a part of."
    )
    kinds: dict[tuple[str, Owner | None], set[str]] = {}
    for key in keys_of(Config):
        if key.owner != "each":
            kinds.setdefault((".".join(key.place), key.owner), set()).update(key.kinds)
    all_kinds = set().union(*kinds.values())
    rows = (
        (f"`{place}`", kinds_text(found, all_kinds), OWNERS[owner])
        for (place, owner), found in kinds.items()
        if owner is not None
    )
    options = ", ".join(f"`{each.flag}`" for each in SET_OPTIONS.values() if each.option.owner == "ref")
    allowed = ", ".join(f"`{each.flag}`" for each in SET_OPTIONS.values() if each.option.owner != "ref")
    call = (
        f"Options of the call that say which queries and judgments count are refused with `--baseline-ref`: {options}. "
        f"{allowed} is taken from the call, because a baseline holds the digest of what the databases answered."
    )
    return ["## Who decides each key", intro, table(("key", "kinds of system", "decided by"), rows), call]


def model_of(rule: str) -> type[BaseModel]:
    """The model of the terms of a rule."""
    model: type[BaseModel] = RULE_MODELS[rule].model_fields[rule].annotation  # type: ignore[assignment]  # never None
    return model


def pytest_page() -> str:
    """The marker, the fixtures and what they give."""
    intro = "The plugin is active as soon as the package is installed. [How to test a search with pytest](../../how-to/test-with-pytest.md)."
    settings = ((f"`{name}`", sentence) for name, sentence in field_sentences(MarkerSettings).items())
    sections = [
        "# pytest plugin",
        intro,
        "## The marker cranfield",
        table(("setting", "meaning"), settings),
        "## Fixtures",
    ]
    for name in FIXTURES:
        sections += [f"### {name}", *docstring(getattr(pytest_plugin, name).__wrapped__)]
    sections += ["## What there is to assert"]
    for name, thing in vars(Scores).items():
        if not name.startswith("_") and (isinstance(thing, property) or callable(thing)) and thing.__doc__:
            sections += [f"### evaluation.{name}", *docstring(thing)]
    return "\n\n".join(sections)
