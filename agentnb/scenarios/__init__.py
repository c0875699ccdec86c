"""Scenarios: a recipe's own tests. Each runs in a session of its own, and its results are compared."""

from agentnb.scenarios.report import ScenarioReport, ScenarioResult
from agentnb.scenarios.runner import run_scenarios

__all__ = ["ScenarioReport", "ScenarioResult", "run_scenarios"]
