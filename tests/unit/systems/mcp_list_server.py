"""An MCP server with one tool, which returns a list as its only argument says: `rows`, `text`, `lines` or `structure`.

`rows` is sent as a text a row, `text` as one JSON text, `lines` as one text with lines of JSON, `structure` as `{"result": [...]}`.
"""

import json
import sys
from typing import Any

from mcp.server.mcpserver import MCPServer

KIND = sys.argv[1]
FOUND = {"grid": ("d1", "d2"), "wires": ("d4",)}
server = MCPServer("lists")


def search(query: str) -> Any:
    """Search; a query that is not known finds nothing."""
    rows = [{"id": id_, "title": f"title of {id_}"} for id_ in FOUND.get(query, ())]
    if KIND == "text":
        return json.dumps(rows, indent=2)
    if KIND == "lines":
        return "\n".join(map(json.dumps, rows))
    return rows


if __name__ == "__main__":
    search.__annotations__["return"] = list[dict[str, str]] if KIND in {"rows", "structure"} else str
    server.add_tool(search, structured_output=KIND != "rows")
    server.run("stdio")
