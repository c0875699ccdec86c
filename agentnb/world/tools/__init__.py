"""Tools named by a recipe, loaded when a session starts: Python, HTTP, MCP, objects with `invoke`."""

from agentnb.world.tools.invocation import find_failure, takes_timeout, to_result
from agentnb.world.tools.loading import close_tools, load_tools

__all__ = ["close_tools", "find_failure", "load_tools", "takes_timeout", "to_result"]
