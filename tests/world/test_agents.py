from __future__ import annotations

from agentnb.recipe.agent_expansion import WHOLE
from agentnb.recipe.model import Node
from agentnb.world.agents import Agent, agent_of, agents_in


def test_a_node_belongs_to_the_agent_that_it_names_else_to_the_whole() -> None:
    whole, inner = Agent(), Agent(llm=None)
    agents = {WHOLE: whole, "help": inner}
    assert agent_of(agents, Node("a", "chat")) is whole
    assert agent_of(agents, Node("b", "chat", params={"agent": "help"})) is inner
    assert agent_of({}, Node("a", "chat")) == Agent()


def test_a_recipe_without_agents_brings_none() -> None:
    assert agents_in({}) == {}
