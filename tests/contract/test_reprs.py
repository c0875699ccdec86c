"""The repr of an object shows a user's text, and cuts it where it is long."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

import agentnb as nb
from agentnb.dialects.polaris import Graph
from agentnb.dialects.symphony import AgentConfig, AgentExecutor
from agentnb.dialects.symphony.parts.llm_handler import Provider
from agentnb.engine.core.work import Append
from agentnb.expressions.conditions import compile_rule, to_condition
from agentnb.expressions.templates import compile_structure, compile_template
from agentnb.store import SqlLog


def make_board(name: str) -> Any:
    """Return the board that a node of this name sees."""
    graph, boards = nx.DiGraph(), []
    graph.add_node(name, function=boards.append)
    nb.Session(nb.load(graph), {"n": 1}).run()
    return boards[0]


@pytest.mark.parametrize(
    ("make", "start", "end"),
    [
        (Append, "Append(", ")"),
        (make_board, "<board of ", ": n>"),
        (compile_template, "<Template ", ">"),
        (lambda text: compile_rule({"var": text}), "<Rule ", ">"),
        (lambda text: to_condition(f"{text} == 1"), "<Condition ", ">"),
        (lambda text: compile_structure([text + "{{ x }}"]), "<Structure of [", ">"),
        (Graph, "<Graph ", ": 0 nodes, 0 edges>"),
        (lambda text: Provider(text, None), "<Provider ", ">"),
        (lambda text: AgentExecutor(AgentConfig(name=text)), "<AgentExecutor ", ": 0 tools>"),
        (lambda text: SqlLog(f"/{text}"), "SqlLog(", ")"),
    ],
)
def test_a_long_text_is_cut(make, start, end):
    shown = repr(make("a" * 210))
    assert shown.startswith(start)
    assert shown.endswith(f"a…{end}")
    assert len(shown) == len(start.rstrip("[")) + 200 + len(end)
