"""What a gate does before it queries a system: rules and baseline by their owner, anchors, and the history it judges by.

Anchors tie a test set to its repository and are no part of its digest. A change that moves code writes them anew (`cranfield testset
rehash`), which a reviewer sees; a change that only removes them would switch the drift check off, so a gate with a baseline ref
compares them with those of the ref.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cranfield.app.experiment import load_configured
from cranfield.app.history import KeptValues
from cranfield.app.loading import SetOverrides, named_testset, read_stored
from cranfield.base.errors import ConfigError, CranfieldError, Problem, UsageError
from cranfield.base.words import count_noun, join_first
from cranfield.config import Config, SetConfig, load_config
from cranfield.config.models import parts_of
from cranfield.config.owners import differing, merged
from cranfield.config.systems import SystemConfig
from cranfield.evaluation.history import HistoryPoint
from cranfield.evaluation.options.blocks import TestSetOptions
from cranfield.evaluation.options.declaration import declared
from cranfield.formats.io.files import meta_path, shown
from cranfield.formats.io.located import Located, load_located
from cranfield.gate.baseline import Ref, ref_named
from cranfield.gate.config import GateConfig, Rule, gate_of
from cranfield.gate.decimals import exact
from cranfield.gate.gate_input import GateInput, Values
from cranfield.gate.rules import RULES, measure_of, rules_of, words
from cranfield.measures import parse
from cranfield.model.testset import Meta

if TYPE_CHECKING:
    from cranfield.evaluation.values import Evaluation
    from cranfield.formats.testsets.field_mapping import FieldMapping
    from cranfield.model import TestSet


EXAMPLE = "define the rules: gate: {rules: [floor: {measure: nDCG@10, at_least: 0.40}]}"


@dataclass(frozen=True, slots=True)
class GatePlan:
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


def planned(config_path: Path, baseline_ref: str | None = None) -> GatePlan:
    """A config and its gate; with a ref, the rules are those of the ref, and what differs is a note."""
    config = load_config(config_path)
    if baseline_ref is None:
        gate = gate_of(config)
        if gate is None:
            raise ConfigError("the config has no gate", path=shown(config_path), hint=EXAMPLE)
        located = load_located(config_path, ConfigError)
        return GatePlan(config_path, config, gate, systems_gated(config), located)
    ref = ref_named(baseline_ref, config.folder)
    ref_config, located = _config_at(ref, config_path)
    gate = gate_of(ref_config)
    if gate is None:
        hint = "the gate can be read from this ref once it is merged there"
        raise UsageError(f"the config has no gate in {ref.name}", path=ref.shown(config_path), hint=hint)
    ruled = _ruled(config, ref_config, ref)
    systems = systems_gated(ref_config)
    notes = tuple(_differences(config, ref_config, ruled, ref))
    return GatePlan(config_path, ruled, gate, systems, located, ref, notes)


def _config_at(ref: Ref, config_path: Path) -> tuple[Config, Located]:
    """The config as a ref has it; problems name the ref."""
    hint = "the gate can be read from this ref once it is merged there"
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
        raise UsageError(f"one side of this config and {ref.name} has a single test set, the other has several")
    gated = dict.fromkeys(systems_gated(ref_config).values())
    for name in gated:
        if name not in config.systems:
            raise UsageError(
                f"the gate of {ref.name} checks the system {name}, which is not in this config",
                expected=name,
                got=", ".join(config.systems),
                hint="keep its name; to rename it, merge the renaming first, checked by a gate without a baseline ref",
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
            raise UsageError(f"test sets of {ref.name} are no longer in the config: {', '.join(gone)}")
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
                    is_called = f"is not a part of {name}"
                raise UsageError(
                    f"the system {part} is a run file here, and {is_called} in {ref.name}: the gate would judge stored answers",
                    expected=f"a system that can be queried, or a run file in {ref.name} too",
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
        hint = "set it in the block `options` of the config, and merge that first."
        message = f"{names}: with a baseline ref, the ref defines the test set"
        raise UsageError(message, hint=hint, parameters=tuple(given))


def _differences(config: Config, ref_config: Config, ruled: Config, ref: Ref) -> Iterator[str]:
    """What this config changes of the settings that the ref decides, in sentences for the pull request."""
    for name in dict.fromkeys(systems_gated(ref_config).values()):
        kinds = [side.systems[name].kind for side in (config, ref_config)]
        if len(set(kinds)) > 1:
            yield f"the system {name} is of the kind {kinds[0]} here, and of the kind {kinds[1]} in {ref.name}"
    gates = [gate_of(side) for side in (config, ref_config)]
    here, there = ([] if gate is None else [words(rule) for rule in gate.rules] for gate in gates)
    removed, added = [rule for rule in there if rule not in here], [rule for rule in here if rule not in there]
    if removed or added:
        yield f"rules differ from {ref.name}; the rules of {ref.name} are used"
    if removed:
        yield f"rules of {ref.name} missing in this config: {'; '.join(removed)}"
    if added:
        yield f"rules only in this config, not checked: {'; '.join(added)}"
    if changed := [*_changed_keys(config, ruled)]:
        yield f"different from {ref.name}, whose values are used: {', '.join(changed)}"
    new = [name for name in config.testsets or {} if name not in (ref_config.testsets or {})]
    if new:
        yield f"test sets missing in {ref.name} are not checked: {', '.join(new)}"


def _changed_keys(config: Config, ruled: Config) -> Iterator[str]:
    """The keys whose values are those of the ref, and others here; rules are compared one by one."""
    yield from (key for key in differing(config, ruled) if key not in {"gate", "systems", "testsets"})
    gate, ruled_gate = gate_of(config), gate_of(ruled)
    if gate is not None and ruled_gate is not None:
        yield from (f"gate.{key}" for key in differing(gate, ruled_gate) if key != "rules")
    for block in ("testsets", "systems"):
        here, decided = getattr(config, block) or {}, getattr(ruled, block) or {}
        for name in decided:
            yield from (f"{block}.{name}.{key}" for key in differing(here[name], decided[name]))


def systems_gated(config: Config) -> dict[str, str]:
    """Which system is gated on each test set: the one named, the last of the set's own, the candidate or the only one."""
    return {name: _system_gated(config, settings) for name, settings in config.sets.items()}


