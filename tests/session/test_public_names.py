"""What a Session shows in `dir()`, and how it and its parts are shown, pickled and refused."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import networkx as nx
import pytest

import agentnb as nb
import agentnb.session
from tests.session.small_sessions import counting, session

MOVES = {
    "step", "step_into", "step_out", "step_over", "run", "astep", "astep_into", "astep_out", "astep_over", "arun",
    "start", "wait", "pause", "stop", "speed", "back", "goto", "run_back", "arun_back", "reset",
}  # fmt: skip
PLACE = {
    "position", "current", "frontier", "stack", "cursor", "status", "stopped_by", "error", "cause", "held_at", "board",
    "events", "trace", "recipe", "name", "inputs", "run_id", "simulated",
}  # fmt: skip
INTERVENTIONS = {
    "edit", "set_next", "emit", "retry", "skip", "set_budget", "pending", "answer", "approve", "deny", "change",
}  # fmt: skip
STOPS = {"breakpoints", "watch", "watches", "subscribe"}
FORKS = {"fork", "forks", "parent", "note", "expectation_holds", "tree", "replay"}
EXPLANATIONS = {"why", "why_not", "who_wrote", "blame", "chain", "slice", "find", "counterfactuals"}
VIEWS = {"draw", "draw_objects", "controls", "to_html"}
STORE = {"save", "close", "serve_mcp"}


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_dir_shows_public_members_only():
    expected = MOVES | PLACE | INTERVENTIONS | STOPS | FORKS | EXPLANATIONS | VIEWS | STORE
    run = session(counting(), {"n": 0})
    assert public(run) == expected
    run.run()
    assert public(run.fork()) == expected


def test_every_public_method_has_a_docstring_and_calls_one_part():
    source = Path(agentnb.session.session.__file__).read_text(encoding="utf-8")
    (facade,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    assert not facade.bases
    for method in facade.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and not method.name.startswith("_"):
            setter = any(isinstance(each, ast.Attribute) for each in method.decorator_list)
            assert setter or ast.get_docstring(method), method.name
            assert len(method.body) <= 4, method.name


def test_no_part_inherits_from_another():
    parts = session(counting(), {"n": 0})._parts
    names = [name for name in dir(type(parts)) if not name.startswith("_") and name != "run"]
    kinds = [type(getattr(parts, name)) for name in names]
    assert len(kinds) > 9
    assert all(kind.__bases__ == (object,) for kind in kinds)


def test_the_parts_of_a_fork_are_created_on_demand():
    run = session(counting(), {"n": 0})
    run.run()
    fork = run.fork()
    assert set(vars(fork._parts)) == {"state", "callbacks", "_make_session"}
    assert fork.fork().parent is fork
    assert nb.Session(nb.load(counting()), {"n": 1}).parent is None


def triple(n):
    return {"n": n * 3}


def line(does):
    graph = nx.DiGraph(name="line")
    graph.add_node("a", function=does, inputs={"n": "n"})
    return nb.load(graph)


def test_recipes_traces_and_frames_move_to_another_process():
    recipe = pickle.loads(pickle.dumps(line(triple)))
    assert recipe.fingerprint == line(triple).fingerprint
    run = nb.Session(recipe, {"n": 2})
    run.run()
    assert run.board["n"] == 6
    trace = pickle.loads(pickle.dumps(run.trace))
    assert [step.outputs for step in trace.steps] == [{"n": 6}]
    assert pickle.loads(pickle.dumps((run.stack, run.cursor, run.frontier))) == (run.stack, run.cursor, run.frontier)
    for name in ("steps", "writes", "reads", "edges", "calls", "interventions", "events"):
        frame = getattr(run.trace.frames, name)
        assert pickle.loads(pickle.dumps(frame)).equals(frame)


def test_every_sample_can_be_pickled_or_reports_why_not():
    for name in ("triage",):
        recipe = nb.samples(name)
        assert pickle.loads(pickle.dumps(recipe)).fingerprint == recipe.fingerprint


def test_a_recipe_with_a_lambda_names_the_node_that_cannot_be_pickled():
    with pytest.raises(nb.RecipeError, match=r"L480.*node 'a' cannot be pickled"):
        pickle.dumps(line(lambda n: {"n": n}))


def test_printed_objects_have_one_readable_line():
    recipe = line(triple)
    run = nb.Session(recipe, {"n": 2}, budget={"max_steps": 5})
    assert repr(recipe) == "<Recipe 'line' (networkx): 1 node, 0 edges>"
    assert repr(run.stack) == "(<frame 'root'>,)"
    assert repr(run.frontier[0]) == "<next 'a': entry of the recipe>"
    assert repr(run._parts.state.limits.budget) == "Budget(max_steps=5)"
    assert repr(run.breakpoints) == "no breakpoints"
    assert repr(run.watches) == "no watches"
    run.step()
    assert repr(run.trace).startswith("<SimulationTrace of 'line': 1 step, ")
    assert repr(run.board) == "<Board: 1 key>\n  n: 6"
