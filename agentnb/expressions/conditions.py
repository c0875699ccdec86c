"""Conditions of edges, routes and breakpoints: JsonLogic rules, expressions and callables of the board.

Rules are compiled by datalogic-py (this is the only module that imports it) with a budget of operations, and receive
only the paths that they read. Where the library would evaluate something wrongly or silently, this is corrected or
reported: see `make_ready`.

R310: a condition is not a rule, text or callable
R315: a rule does not compile
X310: an ordered comparison reads a missing value
X311: a rule exceeds its budget of operations
X312: a rule cannot compare a value of the board
X313: a rule failed while it ran
X314: a condition has no truth value
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from agentnb.errors import AgentNbError, ExecutionError, Place, Problem, RecipeError, did_you_mean, with_article
from agentnb.expressions.comparisons import compile_comparison
from agentnb.expressions.jsonlogic import (
    MISSING,
    Operand,
    Operator,
    PreparedRule,
    check_rule,
    format_rule,
    make_ready,
    normalize,
)
from agentnb.expressions.lookup import (
    NOTHING,
    find_missing_prefix,
    get_value,
    has_json,
    is_number,
    is_simple,
    put,
    to_finite,
    to_json,
)
from agentnb.expressions.templates import Template, compile_expression, compile_template, has_markers
from agentnb.recipe.user_functions import (
    GENERATES,
    UNKNOWN_SOURCE,
    describe_how_to_run,
    find_unrun,
    is_async,
    is_generator,
    read_source_lines,
)
from agentnb.text import safe_repr

__all__ = [
    "Condition",
    "Rule",
    "check_callable",
    "compile_rule",
    "get_callable_text",
    "make_condition_problem",
    "to_condition",
]

Path = tuple[str, ...]
Row = tuple[str, Any]
_OPERATIONS = 1_000_000  # limit of one evaluation: some tens of milliseconds
_EXPLAINED = 100_000  # the same, with each operation traced
_TRACE_SIZE = 10_000_000  # characters; the library records the whole context with each operation
_MAX_ROWS = 200
_FAMILIES = ["Core", "DateTime", "ExtString", "ExtArray", "ExtObject", "ExtControl", "ErrorHandling", "ExtMath"]
_SURE = frozenset({bool, type(None), str, int, float, list, dict, tuple, set})  # types whose truth value cannot fail
_PUT_TOGETHER, _ONE_EXPRESSION = (
    "a template with other text around it is always true",
    "write one expression, without braces",
)
_THROWN = re.compile(re.escape(MISSING) + r"(\d+)")


@cache
def _get_engine(operations: int) -> Any:
    """Return the rule engine: datalogic-py, or agentnb's own if it is not installed, as in WebAssembly."""
    try:
        from datalogic_py import Engine
    except ImportError:
        from agentnb.expressions.plain_rules import Engine as PlainEngine

        return PlainEngine(operations)
    # Text that is not a number is unequal to a number, as in JavaScript; the library raises an error by default.
    return Engine(config={"ops_budget": operations, "loose_equality_errors": False}, families=_FAMILIES)


@cache
def _get_operators() -> Mapping[str, Operator]:
    return {
        name: Operator(known["min_args"], known["max_args"])
        for known in _get_engine(_OPERATIONS).operators()
        for name in (known["name"], *known["aliases"])
    }


