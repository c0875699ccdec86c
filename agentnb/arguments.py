"""Convert the arguments of public functions to plain types, and report arguments of a wrong type as a Problem.

A check such as `0 <= step` or `name in nodes` runs methods of its operands. `plain_arguments` therefore converts
arguments as the annotations state: a subclass of str, int or float to the built-in type, and a mapping to a dict. Any
other object in place of a string or a number becomes a `Placeholder`, which equals nothing and has the repr of the
object. Functions report wrong arguments themselves; if one fails without a Problem, this module raises R275.

R275: an argument has the wrong type, or its own methods fail.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import Parameter, iscoroutinefunction, isfunction, signature
from itertools import islice
from pathlib import PurePath
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, cast

from agentnb.bounds import find_excess
from agentnb.errors import AgentNbError, ExecutionError, Problem, RecipeError, with_article
from agentnb.text import UNREADABLE, call, get_class_name, safe_repr

MOST_ITEMS: Final = 100_000  # in a mapping of a foreign class
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "None": (type(None),),
    "Path": (PurePath,),
    "Side": (str,),
    "bool": (bool,),
    "float": (int, float),
    "int": (int,),
    "os.PathLike[str]": (PurePath,),
    "str": (str,),
}
MOST_LOOKED_AT: Final = 100  # items of a collection that are searched for a foreign class
_KNOWN_MODULES: Final = frozenset(
    {"agentnb", "builtins", "datetime", "decimal", "pathlib", "networkx", "numpy", "pandas"}
)
_PLAIN: Final = frozenset({str, int, float, bool, bytes, type(None)})
_UNCHANGED: Final = set[type]()  # classes of known modules that `_limit_size` leaves unchanged, as found earlier
_FINITE: Final = frozenset({list, tuple, dict, set, frozenset, bytearray, memoryview, range})
_COLLECTIONS: Final = (list, tuple, dict, set, frozenset)
_VARIABLES: Final = ("Self", "Level", "Listener")  # names in annotations that are not classes
_ABSTRACT: Final[dict[str, Any]] = {
    "Callable": Callable, "Collection": Collection, "Iterable": Iterable, "Mapping": Mapping, "Sequence": Sequence,
    "Path": (str, PurePath), "PathLike": (str, PurePath), "float": (int, float),
}  # fmt: skip
_ITEMS: Final = re.compile(r"(?:Iterable|Sequence|Collection)\[(?:\w+\.)*(\w+)")
_VALUES: Final = re.compile(r"Mapping\[[^,\]]+, (?:\w+\.)*(\w+)")
# Arguments that may be iterators, which are read during the run; and `self`, which the class itself has made.
_AS_GIVEN: Final = frozenset({"answers", "llm", "self", "stream"})
MOST_BITS: Final = 1024  # of an integer argument: an amount, a step or a seed
_ENGINE: Final = frozenset({"Run", "Work"})
_BASES: Final[dict[type, Callable[[Any], Any]]] = {str: str.__str__, int: int.__int__, float: float.__float__}

Given = ParamSpec("Given")
Result = TypeVar("Result")
Class = TypeVar("Class", bound=type)


class Placeholder:
    """Placeholder for an object given in place of a string, a number or a mapping."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


class _Kind(NamedTuple):
    """The expected type of an argument: its annotation for messages, its types, and the conversion to a plain value."""

    annotation: str
    types: tuple[type, ...]
    convert: Callable[[Any], Any]


