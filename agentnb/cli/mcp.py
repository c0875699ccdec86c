"""`agentnb mcp`: serve runs to a coding assistant."""

from __future__ import annotations

import argparse
from typing import Any

from agentnb.errors import AgentNbError, Problem


def run_mcp(args: argparse.Namespace) -> int:
    """Serve runs by MCP on stdin and stdout, until the other side closes them.

    U600: `agentnb mcp --changes` without a recipe.

    Raises:
        AgentNbError: U600; or the recipe has errors, or the SDK is not installed.
    """
    from agentnb.cli.python_objects import load_model, load_recipe, load_tools
    from agentnb.cli.script import read_script
    from agentnb.mcp.assistant import Assistant
    from agentnb.mcp.open_runs import OpenRuns
    from agentnb.mcp.server import check_installed, serve_stdio

    check_installed()
    options: dict[str, Any] = {}
    if args.changes and args.recipe is None:
        raise AgentNbError(
            Problem("U600", "--changes needs a recipe", "agentnb mcp", "a stored run can continue only with its recipe",
                    "add --recipe FILE; or leave --changes out: recordings can be stepped without it")
        )  # fmt: skip
    if args.recipe is not None:
        recipe = load_recipe(args.recipe, args.allow)
        options = {**read_script(args.script, recipe), "recipe": recipe}
        if args.llm is not None:
            options["llm"] = load_model(args.llm)
        options["tools"] = {**options.get("tools", {}), **load_tools(args.tools)}
    runs = OpenRuns(args.stores or ["."], changes=args.changes, options=options)
    serve_stdio(Assistant(runs, name=args.name))
    return 0


__all__ = ["run_mcp"]
