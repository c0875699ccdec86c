"""breakpoints: where a run stops by itself. Each clause that is given must hold; an empty table costs a run nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from agentnb.board.scopes import Board
from agentnb.engine.history import CANCELLED, CARRIED, ERROR, STATUS, History
from agentnb.engine.people import current
from agentnb.errors import ExecutionError, Problem, did_you_mean

if TYPE_CHECKING:
    from agentnb.engine.frames import Activation
    from agentnb.engine.run import Run
    from agentnb.engine.work import Effect, Work
    from agentnb.recipe.model import Edge

Ask = Callable[[Mapping[str, Any]], Any]
Side = Literal["before", "after"]
SIDES: tuple[Side, ...] = ("before", "after")
CLAUSES = ("node", "edge", "key", "when", "error", "step", "event", "call")
ADD = "session.breakpoints.add()"


@dataclass(slots=True)
class Breakpoint:
    """A place to stop at. Every clause that is not None must hold.

    `node` is about to run (side `before`) or has just run (`after`); `edge` (source, target) was just taken; `key` was
    just written, it or something below it; `when` holds on the board; `error` a step failed; `step` is its number;
    `event` of that type was emitted; `call` is about to go out (`before`) or came back (`after`), by the effect's kind
    or name, `*` for any. `hits` counts how often it was met; it stops from the `on_hit`-th time on, and with `once` it
    goes after it has stopped the run. `failed` says why `when` could not be worked out the last time.
    """

    id: int
    node: str | None = None
    edge: tuple[str, str] | None = None
    key: str | None = None
    when: Ask | None = None
    error: bool | None = None
    step: int | None = None
    event: str | None = None
    call: str | None = None
    side: Side = "before"
    on_hit: int = 1
    once: bool = False
    text: str = ""
    enabled: bool = True
    hits: int = 0
    failed: str = ""

    def __str__(self) -> str:
        """Return what it waits for, in one line."""
        edge = None if self.edge is None else " -> ".join(self.edge)
        clauses = {"edge": edge, "key": self.key, "step": self.step, "event": self.event, "call": self.call,
                   "error": self.error, "when": self.text or None}  # fmt: skip
        told = [f"{self.side} {self.node!r}"] if self.node else []
        return ", ".join(told + [f"{name} {value}" for name, value in clauses.items() if value is not None])


@dataclass(slots=True)
class Breakpoints:
    """The breakpoints of a session. `nodes` gives the ids that there are; who comes or goes is told to `changed`.

    `edges` gives the edges that there are; left out, any two nodes may be one.
    """

    nodes: Callable[[], Mapping[str, Any]]
    changed: Callable[[], None]
    edges: Callable[[], Iterable[Edge]] | None = None
    rows: dict[int, Breakpoint] = field(default_factory=dict)
    made: int = 0

    def add(
        self,
        node: str | None = None,
        *,
        edge: tuple[str, str] | None = None,
        key: str | None = None,
        when: Any = None,
        error: bool | None = None,
        step: int | None = None,
        event: str | None = None,
        call: str | None = None,
        side: Side = "before",
        on_hit: int = 1,
        once: bool = False,
    ) -> Breakpoint:
        """Add a breakpoint and return it; `when` is a path, a condition text, JsonLogic, or a callable of the board.

        Raises:
            ExecutionError: X116, nothing to wait for; X101, X119, there is no such node or edge; X120, a wrong word.
            RecipeError: the condition is wrong.
        """
        row = self.made_of(
            {"node": node, "edge": edge, "key": key, "when": when, "error": error, "step": step, "event": event,
             "call": call, "side": side, "on_hit": on_hit, "once": once}
        )  # fmt: skip
        self._put(row)
        self.changed()
        return row

    def made_of(self, words: Mapping[str, Any]) -> Breakpoint:
        """Return the breakpoint that the words of `add` mean; it is not added.

        Raises:
            ExecutionError: X116, nothing to wait for; X101, X119, there is no such node or edge; X120, a wrong word.
            RecipeError: the condition is wrong.
        """
        clauses = {name: words.get(name) for name in CLAUSES}
        if all(value is None for value in clauses.values()):
            raise ExecutionError(
                Problem("X116", "this breakpoint has nothing to wait for", ADD,
                        "every clause is left out", f"give one of: {', '.join(clauses)}")
            )  # fmt: skip
        given = {"side": "before", "on_hit": 1, "once": False, **words, **clauses}
        problems = [*self._unknown(clauses["node"], clauses["edge"]), *_wrong_words(given["side"], given["on_hit"])]
        if problems:
            raise ExecutionError(*problems)
        from agentnb.expressions.questions import as_question

        when, edge = clauses["when"], clauses["edge"]
        asked = None if when is None else as_question(when)
        text = "" if asked is None else getattr(asked, "text", "") or "a function of the board"
        given |= {"when": asked, "text": text, "edge": None if edge is None else (edge[0], edge[1])}
        return Breakpoint(0, **given)

    def _put(self, row: Breakpoint) -> None:
        """Take a breakpoint in, under the next number."""
        self.made += 1
        row.id = self.made
        self.rows[row.id] = row

    def _unknown(self, node: Any, edge: Any) -> Iterator[Problem]:
        """Yield what is wrong with a node and an edge: they are not there, or an edge is none."""
        pair = isinstance(edge, tuple | list) and len(edge) == 2 and all(isinstance(name, str) for name in edge)
        if edge is not None and not pair:
            parts = [part.strip() for part in edge.split("->")] if isinstance(edge, str) else []
            form = (parts[0], parts[1]) if len(parts) == 2 else ("SOURCE", "TARGET")
            yield Problem("X120", f"{edge!r} is no edge", ADD, "an edge is a pair: the node that it leaves, and the "
                          "node that it leads to", f"write edge={form!r}")  # fmt: skip
        names = self.nodes()
        asked = [name for name in (node, *(edge if pair else ())) if name is not None]
        unknown = [name for name in asked if not isinstance(name, str) or name not in names]
        for name in unknown:
            yield Problem("X101", f"there is no node {name!r}", ADD, f"the recipe's nodes are: {', '.join(names)}",
                          did_you_mean(name, names, "name one of them"))  # fmt: skip
        if pair and self.edges is not None and not any(name in unknown for name in edge):
            yield from _no_edge(tuple(edge), {(one.source, one.target) for one in self.edges()})

    def remove(self, which: Breakpoint | int | str) -> None:
        """Remove a breakpoint, by itself, its id, or all those of a node.

        Raises:
            ExecutionError: X109, there is no such breakpoint.
        """
        gone = [row for row in self if which is row or which in (row.id, row.node)]
        if not gone:
            raise ExecutionError(
                Problem("X109", f"there is no breakpoint {which!r}", "session.breakpoints",
                        f"there are: {', '.join(f'{row.id} ({row})' for row in self) or 'none'}",
                        "name one of them by its id or its node")
            )  # fmt: skip
        for row in gone:
            del self.rows[row.id]
        self.changed()

    def clear(self) -> None:
        """Remove all of them."""
        self.rows.clear()
        self.changed()

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(list(self.rows.values()))

    def __len__(self) -> int:
        return len(self.rows)

    def after_step(self, run: Run, act: Activation | None, board: Mapping[str, Any]) -> Breakpoint | None:
        """Return the breakpoint that is met where the run stands, after the step of `act` (None: before any)."""
        for row in self.rows.values():
            done = None if act is None else act.node.id
            if row.enabled and row.call is None and _met(row, run, done, board) and self._count(row):
                return row
        return None

    def met_at(self, run: Run, board: Mapping[str, Any]) -> Breakpoint | None:
        """Return a breakpoint that is met where a run has come back to; none counts a hit, for nothing runs."""
        history, number = last_step(run)
        done = run.node_of(history.s_act[number]) if number else None
        for row in self.rows.values():
            if row.enabled and row.call is None and _met(row, run, done, board):
                return row
        return None

    def before_turn(self, run: Run, act: Activation) -> Breakpoint | None:
        """Return the breakpoint that is met before a branch begins a turn, while others run beside it."""
        for row in self.rows.values():
            asked = row.enabled and row.call is None and row.side == "before" and row.node == act.node.id
            if asked and not _rare(row) and _holds(row, run, Board(act.scope)) and self._count(row):
                return row
        return None

    def at_call(self, work: Work, effect: Effect, moment: str) -> bool:
        """Say whether a call is to be held before it goes out, or after it came back."""
        for row in self:
            if row.enabled and row.call is not None and row.side == moment and row.node in (None, work.node.id):
                hit = fnmatchcase(effect.kind, row.call) or fnmatchcase(effect.name, row.call)
                if hit and self._count(row):
                    return True
        return False

    def _count(self, row: Breakpoint) -> bool:
        row.hits += 1
        if row.hits < row.on_hit:
            return False
        if row.once:
            del self.rows[row.id]
        return True


def _no_edge(edge: tuple[Any, Any], there: set[tuple[str, str]]) -> Iterator[Problem]:
    if edge in there:
        return
    source, target = edge
    leads = sorted(to for by, to in there if by == source)
    order = f"write edge={(target, source)!r}" if (target, source) in there else "name one of them"
    yield Problem("X119", f"there is no edge {source!r} -> {target!r}", ADD,
                  f"edges lead from {source!r} to: {', '.join(leads) or 'no node'}",
                  did_you_mean(str(target), leads, order))  # fmt: skip


def _wrong_words(side: Any, on_hit: Any) -> Iterator[Problem]:
    """X120: a word of a breakpoint is none of those that it may be."""
    if side not in SIDES:
        yield Problem("X120", f"there is no side {side!r} of a node", ADD, "a breakpoint stops before it or after it",
                      did_you_mean(str(side), SIDES, f"write one of: {', '.join(SIDES)}"))  # fmt: skip
    if isinstance(on_hit, bool) or not isinstance(on_hit, int) or on_hit < 1:
        yield Problem("X120", f"on_hit={on_hit!r} is no number of times", ADD,
                      "it stops from that time on that it is met", "give a whole number from 1 on")  # fmt: skip


def next_turn(run: Run) -> Activation | None:
    """Return the turn that a run stands before; None in branches that run at the same time: each of them has one."""
    act = current(run)
    return None if act is None or (run.lanes and act.frame.lane.parent is not None) else act


def _met(row: Breakpoint, run: Run, done: str | None, board: Mapping[str, Any]) -> bool:
    """Say whether every clause of a breakpoint holds after a node's step (None: before any), the cheap ones first."""
    if row.node is not None and row.node != (_next_node(run) if row.side == "before" else done):
        return False
    if _rare(row) and (done is None or not _did(row, run, done)):
        return False
    return _holds(row, run, board)


