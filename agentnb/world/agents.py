"""The models and tools of agents inside a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agentnb.recipe.agent_expansion import WHOLE

if TYPE_CHECKING:
    from agentnb.recipe.model import Node
    from agentnb.world.llm.base import LLMClient
    from agentnb.world.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Agent:
    """The model and the tools of an agent; None means those of the session.

    `tools` are the tools that it may be allowed to call.
    """

    llm: LLMClient | None = None
    tools: ToolRegistry | None = None


def find_agent(agents: Mapping[str, Agent], node: Node) -> Agent:
    """Return the agent that contains a node; an empty one if there is none."""
    return agents.get(str(node.params.get("agent", WHOLE)), _NOBODY)


def get_agents(meta: Mapping[str, Any]) -> Mapping[str, Agent]:
    """Return the agents contained in a recipe's `meta`."""
    agents: Mapping[str, Agent] = meta.get("agents", {})
    return agents


_NOBODY: Final = Agent()
