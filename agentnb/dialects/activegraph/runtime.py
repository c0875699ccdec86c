"""runtime: this dialect's front door: Runtime(graph, behaviors=...).run_goal(...). A Session runs it, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from agentnb.dialects.activegraph.acting import Outside
from agentnb.dialects.activegraph.asking import Asking
from agentnb.dialects.activegraph.attaching import attach, since_of
from agentnb.dialects.activegraph.behaviors import get_registry
from agentnb.dialects.activegraph.budgets import Budget, limits_of
from agentnb.dialects.activegraph.counting import Counting
from agentnb.dialects.activegraph.decisions import Decisions
from agentnb.dialects.activegraph.errors import InvalidRuntimeConfiguration, MissingProviderError
from agentnb.dialects.activegraph.given import behaviors_in, is_a, tools_in
from agentnb.dialects.activegraph.graph import Graph
from agentnb.dialects.activegraph.models import provider_of
from agentnb.dialects.activegraph.observing import Observer
from agentnb.dialects.activegraph.packed import Packed
from agentnb.dialects.activegraph.party import Frame, Party, Policy
from agentnb.dialects.activegraph.printing import Printed
from agentnb.dialects.activegraph.rations import used_up
from agentnb.dialects.activegraph.status import KNOWN_LIMITS, RunQuantumResult, as_payload, snapshot
from agentnb.dialects.activegraph.stored import Stored
from agentnb.dialects.activegraph.watching import Watching
from agentnb.errors import Problem

if TYPE_CHECKING:
    from agentnb.draw.drawing import Drawing
    from agentnb.session import Session


class Runtime(Watching, Decisions, Packed, Stored):
    """Delivers the events of a graph to behaviours, until nothing is left to do or a limit ends it.

    `session` is the run: step it (a step is one delivery), go back, fork, draw; `graph` shows where it stands. What
    fails inside a behaviour is an event, and no exception: see `errors`.

    Args:
        graph: what they act on; events from before stay undelivered.
        behaviors: those that listen; left out, the registered ones, looked at again whenever it runs.
        frame: what the run is about; its id is stamped on all that is done.
        policy: what behaviours may do. It is kept to.
        budget: limits by name, see `Budget`.
        seed: of `ctx.random`.
        persist_to, store: where the run is kept, from now on: a path or URL; see nb.Session.
        llm_provider: the model that llm_behaviors ask.
        tools: what models may call, beside the tools that each behaviour names itself.
        llm_retry_max_attempts: how often a model is asked where its network fails.
        packs: packs that are loaded without telling so: of a run that is loaded again, which tells of them already.
        metrics: what counts, see agentnb.dialects.activegraph.counting.

    Raises:
        InvalidRuntimeConfiguration: X511, there is no such limit; X512, both persist_to and store are given.
        InvalidArgumentType: X519, something is given that is of another sort than it should be.

    Example:
        >>> from agentnb.dialects.activegraph.behaviors import Behavior
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
                 name: str = "behaviours", _graph_of: Callable[[Runtime], Graph] | None = None) -> None:  # fmt: skip
        """Listen to a graph from now on."""
        _check_place(persist_to, store)
        _check_parts(0 if graph is None and _graph_of is None else graph, frame, policy, budget)
        self.name, self._given = name, None if behaviors is None else behaviors_in(behaviors)
        self.budget = Budget(limits_of(budget)).of(self._used)
        self.tools = None if tools is None else tools_in(tools)
        provider = None if llm_provider is None else provider_of(llm_provider)
        observer, self._counting = Observer(), None if metrics is None else Counting(metrics, self)
        self.party = Party(frame, policy, llm=provider, watch=observer, limits=lambda: self.budget.limits)
        delays = (llm_retry_initial_delay_seconds, llm_retry_max_delay_seconds)
        self.party.asking = Asking(
            self.party, attempts=llm_retry_max_attempts, delays=delays, caches=(llm_cache, tool_cache),
            caching=(replay_llm_cache, replay_tool_cache), reinvoke=replay_reinvoke_deterministic,
            tools=self._all_tools,
        )  # fmt: skip
        self._begin_packs(packs)
        self._attached: tuple[Any, ...] = ()
        if _graph_of is None:
            self._join(graph, graph.session.engine.last_event(), seed)
            self._ensure()
        else:
            self.graph = graph
            self._join(_graph_of(self), None, seed)
        observer.run_id = lambda: self.graph.run_id
        if self._counting is not None:
            self.graph.add_listener(self._counting)
        place = persist_to if persist_to is not None else store
        if place is not None:
            self._keep_in(place)
        if replay_strict:
            self._check_replay()

    def _join(self, graph: Graph, since: int | None, seed: int) -> None:
        """Listen to a graph: to a new run's events from now on, to a known run's from where it began to listen."""
        self.graph = graph
        self.party.live = lambda other: other is graph.session.engine
        run, frame = graph.session.engine, self.party.frame
        self._since = since_of(run) if since is None else since
        if since is not None:
            run.seed = seed
            run.__dict__.pop("random", None)
        if frame is not None and frame.id is None:
            kept_id = None if since is not None else graph.ledger.last_frame()
            self.party.frame = replace(frame, id=kept_id or graph.ids.frame())
        if self.budget.limits:
            graph.session.set_budget(**self.budget.limits)
        else:  # what the run was limited to before, it is
            kept = graph.session.limits.budget
            known = {name: getattr(kept, name) for name in KNOWN_LIMITS if getattr(kept, name) is not None}
            self.budget.limits = known

    # -- what it is made of --------------------------------------------------------------------------------------

    @property
    def behaviors(self) -> list[Any]:
        """The behaviours that listen: those that were given, else the registered ones; then those of packs."""
        return [*(get_registry() if self._given is None else self._given), *self._pack_behaviors]

    def _ensure(self) -> None:
        """Let those listen that listen now: some may have been registered since."""
        now = tuple(self.behaviors)
        self._check_provider(now)
        if now != self._attached or not self._attached:
            attach(self.graph, self._counted_in(now), self.party, self.name, self._since)
            self._attached = now

    def _counted_in(self, behaviors: Sequence[Any]) -> Sequence[Any]:
        """Return behaviours as they listen: where somebody counts, their patterns tell of themselves."""
        return behaviors if self._counting is None else self._counting.timed(behaviors)

    def _check_provider(self, behaviors: Iterable[Any]) -> None:
        """R328: a behaviour asks a model, and its runtime has none."""
        asks = next((each.name for each in behaviors if each.kind == "llm"), None)
        if asks is not None and self.party.llm is None:
            raise MissingProviderError(
                Problem("R328", f"{asks!r} asks a model, and there is none", "Runtime()",
                        "an llm_behavior is answered by a model first", "give one: Runtime(graph, llm_provider=...)")
            )  # fmt: skip

    @property
    def session(self) -> Session:
        """The run: a step of it is one delivery of one event to one behaviour."""
        self._ensure()
        return self.graph.session

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.graph.run_id

    @property
    def trace(self) -> Printed:
        """The log as text, and what caused what."""
        return Printed(self.graph)

    def _hand(self) -> Outside:
        session = self.session
        ledger = self.graph.ledger
        return Outside(session, ledger, "runtime", None, self.party.frame_id)

    # -- running -------------------------------------------------------------------------------------------------

    def run_goal(self, goal: str, *, actor: str = "user") -> None:
        """Tell that there is a goal, and run until nothing is left to do."""
        self._hand().tell("goal.created", {"goal": goal}, actor=actor, frame=self.party.frame_id)
        self.run_until_idle()

    def run_until_idle(self) -> None:
        """Run until nothing is left to do or a limit ends it; the log says which."""
        self.session.run()
        self._say_where()

    def run_until(self, predicate: Callable[[Graph], bool]) -> None:
        """Run until a question about the graph is answered with yes, asked before each event; nothing is lost by it."""
        session, asked = self.session, _Between(self, lambda: bool(predicate(self.graph)))
        if not asked.now():
            session.run(until=asked)
        self._say_where()

    def run_quantum(self, *, max_queue_events: int = 25, max_seconds: float = 0.25) -> RunQuantumResult:
        """Run for so many events or so many seconds, whichever ends first, and return what was done."""
        began, before = monotonic(), self._turns_taken()
        deepest = depth = self._queue_depth()

        def enough() -> bool:
            nonlocal deepest
            deepest = max(deepest, self._queue_depth())
            return self._turns_taken() - before >= max_queue_events or monotonic() - began >= max_seconds

        if max_queue_events > 0 and depth:
            self.session.run(until=_Between(self, enough))
        self._say_where()
        state = str(self.graph.session.status)
        return RunQuantumResult(
            self._turns_taken() - before, monotonic() - began, self._queue_depth(), deepest, len(self.timers),
            state == "idle", state == "exhausted",
        )  # fmt: skip

    def _say_where(self) -> None:
        """Tell, once each time, where the run has come to: nothing is left to do, or a limit has ended it."""
        session, hand = self.graph.session, self._hand()
        stands = session.status
        if stands not in ("idle", "exhausted", "ready", "finished"):
            return
        kind = "runtime.budget_exhausted" if stands == "exhausted" else "runtime.idle"
        if stands == "ready" or self._said_already(kind):
            return
        found: dict[str, Any] = {"snapshot": as_payload(snapshot(self._counted(), self.budget.limits))}
        if stands == "exhausted":
            found = {"exhausted_by": stands.limit, **found}
        else:
            found |= self._left_undone()
        hand.emit(kind, found)
        if stands == "idle" and session.status != "idle":  # somebody listens to that very event
            session.run()

    def _left_undone(self) -> dict[str, Any]:
        """Return what `runtime.idle` tells besides: who waits for more events, and whose own budget is used up."""
        timers = [
            {"behavior": each.behavior, "event_id": each.event_id, "missing": each.missing} for each in self.timers
        ]
        spent = used_up(self.graph.session.engine, {each.name: each for each in self.behaviors})
        return {**({"timers": timers} if timers else {}), **({"used_up": spent} if spent else {})}

    def _said_already(self, kind: str) -> bool:
        """Say whether the log tells it already, and nothing has had its turn since."""
        ledger = self.graph.ledger
        waits = self.graph.session.recipe.reactive
        for event in ledger.backwards():
            if event.type == kind:
                return True
            if event.type.startswith(("behavior.", "relation_behavior.")) or (waits is not None and waits.waits(event)):
                return False
        return False

    def draw(self, board: bool = True, direction: str = "TB") -> Drawing:
        """Return the drawing of its session: behaviours, the types of events between them, and what has fired."""
        return self.session.draw(board, direction)

    def __repr__(self) -> str:
        """Return one line: its behaviours and where it stands."""
        return f"<Runtime {self.run_id}: {len(self._attached)} behaviors, {self.graph.session.status}>"


