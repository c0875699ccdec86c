"""The scenario runner: runs scenarios one after another, each in a session of its own.

X416: a scenario's run did not end well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from agentnb.arguments import plain_arguments
from agentnb.clock import Clock
from agentnb.errors import AgentNbError, ExecutionError, Problem, warn_caller
from agentnb.recipe.model import Recipe, Scenario
from agentnb.scenarios.compare import LIKE, ComparisonResult, compare_exactly, compare_texts, find_values
from agentnb.scenarios.definitions import collect_scenarios, copy_expected, find_recipe, find_refusal, unwrap
from agentnb.scenarios.judge import judge_result, remove_judge
from agentnb.scenarios.report import ScenarioReport, ScenarioResult
from agentnb.session import Session
from agentnb.session.checks import check_recipe
from agentnb.text import safe_str
from agentnb.world.fault_injection import Chaos
from agentnb.world.human_input import without_human_input

ENDED: Final = frozenset({"finished", "idle"})  # idle: all work is done, and it listens for further events
Listener = Callable[[ScenarioResult], Any]


@plain_arguments
def run_scenarios(
    recipe: Recipe | Mapping[str, Any] | Any,
    scenarios: Iterable[Scenario | Mapping[str, Any] | Any] | Any = None,
    *,
    llm: Any = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    agents: Mapping[str, Callable[..., Any]] | None = None,
    answers: Any = None,
    chaos: Chaos | Mapping[str, Any] | Any = None,
    seed: int = 0,
    budget: Mapping[str, Any] | None = None,
    fuzzy: float = LIKE,
    clock: Clock | None = None,
    listener: Listener | None = None,
) -> ScenarioReport:
    """Run a recipe's scenarios as its tests, in order, and return the results.

    Each scenario runs in a session of its own, so scripts of answers start over. No person is asked, not even on a
    terminal: a question without a scripted answer times out at once if it has a timeout; otherwise it ends its
    scenario. A scenario passes if its run finishes and the board has the expected values. A failure is that scenario's
    result, and the next one runs; one that requests `code_eval` is refused (X413).

    Args:
        recipe: the result of load(), a RecipeDefinition, or a dict of a recipe.
        scenarios: Scenarios, mappings (id, inputs, expected, compare, about), objects with the fields of a
            SimulationScenario, or SimulationRequests, whose own chaos takes precedence over `chaos`; one alone, or a
            list; by default the recipe's own.
        llm: the model, also for the judge of `llm_judge`, whose node is called "judge".
        agents: coreason's name for `tools`; its entries take precedence.
        chaos: fault injection that delays calls and makes some fail: latency_ms, error_rate, token_throttle. Each
            scenario is affected in different places; the judge is exempt.
        seed: determines random values and where faults are injected.
        budget: the limits of each scenario's session.
        fuzzy: the minimum text similarity of `fuzzy`, 0 to 1; also the minimum score of a judge that returns only a
            score.
        clock: the clock of every session.
        listener: called with each ScenarioResult as soon as it is available.

    Raises:
        ExecutionError: X410, there are no scenarios; X411, two have the same id; X412, one is invalid, or `fuzzy` is
            outside 0 to 1; X415, the chaos is invalid; what a Session refuses.
        RecipeError: the recipe has errors, or a tool is missing.

    Example:
        >>> import networkx as nx
        >>> import agentnb as nb
        >>> graph = nx.DiGraph(name="count")
        >>> graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
        >>> report = nb.run_scenarios(nb.load(graph), [{"id": "one more", "inputs": {"n": 1}, "expected": {"n": 2}}])
        >>> report.ok, report["one more"].steps
        (True, 1)
    """
    recipe = find_recipe(recipe)
    check_recipe(recipe)
    if isinstance(fuzzy, bool) or not isinstance(fuzzy, int | float) or not 0 <= fuzzy <= 1:
        raise ExecutionError(
            Problem("X412", f"fuzzy={fuzzy!r} is not a similarity", "run_scenarios(fuzzy=...)",
                    "it is a number from 0 (anything matches) to 1 (identical)", f"write fuzzy={LIKE}")
        )  # fmt: skip
    rows, strikes = unwrap(scenarios)
    chosen = collect_scenarios(recipe, rows)
    options = {"llm": remove_judge(llm, recipe), "tools": {**(tools or {}), **(agents or {})}, "answers": answers,
               "seed": seed, "budget": budget}  # fmt: skip
    own = {at: Chaos.of(strike, seed) for at, strike in strikes.items()}
    trial = _Trial(recipe, options, llm, Chaos.of(chaos, seed), fuzzy, clock)
    trial.rehearse()
    results = []
    for at, scenario in enumerate(chosen):
        results.append((replace(trial, chaos=own[at]) if at in own else trial).run(scenario))
        listener = _notify(listener, results[-1])
    return ScenarioReport(recipe.name, results)


@dataclass
class _Trial:
    """What all scenarios of one call have in common."""

    recipe: Recipe
    options: dict[str, Any]
    llm: Any
    chaos: Chaos | None
    threshold: float
    clock: Clock | None

    def session(self, scenario: Scenario, **more: Any) -> Session:
        """Return the session for a scenario."""
        chaos = None if self.chaos is None else self.chaos.derive(scenario.id)
        name = f"{self.recipe.name}: {scenario.id}"
        return Session(self.recipe, scenario.inputs, clock=self.clock, name=name, chaos=chaos, **self.options, **more)

    def rehearse(self) -> None:
        """Create a session without inputs, to report errors of the call that would affect every scenario."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # each scenario's own session warns
            self.session(Scenario("", {}), validate_inputs=False)

    def run(self, scenario: Scenario) -> ScenarioResult:
        """Run one scenario and compare its results."""
        if (problem := find_refusal(self.recipe, scenario)) is not None:
            return _make_result(scenario, None, ComparisonResult(passed=False, score=None), problem=problem)
        clock = self.clock or Clock()
        start = clock.ns()
        try:
            expected = copy_expected(scenario)
            session = self.session(scenario)
            with without_human_input():
                session.run()
        except AgentNbError as error:  # its inputs are missing or invalid
            return _make_result(
                scenario, None, ComparisonResult(passed=False, score=None), problem=_combine_problems(error)
            )
        seconds = (clock.ns() - start) / 1e9
        actual = dict(session.board) if expected is None else find_values(expected, session.board)
        compared, problem, reason = ComparisonResult(passed=False, score=None), _find_obstacle(scenario, session), ""
        if problem is None:
            try:
                compared, reason = self.compare_result(scenario, expected, actual, session)
            except AgentNbError as error:  # raised by the judge
                problem = _combine_problems(error)
        return _make_result(scenario, session, compared, expected=expected, actual=actual, seconds=seconds,
                       problem=problem, reason=reason)  # fmt: skip

    def compare_result(
        self, scenario: Scenario, expected: dict[str, Any] | None, actual: dict[str, Any], session: Session
    ) -> tuple[ComparisonResult, str]:
        """Compare as the scenario requests. Without expected values, a judge is used only if `about` is stated."""
        if scenario.compare == "llm_judge" and (expected is not None or scenario.about):
            return judge_result(scenario, expected, actual, session, self.llm, self.clock, self.threshold)
        if expected is None:
            return ComparisonResult(passed=True, score=None), ""
        return (
            compare_texts(expected, actual, self.threshold)
            if scenario.compare == "fuzzy"
            else compare_exactly(expected, actual)
        ), ""


