"""Deterministic sample data for a JSON Schema, as used for simulated answers."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from fractions import Fraction
from random import Random
from typing import Any, Final
from urllib.parse import unquote

from agentnb.errors import ExecutionError, Problem
from agentnb.expressions.json_schema import Fault, Schema
from agentnb.expressions.paths import format_path
from agentnb.world.sample_text import CannotError, make_text
from agentnb.world.schema_merge import merge_schemas

ATTEMPTS: Final = 20  # a random choice may not fit: it is then repeated
DEEPEST: Final = 50  # levels of a value, and of nested references
MOST: Final = 10_000  # the number of schema parts visited per attempt
_REFS: Final = ("$ref", "$dynamicRef", "$recursiveRef")
# The type implied by the keywords of a schema without `type`.
_SPEAKS_OF: Final = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties", "minProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)
_SIMPLEST: Final = ("null", "boolean", "integer", "number", "string", "array", "object")


def fill(schema: Any, seed: object, name: str = "value", where: str = "a JSON Schema") -> Any:
    """Return a value that fits a schema, deterministic for a seed.

    Every property is filled; strings consist of the property's name and a number ("summary 7"), so that readers
    recognize them. `const`, `enum`, `default` and `examples` are used if present. Where a schema refers to itself, the
    inner value has only the required parts.

    Args:
        schema: a JSON Schema, or a Schema (then it is not compiled again).
        name: the word for strings outside of properties.
        where: the place for the Problem.

    Raises:
        ExecutionError: X408, no value that fits was found.

    Example:
        >>> fill({"properties": {"title": {"type": "string"}, "ok": {"const": True}}}, seed=1)
        {'title': 'title 93', 'ok': True}
    """
    checker = schema if isinstance(schema, Schema) else Schema(schema)
    why, brief = f"its schema is invalid: {format_fault(checker.wrong)}" if checker.wrong else "", False
    for attempt in range(0 if checker.wrong else ATTEMPTS):
        filler = _Filler(checker.rules, Random(f"{seed}:{attempt}"), attempt, brief)  # noqa: S311  (it shall repeat)
        try:
            value = filler.make_value(checker.rules, name, ("#",))
        except CannotError as error:
            why, brief = str(error), brief or filler.left < 0
            continue
        except (OverflowError, ValueError):
            why = "it has a number without an end"
            continue
        fault = next(checker.faults(value), None)
        if fault is None:
            return value
        why = f"the generated value does not match: {format_fault(fault)}"
    raise ExecutionError(
        Problem("X408", "no sample value can be generated for this JSON Schema", where, why,
                "bind a callable to the node, or pass an llm: Session(recipe, llm=...)")
    )  # fmt: skip


def format_fault(fault: Fault) -> str:
    """Return an error as one line: its path and the rule; an error of the whole value has no path."""
    return f"{format_path(fault.path)}: {fault.message}" if fault.path else fault.message


class _Filler:
    """One attempt. `left` is the remaining number of schema parts it may visit.

    `brief` leaves out optional properties.
    """

    def __init__(self, root: Any, random: Random, attempt: int, brief: bool) -> None:
        self.root, self.random, self.attempt, self.brief, self.left = root, random, attempt, brief, MOST

    def make_value(self, schema: Any, name: str, opened: tuple[str, ...], depth: int = 0) -> Any:
        """Return a value for a schema; `opened` are the references being resolved."""
        refs: list[str] = []
        flat = self.flatten(schema, refs, depth)
        small = self.brief or any(ref in opened for ref in refs)
        opened = (*opened, *refs)
        for word in ("anyOf", "oneOf"):
            if word in flat:
                return self.make_alternative(flat, flat.pop(word), name, opened, depth, small)
        values = [[flat["const"]]] if "const" in flat else [flat["enum"]] if "enum" in flat else []
        if self.attempt < ATTEMPTS // 2:  # these need not fit
            values += [[flat["default"]]] if "default" in flat else [flat["examples"]] if flat.get("examples") else []
        if values:
            if not values[0]:
                raise CannotError("an empty enum allows no value")
            return copy.deepcopy(self.random.choice(list(values[0])))
        match self.type_of(flat, small):
            case "object":
                return self.make_object(flat, name, opened, depth, small)
            case "array":
                return self.make_array(flat, name, opened, depth, small)
            case "integer" | "number" as type:
                return self.make_number(flat, is_integer=type == "integer")
            case "boolean":
                return self.random.random() < 0.5
            case "null":
                return None
        return make_text(flat, name, self.random)

    # -- parts of a schema ------------------------------------------------------------------------------------

    def flatten(self, schema: Any, refs: list[str], depth: int) -> dict[str, Any]:
        """Return a schema as one level of rules, with its references, `allOf` and one branch of an `if` merged in."""
        self.left -= 1
        if self.left < 0 or depth > DEEPEST:
            raise CannotError("it refers to itself without an end" if depth > DEEPEST else "it has too many parts")
        if schema is False:
            raise CannotError("a part of it allows no value")
        if not isinstance(schema, Mapping):
            return {}
        parts: list[Any] = [*schema.get("allOf", ())]
        for word in _REFS:
            if word in schema:
                refs.append(str(schema[word]))
                parts.append(self.resolve_ref(str(schema[word])))
        if "if" in schema:
            parts += [schema["if"], schema.get("then", True)] if self.attempt % 2 == 0 else [schema.get("else", True)]
        flat = {word: rule for word, rule in schema.items() if word not in ("allOf", "if", "then", "else", *_REFS)}
        for part in parts:
            flat = merge_schemas(self.flatten(part, refs, depth + 1), flat)
        return flat

    def resolve_ref(self, ref: str) -> Any:
        """Return the part of the schema at a reference."""
        if not ref.startswith("#"):
            raise CannotError(f"it refers to {ref[:80]!r}, which is not in it")
        if ref[1:] and not ref.startswith("#/"):
            return self.resolve_anchor(ref[1:])
        current = self.root
        for word in unquote(ref).split("/")[1:]:
            key = word.replace("~1", "/").replace("~0", "~")
            if isinstance(current, list | tuple) and key.isdecimal() and int(key) < len(current):
                current = current[int(key)]
            elif isinstance(current, Mapping) and key in current:
                current = current[key]
            else:
                raise CannotError(f"it refers to {ref[:80]!r}, which is not in it")
        return current

    def resolve_anchor(self, anchor: str) -> Any:
        waiting = [self.root]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Mapping):
                if anchor in (part.get("$anchor"), part.get("$dynamicAnchor")):
                    return part
                waiting += part.values()
            elif isinstance(part, list | tuple):
                waiting += part
        raise CannotError(f"it refers to '#{anchor[:80]}', which is not in it")

    def type_of(self, flat: Mapping[str, Any], small: bool) -> str:
        types = flat.get("type")
        if isinstance(types, str):
            return types
        if types:
            return str(min(types, key=_SIMPLEST.index) if small else
                       self.random.choice([kind for kind in types if kind != "null"] or ["null"]))  # fmt: skip
        return next((kind for kind, keywords in _SPEAKS_OF if any(word in flat for word in keywords)), "string")

    # -- values -----------------------------------------------------------------------------------------------

    def make_alternative(
        self, rest: Mapping[str, Any], members: Any, name: str, opened: tuple[str, ...], depth: int, small: bool
    ) -> Any:
        """Return a value for one of several schemas and the keywords beside them."""
        order = list(members)
        self.random.shuffle(order)
        if small or any(opened.count(ref) > 1 for ref in opened):  # an inner value of this kind has already been filled
            order.sort(key=_weigh)
        elif self.attempt % 2 == 0:  # null carries the least information, so it is used only if nothing else fits
            order.sort(key=lambda member: isinstance(member, Mapping) and member.get("type") == "null")
        why = "none of its alternatives can be filled"
        for member in order:
            try:
                return self.make_value({"allOf": [rest, member]}, name, opened, depth + 1)
            except CannotError as error:
                why = str(error)
                if self.left < 0:
                    break
        raise CannotError(why)

    def make_object(
        self, flat: Mapping[str, Any], name: str, opened: tuple[str, ...], depth: int, small: bool
    ) -> dict[str, Any]:
        properties, required = flat.get("properties", {}), flat.get("required", ())
        rest = flat.get("additionalProperties", True)
        max_count = max(int(flat.get("maxProperties", MOST)), len(required))
        optional = [key for key in properties if key not in required][: max_count - len(required)]
        keys = dict.fromkeys(
            key for key in (*properties, *required) if key in required or (key in optional and not small)
        )
        if not keys and isinstance(rest, Mapping) and rest and not small:
            keys = {f"{name} 1": None}
        extra = (new for number in range(MOST) if (new := f"{name} {number + 1}") not in properties)
        while len(keys) < flat.get("minProperties", 0):
            key = next((key for key in optional if key not in keys), None) or next(extra, None)
            if key is None:
                raise CannotError(f"no object has as many keys as {name!r} requires")
            keys[key] = None
        values = {}
        for key in keys:
            try:
                values[key] = self.make_value(properties.get(key, rest), str(key), opened, depth + 1)
            except CannotError:
                if key in required or self.left < 0:
                    raise
        return values

    def make_array(
        self, flat: Mapping[str, Any], name: str, opened: tuple[str, ...], depth: int, small: bool
    ) -> list[Any]:
        items = flat.get("items", True)
        first = flat.get("prefixItems", ())
        if isinstance(items, list | tuple):  # the notation of drafts before 2020
            first, items = items, flat.get("additionalItems", True)
        low, high = int(flat.get("minItems", 0)), int(flat.get("maxItems", MOST))
        contains = int(flat.get("minContains", 1)) if "contains" in flat else 0
        low = max(low, len(first) + contains if contains else 0)
        if low > min(high, MOST):
            raise CannotError(f"no list is as long as {name!r} requires")
        length = low if small else max(low, len(first), self.random.randint(1, 3))
        if items is False:
            length = min(length, len(first))
        result: list[Any] = []
        for number in range(min(length, high)):
            rule = first[number] if number < len(first) else items
            if contains and len(first) <= number < len(first) + contains:
                rule = {"allOf": [rule, flat["contains"]]}
            try:
                result.append(self.make_item(rule, name, opened, depth, result if flat.get("uniqueItems") else ()))
            except CannotError:
                if number < low or self.left < 0:
                    raise
                break
        return result

    def make_item(self, rule: Any, name: str, opened: tuple[str, ...], depth: int, others: Any) -> Any:
        """Return an item of a list that differs from the others."""
        known = set(map(_to_key, others))
        for _ in range(50):
            drawn = self.make_value(rule, name, opened, depth + 1)
            if _to_key(drawn) not in known:
                return drawn
        raise CannotError(f"there are not enough different values for {name!r}")

    def make_number(self, flat: Mapping[str, Any], *, is_integer: bool) -> int | float:
        low, high = (
            _get_limits(flat, "minimum", "exclusiveMinimum", max),
            _get_limits(flat, "maximum", "exclusiveMaximum", min),
        )
        step = Fraction(str(flat["multipleOf"])) if "multipleOf" in flat else None
        if is_integer:
            # with a step of 3/2, every second multiple is an integer
            step = Fraction(1 if step is None else step.numerator)
        span = 99 * (step or 1)
        least = low[0] if low else high[0] - span if high else Fraction(1 if is_integer else 0)
        upper = high[0] if high else least + span
        if least > upper:
            raise CannotError("its smallest number is larger than its largest")
        if step is not None:
            return self.draw_multiple(least, upper, step, bool(low and low[1]), bool(high and high[1]))
        for digits in (2, 4, 8):
            drawn = round(self.random.uniform(float(least), float(upper)), digits)
            if (
                (least < drawn < upper)
                or (drawn == least and not (low and low[1]))
                or (drawn == upper and not (high and high[1]))
            ):
                return drawn
        return float((least + upper) / 2)

    def draw_multiple(
        self, minimum: Fraction, maximum: Fraction, step: Fraction, above: bool, below: bool
    ) -> int | float:
        """Return a multiple of `step` between two numbers; `above` and `below` mark them as exclusive."""
        first, last = math.ceil(minimum / step), math.floor(maximum / step)
        first += above and first * step == minimum
        last -= below and last * step == maximum
        if first > last:
            raise CannotError(f"no multiple of {step} is between its limits")
        drawn = self.random.randint(first, last) * step
        return int(drawn) if drawn.denominator == 1 else float(drawn)


def _get_limits(flat: Mapping[str, Any], word: str, beyond: str, tighter: Any) -> tuple[Fraction, bool] | None:
    """Return a limit, and whether it is exclusive, which draft 4 expresses by a boolean."""
    limit, other = flat.get(word), flat.get(beyond)
    if isinstance(other, bool):
        return None if limit is None else (Fraction(limit), other)
    limits = [(Fraction(value), value is other) for value in (limit, other) if value is not None]
    if len(limits) == 2 and limits[0][0] == limits[1][0]:
        return limits[1]
    return tighter(limits) if limits else None


def _weigh(member: Any) -> int:
    """Return how much data a schema may require, so that options that end a recursion come first."""
    if not isinstance(member, Mapping) or any(word in member for word in ("const", "enum")):
        return 0
    if any(word in member for word in (*_REFS, "allOf", "anyOf", "oneOf")):
        return len(_SIMPLEST)
    kinds = member.get("type", "string")
    return min(map(_SIMPLEST.index, [kinds] if isinstance(kinds, str) else kinds))


def _to_key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
