"""Every tool, called by the official SDK's own client through its in-memory transport."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from contextlib import asynccontextmanager

import networkx as nx
import pytest

import agentnb as nb

pytest.importorskip("mcp")

from mcp import Client
from mcp.types import Implementation

from agentnb.mcp.answers import LONGEST
from agentnb.mcp.assistant import Assistant
from agentnb.mcp.open_runs import OpenRuns
from agentnb.mcp.server import make_server
from agentnb.mcp.tools import Tools
from tests.store.stores import claimed_elsewhere

ME = Implementation(name="helper", version="1")


def shop():
    """Return a recipe: add items until the total is above 30, then ask a person."""
    graph = nx.DiGraph(name="shop", entry="add")
    graph.add_node(
        "add", function=lambda total, price: {"total": total + price}, inputs={"total": "total", "price": "price"}
    )
    graph.add_node("approve", kind="human", prompt="Pay {{ total }}?", output="paid")
    graph.add_node("refuse", function=lambda board: {"refused": True})
    graph.add_edge("add", "add", when="total < 30")
    graph.add_edge("add", "approve", when="total < 1000")
    graph.add_edge("add", "refuse")
    return nb.load(graph)


INPUTS = {"total": 0, "price": 10}


class Asked:
    """A client whose `ask` returns a tool's answer as Python, and fails if it is an error unless `fails`."""

    def __init__(self, client):
        self.client = client

    async def __call__(self, tool, *, fails=False, **arguments):
        result = await self.client.call_tool(tool, arguments)
        text = result.content[0].text
        assert len(text) <= LONGEST + 200
        assert bool(result.is_error) is fails, text
        return json.loads(text)


@asynccontextmanager
async def asked(runs, **options):
    assistant = Assistant(runs, **options)
    try:
        async with Client(make_server(assistant), client_info=ME) as client:
            yield Asked(client)
    finally:
        assistant.close()


def stored(path, steps=None):
    session = nb.Session(shop(), INPUTS, store=path, run_id="first")
    session.run(max_steps=steps)
    session.close()
    return path


def test_a_stored_run_is_listed_opened_stepped_and_explained(tmp_path):
    place = str(stored(tmp_path / "runs.db"))

    async def main():
        async with asked(OpenRuns([place])) as ask:
            (row,) = (await ask("list_runs"))["rows"]
            assert (row["run"], row["status"], row["steps"]) == ("first", "waiting", 3)
            opened = await ask("open_run", run="first")
            assert [node["id"] for node in opened["nodes"]["rows"]] == ["add", "approve", "refuse"]
            assert opened["read_only"]
            assert (await ask("where"))["position"] == 3
            assert [row["node"] for row in (await ask("steps"))["rows"]] == ["add"] * 3
            assert (await ask("back", n=2))["position"] == 1
            assert (await ask("board", path="total"))["value"] == 10
            assert (await ask("board", path="total", at=3))["value"] == 30
            assert (await ask("step"))["position"] == 2
            assert (await ask("goto", step=0))["status"] == "ready"
            assert (await ask("run_until", until="total > 15"))["position"] == 2
            assert (await ask("run_until", until="approve"))["position"] == 3
            assert (await ask("run_back_until", until="total < 15"))["position"] == 1
            assert (await ask("who_wrote", path="total", at=3))["step"] == 3
            assert (await ask("find", condition="total > 15"))["holds_after"] == [2, 3]
            assert {0, 1, 2, 3} <= set((await ask("slice", path="total", at=3))["steps"])
            assert (await ask("why", at=3))["why"][0] == "step 3, 'add' went to approve"
            assert "refuse" in (await ask("why_not", node="refuse", at=3))["why_not"][0]
            details = await ask("step_details", step=2)
            assert details["writes"]["rows"][0] | {"scope": ""} == {
                "path": "total", "op": "set", "scope": "", "old": 10, "new": 20,
            }  # fmt: skip

    asyncio.run(main())


