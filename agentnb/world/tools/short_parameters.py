"""The symphony system's own form of tool parameters: a mapping name -> rules.

    {"city": {"type": "string", "required": True, "minLength": 2}, "days": {"type": "number"}}

Parameters that are not described are allowed; None counts as an object, NaN as a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agentnb.errors import Problem, did_you_mean, with_article
from agentnb.expressions.regex import EndlessError, compile_pattern
from agentnb.secrets import MASK, is_secret
from agentnb.text import safe_repr
from agentnb.world.tools.tool_result import Detail

TYPES: Final = ("string", "number", "boolean", "object", "array", "any")
MISSING: Final = "Parameter is required."
DEEPEST: Final = 50
_RULES: Final = ("type", "required", "minLength", "maxLength", "pattern", "objectSchema", "arrayItemSchema")
_REMARKS: Final = ("description", "default", "title", "example", "examples")  # shown to a model, but not checked
_SNAKE: Final = {"min_length": "minLength", "max_length": "maxLength", "object_schema": "objectSchema",
                 "array_item_schema": "arrayItemSchema"}  # fmt: skip
_FLAGS: Final = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x", re.ASCII: "a"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """The rules of one parameter."""

    type: str
    required: bool = False
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    inside: Mapping[str, Parameter] | None = None
    items: Parameter | None = None
    remarks: Mapping[str, Any] = field(default_factory=dict)


# -- reading it ------------------------------------------------------------------------------------------------------


def read_parameters(
    source: Mapping[str, Any], where: str, depth: int = 0
) -> tuple[dict[str, Parameter], list[Problem]]:
    """Parse a mapping of parameters; return the rules and all errors.

    R190: a tool's input schema has none of the supported forms, or is not valid in its form.
    """
    parameters: dict[str, Parameter] = {}
    problems: list[Problem] = []
    if depth > DEEPEST:
        return parameters, [
            _make_problem("the input schema is nested too deeply", where, f"{DEEPEST} levels are enough", "flatten it")
        ]
    for name, declaration in source.items():
        if not isinstance(name, str):
            problems.append(
                _make_problem(f"{safe_repr(name)} names no parameter", where, "names are strings", "write a string")
            )
            continue
        parameter, wrong = _read(declaration, f"{where}.{name}", depth)
        parameters[name] = parameter
        problems += wrong
    return parameters, problems


def _read(declaration: Any, where: str, depth: int) -> tuple[Parameter, list[Problem]]:
    if not isinstance(declaration, Mapping):
        what = f"a parameter is described by {with_article(type(declaration).__name__)}"
        return Parameter("any"), [_make_problem(what, where, "it is a mapping with a type", "write {'type': 'string'}")]
    fields = {_SNAKE.get(word, word) if isinstance(word, str) else word: value for word, value in declaration.items()}
    problems = [
        _make_problem(f"{safe_repr(word)} is not a rule of a parameter", where, f"its rules are: {', '.join(_RULES)}",
               did_you_mean(str(word), _RULES, "for other rules write a JSON Schema"))
        for word in fields if word not in _RULES and word not in _REMARKS
    ]  # fmt: skip
    problems += _iter_problems(fields, where)
    pattern, wrong = _parse_pattern(fields.get("pattern"), where)
    problems += wrong
    inside, items = fields.get("objectSchema"), fields.get("arrayItemSchema")
    nested: dict[str, Parameter] | None = None
    item: Parameter | None = None
    if isinstance(inside, Mapping):
        nested, wrong = read_parameters(inside, f"{where}.objectSchema", depth + 1)
        problems += wrong
    if items is not None:
        item_parameters, wrong = read_parameters({"arrayItemSchema": items}, where, depth + 1)
        item, problems = item_parameters.get("arrayItemSchema"), problems + wrong
    kind = fields.get("type")
    parameter = Parameter(
        kind if kind in TYPES else "any",
        fields.get("required") is True,
        fields.get("minLength"),
        fields.get("maxLength"),
        pattern,
        nested,
        item,
        {word: fields[word] for word in _REMARKS if word in fields},
    )
    return parameter, problems


def _iter_problems(fields: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """R190: a rule of a parameter has an invalid value."""
    kind = fields.get("type")
    if not isinstance(kind, str) or kind not in TYPES:
        what = "a parameter has no type" if kind is None else f"{safe_repr(kind)} is not a type of a parameter"
        yield _make_problem(
            what, where, f"its types are: {', '.join(TYPES)}", did_you_mean(str(kind), TYPES, "write one of these")
        )
    if not isinstance(fields.get("required", False), bool):
        yield _make_problem(
            "`required` is neither true nor false", where, "`required` is set for each parameter", "write true or false"
        )
    for word in ("minLength", "maxLength"):
        length = fields.get(word)
        if length is not None and (isinstance(length, bool) or not isinstance(length, int) or length < 0):
            yield _make_problem(
                f"`{word}` is {safe_repr(length)}", where, "it counts characters", "write an integer of 0 or more"
            )
    if fields.get("objectSchema") is not None and not isinstance(fields["objectSchema"], Mapping):
        yield _make_problem(
            "`objectSchema` is not a mapping", where, "it describes parameters by their names", "write a mapping"
        )


def _parse_pattern(pattern: Any, where: str) -> tuple[str | None, list[Problem]]:
    if pattern is None:
        return None, []
    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
        flags = "".join(sign for flag, sign in _FLAGS.items() if pattern.flags & flag)
        pattern = f"(?{flags}){pattern.pattern}" if flags else pattern.pattern
    if not isinstance(pattern, str):
        return None, [
            _make_problem(
                f"a pattern is {with_article(type(pattern).__name__)}", where, "a pattern is a string", "write a string"
            )
        ]
    try:
        compile_pattern(pattern)
    except (EndlessError, re.error) as error:
        why = f"it might be tried without an end: {error}" if isinstance(error, EndlessError) else str(error)
        return None, [
            _make_problem(f"the pattern {safe_repr(pattern)} cannot be used", where, why, "write a simpler pattern")
        ]
    return pattern, []


def _make_problem(what: str, where: str, why: str, do: str) -> Problem:
    """R190: a tool's input schema has none of the supported forms, or is not valid in its form."""
    return Problem("R190", what, where, why, do)


