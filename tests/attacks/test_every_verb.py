"""Hostile and endless objects as each argument of each public verb, by enumeration: a value, or one of our errors.

A verb that is new is found here by itself. What it needs besides the argument in question stands in `USUAL` by the name
of the parameter; a name that is missing there fails the test.
"""

from __future__ import annotations

import asyncio
import inspect
import operator
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

import networkx as nx
import pytest

import agentnb as nb
from agentnb import testing
from agentnb.errors import AgentNbError
from tests.attacks.test_hostile_arguments import VALUES, Endless, TooLongError


def graph():
    built_graph = nx.DiGraph(name="small")
    built_graph.add_node("n1", function=lambda board: {"y": 1})
    built_graph.add_node("ask", kind="human", prompt="x?", output="said")
    built_graph.add_node("n2", kind="tool", function="use", inputs={"y": "y"})
    nx.add_path(built_graph, ["n1", "ask", "n2"])
    return built_graph


RECIPE = nb.load(graph())
OPTIONS = {"tools": {"use": lambda y: 1}, "answers": ["a"]}


def new(**options):
    return nb.Session(RECIPE, {"x": 1}, **{**OPTIONS, **options})


def run():
    session = new(run_id="run")
    session.run()
    return session


@cache
def finished():
    """A run for what only reads it: nothing may change it."""
    return run()


class EndlessList(list):
    """A list whose iteration never ends."""

    def __iter__(self):
        yield from range(1_000_100)
        raise TooLongError


class Unlike(Mapping):
    """A mapping whose keys and length do not fit each other."""

    def __iter__(self):
        return iter([1, "a", None, object()])

    def __getitem__(self, key):
        raise RuntimeError

    def __len__(self):
        return -1  # noqa: PLE0303  (that is the attack)


FOREIGN = {
    **VALUES,
    "endless mapping": Endless,
    "endless list": EndlessList,
    "endless iterator": lambda: iter(Endless()),
    "unlike": Unlike,
    "nothing": lambda: None,
    "bytes": lambda: b"\xff\0",
    "class": lambda: nb.Session,
    "function": lambda: lambda *_, **__: 1 / 0,
    "nan": lambda: float("nan"),
    "number": lambda: 10**5000,
    "negative": lambda: -1,
    "null": lambda: "a\0b",
}
# Objects with public methods, and how each is made for a try.
OWNERS = {
    nb.Session: lambda: at(1),
    type(new().breakpoints): lambda: new().breakpoints,
    nb.SimulationTrace: lambda: finished().trace,
    nb.Recipe: lambda: RECIPE,
    nb.Drawing: lambda: new().draw(),
    nb.SimulationStep: lambda: finished().trace.steps[0],
    type(nb.compare(run(), run())): cache(lambda: nb.compare(run(), new())),
    type(run().slice("y")): cache(lambda: run().slice("y")),
    type(nb.coverage(run())): cache(lambda: nb.coverage(run())),
    type(nb.frames(run())): cache(lambda: nb.frames(run())),
}
FUNCTIONS = {
    **{f"nb.{name}": getattr(nb, name) for name in [*nb.__all__, "open"] if inspect.isfunction(getattr(nb, name))},
    **{f"testing.{name}": getattr(testing, name) for name in testing.__all__
       if inspect.isfunction(getattr(testing, name))},
}  # fmt: skip
UNTRIED = {
    "nb.load_ipython_extension": "IPython calls it",
    "nb.unload_ipython_extension": "IPython calls it",
    "nb.ask": "it only stands in a coroutine of a model",
    "nb.configure_logging": "it changes the logger of the process; tests/session/test_logs.py",
    "nb.debug": "it makes a widget; tests/attacks/test_hostile_arguments.py",
    "Session.serve_mcp": "it serves until it is stopped",
    "Session.wait": "it waits for a run that `start` began",
    "SimulationTrace.reading": "for other parts of agentnb",
    "SimulationTrace.to_otel": "it calls the methods of the provider that it is given",
    "Drawing.patch": "for the cockpit",
    "ManyFrames.get": "a method of mappings",
    **{
        f"SessionBreakpoints.{name}": "the engine calls it"
        for name in ("find_after_step", "find_at_call", "find_before_step", "find_met", "from_rows")
    },
    "ManyFrames.build": "for other parts of agentnb",
}
USUAL = {
    "a": finished, "b": finished, "runs": lambda: [finished()],
    "ok": lambda: lambda session: True, "recipe": lambda: RECIPE,
    "inputs": lambda: {"x": 1}, "fails": lambda: lambda session: True, "source": graph,
    "where": lambda: "none.db", "llm": lambda: "simulated:x", "url": lambda: "none.db", "name": lambda: "triage",
    "path": lambda: "y", "condition": lambda: "y == 1", "k": lambda: 1, "step": lambda: 1, "changes": lambda: {"x": 2},
    "node": lambda: "n1", "behavior": lambda: "n1", "expression": lambda: "x", "type": lambda: "note",
    "text": lambda: "a", "id": lambda: "call_0_0", "listener": lambda: print, "value": lambda: "a",
    "session": run, "subject": run, "goldens": lambda: "goldens", "recipes": lambda: RECIPE, "i": lambda: 0,
    "j": lambda: 1, "keys": lambda: ["y"], "number": lambda: 1, "message": lambda: "y", "breakpoint": lambda: 1,
    "before": lambda: 0, "after": lambda: 1,
}  # fmt: skip


