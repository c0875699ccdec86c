"""Breakpoints: conditions at which a run stops.

All clauses of a breakpoint must hold; without breakpoints, a run pays nothing.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from agentnb.board.scopes import Board
from agentnb.engine.control.interventions import get_current_activation
from agentnb.engine.core.history import (
    AGAIN,
    CANCELLED,
    CARRIED,
    ENTER,
    ERROR,
    FAIL,
    RESUME,
    STATUS,
    Failure,
    History,
    crosses_region,
)
from agentnb.engine.core.supersteps import SuperstepError
from agentnb.engine.effects.recorded_errors import find_class, list_exception_names
from agentnb.errors import ExecutionError, Problem, did_you_mean, find_misspelling, set_known, warn_caller
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Work
    from agentnb.recipe.model import Edge
    from agentnb.world.effect import Effect

Ask = Callable[[Mapping[str, Any]], Any]
Side = Literal["before", "after"]
SIDES: tuple[Side, ...] = ("before", "after")
CLAUSES = ("node", "edge", "key", "when", "error", "step", "event", "call", "in_place", "no_progress", "budget")
FLAGS = ("in_place", "no_progress")  # clauses that are on or off
_NO_STEP_CLAUSES = (None,) * 6  # for a breakpoint whose clauses do not depend on what the last step did
ADD = "session.breakpoints.add()"
MESSAGES = 200  # how many messages of logpoints are kept


@dataclass(slots=True)
class Breakpoint:
    """A condition at which a run stops. All clauses that are not None must hold.

    - `node`: this node is about to run (side `before`) or has just run (`after`). A composite node stops before it is
      entered and after it is left.
    - `edge`: this edge (source, target) was just followed, including edges into a composite node and back from its end.
    - `key`: the value of this key, or at this path below a key, has just changed.
    - `when`: the condition is true on the board.
    - `error`: a step failed with any exception (True), or with one of this class (an exception class or its name;
      subclasses match). A failed attempt that was retried is not a failed step.
    - `step`: the step has this number.
    - `event`: an event of this type was emitted.
    - `call`: a call is about to be sent (`before`) or was answered (`after`), by the effect's kind or name; `*` matches
      any.
    - `in_place`: the step changed a value that it had read, without assigning it (with `key`: this value).
    - `no_progress`: the node that is about to run (side `before`) or has just run (`after`) had an equal board at an
      earlier visit. While branches run concurrently, `before` checks only the first of the waiting nodes: use `after`.
    - `budget`: a share between 0 and 1: the step brought the usage of some limit (steps, events, calls, seconds,
      tokens, cost or patches) to that share.

    `hits` counts how often the breakpoint was met, even if another breakpoint stopped the run. It stops the run from
    hit number `on_hit` on; with `once`, it is removed after that. `failed` is the error of the last evaluation of
    `when`, if it failed. With `log`, a template, it is a logpoint: it prints a message instead of stopping the run.
    """

    id: int
    node: str | None = None
    edge: tuple[str, str] | None = None
    key: str | None = None
    when: Ask | None = None
    error: bool | str | None = None
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
    in_place: bool | None = None
    no_progress: bool | None = None
    budget: float | None = None
    log: str | None = None
    template: Any = None  # of `log`

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an existing attribute of the breakpoint.

        Raises:
            AttributeError: it has no attribute of this name.
        """
        set_known(self, name, value)

    def __repr__(self) -> str:
        """Return one line: its id, its clauses, and its hit count."""
        facts = [f"from hit {self.on_hit} on"] * (self.on_hit > 1) + ["once"] * self.once
        facts += ["disabled"] * (not self.enabled) + [f"{self.hits} hit{'s' * (self.hits != 1)}"]
        return f"<Breakpoint {self.id}: {safe_str(self)}; {', '.join(facts)}>"

    def __str__(self) -> str:
        """Return its clauses in one line."""
        edge = None if self.edge is None else " -> ".join(self.edge)
        clauses = {"edge": edge, "key": self.key, "step": self.step, "event": self.event, "call": self.call,
                   "error": self.error, "when": self.text or None}  # fmt: skip
        parts = [f"{self.side} {safe_repr(self.node, 200)}"] if self.node else []
        parts += [f"{name} {value}" for name, value in clauses.items() if value is not None]
        parts += ["changed in place"] if self.in_place else []
        parts += ["no progress"] if self.no_progress else []
        return ", ".join(parts + ([f"budget {self.budget:.0%}"] if self.budget else []))


