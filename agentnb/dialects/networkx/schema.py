"""Validation of the attributes of a graph, its nodes and edges. Callables among them are not called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from agentnb.errors import Place, Problem, RecipeError, with_article
from agentnb.expressions.paths import parse_path
from agentnb.recipe.model import freeze_mapping
from agentnb.recipe.user_functions import COLLECT, GENERATES, is_generator
from agentnb.text import get_class_name, safe_repr, safe_str
from agentnb.world.call_arguments import NO_SETTINGS
from agentnb.world.llm.settings import OF_REQUESTS, iter_misspelled_settings

Path = tuple[str | int, ...]
Reader = Callable[[Any], Any]


class InvalidValue(Exception):
    """A value is not valid; contains the expectation and the remedy."""


_A_MESSAGE: Final = "write each message as {'role': 'user', 'content': '...'}, or as ('user', '...')"


def parse_text(value: Any) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise InvalidValue("a string is required", "write it as a single string")
    return value


def parse_texts(value: Any) -> tuple[str, ...]:
    """Return a list of strings."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise InvalidValue("a list of strings is required", "write it as a list: ['one', 'two']")
    return tuple(value)


def parse_function(value: Any) -> Any:
    """Return a callable, or the name of one."""
    if not callable(value) and not isinstance(value, str):
        raise InvalidValue(
            "a function is a callable, or the name of one of the session's tools", "pass the function itself"
        )
    if is_generator(value):
        raise InvalidValue(GENERATES, COLLECT)
    return value


def convert_path(value: Any) -> Path:
    """Return a path on the board."""
    if isinstance(value, str):
        return parse_path(value)
    keys = list(value) if isinstance(value, tuple | list) else []
    if keys and isinstance(keys[0], str) and all(isinstance(key, str | int) for key in keys):
        return tuple(keys)
    raise InvalidValue("a path on the board is a string such as 'order.total', or a tuple of keys", "write its path")


def parse_paths(value: Any) -> Mapping[str, Path]:
    """Return a mapping from names to paths on the board."""
    if not isinstance(value, Mapping) or any(not isinstance(name, str) for name in value):
        raise InvalidValue("it maps names to paths on the board", "write it as {'name': 'path'}")
    return MappingProxyType({name: convert_path(item) for name, item in value.items()})


def parse_rounds(value: Any) -> int:
    """Return a number of iterations."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidValue("a non-negative integer is required", "write it as a number")
    return value


def parse_count(value: Any) -> int:
    """Return a count of one or more."""
    if parse_rounds(value) < 1:
        raise InvalidValue("a positive integer is required", "write 1 or more")
    return int(value)


def parse_seconds(value: Any) -> float:
    """Return a duration in seconds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < float("inf"):
        raise InvalidValue("a non-negative number of seconds is required", "write it as a number")
    return value


def parse_number(value: Any) -> float:
    """Return a number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not float("-inf") < value < float("inf"):
        raise InvalidValue("a number is required", "write it as a number")
    return value


def parse_flag(value: Any) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise InvalidValue("True or False is required", "write True or False")
    return value


def parse_options(value: Any) -> tuple[Any, ...]:
    """Return the options that a person may choose from."""
    if not isinstance(value, list | tuple):
        raise InvalidValue("a list of answers is required", "write it as a list: ['yes', 'no']")
    return tuple(value)


def parse_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping with names as keys."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InvalidValue("a mapping with string keys is required", "write it as {'key': value}")
    return freeze_mapping(value)


def parse_schemas(value: Any) -> Mapping[str, Any]:
    """Return the inputs of a recipe: names, or names with their JSON schemas."""
    if isinstance(value, list | tuple):
        return MappingProxyType({name: {} for name in parse_texts(value)})
    return parse_mapping(value)


def parse_condition(value: Any) -> Any:
    """Return a condition on the board; `read` compiles it, because its problems need a place."""
    return value


def parse_template(value: Any) -> Any:
    """Return text with expressions between `{{` and `}}`; `read` compiles it, because its problems need a place."""
    return parse_text(value)


def parse_messages(value: Any) -> Any:
    """Return the prompt of a model: text as for `parse_template`, or messages as pairs of a role and such a text."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple):
        raise InvalidValue("a string or a list of messages is required", _A_MESSAGE)
    return tuple(map(_parse_message, value))