def at(step):
    session = new()
    session.step(step)
    return session


def tries():
    """Yield every verb with each of its parameters: (name, function, owner's factory, parameter)."""
    candidates = [(name, function, None) for name, function in FUNCTIONS.items()]
    for cls, make in OWNERS.items():
        for name in dir(cls):
            function = inspect.getattr_static(cls, name)
            if not name.startswith("_") and inspect.isfunction(function):
                candidates.append((f"{cls.__name__}.{name}", function, make))
    for name, function, make in candidates:
        if name in UNTRIED:
            continue
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name != "self":
                yield pytest.param(function, make, parameter, id=f"{name}({parameter.name}=)")


def call(function, make, parameter, value):
    """Call a verb with a value for one parameter, and what is usual for the others that it needs."""
    args = [] if make is None else [make()]
    words = {}
    for other in inspect.signature(function).parameters.values():
        if other.name == "self" or other.kind is other.VAR_POSITIONAL:
            continue
        if other.name == parameter.name and other.kind is not other.VAR_KEYWORD:
            words[other.name] = value
        elif other.kind is other.VAR_KEYWORD:
            if other.name == parameter.name:
                words["budget"] = value
            elif other.name == "session_options":
                words |= OPTIONS
        elif other.default is other.empty:
            words[other.name] = USUAL[other.name]()
    result = function(*args, **words)
    if inspect.isawaitable(result):

        async def wait():
            return await result

        result = asyncio.run(wait())
    assert repr(result) is not None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("function", "make", "parameter"), [*tries()])
def test_every_public_function_handles_an_argument_of_any_type(function, make, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, foreign in FOREIGN.items():
        problem = None
        try:
            call(function, make, parameter, foreign())
        except AgentNbError as error:
            problem = error
        except ZeroDivisionError:  # of the caller's own function
            problem = None if name == "function" else name
        except (Exception, SystemExit, TooLongError) as error:
            raise AssertionError(f"{parameter.name} = the {name} shows {type(error).__name__}: {error}") from error
        assert problem is None or (problem.problems and len(str(problem)) < 100_000), name


def test_excluded_names_exist():
    names = {*FUNCTIONS, *(f"{cls.__name__}.{name}" for cls in OWNERS for name in dir(cls))}
    assert UNTRIED.keys() <= names


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize(
    "owner_of",
    [
        lambda session: session.board, lambda session: session.trace.steps, lambda session: session.trace.frames,
        lambda session: session.recipe.nodes, nb.frames,
    ],
    ids=["board", "steps", "frames", "nodes", "frames of runs"],
)  # fmt: skip
def test_a_key_of_any_type_is_reported_as_missing(owner_of, name):
    owner, key = owner_of(run()), FOREIGN[name]()
    for read in (operator.getitem, operator.contains, getattr(type(owner), "get", operator.contains)):
        with suppress(AgentNbError, LookupError, TypeError):
            assert read(owner, key) in (False, None, 1) or name in {"int", "negative", "number"}
