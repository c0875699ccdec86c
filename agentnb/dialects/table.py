"""table: the dialects that can be loaded, and the one way from a source to a Recipe that has been checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from agentnb.dialects.activegraph import loader as activegraph
from agentnb.dialects.agentruntime import loader as agentruntime
from agentnb.dialects.coreason import loader as coreason
from agentnb.dialects.networkx import loader as networkx
from agentnb.dialects.polaris import loader as polaris
from agentnb.dialects.symphony import loader as symphony
from agentnb.errors import Problem, RecipeError
from agentnb.recipe.grafts import grafted
from agentnb.recipe.model import Recipe
from agentnb.sources import Source

_SPOT = re.compile(r":(\d+):(\d+)(?=,|$)")


@dataclass(frozen=True, slots=True)
class Dialect:
    """A row: what a dialect is, what it is told by, and its two functions.

    `written` says that it can be written as YAML, JSON or a dict; else it comes as an object only.
    """

    name: str
    about: str
    sources: str
    told_by: str
    written: bool
    recognise: Callable[[object], bool]
    load: Callable[[Source], tuple[Recipe | None, list[Problem]]]


# In the order in which they are asked.
DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType({
    dialect.name: dialect
    for dialect in (
        Dialect(
            "coreason",
            "agents, people and routers around a blackboard",
            "YAML, JSON, a dict, a RecipeDefinition",
            "a key 'topology', or an apiVersion that begins with 'coreason.ai/'",
            written=True,
            recognise=coreason.recognise,
            load=coreason.load,
        ),
        Dialect(
            "agentruntime",
            "agents with prompts, tools, routers, loops and subgraphs",
            "YAML, JSON, a dict, an AgentRuntime",
            "a key 'graph' beside 'meta', 'state', 'prompts' or 'tools'",
            written=True,
            recognise=agentruntime.recognise,
            load=agentruntime.load,
        ),
        Dialect(
            "symphony",
            "an agent that answers a task, with tools and the JSON protocol to call them",
            "YAML, JSON, a dict, an AgentConfig, an AgentExecutor",
            "a key 'name' beside 'task', 'directives', 'systemPrompt' or 'llm'",
            written=True,
            recognise=symphony.recognise,
            load=symphony.load,
        ),
        Dialect(
            "networkx",
            "Python functions, tools, loops and branches, as a directed graph",
            "a networkx DiGraph or MultiDiGraph",
            "being a networkx graph",
            written=False,
            recognise=networkx.recognise,
            load=networkx.load,
        ),
        Dialect(
            "polaris",
            "systems, decisions, switches, parallel work and loops, built in Python",
            "a polaris Graph",
            "being a Graph of agentnb.dialects.polaris",
            written=False,
            recognise=polaris.recognise,
            load=polaris.load,
        ),
        Dialect(
            "activegraph",
            "behaviours on events, around a graph of objects that follows from a log",
            "an activegraph Runtime",
            "being a Runtime of agentnb.dialects.activegraph",
            written=False,
            recognise=activegraph.recognise,
            load=activegraph.load,
        ),
    )
})  # fmt: skip


def recipe_of(source: Source, dialect: Dialect) -> Recipe:
    """Return the recipe in a source, with its warnings among its notes.

    Raises:
        RecipeError: all problems of the source, the dialect and the recipe's checks, errors first.
    """
    recipe, problems = dialect.load(source)
    if recipe is None:
        raise RecipeError(*in_order(problems))
    recipe = replace(grafted(recipe, {}), notes=tuple(dict.fromkeys([*problems, *recipe.notes])), text=source.text)
    found = recipe.check()
    if any(problem.severity == "error" for problem in found):
        raise RecipeError(*in_order(found))
    return recipe


def in_order(problems: list[Problem]) -> list[Problem]:
    """Return each problem once: errors first, and those of a text in its order."""
    return sorted(dict.fromkeys(problems), key=lambda problem: (problem.severity != "error", *_line(problem)))


def _line(problem: Problem) -> tuple[int, int]:
    spot = _SPOT.search(problem.where)
    return (int(spot[1]), int(spot[2])) if spot else (0, 0)
