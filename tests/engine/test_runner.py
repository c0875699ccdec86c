from __future__ import annotations

from dataclasses import replace

import pytest

from agentnb import ABSENT
from agentnb.clock import TickingClock
from agentnb.engine.control import interventions
from agentnb.engine.core.pending_step import Hold
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.core.time_travel import fork_run, goto, open_tip
from agentnb.engine.core.work import Outcome
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.engine.replay.divergence import LEVELS
from agentnb.engine.replay.runner import Replay
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.world.effect import Effect
from agentnb.world.world import World
from tests.engine.graph_shapes import KINDS, SHAPES, Meeting, Shape, begun, board, go_on, leaf, shape_of, step
from tests.engine.replay_samples import counting, never, plan_of, to_its_end, to_rows
from tests.engine.small_runs import data, run_of

# ------------------------------------------------------------------------------------------------------- what it finds


@pytest.mark.parametrize("how", [step, go_on])
@pytest.mark.parametrize("name", SHAPES)
def test_a_run_of_every_shape_replays_from_every_step(name, how):
    run = to_its_end(begun(name), how)
    assert run.position >= 6
    state = (run.position, board(run), run.frontier(), len(run.tables.activations), len(run.tables.frames))
    for start in range(run.position + 1):
        for level in LEVELS:
            replay = Replay(run, start=start, level=level).execute()
            assert (replay.divergences, replay.unsure) == ([], [])
            counted = [
                number
                for number in range(start + 1, run.position + 1)
                if not replay.record.read_step(number).is_cancelled
            ]
            assert replay.compared_steps == len(counted)
            assert board(replay.run) == board(run)
    assert state == (run.position, board(run), run.frontier(), len(run.tables.activations), len(run.tables.frames))


def test_a_branch_does_not_see_events_of_a_concurrent_one():
    meeting = Meeting()

    async def emit(work):
        await meeting.wait_for("right has begun")
        work.emit("told")
        return {"out": list_types(work)}

    def tell(work):
        meeting.begun.add("left has told")
        return {"out": [*work.board["out"], *list_types(work)]}

    async def look(work):
        meeting.begun.add("right has begun")
        await meeting.wait_for("left has told")
        work.emit("looked")
        return {"out": list_types(work)}

    def list_types(work):
        return [event.type for event in work.events]

    shape = Shape(
        nodes=[
            leaf("before", lambda work: work.emit("begun") and {}),
            Node("both", "nest", bodies=("one", "two"), params={"policy": "child"}),
            leaf("emit", emit, scope="one"),
            leaf("tell", tell, scope="one"),
            leaf("look", look, scope="two"),
            leaf("after", lambda work: {"after": list_types(work)}),
        ],
        edges=[Edge("before", "both"), Edge("emit", "tell"), Edge("both", "after")],
        entry=("before",),
        regions=[Region("one", ("emit",), owner="both"), Region("two", ("look",), owner="both")],
        steps=[],
        end={},
    )
    run = shape.run()
    go_on(run)
    seen = board(run)
    assert seen["both"] == [["begun", "told", "begun", "told"], ["begun", "looked"]]
    assert sorted(seen["after"]) == ["begun", "looked", "told"]
    for start in range(run.position + 1):
        assert Replay(run, start=start).execute().divergences == []


@pytest.mark.parametrize("name", SHAPES)
def test_a_run_of_every_shape_replays_up_to_every_step(name):
    run = begun(name)
    while run.frontier():
        step(run)
        assert (Replay(run).execute().divergences, run.is_rewound) == ([], False)


@pytest.mark.parametrize("name", SHAPES)
def test_a_changed_node_is_named_at_its_first_step(name):
    run = to_its_end(begun(name))
    changed = {"diamond": "d", "cycle": "again", "branches": "first", "nested": "look", "reactive": "count"}[name]
    shape = shape_of(name)
    nodes = [
        leaf(node.id, lambda work: {"else": 1}, node.kind, node.scope, node.on) if node.id == changed else node
        for node in shape.nodes
    ]
    replay = Replay(run, plan=replace(shape, nodes=nodes).plan()).execute()
    steps = [
        number
        for number in range(1, run.position + 1)
        if run.get_node_id(run.history.step_activations[number]) == changed
    ]
    assert (replay.divergences[0].step, replay.divergences[0].node, replay.divergences[0].what) == (
        steps[0],
        changed,
        "write",
    )


def test_a_replay_continues_with_other_values_while_the_path_agrees():
    run = to_its_end(run_of(counting, counting, counting))
    other = plan_of(leaf("n0", counting), leaf("n1", lambda work: {"n": 10}), leaf("n2", counting))
    replay = Replay(run, plan=other).execute()
    assert to_rows(replay) == [(2, "n1", "write", "n", 2, 10), (3, "n2", "write", "n", 3, 11)]
    assert replay.compared_steps == 3


