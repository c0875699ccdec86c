"""Mutated recipes of all dialects: `nb.load` gives a Recipe or raises RecipeError, and touches nothing outside.

`ATTACKS_RECIPES` is the number of recipes; the long form has 100,000. The number of a failing one is its seed.
"""

from __future__ import annotations

import copy
import json
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import yaml

import agentnb as nb
from agentnb.errors import RecipeError

RECIPES = int(os.environ.get("ATTACKS_RECIPES", "400"))
# Tests that share them: each ends well before the time at which a test counts as hung.
PARTS = max(20, RECIPES // 500)
SAMPLES = Path(nb.__file__).parent / "samples"
PYTHON = (*sys.path, sys.prefix, sys.base_prefix, *filter(None, [sys.pycache_prefix]), Path(nb.__file__).parent)
ROOTS = tuple({str(Path(each).resolve()) for each in PYTHON})


class Hostile:
    """An object whose every method raises."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("hostile")

    __repr__ = __str__ = __eq__ = __bool__ = __len__ = __iter__ = __format__ = __getattr__ = _refuse  # type: ignore[assignment]
    __hash__ = _refuse  # type: ignore[assignment]


class HostileText(str):
    """Text whose methods raise."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("hostile")

    __repr__ = __str__ = __format__ = _refuse  # type: ignore[assignment]


class HostileDict(dict[Any, Any]):
    """A mapping whose reading raises."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("hostile")

    __repr__ = __iter__ = items = get = __getitem__ = _refuse  # type: ignore[assignment]


def cyclic() -> Any:
    results: list[Any] = []
    results += [results, {"again": results}]
    return results


PLAIN = [
    *(
        None,
        True,
        0,
        -1,
        10**5000,
        1e999,
        float("nan"),
        "",
        "x" * 5000,
        "\0",
        "\ud800",
        "{{ a }}",
        "{% for",
        "2020-01-01",
    ),
    *(
        [],
        {},
        [[]],
        [["a"]],
        {"a": {}},
        [None],
        {"": None},
        [{}],
        [[[[1]]]],
        {"$ref": "#/a"},
        {"var": "a"},
        {"and": [1]},
    ),
    *("../../etc/passwd", "file:///etc/passwd", "agent", "end", "start", "a -> b", "!!python/object:os.system"),
    *(
        [10**5000],
        {"type": 10**5000},
        {"type": ["a", []]},
        {"enum": [[1], {}]},
        {"required": [["a"]]},
        "0x" + "f" * 4000,
    ),
]
ODD = [Hostile, HostileText, HostileDict, cyclic, object, lambda: {1, 2}, lambda: (1, 2), lambda: b"a", lambda: print]
KEYS = [
    "",
    "id",
    "type",
    "kind",
    "nodes",
    "edges",
    "name",
    "\0",
    "x" * 500,
    "when",
    "required",
    "properties",
    "inputs",
    "$",
]
ODD_KEYS = [1, None, 1.5, ("a", 1), True, 10**5000, b"a", frozenset("a")]


def places(document: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a document; those of a container that it holds many times, once."""
    results: list[tuple[Any, Any]] = []
    seen: set[int] = set()
    waiting = [document]
    while waiting:
        holder = waiting.pop()
        if type(holder) not in {dict, list} or id(holder) in seen:
            continue
        seen.add(id(holder))
        items = list(holder.items()) if type(holder) is dict else list(enumerate(holder))
        results += [(holder, key) for key, _ in items]
        waiting += [item for _, item in items]
    return results


def copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001  (a hostile object cannot be copied)
        return value


def mutate(document: Any, dice: random.Random, *, odd: bool) -> Any:
    """Change a document in one to six places."""
    for _ in range(dice.randrange(1, 7)):
        targets = places(document)
        if not targets:
            return document
        holder, key = dice.choice(targets)
        other, other_key = dice.choice(targets)
        match dice.randrange(9):
            case 0:
                del holder[key]
            case 1 | 2:
                holder[key] = dice.choice(ODD)() if odd and dice.random() < 0.5 else copy.deepcopy(dice.choice(PLAIN))
            case 3:
                holder[key] = copied(other[other_key])
            case 4 if isinstance(holder, list):
                holder += [copied(holder[key])] * dice.choice((1, 2, 30, 300, 3000))
            case 5 if isinstance(holder, dict):
                holder[dice.choice(ODD_KEYS if odd else KEYS)] = holder.pop(key)
            case 6 if isinstance(holder, dict):
                holder[dice.choice(KEYS)] = copy.deepcopy(dice.choice(PLAIN))
            case 7 if isinstance(holder[key], str):
                holder[key] = holder[key][: dice.randrange(len(holder[key]) + 1)] + dice.choice(
                    ["", "{{", "}}", ":", "é", "\n"]
                )
            case _:
                holder[key] = [holder[key]] if dice.random() < 0.5 else {dice.choice(KEYS): holder[key]}
    return document


def spoil(text: str, dice: random.Random) -> str:
    """Change the text of a document: characters, lines, anchors, tags."""
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(text) + 1)
        lines = text.split("\n")
        match dice.randrange(5):
            case 0:
                text = text[:at] + dice.choice("{}[]:-#&*!|>'\"%@`\t\0\ud800 \n") + text[at:]
            case 1:
                text = text[:at] + text[at + dice.randrange(1, 30) :]
            case 2:
                text = "\n".join(
                    [*lines[: at % len(lines)], *dice.sample(lines, min(3, len(lines))), *lines[at % len(lines) :]]
                )
            case 3:
                text = text[:at] + dice.choice(
                    ["&a [*a]", "!!python/name:os.system", "<<: *a", "0x" + "f" * 5000, "1_" * 3000]
                )
            case 4:
                text = "a: &a [" + "x," * 9 + "]\nb: &b [" + "*a," * 9 + "]\nc: [" + "*b," * 9 + "]\n" + text
    return text


