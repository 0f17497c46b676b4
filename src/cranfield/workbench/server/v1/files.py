"""Files of requests and answers: forms with files, and what is written in a format."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import UploadFile

from cranfield.base.words import count_noun
from cranfield.workbench.server.access import CSRF_FIELD, Caller, read_form
from cranfield.workbench.server.http_errors import RefusedRequestError
from cranfield.workbench.server.streams import counted
from cranfield.workbench.server.v1.common import FORM
from cranfield.workbench.service.runs import temporary_folder
from cranfield.workbench.service.uploads import Upload

MAX_FIELDS = 500
MAX_FILES = 30
MAX_UPLOADS = 4
"""Most uploads of an account at a time: each is read by a process of its own."""
FILE: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}, "description": "The file."}}
FormatName = Annotated[str, Query(alias="format", max_length=40)]
BINARY = {"type": "string", "format": "binary"}


@dataclass
class SentForm:
    """What a form holds."""

    files: dict[str, list[UploadFile]] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)

    def uploads(self, name: str, format_name: str) -> list[Upload]:
        """The files of a field; with a test set go the texts of its queries."""
        queries = next((each.file for each in self.files.get("queries", ())), None)
        return [
            Upload(each.file, each.filename or "", format_name or None, queries) for each in self.files.get(name, ())
        ]

    def upload(self, name: str, format_name: str) -> Upload:
        """The file of a field that must have one.

        Raises:
            RefusedError: it has none.
        """
        for found in self.uploads(name, format_name):
            return found
        raise RefusedRequestError(422, "no file", f"send it as the field `{name}`", "invalid")

    def pop(self, name: str) -> str:
        """Take out the text of a field; empty where it was not sent."""
        return self.texts.pop(name, [""])[-1]


@asynccontextmanager
async def sent_form(
    request: Request, caller: Caller, most: Mapping[str, int], texts: Collection[str], lists: Collection[str] = ()
) -> AsyncIterator[SentForm]:
    """Read a form while the account has no more uploads at a time than it may.

    Args:
        request: whose body is read.
        caller: whose uploads are counted.
        most: fields that take files, and how many.
        texts: fields that take text.
        lists: those of them that take it several times.

    Raises:
        RequestValidationError: every unknown field, and every one with too much in it; as `read_form`.
        RefusedError: too many uploads at a time.
    """
    with counted(request.app.state.uploads, caller.account.id, MAX_UPLOADS) as is_free:
        if not is_free:
            await request.close()  # a form of a page has been read to find its token
            hint = f"send {MAX_UPLOADS} at a time"
            raise RefusedRequestError(
                429, "too many concurrent uploads of this account", hint, "rate", {"Retry-After": "2"}
            )
        form = await read_form(request, max_files=MAX_FILES, max_fields=MAX_FIELDS)
        try:
            found = SentForm()
            for name, value in form.multi_items():
                if not isinstance(value, UploadFile):
                    found.texts.setdefault(name, []).append(value)
                elif value.filename or value.size:  # else the empty field of a browser
                    found.files.setdefault(name, []).append(value)
            found.pop(CSRF_FIELD)
            if problems := [*_wrong_fields(found, most, texts, lists)]:
                raise RequestValidationError(problems)
            yield found
        finally:
            await form.close()


def _wrong_fields(
    form: SentForm, most: Mapping[str, int], texts: Collection[str], lists: Collection[str]
) -> Iterator[dict[str, object]]:
    """The fields that a form should not have, or not so often, as `sent_form` takes them."""
    wrong = [
        (name, count_noun(len(files), "files")) for name, files in form.files.items() if len(files) > most.get(name, 0)
    ]
    for name, values in form.texts.items():
        if name not in texts:
            wrong.append((name, "unknown field"))
        elif len(values) > 1 and name not in lists:
            wrong.append((name, f"sent {len(values)} times"))
    hint = f"files are {', '.join(most)}; other fields are {', '.join(sorted(texts))}"
    for name, message in wrong:
        yield {"type": "form", "loc": ("body", name), "msg": message, "ctx": {"hint": hint}}


def form_schema(required: str, properties: Mapping[str, Any], description: str = "") -> dict[str, Any]:
    """The body of a form, for the description of the API."""
    schema = {"type": "object", "required": [required], "description": description, "properties": dict(properties)}
    return {FORM: {"schema": schema}}


def written(name: str, write: Callable[[Path], tuple[str, ...]]) -> Response:
    """A file, or a ZIP archive of a folder, with what it does not hold in the header `Cranfield-Notes`.

    Args:
        name: of the file.
        write: writes it, and gives a sentence for each thing that the format cannot hold.
    """
    with temporary_folder() as folder:
        path = folder / name
        notes = write(path)
        data = path.read_bytes() if path.is_file() else _zipped(path)
        ending = ".zip" if path.is_dir() else ""
    headers = {"Content-Disposition": f'attachment; filename="{name}{ending}"'}
    if notes:
        headers["Cranfield-Notes"] = " ".join(notes).encode("ascii", "replace").decode()[:2000]
    return Response(data, headers=headers, media_type="application/octet-stream")


def _zipped(folder: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in sorted(folder.rglob("*")):
            if each.is_file():
                entry = zipfile.ZipInfo(each.relative_to(folder).as_posix())  # without the time of the file
                archive.writestr(entry, each.read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()
