from __future__ import annotations

import pytest

from agentnb.board.values import ABSENT
from agentnb.kinds.directives import merge
from tests.dialects.agentruntime.agent_files import ran, text

HEAD = """
meta: {name: t}
state:
  reducer: replace
  shape: {x: any, a: any, history: any}
  init: {a: {deep: 1, list: [1]}}
"""


def after(tmp_path, mapped, inputs=None, head=HEAD):
    graph = f"nodes:\n  - {{id: put, type: noop, map: {mapped}}}"
    return ran(tmp_path, text(graph, head=head, outputs="[a]"), inputs or {"x": 1}).state


@pytest.mark.parametrize(
    ("base", "new", "both"),
    [
        (None, [1], [1]),
        ([1], None, [1]),
        ([1], [1, 2], [1, 1, 2]),
        (
            {"a": 1, "b": {"c": [1]}},
            {"b": {"c": [2], "d": None}, "e": 3},
            {"a": 1, "b": {"c": [1, 2], "d": None}, "e": 3},
        ),
        ({"a": 1}, {"a": None}, {"a": 1}),
        ({"a": 1}, [1], [1]),
        ([1], {"a": 1}, {"a": 1}),
        (1, 2, 2),
        ("a", "b", "b"),
        (ABSENT, 0, 0),
    ],
)
def test_two_values_become_one(base, new, both):
    assert merge(base, new) == both


def test_set_writes_the_nested_path(tmp_path):
    state = after(tmp_path, "{set: {a.deep: 2, b.c.d: 3, plain: 4}}")
    assert (state["a"], state["b"], state["plain"]) == ({"deep": 2, "list": [1]}, {"c": {"d": 3}}, 4)


def test_a_key_with_a_dot_is_literal(tmp_path):
    head = HEAD.replace("init: {", "init: {a.deep: 0, ").replace("shape: {", "shape: {a.deep: any, ")
    state = after(tmp_path, "{set: {a.deep: 2}}", head=head)
    assert (state["a.deep"], state["a"]["deep"]) == (2, 1)


def test_all_directives_see_the_previous_state(tmp_path):
    mapped = "{set: {x: 5, b: '{{ x }}'}, merge: {c: ['{{ x }}']}, history: {h: '{{ x }}'}, delete: ['k{{ x }}']}"
    head = HEAD.replace("init: {", "init: {k1: 1, k5: 5, ").replace("shape: {", "shape: {k1: any, k5: any, ")
    state = after(tmp_path, mapped, head=head)
    assert (state["x"], state["b"], state["c"], state["history"]) == (5, 1, [1], {"h": [1]})
    assert "k1" not in state
    assert state["k5"] == 5


def test_a_mistake_prevents_all_writes(tmp_path):
    graph = """
    nodes:
      - id: put
        type: noop
        map: {set: {x: 9, b: "{{ x.y.z }}"}, merge: {a: {deep: 7}}, delete: [history]}
        on_error: {resume: true}
    """
    done = ran(tmp_path, text(graph, head=HEAD, outputs="[x]"))
    assert done.path == ["put error"]
    assert done.state == {"a": {"deep": 1, "list": [1]}, "x": 1, "history": None}


def test_merge_is_merged_into_the_existing_value(tmp_path):
    state = after(tmp_path, "{merge: {a: {list: [2], deep: null, more: 1}, b: {c: 1}, x: null}}")
    assert (state["a"], state["b"], state["x"]) == ({"deep": 1, "list": [1, 2], "more": 1}, {"c": 1}, 1)


def test_merge_applies_after_set(tmp_path):
    assert after(tmp_path, "{set: {a: [1]}, merge: {a: [2]}}")["a"] == [1, 2]


def test_merge_accepts_paths(tmp_path):
    assert after(tmp_path, "{merge: {a.list: [2]}}")["a"] == {"deep": 1, "list": [1, 2]}


def test_history_appends_to_the_lists_under_it(tmp_path):
    assert after(tmp_path, "{history: {seen: [1, 2], last: one}}")["history"] == {"seen": [1, 2], "last": ["one"]}
    head = HEAD.replace("init: {", "init: {history: {seen: [0]}, ")
    assert after(tmp_path, "{history: {seen: [1]}}", head=head)["history"] == {"seen": [0, 1]}


def test_nothing_to_append_changes_nothing(tmp_path):
    assert after(tmp_path, "{set: {b: 1}, history: {seen: []}}")["history"] is None


def test_delete_applies_last_and_deleting_a_missing_key_is_ignored(tmp_path):
    state = after(tmp_path, "{set: {b: 1, c: 2}, delete: [b, gone, gone.deeper, a.deep, x]}")
    assert "b" not in state
    assert "x" not in state
    assert (state["a"], state["c"]) == ({"list": [1]}, 2)


def test_keys_are_never_templates_and_values_keep_their_type(tmp_path):
    state = after(
        tmp_path, """{set: {"{{ x }}": 1, b: ["{{ x }}", {c: "{{ x }} and {{ x }}"}], d: 1e5, e: "1e5"}}""", {"x": [2]}
    )
    assert state["{{ x }}"] == 1
    assert state["b"] == [[2], {"c": "[2] and [2]"}]
    assert (state["d"], state["e"]) == ("1e5", "1e5")  # YAML's number needs a dot


@pytest.mark.parametrize("value", [[1, {"a": None}], {"k": [True]}, 7, 1.5, None, "1e5", False, ""])
def test_a_lone_expression_keeps_the_type_of_the_value(tmp_path, value):
    actual = after(tmp_path, '{set: {b: "  {{ x }}\\n", c: "{{ inputs.x }}"}}', {"x": value})
    assert (actual["b"], actual["c"]) == (value, value)
    assert type(actual["b"]) is type(value)
