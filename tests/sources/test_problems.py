from __future__ import annotations

from agentnb.errors import Place
from agentnb.sources import problems


def test_a_missing_file_asks_for_the_one_that_is_near():
    problem = problems.no_such_file("tirage.yaml", ["triage.yaml", "other.yaml"], ".")
    assert problem.do == "did you mean 'triage.yaml'?"


def test_a_line_is_shown_short():
    problem = problems.syntax(Place("a.yaml", 7, 1), "x" * 500, "why", "do")
    assert len(problem.what) < 100


def test_a_word_that_is_no_text_is_explained_by_what_yaml_makes_of_it():
    place = Place("a.yaml", 1, 1)
    assert "'no' is false" in problems.unquoted_key("no", place).why
    assert "'on' is true" in problems.unquoted_value("on", place).why
    assert "null" in problems.unquoted_key("~", place).why
    assert problems.unquoted_key("yes", place).do == 'quote it: "yes":'


def test_a_dict_is_not_told_about_quotes():
    assert "YAML" not in problems.unquoted_key("True", Place("<dict>")).why
    assert problems.unquoted_value("True", Place("<dict>")).do == "write 'True'"


def test_a_file_that_is_not_there_is_guessed_by_its_own_name():
    known = ["/agents/of/the/desk/obj.yaml", "/agents/of/the/desk/refunds.yml"]
    assert (
        "did you mean" not in problems.no_such_file("/agents/of/the/desk/nofile.yaml", known, "/agents/of/the/desk").do
    )
    near = problems.no_such_file("/agents/of/the/desk/refund.yaml", known, "/agents/of/the/desk").do
    assert near == "did you mean '/agents/of/the/desk/refunds.yml'?"
