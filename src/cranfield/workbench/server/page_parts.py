"""Pages that are sent in parts: what is known at once, then what takes long."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from fastapi import Request

from cranfield.base.errors import CranfieldError, Problem
from cranfield.workbench.server.error_handlers import log_failure
from cranfield.workbench.server.pages import environment, page_text

if TYPE_CHECKING:
    from markupsafe import Markup

    from cranfield.workbench.server.access import Caller


def page_parts(
    request: Request, template: str, caller: Caller, make: Callable[[], Markup], waiting: str, /, **values: object
) -> Iterator[str]:
    """A page whose `content` takes long to make: what is before it is sent at once, and shown.

    An error of `make` is shown in its place: the status is sent already.
    """
    from markupsafe import Markup

    mark = f"<!-- {secrets.token_hex(16)} -->"
    text = page_text(request, template, caller, caller.csrf, {**values, "content": Markup(mark)})  # noqa: S704 - hexadecimal digits
    head, _, tail = text.partition(mark)
    yield f'{head}<p class="waiting" role="status">{waiting}</p>\n'
    try:
        content = make()
    except CranfieldError as error:
        content = _problems(error.problems)
    except Exception as error:  # noqa: BLE001 - the page is half sent: it ends with the number of the error
        content = _problems([log_failure(error)])
    yield str(content)
    yield tail


def _problems(problems: Sequence[Problem]) -> Markup:
    template = environment().get_template("parts.html")
    made: Markup = template.module.problems(problems)  # type: ignore[attr-defined]  # a macro of the template
    return made
