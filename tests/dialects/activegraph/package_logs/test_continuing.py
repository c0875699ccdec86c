"""Runtime.load opens a store that the real package wrote, and goes on as the package would."""

from __future__ import annotations

import copy
import shutil

import activegraph
import pytest

from agentnb.dialects import activegraph as ours
from agentnb.dialects.activegraph.parts.package_logs.continuing import LogWriter
from agentnb.dialects.activegraph.parts.package_logs.reading import read_log
from agentnb.errors import ExecutionError, StoreError
from tests.dialects.activegraph.package_logs import programs

LEFT_OUT = ("snapshot", "traceback", "run_id", "timestamp")


def compared(events):
    """Return events without their times, and without what the package counts anew when it loads a run."""
    return [_without(event.to_dict()) for event in events]


def _without(value):
    if isinstance(value, dict):
        return {name: _without(item) for name, item in value.items() if name not in LEFT_OUT}
    return [_without(item) for item in value] if isinstance(value, list) else value


def ticking(package):
    """Return behaviors that emit one tick after the other, and take notes of some."""

    def start(event, graph, ctx):
        graph.emit("tick", {"n": 6})

    def note(event, graph, ctx):
        graph.add_object("note", {"n": event.payload["n"]})

    def linked(event, graph, ctx):
        first = next(iter(ctx.view.objects("note")), None)
        if first is not None:
            graph.add_relation(first.id, event.payload["id"], "before")

    kind = package.Behavior
    return [kind("start", start, on=["goal.created"]), kind("hop", programs.hop, on=["tick"]),
            kind("note", note, on=["tick"], where={"n": {">": 2}}),
            kind("linked", linked, on=["object.created"])]  # fmt: skip


def run_package_to_limit(path, budget):
    """Have the package run until a budget ends it; return the number of its events."""
    runtime = activegraph.Runtime(programs.graph("run-ticks"), behaviors=ticking(activegraph), budget=budget,
                                  persist_to=str(path))  # fmt: skip
    runtime.run_goal("tick")
    programs.close(runtime)
    return len(runtime.graph.events)


@pytest.mark.parametrize("calls", [1, 2, 4, 5, 8, 100])
def test_a_run_of_the_package_continues_as_in_the_package(tmp_path, calls):
    there, here = tmp_path / "there.db", tmp_path / "here.db"
    run_package_to_limit(there, {"max_behavior_calls": calls})
    shutil.copy(there, here)
    theirs = activegraph.Runtime.load(str(there), behaviors=ticking(activegraph))
    loaded = ours.Runtime.load(here, behaviors=ticking(ours))
    assert compared(loaded.graph.events) == compared(theirs.graph.events)
    for goal in ("again",) if calls == 100 else (None, "again"):  # the package reports once more that it is idle
        for runtime in (theirs, loaded):
            runtime.run_until_idle() if goal is None else runtime.run_goal(goal)
        assert compared(loaded.graph.events) == compared(theirs.graph.events)
    assert [each.to_dict()["data"] for each in loaded.graph.all_objects()] == \
        [each.to_dict()["data"] for each in theirs.graph.all_objects()]  # fmt: skip
    programs.close(theirs)
    loaded.session.close()


def test_the_graph_of_a_continued_run_knows_its_store_as_in_the_package(tmp_path):
    path = tmp_path / "run.db"
    run_package_to_limit(path, {"max_behavior_calls": 2})
    loaded = ours.Runtime.load(path, behaviors=ticking(ours))
    assert loaded.graph.store.url == loaded.save_state()
    assert str(path) in loaded.graph.store.url
    assert loaded.fork(loaded.graph.events[-1].id).graph.store is None
    theirs = activegraph.Runtime.load(str(path), behaviors=ticking(activegraph))
    assert theirs.graph.store is not None
    programs.close(theirs)
    loaded.session.close()


