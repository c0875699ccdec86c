from __future__ import annotations

import pytest

from agentnb.board.values import ABSENT
from agentnb.engine.core.drivers import run_plain
from agentnb.engine.core.run import CHECKPOINT_ROWS, DONE, EXHAUSTED, NEVER, PAUSED, Run
from agentnb.engine.core.time_travel import goto, repair, start_branch
from agentnb.engine.core.work import Append
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.errors import BoardError
from agentnb.recipe.model import Edge
from tests.engine.graph_shapes import leaf
from tests.engine.small_runs import data, one, run_of


def count(work):
    return {"n": work.board.get("n", 0) + 1}


def cycle(**words):
    return run_of(count, edges=[Edge("n0", "n0")], **words)


def test_a_run_starts_with_its_inputs_and_the_entry_as_the_frontier():
    run = run_of(count, inputs={"n": 1, "d": {"x": [1]}})
    assert (data(run), run.position, [run.get_node_id(activation) for activation in run.frontier()]) == (
        {"n": 1, "d": {"x": [1]}},
        0,
        ["n0"],
    )
    assert one(run) == DONE
    assert (run.frontier(), run.counted_steps) == ([], 1)


def test_an_activation_is_created_once():
    run = cycle()
    first = run.find_activation(run.frontier()[0])
    one(run)
    assert run.find_activation(run.frontier()[0]) is first
    assert len(run.tables.activations) == 1


def test_a_call_ends_at_its_limit():
    run = cycle()
    run.limit = 5
    run.set_next_due()
    run.stop_at = 3
    run.set_next_due()
    assert (run_plain(run), run.position) == (PAUSED, 3)
    run.stop_at = NEVER
    run.set_next_due()
    assert (run_plain(run), run.position) == (EXHAUSTED, 5)


def test_checkpoints_are_created_by_number_of_rows_and_keys():
    run = cycle(inputs={str(key): key for key in range(100)})
    run.stop_at = 3 * CHECKPOINT_ROWS
    run.set_next_due()
    run_plain(run)
    steps = [checkpoint.step for checkpoint in run.history.checkpoints]
    assert steps == [0, CHECKPOINT_ROWS + 100, 2 * (CHECKPOINT_ROWS + 100) + 1]
    goto(run, 700)
    assert data(run)["n"] == 700


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("a",), 1, {"d": {"x": 1}, "l": [1], "a": 1}),
        (("d", "x"), ABSENT, {"d": {}, "l": [1]}),
        (("d",), ABSENT, {"l": [1]}),
        (("d", "gone", "far"), ABSENT, {"d": {"x": 1}, "l": [1]}),
        (("l",), Append(2), {"d": {"x": 1}, "l": [1, 2]}),
        (("l", 1), 2, {"d": {"x": 1}, "l": [1, 2]}),
        (("new", "far"), 2, {"d": {"x": 1}, "l": [1], "new": {"far": 2}}),
        (("new",), Append(2), {"d": {"x": 1}, "l": [1], "new": [2]}),
    ],
)
def test_a_write_can_be_repaired(path, value, expected):
    run = run_of(count, inputs={"d": {"x": 1}, "l": [1]})
    run.write(run.root.scope, path, value)
    assert data(run) == expected
    repair(run)
    assert list(data(run).items()) == [("d", {"x": 1}), ("l", [1])]


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        (("d", "x", "y"), 1, "B103"),
        (("l", 5), 1, "B104"),
        (("d",), Append(1), "B103"),
        ((5,), 1, "B105"),
    ],
)
def test_a_rejected_write_changes_nothing(path, value, code):
    run = run_of(count, inputs={"d": {"x": 1}, "l": [1]})
    with pytest.raises(BoardError, match=code):
        run.write(run.root.scope, path, value)
    assert data(run) == {"d": {"x": 1}, "l": [1]}
    one(run)
    assert data(run)["n"] == 1


def test_an_undone_deletion_restores_the_position_of_the_key():
    run = run_of(lambda work: {"b": ABSENT}, count, inputs={"a": 1, "b": 2, "c": 3})
    one(run)
    assert list(data(run)) == ["a", "c"]
    goto(run, 0)
    assert list(data(run)) == ["a", "b", "c"]


def test_random_numbers_come_from_the_seed():
    from agentnb.engine.core.plan import Plan
    from agentnb.recipe.model import Recipe
    from agentnb.world.world import World
    from tests.engine.graph_shapes import KINDS

    plan = Plan(Recipe("r", "test", {"a": leaf("a", count)}, (), ("a",)), KINDS, World())
    assert (
        Run(plan, EffectDispatcher(), seed=7).random.random() == Run(plan, EffectDispatcher(), seed=7).random.random()
    )
    assert (
        Run(plan, EffectDispatcher(), seed=7).random.random() != Run(plan, EffectDispatcher(), seed=8).random.random()
    )


def test_calls_are_counted_up_to_the_position_and_retries_are_not():
    from agentnb.world.effect import Effect

    answers = iter([ValueError("no"), 1, 1])

    def answer():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def look(work):
        return {"n": await work.call(Effect("tool", "look", {}, target=answer, attempts=2))}

    run = run_of(look, look, count)
    run_plain(run)
    assert [call.attempt for call in run.history.calls] == [1, 2, 1]
    assert (run.count_calls("tool"), run.count_calls("tool", "n1"), run.count_calls("llm")) == (2, 1, 0)
    goto(run, 1)
    assert (run.count_calls("tool"), run.count_calls("tool", "n1")) == (1, 0)


def test_an_event_of_a_branch_differs_from_that_of_abandoned_steps():
    texts = iter(["first", "left", "own", "next"])

    def speak(work):
        work.emit("said", {"text": next(texts)})

    run = run_of(speak, speak, speak)
    one(run)
    one(run)
    goto(run, 1)
    start_branch(run)
    one(run)
    one(run)
    assert [run.get_event(seq).payload["text"] for seq in (1, 2, 3)] == ["first", "own", "next"]
