from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

import agentnb as nb
from agentnb.dialects.activegraph import Graph, Runtime
from agentnb.errors import ExecutionError
from agentnb.samples import reactive
from tests.dialects.activegraph.runtimes import on, runtime, tell
from tests.draw.drawn_recipes import HOSTILE
from tests.session.small_sessions import counting, session
from tests.session.test_why import incident


def boxes(drawing):
    return {box.id: (box.caption, box.marks) for box in drawing.picture.boxes}


def test_objects_of_the_current_position_are_drawn_with_the_last_changes():
    run = incident()
    assert boxes(run.draw_objects(1)) == {"service#1": ("service v1", ("new",)), "alert#2": ("alert v1", ("new",))}
    actual = boxes(run.draw_objects(6))
    assert actual["incident#6"] == ("incident v2 → v3", ("changed",))
    assert actual["incident#7"] == ("incident v2", ())
    new = [link.ends for link in run.draw_objects(6).picture.links if "new" in link.marks]
    assert new == [("alert#5", "incident#6")]
    assert boxes(run.goto(6).draw_objects()) == actual
    assert boxes(run.draw_objects(0)) == {}


def test_removed_objects_are_shown_as_removed():
    @on("go")
    def make(event, graph, ctx):
        one, two = graph.add_object("a", {}), graph.add_object("b", {})
        graph.add_relation(one.id, two.id, "knows")

    @on("stop")
    def take(event, graph, ctx):
        graph.remove_object("b#2")

    run = runtime(make, take)
    tell(run, "go")
    tell(run, "stop")
    run.run_until_idle()
    shown = run.session.draw_objects()
    assert boxes(shown) == {"a#1": ("a v1", ()), "b#2": ("b v1", ("removed",))}
    assert [link.marks for link in shown.picture.links] == [("removed",)]
    assert "b#2" in run.session.chain("b#2").draw().text


def test_the_svg_of_a_drawing_is_deterministic():
    run = incident()
    assert ET.fromstring(run.draw_objects().bare_svg).get("aria-label") == "graph of objects: incident"
    assert "<style" not in run.draw_objects().bare_svg
    assert run.draw_objects().svg == incident().draw_objects().svg


def test_secrets_are_masked_and_hostile_text_is_escaped():
    run = Runtime(Graph(), behaviors=[on("go")(lambda event, graph, ctx: None)], name=HOSTILE[0])
    for text in HOSTILE[:6]:
        run.graph.add_object("thing", {"api_key": "sk-live-1", "text": text})
    svg = run.session.draw_objects().svg
    ET.fromstring(svg)
    assert "<script" not in svg
    assert "sk-live-1" not in svg


def test_runs_without_objects_report_it():
    with pytest.raises(ExecutionError) as caught:
        session(counting(), {"n": 0}).draw_objects()
    assert caught.value.problems[0].code == "X160"


def test_a_missing_step_is_a_problem():
    with pytest.raises(ExecutionError) as caught:
        incident().draw_objects(99)
    assert caught.value.problems[0].code == "X111"


def test_a_reactive_run_is_drawn_with_event_types_and_deliveries():
    team = reactive.team()
    team.run_goal("Write about swifts")
    text = team.session.draw().text
    assert "  task.done (event)  <×3>" in text
    assert "  publish (behavior)  <last, ×1>" in text
    assert team.draw(board=False).svg == team.session.draw(board=False).svg


def test_the_picture_of_the_recipe_is_patched_to_show_it():
    team = reactive.team()
    drawing = nb.load(team).draw(board=False)
    before = drawing.patch(team.session._parts.pictures.view())
    team.run_goal("Write about swifts")
    after = drawing.patch(team.session._parts.pictures.view())
    assert before["edges"] == {}
    assert after["nodes"]["event: task.done"] == {"classes": ["visited"], "count": "×3"}
    assert "last" in after["nodes"]["publish"]["classes"]
    ends = {str(link.index): link.ends for link in (*drawing.picture.links, *drawing.picture.later)}
    last = {ends[index] for index, marks in after["edges"].items() if "last" in marks["classes"]}
    assert last == {("event: draft.accepted", "publish"), ("publish", "event: object.created")}


def test_a_breakpoint_at_an_event_type_is_drawn():
    team = reactive.team()
    team.session.breakpoints.add(event="task.done")
    assert team.session._parts.pictures.view().stops_at == {"task.done"}
    assert nb.load(team).draw().patch(team.session._parts.pictures.view())["nodes"]["event: task.done"]["classes"] == [
        "breakpoint"
    ]


def test_changes_of_a_step_in_flight_are_shown_and_marked():
    run = reactive.team().session
    run.emit("goal.created", {"goal": "Write about swifts"})
    while "task#2" not in boxes(run.draw_objects()):
        run.step_into()
    assert (run.status, run.position) == ("in_flight", 0)
    assert boxes(run.draw_objects()) == {"task#1": ("task v1", ("new",)), "task#2": ("task v1", ("new",))}
    assert boxes(run.draw_objects(0)) == {}
    assert "plan in the current step" in repr(run.chain("task#1"))
    assert run.chain("task#1").to_frame().node.tolist()[-1] == "plan"
