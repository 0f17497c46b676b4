"""The whole job behind `cranfield components`: every variant of a system collected, scored and set side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cranfield.config import Config, SystemConfig, load_config
from cranfield.config.grid_points import with_systems
from cranfield.errors import Problem, UnknownNameError, UsageError
from cranfield.evaluation.contribution import Contributions, contributions
from cranfield.evaluation.verdict import broken_limits
from cranfield.model import Scalar, TestSet
from cranfield.project.asking import FILES, ask, collect_options, prepared, require_folder
from cranfield.project.rules import check_rules
from cranfield.reporting import Document, save_reports
from cranfield.reporting.documents.contribution import contribution_document
from cranfield.systems import build_systems


@dataclass(frozen=True)
class Variants:
    """The systems that a system with components is measured as."""

    systems: Mapping[str, SystemConfig]
    """Name to config; each is asked once."""
    whole: str
    alone: Mapping[str, str]
    """Component to the name of the variant with nothing else."""
    without: Mapping[str, str]
    """Component to the name of the variant with all the others."""


@dataclass(frozen=True)
class ComponentsJob:
    """What `run_components` made."""

    document: Document
    result: Contributions
    broken_limits: tuple[str, ...]
    """Of the whole system."""
    written: tuple[Path, ...]


def run_components(
    name: str,
    config_path: Path,
    *,
    out: Path,
    of: str | None = None,
    seed: int = 0,
    pilot: bool = False,
    keep: bool = True,
    refresh: bool = False,
) -> ComponentsJob:
    """Collect and score all components, each alone, and all but each; write the report into `out`.

    Args:
        name: of a system with `components`, or of a fusion.
        config_path: cranfield.yaml.
        out: folder of `results.json`, `report.html`, `report.md` and `runs/`.
        of: which test set, where the config has several.
        seed: of everything random.
        pilot: stamp everything made as not for the record.
        keep: use answers that were kept, and keep the new ones.
        refresh: use none that were kept.

    Raises:
        InputError: config or test set, with all their problems.
        UsageError: the system has no components.
        PreflightError: a check did not hold; no query was run.
        Interrupted: cut short; the same call goes on from there.
    """
    config = load_config(config_path, also=check_rules)
    variants = variants_of(config, name)
    require_folder(out)
    ready = prepared(config, of=of, seed=seed)
    _require_free(variants, ready.testset, ready.said.params)
    made = {
        system.name: system
        for system in build_systems(with_systems(config, variants.systems), variants.systems, ready.said.params)
    }
    systems = [made[one] for one in variants.systems]
    runs, held = ask(
        ready.testset,
        systems,
        config,
        out,
        k=ready.k,
        pilot=pilot,
        options=collect_options(config, keep=keep, refresh=refresh),
    )
    scored = {one: ready.evaluated(run) for one, run in runs.items()}
    result = contributions(
        name,
        scored[variants.whole],
        {component: scored[one] for component, one in variants.alone.items()},
        {component: scored[one] for component, one in variants.without.items()},
        ready.options,
    )
    checks = [(check.system, check.check, check.found) for check in held]
    document = contribution_document(result, preflight=checks)
    written = save_reports(document, out, FILES)
    broken = tuple(broken_limits([result.whole], result.primary, ready.options.limits))
    return ComponentsJob(document, result, broken, written)


def variants_of(config: Config, name: str) -> Variants:
    """All components, each alone, and all but each; of two components, alone and all but one are the same.

    The components of a fusion are its parts: a variant has weight 0 for the others.

    Raises:
        UnknownNameError: there is no such system.
        UsageError: it has no components, or fewer than two.
    """
    if name not in config.systems:
        raise UnknownNameError.among("system", name, config.systems)
    system = config.systems[name]
    components = _components(system)
    if len(components) < 2:
        raise UsageError(
            f"system {name} has no components",
            expected="a fusion of two parts with a weight, or a system that lists its `components`",
        )
    alone = {one: f"{name}.only-{one}" for one in components}
    if len(components) == 2:
        without = {one: alone[other] for one, other in (components, components[::-1])}
    else:
        without = {one: f"{name}.without-{one}" for one in components}
    systems = {f"{name}.all": system}
    systems |= {alone[one]: _with_only(system, [one], components) for one in components}
    systems |= {
        without[one]: _with_only(system, [other for other in components if other != one], components)
        for one in components
    }
    return Variants(systems, f"{name}.all", alone, without)


def _components(system: SystemConfig) -> list[str]:
    if system.fusion is not None:
        return [part for part in system.fusion.of if system.fusion.weights.get(part, 1.0) > 0]
    return list(dict.fromkeys(system.components or []))


def _with_only(system: SystemConfig, on: list[str], components: list[str]) -> SystemConfig:
    """The same system with some components on and the others off."""
    if system.fusion is not None:
        off = dict.fromkeys((one for one in components if one not in on), 0.0)
        fusion = system.fusion.model_copy(update={"weights": {**system.fusion.weights, **off}})
        return system.model_copy(update={"fusion": fusion})
    switches: dict[str, Scalar] = {"components": ",".join(on)}
    switches |= {one: one in on for one in components}
    return system.model_copy(update={"params": {**system.params, **switches}})


def _require_free(variants: Variants, testset: TestSet, params: Mapping[str, Scalar]) -> None:
    """Refuse params that would switch components behind our back."""
    names = {"components", *variants.alone}
    whole = variants.systems[variants.whole]
    if whole.fusion is not None:
        return
    given = {
        "the system": whole.params,
        "the test set": params,
        **{f"query {query.id}": query.params for query in testset.queries},
    }
    problems = [
        Problem(f"{who} gives the parameter {one}, which switches a component", hint="call it otherwise.")
        for who, said in given.items()
        for one in sorted(names & set(said))
    ]
    if problems:
        raise UsageError(problems)
