from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import networkx as nx
import pytest

import agentnb as nb
from agentnb.errors import AgentNbError, ExecutionError
from agentnb.recipe.model import Requirement
from agentnb.ui.actions import describe_limit
from agentnb.ui.command_queue import CommandQueue, Request
from agentnb.ui.commands import run_command
from agentnb.ui.details import pane
from agentnb.ui.page_queries import run_query
from agentnb.ui.status_line import format_status_line
from agentnb.ui.view_model import list_abilities
from tests.ui import ticket_recipe

MEANS = ("emit", "retry", "skip", "set_next", "set_budget")


def code_of(caught):
    return caught.value.problems[0].code


def able(session):
    can = list_abilities(session)
    return {verb for verb in MEANS if can[verb]}


def failed():
    """Return a session whose last node has failed: what it was told makes it raise."""
    session = ticket_recipe.session("hello")
    session.run(until="tell")
    session.edit({"reply": "refund: explode"})
    session.run()
    return session


def counting(**budget):
    graph = nx.MultiDiGraph(name="count", entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_edge("add", "add", when={"<": [{"var": "n"}, 10]})
    return nb.Session(nb.load(graph), {"n": 0}, budget=budget)


def test_possible_actions_are_reported_if_they_are_possible():
    assert able(ticket_recipe.session()) == {"set_next"}
    assert able(failed()) == {"retry", "skip", "set_next"}
    assert able(nb.Session(nb.samples("team"))) == {"emit", "set_next"}
    spent = counting(max_steps=3)
    spent.run()
    assert able(spent) == {"set_next", "set_budget"}


def test_an_event_is_emitted_and_the_idle_run_has_work_to_do():
    session = nb.Session(nb.samples("team"))
    assert format_status_line(session).endswith("Idle: nothing is scheduled. Emit an event to continue.")
    run_command(session, "emit", '{"goal": "Tell of swifts."}', "goal.created")
    assert (session.status, session.current) == ("ready", "plan")
    assert session.events[-1].payload == {"goal": "Tell of swifts."}
    run_command(session, "run")
    assert session.status == "idle"


def test_an_event_may_lack_a_payload_but_not_a_type():
    session = nb.Session(nb.samples("team"))
    run_command(session, "emit", "", "weather.changed")
    assert (session.events[-1].type, session.events[-1].payload) == ("weather.changed", None)
    for typed, type_, code in (("{}", "  ", "U323"), ("{goal: 1}", "goal.created", "U305")):
        with pytest.raises(AgentNbError) as caught:
            run_command(session, "emit", typed, type_)
        assert code_of(caught) == code
    assert len(session.events) == 1


def test_the_latest_events_are_listed_newest_first():
    session = nb.Session(nb.samples("team"))
    session.emit("goal.created", {"goal": "Tell of swifts."})
    session.run()
    result = run_query(session, "events", None)
    assert result["types"][0] == "goal.created"
    assert [row[0] for row in result["rows"]] == [event.seq for event in reversed(session.events)][:30]
    assert result["more"] == len(session.events) - 30
    session.goto(0)
    assert [row[2:] for row in run_query(session, "events", None)["rows"]] == [["goal.created", "user", "", None, 0]]


def test_a_secret_in_an_event_is_masked():
    session = nb.Session(nb.samples("team"))
    run_command(session, "emit", '{"api_key": "k-74-55-09"}', "goal.created")
    run_command(session, "emit", "null", "k-74-55-09")
    assert "k-74-55-09" not in str(run_query(session, "events", None))


def test_a_failed_node_is_retried_as_a_new_step():
    session = failed()
    at = session.position
    run_command(session, "retry")
    assert (session.status, session.position) == ("failed", at + 1)
    session.edit({"reply": "fine"})
    run_command(session, "retry")
    assert (session.status, session.board["sent"]) == ("finished", True)


def test_a_failed_node_is_skipped_with_given_writes():
    session = failed()
    for typed, code in (("[1]", "U324"), ("{sent", "U305")):
        with pytest.raises(AgentNbError) as caught:
            run_command(session, "skip", typed)
        assert code_of(caught) == code
    assert session.status == "failed"
    run_command(session, "skip", '{"sent": "by hand", "note": {"why": "the till"}}')
    assert (session.status, session.board["sent"], session.board["note.why"]) == ("finished", "by hand", "the till")
    plain = failed()
    run_command(plain, "skip")
    assert (plain.status, "sent" in plain.board) == ("finished", False)


def test_required_writes_of_a_recipe_cannot_be_skipped():
    recipe = replace(ticket_recipe.recipe(), requires=(Requirement(lambda board: "order" in board, "give an order"),))
    session = nb.Session(recipe, {"ticket": "hello"}, validate_inputs=False)
    assert (session.status, session.error.code, able(session)) == ("failed", "X121", {"retry", "set_next"})
    session.edit({"order": 4711})
    run_command(session, "step")
    assert session.position == 1


def test_an_exhausted_limit_is_reported_raised_and_removed():
    session = counting(max_steps=3)
    session.run()
    assert session.status == "exhausted"
    assert describe_limit(session) == {"name": "max_steps", "value": "3", "used": "3", "more": "6"}
    with pytest.raises(AgentNbError) as caught:
        run_command(session, "set_budget", "many", "max_steps")
    assert code_of(caught) == "U305"
    with pytest.raises(ExecutionError) as refused:
        run_command(session, "set_budget", "2.5", "max_steps")
    assert code_of(refused) == "X203"
    run_command(session, "set_budget", "5", "max_steps")
    assert describe_limit(session) is None
    run_command(session, "run")
    assert (session.status, session.position) == ("exhausted", 5)
    run_command(session, "set_budget", None, "max_steps")
    run_command(session, "run")
    assert (session.status, session.board["n"]) == ("finished", 10)


def test_a_limit_of_zero_can_be_raised_too():
    assert describe_limit(counting(max_steps=0))["more"] == "1"


@pytest.mark.parametrize("name", ["research", "search", "refine", "fanout", "team"])
def test_a_node_is_offered_as_the_next_one_exactly_if_it_can_be(name):
    recipe = nb.samples(name)
    walked = nb.Session(recipe)
    if recipe.reactive is not None:
        walked.emit("goal.created", {"goal": "Tell of swifts."})
    places = 0
    while walked.step() is not None and places < 12:
        places += 1
        for node in recipe.nodes:
            if node == walked.current:
                continue
            other = walked.fork()
            offered = pane.describe_node_pane(walked, node)["node"]["settable"]
            with suppress(ExecutionError):
                run_command(other, "set_next", None, node)
            assert offered == (other.current == node), (walked.position, node)
    assert places > 4


def test_a_node_that_fails_again_does_not_block_the_event_loop():
    async def moves():
        beats = 0

        async def slow(board):
            nonlocal beats
            for _ in range(5):
                await asyncio.sleep(0)
                beats += 1
            if "fixed" not in board:
                raise ValueError("not yet")
            return {"done": True}

        graph = nx.MultiDiGraph(name="slow")
        graph.add_node("slow", function=slow)
        session = nb.Session(nb.load(graph))
        await session.astep()
        session.edit({"fixed": True})
        desk, done = CommandQueue(session, lambda: None), asyncio.Event()
        desk.ask(Request("retry", done=done.set))
        await done.wait()
        return session.status, session.board["done"], desk.problems, beats

    assert asyncio.run(moves()) == ("finished", True, (), 10)