@dataclass(slots=True)
class Breakpoints:
    """The breakpoints of a session. `nodes` returns the existing nodes; `on_change` is called after each change.

    `edges` returns the existing edges; without it, any two nodes are accepted. `check_keys` yields the problems of
    board paths in breakpoints; without it, any path is accepted. `repeats` returns whether a run's board equals the
    board of an earlier visit to the next node (`before`) or the last one (`after`); `reaches_budget_share` returns
    whether the last step brought the usage of a limit to a share. Without these functions, the corresponding clauses
    are never met. `list_names` returns the known names of calls ("call") or events ("event"), to find misspellings of
    them. `messages` are the latest messages of logpoints, each with the logpoint's id.
    """

    nodes: Callable[[], Mapping[str, Any]]
    on_change: Callable[[], None]
    edges: Callable[[], Iterable[Edge]] | None = None
    check_keys: Callable[[Iterable[Sequence[str | int]], str], Iterable[Problem]] | None = None
    repeats: Callable[[Run, Side], bool] | None = None
    reaches_budget_share: Callable[[Run, float], bool] | None = None
    list_names: Callable[[str], Collection[str]] | None = None
    rows: dict[int, Breakpoint] = field(default_factory=dict)
    last_id: int = 0
    messages: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=MESSAGES))

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an existing attribute of the collection.

        Raises:
            AttributeError: it has no attribute of this name.
        """
        set_known(self, name, value)

    def add(
        self,
        node: str | None = None,
        *,
        edge: tuple[str, str] | None = None,
        key: str | None = None,
        when: Any = None,
        error: bool | str | type[BaseException] | None = None,
        step: int | None = None,
        event: str | None = None,
        call: str | None = None,
        in_place: bool = False,
        no_progress: bool = False,
        budget: float | None = None,
        side: Side = "before",
        on_hit: int = 1,
        once: bool = False,
    ) -> Breakpoint:
        """Add a breakpoint and return it; `when` is a path, a condition text, JsonLogic, or a callable of the board.

        Raises:
            ExecutionError: X116, no clause; X101, X119, an unknown node or edge; X120, an invalid argument;
                X145, a key that nothing writes; X148, a misspelled name of a call or an event.
            RecipeError: the condition is invalid.
        """
        return self._add(
            {"node": node, "edge": edge, "key": key, "when": when, "error": error, "step": step, "event": event,
             "call": call, "in_place": in_place, "no_progress": no_progress, "budget": budget,
             "side": side, "on_hit": on_hit, "once": once}
        )  # fmt: skip

    def log(
        self,
        message: str,
        node: str | None = None,
        *,
        edge: tuple[str, str] | None = None,
        key: str | None = None,
        when: Any = None,
        error: bool | str | type[BaseException] | None = None,
        step: int | None = None,
        event: str | None = None,
        call: str | None = None,
        in_place: bool = False,
        no_progress: bool = False,
        budget: float | None = None,
        side: Side = "before",
        on_hit: int = 1,
    ) -> Breakpoint:
        """Add a logpoint and return it: it prints a message when it is met and does not stop the run.

        The clauses are those of `add`.

        Args:
            message: a template, such as "n is {{ n }}", rendered with the board; secrets are masked.

        Raises:
            ExecutionError: X116, no clause; X101, X119, an unknown node or edge; X120, an invalid argument;
                X145, a key that nothing writes; X148, a misspelled name of a call or an event.
            RecipeError: the message or the condition is invalid.
        """
        return self._add(
            {"node": node, "edge": edge, "key": key, "when": when, "error": error, "step": step, "event": event,
             "call": call, "in_place": in_place, "no_progress": no_progress, "budget": budget,
             "side": side, "on_hit": on_hit, "log": message}
        )  # fmt: skip

    def _add(self, options: Mapping[str, Any]) -> Breakpoint:
        row = self.make(options)
        self._insert(row)
        self.on_change()
        return row

    def make(self, options: Mapping[str, Any]) -> Breakpoint:
        """Return a breakpoint for the arguments of `add`, without adding it.

        Raises:
            ExecutionError: X116, no clause; X101, X119, an unknown node or edge; X120, an invalid argument;
                X145, a key that nothing writes; X148, a misspelled name of a call or an event.
            RecipeError: the condition is invalid.
        """
        clauses = {name: options.get(name) for name in CLAUSES}
        for name in FLAGS:
            clauses[name] = None if clauses[name] is False else clauses[name]
        if all(value is None for value in clauses.values()):
            raise ExecutionError(
                Problem("X116", "this breakpoint has no clause", ADD,
                        "a breakpoint stops where its clauses hold", f"pass one of: {', '.join(clauses)}")
            )  # fmt: skip
        settings = {"side": "before", "on_hit": 1, "once": False, **options, **clauses}
        problems = [*self._check_names(clauses["node"], clauses["edge"]), *_check_arguments(settings)]
        problems += () if problems else self._check_spelling(clauses)
        if problems:
            raise ExecutionError(*problems)
        from agentnb.expressions.board_queries import compile_question
        from agentnb.expressions.paths import parse_path
        from agentnb.expressions.templates import compile_template

        when, edge, key, error = clauses["when"], clauses["edge"], clauses["key"], clauses["error"]
        condition = None if when is None else compile_question(when)
        template = None if settings.get("log") is None else compile_template(settings["log"])
        paths: list[Sequence[str | int]] = [] if key is None else [parse_path(key)]
        paths += (path for each in (condition, template) if each is not None for path in each.reads)
        if self.check_keys is not None and (problems := [*self.check_keys(paths, ADD)]):
            raise ExecutionError(*problems)
        text = "" if condition is None else getattr(condition, "text", "") or "a function of the board"
        settings |= {"when": condition, "text": text, "edge": None if edge is None else (edge[0], edge[1])}
        settings |= {"error": error.__name__ if isinstance(error, type) else error, "template": template}
        return Breakpoint(0, **settings)

    def _insert(self, row: Breakpoint) -> None:
        """Add a breakpoint with the next free number."""
        self.last_id += 1
        row.id = self.last_id
        self.rows[row.id] = row

    def _check_names(self, node: Any, edge: Any) -> Iterator[Problem]:
        """Yield a problem for an unknown node and for a pair that is not an edge."""
        pair = isinstance(edge, tuple | list) and len(edge) == 2 and all(isinstance(name, str) for name in edge)
        if edge is not None and not pair:
            parts = [part.strip() for part in edge.split("->")] if isinstance(edge, str) else []
            form = (parts[0], parts[1]) if len(parts) == 2 else ("SOURCE", "TARGET")
            yield Problem("X120", f"{safe_repr(edge)} is not an edge", ADD,
                          "an edge is a pair: its source node and "
                          "its target node", f"write edge={form!r}")  # fmt: skip
        names = self.nodes()
        all_names = [name for name in (node, *(edge if pair else ())) if name is not None]
        unknown = [name for name in all_names if not isinstance(name, str) or name not in names]
        for name in unknown:
            yield Problem("X101", f"there is no node {safe_repr(name)}", ADD,
                          f"the recipe's nodes are: {', '.join(names)}",
                          did_you_mean(name, names, "use one of them"))  # fmt: skip
        if pair and self.edges is not None and not any(name in unknown for name in edge):
            yield from _check_edge(tuple(edge), self.edges())

    def _check_spelling(self, clauses: Mapping[str, Any]) -> Iterator[Problem]:
        """X148: the name of a call or an event is probably misspelled.

        Other unknown names are accepted: tools, models and types of events may become known only during the run.
        """
        for clause in ("call", "event"):
            name, known = clauses[clause], () if self.list_names is None else self.list_names(clause)
            if name is not None and (similar := find_misspelling(name, known)) is not None:
                reason = "calls have the name of a tool, an agent or a node" if clause == "call" else "none is known"
                yield Problem("X148", f"there is no {clause} {safe_repr(name)}", ADD, reason,
                              f"did you mean {similar!r}?")  # fmt: skip

    def remove(self, which: Breakpoint | int | str) -> None:
        """Remove a breakpoint, by object or id, or all breakpoints of a node."""
        removed = [row for row in self if which is row or which in (row.id, row.node)]
        if not removed:
            raise ExecutionError(
                Problem("X109", f"there is no breakpoint {safe_repr(which)}", "session.breakpoints",
                        f"there are: {', '.join(f'{row.id} ({row})' for row in self) or 'none'}",
                        "use one of them by its id or its node")
            )  # fmt: skip
        for row in removed:
            del self.rows[row.id]
        self.on_change()

    def clear(self) -> None:
        """Remove all breakpoints."""
        self.rows.clear()
        self.on_change()

    def __repr__(self) -> str:
        """Return one line per breakpoint."""
        return "\n".join(map(repr, self)) or "no breakpoints"

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(list(self.rows.values()))

    def __len__(self) -> int:
        return len(self.rows)

    def find_after_step(self, run: Run, activation: Activation | None, board: Mapping[str, Any]) -> Breakpoint | None:
        """Count a hit of each breakpoint met after the step of `activation` (None: before the first step).

        Return the first that stops.
        """
        done = None if activation is None else activation.node.id
        rows = [*self.rows.values()]  # a copy: a condition is user code and may add or remove breakpoints
        matches = [
            row for row in rows
            if row.enabled and row.call is None and _is_met(row, run, done, board) and self._is_measured(row, run, done)
        ]  # fmt: skip
        return self._count(matches, board) if matches else None

    def find_met(self, run: Run, board: Mapping[str, Any]) -> Breakpoint | None:
        """Return a breakpoint that is met at the position the run has moved back to.

        Counts no hits, because nothing ran.
        """
        history, number = get_last_step(run)
        done = run.get_node_id(history.step_activations[number]) if number else None
        rows = (row for row in self._list_enabled() if row.call is None and row.log is None)
        matches = (row for row in rows if _is_met(row, run, done, board) and self._is_measured(row, run, done))
        return next(matches, None)

    def find_before_step(self, run: Run, activation: Activation) -> Breakpoint | None:
        """Count a hit of each breakpoint met before a step of a concurrent branch; return the first that stops.

        `no_progress` is not evaluated: a node's earlier boards are known only for the next node.
        """
        rows = [row for row in self._list_enabled() if row.call is None and not row.no_progress and row.side == "before"
                and row.node == activation.node.id and begins_node(activation)]  # fmt: skip
        board = Board(activation.scope)
        return self._count(
            [row for row in rows if not _depends_on_step(row) and _is_at_step(row, run) and _holds(row, board)], board
        )

    def find_at_call(self, work: Work, effect: Effect, moment: str) -> Breakpoint | None:
        """Count a hit of each breakpoint met before a call is sent or after it is answered.

        Return the first that stops. `step` is the number of the step that makes the call.
        """
        number, board = work.run.position + 1, Board(work.activation.scope)
        return self._count([
            row for row in self._list_enabled()
            if row.call is not None and row.side == moment
            and row.node in (None, work.node.id) and row.step in (None, number)
            and (fnmatchcase(effect.kind, row.call) or fnmatchcase(effect.name, row.call))
            and _holds(row, board)
        ], board)  # fmt: skip

    def _is_measured(self, row: Breakpoint, run: Run, done: str | None) -> bool:
        """Return True if the clauses that need more than the last step and the board hold, or there are none."""
        if row.budget is not None and (
            done is None or self.reaches_budget_share is None or not self.reaches_budget_share(run, row.budget)
        ):
            return False
        return not row.no_progress or (self.repeats is not None and self.repeats(run, row.side))

    def _list_enabled(self) -> list[Breakpoint]:
        return [row for row in self.rows.values() if row.enabled]

    def _count(self, rows: Iterable[Breakpoint], board: Mapping[str, Any]) -> Breakpoint | None:
        """Count a hit of each of these breakpoints; return the first that stops the run, or None.

        Logpoints print their messages.
        """
        first = None
        for row in rows:
            row.hits += 1
            if row.hits >= row.on_hit:
                if row.log is not None:
                    self.messages.append((row.id, _write_message(row, board)))
                    continue
                first = first or row
                if row.once:
                    self.rows.pop(row.id, None)
        return first


def _write_message(row: Breakpoint, board: Mapping[str, Any]) -> str:
    """Print the masked message of a logpoint and return it; if it cannot be rendered, the message is the error."""
    try:
        text = safe_str(row.template.render(board))
    except Exception as error:  # noqa: BLE001  (a message is user code: it cannot stop the run)
        text = f"logpoint {row.id} failed: {safe_str(error)}"
    sys.stdout.write(f"{text}\n")
    return text


def _check_edge(edge: tuple[Any, Any], edges: Iterable[Edge]) -> Iterator[Problem]:
    existing = {(edge.source, edge.target) for edge in edges}
    if edge in existing:
        return
    source, target = edge
    leads = sorted(to for by, to in existing if by == source)
    order = f"write edge={(target, source)!r}" if (target, source) in existing else "use one of them"
    yield Problem("X119", f"there is no edge {source!r} -> {target!r}", ADD,
                  f"edges lead from {source!r} to: {', '.join(leads) or 'no node'}",
                  did_you_mean(str(target), leads, order))  # fmt: skip


def _check_arguments(options: Mapping[str, Any]) -> Iterator[Problem]:
    """X120: an argument of a breakpoint is invalid."""
    side, on_hit, step, call = options["side"], options["on_hit"], options["step"], options["call"]
    if side not in SIDES:
        yield Problem("X120", f"side={safe_repr(side)} is not a side of a node", ADD,
                      "a breakpoint stops before or after its node",
                      did_you_mean(safe_str(side), SIDES, f"write one of: {', '.join(SIDES)}"))  # fmt: skip
    if not _is_count(on_hit, 1):
        yield Problem("X120", f"on_hit={safe_repr(on_hit)} is not a hit number", ADD,
                      "the breakpoint stops the run from that hit on", "pass an integer of at least 1")  # fmt: skip
    if step is not None and not _is_count(step, 0):
        yield Problem("X120", f"step={safe_repr(step)} is not a step number", ADD,
                      "steps are numbered from 1; 0 is before the first", "pass an integer of at least 0")  # fmt: skip
    for name in ("key", "event", "call", "log"):
        if options.get(name) is not None and not (isinstance(options[name], str) and options[name].strip()):
            yield Problem("X120", f"{name}={safe_repr(options[name])} is not a name", ADD, f"`{name}` is a string",
                          "pass a non-empty string")  # fmt: skip
    for name in ("once", "enabled", *FLAGS):
        if not isinstance(options.get(name, True), bool | None if name in FLAGS else bool):
            yield Problem("X120", f"{name}={safe_repr(options[name])} is not a flag", ADD, f"`{name}` is True or False",
                          "pass True or False")  # fmt: skip
    yield from _check_error(options["error"])
    share = options["budget"]
    if share is not None and not (type(share) in (int, float) and 0 < share <= 1):
        yield Problem("X120", f"budget={safe_repr(share)} is not a share of a limit", ADD,
                      "1 is the whole limit", "pass a number above 0 and up to 1, such as 0.8")  # fmt: skip
    combined = [name for name in ("edge", "key", "error", "event", *FLAGS, "budget") if options[name] is not None]
    if call is not None and combined:
        yield Problem("X120", f"call= cannot be combined with {combined[0]}=", ADD,
                      "a call is made while its step runs; what the step writes, emits or leads to is known after it",
                      "add two breakpoints; call= can be combined with node=, when=, step= and side=")  # fmt: skip


def _is_count(value: Any, minimum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= minimum


def _check_error(error: Any) -> Iterator[Problem]:
    """X120: `error` is neither a flag nor an exception."""
    order = "pass True, an exception class (error=ValueError), or its name"
    if isinstance(error, str) and error.isidentifier():
        if (similar := find_misspelling(error, list_exception_names())) is not None:
            yield Problem("X120", f"there is no exception {safe_repr(error)}", ADD,
                          "no exception class of this name is known", f"did you mean {similar!r}?")  # fmt: skip
    elif not (error is None or isinstance(error, bool) or (isinstance(error, type) and issubclass(error, Exception))):
        what = f"error={getattr(error, '__name__', None) or safe_repr(error)} is not an exception class"
        yield Problem("X120", what, ADD, "steps fail with subclasses of Exception", order)


def begins_node(activation: Activation) -> bool:
    """Return True if an activation is the node's first; False for a composite node after its inside has ended."""
    return activation.purpose not in {RESUME, FAIL}


