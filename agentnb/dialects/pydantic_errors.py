"""Convert pydantic's validation errors into Problems with the place and the user's own spelling.

A dialect describes its files by a pydantic model. It creates a `ValidatedInput` from the parsed source, validates
`ValidatedInput.content`, and passes the ValidationError to `iter_schema_problems`. If the model ignores unknown keys,
`iter_unknown_keys` reports them as warnings. For a union, errors are reported once, against the member that the value
is meant to be (`ValidatedInput.member`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ValidationError

from agentnb.errors import Place, Problem, close_match, did_you_mean
from agentnb.sources import Path, Source, format_path
from agentnb.sources.problems import make_unquoted_key_problem, make_unquoted_value_problem
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

__all__ = ["ValidatedInput", "check_words", "iter_schema_problems", "iter_unknown_keys"]

_QUOTED = re.compile(r"'([^']*)'")


class ValidatedInput:
    """A user's input, and the class that describes all of it (`root`).

    A dialect that expands a short form passes the expanded form as `content` and overrides `to_source_path`;
    `explain_missing` and `explain_unknown` return its own texts about a key, `member` chooses the class that a mapping
    is meant to be.
    """

    def __init__(self, source: Source, content: Mapping[str, Any], root: type[BaseModel]) -> None:
        self.source, self.content, self.root = source, content, root

    def to_source_path(self, path: Path) -> Path:
        """Return the path in the source of a part of the content."""
        return path

    def choose_class(self, models: list[type[BaseModel]], value: Mapping[str, Any]) -> type[BaseModel] | None:
        """Return the class that a mapping is meant to be: by its type, or else the most specific one."""
        if all("type" in model.model_fields for model in models):
            return next((each for each in models if each.model_fields["type"].default == value.get("type")), None)
        return models[-1]

    def explain_missing(self, path: Path, needed: list[str], value: Any) -> str:
        """Return why the key at the end of `path` is needed; `value` is the value around it."""
        return f"required: {', '.join(needed)}; found: {', '.join(map(str, value)) or 'none'}"

    def explain_unknown(self, path: Path) -> tuple[str, str, str] | None:
        """Return (key, why, do) for an unknown key that needs a specific text instead of the list of known keys."""
        return None

    def locate(self, path: Path, *, key: bool = False) -> Place:
        """Return the place of a part, identified by its path in the content."""
        return self.source.locate(self.to_source_path(path), key=key)

    def get_value(self, path: Path) -> Any:
        """Return the value at a path of the content; None if there is none."""
        value: Any = self.content
        for key in path:
            value = _get_part(value, key)
        return value


def _get_part(value: Any, key: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(key)
    return value[key] if isinstance(value, list) and isinstance(key, int) else None


def check_words(source: Source) -> Iterator[Problem]:
    """R109: an unquoted word that YAML reads as a boolean or null where a string is required."""
    for path, word in source.odd_keys.items():
        yield make_unquoted_key_problem(word, source.locate(path, key=True))


def iter_schema_problems(error: ValidationError, written: ValidatedInput) -> Iterator[Problem]:
    """Yield one Problem for each error that pydantic found.

    A custom check of the model may raise a PydanticCustomError with `do` (the remedy) and `at` (the path from the
    checked value to the faulty part) in its context.
    """
    faults = [(fault, _find_path(fault, written)) for fault in error.errors()]
    unknown: dict[Path, list[str]] = {}  # the unknown keys of each mapping
    missing: dict[Path, list[str]] = {}
    for fault, path in faults:
        if fault["type"] in ("missing", "extra_forbidden"):
            found = missing if fault["type"] == "missing" else unknown
            found.setdefault(path[:-1], []).append(str(path[-1]))
    for fault, path in faults:
        match fault["type"]:
            case "missing":
                yield from _iter_missing_problems(path[:-1], missing.pop(path[:-1], []), unknown, written)
            case "union_tag_not_found" if isinstance(written.get_value(path), Mapping):
                yield from _iter_missing_problems(path, ["type"], unknown, written)
            case "extra_forbidden":
                yield _make_unknown_key_problem(path, written)
            case "union_tag_invalid":
                yield _make_choice_problem((*path, "type"), fault["ctx"]["expected_tags"], written)
            case "literal_error" | "enum":
                yield _make_choice_problem(path, fault["ctx"]["expected"], written)
            case "string_type":
                yield _make_text_problem(path, written)
            case _:
                rule, order = _explain_rule(fault)
                yield _make_value_problem(path, rule, written, order)


# pydantic's description of an error -> the expectation and the remedy.
_RULES: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), ("an integer", "write an integer")),
    **dict.fromkeys(("float_parsing", "float_type"), ("a number", "write a number")),
    **dict.fromkeys(("bool_parsing", "bool_type"), ("true or false", "write true or false")),
    **dict.fromkeys(
        ("dict_type", "mapping_type", "model_type", "model_attributes_type", "union_tag_not_found"),
        ("a mapping", "write keys with values"),
    ),
    "list_type": ("a list", "write a list of items"),
    "string_too_short": ("a string of at least {min_length} characters", "write a longer string"),
    "too_short": ("at least {min_length} items", "add what is missing"),
    "string_pattern_mismatch": ("a string that matches {pattern!r}", "write a string of that form"),
}


def _explain_rule(fault: ErrorDetails) -> tuple[str, str]:
    """Return the expectation that was not met and the remedy; a check's own texts take precedence."""
    context = fault.get("ctx", {})
    if fault["type"] in _RULES:
        needed, order = (text.format(**context) for text in _RULES[fault["type"]])
        return f"{needed} is required", order
    return fault["msg"], str(context.get("do", ""))


