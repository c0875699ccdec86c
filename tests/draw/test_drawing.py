import xml.etree.ElementTree as ET
from base64 import b64decode

import pytest

from agentnb.draw import drawing as module
from agentnb.draw.dot import draw_recipe
from agentnb.errors import AgentNbError
from agentnb.recipe.model import Edge, Node
from tests.draw.drawn_recipes import HOSTILE, diamond, groups, hostile, long, recipe, support, support_run

ALL = {"image/svg+xml", "image/png", "text/plain"}


@pytest.fixture
def plain(monkeypatch):
    monkeypatch.setenv("AGENTNB_LAYOUT", "plain")


def test_a_recipe_draws_itself(plain):
    drawing = support().draw(board=False, direction="LR")
    assert drawing.picture.direction == "LR"
    assert drawing.keys == ()
    assert support().draw().keys[:2] == ("ticket", "category")


def test_the_text_form_has_the_same_content(plain):
    text = draw_recipe(support(), run=support_run()).text
    assert text.startswith("support (coreason): 11 nodes, 17 edges; starts at classify")
    assert "> critic (evaluator) reads draft writes critique  <current>" in text
    assert "      -> sorry [error: ToolError] (error)" in text
    assert "write (llm)" in text
    assert "<next, ×2>" in text


def test_a_name_cannot_break_a_line_of_the_text(plain):
    lines = draw_recipe(hostile()).text.splitlines()
    assert len(lines) == 1 + len(HOSTILE) + len(HOSTILE)
    assert not [line for line in lines if "\x1b" in line or "\u202e" in line]


def test_the_text_form_of_long_recipes_is_truncated(plain):
    assert draw_recipe(long(70)).text.splitlines()[-1] == "  and 10 more nodes"


def test_its_repr_is_one_line(plain):
    assert repr(draw_recipe(diamond())) == "<Drawing of 'sample': 4 nodes, 4 edges>"


@pytest.mark.parametrize(
    ("suffix", "start"), [(".svg", "<svg"), (".dot", "digraph"), (".mmd", "flowchart"), (".SVG", "<svg")]
)
def test_the_format_of_a_saved_file_follows_from_its_suffix(plain, tmp_path, suffix, start):
    path = draw_recipe(hostile()).save(tmp_path / f"picture{suffix}")
    assert path.read_text(encoding="utf-8").startswith(start)
    assert draw_recipe(diamond()).save(str(path)) == path


@pytest.mark.needs_dot
def test_it_is_saved_as_png(tmp_path):
    path = draw_recipe(hostile(), run=support_run()).save(tmp_path / "picture.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_another_suffix_is_reported(plain, tmp_path):
    with pytest.raises(AgentNbError) as caught:
        draw_recipe(diamond()).save(tmp_path / "picture.svgg")
    assert caught.value.problems[0].code == "U201"
    assert ".svg" in caught.value.problems[0].do
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs_dot
def test_a_notebook_gets_every_form(monkeypatch):
    monkeypatch.delenv("AGENTNB_LAYOUT", raising=False)
    bundle = draw_recipe(support(), run=support_run())._repr_mimebundle_()
    assert set(bundle) == ALL
    assert ET.fromstring(bundle["image/svg+xml"]).get("data-layout") == "dot"
    assert b64decode(bundle["image/png"]).startswith(b"\x89PNG")


def test_without_graphviz_the_drawing_is_svg(plain):
    assert set(draw_recipe(support())._repr_mimebundle_()) == ALL - {"image/png"}


def test_a_large_png_is_omitted(monkeypatch):
    monkeypatch.setattr("agentnb.draw.render.render_png", lambda *_, **__: b"\x89PNG" * 200_000)
    assert "image/png" not in draw_recipe(diamond())._repr_mimebundle_()
    monkeypatch.setattr("agentnb.draw.render.render_png", lambda *_, **__: b"\x89PNG")
    assert "image/png" in draw_recipe(diamond())._repr_mimebundle_()
    assert "image/png" not in draw_recipe(long(module._MOST_BOXES))._repr_mimebundle_()


def test_a_page_may_request_some_formats_only(plain):
    drawing = draw_recipe(diamond())
    assert set(drawing._repr_mimebundle_(include={"text/plain"})) == {"text/plain"}
    assert set(drawing._repr_mimebundle_(exclude={"image/svg+xml"})) == {"text/plain"}


def test_the_drawing_for_a_live_page_has_a_margin_and_no_background(plain):
    drawing = draw_recipe(diamond(), spare=3)
    assert "<style>" in drawing.svg
    assert "<style>" not in drawing.bare_svg
    assert len(groups(drawing.bare_svg, "spare")) == 3


def test_an_invalid_recipe_can_be_drawn(plain):
    drawing = draw_recipe(recipe([Node("a", "tool")], [Edge("a", "gone")], ("nowhere",)))
    assert [group.get("data-node") for group in groups(drawing.svg, "node")] == ["a", "gone"]
    assert "-> gone" in drawing.text
