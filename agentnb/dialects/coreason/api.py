"""api: coreason's front door: GraphExecutor(recipe, state), await run(), then trace and context. No loop of its own."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from agentnb.board.secrets import printable
from agentnb.clock import Clock
from agentnb.dialects.coreason.around import MAX_STEPS
from agentnb.errors import ExecutionError, NodeExecutionError, Problem, did_you_mean
from agentnb.recipe.model import Recipe
from agentnb.recipe.words import listed
from agentnb.session import Session
from agentnb.trace import SimulationTrace
from agentnb.world.people import in_kernel


class GraphExecutor:
    """Runs a RecipeDefinition from an initial state, as coreason's document says.

    `agents` maps an agent_ref to a callable of the node's mapped inputs; an agent without one is asked of `llm`, else
    it is simulated. `answers` are the scripted answers of human nodes. Everything is a Session's run: `session` steps
    it.

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
        """Make an executor; nothing runs yet. `recipe` is a RecipeDefinition, a dict of one, or what load() returns.

        With a FrozenClock, a seed and a run_id the trace comes out the same each time, ids and times included.
        `max_steps` of None means 50, and below 0 counts as 0. An agent that no node asks for is warned of.

        Raises:
            ExecutionError: X117, the recipe is something else; X202, `max_steps` is no number.
            RecipeError: the recipe has errors, or `validate_inputs` finds the state wrong.
        """
        found = _recipe_of(recipe)
        self.session = Session(
            found,
            initial_state,
            tools=agents,
            answers=answers,
            llm=llm,
            budget={"max_steps": _steps(max_steps)},
            validate_inputs=validate_inputs,
            clock=clock,
            seed=seed,
            run_id=run_id,
            chaos=chaos,
        )
        _warn_of_strangers(found, agents or {})

    async def run(self) -> SimulationTrace:
        """Run from the entry to the end, and return the trace; called again it begins a new run with a new trace.

        In a notebook it waits for `session.answer` at a human node that has no scripted answer.

        Raises:
            ExecutionError: a requirement does not hold, a node failed, or nobody can be asked; the trace keeps the
                steps before.
        """
        session = self.session
        if session.position:
            session.reset()
        while True:
            await session.arun()
            if session.status != "waiting" or not in_kernel() or not await self._answered():
                break
        problem = session.error
        if problem is not None:
            raise _error(session, problem)
        return session.trace

    async def _answered(self) -> bool:
        """Wait until nobody is asked any more; say whether the run may go on.

        Where the time was up, the node may have failed: tried once more, it would ask for ever.
        """
        loop, answered = asyncio.get_running_loop(), asyncio.Event()

        def changed(session: Session) -> None:
            if session.status != "waiting":
                loop.call_soon_threadsafe(answered.set)

        stop = self.session.subscribe(changed, to="change")
        try:
            await answered.wait()
        finally:
            stop()
        return self.session.status != "failed"

    @property
    def context(self) -> dict[str, Any]:
        """The blackboard where the run stands, as a dict."""
        return dict(self.session.board)

    @property
    def trace(self) -> SimulationTrace:
        """The trace of the run so far."""
        return self.session.trace


def _steps(most: Any) -> Any:
    """Return a limit of steps; what is no number is left to the budget, which refuses it."""
    if most is None:
        return MAX_STEPS
    return max(most, 0) if isinstance(most, int | float) and not isinstance(most, bool) else most


def _warn_of_strangers(recipe: Recipe, agents: Mapping[str, Any]) -> None:
    """Warn of agents that no node asks for: recipes may share what is bound, but a name may also be misspelt."""
    if recipe.dialect != "coreason":
        return
    asked = list(dict.fromkeys(str(node.params.get("ref", node.id)) for node in recipe.nodes.values()))
    bound = [name for name in asked if name not in agents]
    for name in agents:
        if name not in asked:
            told = did_you_mean(name, bound, f"the names that are asked for: {listed(asked)}")
            warnings.warn(f"agents={{{name!r}: ...}}: no node of {recipe.name!r} asks for it; {told}", stacklevel=3)


def _recipe_of(recipe: Any) -> Recipe:
    if isinstance(recipe, Recipe):
        return recipe
    from agentnb.dialects.coreason.loader import recognise
    from agentnb.dialects.table import DIALECTS, recipe_of
    from agentnb.sources import Source, plain_source

    if not (isinstance(recipe, Mapping) or recognise(recipe)):
        path = repr(str(recipe)) if isinstance(recipe, str | os.PathLike) and str(recipe).count("\n") == 0 else "..."
        raise ExecutionError(
            Problem("X117", f"a {type(recipe).__name__} is no recipe", "GraphExecutor(recipe)",
                    "it runs a RecipeDefinition, a dict of one, or what load() returns",
                    f"write GraphExecutor(agentnb.load({path}), ...)")
        )  # fmt: skip
    source = plain_source(recipe) if isinstance(recipe, Mapping) else Source(recipe, f"<{type(recipe).__name__}>")
    return recipe_of(source, DIALECTS["coreason"])


def _error(session: Session, problem: Problem) -> ExecutionError:
    """Return the error of a run that stands: a node's, with its own exception as the cause, else the run's."""
    if session.status == "waiting" or not session.position:
        return ExecutionError(problem)
    error = NodeExecutionError(problem)
    error.__cause__ = printable(session.cause)
    return error
