"""The entry point of symphony: AgentExecutor(config).execute_task(task). The loop is that of the session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import zip_longest
from typing import Any

from agentnb.board.values import thaw
from agentnb.dialects.symphony.loader import make_recipe
from agentnb.dialects.symphony.parts.llm_handler import LLMHandler
from agentnb.dialects.symphony.parts.results import (
    AgentResult,
    TaskMetrics,
    TaskOutcome,
    Times,
    to_tool_executed,
    to_usage,
)
from agentnb.dialects.symphony.schema import AgentConfig, to_config
from agentnb.errors import ExecutionError, Problem, RecipeError, format_advice, with_article
from agentnb.session import Session
from agentnb.session.state import get_state
from agentnb.text import safe_repr
from agentnb.trace import SimulationStep, SimulationTrace
from agentnb.world.agents import Agent
from agentnb.world.llm.decision import to_text
from agentnb.world.tools.registry import ToolRegistry
from agentnb.world.tools.tool_config import ToolConfig


class AgentExecutor:
    """An agent that executes tasks: `execute_task` runs one, `session` steps one.

    It can also be used as a tool, a function or an agent in recipes of any dialect: `Session(recipe, tools={"support":
    executor})`, or as a node's `function`. Its steps are then inside that node.

    Args:
        config: an AgentConfig, or a mapping of its fields.
        llm: an LLMHandler, a client of agentnb.world.llm, a callable (LLMRequest -> LLMResponse, text or dict), a
            script, or "provider:model"; default: the shared LLMHandler.
        tools: a ToolRegistry, or a mapping name -> ToolConfig or function; default: the shared registry.
        simulated: answers for sessions without a model: strings or mappings; each request gets the next one, and the
            last one is repeated.

    Raises:
        RecipeError: the config has errors.
        ExecutionError: the model is not valid.

    Example:
        >>> config = AgentConfig(name="Echo", description="repeats", task="Repeat what is said")
        >>> agent = AgentExecutor(config, llm=lambda request: request.messages[-1].content)
        >>> agent.execute_task("Hello").result.response
        'Hello'
    """

    def __init__(self, config: Any, llm: Any = None, tools: Any = None, *, simulated: Sequence[Any] = ()) -> None:
        self.config = to_config(config)
        self.tools = to_registry(tools)
        self.llm = _to_handler(llm, self.config)
        self.recipe = make_recipe(self.config, Agent(self.llm, self.tools), simulated=tuple(simulated))
        self._session: Session | None = None

    @property
    def trace(self) -> SimulationTrace | None:
        """The trace of the last task; None before the first."""
        return None if self._session is None else self._session.trace

    def session(self, task: str, **options: Any) -> Session:
        """Return a session before the first step of a task; `options` are those of Session.

        If neither the executor nor the shared LLMHandler has a model, it is simulated, as in every session.

        Raises:
            RecipeError: R206, the task is not a string.
        """
        if self.llm is None and "llm" not in options and LLMHandler.get_instance().known:
            options["llm"] = LLMHandler.get_instance()
        return Session(self.recipe, {"task": task}, **options)

    def execute_task(self, task: str) -> AgentResult:
        """Execute a task and return its result. A failure is a result without success.

        Only a KeyboardInterrupt is raised.
        """
        try:
            session = self._session = self._create_session(task)
            session.run()
            return make_result(session)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  (any error becomes a result)
            return self._make_failure(task, error)

    async def aexecute_task(self, task: str) -> AgentResult:
        """Like `execute_task`, for async code; cancelling the awaiting task cancels this one."""
        try:
            session = self._session = self._create_session(task)
            await session.arun()
            return make_result(session)
        except (Exception, asyncio.CancelledError) as error:
            own = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and own is not None and own.cancelling():
                raise
            return self._make_failure(task, error)

    def __call__(self, task: str = "", **inputs: Any) -> str:
        """Execute a task and return the answer, for callers that cannot nest a session in a node.

        Raises:
            ExecutionError: the agent has not succeeded.
        """
        text = "\n".join(f"{name}: {value}" for name, value in inputs.items())
        done = self.execute_task(task or text)
        if not done.success:
            raise ExecutionError(f"{self.config.name}: {done.error}")
        return done.result.response

    def __repr__(self) -> str:
        """Return one line: the agent's name and its tools."""
        return f"<AgentExecutor {safe_repr(self.config.name, 200)}: {len(self.config.tools)} tools>"

    def _create_session(self, task: str) -> Session:
        """Return the session of a task, with a model, or with a handler that reports that it has none."""
        return self.session(task, **({} if self.llm is not None else {"llm": LLMHandler.get_instance()}))

    def _make_failure(self, task: Any, error: BaseException) -> AgentResult:
        sorry = f"Sorry: {self.config.name} could not work on the task {_to_one_line(task)}."
        outcome = TaskOutcome(sorry, agent=self.config.name, fallback=True)
        return AgentResult(success=False, result=outcome, error=format_advice(error) or type(error).__name__)


