"""Validation of tool parameters against any of three forms of schema.

The forms: a JSON Schema of an object; a pydantic model; the symphony system's own mapping of parameters. Each reports
all errors at once, and can be converted to one JSON Schema.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from agentnb.board.values import enter, thaw, to_items
from agentnb.bounds import Walk
from agentnb.errors import Problem, RecipeError, format_error, format_error_line, with_article
from agentnb.expressions.json_schema import Fault, Schema
from agentnb.secrets import is_secret
from agentnb.text import UNREADABLE, safe_repr, safe_str
from agentnb.world.tools.function_schema import is_model
from agentnb.world.tools.short_parameters import MISSING, TYPES, Parameter, iter_errors, read_parameters, to_json_schema
from agentnb.world.tools.tool_result import Detail

if TYPE_CHECKING:
    from pydantic import BaseModel

INSIDE: Final = "inputParams"  # the separator between a tool's name and a parameter's in a path
# JSON Schema keywords of the top level; a mapping with none of them is not a JSON Schema.
_KEYWORDS: Final = frozenset({
    "type", "properties", "required", "additionalProperties", "patternProperties", "propertyNames",
    "minProperties", "maxProperties", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
    "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties", "$schema", "$id", "id",
    "$ref", "$defs", "definitions", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef",
    "$recursiveAnchor", "$vocabulary", "$comment", "title", "description", "default", "examples", "deprecated",
    "readOnly", "writeOnly", "format", "items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems",
    "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf",
})  # fmt: skip


class Parameters(Protocol):
    """The schema of a tool's parameters."""

    def iter_errors(self, params: Mapping[str, Any], path: str) -> Iterator[Detail]:
        """Yield all errors of parameters; `path` is the prefix of their paths."""

    def json_schema(self) -> dict[str, Any]:
        """Return it as one JSON Schema, a copy."""


def parse_parameters(source: Any, where: str, names: Sequence[str] = ()) -> Parameters:
    """Return an input schema, ready to validate parameters.

    A mapping whose values are mappings with a `type` is the system's own form, and so is one that has no JSON Schema
    keyword and describes each name by a mapping; any other is a JSON Schema.

    Args:
        names: the names of the parameters, if they are known without a schema; they are shown, but not required.

    Raises:
        RecipeError: R190, it has none of the forms, or is not valid in its form; all that is wrong at once.
    """
    if source is None:
        return _Anything(names)
    if is_model(source):
        return _Model(source, where)
    if not isinstance(source, Mapping):
        raise RecipeError(_make_problem(f"an input schema is {with_article(type(source).__name__)}", where,
                                 "it is a mapping or a model",
                                 "write a JSON Schema, a pydantic model, or {'name': {'type': 'string'}}"))  # fmt: skip
    if _is_own_form(source):
        parameters, problems = read_parameters(source, where)
        if problems:
            raise RecipeError(*problems)
        return _Own(parameters)
    problems = list(_iter_schema_problems(source, where))
    if problems:
        raise RecipeError(*problems)
    return _Json(source)


def copy_parts(value: Any) -> Any:
    """Return a copy with separate dicts and lists; other values are shared.

    Example:
        >>> given = {"tags": ["a"]}
        >>> copy_parts(given)["tags"].append("b")
        >>> given
        {'tags': ['a']}

    Raises:
        BoardError: B102, it is too deep or too large.
    """
    return _copy_within(value, Walk(value))


def _copy_within(value: Any, walk: Walk) -> Any:
    value = thaw(value)
    if not isinstance(value, Mapping | list):
        return value
    enter(walk, value)
    if isinstance(value, list):
        copied: Any = [_copy_within(item, walk) for item in value]
    else:
        items = to_items(value)
        copied = value if items is UNREADABLE else {key: _copy_within(item, walk) for key, item in items.items()}
    walk.depth -= 1
    return copied


def _is_own_form(source: Mapping[Any, Any]) -> bool:
    if not source or not all(isinstance(schema, Mapping) for schema in source.values()):
        return False
    return _KEYWORDS.isdisjoint(source) or all(isinstance(schema.get("type"), str) for schema in source.values())


