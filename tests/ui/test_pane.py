from __future__ import annotations

import json

import pytest

import agentnb as nb
from agentnb.secrets import MASK
from agentnb.ui.details.cells import Cells
from agentnb.ui.details.pane import describe_node_pane, describe_step_pane, find_last_step, get_whole_cell
from agentnb.ui.page_queries import run_query
from tests.samples.installed import NAMES
from tests.ui import ticket_recipe

MOST = 60_000  # characters of JSON that one look may send


def whole_run(name):
    """Return a session of a sample that has come to its end."""
    answers = ["tea", "pay"] if name == "cafe" else ["Say it shorter.", "approve", "yes", "yes", "yes"]
    session = nb.Session(nb.samples(name), answers=answers)
    if name == "team":
        session.emit("goal.created", {"goal": "How swifts live"})
    if name == "incident":
        for _ in range(2):
            session.emit("alert.raised", {"service": "mail", "text": "slow answers"})
    session.run()
    for _ in range(len(session.pending)):
        session.approve()
        session.run()
    assert session.status in ("finished", "idle")
    return session


@pytest.mark.parametrize("name", NAMES)
def test_each_node_and_each_step_of_each_sample_can_be_described(name):
    session = whole_run(name)
    panes = [describe_node_pane(session, node) for node in session.recipe.nodes]
    panes += [describe_step_pane(session, number) for number in range(1, len(session.trace) + 1)]
    for one in panes:
        assert len(json.dumps(one)) < MOST
        assert json.loads(json.dumps(one)) == one
    steps = [one["step"] for one in panes[len(session.recipe.nodes) :]]
    assert [step["step"] for step in steps] == list(range(1, len(session.trace) + 1))
    assert [step["node"] for step in steps] == [step.node_id for step in session.trace.steps]
    calls = session.trace.frames.calls
    assert sum(len(step["calls"]) for step in steps) == len(calls)


def test_a_query_changes_nothing():
    session = ticket_recipe.session()
    session.step()
    before = (session.position, dict(session.board), session.frontier, len(session.trace))
    describe_node_pane(session, "tell")
    describe_step_pane(session, 1)
    assert (session.position, dict(session.board), session.frontier, len(session.trace)) == before


def test_a_node_has_its_last_step_up_to_the_position():
    session = nb.Session(nb.samples("refine"))
    session.run()
    steps = [step.step for step in session.trace.steps if step.node_id == "measure"]
    assert len(steps) > 2
    assert describe_node_pane(session, "measure")["step"]["step"] == steps[-1] == find_last_step(session, "measure")
    session.goto(steps[1])
    node_pane = describe_node_pane(session, "measure")
    assert (node_pane["step"]["step"], node_pane["before"], node_pane["after"], node_pane["runs"]) == (
        steps[1],
        steps[0],
        steps[2],
        2,
    )
    session.goto(1)
    assert (describe_node_pane(session, "measure")["step"], find_last_step(session, "measure")) == (None, None)


def test_later_steps_can_be_described_too():
    session = ticket_recipe.session("hello")
    session.run()
    session.goto(1)
    assert describe_step_pane(session, 2)["step"]["node"] == "refuse"


@pytest.mark.parametrize("number", [0, -1, 99, "1", None, True])
def test_a_missing_step_has_no_details(number):
    session = ticket_recipe.session()
    session.step()
    step_pane = describe_step_pane(session, number)
    assert (step_pane["node"], step_pane["step"]) == (None, None)


def test_a_missing_node_is_reported_as_missing():
    assert describe_node_pane(ticket_recipe.session(), "nobody")["node"] == {"id": "nobody", "missing": True}


def test_truncated_values_are_complete_on_demand():
    session = ticket_recipe.session("money " * 300 + "back")
    session.step()
    (cell,) = describe_step_pane(session, 1)["step"]["inputs"]
    assert (cell["cut"], len(cell["text"]) < 1000) == (True, True)
    whole_cell = get_whole_cell(session, ["step", 1, cell["at"]])
    assert (whole_cell["text"], whole_cell["cut"]) == ("money " * 300 + "back", False)
    assert get_whole_cell(session, ["node", "classify", cell["at"]]) == whole_cell
    assert get_whole_cell(session, ["step", 1, "nowhere"]) == {}


def test_secrets_are_masked_in_truncated_and_complete_values():
    key = "sk-live-0815-4711"

    def sign(api_key):
        return {"signed": f"by {api_key}", "token": "t0p-s3cret-value"}

    import networkx as nx

    graph = nx.DiGraph(name="keys")
    graph.add_node("sign", function=sign, inputs={"api_key": "api_key"}, writes=["signed", "token"])
    session = nb.Session(nb.load(graph), {"api_key": key})
    session.run()
    session.edit({"api_key": "sk-live-0000-9999"})
    panes = [describe_step_pane(session, 1), describe_node_pane(session, "sign")]
    panes += [get_whole_cell(session, ["step", 1, cell["at"]]) for cell in panes[0]["step"]["inputs"]]
    text = json.dumps(panes)
    for secret in (key, "t0p-s3cret-value", "sk-live-0000-9999"):
        assert secret not in text
    assert MASK in text


def test_details_of_a_large_step_are_bounded():
    session = ticket_recipe.session()
    session.edit({f"key{number}": "x" * 5000 for number in range(300)})
    session.step()
    session.edit({f"key{number}": ["y" * 100] * 1000 for number in range(300)})
    step_pane = describe_step_pane(session, 1)
    assert len(json.dumps(step_pane)) < MOST
    assert step_pane["step"]["outputs"][-1]["key"] == "and 261 more"


def test_the_page_requests_details_by_name():
    session = ticket_recipe.session()
    session.step()
    assert run_query(session, "step", 1) == describe_step_pane(session, 1)
    assert run_query(session, "node", "tell") == describe_node_pane(session, "tell")
    assert run_query(session, "whole", ["step", 1, "inputs/0"])["text"] == "money back"


def test_cells_of_one_query_have_unique_names():
    session = whole_run("research")
    for number in range(1, len(session.trace) + 1):
        names = []

        class Named(Cells):
            def _make_cell(self, at, *rest, names=names):
                names.append(at)
                return super()._make_cell(at, *rest)

        describe_step_pane(session, number, Named())
        assert len(names) == len(set(names))
