"""The entry point of agentruntime: build an agent from YAML, run it, get the state. The loop is that of the session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentnb.board.values import is_truthy, thaw
from agentnb.dialects.agentruntime.parts.memory import MESSAGES
from agentnb.dialects.agentruntime.parts.model_adapters import Caller, NoModel
from agentnb.errors import AgentRuntimeError, NodeExecutionError, Problem, format_error, to_printable
from agentnb.kinds.context import get_own_id
from agentnb.recipe.model import Node, Recipe
from agentnb.session import Session
from agentnb.session.state import get_state
from agentnb.sources import Source, make_plain_source, read_file
from agentnb.text import safe_repr
from agentnb.world.tools.allow_list import to_allow_entries

if TYPE_CHECKING:
    from agentnb.trace import SimulationTrace

_Allow = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class RetryPolicy:
    """The total number of attempts of a call, and the seconds between two attempts (`backoff` is the same)."""

    def __init__(self, max_attempts: int = 1, backoff_seconds: float = 0.0, *, backoff: float | None = None) -> None:
        self.max_attempts = max_attempts
        self.backoff_seconds = backoff_seconds if backoff is None else backoff

    @property
    def backoff(self) -> float:
        """Return the seconds between two attempts."""
        return self.backoff_seconds


class LLMClient:
    """A model as a function: `call(node=..., prompt=..., timeout=...)` returns a dict with text, json, error and so on.

    `prompt` maps system, user, assistant and messages[i]#role to the rendered texts; a truthy `error` is a failure.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call

    def generate(
        self, node: Any, prompt: Mapping[str, str], *, retry: RetryPolicy | None = None, timeout: float | None = None
    ) -> Any:
        """Send a request, retry failures according to `retry`, and return the last answer.

        Raises:
            Exception: the error of the last attempt.
        """
        import time

        policy = retry or RetryPolicy()
        for attempt in range(1, policy.max_attempts + 1):
            last = attempt == policy.max_attempts
            try:
                answer = self.call(node=node, prompt=dict(prompt), timeout=timeout)
            except Exception:
                if last:
                    raise
            else:
                if last or not (isinstance(answer, Mapping) and is_truthy(answer.get("error"))):
                    return answer
            time.sleep(policy.backoff_seconds)
        return None


