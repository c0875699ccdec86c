"""Checks of what a session receives: recipe, inputs, answers, tools, stop conditions, step numbers, speed.

X117: the first argument is not a recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.board.key_checks import check_keys
from agentnb.board.scopes import Board
from agentnb.engine.control.interventions import get_current_scope
from agentnb.engine.core.run import make_key_error
from agentnb.errors import (
    AgentNbError,
    ExecutionError,
    Problem,
    RecipeError,
    close_match,
    did_you_mean,
    find_misspelling,
    warn_caller,
    with_article,
)
from agentnb.expressions.json_schema import Fault, Schema, is_types_only
from agentnb.expressions.paths import format_path, parse_path
from agentnb.kinds.context import AROUND
from agentnb.recipe.descriptions import fits_type, list_names, list_types
from agentnb.recipe.model import Condition, Reactive, Recipe
from agentnb.recipe.user_functions import get_own_attribute
from agentnb.secrets import is_secret
from agentnb.text import safe_repr, safe_str
from agentnb.world.agents import get_agents

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run
    from agentnb.recipe.model import Requirement
    from agentnb.session.state import State


WRITES_NOTHING: Final = frozenset({"noop", "join", "router", "prompt"})
_CALL_KINDS: Final = ("tool", "llm", "agent", "human", "system", "approval", "sleep")
_LONGEST_NAME: Final = 200
SLOWEST: Final = 0.001  # steps per second
_INPUTS: Final = "the inputs"


def check_recipe(recipe: Any) -> None:
    """Raise if this is not a recipe, or a recipe with errors.

    Raises:
        ExecutionError: X117, it is something else.
        RecipeError: every error of the recipe.
    """
    if not isinstance(recipe, Recipe):
        raise ExecutionError(
            Problem(
                "X117",
                f"{with_article(type(recipe).__name__)} is not a recipe",
                "Session(recipe)",
                "a session runs what load() returns",
                "write Session(agentnb.load(...))",
            )
        )
    errors = [problem for problem in recipe.check() if problem.severity == "error"]
    if errors:
        raise RecipeError(*errors)


def check_inputs(recipe: Recipe, inputs: Mapping[str, Any]) -> None:
    """Raise if inputs do not match the declarations of the recipe; undeclared inputs are allowed.

    The initial values of the recipe count as inputs. A declaration that is not a JSON Schema is ignored.

    Raises:
        RecipeError: R205, a required input is missing; R206, an input has a wrong type; R208, it breaks another rule.
    """
    rules = _get_input_rules(recipe)
    if rules.is_declared:
        values = {key: value for key, value in recipe.init.items() if key in recipe.inputs} | dict(inputs)
        problems = list(_iter_absent(recipe, inputs, {**recipe.init, **inputs}))
        wrong = {
            name: kinds for name, kinds in rules.types.items()
            if name in values and not any(_is_a(values[name], kind) for kind in kinds)
        }  # fmt: skip
        problems += (_make_type_problem(recipe, name, values[name], kinds) for name, kinds in wrong.items())
        if rules.schema is not None or rules.schemas:
            others = {name: value for name, value in values.items() if name not in wrong}
            problems += _iter_violations(recipe, rules, others, set(wrong))
        if problems:
            raise RecipeError(*problems)


class _InputRules(NamedTuple):
    """The declarations of a recipe's inputs that are valid JSON Schema. `is_declared` is True if there are any at all.

    `types` maps inputs to their declared types; `schema` is the schema of all inputs together; `schemas` maps inputs
    to their own schemas, where these say more than a type.
    """

    is_declared: bool
    types: Mapping[str, list[str]]
    schema: Any
    schemas: Mapping[str, Any]


def _get_input_rules(recipe: Recipe) -> _InputRules:
    derived = recipe.derived
    if "input rules" not in derived:
        derived["input rules"] = _make_input_rules(recipe)
    rules: _InputRules = derived["input rules"]
    return rules


def _make_input_rules(recipe: Recipe) -> _InputRules:
    valid = {name: schema for name, schema in recipe.inputs.items() if _is_schema(schema)}
    types = {name: kinds for name, schema in valid.items() if (kinds := list_types(schema))}
    whole = recipe.meta.get("input_schema")
    if whole is not None and (_has_simple_schema(whole) or not _is_schema(whole)):
        whole = None
    schemas = {} if whole is not None else {name: each for name, each in valid.items() if not is_types_only(each)}
    return _InputRules(
        bool(types or schemas or whole is not None or recipe.meta.get("required")), types, whole, schemas
    )


def find_unknown_inputs(recipe: Recipe, inputs: Mapping[str, Any]) -> list[Problem]:
    """Return a warning for each input that the recipe neither declares nor reads.

    R220: the recipe does not know an input.

    A recipe without declared inputs may read any key: then only likely misspellings are reported. A reactive one reads
    only what its dialect accepts on the board.
    """
    if recipe.reactive is not None:
        return list(_iter_unreadable_inputs(recipe.reactive, inputs))
    known = _find_keys_read(recipe)
    unknown = (name for name in inputs if name not in known)
    return [
        Problem("R220", f"input {name!r} is not known", _INPUTS,
                f"the inputs of {recipe.name!r} are: {list_names(recipe.inputs or known)}",
                did_you_mean(name, [key for key in known if key not in inputs], "remove it, or declare it"), "warning")
        for name in unknown if recipe.inputs or find_misspelling(name, known) is not None
    ]  # fmt: skip


def _iter_unreadable_inputs(reactive: Reactive, inputs: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in inputs.items():
        try:
            reactive.check_value(name, value)
        except AgentNbError as error:
            problem = error.problems[0]
            yield Problem("R220", f"input {name!r} is not known", _INPUTS, problem.why, problem.do, "warning")


def _find_keys_read(recipe: Recipe) -> dict[str, None]:
    """Return the keys that a recipe declares as inputs or reads, in this order."""
    derived = recipe.derived
    if "keys read" not in derived:
        known = dict.fromkeys((*recipe.inputs, *recipe.init))
        for node in recipe.nodes.values():
            known |= dict.fromkeys(str(path[0]) for path in (node.inputs or {}).values())
            known |= dict.fromkeys(parse_path(key)[0] for key in node.reads)
        derived["keys read"] = known
    keys: dict[str, None] = derived["keys read"]
    return keys


def _iter_absent(recipe: Recipe, inputs: Mapping[str, Any], known: Collection[str]) -> Iterator[Problem]:
    for name in recipe.meta.get("required", ()):
        if name not in known:
            misspelled = close_match(name, [key for key in inputs if key not in recipe.inputs])
            why = f"{recipe.name!r} requires it; passed: {', '.join(inputs) or 'none'}"
            do = f"pass {{{name!r}: ...}}" if misspelled is None else f"rename {misspelled!r} to {name!r}"
            yield Problem("R205", f"input {name!r} is missing", _INPUTS, why, do)


def _make_type_problem(recipe: Recipe, name: str, value: Any, kinds: list[str]) -> Problem:
    return Problem("R206", f"input {name!r} is {with_article(type(value).__name__)}", _INPUTS,
                   f"{recipe.name!r} declares it as {' or '.join(kinds)}",
                   f"pass {with_article(kinds[0])}, or validate_inputs=False")  # fmt: skip


def _iter_violations(
    recipe: Recipe, rules: _InputRules, values: Mapping[str, Any], reported: set[str]
) -> Iterator[Problem]:
    """Yield violations of the schemas beyond simple types; `reported` are the inputs reported already."""
    if rules.schema is not None:
        absent = {f"{name!r} is a required property" for name in (*recipe.meta.get("required", ()), *reported)}
        for fault in Schema(rules.schema).faults(values):
            if fault.path or fault.rule not in absent:
                yield _make_violation_problem(recipe, values, fault)
    for name, schema in rules.schemas.items():
        if name in values:
            for fault in Schema(schema).faults(values[name]):
                yield _make_violation_problem(recipe, values, fault._replace(path=(name, *fault.path)))


def _has_simple_schema(schema: Mapping[str, Any]) -> bool:
    """Return True if the schema of all inputs has only required keys and simple types, which are checked without it."""
    rest = {key: value for key, value in schema.items() if key not in ("properties", "required", "type")}
    required = schema.get("required", [])
    return (
        is_types_only(rest)
        and all(map(is_types_only, schema["properties"].values()))
        and isinstance(required, list)
        and all(name in schema["properties"] for name in required)
    )


def _is_schema(source: Any) -> bool:
    return is_types_only(source) or next(Schema(source).own_faults(), None) is None


def _is_a(value: Any, kind: str) -> bool:
    return fits_type(value, kind) or (kind == "integer" and isinstance(value, float) and value.is_integer())


def _make_violation_problem(recipe: Recipe, values: Mapping[str, Any], fault: Fault) -> Problem:
    """R208: an input breaks a rule of its schema."""
    path, value = format_path(fault.path), _resolve_path(values, fault.path)
    secret = next((key for key in fault.path if is_secret(key)), None)
    if not fault.rule:
        what = f"input {path!r} cannot be checked" if path else "the inputs cannot be checked"
        return Problem("R208", what, _INPUTS, fault.message,
                       "fix the recipe's interface, or pass validate_inputs=False")  # fmt: skip
    what = (
        f"input {path!r} is {safe_repr(value, key=secret)}" if path else f"the inputs are {', '.join(values) or 'none'}"
    )
    return Problem("R208", what, _INPUTS, f"{recipe.name!r} requires: {fault.rule}",
                   "pass a valid value, or validate_inputs=False")  # fmt: skip


def _resolve_path(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def to_inputs(inputs: Any, read: Callable[[Any], Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """Return a session's inputs as a new dict; an empty one for None.

    Args:
        read: the recipe's own way to read inputs that are not a mapping.

    Raises:
        RecipeError: R207, they are not a mapping.
        BoardError: B105, a key is not a string.
    """
    if inputs is None or type(inputs) is dict or isinstance(inputs, Mapping):
        for key in inputs or ():
            if not isinstance(key, str):
                raise make_key_error(key, _INPUTS)
        return dict(inputs or {})
    why, cause = "inputs map board keys to initial values", None
    if read is not None:
        try:
            return dict(read(inputs))
        except Exception as error:  # noqa: BLE001  (a class of the user's, or of a framework)
            why, cause = f"the recipe cannot read them: {type(error).__name__}: {safe_str(error, 2_000)}", error
    raise RecipeError(
        Problem("R207", f"the inputs are {with_article(type(inputs).__name__)}, not a mapping", _INPUTS, why,
                "pass a dict: {KEY: VALUE}")
    ) from cause  # fmt: skip


def check_answers(recipe: Recipe, answers: Any, llm: Any = None) -> None:
    """Raise for scripted answers (of people or of a model) under names that are not nodes of the recipe.

    Raises:
        ExecutionError: X101, the unknown names: all, or ten of very many.
    """
    if answers is None and llm is None:
        return
    most = len(recipe.nodes) + 10  # a mapping may be endless
    scripts = {"answers": answers, "llm": None if hasattr(llm, "complete") or callable(llm) else llm}
    problems = [
        Problem("X101", f"there is no node {safe_repr(name)}", f"{word}=...",
                f"the recipe's nodes are: {list_names(recipe.nodes)}",
                did_you_mean(name, recipe.nodes, "use one of them"))
        for word, script in scripts.items() if isinstance(script, Mapping)
        for name in islice(script, most) if name not in recipe.nodes
    ]  # fmt: skip
    if problems:
        raise ExecutionError(*problems)


def collect_known_keys(recipe: Recipe, run: Run) -> dict[str, None]:
    """Return the board keys that a recipe declares or that its run has had, in this order."""
    known = dict.fromkeys((*recipe.inputs, *recipe.init, *recipe.outputs))
    for node in recipe.nodes.values():
        known |= dict.fromkeys(str(path[0]) for path in (node.inputs or {}).values())
        known |= dict.fromkeys(parse_path(key)[0] for key in (*node.reads, *node.writes))
    for condition in (edge.when for edge in recipe.edges if edge.when is not None):
        known |= dict.fromkeys(str(path[0]) for path in condition.reads if path)
    return known | dict.fromkeys(str(path[0]) for _, path in run.tables.codes)


def check_paths(recipe: Recipe, run: Run, paths: Iterable[Sequence[str | int]], where: str) -> Iterator[Problem]:
    """Yield a problem for each board path whose first key nothing writes: X145."""
    nodes = [node for node in recipe.nodes.values() if node.kind not in WRITES_NOTHING and not node.bodies]
    complete = bool(nodes) and recipe.reactive is None and all(node.writes for node in nodes)
    allowed = AROUND if recipe.meta.get("context") else ()
    named = (path for path in paths if path and path[0] not in allowed)
    yield from check_keys(named, collect_known_keys(recipe, run), where, complete=complete)


def check_tools(recipe: Recipe, tools: Mapping[str, Any] | None) -> None:
    """Raise for tools that nothing in the recipe calls.

    X146: a tool was passed that nothing in the recipe calls.

    Raises:
        ExecutionError: X146, every such name.
    """
    if not tools or recipe.reactive is not None:
        return
    if any(agent.tools is None for agent in get_agents(recipe.meta).values()):
        return  # these may call any tool of the session
    known = _collect_tool_names(recipe)
    problems = [
        Problem("X146", f"no node of {recipe.name!r} calls a tool {name!r}", "tools=...",
                f"tools are passed by the name of a tool, a function, an agent or a node; "
                f"there are: {list_names(sorted(known))}", did_you_mean(name, known, "remove it, or name one of these"))
        for name in tools if name not in known
    ]  # fmt: skip
    if problems:
        raise ExecutionError(*problems)


def _collect_tool_names(recipe: Recipe) -> set[str]:
    """Return every name in a recipe that may be that of a tool, a function or an agent."""
    known = {*recipe.nodes, *recipe.tools}
    for node in recipe.nodes.values():
        known |= _collect_texts(node.params)
    for agent in get_agents(recipe.meta).values():
        known |= set(agent.tools.get_available_tools() if agent.tools is not None else ())
    return known


def collect_call_names(run: Run) -> set[str]:
    """Return the known kinds and names of a run's calls."""
    recipe = run.plan.recipe
    known = {*_CALL_KINDS, *_collect_tool_names(recipe), *run.world.tools}
    known |= {get_own_attribute(node.params.get("function"), "__name__", node.id) for node in recipe.nodes.values()}
    return known | {name for history in run.chain for call in history.calls for name in (call.kind, call.name)}


