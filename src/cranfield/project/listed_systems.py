"""The systems of a config and the presets, as documents and as YAML; nothing is started."""

from __future__ import annotations

from pathlib import Path

from cranfield.config import SystemConfig, expand_preset, load_config, public_config, system_config
from cranfield.config.presets import PRESETS, Preset
from cranfield.config.services import McpServer
from cranfield.config.systems import FusionConfig, HttpConfig, McpConfig, PresetConfig
from cranfield.errors import UnknownNameError
from cranfield.reporting.document import Code, Column, Document, Section, Table


def systems_document(config_path: Path) -> Document:
    """The systems of a config, a line each; nothing is started."""
    config = load_config(config_path)
    columns = (
        Column("system"),
        Column("kind"),
        Column("target"),
        Column("timeout"),
        Column("concurrency", "count"),
        Column("components"),
    )
    rows = [
        (
            name,
            f"preset {system.preset}" if isinstance(system, PresetConfig) else system.kind,
            _target(expand_preset(system)),
            f"{system.timeout_s:g} s",
            system.concurrency,
            ", ".join(system.components or ()),
        )
        for name, system in config.systems.items()
    ]
    table = Table(
        columns, rows, "`cranfield system probe NAME QUERY` sends a query to one of them", shown=None, wrap=True
    )
    return Document(
        title=f"{len(rows)} systems" if len(rows) > 1 else "1 system",
        subtitle=(str(config_path),),
        sections=(Section("systems", "Systems", (table,)),),
        tidy=lambda: table,
        payload=lambda: {"systems": {name: public_config(system) for name, system in config.systems.items()}},
    )


def _target(system: SystemConfig) -> str:
    """The command, address, function or file, as written."""
    if isinstance(system, HttpConfig):
        return system.http.url
    if isinstance(system, McpConfig):
        tool = system.mcp
        return f"{tool.tool} of {tool.url if isinstance(tool, McpServer) else ' '.join(tool.command)}"
    if isinstance(system, FusionConfig):
        return f"{system.fusion.method} of {', '.join(system.fusion.of)}"
    written = getattr(system, system.kind)
    return " ".join(written) if isinstance(written, list) else str(written)


def filled_yaml(config_path: Path, name: str) -> str:
    """A system of a config as YAML, its preset filled in."""
    config = load_config(config_path)
    if name not in config.systems:
        raise UnknownNameError.among("system", name, config.systems)
    return _yaml({name: public_config(expand_preset(config.systems[name]))})


def _yaml(value: object) -> str:
    import yaml

    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
    return text


def presets_document(name: str | None = None) -> Document:
    """The table of presets; or one of them, with the settings of `with` and its expansion."""
    if name is not None and name not in PRESETS:
        raise UnknownNameError.among("preset", name, PRESETS)
    if name is not None:
        return _preset_document(PRESETS[name])
    rows = [(preset.name, preset.title, ", ".join(_needed(preset))) for preset in PRESETS.values()]
    columns = (Column("preset"), Column("description"), Column("needs"))
    table = Table(columns, rows, "`cranfield system presets NAME` shows one in full", shown=None)
    return Document(
        title="Presets",
        subtitle=("forms of other kinds of system, filled in",),
        sections=(Section("presets", "Presets", (table,)),),
        tidy=lambda: table,
        payload=lambda: {preset.name: preset.settings.model_json_schema() for preset in PRESETS.values()},
    )


def _needed(preset: Preset) -> list[str]:
    return [field.alias or name for name, field in preset.settings.model_fields.items() if field.is_required()]


def _preset_document(preset: Preset) -> Document:
    columns = (Column("setting"), Column("required"), Column("meaning"))
    rows = [
        (field.alias or name, "yes" if field.is_required() else "", " ".join((field.description or "").split()))
        for name, field in preset.settings.model_fields.items()
    ]
    table = Table(columns, rows, "Settings of `with`", shown=None, wrap=True)
    example = {"preset": preset.name, "with": dict(preset.example)}
    yaml_text = _yaml(example)
    comes_to = _yaml(public_config(expand_preset(system_config("example", example))))
    return Document(
        title=f"preset {preset.name}",
        subtitle=(preset.title,),
        sections=(
            Section("settings", "Settings", (table,)),
            Section(
                "example",
                "Example",
                (Code(yaml_text, "in the config", in_text=True), Code(comes_to, "expanded", in_text=True)),
            ),
        ),
        tidy=lambda: table,
        payload=lambda: dict(preset.settings.model_json_schema()),
    )
