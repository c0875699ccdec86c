"""What is shown of results, and that no secret is."""

from __future__ import annotations

import pandas as pd
import pytest

import agentnb as nb
from agentnb.clock import FrozenClock
from agentnb.scenarios.report import COLUMNS
from tests.scenarios.scenario_recipes import ran, scenario, writes

RECIPE = writes(text="Good evening", n=1)


@pytest.fixture
def report():
    rows = [
        scenario({"n": 1}, id="right", about="As it should be"),
        scenario({"n": 2, "m": 3}, id="wrong"),
        scenario(id="ends"),
        scenario({"text": "Good morning"}, "fuzzy", id="near"),
    ]
    return nb.run_scenarios(RECIPE, rows, clock=FrozenClock())


def test_the_report_counts_results(report):
    assert (report.ok, report.passed, report.failed, report.counts) == (False, 2, 2, "2 passed, 2 failed")
    assert nb.run_scenarios(RECIPE, [scenario()]).counts == "1 passed"


def test_the_report_is_a_sequence_with_access_by_id(report):
    assert len(report) == 4
    assert [row.id for row in report] == ["right", "wrong", "ends", "near"]
    assert report[1] is report["wrong"]
    assert report[:2] == report.results[:2]
    assert report["right"] in report
    with pytest.raises(KeyError):
        report["rigth"]


def test_the_report_is_a_dataframe(report):
    frame = report.to_frame()
    assert tuple(frame.columns) == COLUMNS
    assert frame["scenario"].tolist() == ["right", "wrong", "ends", "near"]
    assert frame["passed"].tolist() == [True, False, True, False]
    assert frame["score"].tolist() == [1.0, 0.0, pd.NA, 0.75]
    assert frame["score"].mean() == pytest.approx(1.75 / 3)
    assert frame["problem"].isna().tolist() == [True, False, True, False]
    assert frame["expected"][1] == {"n": 2, "m": 3}
    assert frame["actual"].tolist() == [{"n": 1}, {"n": 1}, {"text": "Good evening", "n": 1}, {"text": "Good evening"}]
    assert frame["steps"].sum() == 4


def test_a_frame_without_scores_has_no_values_for_them():
    frame = nb.run_scenarios(RECIPE, [scenario()]).to_frame()
    assert frame["score"].dtype == "Float64"
    assert frame["score"].isna().all()


def test_the_report_has_a_text_form(report):
    head, *lines = repr(report).splitlines()
    assert head == "<ScenarioReport 'one': 2 passed, 2 failed>"
    assert [line.split()[:2] for line in lines] == [
        ["passed", "right"],
        ["FAILED", "wrong"],
        ["passed", "ends"],
        ["FAILED", "near"],
    ]
    assert lines[1].endswith("n: expected 2, found 1; m: expected 3, but it is not there")
    assert repr(report["wrong"]).startswith("<ScenarioResult FAILED wrong 0.00 0.00 s n: expected 2")
    assert lines[3].endswith("text: expected 'Good morning', found 'Good evening', 0.75 alike")


def test_many_mismatches_are_reported_by_the_first_three():
    result = ran(RECIPE, scenario(dict.fromkeys("abcde", 1)))
    assert result.description.endswith("; and 2 more")
    assert len(result.mismatches) == 5


def test_the_report_has_an_html_form(report):
    html = report._repr_html_()
    assert html.count("✓ passed") == 2
    assert html.count("✗ failed") == 2
    assert "As it should be" in html
    assert "n: expected 2, found 1" in html
    assert "background" not in html  # it is read on white and on black


def test_html_is_escaped():
    evil = "<img src=x onerror=alert(1)>"
    rows = [scenario({evil: evil}, id=evil, about=evil)]
    html = nb.run_scenarios(nb.load(RECIPE, name=evil), rows)._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html


def test_a_problem_is_shown_with_its_remedy():
    result = nb.run_scenarios(RECIPE, [scenario(None, "llm_judge", about="It is polite")])
    assert "X414" in result._repr_html_()
    assert "run_scenarios(recipe, llm=...)" in result._repr_html_()


def test_secrets_are_masked_everywhere_in_the_report():
    recipe = writes(api_key="sk-board-4711", text="key sk-board-4711")
    rows = [scenario({"api_key": "sk-expected", "text": "none"}, inputs={"token": "sk-input-42", "a": "sk-input-42"})]
    report = nb.run_scenarios(recipe, [*rows, scenario(id="all", inputs={"token": "sk-input-42"})])
    seen = (
        repr(report) + repr(report[0]) + report._repr_html_() + report.to_frame().to_json() + str(report[0].mismatches)
    )
    assert "api_key" in seen
    assert "sk-" not in seen
    assert report[0].expected["api_key"] == "sk-expected"  # in memory the true values stay


def test_control_sequences_of_a_file_are_escaped():
    result = ran(RECIPE, scenario({"n": 2}, id="a\x1b[31m\nb"))
    assert "\x1b" not in str(result)
    assert "\n" not in str(result)
