"""JsonLogic rules as data: checked with a JSON pointer per mistake, rendered as text, and prepared for evaluation.

R311: a rule is too large or nested too deeply
R312: a rule contains an object that is not an operator with its arguments
R313: a rule uses an operator that is unknown or not allowed in conditions
R314: an operator has too many or too few arguments
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentnb.errors import Place, Problem, RecipeError, did_you_mean, with_article
from agentnb.expressions.lookup import to_json, to_plain
from agentnb.expressions.templates import Template, compile_template, has_markers
from agentnb.text import safe_repr, safe_str

__all__ = ["MISSING", "Operator", "PreparedRule", "check_rule", "format_rule", "make_ready"]

MAX_DEPTH = 64
MAX_PARTS = 10_000
MISSING = "agentnb: missing "  # thrown by a guard, followed by the number of its comparison
_NULL = "\0null"  # represents null in == and !=, where the library would treat null as 0, "" and false
_TEMPLATE = "\0template "  # the key that passes a rendered template
_ORDERED = ("<", "<=", ">", ">=")
_EQUAL = ("==", "!=")
_ARITHMETIC = ("+", "-", "*", "/", "%", "abs", "ceil", "floor")
_INFIX = (*_ORDERED, *_EQUAL, "===", "!==", "in", "+", "-", "*", "/", "%", "and", "or", "??")
_SCOPED = ("map", "filter", "reduce", "all", "some", "none", "sort", "group_by")
_GLUE = ("and", "or", "!", "!!", "if", "?:", "??")
_CHOICES = ("if", "?:")
_NOT_FOR_RULES = {
    "now": ("a condition runs again on replay, when the clock has another time", "put the time on the board"),
    "distinct": (
        "its running time is quadratic in the length of the list, and no budget limits it",
        "compute it in a node",
    ),
}


class Operator(NamedTuple):
    """The number of arguments that an operator accepts; None means unlimited."""

    min_operands: int
    max_operands: int | None


class Operand(NamedTuple):
    """One side of a comparison: a path on the board, or a literal."""

    path: tuple[str, ...] | None
    value: Any = None


@dataclass
class PreparedRule:
    """A rule prepared for the library, with positions of its parts.

    `slots` are its templates by the key that passes their value; `texts` are the parts as shown to people, by JSON
    pointer; `guards` are the operands of ordered comparisons that must not be missing; `pairs` are the comparisons
    whose two sides can be examined before the rule runs.
    """

    rule: Any = None
    slots: dict[str, Template] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    guards: list[tuple[str, str]] = field(default_factory=list)
    pairs: list[tuple[Operand, Operand, str]] = field(default_factory=list)


# ------------------------------------------------------------------------------------------------------------- checking


def check_rule(rule: Any, operators: Mapping[str, Operator], place: Place | None) -> Iterator[Problem]:
    """Yield every problem of a rule, without compiling it."""
    parts = 0
    stack: list[tuple[Any, str, int]] = [(rule, "", 0)]
    while stack:
        node, pointer, depth = stack.pop()
        parts += 1
        where = f"{place or '<rule>'}, {pointer or '/'}"
        if depth > MAX_DEPTH or parts > MAX_PARTS:
            what = "the rule is nested too deeply" if depth > MAX_DEPTH else "the rule has too many parts"
            why = f"a rule has at most {MAX_DEPTH} levels and {MAX_PARTS:,} parts"
            yield Problem("R311", what, where[:200], why, "write a shorter one, or compute it in a node")
            return
        inside: list[tuple[Any, str, int]] = []
        if isinstance(node, Mapping):
            yield from _check_operation(node, operators, where)
            for key, item in node.items():
                # An operator and the list of its arguments are one level.
                inside.append((item, f"{pointer}/{_escape(key)}", depth + (not _is_list(item))))
        elif _is_list(node):
            inside += ((item, f"{pointer}/{at}", depth + 1) for at, item in enumerate(node))
        else:
            yield from _check_literal(node, where)
        stack += reversed(inside)


def _check_literal(value: Any, where: str) -> Iterator[Problem]:
    try:
        if isinstance(to_plain(value), dict | list):
            raise TypeError(f"{with_article(type(value).__name__)} is not JSON")  # it would bring unchecked operators
        to_json(value)
    except Exception as error:  # noqa: BLE001  (an object may raise anything when it is looked at)
        what = f"the rule holds {safe_repr(value)}"
        yield Problem(
            "R312",
            what,
            where,
            f"a rule is JSON: {safe_str(error, 200)}",
            "write a string, a number, true, false or null",
        )


def _check_operation(node: Mapping[Any, Any], operators: Mapping[str, Operator], where: str) -> Iterator[Problem]:
    if len(node) != 1:
        names = ", ".join(map(safe_repr, node)) or "nothing"
        why = "an object in a rule is one operator with its arguments"
        order = "join the conditions: {'and': [{...}, {...}]}" if node else "leave it out, or write an operator"
        yield Problem("R312", f"an object of the rule holds {names}", where, why, order)
        return
    ((name, arguments),) = node.items()
    operator = operators.get(name) if isinstance(name, str) else None
    if name in _NOT_FOR_RULES:
        why, order = _NOT_FOR_RULES[name]
        yield Problem("R313", f"the rule uses {safe_repr(name)}", where, why, order)
    elif operator is None:
        why = f"the operators are: {', '.join(operators)}"
        order = did_you_mean(name, operators, "use one of them; to read a value by name, write {'var': 'name'}")
        yield Problem("R313", f"the rule uses the operator {safe_repr(name)}", where, why, order)
    else:
        count = len(arguments) if _is_list(arguments) else 1
        if not count and name in _CHOICES:
            return  # `normalize` replaces it by null
        if count < operator.min_operands or (operator.max_operands is not None and count > operator.max_operands):
            upper_bound = "or more" if operator.max_operands is None else f"to {operator.max_operands}"
            why = f"it takes {operator.min_operands} {upper_bound}"
            yield Problem("R314", f"{name!r} has {count} arguments", where, why, "pass a list of arguments")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _escape(key: object) -> str:
    return safe_str(key, 200).replace("~", "~0").replace("/", "~1")


# ------------------------------------------------------------------------------------------------------- preparation


def make_ready(rule: Any, *, strict: bool, place: Place | None) -> PreparedRule:
    """Return a checked rule in the form that the library runs.

    Templates become values passed along with those of the board. null equals only null, as in JavaScript. If `strict`,
    a missing value in an ordered comparison is an error instead of 0.

    Raises:
        RecipeError: the problems of its templates
    """
    rewriting = _RuleRewriter(strict=strict, place=place)
    rewriting.ready.rule = rewriting.rewritten(normalize(rule), "")
    if rewriting.problems:
        raise RecipeError(*rewriting.problems)
    return rewriting.ready


def normalize(rule: Any) -> Any:
    """Return a checked rule as dicts, lists and JSON values; a date parsed by YAML becomes a string again.

    An `if` without arguments becomes null, as in JsonLogic's own tests; the library rejects it.
    """
    if isinstance(rule, Mapping):
        if any(name in _CHOICES and _is_list(arguments) and not arguments for name, arguments in rule.items()):
            return None
        return {name: normalize(arguments) for name, arguments in rule.items()}
    return [normalize(item) for item in rule] if _is_list(rule) else to_plain(rule)


class _RuleRewriter:
    """One walk through a rule; fills `ready` and `problems`."""

    def __init__(self, *, strict: bool, place: Place | None) -> None:
        self.strict, self.place = strict, place
        self.ready, self.problems = PreparedRule(), list[Problem]()
        self._scopes = 0

    def rewritten(self, node: Any, pointer: str) -> Any:
        """Return the replacement of `node`, at `pointer` of the new rule."""
        if isinstance(node, list):
            return [self.rewritten(item, f"{pointer}/{at}") for at, item in enumerate(node)]
        if not isinstance(node, dict):
            return node if _is_literal(node) else self._hand_over(node, pointer)
        name, arguments = _split_operation(node)
        inner = self._note(node, name, pointer)
        if name in (*_EQUAL, *_ORDERED):
            self._note_pair(arguments, node)
        if name in _EQUAL:
            return {name: [self._make_null_safe(item, f"{inner}/{at}") for at, item in enumerate(arguments)]}
        if name in _ORDERED and self.strict:
            return {name: [self._guard(item, f"{inner}/{at}", node) for at, item in enumerate(arguments)]}
        self._scopes += name in _SCOPED
        new = {name: self.rewritten(arguments, inner)}
        self._scopes -= name in _SCOPED
        return new

    def _note(self, node: dict[str, Any], name: str, pointer: str) -> str:
        if name not in _GLUE:
            self.ready.texts[pointer] = format_rule(node)
        return f"{pointer}/{_escape(name)}"

    def _hand_over(self, text: str, pointer: str) -> Any:
        try:
            template = compile_template(text, strict=self.strict, place=self.place)
        except RecipeError as error:
            self.problems += error.problems
            return None
        key = f"{_TEMPLATE}{len(self.ready.slots)}"
        self.ready.slots[key] = template
        self.ready.texts[pointer] = text
        # From any depth of maps and filters: going up more levels than a rule can have leads to the root.
        return {"val": [[2 * MAX_DEPTH], key]}

    def _make_null_safe(self, node: Any, pointer: str) -> Any:
        if _is_literal(node):
            return _NULL if node is None else node
        return {"??": [self.rewritten(node, f"{pointer}/??/0"), _NULL]}

    def _guard(self, node: Any, pointer: str, comparison: dict[str, Any]) -> Any:
        if _is_literal(node):
            return node
        if isinstance(node, dict) and next(iter(node)) in _ARITHMETIC:
            # A missing value in a sum also counts as 0.
            name, arguments = _split_operation(node)
            inner = self._note(node, name, pointer)
            return {name: [self._guard(item, f"{inner}/{at}", comparison) for at, item in enumerate(arguments)]}
        self.ready.guards.append((format_rule(node), format_rule(comparison)))
        thrown = {"throw": f"{MISSING}{len(self.ready.guards) - 1}"}
        return {"??": [self.rewritten(node, f"{pointer}/??/0"), thrown]}

    def _note_pair(self, arguments: list[Any], comparison: dict[str, Any]) -> None:
        sides = [side for item in arguments if (side := _parse_side(item)) is not None]
        # Inside a map or a filter, a path starts at the item.
        if self.strict and not self._scopes and len(arguments) == len(sides) == 2:
            self.ready.pairs.append((sides[0], sides[1], format_rule(comparison)))


def _split_operation(node: dict[str, Any]) -> tuple[str, list[Any]]:
    """Return an operator and its arguments, always as a list, because the library's pointers depend on the form."""
    ((name, arguments),) = node.items()
    return name, arguments if isinstance(arguments, list) else [arguments]


