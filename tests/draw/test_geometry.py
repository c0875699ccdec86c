import json

import pytest

from agentnb.draw.geometry import make_skeleton, read_geometry
from tests.draw.drawn_recipes import HOSTILE, hostile, long, picture, support

LAYOUT = {
    "bb": "0,0,200,100",
    "objects": [
        {"name": "cluster_r0", "bb": "10,20,60,90"},
        {"name": "n0", "pos": "30,40"},
    ],
    "edges": [
        {"name": "e0", "pos": "e,5,6 1,2 3,4 5,6 7,8", "lp": "50,60"},
        {"name": "e1", "pos": "s,0,0 1,2 3,4 5,6 7,8"},
    ],
}


def test_no_text_of_the_recipe_reaches_the_layout_program():
    text = make_skeleton(picture(hostile()))
    assert not [word for word in HOSTILE if len(word) > 5 and word in text]
    assert text.isascii()


def test_the_skeleton_does_not_change_with_the_run_or_the_board():
    assert make_skeleton(picture(support())) == make_skeleton(picture(support(), board=False, spare=9))


def test_the_skeleton_has_every_part():
    shown = picture(support())
    text = make_skeleton(shown)
    for link in shown.links:
        assert f"{link.source} -> {link.target} [name={link.name}" in text
    assert text.count("subgraph cluster_") == 2
    assert "rankdir=TB" in text
    assert "style=invis" in text


def test_large_graphs_are_laid_out_with_less_effort():
    assert "nslimit" not in make_skeleton(picture(support()))
    assert "nslimit" in make_skeleton(picture(long(400)))
    assert "splines=line" in make_skeleton(picture(support()), cheap=True)


def test_the_y_axis_of_a_layout_points_down():
    geometry = read_geometry(json.dumps(LAYOUT), "dot")
    assert (geometry.width, geometry.height, geometry.layout) == (200, 100, "dot")
    assert geometry.boxes == {"n0": (30, 60)}
    assert geometry.areas == {"r0": (10, 10, 60, 80)}
    assert geometry.routes["e0"].tip == (5, 94)
    assert geometry.routes["e0"].points == ((1, 98), (3, 96), (5, 94), (7, 92))
    assert geometry.routes["e0"].label == (50, 40)
    assert geometry.routes["e1"].tip == (7, 92)
    assert geometry.routes["e1"].label is None


@pytest.mark.parametrize("text", ["{}", "[]", "null", "no", json.dumps({"bb": "0,0,1,1", "edges": [{"name": "e0"}]})])
def test_an_invalid_layout_is_rejected(text):
    with pytest.raises(ValueError, match=r".+"):
        read_geometry(text, "dot")
