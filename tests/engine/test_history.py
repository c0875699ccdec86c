from __future__ import annotations

import pytest

from agentnb.engine.core.time_travel import fork_run, goto, open_tip, repair, start_branch
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import branches, go_on, step
from tests.engine.small_runs import data, one, run_of


def test_a_step_takes_few_bytes():
    history = run_of(lambda work: {}).history
    columns = (
        history.step_activations,
        history.start_times,
        history.end_times,
        history.step_flags,
        history.queue_starts,
        history.write_ends,
        history.push_ends,
    )
    assert sum(column.itemsize for column in columns) <= 33


def test_the_frontier_after_a_step_is_a_slice_of_the_pushes():
    run = run_of(lambda work: {}, lambda work: {}, lambda work: {})
    while not one(run):
        pass
    history = run.history
    queues = [history.push_activations[history.queue_starts[row] : history.push_ends[row]].tolist() for row in range(4)]
    assert [[run.get_node_id(activation) for activation in queue] for queue in queues] == [["n0"], ["n1"], ["n2"], []]


def test_rows_of_writes_keep_the_previous_value_of_the_first_key():
    run = run_of(lambda work: {"a": 2}, inputs={"a": 1})
    one(run)
    run.write(run.root.scope, ("d", "x"), 3)
    assert run.history.old_values[1:] == [1, run.history.old_values[2]]
    repair(run)


def test_truncating_removes_every_row_after_a_step():
    async def looks(work):
        work.emit("x")
        await work.call(Effect("tool", "t", {}, target=lambda: 1))
        return {"n": work.board.get("n", 0) + 1}

    run = run_of(looks, looks, looks)
    go_on(run)
    history = run.history
    assert (history.tip, len(history.calls), len(history.events)) == (3, 3, 3)
    nodes = [run.tables.activations[activation].node for activation in history.step_activations[1:]]
    assert [history.list_steps(node, 9) for node in nodes] == [[1], [2], [3]]
    goto(run, 1)
    assert not history.truncate(1)
    assert [history.list_steps(node, 9) for node in nodes] == [[1], [], []]
    assert (history.tip, len(history.calls), len(history.events), history.count_calls("tool", None, 9)) == (1, 1, 1, 1)
    run.is_rewound = False
    assert data(run) == {"n": 1}
    one(run)
    assert data(run) == {"n": 2}


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_counts_that_were_made_before_truncating_are_those_of_the_remaining_steps(kept):
    async def looks(work):
        work.emit("x")
        await work.call(Effect("tool", "t", {}, target=lambda: 1))

    run = run_of(looks, looks, looks)
    go_on(run)
    history = run.history

    def counts():
        by_node = [(history.list_steps(node, 9), history.count_calls("tool", node, 9)) for node in range(3)]
        return by_node, history.count_calls("tool", None, 9), history.last_event(9)

    assert counts() == ([([1], 1), ([2], 1), ([3], 1)], 3, 3)
    goto(run, kept)
    history.truncate(kept)
    expected = [([step], 1) if step <= kept else ([], 0) for step in (1, 2, 3)]
    assert counts() == (expected, kept, kept)


def test_truncating_reports_whether_frames_had_changed():
    run = branches().run()
    step(run)
    assert run.history.truncate(0)
    assert run.history.opened_frames == {}


def test_the_last_checkpoint_before_a_step_is_found():
    run = run_of(lambda work: {})
    assert run.history.checkpoint_before(0).step == 0
    assert run.history.checkpoint_before(99).step == 0
    assert run.history.checkpoint_before(-1) is None


def test_paths_and_activations_are_interned():
    run = run_of(lambda work: {"a": 1})
    tables = run.tables
    code = tables.add_path(0, ("a",))
    assert (tables.add_path(0, ("a",)), tables.codes[code // 4]) == (code, (0, ("a",)))
    assert tables.plain[code] == "a"
    deep = tables.add_path(0, ("a", "b"))
    assert deep not in tables.plain
    assert tables.add_path(1, ("a",)) not in tables.plain


def test_a_history_knows_which_steps_it_contains():
    run = run_of(lambda work: {})
    one(run)
    assert repr(run.history) == "<History  of steps 1 to 1>"


def test_the_last_event_has_the_highest_number_however_the_steps_were_committed():
    run = run_of(lambda work: work.emit("x") and None, lambda work: None, lambda work: work.emit("y") and None)
    assert run.last_event() == 0
    one(run)
    one(run)
    history = run.history
    assert [history.last_event(step) for step in (0, 1, 2)] == [0, 1, 1]
    history.events.append(history.events[0]._replace(seq=5, at=2))
    history.events.append(history.events[0]._replace(seq=3, at=2))
    assert (run.last_event(), history.last_event(1)) == (5, 1)
    history.truncate(1)
    assert (run.last_event(), history.last_event(9)) == (1, 1)


def test_a_history_records_the_recipe_of_each_step():
    run = run_of(lambda work: {}, lambda work: {})
    one(run)
    other = run_of(lambda work: {"else": 1}, lambda work: {}).plan
    fork = fork_run(run, other, 1)
    goto(fork, 0)
    start_branch(fork)
    assert [history.plan for history in (run.history, *fork.chain)] == [run.plan, run.plan, other]


def test_an_event_is_found_by_its_number_however_the_steps_were_committed():
    run = run_of(*[lambda work: work.emit("x") and None] * 4)
    for _ in range(4):
        one(run)
    history = run.history
    assert [history.find_event_index(seq) for seq in range(6)] == [-1, 0, 1, 2, 3, -1]
    one_, two, three, four = history.events
    history.events[:] = [one_, three, two, four]  # two were in flight together
    assert [run.get_event(seq) for seq in range(1, 5)] == [one_, two, three, four]
    assert run.get_event(5) is None


def test_numbers_of_a_branch_continue_after_its_parent_steps_and_not_after_the_abandoned_ones():
    run = run_of(*[lambda work: work.emit("x") and None] * 5)
    for _ in range(4):
        one(run)
    goto(run, 2)
    open_tip(run)
    assert (run.history.last_inherited_event, run.last_event()) == (2, 2)
    one(run)
    assert [event.seq for event in run.events()] == [1, 2, 3]
    goto(run, 1)
    assert run.last_event() == 1
