from __future__ import annotations

import asyncio
from itertools import pairwise

from agentnb import ABSENT
from agentnb.engine.control import interventions
from agentnb.engine.core.drivers import run_in_loop, run_in_own_loop
from agentnb.engine.core.run import Run
from agentnb.engine.core.work import Append
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.engine.replay.runner import Replay
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import board, leaf
from tests.engine.replay_samples import counting, plan_of, to_its_end, to_rows
from tests.engine.small_runs import data, one, run_of
from tests.property.modelled_sessions import session_of


def edited(run):
    one(run)
    interventions.edit(run, {"n": 10, "list": Append(1), "gone": ABSENT, "deep.x": 2})
    one(run)
    interventions.set_next(run, "n0")
    one(run)
    interventions.skip(run, {"skipped": True, "n": 3})
    return to_its_end(run)


def test_interventions_are_repeated_at_their_place():
    run = edited(run_of(counting, counting, counting, inputs={"gone": 1, "deep": {"x": 1}, "list": []}))
    assert data(run) == {"deep": {"x": 2}, "list": [1], "n": 4, "skipped": True}
    for start in range(run.position + 1):
        replay = Replay(run, start=start, level="reads").execute()
        assert (replay.divergences, board(replay.run)) == ([], board(run))


def test_conditions_of_a_skipped_step_are_evaluated_again():
    run = run_of(counting, counting)
    interventions.skip(run, {"a": 1})
    other = plan_of(leaf("n0", counting), leaf("n1", counting), leaf("n2", counting), edges=[Edge("n0", "n2")])
    assert to_rows(Replay(run, plan=other).execute()) == [(1, "n0", "edge", "n0", "n1", "n2")]


def test_a_skip_that_cannot_be_repeated_is_reported():
    def breaks(board):
        raise ValueError("nobody can say")

    run = run_of(counting, counting)
    interventions.skip(run, {"a": 1})
    other = plan_of(leaf("n0", counting), leaf("n1", counting), edges=[Edge("n0", "n1", when=breaks)])
    (row, *_) = Replay(run, plan=other).execute().divergences
    assert (row.what, row.path, row.ends) == ("act", "skip", True)


def test_an_edit_without_its_place_is_reported_and_a_missing_next_node_ends_the_replay():
    run = run_of(lambda work: {"a": {"b": 1}}, counting, counting)
    one(run)
    interventions.edit(run, {"a.b": 2})
    to_its_end(run)
    other = plan_of(leaf("n0", lambda work: {"a": 7}), leaf("n1", counting), leaf("n2", counting))
    replay = Replay(run, plan=other).execute()
    assert [(row[0], *row[2:]) for row in to_rows(replay)] == [
        (1, "write", "a", {"b": 1}, 7),
        (1, "act", "a.b", 2, ABSENT),
    ]
    assert (replay.compared_steps, replay.divergences[1].ends) == (3, False)
    run = run_of(counting, counting, counting)
    one(run)
    interventions.set_next(run, "n2")
    to_its_end(run)
    replay = Replay(run, plan=plan_of(leaf("n0", counting), leaf("n1", counting))).execute()
    assert [(row[0], *row[2:]) for row in to_rows(replay)] == [(1, "act", "n2", "n2", ABSENT)]
    assert (replay.compared_steps, replay.divergences[0].ends) == (1, True)


def test_an_edit_during_a_paused_call_follows_the_arguments_of_the_call():
    async def look(work):
        return {
            "found": await work.call(Effect("tool", "look", {"word": work.board["word"]}, target=lambda word: word))
        }

    run = run_of(counting, look, inputs={"word": "rain"})
    held = []
    run.holds_call = lambda work, effect, moment: moment == "before" and not held.append(effect)
    one(run)
    one(run)
    interventions.edit(run, {"word": "snow"})
    (pending_step,) = run.pending_steps.values()
    pending_step.hold.is_resumed = True
    to_its_end(run)
    assert (data(run)["found"], data(run)["word"], len(held)) == ("rain", "snow", 1)
    for start in range(3):
        replay = Replay(run, start=start).execute()
        assert (replay.divergences, replay.compared_steps, board(replay.run)) == ([], 2 - start, board(run))


# ---------------------------------------------------------------------------------------------------------- branches


def fan(*branches):
    """Return a run with branches that each write `out`, over and over."""
    regions = [Region(f"b{number}", (f"b{number}_0",), owner="both") for number in range(len(branches))]
    nodes = [Node("both", "nest", bodies=tuple(region.id for region in regions), params={"policy": "child"})]
    edges = [Edge("both", "after")]
    for number, functions in enumerate(branches):
        leaves = [leaf(f"b{number}_{at}", function, scope=f"b{number}") for at, function in enumerate(functions)]
        edges += [Edge(first.id, second.id) for first, second in pairwise(leaves)]
        nodes += leaves
    nodes.append(leaf("after", lambda work: {"sum": sum(work.board["both"])}))
    run = Run(plan_of(*nodes, edges=edges, regions=regions), EffectDispatcher())
    run.begin({})
    return run


def test_concurrent_branches_are_replayed_in_recorded_order():
    done = []

    def turn(name, after):
        async def node(work):
            await work.loop()
            if after is not None and not done.count("replay"):
                while after not in done:  # noqa: ASYNC110  (a list is all that the branches share)
                    await asyncio.sleep(0)
            done.append(name)
            return {"out": work.board.get("out", 0) + 1}

        return node

    run = fan([turn("a0", "b0"), turn("a1", "b1")], [turn("b0", None), turn("b1", "a0")])
    run_in_own_loop(lambda: run_in_loop(run))
    order = [run.get_node_id(number) for number in run.history.step_activations[1:]]
    assert order[1:5] == ["b1_0", "b0_0", "b1_1", "b0_1"]
    done.append("replay")
    for start in range(run.position + 1):
        replay = Replay(run, start=start, level="reads").execute()
        assert (replay.divergences, [replay.run.get_node_id(n) for n in replay.run.history.step_activations[1:]]) == (
            [],
            order[start:],
        )


def test_interventions_in_a_stopped_branch_are_repeated_in_that_branch():
    both = Node("both", "branches", bodies=("in", "in"), params={"merge": []})
    inner = [
        Node(name, "function", scope="in", params={"function": lambda board: {"n": board["n"] + 1}})
        for name in ("first", "again", "last")
    ]
    recipe = Recipe("made", "test", {node.id: node for node in (both, *inner)},
                    (Edge("first", "again"), Edge("again", "again"), Edge("again", "last")), ("both",),
                    regions={"root": Region("root", ("both",)), "in": Region("in", ("first",), owner="both")},
                    init={"n": 0})  # fmt: skip
    session = session_of(recipe, {}, None)
    session.breakpoints.add("again", when="who == 1")
    session.run()
    assert [(entry.node, entry.branch) for entry in session.frontier] == [("again", 1), ("again", 0)]
    session.set_next("last")
    session.step()
    assert (session.trace.steps[-1].node_id, session.replay().divergences) == ("last", ())
