"""checks: what a session refuses, and why.

X117: what is to run is no recipe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from math import inf
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.secrets import hidden, is_secret, short
from agentnb.errors import ExecutionError, Problem, RecipeError, did_you_mean
from agentnb.expressions.paths import path_text
from agentnb.expressions.schemas import Fault, Schema, asks_types_only
from agentnb.recipe.model import Condition, Recipe
from agentnb.recipe.words import fits, listed, types_of

if TYPE_CHECKING:
    from agentnb.session.core import Core

SLOWEST: Final = 0.001  # steps a second
_INPUTS: Final = "Session(inputs=...)"


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
    """Raise for inputs that do not fit what the recipe declares; those that it does not declare are welcome.

    The recipe's own first values count as given. A declaration that is no JSON Schema is not asked.

    Raises:
        RecipeError: R205, a required input is missing; R206, an input has a wrong type; R208, it breaks another rule.
    """
    given = {key: value for key, value in recipe.init.items() if key in recipe.inputs} | dict(inputs)
    problems = list(_absent(recipe, inputs, {**recipe.init, **inputs}))
    wrong = {}
    for name, schema in recipe.inputs.items():
        kinds = types_of(schema) if name in given and _is_schema(schema) else []
        if kinds and not any(_is_a(given[name], kind) for kind in kinds):
            wrong[name] = kinds
    problems += (_ill_typed(recipe, name, given[name], kinds) for name, kinds in wrong.items())
    problems += _unfit(recipe, {name: value for name, value in given.items() if name not in wrong}, set(wrong))
    if problems:
        raise RecipeError(*problems)


def _absent(recipe: Recipe, inputs: Mapping[str, Any], known: Collection[str]) -> Iterator[Problem]:
    for name in recipe.meta.get("required", ()):
        if name not in known:
            extra = [given for given in inputs if given not in recipe.inputs]
            yield Problem("R205", f"input {name!r} is missing", _INPUTS,
                          f"{recipe.name!r} requires it; given were: {', '.join(inputs) or 'none'}",
                          did_you_mean(name, extra, f"pass {{{name!r}: ...}}"))  # fmt: skip


def _ill_typed(recipe: Recipe, name: str, value: Any, kinds: list[str]) -> Problem:
    return Problem("R206", f"input {name!r} is a {type(value).__name__}", _INPUTS,
                   f"{recipe.name!r} declares it as {' or '.join(kinds)}",
                   f"pass a {kinds[0]}, or validate_inputs=False")  # fmt: skip


def _unfit(recipe: Recipe, given: Mapping[str, Any], told: set[str]) -> Iterator[Problem]:
    """Yield what is wrong with inputs beyond their simple types; `told` are those that are told of already."""
    whole = recipe.meta.get("input_schema")
    if whole is not None and not _asks_little(whole) and _is_schema(whole):
        absent = {f"{name!r} is a required property" for name in (*recipe.meta.get("required", ()), *told)}
        for fault in Schema(whole).faults(given):
            if fault.path or fault.rule not in absent:
                yield _broken(recipe, given, fault)
        return
    for name, schema in recipe.inputs.items():
        if name in given and not asks_types_only(schema) and _is_schema(schema):
            for fault in Schema(schema).faults(given[name]):
                yield _broken(recipe, given, fault._replace(path=(name, *fault.path)))


def _asks_little(whole: Mapping[str, Any]) -> bool:
    """Return whether the schema of all inputs asks for keys and simple types at most, which is looked at without it."""
    rest = {key: value for key, value in whole.items() if key not in ("properties", "required", "type")}
    required = whole.get("required", [])
    return (
        asks_types_only(rest)
        and all(map(asks_types_only, whole["properties"].values()))
        and isinstance(required, list)
        and all(name in whole["properties"] for name in required)
    )


def _is_schema(source: Any) -> bool:
    return asks_types_only(source) or next(Schema(source).own_faults(), None) is None


def _is_a(value: Any, kind: str) -> bool:
    return fits(value, kind) or (kind == "integer" and isinstance(value, float) and value.is_integer())


def _broken(recipe: Recipe, given: Mapping[str, Any], fault: Fault) -> Problem:
    """R208: an input breaks a rule of its schema."""
    path, value = path_text(fault.path), _at(given, fault.path)
    secret = next((key for key in fault.path if is_secret(key)), None)
    if not fault.rule:
        what = f"input {path!r} cannot be checked" if path else "the inputs cannot be checked"
        return Problem("R208", what, _INPUTS, hidden(fault.message),
                       "mend the recipe's interface, or pass validate_inputs=False")  # fmt: skip
    what = f"input {path!r} is {short(value, secret)}" if path else f"the inputs are {', '.join(given) or 'none'}"
    return Problem("R208", what, _INPUTS, f"{recipe.name!r} asks of {'it' if path else 'them'}: {hidden(fault.rule)}",
                   "pass what keeps the rule, or validate_inputs=False")  # fmt: skip


def _at(given: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        given = given[key]
    return given


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
    """Raise while a live run goes on, or where a run can only be read.

    Raises:
        ExecutionError: X112, it runs; L450, it was opened without its recipe; L452, it was closed.
    """
    check_locked(session)
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


def check_locked(session: Core) -> None:
    """Raise where a run can only be looked at.

    Raises:
        ExecutionError: L450, it was opened without its recipe; L452, it was closed.
    """
    if session.locked is not None:
        raise ExecutionError(session.locked)


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


def check_speed(steps: Any) -> float | None:
    """Return how many steps a second a live run makes at most; None: as many as it can.

    Raises:
        ExecutionError: X128, it is no number, or it is too small.
    """
    if steps is None:
        return None
    if isinstance(steps, int | float) and not isinstance(steps, bool) and SLOWEST <= steps < inf:
        return float(steps)
    raise ExecutionError(
        Problem("X128", f"{steps!r} is no speed", "session.speed",
                f"it is a number of steps a second, {SLOWEST:g} or more, or None for as fast as it goes",
                "write for example session.speed = 3")
    )  # fmt: skip
