"""Objects whose own methods raise, or never end, as arguments of every public verb: an error of ours, or success."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import networkx as nx
import pytest

import agentnb as nb
from agentnb.errors import AgentNbError
from agentnb.trace.trace import SimulationTrace

METHODS = [
    *("repr", "str", "eq", "ne", "len", "iter", "bool", "format", "contains", "getitem", "lt", "le", "gt", "ge"),
    *("call", "fspath", "index", "int", "float", "await", "next", "add", "radd", "mod"),
]
WORDS = [
    *("items", "keys", "values", "get", "strip", "split", "startswith", "casefold", "lower", "upper", "partition"),
    *("isidentifier", "append", "copy", "encode", "join", "replace", "complete", "ns"),
]


class RefusedError(Exception):
    """What the objects raise; nobody may see it."""


class TooLongError(BaseException):
    """Somebody walked to the end of a value that has none."""


def refuse(*_, **__):
    raise RefusedError


def hostile(base, *made):
    """Return an object of a subclass most methods of which raise."""
    body = {f"__{name}__": refuse for name in METHODS} | dict.fromkeys(WORDS, refuse) | {"__hash__": lambda self: 1}
    return type(f"Hostile{base.__name__.title()}", (base,), body)(*made)


class Locked:
    """An object whose attributes cannot be read."""

    def __getattribute__(self, name):
        raise RefusedError


class Loud:
    """An object with a very long repr."""

    def __repr__(self):
        return "loud " * 1_000_000


class Endless(Mapping):
    """A mapping and a sequence without an end."""

    def __iter__(self):
        yield from range(1_000_100)
        raise TooLongError

    def __getitem__(self, key):
        return key

    def __len__(self):
        return 3


VALUES = {
    "object": lambda: hostile(object),
    "str": lambda: hostile(str, "n1"),
    "int": lambda: hostile(int, 1),
    "float": lambda: hostile(float, 1),
    "dict": lambda: hostile(dict, {"x": 1}),
    "list": lambda: hostile(list, [1]),
    "tuple": lambda: hostile(tuple, [1]),
    "exception": lambda: hostile(Exception, "x"),
    "locked": Locked,
    "loud": Loud,
}


def graph():
    built_graph = nx.DiGraph(name="small")
    built_graph.add_node("n1", function=lambda board: {"y": 1})
    built_graph.add_node("ask", kind="human", prompt="x?", output="said")
    built_graph.add_node("n2", kind="tool", function="use", inputs={"y": "y"})
    nx.add_path(built_graph, ["n1", "ask", "n2"])
    return built_graph


RECIPE = nb.load(graph())


def new(**options):
    return nb.Session(RECIPE, **{"inputs": {"x": 1}, "tools": {"use": lambda y: 1}, **options})


def at(step, **options):
    session = new(**options)
    session.step(step)
    return session


def shown(session):
    """Run a session and show it."""
    session.run()
    assert repr(session)
    assert repr(session.board)
    assert all(repr(step) for step in session.trace.steps)
    assert all(frame.to_html() is not None for frame in session.trace.frames.values())
    assert str(session.why())
    session.replay()
    return session


def run_function(function):
    built_graph = nx.DiGraph(name="one")
    built_graph.add_node("n1", function=function)
    return shown(nb.Session(nb.load(built_graph)))


def run_model(inputs=None, **options):
    built_graph = nx.DiGraph(name="model")
    built_graph.add_node("n1", kind="llm", prompt="say {{ x }}")
    return shown(nb.Session(nb.load(built_graph), inputs or {"x": 1}, **options))


def run_edge(value, when):
    built_graph = nx.DiGraph(name="edge")
    built_graph.add_node("a", function=lambda board: {"v": value})
    built_graph.add_node("b", function=lambda board: {"z": 1})
    built_graph.add_edge("a", "b", when=when)
    return shown(nb.Session(nb.load(built_graph)))


def raising(value):
    def fail(y=None):
        raise ValueError(value)

    return fail


def failed(value):
    session = new(tools={"use": raising("no")}, answers=["a"])
    session.run()
    session.skip(value)


def watching(session, expression):
    session.watch(expression)
    session.run()
    assert repr(session.watches)


def broken(session, **clauses):
    session.breakpoints.add(**clauses)
    session.run()


OPTIONS = [
    *("inputs", "llm", "tools", "resources", "answers", "budget", "clock", "seed", "store", "run_id", "name", "hooks"),
    *("durability", "validate_inputs", "strict_expressions", "chaos"),
]
PARTS = ("x", "use", "max_steps", "n1")  # an input, a tool, a limit and a node
VERBS = {
    **{f"Session({name}=)": lambda v, n=name: new(**{n: v}).run() for name in OPTIONS},
    **{
        f"Session({name}={{...: value}})": lambda v, n=name: new(**{n: dict.fromkeys(PARTS, v)}).run()
        for name in ("inputs", "tools", "answers", "budget", "resources", "hooks")
    },
    **{
        f"Session({name}={{key: ...}})": lambda v, n=name: new(**{n: {v: 1}}).run()
        for name in ("inputs", "tools", "answers", "budget", "resources", "hooks")
    },
    "load(source)": nb.load,
    "load(dict)": lambda v: nb.load({"nodes": v, "name": v, "graph": v, "recipe": {"nodes": [v]}}),
    "load(node)": lambda v: nb.load(nx.DiGraph([("a", "b")], name=v)),
    "load(attribute)": lambda v: run_edge(1, v),
    **{f"load({name}=)": lambda v, n=name: nb.load(graph(), **{n: v}) for name in ("dialect", "name")},
    "load(allow=[...])": lambda v: nb.load(graph(), allow=[v]),
    "step": lambda v: new().step(v),
    "back": lambda v: at(1).back(v),
    "goto": lambda v: at(1).goto(v),
    "run(until=)": lambda v: new().run(until=v),
    "run(max_steps=)": lambda v: new().run(max_steps=v),
    "run(until=function)": lambda v: new().run(until=lambda board: v),
    "run(until=text)": lambda v: new(inputs={"x": v}).run(until="x == 3 or x"),
    "run_back": lambda v: at(1).run_back(until=v),
    "start": lambda v: new().start(until=v),
    "edit": lambda v: at(1).edit(v),
    "edit({key: ...})": lambda v: at(1).edit({v: 1}),
    "edit({...: value})": lambda v: shown(at(1).edit({"x": v})),
    "set_next": lambda v: at(1).set_next(v),
    "set_budget": lambda v: at(1).set_budget(max_steps=v),
    "emit": lambda v: at(1).emit(v, v, v),
    "emit(payload)": lambda v: shown(at(1).emit("a", {"k": v})),
    "answer": lambda v: at(2).answer(v),
    "answer(node=)": lambda v: at(2).answer("a", node=v),
    "approve": lambda v: at(2).approve(v, by=v),
    "deny": lambda v: at(2).deny(v, v),
    "change": lambda v: at(2).change(v, arguments=v, answer=v),
    "skip": failed,
    "skip({...: value})": lambda v: failed({"said": v}),
    **{
        f"breakpoints.add({name}=)": lambda v, n=name: broken(new(), **{n: v})
        for name in ("node", "edge", "key", "when", "error", "step", "event", "call", "side", "on_hit", "once")
    },
    "breakpoints.add(edge=(...))": lambda v: new().breakpoints.add(edge=(v, v)),
    "breakpoints.add(when=function)": lambda v: broken(new(), when=lambda board: v),
    "breakpoints.add(when=text)": lambda v: broken(new(inputs={"x": v}), when="x > 3"),
    **{
        f"breakpoints.{name}": lambda v, n=name: getattr(new().breakpoints, n)(v) for name in ("remove", "save", "load")
    },
    "watch": lambda v: watching(new(), v),
    "watch(function)": lambda v: watching(new(), lambda board: v),
    "watch(text)": lambda v: watching(new(inputs={"x": v}), "x + 1"),
    **{
        f"fork({name}=)": lambda v, n=name: at(1).fork(**{n: v}).run()
        for name in ("at", "name", "edit", "recipe", "llm", "tools")
    },
    "fork(edit={key: ...})": lambda v: at(1).fork(edit={v: 1}),
    "fork(edit={...: value})": lambda v: shown(at(1).fork(edit={"x": v})),
    "who_wrote": lambda v: at(1).who_wrote(v, at=v),
    "why": lambda v: at(1).why(v),
    "why_not": lambda v: at(1).why_not(v),
    "why_not(at=)": lambda v: at(1).why_not("n1", at=v),
    **{f"replay({name}=)": lambda v, n=name: at(1).replay(**{n: v}) for name in ("from_step", "recipe", "strict")},
    "subscribe": lambda v: new().subscribe(v),
    "draw": lambda v: new().draw(v, direction=v).dot,
    "save": lambda v: at(1).save(v),
    "open": lambda v: nb.open(v, run_id=v),
    "runs": nb.runs,
    "samples": nb.samples,
    "debug": nb.debug,
    "trace.diff": lambda v: at(1).trace.diff(v, v),
    "trace.wide": lambda v: at(1).trace.wide([v]),
    **{f"trace.{name}": lambda v, n=name: getattr(at(1).trace, n)(v) for name in ("state_at", "to_json")},
    "SimulationTrace.read": lambda v: (Path("n1").write_text("[]"), SimulationTrace.read(v)),
    "a function returns it": lambda v: run_function(lambda board: v),
    "a function returns it in a dict": lambda v: run_function(lambda board: {"a": v}),
    "a function returns it as a key": lambda v: run_function(lambda board: {v: 1}),
    "a function raises it": lambda v: run_function(raising(v)),
    "a tool returns it": lambda v: shown(new(tools={"use": lambda y: v}, answers=["a"])),
    "a tool raises it": lambda v: shown(new(tools={"use": raising(v)}, answers=["a"])),
    "a person answers it": lambda v: shown(new(answers=[v])),
    "a model answers it": lambda v: run_model(llm=lambda request: v),
    "a model's script": lambda v: run_model(llm=[v]),
    "a template": lambda v: run_model({"x": v}, llm=["a"]),
    "an edge's text": lambda v: run_edge(v, "v == 1 or v"),
    "an edge's rule": lambda v: run_edge(v, {"==": [{"var": "v"}, 1]}),
    "an edge's function": lambda v: run_edge(1, lambda board: v),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("verb", VERBS)
def test_a_hostile_argument_raises_an_agentnb_error_or_succeeds(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, make_value in VALUES.items():
        wrong = None
        try:
            VERBS[verb](make_value())
        except AgentNbError as raised:
            wrong = None if raised.problems and len(str(raised)) < 100_000 else raised
        except (Exception, SystemExit, TooLongError) as error:
            raise AssertionError(f"{verb} with the {name} shows {type(error).__name__}") from error
        assert wrong is None, name


ENDLESS = ["Session(inputs=)", "Session(tools=)", "Session(budget=)", "edit", "skip", "emit(payload)", "fork(edit=)"]


@pytest.mark.parametrize("verb", ENDLESS)
def test_an_endless_mapping_is_rejected(verb):
    with pytest.raises(AgentNbError, match=r"R275|B102"):
        VERBS[verb](Endless())


@pytest.mark.parametrize(
    ("verb", "text"),
    [
        (lambda: new(clock=Loud()), "clock is a Loud that raises AttributeError when used\n  where: Session()"),
        (lambda: new(llm=Locked()), "llm is a Locked that raises RefusedError when used"),
        (lambda: at(1).edit(Endless()), "changes is an Endless whose items cannot be read, or that has too many"),
        (lambda: at(1).edit({1: 2}), "a key of changes is not a string\n  where: Session.edit()"),
        (lambda: new(tools={1: 2}), "a key of tools is not a string"),
        (lambda: new(tools=[1]), "tools is a list, and Mapping[str, Callable[..., Any]] | None is expected"),
    ],
)
def test_an_argument_of_a_wrong_class_is_named(verb, text):
    with pytest.raises(AgentNbError, match="R275: " + re.escape(text)) as raised:
        verb()
    assert len(raised.value.problems) == 1


ROUND: list = []
ROUND.append(ROUND)
DOUBLED: list = []
for _ in range(40):
    DOUBLED = [DOUBLED, DOUBLED]


@pytest.mark.parametrize("value", [ROUND, DOUBLED], ids=["inside itself", "doubled"])
def test_a_list_without_an_end_in_place_of_a_text_is_an_error(value):
    for arguments in ({"name": value}, {"dialect": value}):
        with pytest.raises(AgentNbError, match=r"R275|R107"):
            nb.load({"a": 1}, **arguments)


@pytest.mark.parametrize("allow", [bytearray(b"x"), {1: 2}, {None}, range(2), [b"x"]])
def test_items_of_a_wrong_class_in_any_collection_are_named(allow):
    with pytest.raises(AgentNbError, match="R275: allow is "):
        nb.load({"a": 1}, allow=allow)


def test_plain_values_of_subclasses_are_accepted():
    class Name(str):
        __slots__ = ()

    class Number(int):
        pass

    class Words(dict):
        pass

    session = new(name=Name("mine"), inputs=Words({Name("x"): 2}))
    assert type(session.name) is str
    assert session.goto(Number(0)).position == 0
    assert type(next(iter(session.edit(Words({Name("x"): 3})).board))) is str
    assert session.board["x"] == 3
    session.breakpoints.add(node=Name("ask"))
    assert session.run().steps
    assert session.current == "ask"


def test_an_error_that_no_argument_explains_is_raised_unchanged(monkeypatch):
    session = at(1)
    monkeypatch.setattr(os, "fspath", refuse)
    with pytest.raises(RefusedError):
        session.trace.to_json("trace.json")