def collect_event_types(run: Run) -> set[str]:
    """Return the types of the events that a run has had or that its nodes listen to."""
    known = {kind for node in run.plan.recipe.nodes.values() for kind in node.on}
    return known | {event.type for history in run.chain for event in history.events}


def _collect_texts(value: Any) -> set[str]:
    """Return the short texts within a node's parameters: each may be the name of a tool."""
    if isinstance(value, str):
        return {value} if len(value) <= _LONGEST_NAME else set()
    if isinstance(value, Mapping):
        return set().union(*map(_collect_texts, value.values()))
    return set().union(*map(_collect_texts, value)) if isinstance(value, list | tuple | set | frozenset) else set()


def check_not_running(state: State, verb: str) -> None:
    """Raise while a background run is active, or if the run is read-only.

    Raises:
        ExecutionError: X112, it is running; L450, it was opened without its recipe; L452, it was closed.
    """
    check_locked(state)
    if state.moves:
        raise ExecutionError(
            Problem(
                "X112",
                f"{verb} cannot be done while the session is running: pause() first",
                f"session {state.name!r}, after step {state.run.position}",
                "start(), arun() or astep() is in progress, and only one of them can run at a time",
                "call session.pause(), then `await session.wait()`, then try again",
            )
        )


def check_locked(state: State) -> None:
    """Raise if a run is read-only.

    Raises:
        ExecutionError: L450, it was opened without its recipe; L452, it was closed.
    """
    if state.read_only_reason is not None:
        raise ExecutionError(state.read_only_reason)


