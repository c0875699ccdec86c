"""agentnb: a step-through debugger for agent graphs, in a Jupyter cell.

    import agentnb as nb
    recipe = nb.load("support.yaml")     # or nb.samples("triage")
    session = nb.Session(recipe, {"ticket": "My invoice is wrong"}, answers=["approve"])
    session.step()                       # one node; session.back() goes back, session.run() goes on
    session                              # as the last line of a cell: the cockpit
    session.trace.frames.steps           # the run as DataFrames

Names are imported when they are first used, so that this import stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentnb.board.values import ABSENT
    from agentnb.engine.nesting import enable_nesting
    from agentnb.engine.work import Append
    from agentnb.errors import AgentNbError, ExecutionError, Problem, RecipeError
    from agentnb.load import dialects, load
    from agentnb.magics import load_ipython_extension
    from agentnb.recipe.model import Recipe
    from agentnb.samples import samples
    from agentnb.session import Session
    from agentnb.trace import SimulationTrace
    from agentnb.ui import Debugger, debug

# Name -> module, in the order in which a newcomer meets them.
_HOMES = {
    "load": "agentnb.load",
    "samples": "agentnb.samples",
    "dialects": "agentnb.load",
    "Recipe": "agentnb.recipe.model",
    "Session": "agentnb.session",
    "debug": "agentnb.ui",
    "Debugger": "agentnb.ui",
    "SimulationTrace": "agentnb.trace",
    "ABSENT": "agentnb.board.values",
    "Append": "agentnb.engine.work",
    "Problem": "agentnb.errors",
    "AgentNbError": "agentnb.errors",
    "RecipeError": "agentnb.errors",
    "ExecutionError": "agentnb.errors",
    "enable_nesting": "agentnb.engine.nesting",
}

__all__ = [
    "ABSENT",
    "AgentNbError",
    "Append",
    "Debugger",
    "ExecutionError",
    "Problem",
    "Recipe",
    "RecipeError",
    "Session",
    "SimulationTrace",
    "__version__",
    "debug",
    "dialects",
    "enable_nesting",
    "load",
    "load_ipython_extension",
    "samples",
]


def __getattr__(name: str) -> Any:
    """Import a name of this package when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("agentnb")
    elif name == "load_ipython_extension":
        value = import_module("agentnb.magics").load_ipython_extension
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'agentnb' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
