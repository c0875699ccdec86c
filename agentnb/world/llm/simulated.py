"""simulated: what an agent answers when nothing is bound to it; it says that it is not real."""

from __future__ import annotations

import json

from agentnb.board.values import thaw
from agentnb.world.llm.base import LLMRequest, LLMResponse, told


def mocked(name: str) -> str:
    """Return what is said in place of a real answer; it names who would have given it."""
    return f"Mocked output from {name}"


class SimulatedClient:
    """Answers every request with a text that names the node; one that names a schema, with a value that fits it."""

    made_up = True

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the simulated answer.

        Raises:
            ExecutionError: X408, no value that fits the schema was found.
        """
        schema = request.settings.get("schema")
        if schema is not None:
            from agentnb.world.filled import filled  # it reads schemas: only where there is one

            made = filled(thaw(schema), f"{request.node}:{request.of_node}", where=f"the schema of {request.node!r}")
            return told(LLMResponse(json.dumps(made, ensure_ascii=False), model="simulated"), request)
        return told(LLMResponse(mocked(request.node), model="simulated"), request)
