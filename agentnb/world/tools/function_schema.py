"""Tool parameters and descriptions from a Python function's signature, type hints and docstring."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

from agentnb.bounds import find_excess
from agentnb.errors import Problem, RecipeError, format_error, with_article
from agentnb.recipe.user_functions import COLLECT, GENERATES, is_async, is_function, is_generator

if TYPE_CHECKING:
    from pydantic import BaseModel

Handler = Callable[[dict[str, Any]], Any]

_OF: Final = "__agentnb_of__"
_METHOD: Final = ("self", "cls")


def wrap_by_keyword(function: Callable[..., Any]) -> tuple[Handler, type[BaseModel]]:
    """Return a function as a handler of one dict of parameters, and the model of the parameters.

    The handler converts the parameters by the type hints and calls the function with keyword arguments; missing ones
    get the function's defaults. It is async if and only if the function is.

    Raises:
        RecipeError: R191, the function cannot be called with keyword arguments.
    """
    model, names = _make_model(function)

    def to_keywords(params: Mapping[str, Any]) -> dict[str, Any]:
        filled = model.model_validate(dict(params))
        return {names[name]: getattr(filled, name) for name in filled.model_fields_set}

    if is_async(function):

        async def acall(params: dict[str, Any]) -> Any:
            return await function(**to_keywords(params))

        acall.__dict__[_OF] = function
        return acall, model

    def call(params: dict[str, Any]) -> Any:
        return function(**to_keywords(params))

    call.__dict__[_OF] = function
    return call, model


def find_original(handler: Any) -> Any:
    """Return the function that `wrap_by_keyword` wrapped in a handler; None for any other handler."""
    return getattr(handler, "__dict__", {}).get(_OF)


def spread(function: Callable[..., Any]) -> Handler:
    """Return a function with arbitrary keyword arguments as a handler of one dict.

    Async if and only if the function is.
    """
    if is_async(function):

        async def acall(params: dict[str, Any]) -> Any:
            return await function(**params)

        return acall
    return lambda params: function(**params)


def takes_any_words(function: Callable[..., Any]) -> bool:
    """Return True if a callable takes arbitrary keyword arguments."""
    try:
        kinds = [each.kind for each in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return False
    return inspect.Parameter.VAR_KEYWORD in kinds and inspect.Parameter.POSITIONAL_ONLY not in kinds


def takes_one_dict(function: Callable[..., Any]) -> bool:
    """Return True if a callable is already a handler: called with one dict of parameters, not with keyword arguments.

    This is the case if only its first parameter is required and is annotated as a mapping or a model, or nothing is
    annotated. A callable without a signature counts as a handler as well.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return True
    if not parameters or parameters[0].kind in {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}:
        return False
    first, rest = parameters[0], parameters[1:]
    if first.kind is inspect.Parameter.VAR_POSITIONAL:
        return True
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if any(each.default is each.empty and each.kind not in starred for each in rest):
        return False
    hint = _get_hints(function).get(first.name, first.annotation)
    if hint is first.empty or hint is Any:
        return all(each.annotation is each.empty for each in rest)
    base = typing.get_origin(hint) or hint
    return isinstance(base, type) and (issubclass(base, Mapping) or typing.is_typeddict(base) or is_model(base))


def find_hinted_model(function: Callable[..., Any]) -> type[BaseModel] | None:
    """Return the pydantic model that a handler expects; None if it expects a dict."""
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except (TypeError, ValueError):
        return None
    hint = None if first is None else _get_hints(function).get(first.name)
    return hint if is_model(hint) else None


def is_model(value: Any) -> typing.TypeGuard[type[BaseModel]]:
    """Return True for a pydantic model class."""
    if not isinstance(value, type) or not hasattr(value, "model_validate"):
        return False
    from pydantic import BaseModel

    return issubclass(value, BaseModel)


