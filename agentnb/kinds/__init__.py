"""kinds: what nodes do. One module a kind, one row in this table; to add one, write its module and its row."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agentnb.engine.work import Kind
from agentnb.kinds import (
    agent,
    behavior,
    chat,
    decision,
    evaluator,
    function,
    generative,
    human,
    join,
    llm,
    llm_behavior,
    loop,
    missing,
    noop,
    parallel,
    parse,
    pick,
    prompt,
    relation_behavior,
    router,
    subgraph,
    switch,
    system,
    task,
    tool,
    use,
)

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            agent.KIND,
            behavior.KIND,
            chat.KIND,
            decision.KIND,
            evaluator.KIND,
            function.KIND,
            generative.KIND,
            human.KIND,
            join.KIND,
            llm.KIND,
            llm_behavior.KIND,
            loop.KIND,
            missing.KIND,
            noop.KIND,
            parallel.KIND,
            parse.KIND,
            pick.KIND,
            prompt.KIND,
            relation_behavior.KIND,
            router.KIND,
            subgraph.KIND,
            switch.KIND,
            system.KIND,
            task.KIND,
            tool.KIND,
            use.KIND,
        )
    }
)

__all__ = ["KINDS"]