def test_a_replay_ends_where_the_routes_diverge():
    run = to_its_end(run_of(counting, counting, counting))
    nodes = [leaf(f"n{number}", counting) for number in range(3)]
    replay = Replay(run, plan=plan_of(*nodes, edges=[Edge("n0", "n2"), Edge("n2", "n1")])).execute()
    assert to_rows(replay) == [(1, "n0", "edge", "n0", "n1", "n2")]
    assert (replay.compared_steps, replay.divergences[0].ends) == (0, True)


@pytest.mark.parametrize(
    ("nodes", "row", "why"),
    [
        (["n0", "n2"], (1, "n0", "edge", "n0", "n1", "n2"), "'n0' led to 'n1', and in the replay to 'n2'"),
        (["n1", "n2"], (1, "n0", "node", "", "n0", "n1"), "the recipe has no node 'n0' any more"),
        (["n0"], (1, "n0", "edge", "n0", "n1", ABSENT), "led to 'n1', and in the replay to nothing"),
        (["n1", "n0", "n2"], (1, "n0", "node", "", "n0", "n1"), "the replay runs 'n1' instead"),
    ],
)
def test_missing_and_moved_nodes_are_reported(nodes, row, why):
    run = to_its_end(run_of(counting, counting, counting))
    replay = Replay(run, plan=plan_of(*(leaf(name, counting) for name in nodes))).execute()
    assert to_rows(replay) == [row]
    assert why in str(replay.divergences[0])


def test_a_missing_node_is_reported_where_it_matters_even_from_the_middle():
    run = to_its_end(run_of(counting, counting, counting, counting))
    plan_without = plan_of(leaf("n0", counting), leaf("n2", counting), leaf("n3", counting), like=run.plan)
    assert to_rows(Replay(run, plan=plan_without, start=2).execute()) == []
    (row,) = to_rows(Replay(run, plan=plan_without, start=1).execute())
    assert row == (2, "n1", "node", "", "n1", "n1")
    assert "no node 'n1' any more" in str(Replay(run, plan=plan_without, start=1).execute().divergences[0])


def test_a_node_in_another_region_is_a_different_node():
    run = to_its_end(begun("nested"))
    shape = shape_of("nested")
    nodes = [leaf("look", lambda work: {}) if node.id == "look" else node for node in shape.nodes]
    shape = replace(shape, nodes=nodes, edges=[edge for edge in shape.edges if edge.target != "look"])
    for start in (0, 2, 3):
        replay = Replay(run, plan=Plan(shape.plan().recipe, KINDS, run.world, run.plan), start=start).execute()
        (row, *_) = [row for row in replay.divergences if row.ends]
        assert row.step == (4 if start == 3 else 3)
    assert "it was in region 'in' and is now in 'root'" in str(replay.divergences[0])


def test_missing_and_new_failures_are_reported():
    def bad(work):
        raise ValueError("no")

    run = to_its_end(run_of(counting, bad))
    replay = Replay(run, plan=plan_of(leaf("n0", counting), leaf("n1", counting))).execute()
    assert to_rows(replay)[0] == (2, "n1", "error", "", "ValueError: no", ABSENT)
    replay = Replay(run, plan=plan_of(leaf("n0", bad), leaf("n1", bad))).execute()
    assert to_rows(replay) == [
        (1, "n0", "error", "", ABSENT, "ValueError: no"),
        (1, "n0", "write", "n", 1, ABSENT),
        (1, "n0", "edge", "n0", "n1", ABSENT),
    ]


def test_the_initial_board_is_compared():
    def plan(init):
        return plan_of(leaf("n0", counting), init=init)

    run = Run(plan({"n": 1, "m": 1}), EffectDispatcher())
    run.begin({"m": 2})
    to_its_end(run)
    assert Replay(run, plan=plan({"n": 1, "m": 9})).execute().divergences == []
    replay = Replay(run, plan=plan({"n": 5})).execute()
    assert to_rows(replay) == [(0, None, "write", "n", 1, 5), (1, "n0", "write", "n", 2, 6)]
    assert Replay(run, plan=plan({"n": 5}), level="path").execute().divergences == []


def test_a_run_with_a_start_function_starts_as_recorded():
    began = []

    def begin(inputs):
        began.append(1)
        return {"n": len(began)}

    named = {"n0": leaf("n0", counting)}
    run = Run(Plan(Recipe("made", "test", named, (), ("n0",), begin=begin), KINDS, World()), EffectDispatcher())
    run.begin({})
    to_its_end(run)
    assert (Replay(run).execute().divergences, Replay(run, plan=run.plan).execute().divergences, began) == ([], [], [1])


# ---------------------------------------------------------------------------------------------- effects, chance, time


