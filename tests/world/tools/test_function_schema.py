from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field, ValidationError

from agentnb.errors import RecipeError
from agentnb.world.tools.function_schema import (
    describe,
    find_hinted_model,
    find_original,
    is_model,
    parse_parameter_descriptions,
    spread,
    takes_any_words,
    takes_one_dict,
    wrap_by_keyword,
)


class Order(BaseModel):
    item: str
    count: int = 1


class Words(TypedDict):
    city: str


@dataclass
class Point:
    x: int
    y: int


class Unknown:
    pass


def search(query: str, limit: int = 5, *, kind: Literal["web", "mail"] = "web", since: date | None = None) -> list[str]:
    """Search for something.

    All over the place.

    Args:
        query: what to look for,
            in plain words
        limit (int): how many
    """
    return [query, limit, kind, since]


async def asearch(query: str) -> str:
    return query


class Shop:
    def order(self, item: str) -> str:
        return item

    def whole(self, params: dict[str, Any]) -> Any:
        return params


def unknown_hint(x: Unknown) -> None: ...
def function_hint(x: Callable[[], int]) -> None: ...
def missing_hint(x: NotThere) -> None: ...  # noqa: F821
def positional(x, /, y): ...
def starred(*xs): ...
def worded(**words): ...
def selfish(self, x): ...


def test_the_schema_comes_from_the_hints_and_the_docstring():
    _, model = wrap_by_keyword(search)
    assert model.model_json_schema() == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for, in plain words"},
            "limit": {"type": "integer", "default": 5, "description": "how many"},
            "kind": {"type": "string", "enum": ["web", "mail"], "default": "web"},
            "since": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_parameters_are_converted_and_passed_by_keyword():
    call, _ = wrap_by_keyword(search)
    assert call({"query": "a", "since": "2026-01-02", "limit": "7"}) == ["a", 7, "web", date(2026, 1, 2)]
    assert call({"query": "a"}) == ["a", 5, "web", None]
    with pytest.raises(ValidationError):
        call({"limit": "many"})


def test_it_is_async_if_the_function_is():
    call, _ = wrap_by_keyword(asearch)
    assert inspect.iscoroutinefunction(call)
    assert asyncio.run(call({"query": "a"})) == "a"
    assert not inspect.iscoroutinefunction(wrap_by_keyword(search)[0])
    assert find_original(call) is asearch
    assert find_original(asearch) is None


def test_a_default_of_the_function_is_the_same_object():
    origin = Point(0, 0)

    def move(by: int, start: Point = origin) -> Point:
        return start

    call, model = wrap_by_keyword(move)
    assert call({"by": 1}) is origin
    assert call({"by": 1, "start": {"x": 1, "y": 2}}) == Point(1, 2)
    assert "default" not in model.model_json_schema()["properties"]["start"]


def test_parameters_may_have_reserved_field_names():
    def odd(_a: int, model_config: int, json: int, schema: str = "s", copy=None):
        return _a, model_config, json, schema, copy

    call, model = wrap_by_keyword(odd)
    assert call({"_a": 1, "model_config": 2, "json": 3, "copy": 4}) == (1, 2, 3, "s", 4)
    assert list(model.model_json_schema()["properties"]) == ["_a", "model_config", "json", "schema", "copy"]
    with pytest.raises(ValidationError) as raised:
        call({"_a": 1, "model_config": 2, "p2": 3})
    assert [error["loc"] for error in raised.value.errors()] == [("json",), ("p2",)]


def test_an_annotation_may_have_a_description_and_rules():
    def count(n: Annotated[int, Field(ge=1), "how many"], order: Annotated[Order | None, "which"] = None):
        """Count.

        Args:
            n: not this
        """

    rules = wrap_by_keyword(count)[1].model_json_schema()["properties"]
    assert rules["n"] == {"type": "integer", "minimum": 1, "description": "how many"}
    assert rules["order"]["description"] == "which"


