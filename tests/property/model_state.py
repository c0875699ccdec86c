"""Where a modelled run stands, as plain dicts and lists that are copied whole for every step."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from agentnb import ABSENT
from tests.property import naive_paths
from tests.property.node_programs import MISSING

Turn = Literal["start", "resume", "fail"]
GONE = ("this key was deleted here",)  # in a child scope: its parent's value does not shine through


class Entry(NamedTuple):
    """A place in the queue: a node's turn in a frame."""

    node: str
    frame: int
    turn: Turn = "start"


@dataclass
class Scope:
    name: str
    parent: int | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass
class Frame:
    id: int
    parent: int | None
    owner: str | None
    region: str
    policy: str
    branch: int | None
    scope: int
    depth: int
    iteration: int = 1


class Row(NamedTuple):
    """What a step was: the node, its phase and its status."""

    node: str
    phase: str
    status: str


@dataclass
class State:
    """The whole of a run after one step, the acts of people there included."""

    scopes: dict[int, Scope]
    frames: dict[int, Frame]
    queue: list[Entry]
    row: Row | None = None
    used: int = 0
    opened: int = 0
    failed: Entry | None = None
    late: bool = False
    done: list[tuple[Any, ...]] = field(default_factory=list)

    def copy(self) -> State:
        return copy.deepcopy(self)

    # -- scopes ------------------------------------------------------------------------------------------------------

    def seen(self, scope: int) -> dict[str, Any]:
        """Return what a scope shows: its parent's keys, then its own."""
        scope_data = self.scopes[scope]
        if scope_data.parent is None:
            return dict(scope_data.data)
        keys = self.seen(scope_data.parent)
        for key, value in scope_data.data.items():
            if value is GONE or value == GONE:
                keys.pop(key, None)
            else:
                keys[key] = value
        return keys

    def write(self, scope: int, path: tuple[Any, ...], value: Any) -> None:
        if any(self.scopes[frame.scope].parent == scope for frame in self.frames.values() if frame.scope != scope):
            raise naive_paths.RefusedError("a child scope of it is open")
        scope_data, key = self.scopes[scope], path[0]
        before = self.seen(scope).get(key, ABSENT)
        if value is ABSENT and naive_paths.look(before, path[1:]) is ABSENT:
            return
        after = naive_paths.changed(before, path[1:], value)
        if after is not ABSENT:
            scope_data.data[key] = after
        elif scope_data.parent is None:
            scope_data.data.pop(key, None)
        else:
            scope_data.data[key] = GONE

    # -- frames ------------------------------------------------------------------------------------------------------

    def within(self, frame: int, other: int) -> bool:
        """Say whether a frame is another one, or stands inside it."""
        current: int | None = frame
        while current is not None and current != other:
            current = self.frames[current].parent
        return current is not None

    def inside(self, node: str, frame: int) -> list[Frame]:
        """Return the frames that a composite node has opened, in the order of its branches."""
        return [other for other in self.frames.values() if other.owner == node and other.parent == frame]

    def close(self, tops: list[Frame]) -> None:
        closed = [number for number in self.frames if any(self.within(number, top.id) for top in tops)]
        for number in closed:
            del self.frames[number]

    def lane(self, frame: int) -> int:
        """Return the frame that moves on its own: the root, or the branch of a parallel section around a frame."""
        current = self.frames[frame]
        while current.parent is not None and current.branch is None:
            current = self.frames[current.parent]
        return current.id

    # -- what is asked -----------------------------------------------------------------------------------------------

    @property
    def head(self) -> Entry | None:
        return self.queue[0] if self.queue else None

    @property
    def here(self) -> int:
        """The scope where the run stands."""
        return self.frames[self.queue[0].frame].scope if self.queue else 0

    @property
    def board(self) -> dict[str, Any]:
        return self.seen(self.here)


class Sight:
    """The board as a node sees it in one step: its own writes first, else its own copies."""

    def __init__(self, state: State, scope: int) -> None:
        self.state, self.scope = state, scope
        self.before = copy.deepcopy(state.seen(scope))
        self.copies: dict[str, Any] = {}
        self.own: list[tuple[tuple[Any, ...], Any]] = []

    def write(self, path: Any, value: Any) -> None:
        self.own.append((path, value))

    def get(self, text: str, default: Any = MISSING) -> Any:
        value = self._found(text)
        return default if value is ABSENT else value

    def _found(self, text: str) -> Any:
        board = copy.deepcopy(self.before)
        for path, value in self.own:
            after = naive_paths.changed(board.get(path[0], ABSENT), path[1:], value)
            if after is ABSENT:
                board.pop(path[0], None)
            else:
                board[path[0]] = after
        path = naive_paths.meaning(text, board)
        if any(path[0] == own_path[0] for own_path, _ in self.own):
            return naive_paths.look(board.get(path[0], ABSENT), path[1:])
        return self.arg(path)

    def arg(self, path: tuple[Any, ...]) -> Any:
        """Return what stands at a path of this step's own copy."""
        if path[0] not in self.before:
            return ABSENT
        if path[0] not in self.copies:
            self.copies[path[0]] = copy.deepcopy(self.before[path[0]])
        return naive_paths.look(self.copies[path[0]], path[1:])

    def settle(self, writes: dict[str, Any], places: list[tuple[Any, Any]]) -> None:
        """Do what the node wrote, in order; then what it changed in place and did not write itself."""
        self.own += places
        own_keys = {path[0] for path, _ in self.own} | set(writes)
        changes = copy.deepcopy({key: value for key, value in self.copies.items() if key not in own_keys})
        for path, value in self.own:
            self.state.write(self.scope, path, value)
        for key, value in writes.items():
            self.state.write(self.scope, (key,), value)
        for key, value in changes.items():
            if repr(value) != repr(self.before[key]):
                self.state.write(self.scope, (key,), value)
