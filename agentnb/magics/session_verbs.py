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


def load(workspace: Workspace, args: list[str]) -> Recipe:
    """`load PATH [as NAME]`: load a recipe, or a sample by its name, into NAME (default: `recipe`)."""
    path, name = split_name(args, "recipe", "load")
    known = [row.name for row in samples()]
    recipe: Any = samples(path) if path in known else load_recipe(path)
    return workspace.keep(name, recipe)


def create_session(workspace: Workspace, args: list[str]) -> Session:
    """`new [NAME] [as VARIABLE] key=value...`: create a session of the recipe NAME with these inputs.

    A value is JSON or text; if the recipe declares the input as text, it is text. The session is assigned to the
    variable (default: `session`) and becomes the current one.
    """
    pairs = [word for word in args if "=" in word]
    rest = [word for word in args if "=" not in word]
    name, at = split_name(["", *rest] if rest[:1] == ["as"] else rest or [""], "session", "new")
    recipe = workspace.recipe(name.strip())
    inputs = {
        key: parse_typed(text, recipe.inputs.get(key)) for key, _, text in (pair.partition("=") for pair in pairs)
    }
    return workspace.take(at, Session(recipe, inputs))


def use(workspace: Workspace, args: list[str]) -> Session:
    """`use VARIABLE`: make another session of this notebook the current one."""
    return workspace.use(require_text(args, "use", "a variable"))


def open(workspace: Workspace, args: list[str]) -> Session:
    """`open PATH_OR_URL [RUN] [as VARIABLE]`: open a recorded run; with the recipe loaded last it can continue."""
    from agentnb.recordings.formats import open as open_run

    location, name = split_name(args, "session", "open")
    source, _, run = location.partition(" ")
    try:
        recipe: Recipe | None = workspace.recipe("")
    except Exception:  # noqa: BLE001  (without a recipe it is opened to be looked at)
        recipe = None
    return workspace.take(name, open_run(source, run or None, recipe=recipe))


def runs(_: Workspace, args: list[str]) -> Any:
    """`runs PATH_OR_URL`: the runs in a store as a DataFrame."""
    from agentnb.session.run_list import runs as runs_in

    return runs_in(require_text(args, "runs", "a path or a URL"))


def save(workspace: Workspace, args: list[str]) -> str:
    """`save [PATH]`: save the run to a file or store; without PATH, to the store that it already uses."""
    return workspace.session.save(" ".join(args) or None)


def fork(workspace: Workspace, args: list[str]) -> Session:
    """`fork [NAME]`: create a fork from here in NAME (default: `fork`) and make it the current session."""
    name = check_variable(args[0] if args else "fork", "%agent fork")
    return workspace.take(name, workspace.session.fork(name=name))


def print_tree(workspace: Workspace, _: list[str]) -> None:
    """`tree`: the session and all its forks, one per line."""
    print(workspace.session.tree())  # noqa: T201  (it is read on the screen)


def replay(workspace: Workspace, _: list[str]) -> Any:
    """`replay`: re-execute the steps so far against the recorded responses and report differences."""
    return workspace.session.replay()
