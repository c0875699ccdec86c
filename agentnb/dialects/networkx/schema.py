"""Validation of the attributes of a graph, its nodes and edges. Callables among them are not called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final

from agentnb.errors import Place, Problem, RecipeError, with_article
from agentnb.expressions.paths import parse_path
from agentnb.recipe.model import freeze_mapping
from agentnb.recipe.user_functions import COLLECT, GENERATES, is_generator
from agentnb.text import class_name, safe_repr, safe_str
from agentnb.world.call_arguments import NO_SETTINGS

Path = tuple[str | int, ...]
Reader = Callable[[Any], Any]


class Unfit(Exception):
    """A value is not valid; holds the expectation and the remedy."""


def text(value: Any) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise Unfit("a string is required here", "write it as one text")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise Unfit("a list of texts is needed here", "write it as a list: ['one', 'two']")
    return tuple(value)


def function(value: Any) -> Any:
    """Return a callable, or the name of one."""
    if not callable(value) and not isinstance(value, str):
        raise Unfit("a function is a callable, or a name that the session's tools have", "give the function itself")
    if is_generator(value):
        raise Unfit(GENERATES, COLLECT)
    return value


def path(value: Any) -> Path:
    """Return a path on the board."""
    if isinstance(value, str):
        return parse_path(value)
    keys = list(value) if isinstance(value, tuple | list) else []
    if keys and isinstance(keys[0], str) and all(isinstance(key, str | int) for key in keys):
        return tuple(keys)
    raise Unfit("a path on the board is a text like 'order.total', or a tuple of keys", "write its path")


def paths(value: Any) -> Mapping[str, Path]:
    """Return a mapping from names to paths on the board."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise Unfit("it maps names to paths on the board", "write it as {'name': 'path'}")
    return MappingProxyType({name: path(item) for name, item in value.items()})


def rounds(value: Any) -> int:
    """Return a number of rounds."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Unfit("a whole number that is not negative is needed here", "write it as a number")
    return value


def at_least_one(value: Any) -> int:
    """Return a count of one or more."""
    if rounds(value) < 1:
        raise Unfit("a whole number from 1 on is needed here", "write 1 or more")
    return int(value)


def seconds(value: Any) -> float:
    """Return a duration in seconds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < float("inf"):
        raise Unfit("seconds are needed here, as a number that is not negative", "write it as a number")
    return value


