"""errors: what can go wrong with behaviours and their graph, as errors that other code may catch by its usual names.

RegistrationError       a behaviour, tool or pattern cannot be taken as it is written
GraphError              the graph refuses what it is told
ReplayDivergenceError   behaviours, run again, do something else than the log says
"""

from __future__ import annotations

from typing import Any

from agentnb.errors import AgentNbError, ExecutionError, Problem, RecipeError, ReplayDivergence


class ActiveGraphError(AgentNbError):
    """The root of this dialect's own errors."""


class RegistrationError(ActiveGraphError, RecipeError):
    """A behaviour, a tool or a pattern cannot be taken as it is written."""


class InvalidActivateAfter(RegistrationError):
    """Something that no behaviour can be put off by."""


class UnsupportedPatternError(RegistrationError):
    """A pattern that says more than patterns can say here, or cannot be read."""


class GraphError(ActiveGraphError, ExecutionError):
    """The graph refuses what it is told, or a run what it is asked."""


class UnknownObjectError(GraphError, KeyError):
    """There is no object, relation or patch of that id."""

    def __str__(self) -> str:
        """Return the problems; a KeyError would quote them."""
        return "\n".join(map(str, self.args))


class InvalidPatchLifecycleState(GraphError, ValueError):
    """A patch that was decided before is decided once more."""


class InvalidPatchOperation(GraphError, ValueError):
    """A patch that neither updates nor replaces."""


class ReservedFieldError(GraphError, ValueError):
    """A field that only the graph itself writes."""


class NonSerializableEventError(GraphError, TypeError):
    """A value that JSON cannot say."""


class InternalEvaluatorError(GraphError, ValueError):
    """An operator that `where` does not know."""


class ApprovalNotFoundError(GraphError, LookupError):
    """No approval of that id waits to be decided."""


class PolicyViolation(GraphError, PermissionError):
    """A behaviour does what its policy does not let it do."""

    reason = "policy.denied"


class InvalidRuntimeConfiguration(GraphError, ValueError):
    """A runtime is given what does not fit together."""


class InvalidArgumentType(InvalidRuntimeConfiguration, TypeError):
    """Something is given that is of another sort than it should be."""


class BehaviorNotFoundError(GraphError, LookupError):
    """There is no behaviour of that name."""


class AmbiguousBehaviorError(GraphError, ValueError):
    """Several behaviours have that short name."""


class ToolNotFoundError(GraphError, LookupError):
    """There is no tool of that name."""


class AmbiguousToolError(GraphError, ValueError):
    """Several tools have that short name."""


class EventNotFoundError(GraphError, KeyError):
    """There is no event of that id."""

    __str__ = UnknownObjectError.__str__


class PackError(ActiveGraphError, RecipeError):
    """A pack cannot be loaded, or what it says is not kept to."""


class PackConflictError(PackError):
    """A pack brings a name that is taken."""


class PackVersionConflictError(PackError):
    """Another version of a pack is loaded."""


class PackValidationError(PackError):
    """A pack, or its settings, are not as they should be."""


class PackSchemaViolation(PackError):
    """An object or a relation is not as its pack says it should be."""

    reason = "pack.schema_violation"


class _Reasoned(ActiveGraphError, ExecutionError):
    """A failure that says how it failed in one word, and whatever else its event tells."""

    def __init__(self, reason: str, message: str = "", *, payload_extras: dict[str, Any] | None = None) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason, self.extra = reason, dict(payload_extras or {})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the text alone."""
        return (type(self), (self.reason, str(self).partition(": ")[2]))


class ToolError(_Reasoned):
    """A call of a tool that failed: tool.timeout, tool.invalid_input, tool.execution_error ..."""


class UnknownToolError(ToolError, RuntimeError):
    """A model asks for a tool that its behaviour does not name."""


class LLMBehaviorError(_Reasoned):
    """A question to a model that failed: llm.network_error and llm.rate_limited are asked again, others are not."""


class MissingProviderError(RegistrationError, RuntimeError):
    """A behaviour asks a model, and the runtime has none."""


class ReplayDivergenceError(ActiveGraphError, ReplayDivergence):
    """Behaviours, run again, do something else than the log says: `event_id`, `expected`, `actual` and `kind`."""

    def __init__(
        self, *problems: Problem | str, event_id: str = "", expected: Any = None, actual: Any = None, kind: str = ""
    ) -> None:
        super().__init__(*problems)
        self.event_id, self.expected, self.actual, self.kind = event_id, expected, actual, kind
