"""magics: `%%recipe` and `%agent` for IPython. Thin: they read words, and call load and Session."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class

from agentnb.errors import AgentNbError, ExecutionError, Problem, did_you_mean
from agentnb.load import load
from agentnb.recipe.model import Recipe
from agentnb.recipe.words import typed
from agentnb.samples import samples
from agentnb.session import Session

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

Verb = Callable[["AgentMagics", list[str]], Any]


@magics_class
class AgentMagics(Magics):
    """`%%recipe NAME` loads the cell's text; `%agent VERB ...` acts on the current session."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.recipe_name = ""
        self.session_name = ""

    @line_cell_magic
    def recipe(self, line: str, cell: str | None = None) -> Recipe:
        """Load the cell's text into the variable NAME, and show it: `%%recipe NAME`."""
        name = line.strip() or "recipe"
        if not name.isidentifier():
            raise _wrong(f"{name!r} cannot be a variable", f"%%recipe {line}", "the recipe is put into a variable",
                         "give one name of letters, digits and _")  # fmt: skip
        if cell is None:
            raise _wrong("the cell has no text", f"%recipe {line}", "the recipe is the text of the cell",
                         f"write %%recipe {name} and the recipe below it")  # fmt: skip
        found = load(cell)
        self._put(name, found)
        self.recipe_name = name
        return found

    @line_magic
    def agent(self, line: str) -> Any:
        """Act on the current session: `%agent help` lists the verbs."""
        words = _words(line)
        verb = words.pop(0) if words else "help"
        if verb not in VERBS:
            raise _wrong(f"there is no verb {verb!r}", f"%agent {line}", f"the verbs are: {', '.join(VERBS)}",
                         did_you_mean(verb, VERBS, "see %agent help"))  # fmt: skip
        return VERBS[verb][0](self, words)

    # -- what it stands on --------------------------------------------------------------------------------------

    def _put(self, name: str, value: Any) -> None:
        self.shell.user_ns[name] = value  # type: ignore[union-attr]  # a magic always has its shell

    def _find(self, name: str, cls: type) -> Any:
        found = self.shell.user_ns.get(name)  # type: ignore[union-attr]  # the same
        return found if isinstance(found, cls) else None

    @property
    def session(self) -> Session:
        """The current session: the last one made here, else the variable `session`."""
        for name in (self.session_name, "session"):
            if name and (found := self._find(name, Session)) is not None:
                return found  # type: ignore[no-any-return]  # found by its class
        raise _wrong("there is no session yet", "%agent", "a verb acts on the current session",
                     "make one: %agent load PATH, then %agent new NAME key=value")  # fmt: skip

    # -- the verbs ----------------------------------------------------------------------------------------------

    def load(self, words: list[str]) -> Recipe:
        """`load PATH [as NAME]`: load a recipe, or a sample by its name, into NAME (`recipe` if left out)."""
        path, name = _as(words, "recipe", "load")
        known = [row.name for row in samples()]
        found: Any = samples(path) if path in known else load(path)
        self._put(name, found)
        self.recipe_name = name
        return found  # type: ignore[no-any-return]  # a recipe either way

    def new(self, words: list[str]) -> Session:
        """`new [NAME] [as VARIABLE] key=value...`: make a session of the recipe NAME, with these inputs."""
        pairs = [word for word in words if "=" in word]
        rest = [word for word in words if "=" not in word]
        name, variable = _as(rest or [self.recipe_name or "recipe"], "session", "new")
        recipe = self._find(name, Recipe)
        if recipe is None:
            there = [key for key, value in self.shell.user_ns.items() if isinstance(value, Recipe)]  # type: ignore[union-attr]  # the same
            raise _wrong(f"there is no recipe {name!r}", f"%agent new {' '.join(words)}",
                         f"the recipes here are: {', '.join(there) or 'none'}",
                         did_you_mean(name, there, "load one: %agent load PATH as NAME"))  # fmt: skip
        inputs = {key: typed(text, recipe.inputs.get(key)) for key, _, text in (pair.partition("=") for pair in pairs)}
        session = Session(recipe, inputs)
        self._put(variable, session)
        self.session_name = variable
        return session

    def step(self, words: list[str]) -> Any:
        """`step [n]`: the next n steps."""
        self.session.step(_number(words, 1, "step"))
        return _stand(self.session)

    def back(self, words: list[str]) -> Any:
        """`back [n]`: n steps back."""
        return _stand(self.session.back(_number(words, 1, "back")))

    def goto(self, words: list[str]) -> Any:
        """`goto K`: stand after step K."""
        return _stand(self.session.goto(_number(words, None, "goto")))

    def over(self, words: list[str]) -> Any:
        """`over`: run until the next node has left its frame: a loop or a subgraph as one step."""
        self.session.step_over()
        return _stand(self.session)

    def into(self, words: list[str]) -> Any:
        """`into`: the next step, stopping inside the node: where it emits, and before and after each call."""
        self.session.step_into()
        return _stand(self.session)

    def out(self, words: list[str]) -> Any:
        """`out`: run until the frame around the next node is left."""
        self.session.step_out()
        return _stand(self.session)

    def run(self, words: list[str]) -> Any:
        """`run [UNTIL]`: run on, until a node, a step number or a condition."""
        text = " ".join(words)
        self.session.run(until=int(text) if text.isdecimal() else text or None)
        return _stand(self.session)

    def start(self, words: list[str]) -> Any:
        """`start`: run beside other cells; %agent pause stops it."""
        self.session.start()
        return _stand(self.session)

    def pause(self, words: list[str]) -> Any:
        """`pause`: begin no further step."""
        self.session.pause()
        return _stand(self.session)

    def stop_at(self, words: list[str]) -> Any:
        """`break NODE [when EXPRESSION]`: stop before NODE."""
        node, _, when = " ".join(words).partition(" when ")
        if not node:
            raise _wrong("break needs a node", "%agent break", "it stops before a node", "write %agent break NODE")
        return self.session.breakpoints.add(node.strip(), when=when.strip() or None)

    def watch(self, words: list[str]) -> Any:
        """`watch EXPRESSION`: show its value where the session stands."""
        return self.session.watch(" ".join(words)).watches

    def board(self, words: list[str]) -> Any:
        """`board`: the blackboard where the session stands."""
        return self.session.board

    def edit(self, words: list[str]) -> Any:
        """`edit KEY VALUE`: write a value (JSON or text, as its input is declared) where the session stands."""
        if len(words) < 2:
            raise _wrong("edit needs a key and a value", f"%agent edit {' '.join(words)}", "it writes one value",
                         "write %agent edit KEY VALUE")  # fmt: skip
        session = self.session
        return session.edit({words[0]: typed(" ".join(words[1:]), session.recipe.inputs.get(words[0]))}).board

    def answer(self, words: list[str]) -> Any:
        """`answer TEXT`: answer the node that waits."""
        self.session.answer(" ".join(words))
        return _stand(self.session)

    def fork(self, words: list[str]) -> Any:
        """`fork [NAME]`: a new session from here, the current one from then on, in NAME (`fork` if left out)."""
        name = words[0] if words else "fork"
        if not name.isidentifier():
            raise _wrong(f"{name!r} cannot be a variable", f"%agent fork {name}", "the fork is put into a variable",
                         "give one name of letters, digits and _")  # fmt: skip
        made = self.session.fork(name=name)
        self._put(name, made)
        self.session_name = name
        return made

    def trace(self, words: list[str]) -> Any:
        """`trace`: the steps so far as a DataFrame."""
        return self.session.trace.to_frame()

    def help(self, words: list[str]) -> None:
        """`help`: this list."""
        lines = [(method.__doc__ or "").splitlines()[0].replace("`", "") for method, _ in VERBS.values()]
        print("\n".join(f"%agent {line}" for line in lines))  # noqa: T201  (help is read on the screen)