def _check_place(persist_to: Any, store: Any) -> None:
    """X512: a runtime is told twice where it is kept."""
    if persist_to is not None and store is not None:
        raise InvalidRuntimeConfiguration(
            Problem("X512", "persist_to and store are both given", "Runtime()", "a run is kept in one place",
                    "leave one of them out")
        )  # fmt: skip


def _check_parts(graph: Any, frame: Any, policy: Any, budget: Any) -> None:
    """Raise X519 where a runtime is given something of another sort than it should be."""
    is_a(graph, Graph, "Runtime(graph, ...)", "a graph: Graph()")
    is_a(frame, Frame, "Runtime(frame=...)", "a frame: Frame('what the run is about')")
    is_a(policy, Policy, "Runtime(policy=...)", "a policy: Policy(can_create=[...], requires_approval=[...])")
    is_a(budget, (Mapping, Budget), "Runtime(budget=...)", "a mapping of limits, {'max_events': 100}")


class _Between:
    """A question that is asked between two events only: while one is delivered, the answer is no."""

    def __init__(self, runtime: Runtime, asked: Callable[[], bool]) -> None:
        self.runtime, self.asked = runtime, asked

    def now(self) -> bool:
        """Ask, wherever the run stands."""
        return self.asked()

    def __call__(self, _board: Any) -> bool:
        """Ask, where no delivery of the event before is left."""
        run = self.runtime.graph.session.engine
        queue = run.frontier()[:1]
        last = run.tables.acts[run.at.s_act[run.position - run.at.base]] if run.position > run.at.base else None
        here = run.tables.acts[queue[0]] if queue else None
        return not (last is not None and here is not None and here.event == last.event) and self.asked()


__all__ = ["Runtime"]
