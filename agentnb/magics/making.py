"""making: the verbs of `%agent` that make recipes and sessions, bring them back and keep them."""

from __future__ import annotations

from typing import Any

from agentnb.load import load as load_recipe
from agentnb.magics.bench import Bench
from agentnb.magics.words import named, needed, variable
from agentnb.recipe.model import Recipe
from agentnb.recipe.words import typed
from agentnb.samples import samples
from agentnb.session import Session


def load(bench: Bench, words: list[str]) -> Recipe:
    """`load PATH [as NAME]`: load a recipe, or a sample by its name, into NAME (`recipe` if left out)."""
    path, name = named(words, "recipe", "load")
    known = [row.name for row in samples()]
    found: Any = samples(path) if path in known else load_recipe(path)
    return bench.keep(name, found)


def new(bench: Bench, words: list[str]) -> Session:
    """`new [NAME] [as VARIABLE] key=value...`: make a session of the recipe NAME, with these inputs.

    A value is JSON, or text; where the recipe declares the input as text, it is text. It is put into `session` where no
    variable is named, and is the current session from then on.
    """
    pairs = [word for word in words if "=" in word]
    rest = [word for word in words if "=" not in word]
    name, at = named(["", *rest] if rest[:1] == ["as"] else rest or [""], "session", "new")
    recipe = bench.recipe(name.strip())
    inputs = {key: typed(text, recipe.inputs.get(key)) for key, _, text in (pair.partition("=") for pair in pairs)}
    return bench.take(at, Session(recipe, inputs))


def use(bench: Bench, words: list[str]) -> Session:
    """`use VARIABLE`: act on another session of this notebook from now on."""
    return bench.use(needed(words, "use", "a variable"))


def open(bench: Bench, words: list[str]) -> Session:
    """`open PATH_OR_URL [RUN] [as VARIABLE]`: bring a kept run back; with the recipe loaded last it can go on."""
    from agentnb.session.opening import open as open_run

    where, name = named(words, "session", "open")
    place, _, run = where.partition(" ")
    try:
        recipe: Recipe | None = bench.recipe("")
    except Exception:  # noqa: BLE001  (without a recipe it is opened to be looked at)
        recipe = None
    return bench.take(name, open_run(place, run or None, recipe=recipe))


def runs(_: Bench, words: list[str]) -> Any:
    """`runs PATH_OR_URL`: the runs in a store as a DataFrame."""
    from agentnb.session.opening import runs as runs_in

    return runs_in(needed(words, "runs", "a path or a URL"))


def save(bench: Bench, words: list[str]) -> str:
    """`save [PATH]`: keep the run in a file or a store, else where it is kept anyway."""
    return bench.session.save(" ".join(words) or None)


def fork(bench: Bench, words: list[str]) -> Session:
    """`fork [NAME]`: a new session from here, the current one from then on, in NAME (`fork` if left out)."""
    name = variable(words[0] if words else "fork", "%agent fork")
    return bench.take(name, bench.session.fork(name=name))


def tree(bench: Bench, _: list[str]) -> None:
    """`tree`: the session and all its forks, one a line."""
    print(bench.session.tree())  # noqa: T201  (it is read on the screen)


def replay(bench: Bench, _: list[str]) -> Any:
    """`replay`: run the steps up to here once more on what was recorded, and say where they differ."""
    return bench.session.replay()