def iter_unknown_keys(written: ValidatedInput) -> Iterator[Problem]:
    """Yield a warning for each unknown key; for models that ignore unknown keys."""
    yield from (
        _make_unknown_key_problem(path, written, warning=True)
        for path in _iter_unknown_paths((), written.content, written.root, written)
    )


# ------------------------------------------------------------------------------------------------------------- wording


def _iter_missing_problems(
    around: Path, keys: list[str], unknown: Mapping[Path, list[str]], written: ValidatedInput
) -> Iterator[Problem]:
    """R113: required keys are missing: one Problem for all of a mapping, except for those that are misspelled."""
    model, value = _find_model(around, written), written.get_value(around)
    needed = [name for name, field in _list_fields(model).items() if field.is_required()] if model else keys
    others = [*unknown.get(around, ())]
    if model is not None and model.model_config.get("extra") == "ignore" and isinstance(value, Mapping):
        others += _list_unknown(value, model)
    where = str(written.locate(around, key=True))
    absent: dict[str, list[str]] = {}
    for key in keys:
        similar, why = close_match(key, others), written.explain_missing((*around, key), needed, value)
        if similar is None:
            absent.setdefault(why, []).append(key)
        else:
            order = f"write {key!r} instead of {similar!r}"
            yield Problem("R113", f"key {key!r} is missing", where, why, order)
    for why, names in absent.items():
        what = f"key {names[0]!r} is missing" if len(names) == 1 else f"keys {', '.join(map(repr, names))} are missing"
        yield Problem("R113", what, where, why, f"add {names[0]!r}" if len(names) == 1 else "add them")


def _make_unknown_key_problem(path: Path, written: ValidatedInput, *, warning: bool = False) -> Problem:
    """R112: a key is not known there."""
    key, model = str(path[-1]), _find_model(path[:-1], written)
    known = list(_list_fields(model)) if model else []
    explanation = written.explain_unknown(path)
    name, why, order = explanation or (
        key,
        f"the keys here are: {', '.join(known)}",
        did_you_mean(key, known, f"remove {key!r}"),
    )
    where = str(written.locate(path, key=True))
    if warning:
        return Problem("R112", f"unknown key {name!r} has no effect", where, why, order, "warning")
    return Problem("R112", f"unknown key {name!r}", where, why, order)


def _make_choice_problem(path: Path, expected: str, written: ValidatedInput) -> Problem:
    """R114: a value is not valid there."""
    value, known = written.get_value(path), _QUOTED.findall(expected)
    return Problem(
        "R114",
        f"{_format_name(path)} {_shorten(value)} is not a valid value",
        str(written.locate(path)),
        f"it is one of: {', '.join(known) or expected}",
        did_you_mean(safe_str(value), known, f"write {' or '.join(map(repr, known[:3])) or expected}"),
    )


def _make_text_problem(path: Path, written: ValidatedInput) -> Problem:
    """R114: a value is not valid there."""
    value, place = written.get_value(path), written.locate(path)
    word = written.source.texts.get(written.to_source_path(path))
    if isinstance(value, bool):
        return make_unquoted_value_problem(word or str(value), place)
    name = _format_name(path)
    if value is None:
        return Problem("R114", f"{name!r} is empty", str(place), "a string is required", "write one, or remove the key")
    if isinstance(value, int | float):
        number = word or safe_str(value)
        return Problem(
            "R114", f"{name!r} is the number {number}", str(place), "a string is required", f'quote it: "{number}"'
        )
    return Problem(
        "R114", f"{name!r} is {_shorten(value)}", str(place), "a string is required", "write it as a single string"
    )


