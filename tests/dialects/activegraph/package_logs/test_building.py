"""The steps, writes, events, acts and reads that a log becomes, against what the package makes of it."""

from __future__ import annotations

import shutil

import pytest

import agentnb as nb
from agentnb.dialects.activegraph.parts.package_logs.building import run_of
from agentnb.dialects.activegraph.parts.package_logs.reading import read_log, read_runs
from agentnb.dialects.activegraph.parts.package_logs.records import LogEvent, LogRun, PackageLog
from agentnb.errors import StoreError
from tests.dialects.activegraph.package_logs import programs

PATHS = ("team_path", "model_path", "late_path", "archived_path")


def graph_of(board):
    """Return the objects and the relations of a board."""
    return [each for each in board.values() if "version" in each], [each for each in board.values() if "source" in each]


def log(*events, **snapshots):
    return PackageLog("test.db", LogRun("r", None, None, None, "", None, None), (), events, snapshots)


def event(name, type, actor="user", cause=None, when="", **payload):
    return LogEvent(name, type, actor, payload, None, cause, when)


def make_object(id, **data):
    return {"id": id, "type": "task", "data": data, "version": 1, "provenance": {}}


@pytest.mark.parametrize("name", PATHS)
def test_the_board_at_the_end_is_the_graph_of_the_package(name, request):
    path = request.getfixturevalue(name)
    for run in read_runs(path):
        _, objects, relations, *_ = programs.loaded(path, run.run_id)
        session = nb.open_activegraph(path, run.run_id)
        assert graph_of(session.trace.state_at(len(session.trace))) == (objects, relations)


@pytest.mark.parametrize("name", PATHS)
def test_the_board_after_each_step_is_the_graph_that_the_package_had_then(name, request):
    from activegraph import Event, Graph
    from activegraph.store.base import replay_into

    path = request.getfixturevalue(name)
    run = next(run for run in read_runs(path) if run.parent is None)
    session = nb.open_activegraph(path, run.run_id)
    events = [Event(*each) for each in map(_in_their_order, session.package_log.events)]
    frame = session.trace.frames.events
    for step in range(len(session.trace) + 1):
        last = max((event.seq for event in session.trace.reading().events() if event.at <= step), default=0)
        theirs = Graph(run_id="replayed")
        replay_into(theirs, events[:last])
        board = session.trace.state_at(step)
        assert graph_of(board) == (
            [each.to_dict() for each in theirs.all_objects()],
            [each.to_dict() for each in theirs.all_relations()],
        )
        patches = {key: value for key, value in board.items() if "op" in value}
        assert patches == {key: theirs.get_patch(key).to_dict() for key in patches}
        session.goto(step)
        assert dict(session.board) == board
    assert len(frame) == len(events)


def _in_their_order(event):
    return (event.id, event.type, event.payload, event.actor, event.frame_id, event.caused_by, event.timestamp)


@pytest.mark.parametrize("name", PATHS)
def test_events_keep_the_data_of_the_package(name, request):
    path = request.getfixturevalue(name)
    log = read_log(path)
    frames = nb.open_activegraph(path).trace.frames
    frame = frames.events
    causes = frame.cause.astype(object)
    assert frame.id.tolist() == [event.id for event in log.events]
    assert frame.type.tolist() == [event.type for event in log.events]
    assert frame.actor.tolist() == [event.actor for event in log.events]
    assert causes.where(causes.notna(), None).tolist() == [event.caused_by for event in log.events]
    assert frame.payload.tolist() == [event.payload for event in log.events]
    assert frame.seq.tolist() == list(range(1, len(log.events) + 1))
    assert [time.isoformat() for time in frame.time] == [event.timestamp.replace("Z", "+00:00") for event in log.events]
    times = {event.id: time for event, time in zip(log.events, frame.time, strict=True)}
    events = frames.events[frames.events.step.notna()].groupby("step").id
    assert frames.steps.timestamp.tolist() == events.first().map(times).tolist()
    took = events.last().map(times) - events.first().map(times)
    assert frames.steps.seconds.tolist() == took.dt.total_seconds().tolist()