# -- seeds -------------------------------------------------------------------------------------------------------------

LOGIC = {"and": [{">": [{"var": "n"}, 1]}, {"!": [{"var": "done"}]}]}


def graph_seed() -> dict[str, Any]:
    """Return a networkx graph as data."""
    return {
        "graph": {"name": "g", "entry": ["a"], "inputs": {"n": {"type": "integer"}}, "outputs": ["n"]},
        "nodes": [
            ["a", {"kind": "function", "function": "f", "inputs": {"n": "n.deep"}}],
            ["b", {"kind": "tool", "function": "t", "writes": ["m"], "retry": {"attempts": 2}}],
            ["c", {"kind": "llm", "prompt": "say {{ n }}", "output": "said"}],
            ["d", {"kind": "human", "question": "ok?", "options": ["yes", "no"]}],
            ["j", {"kind": "join"}],
        ],
        "edges": [["a", "b", {"when": "n > 1"}], ["a", "c", {"when": copy.deepcopy(LOGIC)}],
                  ["b", "j", {"kind": "parallel"}], ["c", "d", {}], ["d", "a", {"kind": "loop_back", "when": "done"}]],
    }  # fmt: skip


def to_graph(document: Any) -> Any:
    """Return a graph of a document, as far as networkx takes it."""
    graph = nx.MultiDiGraph()
    if isinstance(document, dict):
        for name, value in document.get("graph", {}).items():
            graph.graph[name] = value
        for name, attributes in document.get("nodes", []):
            graph.add_node(name, **attributes)
        for source, target, attributes in document.get("edges", []):
            graph.add_edge(source, target, **attributes)
    return graph


def polaris_seed() -> list[Any]:
    return [
        ["system"],
        ["branch", "b", "n"],
        ["switch", "s", ["x", "y"]],
        ["parallel", "p", 2],
        ["loop", "l"],
        ["timeout", 1.5],
    ]


def to_polaris(document: Any) -> Any:
    """Return a polaris graph of a list of things to add, each with its arguments."""
    from agentnb.dialects import polaris

    @polaris.system
    async def step() -> int:
        return 1

    def inside(graph: Any) -> None:
        graph.add_system(step)

    graph = polaris.Graph()
    first = graph.add_system_node(step)
    for verb, *arguments in document:
        argument = arguments[0] if arguments else None
        match verb:
            case "system":
                graph.add_system(step)
            case "branch":
                graph.add_conditional_branch(argument, int, lambda value: value > 0, inside)
            case "switch":
                graph.add_switch(argument, int, lambda value: value, dict.fromkeys(arguments[1], inside))
            case "parallel":
                graph.add_parallel(argument, [inside] * arguments[1])
            case "loop":
                graph.add_loop(argument, int, lambda value: value > 0, inside)
            case "timeout":
                graph.set_timeout(first, argument)
    return graph


