"""The context of a node's templates and rules: the keys of its board, and inputs, result and node around them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from agentnb.board.values import ABSENT
from agentnb.engine.core.work import NodeBoard, Work
from agentnb.expressions.paths import Path
from agentnb.recipe.model import Condition, Node
from agentnb.text import safe_repr
from agentnb.world.llm.env import Environment

# These take precedence over keys of the board of the same name, which are read as `state.NAME`. In templates this
# does not apply to `node`, which is the node that runs only if the board has no such key.
AROUND = ("state", "inputs", "result", "output", "node", "env")
NO_NODE = Node("", "")
ODD = "odd: "  # prefix of a thought that is a warning


_ENV = Environment()  # for use without a session


class Context(Mapping[str, Any]):
    """The keys of a board and, above them, `state` (the board itself), `inputs`, `result`, `output`, `node` and `env`.

    `output` is another name for `result`: the node's result. `inputs` are evaluated when they are used. Without a node,
    `node` is a key of the board.
    """

    def __init__(
        self,
        state: Mapping[str, Any],
        inputs: Callable[[], Mapping[str, Any]],
        result: Any,
        node: Node | None,
        environment: Environment = _ENV,
    ) -> None:
        self._state, self._inputs, self._result, self._node = state, inputs, result, node
        self._environment = environment

    def __getitem__(self, key: str) -> Any:
        match key:
            case "state":
                return self._state
            case "inputs":
                return self._inputs()
            case "result" | "output":
                return self._result
            case "env":
                return self._environment
            case "node" if self._node is not None:
                return {"id": get_own_id(self._node), "type": self._node.kind}
            case "node":
                return self._state[key]
        if not self._is_of_state(key):
            raise KeyError(key)
        return self._state[key]

    def __iter__(self) -> Iterator[str]:
        yield from AROUND
        yield from filter(self._is_of_state, self._state)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        return key in AROUND or (self._is_of_state(key) and key in self._state)

    @staticmethod
    def _is_of_state(key: object) -> bool:
        """Return True if a key belongs to the state; a path that begins with one of the reserved words does not."""
        return str(key).partition(".")[0] not in AROUND


def get_own_id(node: Node) -> str:
    """Return a node's id in the graph where it was written; recipes of several graphs may add a prefix."""
    return str(node.params.get("own_id", node.id))


def make_context(work: Work, result: Any = None) -> Context:
    """Return the context of a node's templates; `result` is the node's result, if it has one."""
    return _make_context(work, result, work.node if work.scope.get("node") is ABSENT else None)


def _make_context(work: Work, result: Any, node: Node | None) -> Context:
    return Context(work.board, lambda: work.inputs, result, node, work.run.world.environment)


class ContextCondition:
    """A condition that uses more than the board: inputs, the node and its result.

    Called with a board that belongs to no node, it sees only the board.
    """

    def __init__(self, condition: Any) -> None:
        self.condition, self.text = condition, condition.text
        self.source, self.place = condition.source, condition.place
        self.reads: tuple[Path, ...] = list_board_reads(condition.reads)

    def __call__(self, board: Mapping[str, Any], /) -> Any:
        """Return the condition's value."""
        return self.condition(self.context(board))

    def __repr__(self) -> str:
        return f"<ContextCondition {safe_repr(self.text, 200)}>"

    @property
    def warning(self) -> str:
        """What was odd about the last evaluation."""
        return str(self.condition.warning)

    def context(self, board: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the context in which the condition is evaluated for this board."""
        if isinstance(board, NodeBoard):
            return _make_context(board.work, board.work.result, board.work.node)
        return Context(board, dict, None, NO_NODE)

    def explain(self, context: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return (text, value) of what it reads in a context and, last, of the whole."""
        rows: list[tuple[str, Any]] = self.condition.explain(context)
        return rows

    def with_strictness(self, strict: bool) -> ContextCondition:
        """Return this condition with another strictness about missing values."""
        other = self.condition.with_strictness(strict)
        return self if other is self.condition else ContextCondition(other)


Text = Callable[[Mapping[str, Any]], str]


def compile_text(written: Any, strict: bool) -> Text:
    """Return the function that renders a text of a recipe for a board; a plain text is returned as it is."""
    template = make_strict(written, strict)
    if not hasattr(template, "render"):
        plain = "" if written is None else str(written)
        return lambda _board: plain
    return lambda board: str(template.render(board))


def make_strict(condition: Condition | None, strict: bool) -> Any:
    """Return a condition, or another compiled value, with another strictness, if it supports one."""
    change = getattr(condition, "with_strictness", None)
    return condition if change is None else change(strict)


def find_oddity(*parts: Any) -> str | None:
    """Return what was odd about the last evaluation of templates and conditions, for a step's thought."""
    warnings = [warning for part in parts if (warning := getattr(part, "warning", ""))]
    return f"{ODD}{'; '.join(dict.fromkeys(warnings))}" if warnings else None


def list_board_reads(paths: tuple[Path, ...], keys: Container[str] = ()) -> tuple[Path, ...]:
    """Return the paths of the board that paths of a context read: `state.a` and `a` are both `a`.

    In a template, `node` is a key of the board if it is one of the `keys`.
    """
    around = [name for name in AROUND[1:] if name != "node" or name not in keys]
    reads = [path[1:] if path[0] == "state" else path for path in paths if path and path[0] not in around]
    return tuple(dict.fromkeys(path for path in reads if path))
