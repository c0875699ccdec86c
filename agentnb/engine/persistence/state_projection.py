"""State projection: the data of every scope, rebuilt from write rows alone, without a plan, a world or a run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from agentnb.board.paths import SET, Path, apply_change, get_at
from agentnb.board.scopes import DELETED
from agentnb.board.values import ABSENT, ATOMS
from agentnb.engine.core.history import AGAIN, COUNTED, Checkpoint, History, Tables
from agentnb.engine.core.run import CHECKPOINT_ROWS


class StateProjection:
    """The data of every scope after a write row, and the open frames: {id: iteration of its body}."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.data: dict[int, dict[str, Any]] = {0: {}}
        self.frames: dict[int, int] = {0: 1}
        self.counted_steps = 0

    @classmethod
    def of(cls, history: History) -> StateProjection:
        """Return the state in which a history starts: its parent's state after step `base`."""
        replica = cls(history.tables)
        if history.parent is None:
            return replica
        replica.move_to(history.parent, history.base)
        return replica

    def move_to(self, history: History, step: int) -> None:
        """Move to the state after a step of a history or its ancestors: from a checkpoint and the rows since."""
        while step < history.base and history.parent is not None:
            history = history.parent
        segments = [(history, step)]
        while (checkpoint := history.checkpoint_before(step)) is None:
            assert history.parent is not None, "a run has a checkpoint of its start"
            history, step = history.parent, history.base
            segments.append((history, step))
        self.data = {scope: dict(data) for scope, data in checkpoint.data.items()}
        self.frames, self.counted_steps = dict(checkpoint.frames), checkpoint.counted_steps
        first, writes = checkpoint.step, checkpoint.writes
        for part, end in reversed(segments):
            self.apply_steps(part, first, end, writes)
            first, writes = end, 0

    def apply_steps(self, history: History, start: int, end: int, writes: int) -> None:
        """Apply the rows of a history after step `start` up to step `end`; row `writes` is the first of them."""
        base, rare = history.base, history.rare
        for step in rare[bisect_left(rare, start) : bisect_left(rare, end + 1)]:
            row = step - base
            if row and step != start:  # for step `start`, only the interventions after it are left
                writes = self.apply(history, writes, history.write_ends[row - 1])
                self._open_frames(history, step)
            writes = self.apply(history, writes, history.write_ends[row])
            for number in history.closed_frames.get(step, ()):
                self.frames.pop(number, None)
        self.apply(history, writes, history.write_ends[end - base])
        self.counted_steps += sum(flag & COUNTED > 0 for flag in history.step_flags[start - base + 1 : end - base + 1])

    def _open_frames(self, history: History, step: int) -> None:
        row = step - history.base
        for number in history.opened_frames.get(step, ()):
            self.frames[number] = 1
            frame = self.tables.frames[number]
            if frame.policy != "shared":
                self.data[frame.scope] = {}
        if history.step_flags[row] & 3 == AGAIN:
            activation = self.tables.activations[history.step_activations[row]]
            for number in self.frames:
                if self.tables.frames[number].parent == activation.frame:  # as `Run.list_inner_frames`
                    self.frames[number] += 1

    def apply(self, history: History, start: int, end: int) -> int:
        """Apply write rows; return `end`, or `start` if that is greater."""
        codes, values = history.write_codes[start:end], history.new_values[start:end]
        last, paths = dict(zip(codes, values, strict=True)), self.tables.codes
        if all(code & 3 == SET and len(paths[code >> 2][1]) == 1 for code in last):
            for code, new in last.items():  # for writes of whole keys, only the last one counts
                self.write(code, new)
        else:
            for code, new in zip(codes, values, strict=True):
                self.write(code, new)
        return max(start, end)

    def get(self, scope: int, key: str) -> Any:
        """Return the frozen value of a key as seen from a scope; ABSENT if there is none."""
        at: int | None = scope
        while at is not None:
            data = self.data.get(at)
            if data is not None and key in data:
                return ABSENT if data[key] is DELETED else data[key]
            at = self.parent(at)
        return ABSENT

    def parent(self, scope: int) -> int | None:
        """Return the scope that reads fall through to. A scope has the number of the frame that opened it."""
        frame = self.tables.frames[scope]
        return self.tables.frames[frame.parent].scope if frame.policy == "child" else None

    def visible_items(self, scope: int) -> dict[str, Any]:
        """Return every key visible from a scope with its frozen value, outermost scope first."""
        outer = self.parent(scope)
        keys = {} if outer is None else self.visible_items(outer)
        for key, value in self.data.get(scope, {}).items():
            if value is DELETED:
                keys.pop(key, None)
            else:
                keys[key] = value
        return keys

    def write(self, code: int, new: Any) -> Any:
        """Apply one write; return the previous value of its first key in this scope."""
        scope, path = self.tables.codes[code >> 2]
        data, key, op = self.data.setdefault(scope, {}), str(path[0]), code & 3
        old = data.get(key, ABSENT)
        if op == SET and len(path) == 1:
            data[key] = new
            return old
        top = apply_change(self.get(scope, key), path[1:], op, new, path)
        if top is not ABSENT:
            data[key] = top
        elif self.parent(scope) is not None:
            data[key] = DELETED
        else:
            data.pop(key, None)
        return old

    def fill(self, history: History, documents: Sequence[Any], back: Callable[[Any, Any], Any]) -> None:
        """Fill `new_values` and `old_values` of a loaded history; this projection must be at the start of that history.

        `back(document, old)` returns a row's value, given the previous value at its path.
        """
        codes, plain, root = self.tables.codes, self.tables.plain, self.data.setdefault(0, {})
        for code, document in zip(history.write_codes, documents, strict=True):
            if code in plain and type(document) in ATOMS:  # by far the most common case
                key = plain[code]
                history.new_values.append(document)
                history.old_values.append(root.get(key, ABSENT))
                root[key] = document
                continue
            scope, path = codes[code >> 2]
            old = ABSENT
            if code & 3 == SET:
                old = self.get(scope, str(path[0]))
                old = old if len(path) == 1 else get_at(old, path[1:])
            new = back(document, old)
            history.new_values.append(new)
            history.old_values.append(self.write(code, new))

    def add_checkpoints(self, history: History) -> None:
        """Save checkpoints along a history; this projection must be at the start of that history."""
        at, writes = history.base, 0
        if history.parent is None:
            history.checkpoints.append(Checkpoint(at, 0, 0, {0: {}}, ()))
        due = at + CHECKPOINT_ROWS
        for step in range(at + CHECKPOINT_ROWS, history.tip + 1, CHECKPOINT_ROWS):
            self.apply_steps(history, at, step, writes)
            at, writes = step, history.write_ends[step - history.base]
            if step >= due:
                scopes = {self.tables.frames[number].scope for number in self.frames}
                data = {scope: dict(self.data[scope]) for scope in scopes}
                history.checkpoints.append(
                    Checkpoint(step, writes, self.counted_steps, data, tuple(self.frames.items()))
                )
                due = step + CHECKPOINT_ROWS + sum(map(len, data.values()))


def get_previous(old: Any, path: Path) -> Any:
    """Return the previous value at a path, given that of its first key; ABSENT if there was none."""
    if old is ABSENT or old is DELETED:
        return ABSENT
    return old if len(path) == 1 else get_at(old, path[1:])


__all__ = ["StateProjection", "get_previous"]