def _system_gated(config: Config, settings: SetConfig) -> str:
    gate = gate_of(config)
    if gate is not None and gate.system is not None:
        return gate.system
    if settings.systems is not None:
        return settings.systems[-1]
    if config.pair is not None:
        return config.pair[1]
    if len(config.systems) == 1:
        return next(iter(config.systems))
    raise UsageError(
        f"the config has {len(config.systems)} systems, but does not define which one the gate checks",
        hint="set gate: {system: NAME}",
    )


def lost_anchors(plan: GatePlan, name: str) -> Iterator[Problem]:
    """Places and files that the ref checks for drift, and the change does not; nothing for a test set without a repository."""
    chosen = plan.config.sets[name]
    if plan.ref is None or chosen.repo is None:
        return
    path = named_testset(plan.config.folder / chosen.path)
    there = _meta_at(plan.ref, path, chosen.mapping)
    if there is None:
        return
    here = read_stored(path, mapping=chosen.mapping).meta
    for what, lost in (
        ("places", there.anchors.keys() - here.anchors),
        ("files", there.source_files.keys() - here.source_files),
    ):
        if lost:
            message = f"{count_noun(len(lost), what)} checked for drift in {plan.ref.name}, but not here: {join_first(sorted(lost))}"
            hint = "update the anchors: `cranfield testset rehash SET --repo DIR`"
            yield Problem(message, path=shown(path), hint=hint)


