"""The repr of an object shows a user's text, and cuts it where it is long."""

from __future__ import annotations

import pytest

from agentnb.dialects.polaris import Graph
from agentnb.dialects.symphony import AgentConfig, AgentExecutor
from agentnb.dialects.symphony.parts.llm_handler import Provider
from agentnb.engine.core.work import Append
from agentnb.expressions.conditions import compile_rule, to_condition
from agentnb.expressions.templates import compile_structure, compile_template
from agentnb.store import SqlLog


@pytest.mark.parametrize(
    ("make", "start", "end"),
    [
        (Append, "Append(", ")"),
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
