"""The interfaces: help, OpenAPI, schemas, public names, tools of MCP."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

from scenes.scene import PAIR, Scene


def help_of_every_command() -> None:
    from cranfield.cli.main import command_table, run_command_line

    run_command_line(["--help"])
    for name in command_table().modules:
        print(f"\n$ cranfield {name} --help")
        run_command_line([name, "--help"])
        if name in command_table().groups:
            for command in command_table().commands_of(name):
                print(f"\n$ cranfield {name} {command} --help")
                run_command_line([name, command, "--help"])


def openapi() -> None:
    from cranfield.books.store.store import open_store
    from cranfield.workbench.server.app import create_app
    from cranfield.workbench.server.options import ServerOptions

    store = open_store("books.db")
    app = create_app(store, ServerOptions(port=8000, accounts=True, secret=b"k" * 32))
    print(json.dumps(app.openapi(), indent=1))
    store.close()


def json_schemas() -> None:
    from cranfield.app.schemas import SCHEMAS
    from cranfield.cli.main import run_command_line

    for name in sorted(SCHEMAS):
        print(f"$ cranfield schema {name}")
        run_command_line(["schema", name])


def public_names() -> None:
    """Each public name with its signature; of a class, those of its public methods and the names of its fields."""
    import cranfield

    for name in cranfield.__all__:
        thing = getattr(cranfield, name)
        print(name + signature_of(thing))
        if isinstance(thing, type):
            for member, value in sorted(vars(thing).items()):
                if not member.startswith("_"):
                    print(f"    {member}{signature_of(getattr(value, '__func__', value))}")


def signature_of(thing: object) -> str:
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(thing))) if callable(thing) else ""
    except ValueError:
        return ""


def mcp_tools() -> None:
    import anyio
    from mcp.client import Client

    from cranfield.workbench.mcp.evidence import open_evidence
    from cranfield.workbench.mcp.server import make_server

    async def list_tools(server: Any) -> None:
        async with Client(server) as client:
            print(client.instructions)
            for tool in (await client.list_tools()).tools:
                print(json.dumps(tool.model_dump(exclude_none=True), indent=1))

    Path("testset.yaml").write_text(PAIR["set.yaml"])
    Path("cranfield.yaml").write_text("testset: testset.yaml\nsystems: {a: {run: a.run}}\n")
    Path("a.run").write_text(PAIR["a.run"])
    with open_evidence(None, Path("cranfield.yaml"), frozenset()) as evidence:
        anyio.run(list_tools, make_server(evidence))


SCENES = [
    Scene("interface", [help_of_every_command, openapi, json_schemas, public_names, mcp_tools]),
]
