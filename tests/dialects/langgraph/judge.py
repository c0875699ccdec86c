"""The judge: a graph runs in LangGraph and here, and the states after each superstep are compared."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agentnb.dialects.langgraph.api import load_graph
from agentnb.session import Session

ANSWERS = 50
STEPS = 3_000  # of a run here, those inside subgraphs included
# A graph inside a loop may double a list in every superstep, and a program that asks may run for ever.
MOST_ITEMS = 500  # of a list in the state, where LangGraph's run is cut
MOST_TASKS = 1_000  # node runs there, those inside subgraphs not included
UNENDED = {"TooLargeError", "asks on"}


class TooLargeError(Exception):
    """A run has become too large to be compared; its states up to there are."""


@dataclass
class Course:
    """How a run went: the number of node runs up to each known state, the states, and how it ended.

    `tasks` are the node runs that began.
    """

    states: list[tuple[int, Any]] = field(default_factory=list)
    tasks: int = 0
    ended: str = "finished"
    asked: list[Any] = field(default_factory=list)
    last: Any = None


class _SizeLimit:
    """Passes on what LangGraph streams, as long as the run is not too large."""

    def __init__(self) -> None:
        self.tasks = 0

    def check(self, streamed: tuple[str, Any]) -> tuple[str, Any]:
        mode, chunk = streamed
        self.tasks += mode == "tasks" and "input" in chunk
        values = chunk.values() if mode == "values" and isinstance(chunk, dict) else ()
        if self.tasks > MOST_TASKS or any(isinstance(value, list) and len(value) > MOST_ITEMS for value in values):
            raise TooLargeError
        return streamed


class _Tasks:
    """The node runs that LangGraph has streamed: how many have begun, and which of them have not ended."""

    def __init__(self) -> None:
        self.count, self.known, self.running = 0, set[str](), set[str]()

    def note(self, chunk: dict[str, Any]) -> list[Any]:
        """Note that a node begins or ends; return the questions with which it ends."""
        if "input" not in chunk:
            if not chunk["interrupts"]:
                self.running.discard(chunk["id"])
            return list(chunk["interrupts"])
        handles = "_error_handler__" in chunk["name"]  # only shown if it goes on after a question
        if chunk["id"] not in self.known and not handles:
            self.count += 1
            self.known.add(chunk["id"])
            self.running.add(chunk["id"])
        return []


async def _awaited(chunks: AsyncIterator[Any], found: list[Any]) -> None:
    limit = _SizeLimit()
    async for chunk in chunks:
        found.append(limit.check(chunk))  # noqa: PERF401  (what came before an error is kept)


def streamed(graph: Any, inputs: Any, settings: dict[str, Any], is_async: bool) -> Iterator[Any]:
    """Yield what LangGraph streams: states, and nodes as they begin and end. Its async form first runs to the end."""
    if not is_async:
        yield from map(_SizeLimit().check, graph.stream(inputs, settings, stream_mode=["values", "tasks"]))
        return
    results: list[Any] = []
    error: Exception | None = None
    try:
        asyncio.run(_awaited(graph.astream(inputs, settings, stream_mode=["values", "tasks"]), results))
    except Exception as raised:  # noqa: BLE001  (raised below)
        error = raised
    yield from results
    if error is not None:
        raise error


def in_langgraph(
    graph: Any, inputs: Any, limit: int = 12, answers: Any = None, is_async: bool = False, **config: Any
) -> Course:
    """Run a compiled graph in LangGraph for at most `limit` supersteps; `answers` is called with a question's value."""
    course, tasks = Course(), _Tasks()
    graph = graph.copy(update={"checkpointer": InMemorySaver()})
    configurable = {**config.pop("configurable", {}), "thread_id": "one"}
    settings = {"recursion_limit": limit, "configurable": configurable, **config}
    try:
        for attempt in range(ANSWERS):
            waits, shows = [], attempt == 0
            for mode, chunk in streamed(graph, inputs, settings, is_async):
                if mode == "tasks":
                    waits += tasks.note(chunk)
                elif not shows:  # where it stood when it asked
                    shows = True
                elif "__interrupt__" not in chunk:
                    course.states.append((tasks.count, chunk))
            if not waits and not graph.get_state(settings).next:
                break
            # Halfway through a superstep LangGraph shows what the nodes that have ended would write.
            if waits or tasks.running:
                course.states = [state for state in course.states if state[0] < tasks.count]
            course.asked += [interrupt["value"] for interrupt in waits]
            inputs = (
                Command(resume={interrupt["id"]: answers(interrupt["value"]) for interrupt in waits}) if waits else None
            )
        else:
            course.ended = "asks on"
    except Exception as error:  # noqa: BLE001  (the course of a run that fails ends there)
        course.ended = type(error).__name__
    course.tasks = tasks.count
    if course.ended == "finished":
        course.last = graph.get_state(settings).values
    return course


