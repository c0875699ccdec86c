from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.draw.edge_routes import PlacedBox, make_loop_route, make_route

ABOVE, BELOW = PlacedBox(100, 20, 80, 40, "box"), PlacedBox(300, 220, 80, 40, "box")
FIRST, LAST = (0.0, 40.0), (200.0, 240.0)


@pytest.mark.parametrize("shape", ["box", "diamond", "ellipse"])
def test_a_line_runs_from_rim_to_rim(shape):
    one, other = ABOVE._replace(shape=shape), BELOW._replace(shape=shape)
    route = make_route(one, other, FIRST, [], LAST, None, bare=False)
    x, y = route.points[0]
    assert y == pytest.approx(one.y + one.rim(x))
    x, y = route.tip
    assert y == pytest.approx(other.y - other.rim(x))


def test_upwards_too():
    route = make_route(BELOW, ABOVE, LAST, [], FIRST, None, bare=False)
    assert route.points[0][1] == 200
    assert route.tip[1] == 40


@given(st.lists(st.floats(0, 400), min_size=1, max_size=4))
def test_a_line_never_swings_out_beyond_its_bends(xs):
    bends = [(x, (60.0 + 30 * at, 70.0 + 30 * at)) for at, x in enumerate(xs)]
    route = make_route(ABOVE, BELOW, FIRST, bends, LAST, None, bare=False)
    low, high = min([*xs, 76.0]), max([*xs, 324.0])
    assert all(low - 0.1 <= x <= high + 0.1 for x, _ in route.points)
    heights = [y for _, y in route.points]
    assert all(before <= after + 1e-6 for before, after in pairwise(heights))


def test_a_label_stands_half_way_where_there_is_no_bend():
    route = make_route(ABOVE, BELOW, FIRST, [], LAST, None, bare=True)
    assert 40 < route.label[1] < 200
    assert make_route(ABOVE, BELOW, FIRST, [], LAST, (1.0, 2.0), bare=False).label == (1.0, 2.0)


@pytest.mark.parametrize("shape", ["box", "ellipse"])
def test_a_loop_leaves_and_enters_at_the_right(shape):
    route = make_loop_route(ABOVE._replace(shape=shape), 30, labelled=True)
    assert len(route.points) == 4
    assert min(x for x, _ in route.points) >= ABOVE.x
    assert route.label[0] > ABOVE.x + ABOVE.width / 2
    assert make_loop_route(ABOVE, 0, labelled=False).label is None
