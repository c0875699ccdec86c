from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace

from agentnb.dialects.coreason import GraphExecutor
from tests.dialects.coreason.making import agent, content
from tests.session.gates import until


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
            await until(lambda name=name: [asked.node for asked in executor.session.pending] == [name])
            assert not task.done()
            executor.session.answer(f"yes to {name}")
        trace = await task
        assert [step.node_id for step in trace.steps] == ["a", "one", "two", "b"]
        assert executor.context["response"] == "yes to two"

    asyncio.run(asyncio.wait_for(main(), 20))
