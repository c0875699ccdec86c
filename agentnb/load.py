"""Loading: create a Recipe from any supported source; the dialect is recognized by the content."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from agentnb.arguments import plain_arguments
from agentnb.dialects.table import DIALECTS, Dialect, describe_content, load_recipe, sort_problems
from agentnb.errors import Problem, RecipeError, did_you_mean, limit_suggestions, with_article
from agentnb.garbage_collection import pause_collection
from agentnb.recipe.listing import Listing
from agentnb.recipe.model import ROOT, Recipe
from agentnb.secrets import masking_for
from agentnb.sources import SUFFIXES, Source, make_plain_source, read_file, read_text
from agentnb.sources.problems import make_mapping_problem, make_missing_file_problem
from agentnb.text import get_class_name, safe_str
from agentnb.world.tools.allow_list import to_allow_entries

# The top-level words of a recipe: a misspelled one is the most likely reason why no dialect recognizes a text.
_TOP_WORDS = ("apiVersion", "kind", "metadata", "interface", "topology")
_SORTS = "a path, YAML or JSON text, a dict, a networkx graph, or a dialect's own object"


class DialectRow(NamedTuple):
    """A row of `nb.dialects()`: the name, what is written in it, and the sources that can be loaded."""

    name: str
    description: str
    sources: str


def dialects() -> Listing[DialectRow]:
    """Return the loadable dialects, one row each.

    Example:
        >>> [row.name for row in dialects()]
        ['coreason', 'agentruntime', 'symphony', 'networkx', 'polaris', 'activegraph', 'langgraph', 'burr']
    """
    return Listing(DialectRow(row.name, row.description, row.sources) for row in DIALECTS.values())


@plain_arguments
def load(
    source: Any, *, dialect: str | None = None, name: str | None = None, allow: str | Iterable[str] = ()
) -> Recipe:
    """Read a recipe, check it, and return it. Nothing of it runs, and nothing is imported for it.

    Args:
        source: a path, YAML or JSON text, a dict, a networkx graph, or a dialect's own object.
        dialect: one of `nb.dialects()`; default: recognized by the content.
        name: what the recipe is called, in place of its own name.
        allow: module prefixes and folders that tools may be imported from when a session starts, besides the
            recipe's own folder; folders that its memory may write to; commands that MCP servers may be started with;
            and `env:NAME` for an environment variable that the recipe may read, or set for such a server.

    Raises:
        RecipeError: every problem at once, errors first (`.problems`). Warnings alone raise nothing:
            `recipe.check()` has them.

    Example:
        >>> recipe = load('''
        ... metadata: {name: hello}
        ... interface: {}
        ... topology: [{id: greet, type: agent, agent_ref: greeter}]
        ... ''')
        >>> recipe
        <Recipe 'hello' (coreason): 1 node, 0 edges>
    """
    if isinstance(source, Recipe):
        return _rename(source, name)
    allowed = to_allow_entries(allow)
    try:
        with masking_for(), limit_suggestions(), pause_collection():
            read, file = _read(source)
            read = replace(read, allow=allowed)
            chosen = _find_dialect(dialect) if dialect is not None else _recognize(read)
            return _rename(replace(load_recipe(read, chosen), file=file), name)
    except (RecipeError, KeyboardInterrupt):
        raise
    except BaseException as error:  # also the SystemExit of an object in a dict or a graph
        raise RecipeError(_make_unreadable_problem(source, error)) from error


def _make_unreadable_problem(source: object, error: BaseException) -> Problem:
    """Return the problem of a source that contains an object that cannot be read."""
    return Problem(
        "R332",
        f"{with_article(get_class_name(source))} cannot be read as a recipe",
        f"<{get_class_name(source)}>",
        f"reading part of it failed: {get_class_name(error)}: {safe_str(error, 200)}",
        "write it with plain values: strings, numbers, lists and dicts; the cause of this error shows the part",
    )


def _rename(recipe: Recipe, name: str | None) -> Recipe:
    if name is None:
        return recipe
    regions = {
        id: replace(region, title=name) if id == ROOT else region for id, region in recipe.regions.items()
    }  # fmt: skip
    return replace(recipe, name=name, regions=MappingProxyType(regions))


def _read(source: Any) -> tuple[Source, str | None]:
    """Return a source's content, and the file that it came from, if any."""
    if isinstance(source, os.PathLike):
        return _load_file(source)
    if isinstance(source, str):
        return (read_text(source), None) if _is_text(source) else _load_file(source)
    if isinstance(source, Mapping):
        return make_plain_source(source), None
    return Source(source, f"<{type(source).__name__}>"), None


