from __future__ import annotations

import json
from dataclasses import replace

import pytest

import agentnb as nb
from agentnb.clock import FrozenClock
from agentnb.errors import Problem
from agentnb.recipe.model import Node, Recipe, Requirement
from agentnb.session import Session
from agentnb.session.reopen import reopen_run
from agentnb.store import MemoryLog
from agentnb.ui.board_view import ROWS
from agentnb.ui.static_html import render_still
from agentnb.ui.view_model import SOON, describe_positions, format_status_line, list_abilities, make_screen
from tests.property.interrupted_runs import cut
from tests.session.shape_sessions import asking, session_of, to_where_it_waits
from tests.ui import ticket_recipe


def make_state(session, *problems):
    return make_screen(session, session.recipe.draw(board=False), problems)


def able(session):
    return {verb for verb, can in list_abilities(session).items() if can}


def marks(state, node):
    return state["picture"]["nodes"].get(node, {"classes": []})["classes"]


def row(state, key):
    return next(row for row in state["board"] if row[0] == key)


def test_at_the_start_the_inputs_are_on_the_board_and_the_first_node_is_current():
    state = make_state(ticket_recipe.session())
    assert (state["status"], state["position"], state["length"], state["current"]) == ("ready", 0, 0, "classify")
    assert row(state, "ticket") == ["ticket", "'money back'", [], "str", [0, ""]]
    assert row(state, "decision") == ["decision", None, [], "", None]
    assert marks(state, "classify") == ["current"]
    assert state["sentence"] == "At the start: 'classify' is first."


def test_a_step_marks_and_describes_its_reads_and_writes():
    session = ticket_recipe.session()
    session.step()
    state = make_state(session)
    assert row(state, "category") == ["category", "'refund'", ["written", "read"], "str", [1, "classify"]]
    assert row(state, "ticket")[2] == ["read"]
    assert marks(state, "ask") == ["current"]
    assert "visited" in marks(state, "classify")
    assert state["sentence"] == "Step 1: 'classify' wrote category = 'refund'. Next: 'ask'."


def test_a_secret_is_masked_in_the_state():
    session = ticket_recipe.session()
    session.step()
    assert ticket_recipe.KEY not in json.dumps(make_state(session))


def test_the_state_is_json():
    session = ticket_recipe.session()
    session.edit({"odd": {3: (1, b"x"), "none": None}, "deep": {"a": {"b": float("inf")}}})
    state = make_state(session)
    assert json.loads(json.dumps(state)) == state


def test_a_value_that_cannot_be_formatted_is_marked():
    class Shy:
        def __repr__(self):
            raise RuntimeError("no")

    session = ticket_recipe.session()
    with pytest.warns(UserWarning, match="opaque|reference"):
        session.edit({"shy": Shy()})
    assert "Shy" in row(make_state(session), "shy")[1]


def test_after_back_the_later_steps_are_kept_and_their_writes_undone():
    session = ticket_recipe.session()
    session.step()
    session.back()
    state = make_state(session)
    assert (state["position"], state["length"]) == (0, 1)
    assert row(state, "category")[1] is None
    assert state["sentence"] == "1 later step is kept. At the start: 'classify' is first."
    assert able(session) == {
        "step",
        "into",
        "over",
        "run",
        "run_to",
        "goto",
        "reset",
        "edit",
        "set_next",
        "fork",
        "switch",
    }


def test_a_question_has_the_options_of_the_recipe():
    session = ticket_recipe.session()
    session.run()
    state = make_state(session)
    (pending,) = state["pending"]
    assert state["status"] == "waiting"
    assert (pending["node"], pending["kind"], pending["options"]) == ("ask", "answer", ["yes", "no", "explode"])
    assert pending["prompt"] == "Refund <i>this</i>?"
    assert "waiting" in marks(state, "ask")
    assert state["sentence"].endswith("'ask' waits for a person.")
    assert able(session) == {
        "back",
        "run_back",
        "goto",
        "stop",
        "reset",
        "answer",
        "edit",
        "set_next",
        "fork",
        "switch",
    }


def human(**params):
    return Recipe("t", "test", {"ask": Node("ask", "human", params=params)}, (), ("ask",))