def test_breakpoints_stop_a_recording_too(tmp_path):
    place = str(stored(tmp_path / "runs.db"))

    async def main():
        async with asked(OpenRuns([place])) as ask:
            await ask("open_run", run="first")
            await ask("goto", step=0)
            added = await ask("add_breakpoint", when="total == 20")
            stopped = await ask("run_until")
            assert stopped["position"] == 2
            assert "total == 20" in stopped["stopped_by"]
            assert [row["id"] for row in (await ask("breakpoints"))["rows"]] == [added["id"]]
            await ask("remove_breakpoint", id=added["id"])
            assert (await ask("run_until"))["position"] == 3

    asyncio.run(main())


def test_breakpoints_on_what_a_run_does_and_logpoints():
    graph = nx.DiGraph(name="loop", entry="turn")
    graph.add_node("turn", function=lambda board: board["log"].append(1) or {"n": 1 - board["n"]})
    graph.add_edge("turn", "turn")
    session = nb.Session(nb.load(graph), {"n": 0, "log": []}, budget={"max_steps": 10})

    async def main():
        async with asked(OpenRuns(live=session, changes=True)) as ask:
            for clause in ({"in_place": True}, {"no_progress": True}, {"budget": 0.8}, {"call": "llm"}):
                added = await ask("add_breakpoint", **clause)
                assert added["breakpoint"]
            logpoint = await ask("add_breakpoint", log="n is {{ n }}", node="turn")
            assert logpoint["log"] == "n is {{ n }}"
            stopped = await ask("run_until")
            assert (stopped["position"], "in place" in stopped["stopped_by"]) == (1, True)
            assert len((await ask("breakpoints"))["rows"]) == 5

    asyncio.run(main())


def test_a_breakpoint_has_every_clause_of_the_session():
    """The tool offers each clause of `breakpoints.add`, and passes it on."""
    own_parameters = set(inspect.signature(Tools.add_breakpoint).parameters) - {"self", "run", "log"}
    assert own_parameters == set(inspect.signature(nb.Session(shop(), INPUTS).breakpoints.add).parameters)

    async def main():
        session = nb.Session(shop(), INPUTS)
        async with asked(OpenRuns(live=session, changes=True)) as ask:
            for clause, described in (
                ({"edge": ["add", "approve"]}, "approve"),
                ({"step": 2}, "2"),
                ({"error": "ValueError"}, "ValueError"),
                ({"when": {">": [{"var": "total"}, 5]}}, "total"),
            ):
                assert described in (await ask("add_breakpoint", **clause))["breakpoint"]
            assert "X120" in str(await ask("add_breakpoint", edge=["add"], fails=True))
            assert "X116" in str(await ask("add_breakpoint", fails=True))
            assert (await ask("run_until"))["position"] == 1  # total is 10
        assert next(iter(session.breakpoints)).edge == ("add", "approve")

    asyncio.run(main())


@pytest.mark.parametrize("length", [2, 5000])
def test_a_failure_names_the_line_of_the_users_code(length):
    def fail(board):
        raise ValueError("no" * length)

    async def main():
        graph = nx.DiGraph(name="g")
        graph.add_node("a", function=fail)
        async with asked(OpenRuns(live=nb.Session(nb.load(graph)), changes=True)) as ask:
            line = f"test_tools.py:{fail.__code__.co_firstlineno + 1}"
            status = await ask("step")
            assert line in status["error"]
            assert status["error"].endswith("or call skip() or back()")
            for answer in ((await ask("steps"))["rows"][0], await ask("step_details", step=1), await ask("where")):
                assert answer["error"].startswith(("ValueError: nono", "X100: "))
                assert line in answer["error"]

    asyncio.run(main())


