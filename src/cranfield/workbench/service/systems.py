"""The systems of a request: names of the operator's config, with a variant's parameters and with some components alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cranfield.base.errors import UnknownNameError, UsageError, unknown_name
from cranfield.config import Config, SystemConfig
from cranfield.model import Scalar
from cranfield.workbench.service.requests import EvaluateRequest
from cranfield.workbench.service.tuning import label as label_of
from cranfield.workbench.service.tuning import tuned_system

if TYPE_CHECKING:
    from cranfield.workbench.service.context import Context

MAX_VARIANT = 200
"""Characters of a variant that are stored."""


@dataclass(frozen=True, slots=True)
class ChosenSystem:
    """A system to ask."""

    name: str
    """In the config."""
    config: SystemConfig
    """With the parameters of the variant, and with the components alone."""
    label: str
    """Label of its evaluation: `search (boosted) [bm25]`."""
    variant: str = ""
    """Name of the variant, or the parameters that are tried."""


def chosen_systems(context: Context, request: EvaluateRequest) -> tuple[ChosenSystem, ...]:
    """The systems of a request, in its order.

    Raises:
        UnknownNameError: there is no such system, variant or component.
        UsageError: none is named and the config has several; a parameter that is not open.
    """
    if request.runs and not request.systems:
        if request.variant or request.components or request.params:
            raise UsageError("components, params and variant apply to systems, but the request has only runs")
        return ()
    config = context.config()
    if config is None:
        raise UsageError(
            "the server has no config, so no systems", expected="runs", hint="start it with `cranfield serve CONFIG`"
        )
    params: Mapping[str, Scalar] = request.params
    names = list(request.systems)
    if request.variant:
        variant = context.variants.get(request.variant)
        if names not in ([], [variant.system]):
            raise UsageError(f"variant {variant.name} belongs to {variant.system}", got=", ".join(names))
        names, params = [variant.system], {**variant.params, **params}
    names = names or [_usual_system(config)]
    return tuple(_chosen(context, config, name, request, params) for name in names)


def variant_of(request: EvaluateRequest) -> str:
    """What the evaluations of a request are called besides their system: the variant, and the values that are tried."""
    parts = (request.variant, label_of(request.params) if request.params else "")
    return ", ".join(filter(None, parts))[:MAX_VARIANT]


def _usual_system(config: Config) -> str:
    """The candidate of the config, or its only system."""
    if config.pair is not None:
        return config.pair[1]
    if len(config.systems) > 1:
        raise UsageError(
            "the config has several systems, but the request names none", expected=", ".join(config.systems)
        )
    return next(iter(config.systems))


def _chosen(
    context: Context, config: Config, name: str, request: EvaluateRequest, params: Mapping[str, Scalar]
) -> ChosenSystem:
    from cranfield.app.grid import components_of, with_only

    if name not in config.systems:
        raise UnknownNameError.among("system", name, config.systems)
    system = config.systems[name]
    if params:
        system = tuned_system(config, context.workbench, name, params)
    variant = variant_of(request)
    label = name + (f" ({variant})" if variant else "")
    if request.components:
        known = components_of(system)
        if not known:
            raise UsageError(f"system {name} has no components", path="components", hint="evaluate it as a whole")
        for component in request.components:
            if component not in known:
                problem = unknown_name(f"component of {name}", component, known)
                raise UnknownNameError(replace(problem, path="components"))
        system = with_only(system, request.components)
        label += f" [{','.join(request.components)}]"
    return ChosenSystem(name, system, label, variant)
