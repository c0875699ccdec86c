"""mistakes: what pydantic found wrong in what someone wrote, as Problems with the place and the user's own words.

A dialect describes its files by a pydantic model. It makes a `Written` of what was read, has the model look at
`Written.content`, and hands the ValidationError to `schema_problems`. Where the model leaves unknown keys aside,
`unknown_keys` tells them in warnings. A part that may be one of several things is told against the one that it is
meant to be (`Written.member`), and once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ValidationError

from agentnb.errors import Place, Problem, did_you_mean
from agentnb.sources import Path, Source, path_of
from agentnb.sources.faults import unquoted_key, unquoted_value

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

__all__ = ["Written", "schema_problems", "unknown_keys", "word_problems"]

_QUOTED = re.compile(r"'([^']*)'")


class Written:
    """What someone wrote, and the class that describes all of it (`root`).

    A dialect that reads a short form as a longer one gives the longer as `content`, and overrides `real`; `hint` and
    `beside` are its own words about a key, `member` says which of several classes a mapping is meant to be.
    """

    def __init__(self, source: Source, content: Mapping[str, Any], root: type[BaseModel]) -> None:
        self.source, self.content, self.root = source, content, root

    def real(self, path: Path) -> Path:
        """Return where in the source a part of the content stands."""
        return path

    def member(self, models: list[type[BaseModel]], value: Mapping[str, Any]) -> type[BaseModel] | None:
        """Return the class that a mapping is meant to be: by its type, else the one that says most."""
        if all("type" in model.model_fields for model in models):
            return next((each for each in models if each.model_fields["type"].default == value.get("type")), None)
        return models[-1]

    def hint(self, path: Path, needed: list[str], found: Any) -> str:
        """Return why the key at the end of `path` is needed, where `found` stands around it."""
        return f"needed here are: {', '.join(needed)}; given are: {', '.join(map(str, found)) or 'none'}"

    def beside(self, path: Path) -> tuple[str, str, str] | None:
        """Return (key, why, do) of an unknown key about which there is something else to say than which there are."""
        return None

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Return the place of a part, given by its path in the content."""
        return self.source.place(self.real(path), key=key)

    def at(self, path: Path) -> Any:
        """Return what stands at a path of the content; None where nothing does."""
        value: Any = self.content
        for key in path:
            value = _part(value, key)
        return value