def in_agentnb(session: Session, answers: Any = None, most: int = MOST_TASKS, questions: int | None = None) -> Course:
    """Step a run here for at most `most` nodes and, if not None, `questions`.

    Every state is kept, by the number of nodes that have run.
    """
    course, tasks = Course(), 0
    course.states.append((0, dict(session.board)))
    while tasks < most and session.position < STEPS and session.status != "failed":
        before = session.position
        session.step()
        while session.status == "waiting" and (questions is None or len(course.asked) < questions):
            question = session.pending[0].arguments["prompt"]
            course.asked.append(question)
            session.answer(answers(question))
        if session.position == before:
            break
        step = session.trace.steps[-1]
        if step.phase in ("run", "leave") and step.node_id != "__start__" and step.depth == 0 and step.status == "ok":
            tasks += 1
        if len(session.stack) == 1 and step.status == "ok":  # inside a subgraph the board is that of the inner graph
            course.states.append((tasks, dict(session.board)))
    course.ended = session.status if session.error is None else get_error_class(session)
    return course


def find_untracked_keys(session: Session) -> tuple[str, ...]:
    """Return the keys that are not part of LangGraph's checkpoints, from which its last state is read."""
    region = session.recipe.regions.get("root")
    return () if region is None else region.untracked


def get_error_class(session: Session) -> str:
    """Return the name of the exception with which a session's last step has failed."""
    return str(session.trace.frames.steps.error.iloc[-1]).partition(":")[0]


def compare(
    graph: Any,
    inputs: Any,
    limit: int = 12,
    answers: Any = None,
    *,
    is_async: bool = False,
    leaves: bool = False,
    shape: Any = dict,
    ours: Any = None,
    **config: Any,
) -> tuple[Course, Session]:
    """Assert that both run alike, by what `shape` makes of their states; return LangGraph's course and our session.

    `ours` is the graph that runs here, if it is another one: with a cache of its own.

    If a node `leaves` its graph, those of its superstep that have not run do not run here; in LangGraph they may have
    asked before, and their answers and writes are dropped.
    """
    theirs = in_langgraph(graph, inputs, limit, answers, is_async, **config)
    session = Session(load_graph(ours or graph, config={"recursion_limit": limit}), inputs)
    is_cut = theirs.ended in UNENDED
    max_tasks = max((tasks for tasks, _ in theirs.states), default=0) if is_cut else MOST_TASKS
    our_run = in_agentnb(session, answers, max_tasks, len(theirs.asked) if is_cut else None)
    reached = dict(our_run.states)
    for tasks, state in theirs.states:
        assert tasks in reached, (tasks, theirs.ended, our_run.ended)
        assert shape(reached[tasks]) == shape(state), (tasks, reached[tasks], state)
    if theirs.ended == "finished":
        assert our_run.ended == "finished", session.error
        tracked = {key: value for key, value in session.board.items() if key not in find_untracked_keys(session)}
        assert shape(tracked) == shape(theirs.last), (tracked, theirs.last)
        our_questions, known = Counter(map(str, our_run.asked)), Counter(map(str, theirs.asked))
        assert our_questions <= known if leaves else our_questions == known
    elif not is_cut:
        # Here a second value for a key fails its node; there the superstep fails when all of its nodes have ended, or
        # when one asks. Of several nodes that fail in a superstep, there the first one by the clock counts.
        has_siblings = theirs.tasks - max((tasks for tasks, _ in theirs.states), default=0) > 1
        runs_on = has_siblings and session.position >= STEPS
        assert session.status == "failed" or runs_on, (theirs.ended, our_run.ended)
        assert our_run.ended == theirs.ended or has_siblings, (theirs.ended, session.error)
        # Of the tasks after the last state that was streamed, there is only the one that failed; at the limit, there is
        # none, unless a superstep without an output came last.
        unseen_tasks = theirs.tasks - theirs.states[-1][0] if theirs.states else -1
        if len(session.stack) == 1 and unseen_tasks == (theirs.ended != "GraphRecursionError"):
            board = dict(session.board)
            assert shape(board) == shape(theirs.states[-1][1]), (theirs.ended, board, theirs.states[-1][1])
    return theirs, session