def _is_text(source: str) -> bool:
    """Return True for the text of a recipe, False for a path: several lines, a brace, or a key with its value."""
    if "\n" in source or not source.strip() or source.lstrip().startswith(("{", "[")):
        return True
    return ": " in source and not source.lower().endswith(SUFFIXES)


def _load_file(path: str | os.PathLike[str]) -> tuple[Source, str | None]:
    try:
        file = Path(path).expanduser()
        exists = file.exists()
    except (
        ValueError,
        OSError,
        RuntimeError,
        TypeError,
    ):
        # A null character, a name too long, no home, a path of bytes
        file, exists = Path(), False
    if not exists:
        raise RecipeError(
            make_missing_file_problem(os.fspath(path) if isinstance(path, str) else str(path), *_list_neighbors(path))
        )
    return read_file(file), str(file)


def _list_neighbors(path: object) -> tuple[list[str], str]:
    """Return the recipes beside a path that does not exist, in the form of that path, and their folder."""
    try:
        folder = Path(str(path)).expanduser().parent
        names = [str(Path(str(path)).parent / file.name) for file in folder.iterdir() if file.suffix in SUFFIXES]
    except (ValueError, OSError, RuntimeError):
        return [], str(Path(str(path).replace("\0", "")).parent)[:200]
    return names, str(folder)


def _find_dialect(name: str) -> Dialect:
    """Return the dialect with a name."""
    dialect = DIALECTS.get(name)
    if dialect is None:
        raise RecipeError(
            Problem("R107", f"there is no dialect {name!r}", f"load(dialect={name!r})",
                    f"the dialects are: {', '.join(DIALECTS)}",
                    did_you_mean(name, DIALECTS, "use one of them, or leave it out"))
        )  # fmt: skip
    return dialect


def _recognize(source: Source) -> Dialect:
    """Return the first dialect that recognizes the content."""
    if source.content is None and source.problems:
        raise RecipeError(*source.problems)
    for dialect in DIALECTS.values():
        if dialect.recognize(source.content):
            return dialect
    raise RecipeError(*sort_problems([*source.problems, *_iter_unknown_dialect_problems(source)]))


def _iter_unknown_dialect_problems(source: Source) -> Iterator[Problem]:
    """R107: the dialect of a recipe is not known."""
    content = source.content
    tried = "; ".join(f"{row.name} ({row.identified_by})" for row in DIALECTS.values())
    if isinstance(content, Mapping):
        keys = ", ".join(map(repr, list(content)[:8])) or "none"
        guesses = (did_you_mean(key, _TOP_WORDS, "") for key in content if key not in _TOP_WORDS)
        order = next(filter(None, guesses), "specify it: load(..., dialect='coreason')")
        yield Problem("R107", "no dialect recognizes this recipe", str(source.locate()),
                      f"its keys are: {keys}; tried: {tried}", order)  # fmt: skip
    elif source.text is not None:
        yield make_mapping_problem(source.locate(), describe_content(source))
    else:
        yield Problem("R107", f"{describe_content(source)} is not a recipe", str(source.locate()),
                      f"tried: {tried}", f"pass {_SORTS}")  # fmt: skip
