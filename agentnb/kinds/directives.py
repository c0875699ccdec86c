"""Directives: what a node writes to the board from its result: set, merge, append to the history, delete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentnb.board.paths import Path
from agentnb.board.values import ABSENT, thaw
from agentnb.engine.core.work import Append, Work
from agentnb.expressions.paths import resolve_path
from agentnb.kinds.context import make_context, make_strict
from agentnb.recipe.model import Node

Places = list[tuple[Path, Any]]
HISTORY = "history"


class Directives:
    """Computes a node's writes from its result, by `params["map"]`; none without it.

    `map` holds compiled structures: `set` (path -> value), `merge` (path -> what is merged into the value there),
    `history` (name -> what is appended to the list `history.NAME`), `delete` (a list of paths). All of them are
    rendered before the first one writes, so none sees another's result; then they are applied in this order.
    """

    def __init__(self, node: Node, world: Any) -> None:
        spec: Mapping[str, Any] = node.params.get("map") or {}
        self.parts = {word: make_strict(part, world.strict) for word, part in spec.items()}

    def __call__(self, work: Work, result: Any) -> Places:
        """Return the writes: (path, value)."""
        if not self.parts:
            return []
        context = make_context(work, result)
        return list(_iter_places(work, {word: part.render(context) for word, part in self.parts.items()}))

    @property
    def warning(self) -> str:
        """What was odd about the last rendering."""
        return "; ".join(part.warning for part in self.parts.values() if part.warning)


def _iter_places(work: Work, rendered: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    seen = work.scope.visible_items()
    fresh: dict[Path, Any] = {}
    for text, value in rendered.get("set", {}).items():
        path = resolve_path(str(text), seen)
        fresh[path] = value
        yield path, value
    for text, value in rendered.get("merge", {}).items():
        path = resolve_path(str(text), seen)
        before = fresh[path] if path in fresh else work.scope.get_at(path)
        fresh[path] = merge(thaw(before), value)
        yield path, fresh[path]
    for text, value in rendered.get(HISTORY, {}).items():
        for item in value if isinstance(value, list | tuple) else [value]:
            yield (HISTORY, *resolve_path(str(text), {})), Append(item)
    for text in rendered.get("delete", ()):
        path = resolve_path(str(text), seen)
        if path in fresh or work.scope.get_at(path) is not ABSENT:
            yield path, ABSENT


def merge(base: Any, new: Any) -> Any:
    """Return two values merged: mappings key by key, lists concatenated, otherwise the new one; None is empty."""
    if base is ABSENT or base is None:
        return new
    if new is None:
        return base
    if isinstance(base, Mapping) and isinstance(new, Mapping):
        return {**base, **{key: merge(base.get(key), value) for key, value in new.items()}}
    if isinstance(base, list | tuple) and isinstance(new, list | tuple):
        return [*base, *new]
    return new
