"""Burr's State as a view of the board, which records what an action reads, sets and deletes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT, ATOMS
from agentnb.dialects.burr.parts import package as burr

if TYPE_CHECKING:
    from agentnb.engine.core.work import Work


@dataclass(slots=True)
class ReadRecording:
    """Whether reads are recorded: shared by a State and all states derived from it."""

    is_on: bool = True


class Values(MutableMapping[str, Any]):
    """The values of a State: those on the board, those that Burr adds (`hidden`), and the changes so far.

    Reads are recorded until `end`, because Burr's own reads after an action are not reads of the action.
    """

    __slots__ = ("_hidden", "_recording", "_work", "changes")

    def __init__(
        self, work: Work, hidden: Mapping[str, Any], changes: dict[str, Any], recording: ReadRecording
    ) -> None:
        self._work, self._hidden, self._recording = work, hidden, recording
        self.changes = changes

    def with_changes(self) -> Values:
        """Return a copy that can be changed."""
        return Values(self._work, self._hidden, dict(self.changes), self._recording)

    def end(self) -> None:
        """Stop recording reads, here and in all copies: the action has ended."""
        self._recording.is_on = False

    def __getitem__(self, key: str) -> Any:
        if key in self.changes:
            value = self.changes[key]
        elif key in self._hidden:
            return self._hidden[key]
        else:
            if self._recording.is_on:
                self._work.reads[key] = None
            value = self._work.scope.get(key)
            if value is not ABSENT and type(value) not in ATOMS:
                value = self._work.copy(key, value)
        if value is ABSENT:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        self.changes[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self.changes[key] = ABSENT

    def __contains__(self, key: object) -> bool:
        if key in self.changes:
            return self.changes[str(key)] is not ABSENT
        if key in self._hidden:
            return True
        if self._recording.is_on and isinstance(key, str):
            self._work.reads[key] = None
        return isinstance(key, str) and self._work.scope.get(key) is not ABSENT

    def __iter__(self) -> Iterator[str]:
        keys = {**dict.fromkeys(self._work.scope.visible_items()), **self._hidden, **self.changes}
        return (key for key in keys if self.changes.get(key) is not ABSENT)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class BoardState(burr.State[Any]):
    """The State passed to an action. Setting a key neither reads nor copies the previous value."""

    def __init__(self, values: Values, typing_system: Any) -> None:
        mapping: Any = values  # a dict is not needed
        super().__init__(mapping, typing_system)
        self.values_given = values

    def apply_operation(self, operation: burr.StateDelta) -> BoardState:
        """Return a state with an operation applied; the operations are Burr's own."""
        values = self.values_given.with_changes()
        if not isinstance(operation, burr.SetFields | burr.DeleteField):
            for key in operation.reads():
                if key in values:
                    values[key] = deepcopy(values[key])
        mapping: Any = values  # a dict is not needed
        operation.validate(mapping)
        operation.apply_mutate(mapping)
        return BoardState(values, self.typing_system)


def writes_of(before: Values, new: burr.State[Any]) -> dict[str, Any]:
    """Return the writes that produce the state returned by an action; ABSENT deletes a key.

    As in Burr, keys that begin with two underscores are its own, and missing keys are deleted.
    """
    if isinstance(new, BoardState):
        changes = new.values_given.changes
    else:
        changes = {key: value for key, value in new.items() if key not in before or before[key] is not value}
        changes |= {key: ABSENT for key in before if key not in new}
    return {key: value for key, value in changes.items() if not key.startswith("__")}
