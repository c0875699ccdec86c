from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.draw.diagram import make_picture
from agentnb.draw.plain_layout import compute_plain_layout
from agentnb.recipe.model import Edge, Node, Region
from tests.draw.drawn_recipes import DIRECTIONS, diamond, long, picture, recipe, recipes, support


def rectangle(box, spot):
    x, y = spot
    return x - box.width / 2, y - box.height / 2, x + box.width / 2, y + box.height / 2


def overlap(one, other):
    return (
        one[0] < other[2] - 1e-6 and other[0] < one[2] - 1e-6 and one[1] < other[3] - 1e-6 and other[1] < one[3] - 1e-6
    )


def within(inner, outer):
    return all(a >= b - 1e-6 for a, b in zip(inner[:2], outer[:2], strict=True)) and all(
        a <= b + 1e-6 for a, b in zip(inner[2:], outer[2:], strict=True)
    )


def laid_out(shown):
    """The layout with every box as a rectangle, after checking that all is there."""
    geometry = compute_plain_layout(shown)
    assert set(geometry.boxes) == {box.name for box in shown.boxes}
    assert set(geometry.routes) == {link.name for link in shown.links}
    assert set(geometry.areas) == {area.name for area in shown.areas}
    return geometry, {box.name: rectangle(box, geometry.boxes[box.name]) for box in shown.boxes}


@given(recipes(), st.sampled_from(DIRECTIONS))
def test_boxes_do_not_overlap_and_are_inside_their_regions(drawn, direction):
    shown = make_picture(drawn, board=False, direction=direction, run=None)
    geometry, rectangles = laid_out(shown)
    assert not [pair for pair in combinations(rectangles, 2) if overlap(rectangles[pair[0]], rectangles[pair[1]])]
    parents = {area.name: area.parent for area in shown.areas}
    bounds = (0.0, 0.0, geometry.width, geometry.height)
    for box in shown.boxes:
        around, area = set(), box.area
        while area:
            around.add(area)
            area = parents[area]
        assert within(rectangles[box.name], bounds)
        for name, frame in geometry.areas.items():
            if name in around:
                assert within(rectangles[box.name], frame)
            else:
                assert not overlap(rectangles[box.name], frame)


@given(recipes(), st.sampled_from(DIRECTIONS))
def test_regions_are_nested_or_disjoint(drawn, direction):
    shown = make_picture(drawn, board=False, direction=direction, run=None)
    frames = compute_plain_layout(shown).areas
    parents = {area.name: area.parent for area in shown.areas}

    def inside(one, other):
        while one and one != other:
            one = parents[one]
        return one == other

    for one, other in combinations(frames, 2):
        if inside(one, other):
            assert within(frames[one], frames[other])
        elif inside(other, one):
            assert within(frames[other], frames[one])
        else:
            assert not overlap(frames[one], frames[other])


@given(recipes(), st.sampled_from(DIRECTIONS))
def test_edges_start_at_their_source_and_end_at_their_target(drawn, direction):
    shown = make_picture(drawn, board=False, direction=direction, run=None)
    geometry, rectangles = laid_out(shown)

    def near(point, box):
        left, top, right, bottom = rectangles[box]
        return left - 1 <= point[0] <= right + 1 and top - 1 <= point[1] <= bottom + 1

    for link in shown.links:
        route = geometry.routes[link.name]
        assert len(route.points) % 3 == 1
        assert near(route.points[0], link.source)
        assert near(route.tip, link.target)


def test_labels_do_not_cover_boxes_or_each_other():
    for drawn in (diamond(), support()):
        shown = picture(drawn, board=False)
        geometry, rectangles = laid_out(shown)
        labels = {}
        for link in shown.links:
            position = geometry.routes[link.name].label
            assert bool(position) is bool(link.label)
            if position:
                x, y = position
                labels[link.name] = (x - link.label_width / 2, y - 6, x + link.label_width / 2, y + 6)
        assert not [pair for pair in combinations(labels, 2) if overlap(labels[pair[0]], labels[pair[1]])]
        assert not [(a, b) for a, label in labels.items() for b, box in rectangles.items() if overlap(label, box)]


@pytest.mark.parametrize(("direction", "axis", "sign"), [("TB", 1, 1), ("BT", 1, -1), ("LR", 0, 1), ("RL", 0, -1)])
def test_a_chain_grows_in_its_direction(direction, axis, sign):
    chain = recipe([Node(id, "tool") for id in "abc"], [Edge("a", "b"), Edge("b", "c")])
    positions = compute_plain_layout(picture(chain, board=False, direction=direction)).boxes
    distances = [
        sign * (positions[after][axis] - positions[before][axis])
        for before, after in pairwise(("s0", "n0", "n1", "n2"))
    ]
    assert min(distances) > 0


def test_successors_of_a_composite_node_are_below_its_body():
    shown = picture(
        recipe(
            [Node("loop", "loop", bodies=("body",)), Node("in", "tool", scope="body"), Node("after", "tool")],
            [Edge("loop", "after")],
            regions={"body": Region("body", ("in",), "body", "loop")},
        )
    )
    geometry = compute_plain_layout(shown)
    names = {box.id: box.name for box in shown.boxes}
    assert geometry.boxes[names["after"]][1] > geometry.areas["r0"][3]


def test_an_empty_graph_has_an_empty_layout():
    assert (compute_plain_layout(picture(recipe([]))).width, compute_plain_layout(picture(recipe([]))).height) == (
        0.0,
        0.0,
    )


def test_a_recipe_of_300_nodes_is_laid_out_too():
    _, rectangles = laid_out(picture(long(300), board=False))
    assert len(rectangles) == 301
