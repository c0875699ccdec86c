"""scenarios: a recipe's own tests: each is run in a session of its own, and what came out is compared."""

from agentnb.scenarios.report import ScenarioReport, ScenarioResult
from agentnb.scenarios.runner import run_scenarios

__all__ = ["ScenarioReport", "ScenarioResult", "run_scenarios"]
