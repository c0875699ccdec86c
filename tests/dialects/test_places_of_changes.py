"""Whatever is changed in a valid file of any dialect, the problems are reported at the place of the change."""

from __future__ import annotations

import json

import pytest

from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.sources import format_path
from tests.dialects.coreason.release_recipes import release_22

AGENT = {
    "meta": {
        "schema_version": 1,
        "name": "t",
        "defaults": {"llm": "openai:m", "temp": 0.5, "retry": {"backoff": 1}, "timeout": {"seconds": 5}},
        "providers": {"openai": {"model": "m", "kwargs": {"x": 1}}},
    },
    "state": {"shape": {"x": "the input"}, "reducer": "replace", "init": {"x": 1}},
    "prompts": {
        "partials": {"p": "x"},
        "templates": {"ask": {"system": "s", "messages": [{"role": "user", "content": "c"}]}},
    },
    "memory": {"enabled": True, "kind": "inmemory", "k": 3, "config": {"x": 1}},
    "tools": [{"id": "t", "kind": "python", "impl": "m#f", "mode": "callable", "config": {"x": 1}, "retry": {}}],
    "graph": {
        "inputs": ["x"],
        "outputs": ["x"],
        "max_steps": 9,
        "nodes": [
            {"id": "a", "type": "tool", "uses": "t", "inputs": {"q": 1}, "map": {"set": {"x": 1}, "delete": ["y"]}},
            {"id": "b", "type": "llm", "prompt": "ask", "on_error": {"to": "c", "resume": True}, "retry": {}},
            {"id": "c", "type": "router", "cases": [{"when": {"==": [1, 1]}, "to": "d"}], "default": "d"},
            {"id": "d", "type": "loop", "body": "e", "until": {"==": [1, 1]}, "max_iterations": 2},
            {"id": "e", "type": "noop", "map": {"merge": {"x": [1]}, "history": {"h": 1}}},
            {"id": "f", "type": "subgraph", "graph": "inner", "inputs": {"q": 1}, "timeout": {"seconds": 1}},
        ],
        "edges": [{"from": "a", "to": "b", "when": {"==": [1, 1]}}, {"from": "b", "to": "c"}],
    },
    "subgraphs": {"inner": {"inputs": ["x"], "outputs": ["x"], "nodes": [{"id": "g", "uses": "t"}]}},
}  # fmt: skip
SUPPORT = {
    "name": "Support",
    "description": "d",
    "task": "t",
    "tools": ["x"],
    "llm": {"model": "m", "provider": "openai", "temperature": 0.1, "maxTokens": 5},
    "systemPrompt": "s",
    "maxCalls": 2,
    "requireApproval": True,
    "stream_options": {"x": 1},
}
FILES = {"agentruntime": AGENT, "symphony": SUPPORT, "coreason": release_22()}
EVERY = {"agentruntime": 2, "symphony": 1, "coreason": 6}  # of the larger files, some of the parts are enough
# Mappings that take any key.
FREE = {
    *("meta.providers", "meta.providers.openai", "meta.providers.openai.kwargs", "memory.config", "tools[0].config"),
    *("state.shape", "state.init", "prompts.partials", "prompts.templates", "subgraphs", "stream_options"),
    *("graph.nodes[0].inputs", "graph.nodes[5].inputs", "graph.nodes[0].map.set"),
    *("graph.nodes[4].map.merge", "graph.nodes[4].map.history"),
}


def walk(value, path=()):
    """Yield (path, value) of each part of a value, the whole first."""
    yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from walk(part, (*path, key))


def put(content, path, value):
    """Return a copy of a content in which something else stands at a path."""
    copied = json.loads(json.dumps(content))  # unlike `deepcopy`, it copies a part twice that is used twice
    part = copied
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return copied


def find_errors(content, name):
    """Return the problems that a changed file has more than the file itself: (code, path)."""
    try:
        problems = load(content, dialect=name).check()
    except RecipeError as error:
        problems = error.problems
    return [(problem.code, problem.where.partition(", ")[2]) for problem in problems]


@pytest.mark.parametrize("name", FILES)
def test_a_value_of_another_type_is_reported_where_it_is(name):
    content = FILES[name]
    before, changes = find_errors(content, name), list(walk(content))[1 :: EVERY[name]]
    silent = 0
    for path, value in changes:
        other = "?" if isinstance(value, list | dict) else [["?"]]
        more = [each for each in find_errors(put(content, path, other), name) if each not in before]
        assert {where for code, where in more if code == "R114"} <= {format_path(path)}, path
        silent += not more
    assert silent < len(changes) / 2


@pytest.mark.parametrize("name", ["agentruntime", "symphony"])
def test_an_unknown_key_is_reported_where_it_is(name):
    content = FILES[name]
    before = find_errors(content, name)
    for path, value in walk(content):
        if isinstance(value, dict):
            more = [each for each in find_errors(put(content, (*path, "zzz"), 1), name) if each not in before]
            unknown = [where for code, where in more if code == "R112"]
            is_free = format_path(path) in FREE or "when" in path or "until" in path
            assert unknown == ([] if is_free else [format_path((*path, "zzz"))]), path