def test_methods_and_partials_are_functions_too():
    assert wrap_by_keyword(Shop().order)[0]({"item": "a"}) == "a"
    assert wrap_by_keyword(functools.partial(search, limit=1))[0]({"query": "a"}) == ["a", 1, "web", None]


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (unknown_hint, "a type hint must have a JSON Schema"),
        (function_hint, "a type hint must have a JSON Schema"),
        (missing_hint, "its hints cannot be read"),
        (positional, "'x' is positional-only"),
        (starred, "`*xs` accepts any number of values"),
        (worded, "`**words` accepts any number of values"),
        (selfish, "it is a method: 'self' would be a parameter"),
        (Shop, "a type is not a function"),
        (5, "an int is not a function"),
    ],
)
def test_an_invalid_tool_is_reported_with_the_reason(function, what):
    with pytest.raises(RecipeError) as raised:
        wrap_by_keyword(function)
    (problem,) = raised.value.problems
    assert problem.code == "R191"
    assert problem.what.endswith(f"cannot be a tool: {what}")
    if inspect.isfunction(function):
        assert problem.where.endswith(f"test_function_schema.py:{function.__code__.co_firstlineno}")


def test_all_invalid_parameters_are_reported_at_once():
    def bad(x, /, *xs, **words): ...

    with pytest.raises(RecipeError) as raised:
        wrap_by_keyword(bad)
    assert len(raised.value.problems) == 3


def with_model(order: Order) -> None: ...
def with_maybe(order: Order, more: int = 0) -> None: ...
def with_mapping(given: Mapping[str, Any]) -> None: ...
def with_words(given: Words) -> None: ...
def with_any(given: Any) -> None: ...
def with_two(query, limit=5): ...
def with_hint(query, limit: int = 5): ...
def with_both(query, limit): ...
def with_none(): ...
def with_key(*, key): ...


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda params: params, True),
        (with_model, True),
        (with_maybe, True),
        (with_mapping, True),
        (with_words, True),
        (with_any, True),
        (starred, True),
        (Shop().whole, True),
        (dict.get, False),
        (print, True),
        (with_two, True),
        (with_hint, False),
        (with_both, False),
        (with_none, False),
        (with_key, False),
        (worded, False),
        (asearch, False),
        (search, False),
        (Shop().order, False),
    ],
)
def test_functions_with_one_dict_parameter_are_recognized(function, expected):
    assert takes_one_dict(function) is expected


def test_functions_with_keyword_parameters_are_recognized():
    assert takes_any_words(worded)
    assert not takes_any_words(search)
    assert spread(worded)({"a": 1}) is None

    async def later(**words):
        return words

    assert asyncio.run(spread(later)({"a": 1})) == {"a": 1}
    assert inspect.iscoroutinefunction(spread(later))


def test_the_model_of_a_handler_is_recognized():
    assert find_hinted_model(with_model) is Order
    assert find_hinted_model(with_mapping) is find_hinted_model(with_none) is find_hinted_model(missing_hint) is None
    assert is_model(Order)
    assert not any(map(is_model, (Point, Order(item="a"), dict, None)))


def test_the_first_paragraph_is_the_description():
    assert describe(search) == "Search for something."
    assert describe(asearch) == describe(functools.partial(search)) == ""


def test_parameters_are_described_in_docstrings_of_any_style():
    assert parse_parameter_descriptions(None) == parse_parameter_descriptions("Nothing.") == {}
    assert parse_parameter_descriptions("Args:\nx: not indented") == {}
    google = "Do it.\n\nArgs:\n  a: one\n\n  *b: two: three\n    and four\n\nReturns:\n  c: no parameter"
    numpy = "Do it.\n\nParameters\n----------\na : int\n    one\n*b\n    two: three\n    and four\n"
    sphinx = "Do it.\n\n:param int a: one\n:param b: two: three\n    and four\n:returns: no parameter"
    for text in (google, numpy, sphinx):
        assert parse_parameter_descriptions(text) == {"a": "one", "b": "two: three and four"}
