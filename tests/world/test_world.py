from __future__ import annotations

import pytest

from agentnb.errors import ExecutionError, RecipeError
from agentnb.recipe.model import Node
from agentnb.world.effect import Effect
from agentnb.world.human_input import WAIT
from agentnb.world.world import World
from tests.engine.graph_shapes import Shape, leaf
from tests.session.shape_sessions import session_of
from tests.session.small_sessions import asking, graph, session


def ask_twice():
    built_graph = asking()
    built_graph.add_node("more", kind="human", output="more")
    built_graph.add_edge("after", "more")
    return built_graph


def test_a_tool_is_found_by_its_name():
    world = World(tools={"look": len, "none": None})
    node = Node("n", "tool")
    assert world.tool("look", node) is len
    with pytest.raises(RecipeError, match="did you mean 'look'") as caught:
        world.tool("lok", node)
    assert caught.value.problems[0].code == "R203"
    with pytest.raises(RecipeError, match="R203: the object passed for 'none' is a NoneType"):
        world.tool("none", node)
    with pytest.raises(RecipeError, match="R203"):
        World().tool("look", node)


def test_every_missing_tool_is_reported_at_once():
    built_graph = graph("a", "b", a="lookup", b="reply")
    with pytest.raises(RecipeError) as caught:
        session(built_graph, tools={"other": len})
    assert [problem.code for problem in caught.value.problems] == ["R203", "R203"]


def test_scripted_answers_are_a_list_in_the_order_of_questions():
    run = session(ask_twice(), answers=["yes", "no"])
    run.run()
    assert (run.status, run.board["answer"], run.board["more"]) == ("finished", "yes", "no")


def test_scripted_answers_are_a_mapping_by_node_to_one_value_or_to_a_list():
    run = session(ask_twice(), answers={"more": ["first", "never"], "ask": "yes"})
    run.run()
    assert (run.board["answer"], run.board["more"]) == ("yes", "first")


@pytest.mark.parametrize("answers", [["yes", "no"], {"ask": ["yes"], "more": ["no"]}])
def test_a_script_repeats_its_answers_after_going_back(answers):
    run = session(ask_twice(), answers=answers)
    run.run()
    for k in (3, 1, 0):
        run.goto(k).run()
        assert (run.status, run.board["answer"], run.board["more"]) == ("finished", "yes", "no")


def test_a_fork_takes_the_next_answer_of_the_script_too():
    run = session(ask_twice(), answers=["yes", "no"])
    run.step(2)
    fork = run.fork()
    fork.run()
    assert (fork.board["answer"], fork.board["more"]) == ("yes", "no")


def test_an_exhausted_script_lets_the_run_wait():
    run = session(ask_twice(), answers=["yes"])
    run.run()
    assert (run.status, run.current, run.error.code) == ("waiting", "more", "X110")


def test_a_missing_script_lets_the_run_wait():
    for answers in (None, [], {}, {"after": "x"}):
        run = session(asking(), answers=answers)
        run.run()
        assert (run.status, [one.node for one in run.pending]) == ("waiting", ["ask"])


def test_none_is_a_valid_answer():
    built_graph = asking()
    del built_graph.nodes["ask"]["options"]
    run = session(built_graph, answers={"ask": None})
    run.run()
    assert (run.status, run.board["answer"]) == ("finished", None)


@pytest.mark.parametrize(
    ("answers", "order"),
    [("approve", r"\['approve'\]"), (lambda asked: "yes", "pass a list"), (b"y", "pass a list"), (True, "pass a list")],
)
def test_answers_are_a_list_or_a_mapping(answers, order):
    with pytest.raises(ExecutionError, match=order) as caught:
        session(asking(), answers=answers)
    assert caught.value.problems[0].code == "X305"


def test_any_sequence_of_answers_is_accepted():
    run = session(asking(), answers=("yes",))
    run.run()
    assert run.board["answer"] == "yes"


# -- approvals ---------------------------------------------------------------------------------------------------------


def leaves(answers):
    """Return a session that asks a person, and for leave twice, with a script of answers."""

    async def asks(work):
        return {"said": [await work.call(Effect(kind, "may it", {})) for kind in ("approval", "human", "approval")]}

    run = session_of("asks", Shape([leaf("asks", asks)], [], ("asks",), [], {}))
    run._parts.run.world.answers = answers
    return run


NO = {"approved": False, "by": "ada", "reason": "too dear"}


@pytest.mark.parametrize(
    "answers", [[True, "fine", NO], {"asks": [{"approved": True}, "fine", NO]}, ["yes", "fine", NO]]
)
def test_one_script_serves_answers_and_approvals(answers):
    run = leaves(answers)
    run.run()
    assert run.board["said"] == [{"approved": True, "by": None, "reason": ""}, "fine", NO]


def test_an_exhausted_script_of_approvals_asks_a_person():
    run = leaves([True])
    run.run()
    assert (run.status, run.pending[0].kind, run.error.code) == ("waiting", "answer", "X110")
    run.answer("fine")
    assert run.pending[0].kind == "approval"
    run.deny()
    assert (run.status, run.board["said"][2]["approved"]) == ("finished", False)


@pytest.mark.parametrize("odd", ["perhaps", 1, None, {}, {"approved": "yes"}, {"approved": True, "when": "now"}])
def test_an_invalid_verdict_fails_its_node(odd):
    run = leaves([odd])
    run.run()
    assert (run.status, run.error.code) == ("failed", "X124")


def test_on_a_terminal_the_question_repeats_until_yes_or_no(monkeypatch):
    requests, lines = [], iter(["well", "", "No, too dear", "fine", "y"])

    def typed(prompt, timeout=None):
        requests.append(prompt)
        return next(lines)

    monkeypatch.setattr("agentnb.world.world.ask_on_terminal", typed)
    run = leaves(None)
    run.run()
    assert run.board["said"] == [
        {"approved": False, "by": None, "reason": "too dear"}, "fine", {"approved": True, "by": None, "reason": ""},
    ]  # fmt: skip
    assert len(requests) == 5
    assert requests[0].endswith("Approve? (yes, or no and why)")


def test_on_a_terminal_the_end_of_input_lets_the_run_wait(monkeypatch):
    monkeypatch.setattr("agentnb.world.world.ask_on_terminal", lambda prompt, timeout=None: WAIT)
    run = leaves(None)
    run.run()
    assert (run.status, run.pending[0].kind) == ("waiting", "approval")