def _to_one_line(task: Any) -> str:
    """Return a task as one line, whatever its type."""
    try:
        return safe_repr(task)
    except Exception:  # noqa: BLE001  (it is not a text, and its own code fails)
        return f"that is {with_article(type(task).__name__)}"


def _to_handler(llm: Any, config: AgentConfig) -> LLMHandler | None:
    """Return the client for an agent's model; None leaves the choice to the session, or to the shared handler.

    A config with a key gets a separate provider.
    """
    if llm is None and config.model.api_key is not None:
        own = LLMHandler()
        own.register_provider({"provider": "openai", **config.model.settings})
        return own
    return None if llm is None else LLMHandler.of(llm)


def to_registry(tools: Any) -> ToolRegistry:
    """Return a registry: unchanged, the shared one for None, or a new one from a mapping or a list.

    Raises:
        RecipeError: R114, the value is not a registry, a mapping or a list; another code if a tool is invalid.
    """
    if tools is None:
        return ToolRegistry.get_instance()
    if isinstance(tools, ToolRegistry):
        return tools
    if not isinstance(tools, Iterable) or isinstance(tools, str | bytes):
        raise RecipeError(_make_tools_problem(tools))
    registry = ToolRegistry()
    items = tools.items() if isinstance(tools, Mapping) else ((ToolConfig.of(None, tool).name, tool) for tool in tools)
    for name, tool in items:
        registry.register_tool(name, tool)
    return registry


def _make_tools_problem(tools: Any) -> Problem:
    """R114: a value is not valid there."""
    return Problem("R114", f"the tools are {with_article(type(tools).__name__)}", "AgentExecutor(config, llm, tools)",
                   "expected a ToolRegistry, a mapping from names to tools, or a list",
                   "pass one of these")  # fmt: skip


def make_result(session: Session) -> AgentResult:
    """Return the result of a session's task, from its trace and its blackboard."""
    board, trace = session.board, session.trace
    measured, usage = _measure_between(trace.steps), to_usage(board.get("usage"))
    result = thaw(get_state(session).run.root.scope.data["result"]) if "result" in board else None
    if session.status != "finished" or not isinstance(result, Mapping):
        name = session.recipe.name
        sorry = f"Sorry: {name} could not finish the task {safe_repr(board.get('task'))}."
        outcome = TaskOutcome(sorry, agent=name, token_usage=usage, timestamp=measured.end_time, fallback=True)
        metrics = TaskMetrics(**measured, llm_usage=usage)
        return AgentResult(success=False, result=outcome, error=_explain_unfinished(session), metrics=metrics)
    tool_steps = [
        step for step in trace.steps if step.kind == "use" or (step.kind == "pick" and step.status == "error")
    ]
    listed = [each for each in result.get("tools_executed") or () if isinstance(each, Mapping)]  # or as it was edited
    tools = tuple(
        to_tool_executed(each, _measure_between([step] if step else []))
        for each, step in zip_longest(listed, tool_steps[: len(listed)])
    )
    outcome = TaskOutcome(
        response=to_text(result.get("response", "")),
        reasoning=to_text(result.get("reasoning", "")),
        tools_executed=tools,
        agent=session.recipe.name,
        model=result.get("model"),
        token_usage=usage,
        timestamp=measured.end_time,
        fallback="answer" not in board,
    )
    metrics = TaskMetrics(**measured, tool_calls=len(tools), llm_usage=usage)
    return AgentResult(bool(result.get("success")), outcome, result.get("error"), metrics)


def _measure_between(steps: Sequence[SimulationStep]) -> Times:
    """Return the times from the first of some steps to the end of the last."""
    if not steps:
        return Times()
    start, end = steps[0].timestamp, steps[-1].timestamp + timedelta(seconds=steps[-1].seconds)
    return Times((end - start).total_seconds(), start, end)


def _explain_unfinished(session: Session) -> str:
    """Return why a task has not been completed."""
    problem = session.error
    if problem is not None:
        return format_advice(ExecutionError(problem))
    limit = (session.trace.outcome or {}).get("limit")
    return f"{limit} is used up" if limit else f"its status is {session.status} after step {session.position}"


__all__ = ["AgentExecutor", "make_result", "to_registry"]
