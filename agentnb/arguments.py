"""Arguments of public functions: values of plain types, and a Problem for one of a wrong type.

A check such as `0 <= step` or `name in nodes` runs code of its operands. `plain_arguments` hands a function what its
annotations name: of a subclass of str, int or float the plain value, of a mapping a dict, and of anything else where a
text or a number belongs a `Stranger`, which equals nothing and is shown as the value is. The function's own Problems
tell of wrong arguments; where it has none, and fails, this module's does.

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

from agentnb.errors import AgentNbError, ExecutionError, Problem, RecipeError, with_article
from agentnb.text import UNREADABLE, call, class_name, safe_repr

MOST_ITEMS: Final = 100_000  # of a mapping of a foreign class that is given as an argument
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
MOST_LOOKED_AT: Final = 100  # items of a collection, for one of a foreign class
_KNOWN_MODULES: Final = frozenset(
    {"agentnb", "builtins", "datetime", "decimal", "pathlib", "networkx", "numpy", "pandas"}
)
_PLAIN: Final = frozenset({str, int, float, bool, bytes, type(None)})
_COLLECTIONS: Final = (list, tuple, dict, set, frozenset)
_VARIABLES: Final = ("Self", "Level", "Listener")  # names of annotations that are no classes
_ABSTRACT: Final[dict[str, Any]] = {
    "Callable": Callable, "Collection": Collection, "Iterable": Iterable, "Mapping": Mapping, "Sequence": Sequence,
    "Path": (str, PurePath), "PathLike": (str, PurePath), "float": (int, float),
}  # fmt: skip
_ITEMS: Final = re.compile(r"(?:Iterable|Sequence|Collection)\[(?:\w+\.)*(\w+)")
_VALUES: Final = re.compile(r"Mapping\[[^,\]]+, (?:\w+\.)*(\w+)")
_LAZY: Final = frozenset({"answers", "llm", "stream"})  # arguments that may be iterators, read as a run goes
MOST_BITS: Final = 1024  # of a whole number where an amount, a step or a seed belongs
_ENGINE: Final = frozenset({"Run", "Work"})
_BASES: Final[dict[type, Callable[[Any], Any]]] = {str: str.__str__, int: int.__int__, float: float.__float__}

Given = ParamSpec("Given")
Result = TypeVar("Result")
Class = TypeVar("Class", bound=type)


class Stranger:
    """What stands for an object where a text, a number or a mapping belongs."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


class _Kind(NamedTuple):
    """What an argument may be: the annotation for people, the types, and how a value becomes a plain one."""

    annotation: str
    types: tuple[type, ...]
    convert: Callable[[Any], Any]


