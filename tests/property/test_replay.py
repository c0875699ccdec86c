from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from agentnb.engine.core.plan import Plan
from agentnb.engine.replay.runner import Replay
from agentnb.errors import BoardError, ExecutionError
from agentnb.session.replay_report import ReplayReport
from agentnb.world.world import World
from tests.property.modelled_sessions import describe_session, session_of
from tests.property.node_programs import board_function, input_function
from tests.property.strategies import WITH_BOARD, WITH_INPUTS, WITH_WORK, Drawn, acts, asks, drawn, ops, share

stops = st.lists(st.tuples(st.sampled_from(["skip", "until", "break"]), share), max_size=3)
scripts = st.tuples(acts, stops, acts).map(lambda parts: [action for part in parts for action in part])


def moved(session: Any, verb: str, share: Any) -> None:
    """Do one act of a script; one that is refused does nothing."""
    names, tip = list(session.recipe.nodes), session.trace.reading().tip
    with contextlib.suppress(BoardError, ExecutionError):
        match verb:
            case "step" | "back":
                getattr(session, verb)(share)
            case "run":
                session.run(max_steps=share)
            case "until":
                session.run(until=names[share * (len(names) - 1) // 100], max_steps=20)
            case "break":
                session.breakpoints.add(names[share * (len(names) - 1) // 100])
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


@given(drawn(), scripts)
def test_a_replay_of_any_run_has_no_divergence(what, script):
    for session in played(what, script):
        state_before = describe_session(session)
        for start in {0, session.position // 2, session.position}:
            report = session.replay(start, strict="reads")
            assert (report.divergences, report.unsure) == ((), ())
        assert describe_session(session) == state_before


# ------------------------------------------------------------------------------------------------------ edited recipes


@st.composite
def versions(draw: Any) -> tuple[Drawn, Any]:
    """Draw a recipe, and a version of it with another function, condition or target."""
    shape = draw(drawn())
    recipe, nodes = shape.recipe, dict(shape.recipe.nodes)
    programs = [name for name, node in nodes.items() if "ops" in node.params]
    kinds = ["function"] * bool(programs) + ["edge"] * bool(recipe.edges)
    edges = list(recipe.edges)
    match draw(st.sampled_from(kinds)) if kinds else None:
        case "function":
            name = draw(st.sampled_from(programs))
            nodes[name] = reprogrammed(draw, nodes[name])
        case "edge":
            at = draw(st.integers(0, len(edges) - 1))
            edges[at] = redirected(draw, edges[at], nodes)
    return shape, replace(recipe, nodes=nodes, edges=tuple(edges))


def reprogrammed(draw: Any, node: Any) -> Any:
    if "function" not in node.params:
        return replace(node, params={"ops": draw(ops(WITH_WORK))})
    done = draw(ops(WITH_INPUTS if node.inputs else WITH_BOARD))
    function = input_function(done) if node.inputs else board_function(done)
    return replace(node, params={"ops": done, "function": function})


def redirected(draw: Any, edge: Any, nodes: Any) -> Any:
    if edge.kind == "route":  # its node would lead elsewhere all the same
        return edge
    if edge.kind not in ("error", "timeout") and draw(st.booleans()):
        when = draw(st.one_of(st.none(), asks))
        return replace(edge, when=when, condition=when.text if when else "")
    near = [name for name, node in nodes.items() if node.scope == nodes[edge.source].scope]
    return replace(edge, target=draw(st.sampled_from(near)))


def exactly(value: Any) -> Any:
    """Return a value so that it equals another one only where both are the same; the order of keys does not count."""
    if isinstance(value, dict):
        return "dict", sorted((repr(key), exactly(item)) for key, item in value.items())
    if hasattr(value, "items") and hasattr(value, "size"):
        value = list(value)
    if isinstance(value, list | tuple):
        return type(value).__name__, [exactly(item) for item in value]
    return repr(value)


def rows_of(session: Any) -> list[Any]:
    """Return of each step what can be seen of it: what ran, how it ended, what it wrote, where it led."""
    reading, edges = session.trace.reading(), session.trace.frames.edges
    targets: dict[int, list[Any]] = {}
    for step, target, value in zip(edges.step, edges.target, edges.value, strict=True):
        targets.setdefault(step, []).append((target, "" if value is pd.NA or value is None else repr(value)))
    results = []
    for step in session.trace.steps:
        number = step.step
        writes = [
            (reading.frame_name(scope), repr(path), op, exactly(new))
            for scope, path, op, _, new, _ in reading.writes(number)
        ]
        failure = reading.failure(number)
        failure_text = failure and (failure.type, failure.message)
        results.append(
            (
                step.node_id,
                step.phase,
                step.status,
                step.frame,
                sorted(writes, key=repr),
                targets.get(number),
                failure_text,
            )
        )
    return results


@given(versions())
def test_a_replay_with_another_version_names_the_first_differing_step(made):
    shape, recipe = made
    run, other = (session_of(version, shape.inputs, None) for version in (shape.recipe, recipe))
    run.step(25)
    other.step(run.position)
    then, now = rows_of(run), rows_of(other)
    expected = next((n for n, (one, two) in enumerate(zip(then, now, strict=False), 1) if one != two), None)
    if expected is None and len(now) < len(then):
        expected = len(now) + 1
    first = replayed(run, recipe).first_divergence
    assert (None if first is None else first.step) == expected


def replayed(run: Any, recipe: Any) -> Any:
    """Replay with a recipe that may have kinds of this suite's own."""
    plan = Plan(recipe, run._parts.run.plan.kinds, World(), run._parts.run.plan)
    replay = Replay(run._parts.run, plan=plan).execute()
    return ReplayReport(
        run.name, "values", (0, run.position), replay.compared_steps, tuple(replay.divergences), tuple(replay.unsure)
    )
