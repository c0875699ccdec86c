"""The entry point of coreason: GraphExecutor(recipe, state), await run(), then trace and context.

The loop is that of the session.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Self

from agentnb.board.values import ABSENT
from agentnb.clock import Clock
from agentnb.dialects.coreason.parts.run_settings import MAX_STEPS
from agentnb.errors import (
    ExecutionError,
    NodeExecutionError,
    Problem,
    did_you_mean,
    to_printable,
    warn_caller,
    with_article,
)
from agentnb.recipe.descriptions import list_names
from agentnb.recipe.model import Recipe
from agentnb.session import Session
from agentnb.session.state import get_state
from agentnb.trace import SimulationTrace
from agentnb.world.human_input import is_in_kernel


class GraphExecutor:
    """Runs a RecipeDefinition from an initial state, as defined by coreason's document.

    `agents` maps an agent_ref to a callable of the node's mapped inputs; other agents use `llm` or, without it, are
    simulated. `answers` are the scripted answers of human nodes. Each run is a Session: `session` steps it.

    Example:
        >>> import asyncio
        >>> from agentnb.dialects.coreason import RecipeDefinition
        >>> recipe = RecipeDefinition.model_validate({
        ...     "metadata": {"name": "hello"}, "interface": {},
        ...     "topology": [{"id": "greet", "type": "agent", "agent_ref": "greeter", "inputs_map": {"name": "user"}}],
        ... })
        >>> agents = {"greeter": lambda name: {"text": f"Hi {name}"}}
        >>> executor = GraphExecutor(recipe, {"user": "Ada"}, agents=agents)
        >>> trace = asyncio.run(executor.run())
        >>> executor.context["text"], len(trace.steps)
        ('Hi Ada', 1)
    """

    # a misspelled attribute is an error; otherwise setting it would have no effect
    __slots__ = ("__weakref__", "session")

    def __init__(
        self,
        recipe: Any,
        initial_state: Mapping[str, Any] | None,
        *,
        agents: Mapping[str, Callable[..., Any]] | None = None,
        answers: Any = None,
        llm: Any = None,
        max_steps: int | None = MAX_STEPS,
        validate_inputs: bool = False,
        clock: Clock | None = None,
        seed: int = 0,
        run_id: str | None = None,
        chaos: Any = None,
    ) -> None:
        """Create an executor; nothing runs yet. `recipe` is a RecipeDefinition, its dict, or the result of load().

        With a FrozenClock, a seed and a run_id, the trace is reproducible, including ids and times. `max_steps` of None
        means 50; negative values count as 0. An agent that no node uses causes a warning.

        Raises:
            ExecutionError: X117, the recipe is something else; X202, `max_steps` is not a number.
            RecipeError: the recipe has errors, or `validate_inputs` finds the state invalid.
        """
        translated = _to_recipe(recipe)
        self.session = Session(
            translated,
            initial_state,
            tools=_select_agents(translated, agents or {}),
            answers=answers,
            llm=llm,
            budget={"max_steps": _check_steps(max_steps)},
            validate_inputs=validate_inputs,
            clock=clock,
            seed=seed,
            run_id=run_id,
            chaos=chaos,
        )

    async def run(self) -> SimulationTrace:
        """Run from the entry to the end, and return the trace; another call starts a new run with a new trace.

        In a notebook it waits for `session.answer` at a human node without a scripted answer.

        Raises:
            ExecutionError: a requirement does not hold, a node failed, or no answer can be requested; the trace has the
                earlier steps.
        """
        session = self.session
        if session.position:
            session.reset()
        while True:
            await session.arun()
            if session.status != "waiting" or not is_in_kernel() or not await self._wait_for_answers():
                break
        problem = session.error
        if problem is not None:
            raise _make_error(session, problem)
        return session.trace

    async def _wait_for_answers(self) -> bool:
        """Wait until all requests are answered; return whether the run may continue.

        After a timeout the node may have failed; retrying it would request the input forever.
        """
        loop, answered = asyncio.get_running_loop(), asyncio.Event()

        def on_change(session: Session) -> None:
            if session.status != "waiting":
                loop.call_soon_threadsafe(answered.set)

        stop = self.session.subscribe(on_change, to="change")
        try:
            await answered.wait()
        finally:
            stop()
        return self.session.status != "failed"

    @property
    def max_steps(self) -> int:
        """The maximum number of steps of a run. It may be set; `session.run()` then continues an exhausted run.

        Raises:
            ExecutionError: X202, it is not a number.
        """
        limit = get_state(self.session).limits.budget.max_steps
        return MAX_STEPS if limit is None else limit

    @max_steps.setter
    def max_steps(self, limit: int | None) -> None:
        self.session.set_budget(max_steps=_check_steps(limit))

    @property
    def recipe(self) -> Any:
        """The RecipeDefinition that is run; the Recipe if it is of another dialect."""
        recipe = self.session.recipe
        return recipe.meta["definition"] if recipe.dialect == "coreason" else recipe

    @property
    def context(self) -> dict[str, Any]:
        """The current blackboard as a dict. Writing to it edits the session's board."""
        return _Context(self.session)

    @property
    def trace(self) -> SimulationTrace:
        """The trace of the run so far."""
        return self.session.trace