class Rule:
    """A compiled JsonLogic rule: `evaluate(board)` returns its value, not always a bool; it is truthy as in Python.

    `text` is the rule as shown to people; `reads` are the paths that it reads; `reads_all` is True if these may be any.
    `warning` describes a problem of the last evaluation: text that was compared with a number.

    Raises:
        RecipeError: R315, the library rejects the rule
    """

    __slots__ = ("_compiled", "_pairs", "_paths", "_ready", "place", "reads", "reads_all", "text", "warning")

    def __init__(self, rule: Any, ready: PreparedRule, place: Place | None) -> None:
        self.text, self.place, self.warning = format_rule(rule), place, ""
        self._ready, self._compiled = ready, _compile(ready.rule, self.text, place)
        self._pairs = ready.pairs
        facts = self._compiled.facts()
        paths = [tuple(path) for path in facts["reads"] if path and path[0] not in ready.slots]
        self.reads_all = [] in facts["reads"] or not facts["reads_complete"]
        # A path below another one adds nothing to the rule's context.
        self._paths = [path for path in paths if not any(path[:size] in paths for size in range(1, len(path)))]
        used = [*self._paths, *(path for each in ready.slots.values() for path in each.reads)]
        self.reads: tuple[Path, ...] = tuple(dict.fromkeys(used))

    def __repr__(self) -> str:
        return f"<Rule {safe_repr(self.text, 200)}>"

    def evaluate(self, board: Mapping[str, Any]) -> Any:
        """Return the rule's value on this board.

        Raises:
            ExecutionError: X310 to X313, and those of the rule's templates
        """
        context, simple = self._make_context(board)
        if self._pairs:
            self.warning = self._describe_oddity(context)
        try:
            return self._compiled.evaluate(context if simple else self._to_json(context))
        except ExecutionError:
            raise
        except Exception as error:
            raise ExecutionError(self._make_problem(error, board)) from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # the library's internal error
                raise
            raise ExecutionError(self._make_problem(error, board)) from error

    def explain(self, board: Mapping[str, Any]) -> list[Row]:
        """Return (text, value) for everything that the rule read and compared, in order, and last for the whole."""
        try:
            text = self._to_json(self._make_context(board)[0])
        except ExecutionError as error:
            return [(self.text, f"fails: {error.problems[0].what}")]
        if len(text) * len(self._ready.texts) > _TRACE_SIZE:
            rows = [(".".join(path), value) for path in self.reads if (value := get_value(board, path)) is not NOTHING]
            return [*rows, _evaluate(self.text, lambda: self.evaluate(board))]
        trace = json.loads(_get_engine(_EXPLAINED).evaluate_with_trace(json.dumps(self._ready.rule), text))
        rows = []
        for step in trace["steps"]:
            pointer = trace["pointers"].get(str(step["node_id"]), "")
            if pointer and step["error"] is None and (seen := self._ready.texts.get(pointer)):
                rows.append((seen, step["result"]))
        # Unique by text and repr: 1 equals True, and lists are not hashable.
        rows = list({(seen, repr(value)): (seen, value) for seen, value in rows[:_MAX_ROWS]}.values())
        return [*rows, _evaluate(self.text, lambda: self.evaluate(board))]

    def _make_context(self, board: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Return the rule's context from the board, and whether the library accepts it unchanged."""
        context: dict[str, Any] = {str(key): board[key] for key in board} if self.reads_all else {}
        simple = not self.reads_all
        if simple:
            for path in self._paths:
                value = board.get(path[0], NOTHING) if len(path) == 1 else get_value(board, path)
                if value is NOTHING and (len(path) > 1 or (value := get_value(board, path)) is NOTHING):
                    continue
                simple = simple and is_simple(value)
                put(context, path, value)
        for key, template in self._ready.slots.items():
            context[key] = value = template.render(board)
            simple = simple and is_simple(value)
        return context, simple

    def _describe_oddity(self, context: Mapping[str, Any]) -> str:
        for left, right, text in self._pairs:
            left_value, right_value = _resolve_side(context, left), _resolve_side(context, right)
            if (type(left_value) is str) is not (type(right_value) is str) and is_number(
                right_value if type(left_value) is str else left_value
            ):
                return f"{text} compares text with a number"
        return ""

    def _to_json(self, context: Mapping[str, Any]) -> str:
        try:
            return to_json({key: to_finite(value) for key, value in context.items()})
        # RecursionError: from an object's own `model_dump` or items
        except (TypeError, ValueError, RecursionError) as error:
            raise ExecutionError(self._make_type_problem(context, error)) from error

    # -- messages

    def _format_where(self) -> str:
        return str(self.place or "<rule>")

    def _make_type_problem(self, context: Mapping[str, Any], error: Exception) -> Problem:
        """Return the Problem of a value that does not exist in JSON, with the key that contains it."""
        holder = next((key for key, value in context.items() if not has_json(value)), "the board")
        why = (
            "it is nested too deeply" if isinstance(error, RecursionError) else f"a rule compares JSON values: {error}"
        )
        order = "compare a part of it, or use an expression or a callable"
        return Problem("X312", f"the rule {_cut(self.text)} cannot read {holder!r}", self._format_where(), why, order)

    def _make_problem(self, error: BaseException, board: Mapping[str, Any]) -> Problem:
        message, where, sort = str(error), self._format_where(), getattr(error, "error_type", "")
        missing = _THROWN.search(message)
        if sort == "Thrown" and missing and int(missing[1]) < len(self._ready.guards):
            return self._make_missing_problem(*self._ready.guards[int(missing[1])], board)
        what = f"the rule {_cut(self.text)}"
        if sort == "BudgetExceeded" or type(error).__name__ == "PanicException":
            why = f"one evaluation may take {_OPERATIONS:,} operations"
            return Problem("X311", f"{what} exceeds its limits", where, why, "read less, or compute it in a node")
        if sort == "ParseError":
            return Problem(
                "X312", f"{what} cannot read a value", where, message, "compare a part of it, or use a callable"
            )
        part = self._ready.texts.get(_get_pointer(error))
        what = f"{what} failed" if part in (None, self.text) else f"{what} failed at {_cut(part)}"
        if sort == "Thrown" and '"NaN"' in message:
            return Problem(
                "X313",
                what,
                where,
                "it does arithmetic with a value that is not a number",
                "check the values it reads: session.board",
            )
        return Problem("X313", what, where, message, "check the values it reads: session.board")

    def _make_missing_problem(self, operand: str, comparison: str, board: Mapping[str, Any]) -> Problem:
        what = f"the rule compares {operand!r}, which is missing"
        order = f"write it first, or give a default: {{'var': [{operand!r}, 0]}}"
        gap = next(
            (gap for path in self.reads if ".".join(path) == operand and (gap := find_missing_prefix(board, path))),
            None,
        )
        why = f"in {_cut(comparison)}, a missing value would count as 0"
        if gap is None:
            return Problem("X310", what, self._format_where(), why, order)
        path, known = gap
        why += f"; {'.'.join(path[:-1]) or 'the board'} has: {', '.join(known[:20]) or 'no names'}"
        return Problem("X310", what, self._format_where(), why, did_you_mean(path[-1], known, order))


def compile_rule(rule: Any, *, strict: bool = True, place: Place | None = None) -> Rule:
    """Check and compile a JsonLogic rule; nothing of it runs.

    If `strict`, a missing value (or null) in an ordered comparison is an error; JsonLogic takes it for 0.

    Raises:
        RecipeError: R311 to R315 with a JSON pointer each, and those of its templates; all at once
    """
    problems = list(check_rule(rule, _get_operators(), place))
    if problems:
        raise RecipeError(*problems)
    rule = normalize(rule)
    return Rule(rule, make_ready(rule, strict=strict, place=place), place)


def _compile(rule: Any, text: str, place: Place | None) -> Any:
    try:
        return _get_engine(_OPERATIONS).compile(rule)
    except Exception as error:
        what, where = f"the rule {_cut(text)} cannot be compiled", str(place or "<rule>")
        do = "write smaller numbers, and strings without lone surrogates"
        raise RecipeError(Problem("R315", what, where, f"{type(error).__name__}: {error}", do)) from error


def _resolve_side(context: Any, side: Operand) -> Any:
    """Return a side's value in the rule's context: in dicts created by `put`, or in the board's own values."""
    if side.path is None:
        return side.value
    current = context
    for key in side.path:
        if type(current) is not dict:
            return get_value(context, side.path)
        current = current.get(key)
    return current


def _get_pointer(error: BaseException) -> str:
    path = getattr(error, "path", None) or [{}]
    return str(path[-1].get("json_pointer") or "")


def _cut(text: str | None) -> str:
    shown = text or ""
    return repr(shown if len(shown) <= 200 else f"{shown[:199]}…")


def _evaluate(text: str, ask: Callable[[], Any]) -> Row:
    try:
        return text, ask()
    except AgentNbError as error:
        return text, f"fails: {error.problems[0].what}"


# ----------------------------------------------------------------------------------------------------------- conditions


class NoAnswer(ExecutionError):
    """A condition returned something without a truth value: a generator, a coroutine, or a whole table."""


class Condition:
    """A condition on the board; `condition(board)` returns its value, which is used as a truth value.

    `text` is for people; `reads` are the paths that it reads; `reads_all` is True if it may read any key; `call` is the
    bare function behind it, for callers that evaluate it very often; `kind` is rule, text or callable.
    """

    __slots__ = ("_asked", "call", "kind", "place", "reads", "reads_all", "source", "strict", "text")

    def __init__(self, source: Any, place: Place | None, *, strict: bool) -> None:
        self.source, self.place, self.strict = source, place, strict
        self._asked: Rule | Template | None = None
        self.reads: tuple[tuple[str | int, ...], ...] = ()
        self.reads_all = False
        self.call: Callable[[Mapping[str, Any]], Any]
        match source:
            case Mapping() | bool():
                self._asked = rule = compile_rule(source, strict=strict, place=place)
                self.kind, self.text, self.reads, self.reads_all = "rule", rule.text, rule.reads, rule.reads_all
                self.call = compile_comparison(normalize(source), rule.evaluate, rule)
            case str():
                self._asked = template = _compile_expression(source, strict=strict, place=place)
                self.kind, self.text, self.reads = "text", source.strip(), template.reads
                self.call = compile_comparison(template.rule, self._make_sure(template.render), template)
            case _:
                check_callable(source, place)
                # A source that declares what it reads is trusted.
                self.reads, self.reads_all = tuple(getattr(source, "reads", ())), not hasattr(source, "reads")
                self.kind, self.text = "callable", str(getattr(source, "text", "") or get_callable_text(source))
                self.call = self._make_sure(source)

    def __call__(self, board: Mapping[str, Any], /) -> Any:
        """Return the condition's value."""
        return self.call(board)

    def __repr__(self) -> str:
        return f"<Condition {safe_repr(self.text, 200)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy by source: a compiled condition cannot be copied."""
        return _recompile, (self.source, self.place, self.strict)

    @property
    def warning(self) -> str:
        """A warning about the last evaluation; empty if there is none."""
        return self._asked.warning if self._asked else ""

    def with_strictness(self, strict: bool) -> Condition:
        """Return this condition with another strictness about missing values."""
        return self if strict is self.strict else Condition(self.source, self.place, strict=strict)

    def explain(self, board: Mapping[str, Any]) -> list[Row]:
        """Return (text, value) for what it read and, last, for the whole condition.

        A failure is returned, not raised.
        """
        if self._asked is None:
            return [_evaluate(self.text, lambda: self.call(board))]
        return self._asked.explain(board)

    def _make_sure(self, ask: Callable[[Mapping[str, Any]], Any]) -> Callable[[Mapping[str, Any]], Any]:
        def call(board: Mapping[str, Any]) -> Any:
            try:
                value = ask(board)
                if type(value) not in _SURE:
                    self._check_answer(value)
            except AgentNbError:
                raise
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                raise ExecutionError(self._make_no_answer_problem(why, "check the keys that it reads")) from error
            return value

        return call

    def _check_answer(self, value: Any) -> None:
        if inspect.isawaitable(value):
            getattr(value, "close", lambda: None)()
            raise NoAnswer(
                self._make_no_answer_problem("it must be awaited", "write a plain function, not an async one")
            )
        if (unrun := find_unrun(value)) is not None:
            raise NoAnswer(
                self._make_no_answer_problem(f"it returned {unrun}, which has not run", describe_how_to_run(value))
            )
        try:
            bool(value)  # a DataFrame or an array of several items raises
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise NoAnswer(
                self._make_no_answer_problem(why, "return True or False, for example with len(), any() or all()")
            ) from error

    def _make_no_answer_problem(self, why: str, order: str) -> Problem:
        where = str(self.place or "<condition>")
        return Problem("X314", f"the condition {_cut(self.text)} has no truth value", where, why, order)


def to_condition(value: Any, place: Place | None = None, *, strict: bool = True) -> Condition:
    """Return the compiled and checked Condition for a text, a JsonLogic rule (a dict) or a callable of the board.

    Text is an expression in the template language, optionally in braces. An existing condition is returned unchanged.

    Raises:
        RecipeError: R301 to R305 (text), R310, R311 to R315 (rules): all problems at once
    """
    return value if isinstance(value, Condition) else Condition(value, place, strict=strict)


def _recompile(value: Any, place: Place | None, strict: bool) -> Condition:
    return Condition(value, place, strict=strict)


def _compile_expression(text: str, *, strict: bool, place: Place | None) -> Template:
    if not text.lstrip().startswith(("{{", "{%")):
        try:
            # keep leading lines, for line numbers
            return compile_expression(text.rstrip().lstrip(" "), strict=strict, place=place)
        except RecipeError:
            if not has_markers(text):
                raise
            raise RecipeError(make_condition_problem(text, place, _PUT_TOGETHER, _ONE_EXPRESSION)) from None
    template = compile_template(text, strict=strict, place=place)
    if not template.native:
        raise RecipeError(make_condition_problem(text, place, _PUT_TOGETHER, _ONE_EXPRESSION))
    return template


_POSITIONAL: Final = {
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
}


def check_callable(value: Any, place: Place | None) -> None:
    """Raise RecipeError, R310, if `value` cannot be called with the board alone, or is asynchronous.

    A parameter with a default keeps its default, so one without is needed.
    """
    order = "write an expression (score > 3), a JsonLogic dict or a function of the board"
    if not callable(value):
        raise RecipeError(make_condition_problem(value, place, f"it is {with_article(type(value).__name__)}", order))
    if is_async(value):
        raise RecipeError(
            make_condition_problem(
                value,
                place,
                "conditions are evaluated synchronously, and this is an async function",
                "write a plain function",
            )
        )
    if is_generator(value):
        raise RecipeError(make_condition_problem(value, place, GENERATES, "write a plain function"))
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return  # some built-in functions have no signature
    why, order = "", "define it with one argument, the board"
    try:
        signature.bind({})
    except TypeError as error:
        why = f"it cannot be called with the board alone: {error}"
    needed = (each.default is each.empty for each in signature.parameters.values() if each.kind in _POSITIONAL)
    if (inspect.isfunction(value) or inspect.ismethod(value)) and not any(needed):
        why = why or "it has no parameter for the board: those with a default keep it"
    if why:
        raise RecipeError(make_condition_problem(value, place, why, order))


def make_condition_problem(value: Any, place: Place | None, why: str, order: str) -> Problem:
    """Return the Problem of a value that is not a condition."""
    return Problem("R310", f"{safe_repr(value, 200)} is not a condition", str(place or "<condition>"), why, order)


def get_callable_text(function: Any) -> str:
    """Return the source of a lambda if it is available, otherwise the callable's name."""
    name = getattr(function, "__name__", type(function).__name__)
    if name != "<lambda>":
        return str(name)
    try:
        tree = ast.parse(textwrap.dedent("".join(read_source_lines(function)[0])).strip())
    except UNKNOWN_SOURCE:
        return "a lambda"
    lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    return ast.unparse(lambdas[0].body) if len(lambdas) == 1 else "a lambda"
