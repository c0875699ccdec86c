from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from agentnb.dialects.coreason import GraphExecutor
from agentnb.errors import NodeExecutionError
from agentnb.load import load
from tests.dialects.coreason.recipe_texts import agent, content
from tests.session.gated_nodes import until


def ask(id):
    return {"id": id, "type": "human", "prompt": "Go on?"}


def test_in_a_notebook_run_waits_for_every_answer(monkeypatch):
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    nodes = [agent("a"), ask("one"), ask("two"), agent("b")]
    edges = [("a", "one"), ("one", "two"), ("two", "b")]

    async def main():
        executor = GraphExecutor(content(nodes, edges), {})
        task = asyncio.create_task(executor.run())
        for name in ("one", "two"):
            await until(
                lambda name=name: [pending_question.node for pending_question in executor.session.pending] == [name]
            )
            assert not task.done()
            executor.session.answer(f"yes to {name}")
        trace = await task
        assert [step.node_id for step in trace.steps] == ["a", "one", "two", "b"]
        assert executor.context["response"] == "yes to two"

    asyncio.run(asyncio.wait_for(main(), 20))


def test_in_a_notebook_a_question_that_nobody_answers_in_time_ends_the_run(monkeypatch):
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    recipe = load(content([ask("one") | {"timeout_seconds": 1}, agent("b")], [("one", "b")]))
    short = replace(recipe.nodes["one"], params={**recipe.nodes["one"].params, "timeout": 0.02})
    executor = GraphExecutor(replace(recipe, nodes={**recipe.nodes, "one": short}), {})

    async def main():
        with pytest.raises(NodeExecutionError, match="was not answered"):
            await executor.run()

    asyncio.run(asyncio.wait_for(main(), 20))
    assert [(step.node_id, step.status) for step in executor.trace.steps] == [("one", "error")]
