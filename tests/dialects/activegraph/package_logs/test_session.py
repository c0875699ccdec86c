"""A log is gone through like any run, and nothing of it can be changed."""

from __future__ import annotations

import shutil
import sqlite3

import activegraph
import pytest

import agentnb as nb
from agentnb.dialects.activegraph.parts.package_logs.records import LogEvent, LogRun, PackageLog
from agentnb.dialects.activegraph.parts.package_logs.session import ActiveGraphRun
from agentnb.errors import ExecutionError
from tests.dialects.activegraph.package_logs import programs


@pytest.fixture
def team(team_path):
    return nb.open_activegraph(team_path, "run-team")


def everything(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- it is only read -------------------------------------------------------------------------------------------------


def test_opening_a_store_that_is_not_in_use_changes_no_byte(team_path):
    before = everything(team_path.parent)
    session = nb.open_activegraph(team_path, "run-team")
    session.goto(2).draw()
    assert session.parent is None
    assert session.forks[0].tree()
    assert everything(team_path.parent) == before


def test_opening_a_store_that_is_being_written_changes_no_byte(tmp_path):
    path = tmp_path / "open.db"
    runtime = programs.run_team(path)
    before = everything(tmp_path)
    assert len(before["open.db-wal"]) > 0
    assert len(nb.open_activegraph(path).trace) == 7
    after = everything(tmp_path)
    assert {name: after[name] for name in ("open.db", "open.db-wal")} == {
        name: before[name] for name in ("open.db", "open.db-wal")
    }
    runtime.graph.add_object("task", {})  # and it goes on writing
    assert len(nb.open_activegraph(path).package_log.events) == 35
    programs.close(runtime)


@pytest.mark.parametrize("beside", [["open.db-wal"], ["open.db-wal", "open.db-shm"]])
def test_a_store_left_by_a_killed_program_is_read_and_not_changed(tmp_path, beside):
    path = tmp_path / "open.db"
    runtime = programs.run_team(path)
    left = tmp_path / "left"
    left.mkdir()
    for name in ("open.db", *beside):
        shutil.copy(tmp_path / name, left / name)
    programs.close(runtime)
    before = everything(left)
    assert len(nb.open_activegraph(left / "open.db").trace) == 7
    after = everything(left)
    assert after.keys() == before.keys()
    assert {name: after[name] for name in ("open.db", "open.db-wal")} == {
        name: before[name] for name in ("open.db", "open.db-wal")
    }


def test_a_read_only_store_is_read(team_path, tmp_path):
    path = shutil.copy(team_path, tmp_path / "mine.db")
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert len(nb.open_activegraph(path, "run-team").trace) == 7
    finally:
        tmp_path.chmod(0o755)


ACTS = {
    "edit": lambda session: session.edit({"task#1": 1}),
    "emit": lambda session: session.emit("hello"),
    "fork": lambda session: session.fork(),
    "reset": lambda session: session.reset(),
    "retry": lambda session: session.retry(),
    "set_next": lambda session: session.set_next("worker"),
    "approve": lambda session: session.goto(6).approve("approval_001"),
    "skip": lambda session: session.skip(),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_a_recording_cannot_be_changed(team, act):
    with pytest.raises(ExecutionError) as caught:
        act(team)
    (problem,) = caught.value.problems
    assert problem.code == "L450"
    assert "activegraph" in problem.what


# -- going through it --------------------------------------------------------------------------------------------------


def test_it_opens_at_its_last_step_and_goes_to_any_step(team):
    assert (team.position, team.status, team.current) == (7, "idle", None)
    assert team.step() is None
    team.goto(0)
    assert (team.position, team.status, team.current, dict(team.board)) == (0, "ready", "planner", {})
    assert team.step().node_id == "planner"
    assert (team.status, team.board["task#1.data.status"]) == ("paused", "open")
    assert team.step(2).step == 3
    assert team.board["task#1.data.status"] == "done"
    assert team.back().board["task#1.data.status"] == "done"
    assert team.back().board["task#1.data.status"] == "open"
    team.run()
    assert team.position == 7


def test_over_goes_through_all_deliveries_of_one_event(team):
    team.goto(3)
    assert team.step_over().node_id == "asks"
    assert team.position == 6
    assert team.step_into().step == 7
    assert team.step_over() is None
    assert team.goto(1).step_out().step == 7


@pytest.mark.parametrize(
    ("until", "position"),
    [(2, 2), ("breaks", 4), (lambda board: "note#3" in board, 5), (None, 7), (99, 7)],
)
def test_run_stops_at_until(team, until, position):
    team.goto(0).run(until)
    assert team.position == position


def test_run_stops_at_breakpoints_and_after_so_many_steps(team):
    team.breakpoints.add(node="breaks")
    team.goto(0).run()
    assert (team.position, team.stopped_by.node) == (4, "breaks")
    team.run()
    assert team.position == 7
    assert len(team.goto(1).run(max_steps=2)) == 7
    assert team.position == 3


async def _forwards(session):
    await session.astep()
    first = session.position
    await session.arun()
    return first, session.position


def test_the_async_methods_give_the_same_results(team):
    import asyncio

    assert asyncio.run(_forwards(team.goto(0))) == (1, 7)
    team.goto(0).start()
    assert team.position == 7
    assert asyncio.run(team.goto(3).astep_over()).step == 6
    assert asyncio.run(team.astep_into()).step == 7
    assert asyncio.run(team.goto(1).astep_out()).step == 7
    asyncio.run(team.arun_back("breaks"))
    assert team.current == "breaks"
    assert team.goto(0).start(2).position == 2


def test_a_run_ended_by_a_budget_is_exhausted(tmp_path):
    path = tmp_path / "stopped.db"
    programs.close(programs.run_late(path, budget={"max_events": 3}))
    session = nb.open_activegraph(path)
    assert (session.status, session.trace.outcome) == (
        "exhausted", {"status": "exhausted", "steps": 2, "limit": "max_events"},
    )  # fmt: skip
    assert session.back().status == "paused"


@pytest.mark.parametrize(
    ("after", "limit"),
    [
        ([], "max_events"),
        (["go", "approval.granted", "runtime.resumed"], "max_events"),
        (["runtime.idle"], None),
        (["go", "behavior.failed"], None),
        (["behavior.completed", "runtime.budget_exhausted"], "max_events"),
    ],
)
def test_a_budget_ends_a_run_if_nothing_ran_after_it(after, limit):
    payloads = {"runtime.budget_exhausted": {"exhausted_by": "max_events"}, "approval.granted": {"approval_id": "a"}}
    types = ["go", "runtime.budget_exhausted", *after]
    events = [LogEvent(f"e{at}", type, "a", payloads.get(type, {}), None, None, "") for at, type in enumerate(types)]
    log = PackageLog("test.db", LogRun("r", None, None, None, "", None, None), (), tuple(events), {})
    session = ActiveGraphRun.of("test.db", log, {})
    assert (session.trace.outcome or {}).get("limit") == limit
    assert (session.status == "exhausted") == (limit is not None)


# -- what can be asked -------------------------------------------------------------------------------------------------


def test_why_who_wrote_and_why_not_work_on_a_log(team):
    assert team.who_wrote("task#1.data.status") == 2
    assert team.who_wrote("note#3") == 5
    assert "event evt_026 'object.created'" in str(team.why())
    assert "triggers unblock, breaks, asks" in str(team.goto(2).why())
    assert "in step 5" in str(team.goto(7).why_not("breaks"))


def test_undecided_approvals_are_pending(team):
    assert team.pending == ()
    team.goto(6)
    assert team.pending == ()  # it was decided before anything else fired: that belongs to this step


def test_a_waiting_approval_is_pending(tmp_path):
    runtime = activegraph.Runtime(programs.graph(), behaviors=programs.team(), persist_to=str(tmp_path / "waits.db"))
    runtime.run_goal("Evaluate")
    programs.close(runtime)
    (waiting,) = nb.open_activegraph(tmp_path / "waits.db").pending
    assert (waiting.id, waiting.kind, waiting.node, waiting.name) == ("approval_001", "approval", "asks", "memo")
    assert waiting.arguments["data"] == {"text": "may I?"}


def test_its_drawing_marks_the_behaviors_that_ran(team):
    team.goto(2)
    svg = team.draw().svg
    assert svg.startswith("<svg")
    assert all(name in svg for name in ("planner", "unblock", "task.completed"))
    assert team._parts.pictures.view().visited == {"planner": 1, "worker": 1}
    assert team._parts.pictures.view().current == "worker"
    assert "planner" in team.draw().mermaid


def test_the_cockpit_shows_it_and_its_buttons_move_through_it(team):
    from agentnb.ui.view_model import list_abilities

    assert not any(list_abilities(team)[verb] for verb in ("step", "run", "reset", "answer"))
    team.goto(0)
    able = list_abilities(team)
    assert {verb: able[verb] for verb in ("step", "run", "goto", "reset", "answer")} == {
        "step": True, "run": True, "goto": True, "reset": False, "answer": False,
    }  # fmt: skip
    controls = team.controls()
    controls.buttons["step"].click()
    assert team.position == 1
    assert nb.Debugger(team) is not None


def test_the_trace_is_a_trace_like_any_other(team, tmp_path):
    team.trace.to_json(tmp_path / "trace.json")
    loaded = nb.SimulationTrace.read(tmp_path / "trace.json")
    assert loaded.frames.events.id.tolist() == team.trace.frames.events.id.tolist()
    assert loaded.state_at(7) == team.trace.state_at(7)
    assert team.trace.metadata["activegraph"]["goal"] == "Evaluate"
    assert team.trace.wide("task#1.data.status")["task#1.data.status"].tolist()[:3] == ["open", "done", "done"]


def test_it_can_be_stored_as_a_run_of_agentnb(team, tmp_path):
    team.save(tmp_path / "ours.db")
    recording = nb.open(tmp_path / "ours.db")
    assert len(recording.trace) == 7
    assert dict(recording.goto(3).board) == dict(team.goto(3).board)


# -- several runs ------------------------------------------------------------------------------------------------------


def test_the_runs_of_a_store_are_listed_and_forks_know_their_parents(team, team_path):
    assert set(team.runs.label.fillna("")) == {"", "another way", "once more"}
    (fork,) = team.forks
    assert (fork.recipe.name, fork.parent) == ("another way", team)
    (again,) = fork.forks
    assert again.parent is fork
    assert again.forks == ()
    lines = again.tree().splitlines()
    assert [line.split(" (")[0] for line in lines] == ["Evaluate", "  another way", "    once more"]
    assert "from evt_010: 22 events" in lines[1]
    assert lines[2].endswith("<- here")


def test_a_parent_missing_from_the_store_is_none(team_path, tmp_path):
    path = shutil.copy(team_path, tmp_path / "orphan.db")
    programs.change(path, "UPDATE runs SET parent_run_id = 'elsewhere' WHERE label = 'another way'")
    orphan = nb.open_activegraph(path, nb.open_activegraph(path).runs.query("label == 'another way'").run_id.item())
    assert orphan.parent is None
    assert [fork.parent is orphan for fork in orphan.forks] == [True]
    assert orphan.tree().startswith("another way")


def test_steps_of_a_fork_are_its_parents_up_to_the_fork(team):
    (fork,) = team.forks
    assert [step.node_id for step in fork.trace.steps[:2]] == [step.node_id for step in team.trace.steps[:2]]
    assert fork.trace.state_at(2) == team.trace.state_at(2)


def test_secrets_are_masked(tmp_path):
    path = tmp_path / "secret.db"
    runtime = activegraph.Runtime(programs.graph("secret"), behaviors=[], persist_to=str(path))
    runtime.graph.add_object("door", {"api_key": "k-4711-secret"})
    runtime.graph.emit(activegraph.Event(id="evt_009", type="told", payload={"text": "it is k-4711-secret"}))
    programs.close(runtime)
    session = nb.open_activegraph(path)
    assert "k-4711-secret" not in str(session.trace.frames.events.payload.tolist())
    assert session.board["door#1.data.api_key"] == "k-4711-secret"


def test_a_store_that_another_program_is_about_to_write_is_read_in_its_last_state(team_path, tmp_path):
    path = shutil.copy(team_path, tmp_path / "locked.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.execute("BEGIN EXCLUSIVE")
    try:
        assert len(nb.open_activegraph(path, "run-team").trace) == 7  # nothing is changed yet
    finally:
        connection.close()


@pytest.mark.needs_postgres
def test_a_log_on_a_server_is_opened(postgres_url):
    from activegraph.store.postgres import PostgresEventStore

    store = PostgresEventStore(postgres_url, run_id="on-server")
    runtime = activegraph.Runtime(programs.graph("on-server"), behaviors=programs.team(), store=store)
    runtime.run_goal("Evaluate")
    objects = [each.to_dict() for each in runtime.graph.all_objects()]
    times = [event.timestamp.replace("Z", "+00:00") for event in runtime.graph.events]
    store.close()
    session = nb.open_activegraph(postgres_url)
    assert [step.node_id for step in session.trace.steps] == [
        "planner",
        "worker",
        "worker",
        "unblock",
        "breaks",
        "asks",
    ]
    assert [each for each in session.trace.state_at(6).values() if "version" in each] == objects
    assert [time.isoformat() for time in session.trace.frames.events.time] == times


def test_causes_and_objects_of_a_log_are_shown_like_those_of_a_run(team):
    frame = team.chain("task#1").to_frame()
    own_events = frame[frame.relation == "self"]
    assert own_events.type.iloc[0] == "object.created"
    assert (own_events.type == "patch.applied").sum() == team.board["task#1.version"] - 1
    assert frame[frame.relation == "cause"].type.tolist()[0] == "goal.created"
    boxes = {box.id: box for box in team.draw_objects(2).picture.boxes}
    assert boxes["task#1"].marks == ("changed",)
    team.goto(2)
    assert team.draw_objects().bare_svg == team.draw_objects(2).bare_svg


def test_types_of_events_are_between_the_behaviors_of_a_log(team):
    text = team.draw().text
    assert "  task.completed (event)" in text
    assert "      -> unblock" in text
    reactions = team._parts.pictures.view().reactions
    assert reactions.deliveries["object.created", "worker"] == 3
    assert reactions.emissions["worker", "task.completed"] >= 1
