"""The table of `%agent`: each verb, its function, and its completions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from agentnb.errors import did_you_mean
from agentnb.magics import board_verbs, session_verbs, step_verbs
from agentnb.magics.line_parsing import make_argument_error, split
from agentnb.magics.workspace import Workspace


class Verb(NamedTuple):
    """A verb's function, and the completions after it: the names of `completion.SORTS`."""

    run: Callable[[Workspace, list[str]], Any]
    completes: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """The help text: the verb's form and its description."""
        text = (self.run.__doc__ or "").strip()
        first, _, rest = text.partition("\n")
        more = "\n".join(f"    {line.strip()}".rstrip() for line in rest.strip().splitlines())
        return f"%agent {first.replace('`', '')}" + (f"\n{more}" if more else "")


def give_help(_: Workspace, args: list[str]) -> None:
    """`help [VERB]`: list all verbs, or describe one of them."""
    verbs = [find_verb(args[0], " ".join(["help", *args]))] if args else VERBS.values()
    lines = [verb.description if args else verb.description.splitlines()[0] for verb in verbs]
    print("\n".join(lines))  # noqa: T201  (help is read on the screen)


VERBS: Final[dict[str, Verb]] = {
    "load": Verb(session_verbs.load, ("samples",)),
    "new": Verb(session_verbs.create_session, ("recipes", "inputs")),
    "use": Verb(session_verbs.use, ("sessions",)),
    "open": Verb(session_verbs.open),
    "runs": Verb(session_verbs.runs),
    "save": Verb(session_verbs.save),
    "step": Verb(step_verbs.step),
    "back": Verb(step_verbs.go_back),
    "goto": Verb(step_verbs.go_to),
    "over": Verb(step_verbs.make_verb("over")),
    "into": Verb(step_verbs.make_verb("into")),
    "out": Verb(step_verbs.make_verb("out")),
    "run": Verb(step_verbs.run, ("nodes", "keys")),
    "runback": Verb(step_verbs.run_back, ("nodes", "keys")),
    "start": Verb(step_verbs.start, ("nodes", "keys")),
    "speed": Verb(step_verbs.set_speed, ("speeds",)),
    "pause": Verb(step_verbs.make_verb("pause")),
    "stop": Verb(step_verbs.make_verb("stop")),
    "reset": Verb(step_verbs.make_verb("reset")),
    "retry": Verb(step_verbs.make_verb("retry")),
    "skip": Verb(step_verbs.skip),
    "next": Verb(step_verbs.set_next, ("nodes",)),
    "break": Verb(board_verbs.stop_at, ("nodes",)),
    "breaks": Verb(board_verbs.list_breakpoints),
    "unbreak": Verb(board_verbs.remove_breakpoint, ("broken",)),
    "watch": Verb(board_verbs.watch, ("keys",)),
    "unwatch": Verb(board_verbs.unwatch, ("watched",)),
    "board": Verb(board_verbs.show_board, ("keys",)),
    "who": Verb(board_verbs.show_writer, ("keys",)),
    "edit": Verb(board_verbs.edit, ("keys",)),
    "pending": Verb(board_verbs.list_pending),
    "answer": Verb(board_verbs.answer),
    "approve": Verb(board_verbs.approve, ("pending",)),
    "deny": Verb(board_verbs.deny, ("pending",)),
    "why": Verb(board_verbs.explain),
    "whynot": Verb(board_verbs.explain_not_run, ("nodes",)),
    "fork": Verb(session_verbs.fork),
    "tree": Verb(session_verbs.print_tree),
    "replay": Verb(session_verbs.replay),
    "trace": Verb(board_verbs.trace),
    "draw": Verb(board_verbs.draw),
    "show": Verb(board_verbs.show),
    "help": Verb(give_help, ("verbs",)),
}


def find_verb(name: str, line: str) -> Verb:
    """Return a verb by its name.

    Raises:
        ExecutionError: U401, the verb does not exist.
    """
    if name not in VERBS:
        raise make_argument_error(f"there is no verb {name!r}", f"%agent {line}", f"the verbs are: {', '.join(VERBS)}",
                    did_you_mean(name, VERBS, "see %agent help"))  # fmt: skip
    return VERBS[name]


def run_line(workspace: Workspace, line: str) -> Any:
    """Run the line after `%agent` and return what it shows.

    Raises:
        AgentNbError: U401, the line is invalid; otherwise what the session raises.
    """
    args = split(line) or ["help"]
    return find_verb(args[0], line).run(workspace, args[1:])
