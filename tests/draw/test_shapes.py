import re

import pytest

from agentnb.draw.shapes import choose_shape, format_pair, make_outline, measure_around, number, round_corners

SHAPES = [
    "box",
    "diamond",
    "ellipse",
    "hexagon",
    "octagon",
    "parallelogram",
    "trapezium",
    "invtrapezium",
    "house",
    "invhouse",
    "cylinder",
    "component",
    "tab",
    "folder",
    "note",
]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_outline_stays_within_its_size(shape):
    matches = re.findall(
        r"-?\d+(?:\.\d+)?,-?\d+(?:\.\d+)?", re.sub(r"A[\d.]+,[\d.]+ 0 \d ?\d ", "L", make_outline(shape, 100, 60))
    )
    points = [tuple(map(float, point.split(","))) for point in matches]
    assert len(points) >= 3
    assert all(abs(x) <= 54.1 and abs(y) <= 30.1 for x, y in points)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_larger_than_its_text(shape):
    width, height = measure_around(shape, 80, 25)
    assert width > 80
    assert height > 25


def test_a_shape_of_size_zero_can_be_drawn():
    assert make_outline("box", 0, 0).endswith("Z")
    assert round_corners([(0, 0), (0, 0), (0, 0)], 5).endswith("Z")


@pytest.mark.parametrize(("name", "shape"), [("oval", "ellipse"), ("rect", "box"), ("star", "box"), ("tab", "tab")])
def test_every_shape_name_of_graphviz_is_supported(name, shape):
    assert choose_shape(name) == shape


@pytest.mark.parametrize(("value", "text"), [(1.0, "1"), (-0.04, "0"), (2.56, "2.6"), (-3.5, "-3.5")])
def test_numbers_are_formatted_briefly(value, text):
    assert number(value) == text


def test_a_pair_of_numbers_is_formatted():
    assert format_pair((1.25, -2.0)) == "1.2,-2"