def _iter_schema_problems(source: Mapping[Any, Any], where: str) -> Iterator[Problem]:
    """R190: a schema that should be a JSON Schema is not one, or does not describe an object."""
    if source and _KEYWORDS.isdisjoint(source):
        yield _make_problem(f"an input schema has only: {', '.join(map(safe_repr, source))}", where,
                     "none of these is a JSON Schema keyword, and each parameter must be described by a mapping",
                     "write {'type': 'object', 'properties': {...}}, or {'name': {'type': 'string'}}")  # fmt: skip
        return
    schema, kinds = Schema(source), source.get("type", "object")
    for fault in schema.own_faults():
        yield _make_problem(
            "an input schema is not a JSON Schema", format_path(where, fault.path), fault.message, "fix it there"
        )
    for fault in schema.iter_lost_references():
        yield _make_problem(
            "an input schema has a reference that it does not define",
            format_path(where, fault.path),
            fault.message,
            "add it under '$defs'; nothing is fetched",
        )
    if kinds in TYPES and kinds != "object":
        yield _make_problem(
            f"an input schema is of type {safe_repr(kinds)}",
            where,
            "a tool's parameters are an object",
            "write 'object'",
        )
    for name, declared in source.items():
        if name not in _KEYWORDS and isinstance(declared, Mapping) and isinstance(declared.get("type"), str):
            yield _make_problem(f"{safe_repr(name)} is outside 'properties'", where,
                         "outside, it constrains no parameter", "move it into 'properties'")  # fmt: skip


def format_path(path: str, keys: Sequence[str | int]) -> str:
    """Return the text of a path with the keys and list indexes appended.

    Example:
        >>> format_path("search.inputParams", ("list", 0, "x"))
        'search.inputParams.list[0].x'
    """
    return path + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)


def _make_problem(what: str, where: str, why: str, do: str) -> Problem:
    """R190: a tool's input schema has none of the supported forms, or is not valid in its form."""
    return Problem("R190", what, where, why, do)


# -- the forms -------------------------------------------------------------------------------------------------------


class _Anything:
    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def iter_errors(self, params: Mapping[str, Any], path: str) -> Iterator[Detail]:
        return iter(())

    def json_schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": {name: {} for name in self._names}}


class _Own:
    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self._parameters = parameters

    def iter_errors(self, params: Mapping[str, Any], path: str) -> Iterator[Detail]:
        return iter_errors(self._parameters, params, path)

    def json_schema(self) -> dict[str, Any]:
        return dict(copy_parts(to_json_schema(self._parameters)))


class _Json:
    def __init__(self, source: Mapping[str, Any]) -> None:
        self._schema = Schema(copy_parts(source))  # later changes of the caller's mapping have no effect

    def iter_errors(self, params: Mapping[str, Any], path: str) -> Iterator[Detail]:
        for fault in self._schema.faults(params):
            yield _make_detail(fault, params, path)

    def json_schema(self) -> dict[str, Any]:
        return dict(copy_parts(self._schema.rules))


class _Model:
    def __init__(self, model: type[BaseModel], where: str) -> None:
        from pydantic.errors import PydanticUserError

        self._model = model
        try:
            self._shown = json.dumps(model.model_json_schema())
        except (PydanticUserError, TypeError, ValueError) as error:
            raise RecipeError(
                _make_problem(
                    f"the model {model.__name__!r} has no JSON Schema",
                    where,
                    format_error(error),
                    "hint its fields at what JSON has",
                )
            ) from None

    def iter_errors(self, params: Mapping[str, Any], path: str) -> Iterator[Detail]:
        from pydantic import ValidationError

        try:
            self._model.model_validate(dict(params))
        except ValidationError as error:
            for each in error.errors(include_url=False, include_context=False):
                missing = each["type"] == "missing"
                detail = {
                    "path": format_path(path, each["loc"]),
                    "message": MISSING if missing else safe_str(each["msg"]),
                }
                yield detail | {"received": "undefined" if missing else _get_json_type(each["input"])}
        except Exception as error:  # noqa: BLE001  (a model's own check may raise anything)
            yield {"path": path, "message": f"it cannot be checked: {format_error_line(error)}"}

    def json_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = json.loads(self._shown)
        return schema


def _make_detail(fault: Fault, params: Mapping[str, Any], path: str) -> Detail:
    missing = _find_missing_key(fault)
    if missing is not None:
        return {"path": format_path(path, (*fault.path, missing)), "message": MISSING, "received": "undefined"}
    secret = any(map(is_secret, fault.path))
    detail = {
        "path": format_path(path, fault.path),
        "message": safe_str(fault.rule or "does not fit" if secret else fault.message),
    }
    if not fault.rule:  # it could not be checked
        return detail
    value: Any = params
    for key in fault.path:
        value = value[key]
    return detail | {"expected": safe_str(fault.rule), "received": _get_json_type(value)}


def _find_missing_key(fault: Fault) -> str | None:
    """Return the key that an error reports as missing.

    The library states it only in its message, as a Python literal.
    """
    quoted = fault.rule.removesuffix(" is a required property")
    if quoted == fault.rule:
        return None
    try:
        name = ast.literal_eval(quoted)
    except (ValueError, SyntaxError):
        return None
    return name if isinstance(name, str) else None


def _get_json_type(value: Any) -> str:
    """Return the JSON type of a value; if it has none, its class."""
    for cls, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (Mapping, "object")):
        if isinstance(value, cls):
            return name
    return "null" if value is None else "array" if isinstance(value, list | tuple) else type(value).__name__
