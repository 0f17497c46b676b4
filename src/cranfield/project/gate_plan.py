"""What a gate goes by: the config with its rules, from the working tree or, where a pull request must not loosen them, from
a git ref.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cranfield.config import Config, SetConfig, load_config
from cranfield.config.gate import GateConfig
from cranfield.config.models import parts_of
from cranfield.config.owners import differing, merged
from cranfield.config.systems import SystemConfig
from cranfield.errors import ConfigError, UsageError
from cranfield.formats.io.files import shown
from cranfield.formats.io.located import Located, load_located
from cranfield.gate.ref import Ref, ref_named
from cranfield.gate.rules import words
from cranfield.options.declaration import declared
from cranfield.options.testset import TestSetOptions
from cranfield.project.loading import SetOverrides

EXAMPLE = "say what must hold: gate: {rules: [floor: {measure: nDCG@10, at_least: 0.40}]}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A config with the rules it is held to."""

    path: Path
    config: Config
    gate: GateConfig
    systems: Mapping[str, str]
    """Name of a test set to the system that is gated on it."""
    located: Located
    """The file that the rules stand in, for the places of what is wrong with them."""
    ref: Ref | None = None
    notes: tuple[str, ...] = ()

    def baseline_path(self, testset: str) -> Path:
        """Where the baseline of a test set lies, as seen from where the config was named."""
        return self.path.parent / self.gate.baseline_of(testset)


def planned(config_path: Path, baseline_ref: str | None = None) -> Plan:
    """A config and its gate; with a ref, the rules are those of the ref, and what differs is a note."""
    config = load_config(config_path)
    if baseline_ref is None:
        if config.gate is None:
            raise ConfigError("the config has no gate", path=shown(config_path), hint=EXAMPLE)
        located = load_located(config_path, ConfigError)
        return Plan(config_path, config, config.gate, systems_gated(config), located)
    ref = ref_named(baseline_ref, config.folder)
    ref_config, located = _config_at(ref, config_path)
    if ref_config.gate is None:
        hint = "the gate can be taken from this ref once it is merged there"
        raise UsageError(f"the config has no gate in {ref.name}", path=ref.shown(config_path), hint=hint)
    ruled = _ruled(config, ref_config, ref)
    systems = systems_gated(ref_config)
    notes = tuple(_differences(config, ref_config, ruled, ref))
    return Plan(config_path, ruled, ref_config.gate, systems, located, ref, notes)


def _config_at(ref: Ref, config_path: Path) -> tuple[Config, Located]:
    """The config as a ref has it; problems name the ref."""
    hint = "the gate can be taken from this ref once it is merged there"
    text = ref.read(config_path, hint=hint)
    name = ref.shown(config_path)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / config_path.name
        copy.write_bytes(text)
        try:
            config = load_config(copy)
            located = load_located(copy, ConfigError)
            _ = located.root, located.top
        except ConfigError as error:
            raise ConfigError([replace(problem, path=name) for problem in error.problems]) from None
    located.path = Path(name)
    return config, located


def _ruled(config: Config, ref_config: Config, ref: Ref) -> Config:
    """This config with each key that the ref decides as the ref has it; see `cranfield.config.owners`."""
    if (config.testsets is None) != (ref_config.testsets is None):
        raise UsageError(f"there is one test set here and several in {ref.name}, or the other way round")
    gated = dict.fromkeys(systems_gated(ref_config).values())
    for name in gated:
        if name not in config.systems:
            raise UsageError(
                f"the gate of {ref.name} is about the system {name}, which is not here",
                expected=name,
                got=", ".join(config.systems),
                hint="keep its name; to rename it, merge that first, checked by a gate without a baseline ref",
            )
    _refuse_stored_answers(config, ref_config, ref, gated)
    known: dict[str, SystemConfig] = {}
    for name in gated:  # a part that the ref does not have gets the limits of the system that it is a part of
        lax: dict[str, Any] = {
            "preflight": [],
            **({"empty": None} if hasattr(ref_config.systems[name], "empty") else {}),
        }
        known |= dict.fromkeys(parts_of(config.systems, name), ref_config.systems[name].model_copy(update=lax))
    known |= ref_config.systems
    update: dict[str, Any] = {
        "systems": {name: merged(system, known.get(name)) for name, system in config.systems.items()}
    }
    if config.testsets is not None and ref_config.testsets is not None:
        gone = [name for name in ref_config.testsets if name not in config.testsets]
        if gone:
            raise UsageError(f"test sets of {ref.name} are not here any more: {', '.join(gone)}")
        update["testsets"] = {name: merged(config.testsets[name], there) for name, there in ref_config.testsets.items()}
    return merged(config, ref_config).model_copy(update=update)


