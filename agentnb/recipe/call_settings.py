"""Settings of calls: what a recipe specifies about its tools and its model, besides the arguments of each call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.recipe.model import NOTHING, to_plain

if TYPE_CHECKING:
    from agentnb.recipe.model import Recipe

RECORDED: Final = "call_settings"  # in the `meta` of a recipe that was rebuilt from a record, without its tools
_LARGEST: Final = 2**53  # integers up to here are the same in every JSON reader


def get_call_settings(recipe: Recipe) -> Mapping[str, Any]:
    """Return the settings in JSON form: `tools` by name, and `model`, the model used if a session passes none.

    Settings that the recipe does not specify are left out, and so are parts without any settings. Not masked.
    """
    if RECORDED in recipe.meta:
        recorded: Mapping[str, Any] = recipe.meta[RECORDED]
        return recorded
    settings: dict[str, Any] = {}
    if recipe.tools:
        settings["tools"] = {
            name: _describe({word: getattr(tool, word) for word in ("kind", "impl", "mode", "config", "timeout")})
            for name, tool in recipe.tools.items()
        }
    if recipe.meta.get("provider") is not None:
        names = ("provider", "settings", "temperature")  # and its position in the text
        settings["model"] = _describe(dict(zip(names, recipe.meta["provider"], strict=False)))
    return settings


def select_settings(settings: Mapping[str, Any], kind: str, name: str) -> Any:
    """Return the settings that apply to a call of a kind (`tool`, `llm`, ...); empty if the recipe has none for it."""
    match kind:
        case "tool":
            return settings.get("tools", NOTHING).get(name, NOTHING)
        case "llm":
            return settings.get("model", NOTHING)
    return NOTHING


def _describe(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(key): _describe(item) for key, item in value.items() if item is not None}
        case list() | tuple():
            return [_describe(item) for item in value]
        case int() if -_LARGEST <= value <= _LARGEST:
            return value
    return to_plain(value)


__all__ = ["RECORDED", "get_call_settings", "select_settings"]