def describe(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a function's docstring, as one line."""
    text = inspect.getdoc(function) if is_function(function) else None  # an object's docstring is that of its class
    return " ".join((text or "").strip().split("\n\n")[0].split())


def parse_parameter_descriptions(text: str | None) -> dict[str, str]:
    r"""Return the parameter descriptions in a docstring in Google, NumPy or Sphinx style.

    Example:
        >>> parse_parameter_descriptions("Look up.\n\nArgs:\n    city (str): where\n        to look\n    n: how many")
        {'city': 'where to look', 'n': 'how many'}
    """
    from docstring_parser import parse

    rows = parse(text or "").params
    return {row.arg_name.lstrip("*"): " ".join(row.description.split()) for row in rows if row.description}


# -- the model of a function's parameters ----------------------------------------------------------------------------


def _make_model(function: Callable[..., Any]) -> tuple[type[BaseModel], dict[str, str]]:
    """Return the model of a function's parameters, and the parameter of each field.

    The fields have generated names, because a parameter's name may not be allowed as a field name.

    R191: a function cannot be made a tool from its type hints.
    """
    from pydantic import Field

    if not callable(function) or isinstance(function, type):
        raise RecipeError(
            _make_problem(function, f"{with_article(type(function).__name__)} is not a function", "", "pass a function")
        )
    if is_generator(function):
        raise RecipeError(_make_problem(function, "it is a generator function", GENERATES, COLLECT))
    try:
        parameters = list(inspect.signature(function).parameters.values())
        hints = typing.get_type_hints(_unwrap(function), include_extras=True)
    except (TypeError, ValueError, NameError, AttributeError, SyntaxError) as error:
        raise RecipeError(
            _make_problem(function, "its hints cannot be read", str(error), "fix its signature")
        ) from None
    problems = [_check_callable(function, each) for each in parameters]
    if any(problems):
        raise RecipeError(*filter(None, problems))
    args = parse_parameter_descriptions(inspect.getdoc(function))
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for number, each in enumerate(parameters):
        hint = hints.get(each.name, Any)
        options: dict[str, Any] = {"alias": each.name, **_make_default(each.default)}
        description = _format_annotation(hint) or args.get(each.name)
        if description:
            options["description"] = description
        fields[f"p{number}"] = (hint, Field(**options))
        names[f"p{number}"] = each.name
    return _make(function, fields), names


def _make(function: Callable[..., Any], fields: dict[str, Any]) -> type[BaseModel]:
    """R191: a function cannot be made a tool from its type hints."""
    from pydantic import ConfigDict, create_model
    from pydantic.errors import PydanticUserError

    config = ConfigDict(extra="forbid", json_schema_extra=_remove_titles)
    try:
        model: type[BaseModel] = create_model(getattr(function, "__name__", "tool"), __config__=config, **fields)
        model.model_json_schema()
    except (PydanticUserError, NameError) as error:  # a hint without validation rules, or without a JSON Schema
        why = format_error(error).partition("\n")[0]
        do = "hint at what JSON has: str, int, float, bool, list, dict, or a model"
        raise RecipeError(_make_problem(function, "a type hint must have a JSON Schema", why, do)) from None
    return model


def _check_callable(function: Callable[..., Any], parameter: inspect.Parameter) -> Problem | None:
    """R191: a parameter cannot be passed by name."""
    name = parameter.name
    if parameter.kind is parameter.POSITIONAL_ONLY:
        return _make_problem(
            function, f"{name!r} is positional-only", "a tool's parameters are passed by name", "remove the `/`"
        )
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        return _make_problem(
            function,
            f"`{stars}{name}` accepts any number of values",
            "a tool's parameters are known by name",
            "name each parameter, or accept a list or a dict",
        )
    if name in _METHOD and parameter.annotation is parameter.empty:
        return _make_problem(function, f"it is a method: {name!r} would be a parameter", "a model cannot send it",
                      "register the bound method of an object")  # fmt: skip
    return None


def _make_default(value: Any) -> dict[str, Any]:
    """Return the default of a field, as a JSON Schema default only if it is JSON."""
    if value is inspect.Parameter.empty:
        return {}
    try:
        if find_excess(value):
            raise ValueError
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return {"default_factory": lambda: value}
    return {"default": value}


def _format_annotation(hint: Any) -> str | None:
    if typing.get_origin(hint) is not Annotated:
        return None
    return next((extra for extra in typing.get_args(hint)[1:] if isinstance(extra, str)), None)


def _remove_titles(schema: dict[str, Any]) -> None:
    """Remove the titles: they repeat the field names, and each costs tokens."""
    schema.pop("title", None)
    for rules in schema.get("properties", {}).values():
        rules.pop("title", None)


def _get_hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(_unwrap(function))
    except (TypeError, ValueError, NameError, AttributeError, SyntaxError):
        return {}


def _unwrap(function: Callable[..., Any]) -> Any:
    """Return the object with the type hints of a callable: an object's `__call__`, a bound method's function."""
    while hasattr(function, "func"):
        function = function.func
    if is_function(function) or inspect.isclass(function):
        return inspect.unwrap(function)
    return type(function).__call__


def _make_problem(function: Any, what: str, why: str, do: str) -> Problem:
    """R191: a function cannot be made a tool from its type hints."""
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(inspect.unwrap(function) if inspect.isfunction(function) else function, "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code else f"function {name!r}"
    return Problem("R191", f"{name!r} cannot be a tool: {what}", where, why or "a tool is a function", do)