def _make_result(scenario: Scenario, session: Session | None, compared: ComparisonResult, *, problem: Problem | None,
            expected: dict[str, Any] | None = None, actual: dict[str, Any] | None = None, seconds: float = 0.0,
            reason: str = "") -> ScenarioResult:  # fmt: skip
    return ScenarioResult(
        id=scenario.id,
        about=scenario.about,
        compare=scenario.compare,
        passed=compared.passed,
        score=compared.score,
        status="failed" if session is None else str(session.status),
        steps=0 if session is None else session.position,
        seconds=seconds,
        problem=problem,
        expected=expected,
        actual=actual or {},
        mismatches=compared.mismatches,
        reason=safe_str(reason),
        session=session,
    )


def _find_obstacle(scenario: Scenario, session: Session) -> Problem | None:
    """Return what prevented a run from ending; None if it has ended."""
    status = session.status
    where = f"scenario {scenario.id!r}, after step {session.position}"
    if status in ENDED:
        return None
    if status == "failed":
        return session.error
    if status == "waiting":
        names = ", ".join(repr(pending.node) for pending in session.pending)
        return Problem("X416", f"{names} waits for a person", where,
                       "no scripted answers are left, and scenarios never ask a person",
                       "pass answers={NODE: [TEXT]} to run_scenarios, or a script file with --script")  # fmt: skip
    if status == "exhausted":
        limit = (session.trace.outcome or {}).get("limit")
        return Problem("X416", f"the run has used up its {limit}", where, "it did not finish within the limit",
                       f"find out why, or raise the limit: run_scenarios(budget={{{limit!r}: ...}})")  # fmt: skip
    return Problem("X416", f"the run did not finish: it is {status}", where, "it was stopped",
                   "step through the result's session to see where")  # fmt: skip


def _combine_problems(error: AgentNbError) -> Problem:
    """Return the problems of an error combined into one."""
    first = error.problems[0]
    whats = "; ".join(problem.what for problem in error.problems)
    return Problem(first.code, whats, first.where, first.why, first.do)


def _notify(listener: Listener | None, result: ScenarioResult) -> Listener | None:
    """Call a listener and return it; None if it raises: it is then removed."""
    if listener is None:
        return None
    try:
        listener(result)
    except Exception as error:  # noqa: BLE001  (a spectator cannot stop the play)
        warn_caller(f"the listener raised {type(error).__name__} and was removed: {error}")
        return None
    return listener
