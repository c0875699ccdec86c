"""schema: an agent's configuration, typed: AgentConfig, in the words of Python or in the original's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PositiveInt,
    Tag,
    ValidationError,
    field_validator,
)

from agentnb.dialects import mistakes
from agentnb.errors import Problem, RecipeError
from agentnb.sources import Source, plain_source

__all__ = ["AgentConfig", "ModelConfig", "config_of", "read"]

_PLACES: Final = ("name", "description", "task", "tools", "llm", "directives", "system_prompt", "max_calls")


def _or_list(value: Any) -> Any:
    return [] if value is None else list(value) if isinstance(value, tuple | set | frozenset) else value


def _or_empty(value: Any) -> Any:
    return "" if value is None else value


def _sort(value: Any) -> str:
    """Return which of the two forms a model is written in."""
    return "text" if isinstance(value, str) else "model"


def _both(name: str, other: str) -> Any:
    """Return where a field's value stands: under its name here, or under the original's."""
    return AliasChoices(name, other)


Text = Annotated[str, BeforeValidator(_or_empty)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())


class ModelConfig(_Part):
    """Which model an agent asks, and how. `timeout` is in seconds; what is None is left to the provider."""

    model: str | None = None
    provider: str | None = None
    api_key: str | None = Field(None, validation_alias=_both("api_key", "apiKey"), repr=False)
    temperature: float | None = Field(None, ge=0, allow_inf_nan=False)
    max_tokens: PositiveInt | None = Field(None, validation_alias=_both("max_tokens", "maxTokens"))
    timeout: float | None = Field(None, gt=0, allow_inf_nan=False)


Model = Annotated[Annotated[str, Tag("text")] | Annotated[ModelConfig, Tag("model")], Discriminator(_sort)]


class Written(_Part):
    """The fields of an agent, as a file or a mapping has them."""

    name: Annotated[str, Field(min_length=1)]
    description: Text = ""
    task: Text = ""
    tools: Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(_or_list)] = []
    llm: Model | None = None
    directives: str | None = None
    system_prompt: str | None = Field(None, validation_alias=_both("system_prompt", "systemPrompt"))
    max_calls: PositiveInt = Field(1, validation_alias=_both("max_calls", "maxCalls"))
    timeout: float | None = Field(None, gt=0, allow_inf_nan=False)
    require_approval: bool = Field(default=False, validation_alias=_both("require_approval", "requireApproval"))
    capabilities: Annotated[list[str], BeforeValidator(_or_list)] = []
    enable_cache: bool = Field(default=False, validation_alias=_both("enable_cache", "enableCache"))
    enable_streaming: bool = Field(default=False, validation_alias=_both("enable_streaming", "enableStreaming"))
    stream_options: dict[str, Any] | None = Field(None, validation_alias=_both("stream_options", "streamOptions"))
    log: Any = None

    @field_validator("tools")
    @classmethod
    def _callable(cls, value: list[str]) -> list[str]:
        """Take each tool once."""
        if "none" in value:
            raise ValueError("a model says 'none' where it calls no tool, so no tool can be called that")
        return list(dict.fromkeys(value))

    @field_validator("directives", mode="before")
    @classmethod
    def _one_text(cls, value: Any) -> Any:
        """Take several directives as one text, a line each."""
        return "\n".join(map(str, value)) if isinstance(value, list | tuple) else value

    @property
    def model(self) -> ModelConfig:
        """Which model is asked; "provider:model" is taken apart."""
        if isinstance(self.llm, ModelConfig):
            return self.llm
        from agentnb.world.llm.providers import PROVIDERS, SIMULATED

        provider, colon, model = (self.llm or "").partition(":")
        if colon and provider in {*PROVIDERS, SIMULATED}:
            return ModelConfig.model_validate({"model": model or None, "provider": provider})
        return ModelConfig.model_validate({"model": self.llm})


class AgentConfig(Written):
    """An agent: who it is, what it is for, which tools it may call, and which model it asks.

    Names are taken as they are here or as the original writes them (`systemPrompt`, `maxCalls`).

    Args:
        tools: the names of the tools that it may call; with some it answers in JSON, without any in plain words.
        llm: a model's name, "provider:model", or model, provider, temperature, max_tokens, timeout.
        directives: what it has to keep to besides; told once.
        system_prompt: in place of the text that is put together from name, description and task.
        max_calls: how often its model is asked at most: with more than one it goes on after a tool.
        timeout: the seconds that each answer of its model may take.
        require_approval: whether a person is asked before a tool is called.

    Raises:
        RecipeError: every mistake at once.

    Example:
        >>> AgentConfig(name="Support", task="Help customers", tools=["find_order"]).max_calls
        1
    """

    def __init__(self, *args: Any, **fields: Any) -> None:
        """Make a config; the first eight fields may be given by their places.

        Raises:
            RecipeError: every mistake at once.
        """
        given = {**dict(zip(_PLACES, args, strict=False)), **fields}
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise RecipeError(*mistakes.schema_problems(error, _written(given))) from None


def _written(given: Mapping[str, Any]) -> mistakes.Written:
    shown = {name: value for name, value in given.items() if isinstance(name, str)}
    return mistakes.Written(Source(shown, "AgentConfig(...)"), shown, Written)


def read(source: Source) -> tuple[AgentConfig | None, list[Problem]]:
    """Return the config that a source holds, where it can be read, and what is wrong with it beyond its syntax.

    R109, R112 (a warning), R113, R114: a word, a key, a value that is not what is needed there.
    """
    if isinstance(source.content, AgentConfig):
        return source.content, []
    written = mistakes.Written(source, source.content, Written)
    problems = [*mistakes.word_problems(source), *mistakes.unknown_keys(written)]
    try:
        return AgentConfig(**vars(Written.model_validate(source.content))), problems
    except ValidationError as error:
        return None, [*problems, *mistakes.schema_problems(error, written)]


def config_of(value: Any) -> AgentConfig:
    """Return an agent's config as it is, or made of a mapping.

    Raises:
        RecipeError: every mistake in it at once.
    """
    if isinstance(value, AgentConfig):
        return value
    source = plain_source(value) if isinstance(value, Mapping) else Source(value, "AgentExecutor(config)")
    if not isinstance(value, Mapping):
        raise RecipeError(
            Problem("R114", f"the config is a {type(value).__name__}", "AgentExecutor(config)",
                    "an agent is described by an AgentConfig or a mapping of its fields",
                    "give AgentConfig(name=..., description=..., task=..., tools=[...])")
        )  # fmt: skip
    config, problems = read(source)
    errors = [problem for problem in (*source.problems, *problems) if problem.severity == "error"]
    if config is None or errors:
        raise RecipeError(*errors)
    return config
