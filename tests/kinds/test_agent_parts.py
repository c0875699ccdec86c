from __future__ import annotations

from typing import Any

from agentnb.dialects.symphony import AgentConfig, AgentExecutor
from agentnb.errors import AgentRuntimeError, Problem


def test_what_would_end_a_whole_run_is_the_agents_alone() -> None:
    def broken(_request: Any) -> Any:
        raise AgentRuntimeError(Problem("X332", "there is no key", "the model", "none is set", "set one"))

    agent = AgentExecutor(AgentConfig(name="A"), llm=broken)
    done = agent.execute_task("go")
    assert agent._session is not None
    assert agent._session.status == "finished"
    assert "there is no key" in str(done.error)


def test_a_secret_in_a_failure_is_hidden() -> None:
    from agentnb.secrets import hide

    hide("sk-verysecret2")

    def broken(_request: Any) -> Any:
        raise ConnectionError("refused sk-verysecret2")

    done = AgentExecutor(AgentConfig(name="A"), llm=broken).execute_task("go")
    assert "refused" in str(done.error)
    assert "sk-verysecret2" not in str(done.to_dict())
