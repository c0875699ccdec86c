"""Where the real package is wrong, ours is right. One test, or more, for each of its weak points."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentnb.dialects.activegraph import (
    ReplayDivergenceError,
    Runtime,
    Tool,
    ToolCache,
)
from tests.dialects.activegraph.runtimes import log, on, research, runtime, tell, thinking, types

__all__ = ["research"]
ROOT = Path(__file__).parents[3]


# -- 1: strict replay ------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path, research):
    team = runtime(*research, persist_to=tmp_path / "run.db")
    team.run_goal("find out")
    team.session.close()
    return tmp_path / "run.db"


def changed(research, name, fn):
    from dataclasses import replace

    return [replace(each, fn=fn) if each.name == name else each for each in research]


def other_payload(event, graph, ctx):
    graph.patch_object(event.payload["id"], {"luck": 0.5, "at": "now"})
    graph.emit("done", {"task": event.payload["id"]})


def other_type(event, graph, ctx):
    tasks = [graph.add_object("job", {"n": number}) for number in range(3)]
    graph.add_relation(tasks[0].id, tasks[1].id, "next")


def raises_at_the_end(event, graph, ctx):
    graph.emit("looked", {"found": [match.bindings for match in ctx.matches]})
    raise ValueError("at the end")


def tells_nothing(event, graph, ctx):
    pass


@pytest.mark.filterwarnings("ignore:run 'RUN' was made with another version")
@pytest.mark.parametrize(
    ("name", "fn"),
    [("work", other_payload), ("plan", other_type), ("look", raises_at_the_end), ("later", tells_nothing)],
)
def test_strict_replay_finds_what_behaviors_do_differently(kept, research, name, fn):
    with pytest.raises(ReplayDivergenceError, match="L460") as raised:
        Runtime.load(kept, behaviors=changed(research, name, fn), replay_strict=True)
    assert raised.value.event_id.startswith("evt_")
    assert raised.value.kind


def test_strict_replay_of_the_same_behaviors_finds_nothing(kept, research):
    loaded = Runtime.load(kept, behaviors=research, replay_strict=True)
    assert loaded.session.replay(strict="reads").ok


# -- 2: order --------------------------------------------------------------------------------------------------------

NEIGHBORS = """
import json
from agentnb.dialects.activegraph import Graph
graph = Graph()
for number in range(12): graph.add_object("task", {"n": number})
for number in range(11): graph.add_relation("task#1", f"task#{12 - number}", "next")
objects, relations = graph.neighborhood("task#1", 2)
print(json.dumps([[each.id for each in objects], [each.id for each in relations]]))
"""


@pytest.mark.starts_programs
def test_a_neighborhood_has_the_same_order_in_every_process():
    outputs = set()
    for seed in ("0", "1", "2"):
        done = subprocess.run([sys.executable, "-c", NEIGHBORS], capture_output=True, text=True, check=True, cwd=ROOT,
                              env={"PYTHONHASHSEED": seed, "PATH": ""})  # fmt: skip
        outputs.add(done.stdout)
    (same,) = outputs
    assert json.loads(same)[0] == [f"task#{number}" for number in range(1, 13)]


# -- 3, 4, 5, 14, 16: nothing is lost, and what is resumed is what was never interrupted -----------------------------


def test_run_until_emits_no_idle_event_while_work_is_queued(tmp_path, research):
    uninterrupted = runtime(*research)
    uninterrupted.run_goal("go")
    team = runtime(*research)
    tell(team, goal="go")
    team.run_until(lambda graph: len(graph.objects("task")) >= 3)
    assert "runtime.idle" not in [event.type for event in team.graph.events]
    assert team.status().queue_depth > 0
    team.save_state(tmp_path / "run.db")
    team.session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=research)
    loaded.run_until_idle()
    assert types(loaded) == types(uninterrupted)


def test_a_fork_at_any_event_loses_nothing(research):
    uninterrupted = runtime(*research)
    uninterrupted.run_goal("go")
    for event in uninterrupted.graph.events[:-1]:
        fork = uninterrupted.fork(event.id)
        fork.run_until_idle()
        assert log(fork) == log(uninterrupted), event.id


def test_a_run_reopened_after_any_step_ends_like_an_uninterrupted_one(tmp_path, research):
    uninterrupted = runtime(*research, budget={"max_behavior_calls": 50})
    uninterrupted.run_goal("go")
    for step in range(uninterrupted.session.position + 1):
        team = runtime(*research, budget={"max_behavior_calls": 50})
        team._get_actor().record("goal.created", {"goal": "go"}, actor="user")
        for _ in range(step):
            team.session.step()
        team.save_state(tmp_path / f"{step}.db")
        team.session.close()
        loaded = Runtime.load(tmp_path / f"{step}.db", behaviors=research, budget={"max_behavior_calls": 50})
        loaded.run_until_idle()
        assert log(loaded) == log(uninterrupted), step
        assert loaded.status().budget == uninterrupted.status().budget.__class__(**vars(loaded.status().budget))
        loaded.session.close()


def test_a_fan_out_stopped_by_a_budget_continues_later(tmp_path):
    fan = []
    for number in range(4):

        def hears(event, graph, ctx, number=number):
            graph.emit("heard", {"by": number})

        fan.append(on("goal.created")(hears))
        fan[-1].name = f"b{number}"
    team = runtime(*fan, budget={"max_behavior_calls": 2})
    team.run_goal("go")
    assert team.status().state == "exhausted"
    team.save_state(tmp_path / "run.db")
    team.session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=fan, budget={"max_behavior_calls": 9})
    loaded.run_until_idle()
    received = [event.payload["by"] for event in loaded.graph.events if event.type == "heard"]
    assert received == [0, 1, 2, 3]


def test_a_run_in_memory_forks_too():
    @on("goal.created")
    def draws(event, graph, ctx):
        graph.emit("drawn", {"n": ctx.random.random()})

    team = runtime(draws, seed=3)
    team.run_goal("one")
    fork = team.fork("evt_001")
    fork.run_until_idle()
    team.run_goal("two")
    fork.run_goal("two")
    assert log(fork) == log(team)
    assert len({event.payload["n"] for event in team.graph.events if event.type == "drawn"}) == 2


# -- 6: timers -------------------------------------------------------------------------------------------------------


def test_a_timer_whose_events_never_come_is_reported_and_does_not_loop(tmp_path):
    @on("goal.created", activate_after=3)
    def later(event, graph, ctx):
        graph.emit("late", {})

    team = runtime(later)
    team.run_goal("go")
    assert team.status().state == "idle"
    (timer,) = team.status().timers
    assert (timer.behavior, timer.missing) == ("later", 3)
    assert team.graph.events[-1].payload["timers"] == [{"behavior": "later", "event_id": "evt_001", "missing": 3}]
    team.save_state(tmp_path / "run.db")
    team.session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=[later])
    for _ in range(3):
        tell(loaded, "tick")
    loaded.run_until_idle()
    assert types(loaded)[-1] == "late"
    assert loaded.timers == ()


# -- 8: nothing behind the log ---------------------------------------------------------------------------------------


def test_reads_return_copies():
    @on("goal.created")
    def meddles(event, graph, ctx):
        ctx.view.objects()[0].data["x"] = 1
        graph.get_object("task#1").data["x"] = 1
        event.payload["goal"] = "another"
        ctx.view.events()[0].payload["object"]["data"]["x"] = 1

    team = runtime(meddles)
    team.graph.add_object("task", {"deep": {"er": [1]}})
    team.graph.get_object("task#1").data["deep"]["er"].append(2)
    team.graph.events[0].payload["object"]["data"]["x"] = 1
    team.run_goal("go")
    assert team.graph.get_object("task#1").data == {"deep": {"er": [1]}}
    assert team.graph.events[0].payload["object"]["data"] == {"deep": {"er": [1]}}
    assert team.errors == []


# -- 9, 10, 18: tools ------------------------------------------------------------------------------------------------


def test_strict_replay_calls_no_tool_and_no_model(tmp_path):
    called = []

    def counts(args, ctx):
        called.append(args)
        return {"n": len(called)}

    behaviors, options = thinking(
        ("", None, (("c1", "counts", {}),)), ("done", None, ()), tools=[Tool("counts", counts)]
    )
    team = runtime(*behaviors, persist_to=tmp_path / "run.db", **options)
    team.run_goal("go")
    team.session.close()
    assert (len(called), types(team)[-1]) == (1, "thought")
    loaded = Runtime.load(
        tmp_path / "run.db", behaviors=behaviors, replay_strict=True, llm_provider=options["llm_provider"]
    )
    assert len(called) == 1
    assert loaded.session.replay().ok  # latencies are recorded with the answers, so they do not drift


def test_a_failed_tool_call_is_not_a_cached_success():
    def breaks(args, ctx):
        raise ValueError("it broke")

    behaviors, options = thinking(("", None, (("c1", "breaks", {}),)), tools=[Tool("breaks", breaks)])
    team = runtime(*behaviors, **options)
    team.run_goal("go")
    assert team.errors[0].reason == "tool.execution_error"
    assert len(ToolCache.from_events(team.graph.events)) == 0


def test_a_view_shows_the_graph_before_the_behavior_changed_it():
    @on("goal.created", view_spec={"around": "task#1"})
    def changes(event, graph, ctx):
        graph.patch_object("task#1", {"n": 2})
        item = graph.add_object("task", {})
        graph.add_relation("task#1", item.id, "next")
        graph.emit("saw", {"objects": [each.to_dict()["data"] for each in ctx.view.objects()],
                           "relations": len(ctx.view.relations())})  # fmt: skip

    team = runtime(changes)
    team.graph.add_object("task", {"n": 1})
    team.run_goal("go")
    (saw,) = [event.payload for event in team.graph.events if event.type == "saw"]
    assert saw == {"objects": [{"n": 1}], "relations": 0}
