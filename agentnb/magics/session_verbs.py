"""The verbs of `%agent` that create, open, select, save and fork sessions."""

from __future__ import annotations

from typing import Any

from agentnb.load import load as load_recipe
from agentnb.magics.line_parsing import check_variable, require_text, split_name
from agentnb.magics.workspace import Workspace
from agentnb.recipe.descriptions import parse_typed
from agentnb.recipe.model import Recipe
from agentnb.samples import samples
from agentnb.session import Session


def load(bench: Workspace, words: list[str]) -> Recipe:
    """`load PATH [as NAME]`: load a recipe, or a sample by its name, into NAME (default: `recipe`)."""
    path, name = split_name(words, "recipe", "load")
    known = [row.name for row in samples()]
    found: Any = samples(path) if path in known else load_recipe(path)
    return bench.keep(name, found)


def create_session(bench: Workspace, words: list[str]) -> Session:
    """`new [NAME] [as VARIABLE] key=value...`: create a session of the recipe NAME with these inputs.

    A value is JSON or text; if the recipe declares the input as text, it is text. The session is assigned to the
    variable (default: `session`) and becomes the current one.
    """
    pairs = [word for word in words if "=" in word]
    rest = [word for word in words if "=" not in word]
    name, at = split_name(["", *rest] if rest[:1] == ["as"] else rest or [""], "session", "new")
    recipe = bench.recipe(name.strip())
    inputs = {
        key: parse_typed(text, recipe.inputs.get(key)) for key, _, text in (pair.partition("=") for pair in pairs)
    }
    return bench.take(at, Session(recipe, inputs))


def use(bench: Workspace, words: list[str]) -> Session:
    """`use VARIABLE`: make another session of this notebook the current one."""
    return bench.use(require_text(words, "use", "a variable"))


def open(bench: Workspace, words: list[str]) -> Session:
    """`open PATH_OR_URL [RUN] [as VARIABLE]`: open a recorded run; with the recipe loaded last it can continue."""
    from agentnb.recordings.formats import open as open_run

    where, name = split_name(words, "session", "open")
    place, _, run = where.partition(" ")
    try:
        recipe: Recipe | None = bench.recipe("")
    except Exception:  # noqa: BLE001  (without a recipe it is opened to be looked at)
        recipe = None
    return bench.take(name, open_run(place, run or None, recipe=recipe))


def runs(_: Workspace, words: list[str]) -> Any:
    """`runs PATH_OR_URL`: the runs in a store as a DataFrame."""
    from agentnb.session.run_list import runs as runs_in

    return runs_in(require_text(words, "runs", "a path or a URL"))


def save(bench: Workspace, words: list[str]) -> str:
    """`save [PATH]`: save the run to a file or store; without PATH, to the store that it already uses."""
    return bench.session.save(" ".join(words) or None)


def fork(bench: Workspace, words: list[str]) -> Session:
    """`fork [NAME]`: create a fork from here in NAME (default: `fork`) and make it the current session."""
    name = check_variable(words[0] if words else "fork", "%agent fork")
    return bench.take(name, bench.session.fork(name=name))


def print_tree(bench: Workspace, _: list[str]) -> None:
    """`tree`: the session and all its forks, one per line."""
    print(bench.session.tree())  # noqa: T201  (it is read on the screen)


def replay(bench: Workspace, _: list[str]) -> Any:
    """`replay`: re-execute the steps so far against the recorded responses and report differences."""
    return bench.session.replay()