def get_next_activation(run: Run) -> Activation | None:
    """Return the next activation of a run; None in concurrent branches, where each branch has one."""
    activation = get_current_activation(run)
    return None if activation is None or (run.lanes and activation.frame.lane.parent is not None) else activation


def _is_met(row: Breakpoint, run: Run, done: str | None, board: Mapping[str, Any]) -> bool:
    """Return True if every clause of a breakpoint holds after a node's step (None: before the first step)."""
    if row.node is not None and row.node != (_get_starting_node(run) if row.side == "before" else done):
        return False
    if row.node is not None and row.side == "after" and _is_inside(run):
        return False
    if _depends_on_step(row) and (done is None or not _matches_step(row, run, done)):
        return False
    return (row.step is None or _is_at_step(row, run)) and _holds(row, board)


def _get_starting_node(run: Run) -> str | None:
    """Return the next node if its next step is its first; None for a composite node whose inside has ended."""
    activation = get_next_activation(run)
    return activation.node.id if activation is not None and begins_node(activation) else None


def _is_inside(run: Run) -> bool:
    """Return True if the last step was that of a composite node that has not been left."""
    history, row = get_last_step(run)
    return row > 0 and history.step_flags[row] & 3 in {ENTER, AGAIN}


def get_last_step(run: Run) -> tuple[History, int]:
    """Return the history and the row of the last step; row 0 before the first.

    The rows of branches cancelled by a failure follow it; they belong to that step.
    """
    for history in reversed(run.chain):
        row = run.position - history.base
        while row > 0 and history.step_flags[row] & STATUS == CANCELLED:
            row -= 1
        if row > 0:
            return history, row
    return run.chain[0], 0


