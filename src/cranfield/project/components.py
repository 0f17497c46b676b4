"""The whole job behind `cranfield components`: every variant of a system collected, scored and set side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from cranfield.config import Config, SystemConfig, load_config
from cranfield.config.grid import with_systems
from cranfield.config.systems import FusionConfig
from cranfield.errors import Problem, UnknownNameError, UsageError
from cranfield.evaluation.calls import calls_of
from cranfield.evaluation.contribution import Contributions, contributions
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.evidence.values import void_sentences
from cranfield.model import Scalar
from cranfield.project.experiment import AnswerCache, Experiment, prepare
from cranfield.project.loading import NO_OVERRIDES, SetOverrides
from cranfield.project.output_folder import REPORT_FILES, require_folder
from cranfield.reporting import Document, save_reports
from cranfield.reporting.documents.contribution import contribution_document


@dataclass(frozen=True)
class Variants:
    """The systems that a system with components is measured as."""

    systems: Mapping[str, SystemConfig]
    """Name to config; each is called once."""
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
    void_reasons: tuple[str, ...]
    """Of the whole system."""
    written: tuple[Path, ...]


def run_components(
    name: str,
    config_path: Path,
    *,
    out: Path,
    testset: str | None = None,
    seed: int = 0,
    pilot: bool = False,
    cache: AnswerCache = "use",
    overrides: SetOverrides = NO_OVERRIDES,
) -> ComponentsJob:
    """Collect and score all components, each alone, and all but each; write the report into `out`.

    Args:
        name: of a system with `components`, or of a fusion.
        config_path: cranfield.yaml.
        out: folder of `results.json`, `report.html`, `report.md` and `runs/`.
        testset: which one, where the config has several.
        seed: of everything random.
        pilot: mark everything made as not for the record.
        cache: what is done with the answers of earlier runs.
        overrides: options of the test set, in place of those of the config.

    Raises:
        InputError: config or test set, with all their problems.
        UsageError: the system has no components.
        PreflightError: a check failed; no query was sent.
        Interrupted: the same call continues where it stopped.
    """
    config = load_config(config_path)
    variants = variants_of(config, name)
    require_folder(out)
    varied, chosen = with_systems(config, variants.systems), config.set_name(testset)
    experiment = prepare(varied, chosen, list(variants.systems), seed=seed, cache=cache, overrides=overrides)
    _require_free(variants, experiment)
    with experiment.collected(out, pilot=pilot) as runs:
        scored = {variant: experiment.evaluate(run) for variant, run in runs.items()}
        result = contributions(
            name,
            scored[variants.whole],
            {component: scored[variant] for component, variant in variants.alone.items()},
            {component: scored[variant] for component, variant in variants.without.items()},
            experiment.options,
        )
        evaluations, checked = tuple(scored.values()), experiment.check_rows
        document = contribution_document(result, lambda: calls_of(evaluations, preflight=checked))
        written = save_reports(document, out, REPORT_FILES)
        broken = void_sentences(inspect_systems([scored[variants.whole]], result.primary, experiment.options.limits))
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
    components = components_of(system)
    if len(components) < 2:
        raise UsageError(
            f"system {name} has no components",
            expected="a fusion of two parts with a weight, or a system that lists its `components`",
        )
    alone = {component: f"{name}.only-{component}" for component in components}
    if len(components) == 2:
        without = {first: alone[other] for first, other in (components, components[::-1])}
    else:
        without = {component: f"{name}.without-{component}" for component in components}
    systems = {f"{name}.all": system}
    systems |= {alone[part]: with_only(system, [part]) for part in components}
    systems |= {
        without[part]: with_only(system, [other for other in components if other != part]) for part in components
    }
    return Variants(systems, f"{name}.all", alone, without)


def components_of(system: SystemConfig) -> list[str]:
    """Names of the components of a system: of a fusion, the parts with a weight; empty where it has none."""
    if isinstance(system, FusionConfig):
        return [part for part in system.fusion.of if system.fusion.weights.get(part, 1.0) > 0]
    return list(dict.fromkeys(system.components or []))


def with_only(system: SystemConfig, on: Collection[str]) -> SystemConfig:
    """The same system with some components on and the others off."""
    components = components_of(system)
    if isinstance(system, FusionConfig):
        off = dict.fromkeys((part for part in components if part not in on), 0.0)
        fusion = system.fusion.model_copy(update={"weights": {**system.fusion.weights, **off}})
        return system.model_copy(update={"fusion": fusion})
    switches: dict[str, Scalar] = {"components": ",".join(part for part in components if part in on)}
    switches |= {part: part in on for part in components}
    return system.model_copy(update={"params": {**system.params, **switches}})


def _require_free(variants: Variants, experiment: Experiment) -> None:
    """Refuse parameters that would switch components."""
    whole = variants.systems[variants.whole]
    if isinstance(whole, FusionConfig):
        return
    switches = {"components", *variants.alone}
    given = {
        "the system": whole.params,
        "the test set": experiment.params,
        **{f"query {query.id}": query.params for query in experiment.testset.queries},
    }
    problems = [
        Problem(f"{giver} gives the parameter {name}, which switches a component", hint="call it otherwise.")
        for giver, params in given.items()
        for name in sorted(switches & set(params))
    ]
    if problems:
        raise UsageError(problems)
