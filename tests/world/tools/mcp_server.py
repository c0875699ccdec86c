"""A real MCP server for the tests, over stdio or, with a port as its argument, over HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import Image, MCPServer
from mcp.types import CallToolResult, TextContent

server = MCPServer("tests")
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc33"
    "0000000049454e44ae426082"
)


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def find(query: str, most: int = 2) -> dict[str, object]:
    """Find lines."""
    return {"query": query, "items": [f"{query} {number}" for number in range(most)]}


@server.tool(structured_output=False)
def say(text: str) -> str:
    """Say it again."""
    return text


@server.tool()
def pid() -> int:
    """Tell which process this is."""
    return os.getpid()


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool()
def refuse() -> CallToolResult:
    """Say that it failed, and nothing more."""
    return CallToolResult(content=[], is_error=True)


@server.tool()
def two() -> list[TextContent]:
    """Say two things."""
    return [TextContent(type="text", text="one"), TextContent(type="text", text="two")]


@server.tool()
def picture() -> Image:
    """Show a pixel."""
    return Image(data=PIXEL, format="png")


@server.tool()
def variable(name: str) -> str:
    """Tell a variable of the environment."""
    return os.environ.get(name, "not set")


def leave(mark: str) -> None:
    Path(mark).write_text("given up", encoding="utf-8")


@server.tool()
async def wait(mark: str) -> str:
    """Wait until it is given up, and leave a mark then."""
    try:
        await asyncio.Event().wait()
    finally:
        leave(mark)
    return "never"


@server.tool()
def crash() -> str:
    """End the server in the middle of a call."""
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
