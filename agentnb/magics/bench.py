"""bench: what `%agent` works on: the notebook's variables, the recipe that was loaded last and the current session."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from agentnb.errors import did_you_mean
from agentnb.magics.words import wrong
from agentnb.recipe.model import Recipe
from agentnb.session import Session


class Bench:
    """The variables of a notebook, and which recipe and which session in them are meant where none is named."""

    def __init__(self, names: MutableMapping[str, Any]) -> None:
        self.names = names
        self.recipe_name = self.session_name = ""

    def of(self, cls: type) -> list[str]:
        """Return the variables that hold one of a class; those that begin with _ are IPython's."""
        return [name for name, value in self.names.items() if isinstance(value, cls) and not name.startswith("_")]

    @property
    def session(self) -> Session:
        """The current session: the last one made or chosen here, else the variable `session`.

        Raises:
            ExecutionError: U401, there is none yet.
        """
        for name in (self.session_name, "session"):
            found = self.names.get(name)
            if name and isinstance(found, Session):
                return found
        raise wrong("there is no session yet", "%agent", "a verb acts on the current session",
                    "make one: %agent load PATH, then %agent new NAME key=value")  # fmt: skip

    def take(self, name: str, session: Session) -> Session:
        """Put a session into a variable; from now on it is the current one."""
        self.names[name] = session
        self.session_name = name
        return session

    def use(self, name: str) -> Session:
        """Make the session of a variable the current one.

        Raises:
            ExecutionError: U401, the variable holds none.
        """
        found = self.names.get(name)
        if not isinstance(found, Session):
            there = self.of(Session)
            raise wrong(f"there is no session {name!r}", f"%agent use {name}",
                        f"the sessions here are: {', '.join(there) or 'none'}",
                        did_you_mean(name, there, "make one: %agent new"))  # fmt: skip
        self.session_name = name
        return found

    def keep(self, name: str, recipe: Recipe) -> Recipe:
        """Put a recipe into a variable; from now on `new` takes it where none is named."""
        self.names[name] = recipe
        self.recipe_name = name
        return recipe

    def recipe(self, name: str) -> Recipe:
        """Return the recipe of a variable, or the last one that was loaded here where the name is empty.

        Raises:
            ExecutionError: U401, the variable holds none.
        """
        name = name or self.recipe_name or "recipe"
        found = self.names.get(name)
        if not isinstance(found, Recipe):
            there = self.of(Recipe)
            raise wrong(f"there is no recipe {name!r}", f"%agent new {name}",
                        f"the recipes here are: {', '.join(there) or 'none'}",
                        did_you_mean(name, there, "load one: %agent load PATH as NAME"))  # fmt: skip
        return found


def standing(session: Session) -> str:
    """Return one line: where a session stands; below it what failed, or what is asked."""
    following = f", next {session.current}" if session.current else ""
    following += f", held {session.held_at}" if session.held_at else ""
    problem = session.error
    return f"{session.status} after step {session.position}{following}" + (f"\n{problem}" if problem else "")
