"""mistakes: what pydantic found wrong in a recipe, as Problems with the place and the user's own words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError

from agentnb.dialects.coreason.schema import BESIDE_STEPS, NODE_TYPES, RecipeDefinition, written_out
from agentnb.errors import Place, Problem, did_you_mean
from agentnb.sources import Path, Source, path_of
from agentnb.sources.faults import unquoted_key, unquoted_value

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

_QUOTED = re.compile(r"'([^']*)'")


class Written:
    """A recipe's content with its topology written out in full; places are those of the source as it is."""

    def __init__(self, source: Source, content: Mapping[str, Any]) -> None:
        self.source = source
        topology = content.get("topology")
        self.content = {**content, "topology": written_out(topology)} if "topology" in content else dict(content)
        self.steps: Path | None = None
        if self.content.get("topology") is not topology:
            self.steps = ("topology",) if isinstance(topology, list) else ("topology", "steps")

    def real(self, path: Path) -> Path:
        """Return where a part of the topology stands in the source."""
        if self.steps is None or path[:1] != ("topology",) or len(path) == 1:
            return path
        match path[1:]:
            case ("nodes", *rest):
                return (*self.steps, *rest)
            case ("edges", int() as number, *_):
                return (*self.steps, number)
            case (str() as key,) if key.endswith(BESIDE_STEPS):
                return ("topology", key.removesuffix(BESIDE_STEPS))
        return ("topology",)

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Return the place of a part, given by its path in the written-out content."""
        return self.source.place(self.real(path), key=key)

    def at(self, path: Path) -> Any:
        """Return what stands at a path of the written-out content; None where nothing does."""
        value: Any = self.content
        for key in path:
            value = _part(value, key)
        return value

    def items(self, key: str) -> list[tuple[int, dict[str, Any]]]:
        """Return the mappings in a list of the topology, with their numbers; whatever else is there is left out."""
        found = self.at(("topology", key))
        return [(n, item) for n, item in enumerate(found) if isinstance(item, dict)] if isinstance(found, list) else []


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
    """Yield one Problem for each thing that pydantic found, all at once."""
    faults = [(fault, _path(fault["loc"], written)) for fault in error.errors(include_url=False)]
    strange = {path for fault, path in faults if fault["type"] == "extra_forbidden"}
    for fault, path in faults:
        match fault["type"]:
            case "missing":
                yield _missing(path, [other[-1] for other in strange if other[:-1] == path[:-1]], written)
            case "union_tag_not_found":
                yield _missing((*path, "type"), [], written)
            case "extra_forbidden":
                yield _unknown(path, written)
            case "union_tag_invalid":
                yield _not_one_of((*path, "type"), fault["ctx"]["expected_tags"], written)
            case "literal_error" | "enum":
                yield _not_one_of(path, fault["ctx"]["expected"], written)
            case "string_type":
                yield _not_text(path, written)
            case _:
                yield _wrong(path, fault["msg"], written)


def _path(loc: tuple[int | str, ...], written: Written) -> Path:
    """Return the path in the content that pydantic's location means: without the names of union members."""
    path: list[int | str] = []
    value: Any = written.content
    for number, key in enumerate(loc):
        inside = key in value if isinstance(value, Mapping) else isinstance(value, list) and isinstance(key, int)
        if inside or (number == len(loc) - 1 and isinstance(value, Mapping)):
            path.append(key)
            value = _part(value, key)
    return tuple(path)


def _missing(path: Path, strange: Iterable[Any], written: Written) -> Problem:
    """R113: a key that is needed is missing."""
    *around, key = path
    model = _model(tuple(around), written)
    needed = [name for name, field in _fields(model).items() if field.is_required()] if model else [str(key)]
    found = written.at(tuple(around))
    why = f"needed here are: {', '.join(needed)}; given are: {', '.join(map(str, found)) or 'none'}"
    if key == "topology" and "workflow" in found:
        why += "; a file with 'workflow' describes one agent (ManifestV2), not a recipe"
    if key == "type" and not needed.count("type"):
        why = f"a node says by 'type' what it is: {', '.join(NODE_TYPES)}"
    near = get_close_matches(str(key), map(str, strange), n=1)
    order = f"write {key!r} where it says {near[0]!r}" if near else f"add {key!r}"
    place = written.place(tuple(around), key=True)
    return Problem("R113", f"key {key!r} is missing", str(place), why, order)


def _unknown(path: Path, written: Written) -> Problem:
    """R112: a key that is not known there."""
    key = str(path[-1]).removesuffix(BESIDE_STEPS)
    place = str(written.place(path, key=True))
    if str(path[-1]).endswith(BESIDE_STEPS):
        return Problem("R112", f"unknown key {key!r}", place, "beside 'steps' no other key may stand",
                       "remove it, or write the topology with nodes, edges and entry_point")  # fmt: skip
    model = _model(path[:-1], written)
    known = list(_fields(model)) if model else []
    return Problem("R112", f"unknown key {key!r}", place, f"the keys here are: {', '.join(known)}",
                   did_you_mean(key, known, f"remove {key!r}"))  # fmt: skip


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


def _wrong(path: Path, message: str, written: Written) -> Problem:
    """R114: a value is not what is needed there."""
    what = f"{_name(path)!r} is {_short(written.at(path))}" if path else f"the recipe is {_short(written.content)}"
    rule = message[:1].lower() + message[1:]
    return Problem("R114", what, str(written.place(path)), f"the rule is: {rule}", "write a value that keeps the rule")


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


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return a model's fields by the names that a file uses."""
    return {field.serialization_alias or name: field for name, field in model.model_fields.items()}


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _model(path: Path, written: Written) -> type[BaseModel] | None:
    """Return the class that describes what stands at a path; None where anything may stand."""
    models: list[type[BaseModel]] = [RecipeDefinition]
    value: Any = written.content
    for key in (*path, None):
        if len(models) > 1 and isinstance(value, Mapping):
            models = _one_of(models, value)
        if key is None or not models:
            break
        value = _part(value, key)
        if isinstance(key, str):
            field = _fields(models[0]).get(key) or models[0].model_fields.get(key)
            models = _models(field.annotation) if field else []
    return models[0] if models else None


def _one_of(models: list[type[BaseModel]], value: Mapping[str, Any]) -> list[type[BaseModel]]:
    """Return the class that a mapping is meant to be: by its type, else the one that says most."""
    if all("type" in model.model_fields for model in models):
        return [model for model in models if model.model_fields["type"].default == value.get("type")]
    return models[-1:]