def _next_node(run: Run) -> str | None:
    act = next_turn(run)
    return None if act is None else act.node.id


def last_step(run: Run) -> tuple[History, int]:
    """Return the history and the row of the last step; row 0 before the first.

    What a failure has cancelled stands behind it, in rows of its own: it belongs to that step.
    """
    for history in reversed(run.chain[: run.chain.index(run.at) + 1]):
        row = run.position - history.base
        while row > 0 and history.s_flag[row] & STATUS == CANCELLED:
            row -= 1
        if row > 0:
            return history, row
    return run.chain[0], 0


def _rare(row: Breakpoint) -> bool:
    """Say whether a breakpoint asks what the last step did."""
    return row.edge is not None or row.key is not None or row.error is not None or row.event is not None


def _holds(row: Breakpoint, run: Run, board: Mapping[str, Any]) -> bool:
    """Say whether what a breakpoint asks of the board and of the step holds."""
    if row.step is not None:
        history, number = last_step(run)
        if not history.base + number <= row.step <= run.position:
            return False
    if row.when is None:
        return True
    try:
        return bool(row.when(board))
    except Exception as error:  # noqa: BLE001  (a condition that cannot be worked out yet does not hold)
        row.failed = f"{type(error).__name__}: {error}"
        return False


def _did(row: Breakpoint, run: Run, done: str) -> bool:
    """Say whether the last step did what a breakpoint waits for."""
    history, number = last_step(run)
    step = history.base + number
    if row.error is not None and bool(history.s_flag[number] & STATUS == ERROR) is not row.error:
        return False
    if row.edge is not None:
        if done != row.edge[0]:
            return False
        new = range(history.s_pend[number - 1], history.s_pend[number])
        taken = (run.node_of(history.p_act[at]) for at in new if history.p_val[at] is not CARRIED)
        if row.edge[1] not in taken:
            return False
    if row.key is not None:
        paths = (
            run.tables.codes[code >> 2][1]
            for code in history.w_code[history.s_wend[number - 1] : history.s_wend[number]]
        )
        if not any(f"{'.'.join(map(str, path))}.".startswith(f"{row.key}.") for path in paths):
            return False
    if row.event is not None:
        return any(event.type == row.event and event.step == step for event in reversed(history.events))
    return True