class _Signature:
    """The parameters of a public function, and the error for arguments that it cannot use."""

    def __init__(self, function: Callable[..., Any], error: type[AgentNbError], owner: str) -> None:
        parameters = signature(function).parameters
        self.names = [*parameters]
        self.expected = {name: str(each.annotation) for name, each in parameters.items()}
        self.kinds = {name: kind for name, each in parameters.items() if (kind := _get_kind(each)) is not None}
        name = f"{owner}.{function.__name__}" if owner else function.__name__
        self.where = name.removesuffix(".__init__") + "()"
        self.error = error

    def convert(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional and keyword arguments as plain values."""
        kwargs = {name: self._convert(name, value) for name, value in kwargs.items()}
        if len(args) == 1 and self.names[0] in _AS_GIVEN:  # a method, called with keywords alone
            return args, kwargs
        plain = [self._convert(name, value) for name, value in zip(self.names, args, strict=False)]
        return (*plain, *args[len(plain) :]), kwargs

    def _convert(self, name: str, value: Any) -> Any:
        if value is None or name in _AS_GIVEN:
            return value
        kind = self.kinds.get(name)
        converted = (kind.convert if kind is not None else _limit_size)(value)
        if converted is UNREADABLE:
            raise self._make_error(
                f"{name} is {_describe_value(value)} whose items cannot be read, or that has too many"
            )
        return converted

    def explain(self, args: tuple[Any, ...], kwargs: dict[str, Any], failure: BaseException) -> AgentNbError | None:
        """Return the error to raise instead of `failure`; None if no argument explains the failure."""
        if isinstance(failure, AgentNbError):
            return None
        reasons = []
        for name, value in (*zip(self.names, args, strict=False), *kwargs.items()):
            kind = self.kinds.get(name)
            if kind is not None and not issubclass(type(value), kind.types):
                reasons.append(f"{name} is {_describe_value(value)}, and {kind.annotation} is expected")
            elif (
                kind is not None
                and kind.convert is to_plain_mapping
                and any(type(key) is not str for key in value or ())
            ):
                reasons.append(f"a key of {name} is not a string")
            elif name != "self" and _is_foreign(value):
                reasons.append(f"{name} is {_describe_value(value)} that raises {get_class_name(failure)} when used")
            elif name != "self" and (why := _explain_misfit(self.expected.get(name, "Any"), value)):
                reasons.append(f"{name} {why}")
        return self._make_error("; ".join(reasons)) if reasons else None

    def _make_error(self, what: str) -> AgentNbError:
        why = "an argument has the wrong type, or its own methods fail"
        return self.error(
            Problem("R275", what, self.where, why, "pass the arguments in the signature; help() shows it")
        )


def plain_arguments(
    function: Callable[Given, Result], *, error: type[AgentNbError] = ExecutionError, owner: str = ""
) -> Callable[Given, Result]:
    """Wrap a function so that it receives values of plain types, as its annotations state.

    If the function fails with an error other than an AgentNbError, and an argument of a wrong or foreign class explains
    it, the wrapper raises `error` with R275 instead.
    """
    expected = _Signature(function, error, owner)
    if expected.names in ([], ["self"]):
        return function

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) <= 1 and expected.names[0] == "self":
            return function(*args)  # type: ignore[call-arg]  # the function reports missing arguments
        args, kwargs = expected.convert(args, kwargs)
        try:
            return function(*args, **kwargs)
        except (Exception, SystemExit) as failure:
            if (explained := expected.explain(args, kwargs, failure)) is None:
                raise
            raise explained from failure

    @wraps(function)
    async def async_wrapper(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = expected.convert(args, kwargs)
        try:
            return await cast("Any", function)(*args, **kwargs)
        except (Exception, SystemExit) as failure:
            if (explained := expected.explain(args, kwargs, failure)) is None:
                raise
            raise explained from failure

    return cast("Callable[Given, Result]", async_wrapper if iscoroutinefunction(function) else wrapper)


def plain_methods(cls: Class) -> Class:
    """Apply `plain_arguments` to the constructor and the public methods of a class, including inherited ones.

    Methods that take a Run or Work are skipped: the engine calls them, some of them in each step.
    """
    for name in dir(cls):
        method = next(vars(base)[name] for base in cls.__mro__ if name in vars(base))
        if not isfunction(method) or not _ENGINE.isdisjoint(method.__annotations__.values()):
            continue
        if name == "__init__" or not name.startswith("_"):
            error = RecipeError if name == "__init__" else ExecutionError
            plain = plain_arguments(method, error=error, owner=cls.__name__)
            if plain is not method:
                setattr(cls, name, plain)
    return cls


def _explain_misfit(annotation: str, value: Any) -> str:
    """Return why an annotation does not allow a value of a known class; "" if it does."""
    kind = type(value)
    if kind is int and int.bit_length(value) > MOST_BITS:
        return f"is an integer of {int.bit_length(value)} bits; at most {MOST_BITS} are allowed"
    if kind is str and "\0" in value:
        return "is a string that contains a null character"
    text = _list_class_names(annotation)
    if not text or not text.isdisjoint({"Any", "object", *_VARIABLES}):
        return ""
    mro = {base.__name__ for base in kind.__mro__}
    fits = any(
        word in mro or (word in _ABSTRACT and isinstance(value, _ABSTRACT[word])) or (value is None and word == "None")
        for word in text
    )
    if not fits or not _fit_items(annotation, value):
        return f"is {_describe_value(value)}, and {annotation} is expected"
    return ""


def _fit_items(annotation: str, value: Any) -> bool:
    """Return True if the items of a collection, or the values of a mapping, have the annotated type."""
    kind = type(value)
    named = _VALUES.search(annotation)
    if kind is dict and named is not None:
        if named[1] in {"Any", *_VARIABLES}:
            return True
        known = _ABSTRACT.get(named[1])
        return all(
            named[1] in {base.__name__ for base in type(item).__mro__}
            or (known is not None and isinstance(item, known))
            for item in value.values()
        )
    if kind in {str, bytes}:
        return "[str" not in annotation
    named = _ITEMS.search(annotation)
    if kind not in _FINITE or named is None or named[1] in {"Any", *_VARIABLES}:
        return True
    allowed = (str, PurePath) if "PathLike" in annotation else ()
    names = ({base.__name__ for base in type(item).__mro__} for item in islice(value, MOST_LOOKED_AT))
    return all(named[1] in each for each in names) or all(isinstance(item, allowed) for item in value)


def _list_class_names(annotation: str) -> set[str]:
    """Return the names of the classes in an annotation; brackets are ignored, as in `Iterable[int]`."""
    depth, plain = 0, ""
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        plain += letter if not depth and letter != "]" else ""
    return {word.strip().rpartition(".")[2] for word in plain.split("|")}


def _limit_size(value: Any) -> Any:
    """Convert a collection of a foreign class to a built-in one, with limited length; return other values as is."""
    kind = type(value)
    if kind in _PLAIN or kind in _UNCHANGED or kind in _COLLECTIONS:
        return value
    for base in _COLLECTIONS:
        if issubclass(kind, base) and not _is_known(kind):
            return base(base.__iter__(value)) if base is not dict else dict(dict.items(value))
    if call(issubclass, kind, Mapping) is True and not _is_known(kind) and not callable(value):
        return read_mapping(value)
    if call(issubclass, kind, Iterator) is True:
        items = call(lambda: list(islice(value, MOST_ITEMS + 1)))
        return items if type(items) is list and len(items) <= MOST_ITEMS else UNREADABLE
    if _is_known(kind):
        _UNCHANGED.add(kind)
    return value


def _describe_value(value: object) -> str:
    return with_article(get_class_name(value))


def _is_foreign(value: object, levels: int = 3) -> bool:
    """Return True for an object of a class defined elsewhere, and for a collection that contains one."""
    kind = type(value)
    if kind in {list, tuple, dict, set} and levels:
        parts = islice(cast("Iterable[Any]", value), MOST_LOOKED_AT)
        keyed = islice(dict.values(cast("dict[Any, Any]", value)), MOST_LOOKED_AT) if kind is dict else ()
        return any(_is_foreign(part, levels - 1) for part in (*parts, *keyed))
    return not _is_known(kind)


def _is_known(kind: type) -> bool:
    """Return True for a class of Python, of this package, or of a library that this package uses."""
    module = call(type.__getattribute__, kind, "__module__")
    return isinstance(module, str) and module.partition(".")[0] in _KNOWN_MODULES


def _get_kind(parameter: Parameter) -> _Kind | None:
    """Return the expected type of a parameter; None if it accepts anything."""
    annotation = str(parameter.annotation)
    alternatives = [word.strip() for word in annotation.split(" | ")]
    if parameter.kind in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}:
        return None
    if annotation.startswith("Literal["):
        return _Kind(annotation, (str,), to_plain_value)
    if all(word in _TYPES for word in alternatives):
        types = tuple(kind for word in alternatives for kind in _TYPES[word])
        return _Kind(annotation, types, to_plain_path if PurePath in types else to_plain_value)
    if alternatives[0].startswith("Mapping[str,") and alternatives[1:] == ["object", "None"]:
        return _Kind(annotation, (object,), _to_plain_if_mapping)
    if alternatives[0].startswith("Mapping[") and alternatives[1:] in ([], ["None"]):
        types = (dict, type(None)) if alternatives[1:] else (dict,)
        return _Kind(
            annotation, types, to_plain_mapping if alternatives[0].startswith("Mapping[str,") else read_mapping
        )
    return None


def to_plain_value(value: Any) -> Any:
    """Convert strings and numbers, also inside lists and tuples, to built-in types; anything else to a Placeholder."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    for base, convert in _BASES.items():
        if issubclass(kind, base):
            return convert(value)
    if kind in {list, tuple} and not find_excess(value):
        return kind(map(to_plain_value, value))
    return _make_placeholder(value)


def to_plain_path(value: Any) -> Any:
    """Return a path unchanged and a path-like object as a string; convert anything else with `to_plain_value`."""
    if issubclass(type(value), PurePath):
        return value
    text = call(os.fspath, value) if hasattr(type(value), "__fspath__") else None
    return text if type(text) is str else to_plain_value(value)


def to_plain_mapping(value: Any) -> Any:
    """Return a mapping as a dict with plain keys; UNREADABLE if it cannot be read or has more than 100,000 items."""
    if type(value) is dict and all(type(key) is str for key in value):
        return value
    mapping = read_mapping(value)
    return {to_plain_value(key): item for key, item in mapping.items()} if type(mapping) is dict else mapping


def _to_plain_if_mapping(value: Any) -> Any:
    """Return a mapping as `to_plain_mapping` does, and any other object as it is."""
    return to_plain_mapping(value) if call(issubclass, type(value), Mapping) is True else value


def read_mapping(value: Any) -> Any:
    """Return a mapping as a dict; UNREADABLE if it cannot be read or has more than 100,000 items."""
    kind = type(value)
    if value is None or kind is dict or (call(issubclass, kind, Mapping) is True and not _is_foreign(value, 0)):
        return value  # a mapping of this package may be shared, such as `Resources`
    if issubclass(kind, dict):
        return dict(dict.items(value))
    if not call(issubclass, kind, Mapping):
        return _make_placeholder(value)
    mapping = call(lambda: dict(islice(_iter_pairs(value), MOST_ITEMS + 1)))
    return mapping if type(mapping) is dict and len(mapping) <= MOST_ITEMS else UNREADABLE


def _iter_pairs(value: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for key in value:
        yield key, value[key]


def _make_placeholder(value: Any) -> Placeholder:
    """Return a placeholder whose class has the same name as the value's, and which has the same repr."""
    stranger: Placeholder = type(get_class_name(value), (Placeholder,), {})(safe_repr(value))
    return stranger


__all__ = ["Placeholder", "plain_arguments", "plain_methods"]
