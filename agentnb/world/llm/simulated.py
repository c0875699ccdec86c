"""The answers of agents without a model. They state that they are simulated."""

from __future__ import annotations

import json

from agentnb.board.values import thaw
from agentnb.world.llm.base import SIMULATED, LLMRequest, LLMResponse, stream_whole


def make_mock_answer(name: str) -> str:
    """Return the simulated answer; it names the agent."""
    return f"Mocked output from {name}"


class SimulatedClient:
    """Answers every request with text that names the node; a request with a schema gets a value that fits it."""

    is_simulated = True

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the simulated answer.

        Raises:
            ExecutionError: X408, no value that fits the schema was found.
        """
        schema = request.settings.get("schema")
        if schema is not None:
            from agentnb.world.sample_data import fill  # imported only if there is a schema

            value = fill(thaw(schema), f"{request.node}:{request.of_node}", where=f"the schema of {request.node!r}")
            return stream_whole(
                LLMResponse(json.dumps(value, ensure_ascii=False), model=SIMULATED, provider=SIMULATED), request
            )
        return stream_whole(LLMResponse(make_mock_answer(request.node), model=SIMULATED, provider=SIMULATED), request)
