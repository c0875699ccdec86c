"""The parts of a coreason recipe that are checked and shown, but have no effect on a run.

Their fields are data, in `passive_schema.json`. A field is a type, or a type with its default: `text`, `mapping`,
`share` (0 to 1), `positive` (from 1) and so on; `a|b` is one of these words; `[T]` is a list, which is empty by default
if the table states so; `T?` may be left out; a capital letter starts the name of another part.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from importlib.resources import files
from types import GenericAlias, MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, GetPydanticSchema, create_model

from agentnb.dialects.coreason.parts.sections_schema import LenientPart, NotNegative, Positive, Share, StrictPart

_TYPES: Final[Mapping[str, Any]] = {
    "any": Any,
    "bool": bool,
    "color": Annotated[str, Field(pattern=r"^#[0-9A-Fa-f]{6}$")],
    "float": float,
    "int": int,
    "mapping": dict[str, Any],
    "not_negative": NotNegative,
    "positive": Positive,
    "share": Share,
    "text": str,
    "time": datetime,
}


def _parse_type(text: str, models: Mapping[str, type[BaseModel]]) -> Any:
    """Return the type that a string of the table names."""
    if text.endswith("?"):
        return _parse_type(text[:-1], models) | None
    if text.startswith("["):
        return GenericAlias(list, _parse_type(text[1:-1], models))
    if "|" in text:
        return Literal[tuple(int(word) if word.isdecimal() else word for word in text.split("|"))]
    return models[text] if text[0].isupper() else _TYPES[text]


def _parse_field(row: str | list[Any], models: Mapping[str, type[BaseModel]]) -> tuple[Any, Any]:
    """Return the type of a field and its default; `...` if it is required."""
    if isinstance(row, str):
        return _parse_type(row, models), None if row.endswith("?") else ...
    text, default = row
    return _parse_type(text, models), models[text](**default) if text in models else default


def _build_models() -> dict[str, type[BaseModel]]:
    """Return the model of each part in the table; a part is listed after those that it names."""
    table = json.loads(files(__package__).joinpath("passive_schema.json").read_text(encoding="utf-8"))
    models: dict[str, type[BaseModel]] = {}
    for name, part in table.items():
        fields: dict[str, Any] = {key: _parse_field(row, models) for key, row in part["fields"].items()}
        base = LenientPart if part.get("ignores_unknown_keys") else StrictPart
        models[name] = create_model(name, __base__=base, __module__=__name__, __doc__=part["about"], **fields)
    return models


MODELS: Final[Mapping[str, type[BaseModel]]] = MappingProxyType(_build_models())


def annotate_passive(name: str, *, many: bool = False) -> GetPydanticSchema:
    """Return the annotation of a field that holds a part of the table or None, or a list of such parts."""
    model: Any = MODELS[name]
    expected = GenericAlias(list, model) if many else model | None
    return GetPydanticSchema(lambda _source, handler: handler.generate_schema(expected))


__all__ = ["MODELS", "annotate_passive"]