def test_a_question_shows_role_and_remaining_time():
    session = Session(human(prompt="Well?", role="<b>reviewer</b>", timeout=1_000.0), clock=FrozenClock())
    session.run()
    screened = make_state(session)
    (pending,) = screened["pending"]
    assert (pending["role"], pending["seconds_left"]) == ("<b>reviewer</b>", 1_000.0)
    assert "asks for role &lt;b&gt;reviewer&lt;/b&gt;: Well?" in render_still(screened, "")


def test_a_question_without_role_or_limit_shows_neither():
    session = Session(human(prompt="Well?"))
    session.run()
    (pending,) = make_state(session)["pending"]
    assert (pending["role"], pending["seconds_left"]) == ("", None)


def test_the_thought_of_a_step_is_shown():
    router = Node("choose", "router", params={"input_key": ("a",), "routes": {"1": ""}, "default": ""})
    session = Session(Recipe("t", "test", {"choose": router}, (), ("choose",)), {"a": 1})
    session.step()
    assert make_state(session)["sentence"].startswith("Step 1: 'choose': Router decision based on a=1: Go to the end. ")


def test_an_unmet_requirement_is_a_card_with_the_remedy():
    asks = Requirement(lambda board: "key" in board, "give me a key")
    session = Session(replace(human(prompt="Well?"), requires=(asks,)))
    state = make_state(session)
    assert state["sentence"] == "A requirement of the recipe is not met. Edit the board."
    assert [problem["what"] for problem in state["problems"]] == ["give me a key"]


def test_a_failure_is_a_complete_problem():
    session = ticket_recipe.session()
    session.run()
    session.answer("explode")
    session.run()
    state = make_state(session)
    (problem,) = state["problems"]
    assert state["status"] == "failed"
    assert "failed" in marks(state, "tell")
    assert "the till is empty" in problem["what"]
    assert all(problem[answer] for answer in ("code", "what", "where", "why", "do"))
    assert problem["do"] == "fix the node or edit the board, then press Try again; or press Skip or Back"
    assert "retry()" in session.error.do
    assert "step" in able(session)
    assert state["sentence"].endswith("'tell' failed. Step tries it again.")


def test_the_error_of_a_background_run_is_shown():
    session = ticket_recipe.session()
    session._parts.state.background_error = MemoryError()
    (problem,) = make_state(session)["problems"]
    assert problem["code"] == "U303"
    assert "MemoryError" in problem["what"]


def test_problems_of_the_last_command_are_shown():
    problem = Problem("U302", "what", "where", "why", "do")
    assert [problem["code"] for problem in make_state(ticket_recipe.session(), problem)["problems"]] == ["U302"]


def test_a_running_step_can_be_stopped_but_not_repeated():
    session = ticket_recipe.session()
    state = make_screen(session, session.recipe.draw(board=False), at_work=True)
    assert (state["status"], state["sentence"]) == ("running", "'classify' is at work.")
    assert state["can"] == ["stop", "reset", "switch"]


def test_at_the_end_only_backward_commands_are_enabled():
    session = ticket_recipe.session("hello")
    session.run()
    assert format_status_line(session) == "Step 3: 'tell' wrote sent = True. The run has finished."
    assert able(session) == {"back", "run_back", "goto", "reset", "edit", "set_next", "fork", "switch"}


def test_an_exhausted_budget_is_shown():
    session = ticket_recipe.session("hello", budget={"max_steps": 1})
    session.run()
    assert format_status_line(session).endswith("The budget is used up.")
    assert not able(session) & {"step", "run", "pause"}


def test_a_key_that_the_last_step_deleted_keeps_its_row_for_that_step():
    from agentnb.board.values import ABSENT

    session = ticket_recipe.session("hello")
    session.edit({"extra": 1})
    session.step()
    session.edit({"extra": ABSENT})
    assert row(make_state(session), "extra") == ["extra", None, ["written"], "", None, "1"]


def test_a_large_board_is_truncated():
    session = ticket_recipe.session()
    session.edit({f"key{number}": number for number in range(ROWS + 50)})
    state = make_state(session)
    assert len(state["board"]) == ROWS
    assert state["more"] > 0


