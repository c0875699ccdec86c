from __future__ import annotations

from tests.engine.graph_shapes import begun, branches, step


def test_a_frame_knows_its_enclosing_frames():
    run = branches().run()
    step(run)
    root, one, two = run.frames.values()
    assert (one.is_within(root), one.is_within(one), root.is_within(one), one.is_within(two)) == (
        True,
        True,
        False,
        False,
    )
    assert (root.depth, one.depth) == (0, 1)


def test_a_branch_is_a_separate_lane_and_a_body_is_not():
    run = branches().run()
    step(run)
    root, one, two = run.frames.values()
    assert (root.lane, one.lane, two.lane) == (root, one, two)
    run = begun("nested")
    for _ in range(2):
        step(run)
    root, inside = run.frames.values()
    assert inside.lane is root


def test_an_activation_has_its_phase_and_its_cost():
    run = branches().run()
    first = run.find_activation(run.frontier()[0])
    assert (first.node.id, first.purpose, first.cost, first.quick) == ("both", 0, 1, True)
    step(run)
    inner = run.find_activation(run.frontier()[0])
    assert (inner.quick, inner.frame.row.branch, inner.scope.name) == (False, 0, "one@1.0")


def test_the_successors_of_a_simple_activation_are_computed_once():
    run = begun("nested")
    activation = run.find_activation(run.frontier()[0])
    assert activation.next == -2
    step(run)
    assert run.find_activation(activation.next).node.id == "inside"
