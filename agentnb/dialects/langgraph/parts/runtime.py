"""The environment of a node: the config that LangGraph's helpers read, the Runtime, and the context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ABSENT, thaw
from agentnb.dialects.inner_calls import CALLS, PERFORMED, stream
from agentnb.dialects.langgraph.errors import make_unsupported_problem
from agentnb.dialects.langgraph.parts import package as lg
from agentnb.dialects.langgraph.parts.inner_calls import NodeCalls
from agentnb.errors import ExecutionError

if TYPE_CHECKING:
    from agentnb.engine.core.work import Work

RECURSION_LIMIT: Final = 10_007  # LangGraph's default
_K: Final = lg.keys


class Settings:
    """What a recipe passes to its nodes: context, store, and the config with which the graph is invoked.

    `only_async`: LangGraph can only await the graph, so the nodes call their async functions; `only_sync`: LangGraph
    can only invoke it, so the nodes call their sync functions. `has_saver`: the graph has a checkpointer; then a
    session is a thread, whose id is the id of the session's run unless the config has one. Forks stay in the thread.
    """

    __slots__ = ("config", "configurable", "context", "has_saver", "only_async", "only_sync", "run_id", "store")

    def __init__(
        self,
        config: dict[str, Any],
        context: Any,
        store: Any,
        *,
        has_saver: bool = False,
        only_async: bool = False,
        only_sync: bool = False,
    ) -> None:
        own = {"callbacks": config.get("callbacks") or [], "metadata": dict(config.get("metadata") or {})}
        self.config = {**config, **own}
        self.config.pop("run_name", None)  # it names the graph, not its nodes
        if not self.config.get("tags"):
            self.config.pop("tags", None)
        self.configurable = dict(self.config.pop("configurable", None) or {})
        self.context, self.store = context, store
        self.has_saver, self.only_async, self.only_sync = has_saver, only_async, only_sync
        self.run_id = self.config.get("run_id")

    def make_inner_settings(self, graph: Any) -> Settings:
        """Return the settings that a subgraph passes to its nodes, with the subgraph's own tags and metadata."""
        if not graph.config:
            return self
        outer = {**self.config, "configurable": self.configurable}
        config = lg.ensure_config(graph.config, outer)
        config["tags"] = list(dict.fromkeys([*outer.get("tags", ()), *config["tags"]]))
        flags = {name: getattr(self, name) for name in ("has_saver", "only_async", "only_sync")}
        return Settings(config, self.context, self.store, **flags)

    def get_thread(self, work: Work) -> Any:
        """Return the id of the thread that a session represents; None if no thread id is needed."""
        thread_id = self.configurable.get("thread_id")
        return work.run.origin_id() if thread_id is None and self.has_saver else thread_id


def make_config(
    work: Work,
    settings: Settings,
    calls: NodeCalls,
    read: Callable[..., Any],
    metadata: Mapping[str, Any],
    attempt: int,
) -> dict[str, Any]:
    """Return the config of one attempt of a node's step; `metadata` is the node's."""
    previous = work.scope.get(lg.keys.PREVIOUS)
    task = f"{work.node.id}:{work.run.position + 1}"
    thread = settings.get_thread(work)
    runtime = lg.Runtime(
        context=settings.context,
        store=settings.store,
        stream_writer=partial(stream, work),
        previous=None if previous is ABSENT else thaw(previous),
        execution_info=lg.ExecutionInfo(
            checkpoint_id="", checkpoint_ns=task, task_id=task, node_attempt=attempt,
            thread_id=thread, run_id=settings.run_id,
        ),
        control=_CONTROL,
    )  # fmt: skip
    configurable = {
        **settings.configurable,
        **({} if thread is None else {"thread_id": thread}),
        _K.CONFIG_KEY_RUNTIME: runtime,
        _K.CONFIG_KEY_READ: read,
        _K.CONFIG_KEY_CHECKPOINTER: None,  # a graph that a function invokes is part of its step
        _K.CONFIG_KEY_SEND: calls.send,
    }
    _add_task(configurable, task, calls.answers[""])
    metadata = {**settings.config.get("metadata", {}), "langgraph_checkpoint_ns": task, **metadata}
    return {**settings.config, "metadata": metadata, "configurable": configurable}


def make_inner_config(
    config: dict[str, Any], metadata: Mapping[str, Any], task: str, answers: list[Any]
) -> dict[str, Any]:
    """Return the config of a task, with its metadata; `answers` are the answers to its questions."""
    configurable = dict(config["configurable"])
    _add_task(configurable, task, answers)
    metadata = {**config.get("metadata", {}), "langgraph_checkpoint_ns": task, **metadata}
    return {**config, "metadata": metadata, "configurable": configurable}


def _add_task(configurable: dict[str, Any], task: str, answers: list[Any]) -> None:
    """Add the values that LangGraph needs for a node or a task: its id, and the source of answers to its questions."""
    numbers = count()

    def next_answer(_consume: bool = False) -> Any:
        """Return the next answer for an interrupt in a graph that the function invokes; None if there is none."""
        number = next(numbers)
        return answers[number] if number < len(answers) else None

    configurable[_K.CONFIG_KEY_TASK_ID] = configurable[_K.CONFIG_KEY_CHECKPOINT_NS] = task
    configurable[_K.CONFIG_KEY_SCRATCHPAD] = lg.PregelScratchpad(
        step=0, stop=RECURSION_LIMIT, call_counter=count().__next__, interrupt_counter=numbers.__next__,
        get_null_resume=next_answer, resume=answers, subgraph_counter=count().__next__,
    )  # fmt: skip


class _Control(lg.RunControl):  # type: ignore[misc]  # a class without types
    """The value of `runtime.control` in a node."""

    __slots__ = ()

    def request_drain(self, reason: str = "shutdown") -> None:
        """Reject the request: only the person who runs a session can pause it."""
        raise ExecutionError(
            make_unsupported_problem("request_drain()", "runtime.control", "pause the session, or use a breakpoint")
        )


_CONTROL: Final = _Control()


def make_context(config: dict[str, Any], calls: NodeCalls | None = None) -> Context:
    """Return a context in which LangGraph's helpers (`interrupt`, `get_stream_writer`, ...) find the config.

    Within it, models and tools are called through the step that `calls` belongs to.
    """
    context = copy_context()
    context.run(_enter, calls, config)
    return context


def _enter(calls: NodeCalls | None, config: dict[str, Any]) -> None:
    CALLS.set(calls)
    PERFORMED.set(None)
    lg.var_child_runnable_config.set(config)
