"""rules: JsonLogic as data. A rule is checked with a pointer to each mistake, worded for people, and made ready to run.

R311: a rule is too large or nested too deep
R312: a rule has an object that is no operator with its arguments
R313: a rule uses an operator that there is not, or that is not for conditions
R314: an operator is given too many or too few arguments
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentnb.errors import Place, Problem, RecipeError, did_you_mean
from agentnb.expressions.reading import plain, to_json
from agentnb.expressions.templates import Template, compile_template, has_markers

__all__ = ["MISSING", "Operator", "Ready", "check_rule", "make_ready", "rule_text"]

MAX_DEPTH = 64
MAX_PARTS = 10_000
MISSING = "agentnb: missing "  # what a guard throws, before the number of its comparison
_NULL = "\0null"  # stands for null in == and !=, where the library would take null for 0, "" and false
_TEMPLATE = "\0template "  # the key under which a rendered template is handed over
_ORDERED = ("<", "<=", ">", ">=")
_EQUAL = ("==", "!=")
_ARITHMETIC = ("+", "-", "*", "/", "%", "abs", "ceil", "floor")
_INFIX = (*_ORDERED, *_EQUAL, "===", "!==", "in", "+", "-", "*", "/", "%", "and", "or", "??")
_SCOPED = ("map", "filter", "reduce", "all", "some", "none", "sort", "group_by")
_GLUE = ("and", "or", "!", "!!", "if", "?:", "??")
_NOT_FOR_RULES = {
    "now": ("a condition runs again on replay, when the clock says something else", "put the time on the board"),
    "distinct": ("its time grows with the square of a list, and no budget counts it", "let a node work it out"),
}


class Operator(NamedTuple):
    """How many arguments an operator takes; None is any number."""

    least: int
    most: int | None


class Side(NamedTuple):
    """One side of a comparison: a path on the board, or a literal."""

    path: tuple[str, ...] | None
    value: Any = None


@dataclass
class Ready:
    """A rule as the library is given it, and what stands where in it.

    `slots` are its templates by the key that their value is handed over by; `texts` say by JSON pointer what people
    see; `guards` are the operands of ordered comparisons that must not be missing; `pairs` are the comparisons whose
    two sides can be looked at before the rule runs.
    """

    rule: Any = None
    slots: dict[str, Template] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    guards: list[tuple[str, str]] = field(default_factory=list)
    pairs: list[tuple[Side, Side, str]] = field(default_factory=list)


# ------------------------------------------------------------------------------------------------------------- checking


def check_rule(rule: Any, operators: Mapping[str, Operator], place: Place | None) -> Iterator[Problem]:
    """Yield every problem of a rule; it is not compiled."""
    parts = 0
    stack: list[tuple[Any, str, int]] = [(rule, "", 0)]
    while stack:
        node, pointer, depth = stack.pop()
        parts += 1
        where = f"{place or '<rule>'}, {pointer or '/'}"
        if depth > MAX_DEPTH or parts > MAX_PARTS:
            what = "the rule is nested too deep" if depth > MAX_DEPTH else "the rule has too many parts"
            why = f"a rule has at most {MAX_DEPTH} levels and {MAX_PARTS:,} parts"
            yield Problem("R311", what, where[:200], why, "write a shorter one, or let a node work it out")
            return
        inside: list[tuple[Any, str, int]] = []
        if isinstance(node, Mapping):
            yield from _check_operation(node, operators, where)
            for key, item in node.items():
                # An operator and the list of its arguments are one level.
                inside.append((item, f"{pointer}/{_escaped(key)}", depth + (not _is_list(item))))
        elif _is_list(node):
            inside += ((item, f"{pointer}/{at}", depth + 1) for at, item in enumerate(node))
        else:
            yield from _check_literal(node, where)
        stack += reversed(inside)


def _check_literal(value: Any, where: str) -> Iterator[Problem]:
    try:
        if isinstance(plain(value), dict | list):
            raise TypeError(f"a {type(value).__name__} is none")  # it would bring operators that nobody checked
        to_json(value)
    except (TypeError, ValueError) as error:
        what = f"the rule holds {value!r}"
        yield Problem("R312", what, where, f"a rule is JSON: {error}", "write a text, a number, true, false or null")


def _check_operation(node: Mapping[Any, Any], operators: Mapping[str, Operator], where: str) -> Iterator[Problem]:
    if len(node) != 1:
        words = ", ".join(repr(key) for key in node) or "nothing"
        why = "an object in a rule is one operator with its arguments"
        order = "join the conditions: {'and': [{...}, {...}]}" if node else "leave it out, or write an operator"
        yield Problem("R312", f"an object of the rule holds {words}", where, why, order)
        return
    ((name, arguments),) = node.items()
    operator = operators.get(name) if isinstance(name, str) else None
    if name in _NOT_FOR_RULES:
        why, order = _NOT_FOR_RULES[name]
        yield Problem("R313", f"the rule uses {name!r}", where, why, order)
    elif operator is None:
        why = f"the operators are: {', '.join(operators)}"
        order = did_you_mean(name, operators, "use an operator that there is; a value by its name is {'var': 'name'}")
        yield Problem("R313", f"the rule uses the operator {name!r}", where, why, order)
    else:
        count = len(arguments) if _is_list(arguments) else 1
        if count < operator.least or (operator.most is not None and count > operator.most):
            most = "or more" if operator.most is None else f"to {operator.most}"
            why = f"it takes {operator.least} {most}"
            yield Problem("R314", f"{name!r} is given {count} arguments", where, why, "give it a list of its arguments")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _escaped(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


# --------------------------------------------------------------------------------------------------------- making ready


def make_ready(rule: Any, *, strict: bool, place: Place | None) -> Ready:
    """Return a checked rule as the library is to run it.

    Templates become values handed over with the board's; null equals nothing but null, as in JavaScript; where
    `strict`, what is missing in an ordered comparison is thrown instead of taken for 0.

    Raises: RecipeError: the problems of its templates
    """
    rewriting = _Rewriting(strict=strict, place=place)
    rewriting.ready.rule = rewriting.rewritten(normal(rule), "")
    if rewriting.problems:
        raise RecipeError(*rewriting.problems)
    return rewriting.ready


def normal(rule: Any) -> Any:
    """Return a checked rule as dicts, lists and what JSON has; a date that YAML read becomes text again."""
    if isinstance(rule, Mapping):
        return {name: normal(arguments) for name, arguments in rule.items()}
    return [normal(item) for item in rule] if _is_list(rule) else plain(rule)


class _Rewriting:
    """One walk through a rule; what it finds on the way is in `ready` and `problems`."""

    def __init__(self, *, strict: bool, place: Place | None) -> None:
        self.strict, self.place = strict, place
        self.ready, self.problems = Ready(), list[Problem]()
        self._scopes = 0

    def rewritten(self, node: Any, pointer: str) -> Any:
        """Return what stands for `node` at `pointer` of the new rule."""
        if isinstance(node, list):
            return [self.rewritten(item, f"{pointer}/{at}") for at, item in enumerate(node)]
        if not isinstance(node, dict):
            return node if _is_literal(node) else self._handed_over(node, pointer)
        name, arguments = _operation(node)
        inner = self._noted(node, name, pointer)
        if name in (*_EQUAL, *_ORDERED):
            self._note_pair(arguments, node)
        if name in _EQUAL:
            return {name: [self._null_safe(item, f"{inner}/{at}") for at, item in enumerate(arguments)]}
        if name in _ORDERED and self.strict:
            return {name: [self._guarded(item, f"{inner}/{at}", node) for at, item in enumerate(arguments)]}
        self._scopes += name in _SCOPED
        new = {name: self.rewritten(arguments, inner)}
        self._scopes -= name in _SCOPED
        return new

    def _noted(self, node: dict[str, Any], name: str, pointer: str) -> str:
        if name not in _GLUE:
            self.ready.texts[pointer] = rule_text(node)
        return f"{pointer}/{_escaped(name)}"

    def _handed_over(self, text: str, pointer: str) -> Any:
        try:
            template = compile_template(text, strict=self.strict, place=self.place)
        except RecipeError as error:
            self.problems += error.problems
            return None
        key = f"{_TEMPLATE}{len(self.ready.slots)}"
        self.ready.slots[key] = template
        self.ready.texts[pointer] = text
        # From however deep in a map or a filter: more levels up than a rule can have lead to the root.
        return {"val": [[2 * MAX_DEPTH + 1], key]}

    def _null_safe(self, node: Any, pointer: str) -> Any:
        if _is_literal(node):
            return _NULL if node is None else node
        return {"??": [self.rewritten(node, f"{pointer}/??/0"), _NULL]}

    def _guarded(self, node: Any, pointer: str, comparison: dict[str, Any]) -> Any:
        if _is_literal(node):
            return node
        if isinstance(node, dict) and next(iter(node)) in _ARITHMETIC:
            # What is missing in a sum counts as 0 as well.
            name, arguments = _operation(node)
            inner = self._noted(node, name, pointer)
            return {name: [self._guarded(item, f"{inner}/{at}", comparison) for at, item in enumerate(arguments)]}
        self.ready.guards.append((rule_text(node), rule_text(comparison)))
        thrown = {"throw": f"{MISSING}{len(self.ready.guards) - 1}"}
        return {"??": [self.rewritten(node, f"{pointer}/??/0"), thrown]}

    def _note_pair(self, arguments: list[Any], comparison: dict[str, Any]) -> None:
        sides = [side for item in arguments if (side := _side(item)) is not None]
        # Inside a map or a filter, a path starts at the item.
        if self.strict and not self._scopes and len(arguments) == len(sides) == 2:
            self.ready.pairs.append((sides[0], sides[1], rule_text(comparison)))


def _operation(node: dict[str, Any]) -> tuple[str, list[Any]]:
    """Return an operator and its arguments, always as a list: the library's pointers differ with the shape."""
    ((name, arguments),) = node.items()
    return name, arguments if isinstance(arguments, list) else [arguments]


