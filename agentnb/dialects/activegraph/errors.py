"""The errors of this dialect, under the names that users of the package catch.

The tree:

    ActiveGraphError
    +-- ConfigurationError    a runtime is given arguments that are wrong or do not fit together
    +-- RegistrationError     a behavior, tool or pack is not valid as written
    +-- PatternError          a pattern is not valid
    +-- PackError             a pack cannot be loaded, or data does not fit its types
    +-- ExecutionError        an operation on a graph or a run is refused
    |   +-- GraphError, LLMBehaviorError, ToolError
    +-- StorageError          an event or a store cannot be read or written
    +-- ReplayError           a replay differs from the log
"""

from __future__ import annotations

from typing import Any

from agentnb import errors
from agentnb.errors import AgentNbError, Problem, RecipeError, ReplayDivergence, StoreError


class ActiveGraphError(AgentNbError):
    """The root of this dialect's own errors."""


class ConfigurationError(ActiveGraphError, errors.ExecutionError):
    """The arguments of a runtime are invalid or inconsistent."""


class RegistrationError(ActiveGraphError, RecipeError):
    """A behavior, tool or pattern is not valid as written."""


class PatternError(ActiveGraphError, RecipeError):
    """A pattern is not valid."""


class ExecutionError(ActiveGraphError, errors.ExecutionError):
    """An operation on a graph or a run is refused or has failed."""


class StorageError(ActiveGraphError, StoreError):
    """An event or a store cannot be read or written."""


class StoreNotFoundError(StorageError, FileNotFoundError):
    """There is no store at the path or URL that a run is loaded from."""


class ReplayError(ActiveGraphError, ReplayDivergence):
    """A replay differs from the log."""


class InvalidActivateAfter(RegistrationError):
    """A value is not a valid delay of a behavior."""


class UnsupportedPatternError(RegistrationError, PatternError, SyntaxError):
    """A pattern uses unsupported features, or cannot be parsed."""

    def __init__(self, *problems: Problem | str) -> None:
        super().__init__(*problems)
        self.msg = "\n".join(map(str, problems))  # the fields that a SyntaxError shows


class GraphError(ExecutionError):
    """A graph or a run rejects an operation."""


class UnknownObjectError(GraphError, KeyError):
    """There is no object, relation or patch with that id."""

    def __str__(self) -> str:
        """Return the problems; a KeyError would quote them."""
        return "\n".join(map(str, self.args))


class InvalidPatchLifecycleState(GraphError, ValueError):
    """A patch that was already decided is approved or rejected."""


class InvalidPatchOperation(GraphError, ValueError):
    """A patch has an operation other than update and replace."""


class ReservedFieldError(GraphError, ValueError):
    """A field that only the graph itself may write is written."""


class NonSerializableEventError(GraphError, StorageError, TypeError):
    """A value is not JSON-serializable."""


class InternalEvaluatorError(GraphError, ValueError):
    """`where` has an unknown operator."""


class ApprovalNotFoundError(GraphError, LookupError):
    """No approval with that id is pending."""


class PolicyViolation(GraphError, PermissionError):
    """A behavior attempts what its policy forbids."""

    reason = "policy.denied"


class InvalidRuntimeConfiguration(ConfigurationError, GraphError, ValueError):
    """The arguments of a runtime are inconsistent."""


class InvalidArgumentType(InvalidRuntimeConfiguration, TypeError):
    """An argument has the wrong type."""


class InvalidToolRegistration(RegistrationError, InvalidArgumentType):
    """An object passed as a tool is not a tool."""


class BehaviorNotFoundError(RegistrationError, GraphError, LookupError):
    """There is no behavior with that name."""


class AmbiguousBehaviorError(RegistrationError, GraphError):
    """Several behaviors have that short name."""


class ToolNotFoundError(RegistrationError, GraphError, LookupError):
    """There is no tool with that name."""


class AmbiguousToolError(RegistrationError, GraphError):
    """Several tools have that short name."""


class EventNotFoundError(GraphError, StorageError, KeyError):
    """There is no event with that id."""

    __str__ = UnknownObjectError.__str__


class DuplicateEventError(GraphError, StorageError, ValueError):
    """An event has an id that is already used."""


class PackError(ActiveGraphError, RecipeError):
    """A pack cannot be loaded, or its rules are violated."""


class PackConflictError(RegistrationError, PackError):
    """A pack defines a name that is already used."""


class PackVersionConflictError(RegistrationError, PackError):
    """Another version of a pack is loaded."""


class PackValidationError(RegistrationError, PackError):
    """A pack or its settings are invalid."""


class PackSettingsMissingError(PackValidationError):
    """A pack is loaded without settings although its schema requires some."""


class PackPromptLoadError(RegistrationError, PackError):
    """A prompt file of a pack cannot be loaded."""


class PackNotFoundError(RegistrationError, LookupError):
    """No pack with that name is installed or loaded."""


class PackSchemaViolation(PackError):
    """An object or a relation does not fit the schema of its pack."""

    reason = "pack.schema_violation"


class _ReasonedFailure(ExecutionError):
    """A failure with a reason, and the other fields of its event."""

    def __init__(self, reason: str, message: str = "", *, payload_extras: dict[str, Any] | None = None) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason, self.payload_extras = reason, dict(payload_extras or {})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the text alone."""
        return (type(self), (self.reason, str(self).partition(": ")[2]))


class ToolError(_ReasonedFailure):
    """A call of a tool that failed: tool.timeout, tool.invalid_input, tool.execution_error ..."""


class UnknownToolError(ToolError, RuntimeError):
    """A model calls a tool that its behavior does not name."""


class LLMBehaviorError(_ReasonedFailure):
    """A model request failed: llm.network_error and llm.rate_limited are retried, others are not."""


class MissingProviderError(RegistrationError, RuntimeError):
    """A behavior uses a model, but the runtime has none."""


class MissingToolError(RegistrationError, RuntimeError):
    """A behavior names a tool that its runtime does not have."""


class ReplayDivergenceError(ReplayError):
    """Rerun behaviors differ from the log: `event_id`, `expected`, `actual` and `kind`."""

    def __init__(
        self, *problems: Problem | str, event_id: str = "", expected: Any = None, actual: Any = None, kind: str = ""
    ) -> None:
        super().__init__(*problems)
        self.event_id, self.expected, self.actual, self.kind = event_id, expected, actual, kind
