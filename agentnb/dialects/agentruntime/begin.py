"""begin: the state that an agentruntime run begins with: the first values, the shape's keys, the declared inputs."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentnb.kinds.directives import merged

if TYPE_CHECKING:
    from agentnb.dialects.agentruntime.memory import Memory
    from agentnb.dialects.agentruntime.schema import StateConfig


@dataclass(frozen=True, slots=True)
class Beginning:
    """Makes the first board: `state.init`, every other key of the shape as None, then the inputs that are declared.

    An input is merged into what stands there (lists one behind the other, mappings key by key, None changes nothing),
    or takes its place where the reducer is `replace`. An input that is not declared never comes onto the board. With a
    memory, what was said in earlier runs stands at the front of the messages.
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