class _Signature:
    """The parameters of a public function, and the error for arguments with which it cannot do."""

    def __init__(self, function: Callable[..., Any], error: type[AgentNbError], owner: str) -> None:
        parameters = signature(function).parameters
        self.names = [*parameters]
        self.expected = {name: str(each.annotation) for name, each in parameters.items()}
        self.kinds = {name: kind for name, each in parameters.items() if (kind := _kind(each)) is not None}
        name = f"{owner}.{function.__name__}" if owner else function.__name__
        self.where = name.removesuffix(".__init__") + "()"
        self.error = error

    def convert(self, args: tuple[Any, ...], words: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional and keyword arguments as plain values."""
        plain = [self._converted(name, value) for name, value in zip(self.names, args, strict=False)]
        return (*plain, *args[len(plain) :]), {name: self._converted(name, value) for name, value in words.items()}

    def _converted(self, name: str, value: Any) -> Any:
        kind = self.kinds.get(name)
        convert = kind.convert if kind is not None else _bounded
        found = value if name in _LAZY else convert(value)
        if found is UNREADABLE:
            raise self._refused(f"{name} is {_noun(value)} whose items cannot be read, or that has too many of them")
        return found

    def blame(self, args: tuple[Any, ...], words: dict[str, Any], failure: BaseException) -> AgentNbError | None:
        """Return the error to raise instead of another one: None if no argument of a foreign class explains it."""
        if isinstance(failure, AgentNbError):
            return None
        told = []
        for name, value in (*zip(self.names, args, strict=False), *words.items()):
            kind = self.kinds.get(name)
            if kind is not None and not issubclass(type(value), kind.types):
                told.append(f"{name} is {_noun(value)}, and {kind.annotation} is expected")
            elif (
                kind is not None and kind.convert is plain_mapping and any(type(key) is not str for key in value or ())
            ):
                told.append(f"a key of {name} is no text")
            elif name != "self" and _is_foreign(value):
                told.append(f"{name} is {_noun(value)} that raises {class_name(failure)} when it is used")
            elif name != "self" and (why := _misfit(self.expected.get(name, "Any"), value)):
                told.append(f"{name} {why}")
        return self._refused("; ".join(told)) if told else None

    def _refused(self, what: str) -> AgentNbError:
        why = "an argument has the wrong type, or its own methods fail"
        return self.error(Problem("R275", what, self.where, why, "pass what the signature names; help() shows it"))


def plain_arguments(
    function: Callable[Given, Result], *, error: type[AgentNbError] = ExecutionError, owner: str = ""
) -> Callable[Given, Result]:
    """Return a function that passes its arguments on as values of plain types, as its annotations name them.

    The function raises `error`, R275, where it would fail with an error that is none of ours because of an argument of
    a wrong or a foreign class.
    """
    expected = _Signature(function, error, owner)
    if expected.names in ([], ["self"]):
        return function

    @wraps(function)
    def wrapper(*args: Any, **words: Any) -> Any:
        if not words and len(args) <= 1 and expected.names[0] == "self":
            return function(*args)  # type: ignore[call-arg]  # whether that is enough, it says
        args, words = expected.convert(args, words)
        try:
            return function(*args, **words)
        except (Exception, SystemExit) as failure:
            if (blamed := expected.blame(args, words, failure)) is None:
                raise
            raise blamed from failure

    @wraps(function)
    async def async_wrapper(*args: Any, **words: Any) -> Any:
        args, words = expected.convert(args, words)
        try:
            return await cast("Any", function)(*args, **words)
        except (Exception, SystemExit) as failure:
            if (blamed := expected.blame(args, words, failure)) is None:
                raise
            raise blamed from failure

    return cast("Callable[Given, Result]", async_wrapper if iscoroutinefunction(function) else wrapper)


def plain_methods(cls: Class) -> Class:
    """Give a class's constructor and public methods, inherited ones too, `plain_arguments`.

    Methods that take a Run or Work are called by the engine, some of them at each step, and stay as they are.
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


def _misfit(annotation: str, value: Any) -> str:
    """Return what is wrong with a value of a known class that an annotation does not allow; "" if nothing is."""
    kind = type(value)
    if kind is int and int.bit_length(value) > MOST_BITS:
        return f"is a whole number of {int.bit_length(value)} bits, and at most {MOST_BITS} make sense"
    if kind is str and "\0" in value:
        return "is a text with a null character in it"
    words = _without_brackets(annotation)
    if not words or not words.isdisjoint({"Any", "object", *_VARIABLES}):
        return ""
    mro = {base.__name__ for base in kind.__mro__}
    fits = any(
        word in mro or (word in _ABSTRACT and isinstance(value, _ABSTRACT[word])) or (value is None and word == "None")
        for word in words
    )
    if not fits or not _fit_items(annotation, value):
        return f"is {_noun(value)}, and {annotation} is expected"
    return ""


def _fit_items(annotation: str, value: Any) -> bool:
    """Return True if the items of a collection are what its annotation names; of a mapping its values."""
    kind = type(value)
    if kind is dict:
        named = _VALUES.search(annotation)
        if named is None or named[1] in {"Any", *_VARIABLES}:
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
    if kind not in {list, tuple} or named is None or named[1] in {"Any", *_VARIABLES}:
        return True
    allowed = (str, PurePath) if "PathLike" in annotation else ()
    names = ({base.__name__ for base in type(item).__mro__} for item in islice(value, MOST_LOOKED_AT))
    return all(named[1] in each for each in names) or all(isinstance(item, allowed) for item in value)


def _without_brackets(annotation: str) -> set[str]:
    """Return the names of the classes in an annotation, without what stands in brackets: `Iterable[int] | None`."""
    depth, plain = 0, ""
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        plain += letter if not depth and letter != "]" else ""
    return {word.strip().rpartition(".")[2] for word in plain.split("|")}


def _bounded(value: Any) -> Any:
    """Return a collection of a foreign class, which may have no end, as a plain one; anything else as it is."""
    kind = type(value)
    if kind in _PLAIN or kind in _COLLECTIONS:
        return value
    for base in _COLLECTIONS:
        if issubclass(kind, base) and not _is_known(kind):
            return base(base.__iter__(value)) if base is not dict else dict(dict.items(value))
    if call(issubclass, kind, Mapping) is True and not _is_known(kind) and not callable(value):
        return readable_mapping(value)
    if call(issubclass, kind, Iterator) is True:
        found = call(lambda: list(islice(value, MOST_ITEMS + 1)))
        return found if type(found) is list and len(found) <= MOST_ITEMS else UNREADABLE
    return value


def _noun(value: object) -> str:
    return with_article(class_name(value))


def _is_foreign(value: object, levels: int = 3) -> bool:
    """Return True for an object of a class that other code defined, and for a collection with such objects."""
    kind = type(value)
    if kind in {list, tuple, dict, set} and levels:
        parts = islice(cast("Iterable[Any]", value), MOST_LOOKED_AT)
        keyed = islice(dict.values(cast("dict[Any, Any]", value)), MOST_LOOKED_AT) if kind is dict else ()
        return any(_is_foreign(part, levels - 1) for part in (*parts, *keyed))
    return not _is_known(kind)


def _is_known(kind: type) -> bool:
    """Return True for a class of Python, of this package, or of the libraries that its values come from."""
    module = call(type.__getattribute__, kind, "__module__")
    return isinstance(module, str) and module.partition(".")[0] in _KNOWN_MODULES


def _kind(parameter: Parameter) -> _Kind | None:
    """Return what an argument of a parameter may be; None if it may be anything."""
    annotation = str(parameter.annotation)
    words = [word.strip() for word in annotation.split(" | ")]
    if parameter.kind in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}:
        return None
    if annotation.startswith("Literal["):
        return _Kind(annotation, (str,), plain_value)
    if all(word in _TYPES for word in words):
        types = tuple(kind for word in words for kind in _TYPES[word])
        return _Kind(annotation, types, plain_path if PurePath in types else plain_value)
    if words[0].startswith("Mapping[") and words[1:] in ([], ["None"]):
        types = (dict, type(None)) if words[1:] else (dict,)
        return _Kind(annotation, types, plain_mapping if words[0].startswith("Mapping[str,") else readable_mapping)
    return None


