"""What the package's tests import from a file that its source distribution leaves out.

Written anew after how the tests use it: a schema of claims, a provider that answers by a function, one that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pydantic import BaseModel


class Claim(BaseModel):
    text: str
    confidence: float


class ClaimList(BaseModel):
    claims: list[Claim]


@dataclass
class ScriptedProvider:
    """Answers with what `respond_fn(messages, schema)` returns, and logs its calls."""

    respond_fn: Callable[[Any, Any], Any]
    fixed_cost: Decimal = Decimal("0.0012")
    default_model: str = "claude-sonnet-4-5"
    call_log: list[dict[str, Any]] = field(default_factory=list)
    token_count_log: list[dict[str, Any]] = field(default_factory=list)

    def recognizes_model(self, _name: str) -> bool:
        return True

    def complete(self, **words: Any) -> Any:
        from activegraph.llm import LLMResponse

        self.call_log.append(words)
        answer = self.respond_fn(words["messages"], words["output_schema"])
        is_model = isinstance(answer, BaseModel)
        return LLMResponse(
            raw_text=answer.model_dump_json() if is_model else str(answer), parsed=answer if is_model else None,
            input_tokens=100, output_tokens=50, cost_usd=self.fixed_cost, latency_seconds=0.01, model=words["model"],
            finish_reason="end_turn",
        )  # fmt: skip

    def estimate_cost(self, **_words: Any) -> Decimal:
        return self.fixed_cost

    def count_tokens(self, **words: Any) -> int:
        self.token_count_log.append(words)
        return 100


@dataclass
class FailingProvider:
    """Raises the same error each time."""

    error: Exception
    default_model: str = "claude-sonnet-4-5"

    def recognizes_model(self, _name: str) -> bool:
        return True

    def complete(self, **_words: Any) -> Any:
        raise self.error

    def estimate_cost(self, **_words: Any) -> Decimal:
        return Decimal(0)

    def count_tokens(self, **_words: Any) -> int:
        return 1
