from __future__ import annotations

import asyncio
import inspect

import pytest

from agentnb.errors import RecipeError
from agentnb.secrets import mask_text
from agentnb.world.tools import close_tools, load_tools
from tests.world.tools.tool_samples import spec, tool, write


def load(*specs, folder=None, allow=(), **given):
    return load_tools({row.id: row for row in specs}, folder=folder, allow=allow, passed=given)


def test_all_problems_are_reported_at_once_and_by_their_place(tmp_path):
    write(tmp_path, "a.py", "raise ValueError('no')")
    with pytest.raises(RecipeError) as caught:
        load(
            spec("os#system", id="one"),
            spec("a.py#run", id="two"),
            spec("b.py#run", id="three"),
            spec("", id="four", kind="http"),
            spec("", id="five", kind="mcp", config={"key": "{{env.AGENTNB_NOT_SET}}"}),
            spec("", id="six", kind="http", config={"url": "file:///a", "methd": "GET"}),
            folder=tmp_path,
        )
    assert [row.code for row in caught.value.problems] == ["R158", "R159", "R157", "X333", "R163", "R163"]


def test_a_given_tool_is_called_and_nothing_is_imported(tmp_path):
    write(tmp_path, "a.py", "raise SystemExit('it has run')")
    tools = load(
        spec("a.py#run", id="one", config={"b": 2}),
        spec("os#system", id="two", mode="class", config={"init": {}}),
        spec("", id="three", kind="http", config={"url": "{{env.AGENTNB_NOT_SET}}"}),
        folder=tmp_path,
        one=lambda **words: words,
        two=lambda init: init,
        three=lambda **words: words,
        other=lambda: None,
    )
    assert list(tools) == ["one", "two", "three"]
    assert tools["one"](a=1) == {"a": 1, "b": 2}
    assert tools["two"]() == {}
    assert tools["three"](a=1)["a"] == 1


def test_an_async_function_or_an_object_may_be_given():
    class Found:
        def invoke(self, payload):
            return payload["a"]

    async def later(a):
        return a

    tools = load(spec("x#y", id="one"), spec("x#y", id="two"), one=later, two=Found())
    assert inspect.iscoroutinefunction(tools["one"])
    assert asyncio.run(tools["one"](a=1)) == 1
    assert tools["two"](a="b")["text"] == "b"


def test_an_invalid_given_tool_is_reported():
    with pytest.raises(RecipeError) as caught:
        load(spec("x#y", id="one"), one=5)
    assert caught.value.problems[0].code == "R161"


def test_a_tool_is_called_by_its_id():
    result = tool("x#y", id="find", given={"find": lambda: None})
    assert (result.__name__, result.__qualname__) == ("find", "find")


def test_subgraphs_belong_to_the_recipe():
    assert load(spec("inner", id="one", kind="subgraph")) == {}


def test_variables_are_replaced_in_the_config_and_masked(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTNB_KEY", "s3cr3t-4711")
    write(tmp_path, "a.py", "def run(**words):\n    return words\n")
    config = {"key": "{{env.AGENTNB_KEY}}", "deep": [{"header": "Bearer {{ env.AGENTNB_KEY }}"}], "n": 5}
    call = tool("a.py#run", folder=tmp_path, config=config)
    assert call() == {"key": "s3cr3t-4711", "deep": [{"header": "Bearer s3cr3t-4711"}], "n": 5}
    assert mask_text("s3cr3t-4711") == "********"
    assert config["key"] == "{{env.AGENTNB_KEY}}"


def test_an_unset_variable_is_named_with_its_place(tmp_path, monkeypatch):
    monkeypatch.delenv("AGENTNB_KEY", raising=False)
    write(tmp_path, "a.py", "raise SystemExit('it has run')")
    with pytest.raises(RecipeError) as caught:
        tool("a.py#run", folder=tmp_path, config={"a": {"b": "x {{env.AGENTNB_KEY}}"}})
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("X333", "tool 't', config.a.b")
    assert "AGENTNB_KEY" in problem.what


@pytest.mark.parametrize("kind", ["http", "mcp", "python"])
def test_a_foreign_variable_must_be_allowed(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "own3d-4711")
    write(tmp_path, "a.py", "def run(**words):\n    return words\n")
    config = {"url": "http://127.0.0.1:9/", "headers": {"X": "Bearer {{env.AWS_SECRET_ACCESS_KEY}}"}}
    named = spec("a.py#run" if kind == "python" else "", id="t", kind=kind, config=config)
    with pytest.raises(RecipeError) as caught:
        load(named, folder=tmp_path)
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("X361", "tool 't', config.headers.X")
    assert "t" in load(named, folder=tmp_path, allow=["env:AWS_SECRET_ACCESS_KEY"])


@pytest.mark.parametrize("impl", ["tools/http_call.py#call", "some.package.http_call#call", "http", ""])
def test_an_http_tool_without_code_uses_the_built_in_client(tmp_path, impl):
    call = tool(impl, kind="http", folder=tmp_path, config={"url": "http://127.0.0.1:9/"}, timeout=5.0)
    assert set(call()) == {"status", "json", "text", "items", "result", "error"}


def test_an_http_tool_with_code_uses_it(tmp_path):
    write(tmp_path, "tools/http_call.py", "def call(url):\n    return {'text': url}\n")
    call = tool("tools/http_call.py#call", kind="http", folder=tmp_path, config={"url": "any"})
    assert call() == {"text": "any"}


def test_tools_from_one_file_share_its_module(tmp_path):
    write(tmp_path, "a.py", "seen = []\ndef put(x):\n    seen.append(x)\ndef get():\n    return seen\n")
    tools = load(spec("a.py#put", id="put"), spec("a.py#get", id="get"), folder=tmp_path)
    tools["put"](x=1)
    assert tools["get"]() == [1]
    assert load(spec("a.py#get", id="get"), folder=tmp_path)["get"]() == []  # each session has its own


def test_closing_a_tool_without_resources_does_nothing():
    close_tools({"one": len, **load(spec("x#y", id="two"), two=lambda: None)})