# -- holding parameters against it -----------------------------------------------------------------------------------


def iter_errors(
    parameters: Mapping[str, Parameter], value: Any, path: str, *, secret: bool = False
) -> Iterator[Detail]:
    """Yield all errors of parameters, each with its path; `path` is that of the whole. None has no parts.

    Values whose names mark them as secrets are not shown; with `secret`, no values are shown.
    """
    for name, parameter in parameters.items():
        parameter_path = f"{path}.{name}"
        if isinstance(value, Mapping) and name in value:
            yield from _iter_value_errors(parameter, value[name], parameter_path, secret=secret or is_secret(name))
        elif parameter.required:
            yield _make_detail(parameter_path, MISSING, parameter.type, "undefined")


def _iter_value_errors(parameter: Parameter, value: Any, path: str, *, secret: bool) -> Iterator[Detail]:
    received = get_type_name(value)
    if parameter.type not in {"any", received}:
        message = f"Invalid type. Expected {parameter.type} but received {received}."
        yield _make_detail(path, message, parameter.type, received)
    elif parameter.type == "string":
        yield from _iter_text_errors(parameter, value, path, secret=secret)
    elif parameter.type == "object" and parameter.inside is not None:
        yield from iter_errors(parameter.inside, value, path, secret=secret)
    elif parameter.type == "array" and parameter.items is not None:
        for number, item in enumerate(value):
            yield from _iter_value_errors(parameter.items, item, f"{path}[{number}]", secret=secret)


def _iter_text_errors(parameter: Parameter, text: str, path: str, *, secret: bool) -> Iterator[Detail]:
    least, most, length = parameter.min_length, parameter.max_length, len(text)
    long = f"length: {length}"
    if least is not None and length < least:
        yield _make_detail(path, f"String is too short. Minimum length: {least}", f"minLength: {least}", long)
    if most is not None and length > most:
        yield _make_detail(path, f"String is too long. Maximum length: {most}", f"maxLength: {most}", long)
    if parameter.pattern is None:
        return
    pattern, rule = compile_pattern(parameter.pattern), f"pattern: {parameter.pattern}"
    if length > pattern.longest:
        yield _make_detail(path, f"String is too long for a pattern. Maximum length: {pattern.longest}", rule, long)
    elif not pattern.search(text):
        shown = MASK if secret else safe_repr(text)
        yield _make_detail(path, f"String does not match the pattern: {parameter.pattern}", rule, shown)


def _make_detail(path: str, message: str, expected: str, received: str) -> Detail:
    return {"path": path, "message": message, "expected": expected, "received": received}


def get_type_name(value: Any) -> str:
    """Return the type of a value in the terms of this form; if it has none, its class.

    Example:
        >>> [get_type_name(value) for value in ("a", True, 1, None, (1, 2))]
        ['string', 'boolean', 'number', 'object', 'array']
    """
    for cls, name in ((str, "string"), (bool, "boolean"), (int | float, "number"), (list | tuple, "array")):
        if isinstance(value, cls):
            return name
    return "object" if value is None or isinstance(value, Mapping) else type(value).__name__


# -- showing it ------------------------------------------------------------------------------------------------------


def to_json_schema(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return parameters as one JSON Schema of an object, as shown to a model.

    Example:
        >>> to_json_schema({"city": Parameter("string", required=True)})
        {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}
    """
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _to_schema(each) for name, each in parameters.items()},
    }
    required = [name for name, each in parameters.items() if each.required]
    return {**schema, "required": required} if required else schema


def _to_schema(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {} if parameter.type == "any" else {"type": parameter.type}
    if parameter.type == "object" and parameter.inside is not None:
        schema = to_json_schema(parameter.inside)
    elif parameter.type == "array" and parameter.items is not None:
        schema["items"] = _to_schema(parameter.items)
    elif parameter.type == "string":
        rules = {"minLength": parameter.min_length, "maxLength": parameter.max_length, "pattern": parameter.pattern}
        schema.update((word, rule) for word, rule in rules.items() if rule is not None)
    return {**schema, **parameter.remarks}