def _is_literal(node: Any) -> bool:
    return not isinstance(node, dict | list) and not (isinstance(node, str) and has_markers(node))


def _side(node: Any) -> Side | None:
    match node:
        case {"var": str(path)} | {"var": [str(path)]} if path and not has_markers(path):
            return Side(tuple(path.split(".")))
    return Side(None, node) if _is_literal(node) else None


# -------------------------------------------------------------------------------------------------------------- wording


def rule_text(rule: Any) -> str:
    """Return a rule as people read it, in the language of templates.

    Example:
        >>> rule_text({"and": [{"<": [{"var": "tries"}, 3]}, {"!": [{"var": "done"}]}]})
        'tries < 3 and not done'
    """
    match rule:
        case dict() if len(rule) == 1:
            return _operation_text(*_operation(rule))
        case None | bool():
            return str(rule).lower()
        case str() if has_markers(rule):
            return rule
        case list():
            return f"[{', '.join(map(rule_text, rule))}]"
    return repr(rule)


def _operation_text(name: str, arguments: list[Any]) -> str:
    match name, arguments:
        case "var" | "val", [] | [""]:
            return "this"
        case "var" | "val", [str(path)]:
            return path
        case "var", [str(path), default]:
            return f"{path}|default({rule_text(default)})"
        case "!", [value]:
            return f"not {_inner_text(value)}"
        case "!!", [value]:
            return _inner_text(value)
        case "if" | "?:", [test, then, *otherwise] if len(arguments) > 1:
            rest = _operation_text("if", otherwise) if len(otherwise) > 1 else rule_text(*otherwise or [None])
            return f"{_inner_text(then)} if {_inner_text(test)} else {rest}"
        case _, [_, _, *_] if name in _INFIX:
            return f" {name} ".join(map(_inner_text, arguments))
    return f"{name}({', '.join(map(rule_text, arguments))})"


def _inner_text(rule: Any) -> str:
    """Return the text of an operand, in brackets where it is a sentence of its own."""
    text = rule_text(rule)
    loose = isinstance(rule, dict) and next(iter(rule), "") in ("and", "or", "if", "?:")
    return f"({text})" if loose else text