def number(value: Any) -> float:
    """Return a number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not float("-inf") < value < float("inf"):
        raise Unfit("a number is needed here", "write it as a number")
    return value


def flag(value: Any) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise Unfit("True or False is needed here", "write True or False")
    return value


def options(value: Any) -> tuple[Any, ...]:
    """Return the options that a person may choose from."""
    if not isinstance(value, list | tuple):
        raise Unfit("a list of answers is needed here", "write it as a list: ['yes', 'no']")
    return tuple(value)


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping with names as keys."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise Unfit("a mapping with texts as keys is needed here", "write it as {'key': value}")
    return freeze_mapping(value)


def schemas(value: Any) -> Mapping[str, Any]:
    """Return the inputs of a recipe: names, or names with their JSON schemas."""
    if isinstance(value, list | tuple):
        return MappingProxyType({name: {} for name in texts(value)})
    return mapping(value)


def condition(value: Any) -> Any:
    """Return a condition on the board; `read` compiles it, because its problems need a place."""
    return value


def template(value: Any) -> Any:
    """Return a text with expressions between `{{` and `}}`; `read` compiles it, because its problems need a place."""
    return text(value)


def messages(value: Any) -> Any:
    """Return the prompt of a model: a text as for `template`, or pairs of a role and a compiled template."""
    return value if isinstance(value, list | tuple) else text(value)


def callables(value: Any) -> Mapping[str, Any]:
    """Return a mapping from keys of the board to functions of two arguments."""
    if not isinstance(value, Mapping) or not all(
        isinstance(key, str) and callable(each) for key, each in value.items()
    ):
        raise Unfit("it maps keys of the board to functions (old, new) -> value", "write it as {'key': function}")
    return freeze_mapping(value)


def model_settings(value: Any) -> Any:
    """Return a model's name, or its name and settings; messages and tools are the node's own."""
    others = sorted(NO_SETTINGS & value.keys()) if isinstance(value, Mapping) else ()
    if others:
        why = f"the node itself says what is asked and offered, and not its model: {', '.join(map(repr, others))}"
        raise Unfit(why, "remove them; an agent calls tools: AgentConfig(llm={..., 'native_tools': True})")
    return value


def side(value: Any) -> str:
    """Return on which side of a node a run stops."""
    if value not in {"before", "after"}:
        raise Unfit("a run stops before or after a node", "write 'before' or 'after'")
    return str(value)


def anything(value: Any) -> Any:
    """Return any value; it is validated elsewhere."""
    return value


COMMON: Final[Mapping[str, Reader]] = {
    "kind": text,
    "label": text,
    "inputs": paths,
    "reads": texts,
    "writes": texts,
    "reducers": callables,
    "choose": function,
    "defer": flag,
    "breakpoint": side,
}
_CALL: Final[Mapping[str, Reader]] = {
    "timeout": seconds,
    "attempts": at_least_one,
    "backoff": seconds,
    "blocking": flag,
    "repeatable": flag,
}
# kind -> attribute -> its validator. Attributes of other kinds are passed on unchanged.
BY_KIND: Final[Mapping[str, Mapping[str, Reader]]] = {
    "function": {"function": function, "output": text, "asks": flag},
    "tool": {"function": function, "output": text, **_CALL},
    "agent": {"ref": text, "agent_ref": text, "prompt": template, "model": text, "output": text, **_CALL},
    "llm": {"prompt": messages, "system": template, "model": model_settings, "output": text, "map": anything, **_CALL},
    "human": {
        "prompt": template,
        "output": text,
        "options": options,
        "schema": mapping,
        "role": text,
        "timeout": seconds,
    },
    "evaluator": {
        "target": path,
        "ref": text,
        "prompt": template,
        "profile": anything,
        "threshold": number,
        "max_refinements": rounds,
        "feedback": text,
        "pass_route": anything,
        "fail_route": anything,
        "model": text,
        **_CALL,
    },
    "generative": {"goal": template, "schema": mapping, "prompt": template, "model": text, **_CALL},
    "router": {"input_key": path, "routes": anything, "default": anything},
    "loop": {"graph": anything, "while": condition, "until": condition, "times": rounds, "max": at_least_one},
    "subgraph": {"graph": anything, "outputs": paths},
    "noop": {},
    "join": {},
}
# kind -> required attribute -> its purpose.
NEEDED: Final[Mapping[str, Mapping[str, str]]] = {
    "router": {"input_key": "a router chooses by a value on the board"},
    "evaluator": {"target": "a value on the board is judged", "threshold": "a score of so much or more passes"},
    "generative": {"goal": "the model is told what it is to work towards"},
}
EDGE: Final[Mapping[str, Reader]] = {"when": condition, "kind": text, "value": anything, "label": text, "join": text}
GRAPH: Final[Mapping[str, Reader]] = {
    "name": anything,
    "entry": anything,
    "inputs": schemas,
    "outputs": texts,
    "init": mapping,
    "limits": mapping,
    "supersteps": flag,
    "reducers": callables,
    "transient": texts,
}


def read(
    given: Mapping[Any, Any], known: Mapping[str, Reader], place: Place, problems: list[Problem]
) -> dict[str, Any]:
    """Return the attributes that are known and valid; None counts as left out.

    An unknown attribute is not an error (graphs have other attributes, too), unless it resembles a known one.
    """
    found = {}
    for name, value in given.items():
        if name not in known:
            problems += _unknown(name, known, inside(place, safe_str(name, 200)))
        elif value is not None:
            try:
                found[name] = _compile(known[name](value), known[name], place, name)
            except Unfit as unfit:
                why, do = unfit.args
                here = str(inside(place, name))
                problems.append(Problem("R114", f"{name!r} is {short_text(value)}", here, why, do))
            except RecipeError as error:
                problems += error.problems
    return found


def _compile(value: Any, reader: Reader, around: Place, name: str) -> Any:
    # Late: a graph without conditions and templates needs no compiler for them.
    if reader is condition:
        from agentnb.expressions.conditions import as_condition

        return as_condition(value, inside(around, name))
    if isinstance(value, str) and reader in (template, messages):
        from agentnb.expressions.templates import compile_template, has_markers

        return compile_template(value, place=inside(around, name)) if has_markers(value) else value
    return value


def inside(place: Place, name: str) -> Place:
    """Return the place of a part of the value at a place."""
    return place._replace(path=f"{place.path}.{name}" if place.path else name)


def _unknown(name: Any, known: Mapping[str, Reader], place: Place) -> list[Problem]:
    near = get_close_matches(name, known, n=1, cutoff=0.8) if isinstance(name, str) else []
    why = f"the attributes here are: {', '.join(known)}"
    if near:
        what, do = f"unknown attribute {safe_repr(name)}", f"did you mean {near[0]!r}?"
    elif known.keys() >= COMMON.keys() and (kinds := [kind for kind, other in BY_KIND.items() if name in other]):
        what, do = (
            f"attribute {safe_repr(name)} means nothing here",
            f"remove it; kinds that have it: {', '.join(kinds)}",
        )
    else:
        return []
    return [Problem("R112", what, str(place), why, do, "warning")]


def short_text(value: Any) -> str:
    """Return a short text for a value of the wrong sort."""
    if isinstance(value, str | int | float):
        return safe_repr(value)
    return with_article(class_name(value))