def _refuse_stored_answers(config: Config, ref_config: Config, ref: Ref, gated: Iterable[str]) -> None:
    """Refuse a run file in place of a system: no rule on the answers would be about the code of the change.

    What else the ref has as a run file, such as an earlier system to compare with, is no part of the gated system there.
    """
    for name in gated:
        stored = {
            part for part in (name, *parts_of(ref_config.systems, name)) if ref_config.systems[part].kind == "run"
        }
        for part in (name, *sorted(parts_of(config.systems, name))):
            if config.systems[part].kind == "run" and part not in stored:
                there = ref_config.systems.get(part)
                is_called = "is not there" if there is None else f"is of the kind {there.kind}"
                if there is not None and there.kind == "run":
                    is_called = f"is no part of {name}"
                raise UsageError(
                    f"the system {part} is a run file here, and {is_called} in {ref.name}: the gate would judge stored answers",
                    expected=f"a system that is called, or a run file in {ref.name} too",
                    got=f"run: {getattr(config.systems[part], 'run', '')}",
                    hint=f"to gate stored answers from now on, merge that change of the config into {ref.name} first",
                )


def refuse_overrides(overrides: SetOverrides) -> None:
    """Refuse options of a call that change the test set or what of the answers counts: with a ref, the ref decides.

    Raises:
        UsageError: with each of them.
    """
    defaults = SetOverrides()
    given = ["depth"] if overrides.depth is not None else []
    given += [
        name
        for name, each in declared(TestSetOptions).items()
        if getattr(overrides.options, name) != getattr(defaults.options, name) and each.option.owner == "ref"
    ]
    if given:
        names = ", ".join(f"{{{name}}}" for name in given)
        hint = "write it into the config, in the block `options`, and merge that first."
        message = f"{names}: with a baseline ref, the ref decides which test set counts"
        raise UsageError(message, hint=hint, parameters=tuple(given))


def _differences(config: Config, ref_config: Config, ruled: Config, ref: Ref) -> Iterator[str]:
    """What this config changes of the settings that the ref decides, in sentences for the pull request."""
    for name in dict.fromkeys(systems_gated(ref_config).values()):
        kinds = [side.systems[name].kind for side in (config, ref_config)]
        if len(set(kinds)) > 1:
            yield f"the system {name} is of the kind {kinds[0]} here, and of the kind {kinds[1]} in {ref.name}"
    here, there = ([words(rule) for rule in side.gate.rules] if side.gate else [] for side in (config, ref_config))
    removed, added = [rule for rule in there if rule not in here], [rule for rule in here if rule not in there]
    if removed or added:
        yield f"rules differ from {ref.name}, and those of {ref.name} count"
    if removed:
        yield f"rules of {ref.name} that are not here: {'; '.join(removed)}"
    if added:
        yield f"rules that are only here, and not looked at: {'; '.join(added)}"
    if changed := [*_changed_keys(config, ruled)]:
        yield f"other than in {ref.name}, and taken from there: {', '.join(changed)}"
    new = [name for name in config.testsets or {} if name not in (ref_config.testsets or {})]
    if new:
        yield f"test sets that {ref.name} does not have are not looked at: {', '.join(new)}"


def _changed_keys(config: Config, ruled: Config) -> Iterator[str]:
    """The keys whose values are those of the ref, and others here; rules are compared one by one."""
    yield from (key for key in differing(config, ruled) if key not in {"gate", "systems", "testsets"})
    if config.gate is not None and ruled.gate is not None:
        yield from (f"gate.{key}" for key in differing(config.gate, ruled.gate) if key != "rules")
    for block in ("testsets", "systems"):
        here, decided = getattr(config, block) or {}, getattr(ruled, block) or {}
        for name in decided:
            yield from (f"{block}.{name}.{key}" for key in differing(here[name], decided[name]))


def systems_gated(config: Config) -> dict[str, str]:
    """Which system is gated on each test set: the one named, the last of the set's own, the candidate or the only one."""
    return {name: _system_gated(config, settings) for name, settings in config.sets.items()}


def _system_gated(config: Config, settings: SetConfig) -> str:
    if config.gate is not None and config.gate.system is not None:
        return config.gate.system
    if settings.systems is not None:
        return settings.systems[-1]
    if config.pair is not None:
        return config.pair[1]
    if len(config.systems) == 1:
        return next(iter(config.systems))
    raise UsageError(
        f"the config has {len(config.systems)} systems and does not say which is gated", hint="say gate: {system: NAME}"
    )
