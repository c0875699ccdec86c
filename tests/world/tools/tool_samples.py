"""Tools and their mistakes, for the tests."""

from __future__ import annotations

import pytest

from agentnb.errors import RecipeError
from agentnb.recipe.model import ToolSpec
from agentnb.world.tools import load_tools


def spec(impl="", *, id="t", kind="python", **rest):
    return ToolSpec(id, kind, impl, **rest)


def tool(impl="", *, folder=None, allow=(), given=None, **rest):
    """Load one tool."""
    loaded = spec(impl, **rest)
    return load_tools({loaded.id: loaded}, folder=folder, allow=allow, passed=given or {})[loaded.id]


def wrong(impl="", **rest):
    """Return the one problem that loading a tool ends in."""
    with pytest.raises(RecipeError) as caught:
        tool(impl, **rest)
    (problem,) = caught.value.problems
    return problem


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
