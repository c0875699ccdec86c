"""Runs of shapes whose leaf does several things, one of which a person may hold, change and answer."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from agentnb.board.values import thaw
from agentnb.errors import BoardError, ExecutionError
from agentnb.session import Session
from agentnb.session.reopen import reopen_run
from agentnb.store import MemoryLog
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import Shape, shape_of
from tests.session.shape_sessions import LEAF, session_of


def held_shape(name: str, doing: list[str]) -> Shape:
    """Return a shape whose leaf does all this, and looks at the board and the events before and after each of it."""
    shape, leaf = shape_of(name), LEAF[name]

    def look(work: Any) -> list[Any]:
        return [work.board.get("told"), work.board.get("other"), len(work.events)]

    def inner(does: Any) -> Any:
        async def do(work: Any) -> Any:
            seen: list[Any] = [look(work)]
            for n, operation in enumerate(doing):
                if operation == "emit":
                    seen.append(work.emit("note", {"n": n}).id)
                else:
                    target = (lambda prompt: f"about {prompt}") if operation == "tool" else None
                    prompt = f"{n} {work.board.get('told')}"
                    answer = await work.call(Effect(operation, f"ask {n}", {"prompt": prompt}, target=target))
                    seen.append(answer.content if operation == "llm" else thaw(answer))
                seen.append(look(work))
            return {**does(work), f"seen {leaf}": seen}

        return do

    doers = {
        leaf: inner,
        "second": lambda does: lambda work: {**does(work), "seen": look(work)},
        "right": lambda _: lambda work: {"out": look(work)},  # else it waits for ever
    }
    nodes = [
        replace(node, params={**node.params, "do": doers[node.id](node.params["do"])}) if node.id in doers else node
        for node in shape.nodes
    ]
    return replace(shape, nodes=nodes, llm=shape.llm or (lambda request: request.prompt.upper()))


def make_session(name: str, doing: list[str], log: MemoryLog | None = None) -> Session:
    """Return a session of such a shape, kept in a log where one is given."""
    session = session_of(name, held_shape(name, doing))
    if log is not None:
        session._parts.state._run_id = "r"
        session._parts.persistence.record_new_run(log, "step")
    return session


def done(session: Session, verb: str, word: Any) -> Session:
    """Do one act; one that is refused here does nothing."""
    with contextlib.suppress(ExecutionError, BoardError):
        waiting = session.pending
        match verb:
            case "go":
                getattr(session, word)()
            case "arguments" if waiting and waiting[0].kind == "call":
                session.change(waiting[0].id, arguments=word)
            case "answer" if waiting and waiting[0].kind == "call":
                session.change(waiting[0].id, answer=word)
            case "answer" if waiting:
                session.answer(word)
            case "edit":
                session.edit(word)
            case "emit":
                session.emit(word, {"by": "a person"})
            case "branch off":
                session.fork()
                session.edit({"other": word})
            case "stop" | "fork" | "back":
                getattr(session, verb)()
            case "reopen" if session._parts.state.log is not None:
                session.close()
                log: Any = session._parts.state.log
                return reopen_run(log, log.run("r"), session._parts.run.plan)
    return session


def ended(session: Session, most: int = 60) -> Session:
    """Go on to the end; whoever is asked is answered."""
    while session.position < most:
        if session.pending:
            done(session, "answer", "yes")
        elif session.status == "failed" or (session.step() is None and session.status not in ("in_flight", "waiting")):
            break
        if session.status == "in_flight":
            session.step()
    return session


def finds_nothing(session: Session) -> None:
    for start in sorted({0, session.position // 2, session.position}):
        for strict in ("path", "values", "reads"):
            report = session.replay(start, strict=strict)
            assert (report.divergences, report.unsure) == ((), ()), repr(report)
