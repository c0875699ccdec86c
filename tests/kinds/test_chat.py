from __future__ import annotations

import json
from typing import Any

from agentnb.dialects.symphony import AgentConfig, AgentExecutor, LLMResponse
from agentnb.world.llm.base import Usage
from tests.dialects.symphony.making import call, executor


def asked(agent: AgentExecutor, **options: Any) -> Any:
    session = agent.session("go", **options)
    session.step(3)
    return session


def test_it_sends_what_stands_on_the_board() -> None:
    session = executor("hello", tools=()).session("go")
    session.step(2)
    session.edit({"request": {"messages": [{"role": "user", "content": "other"}], "model": "m"}})
    session.step()
    sent = session.trace.frames.calls.arguments.iloc[0]
    assert sent == {"messages": [{"role": "user", "content": "other"}], "model": "m"}
    assert (session.board["answer"], session.board["model"]) == ("hello", "m")


def test_usage_is_what_the_model_says() -> None:
    session = asked(executor(LLMResponse("x", "m", Usage(3, 4)), tools=()))
    assert session.board["usage"] == {"requests": 1, "tokens_in": 3, "tokens_out": 4, "cost_usd": None}


def test_a_failure_is_the_steps_and_says_why_on_the_board() -> None:
    def broken(_request: Any) -> Any:
        raise ConnectionError("no line")

    session = asked(AgentExecutor(AgentConfig(name="A"), llm=broken))
    assert session.trace.steps[-1].status == "error"
    assert session.board["failure"] == {"node": "llm", "type": "ConnectionError", "message": "no line"}
    assert session.current == "result"


def test_a_time_out_of_the_config_is_the_calls() -> None:
    import asyncio

    async def slow(_request: Any) -> str:
        await asyncio.sleep(60)
        return "late"

    session = asked(AgentExecutor(AgentConfig(name="A", timeout=0.05), llm=slow))
    assert "longer than 0.05 s" in session.board["failure"]["message"]
    assert session.current == "result"


def test_without_a_model_the_answer_is_made_up_and_counts_as_one() -> None:
    from agentnb import Session, load

    session = Session(load({"name": "A", "task": "t", "tools": ["x"]}), {"task": "go"})
    session.step(3)
    assert session.board["answer"]["tool_name"] == "none"
    assert session.trace.frames.calls.kind.tolist() == ["agent"]


def test_a_mapping_is_an_answer_too() -> None:
    session = AgentExecutor(AgentConfig(name="A", tools=["x"]), llm=lambda _: {"tool_name": "none", "response": "y"})
    assert session.execute_task("go").result.response == "y"


def test_pieces_of_an_answer_are_heard_as_they_come() -> None:
    class Streams:
        def complete(self, request: Any) -> LLMResponse:
            for piece in ("he", "llo"):
                request.tell(piece)
            return LLMResponse("hello", "m")

    heard: list[str] = []
    session = AgentExecutor(AgentConfig(name="A"), llm=Streams()).session("go")
    session.subscribe(lambda token: heard.append(token.text), to="token")
    session.run()
    assert heard == ["he", "llo"]


def test_two_rounds_add_up() -> None:
    said = [
        LLMResponse(json.dumps(call("ok", n=1)), "m", Usage(1, 2)),
        LLMResponse('{"tool_name": "none"}', "m", Usage(10, 20)),
    ]
    session = executor(*said, max_calls=2).session("go")
    session.run()
    assert session.board["usage"] == {"requests": 2, "tokens_in": 11, "tokens_out": 22, "cost_usd": None}
