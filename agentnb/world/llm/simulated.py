"""simulated: what an agent answers when nothing is bound to it; it says that it is not real."""

from __future__ import annotations

from agentnb.world.llm.base import LLMRequest, LLMResponse, told


def mocked(name: str) -> str:
    """Return what is said in place of a real answer; it names who would have given it."""
    return f"Mocked output from {name}"


class SimulatedClient:
    """Answers every request with a text that names the node, and nothing else."""

    made_up = True

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the simulated answer."""
        return told(LLMResponse(mocked(request.node), model="simulated"), request)
