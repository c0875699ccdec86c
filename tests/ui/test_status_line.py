from __future__ import annotations

import networkx as nx

import agentnb as nb
from agentnb.ui.status_line import format_status_line
from tests.ui import ticket_recipe


def test_an_edit_is_reported_after_its_step():
    session = ticket_recipe.session("hello")
    session.edit({"ticket": "hello you"})
    assert format_status_line(session) == "ticket = 'hello you' was set manually. At the start: 'classify' is first."
    session.step()
    session.edit({"category": "odd"})
    assert format_status_line(session) == (
        "Step 1: 'classify' wrote category = 'other'. Then category = 'odd' was set manually. Next: 'refuse'."
    )


def test_the_last_of_many_interventions_are_shown():
    session = ticket_recipe.session("hello")
    session.edit({"a": 1, "b": 2, "c": 3, "d": 4})
    assert format_status_line(session).startswith(
        "2 more interventions; c = 3 was set manually; d = 4 was set manually. "
    )


def test_set_next_and_skip_are_shown():
    session = ticket_recipe.session("hello")
    session.step()
    session.set_next("tell")
    assert format_status_line(session).endswith("Then 'tell' was made the next node. Next: 'tell'.")
    session.skip()
    assert format_status_line(session) == "Step 2: 'tell' was skipped manually. The run has finished."


def test_an_answer_is_part_of_its_step():
    session = ticket_recipe.session()
    session.step(2)
    session.answer("yes")
    assert format_status_line(session) == "Step 2: 'ask' was answered and wrote decision = 'yes'. Next: 'refund'."


def test_the_breakpoint_that_stopped_the_run_is_shown():
    session = ticket_recipe.session("hello")
    session.breakpoints.add(node="tell")
    session.run()
    assert format_status_line(session).endswith("Then stopped by the breakpoint before 'tell'. Next: 'tell'.")


def test_goto_reports_the_number_of_later_steps():
    session = ticket_recipe.session("hello")
    session.run()
    session.goto(1)
    assert (
        format_status_line(session)
        == "Step 1: 'classify' wrote category = 'other'. 2 later steps are kept. Next: 'refuse'."
    )


def test_a_fork_names_its_parent_at_its_start_only():
    session = ticket_recipe.session("hello")
    session.step()
    fork = session.fork(name="bold")
    assert format_status_line(fork) == (
        "Step 1: 'classify' wrote category = 'other'. From here on this is a fork of 'triage'. Next: 'refuse'."
    )
    fork.step()
    assert "fork" not in format_status_line(fork)
    assert "fork" not in format_status_line(session)


def test_phases_of_a_composite_node_are_shown():
    session = nb.Session(nb.samples("refine"))
    lines = []
    while session.step() is not None and len(lines) < 14:
        lines.append((session.trace.steps[session.position - 1].phase, format_status_line(session)))
    first = dict(reversed(lines))
    assert "was entered" in first["enter"]
    assert "repeats" in first["again"]
    assert "was left" in first["leave"]


def test_an_external_event_is_reported_without_its_board_changes():
    session = nb.Session(nb.samples("incident"))
    session.emit("alert.raised", {"text": "disk full"})
    assert "'alert.raised' was emitted from outside" in format_status_line(session)
    assert "manually" not in format_status_line(session)


def test_a_handled_failure_is_described():
    session = nb.Session(nb.samples("search"))
    session.step(5)
    assert format_status_line(session) == "Step 5: 'ask' failed: ConnectionError: nobody answers. Next: 'think'."


def test_an_unhandled_failure_is_described_by_its_card():
    session = ticket_recipe.session(answers=["explode"])
    session.run()
    assert format_status_line(session) == "Step 4: 'tell' failed. Step tries it again."


def test_a_change_in_place_is_shown():
    def sort(board):
        board["items"].sort()
        return {"done": True}

    graph = nx.DiGraph(name="sorts")
    graph.add_node("sort", function=sort)
    session = nb.Session(nb.load(graph), {"items": [3, 1, 2]})
    session.step()
    assert (
        format_status_line(session)
        == "Step 1: 'sort' changed items in place and wrote done = True. The run has finished."
    )
