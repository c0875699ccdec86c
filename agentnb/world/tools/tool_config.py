"""ToolConfig: the configuration of a tool for the registry, from any supported representation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from agentnb.board.masking import register_secrets
from agentnb.errors import Problem, RecipeError, did_you_mean, with_article
from agentnb.recipe.user_functions import COLLECT, GENERATES, is_generator
from agentnb.secrets import hide
from agentnb.text import safe_repr
from agentnb.world.tools.function_schema import (
    describe,
    find_hinted_model,
    find_original,
    spread,
    takes_any_words,
    takes_one_dict,
    wrap_by_keyword,
)
from agentnb.world.tools.parameters import Parameters, parse_parameters
from agentnb.world.tools.tool_result import ToolMetrics, ToolResult

__all__ = ["CONTEXT", "MARK", "ToolConfig", "ToolMetrics", "ToolResult", "from_function"]

MARK: Final = "__agentnb_tool__"  # the attribute of a decorated function that holds its ToolConfig
CONTEXT: Final = "context_management"  # the type of tools that look after the context themselves
_CAMEL: Final = {"inputSchema": "input_schema", "retryCount": "retry_count", "apiKey": "api_key", "maxSize": "max_size"}
_LISTS: Final = ("inputs", "outputs", "capabilities")
_LIFTED: Final = ("handler", "input_schema", "inputs", "outputs")  # fields that may also be in `config`


@dataclass(frozen=True)
class ToolConfig:
    """A tool: its description for a model, its parameters, its handler, and its retries and timeout.

    Attributes:
        handler: called with one dict of parameters, or with a pydantic model if its parameter is annotated as one;
            returns a ToolResult or any value; may be async.
        input_schema: a JSON Schema of an object, a pydantic model, or a mapping name -> {type, required, ...}.
        type: defined by its owner; runs of type "context_management" are not passed to the context.
        inputs: names of its parameters, shown if there is no schema.
        timeout: seconds for each attempt; None for no limit.
        retry_count: how often it is retried after a failure.
        backoff: seconds between two attempts.
        repeatable: whether it may be called again after a crash if it is unknown whether the call was completed.
        capabilities: what it can do, as text.
        config: its own settings; `handler`, `inputSchema`, `inputs` and `outputs` are looked for there too.
        nlp: stored and shown but not used, like `max_size`, and `api_key`, which is never shown.
    """

    name: str
    description: str = ""
    handler: Callable[[dict[str, Any]], Any] | None = None
    input_schema: Any = None
    type: str = "custom"
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    timeout: float | None = None
    retry_count: int = 0
    backoff: float = 0.0
    repeatable: bool = False
    capabilities: Sequence[str] = ()
    config: Mapping[str, Any] | None = field(default=None, repr=False)
    nlp: Any = None
    max_size: int | None = None
    api_key: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, name: str | None, source: Any) -> ToolConfig:
        """Return a tool from any supported representation, under this name; None for its own name.

        A ToolConfig; a mapping of its fields, in snake_case or camelCase; a decorated function; a handler; any other
        function, which becomes a tool by its type hints, as with `@tool`.

        Raises:
            RecipeError: all of its problems: R112, R114 (its fields), R190 (its schema), R191 (its type hints).
        """
        config = _read(cls, name, source)
        if name is not None and config.name != name:
            config = replace(config, name=name)
        config = _lift(config)
        problems = config.check()
        if problems:
            raise RecipeError(*problems)
        hide(config.api_key)
        if config.config is not None:
            register_secrets(config.config)
        return config

    def check(self) -> list[Problem]:
        """Return all problems of the config."""
        problems = list(_iter_problems(self))
        try:
            self.parameters()
        except RecipeError as error:
            problems += error.problems
        return problems

    @property
    def schema(self) -> dict[str, Any]:
        """Its parameters as one JSON Schema, whatever form they are written in.

        Raises:
            RecipeError: R190, its schema is invalid.
        """
        return self.parameters().json_schema()

    def parameters(self) -> Parameters:
        """Return its parameters, ready to validate values.

        Raises:
            RecipeError: R190, its schema is invalid.
        """
        names = [name for name in self.inputs or () if isinstance(name, str)]
        return parse_parameters(self.input_schema, f"tool {self.name!r}, input_schema", names)


def _read(cls: type[ToolConfig], name: str | None, source: Any) -> ToolConfig:
    if isinstance(source, ToolConfig):
        return source
    if isinstance(source, Mapping):
        return _from_mapping(cls, name, source)
    if not callable(source) or isinstance(source, type):
        what, why = (
            f"a tool is passed as {with_article(type(source).__name__)}",
            "it is a ToolConfig, a mapping, or a function",
        )
        raise RecipeError(_make_problem(name, what, why, "pass one of these"))
    return _read_mark(source) or from_function(source)


def _read_mark(function: Any) -> ToolConfig | None:
    """Return the decorator's settings of a function.

    A wrapper shares the attributes of the function it wraps, but not its code.
    """
    noted = getattr(function, MARK, None)
    if not isinstance(noted, ToolConfig):
        return None
    return noted if find_original(noted.handler) is function else replace(noted, handler=wrap_by_keyword(function)[0])


def from_function(function: Callable[..., Any], *, hints: bool = False, **options: Any) -> ToolConfig:
    """Return a function as a tool, with its name and its description; `options` override them.

    A function of one dict is used as the handler, one with arbitrary keyword arguments gets them all; any other, and
    each with `hints`, is called with keyword arguments that are converted by its type hints.

    Raises:
        RecipeError: R191, it cannot be made a tool.
    """
    handler: Any = function
    schema: Any = None
    if hints or not (takes_one_dict(function) or takes_any_words(function)):
        handler, schema = wrap_by_keyword(function)
    elif not (takes_one_dict(function) or is_generator(function)):  # a generator function is rejected as such
        handler = spread(function)
    settings = {
        "name": getattr(function, "__name__", "tool"),
        "description": describe(function),
        "input_schema": schema,
    }
    settings |= {word: value for word, value in options.items() if value is not None}
    return ToolConfig(**settings, handler=handler)


def _from_mapping(cls: type[ToolConfig], name: str | None, mapping: Mapping[Any, Any]) -> ToolConfig:
    """Return the fields of a tool's mapping.

    R112: a key is not known there.
    R114: a value is not valid there.
    """
    known = {each.name for each in fields(cls)}
    values: dict[str, Any] = {"name": mapping.get("name") if name is None else name}
    problems = []
    for word, value in mapping.items():
        own = _CAMEL.get(word, word) if isinstance(word, str) else word
        if own not in known:
            do = did_you_mean(str(word), known, "pass custom settings in `config`")
            why = f"its keys are: {', '.join(sorted(known))}"
            problems.append(
                Problem("R112", f"{safe_repr(word)} is not a field of a tool", f"tool {safe_repr(name)}", why, do)
            )
        elif own in values and own != "name":
            problems.append(
                _make_problem(name, f"`{own}` is specified twice", "it is written in two ways", "pass only one of them")
            )
        elif value is not None and own != "name":
            values[own] = value
    if problems:
        raise RecipeError(*problems, *_lift(cls(**values)).check())
    return cls(**values)


def _lift(config: ToolConfig) -> ToolConfig:
    """Return a tool with the fields in its `config` moved to the top, and completed from its handler."""
    fields: dict[str, Any] = {}
    if isinstance(config.config, Mapping):
        lifted = {_CAMEL.get(word, word): value for word, value in config.config.items() if isinstance(word, str)}
        fields = {
            word: lifted[word] for word in _LIFTED if getattr(config, word) is None and lifted.get(word) is not None
        }
    handler = fields.get("handler", config.handler)
    marked = _read_mark(handler)
    if marked is not None:
        fields["handler"] = marked.handler
        fields["description"] = config.description or marked.description
    if config.input_schema is None and "input_schema" not in fields and callable(handler):
        fields["input_schema"] = find_hinted_model(handler) if marked is None else marked.input_schema
    return replace(config, **fields) if fields else config


def _iter_problems(config: ToolConfig) -> Iterator[Problem]:
    """R114: a value is not valid there."""
    name = config.name
    if not isinstance(name, str) or not name.strip():
        yield _make_problem(
            name, f"{safe_repr(name)} is not a name of a tool", "a model calls it by its name", "write a string"
        )
    for word in ("description", "type"):
        if not isinstance(getattr(config, word), str):
            yield _make_problem(
                name,
                f"`{word}` is {with_article(type(getattr(config, word)).__name__)}",
                "it is a string",
                "write a string",
            )
    yield from _iter_handler_problems(config)
    for word in _LISTS:
        listed = getattr(config, word)
        if listed is not None and (isinstance(listed, str) or not isinstance(listed, Sequence)
                                   or not all(isinstance(each, str) for each in listed)):  # fmt: skip
            yield _make_problem(name, f"`{word}` is {safe_repr(listed)}", "it is a list of strings", "write a list")
    if config.timeout is not None and not (_is_number(config.timeout) and config.timeout > 0):
        yield _make_problem(
            name, f"`timeout` is {safe_repr(config.timeout)}", "it is a number of seconds above 0", "write a number"
        )
    if not _is_number(config.backoff) or config.backoff < 0:
        yield _make_problem(
            name, f"`backoff` is {safe_repr(config.backoff)}", "it is a number of seconds", "write a number from 0 on"
        )
    retries = config.retry_count
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        yield _make_problem(
            name, f"`retry_count` is {safe_repr(retries)}", "it counts attempts", "write an integer of 0 or more"
        )
    if not isinstance(config.repeatable, bool):
        yield _make_problem(
            name, f"`repeatable` is {safe_repr(config.repeatable)}", "it is True or False", "write True or False"
        )
    if config.config is not None and not isinstance(config.config, Mapping):
        yield _make_problem(
            name,
            f"`config` is {with_article(type(config.config).__name__)}",
            "it contains names and values",
            "write a mapping",
        )


def _iter_handler_problems(config: ToolConfig) -> Iterator[Problem]:
    """R114: a value is not valid there."""
    name, handler = config.name, config.handler
    if handler is not None and (not callable(handler) or isinstance(handler, type)):
        yield _make_problem(
            name, f"`handler` is {safe_repr(handler)}", "it is called with the parameters", "pass a function"
        )
    elif is_generator(handler):
        yield _make_problem(name, "`handler` is a generator function", GENERATES, COLLECT)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _make_problem(name: Any, what: str, why: str, do: str) -> Problem:
    """R114: a value is not valid there."""
    return Problem("R114", what, f"tool {safe_repr(name)}", why, do)
