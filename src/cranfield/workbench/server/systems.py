"""Systems of the operator's config: how they answered, a probe, other values of open parameters, named variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, Response

from cranfield.app.run import filled_yaml
from cranfield.base.errors import CranfieldError, Problem, UsageError
from cranfield.config import Config, expand_preset
from cranfield.measures import USUAL_K
from cranfield.workbench.config import Range
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.http_errors import not_found
from cranfield.workbench.server.live_measures import SECONDS
from cranfield.workbench.server.pages import lead_to, render_page, see_other, segment
from cranfield.workbench.server.results import service_of
from cranfield.workbench.service.hole_grades import compare_results
from cranfield.workbench.service.probe import Probed, probe_in_child
from cranfield.workbench.service.requests import EvaluateRequest
from cranfield.workbench.service.responses import Trigger
from cranfield.workbench.service.tuning import (
    config_value,
    opened,
    read_settings,
    shown_range,
    shown_value,
    tunable_problems,
)

if TYPE_CHECKING:
    from cranfield.model import Scalar
    from cranfield.workbench.service.service import Service

router = APIRouter()
Reader = Annotated[Caller, Depends(require("results"))]
Lead = Annotated[Caller, Depends(require("manage"))]
Text = Annotated[str, Form(max_length=10_000)]
PREFIX = "set:"
"""Prefix of the fields of a form that set a parameter."""
MAX_RESULTS = 100


async def sent_settings(request: Request) -> dict[str, str]:
    """The fields of a form that set parameters: place to text."""
    form = await request.form()
    return {name.removeprefix(PREFIX): str(value) for name, value in form.items() if name.startswith(PREFIX)}


Settings = Annotated[dict[str, str], Depends(sent_settings)]


def config_of(service: Service) -> Config:
    """The operator's config.

    Raises:
        UsageError: the server has none.
    """
    config = service.config()
    if config is None:
        raise UsageError("the server has no config, so no systems", hint="start it with `cranfield serve CONFIG`")
    return config


@router.get("/systems")
def systems(request: Request, caller: Reader) -> HTMLResponse:
    """List the systems with the outcome of their last evaluation."""
    service = service_of(request)
    config = service.config()
    last = service.evaluations.last_of_systems()
    variants = service.variants.all()
    rows = (
        []
        if config is None
        else [
            {
                "name": name,
                "kind": expand_preset(written).kind,
                "last": last.get(name),
                "n_open": len(opened(service.workbench, name)),
                "variants": [variant.name for variant in variants if variant.system == name],
            }
            for name, written in config.systems.items()
        ]
    )
    unusable = tunable_problems(config, service.workbench)
    return render_page(request, "systems.html", caller, rows=rows, unusable=unusable, problems=service.config_problems)


@router.get("/systems/{name}")
def system(request: Request, caller: Reader, name: str, variant: Annotated[str, Query()] = "") -> HTMLResponse:
    """Show a system: its settings, the probe, its tunable parameters, its variants."""
    return _page(request, caller, name, variant=variant)


def _page(
    request: Request,
    caller: Caller,
    name: str,
    *,
    variant: str = "",
    new_variant: str = "",
    query: str = "",
    k: int | None = None,
    written: Mapping[str, str] | None = None,
    probed: Sequence[Probed] = (),
    problems: Sequence[Problem] = (),
) -> HTMLResponse:
    service = service_of(request)
    config = config_of(service)
    if name not in config.systems:
        raise not_found("system")
    variants = [each for each in service.variants.all() if each.system == name]
    chosen = next((each for each in variants if each.name == variant), None)
    values = written or {} if chosen is None else {place: shown_value(value) for place, value in chosen.params.items()}
    return render_page(
        request,
        "system.html",
        caller,
        http_status=422 if problems else 200,
        name=name,
        base=f"/systems/{segment(name)}",
        kind=expand_preset(config.systems[name]).kind,
        yaml=filled_yaml(_path(service), name),
        parameters=[
            _parameter(service, config, name, place, values.get(place, "")) for place in opened(service.workbench, name)
        ],
        variants=variants,
        shown_value=shown_value,
        testsets=[info.name for info in service.testsets.names()],
        new_variant=new_variant,
        query=query,
        k=k or config.k or USUAL_K,
        probed=probed,
        rows=side_by_side(probed) if len(probed) > 1 else (),
        problems=problems,
        last=service.evaluations.last_of_systems().get(name),
    )


def _path(service: Service) -> Path:
    path = service.config_file.path
    if path is None:
        raise not_found("system")
    return path


def _parameter(service: Service, config: Config, name: str, place: str, value: str) -> dict[str, object]:
    allowed = opened(service.workbench, name)[place]
    own = config_value(config, name, place)
    shown: dict[str, object] = {"place": place, "value": value, "own": own, "choices": None}
    if not isinstance(allowed, Range):
        return {**shown, "choices": list(map(shown_value, allowed)), "about": ""}
    step = "any" if allowed.distance is None else allowed.distance
    return {**shown, "about": shown_range(allowed), "min": allowed.min, "max": allowed.max, "step": step}


def side_by_side(probed: Sequence[Probed]) -> list[dict[str, object]]:
    """The results of the config's values and of others, rank by rank, and how each moved."""
    plain, tuned = (each.hits[: each.exchange.get("k")] for each in probed[:2])
    before = {hit.get("id"): rank for rank, hit in enumerate(plain, start=1)}
    rows: list[dict[str, object]] = []
    for rank in range(1, min(max(len(plain), len(tuned)), MAX_RESULTS) + 1):
        left = plain[rank - 1] if rank <= len(plain) else None
        right = tuned[rank - 1] if rank <= len(tuned) else None
        moved = "" if right is None else _moved(before.get(right.get("id")), rank)
        rows.append({"rank": rank, "left": left, "right": right, "moved": moved})
    return rows


