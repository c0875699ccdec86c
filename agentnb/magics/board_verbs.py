"""The verbs of `%agent` that inspect or edit the board, set breakpoints and watches, and answer pending nodes."""

from __future__ import annotations

from typing import Any

from agentnb.magics.line_parsing import make_argument_error, parse_number, require_text
from agentnb.magics.workspace import Workspace, format_status
from agentnb.recipe.descriptions import parse_typed
from agentnb.session.parts import get_parts


def stop_at(workspace: Workspace, args: list[str]) -> Any:
    """`break NODE [when EXPRESSION]`: stop before NODE."""
    node, _, when = require_text(args, "break", "a node").partition(" when ")
    return workspace.session.breakpoints.add(node.strip(), when=when.strip() or None)


def list_breakpoints(workspace: Workspace, _: list[str]) -> Any:
    """`breaks`: the breakpoints as a DataFrame."""
    return workspace.session.breakpoints.to_frame()


def remove_breakpoint(workspace: Workspace, args: list[str]) -> str:
    """`unbreak [NODE or ID]`: remove the breakpoints of a node, one by its number, or all of them."""
    stops, which = workspace.session.breakpoints, " ".join(args)
    if which:
        stops.remove(int(which) if which.isdecimal() else which)
    else:
        stops.clear()
    return f"{len(stops)} breakpoint(s) left"


def watch(workspace: Workspace, args: list[str]) -> Any:
    """`watch [EXPRESSION]`: show its current value together with those already watched."""
    session = workspace.session
    return session.watch(" ".join(args)).watches if args else session.watches


def unwatch(workspace: Workspace, args: list[str]) -> Any:
    """`unwatch EXPRESSION`: remove it from the watches."""
    session = workspace.session
    session.watches.remove(require_text(args, "unwatch", "an expression"))
    get_parts(session).notifications.save_and_notify()
    return session.watches


def show_board(workspace: Workspace, args: list[str]) -> Any:
    """`board [KEY]`: the blackboard at the current step, or the value of a key."""
    board = workspace.session.board
    return board[args[0]] if args else board


def show_writer(workspace: Workspace, args: list[str]) -> str:
    """`who KEY`: the step that wrote the value of a key."""
    key, session = require_text(args, "who", "a key"), workspace.session
    step = session.who_wrote(key)
    if step is None:
        return f"no step has written {key!r}"
    return f"step {step}: {session.trace.steps[step - 1].node_id}" if step else "the inputs"


def edit(workspace: Workspace, args: list[str]) -> Any:
    """`edit KEY VALUE`: write a value (JSON or text, as its input is declared) at the current step."""
    if len(args) < 2:
        raise make_argument_error(
            "edit requires a key and a value",
            f"%agent edit {' '.join(args)}",
            "it writes one value",
            "write %agent edit KEY VALUE",
        )
    session = workspace.session
    return session.edit({args[0]: parse_typed(" ".join(args[1:]), session.recipe.inputs.get(args[0]))}).board


def list_pending(workspace: Workspace, _: list[str]) -> Any:
    """`pending`: the questions and approvals that wait for a person."""
    return workspace.session.pending


def answer(workspace: Workspace, args: list[str]) -> str:
    """`answer TEXT`: answer the waiting node."""
    text, waiting = (
        " ".join(args),
        next((pending for pending in workspace.session.pending if pending.kind == "answer"), None),
    )
    schema = None if waiting is None else waiting.arguments.get("schema")
    workspace.session.answer(text if schema is None else parse_typed(text, schema))
    return format_status(workspace.session)


def approve(workspace: Workspace, args: list[str]) -> str:
    """`approve [ID]`: approve a request: the first, or the one of this id or node."""
    workspace.session.approve(" ".join(args) or None)
    return format_status(workspace.session)


def deny(workspace: Workspace, args: list[str]) -> str:
    """`deny [ID] [because REASON]`: deny a request; the node receives the reason."""
    which, _, reason = f" {' '.join(args)} ".partition(" because ")
    workspace.session.deny(which.strip() or None, reason.strip())
    return format_status(workspace.session)


def explain(workspace: Workspace, _: list[str]) -> Any:
    """`why`: the conditions after the last step, each with its values and result."""
    return workspace.session.why()


def explain_not_run(workspace: Workspace, args: list[str]) -> Any:
    """`whynot NODE`: the reasons why a node did not run."""
    return workspace.session.why_not(require_text(args, "whynot", "a node"))


def trace(workspace: Workspace, args: list[str]) -> Any:
    """`trace [n]`: the steps so far as a DataFrame, or the last n of them."""
    frame = workspace.session.trace.to_frame()
    return frame.tail(parse_number(args, None, "trace")) if args else frame


def draw(workspace: Workspace, _: list[str]) -> Any:
    """`draw`: the recipe's drawing with the current run."""
    return workspace.session.draw()


def show(workspace: Workspace, _: list[str]) -> Any:
    """`show`: the session itself, as its cockpit."""
    return workspace.session
