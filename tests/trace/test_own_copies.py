"""Nothing that a trace returns can change the run, the board, or what the trace returns next."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pydantic
import pytest

import agentnb as nb
from agentnb.trace.frames import NAMES


@dataclass
class Order:
    lines: list[Any] = field(default_factory=list)


class Person(pydantic.BaseModel):
    tags: dict[str, Any]


def values() -> dict[str, Any]:
    return {
        "nested": {"a": [{"b": [1]}], "s": {1, 2}, "t": ([1], {"x": 1})},
        "order": Order([{"n": 1}]),
        "person": Person(tags={"a": [1]}),
        "frame": pd.DataFrame({"a": [[1], {"b": [2]}], "n": [1, 2]}),
        "series": pd.Series([{"a": 1}, None]),
        "array": np.array([[1], {"b": [2]}, None], dtype=object),
        "numbers": np.arange(3),
    }


def finished() -> nb.Session:
    """Return a run with everything that a table can hold: writes, calls, conditions' values, edits, events."""
    graph = nx.DiGraph(name="copies")
    graph.add_node("first", function=values, inputs={})
    graph.add_node("tool", kind="tool", function="look_up", inputs={"query": "nested", "order": "order"})
    graph.add_node("change", function=lambda nested: {"nested": {**nested, "more": [1]}}, inputs={"nested": "nested"})
    graph.add_node("last", function=lambda: {"done": [True]}, inputs={})
    graph.add_edge("first", "tool")
    graph.add_edge("tool", "change", when=lambda board: board["nested"])
    graph.add_edge("change", "last")
    session = nb.Session(nb.load(graph), tools={"look_up": lambda query, order: {"found": [query]}})
    session.step(3)
    session.edit({"edited": {"by": ["hand"]}})
    session.emit("note", {"text": ["a"]})
    session.run()
    assert session.status == "finished"
    return session


def spoil(value: Any, seen: dict[int, Any]) -> None:
    """Change everything inside a value that can be changed in place."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, pd.DataFrame):
        for name in value.columns:
            spoil(value[name], seen)
    elif isinstance(value, pd.Series | np.ndarray) and value.dtype.kind not in "OM":
        if value.dtype.kind in "iuf":
            with warnings.catch_warnings():  # pandas 2 warns of a change of a copy, which this is
                warnings.simplefilter("ignore")
                value[0] = 99
    elif isinstance(value, dict | pd.Series | np.ndarray | list | tuple | set):
        for item in list(value.values() if isinstance(value, dict) else value):
            spoil(item, seen)
        if isinstance(value, dict):
            value["spoilt"] = True
        elif isinstance(value, list):
            value.append("spoilt")
        elif isinstance(value, set):
            value.add("spoilt")
    elif isinstance(value, Order | Person):
        spoil(vars(value), seen)


def everything(session: nb.Session) -> dict[str, Any]:
    """Return all that a trace returns, by the name of what was asked."""
    trace = session.trace
    tables: dict[str, Any] = {f"frames.{name}": trace.frames[name] for name in NAMES}
    tables |= {f"frames.{name} again": getattr(trace.frames, name) for name in NAMES}
    tables["to_frame"] = trace.to_frame()
    tables["wide"] = trace.wide([*values(), "edited", "tool"])
    tables["state_at"] = [trace.state_at(step) for step in range(len(trace) + 1)]
    tables["diff"] = list(trace.diff(0, len(trace)).values())
    fields = ("inputs", "outputs", "snapshot", "action", "observation")
    tables |= {f"steps.{name}": [getattr(step, name) for step in trace.steps] for name in fields}
    tables["steps.writes"] = [[write.old, write.new] for step in trace.steps for write in step.writes]
    tables["to_dict"] = [step.to_dict() for step in trace.steps]
    tables["outcome"], tables["metadata"] = trace.outcome, trace.metadata
    tables["board"] = [session.board[key] for key in values()]
    return tables


def format_value(value: Any) -> str:
    """Return the text of all that is in a value."""
    if isinstance(value, pd.DataFrame):
        return repr({name: [format_value(item) for item in value[name]] for name in value.columns if name != "spoilt"})
    if isinstance(value, pd.Series | np.ndarray):
        return repr([format_value(item) for item in value.tolist()])
    if isinstance(value, dict):
        return repr({key: format_value(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return repr([format_value(item) for item in value])
    return repr(value)


def texts(session: nb.Session) -> dict[str, str]:
    return {name: format_value(value) for name, value in everything(session).items()}


NAMED = list(everything(finished()))


@pytest.fixture(scope="module")
def lasting() -> tuple[nb.Session, tuple[dict[str, str], str]]:
    """A run, and what it returned before anything was changed: nothing may change it, so one serves all tests."""
    session = finished()
    return session, (texts(session), session.trace.to_json())


@pytest.fixture(scope="module")
def read_trace(lasting, tmp_path_factory):
    """The run's trace read from a file, and what it returned before anything was changed."""
    file = tmp_path_factory.mktemp("read") / "trace.json"
    lasting[0].trace.to_json(file)
    trace = nb.SimulationTrace.read(file)
    return trace, (trace.to_json(), {each: format_value(frame) for each, frame in trace.frames.items()})


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("read", [False, True])
def test_changing_a_returned_value_does_not_affect_the_trace(name, read, lasting, read_trace):
    if read:
        trace, before = read_trace
        frames = {f"frames.{each}": trace.frames[each] for each in NAMES}
        spoil(frames.get(name, trace.state_at(len(trace)) if name == "state_at" else getattr(trace, name, None)), {})
        assert (trace.to_json(), {each: format_value(frame) for each, frame in trace.frames.items()}) == before
        return
    session, before = lasting
    spoil(everything(session)[name], {})
    assert texts(session) == before[0]
    assert session.trace.to_json() == before[1]
    assert session.replay().ok
