from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.draw.diagram import make_picture
from agentnb.draw.edge_routes import PlacedBox, make_direct_route, make_loop_route, make_route, route_between
from agentnb.draw.plain_layout import compute_plain_layout
from tests.draw.behavior_recipes import shop

ABOVE, BELOW = PlacedBox(100, 20, 80, 40, "box"), PlacedBox(300, 220, 80, 40, "box")
FIRST, LAST = (0.0, 40.0), (200.0, 240.0)


@pytest.mark.parametrize("shape", ["box", "diamond", "ellipse"])
def test_a_line_runs_from_border_to_border(shape):
    one, other = ABOVE._replace(shape=shape), BELOW._replace(shape=shape)
    route = make_route(one, other, FIRST, [], LAST, None, bare=False)
    x, y = route.points[0]
    assert y == pytest.approx(one.y + one.compute_boundary(x))
    x, y = route.tip
    assert y == pytest.approx(other.y - other.compute_boundary(x))


def test_a_line_can_run_upwards():
    route = make_route(BELOW, ABOVE, LAST, [], FIRST, None, bare=False)
    assert route.points[0][1] == 200
    assert route.tip[1] == 40


@given(st.lists(st.floats(0, 400), min_size=1, max_size=4))
def test_a_curve_stays_within_its_bends(xs):
    bends = [(x, (60.0 + 30 * at, 70.0 + 30 * at)) for at, x in enumerate(xs)]
    route = make_route(ABOVE, BELOW, FIRST, bends, LAST, None, bare=False)
    low, high = min([*xs, 76.0]), max([*xs, 324.0])
    assert all(low - 0.1 <= x <= high + 0.1 for x, _ in route.points)
    heights = [y for _, y in route.points]
    assert all(before <= after + 1e-6 for before, after in pairwise(heights))


def test_without_bends_a_label_is_at_the_middle():
    route = make_route(ABOVE, BELOW, FIRST, [], LAST, None, bare=True)
    assert 40 < route.label[1] < 200
    assert make_route(ABOVE, BELOW, FIRST, [], LAST, (1.0, 2.0), bare=False).label == (1.0, 2.0)


@pytest.mark.parametrize("shape", ["box", "ellipse"])
def test_a_loop_leaves_and_enters_at_the_right(shape):
    route = make_loop_route(ABOVE._replace(shape=shape), 30, labeled=True)
    assert len(route.points) == 4
    assert min(x for x, _ in route.points) >= ABOVE.x
    assert route.label[0] > ABOVE.x + ABOVE.width / 2
    assert make_loop_route(ABOVE, 0, labeled=False).label is None


def box(name):
    picture = make_picture(shop(), board=False, direction="TB", run=None)
    return replace(picture.boxes[0], name=name, width=100.0, height=40.0)


@pytest.mark.parametrize("end", [(300.0, 200.0), (0.0, 200.0), (300.0, 0.0), (-300.0, -50.0), (0.0, -90.0)])
def test_a_route_starts_and_ends_at_the_borders(end):
    route = route_between(box("a"), (0.0, 0.0), box("b"), end)
    out, tip = route.points[0], route.tip
    assert len(route.points) == 4
    for point, middle in ((out, (0.0, 0.0)), (tip, end)):
        across, down = abs(point[0] - middle[0]), abs(point[1] - middle[1])
        assert across == pytest.approx(50) or down == pytest.approx(20)
        assert across <= 50.001
        assert down <= 20.001


def test_opposite_edges_have_separate_routes():
    straight = route_between(box("a"), (0.0, 0.0), box("b"), (0.0, 200.0))
    back = route_between(box("b"), (0.0, 200.0), box("a"), (0.0, 0.0))
    assert straight.points[1][0] * back.points[1][0] < 0


def test_an_edge_to_its_own_node_is_a_loop_at_the_side():
    route = route_between(box("a"), (0.0, 0.0), box("a"), (0.0, 0.0))
    assert max(x for x, _ in route.points) > 50


def test_every_prepared_line_has_a_route():
    picture = make_picture(shop(), board=False, direction="TB", run=None)
    geometry = compute_plain_layout(picture)
    assert picture.later
    assert all(len(make_direct_route(picture, link, geometry).points) == 4 for link in picture.later)