def check_not_inside(state: State, verb: str) -> None:
    """Raise if a node or a listener of a run tries to move the run that calls it.

    Raises:
        ExecutionError: X112, it is running.
    """
    if state.sync_calls:
        check_not_running(state, verb)


def check_until(state: State, until: Any) -> Condition:
    """Return the condition at which a run stops.

    Raises:
        ExecutionError: X118, it is a single name that is neither a node nor a key, a near miss of a node id, or not a
            condition; X145, it reads a key that nothing writes.
        RecipeError: the condition is invalid.
    """
    from agentnb.expressions.conditions import to_condition

    nodes, known = state.recipe.nodes, collect_known_keys(state.recipe, state.run)
    if isinstance(until, str) and until not in known:
        if get_close_matches(until, nodes, n=1, cutoff=0.75):
            raise ExecutionError(_make_place_problem(until, nodes, known))
        if _is_word(until) and not {until, until.partition(".")[0]} & {*known, *AROUND}:
            raise ExecutionError(_make_place_problem(until, nodes, known))
    if not (isinstance(until, str | Mapping) or callable(until)):
        what = safe_repr(until) if isinstance(until, int) else with_article(type(until).__name__)
        raise ExecutionError(
            Problem("X118", f"{what} is not a stopping point", "run(until=...)",
                    "it is a node id, a step number from 0, a condition text, JsonLogic, or a callable of the board",
                    "pass one of these")
        )  # fmt: skip
    condition = to_condition(until)
    if problems := [*state.check_paths(condition.reads, "run(until=...)")]:
        raise ExecutionError(*problems)
    return condition