def _moved(before: int | None, rank: int) -> str:
    if before is None:
        return "new"
    return "" if before == rank else f"up {before - rank}" if before > rank else f"down {rank - before}"


@router.post("/systems/{name}/probe")
def probe(
    request: Request,
    caller: Lead,
    name: str,
    settings: Settings,
    query: Text,
    k: Annotated[int, Form(ge=1, le=1_000)] = 10,
) -> HTMLResponse:
    """Send one query to a system: with the values of the config, and with changed values if any are set."""
    service = service_of(request)
    page = partial(_page, request, caller, name, query=query, k=k, written=settings)
    try:
        values = read_settings(service.workbench, name, settings)
        tried: list[Mapping[str, Scalar]] = [{}, values] if values else [{}]
        found = probe_in_child(_path(service), service.workbench, name, query, k, tried)
    except CranfieldError as error:
        return page(problems=error.problems)
    return page(probed=found)


def _other_values(service: Service, name: str, settings: Mapping[str, str]) -> dict[str, Scalar]:
    values = read_settings(service.workbench, name, settings)
    if not values:
        hint = "set a parameter, or start a new evaluation of the unchanged system"
        raise UsageError("no parameter differs from the config", hint=hint)
    return values


@router.post("/systems/{name}/try")
def try_out(request: Request, caller: Lead, name: str, settings: Settings, testset: Text) -> Response:
    """Evaluate the config and changed values of tunable parameters on a test set, as pilots, and compare them."""
    service = service_of(request)
    try:
        values = _other_values(service, name, settings)
    except UsageError as error:
        return _page(request, caller, name, written=settings, problems=error.problems)
    by = caller.account.id
    plain = EvaluateRequest(testset=testset, systems=(name,), pilot=True, tags=("try",))
    both = [plain, plain.model_copy(update={"params": values})]
    jobs = [service.jobs.submit(each, trigger=Trigger.PAGE, by=by) for each in both]
    return lead_to(service.jobs.wait(compare_results(service, jobs, by).id, SECONDS))


@router.post("/systems/{name}/variants")
def save_variant(
    request: Request, caller: Lead, name: str, settings: Settings, variant: Text = "", note: Text = ""
) -> Response:
    """Save changed values as a variant."""
    service = service_of(request)
    try:
        values = _other_values(service, name, settings)
        service.variants.save(variant.strip(), name, values, note, caller.account.id)
    except UsageError as error:
        return _page(request, caller, name, new_variant=variant, written=settings, problems=error.problems)
    return see_other(f"/systems/{segment(name)}?variant={segment(variant.strip())}", done="saved")


@router.post("/systems/{name}/variants/delete")
def delete_variant(request: Request, caller: Lead, name: str, variant: Text) -> Response:
    """Delete a variant; its evaluations are kept."""
    del caller
    service = service_of(request)
    if service.variants.get(variant).system != name:
        raise not_found("variant")
    service.variants.delete(variant)
    return see_other(f"/systems/{segment(name)}", done="revoked")
