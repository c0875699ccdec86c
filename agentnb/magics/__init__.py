"""The magics `%%recipe` and `%agent` for IPython: they parse arguments and call load and Session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class
from IPython.display import display

from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.magics.completion import complete
from agentnb.magics.line_parsing import check_variable, make_argument_error
from agentnb.magics.recipe_errors import DisplayedRecipeError, Faults
from agentnb.magics.verbs import run_line
from agentnb.magics.workspace import Workspace
from agentnb.recipe.model import Recipe

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_LINE: Final = r"%?agent\b.*"  # the lines that are completed here


@magics_class
class AgentMagics(Magics):
    """`%%recipe NAME` loads the cell's text; `%agent VERB ...` acts on the current session."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.workspace = Workspace(shell.user_ns)

    @line_cell_magic
    def recipe(self, line: str, cell: str | None = None) -> Recipe:
        """Load the cell's text into the variable NAME, and show it: `%%recipe NAME`.

        Problems are shown at their lines.
        """
        name = check_variable(line.strip() or "recipe", f"%%recipe {line}")
        if cell is None:
            raise make_argument_error("the cell has no text", f"%recipe {line}", "the recipe is the text of the cell",
                        f"write %%recipe {name}, and the recipe on the lines below")  # fmt: skip
        try:
            loaded = load(cell)
        except RecipeError as error:
            display(Faults(cell, error.problems))  # type: ignore[no-untyped-call]  # IPython says no types here
            raise DisplayedRecipeError(*error.problems) from None
        return self.workspace.keep(name, loaded)

    @line_magic
    def agent(self, line: str) -> Any:
        """Act on the current session: `%agent help` lists the verbs, `%agent help VERB` describes one."""
        return run_line(self.workspace, line)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics and their completion: `%load_ext agentnb`."""
    magics = AgentMagics(shell)
    shell.register_magics(magics)
    shell.set_hook(  # type: ignore[no-untyped-call]  # IPython says no types here
        "complete_command", lambda _self, event: complete(magics.workspace, event.line), re_key=_LINE
    )


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the magics and their completion: `%unload_ext agentnb`. Recipes and sessions stay in their variables."""
    known = shell.magics_manager
    for kind, names in {"line": ("agent", "recipe"), "cell": ("recipe",)}.items():
        for name in names:
            known.magics[kind].pop(name, None)
    known.registry.pop(AgentMagics.__name__, None)
    shell.strdispatchers["complete_command"].regexs.pop(re.compile(_LINE), None)
