from __future__ import annotations

import pytest

from agentnb.errors import ExecutionError
from agentnb.world.llm.base import LLMMessage, LLMRequest, LLMResponse, to_client
from agentnb.world.llm.scripted import ScriptedClient
from agentnb.world.llm.simulated import SimulatedClient


def test_a_request_consists_of_messages_or_of_one_prompt():
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": 5}]
    request = LLMRequest.of({"messages": messages, "model": "m", "temperature": 0}, node="n", number=2, of_node=1)
    assert request.messages == (LLMMessage("system", "Be kind."), LLMMessage("user", "5"))
    assert request.prompt == "Be kind.\n\n5"
    assert (request.model, request.settings, request.node, request.number, request.of_node) == (
        "m",
        {"temperature": 0},
        "n",
        2,
        1,
    )
    assert LLMRequest.of({"prompt": "Hello"}).messages == (LLMMessage("user", "Hello"),)


def test_the_arguments_of_a_request_stay_unchanged():
    arguments = {"prompt": "Hello", "model": "m"}
    LLMRequest.of(arguments)
    assert arguments == {"prompt": "Hello", "model": "m"}


class Client:
    def complete(self, request):
        return LLMResponse("own")


def test_anything_that_answers_becomes_a_client():
    own_client = Client()
    assert to_client(own_client) is own_client
    for script in ([1], {"n": [1]}, lambda request: "text"):
        assert isinstance(to_client(script), ScriptedClient)
    assert to_client(SimulatedClient()).complete(LLMRequest((), node="n")).model == "simulated"


def test_listeners_are_not_part_of_a_request():
    assert LLMRequest((), on_token=print) == LLMRequest(())
    assert "tell" not in repr(LLMRequest((), on_token=print))


@pytest.mark.parametrize("llm", [5, object(), Client])
def test_an_object_that_cannot_answer_is_a_problem(llm):
    with pytest.raises(ExecutionError, match="X303"):
        to_client(llm)
