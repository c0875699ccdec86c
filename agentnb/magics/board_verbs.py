"""The verbs of `%agent` that inspect or edit the board, set breakpoints and watches, and answer pending nodes."""

from __future__ import annotations

from typing import Any

from agentnb.magics.line_parsing import make_argument_error, number, require_text
from agentnb.magics.workspace import Workspace, format_status
from agentnb.recipe.descriptions import parse_typed
from agentnb.session.parts import get_parts


def stop_at(bench: Workspace, words: list[str]) -> Any:
    """`break NODE [when EXPRESSION]`: stop before NODE."""
    node, _, when = require_text(words, "break", "a node").partition(" when ")
    return bench.session.breakpoints.add(node.strip(), when=when.strip() or None)


def list_breakpoints(bench: Workspace, _: list[str]) -> Any:
    """`breaks`: the breakpoints as a DataFrame."""
    return bench.session.breakpoints.to_frame()


def remove_breakpoint(bench: Workspace, words: list[str]) -> str:
    """`unbreak [NODE or ID]`: remove the breakpoints of a node, one by its number, or all of them."""
    stops, which = bench.session.breakpoints, " ".join(words)
    if which:
        stops.remove(int(which) if which.isdecimal() else which)
    else:
        stops.clear()
    return f"{len(stops)} breakpoint(s) left"


def watch(bench: Workspace, words: list[str]) -> Any:
    """`watch [EXPRESSION]`: show its current value together with those already watched."""
    session = bench.session
    return session.watch(" ".join(words)).watches if words else session.watches


def unwatch(bench: Workspace, words: list[str]) -> Any:
    """`unwatch EXPRESSION`: remove it from the watches."""
    session = bench.session
    session.watches.remove(require_text(words, "unwatch", "an expression"))
    get_parts(session).notifications.save_and_notify()
    return session.watches


def show_board(bench: Workspace, words: list[str]) -> Any:
    """`board [KEY]`: the blackboard at the current step, or the value of a key."""
    found = bench.session.board
    return found[words[0]] if words else found


def show_writer(bench: Workspace, words: list[str]) -> str:
    """`who KEY`: the step that wrote the value of a key."""
    key, session = require_text(words, "who", "a key"), bench.session
    step = session.who_wrote(key)
    if step is None:
        return f"no step has written {key!r}"
    return f"step {step}: {session.trace.steps[step - 1].node_id}" if step else "the inputs"


def edit(bench: Workspace, words: list[str]) -> Any:
    """`edit KEY VALUE`: write a value (JSON or text, as its input is declared) at the current step."""
    if len(words) < 2:
        raise make_argument_error(
            "edit needs a key and a value",
            f"%agent edit {' '.join(words)}",
            "it writes one value",
            "write %agent edit KEY VALUE",
        )
    session = bench.session
    return session.edit({words[0]: parse_typed(" ".join(words[1:]), session.recipe.inputs.get(words[0]))}).board


def list_pending(bench: Workspace, _: list[str]) -> Any:
    """`pending`: the questions and approvals that wait for a person."""
    return bench.session.pending


def answer(bench: Workspace, words: list[str]) -> str:
    """`answer TEXT`: answer the waiting node."""
    text, waiting = " ".join(words), next((one for one in bench.session.pending if one.kind == "answer"), None)
    schema = None if waiting is None else waiting.arguments.get("schema")
    bench.session.answer(text if schema is None else parse_typed(text, schema))
    return format_status(bench.session)


def approve(bench: Workspace, words: list[str]) -> str:
    """`approve [ID]`: approve a request: the first, or the one of this id or node."""
    bench.session.approve(" ".join(words) or None)
    return format_status(bench.session)


def deny(bench: Workspace, words: list[str]) -> str:
    """`deny [ID] [because REASON]`: deny a request; the node receives the reason."""
    which, _, reason = f" {' '.join(words)} ".partition(" because ")
    bench.session.deny(which.strip() or None, reason.strip())
    return format_status(bench.session)


def explain(bench: Workspace, _: list[str]) -> Any:
    """`why`: the conditions after the last step, each with its values and result."""
    return bench.session.why()


def explain_not_run(bench: Workspace, words: list[str]) -> Any:
    """`whynot NODE`: the reasons why a node did not run."""
    return bench.session.why_not(require_text(words, "whynot", "a node"))


def trace(bench: Workspace, words: list[str]) -> Any:
    """`trace [n]`: the steps so far as a DataFrame, or the last n of them."""
    found = bench.session.trace.to_frame()
    return found.tail(number(words, None, "trace")) if words else found


def draw(bench: Workspace, _: list[str]) -> Any:
    """`draw`: the recipe's drawing with the current run."""
    return bench.session.draw()


def show(bench: Workspace, _: list[str]) -> Any:
    """`show`: the session itself, as its cockpit."""
    return bench.session
