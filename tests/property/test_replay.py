from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agentnb.errors import BoardError, ExecutionError
from tests.property.recipes import Drawn, acts, drawn, share
from tests.property.runs import session_of, shown

skips = st.lists(st.tuples(st.just("skip"), share), max_size=2)
scripts = st.tuples(acts, skips, acts).map(lambda parts: [act for part in parts for act in part])


def moved(session: Any, verb: str, share: Any) -> None:
    """Do one act of a script; one that is refused does nothing."""
    names, tip = list(session.recipe.nodes), session.trace.reading().tip
    with contextlib.suppress(BoardError, ExecutionError):
        match verb:
            case "step" | "back":
                getattr(session, verb)(share)
            case "run":
                session.run(max_steps=share)
            case "goto":
                session.goto(share * tip // 100)
            case "edit":
                session.edit(share)
            case "set_next":
                session.set_next(names[share * (len(names) - 1) // 100])
            case "retry":
                session.retry()
            case "skip":
                session.skip({"a": share})


def played(what: Drawn, script: list[tuple[str, Any]]) -> list[Any]:
    """Return the sessions of a script: the one that it begins with, and its forks."""
    sessions = [session_of(what.recipe, what.inputs, what.limit)]
    at = 0
    for verb, word in script:
        if verb == "turn to":
            at = word * (len(sessions) - 1) // 100
        elif verb == "fork" and len(sessions) < 4:
            sessions.append(sessions[at].fork(word * sessions[at].trace.reading().tip // 100))
        else:
            moved(sessions[at], verb, word)
    return sessions


@settings(phases=[p for p in __import__("hypothesis").Phase if "shrink" not in p.name])
@given(drawn(), scripts)
def test_a_replay_of_any_run_finds_nothing(what, script):
    for session in played(what, script):
        stood = shown(session)
        for start in {0, session.position // 2, session.position}:
            report = session.replay(start, strict="reads")
            assert (report.divergences, report.unsure) == ((), ())
        assert shown(session) == stood
