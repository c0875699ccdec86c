"""The table of dialects, and the loading of a source as a checked Recipe."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from agentnb.dialects.activegraph import loader as activegraph
from agentnb.dialects.agentruntime import loader as agentruntime
from agentnb.dialects.burr import loader as burr
from agentnb.dialects.coreason import loader as coreason
from agentnb.dialects.langgraph import loader as langgraph
from agentnb.dialects.networkx import loader as networkx
from agentnb.dialects.polaris import loader as polaris
from agentnb.dialects.symphony import loader as symphony
from agentnb.errors import Problem, RecipeError, limit_suggestions, with_article
from agentnb.recipe.agent_expansion import graft_agents
from agentnb.recipe.model import Recipe
from agentnb.sources import Source
from agentnb.text import get_class_name

_SPOT = re.compile(r":(\d+):(\d+)(?=,|$)")


@dataclass(frozen=True, slots=True)
class Dialect:
    """A row: a dialect's name, how it is recognized, and its two functions.

    `is_document` is True if it can be written as YAML, JSON or a dict; otherwise its sources are objects.
    """

    name: str
    description: str
    sources: str
    identified_by: str
    is_document: bool
    recognize: Callable[[object], bool]
    load: Callable[[Source], tuple[Recipe | None, list[Problem]]]


# In the order in which they are tried.
DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType({
    dialect.name: dialect
    for dialect in (
        Dialect(
            "coreason",
            "agents, people and routers around a blackboard",
            "YAML, JSON, a dict, a RecipeDefinition",
            "a key 'topology', or an apiVersion that starts with 'coreason.ai/'",
            is_document=True,
            recognize=coreason.recognize,
            load=coreason.load,
        ),
        Dialect(
            "agentruntime",
            "agents with prompts, tools, routers, loops and subgraphs",
            "YAML, JSON, a dict, an AgentRuntime",
            "a key 'graph' beside 'meta', 'state', 'prompts' or 'tools'",
            is_document=True,
            recognize=agentruntime.recognize,
            load=agentruntime.load,
        ),
        Dialect(
            "symphony",
            "an agent that works on a task, with tools and a JSON protocol to call them",
            "YAML, JSON, a dict, an AgentConfig, an AgentExecutor",
            "a key 'name' beside 'task', 'directives', 'systemPrompt' or 'llm'",
            is_document=True,
            recognize=symphony.recognize,
            load=symphony.load,
        ),
        Dialect(
            "networkx",
            "Python functions, tools, loops and branches, as a directed graph",
            "a networkx DiGraph or MultiDiGraph",
            "the type of the object",
            is_document=False,
            recognize=networkx.recognize,
            load=networkx.load,
        ),
        Dialect(
            "polaris",
            "systems, decisions, switches, parallel work and loops, built in Python",
            "a polaris Graph",
            "the type of the object",
            is_document=False,
            recognize=polaris.recognize,
            load=polaris.load,
        ),
        Dialect(
            "activegraph",
            "behaviors on events, around a graph of objects that follows from a log",
            "an activegraph Runtime",
            "a Runtime object of agentnb.dialects.activegraph",
            is_document=False,
            recognize=activegraph.recognize,
            load=activegraph.load,
        ),
        Dialect(
            "langgraph",
            "LangGraph's own programs: state with reducers, nodes in supersteps",
            "a StateGraph, compiled or not",
            "a graph object of LangGraph",
            is_document=False,
            recognize=langgraph.recognize,
            load=langgraph.load,
        ),
        Dialect(
            "burr",
            "Burr's own applications: actions on a state, and transitions between them",
            "a Burr Application",
            "an Application object of Burr",
            is_document=False,
            recognize=burr.recognize,
            load=burr.load,
        ),
    )
})  # fmt: skip


@limit_suggestions()
def load_recipe(source: Source, dialect: Dialect) -> Recipe:
    """Return the recipe in a source; warnings are among its notes.

    Raises:
        RecipeError: R107, the dialect does not accept such a source; else all problems of the source, the dialect and
            the recipe's checks, errors first.
    """
    _check_content(source, dialect)
    recipe, problems = dialect.load(source)
    if recipe is None:
        raise RecipeError(*sort_problems(problems))
    recipe = replace(graft_agents(recipe, {}), notes=tuple(dict.fromkeys([*problems, *recipe.notes])), text=source.text)
    allowed = (*recipe.meta.get("allow", ()), *source.allow)  # an object may define its own
    recipe = replace(recipe, meta=MappingProxyType({**recipe.meta, "allow": allowed}))
    recipe = replace(recipe, notes=tuple(dict.fromkeys([*recipe.notes, *_check_tool_sources(recipe)])))
    findings = recipe.check()
    if any(problem.severity == "error" for problem in findings):
        raise RecipeError(*sort_problems(findings))
    return recipe


def _check_tool_sources(recipe: Recipe) -> list[Problem]:
    """Return the problems of the tools' sources.

    They are warnings, because a session may get other tools in their place.
    """
    if not recipe.tools:
        return []
    from agentnb.world.tools.loading import check_tools

    problems = check_tools(recipe.tools, folder=recipe.meta.get("folder"), allow=recipe.meta["allow"])
    return [replace(problem, severity="warning") for problem in problems]


def _check_content(source: Source, dialect: Dialect) -> None:
    """Raise for a source whose content the dialect does not accept: R107."""
    content = source.content
    if content is None and source.problems:
        raise RecipeError(*source.problems)
    if isinstance(content, Mapping):
        fits = dialect.is_document
    else:
        fits = not isinstance(content, list | str | int | float | None) and dialect.recognize(content)
    if not fits:
        raise RecipeError(
            *source.problems,
            Problem("R107", f"{describe_content(source)} cannot be read as {dialect.name}", str(source.locate()),
                    f"{dialect.name} takes {dialect.sources}",
                    f"pass {f'a mapping with {dialect.identified_by}' if dialect.is_document else dialect.sources}"),
        )  # fmt: skip


def describe_content(source: Source) -> str:
    """Return a noun for the content of a source: "a list", "an object"."""
    match source.content:
        case None:
            return "an empty text" if source.text is not None else "None"
        case list():
            return "a list"
        case str():
            return "one text"
        case Mapping():
            return "a mapping"
        case bool() | int() | float():
            return "one value"
    return with_article(get_class_name(source.content))


def sort_problems(problems: list[Problem]) -> list[Problem]:
    """Return each problem once: errors first, and those of a text in its order."""
    return sorted(dict.fromkeys(problems), key=lambda problem: (problem.severity != "error", *_get_line(problem)))


def _get_line(problem: Problem) -> tuple[int, int]:
    found_line = _SPOT.search(problem.where)
    return (int(found_line[1]), int(found_line[2])) if found_line else (0, 0)
