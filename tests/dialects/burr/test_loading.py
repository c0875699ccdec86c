"""Loading an application of Burr: what the recipe shows, its halts, and what is not imported or called."""

from __future__ import annotations

import subprocess
import sys

import pytest
from burr.core import ApplicationBuilder, State, action, expr
from burr.lifecycle import PreRunStepHook

from agentnb import Session
from agentnb.dialects.burr.api import load_application
from agentnb.errors import RecipeError
from agentnb.load import load


@action(reads=["n"], writes=["n"], tags=["counts"])
def count(state: State, by: int = 1) -> State:
    return state.update(n=state["n"] + by)


@action(reads=["n"], writes=["out"], tags=["ends"])
def end(state: State) -> State:
    return state.update(out=str(state["n"]))


class Loud(PreRunStepHook):
    """A hook that must not be called."""

    def pre_run_step(self, **_: object) -> None:
        raise AssertionError("called")


def application(*hooks):
    builder = ApplicationBuilder().with_actions(count, end).with_hooks(*hooks).with_state(n=0)
    return (
        builder.with_transitions(("count", "count", expr("n < 3")), ("count", "end")).with_entrypoint("count").build()
    )


def test_the_recipe_shows_actions_transitions_and_inputs():
    recipe = load(application())
    assert {name: (node.reads, node.writes) for name, node in recipe.nodes.items()} == {
        "count": (("n",), ("n",)),
        "end": (("n",), ("out",)),
    }
    assert [(edge.source, edge.target, edge.condition) for edge in recipe.edges] == [
        ("count", "count", "n < 3"),
        ("count", "end", ""),
    ]
    assert list(recipe.inputs) == ["by"]
    assert recipe.check() == []


def test_hooks_are_not_called_and_the_recipe_says_so():
    recipe = load(application(Loud()))
    assert [(problem.code, problem.severity) for problem in recipe.check()] == [("L541", "warning")]
    session = Session(recipe)
    session.run()
    assert session.board["out"] == "3"


def test_halts_are_breakpoints():
    session = Session(load_application(application(), halt_before=["end"], halt_after=["@tag:ends"]))
    session.run()
    assert (session.position, session.status) == (3, "paused")
    session.run()
    assert session.position == 4


def test_an_unknown_halt_is_a_problem():
    with pytest.raises(RecipeError) as caught:
        load_application(application(), halt_before=["ende", "@tag:none"])
    assert [problem.code for problem in caught.value.problems] == ["L542", "L542"]
    assert "'end'" in caught.value.problems[0].do


def test_nothing_of_burr_is_imported_without_it():
    code = """if True:
        import sys
        import agentnb as nb
        nb.load(nb.samples("triage"))
        print([name for name in sys.modules if name.partition(".")[0] == "burr"])
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
