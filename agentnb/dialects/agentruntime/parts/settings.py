"""The parts of an agentruntime file around its graphs: defaults, providers, memory, retry, timeout."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt, model_validator
from pydantic_core import PydanticCustomError


def default_to_mapping(value: Any) -> Any:
    """Return a value, or an empty mapping for a key without a value."""
    return {} if value is None else value


def default_to_list(value: Any) -> Any:
    """Return a value, or an empty list for a key without a value."""
    return [] if value is None else value


def make_rule_error(message: str, order: str, at: tuple[str | int, ...] = ()) -> PydanticCustomError:
    """Return the error of a check: the rule, the remedy, and the part of the value concerned."""
    return PydanticCustomError("needs", "{message}", {"message": message, "do": order, "at": at})


Free = Annotated[dict[str, Any], BeforeValidator(default_to_mapping)]
Name = Annotated[str, Field(min_length=1)]
Names = Annotated[list[Name], Field(min_length=1)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Part(BaseModel):
    """An immutable part of a file that ignores unknown keys."""

    model_config = ConfigDict(hide_input_in_errors=True, extra="ignore", frozen=True)


class RetryConfig(Part):
    """The total number of attempts, and the seconds between two of them."""

    max_attempts: PositiveInt = 1
    backoff: NotNegative = Field(1.0, validation_alias=AliasChoices("backoff", "backoff_seconds"))


class TimeoutConfig(Part):
    """A timeout in seconds. In a file a number is short for `{seconds: number}`."""

    seconds: float = Field(gt=0, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _from_a_number(cls, value: Any) -> Any:
        bare = isinstance(value, int | float) and not isinstance(value, bool)
        return {"seconds": value} if bare else value


class TracingConfig(Part):
    """The original's tracing settings. They are read but have no effect: every session has a trace."""

    enabled: bool = False
    sinks: list[Literal["stdout", "jsonl", "langsmith", "null"]] = []
    sample: float = Field(1.0, ge=0, le=1)
    level: Literal["debug", "info", "warn", "error"] = "info"
    dir: str = "./logs"
    max_text: int = 2048
    deny_keys: list[str] = []
    langsmith_project: str | None = None


class Defaults(Part):
    """The defaults of nodes, tools and graphs. `temp` is the temperature of the model."""

    llm: Name | None = None
    temp: NotNegative = 0.3
    retry: RetryConfig | None = None
    timeout: TimeoutConfig | None = None
    tracing: TracingConfig | None = None

    @property
    def provider(self) -> tuple[str, str | None] | None:
        """`llm` as (provider, model): `openai:gpt` and `:gpt` use openai; a single word is the name of a provider."""
        if self.llm is None:
            return None
        provider, _, model = self.llm.partition(":")
        return provider or "openai", model or None


class MetaConfig(Part):
    """An agent's name, its defaults, and the settings of the model providers by name."""

    schema_version: PositiveInt = 1
    name: Name
    defaults: Annotated[Defaults, BeforeValidator(default_to_mapping)] = Defaults()
    providers: Annotated[dict[str, Free], BeforeValidator(default_to_mapping)] = {}


class MemoryConfig(Part):
    """Whether conversations persist between runs, where, and under which key of the inputs (or the state).

    `k` is the number of last messages in `messages_window`; None for all.
    """

    enabled: bool = False
    type: Literal["langchain_history"] = "langchain_history"
    kind: Literal["inmemory", "redis", "sqlite", "postgres", "file", "custom"] = "inmemory"
    dsn: str | None = None
    table: str | None = None
    path: str | None = None
    namespace: str | None = None
    k: PositiveInt | None = None
    session_key: Name = "session_id"
    config: Free = {}

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        needed = {"inmemory": "", "file": "path", "custom": "config.impl"}.get(self.kind, "dsn")
        setting = self.config.get("impl") if self.kind == "custom" else getattr(self, needed, True)
        if self.enabled and not setting:
            raise make_rule_error(f"A memory of kind {self.kind!r} requires {needed!r}", f"write {needed!r}")
        return self
