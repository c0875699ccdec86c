"""Persistence of runtimes: save, load, fork, and strict replay against the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from agentnb.dialects.activegraph.errors import (
    EventNotFoundError,
    InvalidRuntimeConfiguration,
    ReplayDivergenceError,
    StoreNotFoundError,
)
from agentnb.dialects.activegraph.parts.argument_checks import to_behaviors
from agentnb.dialects.activegraph.parts.graph import Graph, check_graph_store
from agentnb.dialects.activegraph.parts.late_registration import attach, get_registration_event
from agentnb.dialects.activegraph.parts.package_logs.continuing import LogPersistence, continue_log, open_package_log
from agentnb.dialects.activegraph.schema import make_recipe
from agentnb.engine.persistence.open_journals import flush_all
from agentnb.errors import ExecutionError, Problem, StoreError
from agentnb.session import stored_run
from agentnb.session.parts import get_parts
from agentnb.session.reopen import open_stored
from agentnb.session.state import get_state
from agentnb.store import open_log
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.budgets import Budget
    from agentnb.dialects.activegraph.parts.package_logs.records import PackageLog
    from agentnb.dialects.activegraph.parts.run_config import Frame, Policy, RuntimeConfig
    from agentnb.session.replay_report import ReplayReport
    from agentnb.session.session import Session


class PersistenceMethods:
    """The persistence methods of a Runtime."""

    graph: Graph
    config: RuntimeConfig
    budget: Budget
    name: str
    tools: list[Any] | None
    behaviors: Any
    _given: list[Any] | None
    _attached: tuple[Any, ...]
    _ensure: Any
    _counting: Any

    def _keep_in(self, store: Any) -> None:
        """Record the run in a store from now on, including everything so far."""
        get_parts(self.graph.session).persistence.record_new_run(store, "step")

    def save_state(self, path: Any = None) -> str:
        """Save the run, and return its location. A run without a store is recorded at `path` from now on.

        X514: a run that is already stored would be saved to another location.

        Raises:
            InvalidRuntimeConfiguration: X514, the run is stored elsewhere; R265, the run has no store, and no path was
                passed.
            StoreError: the run cannot be saved.
        """
        self._ensure()
        session = self.graph.session
        store = _find_store(session)
        if store is not None and path is not None and not store[1](path):
            raise InvalidRuntimeConfiguration(
                Problem("X514", "this run is already stored elsewhere", "runtime.save_state()",
                        f"it is stored in {store[0]}", "leave the path out, or call session.save(path)")
            )  # fmt: skip
        if store is None:
            if path is None:
                raise InvalidRuntimeConfiguration(
                    Problem("R265", "this run is not stored yet", "runtime.save_state()", "no path was passed",
                            "pass a path: runtime.save_state('run.db')")
                )  # fmt: skip
            self._keep_in(path)
        return session.save()

    @classmethod
    def load(cls, path: Any, run_id: str | None = None, *, behaviors: Iterable[Any] | None = None,
             frame: Frame | None = None, policy: Policy | None = None,
             budget: Mapping[str, Any] | Budget | None = None, seed: int = 0, replay_strict: bool = False,
             llm_provider: Any = None, replay_llm_cache: bool = False, llm_retry_max_attempts: int = 3,
             llm_retry_initial_delay_seconds: float = 0.5, llm_retry_max_delay_seconds: float = 8.0,
             tools: Iterable[Any] | None = None, replay_tool_cache: bool = False,
             replay_reinvoke_deterministic: bool = False, metrics: Any = None, graph_store: Any = None,
             packs: Iterable[Any] = (), tool_invoker: Any = None, native_structured_output: bool = False,
             trace_context_reads: bool = False, name: str | None = None) -> Self:  # fmt: skip
        """Return a runtime that resumes a recorded run as if it had not been interrupted.

        A run from a store of the activegraph package continues, too; each new event is added to that store.

        Ids, random numbers, delayed deliveries, pending approvals and budget use are restored. Only the limits in
        `budget` apply; earlier limits of the run do not. All other arguments are those of a Runtime.

        Args:
            path: a path or a URL: sqlite:///runs.db, postgresql://...
            run_id: the id of the run; default: the run that was written last.
            behaviors: the subscribed behaviors; default: the registered ones.
            replay_strict: first compare what the behaviors do with the log.
            graph_store: the store of the graph's objects, see Graph.
            name: the name of the run; default: the recorded one.

        Raises:
            StoreNotFoundError: L410, there is no such store, and none is created. This is a FileNotFoundError.
            StoreError: there is no such run.
            InvalidRuntimeConfiguration: X522, a run of the activegraph package cannot be replayed strictly.
            ReplayDivergenceError: L460, the behaviors differ from the log.
            GraphError: X516, graph_store is not a graph store.
        """
        check_graph_store(graph_store)
        known = None if behaviors is None else to_behaviors(behaviors)

        def graph_of(runtime: Any) -> Graph:
            listening = runtime.behaviors
            matchers = runtime._count_patterns(listening)  # noqa: SLF001  (of its own class)
            log = open_package_log(path, run_id)
            if log is not None:
                _check_lenient(replay_strict, log)
                runtime.name = name or "behaviors"
                runtime._attached = tuple(listening)  # noqa: SLF001  (of its own class)
                return continue_log(path, log, matchers, runtime.config, runtime.name, graph_store)
            runtime.name = name or _find_recorded_name(path, run_id)
            recipe = make_recipe(matchers, runtime.config, runtime.name, 0)
            session = open_stored(path, run_id, recipe=recipe)
            state = get_state(session)
            if state.journal is not None:
                state.journal.takes_over = True  # as in the package, the first Runtime may still be alive
            recipe.reactive.since = get_registration_event(state.run)  # type: ignore[union-attr]  # a Matcher
            runtime._attached = tuple(listening)  # noqa: SLF001  (of its own class)
            return Graph(graph_store=graph_store, session=session)

        runtime_class: Any = cls
        resumed: Self = runtime_class(
            None, known, frame, policy, budget, seed, replay_strict=replay_strict, llm_provider=llm_provider,
            replay_llm_cache=replay_llm_cache, llm_retry_max_attempts=llm_retry_max_attempts,
            llm_retry_initial_delay_seconds=llm_retry_initial_delay_seconds,
            llm_retry_max_delay_seconds=llm_retry_max_delay_seconds, tools=tools, replay_tool_cache=replay_tool_cache,
            replay_reinvoke_deterministic=replay_reinvoke_deterministic, metrics=metrics, packs=packs,
            tool_invoker=tool_invoker, native_structured_output=native_structured_output,
            trace_context_reads=trace_context_reads,
            _graph_of=graph_of,
        )  # fmt: skip
        resumed.config.asking.fill_caches(resumed.graph.ledger.events())
        resumed.graph.replayed_count = resumed.graph.ledger.count()
        return resumed

    def fork(self, at_event: str, label: str | None = None, *, behaviors: Iterable[Any] | None = None,
             llm_provider: Any = None, replay_llm_cache: bool = False, llm_retry_max_attempts: int | None = None,
             llm_retry_initial_delay_seconds: float | None = None, llm_retry_max_delay_seconds: float | None = None,
             tools: Iterable[Any] | None = None, replay_tool_cache: bool = False,
             replay_reinvoke_deterministic: bool = False, metrics: Any = None,
             graph_store: Any = None) -> Self:  # fmt: skip
        """Return an independent runtime that shares the log up to an event, and the rest of the step that recorded it.

        No delivery is lost: those that were outstanding at that point are made by the fork. It continues with the same
        random numbers and clock, and calls models as this runtime does, unless other arguments are passed. It has no
        budget.

        Raises:
            EventNotFoundError: X515, there is no such event.
            GraphError: X516, the graph_store is not valid.
        """
        check_graph_store(graph_store)
        self._ensure()
        try:
            session = self.graph.session.fork(at_event, label)
        except ExecutionError as error:
            raise EventNotFoundError(
                Problem("X515", f"there is no event {at_event!r} to fork at", "runtime.fork()",
                        "a fork starts after an event of the log", "see graph.events")
            ) from error  # fmt: skip
        known = self._given if behaviors is None else to_behaviors(behaviors)
        options = {"frame": self.config.frame, "policy": self.config.policy, "name": self.name,
                 "llm_provider": self.config.llm if llm_provider is None else llm_provider,
                 "tools": self.tools if tools is None else tools, "replay_llm_cache": replay_llm_cache,
                 "replay_tool_cache": replay_tool_cache, "metrics": metrics,
                 "replay_reinvoke_deterministic": replay_reinvoke_deterministic,
                 "tool_invoker": self.config.asking.invoker, "native_structured_output": self.config.asking.native,
                 "trace_context_reads": self.config.trace_reads,
                 **self.config.asking.retries(llm_retry_max_attempts, llm_retry_initial_delay_seconds,
                                             llm_retry_max_delay_seconds)}  # fmt: skip

        def graph_of(runtime: Any) -> Graph:
            runtime._share_packs(self)  # noqa: SLF001  (of its own class)
            graph = Graph(graph_store=graph_store, session=session)
            listening = tuple(runtime.behaviors)
            matchers = runtime._count_patterns(listening)  # noqa: SLF001  (of its own class)
            attach(graph, matchers, runtime.config, runtime.name, get_registration_event(get_state(session).run))
            runtime._attached = listening  # noqa: SLF001  (of its own class)
            return graph

        forked = type(self)(None, known, _graph_of=graph_of, **options)  # type: ignore[call-arg]  # Runtime's own
        forked.config.asking.fill_caches(self.graph.ledger.events())
        forked.graph.replayed_count = forked.graph.ledger.count()
        return forked

    def replay(self, strict: Any = "values") -> ReplayReport:
        """Run the behaviors again with the recorded answers, and report the differences. Nothing is called."""
        self._ensure()
        return self.graph.session.replay(strict=strict)

    def _check_replay(self) -> None:
        """Raise an error if rerun behaviors differ from the log.

        L460: a strict replay differs from the log.

        Raises:
            ReplayDivergenceError: L460, with the first event and path that differ.
        """
        report = self.replay()
        first = next(iter(report.divergences), None)
        if first is None:
            return
        if self._counting is not None:
            self._counting.count_divergence(f"{first.what}_mismatch")
        events = [event for event in self.graph.ledger.events() if event.step == first.step]
        event_id = next((event.id for event in events if event.type == first.path.partition(".")[0]), None)
        event_id = event_id or (events[0].id if events else "")
        texts = (
            first.why
            or f"{first.what} {first.path!r} was {safe_repr(first.recorded)}, but is {safe_repr(first.replayed)}"
        )
        raise ReplayDivergenceError(
            Problem("L460", f"step {first.step}, {first.node!r}: {texts}", f"event {event_id or '?'}",
                    "a replayed behavior must do what the log records",
                    "load it with the behaviors of the recorded run, or without replay_strict"),
            event_id=event_id, expected=first.recorded, actual=first.replayed, kind=f"{first.what}_mismatch",
        )  # fmt: skip


def _check_lenient(replay_strict: bool, log: PackageLog) -> None:
    """Raise an error for a strict replay of a run of the package.

    X522: a run of the activegraph package is loaded with replay_strict.

    Raises:
        InvalidRuntimeConfiguration: X522.
    """
    if replay_strict:
        raise InvalidRuntimeConfiguration(
            Problem("X522", "a run of the activegraph package cannot be replayed strictly here",
                    f"{log.display_name}, run {log.run.run_id!r}", "its log lacks the values to compare",
                    "leave replay_strict out, or let the package check it: activegraph.Runtime.load(...)")
        )  # fmt: skip


def _find_store(session: Session) -> tuple[str, Callable[[Any], bool]] | None:
    """Return the location of a run, and a function that checks whether a path denotes this location.

    Return None if the run is only in memory.
    """
    persistence, journal = get_parts(session).persistence, get_state(session).journal
    if isinstance(persistence, LogPersistence):
        return persistence.writer.url, persistence.writer.is_at
    return None if journal is None else (journal.log.url, lambda path: open_log(path) is journal.log)


def _find_recorded_name(path: Any, run_id: str | None) -> str:
    """Return the name of the behaviors that a stored run was recorded with.

    Raises:
        StoreNotFoundError: L410, there is no store.
        StoreError: there is no such run, or it cannot be read.
    """
    flush_all()
    try:
        row = open_log(path).run(None if run_id is None else str(run_id))
    except StoreError as error:
        if error.problems[0].code == "L410":
            raise StoreNotFoundError(*error.problems) from error
        raise
    return str(stored_run.parse_head(row)["recipe"].get("name") or row.name)


__all__ = ["PersistenceMethods"]
