"""verbs: the table of `%agent`: each verb, what it does, and what may follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from agentnb.errors import did_you_mean
from agentnb.magics import acting, making, moving
from agentnb.magics.bench import Bench
from agentnb.magics.words import split, wrong


class Verb(NamedTuple):
    """What a verb does, and what may be completed after it: the names of `completing.SORTS`."""

    does: Callable[[Bench, list[str]], Any]
    after: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """What `%agent help` says of it: its form, and what it does."""
        text = (self.does.__doc__ or "").strip()
        first, _, rest = text.partition("\n")
        more = "\n".join(f"    {line.strip()}".rstrip() for line in rest.strip().splitlines())
        return f"%agent {first.replace('`', '')}" + (f"\n{more}" if more else "")


def give_help(_: Bench, words: list[str]) -> None:
    """`help [VERB]`: all verbs, or what one of them does."""
    asked = [verb_of(words[0], " ".join(["help", *words]))] if words else VERBS.values()
    lines = [verb.told if words else verb.told.splitlines()[0] for verb in asked]
    print("\n".join(lines))  # noqa: T201  (help is read on the screen)


VERBS: Final[dict[str, Verb]] = {
    "load": Verb(making.load, ("samples",)),
    "new": Verb(making.new, ("recipes", "inputs")),
    "use": Verb(making.use, ("sessions",)),
    "open": Verb(making.open),
    "runs": Verb(making.runs),
    "save": Verb(making.save),
    "step": Verb(moving.step),
    "back": Verb(moving.back),
    "goto": Verb(moving.goto),
    "over": Verb(moving.over),
    "into": Verb(moving.into),
    "out": Verb(moving.out),
    "run": Verb(moving.run, ("nodes", "keys")),
    "runback": Verb(moving.run_back, ("nodes", "keys")),
    "start": Verb(moving.start, ("nodes", "keys")),
    "speed": Verb(moving.speed, ("speeds",)),
    "pause": Verb(moving.pause),
    "stop": Verb(moving.stop),
    "reset": Verb(moving.reset),
    "retry": Verb(moving.retry),
    "skip": Verb(moving.skip),
    "next": Verb(moving.set_next, ("nodes",)),
    "break": Verb(acting.stop_at, ("nodes",)),
    "breaks": Verb(acting.breaks),
    "unbreak": Verb(acting.no_stop, ("broken",)),
    "watch": Verb(acting.watch, ("keys",)),
    "unwatch": Verb(acting.unwatch, ("watched",)),
    "board": Verb(acting.board, ("keys",)),
    "who": Verb(acting.who, ("keys",)),
    "edit": Verb(acting.edit, ("keys",)),
    "pending": Verb(acting.pending),
    "answer": Verb(acting.answer),
    "approve": Verb(acting.approve, ("pending",)),
    "deny": Verb(acting.deny, ("pending",)),
    "why": Verb(acting.why),
    "whynot": Verb(acting.why_not, ("nodes",)),
    "fork": Verb(making.fork),
    "tree": Verb(making.tree),
    "replay": Verb(making.replay),
    "trace": Verb(acting.trace),
    "draw": Verb(acting.draw),
    "show": Verb(acting.show),
    "help": Verb(give_help, ("verbs",)),
}


def verb_of(name: str, line: str) -> Verb:
    """Return a verb by its name.

    Raises:
        ExecutionError: U401, there is no such verb.
    """
    if name not in VERBS:
        raise wrong(f"there is no verb {name!r}", f"%agent {line}", f"the verbs are: {', '.join(VERBS)}",
                    did_you_mean(name, VERBS, "see %agent help"))  # fmt: skip
    return VERBS[name]


def act(bench: Bench, line: str) -> Any:
    """Do what a line after `%agent` says; return what it shows.

    Raises:
        AgentNbError: U401, it is not understood; else what the session itself raises.
    """
    words = split(line) or ["help"]
    return verb_of(words[0], line).does(bench, words[1:])
