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

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentnb.board.values import ABSENT
    from agentnb.dialects.activegraph.foreign.session import open_activegraph
    from agentnb.engine.nesting import enable_nesting
    from agentnb.engine.work import Append
    from agentnb.errors import AgentNbError, ExecutionError, Problem, RecipeError
    from agentnb.load import dialects, load
    from agentnb.magics import load_ipython_extension, unload_ipython_extension
    from agentnb.recipe.model import Recipe
    from agentnb.samples import samples
    from agentnb.scenarios import run_scenarios
    from agentnb.session import Session
    from agentnb.session.logs import configure_logging
    from agentnb.session.opening import open, runs
    from agentnb.trace import SimulationTrace
    from agentnb.ui import Debugger, debug

# Name -> module, in the order in which a newcomer meets them.
_HOMES = {
    "load": "agentnb.load",
    "samples": "agentnb.samples",
    "dialects": "agentnb.dialects",
    "Recipe": "agentnb.recipe.model",
    "Session": "agentnb.session",
    "open": "agentnb.session.opening",
    "runs": "agentnb.session.opening",
    "open_activegraph": "agentnb.dialects.activegraph.foreign.session",
    "debug": "agentnb.ui",
    "Debugger": "agentnb.ui",
    "run_scenarios": "agentnb.scenarios",
    "SimulationTrace": "agentnb.trace",
    "ABSENT": "agentnb.board.values",
    "Append": "agentnb.engine.work",
    "Problem": "agentnb.errors",
    "AgentNbError": "agentnb.errors",
    "RecipeError": "agentnb.errors",
    "ExecutionError": "agentnb.errors",
    "enable_nesting": "agentnb.engine.nesting",
    "configure_logging": "agentnb.session.logs",
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
    "configure_logging",
    "debug",
    "dialects",
    "enable_nesting",
    "load",
    "load_ipython_extension",
    "open",
    "open_activegraph",
    "run_scenarios",
    "runs",
    "samples",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> Any:
    """Import a name of this package when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("agentnb")
    elif name in ("load_ipython_extension", "unload_ipython_extension"):
        value = getattr(import_module("agentnb.magics"), name)
    elif name == "dialects":
        value = import_module(_HOMES[name])
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'agentnb' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _Package(ModuleType):
    """This package: `load` and `samples` stay functions when the modules of the same names are imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _HOMES and isinstance(value, ModuleType):  # only the import system does this
            if name != "dialects":
                return
            value.__class__ = _Dialects
        super().__setattr__(name, value)


class _Dialects(ModuleType):
    """The package `agentnb.dialects`, which can be called too: `nb.dialects()` lists what can be loaded."""

    def __call__(self) -> Any:
        """Return what can be loaded, one row a dialect."""
        return import_module("agentnb.load").dialects()


sys.modules[__name__].__class__ = _Package