def test_nothing_is_changed_unless_it_is_allowed(tmp_path):
    place = str(stored(tmp_path / "runs.db"))

    async def main():
        session = nb.Session(shop(), INPUTS)
        async with asked(OpenRuns([place])) as ask:
            await ask("open_run", run="first")
            for tool, arguments in (("fork", {}), ("edit", {"changes": {"total": 1}}), ("answer", {"value": "yes"})):
                (problem,) = (await ask(tool, fails=True, **arguments))["problems"]
                assert problem["code"] == "X528"
        async with asked(OpenRuns(live=session)) as ask:
            for tool, arguments in (
                ("step", {}), ("run_until", {}), ("back", {}), ("goto", {"step": 0}),
                ("add_breakpoint", {"node": "add"}),
            ):  # fmt: skip
                assert (await ask(tool, fails=True, **arguments))["problems"][0]["code"] == "X528"
            assert (await ask("where"))["status"] == "ready"
        assert session.position == 0
        assert not list(session.breakpoints)

    asyncio.run(main())


def test_a_stored_run_continues_with_its_recipe_under_the_name_of_the_assistant(tmp_path):
    place = str(stored(tmp_path / "runs.db", steps=2))

    async def main():
        async with asked(OpenRuns([place], changes=True, options={"recipe": shop()})) as ask:
            await ask("open_run", run="first")
            assert (await ask("step"))["position"] == 3
            fork = await ask("fork", at=1, edit={"price": 500}, note="a dear item", expect="total > 400")
            assert fork["run"] != "first"
            waiting = await ask("run_until")
            assert (waiting["status"], waiting["expectation_holds"]) == ("waiting", True)
            assert waiting["pending"][0]["node"] == "approve"
            comparison = await ask("compare", run_a="first", run_b=fork["run"])
            assert not comparison["same"]
            assert comparison["first_divergence"]["path"] == "price"
            answered = await ask("answer", value="yes", run=fork["run"])
            assert answered["status"] == "finished"
            return fork["run"]

    fork = asyncio.run(main())
    interventions = nb.open(place, fork).trace.frames.interventions
    assert dict(zip(interventions["action"], interventions["actor"], strict=True)) == {
        "edit": "helper",
        "answer": "helper",
    }


def test_a_run_that_another_host_has_claimed_is_read_but_not_continued(tmp_path):
    place = str(stored(tmp_path / "runs.db", steps=2))

    async def main():
        async with asked(OpenRuns([place], changes=True, options={"recipe": shop()})) as ask:
            assert (await ask("open_run", run="first"))["position"] == 2
            assert (await ask("board", path="total"))["value"] == 20
            (problem,) = (await ask("step", fails=True))["problems"]
            assert (problem["code"], "another-host" in problem["why"]) == ("L411", True)
            assert "take_over=True" in problem["do"]

    with claimed_elsewhere(place, "first"):
        asyncio.run(main())


def test_the_name_can_be_given_and_never_hides_that_it_was_an_assistant():
    async def main(name):
        session = nb.Session(shop(), INPUTS)
        async with asked(OpenRuns(live=session, changes=True), name=name) as ask:
            await ask("edit", changes={"total": 5})
        return list(session.trace.frames.interventions["actor"])

    assert asyncio.run(main("claude")) == ["claude"]
    assert asyncio.run(main("user")) == ["assistant"]


@pytest.mark.parametrize("kind", ["function", "tool"])
def test_a_node_that_never_ends_does_not_delay_the_reply(kind):
    end = threading.Event()
    graph = nx.DiGraph(name="stuck", entry="wait")
    graph.add_node("wait", kind=kind, function=lambda: end.wait(60) and {})
    session = nb.Session(nb.load(graph))

    async def main():
        try:
            async with asked(OpenRuns(live=session, changes=True)) as ask:
                (problem,) = (await ask("step", seconds=0.2, fails=True))["problems"]
                assert (problem["code"], end.is_set()) == ("X529", False)
                if kind == "tool":  # it runs in a thread: the loop of the sessions is free
                    assert (await ask("where"))["status"] == "pausing"
                end.set()
        finally:
            end.set()

    asyncio.run(main())


