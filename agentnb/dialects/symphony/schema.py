"""The schema of an agent's configuration: AgentConfig, with Python's names or the original's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PositiveInt,
    SerializerFunctionWrapHandler,
    Tag,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from agentnb.board.masking import mask_value
from agentnb.dialects import pydantic_errors
from agentnb.errors import Problem, RecipeError, warn_caller, with_article
from agentnb.secrets import hide
from agentnb.sources import Source, make_plain_source

__all__ = ["AgentConfig", "ModelConfig", "read", "to_config"]

_PLACES: Final = ("name", "description", "task", "tools", "llm", "directives", "system_prompt", "max_calls")


def _default_to_list(value: Any) -> Any:
    return [] if value is None else list(value) if isinstance(value, tuple | set | frozenset) else value


def _default_to_empty(value: Any) -> Any:
    return "" if value is None else value


def _sort(value: Any) -> str:
    """Return in which of the two forms a model is written."""
    return "text" if isinstance(value, str) else "model"


def _make_alias(name: str, other: str) -> Any:
    """Return the location of a field's value: under its name here, or under the original's."""
    return AliasChoices(name, other)


Text = Annotated[str, BeforeValidator(_default_to_empty)]


class _Part(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True, extra="ignore", frozen=True, protected_namespaces=())

    @model_serializer(mode="wrap")
    def _dump_masked(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Mask the secrets in the results of `model_dump` and `model_dump_json`; the attributes keep them."""
        return mask_value(dump(self))  # type: ignore[no-any-return]  # a dict, as it was


class ModelConfig(_Part):
    """The model of an agent and its settings. `timeout` is in seconds; None leaves the choice to the provider.

    `native_tools` offers the agent's tools as native tool calls, instead of using the JSON protocol.
    """

    model: str | None = None
    provider: str | None = None
    api_key: str | None = Field(None, validation_alias=_make_alias("api_key", "apiKey"), repr=False)
    temperature: float | None = Field(None, ge=0, allow_inf_nan=False)
    max_tokens: PositiveInt | None = Field(None, validation_alias=_make_alias("max_tokens", "maxTokens"))
    timeout: float | None = Field(None, gt=0, allow_inf_nan=False)
    native_tools: bool = Field(default=False, validation_alias=_make_alias("native_tools", "nativeTools"))

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings of the provider that are set, by its names."""
        return {name: value for name, value in self if value is not None and name != "native_tools"}

    @model_validator(mode="after")
    def _hide_key(self) -> Self:
        """Mask the key wherever it appears from now on."""
        hide(self.api_key)
        return self


Model = Annotated[Annotated[str, Tag("text")] | Annotated[ModelConfig, Tag("model")], Discriminator(_sort)]


class AgentFields(_Part):
    """The fields of an agent, as in a file or a mapping."""

    name: Annotated[str, Field(min_length=1)]
    description: Text = ""
    task: Text = ""
    tools: Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(_default_to_list)] = []
    llm: Model | None = None
    directives: str | None = None
    system_prompt: str | None = Field(None, validation_alias=_make_alias("system_prompt", "systemPrompt"))
    max_calls: PositiveInt = Field(1, validation_alias=_make_alias("max_calls", "maxCalls"))
    timeout: float | None = Field(None, gt=0, allow_inf_nan=False)
    require_approval: bool = Field(default=False, validation_alias=_make_alias("require_approval", "requireApproval"))
    capabilities: Annotated[list[str], BeforeValidator(_default_to_list)] = []
    enable_cache: bool = Field(default=False, validation_alias=_make_alias("enable_cache", "enableCache"))
    enable_streaming: bool = Field(default=False, validation_alias=_make_alias("enable_streaming", "enableStreaming"))
    stream_options: dict[str, Any] | None = Field(None, validation_alias=_make_alias("stream_options", "streamOptions"))
    log: Any = None

    @field_validator("tools")
    @classmethod
    def _check_callable(cls, value: list[str]) -> list[str]:
        """Remove duplicate tools."""
        if "none" in value:
            raise ValueError("a model answers 'none' to call no tool, so no tool can have that name")
        return list(dict.fromkeys(value))

    @field_validator("directives", mode="before")
    @classmethod
    def _to_one_text(cls, value: Any) -> Any:
        """Join several directives to one string, one per line."""
        is_list = isinstance(value, list | tuple) and all(isinstance(item, str | int | float) for item in value)
        return "\n".join(map(str, value)) if is_list else value

    @property
    def native(self) -> bool:
        """True if its model uses native tool calls."""
        return bool(self.tools) and self.model.native_tools

    @property
    def model(self) -> ModelConfig:
        """The name of the model; "provider:model" is split."""
        if isinstance(self.llm, ModelConfig):
            return self.llm
        from agentnb.world.llm.providers import PROVIDERS, SIMULATED

        provider, colon, model = (self.llm or "").partition(":")
        if colon and provider in {*PROVIDERS, SIMULATED}:
            return ModelConfig.model_validate({"model": model or None, "provider": provider})
        return ModelConfig.model_validate({"model": self.llm})


class AgentConfig(AgentFields):
    """An agent: its identity, its purpose, the tools that it may call, and its model.

    Fields may have the names used here or those of the original (`systemPrompt`, `maxCalls`).

    Args:
        tools: the names of the tools that it may call; with tools it answers in JSON, otherwise in plain text.
        llm: a model's name, "provider:model", or model, provider, temperature, max_tokens, timeout, native_tools.
        directives: additional rules for the prompt.
        system_prompt: replaces the text generated from name, description and task.
        max_calls: the maximum number of model requests; with more than one, it continues after a tool.
        timeout: the time limit of each model answer in seconds.
        require_approval: whether a person must approve each tool call.

    An unknown field is reported in a warning.

    Raises:
        RecipeError: all problems at once.

    Example:
        >>> AgentConfig(name="Support", task="Help customers", tools=["find_order"]).max_calls
        1
    """

    def __init__(self, *args: Any, **fields: Any) -> None:
        """Create a config; the first eight fields may be positional.

        Raises:
            RecipeError: all problems at once.
        """
        values = {**dict(zip(_PLACES, args, strict=False)), **fields}
        written = _make_written(values)
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise RecipeError(*pydantic_errors.iter_schema_problems(error, written)) from None
        _warn_of(pydantic_errors.iter_unknown_keys(written))


def _warn_of(problems: Iterable[Problem]) -> None:
    """Issue a warning for each problem that is one; a recipe's file has them among its notes."""
    for problem in problems:
        if problem.severity == "warning":
            warn_caller(str(problem))