def _depends_on_step(row: Breakpoint) -> bool:
    """Return True if a breakpoint depends on what the last step did."""
    return (row.edge, row.key, row.error, row.event, row.in_place, row.budget) != _NO_STEP_CLAUSES


def _is_at_step(row: Breakpoint, run: Run) -> bool:
    """Return True if the breakpoint has no `step` clause, or the last step has that number."""
    if row.step is None:
        return True
    history, number = get_last_step(run)
    return history.base + number <= row.step <= run.position


def _holds(row: Breakpoint, board: Mapping[str, Any]) -> bool:
    """Return True if the breakpoint has no condition, or its condition holds on the board."""
    if row.when is None:
        return True
    try:
        return bool(row.when(board))
    except Exception as error:  # noqa: BLE001  (a condition that cannot be evaluated yet does not hold)
        previous_failure, row.failed = row.failed, f"{type(error).__name__}: {error}"
        if row.failed != previous_failure:
            _warn_of(row, error)
        return False


def _warn_of(row: Breakpoint, error: Exception) -> None:
    """Warn about a condition that cannot be evaluated on any board."""
    from agentnb.expressions.conditions import NoAnswer

    if isinstance(error, NoAnswer):
        warn_caller(f"breakpoint {row.id} ({row}) never stops: {error}")


