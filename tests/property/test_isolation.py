"""Whole sessions whose nodes change what they read, keep it and change it later: only their writes are on a board.

Each node does what it is told twice, to the session's values and to a model's. The model is naive: plain values, all of
which are copied at each border of a step. Only the session's values are copied when they are read.
"""

from __future__ import annotations

import copy
import heapq
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.board import copies

MOST = 150  # parts of a value: what is put into itself again and again grows without an end
KEYS = "abc"


@dataclass
class Point:
    x: Any
    tags: Any


def cut(value: Any) -> Any:
    """Return a copy of plain lists, mappings and objects; what is twice in the value is two values in the copy."""
    if isinstance(value, dict):
        return {key: cut(part) for key, part in dict.items({**value})}
    if isinstance(value, list | tuple):
        parts = [cut(part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return Point(cut(value.x), cut(value.tags)) if isinstance(value, Point) else copy.deepcopy(value)


def exact(value: Any) -> Any:
    """Return what tells a value from every other one: `1 == True`, and mappings in another order are equal."""
    if isinstance(value, dict):
        return "dict", [(key, exact(part)) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return "list" if isinstance(value, list) else "tuple", [exact(part) for part in value]
    return ("Point", exact(value.x), exact(value.tags)) if isinstance(value, Point) else (type(value), value)


def parts_of(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return [value.x, value.tags] if isinstance(value, Point) else [*value] if isinstance(value, list | tuple) else []


def size(value: Any) -> int:
    return 1 + sum(map(size, parts_of(value)))


def is_in(part: Any, value: Any) -> bool:
    return value is part or any(is_in(part, inner) for inner in parts_of(value))


class Place(NamedTuple):
    """A value that a node can reach: what it reads at a key or has kept, then parts by number; `way` says how read."""

    kept: bool
    at: int
    down: tuple[int, ...]
    way: int


class Op(NamedTuple):
    """One thing that a node does."""

    verb: str
    place: Place
    other: Place
    way: int
    value: Any


class Side:
    """One of the two that do as they are told: the session's values or the model's."""

    def __init__(self, kept: list[Any], read: Callable[[str], Any]) -> None:
        self.kept, self.read, self.result = kept, read, {}

    def reach(self, place: Place) -> Any:
        if place.kept:
            value = self.kept[place.at % len(self.kept)] if self.kept else None
        else:
            value = self.read(KEYS[place.at % len(KEYS)])
        for number in place.down:
            value = step_into(value, number, place.way)
        return value


def step_into(value: Any, number: int, way: int) -> Any:
    """Return a part of a value, read in one of the ways that Python has."""
    if isinstance(value, Point):
        return value.tags if number % 2 else value.x
    if isinstance(value, list | tuple) and len(value):
        at = number % len(value)
        getters: list[Callable[[], Any]] = [
            lambda: value[at], lambda: value[at - len(value)], lambda: [*value][at], lambda: value[at:][0],
            lambda: list(reversed(value))[-1 - at], lambda: next(part for n, part in enumerate(value) if n == at),
        ]  # fmt: skip
        return getters[way % len(getters)]()
    if isinstance(value, dict) and value:
        key = [*value][number % len(value)]
        getters = [lambda: value[key], lambda: value.get(key), lambda: [*value.values()][number % len(value)],
                lambda: {**value}[key], lambda: dict(value.items())[key], lambda: value.setdefault(key, 0)]  # fmt: skip
        return getters[way % len(getters)]()
    return value


def change(value: Any, way: int, new: Any) -> None:
    """Change a value in place."""
    if isinstance(value, Point):
        setattr(value, ("x", "tags")[way % 2], new)
    elif isinstance(value, dict):
        key = [*value, "new"][way % (len(value) + 1)]
        changes: list[Callable[[], Any]] = [
            lambda: value.__setitem__(key, new), lambda: value.pop(key, None), lambda: value.update({key: new}),
            lambda: value.setdefault(key, new), lambda: value.__ior__({key: new}), value.clear,
            lambda: value.popitem() if value else None, lambda: value.__setitem__(key, value.get(key)),
            lambda: value.update(dict([*value.items()][::-1])), lambda: value.__setitem__(key, value.pop(key, new)),
        ]  # fmt: skip
        changes[way // 5 % len(changes)]()
    elif isinstance(value, list):
        at = way % (len(value) + 1)
        changes = [
            lambda: value.append(new), lambda: value.extend([new, 0]), lambda: value.__iadd__([new]),
            lambda: value.insert(at, new), lambda: value.pop(at) if at < len(value) else None, value.reverse,
            lambda: value.__setitem__(slice(at, None), [new]), lambda: value.__delitem__(slice(at, at + 1)),
            lambda: value.__setitem__(at, new) if at < len(value) else None, value.clear,
            lambda: value.sort(key=lambda part: str(type(part).__name__[-4:])[::-1]), lambda: value.__imul__(at % 3),
            lambda: heapq.heapify(value) if all(type(part) is int for part in value) else None,
            lambda: value.__setitem__(slice(None), value[::-1]),
            lambda: value.__setitem__(at, value[at]) if at < len(value) else None,
        ]  # fmt: skip
        changes[way // 5 % len(changes)]()


def wrapped(value: Any, way: int) -> Any:
    """Return a value to write: itself, around itself, or a copy of it."""
    more = [1]
    getters: list[Callable[[], Any]] = [
        lambda: value,
        lambda: [value, value],
        lambda: {"x": value, "y": value},
        lambda: (value,),
        lambda: Point(value, [value]),
        lambda: copy.copy(value),
        lambda: copy.deepcopy(value),
    ]
    if isinstance(value, list):
        getters += [lambda: value[:], lambda: value + more, lambda: more + value, lambda: value * 2]
    if isinstance(value, dict):
        getters += [lambda: {**value}, lambda: value | {"z": 1}, lambda: {"z": 1} | value]
    return getters[way % len(getters)]()


class Play:
    """A run, the model's states after each of its steps, and what their nodes have kept, which no step takes back."""

    def __init__(self, programs: list[list[Op]], inputs: dict[str, Any], shape: str, store: str | None) -> None:
        self.programs, self.mine, self.theirs = programs, [], []
        self.before: dict[str, Any] = {}
        self.after: dict[str, Any] | None = None
        self.recipe, self.store = nb.load(self.graph(shape)), store
        copied = cut(inputs)
        self.session = nb.Session(self.recipe, copied, store=store, run_id="first")
        self.mine += copied.values()  # whoever started the run still holds what it was started with
        states = [{**cut(inputs)}]
        self.theirs += cut(inputs).values()
        self.runs = [(self.session, states)]
        self.states = states

    def graph(self, shape: str) -> Any:
        graph, names = nx.DiGraph(name="isolation", limits={"max_steps": 40}), "pqrs"
        inner = nx.DiGraph(name="inside") if shape == "loop" else graph
        for number, name in enumerate(names):
            (graph if name == "p" else inner).add_node(name, **self.node(number))
        if shape == "loop":
            inner.add_edges_from([("q", "r"), ("r", "s")])
            graph.add_node("loop", kind="loop", graph=inner, times=3)
            graph.add_edge("p", "loop")
        elif shape == "branches":
            graph.add_node("meet", kind="join")
            graph.add_edges_from([("p", "q"), ("p", "r"), ("q", "meet"), ("r", "meet")], kind="parallel")
            graph.add_edge("meet", "s")
        else:
            graph.add_edges_from([("p", "q"), ("q", "r"), ("r", "s")])
        return graph

    def node(self, number: int) -> dict[str, Any]:
        if number % 2:

            def with_inputs(**values: Any) -> Any:
                return self.perform(number, values.__getitem__)

            return {"function": with_inputs, "inputs": {key: key for key in KEYS}}

        def with_board(board: Any) -> Any:
            return self.perform(number, board.__getitem__)

        return {"function": with_board}

    def perform(self, number: int, read: Callable[[str], Any]) -> dict[str, Any]:
        """Do what a node's program says, on both sides."""
        copies = cut(self.before)
        model = Side(self.theirs, copies.__getitem__)
        session = Side(self.mine, read)
        for op in self.programs[number]:
            self.do(op, model, session)
        self.after = {**cut(copies), **cut(model.result)}
        return session.result

    def do(self, op: Op, model: Side, session: Side) -> None:
        target = model.reach(op.place)
        held = model.reach(op.other)
        if op.verb == "put" and (is_in(target, held) or size(target) + size(held) > MOST):
            return
        if size(target) > MOST:
            return
        for side in (model, session):
            value = side.reach(op.place)
            match op.verb:
                case "keep":
                    side.kept.append(value)
                case "change":
                    change(value, op.way, copy.deepcopy(op.value))
                case "put":
                    change(value, op.way, side.reach(op.other))
                case "write":
                    side.result[KEYS[op.other.at % len(KEYS)]] = wrapped(value, op.way)
        if op.verb == "look":
            assert exact(session.reach(op.place)) == exact(target)

    # -- what people do ----------------------------------------------------------------------------------------------

    def move(self, verb: str, number: int, op: Op) -> None:
        session, states = self.session, self.states
        match verb:
            case "step":
                for _ in range(number % 4 + 1):
                    self.step()
            case "back" if session.position:
                session.back(number % session.position + 1)
            case "goto":
                session.goto(number % (len(session.trace) + 1))
            case "fork":
                at = number % (len(session.trace) + 1)
                edit = {KEYS[op.way % len(KEYS)]: copy.deepcopy(op.value)} if number % 2 else None
                if edit is not None:
                    self.mine += edit.values()
                    self.theirs += cut(edit).values()
                self.session = session.fork(at=at, edit=edit)
                self.states = [cut(state) for state in states[: at + 1]]
                if edit is not None:
                    self.states[at].update(cut(edit))
                self.runs.append((self.session, self.states))
            case "edit" if session.position == len(session.trace):
                key = KEYS[op.way % len(KEYS)]
                new, plain = copy.deepcopy(op.value), cut(op.value)
                session.edit({key: new})
                states[session.position][key] = cut(plain)
                self.mine.append(new)
                self.theirs.append(plain)
            case "reopen":
                position, run_id = session.position, session.run_id
                session.close()
                self.session = nb.open(self.store, run_id, recipe=self.recipe)
                self.session.goto(position)
                self.runs = [(self.session if run is session else run, of) for run, of in self.runs]
            case "meddle":
                side = Side(self.mine, lambda key: session.board[key])
                model = Side(self.theirs, cut(states[session.position]).__getitem__)
                self.do(op, model, side)
            case "other":
                self.session, self.states = self.runs[number % len(self.runs)]

    def step(self) -> None:
        session, at = self.session, self.session.position
        self.before, self.after = self.states[at], None
        session.step()
        if session.position == at:
            assert self.after is None, session.error
            return
        assert session.position == at + 1
        assert session.status != "failed", session.error
        self.states[at + 1 :] = [cut(self.before) if self.after is None else self.after]

    def holds(self) -> None:
        for session, states in self.runs:
            assert exact(dict(session.board)) == exact(states[session.position])
            assert len(session.trace) == len(states) - 1
            for at, state in enumerate(states):
                assert exact(session.trace.state_at(at)) == exact(state), at
            steps = [*session.trace.steps]
            for at, step in enumerate(steps, 1):
                self.writes_hold(step, states[at - 1], states[at])

    def writes_hold(self, step: Any, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Compare a step's writes, of which an edit may be the last, with the states before and after it."""
        now = dict(before)
        for write in step.writes:
            assert exact(write.old) == exact(now[write.key])
            now[write.key] = write.new
        assert exact(now) == exact(after)


numbers = st.integers(0, 200)
atoms = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from("xyz")
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
        | st.lists(st.dictionaries(st.sampled_from("xy"), inner, max_size=2), min_size=1, max_size=4)
        | st.tuples(inner, inner) | st.builds(Point, inner, inner)
    ),
    max_leaves=10,
)  # fmt: skip
messages = st.lists(st.dictionaries(st.sampled_from("xy"), values, min_size=1, max_size=2), min_size=1, max_size=4)
downs = st.lists(st.integers(0, 5), max_size=3).map(tuple)
places = st.builds(Place, st.sampled_from([False, False, True]), numbers, downs, numbers)
verbs = st.sampled_from(["keep", "keep", "change", "change", "put", "write", "look"])
ops = st.builds(Op, verbs, places, places, numbers, atoms | values)
moves = st.tuples(
    st.sampled_from(["step", "step", "step", "back", "goto", "fork", "edit", "reopen", "meddle", "other"]), numbers, ops
)

# What the draw seldom finds: a node iterates over messages and keeps one (it is the fourth that is kept, after the
# inputs), and a later node changes it after it has read the messages itself.
ANY, ALL = Place(kept=False, at=0, down=(), way=2), Place(kept=False, at=0, down=(0,), way=2)
KEPT = Place(kept=True, at=3, down=(), way=0)
LOOK, KEEP = Op("look", ALL, ANY, 0, 0), Op("keep", ALL, ANY, 0, 0)
CHANGE, WRITE = Op("change", KEPT, ANY, 15, "changed"), Op("write", ANY, ANY, 0, 0)
SEEN = {"a": [{"x": 1}, {"x": 2, "y": [3]}], "b": 0, "c": 0}
STEPS: list[Any] = [("step", 3, LOOK)]


@example([[KEEP], [LOOK, CHANGE], [LOOK], [LOOK]], SEEN, "line", STEPS, 0)
@example([[KEEP], [LOOK, CHANGE, WRITE], [LOOK], [LOOK]], SEEN, "loop", STEPS, 0)
@example([[KEEP], [LOOK], [LOOK, CHANGE, LOOK], [WRITE]], SEEN, "branches", [], 0)
@example([[KEEP], [LOOK, CHANGE], [LOOK], [LOOK]], SEEN, "line", [*STEPS, ("meddle", 0, CHANGE), ("fork", 3, LOOK)], 0)
@given(
    st.lists(st.lists(ops, min_size=2, max_size=8), min_size=4, max_size=4),
    st.fixed_dictionaries(dict.fromkeys(KEYS, messages | values)),
    st.sampled_from(["line", "loop", "branches"]),
    st.lists(moves, max_size=10),
    st.sampled_from([0, 0, copies.SMALL]),
)
def test_only_what_a_node_writes_is_on_the_board(programs, inputs, shape, script, small):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "SMALL", small)  # at 0, no value is copied as a whole
        reopened = any(verb == "reopen" for verb, *_ in script)
        play = Play(programs, inputs, shape, str(Path(folder) / "runs.db") if reopened else None)
        for verb, number, op in script:
            play.move(verb, number, op)
        play.holds()
        for _ in range(12):
            play.step()
        play.holds()
        for session, _ in play.runs:
            session.close()