def _parse_message(value: Any) -> tuple[str, str]:
    if isinstance(value, Mapping):
        value = [value.get("role"), value.get("content"), *(name for name in value if name not in ("role", "content"))]
    if not isinstance(value, list | tuple) or len(value) != 2 or not all(isinstance(each, str) for each in value):
        raise InvalidValue("each message has a role and a content, both strings", _A_MESSAGE)
    return value[0], value[1]


def parse_callables(value: Any) -> Mapping[str, Any]:
    """Return a mapping from keys of the board to functions of two arguments."""
    if not isinstance(value, Mapping) or not all(
        isinstance(key, str) and callable(each) for key, each in value.items()
    ):
        raise InvalidValue(
            "it maps keys of the board to functions (old, new) -> value", "write it as {'key': function}"
        )
    return freeze_mapping(value)


def parse_model_settings(value: Any) -> Any:
    """Return a model's name, or its name and settings; messages and tools are the node's own."""
    others = sorted(NO_SETTINGS & value.keys()) if isinstance(value, Mapping) else ()
    if others:
        why = f"messages and tools are set on the node, not on its model: {', '.join(map(repr, others))}"
        raise InvalidValue(why, "remove them; an agent calls tools: AgentConfig(llm={..., 'native_tools': True})")
    return value


def parse_side(value: Any) -> str:
    """Return on which side of a node a run stops."""
    if value not in {"before", "after"}:
        raise InvalidValue("a run stops before or after a node", "write 'before' or 'after'")
    return str(value)


def parse_simulated(value: Any) -> tuple[Any, ...]:
    """Return simulated answers: one, or a list of several used in turn; each is a string or a mapping."""
    answers = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not answers or not all(isinstance(answer, str | Mapping) for answer in answers):
        raise InvalidValue(
            "an answer is a string or a mapping; several are a list of them", "write it as {'key': value}"
        )
    return answers


def parse_any(value: Any) -> Any:
    """Return any value; it is validated elsewhere."""
    return value


COMMON: Final[Mapping[str, Reader]] = {
    "kind": parse_text,
    "label": parse_text,
    "inputs": parse_paths,
    "reads": parse_texts,
    "writes": parse_texts,
    "reducers": parse_callables,
    "choose": parse_function,
    "defer": parse_flag,
    "breakpoint": parse_side,
}
_CALL: Final[Mapping[str, Reader]] = {
    "timeout": parse_seconds,
    "attempts": parse_count,
    "backoff": parse_seconds,
    "blocking": parse_flag,
    "repeatable": parse_flag,
}
# kind -> attribute -> its validator. Attributes of other kinds are passed on unchanged.
BY_KIND: Final[Mapping[str, Mapping[str, Reader]]] = {
    "function": {"function": parse_function, "output": parse_text, "asks": parse_flag},
    "tool": {"function": parse_function, "output": parse_text, **_CALL},
    "agent": {
        "ref": parse_text,
        "agent_ref": parse_text,
        "prompt": parse_template,
        "model": parse_text,
        "output": parse_text,
        "simulated": parse_simulated,
        **_CALL,
    },
    "llm": {
        "prompt": parse_messages,
        "system": parse_template,
        "model": parse_model_settings,
        "output": parse_text,
        "map": parse_any,
        **_CALL,
    },
    "human": {
        "prompt": parse_template,
        "output": parse_text,
        "options": parse_options,
        "schema": parse_mapping,
        "role": parse_text,
        "timeout": parse_seconds,
    },
    "evaluator": {
        "target": convert_path,
        "ref": parse_text,
        "prompt": parse_template,
        "profile": parse_any,
        "threshold": parse_number,
        "max_refinements": parse_rounds,
        "feedback": parse_text,
        "pass_route": parse_any,
        "fail_route": parse_any,
        "model": parse_text,
        "simulated": parse_simulated,
        **_CALL,
    },
    "generative": {
        "goal": parse_template,
        "schema": parse_mapping,
        "prompt": parse_template,
        "model": parse_text,
        "simulated": parse_simulated,
        **_CALL,
    },
    "router": {"input_key": convert_path, "routes": parse_any, "default": parse_any},
    "loop": {
        "graph": parse_any,
        "while": parse_condition,
        "until": parse_condition,
        "times": parse_rounds,
        "max": parse_count,
    },
    "subgraph": {"graph": parse_any, "outputs": parse_paths},
    "noop": {},
    "join": {},
}
# kind -> required attribute -> its purpose.
NEEDED: Final[Mapping[str, Mapping[str, str]]] = {
    "router": {"input_key": "the value on the board that a router chooses by"},
    "evaluator": {"target": "the value on the board that is judged", "threshold": "the lowest score that passes"},
    "generative": {"goal": "the goal that the model works towards"},
}
EDGE: Final[Mapping[str, Reader]] = {
    "when": parse_condition,
    "kind": parse_text,
    "value": parse_any,
    "label": parse_text,
    "join": parse_text,
}
GRAPH: Final[Mapping[str, Reader]] = {
    "name": parse_any,
    "entry": parse_any,
    "inputs": parse_schemas,
    "outputs": parse_texts,
    "init": parse_mapping,
    "limits": parse_mapping,
    "supersteps": parse_flag,
    "reducers": parse_callables,
    "transient": parse_texts,
    "untracked": parse_texts,
}


