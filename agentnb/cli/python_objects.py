"""Recipes, models and tools that the command line names: as `module:object`, a sample, a provider."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agentnb.errors import Problem, RecipeError
from agentnb.load import load
from agentnb.recipe.model import Recipe
from agentnb.samples import samples


def is_object(source: str) -> bool:
    """Return True if a text is of the form `module:object` and names no file."""
    module, colon, name = source.partition(":")
    parts = [*module.split("."), *name.split(".")]
    return bool(colon) and all(part.isidentifier() for part in parts) and not Path(source).exists()


def import_object(source: str) -> Any:
    """Return the object that `module:object` names; modules of the current folder come first.

    L583: an object named as module:object cannot be imported.

    Raises:
        RecipeError: L583.
    """
    module, _, names = source.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        target: Any = importlib.import_module(module)
        for name in names.split("."):
            target = getattr(target, name)
    except (ImportError, AttributeError, ValueError) as error:
        raise RecipeError(
            Problem("L583", f"{source!r} cannot be imported", source, f"{type(error).__name__}: {error}",
                    "name a module that can be imported from this folder, and an object in it: module:object")
        ) from error  # fmt: skip
    return target


def load_recipe(source: str, allow: Sequence[str] = ()) -> Recipe:
    """Return a recipe from a file, from a sample's name, or from Python as `module:object`.

    An object is a recipe, something that nb.load accepts, or a function without required parameters that returns one.
    Its module is imported from the current folder or from what is installed. A file comes before a sample of its name.

    Raises:
        RecipeError: L583, there is no such module or object; or the recipe has errors.
    """
    if not is_object(source):
        is_sample = source in {sample.name for sample in samples()} and not Path(source).exists()
        return samples(source) if is_sample else load(source, allow=allow)
    target = import_object(source)
    if callable(target) and not isinstance(target, Recipe) and not hasattr(target, "nodes"):
        target = target()
    return target if isinstance(target, Recipe) else load(target, allow=allow)


def load_model(text: str | None) -> Any:
    """Return what --llm names: an object of Python, else a text "provider:model"; None if it is left out."""
    from agentnb.world.llm.providers import PROVIDERS

    if text is None or text.partition(":")[0] in PROVIDERS or not is_object(text):
        return text
    return import_object(text)


def load_models(args: argparse.Namespace) -> dict[str, Any]:
    """Return the model that --llm or --live asks for, as an option of a session; nothing without them.

    --live takes the first of openai, anthropic and gemini whose key is in the environment, with its default model.

    Raises:
        AgentNbError: X465, --live, and no key is set; or L583, there is no such object.
    """
    if args.llm is not None:
        return {"llm": load_model(args.llm)}
    if not getattr(args, "live", False):
        return {}
    from agentnb.dialects.symphony import LLMHandler

    return {"llm": LLMHandler().get_provider()}


def load_tools(pairs: Sequence[tuple[str, str]]) -> dict[str, Callable[..., Any]]:
    """Return what --tools names: NAME=module:object.

    Raises:
        RecipeError: L583, one of them cannot be imported.
    """
    return {name: import_object(source) for name, source in pairs}


__all__ = ["import_object", "is_object", "load_model", "load_models", "load_recipe", "load_tools"]
