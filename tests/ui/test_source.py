from __future__ import annotations

import functools
import json
import linecache

import networkx as nx

import agentnb as nb
from agentnb.secrets import MASK
from agentnb.ui.details.source import find_function, find_raise, find_text

YAML = """\
# a comment
apiVersion: coreason.ai/v2
kind: Recipe
metadata: {name: two}
interface: {inputs: {}, outputs: {}}
topology:
  entry_point: first
  nodes:
    - type: agent
      id: first
      agent_ref: one
      metadata:
        simulated: {a: 1}

    # about the second
    - id: second
      type: human
      prompt: |
        Is it right?

        Say so.
  edges:
    - {source: first, target: second}
"""


def test_the_definition_of_a_node_in_yaml_is_found():
    recipe = nb.load(YAML)
    first, second = (find_text(recipe, recipe.nodes[name]) for name in ("first", "second"))
    assert first.text == "- type: agent\n  id: first\n  agent_ref: one\n  metadata:\n    simulated: {a: 1}"
    assert (first.line, first.place) == (9, "<text>:9")
    assert second.text == "- id: second\n  type: human\n  prompt: |\n    Is it right?\n\n    Say so."


def test_the_part_of_a_json_text_ends_with_its_bracket():
    import yaml

    recipe = nb.load(json.dumps(yaml.safe_load(YAML), indent=2))
    text = find_text(recipe, recipe.nodes["first"])
    assert json.loads(text.text.rstrip(",")) == {
        "type": "agent", "id": "first", "agent_ref": "one", "metadata": {"simulated": {"a": 1}},
    }  # fmt: skip


def test_nodes_on_one_line_have_no_separate_definition():
    import yaml

    recipe = nb.load(json.dumps(yaml.safe_load(YAML)))
    assert find_text(recipe, recipe.nodes["first"]) is None


def test_a_secret_in_a_definition_is_masked_with_its_children():
    secrets = """\
        api_key: abc-123
        simulated: {password: 'p q', b: 2}
        credentials:
        - {x: hush}
        secret: {deep: [quiet, 2], e: 1}
        tokens_in: 3"""
    recipe = nb.load(YAML.replace("        simulated: {a: 1}", secrets))
    actual = find_text(recipe, recipe.nodes["first"]).text
    for secret in ("abc-123", "p q", "hush", "quiet"):
        assert secret not in actual
    assert actual.count(MASK) == 4
    assert "b: 2}" in actual
    assert "tokens_in: 3" in actual


def test_a_definition_in_its_own_file_is_read_from_there(tmp_path):
    file = tmp_path / "two.yaml"
    file.write_text(YAML, encoding="utf-8")
    recipe = nb.load(file)
    text = find_text(recipe, recipe.nodes["second"])
    assert text.place == f"{file}:16"


def double(n, token="abc-secret"):
    return {"n": 2 * n}


def test_the_source_of_a_function_is_reported_with_its_place():
    function = find_function(double)
    assert function.text == f'def double(n, token={MASK}):\n    return {{"n": 2 * n}}'
    assert function.place == f"{__file__}:{double.__code__.co_firstlineno}"
    assert find_function(functools.partial(double, token="x")) == function


def test_an_object_without_source_has_none():
    assert find_function(None) is None
    assert find_function("a name") is None
    assert find_function(len) is None
    assert find_function(eval("lambda: 1")) is None
    assert find_function(nb.load) is None


def test_code_compiled_from_text_is_not_shown_as_the_program_of_the_command_line(monkeypatch):
    monkeypatch.setitem(linecache.cache, "<string>", (17, None, ["import agentnb\n"], "<string>"))
    assert find_function(eval("lambda: 1")) is None
    graph = nx.DiGraph(name="g")
    graph.add_node("divide", function=eval("lambda: 1 / 0"))
    session = nb.Session(nb.load(graph))
    session.run()
    assert find_raise(session.cause)["lines"] == []


def test_a_node_that_is_built_in_python_is_reported_by_its_function():
    graph = nx.DiGraph(name="g")
    graph.add_node("double", function=double, inputs={"n": "n"})
    recipe = nb.load(graph)
    assert find_text(recipe, recipe.nodes["double"]) is None
