import subprocess

import pytest

from agentnb.draw.dot import draw_recipe, quote_dot, to_markup
from agentnb.draw.style import COLORS
from agentnb.errors import AgentNbError
from tests.draw.drawn_recipes import DIRECTIONS, HOSTILE, diamond, hostile, hostile_run, recipe, support, support_run


def run_dot(dot, text, form="json0"):
    done = subprocess.run([dot, f"-T{form}"], input=text.encode(), capture_output=True, check=True, timeout=30)
    assert done.stderr == b""
    return done.stdout.decode()


def test_each_kind_of_node_and_edge_has_one_style():
    text = draw_recipe(support()).dot
    assert "shape=hexagon" in text
    assert "shape=parallelogram" in text
    assert f'color="{COLORS["failed"]}"' in text
    assert "style=dotted" in text
    assert "style=invis" in text
    assert text.count("subgraph cluster_") == 2


def test_a_run_changes_colors_and_text_but_not_the_boxes():
    def sizes(text):
        return [word for word in text.split() if word.startswith(("width=", "height=")) and "TD" not in word]

    before, after = draw_recipe(support()).dot, draw_recipe(support(), run=support_run()).dot
    assert sizes(before)[:20] == sizes(after)[:20]
    assert COLORS["accent-fill"] in after
    assert COLORS["accent-fill"] not in before
    assert "&#160;12.5" in after
    assert "sk-abc" not in after


def test_the_board_is_a_table_with_one_row_per_key_and_lines_to_its_users():
    text = draw_recipe(diamond()).dot
    assert text.count("<TABLE") == 1
    assert text.count("<TR>") == 6
    assert "board -> n3" in text
    assert "n0 -> board" in text
    assert "board" not in draw_recipe(diamond(), board=False).dot


@pytest.mark.needs_dot
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("run", [None, hostile_run()])
def test_graphviz_reads_whatever_is_in_a_recipe(dot, direction, run):
    shown = run_dot(dot, draw_recipe(hostile(), direction=direction, run=run).dot, "svg")
    assert "<script" not in shown


@pytest.mark.needs_dot
def test_an_empty_recipe_is_valid_dot(dot):
    assert "Blackboard" in run_dot(dot, draw_recipe(recipe([])).dot, "svg")


@pytest.mark.needs_dot
@pytest.mark.parametrize("text", HOSTILE)
def test_dot_strings_are_quoted_exactly(dot, text):
    from graphviz import Digraph

    graph = Digraph()
    graph.node("a", label=quote_dot(text), shape="plain")
    shown = run_dot(dot, graph.source, "svg")
    assert "<script" not in shown
    assert "<b>" not in shown


def test_markup_is_escaped():
    assert to_markup('<b a="x">\\N') == "&lt;b a=&quot;x&quot;&gt;\\\\N"


@pytest.mark.parametrize("direction", ["up", "tb", ""])
def test_an_unknown_direction_is_reported(direction):
    with pytest.raises(AgentNbError) as caught:
        draw_recipe(diamond(), direction=direction)
    assert caught.value.problems[0].code == "U205"