def behavior_seed() -> list[Any]:
    return [["one", ["goal.created"], {"a": 1}], ["two", ["task.done", "task.failed"], {"status": "open"}]]


def to_runtime(document: Any) -> Any:
    """Return an activegraph runtime with a behavior for each row: name, types of events, what they must say."""
    from agentnb.dialects import activegraph

    activegraph.clear_registry()
    results = []
    for name, types, template in document:

        @activegraph.behavior(name=name, on=types, where=template)
        def act(event: Any, graph: Any, ctx: Any) -> None:
            """Do nothing."""

        results.append(act)
    return activegraph.Runtime(activegraph.Graph(), behaviors=results)


def symphony_seed() -> dict[str, Any]:
    return {
        "name": "desk", "description": "answers", "task": "answer {{ question }}", "max_calls": 3,
        "llm": {"provider": "openai", "model": "m", "temperature": 0.5}, "directives": "be kind",
        "tools": [{"name": "look", "description": "looks", "impl": "tools.py:look",
                   "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}],
    }  # fmt: skip


DOCUMENTS = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(SAMPLES.glob("*.yaml"))]
DOCUMENTS += [symphony_seed()]
OBJECTS = [(graph_seed, to_graph), (polaris_seed, to_polaris), (behavior_seed, to_runtime)]


def source_of(dice: random.Random) -> Any:
    """Return a mutated recipe: a dict, a text, a graph, or a dialect's own object; None where that cannot be built."""
    if dice.random() < 0.3:
        seed, make = dice.choice(OBJECTS)
        try:
            return make(mutate(seed(), dice, odd=dice.random() < 0.5))
        except Exception:  # noqa: BLE001  (what cannot be built is no source)
            return None
    number = dice.randrange(len(DOCUMENTS))
    form = dice.randrange(4)
    if form < 2:
        return mutate(copy.deepcopy(DOCUMENTS[number]), dice, odd=form == 1)
    return spoil(text_of(number, as_yaml=form == 2), dice) + "\n"


@cache
def text_of(number: int, *, as_yaml: bool) -> str:
    """Return one of the documents as YAML or JSON."""
    return yaml.safe_dump(DOCUMENTS[number]) if as_yaml else json.dumps(DOCUMENTS[number])


# -- what must not happen ----------------------------------------------------------------------------------------------

_watched: list[str] | None = None


def _audit(event: str, given: tuple[Any, ...]) -> None:
    if _watched is None:
        return
    if event.startswith(
        ("socket.connect", "socket.getaddrinfo", "subprocess.", "os.system", "os.exec", "os.posix_spawn")
    ):
        _watched.append(f"{event} {given!r:.200}")
    elif event == "open" and isinstance(given[0], str | bytes):
        path = os.path.realpath(os.fsdecode(given[0]))
        if not path.startswith(ROOTS):
            _watched.append(f"open {path}")


@contextmanager
def watched() -> Iterator[list[str]]:
    """Collect what is opened, connected to and started meanwhile; an audit hook cannot be removed again."""
    global _watched  # noqa: PLW0603
    if not getattr(sys, "_agentnb_audited", False):
        sys.addaudithook(_audit)
        sys._agentnb_audited = True  # type: ignore[attr-defined]
    _watched = results = []
    try:
        yield results
    finally:
        _watched = None


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore")
def test_loading_anything_gives_a_recipe_or_a_recipe_error(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.unraisablehook", lambda _: None)  # pydantic tells there what it cannot show
    for number in range(part * RECIPES // PARTS, (part + 1) * RECIPES // PARTS):
        source = source_of(random.Random(number))
        if source is None:
            continue
        with watched() as problems:
            try:
                nb.load(source)
            except RecipeError as error:
                str(error)
            except BaseException as error:  # noqa: BLE001
                pytest.fail(f"recipe {number}: {type(error).__name__}: {error}")
        assert not problems, f"recipe {number}: {problems[:3]}"
