from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.magics.recipe_errors import Faults
from tests.magics.magic_texts import TEXT, wrong


def test_a_cell_becomes_a_recipe(shell):
    recipe = shell.run_cell_magic("recipe", "small", TEXT)
    assert shell.user_ns["small"] is recipe
    assert (recipe.name, list(recipe.nodes)) == ("small", ["one", "two"])
    assert shell.run_cell_magic("recipe", "", TEXT) is shell.user_ns["recipe"]


def test_an_invalid_cell_is_reported_without_a_traceback(shell, capsys):
    result = shell.run_cell("%%recipe small\nkind: Recipe\ntopology: 5\n")
    out = capsys.readouterr()
    assert isinstance(result.error_in_exec, nb.RecipeError)
    assert "Traceback" not in out.out + out.err
    assert "where:" in out.out + out.err
    assert "small" not in shell.user_ns


@pytest.mark.parametrize("line", ["5x", "a b", "a.b"])
def test_a_recipe_needs_a_name_that_can_be_a_variable(shell, line):
    assert wrong(shell.run_cell_magic, "recipe", line, TEXT).code == "U401"


def test_an_empty_cell_is_reported(shell):
    assert "no text" in wrong(shell.run_line_magic, "recipe", "small").what


BAD = """metadata: {name: small}
interface: {}
topology:
  - {id: one, type: agnt, agent_ref: a}
  - {id: two, type: agent, agent_ref: "<b>bold</b>", next: thre}
# the end
"""


def faults(text=BAD):
    with pytest.raises(nb.RecipeError) as caught:
        nb.load(text)
    return Faults(text, caught.value.problems)


def test_wrong_lines_are_marked_and_the_problems_are_below():
    actual = repr(faults()).splitlines()
    assert actual[:4] == [
        "     2  interface: {}",
        "     3  topology:",
        ">    4    - {id: one, type: agnt, agent_ref: a}",
        " " * 28 + "^",
    ]
    assert sum(line.startswith(">") for line in actual) == 2
    assert any("R114" in line for line in actual)


def test_the_card_shows_the_text_as_text():
    html = faults()._repr_html_()
    assert "&lt;b&gt;bold" in html
    assert "<b>bold" not in html
    assert html.count('role="alert"') == len(faults()._problems)


def test_a_problem_without_a_line_is_a_card_alone():
    actual = Faults("a\nb", (nb.Problem("R1", "what", "elsewhere", "why", "do"),))
    assert "<pre" not in actual._repr_html_()
    assert repr(actual).startswith("R1: what")


def test_the_cell_fails_with_one_line_below_the_card(shell, capsys):
    result = shell.run_cell(f"%%recipe small\n{BAD}")
    out = capsys.readouterr()
    output = out.out + out.err
    assert isinstance(result.error_in_exec, nb.RecipeError)
    assert ">    4" in output
    assert output.count("R114") == 1
    assert "shown above; nothing was loaded" in output