def read(
    attributes: Mapping[Any, Any], known: Mapping[str, Reader], place: Place, problems: list[Problem]
) -> dict[str, Any]:
    """Return the attributes that are known and valid; None counts as left out.

    An unknown attribute is not an error (graphs may have other attributes), unless it resembles a known one.
    """
    values = {}
    for name, value in attributes.items():
        if name not in known:
            problems += _check_unknown(name, known, make_inner_place(place, safe_str(name, 200)))
        elif value is not None:
            try:
                values[name] = _compile(known[name](value), known[name], place, name)
                if known[name] is parse_model_settings and isinstance(value, Mapping):
                    problems += _check_settings(value, make_inner_place(place, name))
            except InvalidValue as unfit:
                why, do = unfit.args
                attribute_place = str(make_inner_place(place, name))
                problems.append(Problem("R114", f"{name!r} is {shorten_value(value)}", attribute_place, why, do))
            except RecipeError as error:
                problems += error.problems
    return values


def _compile(value: Any, reader: Reader, around: Place, name: str) -> Any:
    # late, because a graph without conditions and templates needs no compiler for them
    if reader is parse_condition:
        from agentnb.expressions.conditions import to_condition

        return to_condition(value, make_inner_place(around, name))
    if reader is parse_messages and not isinstance(value, str):
        return _compile_messages(value, around, name)
    if reader in (parse_template, parse_messages):
        from agentnb.expressions.templates import compile_template, has_markers

        return compile_template(value, place=make_inner_place(around, name)) if has_markers(value) else value
    return value


def _compile_messages(messages: Sequence[tuple[str, str]], around: Place, name: str) -> tuple[tuple[str, Any], ...]:
    problems: list[Problem] = []
    pairs = []
    for number, (role, text) in enumerate(messages):
        try:
            pairs.append((role, _compile(text, parse_template, around, f"{name}[{number}]")))
        except RecipeError as error:
            problems += error.problems
    if problems:
        raise RecipeError(*problems)
    return tuple(pairs)


def make_inner_place(place: Place, name: str) -> Place:
    """Return the place of a part of the value at a place."""
    file, line, column, path, block = place
    return Place(file, line, column, f"{path}.{name}" if path else name, block)


@lru_cache(maxsize=64)
def list_words(kind: str) -> Mapping[str, Reader]:
    """Return the attributes of a node of a kind; for an unknown kind, those that every node has."""
    return {**COMMON, **BY_KIND.get(kind, {})}


def _check_unknown(name: Any, known: Mapping[str, Reader], place: Place) -> list[Problem]:
    similar = get_close_matches(name, known, n=1, cutoff=0.8) if isinstance(name, str) else []
    why = f"the attributes here are: {', '.join(known)}"
    if similar:
        what, do = f"unknown attribute {safe_repr(name)}", f"did you mean {similar[0]!r}?"
    elif known.keys() >= COMMON.keys() and (kinds := [kind for kind, other in BY_KIND.items() if name in other]):
        what, do = (
            f"attribute {safe_repr(name)} has no meaning here",
            f"remove it; kinds that have it: {', '.join(kinds)}",
        )
    else:
        return []
    return [Problem("R112", what, str(place), why, do, "warning")]


def _check_settings(settings: Mapping[Any, Any], place: Place) -> Iterator[Problem]:
    """R112: a setting of a model is probably misspelled. Others may be those of a function that answers."""
    for name, similar in iter_misspelled_settings(map(str, settings)):
        why = f"the settings of a request are: model, {', '.join(sorted(OF_REQUESTS))}"
        where = str(make_inner_place(place, name))
        yield Problem("R112", f"unknown setting {name!r}", where, why, f"did you mean {similar!r}?", "warning")


def shorten_value(value: Any) -> str:
    """Return short text for a value of the wrong type."""
    if isinstance(value, str | int | float):
        return safe_repr(value)
    return with_article(get_class_name(value))
