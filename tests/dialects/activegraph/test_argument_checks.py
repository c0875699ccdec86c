"""What somebody gives that is of another sort than it should be is told before anything runs."""

from __future__ import annotations

import pytest

from agentnb.dialects.activegraph import (
    Behavior,
    Graph,
    Pack,
    Policy,
    Runtime,
    behavior,
    clear_registry,
    register,
    relation_behavior,
    tool,
)
from agentnb.dialects.activegraph.errors import GraphError, InternalEvaluatorError, InvalidArgumentType
from tests.dialects.activegraph.runtimes import graph


@pytest.fixture(autouse=True)
def forgotten():
    clear_registry()
    yield
    clear_registry()


def nothing(event, graph, ctx):
    """Does nothing."""


def listening(**words):
    return Behavior("idle", nothing, on=["go"], **words)


@pytest.mark.parametrize(
    "given",
    [
        {"behaviors": 3},
        {"behaviors": listening()},
        {"behaviors": [nothing]},
        {"behaviors": [Behavior]},
        {"behaviors": [], "frame": "what it is about"},
        {"behaviors": [], "policy": {"can_create": ["task"]}},
        {"behaviors": [], "budget": 5},
        {"behaviors": [], "tools": 3},
        {"behaviors": [], "tools": [print]},
    ],
)
def test_a_runtime_reports_which_arguments_it_expects(given):
    with pytest.raises(InvalidArgumentType, match="X519"):
        Runtime(Graph(), **given)


@pytest.mark.parametrize("value", [None, 0, "core"])
def test_a_pack_and_another_runtime_are_required(value):
    team = Runtime(Graph(), behaviors=[])
    for call, expected in ((team.load_pack, "a pack: Pack("), (team.diff, "another runtime")):
        with pytest.raises(InvalidArgumentType) as caught:
            call(value)
        [problem] = caught.value.problems
        assert problem.what == f"{value!r} is not accepted here"
        assert problem.do.startswith(f"pass {expected}")


def test_a_runtime_needs_a_graph_and_a_pack_is_a_pack():
    for value in (None, "graph"):
        with pytest.raises(InvalidArgumentType, match=r"X519.*[\s\S]*Graph\(\)"):
            Runtime(value, behaviors=[])
    runtime = Runtime(Graph(), behaviors=[])
    for value in (None, "fees", Pack):
        with pytest.raises(InvalidArgumentType, match="X519"):
            runtime.load_pack(value)
    for recent in (-1, "all", True):
        with pytest.raises(InvalidArgumentType, match="X519"):
            runtime.status(recent)
    assert runtime.status(recent=0).recent_events == ()


def test_a_policy_requires_lists_instead_of_single_strings():
    with pytest.raises(InvalidArgumentType, match=r"X519.*'task'"):
        Policy(can_create="task")
    assert Policy(can_create=("task",)).can_create == ("task",)


def test_a_decorator_needs_its_parentheses():
    for bare in (behavior, relation_behavior):
        with pytest.raises(InvalidArgumentType, match=r"X519[\s\S]*parentheses"):
            bare(nothing)
    assert clear_registry() == []


def test_a_single_string_is_one_type_of_events():
    assert behavior(on="go.on")(nothing).on == ["go.on"]
    assert Behavior("other", nothing, on="go").on == ["go"]
    with pytest.raises(InvalidArgumentType, match="X519"):
        behavior(on=[3])(nothing)
    with pytest.raises(TypeError, match="X519"):
        register(3)


def test_a_view_accepts_known_options_only():
    with pytest.raises(InvalidArgumentType, match=r"X519[\s\S]*'depht'[\s\S]*depth"):
        behavior(on=["go"], view={"depht": 2})(nothing)
    for wrong in ("all", {"depth": "two"}, {"recent_events": "many"}):
        with pytest.raises(InvalidArgumentType, match="X519"):
            behavior(on=["go"], view=wrong)(nothing)


def test_where_is_a_mapping_and_its_operator_in_takes_a_list():
    for wrong in ("a = 1", ["a"], {"a": {"in": 5}}, {"a": {"not in": 5}}):
        with pytest.raises(InvalidArgumentType, match="X519"):
            listening(where=wrong)
        with pytest.raises(InvalidArgumentType, match="X519"):
            graph().objects(where=wrong)
    with pytest.raises(InternalEvaluatorError, match="X504"):
        graph().objects(where={"a": {"~": 1}})


def test_the_data_of_an_object_is_a_mapping():
    built_graph = graph()
    for wrong in (None, ["a"], "a"):
        with pytest.raises(InvalidArgumentType, match="X519"):
            built_graph.add_object("task", wrong)
    one = built_graph.add_object("task", {})
    with pytest.raises(InvalidArgumentType, match="X519"):
        built_graph.patch_object(one.id, None)
    with pytest.raises(InvalidArgumentType, match="X519"):
        built_graph.emit("go")
    assert [event.type for event in built_graph.events] == ["object.created"]


@pytest.mark.parametrize(
    "changes",
    [{"nobody": 1}, {"task#9.data.state": "open"}, {"task#1.data": 3}, {"task#1.version": "two"},
     {"task#2": {"id": "task#1", "type": "task", "data": {}, "version": 1}}],
)  # fmt: skip
def test_an_edit_keeps_the_board_a_valid_graph(changes):
    runtime = Runtime(graph(), behaviors=[listening()])
    runtime.graph.add_object("task", {"state": "new"})
    before = dict(runtime.session.board)
    with pytest.raises(GraphError, match="X518"):
        runtime.session.edit(changes)
    assert dict(runtime.session.board) == before
    runtime.session.edit({"task#1.data.state": "open"})
    assert runtime.graph.get_object("task#1").data == {"state": "open"}


@pytest.mark.parametrize(
    ("type_", "payload"),
    [("object.removed", {}), ("relation.removed", None), ("approval.granted", {"id": "x"}), ("patch.rejected", [])],
)
def test_an_event_that_names_no_object_is_not_stored(type_, payload):
    session = Runtime(graph(), behaviors=[listening()]).session
    with pytest.raises(GraphError, match="X502"):
        session.emit(type_, payload)
    assert len(session.trace.frames.events) == 0


def test_a_value_that_json_cannot_represent_is_not_part_of_a_log():
    session = Runtime(graph(), behaviors=[listening()]).session
    with pytest.warns(UserWarning, match="opaque"), pytest.raises(GraphError, match=r"X501.*'thing' is an object"):
        session.emit("go", {"thing": type("object", (), {})()})  # a new class: each is warned of once in a process
    assert len(session.trace.frames.events) == 0


def test_tools_are_created_by_the_decorator():
    @tool()
    def look_up(args, ctx):
        return {}

    assert Runtime(Graph(), behaviors=[], tools=[look_up]).get_tool("look_up") is look_up
