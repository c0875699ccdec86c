"""Pickled recipes: a recipe moves to another process of the same program.

Files from other people are never unpickled.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentnb.errors import Problem, RecipeError

if TYPE_CHECKING:
    from agentnb.recipe.model import Recipe


class _Pickler(pickle.Pickler):
    """Pickles read-only mappings, too."""

    def reducer_override(self, value: Any) -> Any:
        return (read_only, (dict(value),)) if type(value) is MappingProxyType else NotImplemented


def read_only(values: dict[Any, Any]) -> Mapping[Any, Any]:
    """Return a read-only view of a dict, for pickle, because the class of the view has no public name."""
    return MappingProxyType(values)


def to_bytes(recipe: Recipe) -> bytes:
    """Return a recipe's fields as a pickle.

    L480: a recipe cannot be pickled.

    Raises:
        RecipeError: L480, with each node, edge or option that cannot be pickled.
    """
    values = {field.name: getattr(recipe, field.name) for field in fields(recipe)}
    try:
        return _dump(values)
    except Exception as error:
        problems = [
            Problem("L480", f"{what} cannot be pickled", f"recipe {recipe.name!r}", f"{type(why).__name__}: {why}",
                    "use functions that are defined in a module, or load the recipe in the other process")
            for what, why in _iter_unpicklable(values)
        ]  # fmt: skip
        raise RecipeError(*problems) from error


def restore(data: bytes) -> Recipe:
    """Return the recipe that `to_bytes` wrote."""
    from agentnb.recipe.model import Recipe

    return Recipe(**pickle.loads(data))  # noqa: S301  (it is part of a pickle that is being loaded)


def _iter_unpicklable(values: Mapping[str, Any]) -> Iterator[tuple[str, Exception]]:
    for name, value in values.items():
        if name == "nodes":
            parts = [(f"node {id_!r}", node) for id_, node in value.items()]
        elif name == "edges":
            parts = [(f"edge {edge.source!r} -> {edge.target!r}", edge) for edge in value]
        else:
            parts = [(f"its {name!r}", value)]
        for what, part in parts:
            try:
                _dump(part)
            except Exception as error:  # noqa: BLE001  (whatever an object raises that refuses)
                yield what, error


def _dump(value: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


__all__ = ["read_only", "restore", "to_bytes"]