def _make_value_problem(path: Path, message: str, written: ValidatedInput, order: str) -> Problem:
    """R114: a value is not valid there."""
    what = (
        f"{_format_name(path)!r} is {_shorten(written.get_value(path))}"
        if path
        else f"the recipe is {_shorten(written.content)}"
    )
    why = f"the rule is: {message[:1].lower()}{message[1:]}"
    return Problem("R114", what, str(written.locate(path)), why, order or "write a valid value")


def _format_name(path: Path) -> str:
    """Return a part's own name: its key, and of an item of a list the list's name with its number."""
    return format_path(path[-2:] if isinstance(path[-1], int) else path[-1:])


def _shorten(value: Any) -> str:
    match value:
        case Mapping():
            return f"a mapping ({', '.join(map(safe_str, islice(value, 4))) or 'empty'})"
        case list() | tuple():
            return f"a list of {len(value)}"
        case None:
            return "empty"
    return safe_repr(value)


# ---------------------------------------------------------------------------- the class that describes each part -----


def _find_path(fault: ErrorDetails, written: ValidatedInput) -> Path:
    """Return the path in the content for pydantic's location: without the names of union members."""
    path: list[int | str] = []
    value: Any = written.content
    described: Any = written.root
    is_member = False  # whether the next item of the location names a union member
    for number, key in enumerate(fault["loc"]):
        if is_member:
            is_member = False
            continue
        inside = key in value if isinstance(value, Mapping) else isinstance(value, list)
        if inside or (number == len(fault["loc"]) - 1 and isinstance(value, Mapping)):
            path.append(key)
            described, value = _find_inner_annotation(described, value, key, written), _get_part(value, key)
            is_member = len(_list_alternatives(described)) > 1
    return (*path, *fault.get("ctx", {}).get("at", ()))


def _iter_unknown_paths(path: Path, value: Any, described: Any, written: ValidatedInput) -> Iterator[Path]:
    """Yield the paths of keys that no class for the surrounding mapping knows."""
    if isinstance(value, Mapping):
        model = _find_meant(described, value, written)
        if model is not None and model.model_config.get("extra") != "allow":
            yield from ((*path, key) for key in _list_unknown(value, model))
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if isinstance(part, Mapping | list):
            yield from _iter_unknown_paths(
                (*path, key), part, _find_inner_annotation(described, value, key, written), written
            )


def _find_model(path: Path, written: ValidatedInput) -> type[BaseModel] | None:
    """Return the class that describes the value at a path; None if any value is allowed there."""
    value: Any = written.content
    described: Any = written.root
    for key in path:
        described, value = _find_inner_annotation(described, value, key, written), _get_part(value, key)
    return _find_meant(described, value, written)


def _find_inner_annotation(described: Any, value: Any, key: str | int, written: ValidatedInput) -> Any:
    """Return the annotation of a part of a value with an annotation; Any if there is none."""
    if isinstance(value, list):
        return next((get_args(each)[0] for each in _list_alternatives(described) if get_origin(each) is list), Any)
    model = _find_meant(described, value, written)
    if model is not None:
        field = _find_field(model, str(key))
        return Any if field is None else field.annotation
    return next((get_args(each)[1] for each in _list_alternatives(described) if get_origin(each) is dict), Any)


def _find_meant(described: Any, value: Any, written: ValidatedInput) -> type[BaseModel] | None:
    """Return the class among an annotation's alternatives that describes a value; None if there is none."""
    models = [each for each in _list_alternatives(described) if isinstance(each, type) and issubclass(each, BaseModel)]
    if len(models) > 1 and isinstance(value, Mapping):
        return written.choose_class(models, value)
    return models[0] if models else None


def _list_alternatives(annotation: Any) -> list[Any]:
    """Return the members of a union annotation, without None."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _list_alternatives(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [each for part in get_args(annotation) for each in _list_alternatives(part)]
    return [] if annotation is NoneType else [annotation]


def _list_fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return a model's fields by the names that a file uses."""
    return {field.serialization_alias or name: field for name, field in model.model_fields.items()}


def _find_field(model: type[BaseModel], key: str) -> FieldInfo | None:
    """Return the field that a key fills, by any of its names."""
    return next((field for name, field in model.model_fields.items() if key in _list_names(name, field)), None)


def _list_names(name: str, field: FieldInfo) -> list[str]:
    alias = field.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [name, *(choice for choice in choices if isinstance(choice, str))]


def _list_unknown(value: Mapping[str, Any], model: type[BaseModel]) -> list[str]:
    known = {each for name, field in model.model_fields.items() for each in _list_names(name, field)}
    return [key for key in value if key not in known]
