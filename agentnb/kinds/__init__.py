"""The kinds of nodes. One module and one row of the table per kind; to add a kind, write both.

A kind that is not public is made by a dialect or by the expansion of an agent; recipes do not name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from agentnb.engine.core.work import Kind
from agentnb.kinds import (
    agent,
    agent_stages,
    behavior,
    decision,
    evaluator,
    function,
    generative,
    human,
    llm,
    loop,
    missing,
    noop,
    parallel,
    router,
    runnable,
    subgraph,
    switch,
    system,
    task,
    tool,
)
from agentnb.recipe.checks import check_recipe

if TYPE_CHECKING:
    from agentnb.errors import Problem
    from agentnb.recipe.model import Recipe

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            agent.KIND,
            *agent_stages.STAGES,
            behavior.BEHAVIOR,
            behavior.LLM_BEHAVIOR,
            behavior.RELATION_BEHAVIOR,
            decision.KIND,
            evaluator.KIND,
            function.KIND,
            generative.KIND,
            human.KIND,
            llm.KIND,
            loop.KIND,
            missing.KIND,
            noop.JOIN,
            noop.NOOP,
            parallel.KIND,
            router.KIND,
            runnable.KIND,
            subgraph.KIND,
            switch.KIND,
            system.KIND,
            task.KIND,
            tool.KIND,
        )
    }
)
PUBLIC_KINDS: Final = tuple(name for name, kind in KINDS.items() if kind.is_public)


def check_with_kinds(recipe: Recipe) -> list[Problem]:
    """Return every problem of a recipe, errors first, checking its nodes against these kinds."""
    known = recipe.derived
    if "problems" not in known:
        known["problems"] = tuple(check_recipe(recipe, KINDS, PUBLIC_KINDS))
    return list(known["problems"])


__all__ = ["KINDS", "PUBLIC_KINDS", "check_with_kinds"]
