"""attributes: what the attributes of a graph, its nodes and edges may be. No callable among them is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final

from agentnb.errors import Place, Problem, RecipeError
from agentnb.expressions.paths import parse_path
from agentnb.recipe.model import frozen

Path = tuple[str | int, ...]
Reader = Callable[[Any], Any]


class Unfit(Exception):
    """A value is not what is needed; says what is, and what to do."""


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise Unfit("a text is needed here", "write it as one text")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise Unfit("a list of texts is needed here", "write it as a list: ['one', 'two']")
    return tuple(value)


def function(value: Any) -> Any:
    """A callable, or the name of one."""
    if not callable(value) and not isinstance(value, str):
        raise Unfit("a function is a callable, or a name that the session's tools have", "give the function itself")
    return value


def path(value: Any) -> Path:
    """A path on the board."""
    if isinstance(value, str):
        return parse_path(value)
    keys = list(value) if isinstance(value, tuple | list) else []
    if keys and isinstance(keys[0], str) and all(isinstance(key, str | int) for key in keys):
        return tuple(keys)
    raise Unfit("a path on the board is a text like 'order.total', or a tuple of keys", "write its path")


def paths(value: Any) -> Mapping[str, Path]:
    """A mapping from names to paths on the board."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise Unfit("it maps names to paths on the board", "write it as {'name': 'path'}")
    return MappingProxyType({name: path(item) for name, item in value.items()})


def rounds(value: Any) -> int:
    """How often something is done."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Unfit("a whole number that is not negative is needed here", "write it as a number")
    return value


def at_least_one(value: Any) -> int:
    """A number of times, one or more."""
    if rounds(value) < 1:
        raise Unfit("a whole number from 1 on is needed here", "write 1 or more")
    return int(value)


def seconds(value: Any) -> float:
    """A time."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < float("inf"):
        raise Unfit("seconds are needed here, as a number that is not negative", "write it as a number")
    return value


def number(value: Any) -> float:
    """A number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not float("-inf") < value < float("inf"):
        raise Unfit("a number is needed here", "write it as a number")
    return value


def flag(value: Any) -> bool:
    """Yes or no."""
    if not isinstance(value, bool):
        raise Unfit("True or False is needed here", "write True or False")
    return value


def options(value: Any) -> tuple[Any, ...]:
    """What a person may choose from."""
    if not isinstance(value, list | tuple):
        raise Unfit("a list of answers is needed here", "write it as a list: ['yes', 'no']")
    return tuple(value)


def mapping(value: Any) -> Mapping[str, Any]:
    """Values by name."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise Unfit("a mapping with texts as keys is needed here", "write it as {'key': value}")
    return frozen(value)


def schemas(value: Any) -> Mapping[str, Any]:
    """What a recipe is given: names, or names with their JSON schemas."""
    if isinstance(value, list | tuple):
        return MappingProxyType({name: {} for name in texts(value)})
    return mapping(value)


def condition(value: Any) -> Any:
    """A condition on the board: `read` compiles it, for its problems want a place."""
    return value


def anything(value: Any) -> Any:
    """Any value: looked at elsewhere."""
    return value


COMMON: Final[Mapping[str, Reader]] = {
    "kind": text,
    "label": text,
    "inputs": paths,
    "reads": texts,
    "writes": texts,
}
_CALL: Final[Mapping[str, Reader]] = {
    "timeout": seconds,
    "attempts": at_least_one,
    "backoff": seconds,
    "blocking": flag,
    "repeatable": flag,
}
# kind -> attribute -> what it may be. Those of a kind that is not here are left to it as they are.
BY_KIND: Final[Mapping[str, Mapping[str, Reader]]] = {
    "function": {"function": function, "output": text},
    "tool": {"function": function, "output": text, **_CALL},
    "agent": {"ref": text, "agent_ref": text, "prompt": text, "model": text, "output": text, **_CALL},
    "human": {
        "prompt": text,
        "output": text,
        "options": options,
        "schema": mapping,
        "role": text,
        "timeout": seconds,
    },
    "evaluator": {
        "target": path,
        "ref": text,
        "profile": anything,
        "threshold": number,
        "max_refinements": rounds,
        "feedback": text,
        "pass_route": anything,
        "fail_route": anything,
        "model": text,
        **_CALL,
    },
    "generative": {"goal": text, "schema": mapping, "prompt": text, "model": text, **_CALL},
    "router": {"input_key": path, "routes": anything, "default": anything},
    "loop": {"graph": anything, "while": condition, "until": condition, "times": rounds, "max": at_least_one},
    "subgraph": {"graph": anything, "outputs": paths},
    "noop": {},
    "join": {},
}
# kind -> attribute that it cannot do without -> what it is for.
NEEDED: Final[Mapping[str, Mapping[str, str]]] = {
    "router": {"input_key": "a router chooses by a value on the board"},
    "evaluator": {"target": "a value on the board is judged", "threshold": "a score of so much or more passes"},
    "generative": {"goal": "the model is told what it is to work towards"},
}
EDGE: Final[Mapping[str, Reader]] = {"when": condition, "kind": text, "value": anything, "label": text}
GRAPH: Final[Mapping[str, Reader]] = {
    "name": anything,
    "entry": anything,
    "inputs": schemas,
    "outputs": texts,
    "init": mapping,
    "limits": mapping,
}


def read(
    given: Mapping[Any, Any], known: Mapping[str, Reader], place: Place, problems: list[Problem]
) -> dict[str, Any]:
    """Return those of the attributes that are known and fit; None counts as left out.

    An attribute that is not known is no mistake (graphs carry others, too), unless it looks like a known one.
    """
    found = {}
    for name, value in given.items():
        here = inside(place, str(name))
        if name not in known:
            problems += _unknown(name, known, here)
        elif value is not None:
            try:
                found[name] = _compiled(value, here) if known[name] is condition else known[name](value)
            except Unfit as unfit:
                why, do = unfit.args
                problems.append(Problem("R114", f"{name!r} is {shown(value)}", str(here), why, do))
            except RecipeError as error:
                problems += error.problems
    return found


def _compiled(value: Any, place: Place) -> Any:
    # Late: a graph without conditions needs no compiler for them.
    from agentnb.expressions.conditions import as_condition

    return as_condition(value, place)


def inside(place: Place, name: str) -> Place:
    """Return the place of a part of what stands at a place."""
    return place._replace(path=f"{place.path}.{name}" if place.path else name)


def _unknown(name: Any, known: Mapping[str, Reader], place: Place) -> list[Problem]:
    near = get_close_matches(name, known, n=1, cutoff=0.8) if isinstance(name, str) else []
    why = f"the attributes here are: {', '.join(known)}"
    if near:
        what, do = f"unknown attribute {name!r}", f"did you mean {near[0]!r}?"
    elif known.keys() >= COMMON.keys() and (kinds := [kind for kind, other in BY_KIND.items() if name in other]):
        what, do = f"attribute {name!r} means nothing here", f"remove it; kinds that have it: {', '.join(kinds)}"
    else:
        return []
    return [Problem("R112", what, str(place), why, do, "warning")]


def shown(value: Any) -> str:
    """Return a short text for a value of the wrong sort."""
    if isinstance(value, str | int | float):
        told = repr(value)
        return told if len(told) <= 60 else told[:57] + "..."
    name = type(value).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"
