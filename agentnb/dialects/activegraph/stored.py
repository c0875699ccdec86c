"""stored: a runtime that outlives its process: kept, opened again, forked, and checked against its log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from agentnb.board.secrets import short
from agentnb.dialects.activegraph.attaching import attach, since_of
from agentnb.dialects.activegraph.errors import EventNotFoundError, InvalidRuntimeConfiguration, ReplayDivergenceError
from agentnb.dialects.activegraph.given import behaviors_in
from agentnb.dialects.activegraph.graph import Graph, check_graph_store
from agentnb.dialects.activegraph.recipes import recipe_of_behaviors
from agentnb.engine.alive import flush_all
from agentnb.errors import ExecutionError, Problem
from agentnb.session import stored
from agentnb.session.opening import open as opened
from agentnb.store import open_log

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.budgets import Budget
    from agentnb.dialects.activegraph.party import Frame, Party, Policy
    from agentnb.session.replaying import ReplayReport


class Stored:
    """The part of a Runtime that keeps it."""

    graph: Graph
    party: Party
    budget: Budget
    name: str
    tools: list[Any] | None
    behaviors: Any
    _given: list[Any] | None
    _attached: tuple[Any, ...]
    _ensure: Any
    _counting: Any

    def _keep_in(self, place: Any) -> None:
        """Keep the run in a store from now on, all of it so far included."""
        session = self.graph.session
        session.keep_in(stored.begin(session, place, "step"))

    def save_state(self, path: Any = None) -> str:
        """Keep the run, and return where. One that is kept nowhere is kept at `path` from now on.

        X514: a run that is kept in one place is to be kept in another.

        Raises:
            InvalidRuntimeConfiguration: X514, it is kept elsewhere.
            StoreError: L451, it is kept nowhere, and no path is given; or it cannot be kept.
        """
        self._ensure()
        session = self.graph.session
        if session.journal is not None and path is not None and open_log(path) is not session.journal.log:
            raise InvalidRuntimeConfiguration(
                Problem("X514", "this run is kept in another place already", "runtime.save_state()",
                        f"it is kept in {session.journal.log.url}", "leave the path out, or call session.save(path)")
            )  # fmt: skip
        if session.journal is None and path is not None:
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
             packs: Iterable[Any] = (), name: str | None = None) -> Self:  # fmt: skip
        """Return a runtime that stands where a kept run stood, and goes on as if it had never been away.

        Ids, chance, what was put off, what waits, what was used of the budget: all of it is as it was.

        Args:
            path: a path or a URL: sqlite:///runs.db, postgresql://...
            run_id: which run; left out, the one that was written last.
            behaviors: those that listen; left out, the registered ones.
            replay_strict: compare what they do with the log first.
            graph_store: where the graph lies to be found, see Graph.
            name: left out, the one that it was kept under.
            frame, policy, budget, seed, llm_provider, tools, metrics, packs, and what is said of retries and caches: as
                of a Runtime.

        Raises:
            StoreError: there is no such store or run: nothing is made by asking for it.
            ReplayDivergenceError: L460, behaviours do something else than the log says.
            GraphError: X516, the graph_store is none.
        """
        check_graph_store(graph_store)
        known = None if behaviors is None else behaviors_in(behaviors)

        def graph_of(runtime: Any) -> Graph:
            listening = runtime.behaviors
            runtime.name = name or _kept_name(path, run_id)
            heard = runtime._counted_in(listening)  # noqa: SLF001  (of its own class)
            recipe = recipe_of_behaviors(heard, runtime.party, runtime.name, 0)
            session = opened(path, run_id, recipe=recipe)
            recipe.reactive.since = since_of(session.engine)  # type: ignore[union-attr]  # a Matcher
            runtime._attached = tuple(listening)  # noqa: SLF001  (of its own class)
            return Graph(graph_store=graph_store, session=session)

        made: Any = cls
        found: Self = made(
            None, known, frame, policy, budget, seed, replay_strict=replay_strict, llm_provider=llm_provider,
            replay_llm_cache=replay_llm_cache, llm_retry_max_attempts=llm_retry_max_attempts,
            llm_retry_initial_delay_seconds=llm_retry_initial_delay_seconds,
            llm_retry_max_delay_seconds=llm_retry_max_delay_seconds, tools=tools, replay_tool_cache=replay_tool_cache,
            replay_reinvoke_deterministic=replay_reinvoke_deterministic, metrics=metrics, packs=packs,
            _graph_of=graph_of,
        )  # fmt: skip
        found.party.asking.know(found.graph.ledger.events())
        return found

    def fork(self, at_event: str, label: str | None = None, *, behaviors: Iterable[Any] | None = None,
             llm_provider: Any = None, replay_llm_cache: bool = False, llm_retry_max_attempts: int | None = None,
             llm_retry_initial_delay_seconds: float | None = None, llm_retry_max_delay_seconds: float | None = None,
             tools: Iterable[Any] | None = None, replay_tool_cache: bool = False,
             replay_reinvoke_deterministic: bool = False, metrics: Any = None,
             graph_store: Any = None) -> Self:  # fmt: skip
        """Return a runtime of its own that shares the log up to an event, and the rest of the step that told it.

        Nothing is lost by where it is cut: what had not been delivered then is delivered here. It goes by the same
        budget, chance and clock, and asks models again as this one does, unless something else is said.

        Raises:
            EventNotFoundError: X515, there is no such event.
            GraphError: X516, the graph_store is none.
        """
        check_graph_store(graph_store)
        self._ensure()
        try:
            session = self.graph.session.fork(at_event, label)
        except ExecutionError as error:
            raise EventNotFoundError(
                Problem("X515", f"there is no event {at_event!r} to fork at", "runtime.fork()",
                        "a fork begins after an event of the log", "look at graph.events")
            ) from error  # fmt: skip
        known = self._given if behaviors is None else behaviors_in(behaviors)
        given = {"frame": self.party.frame, "policy": self.party.policy, "name": self.name,
                 "llm_provider": self.party.llm if llm_provider is None else llm_provider,
                 "tools": self.tools if tools is None else tools, "replay_llm_cache": replay_llm_cache,
                 "replay_tool_cache": replay_tool_cache, "metrics": metrics,
                 "replay_reinvoke_deterministic": replay_reinvoke_deterministic,
                 **self.party.asking.retries(llm_retry_max_attempts, llm_retry_initial_delay_seconds,
                                             llm_retry_max_delay_seconds)}  # fmt: skip

        def graph_of(runtime: Any) -> Graph:
            runtime._share_packs(self)  # noqa: SLF001  (of its own class)
            graph = Graph(graph_store=graph_store, session=session)
            listening = tuple(runtime.behaviors)
            heard = runtime._counted_in(listening)  # noqa: SLF001  (of its own class)
            attach(graph, heard, runtime.party, runtime.name, since_of(session.engine))
            runtime._attached = listening  # noqa: SLF001  (of its own class)
            return graph

        made = type(self)(None, known, _graph_of=graph_of, **given)  # type: ignore[call-arg]  # Runtime's own
        made.party.asking.know(self.graph.ledger.events())
        return made

    def replay(self, strict: Any = "values") -> ReplayReport:
        """Run the behaviours again on the recorded answers; return where they do something else. Nothing is called."""
        self._ensure()
        return self.graph.session.replay(strict=strict)

    def _check_replay(self) -> None:
        """Raise where behaviours, run again, do something else than the log says.

        L460: a strict replay differs from the log.

        Raises:
            ReplayDivergenceError: L460, it names the first event and path that differ.
        """
        report = self.replay()
        first = next(iter(report.divergences), None)
        if first is None:
            return
        if self._counting is not None:
            self._counting.differs(f"{first.what}_mismatch")
        events = [event for event in self.graph.ledger.events() if event.step == first.step]
        where = next((event.id for event in events if event.type == first.path.partition(".")[0]), None)
        where = where or (events[0].id if events else "")
        told = first.why or f"{first.what} {first.path!r} was {short(first.recorded)}, and is {short(first.replayed)}"
        raise ReplayDivergenceError(
            Problem("L460", f"step {first.step}, {first.node!r}: {told}", f"event {where or '?'}",
                    "behaviours are run again on what is recorded, and should do what they did",
                    "load with the behaviours that the run was made with, or without replay_strict"),
            event_id=where, expected=first.recorded, actual=first.replayed, kind=f"{first.what}_mismatch",
        )  # fmt: skip


def _kept_name(path: Any, run_id: str | None) -> str:
    """Return the name of the behaviours that a kept run was made with."""
    flush_all()
    row = open_log(path).run(None if run_id is None else str(run_id))
    return str(stored.head_of(row)["recipe"].get("name") or row.name)


__all__ = ["Stored"]
