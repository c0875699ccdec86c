from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.errors import AgentNbError, BoardError
from agentnb.magics.verbs import VERBS
from agentnb.ui.commands import COMMANDS, list_commands, run_command
from agentnb.ui.view_model import list_abilities
from tests.session.shape_sessions import asking, to_where_it_waits
from tests.ui import ticket_recipe


def nested():
    """Return a session whose loop and subgraph have been entered: its next node is in the innermost frame."""
    session = nb.Session(nb.samples("research"))
    session.step(3)
    return session


def stops(session):
    return [(row.node, row.enabled) for row in session.breakpoints]


def test_over_and_out_work_by_frame():
    session = nb.Session(nb.samples("research"))
    session.step(2)
    depth = len(session.stack)
    run_command(session, "over")
    assert (len(session.stack), session.current) == (depth - 1, "each")
    session = nested()
    run_command(session, "out")
    assert (len(session.stack), session.current, session.position) == (1, "each", 6)


def test_into_stops_inside_and_stop_abandons_the_node():
    session = nb.Session(nb.samples("moderation"))
    for _ in range(3):
        run_command(session, "into")
    assert session.status == "in_flight"
    run_command(session, "stop")
    assert (session.status, session.current) == ("paused", "llm")


def test_run_back_goes_to_the_start_or_a_breakpoint():
    session = ticket_recipe.session("hello")
    run_command(session, "run")
    run_command(session, "stop_at", None, "refuse")
    run_command(session, "run_back")
    assert (session.position, session.current) == (1, "refuse")
    run_command(session, "run_back")
    assert session.position == 0


def test_a_breakpoint_at_a_node_is_toggled():
    session = ticket_recipe.session()
    run_command(session, "stop_at", None, "tell")
    assert stops(session) == [("tell", True)]
    run_command(session, "enable", value=False, target=1)
    assert stops(session) == [("tell", False)]
    run_command(session, "stop_at", None, "tell")
    assert stops(session) == []
    run_command(session, "stop_when", "category == 'refund'")
    assert [row.text for row in session.breakpoints] == ["category == 'refund'"]
    run_command(session, "remove", None, 2)
    assert stops(session) == []


def test_conditions_are_watched_and_unwatched():
    session = ticket_recipe.session()
    run_command(session, "watch", "ticket|length")
    assert dict(session.watches) == {"ticket|length": 10}
    run_command(session, "unwatch", None, "ticket|length")
    assert dict(session.watches) == {}


def test_an_edited_value_keeps_its_type():
    session = ticket_recipe.session()
    run_command(session, "edit", "7", "ticket")
    assert session.board["ticket"] == "7"
    run_command(session, "edit", '{"n": [1, 2]}', "decision")
    assert session.board["decision"] == {"n": [1, 2]}
    run_command(session, "edit", "{}", "decision")
    assert session.board["decision"] == {}


@pytest.mark.parametrize(("typed", "key", "code"), [("three", "decision", "U305"), ("********", "api_key", "U306")])
def test_an_invalid_edit_is_reported_and_nothing_is_written(typed, key, code):
    session = ticket_recipe.session()
    with pytest.raises(AgentNbError, match=code):
        run_command(session, "edit", typed, key)
    assert "decision" not in session.board
    assert session.board["api_key"] == ticket_recipe.KEY


def test_approvals_are_granted_and_denied():
    session = to_where_it_waits(asking("cycle", "approval"))
    run_command(session, "deny", "too dear", session.pending[0].id)
    assert session.board["said"]["reason"] == "too dear"
    session = to_where_it_waits(asking("cycle", "approval"))
    run_command(session, "approve", None, session.pending[0].id)
    assert session.board["said"]["approved"] is True


def test_only_queries_have_a_result():
    session = ticket_recipe.session()
    assert run_command(session, "query", "key", "ticket")["field"]["text"] == "money back"
    assert run_command(session, "step") is None


def test_commands_without_effect_are_disabled():
    session = nested()
    assert list_abilities(session)["out"] is True
    run_command(session, "out")
    assert list_abilities(session)["out"] is False
    needed = {row["needs"] for row in list_commands()} - {None}
    assert needed <= set(list_abilities(session))


def test_each_key_has_one_command_except_space():
    keys = [(key, name) for name, command in COMMANDS.items() for key in command.keys if key != "Space"]
    assert len(dict(keys)) == len(keys)
    assert [name for name, command in COMMANDS.items() if "Space" in command.keys] == ["run", "pause"]


def test_magics_and_buttons_have_the_same_commands():
    for name in ("over", "into", "out", "pause", "stop", "reset", "retry"):
        assert COMMANDS[name].tip in VERBS[name].description


def test_a_run_goes_to_a_node_and_at_a_speed():
    session = ticket_recipe.session("hello")
    run_command(session, "run_to", None, "tell")
    assert session.current == "tell"
    run_command(session, "speed", 3)
    assert session.speed == 3


def test_a_rejected_edit_is_explained():
    session = ticket_recipe.session()
    with pytest.raises((BoardError, AgentNbError)):
        run_command(session, "edit", "1", "ticket.text.")


def test_a_breakpoint_at_an_event_type_is_toggled():
    session = nb.Session(nb.samples("team"))
    run_command(session, "stop_at", None, "event: task.done")
    assert [(row.event, row.node) for row in session.breakpoints] == [("task.done", None)]
    run_command(session, "stop_at", None, "event: task.done")
    assert list(session.breakpoints) == []
