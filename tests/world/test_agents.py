from __future__ import annotations

from agentnb.recipe.agent_expansion import WHOLE
from agentnb.recipe.model import Node
from agentnb.world.agents import Agent, find_agent, get_agents


def test_a_node_belongs_to_its_named_agent_or_to_the_default_one() -> None:
    default_agent, inner = Agent(), Agent(llm=None)
    agents = {WHOLE: default_agent, "help": inner}
    assert find_agent(agents, Node("a", "chat")) is default_agent
    assert find_agent(agents, Node("b", "chat", params={"agent": "help"})) is inner
    assert find_agent({}, Node("a", "chat")) == Agent()


def test_a_recipe_without_agents_has_none() -> None:
    assert get_agents({}) == {}