def _changes_key(history: History, write: int, text: str) -> bool:
    """Return True if a write changed the value at a path, given as text; a key may contain dots."""
    from agentnb.expressions.paths import parse_path

    key = str(history.tables.codes[history.write_codes[write] >> 2][1][0])
    if text == key:
        return history.changes(write, (key,))
    below = text.removeprefix(key)
    return below != text and below[0] in ".[" and history.changes(write, (key, *parse_path(below)[1:]))


def _fails_as_wanted(failure: Failure | None, expected: bool | str) -> bool:
    """Return True if a step failed as expected: with any exception (True), not at all (False), or with this class."""
    if failure is None or isinstance(expected, bool):
        return (failure is not None) is expected
    error = failure.error.named if isinstance(failure.error, SuperstepError) else failure.error
    known = type(error) if isinstance(error, BaseException) else find_class(failure.type)
    return expected == failure.type or expected in (cls.__name__ for cls in (known.__mro__ if known else ()))


def _matches_step(row: Breakpoint, run: Run, done: str) -> bool:
    """Return True if the last step matches a breakpoint's clauses about steps."""
    history, number = get_last_step(run)
    step = history.base + number
    if row.error is not None:
        failed = history.step_flags[number] & STATUS == ERROR
        if not _fails_as_wanted(history.errors[step] if failed else None, row.error):
            return False
    if row.edge is not None:
        if done != row.edge[0]:
            return False
        new = range(history.push_ends[number - 1], history.push_ends[number])
        source, activations = run.tables.activations[history.step_activations[number]], run.tables.activations
        taken = (
            run.get_node_id(history.push_activations[at])
            for at in new
            if history.push_values[at] is not CARRIED
            or crosses_region(source, activations[history.push_activations[at]], run.tables.frames)
        )
        if row.edge[1] not in taken:
            return False
    if row.key is not None or row.in_place:
        writes: Iterable[int] = range(history.write_ends[number - 1], history.write_ends[number])
        if row.in_place:
            writes = history.in_place and history.in_place.intersection(writes)
        if not writes:
            return False
    if row.key is not None and not any(_changes_key(history, at, row.key) for at in writes):
        return False
    if row.event is not None:
        return any(event.type == row.event and event.step == step for event in reversed(history.events))
    return True