class _Context(dict[str, Any]):
    """A copy of the blackboard that writes through to the session."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.board)
        self._session = session

    def __setitem__(self, key: str, value: Any) -> None:
        self._session.edit({key: value})
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._session.edit({key: ABSENT})
        super().__delitem__(key)

    def __ior__(self, other: Any) -> Self:  # type: ignore[override, misc]  # dict's own would write past `__setitem__`
        self.update(other)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle as a plain dict."""
        return dict, (dict(self),)

    update = MutableMapping.update
    setdefault = MutableMapping.setdefault
    pop = MutableMapping.pop
    popitem = MutableMapping.popitem
    clear = MutableMapping.clear


def _check_steps(limit: Any) -> Any:
    """Return a limit of steps; a value that is not a number is passed on to the budget, which rejects it."""
    if limit is None:
        return MAX_STEPS
    return max(limit, 0) if isinstance(limit, int | float) and not isinstance(limit, bool) else limit


def _select_agents(recipe: Recipe, agents: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the agents that nodes use; warn about others: recipes may share agents, but a name may be misspelled."""
    if recipe.dialect != "coreason":
        return agents
    requested = list(dict.fromkeys(str(node.params.get("ref", node.id)) for node in recipe.nodes.values()))
    bound = [name for name in requested if name not in agents]
    for name in agents:
        if name not in requested:
            hint = did_you_mean(name, bound, f"the requested names are: {list_names(requested)}")
            warn_caller(f"agents={{{name!r}: ...}}: no node of {recipe.name!r} uses it; {hint}")
    return {name: agent for name, agent in agents.items() if name in requested}


def _to_recipe(recipe: Any) -> Recipe:
    if isinstance(recipe, Recipe):
        return recipe
    from agentnb.dialects.coreason.loader import recognize
    from agentnb.dialects.table import DIALECTS, load_recipe
    from agentnb.sources import Source, make_plain_source

    if not (isinstance(recipe, Mapping) or recognize(recipe)):
        path = repr(str(recipe)) if isinstance(recipe, str | os.PathLike) and str(recipe).count("\n") == 0 else "..."
        raise ExecutionError(
            Problem("X117", f"{with_article(type(recipe).__name__)} is not a recipe", "GraphExecutor(recipe)",
                    "expected a RecipeDefinition, a dict of its fields, or a recipe from load()",
                    f"write GraphExecutor(agentnb.load({path}), ...)")
        )  # fmt: skip
    source = make_plain_source(recipe) if isinstance(recipe, Mapping) else Source(recipe, f"<{type(recipe).__name__}>")
    return load_recipe(source, DIALECTS["coreason"])


def _make_error(session: Session, problem: Problem) -> ExecutionError:
    """Return the error of a stopped run: a node's, with its own exception as the cause, otherwise the run's."""
    if session.status == "waiting" or not session.position:
        return ExecutionError(problem)
    error = NodeExecutionError(problem)
    error.__cause__ = to_printable(session.cause)
    return error