def _make_written(values: Mapping[str, Any]) -> pydantic_errors.ValidatedInput:
    shown = {name: value for name, value in values.items() if isinstance(name, str)}
    return pydantic_errors.ValidatedInput(Source(shown, "AgentConfig(...)"), shown, AgentFields)


def read(source: Source) -> tuple[AgentConfig | None, list[Problem]]:
    """Return the config in a source, if it is valid, and the problems beyond its syntax.

    R109, R112 (a warning), R113, R114: a word, a key, or a value is not valid.
    """
    if isinstance(source.content, AgentConfig):
        return source.content, []
    written = pydantic_errors.ValidatedInput(source, source.content, AgentFields)
    problems = [*pydantic_errors.check_words(source), *pydantic_errors.iter_unknown_keys(written)]
    try:
        return AgentConfig(**vars(AgentFields.model_validate(source.content))), problems
    except ValidationError as error:
        return None, [*problems, *pydantic_errors.iter_schema_problems(error, written)]


def to_config(value: Any) -> AgentConfig:
    """Return an agent's config unchanged, or created from a mapping.

    Raises:
        RecipeError: all problems at once.
    """
    if isinstance(value, AgentConfig):
        return value
    source = make_plain_source(value) if isinstance(value, Mapping) else Source(value, "AgentExecutor(config)")
    if not isinstance(value, Mapping):
        raise RecipeError(
            Problem("R114", f"the config is {with_article(type(value).__name__)}", "AgentExecutor(config)",
                    "an agent is described by an AgentConfig or a mapping of its fields",
                    "pass AgentConfig(name=..., description=..., task=..., tools=[...])")
        )  # fmt: skip
    config, problems = read(source)
    errors = [problem for problem in (*source.problems, *problems) if problem.severity == "error"]
    if config is None or errors:
        raise RecipeError(*errors)
    _warn_of((*source.problems, *problems))
    return config
