"""The builder: creates plain values from parser events, and records positions, limits and problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

from agentnb.errors import Place, Problem
from agentnb.sources import problems
from agentnb.sources.source import Path, Position, Source, format_path

MAX_NODES = 100_000
MAX_DEPTH = 64


class StopReadingError(Exception):
    """Reading cannot continue; the problem is already recorded."""


@dataclass(slots=True)
class _OpenContainer:
    """A mapping or list that is being read."""

    value: dict[str, Any] | list[Any]
    path: Path
    count_before: int  # nodes counted before it
    anchor: str | None
    key: str | None = None  # of a mapping: the key whose value comes next
    fate: str = "keep"  # how that value is used: keep, drop (a duplicate key), merge (from `<<`)
    merged: list[dict[str, Any]] = field(default_factory=list)


class Builder:
    """Builds plain values from keys, scalars, opens and closes; checks limits, records positions and problems."""

    def __init__(self, file: str, text: str | None = None) -> None:
        self.file, self.text = file, text
        self.top: Any = None
        self.stack: list[_OpenContainer] = []
        self.values: dict[Path, Position] = {}
        self.keys: dict[Path, Position] = {}
        self.texts: dict[Path, str] = {}
        self.odd_keys: dict[Path, str] = {}
        self.blocks: dict[Path, Position] = {}
        self.problems: list[Problem] = []
        self.count = 0
        self.anchors: dict[str, tuple[Any, int]] = {}

    def source(self) -> Source:
        """Return the source that was built."""
        tables = (self.values, self.keys, self.texts, self.odd_keys, self.blocks)
        return Source(self.top, self.file, self.text, *tables, tuple(self.problems))

    def locate(self, position: Position) -> Place:
        """Return the place of the next value."""
        return Place(self.file, *position, format_path(self.path))

    def stop(self, problem: Problem) -> NoReturn:
        """Record a problem after which reading cannot continue; what was read so far is dropped."""
        self.problems.append(problem)
        raise StopReadingError

    @property
    def path(self) -> Path:
        """The path of the next value."""
        if not self.stack:
            return ()
        inner = self.stack[-1]
        if isinstance(inner.value, list):
            return (*inner.path, len(inner.value))
        return inner.path if inner.key is None else (*inner.path, inner.key)

    @property
    def wants_key(self) -> bool:
        """Whether a mapping's key comes next."""
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None

    def key(self, text: str, position: Position, *, odd: bool = False, merge: bool = False) -> None:
        """Add a mapping's next key; `odd`: YAML does not read it as a string."""
        self.grow(1, position)
        inner = self.stack[-1]
        inner.key, inner.fate = text, "merge" if merge else "keep"
        if merge:
            return
        path = self.path
        if path in self.keys:
            self.problems.append(problems.make_duplicate_key_problem(text, self.locate(position), self.keys[path]))
            # The duplicate's value is checked for problems, under a separate path, and dropped.
            inner.key, inner.fate = f"{text} (again)", "drop"
        elif odd:
            self.odd_keys[path] = text
        self.keys.setdefault(self.path, position)

    def scalar(
        self,
        value: Any,
        position: Position,
        written: str | None = None,
        anchor: str | None = None,
        block: Position | None = None,
    ) -> None:
        """Add a value; `written`: its YAML text; `block`: the position of its first line in a block."""
        self.grow(1, position)
        if block is not None:
            self.blocks.setdefault(self.path, block)
        if written is not None and not isinstance(value, str):
            self.texts.setdefault(self.path, written)
        if anchor:
            self.anchors[anchor] = (value, 1)
        self._put(value, position)

    def open(self, value: dict[str, Any] | list[Any], position: Position, anchor: str | None = None) -> None:
        """Begin a mapping or a list."""
        if self.wants_key:
            self.stop(problems.make_key_type_problem(self.locate(position)))
        if len(self.stack) >= MAX_DEPTH:
            self.stop(problems.make_depth_problem(Place(self.file, *position), MAX_DEPTH))
        count_before, path = self.count, self.path
        self.grow(1, position)
        self.values.setdefault(path, position)
        self.stack.append(_OpenContainer(value, path, count_before, anchor))

    def close(self) -> None:
        """End the innermost mapping or list."""
        done = self.stack.pop()
        if isinstance(done.value, dict):
            for brought in done.merged:
                for key, value in brought.items():
                    done.value.setdefault(key, value)
        if done.anchor:
            self.anchors[done.anchor] = (done.value, self.count - done.count_before)
        self._put(done.value, None)

    def alias(self, name: str, position: Position) -> None:
        """Add the value of an anchor again, counted as if it were written out."""
        if any(inner.anchor == name for inner in self.stack):
            self.stop(problems.make_cycle_problem(name, self.locate(position)))
        if name not in self.anchors:
            self.problems.append(problems.make_alias_problem(name, self.locate(position), self.anchors))
        value, size = self.anchors.get(name, (None, 1))
        if not self.wants_key:
            self.grow(size, position)
            self._put(value, position)
        elif isinstance(value, str):
            self.key(value, position)
        else:
            self.stop(problems.make_key_type_problem(self.locate(position)))

    def grow(self, size: int, position: Position) -> None:
        """Count new nodes against the limit."""
        self.count += size
        if self.count > MAX_NODES:
            self.stop(problems.make_count_problem(self.locate(position), MAX_NODES))

    def _put(self, value: Any, position: Position | None) -> None:
        if position is not None:
            self.values.setdefault(self.path, position)
        if not self.stack:
            self.top = value
            return
        inner = self.stack[-1]
        if isinstance(inner.value, list):
            inner.value.append(value)
            return
        if inner.fate == "merge":
            self._merge(inner, value, position)
        elif inner.fate == "keep" and inner.key is not None:
            inner.value[inner.key] = value
        inner.key = None

    def _merge(self, inner: _OpenContainer, value: Any, position: Position | None) -> None:
        parts = value if isinstance(value, list) else [value]
        if all(isinstance(part, dict) for part in parts):
            inner.merged += parts
        else:
            self.problems.append(
                problems.make_merge_problem(self.locate(position or self.values.get(self.path, (0, 0))))
            )
