"""Where in its file a problem is reported, and where the steps of an agent are."""

from __future__ import annotations

import pytest

from agentnb.load import load
from tests.dialects.marked_texts import find_problems, get_spot, read_marks

FAULTS = {
    "values": """
name: «R114»""
task: «R114»[a]
tools: [x, «R114»"", «R114»5]
maxCalls: «R114»0
timeout: «R114»0
llm: {temperature: «R114»-1, maxTokens: «R114»0, timeout: «R114»0, nativeTools: «R114»perhaps, model: «R114»5}
requireApproval: «R114»perhaps
""",
    "a model that is no text": "name: a\ntask: t\nllm: «R114»5\n",
    "a tool named none": "name: a\ntask: t\ntools: «R114»[x, none]\n",
    "a missing model": "name: a\ntask: t\nllm: «R114»[m]\n",
    "words": "name: «R109»no\ntask: t\n«R109»«R112»yes: 1\n",
    "unknown keys": """
name: a
task: t
«R112»tols: [x]
llm: {model: m, «R112»temprature: 1}
stream_options: {anything: 1}
""",
}


@pytest.mark.parametrize("marked", FAULTS.values(), ids=FAULTS)
def test_each_problem_is_reported_where_it_is(marked):
    text, marks = read_marks(marked)
    assert find_problems(text) == marks


STEPS = """
«result»name: a
description: d
«system_prompt»task: t
«parse check tool next_call»tools: [x]
«request llm»llm: {model: m, native_tools: true}
«next_round»maxCalls: 3
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("«next_round»maxCalls", "«next_round»max_calls"),
        ("«system_prompt»task: t", "task: t\n«system_prompt»systemPrompt: s"),
        ("«system_prompt»task: t", "task: t\n«system_prompt»system_prompt: s"),
        ("description: d\n«system_prompt»task: t", "directives: d\n«system_prompt»description: d"),
        ("description: d\n«system_prompt»task: t\n«parse", "directives: d\n«parse"),
    ],
)
def test_each_step_is_where_its_field_is_written(old, new):
    text, marks = read_marks(STEPS.replace(old, new))
    spots = {step: spot for words, spot in marks for step in words.split()}
    recipe = load(text, dialect="symphony")
    spots.setdefault("system_prompt", spots["result"])  # without a field of its own, it is where the name is
    assert {node.id: get_spot(node.place) for node in recipe.nodes.values()} == spots
    assert {get_spot(edge.place) == spots[edge.source] for edge in recipe.edges} == {True}
