from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from agentnb.dialects.activegraph import Frame, LLMBehavior, LLMResponse
from tests.dialects.activegraph.runtimes import runtime


class Note(BaseModel):
    text: str
    about: str = ""


class Model:
    default_model = "model-1"

    def complete(self, *, system, messages, **words):
        self.system, self.messages = system, [message.content for message in messages]
        return LLMResponse('{"text": "x"}', {"text": "x"})


PAYLOAD = {"why": "it rains", "run_id": "R", "deep": [{"timestamp": "now", "n": 1}]}


def get_request(frame=None, payload=PAYLOAD, **words):
    """Return what a model is told: the system's text, and the messages."""
    model = Model()

    def note(event, graph, ctx, answer):
        graph.emit("noted", {})

    asks = LLMBehavior("ask", note, on=["go"], handler=note, **words)
    team = runtime(asks, llm_provider=model, frame=frame)
    book = team.graph.add_object("book", {"title": "Emma"})
    team.graph.add_relation(book.id, book.id, "near")
    team.session.emit("go", payload)
    team.run_until_idle()
    assert team.errors == []
    return model.system, model.messages


def test_the_prompt_contains_the_role_and_the_goal():
    frame = Frame("a memo", id="f", constraints=["be brief"], success_criteria=["it is read"])
    system, _ = get_request(frame, description="You write notes.", output_schema=Note)
    for part in ("'ask'", "You write notes.", "a memo", "be brief", "it is read"):
        assert part in system
    # Unchanged to the character: a recorded answer is found by its prompt.
    schema = json.dumps(Note.model_json_schema(), indent=1, sort_keys=True)
    assert system.endswith(f"fits this schema, and with nothing else:\n{schema}")


def test_the_prompt_contains_the_graph_and_the_event_without_run_specific_data():
    _, (text,) = get_request(creates=["note"])
    assert '- book#1 (book, version 1): {"title": "Emma"}' in text
    assert "- book#1 -near-> book#1 {}" in text
    assert 'go by user\n{"deep": [{"n": 1}], "why": "it rains"}' in text
    assert "Create objects of these types: note." in text
    assert "behavior.started" not in text


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("Say {event_type}: {event}", 'Say go: {"deep": [{"n": 1}], "why": "it rains"}'),
        ("{view} for {goal}", '[{"title": "Emma"}] for a memo'),
        ('{"a": {unknown}}', '{"a": {unknown}}'),
        ("{goal}: {event_type}", "a memo: go"),
    ],
)
def test_a_template_replaces_the_default_prompt(template, told):
    _, messages = get_request(Frame("a memo", id="f"), prompt_template=template)
    assert messages == [told]


def test_what_a_template_inserts_is_not_a_template():
    _, messages = get_request(Frame("a {view} of {event}", id="f"), prompt_template="{event_type} for {goal}")
    assert messages == ["go for a {view} of {event}"]
    _, messages = get_request(prompt_template="{event} for {goal}", payload={"why": "{goal}", "to": "{event_type}"})
    assert messages == ['{"to": "{event_type}", "why": "{goal}"} for ']


def test_the_prompt_says_if_the_view_is_empty():
    _, (text,) = get_request(view_spec={"include_types": ["desk"], "recent_events": 0})
    assert "Objects:\n- none" in text
    assert "What has happened last:\n- nothing" in text