def test_a_step_is_one_delivery(team_path):
    steps = nb.open_activegraph(team_path, "run-team").trace.frames.steps
    assert steps.node.tolist() == ["planner", "worker", "worker", "unblock", "breaks", "asks", "worker"]
    assert steps.status.tolist() == ["ok"] * 4 + ["error"] + ["ok"] * 2
    assert steps.error[4] == "ValueError: no luck today"
    assert [step_inputs["event"] for step_inputs in steps.inputs] == [
        "evt_001", "evt_003", "evt_004", "evt_009", "evt_009", "evt_009", "evt_026",
    ]  # fmt: skip


def test_changes_of_a_failed_behavior_remain(team_path):
    trace = nb.open_activegraph(team_path, "run-team").trace
    assert trace.steps[4].outputs["note#3"]["data"] == {"text": "made before the failure"}


def test_edges_are_the_deliveries(team_path):
    edges = nb.open_activegraph(team_path, "run-team").trace.frames.edges
    rows = edges.assign(source=edges.source.astype(object).fillna("outside"))
    assert rows[["step", "source", "target", "condition"]].values.tolist() == [
        [1, "outside", "planner", "goal.created"],
        [2, "planner", "worker", "object.created"],
        [3, "planner", "worker", "object.created"],
        [4, "worker", "unblock", "task.completed"],
        [5, "worker", "breaks", "task.completed"],
        [6, "worker", "asks", "task.completed"],
        [7, "outside", "worker", "object.created"],
    ]


def test_actions_of_people_are_interventions_and_not_writes_of_nodes(team_path):
    frames = nb.open_activegraph(team_path, "run-team").trace.frames
    interventions = frames.interventions
    assert interventions[interventions.action != "edit"][["step", "action", "target", "actor"]].values.tolist() == [
        [0, "emit", "goal.created", "user"],
        [6, "approve", "approval_001", "ana"],
    ]
    edits = interventions[interventions.action == "edit"]
    assert set(edits.actor) == {"ana", "ben", "system", "user"}
    assert edits[edits.actor == "ben"].target.tolist() == ["patch_002", "task#2"]
    writes = frames.writes
    assert writes[writes.node.isna()].key.tolist() == edits.target.tolist()
    assert writes[writes.node == "worker"].step.tolist() == [2, 2]


def test_the_frontier_contains_the_waiting_deliveries(late_path):
    session = nb.open_activegraph(late_path).goto(0)
    actual = [[(each.node, each.why.split()[1]) for each in session.frontier]]
    while session.step():
        actual.append([(each.node, each.why.split()[1]) for each in session.frontier])
    assert actual == [
        [("start", "evt_001")],
        [("hop", "evt_003")],
        [("hop", "evt_006")],
        [("hop", "evt_010")],
        [("late", "evt_003"), ("hop", "evt_013")],
        [("hop", "evt_013"), ("seen", "evt_016")],
        [("seen", "evt_016"), ("hop", "evt_019")],
        [("hop", "evt_019")],
        [],
    ]


def test_reads_of_a_delivery_are_reported_if_the_log_has_them(tmp_path):
    import activegraph

    def look(event, graph, ctx):
        graph.get_object(event.payload["id"])

    path = tmp_path / "reads.db"
    behaviors = [activegraph.Behavior("look", look, on=["object.created"])]
    runtime = activegraph.Runtime(
        programs.graph("reads"), behaviors=behaviors, persist_to=str(path), trace_context_reads=True
    )
    runtime.graph.add_object("task", {})
    runtime.run_until_idle()
    programs.close(runtime)
    reads = nb.open_activegraph(path).trace.frames.reads
    assert reads[["step", "node", "key"]].values.tolist() == [[1, "look", "task#1"]]


def test_a_fork_after_the_archive_starts_from_the_stored_state(archived_path):
    fork = nb.open_activegraph(archived_path)
    assert fork.package_log.events[0].type == "runtime.snapshot"
    assert [each["type"] for each in fork.trace.state_at(0).values()] == ["note", "sight", "note"]


def test_a_missing_stored_state_is_a_problem(archived_path, tmp_path):
    path = shutil.copy(archived_path, tmp_path / "gone.db")
    programs.change(path, "DELETE FROM snapshots")
    assert len(nb.open_activegraph(path, "run-late").trace) == 8  # the archive has all its events
    with pytest.raises(StoreError) as caught:
        nb.open_activegraph(path)
    assert caught.value.problems[0].where.endswith("payload.state_hash")