def plain_value(value: Any) -> Any:
    """Return a text or a number as a value of exactly that type; of a list or a tuple each item; else a Stranger."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    for base, convert in _BASES.items():
        if issubclass(kind, base):
            return convert(value)
    if kind in {list, tuple}:
        return kind(map(plain_value, value))
    return _stranger(value)


def plain_path(value: Any) -> Any:
    """Return a path as it is, or its text; anything else as `plain_value` does."""
    if issubclass(type(value), PurePath):
        return value
    text = call(os.fspath, value) if hasattr(type(value), "__fspath__") else None
    return text if type(text) is str else plain_value(value)


def plain_mapping(value: Any) -> Any:
    """Return a mapping as a dict with plain keys; UNREADABLE if it cannot be read or has more than 100,000 items."""
    if type(value) is dict and all(type(key) is str for key in value):
        return value
    found = readable_mapping(value)
    return {plain_value(key): item for key, item in found.items()} if type(found) is dict else found


def readable_mapping(value: Any) -> Any:
    """Return a mapping as a dict; UNREADABLE if it cannot be read or has more than 100,000 items."""
    kind = type(value)
    if value is None or kind is dict or (call(issubclass, kind, Mapping) is True and not _is_foreign(value, 0)):
        return value  # a mapping of ours may be shared, as `Resources` are
    if issubclass(kind, dict):
        return dict(dict.items(value))
    if not call(issubclass, kind, Mapping):
        return _stranger(value)
    found = call(lambda: dict(islice(_pairs(value), MOST_ITEMS + 1)))
    return found if type(found) is dict and len(found) <= MOST_ITEMS else UNREADABLE


def _pairs(value: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for key in value:
        yield key, value[key]


def _stranger(value: Any) -> Stranger:
    """Return what stands for a value: its class has the same name, and it is shown alike."""
    stranger: Stranger = type(class_name(value), (Stranger,), {})(safe_repr(value))
    return stranger


__all__ = ["Stranger", "plain_arguments", "plain_methods"]