def _is_word(text: str) -> bool:
    """Return True for a single name or path: not an expression or a constant of the expression language."""
    return all(part.isidentifier() for part in text.split(".")) and text.lower() not in ("true", "false", "none")


def _make_place_problem(until: str, nodes: Collection[str], keys: Collection[str]) -> Problem:
    return Problem("X118", f"{until!r} is neither a node nor a key of the board", "run(until=...)",
                   f"the nodes are: {list_names(nodes)}; the keys are: {list_names(keys)}",
                   did_you_mean(until, [*nodes, *keys], "name a node, or write a condition"))  # fmt: skip


def refuse_step(state: State, step: Any) -> None:
    """Raise for a step that this run does not have.

    X111: there is no such step, or no such event to fork at.

    Raises:
        ExecutionError: X111, there is no such step.
    """
    tip = state.run.history.tip
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= tip:
        raise ExecutionError(
            Problem(
                "X111",
                f"there is no step {safe_repr(step)}",
                f"session {state.name!r}",
                f"its steps are 1 to {tip}, and 0 is before the first" if tip else "no step has run; only 0 is valid",
                "use one of them, or continue the run",
            )
        )


def check_count(number: Any, argument: str) -> None:
    """Raise for a value that is not a number of steps.

    Raises:
        ExecutionError: X135, it is not an integer, or it is negative.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ExecutionError(
            Problem("X135", f"{safe_repr(number)} is not a number of steps", argument,
                    "the number of steps is an integer; use back() to go backwards", "pass an integer of at least 0")
        )  # fmt: skip


def check_speed(steps: Any) -> float | None:
    """Return the most steps per second that a background run makes; None for no limit.

    Raises:
        ExecutionError: X128, it is not a number, or too small.
    """
    if steps is None:
        return None
    if isinstance(steps, int | float) and not isinstance(steps, bool) and SLOWEST <= steps < inf:
        return float(steps)
    raise ExecutionError(
        Problem("X128", f"{safe_repr(steps)} is not a speed", "session.speed",
                f"a speed is a number of steps per second, at least {SLOWEST:g}, or None for no limit",
                "write for example session.speed = 3")
    )  # fmt: skip


def find_unmet_requirements(run: Run, *, required: bool = True) -> list[Requirement]:
    """Return the requirements that are not met before the first step; none once the run has begun.

    With `required` false, those that only warn. A requirement that cannot be evaluated is not met.
    """
    if run.position or not run.plan.recipe.requires:
        return []
    board = Board(lambda: get_current_scope(run))
    return [rule for rule in run.plan.recipe.requires if rule.required is required and not _holds(rule, board)]


def _holds(rule: Requirement, board: Board) -> bool:
    try:
        return bool(rule.holds(board))
    except Exception:  # noqa: BLE001  (whatever it stumbles over is not what it asks for)
        return False


def make_requirements_problem(run: Run) -> Problem | None:
    """X121: the board does not hold what the recipe requires.

    None if it does.
    """
    rules = find_unmet_requirements(run)
    if not rules:
        return None
    where = next((str(rule.place) for rule in rules if rule.place), f"recipe {run.plan.recipe.name!r}")
    return Problem(
        "X121",
        "; ".join(rule.message for rule in rules),
        where,
        "the recipe requires it before its first step; nothing has run",
        "pass other inputs, or edit the board: session.edit({KEY: VALUE}); then run again",
    )


def warn_of_requirements(run: Run) -> None:
    """Warn of optional requirements that are not met."""
    for rule in find_unmet_requirements(run, required=False):
        where = f" ({rule.place})" if rule.place else ""
        warn_caller(f"{safe_str(rule.message)}{where}: an optional requirement is not met")
