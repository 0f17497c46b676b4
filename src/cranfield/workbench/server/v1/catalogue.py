"""What the server can compute and evaluate: measures with their explanations, systems of the operator's config."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter, Request

from cranfield.workbench.server.v1.common import RESULTS, Route, service_of
from cranfield.workbench.service.responses import MeasureInfo, MeasureList, SystemList, SystemResponse

router = APIRouter(route_class=Route)


@router.get("/measures", dependencies=[RESULTS])
def list_measures() -> MeasureList:
    """List the measures with their explanations, formulas and sources."""
    return _measures()


@cache
def _measures() -> MeasureList:
    """The catalogue: it does not change while the process lives."""
    from cranfield.measures.described import describe_measures
    from cranfield.workbench.service.scoring import USUAL_MEASURES

    rows = [MeasureInfo.model_validate(measure) for measure in describe_measures().measures]
    return MeasureList(default=list(USUAL_MEASURES), measures=rows)


@router.get("/systems", dependencies=[RESULTS])
def list_systems(request: Request) -> SystemList:
    """List the systems that the operator's config allows, with their components and variants."""
    from cranfield.app.grid import components_of

    service = service_of(request)
    config = service.config()
    variants = service.variants.all()
    found = [
        SystemResponse(
            name=name,
            components=list(components_of(system)),
            variants=[each.name for each in variants if each.system == name],
        )
        for name, system in (config.systems.items() if config is not None else ())
    ]
    return SystemList(systems=found)
