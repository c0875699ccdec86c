from __future__ import annotations

from agentnb import ABSENT
from agentnb.board.paths import APPEND, DELETE, SET
from agentnb.engine.control import interventions
from agentnb.engine.core.event_queue import emit_from_outside
from agentnb.engine.core.time_travel import goto, open_tip
from agentnb.engine.core.work import Append
from agentnb.engine.replay.step_record import Record, read_step
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import SHAPES, begun, go_on, path, step
from tests.engine.small_runs import one, run_of


def lively(work):
    work.emit("seen", {"n": work.board["n"]})
    work.write(("deep", "x"), 1)
    work.board["log"].append("mine")
    return {"n": ABSENT, "list": Append(2)}


def written(done):
    return [(row.path, row.op, row.in_place) for row in done.writes]


def test_an_appended_item_has_its_index_in_its_own_list():
    def appends(work):
        for key in [("log",), ("deep", "log"), ("deep", "new"), ("new",)]:
            work.write(key, Append("x"))

    run = run_of(appends, inputs={"log": [1, 2], "deep": {"log": [1, 2, 3], "n": 1}})
    one(run)
    assert [(row.path, row.at) for row in Record(run).read_step(1).writes] == [
        (("log",), 2), (("deep", "log"), 3), (("deep", "new"), 0), (("new",), 0),
    ]  # fmt: skip


def test_the_record_of_a_step_excludes_later_interventions():
    run = run_of(lively, lambda work: {}, inputs={"n": 1, "log": []})
    one(run)
    interventions.edit(run, {"n": 5, "nowhere": ABSENT})
    interventions.edit(run, {"list": [7]})
    done = Record(run).read_step(1)
    assert written(done) == [
        (("deep", "x"), SET, False),
        (("n",), DELETE, False),
        (("list",), APPEND, False),
        (("log",), SET, True),
    ]
    assert [(event.type, dict(event.payload)) for event in done.events] == [("seen", {"n": 1})]
    assert {key for _, (key,) in done.reads} == {"n", "log"}
    assert [run.plan.nodes[target.node].id for target, _ in done.targets] == ["n1"]
    assert (done.step, done.phase, done.status, done.failure) == (1, "run", "ok", None)


def test_the_attempts_of_calls_are_ordered_by_number():
    async def calls(work):
        attempts = []

        def look():
            attempts.append(1)
            if len(attempts) == 1:
                raise OSError("no")

        await work.call(Effect("tool", "look", {}, attempts=2, target=look))
        await work.call(Effect("tool", "also", {}, target=lambda: 3))

    run = run_of(calls)
    go_on(run)
    done = Record(run).read_step(1)
    assert {number: [(row.name, row.attempt) for row in rows] for number, rows in done.calls.items()} == {
        0: [("look", 1), ("look", 2)],
        1: [("also", 1)],
    }


def test_the_last_step_is_read_as_it_will_be_read_later():
    for name in SHAPES:
        run = begun(name)
        while run.frontier():
            before = run.position
            step(run)
            record = Record(run)
            assert read_step(run.tables, run.history, before + 1) == record.read_step(before + 1)


def test_phases_and_failures_are_reported():
    run = begun("branches")
    while run.frontier():
        step(run)
    record = Record(run)
    steps = [record.read_step(number) for number in range(1, run.position + 1)]
    marks = [f"{done.phase} {done.status}" for done in steps]
    assert marks == ["enter ok", "run ok", "run error", "run cancelled", "leave error", "run ok"]
    assert [row.region for row in steps[0].opened_frames] == ["one", "two"]
    assert (steps[2].failure.message, steps[3].is_cancelled) == ("left breaks", True)


def test_interventions_are_in_order():
    run = run_of(lambda work: {"a": 1}, lambda work: {}, lambda work: {})
    one(run)
    interventions.edit(run, {"a": 2, "b": 3})
    interventions.set_next(run, "n2")
    event = emit_from_outside(run, "hello", None)
    interventions.record_intervention(run, "emit", "hello")
    interventions.edit(run, {"a": 4})
    actions = list(Record(run).interventions_between(1))
    assert [action.intervention.action for action in actions] == ["edit", "edit", "set_next", "emit", "edit"]
    assert [action.write and (action.write.path, action.write.new) for action in actions] == [
        (("a",), 2),
        (("b",), 3),
        None,
        None,
        (("a",), 4),
    ]
    assert [action.event for action in actions if action.event] == [event]


def test_events_without_intervention_come_first():
    run = begun("reactive")
    interventions = [(action.intervention, action.event.payload) for action in Record(run).interventions_between(0)]
    assert interventions == [(None, "ada"), (None, "bob")]


def test_a_branch_starts_with_its_interventions():
    run = run_of(lambda work: {"a": 1}, lambda work: {"b": 1}, inputs={"z": 0})
    one(run)
    interventions.edit(run, {"a": 2})
    one(run)
    goto(run, 1)
    interventions.edit(run, {"a": 3})
    record = Record(run)
    assert [action.write.new for action in record.interventions_between(1)] == [2, 3]
    assert [row.path for row in record.read_initial_writes()] == [("z",)]
    open_tip(run)
    one(run)
    assert written(Record(run).read_step(2)) == [(("b",), SET, False)]
    assert path(run) == ["n0", "n1"]


def test_initial_values_are_not_an_edit():
    run = run_of(lambda work: {}, inputs={"z": 0})
    interventions.edit(run, {"z": 1})
    assert [(row.path, row.new) for row in Record(run).read_initial_writes()] == [(("z",), 0)]


def test_the_record_of_a_run_in_the_past_ends_at_its_position():
    run = run_of(lambda work: {"a": 1}, lambda work: {"b": 1})
    one(run)
    one(run)
    goto(run, 1)
    record = Record(run)
    assert [end for _, end in record.parts] == [1]


def test_the_changes_of_calls_are_known_by_node():
    run = run_of(lambda work: {})
    interventions.record_intervention(run, "change", "n0", new={"a": [1]})
    assert {node: [dict(change.new) for change in changes] for node, changes in Record(run).changes.items()} == {
        "n0": [{"a": [1]}]
    }


def test_each_step_has_exactly_its_own_calls_and_events():
    counts = [1, 2, 0, 3, 1, 0, 2]

    async def calls(work):
        for number in range(counts[work.board["n"]]):
            await work.call(Effect("tool", f"{work.board['n']}.{number}", {}, target=lambda: 1))
            work.emit(f"{work.board['n']}.{number}", {})
        return {"n": work.board["n"] + 1}

    run = run_of(*[calls] * len(counts), inputs={"n": 0})
    last = []
    while run.frontier():
        step(run)
        last.append(read_step(run.tables, run.history, run.position))
    for number, count in enumerate(counts):
        named = [f"{number}.{each}" for each in range(count)]
        for done in (last[number], Record(run).read_step(number + 1)):
            assert [row.name for rows in done.calls.values() for row in rows] == named
            assert [event.type for event in done.events] == named
