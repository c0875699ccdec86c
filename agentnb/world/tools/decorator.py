"""The decorator `@tool`: makes a tool of a Python function with type hints and a docstring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from agentnb.errors import Problem, RecipeError, with_article
from agentnb.world.tools.tool_config import MARK, ToolConfig, from_function

F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    retry_count: int = 0,
    backoff: float = 0.0,
    input_schema: Any = None,
    type: str | None = None,
    capabilities: tuple[str, ...] = (),
) -> Callable[[F], F]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Make a function a tool: `@tool`, or `@tool(name=..., timeout=...)`; it can still be called directly.

    The tool has the function's name, the first paragraph of its docstring as description, and parameters from its type
    hints, described by the Args section or `Annotated[..., "text"]`. It is called with one dict, converts it by the
    hints (the string "3" for an int is 3) and rejects unknown parameters; it is async if the function is.

    Args:
        options: fields of a ToolConfig, which override those derived from the function.

    Raises:
        RecipeError: R191, a parameter cannot be passed by name, or a hint has no JSON Schema; R114 and R190, an option.

    Example:
        >>> @tool
        ... def add(a: int, b: int = 1) -> int:
        ...     \"\"\"Add two numbers.\"\"\"
        ...     return a + b
        >>> add(2), add.__agentnb_tool__.description
        (3, 'Add two numbers.')
    """
    if function is None:
        return lambda target: _mark(target, options)
    return _mark(function, options)


def _mark(function: Any, options: dict[str, Any]) -> Any:
    """R191: a function cannot be made a tool from its type hints."""
    config = from_function(function, hints=True, **options)
    config = ToolConfig.of(config.name, config)
    try:
        setattr(function, MARK, config)
    except AttributeError:
        raise RecipeError(Problem(
            "R191",
            f"{config.name!r} cannot be a tool: no attribute is settable on {with_article(type(function).__name__)}",
            f"function {config.name!r}", "the decorator stores the tool on the function itself",
            "register it directly: register_tool(name, function)",
        )) from None  # fmt: skip
    return function