def test_an_event_that_contradicts_its_type_is_a_problem():
    with pytest.raises(StoreError) as caught:
        run_of(log(event("evt_001", "object.created", object={**make_object("task#1"), "data": []})))
    (problem,) = caught.value.problems
    assert (problem.code, problem.what) == ("L463", "event evt_001 (object.created) cannot be read")
    assert problem.where == "test.db, run 'r', event evt_001 (object.created), payload.object.data"


def test_a_payload_too_deep_for_a_board_is_a_problem():
    deep: list = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(StoreError, match="L463"):
        run_of(log(event("evt_001", "custom", deep=deep)))


def test_an_incomplete_delivery_is_cancelled():
    run = run_of(log(
        event("e1", "go"),
        event("e2", "behavior.started", "runtime", "e1", behavior="a", event_id="e1"),
        event("e3", "object.created", "a", "e1", object=make_object("task#1"), id="task#1"),
    ))  # fmt: skip
    assert run.history.tip == 1
    assert run.history.step_flags[1] >> 2 & 3 == 2
    assert "task#1" in run.root.scope.data


def test_a_delivery_of_an_event_that_is_not_in_the_log_has_no_event():
    run = run_of(log(
        event("e1", "go"),
        event("e2", "behavior.started", "runtime", "gone", behavior="a", event_id="gone"),
        event("e3", "behavior.completed", "runtime", "gone", behavior="a", event_id="gone"),
    ))  # fmt: skip
    (row,) = [row for row in run.tables.activations if row.node >= 0]
    assert run.get_event(row.event) is None


def test_relations_are_removed_with_their_objects():
    relation = {"id": "rel_001", "source": "task#1", "target": "task#1", "type": "next", "data": {}, "provenance": {}}
    run = run_of(log(
        event("e1", "object.created", object=make_object("task#1"), id="task#1"),
        event("e2", "relation.created", relation=relation, id="rel_001"),
        event("e3", "object.removed", id="task#1"),
        event("e4", "object.removed", id="task#1"),
    ))  # fmt: skip
    assert run.root.scope.data == {}


def test_an_invalid_time_is_replaced_by_the_previous_one():
    run = run_of(log(event("e1", "go", when="2026-01-02T03:04:05Z"), event("e2", "go", when="later")))
    assert [each.time.year for each in run.history.events] == [2026, 2026]


def test_an_empty_log_has_no_step():
    assert run_of(log()).history.tip == 0


def test_many_steps_are_opened_with_checkpoints(tmp_path):
    events = [event("e0", "tick")]
    for number in range(1500):
        before = "e0" if not number else f"t{number - 1}"
        events += [
            event(f"s{number}", "behavior.started", "runtime", before, behavior="hop", event_id=before),
            event(
                f"t{number}", "object.created", "hop", before, object=make_object(f"task#{number}"), id=f"task#{number}"
            ),
            event(f"c{number}", "behavior.completed", "runtime", before, behavior="hop", event_id=before),
        ]
    run = run_of(log(*events))
    assert (run.position, len(run.history.checkpoints)) == (1500, 2)


def test_a_patch_of_a_relation_changes_nothing_as_in_the_package(tmp_path):
    import activegraph

    path = tmp_path / "relation.db"
    runtime = activegraph.Runtime(programs.graph("relation"), behaviors=[], persist_to=str(path))
    graph = runtime.graph
    first, second = graph.add_object("task", {}), graph.add_object("task", {})
    relation = graph.add_relation(first.id, second.id, "next", {"n": 1})
    graph.apply_patch(graph.propose_patch(f"relation:{relation.id}", "update", {"n": 2}, proposed_by="user").id)
    graph.remove_relation(first.id)
    graph.remove_object(relation.id)
    programs.close(runtime)
    _, objects, relations, *_ = programs.loaded(path)
    board = nb.open_activegraph(path).trace.state_at(0)
    assert graph_of(board) == (objects, relations)
    assert (len(objects), relations[0]["data"], board["patch_001"]["status"]) == (2, {"n": 1}, "applied")


def test_an_event_without_a_readable_time_has_the_time_of_its_predecessor():
    times = ["soon", "2026-01-02T03:04:05Z", "", "2026-01-02T03:04:06"]
    run = run_of(log(*(event(f"e{at}", "note", when=when) for at, when in enumerate(times))))
    assert [event.time.isoformat() for event in run.events()] == [
        "1970-01-01T00:00:00+00:00", *["2026-01-02T03:04:05+00:00"] * 2, "2026-01-02T03:04:06+00:00",
    ]  # fmt: skip