def test_a_long_value_is_truncated():
    session = ticket_recipe.session("x" * 5000)
    assert len(row(make_state(session), "ticket")[1]) <= 400


def test_an_approval_has_the_options_yes_and_no():
    session = to_where_it_waits(asking("cycle", "approval"))
    (pending,) = make_state(session)["pending"]
    assert (pending["kind"], pending["prompt"], pending["options"]) == ("approval", "may it", ["yes", "no"])


def test_a_paused_node_reports_where():
    session = session_of("reactive")
    session.step_into()
    assert make_state(session)["sentence"] == "Held at event evt_003 'greeting.done' of 'greet'."


def test_a_run_without_its_recipe_is_marked_read_only():
    log = MemoryLog()
    session = asking("cycle", "human")
    session._parts.persistence.record_new_run(log, "step")
    to_where_it_waits(session)
    session.close()
    closed, opened = session, nb.open(log)
    for each in (closed, opened):
        state = make_state(each)
        assert (state["chips"], able(each) - {"back", "run_back", "goto", "switch"}) == (["read-only"], set())
        assert ", read-only." in render_still(state, "")
    assert make_state(reopen_run(log, log.run(), session._parts.run.plan))["chips"] == []


def test_an_unanswered_call_of_another_process_is_reported():
    log, cuts = MemoryLog(), MemoryLog()
    session = asking("cycle", "tool")
    session._parts.persistence.record_new_run(log, "step")
    session.step(2)
    at = next(entry.seq for entry in log.entries(session.run_id) if '"out"' in entry.body)
    cut(log, session.run_id, at, cuts)
    for reopened in (nb.open(cuts), reopen_run(cuts, cuts.run(), session._parts.run.plan)):
        state = make_state(reopened)
        (pending,) = state["pending"]
        assert pending["kind"] == "call"
        assert state["sentence"].endswith("'may it' of 'again' went out, and its answer never came.")
        assert "asks" not in render_still(state, "")


def test_the_stack_and_the_reason_for_the_next_node_are_shown():
    session = nb.Session(nb.samples("research"))
    session.step(8)
    positions = describe_positions(session)
    assert [(frame["node"], frame["round"]) for frame in positions["frames"]] == [(None, 1), ("each", 2), ("answer", 1)]
    assert positions["next"] == [{"node": "archive", "why": "entry of 'look_up'", "turn": "start", "branch": None}]


def test_all_waiting_branches_are_reported():
    session = session_of("branches")
    session.step()
    positions = describe_positions(session)
    assert [(one["node"], one["branch"]) for one in positions["next"]] == [("first", 0), ("second", 1)]
    assert positions["frames"][-1]["branch"] == 0


def test_a_long_queue_is_truncated():
    graph = nb.load(wide(SOON + 5))
    session = nb.Session(graph)
    session.step()
    assert (len(describe_positions(session)["next"]), describe_positions(session)["later"]) == (SOON, 5)


def wide(width):
    import networkx as nx

    graph = nx.MultiDiGraph(name="wide", entry="start")
    graph.add_node("start", function=dict)
    for number in range(width):
        graph.add_node(f"n{number}", function=dict)
        graph.add_edge("start", f"n{number}", kind="parallel")
    return graph


def test_breakpoints_and_watches_have_hits_and_values():
    session = ticket_recipe.session("hello")
    session.breakpoints.add(node="tell")
    session.breakpoints.add(when="missing.deep > 1").enabled = False
    session.watch("category")
    session.run()
    positions = describe_positions(session)
    assert [(row["text"], row["enabled"], row["hits"], row["stopped_here"]) for row in positions["breakpoints"]] == [
        ("before 'tell'", True, 1, True),
        ("when missing.deep > 1", False, 0, False),
    ]
    assert positions["watches"] == [["category", "'other'"]]
    assert json.loads(json.dumps(positions)) == positions


def test_a_watched_secret_is_masked():
    session = ticket_recipe.session()
    session.watch("api_key")
    assert ticket_recipe.KEY not in json.dumps(describe_positions(session))
