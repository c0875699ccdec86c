"""The servers as an assistant meets them: a program on stdin and stdout, and a live session on localhost."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import pytest

import agentnb as nb

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation

from tests.mcp.test_tools import INPUTS, shop, stored

pytestmark = pytest.mark.starts_programs

ME = Implementation(name="helper", version="1")
RECIPE = """
import networkx as nx

def add(total):
    print("a node may print")
    return {"total": total + 10}

graph = nx.DiGraph(name="shop", entry="add")
graph.add_node("add", function=add, inputs={"total": "total"})
graph.add_edge("add", "add", when="total < 50")
"""


async def ask_server(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    return json.loads(result.content[0].text)


def test_agentnb_mcp_serves_the_runs_of_a_store_on_stdin_and_stdout(tmp_path):
    place = stored(tmp_path / "runs.db")
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "agentnb", "mcp", str(tmp_path)], env=dict(os.environ)
    )

    async def main():
        async with Client(stdio_client(started), client_info=ME) as client:
            assert (await ask_server(client, "list_runs"))["rows"][0]["store"] == str(place)
            assert (await ask_server(client, "open_run", run="first"))["status"] == "waiting"
            assert (await ask_server(client, "back"))["position"] == 2
            assert (await ask_server(client, "fork"))["problems"][0]["code"] == "X528"

    asyncio.run(main())


def test_agentnb_mcp_continues_a_run_with_its_recipe_and_prints_nothing_into_the_answers(tmp_path):
    (tmp_path / "shop_graph.py").write_text(RECIPE)
    scope = {}
    exec(RECIPE, scope)  # the recipe itself
    session = nb.Session(nb.load(scope["graph"]), {"total": 0}, store=tmp_path / "runs.db", run_id="first")
    session.run(max_steps=2)
    session.close()
    words = ["mcp", "runs.db", "--recipe", "shop_graph:graph", "--changes", "--name", "claude"]
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "agentnb", *words], cwd=tmp_path, env=dict(os.environ)
    )

    async def main():
        async with Client(stdio_client(started), client_info=ME) as client:
            await ask_server(client, "open_run", run="first")
            await ask_server(client, "edit", changes={"total": 30})
            assert (await ask_server(client, "run_until"))["status"] == "finished"

    asyncio.run(main())
    reopened = nb.open(tmp_path / "runs.db", "first")
    assert reopened.board["total"] == 50
    assert list(reopened.trace.frames.interventions["actor"]) == ["claude"]


def test_changes_need_a_recipe(capsys):
    from agentnb.cli import main

    assert main(["mcp", "--changes"]) == 1
    assert "U600" in capsys.readouterr().err


def test_a_live_session_is_served_on_localhost_and_people_see_what_the_assistant_does():
    async def main():
        session = nb.Session(shop(), INPUTS)
        seen = []
        session.subscribe(lambda *_: seen.append(session.position), to="change")
        with session.serve_mcp(changes=True) as server:
            assert server.url.startswith("http://127.0.0.1:")
            async with Client(streamable_http_client(server.url), client_info=ME) as client:
                assert (await ask_server(client, "step"))["position"] == 1
                await ask_server(client, "edit", changes={"price": 100})
                assert (await ask_server(client, "run_until"))["status"] == "waiting"
            assert [call.split(" ", 1)[1] for call in server.calls][:2] == [
                "helper: step()", "helper: edit(changes={'price': 100})",
            ]  # fmt: skip
            assert server.url in repr(server)
        assert (session.position, seen[-1]) == (2, 2)
        assert list(session.trace.frames.interventions["actor"]) == ["helper"]
        assert session.board["total"] == 110

    asyncio.run(main())


def test_only_clients_with_the_address_are_served():
    async def main():
        with nb.Session(shop(), INPUTS).serve_mcp() as server:
            other = server.url.replace(server.url.split("/")[3], "guess")
            with pytest.raises(Exception):  # noqa: B017, PT011  (what it raises is the SDK's)
                async with Client(streamable_http_client(other)) as client:
                    await client.list_tools()

    asyncio.run(main())


def test_without_an_event_loop_it_says_what_to_do_instead():
    with pytest.raises(nb.ExecutionError, match="X531"):
        nb.Session(shop(), INPUTS).serve_mcp()


def test_a_port_in_use_is_a_problem():
    async def main():
        session = nb.Session(shop(), INPUTS)
        with session.serve_mcp() as server:
            port = int(server.url.split(":")[2].split("/")[0])
            with pytest.raises(nb.ExecutionError, match="X532"):
                session.serve_mcp(port=port)

    asyncio.run(main())


def test_without_the_sdk_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("agentnb.mcp.server.find_spec", lambda _name: None)

    async def main():
        with pytest.raises(nb.ExecutionError, match=r"agentnb-kit\[mcp\]"):
            nb.Session(shop(), INPUTS).serve_mcp()

    asyncio.run(main())
