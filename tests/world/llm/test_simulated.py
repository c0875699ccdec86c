from __future__ import annotations

import json

from agentnb.samples import samples
from agentnb.session import Session
from agentnb.world.llm.base import LLMRequest
from agentnb.world.llm.simulated import SimulatedClient


def test_it_says_that_it_is_not_real():
    response = SimulatedClient().complete(LLMRequest((), node="writer"))
    assert (response.content, response.model) == ("Mocked output from writer", "simulated")


def test_it_can_speak_for_a_session():
    run = Session(samples("pipeline"), {"question": "q"}, llm=SimulatedClient())
    run.run()
    assert run.status == "finished"
    assert set(run.trace.frames.calls["result"]) == {
        "Mocked output from research",
        "Mocked output from outline",
        "Mocked output from answer",
    }


def test_a_schema_is_kept_to():
    schema = {"type": "object", "properties": {"title": {"type": "string"}, "n": {"type": "integer", "minimum": 3}},
              "required": ["title", "n"]}  # fmt: skip
    request = LLMRequest((), node="writer", settings={"schema": schema})
    made, again = (json.loads(SimulatedClient().complete(request).content) for _ in range(2))
    assert made == again
    assert made["title"].startswith("title")
    assert made["n"] >= 3