def test_no_effect_is_run():
    armed = []

    def look(word):
        assert not armed
        return {"found": word}

    async def node(work):
        result = await work.call(Effect("tool", "look", {"word": "x"}, target=look))
        answer = await work.call(Effect("llm", "model", {"prompt": "y"}))
        await work.loop()
        return {**result, "answer": answer.content}

    def model(request):
        assert not armed
        return "fine"

    run = to_its_end(run_of(node, node, world=World(llm=model)))
    armed.append(True)
    assert data(run) == {"found": "x", "answer": "fine"}
    assert Replay(run, level="reads").execute().divergences == []


def test_an_unknown_call_ends_the_replay_and_is_never_sent():
    async def node(work):
        await work.call(Effect("tool", "look", {}, target=never))

    run = to_its_end(run_of(counting, counting))
    replay = Replay(run, plan=plan_of(leaf("n0", counting), leaf("n1", node))).execute()
    ((number, name, reason, path, _, called),) = to_rows(replay)
    assert (number, name, reason, path, called) == (2, "n1", "call", "look", "tool 'look'")
    assert (replay.compared_steps, replay.run.position, replay.run.pending_steps) == (1, 1, {})


@pytest.mark.parametrize("level", LEVELS)
def test_a_missing_call_is_reported_but_is_not_a_path_divergence(level):
    async def node(work):
        await work.call(Effect("tool", "look", {}, target=lambda: "seen"))
        return {"n": 1}

    run = to_its_end(run_of(node))
    replay = Replay(run, plan=plan_of(leaf("n0", counting)), level=level).execute()
    called = (1, "n0", "call", "look", "tool 'look'", ABSENT)
    assert [row for row in to_rows(replay) if row[2] == "call"] == ([] if level == "path" else [called])


def test_a_node_that_waits_for_a_missing_event_is_reported():
    async def waits(work):
        await Hold(Effect("human", "who", {}), "answer", "before")

    run = to_its_end(run_of(counting))
    replay = Replay(run, plan=plan_of(leaf("n0", waits))).execute()
    assert "it waits for something that the record does not contain" in str(replay.divergences[0])
    assert replay.divergences[0].ends


def test_visible_time_is_the_recorded_one():
    def node(work):
        return {"at": work.run.clock.now().isoformat(), "seen": work.emit("e").time.isoformat()}

    run = run_of(node, node)
    run.clock = TickingClock(step_seconds=5)
    run.ns = run.clock.ns
    to_its_end(run)
    assert len({repr(value) for value in board(run).values()}) == 2
    clock = run.clock.now()
    for start in (0, 1):
        assert Replay(run, start=start).execute().divergences == []
    assert run.clock.at == clock + run.clock.step


def test_random_numbers_come_from_the_recorded_seed():
    run = to_its_end(run_of(lambda work: {"n": work.run.random.random()}))
    assert Replay(run).execute().divergences == []


# ----------------------------------------------------------------------------------------- where a record leads through


def test_abandoned_steps_are_not_part_of_a_replay():
    run = run_of(counting, counting, counting)
    to_its_end(run)
    goto(run, 1)
    interventions.edit(run, {"n": 7})
    to_its_end(run)
    goto(run, 2)
    open_tip(run)
    to_its_end(run)
    for start in range(run.position + 1):
        replay = Replay(run, start=start).execute()
        assert (replay.divergences, board(replay.run)) == ([], {"n": 9})


def test_a_run_in_the_past_is_replayed_up_to_its_position():
    run = to_its_end(run_of(counting, counting, counting))
    goto(run, 2)
    replay = Replay(run).execute()
    assert (replay.compared_steps, board(replay.run), run.position) == (2, {"n": 2}, 2)


def test_a_fork_replays_each_step_with_its_own_recipe():
    run = to_its_end(run_of(counting, counting))
    goto(run, 1)
    other = plan_of(leaf("n0", lambda work: {"n": 50}), leaf("n1", lambda work: {"n": 90}))
    fork = fork_run(run, other, 1)
    to_its_end(fork)
    assert board(fork) == {"n": 90}
    for start in (0, 1, 2):
        assert Replay(fork, start=start).execute().divergences == []
    assert [row[0] for row in to_rows(Replay(fork, plan=other).execute())] == [1]


def test_a_replay_from_the_middle_can_be_edited():
    run = to_its_end(run_of(counting, counting))
    Replay(run, start=2).execute()
    interventions.edit(run, {"n": 5})
    assert len(run.chain) == 1


def test_the_value_of_a_condition_may_be_any_object():
    class Thing:
        pass

    run = run_of(lambda work: Outcome({}, route=["n1"], value=Thing()), counting)
    to_its_end(run)
    replay = Replay(run).execute()
    assert (replay.divergences, [(row.what, row.sure) for row in replay.unsure]) == ([], [("edge", False)])
