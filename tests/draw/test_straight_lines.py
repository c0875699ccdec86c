from __future__ import annotations

from dataclasses import replace

import pytest

from agentnb.draw.diagram import make_picture
from agentnb.draw.plain_layout import compute_plain_layout
from agentnb.draw.straight_lines import make_direct_route, route_between
from tests.draw.behavior_recipes import shop


def box(name):
    picture = make_picture(shop(), board=False, direction="TB", run=None)
    return replace(picture.boxes[0], name=name, width=100.0, height=40.0)


@pytest.mark.parametrize("end", [(300.0, 200.0), (0.0, 200.0), (300.0, 0.0), (-300.0, -50.0), (0.0, -90.0)])
def test_a_way_leaves_at_one_rim_and_ends_at_the_other(end):
    route = route_between(box("a"), (0.0, 0.0), box("b"), end)
    out, tip = route.points[0], route.tip
    assert len(route.points) == 4
    for spot, middle in ((out, (0.0, 0.0)), (tip, end)):
        across, down = abs(spot[0] - middle[0]), abs(spot[1] - middle[1])
        assert across == pytest.approx(50) or down == pytest.approx(20)
        assert across <= 50.001
        assert down <= 20.001


def test_there_and_back_are_two_ways():
    there = route_between(box("a"), (0.0, 0.0), box("b"), (0.0, 200.0))
    back = route_between(box("b"), (0.0, 200.0), box("a"), (0.0, 0.0))
    assert there.points[1][0] * back.points[1][0] < 0


def test_a_way_to_itself_is_a_loop_at_its_side():
    route = route_between(box("a"), (0.0, 0.0), box("a"), (0.0, 0.0))
    assert max(x for x, _ in route.points) > 50


def test_every_line_that_lies_ready_has_its_way():
    picture = make_picture(shop(), board=False, direction="TB", run=None)
    geometry = compute_plain_layout(picture)
    assert picture.later
    assert all(len(make_direct_route(picture, link, geometry).points) == 4 for link in picture.later)
