from __future__ import annotations

from agentnb.errors import Place
from agentnb.sources import faults


def test_a_missing_file_asks_for_the_one_that_is_near():
    problem = faults.no_such_file("tirage.yaml", ["triage.yaml", "other.yaml"], ".")
    assert problem.do == "did you mean 'triage.yaml'?"


def test_a_line_is_shown_short():
    problem = faults.syntax(Place("a.yaml", 7, 1), "x" * 500, "why", "do")
    assert len(problem.what) < 100


def test_a_word_that_is_no_text_is_explained_by_what_yaml_makes_of_it():
    place = Place("a.yaml", 1, 1)
    assert "'no' is false" in faults.unquoted_key("no", place).why
    assert "'on' is true" in faults.unquoted_value("on", place).why
    assert "null" in faults.unquoted_key("~", place).why
    assert faults.unquoted_key("yes", place).do == 'quote it: "yes":'


def test_a_dict_is_not_told_about_quotes():
    assert "YAML" not in faults.unquoted_key("True", Place("<dict>")).why
    assert faults.unquoted_value("True", Place("<dict>")).do == "write 'True'"
