from __future__ import annotations

from pathlib import Path

import pytest

from agentnb.errors import RecipeError
from agentnb.load import load
from tests.dialects.coreason.making import HEAD, content, problems

GOLDEN = Path(__file__).parents[2] / "golden"


def text(node, head=HEAD):
    return f"{head}topology:\n  - {node}\n"


@pytest.mark.parametrize(
    ("source", "code", "where"),
    [
        (text("{id: a, type: agent, agent_reff: x}"), "R112", "<text>:4:26, topology[0].agent_reff"),
        (text("{id: a, type: human}"), "R113", "<text>:4:5, topology[0]"),
        (text("{id: a}"), "R113", "<text>:4:5, topology[0]"),
        (text("{id: a, type: agnet}"), "R114", "<text>:4:19, topology[0].type"),
        (text("{id: 1, type: agent}"), "R114", "<text>:4:10, topology[0].id"),
        (text("{id: a, type: human, prompt: }"), "R114", "<text>:4:34, topology[0].prompt"),
        (text("{id: a, type: human, prompt: [x]}"), "R114", "<text>:4:34, topology[0].prompt"),
        (text("{id: a, type: human, prompt: no}"), "R109", "<text>:4:34, topology[0].prompt"),
        (
            text("{id: a, type: human, prompt: x, timeout_seconds: soon}"),
            "R114",
            "<text>:4:54, topology[0].timeout_seconds",
        ),
        (text("just words"), "R114", "<text>:4:5, topology[0]"),
        (
            text("{id: a, type: router, input_key: k, routes: {yes: a}, default_route: a}"),
            "R109",
            "<text>:4:50, topology[0].routes.yes",
        ),
        ("interface: {}\nmetadata: {}\n" + "topology: [{id: a, type: agent}]", "R113", "<text>:2:1, metadata"),
        (
            HEAD + "topology: {steps: [{id: a, type: agent}], entry_point: a}",
            "R112",
            "<text>:3:43, topology.entry_point",
        ),
        (HEAD + "kind: Agent\ntopology: [{id: a, type: agent}]", "R114", "<text>:3:7, kind"),
        (HEAD + "topology: 3", "R114", "<text>:3:11, topology"),
        (HEAD + "topology:\n", "R114", "<text>:3:10, topology"),
    ],
)
def test_a_mistake_is_told_with_its_place(source, code, where):
    assert (code, "error", where) in problems(source)


def first(source):
    with pytest.raises(RecipeError) as caught:
        load(source)
    return caught.value.problems[0]


def test_words_that_are_near_are_asked_for():
    assert first(text("{id: a, type: agnet}")).do == "did you mean 'agent'?"
    assert first(text("{id: a, type: agent, agent_reff: x}")).do == "did you mean 'agent_ref'?"
    assert first(text("{id: a, type: human, promt: x}")).do == "write 'prompt' where it says 'promt'"


def test_a_number_is_told_as_it_was_written():
    assert first(text("{id: 012, type: agent}")).do == 'quote it: "012"'


def test_an_unquoted_word_is_explained():
    problem = first(text("{id: a, type: router, input_key: k, routes: {no: a}, default_route: a}"))
    assert "'no' is false" in problem.why
    assert problem.do == 'quote it: "no":'


def test_a_file_of_another_sort_is_named():
    assert "ManifestV2" in first(HEAD + "apiVersion: coreason.ai/v2\nworkflow: {}\n").why


def test_the_place_in_a_short_topology_is_the_one_that_was_written():
    graph = "topology:\n  steps: [{id: a, type: router, input_key: k, routes: {x: b}, default_route: a}]"
    assert problems(HEAD + graph)[0] == ("R104", "error", "<text>:4:59, topology.steps[0].routes.x")


def test_an_id_that_is_no_text_is_told_once():
    nodes = [{"id": 1, "type": "agent", "agent_ref": "x"}]
    assert problems(content(nodes, [("1", "1")], "1")) == [("R114", "error", "<dict>, topology.nodes[0].id")]


def test_a_dict_is_told_by_its_path():
    assert problems(content([{"id": "a", "type": "human"}])) == [("R113", "error", "<dict>, topology.nodes[0]")]


def test_a_union_is_told_against_one_of_its_members():
    node = {"id": "a", "type": "agent", "agent_ref": {"intend": "x"}}
    assert sorted(code for code, _, _ in problems(content([node]))) == ["R112", "R113"]


def test_all_problems_of_a_bad_file_are_told_at_once(monkeypatch):
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(RecipeError) as caught:
        load("bad_recipe.yaml")
    assert f"{caught.value}\n" == (GOLDEN / "bad_recipe.txt").read_text(encoding="utf-8")