def _meta_at(ref: Ref, path: Path, mapping: FieldMapping | None) -> Meta | None:
    """The metadata of a test set at a ref; None where it is no file there."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        try:
            copy.write_bytes(ref.read(path, hint=""))
        except CranfieldError:  # a folder, or outside of the repository
            return None
        with suppress(CranfieldError):  # the file holds its metadata, or has none
            meta_path(copy).write_bytes(ref.read(meta_path(path), hint=""))
        return read_stored(copy, mapping=mapping).meta


VALUED = frozenset({"floor", "drop", "ratchet"})
"""Rules on the values of a measure: the others are about the answers, which a history does not keep."""


@dataclass(frozen=True)
class _Recorded:
    """The part of an evaluation that rules on values read."""

    testset: TestSet
    query_ids: tuple[str, ...]


@dataclass(frozen=True)
class _KeptInput(GateInput):
    """The input of the rules for a point, and for the one it is compared with."""

    kept: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    kept_before: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def values(self, measure: str) -> Values:
        """The kept values."""
        return _exact(self.kept.get(str(parse(measure)), {}))

    def before(self, measure: str) -> Values:
        """The kept values of the last good point."""
        return _exact(self.kept_before.get(str(parse(measure)), {}))

    def lost(self, measure: str, queries: Iterable[str]) -> tuple[str, ...]:
        """Queries without a value that have one at the last good point."""
        now, before = self.values(measure), self.before(measure)
        return tuple(query for query in queries if query not in now and query in before)

    @property
    def unanswered(self) -> Mapping[str, str]:
        """Not recorded; what failed has the value 0."""
        return {}


def _exact(values: Mapping[str, float]) -> Values:
    return {query_id: exact(value) for query_id, value in values.items()}


class GateJudge:
    """Applies the rules of a config's gate that are on one measure."""

    def __init__(self, config_path: Path, measure: str, values: KeptValues) -> None:
        """Read the rules.

        Args:
            config_path: cranfield.yaml.
            measure: the measure of the history.
            values: the kept values.

        Raises:
            ConfigError: the config has problems, or no gate.
            UsageError: the gate has no rule on the measure.
        """
        self._config: Config = load_config(config_path)
        gate = gate_of(self._config)
        if gate is None:
            raise ConfigError("the config has no gate", path=shown(config_path), hint=EXAMPLE)
        self._gate = gate
        self._values = values
        self._measure = str(parse(measure))
        self._testsets = {testset.digest: (name, testset) for name, testset in self._load()}
        spelled = {str(parse(of)) for rule in self._gate.rules if rule.kind in VALUED and (of := measure_of(rule))}
        if self._measure not in spelled:
            known = ", ".join(sorted(spelled)) or "none"
            raise UsageError(
                f"the gate has no rule on {self._measure}",
                expected=f"{{measure}} with a measure of its rules: {known}",
                parameters=("measure",),
            )

    def _load(self) -> Iterable[tuple[str, TestSet]]:
        for name in self._config.sets:
            yield name, load_configured(self._config, name, allow_drift=True)

    def __call__(self, point: HistoryPoint, before: HistoryPoint | None) -> str | None:
        """The sentence of the first rule that a point breaks; empty where it breaks none.

        None where it cannot be applied: no values are kept, or the test set of the config is another version of it.
        """
        if point.digest not in self._testsets:
            return None
        name, testset = self._testsets[point.digest]
        kept = self._values.all_of(point)
        if kept is None:
            return None
        kept_before = None if before is None else self._values.all_of(before)
        recorded = cast("Evaluation", _Recorded(testset, tuple(kept.get(self._measure, {}))))
        declared = self._config.comparing()
        alpha, test, draws = declared.alpha, declared.test, declared.draws
        sides = (kept, kept_before or {})
        given = _KeptInput(recorded, None, test, alpha, n_draws=draws, kept=sides[0], kept_before=sides[1])
        for rule in self._rules(name, compares=kept_before is not None):
            result = RULES[rule.kind].judge(rule.terms, given)
            if result.status == "failed":
                return result.sentence
        return ""

    def _rules(self, name: str, *, compares: bool) -> Iterable[Rule]:
        for _, rule in rules_of(self._gate, name):
            of = measure_of(rule)
            if rule.kind in VALUED and of and str(parse(of)) == self._measure and (compares or not rule.needs_baseline):
                yield rule
