from __future__ import annotations

from agentnb.recipe.agent_expansion import WHOLE
from agentnb.recipe.model import Node
from agentnb.world.agents import Agent, find_agent, get_agents


def test_a_node_belongs_to_the_agent_that_it_names_else_to_the_whole() -> None:
    whole, inner = Agent(), Agent(llm=None)
    agents = {WHOLE: whole, "help": inner}
    assert find_agent(agents, Node("a", "chat")) is whole
    assert find_agent(agents, Node("b", "chat", params={"agent": "help"})) is inner
    assert find_agent({}, Node("a", "chat")) == Agent()


def test_a_recipe_without_agents_brings_none() -> None:
    assert get_agents({}) == {}
