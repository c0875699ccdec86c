"""agentnb: a step-through debugger for agent graphs, in a Jupyter cell.

    import agentnb as nb
    recipe = nb.load("support.yaml")     # or nb.samples("triage")
    session = nb.Session(recipe, {"ticket": "My invoice is wrong"}, answers=["approve"])
    session.step()                       # one node; session.back() goes back, session.run() continues
    session                              # as the last line of a cell: the cockpit
    session.trace.frames.steps           # the run as DataFrames

Names are imported when they are first used, so that this import stays light.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agentnb.display import register as _register
from agentnb.distribution import get_version as _get_version
from agentnb.distribution import warn_of_namesake as _warn_of_namesake

if TYPE_CHECKING:
    from agentnb.analysis.compare import compare
    from agentnb.analysis.coverage import coverage, suspects
    from agentnb.analysis.many_frames import frames
    from agentnb.analysis.minimize import minimize
    from agentnb.analysis.sweep import sweep
    from agentnb.board.values import ABSENT
    from agentnb.clock import FrozenClock
    from agentnb.dialects.activegraph.parts.package_logs.session import open_activegraph
    from agentnb.draw.drawing import Drawing
    from agentnb.engine.control.breakpoints import Breakpoint
    from agentnb.engine.control.budget import Budget
    from agentnb.engine.core.work import Append
    from agentnb.errors import (
        AgentNbError,
        BoardError,
        ExecutionError,
        Problem,
        RecipeError,
        ReplayDivergence,
        StoreError,
    )
    from agentnb.event_loops import enable_nesting
    from agentnb.load import dialects, load
    from agentnb.magics import load_ipython_extension, unload_ipython_extension
    from agentnb.recipe.model import Recipe
    from agentnb.recordings.formats import open as open  # not in __all__
    from agentnb.samples import samples
    from agentnb.scenarios import run_scenarios
    from agentnb.session import Session
    from agentnb.session.logs import configure_logging
    from agentnb.session.run_list import runs
    from agentnb.trace import SimulationStep, SimulationTrace
    from agentnb.ui.debugger import Debugger, debug
    from agentnb.world.llm.base import LLMError, LLMRequest, LLMResponse, Usage
    from agentnb.world.llm.providers import client_of
    from agentnb.world.llm.recorded import RecordedClient

# Name -> module, in the order in which a new user needs them.
_HOMES = {
    "load": "agentnb.load",
    "samples": "agentnb.samples",
    "dialects": "agentnb.dialects",
    "Recipe": "agentnb.recipe.model",
    "Session": "agentnb.session",
    "open": "agentnb.recordings.formats",
    "runs": "agentnb.session.run_list",
    "open_activegraph": "agentnb.dialects.activegraph.parts.package_logs.session",
    "debug": "agentnb.ui.debugger",
    "Debugger": "agentnb.ui.debugger",
    "compare": "agentnb.analysis.compare",
    "frames": "agentnb.analysis.many_frames",
    "coverage": "agentnb.analysis.coverage",
    "suspects": "agentnb.analysis.coverage",
    "sweep": "agentnb.analysis.sweep",
    "minimize": "agentnb.analysis.minimize",
    "run_scenarios": "agentnb.scenarios",
    "SimulationTrace": "agentnb.trace",
    "SimulationStep": "agentnb.trace",
    "Breakpoint": "agentnb.engine.control.breakpoints",
    "Budget": "agentnb.engine.control.budget",
    "Drawing": "agentnb.draw.drawing",
    "FrozenClock": "agentnb.clock",
    "LLMRequest": "agentnb.world.llm.base",
    "LLMResponse": "agentnb.world.llm.base",
    "Usage": "agentnb.world.llm.base",
    "RecordedClient": "agentnb.world.llm.recorded",
    "client_of": "agentnb.world.llm.providers",
    "ABSENT": "agentnb.board.values",
    "Append": "agentnb.engine.core.work",
    "Send": "agentnb.recipe.model",
    "ask": "agentnb.world.questions",
    "Problem": "agentnb.errors",
    "AgentNbError": "agentnb.errors",
    "RecipeError": "agentnb.errors",
    "BoardError": "agentnb.errors",
    "ExecutionError": "agentnb.errors",
    "ReplayDivergence": "agentnb.errors",
    "StoreError": "agentnb.errors",
    "LLMError": "agentnb.world.llm.base",
    "enable_nesting": "agentnb.event_loops",
    "configure_logging": "agentnb.session.logs",
}

__all__ = [  # without `open`: `from agentnb import *` must not replace the built-in
    "ABSENT",
    "AgentNbError",
    "Append",
    "BoardError",
    "Breakpoint",
    "Budget",
    "Debugger",
    "Drawing",
    "ExecutionError",
    "FrozenClock",
    "LLMError",
    "LLMRequest",
    "LLMResponse",
    "Problem",
    "Recipe",
    "RecipeError",
    "RecordedClient",
    "ReplayDivergence",
    "Send",
    "Session",
    "SimulationStep",
    "SimulationTrace",
    "StoreError",
    "Usage",
    "__version__",
    "ask",
    "client_of",
    "compare",
    "configure_logging",
    "coverage",
    "debug",
    "dialects",
    "enable_nesting",
    "frames",
    "load",
    "load_ipython_extension",
    "minimize",
    "open_activegraph",
    "run_scenarios",
    "runs",
    "samples",
    "suspects",
    "sweep",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> Any:
    """Import a name of this package when it is first used."""
    if name == "__version__":
        value: Any = _get_version()
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
    return sorted({*globals(), *__all__, "open"})


class _Package(ModuleType):
    """This package: `load` and `samples` remain functions when the modules with the same names are imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _HOMES and isinstance(value, ModuleType):  # only the import system does this
            if name != "dialects":
                return
            value.__class__ = _Dialects
        super().__setattr__(name, value)


class _Dialects(ModuleType):
    """The package `agentnb.dialects`, which is also callable: `nb.dialects()` lists the loadable dialects."""

    def __call__(self) -> Any:
        """Return the loadable dialects, one row each."""
        return import_module("agentnb.load").dialects()


# Displays, checks and analyses of lower layers' objects, made by higher ones and imported at first use.
_register("cockpit", "agentnb.ui.debugger:open_cockpit")
_register("controls", "agentnb.ui.controls:Controls")
_register("mcp", "agentnb.mcp.server:serve_mcp")
_register("drawing", "agentnb.draw.dot:draw_recipe")
_register("page", "agentnb.ui.page_export:to_html")
_register("problems", "agentnb.kinds:check_with_kinds")
_register("recording", "agentnb.recordings.trace_files:make_recording")
_register("table", "agentnb.trace.frames:make_table")
_register("arrow", "agentnb.export.parquet:to_arrow")
_register("charts", "agentnb.export.charts:make_charts")
_register("sweep_charts", "agentnb.export.sweep_charts:make_sweep_charts")
_register("event_log", "agentnb.export.event_log:to_event_log")
_register("otel", "agentnb.export.otel:to_otel")
_register("parquet", "agentnb.export.parquet:to_parquet")
_register("sequence_diagram", "agentnb.export.sequence_diagram:render_sequence_diagram")
_register("slice", "agentnb.analysis.slices:compute_slice")
_register("find", "agentnb.analysis.search:find")
_register("counterfactuals", "agentnb.analysis.counterfactuals:find_counterfactuals")
_register("progress", "agentnb.ui.progress_bar:progress_bar")

sys.modules[__name__].__class__ = _Package
_warn_of_namesake()
logging.getLogger(__name__).addHandler(logging.NullHandler())  # the application decides which log records are shown
