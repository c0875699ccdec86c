"""The coreason dialect: recipes with a blackboard, agents, people and routers, in YAML, JSON or as a RecipeDefinition.

The entry point is `GraphExecutor(RecipeDefinition.model_validate(...), state)`, then `trace = await executor.run()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentnb.dialects.lazy_names import make_lazy_names

if TYPE_CHECKING:
    from agentnb.dialects.coreason.api import GraphExecutor
    from agentnb.dialects.coreason.parts.sections_schema import (
        AdversaryProfile,
        ChaosConfig,
        SimulationRequest,
        SimulationScenario,
    )
    from agentnb.dialects.coreason.schema import RecipeDefinition
    from agentnb.trace import SimulationStep, SimulationTrace, StepType

_HOMES = {
    "RecipeDefinition": "agentnb.dialects.coreason.schema",
    "SimulationScenario": "agentnb.dialects.coreason.parts.sections_schema",
    "SimulationRequest": "agentnb.dialects.coreason.parts.sections_schema",
    "AdversaryProfile": "agentnb.dialects.coreason.parts.sections_schema",
    "ChaosConfig": "agentnb.dialects.coreason.parts.sections_schema",
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

__getattr__, __dir__ = make_lazy_names(__name__, _HOMES)
