"""The initial state of an agentruntime run: the initial values, the shape's keys, the declared inputs."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentnb.kinds.directives import merged

if TYPE_CHECKING:
    from agentnb.dialects.agentruntime.parts.memory import Memory
    from agentnb.dialects.agentruntime.schema import StateConfig


@dataclass(frozen=True, slots=True)
class Beginning:
    """Creates the first board: `state.init`, every other key of the shape as None, then the declared inputs.

    An input is merged into an existing value (lists are concatenated, mappings merged key by key, None changes
    nothing), or replaces it if the reducer is `replace`. Undeclared inputs never enter the board. With a memory, the
    messages of earlier runs are at the front of the messages.
    """

    state: StateConfig
    inputs: tuple[str, ...]
    memory: Memory | None = None

    def __call__(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the board for these inputs."""
        board = dict.fromkeys([*self.state.init, *self.state.shape]) | deepcopy(dict(self.state.init))
        for name in self.inputs:
            if name in given:
                board[name] = given[name] if self.state.reducer == "replace" else merged(board.get(name), given[name])
        return board if self.memory is None else self.memory.recall(given, board)
