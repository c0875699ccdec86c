"""Objects whose own methods raise or never end, on the board of a run: everything that shows them goes on."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import networkx as nx
import pytest

import agentnb as nb
from agentnb.board.masking import mask_value, register_secrets
from agentnb.board.values import Opaque, freeze, is_unchanged, thaw
from agentnb.bounds import find_excess
from agentnb.dialects.activegraph.parts.events import freeze_json
from agentnb.errors import BoardError, format_error, format_error_line, to_printable
from agentnb.expressions.json_schema import Schema
from agentnb.expressions.lookup import has_json, to_json
from agentnb.session.logs import JsonLines
from agentnb.text import safe_repr
from agentnb.ui.debugger import Debugger
from agentnb.world.tools.parameters import copy_parts
from agentnb.world.tools.registry import ToolRegistry
from agentnb.world.tools.tool_config import ToolConfig

RAISED = [RuntimeError, SystemExit, GeneratorExit, RecursionError, AttributeError, StopIteration]
METHODS = ["repr", "str", "eq", "ne", "hash", "len", "iter", "bool", "format", "contains", "getitem", "lt", "getattr"]


def hostile(error, base=object):
    """Return an object most methods of which raise."""

    def refuse(self, *_, **__):
        raise error

    body = {f"__{name}__": refuse for name in METHODS} | {"items": refuse, "keys": refuse}
    kind = type("Hostile", (base,), body)
    arguments = {dict: [{"a": 1}], list: [[1]], tuple: [[1]], set: [[1]], str: ["text"], int: [3], Exception: ["text"]}
    return kind(*arguments.get(base, []))


def views(session, folder):
    """Show a run in every way there is."""
    assert repr(session.board)
    assert repr(session)
    assert [repr(step) for step in session.trace.steps]
    for frame in session.trace.frames.values():
        assert repr(frame) is not None
        assert frame.to_html() is not None
    session.trace.to_json(folder / "trace.json")
    assert json.loads((folder / "trace.json").read_text())
    assert session.draw().dot
    debugger = Debugger(session)
    try:
        for label in ("board", "step", "node"):
            debugger._handle_custom_msg({"do": "query", "view": "a", "number": 1, "value": label, "target": "use"}, [])
        assert json.dumps(debugger.get_state(), default=str)
    finally:
        debugger.close()
    assert str(session.why())


def run_with(value, *, fails=False):
    graph = nx.DiGraph(name="hostile")

    def make():
        return {"odd": value, "listed": [value], "named": {"key": value}}

    def use(odd):
        if fails:
            raise ValueError("it is", odd)
        return {"said": 1}

    graph.add_node("make", function=make, inputs={})
    graph.add_node("use", function=use, inputs={"odd": "odd"})
    graph.add_edge("make", "use")
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonLines())
    logging.getLogger("agentnb").addHandler(handler)
    try:
        session = nb.Session(nb.load(graph))
        session.run()
    finally:
        logging.getLogger("agentnb").removeHandler(handler)
    return session


@pytest.mark.filterwarnings("ignore:a .* is on the board by reference")
@pytest.mark.parametrize("fails", [False, True], ids=["read", "fails with it"])
@pytest.mark.parametrize("error", RAISED)
@pytest.mark.parametrize("base", [object, str, int, Exception])
def test_an_object_whose_methods_raise_breaks_no_view(base, error, fails, tmp_path):
    session = run_with(hostile(error, base), fails=fails)
    assert session.status == ("failed" if fails else "finished")
    views(session, tmp_path)


@pytest.mark.filterwarnings("ignore:a .* is on the board by reference")
def test_a_very_long_repr_is_cut_wherever_it_is_shown(tmp_path):
    class Loud:
        def __repr__(self):
            return "loud " * 4_000_000

    session = run_with(Loud(), fails=True)
    views(session, tmp_path)
    assert len(str(session.error)) < 50_000
    assert (tmp_path / "trace.json").stat().st_size < 1_000_000


@pytest.mark.parametrize("error", RAISED)
def test_an_error_that_cannot_be_shown_is_named(error):
    raised = hostile(error, Exception)
    assert "Hostile" in format_error(raised)
    assert format_error_line(raised).startswith("Hostile: ")
    assert to_printable(raised) is None


def endless(kind):
    """Return values that contain themselves, twice, and a deep one whose parts are shared."""
    if kind == "list":
        value = []
        value += [value, value]
    elif kind == "dict":
        value = {}
        value |= {"a": value, "b": [value, value]}
    elif kind == "tuple":
        inner = []
        value = (inner, inner)
        inner += [value, value]
    else:
        value = ["leaf"]
        for _ in range(60):
            value = [value, value]
    return value


@pytest.mark.parametrize("kind", ["list", "dict", "tuple", "shared"])
def test_every_walk_over_a_value_inside_itself_ends(kind):
    value = endless(kind)
    assert len(safe_repr(value, 500)) <= 500
    assert mask_value(value) is not None
    register_secrets(value)
    register_secrets(value, "password")
    assert mask_value({"key": value, "password": value})["password"] == "********"


def refusing(error, *names, base=object):
    """Return an object whose attributes of these names raise, as all do that Python looks up on it."""

    def refuse(self, *_):
        raise error

    members = {name: property(refuse) if name == "__class__" else refuse for name in names}
    return type("Refusing", (base,), members)()


@pytest.mark.filterwarnings("ignore:a .* is on the board by reference")
@pytest.mark.parametrize("error", RAISED)
@pytest.mark.parametrize("names", [["__class__"], ["__getattribute__"], ["__class__", "__getattribute__"]])
def test_an_object_that_refuses_inspection_is_on_the_board_by_reference(names, error, tmp_path):
    value = refusing(error, *names)
    frozen = freeze(value)
    assert type(frozen) is Opaque
    assert thaw(frozen) is value
    assert is_unchanged(value, frozen)
    assert freeze(value, frozen) is frozen
    session = run_with(value)
    assert session.status == "finished"
    views(session, tmp_path)


@pytest.mark.filterwarnings("ignore:a .* is on the board by reference")
@pytest.mark.parametrize("error", RAISED)
def test_a_mapping_or_a_record_whose_parts_cannot_be_read_is_on_the_board_by_reference(error, tmp_path):
    @dataclass
    class Locked:
        number: int = 1

        def __getattribute__(self, name):
            raise error

    class Lazy(Mapping):
        def __getitem__(self, key):
            raise error

        def __iter__(self):
            raise error

        def __len__(self):
            return 1

    for value in (Locked(), Lazy()):
        assert thaw(freeze([value], freeze([{"a": "text"}])))[0] is value
        session = run_with(value)
        assert session.status == "finished"
        views(session, tmp_path)


def test_a_part_that_cannot_be_compared_counts_as_changed():
    before = freeze([{"a": "text"}, {"b"}])
    with pytest.warns(UserWarning, match="by reference"):
        assert type(freeze([{"a": hostile(ValueError)}], before)[0]["a"]) is Opaque
    assert not is_unchanged([{"a": hostile(ValueError)}, {"b"}], before)


@pytest.mark.parametrize("kind", ["list", "dict", "tuple", "shared"])
def test_an_endlessly_expanding_value_is_rejected_by_the_board(kind):
    value = endless(kind)
    assert find_excess(value)
    with pytest.raises(BoardError, match="B102"):
        freeze(value)
    with pytest.raises(BoardError, match="B102"):
        freeze_json(value)
    assert run_with(value).error.code == "B102"


def test_a_mapping_with_endless_parts_is_rejected():
    class Endless(Mapping):
        def __getitem__(self, key):
            return Endless()

        def __iter__(self):
            return iter(("a", "b"))

        def __len__(self):
            return 2

    with pytest.raises(BoardError, match="B102"):
        freeze(Endless())


def test_a_mapping_with_endless_keys_is_rejected_and_not_truncated():
    class Counting(Mapping):
        def __init__(self, keys):
            self.keys_ = keys

        def __getitem__(self, key):
            return key

        def __iter__(self):
            return iter(range(self.keys_)) if self.keys_ else count()

        def __len__(self):
            return 1

    assert len(freeze(Counting(1_000_000))) == 1_000_000
    for keys in (1_000_001, None):
        with pytest.raises(BoardError, match="B102"):
            freeze(Counting(keys))
        with pytest.raises(BoardError, match="B102"):
            copy_parts(Counting(keys))


def test_a_key_that_is_nested_too_deep_is_rejected():
    key = ()
    for _ in range(300):
        key = (key,)
    for value in ({key: 1}, {"a": {key: [1]}}, {frozenset({key}): 1}):
        assert find_excess(value)
        with pytest.raises(BoardError, match="B102"):
            freeze(value)
    assert thaw(freeze({(1, ("a",)): 1})) == {(1, ("a",)): 1}


def test_a_named_tuple_is_constructed_without_its_own_code():
    class Named(NamedTuple):
        left: object
        right: object

    class Refusing(Named):
        @classmethod
        def _make(cls, parts):
            raise SystemExit("it has run")

        def __new__(cls, *parts):
            raise SystemExit("it has run")

    value = tuple.__new__(Refusing, ([1], {"password": "hunter2"}))
    read = thaw(freeze(value))
    assert type(read) is Refusing
    assert read == value
    assert type(mask_value(value)) is Refusing


@pytest.mark.parametrize("kind", ["list", "dict", "shared"])
def test_the_copy_of_arguments_and_results_of_a_tool_is_bounded(kind):
    with pytest.raises(BoardError, match="B102"):
        copy_parts(endless(kind))
    calls = []

    class Learning:
        async def update_learning_context(self, **words):
            calls.append(words)

    registry = ToolRegistry(context=Learning())
    registry.register_tool("use", ToolConfig("use", handler=lambda _: endless(kind)))
    registry.execute_tool("use", {})
    assert calls == []


@pytest.mark.parametrize("kind", ["list", "dict", "tuple", "shared"])
def test_every_reader_of_json_rejects_an_endlessly_expanding_value(kind):
    value = endless(kind)
    assert not has_json(value)
    assert not has_json({"key": value})
    with pytest.raises(ValueError, match="it has more than"):
        to_json(value)
    assert "too deep" in next(Schema({"type": ["array", "object"]}).faults(value)).message
    assert Schema({"default": value}).wrong is not None
    registry = ToolRegistry()
    registry.register_tool("use", ToolConfig("use", handler=lambda found: 1, input_schema={"found": {"type": "any"}}))
    assert "nested too deeply" in str(registry.execute_tool("use", {"found": value}).error)
