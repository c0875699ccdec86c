"""coreason: recipes with a blackboard, agents, people and routers, in YAML, JSON or as a RecipeDefinition.

The front door is `GraphExecutor(RecipeDefinition.model_validate(...), state)`, then `trace = await executor.run()`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentnb.dialects.coreason.api import GraphExecutor
    from agentnb.dialects.coreason.extras import (
        AdversaryProfile,
        ChaosConfig,
        SimulationRequest,
        SimulationScenario,
    )
    from agentnb.dialects.coreason.schema import RecipeDefinition
    from agentnb.trace import SimulationStep, SimulationTrace, StepType

_HOMES = {
    "RecipeDefinition": "agentnb.dialects.coreason.schema",
    "SimulationScenario": "agentnb.dialects.coreason.extras",
    "SimulationRequest": "agentnb.dialects.coreason.extras",
    "AdversaryProfile": "agentnb.dialects.coreason.extras",
    "ChaosConfig": "agentnb.dialects.coreason.extras",
    "GraphExecutor": "agentnb.dialects.coreason.api",
    "SimulationTrace": "agentnb.trace",
    "SimulationStep": "agentnb.trace",
    "StepType": "agentnb.trace",
}

__all__ = [
    "AdversaryProfile",
    "ChaosConfig",
    "GraphExecutor",
    "RecipeDefinition",
    "SimulationRequest",
    "SimulationScenario",
    "SimulationStep",
    "SimulationTrace",
    "StepType",
]


def __getattr__(name: str) -> Any:
    """Import a name of this front door when it is first used; recognising a recipe needs none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
