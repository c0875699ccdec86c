"""What `%agent` works on: the notebook's variables, the recipe loaded last and the current session."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from agentnb.errors import did_you_mean
from agentnb.magics.line_parsing import make_argument_error
from agentnb.recipe.model import Recipe
from agentnb.session import Session


class Workspace:
    """The variables of a notebook, with the default recipe and session for lines that name none."""

    def __init__(self, names: MutableMapping[str, Any]) -> None:
        self.names = names
        self.recipe_name = self.session_name = ""

    def of(self, cls: type) -> list[str]:
        """Return the variables that hold instances of a class; names beginning with _ are IPython's."""
        return [name for name, value in self.names.items() if isinstance(value, cls) and not name.startswith("_")]

    @property
    def session(self) -> Session:
        """The current session: the last one created or selected here, otherwise the variable `session`.

        Raises:
            ExecutionError: U401, there is none yet.
        """
        for name in (self.session_name, "session"):
            session = self.names.get(name)
            if name and isinstance(session, Session):
                return session
        raise make_argument_error("there is no session yet", "%agent", "a verb acts on the current session",
                    "create one: %agent load PATH, then %agent new NAME key=value")  # fmt: skip

    def take(self, name: str, session: Session) -> Session:
        """Assign a session to a variable and make it the current one."""
        self.names[name] = session
        self.session_name = name
        return session

    def use(self, name: str) -> Session:
        """Make the session of a variable the current one.

        Raises:
            ExecutionError: U401, the variable holds no session.
        """
        session = self.names.get(name)
        if not isinstance(session, Session):
            names = self.of(Session)
            raise make_argument_error(f"there is no session {name!r}", f"%agent use {name}",
                        f"the sessions here are: {', '.join(names) or 'none'}",
                        did_you_mean(name, names, "create one: %agent new"))  # fmt: skip
        self.session_name = name
        return session

    def keep(self, name: str, recipe: Recipe) -> Recipe:
        """Assign a recipe to a variable and make it the default of `new`."""
        self.names[name] = recipe
        self.recipe_name = name
        return recipe

    def recipe(self, name: str) -> Recipe:
        """Return the recipe of a variable; if the name is empty, the last one loaded here.

        Raises:
            ExecutionError: U401, the variable holds no recipe.
        """
        name = name or self.recipe_name or "recipe"
        recipe = self.names.get(name)
        if not isinstance(recipe, Recipe):
            names = self.of(Recipe)
            raise make_argument_error(f"there is no recipe {name!r}", f"%agent new {name}",
                        f"the recipes here are: {', '.join(names) or 'none'}",
                        did_you_mean(name, names, "load one: %agent load PATH as NAME"))  # fmt: skip
        return recipe


def format_status(session: Session) -> str:
    """Return the status of a session as one line, and below it the failure or the pending question."""
    following = f", next {session.current}" if session.current else ""
    following += f", held {session.held_at}" if session.held_at else ""
    problem = session.error
    return f"{session.status} after step {session.position}{following}" + (f"\n{problem}" if problem else "")
