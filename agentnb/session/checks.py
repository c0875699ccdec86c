"""checks: what a session refuses, and why.

X117: what is to run is no recipe.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from agentnb.errors import ExecutionError, Problem, RecipeError, did_you_mean
from agentnb.recipe.model import Condition, Recipe
from agentnb.recipe.words import fits, listed, types_of

if TYPE_CHECKING:
    from agentnb.session.core import Core


def check_recipe(recipe: Any) -> None:
    """Raise for what is no recipe, or a recipe with errors.

    Raises:
        ExecutionError: X117, it is something else.
        RecipeError: every error of the recipe.
    """
    if not isinstance(recipe, Recipe):
        raise ExecutionError(
            Problem(
                "X117",
                f"a {type(recipe).__name__} is no recipe",
                "Session(recipe)",
                "a session runs what load() returns",
                "write Session(agentnb.load(...))",
            )
        )
    errors = [problem for problem in recipe.check() if problem.severity == "error"]
    if errors:
        raise RecipeError(*errors)


def check_inputs(recipe: Recipe, inputs: Mapping[str, Any]) -> None:
    """Raise for inputs that the recipe declares and that are missing or of a wrong type; others are welcome.

    Raises:
        RecipeError: R205, a required input is missing; R206, an input has a wrong type.
    """
    problems = []
    known = {**recipe.init, **inputs}
    for name in recipe.meta.get("required", ()):
        if name not in known:
            extra = [given for given in inputs if given not in recipe.inputs]
            problems.append(
                Problem("R205", f"input {name!r} is missing", "Session(inputs=...)",
                        f"{recipe.name!r} requires it; given were: {', '.join(inputs) or 'none'}",
                        did_you_mean(name, extra, f"pass {{{name!r}: ...}}"))
            )  # fmt: skip
    for name, schema in recipe.inputs.items():
        kinds = types_of(schema)
        if name in inputs and kinds and not any(fits(inputs[name], kind) for kind in kinds):
            problems.append(
                Problem("R206", f"input {name!r} is a {type(inputs[name]).__name__}", "Session(inputs=...)",
                        f"{recipe.name!r} declares it as {' or '.join(kinds)}",
                        f"pass a {kinds[0]}, or validate_inputs=False")
            )  # fmt: skip
    if problems:
        raise RecipeError(*problems)


def inputs_of(inputs: Any) -> dict[str, Any]:
    """Return a session's inputs as a dict of its own; None means that there are none.

    Raises:
        RecipeError: R207, they are no mapping.
    """
    if inputs is None or isinstance(inputs, Mapping):
        return dict(inputs or {})
    raise RecipeError(
        Problem("R207", f"the inputs are a {type(inputs).__name__}, not a mapping", "Session(inputs=...)",
                "inputs are the first values on the board, each under its key", "pass a dict: {KEY: VALUE}")
    )  # fmt: skip


def check_answers(recipe: Recipe, answers: Any, llm: Any = None) -> None:
    """Raise for scripts by node, of people's answers or of a model's, that name nodes which the recipe lacks.

    Raises:
        ExecutionError: X101, every name that is no node's.
    """
    scripts = {"answers": answers, "llm": None if hasattr(llm, "complete") or callable(llm) else llm}
    problems = [
        Problem("X101", f"there is no node {name!r}", f"Session({word}=...)",
                f"the recipe's nodes are: {listed(recipe.nodes)}", did_you_mean(name, recipe.nodes, "name one of them"))
        for word, script in scripts.items() if isinstance(script, Mapping)
        for name in script if name not in recipe.nodes
    ]  # fmt: skip
    if problems:
        raise ExecutionError(*problems)


def not_running(session: Core, verb: str) -> None:
    """Raise while a live run goes on.

    Raises:
        ExecutionError: X112, it runs.
    """
    if session.live.moves:
        raise ExecutionError(
            Problem(
                "X112",
                f"{verb} cannot be done while the session is running: pause() first",
                f"session {session.name!r}, after step {session.engine.position}",
                "start(), arun() or astep() moves it, and only one thing at a time may",
                "call session.pause(), then `await session.wait()`, then try again",
            )
        )


def not_inside(session: Core, verb: str) -> None:
    """Raise where a node or a listener of a run asks for what would pull the run away under it.

    Raises:
        ExecutionError: X112, it runs.
    """
    if session.live.here:
        not_running(session, verb)


def check_until(until: Any, nodes: Collection[str], board: Mapping[str, Any]) -> Condition:
    """Return the condition at which a run stops.

    Raises:
        ExecutionError: X118, it is nearly a node's id, or no condition at all.
        RecipeError: the condition is wrong.
    """
    from agentnb.expressions.conditions import as_condition

    if isinstance(until, str) and until not in board and get_close_matches(until, nodes, n=1, cutoff=0.75):
        raise ExecutionError(
            Problem("X118", f"{until!r} is neither a node nor a key of the board", "run(until=...)",
                    f"the nodes are: {', '.join(nodes)}", did_you_mean(until, nodes, "name a node"))
        )  # fmt: skip
    if not (isinstance(until, str | Mapping) or callable(until)):
        raise ExecutionError(
            Problem("X118", f"a {type(until).__name__} says no place to stop at", "run(until=...)",
                    "it is a node id, a step number, a condition text, JsonLogic, or a callable of the board",
                    "give one of these")
        )  # fmt: skip
    return as_condition(until)


def refuse_step(session: Core, step: Any) -> None:
    """Raise for a step that this run does not have.

    X111: there is no such step, or no such event to fork at.

    Raises:
        ExecutionError: X111, there is no such step.
    """
    tip = session.engine.history.tip
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= tip:
        raise ExecutionError(
            Problem(
                "X111",
                f"there is no step {step!r}",
                f"session {session.name!r}",
                f"its steps are 1 to {tip}, and 0 is before the first",
                "name one of them, or run on",
            )
        )