class AgentRuntime:
    """An agent built from YAML: run it any number of times, or step it as a session.

    `recipe` is its recipe, `trace` the trace of the last run.

    Example:
        >>> agent = build_agent_from_yaml({
        ...     "meta": {"name": "hello"},
        ...     "state": {"shape": {"name": "str", "greeting": "str"}},
        ...     "graph": {"inputs": ["name"], "outputs": ["greeting"], "nodes": [
        ...         {"id": "greet", "type": "noop", "map": {"set": {"greeting": "Hello {{ name }}"}}}]},
        ... })
        >>> agent.run({"name": "Ada"})
        {'name': 'Ada', 'greeting': 'Hello Ada'}
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._session: Session | None = None

    @property
    def trace(self) -> SimulationTrace | None:
        """The trace of the last run; None before the first."""
        return None if self._session is None else self._session.trace

    def session(self, inputs: Mapping[str, Any] | None = None, **options: Any) -> Session:
        """Return a session before its first step; `options` are those of Session."""
        return Session(self.recipe, inputs, **options)

    def run(
        self,
        inputs: Mapping[str, Any] | None,
        llm_client: Any = None,
        llm_callable: Callable[..., Any] | None = None,
        tool_overrides: Mapping[str, Callable[..., Any]] | None = None,
        max_steps: int | None = None,
        max_subgraph_depth: int | None = None,
    ) -> dict[str, Any]:
        """Run the graph to its end and return the state.

        Args:
            inputs: declared inputs enter the state; templates see all of them as `inputs`. None means no inputs.
            llm_client: an LLMClient, or a client of `agentnb.world.llm`.
            llm_callable: alternatively, a function of (node, prompt) that returns a dict; without both, the provider of
                `meta.defaults.llm` is used.
            tool_overrides: tool id -> callable, which replaces the recipe's tool.
            max_steps: replaces the limit of the graph (0: the graph's own).
            max_subgraph_depth: how deeply subgraphs may be nested (default: 8).

        Raises:
            ValueError: both a client and a callable are passed.
            AgentRuntimeError: inputs are missing, there is no model, or the limit of steps or of the depth is reached.
            NodeExecutionError: a node failed, and nothing in the recipe handles the failure.
        """
        session = self._begin(inputs, llm_client, llm_callable, tool_overrides, max_steps, max_subgraph_depth)
        session.run()
        return self._make_state(session)

    async def arun(self, inputs: Mapping[str, Any] | None, **options: Any) -> dict[str, Any]:
        """Like `run`, for async code."""
        names = ("llm_client", "llm_callable", "tool_overrides", "max_steps", "max_subgraph_depth")
        session = self._begin(inputs, *(options.pop(word, None) for word in names), **options)
        await session.arun()
        return self._make_state(session)

    def _begin(
        self,
        inputs: Mapping[str, Any] | None,
        client: Any,
        function: Callable[..., Any] | None,
        tools: Mapping[str, Callable[..., Any]] | None,
        max_steps: int | None,
        depth: int | None,
    ) -> Session:
        if client is not None and function is not None:
            raise ValueError("pass llm_client or llm_callable, not both")
        budget = {} if not max_steps else {"max_steps": max_steps}
        budget |= {} if depth is None else {"max_subgraph_depth": depth}
        session = self.session(
            inputs,
            llm=self._choose_model(client, function),
            tools=tools,
            budget=budget,
            validate_inputs=False,
            strict_expressions=False,
        )
        missing = [name for name in self.recipe.inputs if name not in session.inputs]
        if missing:
            raise AgentRuntimeError(
                Problem("X419", f"inputs are missing: {', '.join(missing)}", f"agent {self.recipe.name!r}",
                        f"its graph declares: {', '.join(self.recipe.inputs)}; "
                        f"given: {', '.join(session.inputs) or 'none'}",
                        "pass every declared input")
            )  # fmt: skip
        self._session = session
        return session

    def _choose_model(self, client: Any, function: Callable[..., Any] | None) -> Any:
        if function is not None:
            return Caller(self.recipe, lambda node, prompt, _timeout: function(node, prompt))
        if isinstance(client, LLMClient):
            call = client.call
            return Caller(self.recipe, lambda node, prompt, timeout: call(node=node, prompt=prompt, timeout=timeout))
        if client is None and self.recipe.meta.get("provider") is None:
            untold = [note.what for note in self.recipe.notes if note.code == "R241"]
            return NoModel(untold[0] if untold else "the recipe has no meta.defaults.llm")
        return client

    def _make_state(self, session: Session) -> dict[str, Any]:
        problem = session.error
        if problem is not None:
            raise _make_error(session, problem)
        if session.status == "exhausted":
            limit = (session.trace.outcome or {}).get("limit", "max_steps")
            limit_value = getattr(get_state(session).limits.budget, limit, None)
            raise AgentRuntimeError(
                Problem("X420", f"the run of {self.recipe.name!r} has used up {limit}",
                        f"after step {session.position}",
                        f"{limit} is {limit_value}; next would be {session.current!r}",
                        "raise the limit, or fix the loop that does not end")
            )  # fmt: skip
        state = {key: thaw(value) for key, value in get_state(session).run.root.scope.visible_items().items()}
        missing = [name for name in self.recipe.outputs if name not in state]
        if missing:
            raise AgentRuntimeError(
                Problem("X421", f"outputs are missing: {', '.join(missing)}", f"agent {self.recipe.name!r}",
                        "its graph declares them, and no node wrote them", "write them by a node's map, or add "
                        "them to state.shape")
            )  # fmt: skip
        memory = getattr(self.recipe.begin, "memory", None)
        return state if memory is None else {**state, **memory.window(state.get(MESSAGES) or ())}


def _make_error(session: Session, problem: Problem) -> AgentRuntimeError:
    """Return the error of a failed run: that of a node, or the run's own."""
    cause = session.cause
    node = session.recipe.nodes[session.current] if session.current else None
    if isinstance(cause, AgentRuntimeError) or node is None or problem.code == "X401":
        error = AgentRuntimeError(problem)
    else:
        error = NodeExecutionError(_make_node_failure_problem(node, session, problem, cause))
    error.__cause__ = to_printable(cause)
    return error


def _make_node_failure_problem(node: Node, session: Session, problem: Problem, cause: BaseException | None) -> Problem:
    """Return a node's failure with its id, its type, its tool or prompt, and the message."""
    params = node.params
    details = [f"type={node.kind}"]
    details += [f"tool={params['function']}"] if "function" in params else []
    details += [f"prompt={params['template']}"] if "template" in params else []
    result = getattr(cause, "result", None)
    payload = result.get("error") if isinstance(result, Mapping) else None
    text = (
        f"error={safe_repr(payload, 2000)}"
        if is_truthy(payload)
        else f"exception={type(cause).__name__}: {format_error(cause) if cause else ''}"
    )
    inside = "".join(f" in {frame.node!r}" for frame in reversed(session.stack) if frame.node)
    return replace(problem, what=f"node {get_own_id(node)!r}{inside} failed ({', '.join(details)}): {text}")


def build_agent_from_path(path: str | os.PathLike[str], *, allow: _Allow = ()) -> AgentRuntime:
    """Return the agent that a YAML file describes.

    Its tools are looked up in the file's folder, and loaded at the start of a run.

    `allow` lists what the recipe may use besides its own folder (modules, folders, commands), as in `agentnb.load`.

    Raises:
        RecipeError: all problems of the file (it is a ValueError).
    """
    file = Path(path)
    return AgentRuntime(replace(_make_recipe(read_file(file), allow), file=str(file)))


def build_agent_from_yaml(
    data: Mapping[str, Any], base_path: str | os.PathLike[str] | None = None, *, allow: _Allow = ()
) -> AgentRuntime:
    """Return the agent that a dict describes, in the structure of the YAML file.

    `base_path` is the base folder of its tools.

    `allow` is as in `build_agent_from_path`.

    Raises:
        RecipeError: all of its problems (it is a ValueError).
    """
    base = Path(base_path if base_path is not None else Path.cwd()).resolve()
    return AgentRuntime(_make_recipe(make_plain_source(data, str(base / "<agent>")), allow))


def _make_recipe(source: Source, allow: _Allow) -> Recipe:
    from agentnb.dialects.table import DIALECTS, load_recipe

    return load_recipe(replace(source, allow=to_allow_entries(allow)), DIALECTS["agentruntime"])


__all__ = ["AgentRuntime", "LLMClient", "RetryPolicy", "build_agent_from_path", "build_agent_from_yaml"]
