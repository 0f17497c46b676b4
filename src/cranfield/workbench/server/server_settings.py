"""The settings of the server: its config and the operator's file as they were read, without secrets; storage and versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from cranfield.base.words import count_noun
from cranfield.config.services import SECRET_PARAMETERS
from cranfield.evaluation.result import versions
from cranfield.workbench.config import shown_settings
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.pages import render_page
from cranfield.workbench.server.results import service_of

router = APIRouter()
Lead = Annotated[Caller, Depends(require("manage"))]
HIDDEN = "***"
_SECRET = re.compile(r"pass(word|wd)?|secret|token|credential|api.?key|authorization|cookie", re.IGNORECASE)
_VARIABLE = re.compile(r"\{env\.\w+\}")
_USER = re.compile(r"(?<=://)[^/@\s]*@")
_PARAMETER = re.compile(rf"([?&](?:{'|'.join(sorted(SECRET_PARAMETERS))})=)[^&\s]*", re.IGNORECASE)
LIBRARIES = ("numpy", "scipy", "fastapi", "sqlalchemy", "pydantic")
SIZES = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


def without_secrets(value: object, name: str = "") -> object:
    """A value of a config as it may be shown: names of variables stay, what looks like a secret does not."""
    if isinstance(value, Mapping):
        return {str(key): without_secrets(each, str(key)) for key, each in value.items()}
    if isinstance(value, list):
        return [without_secrets(each, name) for each in value]
    if not isinstance(value, str):
        return value
    if _SECRET.search(name) and not _VARIABLE.search(value):
        return HIDDEN
    return _PARAMETER.sub(rf"\1{HIDDEN}", _USER.sub(f"{HIDDEN}@", value))


def as_yaml(model: BaseModel) -> str:
    """What a file sets, as YAML without secrets; empty where it sets nothing."""
    found: Any = without_secrets(model.model_dump(mode="json", by_alias=True, exclude_unset=True))
    return yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=100) if found else ""


def size_text(n: int) -> str:
    """Bytes in words: `3.2 MB`."""
    return next((f"{n / unit:.1f} {name}" for unit, name in SIZES if n >= unit), count_noun(n, "bytes"))


@router.get("/settings")
def settings(request: Request, caller: Lead) -> HTMLResponse:
    """Show the settings of the running server."""
    service, store = service_of(request), request.app.state.store
    config, path = service.config(), store.database.path
    stored = [("database", store.where), *([("size", size_text(Path(path).stat().st_size))] if path else [])]
    stored += [(f"jobs {state}", str(n)) for state, n in service.jobs.counts().items()]
    n, contents = service.evaluations.storage()
    stored += [("evaluations", str(n)), ("test sets, runs and results", size_text(contents))]
    stored += [("for each evaluation", size_text(round(contents / n)))] if n else []
    spans = service.traces.counts
    stored += [(f"spans {fate.value.replace('_', ' ')}", str(n)) for fate, n in spans.spans.most_common()]
    stored += [(f"documents of spans: {why.replace('_', ' ')}", str(n)) for why, n in spans.documents_dropped.items()]
    stored += [("books", str(len(store.books.all()))), ("test sets", str(len(service.testsets.names())))]
    return render_page(
        request,
        "server_settings.html",
        caller,
        config="" if config is None else as_yaml(config),
        config_path="" if service.config_file.path is None else service.config_file.path.name,
        problems_found=service.config_problems,
        workbench=as_yaml(service.workbench),
        options=shown_settings(request.app.state.options.settings),
        stored=stored,
        versions=versions(*LIBRARIES),
    )