def test_why_names_the_values_of_conditions():
    async def main():
        session = nb.Session(shop(), INPUTS)
        session.run()
        async with asked(OpenRuns(live=session)) as ask:
            assert any("total = 30" in line for line in (await ask("why", at=3))["why"])

    asyncio.run(main())


def test_why_marks_the_route_taken_among_several_to_one_node():
    graph = nx.DiGraph(name="words", entry="look", inputs=["word"])
    graph.add_node("look", kind="router", input_key="word", routes={"bug": "write"}, default="write")
    graph.add_node("write", kind="noop")

    async def main():
        session = nb.Session(nb.load(graph), {"word": "x"})
        session.run()
        async with asked(OpenRuns(live=session)) as ask:
            marked = [line for line in (await ask("why", at=1))["why"] if "->" in line]
            assert marked == ["  -> write: otherwise is True  (word = 'x')"]

    asyncio.run(main())


def test_secrets_are_masked_and_large_values_cut():
    async def main():
        outputs = {"api_key": "sk-do-not-tell-0123456789", "big": ["x" * 100] * 500}
        session = nb.Session(shop(), INPUTS | outputs)
        session.step()
        async with asked(OpenRuns(live=session)) as ask:
            texts = [await ask("board"), await ask("board", path="api_key"), await ask("open_run", run=session.run_id),
                     await ask("step_details", step=1)]  # fmt: skip
            assert "do-not-tell" not in json.dumps(texts)
            assert "cut" in (await ask("board", path="big"))["value"]
            assert (await ask("board", path="big.3"))["value"] == "x" * 100

    asyncio.run(main())


def test_mistakes_are_problems():
    async def main():
        async with asked(OpenRuns(live=nb.Session(shop(), INPUTS), changes=True)) as ask:
            for code, tool, arguments in (
                ("X523", "where", {"run": "nothing"}),
                ("X524", "board", {"path": "tota"}),
                ("X526", "steps_", {}),
                ("X527", "board", {"at": "now"}),
                ("X527", "board", {"where": "total"}),
                ("X111", "board", {"at": 7}),
                ("X101", "why_not", {"node": "ad"}),
            ):
                problem = (await ask(tool, fails=True, **arguments))["problems"][0]
                assert problem["code"] == code, problem
                assert problem["do"]

    asyncio.run(main())


def test_every_tool_has_a_description_and_a_read_only_hint():
    async def main():
        async with asked(OpenRuns()) as ask:
            tools = (await ask.client.list_tools()).tools
            assert {tool.name for tool in tools} >= {
                "list_runs", "open_run", "step", "back", "run_until", "add_breakpoint", "why", "why_not", "who_wrote",
                "slice", "find", "compare", "fork", "edit", "answer",
            }  # fmt: skip
            for tool in tools:
                assert tool.description.endswith(".")
                assert all("description" in rule for rule in tool.input_schema.get("properties", {}).values()), tool
            assert {tool.name for tool in tools if tool.annotations.read_only_hint} == {
                "list_runs", "open_run", "where", "steps", "step_details", "board", "why", "why_not", "who_wrote",
                "slice", "find", "compare", "breakpoints",
            }  # fmt: skip

    asyncio.run(main())


def test_long_lists_are_paged():
    graph = nx.DiGraph(name="long", entry="count")
    graph.add_node("count", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_edge("count", "count", when="n < 300")
    session = nb.Session(nb.load(graph), {"n": 0})
    session.run()

    async def main():
        async with asked(OpenRuns(live=session)) as ask:
            seen, first = [], 1
            while True:
                part = await ask("steps", first=first)
                seen += [row["step"] for row in part["rows"]]
                if "more" not in part:
                    break
                first = int(part["more"].removeprefix("steps(first=").removesuffix(")"))
            assert seen == list(range(1, 301))

    asyncio.run(main())
