from __future__ import annotations

import pytest

from agentnb.dialects.agentruntime import AgentRuntimeError
from agentnb.load import load
from agentnb.session import Session
from tests.dialects.agentruntime.making import line, ran, text, write

STATE = """
meta: {{name: t}}
state:
  reducer: {reducer}
  shape: {{b: any, a: any, x: any, log: any}}
  init: {{log: [], a: {a}}}
"""


def begun(tmp_path, given, *, reducer="deepmerge", a="[1]", inputs="[a]"):
    head = STATE.format(reducer=reducer, a=a)
    return ran(tmp_path, text("nodes:\n  - {id: only, type: noop}", head=head, inputs=inputs), given).state


def test_the_first_values_come_first_then_the_other_keys_of_the_shape(tmp_path):
    state = begun(tmp_path, {"a": None})
    assert list(state.items()) == [("log", []), ("a", [1]), ("b", None), ("x", None)]


@pytest.mark.parametrize(
    ("init", "given", "merged"),
    [
        ("[1]", [2, 3], [1, 2, 3]),
        ("{k: 1, deep: {l: [1]}}", {"deep": {"l": [2], "m": 3}}, {"k": 1, "deep": {"l": [1, 2], "m": 3}}),
        ("1", None, 1),
        ("1", 2, 2),
        ("[1]", "text", "text"),
        ("{k: 1}", {"k": None}, {"k": 1}),
        ("null", {"k": None}, {"k": None}),
    ],
)
def test_an_input_is_merged_into_what_stands_there(tmp_path, init, given, merged):
    assert begun(tmp_path, {"a": given}, a=init)["a"] == merged


@pytest.mark.parametrize("given", [[2], None, {"k": 1}])
def test_or_it_takes_its_place(tmp_path, given):
    assert begun(tmp_path, {"a": given}, reducer="replace")["a"] == given


def test_an_input_outside_the_shape_is_a_key_all_the_same(tmp_path):
    state = begun(tmp_path, {"other": 5}, inputs="[other]")
    assert (state["other"], list(state)[-1]) == (5, "other")


def test_inputs_that_are_not_declared_are_seen_as_inputs_only(tmp_path):
    graph = """
    nodes:
      - {id: look, type: noop, map: {set: {a: "{{ inputs.extra }}", b: "{{ inputs.x }}"}}}
    """
    with pytest.warns(UserWarning, match="R220: input 'extra' is not known"):
        state = ran(tmp_path, text(graph), {"x": 1, "extra": [4]}).state
    assert (state["a"], state["b"], "extra" in state) == ([4], 1, False)


def test_missing_inputs_are_all_named(tmp_path):
    agent = ran(tmp_path, text(line("a"), inputs="[x, y, z]"), {"x": 1, "y": 2, "z": 3}).agent
    with pytest.raises(AgentRuntimeError, match=r"X419.*y, z"):
        agent.run({"x": 1})


def test_a_session_names_them_too_and_takes_what_the_first_values_have(tmp_path):
    with pytest.raises(ValueError, match="'x'"):
        Session(load(write(tmp_path, text(line("a")))), {})
    assert Session(load(write(tmp_path, text(line("a"), inputs="[n]"))), {}).board["n"] == 0


def test_the_callers_own_values_stay_as_they_are(tmp_path):
    given = {"x": {"deep": [1]}}
    graph = "nodes:\n  - {id: put, type: noop, map: {merge: {x: {deep: [2]}}}}"
    state = ran(tmp_path, text(graph), given).state
    assert (given, state["x"]) == ({"x": {"deep": [1]}}, {"deep": [1, 2]})


def test_an_agent_can_run_again_and_begins_anew(tmp_path):
    agent = ran(tmp_path, text(line("a")), {"x": 1}).agent
    assert agent.run({"x": 2}) == {**agent.run({"x": 3}), "x": 2}
    assert agent.run({"x": 1})["log"] == ["a"]
