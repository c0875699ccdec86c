"""load: whatever a recipe is written in becomes a Recipe; its dialect is recognised by its content."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from agentnb.dialects.table import DIALECTS, Dialect, in_order, recipe_of
from agentnb.errors import Problem, RecipeError, did_you_mean
from agentnb.recipe.listing import Listing
from agentnb.recipe.model import ROOT, Recipe
from agentnb.sources import SUFFIXES, Source, plain_source, read_file, read_text
from agentnb.sources.faults import no_such_file, not_a_mapping

# What a recipe's first level may say: a misspelt one is the likeliest reason that nobody knows a text.
_TOP_WORDS = ("apiVersion", "kind", "metadata", "interface", "topology")
_SORTS = "a path, YAML or JSON text, a dict, a networkx graph, or a dialect's own object"


class DialectRow(NamedTuple):
    """A line of `nb.dialects()`: its name, what is written in it, and what of it can be loaded."""

    name: str
    about: str
    sources: str


def dialects() -> Listing[DialectRow]:
    """Return what can be loaded, one row a dialect.

    Example:
        >>> [row.name for row in dialects()]
        ['coreason', 'agentruntime', 'symphony', 'networkx', 'polaris', 'activegraph']
    """
    return Listing(DialectRow(row.name, row.about, row.sources) for row in DIALECTS.values())


def load(
    source: Any, *, dialect: str | None = None, name: str | None = None, allow: str | Iterable[str] = ()
) -> Recipe:
    """Read a recipe, check it, and return it. Nothing of it runs, and nothing is imported for it.

    Args:
        source: a path, YAML or JSON text, a dict, a networkx graph, or a dialect's own object.
        dialect: one of `nb.dialects()`; left out, it is recognised by the content.
        name: what the recipe is called, in place of its own name.
        allow: module prefixes and folders that tools may be imported from when a session starts, besides the
            recipe's own folder.

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
        <Recipe 'hello' (coreason): 1 nodes, 0 edges>
    """
    if isinstance(source, Recipe):
        return _named(source, name)
    read, file = _read(source)
    chosen = _chosen(dialect, read) if dialect is not None else _recognised(read)
    recipe = recipe_of(read, chosen)
    prefixes = (allow,) if isinstance(allow, str | os.PathLike) else tuple(allow)
    meta = MappingProxyType({**recipe.meta, "allow": tuple(map(_allowed, prefixes))})
    return _named(replace(recipe, file=file, meta=meta), name)


def _allowed(entry: str | os.PathLike[str]) -> str:
    """Return a folder as it is meant here and now, whatever the current one is later; a module's prefix as it is."""
    text = os.fspath(entry)
    folder = isinstance(entry, os.PathLike) or os.sep in text or text.startswith((".", "~"))
    return str(Path(text).expanduser().resolve()) if folder else text


def _named(recipe: Recipe, name: str | None) -> Recipe:
    if name is None:
        return recipe
    regions = {
        id: replace(region, title=name) if id == ROOT else region for id, region in recipe.regions.items()
    }  # fmt: skip
    return replace(recipe, name=name, regions=MappingProxyType(regions))


def _read(source: Any) -> tuple[Source, str | None]:
    """Return what a source says, and the file that it came from, if any."""
    if isinstance(source, os.PathLike):
        return _of_file(source)
    if isinstance(source, str):
        return (read_text(source), None) if _is_text(source) else _of_file(source)
    if isinstance(source, Mapping):
        return plain_source(source), None
    return Source(source, f"<{type(source).__name__}>"), None


def _is_text(source: str) -> bool:
    """Return whether this is a recipe's text and no path: several lines, a brace, or a key with its value."""
    if "\n" in source or not source.strip() or source.lstrip().startswith(("{", "[")):
        return True
    return ": " in source and not source.lower().endswith(SUFFIXES)


def _of_file(path: str | os.PathLike[str]) -> tuple[Source, str | None]:
    try:
        file = Path(path).expanduser()
        exists = file.exists()
    except (
        ValueError,
        OSError,
        RuntimeError,
        TypeError,
    ):  # a null character, a name too long, no home, a path of bytes
        file, exists = Path(), False
    if not exists:
        raise RecipeError(no_such_file(os.fspath(path) if isinstance(path, str) else str(path), *_neighbours(path)))
    return read_file(file), str(file)


def _neighbours(path: object) -> tuple[list[str], str]:
    """Return the recipes beside a path that leads nowhere, written as it was, and the folder they are in."""
    try:
        folder = Path(str(path)).expanduser().parent
        names = [str(Path(str(path)).parent / file.name) for file in folder.iterdir() if file.suffix in SUFFIXES]
    except (ValueError, OSError, RuntimeError):
        return [], str(Path(str(path).replace("\0", "")).parent)[:200]
    return names, str(folder)


def _chosen(name: str, source: Source) -> Dialect:
    """Return the dialect of that name."""
    dialect = DIALECTS.get(name)
    if dialect is None:
        raise RecipeError(
            Problem("R107", f"there is no dialect {name!r}", str(source.place()),
                    f"the dialects are: {', '.join(DIALECTS)}",
                    did_you_mean(name, DIALECTS, "name one of them, or leave it out"))
        )  # fmt: skip
    if source.content is None and source.problems:
        raise RecipeError(*source.problems)
    plain = isinstance(source.content, Mapping | list | str | int | float | None)
    if not (dialect.written and isinstance(source.content, Mapping)) and (
        plain or not dialect.recognise(source.content)
    ):
        raise RecipeError(*source.problems, _other_sort(source, dialect))
    return dialect


def _other_sort(source: Source, dialect: Dialect) -> Problem:
    """R107: the dialect of a recipe is not known."""
    return Problem(
        "R107",
        f"{_sort(source)} cannot be read as {dialect.name}",
        str(source.place()),
        f"{dialect.name} takes {dialect.sources}",
        "give one of these, or leave the dialect out",
    )


def _recognised(source: Source) -> Dialect:
    """Return the first dialect that knows the content as its own."""
    if source.content is None and source.problems:
        raise RecipeError(*source.problems)
    for dialect in DIALECTS.values():
        if dialect.recognise(source.content):
            return dialect
    raise RecipeError(*in_order([*source.problems, *_unknown(source)]))


def _unknown(source: Source) -> Iterator[Problem]:
    """R107: the dialect of a recipe is not known."""
    content = source.content
    tried = "; ".join(f"{row.name} ({row.told_by})" for row in DIALECTS.values())
    if isinstance(content, Mapping):
        keys = ", ".join(map(repr, list(content)[:8])) or "none"
        guesses = (did_you_mean(key, _TOP_WORDS, "") for key in content if key not in _TOP_WORDS)
        order = next(filter(None, guesses), "say which one it is: load(..., dialect='coreason')")
        yield Problem("R107", "no dialect knows this recipe as its own", str(source.place()),
                      f"its keys are: {keys}; tried were: {tried}", order)  # fmt: skip
    elif source.text is not None:
        yield not_a_mapping(source.place(), _sort(source))
    else:
        yield Problem("R107", f"{_sort(source)} is no recipe", str(source.place()),
                      f"tried were: {tried}", f"give {_SORTS}")  # fmt: skip


def _sort(source: Source) -> str:
    match source.content:
        case None:
            return "empty" if source.text is not None else "None"
        case list():
            return "a list"
        case str():
            return "one text"
        case Mapping():
            return "a mapping"
        case bool() | int() | float():
            return "one value"
    name = type(source.content).__name__
    return f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"
