"""context: the names that a node's templates and rules know: its board, and around it inputs, result and node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentnb.engine.work import NodeBoard, Work
from agentnb.expressions.paths import Path
from agentnb.recipe.model import Condition, Node
from agentnb.world.llm.env import with_env

# What stands over keys of the board of the same name; those are reached as `state.NAME`.
_AROUND = ("state", "inputs", "result", "output", "node", "env")
NOBODY = Node("", "")
ODD = "odd: "  # how a thought begins that warns


class _Environment(Mapping[str, str]):
    """The environment's variables by name; one that is looked up is hidden from then on, and must be set."""

    def __getitem__(self, name: str) -> str:
        return str(with_env(f"{{{{env.{name}}}}}", f"env.{name}"))

    def __iter__(self) -> Iterator[str]:
        return iter(())  # they are never listed

    def __len__(self) -> int:
        return 0


_ENV = _Environment()


class Context(Mapping[str, Any]):
    """The keys of a board, and over them `state` (the board itself), `inputs`, `result`, `output`, `node` and `env`.

    `output` is another word for `result`: what the node came to. `inputs` are asked for when they are used.
    """

    def __init__(
        self, state: Mapping[str, Any], inputs: Callable[[], Mapping[str, Any]], result: Any, node: Node
    ) -> None:
        self._state, self._inputs, self._result, self._node = state, inputs, result, node

    def __getitem__(self, key: str) -> Any:
        match key:
            case "state":
                return self._state
            case "inputs":
                return self._inputs()
            case "result" | "output":
                return self._result
            case "env":
                return _ENV
            case "node":
                return {"id": own_id(self._node), "type": self._node.kind}
        if not self._is_of_state(key):
            raise KeyError(key)
        return self._state[key]

    def __iter__(self) -> Iterator[str]:
        yield from _AROUND
        yield from (key for key in self._state if key not in _AROUND)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        return key in _AROUND or (self._is_of_state(key) and key in self._state)

    @staticmethod
    def _is_of_state(key: object) -> bool:
        """Say whether a key is the state's: a path that begins with one of the words above is none, and not asked."""
        return str(key).partition(".")[0] not in _AROUND


def own_id(node: Node) -> str:
    """Return what a node is called in the graph that it was written in; a recipe of several graphs may add to that."""
    return str(node.params.get("own_id", node.id))


def context_of(work: Work, result: Any = None) -> Context:
    """Return the names for a node's templates; `result` is what it came to, where it has."""
    return Context(work.board, lambda: work.given, result, work.node)


class InContext:
    """A condition that asks for more than the board: for inputs, the node and its result.

    Asked with a board that no node was given, it knows the board alone.
    """

    def __init__(self, condition: Any) -> None:
        self.condition, self.text = condition, condition.text
        self.source, self.place = condition.source, condition.place
        self.reads: tuple[Path, ...] = board_reads(condition.reads)

    def __call__(self, board: Mapping[str, Any], /) -> Any:
        """Return the condition's value."""
        return self.condition(self.context(board))

    def __repr__(self) -> str:
        return f"<InContext {self.text!r}>"

    @property
    def warning(self) -> str:
        """What was odd about the last answer."""
        return str(self.condition.warning)

    def context(self, board: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the names that the condition knows when it is asked with this board."""
        if isinstance(board, NodeBoard):
            return context_of(board.work, board.work.result)
        return Context(board, dict, None, NOBODY)

    def explain(self, context: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return (text, value) of what it reads in a context and, last, of the whole."""
        rows: list[tuple[str, Any]] = self.condition.explain(context)
        return rows

    def strictly(self, strict: bool) -> InContext:
        """Return this condition with another strictness about what is missing."""
        other = self.condition.strictly(strict)
        return self if other is self.condition else InContext(other)


def strictly(condition: Condition | None, strict: bool) -> Any:
    """Return a condition, or what else is compiled, with another strictness, where it knows one."""
    change = getattr(condition, "strictly", None)
    return condition if change is None else change(strict)


def odd(*parts: Any) -> str | None:
    """Return what was odd the last time that templates and conditions were worked out, for a step's thought."""
    found = [warning for part in parts if (warning := getattr(part, "warning", ""))]
    return f"{ODD}{'; '.join(dict.fromkeys(found))}" if found else None


def board_reads(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return which paths of the board are read by paths of a context: `state.a` and `a` are both `a`."""
    found = [path[1:] if path[0] == "state" else path for path in paths if path and path[0] not in _AROUND[1:]]
    return tuple(dict.fromkeys(path for path in found if path))
