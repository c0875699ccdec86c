"""Runtime, the entry point of this dialect: Runtime(graph, behaviors=...).run_goal(...).

A Session runs it step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from agentnb.dialects.activegraph.errors import (
    InvalidArgumentType,
    InvalidRuntimeConfiguration,
    MissingProviderError,
    MissingToolError,
)
from agentnb.dialects.activegraph.parts.approvals import ApprovalMethods
from agentnb.dialects.activegraph.parts.argument_checks import check_type, make_type_error, to_behaviors, to_tools
from agentnb.dialects.activegraph.parts.behavior_budgets import find_exhausted
from agentnb.dialects.activegraph.parts.behaviors import get_registry
from agentnb.dialects.activegraph.parts.budgets import Budget, parse_limits
from agentnb.dialects.activegraph.parts.diff import Diff, diff_graphs
from agentnb.dialects.activegraph.parts.effects import EffectCaller
from agentnb.dialects.activegraph.parts.graph import Graph
from agentnb.dialects.activegraph.parts.graph_mutations import SessionActor
from agentnb.dialects.activegraph.parts.inspection import RuntimeInspection
from agentnb.dialects.activegraph.parts.late_registration import attach, get_registration_event
from agentnb.dialects.activegraph.parts.log_output import Observer
from agentnb.dialects.activegraph.parts.metrics import MetricsReporter
from agentnb.dialects.activegraph.parts.models import to_provider
from agentnb.dialects.activegraph.parts.pack_registry import PackMethods
from agentnb.dialects.activegraph.parts.persistence import PersistenceMethods
from agentnb.dialects.activegraph.parts.printing import GraphLog
from agentnb.dialects.activegraph.parts.run_config import Frame, Policy, RuntimeConfig
from agentnb.dialects.activegraph.parts.status import KNOWN_LIMITS, RunQuantumResult, make_snapshot, to_payload
from agentnb.errors import Problem, did_you_mean, with_article
from agentnb.session.state import get_state

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.recorded import ToolInvoker
    from agentnb.draw.drawing import Drawing
    from agentnb.session import Session


class Runtime(RuntimeInspection, ApprovalMethods, PackMethods, PersistenceMethods):
    """Delivers the events of a graph to behaviors, until nothing is left to do or a limit ends it.

    `session` is the run: step it (a step is one delivery), go back, fork, draw; `graph` shows its state. A failure
    inside a behavior becomes an event rather than an exception; see `errors`.

    Args:
        graph: the graph that behaviors act on; its earlier events are not delivered.
        behaviors: the active behaviors; default: the registered ones, including those registered before each run.
        frame: the subject of the run; its id is recorded with every event.
        policy: what behaviors may do; violations raise.
        budget: limits by name, see `Budget`.
        seed: the seed of `ctx.random`.
        persist_to, store: where the run is recorded from now on: a path or URL; see nb.Session.
        llm_provider: the model used by llm_behaviors.
        tools: the tools that models may call, besides those that each behavior names itself.
        llm_retry_max_attempts: the maximum number of attempts for a request, if the network fails.
        packs: packs that are loaded without recording it: for a resumed run, whose log already records them.
        metrics: receives the counts, see agentnb.dialects.activegraph.parts.metrics.
        tool_invoker: calls the tools instead of the runtime, see agentnb.dialects.activegraph.parts.recorded.
        native_structured_output: let the provider enforce the schema of an answer, if it supports that and the schema
            has only required fields without constraints; otherwise the prompt describes the schema.
        trace_context_reads: record the ids of the objects read by each delivery, in one `context.read` event.

    Raises:
        InvalidRuntimeConfiguration: X511, there is no such limit; X512, both persist_to and store are passed.
        InvalidArgumentType: X519, an argument has the wrong type.

    Example:
        >>> from agentnb.dialects.activegraph.parts.behaviors import Behavior
        >>> def plan(event, graph, ctx):
        ...     graph.add_object("task", {"title": event.payload["goal"]})
        >>> runtime = Runtime(Graph(), behaviors=[Behavior("plan", plan, on=["goal.created"])])
        >>> runtime.run_goal("write")
        >>> runtime.graph.get_object("task#1").data, runtime.status().state
        ({'title': 'write'}, 'idle')
    """

    def __init__(self, graph: Graph, behaviors: Iterable[Any] | None = None, frame: Frame | None = None,
                 policy: Policy | None = None, budget: Mapping[str, Any] | Budget | None = None, seed: int = 0, *,
                 persist_to: Any = None, store: Any = None, replay_strict: bool = False, llm_provider: Any = None,
                 replay_llm_cache: bool = False, llm_cache: Any = None, llm_retry_max_attempts: int = 3,
                 llm_retry_initial_delay_seconds: float = 0.5, llm_retry_max_delay_seconds: float = 8.0,
                 tools: Iterable[Any] | None = None, replay_tool_cache: bool = False, tool_cache: Any = None,
                 replay_reinvoke_deterministic: bool = False, metrics: Any = None, packs: Iterable[Any] = (),
                 tool_invoker: ToolInvoker | None = None, native_structured_output: bool = False,
                 trace_context_reads: bool = False, name: str = "behaviors",
                 _graph_of: Callable[[Runtime], Graph] | None = None) -> None:  # fmt: skip
        """Start listening to a graph."""
        _check_place(persist_to, store)
        _check_parts(0 if graph is None and _graph_of is None else graph, frame, policy, budget)
        self.name, self._given = name, None if behaviors is None else to_behaviors(behaviors)
        self.budget = Budget(parse_limits(budget)).of(self._read_usage)
        self.tools = None if tools is None else to_tools(tools)
        provider = None if llm_provider is None else to_provider(llm_provider)
        observer, self._counting = Observer(), None if metrics is None else MetricsReporter(metrics, self)
        self.trace_context_reads = trace_context_reads
        self.config = RuntimeConfig(frame, policy, llm=provider, watch=observer, limits=lambda: self.budget.limits,
                           trace_reads=trace_context_reads)  # fmt: skip
        delays = (llm_retry_initial_delay_seconds, llm_retry_max_delay_seconds)
        self.config.asking = EffectCaller(
            self.config, attempts=llm_retry_max_attempts, delays=delays, caches=(llm_cache, tool_cache),
            caching=(replay_llm_cache, replay_tool_cache), reinvoke=replay_reinvoke_deterministic,
            tools=self._list_tools, invoker=tool_invoker, native=native_structured_output,
        )  # fmt: skip
        self._begin_packs(packs)
        self._attached: tuple[Any, ...] = ()
        if _graph_of is None:
            self._join(graph, get_state(graph.session).run.last_event(), seed)
            self._ensure(check=False)
        else:
            self.graph = graph
            self._join(_graph_of(self), None, seed)
        observer.run_id = lambda: self.graph.run_id
        self.graph.observe = observer.record_event
        if self._counting is not None:
            self.graph.add_listener(self._counting)
        location = persist_to if persist_to is not None else store
        if location is not None:
            self._keep_in(location)
        if replay_strict:
            self._check_replay()

    def _join(self, graph: Graph, since: int | None, seed: int) -> None:
        """Start listening to a graph: to a new run from now on, to a known run from where listening started before."""
        self.graph, graph.checks = graph, self.config.checks
        self.config.live = lambda other: other is get_state(graph.session).run
        run, frame = get_state(graph.session).run, self.config.frame
        self._since = get_registration_event(run) if since is None else since
        if since is not None:
            run.seed = seed
            run.rng = None
        if frame is not None and frame.id is None:
            kept_id = None if since is not None else graph.ledger.last_frame()
            self.config.frame = replace(frame, id=kept_id or graph.ids.frame())
        budget = get_state(graph.session).limits.budget
        limits = {name: self.budget.limits.get(name) for name in KNOWN_LIMITS}
        if any(getattr(budget, name) != limit for name, limit in limits.items()):
            graph.session.set_budget(**limits)  # only this budget applies, even after `load` and `fork`

    # -- wiring --------------------------------------------------------------------------------------------------

    @property
    def behaviors(self) -> list[Any]:
        """The active behaviors: those that were passed, or else the registered ones; then those of packs."""
        return [*(get_registry() if self._given is None else self._given), *self._pack_behaviors]

    def _ensure(self, *, check: bool = True) -> None:
        """Update the active behaviors, because some may have been registered since, and check their requirements.

        While the session is running, they stay as they are. A new runtime skips the check, because its tools and packs
        may be added later.
        """
        now = tuple(self.behaviors)
        if check:
            self._check_needs(now)
        if (now != self._attached or not self._attached) and not get_state(self.graph.session).moves:
            attach(self.graph, self._count_patterns(now), self.config, self.name, self._since)
            self._attached = now

    def _count_patterns(self, behaviors: Sequence[Any]) -> Sequence[Any]:
        """Return the active behaviors; if metrics are enabled, their patterns report to them."""
        return behaviors if self._counting is None else self._counting.time_patterns(behaviors)

    def _check_needs(self, behaviors: Iterable[Any]) -> None:
        """R328: a behavior uses a model, but its runtime has none.

        R233: a behavior names a tool that its runtime lacks.
        """
        asking = [each for each in behaviors if each.kind == "llm"]
        for each in asking:
            missing = self.config.asking.missing_tool(each)
            if missing is not None:
                known = [tool.name for tool in self._list_tools()]
                raise MissingToolError(
                    Problem("R233", f"{each.name!r} names the tool {missing!r}, which does not exist", "Runtime()",
                            f"registered tools: {', '.join(known) or 'none'}",
                            did_you_mean(missing, known, "register it with @tool, or pass Runtime(graph, tools=[...])"))
                )  # fmt: skip
        asks = next((each.name for each in asking), None)
        if asks is not None and self.config.llm is None:
            raise MissingProviderError(
                Problem("R328", f"{asks!r} needs a model, but there is none", "Runtime()",
                        "an llm_behavior is answered by a model first", "pass one: Runtime(graph, llm_provider=...)")
            )  # fmt: skip

    @property
    def session(self) -> Session:
        """The run. One step is one delivery of one event to one behavior."""
        self._ensure()
        return self.graph.session

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.graph.run_id

    @property
    def trace(self) -> GraphLog:
        """The log as text, and the causes of events."""
        return GraphLog(self.graph)

    def _get_actor(self) -> SessionActor:
        session = self.session
        ledger = self.graph.ledger
        return SessionActor(session, ledger, "runtime", None, self.config.frame_id)

    # -- running -------------------------------------------------------------------------------------------------

    def run_goal(self, goal: str, *, actor: str = "user") -> None:
        """Create a goal event and run until no events are left."""
        self._get_actor().record("goal.created", {"goal": goal}, actor=actor, frame=self.config.frame_id)
        self.run_until_idle()

    def run_until_idle(self) -> None:
        """Run until no events are left or a limit is reached; the log records which."""
        self.session.run()
        self._say_where()

    def run_until(self, predicate: Callable[[Graph], bool]) -> None:
        """Run until a predicate of the graph is true; it is checked before each event, and no event is lost."""
        session, condition = self.session, _BetweenEvents(self, lambda: bool(predicate(self.graph)))
        if not condition.now():
            session.run(until=condition)
        self._say_where()

    def run_quantum(self, *, max_queue_events: int = 25, max_seconds: float = 0.25) -> RunQuantumResult:
        """Run for a number of events or seconds, whichever is reached first, and return what was done.

        Raises:
            InvalidArgumentType: X520, a bound has the wrong type.
            InvalidRuntimeConfiguration: X521, a bound is not above 0, or not finite.
        """
        _check_bounds(max_queue_events, max_seconds)
        start, deliveries_before = monotonic(), self._count_deliveries()
        deepest = depth = self._count_queue()

        def is_enough() -> bool:
            nonlocal deepest
            deepest = max(deepest, self._count_queue())
            return (
                self._count_deliveries() - deliveries_before >= max_queue_events or monotonic() - start >= max_seconds
            )

        if depth:
            self.session.run(until=_BetweenEvents(self, is_enough))
        self._say_where()
        state = str(self.graph.session.status)
        return RunQuantumResult(
            self._count_deliveries() - deliveries_before, monotonic() - start, self._count_queue(), deepest,
            len(self.timers), state == "idle", state == "exhausted",
        )  # fmt: skip

    def _say_where(self) -> None:
        """Record, once per halt, why the run stopped: no events are left, or a limit was reached."""
        session, hand = self.graph.session, self._get_actor()
        status = session.status
        if status not in ("idle", "exhausted", "ready", "finished"):
            return
        limit = status.limit if status == "exhausted" else self.budget.exhausted_by()
        kind = "runtime.idle" if limit is None else "runtime.budget_exhausted"
        if status == "ready" or self._find_halt() == kind:
            return
        details: dict[str, Any] = {"snapshot": to_payload(make_snapshot(self._count_usage(), self.budget.limits))}
        if limit is not None:
            details = {"exhausted_by": limit, **details}
        else:
            details |= self._collect_pending_work()
        hand.emit(kind, details)
        if status == "idle" and session.status != "idle":  # a behavior is triggered by this very event type
            session.run()

    def _collect_pending_work(self) -> dict[str, Any]:
        """Return the additional fields of `runtime.idle`: behaviors that wait for events or have no budget left."""
        timers = [
            {"behavior": each.behavior, "event_id": each.event_id, "missing": each.missing} for each in self.timers
        ]
        spent = find_exhausted(get_state(self.graph.session).run, {each.name: each for each in self.behaviors})
        return {**({"timers": timers} if timers else {}), **({"used_up": spent} if spent else {})}

    def print_trace(self) -> None:
        """Print the log, one line per event."""
        self.trace.print()

    def print_graph(self) -> None:
        """Print the current objects and relations."""
        print("\n".join(self.trace.graph_lines()))  # noqa: T201  (that is what it is for)

    def export_trace(self, path: Any) -> None:
        """Write the log to a file, one JSON object per line, with secrets masked."""
        self.trace.export(path)

    def diff(self, other: Runtime) -> Diff:
        """Compare this run with another one, usually its fork."""
        if not isinstance(other, Runtime):
            raise make_type_error(other, "runtime.diff()", "another runtime")
        return diff_graphs(self.graph, other.graph)

    def draw(self, board: bool = True, direction: str = "TB") -> Drawing:
        """Return the drawing of its session: behaviors, the types of events between them, and those that have fired."""
        return self.session.draw(board, direction)

    def __repr__(self) -> str:
        """Return one line: the behaviors and the status."""
        return f"<Runtime {self.run_id}: {len(self._attached)} behaviors, {self.graph.session.status}>"


def _check_place(persist_to: Any, store: Any) -> None:
    """X512: a runtime is given two locations to store its run."""
    if persist_to is not None and store is not None:
        raise InvalidRuntimeConfiguration(
            Problem("X512", "persist_to and store are both passed", "Runtime()", "a run is stored in one place",
                    "pass only one of them")
        )  # fmt: skip


def _check_parts(graph: Any, frame: Any, policy: Any, budget: Any) -> None:
    """Raise X519 if an argument of a runtime has the wrong type."""
    check_type(graph, Graph, "Runtime(graph, ...)", "a graph: Graph()")
    check_type(frame, Frame, "Runtime(frame=...)", "a frame: Frame('what the run is about')")
    check_type(policy, Policy, "Runtime(policy=...)", "a policy: Policy(can_create=[...], requires_approval=[...])")
    check_type(budget, (Mapping, Budget), "Runtime(budget=...)", "a mapping of limits, {'max_events': 100}")


def _check_bounds(events: Any, seconds: Any) -> None:
    """Raise if a bound of a quantum is not a number of events or of seconds.

    X520: a bound of a quantum has the wrong type.
    X521: a bound of a quantum is not positive, or not finite.

    Raises:
        InvalidArgumentType: X520.
        InvalidRuntimeConfiguration: X521.
    """
    why, do = "a quantum ends after some events or seconds", "pass run_quantum(max_queue_events=25, max_seconds=0.25)"
    for name, value, types in (("max_queue_events", events, int), ("max_seconds", seconds, (int, float))):
        where = f"runtime.run_quantum(), {name}"
        if isinstance(value, bool) or not isinstance(value, types):
            expected = "an int" if types is int else "a number"
            raise InvalidArgumentType(
                Problem("X520", f"{name} is {with_article(type(value).__name__)}, not {expected}", where, why, do)
            )
        if not 0 < value < inf:
            raise InvalidRuntimeConfiguration(
                Problem("X521", f"{name} must be above 0 and finite, and is {value}", where, why, do)
            )


class _BetweenEvents:
    """A predicate that is checked only between two events: during a delivery it is false."""

    def __init__(self, runtime: Runtime, predicate: Callable[[], bool]) -> None:
        self.runtime, self.asked = runtime, predicate

    def now(self) -> bool:
        """Check the predicate, whatever the state of the run."""
        return self.asked()

    def __call__(self, _board: Any) -> bool:
        """Check the predicate if no delivery of the previous event is pending."""
        run = get_state(self.runtime.graph.session).run
        queue = run.frontier()[:1]
        last = run.get_last_activation()
        next_activation = run.tables.activations[queue[0]] if queue else None
        return (
            not (last is not None and next_activation is not None and next_activation.event == last.event)
            and self.asked()
        )


__all__ = ["Runtime"]
