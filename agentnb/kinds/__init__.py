"""kinds: what nodes do. One module a kind, one row in this table; to add one, write its module and its row."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agentnb.engine.work import Kind
from agentnb.kinds import (
    agent,
    evaluator,
    function,
    generative,
    human,
    join,
    llm,
    loop,
    missing,
    noop,
    parallel,
    router,
    subgraph,
    tool,
)

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            agent.KIND,
            evaluator.KIND,
            function.KIND,
            generative.KIND,
            human.KIND,
            join.KIND,
            llm.KIND,
            loop.KIND,
            missing.KIND,
            noop.KIND,
            parallel.KIND,
            router.KIND,
            subgraph.KIND,
            tool.KIND,
        )
    }
)

__all__ = ["KINDS"]