def _is_literal(node: Any) -> bool:
    return not isinstance(node, dict | list) and not (isinstance(node, str) and has_markers(node))


def _parse_side(node: Any) -> Operand | None:
    match node:
        case {"var": str(path)} | {"var": [str(path)]} if path and not has_markers(path):
            return Operand(tuple(path.split(".")))
    return Operand(None, node) if _is_literal(node) else None


# -- messages ------------------------------------------------------------------------------------------------------


def format_rule(rule: Any) -> str:
    """Return a rule as text in the language of templates.

    Example:
        >>> format_rule({"and": [{"<": [{"var": "tries"}, 3]}, {"!": [{"var": "done"}]}]})
        'tries < 3 and not done'
    """
    match rule:
        case dict() if len(rule) == 1:
            return _format_operation(*_split_operation(rule))
        case None | bool():
            return str(rule).lower()
        case str() if has_markers(rule):
            return rule
        case list():
            return f"[{', '.join(map(format_rule, rule))}]"
    return repr(rule)


def _format_operation(name: str, arguments: list[Any]) -> str:
    match name, arguments:
        case "var" | "val", [] | [""]:
            return "this"
        case "var" | "val", [str(path)]:
            return path
        case "var", [str(path), default]:
            return f"{path}|default({format_rule(default)})"
        case "!", [value]:
            return f"not {_format_operand(value)}"
        case "!!", [value]:
            return _format_operand(value)
        case "if" | "?:", [test, then, *otherwise] if len(arguments) > 1:
            rest = _format_operation("if", otherwise) if len(otherwise) > 1 else format_rule(*otherwise or [None])
            return f"{_format_operand(then)} if {_format_operand(test)} else {rest}"
        case _, [_, _, *_] if name in _INFIX:
            return f" {name} ".join(map(_format_operand, arguments))
    return f"{name}({', '.join(map(format_rule, arguments))})"


def _format_operand(rule: Any) -> str:
    """Return the text of an operand, in parentheses if it is compound."""
    text = format_rule(rule)
    loose = isinstance(rule, dict) and next(iter(rule), "") in ("and", "or", "if", "?:")
    return f"({text})" if loose else text