def _part(value: Any, key: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(key)
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        return value[key]
    return None


def word_problems(source: Source) -> Iterator[Problem]:
    """R109: an unquoted word that YAML takes for a boolean or null where a text is needed."""
    for path, word in source.odd_keys.items():
        yield unquoted_key(word, source.place(path, key=True))


def schema_problems(error: ValidationError, written: Written) -> Iterator[Problem]:
    """Yield one Problem for each thing that pydantic found, all at once.

    A check of the model's own may raise a PydanticCustomError with `do` (what to do about it) and `at` (the path from
    the value that it looks at to the part that is wrong) in its context.
    """
    faults = [(fault, _path(fault, written)) for fault in error.errors(include_url=False)]
    strange = {path for fault, path in faults if fault["type"] == "extra_forbidden"}
    for fault, path in faults:
        match fault["type"]:
            case "missing":
                yield _missing(path, strange, written)
            case "union_tag_not_found" if isinstance(written.at(path), Mapping):
                yield _missing((*path, "type"), strange, written)
            case "union_tag_not_found":
                yield _wrong(path, "a mapping is needed here: keys with values", written)
            case "extra_forbidden":
                yield _unknown(path, written)
            case "union_tag_invalid":
                yield _not_one_of((*path, "type"), fault["ctx"]["expected_tags"], written)
            case "literal_error" | "enum":
                yield _not_one_of(path, fault["ctx"]["expected"], written)
            case "string_type":
                yield _not_text(path, written)
            case _:
                yield _wrong(path, fault["msg"], written, str(fault.get("ctx", {}).get("do", "")))


def unknown_keys(written: Written) -> Iterator[Problem]:
    """Yield a warning for each key that is not known; for models that leave such keys aside."""
    yield from (_unknown(path, written, warning=True) for path in _strange((), written.content, written.root, written))


# ------------------------------------------------------------------------------------------------------------- wording


def _missing(path: Path, strange: Iterable[Path], written: Written) -> Problem:
    """R113: a key that is needed is missing."""
    around, key = path[:-1], str(path[-1])
    model, found = _model(around, written), written.at(around)
    needed = [name for name, field in _fields(model).items() if field.is_required()] if model else [key]
    others = [str(other[-1]) for other in strange if other[:-1] == around]
    if model is not None and model.model_config.get("extra") == "ignore" and isinstance(found, Mapping):
        others += _unknown_in(found, model)
    near = get_close_matches(key, others, n=1)
    order = f"write {key!r} where it says {near[0]!r}" if near else f"add {key!r}"
    why = written.hint(path, needed, found)
    return Problem("R113", f"key {key!r} is missing", str(written.place(around, key=True)), why, order)


def _unknown(path: Path, written: Written, *, warning: bool = False) -> Problem:
    """R112: a key that is not known there."""
    key, model = str(path[-1]), _model(path[:-1], written)
    known = list(_fields(model)) if model else []
    said = written.beside(path)
    name, why, order = said or (
        key,
        f"the keys here are: {', '.join(known)}",
        did_you_mean(key, known, f"remove {key!r}"),
    )
    place = str(written.place(path, key=True))
    if warning:
        return Problem("R112", f"unknown key {name!r} does nothing", place, why, order, "warning")
    return Problem("R112", f"unknown key {name!r}", place, why, order)


def _not_one_of(path: Path, expected: str, written: Written) -> Problem:
    """R114: a value is not what is needed there."""
    value, known = written.at(path), _QUOTED.findall(expected)
    return Problem(
        "R114",
        f"{_name(path)} {_short(value)} is not one of those that there are",
        str(written.place(path)),
        f"it is one of: {', '.join(known) or expected}",
        did_you_mean(str(value), known, f"write {' or '.join(map(repr, known[:3])) or expected}"),
    )


def _not_text(path: Path, written: Written) -> Problem:
    """R114: a value is not what is needed there."""
    value, place = written.at(path), written.place(path)
    word = written.source.texts.get(written.real(path))
    if isinstance(value, bool):
        return unquoted_value(word or str(value), place)
    name = _name(path)
    if value is None:
        return Problem(
            "R114", f"{name!r} is empty", str(place), "a text is needed here", "write one, or remove the key"
        )
    if isinstance(value, int | float):
        return Problem("R114", f"{name!r} is the number {word or value}", str(place), "a text is needed here",
                       f'quote it: "{word or value}"')  # fmt: skip
    return Problem("R114", f"{name!r} is {_short(value)}", str(place), "a text is needed here", "write it as one text")


def _wrong(path: Path, message: str, written: Written, order: str = "") -> Problem:
    """R114: a value is not what is needed there."""
    what = f"{_name(path)!r} is {_short(written.at(path))}" if path else f"the recipe is {_short(written.content)}"
    why = f"the rule is: {message[:1].lower()}{message[1:]}"
    return Problem("R114", what, str(written.place(path)), why, order or "write a value that keeps the rule")


def _name(path: Path) -> str:
    """Return a part's own name: its key, and of an item of a list the list's name with its number."""
    return path_of(path[-2:] if isinstance(path[-1], int) else path[-1:])


def _short(value: Any) -> str:
    match value:
        case Mapping():
            return f"a mapping ({', '.join(map(str, list(value)[:4])) or 'empty'})"
        case list() | tuple():
            return f"a list of {len(value)}"
        case None:
            return "empty"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# ------------------------------------------------------------------------------------ what describes what stands where


def _path(fault: ErrorDetails, written: Written) -> Path:
    """Return the path in the content that pydantic's location means: without the names of union members."""
    path: list[int | str] = []
    value: Any = written.content
    described: Any = written.root
    is_member = False  # whether the location says next which member of a union it speaks of
    for number, key in enumerate(fault["loc"]):
        if is_member and isinstance(key, str):
            is_member = False
            continue
        inside = key in value if isinstance(value, Mapping) else isinstance(value, list) and isinstance(key, int)
        if inside or (number == len(fault["loc"]) - 1 and isinstance(value, Mapping)):
            path.append(key)
            described, value = _inside(described, value, key, written), _part(value, key)
            is_member = len(_alternatives(described)) > 1
    return (*path, *fault.get("ctx", {}).get("at", ()))


def _strange(path: Path, value: Any, described: Any, written: Written) -> Iterator[Path]:
    """Yield the paths of the keys that no class knows which describes what is around them."""
    if isinstance(value, Mapping):
        model = _meant(described, value, written)
        if model is not None and model.model_config.get("extra") != "allow":
            yield from ((*path, key) for key in _unknown_in(value, model))
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if isinstance(part, Mapping | list):
            yield from _strange((*path, key), part, _inside(described, value, key, written), written)


def _model(path: Path, written: Written) -> type[BaseModel] | None:
    """Return the class that describes what stands at a path; None where anything may stand."""
    value: Any = written.content
    described: Any = written.root
    for key in path:
        described, value = _inside(described, value, key, written), _part(value, key)
    return _meant(described, value, written)


def _inside(described: Any, value: Any, key: str | int, written: Written) -> Any:
    """Return the annotation of a part of what an annotation describes; Any where nothing is said of it."""
    if isinstance(value, list):
        return next((get_args(each)[0] for each in _alternatives(described) if get_origin(each) is list), Any)
    model = _meant(described, value, written)
    if model is not None:
        field = _field(model, str(key))
        return Any if field is None else field.annotation
    return next((get_args(each)[1] for each in _alternatives(described) if get_origin(each) is dict), Any)


def _meant(described: Any, value: Any, written: Written) -> type[BaseModel] | None:
    """Return the class among an annotation's alternatives that describes a value; None where there is none."""
    models = [each for each in _alternatives(described) if isinstance(each, type) and issubclass(each, BaseModel)]
    if len(models) > 1 and isinstance(value, Mapping):
        return written.member(models, value)
    return models[0] if models else None


def _alternatives(annotation: Any) -> list[Any]:
    """Return what an annotation allows, one by one; None is left out."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _alternatives(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [each for part in get_args(annotation) for each in _alternatives(part)]
    return [] if annotation is NoneType else [annotation]


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return a model's fields by the names that a file uses."""
    return {field.serialization_alias or name: field for name, field in model.model_fields.items()}


def _field(model: type[BaseModel], key: str) -> FieldInfo | None:
    """Return the field that a key fills, by any of its names."""
    return next((field for name, field in model.model_fields.items() if key in _names(name, field)), None)


def _names(name: str, field: FieldInfo) -> list[str]:
    alias = field.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [name, *(choice for choice in choices if isinstance(choice, str))]


def _unknown_in(value: Mapping[str, Any], model: type[BaseModel]) -> list[str]:
    known = {each for name, field in model.model_fields.items() for each in _names(name, field)}
    return [key for key in value if key not in known]
