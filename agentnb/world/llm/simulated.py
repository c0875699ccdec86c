"""simulated: what an agent answers when nothing is bound to it; it says that it is not real."""

from __future__ import annotations

from agentnb.world.llm.base import LLMRequest, LLMResponse


class SimulatedClient:
    """Answers every request with a text that names the node, and nothing else."""

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the simulated answer."""
        return LLMResponse(f"Mocked output from {request.node}", model="simulated")
