"""A tool of an MCP server, over HTTP or on stdin and stdout: `elevation.py http` or `elevation.py stdio`."""

import sys

from mcp.server import MCPServer

METRES = {"zurich": 408, "geneva": 375, "lugano": 273}
server = MCPServer("heights")


@server.tool()
def elevation(city: str) -> dict[str, int]:
    """How many metres above the sea a city lies."""
    return {"metres": METRES.get(city.lower(), 0)}


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        server.run("streamable-http", host="127.0.0.1", port=7502)
    else:
        server.run("stdio")
