"""agents: what an agent brings along into a session: its own model and its own tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agentnb.recipe.grafts import WHOLE

if TYPE_CHECKING:
    from agentnb.recipe.model import Node
    from agentnb.world.llm.base import LLMClient
    from agentnb.world.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Agent:
    """What an agent brings along; None is left to the session.

    `llm` is its own model: the session's is asked where it has none. `tools` are what it may be allowed to call.
    """

    llm: LLMClient | None = None
    tools: ToolRegistry | None = None


def agent_of(agents: Mapping[str, Agent], node: Node) -> Agent:
    """Return the agent whose inside a node is part of; one without anything where there is none."""
    return agents.get(str(node.params.get("agent", WHOLE)), _NOBODY)


def agents_in(meta: Mapping[str, Any]) -> Mapping[str, Agent]:
    """Return the agents that a recipe brings along."""
    found: Mapping[str, Agent] = meta.get("agents", {})
    return found


_NOBODY: Final = Agent()
