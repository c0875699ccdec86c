"""Tools named by a recipe, loaded when a session starts: Python, HTTP, MCP, objects with `invoke`."""

from agentnb.world.tools.invocation import as_result, failure_of, takes_timeout
from agentnb.world.tools.loading import close_tools, load_tools

__all__ = ["as_result", "close_tools", "failure_of", "load_tools", "takes_timeout"]