# Verb -> its method, and what may be completed after it.
VERBS: Final[dict[str, tuple[Verb, str]]] = {
    "load": (AgentMagics.load, "samples"),
    "new": (AgentMagics.new, "recipes"),
    "step": (AgentMagics.step, ""),
    "back": (AgentMagics.back, ""),
    "goto": (AgentMagics.goto, ""),
    "over": (AgentMagics.over, ""),
    "into": (AgentMagics.into, ""),
    "out": (AgentMagics.out, ""),
    "run": (AgentMagics.run, "nodes"),
    "start": (AgentMagics.start, ""),
    "pause": (AgentMagics.pause, ""),
    "break": (AgentMagics.stop_at, "nodes"),
    "watch": (AgentMagics.watch, "keys"),
    "board": (AgentMagics.board, ""),
    "edit": (AgentMagics.edit, "keys"),
    "answer": (AgentMagics.answer, ""),
    "fork": (AgentMagics.fork, ""),
    "trace": (AgentMagics.trace, ""),
    "help": (AgentMagics.help, ""),
}


def _words(line: str) -> list[str]:
    """Split a line as a shell does; a stray quote is part of its word."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _as(words: list[str], otherwise: str, verb: str) -> tuple[str, str]:
    """Return what stands before `as`, and the variable after it."""
    target = otherwise
    if "as" in words[1:]:
        at = words.index("as", 1)
        target, words = " ".join(words[at + 1 :]), words[:at]
    if not words or not target.isidentifier():
        what = f"{target!r} cannot be a variable" if words else f"{verb} needs a name"
        form = (VERBS[verb][0].__doc__ or "").split(":", maxsplit=1)[0]
        raise _wrong(what, f"%agent {verb}", f"the form is: {form}", "see %agent help")
    return " ".join(words), target


def _number(words: list[str], otherwise: int | None, verb: str) -> int:
    text = words[0] if words else ""
    if not text and otherwise is not None:
        return otherwise
    if not text.isdecimal():
        raise _wrong(f"{text!r} is no step number", f"%agent {verb} {text}", f"{verb} takes a number",
                     f"write for example %agent {verb} 3")  # fmt: skip
    return int(text)


def _stand(session: Session) -> str:
    """Return one line: where a session stands."""
    following = f", next {session.current}" if session.current else ""
    following += f", held {session.held_at}" if session.held_at else ""
    problem = session.error
    return f"{session.status} after step {session.position}{following}" + (f"\n{problem}" if problem else "")


def _wrong(what: str, where: str, why: str, do: str) -> AgentNbError:
    """U401: a magic's words are not understood, or what it acts on is not there."""
    return ExecutionError(Problem("U401", what, where, why, do))


def _complete(magics: AgentMagics, line: str) -> list[str]:
    """Return what may follow on a line that begins with %agent."""
    words = line.split()
    typed = "" if line.endswith(" ") else words.pop() if len(words) > 1 else ""
    if len(words) <= 1:
        return [verb for verb in VERBS if verb.startswith(typed)]
    sort = VERBS.get(words[1], (None, ""))[1]
    shell: Any = magics.shell
    found: list[str] = []
    if sort == "samples":
        found = [row.name for row in samples()]
    elif sort == "recipes":
        found = [name for name, value in shell.user_ns.items() if isinstance(value, Recipe)]
    elif sort in ("nodes", "keys"):
        try:
            found = list(magics.session.recipe.nodes if sort == "nodes" else magics.session.board)
        except AgentNbError:
            found = []
    return [name for name in found if name.startswith(typed)]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics and their completion: `%load_ext agentnb`."""
    magics = AgentMagics(shell)
    shell.register_magics(magics)
    shell.set_hook(  # type: ignore[no-untyped-call]  # IPython says no types here
        "complete_command", lambda _self, event: _complete(magics, event.line), re_key=r"%?agent\b.*"
    )
