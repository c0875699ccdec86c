"""The kinds of nodes. One module and one row of the table per kind; to add a kind, write both."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from agentnb.engine.core.work import Kind
from agentnb.kinds import (
    agent,
    behavior,
    chat,
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
    parse,
    pick,
    prompt,
    router,
    runnable,
    subgraph,
    switch,
    system,
    task,
    tool,
    use,
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
            behavior.BEHAVIOR,
            behavior.LLM_BEHAVIOR,
            behavior.RELATION_BEHAVIOR,
            chat.KIND,
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
            parse.KIND,
            pick.KIND,
            prompt.KIND,
            router.KIND,
            runnable.KIND,
            subgraph.KIND,
            switch.KIND,
            system.KIND,
            task.KIND,
            tool.KIND,
            use.KIND,
        )
    }
)


def check_with_kinds(recipe: Recipe) -> list[Problem]:
    """Return every problem of a recipe, errors first, checking its nodes against these kinds."""
    return check_recipe(recipe, KINDS)


__all__ = ["KINDS", "check_with_kinds"]
