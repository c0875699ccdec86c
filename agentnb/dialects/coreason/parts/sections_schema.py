"""The parts of a coreason recipe around the graph: policy, state, lifecycle, guards, scenarios, presentation."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]


class StrictPart(BaseModel):
    """An immutable part of a recipe that rejects unknown keys."""

    model_config = ConfigDict(hide_input_in_errors=True, extra="forbid", frozen=True)


class LenientPart(BaseModel):
    """An immutable part of a recipe that ignores unknown keys."""

    model_config = ConfigDict(hide_input_in_errors=True, extra="ignore", frozen=True)


class ExtensiblePart(BaseModel):
    """An immutable part of a recipe that preserves unknown keys."""

    model_config = ConfigDict(hide_input_in_errors=True, extra="allow", frozen=True)


class RecipeInterface(StrictPart):
    """The inputs and outputs of a recipe: a map of properties, or a JSON Schema with `properties`; not validated."""

    inputs: dict[str, Any] = {}
    outputs: dict[str, Any] = {}


class StateDefinition(StrictPart):
    """The declared contents of the blackboard, and whether it must outlive the run."""

    properties: dict[str, Any]
    persistence: Literal["ephemeral", "redis", "postgres"] = "ephemeral"


class Priority(IntEnum):
    """The priority of a run; a file states the number or the name."""

    CRITICAL = 10
    HIGH = 8
    NORMAL = 5
    LOW = 2
    BATCH = 1


def _parse_priority(value: object) -> object:
    names = {member.name.lower(): member for member in Priority}
    return names.get(value.lower(), value) if isinstance(value, str) else value


class PolicyConfig(StrictPart):
    """Limits of a run that a recipe specifies."""

    max_retries: int = 0
    timeout_seconds: int | None = None
    execution_mode: Literal["sequential", "parallel"] = "sequential"
    priority: Annotated[Priority, BeforeValidator(_parse_priority)] = Priority.NORMAL
    rate_limit_rpm: NotNegative | None = None
    rate_limit_tpm: NotNegative | None = None
    caching_enabled: bool = True
    budget_cap_usd: float | None = None
    token_budget: int | None = None
    sensitive_tools: list[str] = []
    allowed_mcp_servers: list[str] = []
    safety_preamble: str | None = None
    legal_disclaimer: str | None = None


class Constraint(StrictPart):
    """A requirement on the blackboard: a dotted path, an operator, a value."""

    variable: str
    operator: Literal["eq", "neq", "gt", "gte", "lt", "lte", "in", "contains"]
    value: Any
    required: bool = True
    error_message: str | None = None

    def evaluate(self, context: Mapping[str, Any]) -> bool:
        """Return True if it holds; False for a missing path or a value of the wrong type, whatever the operator.

        The path is resolved key by key through mappings: keys with a dot and list items cannot be addressed.
        """
        value: Any = context
        for key in self.variable.split("."):
            if not isinstance(value, Mapping) or key not in value:
                return False
            value = value[key]
        try:
            return bool(_COMPARE[self.operator](value, self.value))
        except TypeError:
            return False

    @property
    def message(self) -> str:
        """The message if it fails."""
        return self.error_message or f"Constraint failed: {self.variable} {self.operator} {self.value}"


_COMPARE: dict[str, Any] = {
    "eq": lambda found, value: found == value,
    "neq": lambda found, value: found != value,
    "gt": lambda found, value: found > value,
    "gte": lambda found, value: found >= value,
    "lt": lambda found, value: found < value,
    "lte": lambda found, value: found <= value,
    "in": lambda found, value: found in value,
    "contains": lambda found, value: value in found,
}


class SimulationScenario(LenientPart):
    """A test scenario of the recipe: the inputs, the expected outputs, and how they are compared."""

    id: str
    description: str
    inputs: dict[str, Any]
    expected_output: dict[str, Any] | None = None
    validation_logic: Literal["exact_match", "fuzzy", "code_eval", "llm_judge"]


class AdversaryProfile(LenientPart):
    """A simulated attacker; loaded and shown, but not executed."""

    name: str
    goal: str
    strategy_model: str
    attack_model: str
    persona: dict[str, Any] | None = None


class ChaosConfig(LenientPart):
    """Faults to inject: latency in milliseconds, the share of failing calls, slowed long answers."""

    latency_ms: int = 0
    error_rate: float = 0.0
    token_throttle: bool = False


class SimulationRequest(LenientPart):
    """A requested scenario and its circumstances."""

    scenario: SimulationScenario
    profile: AdversaryProfile | None = None
    chaos_config: ChaosConfig | None = None


class Recovery(StrictPart):
    """The recovery from a node's failure."""

    max_retries: int | None = None
    retry_delay_seconds: float = 1.0
    behavior: Literal["fail_workflow", "continue_with_default", "route_to_fallback", "ignore"] = "fail_workflow"
    fallback_node_id: str | None = None
    default_output: dict[str, Any] | None = None