def test_added_events_are_read_by_the_package_and_by_a_second_load(tmp_path):
    path = tmp_path / "run.db"
    before = run_package_to_limit(path, {"max_behavior_calls": 3})
    loaded = ours.Runtime.load(str(path), behaviors=ticking(ours))
    assert (loaded.run_id, loaded.graph.replayed_count) == ("run-ticks", before)
    loaded.run_until_idle()
    loaded.graph.add_object("task", {"title": "from here"})
    assert loaded.save_state(path) == loaded.save_state() == loaded.session.save()
    events = [event.to_dict() for event in loaded.graph.events]
    actual, objects, *_ = programs.loaded(path)
    assert actual == events
    assert len(events) > before
    assert objects[-1]["data"] == {"title": "from here"}
    loaded.session.close()
    with pytest.raises(ExecutionError, match="L452"):
        loaded.run_goal("more")
    reopened = ours.Runtime.load(path, behaviors=ticking(ours))
    assert [event.to_dict() for event in reopened.graph.events] == events
    assert reopened.session.replay().ok
    reopened.run_goal("more")
    assert reopened.session.replay().ok
    assert reopened.replay().steps[1] > 0
    assert reopened.fork(reopened.graph.events[-1].id).replay().ok
    reopened_by_package = activegraph.Runtime.load(str(path), behaviors=ticking(activegraph))
    reopened_by_package.run_goal("and there")
    ids = [event.id for event in reopened_by_package.graph.events]
    programs.close(reopened_by_package)
    assert len(ids) == len(set(ids))
    with pytest.raises(StoreError, match="L469"):
        reopened.run_goal("too late")


def test_approvals_and_the_team_continue(tmp_path, team_path):
    path = tmp_path / "team.db"
    shutil.copy(team_path, path)
    loaded = ours.Runtime.load(path, "run-team", behaviors=programs.team(ours))
    loaded.run_goal("once more")
    loaded.approve(loaded.pending_approvals()[-1].id, "ana")
    loaded.run_until_idle()
    ids = [event.id for event in loaded.graph.events]
    assert len(ids) == len(set(ids))
    actual, *_, waiting = programs.loaded(path, "run-team")
    assert actual == [event.to_dict() for event in loaded.graph.events]
    assert len(waiting) == len(loaded.pending_approvals())


def test_a_log_is_append_only_and_a_fork_is_unrestricted(tmp_path):
    path = tmp_path / "run.db"
    run_package_to_limit(path, {"max_behavior_calls": 3})
    loaded = ours.Runtime.load(path, behaviors=ticking(ours))
    with pytest.raises(ExecutionError, match="L470"):
        loaded.session.edit({"note#1.data.n": 7})
    loaded.run_until_idle()
    count, tip = len(loaded.graph.events), loaded.session.position
    loaded.session.back(2)
    for call in (loaded.session.step, loaded.session.run, lambda: loaded.run_goal("no")):
        with pytest.raises(ExecutionError, match="L470"):
            call()
    loaded.session.goto(tip)
    assert len(loaded.graph.events) == count
    fork = loaded.fork(loaded.graph.events[-1].id, "another way")
    fork.session.edit({f"{fork.graph.objects()[0].id}.data.n": 7})
    fork.run_until_idle()
    assert len(programs.loaded(path)[0]) == count
    copy = loaded.session.save(tmp_path / "copy.db")
    assert len(ours.Runtime.load(copy, behaviors=ticking(ours)).graph.events) == count


def test_a_strict_replay_is_that_of_the_package(tmp_path):
    path = tmp_path / "run.db"
    run_package_to_limit(path, None)
    with pytest.raises(ours.InvalidRuntimeConfiguration, match="X522"):
        ours.Runtime.load(path, behaviors=ticking(ours), replay_strict=True)


def test_an_event_that_cannot_be_written_is_written_later(tmp_path, monkeypatch):
    from agentnb.dialects.activegraph.parts.package_logs import continuing

    path = tmp_path / "run.db"
    run_package_to_limit(path, {"max_behavior_calls": 3})
    loaded = ours.Runtime.load(path, behaviors=ticking(ours))
    lost = StoreError(continuing.Problem("L422", "no space is left", "there", "", ""))

    def fails(*given):
        raise lost

    with monkeypatch.context() as patched:
        patched.setattr(continuing, "write_for", fails)
        with pytest.raises(StoreError, match="L422"):
            loaded.run_until_idle()
    loaded.run_until_idle()
    assert programs.loaded(path)[0] == [event.to_dict() for event in loaded.graph.events]


def test_an_event_in_the_log_is_not_written_again_and_a_second_event_with_its_id_is_rejected(tmp_path):
    path = tmp_path / "team.db"
    programs.run_team(path)
    log = read_log(path, "run-team")
    writer, event = LogWriter(path, log), log.events[1]
    writer.add(event._replace(payload=copy.deepcopy(event.payload)))
    with pytest.raises(StoreError) as caught:
        writer.add(event._replace(payload={"of": "another"}))
    assert caught.value.problems[0].code == "L468"
    assert read_log(path, "run-team").events == log.events
