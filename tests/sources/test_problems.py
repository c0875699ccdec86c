from __future__ import annotations

from agentnb.errors import Place
from agentnb.sources import problems


def test_a_missing_file_has_a_suggestion():
    problem = problems.make_missing_file_problem("tirage.yaml", ["triage.yaml", "other.yaml"], ".")
    assert problem.do == "did you mean 'triage.yaml'?"


def test_a_long_line_is_shortened():
    problem = problems.make_syntax_problem(Place("a.yaml", 7, 1), "x" * 500, "why", "do")
    assert len(problem.what) < 100


def test_a_word_that_yaml_converts_is_explained():
    place = Place("a.yaml", 1, 1)
    assert "'no' is false" in problems.make_unquoted_key_problem("no", place).why
    assert "'on' is true" in problems.make_unquoted_value_problem("on", place).why
    assert "null" in problems.make_unquoted_key_problem("~", place).why
    assert problems.make_unquoted_key_problem("yes", place).do == 'quote it: "yes":'


def test_a_dict_has_no_advice_about_quotes():
    assert "YAML" not in problems.make_unquoted_key_problem("True", Place("<dict>")).why
    assert problems.make_unquoted_value_problem("True", Place("<dict>")).do == "write 'True'"


def test_a_missing_file_is_suggested_by_its_file_name():
    known = ["/agents/of/the/desk/obj.yaml", "/agents/of/the/desk/refunds.yml"]
    assert (
        "did you mean"
        not in problems.make_missing_file_problem("/agents/of/the/desk/nofile.yaml", known, "/agents/of/the/desk").do
    )
    near = problems.make_missing_file_problem("/agents/of/the/desk/refund.yaml", known, "/agents/of/the/desk").do
    assert near == "did you mean '/agents/of/the/desk/refunds.yml'?"
