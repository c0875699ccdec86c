"""The value editor below a key of the board: the parts of its value, a value in full, and typed replacements.

A path is the key and the names of the parts below it, as texts; for items of a list, their indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.masking import register_secrets
from agentnb.board.paths import SET, apply_change
from agentnb.board.values import ABSENT, freeze, thaw
from agentnb.draw.label_text import clean
from agentnb.errors import AgentNbError, Problem, RecipeError
from agentnb.expressions.paths import resolve_path
from agentnb.secrets import MASK, has_secret, hide, is_secret
from agentnb.session.checks import check_inputs
from agentnb.session.parts import get_parts
from agentnb.session.state import get_state
from agentnb.ui.board_view import VALUE_WIDTH, format_value, get_type_name, is_masked, list_items
from agentnb.ui.fields import Field, make_field, parse_typed_value

if TYPE_CHECKING:
    from agentnb.session import Session

PAGE: Final = 100  # parts of a value sent at once
_WHERE: Final = "the cockpit's editor"
_FILLED: Final = "it contains a secret, which is not shown; a value typed here replaces it"
_HIDDEN_PART: Final = "part of a secret, which is not shown"
_UNNAMED: Final = "it has no path; change the value that contains it"


def list_branch(session: Session, request: Any) -> dict[str, Any]:
    """Return parts of a value, one page beginning at `start`: {rows, total}; a row is [name, text, type, label].

    A name is None if no path can address it.
    """
    query = request if isinstance(request, dict) else {}
    path, start = parse_path(session, query.get("path")), max(int(query.get("start") or 0), 0)
    if any(is_secret(name) for name in path):
        return {"rows": [], "total": 0}
    parts = list_items(_get_at(session, path))
    rows = [_make_row(name, item) for name, item in islice(_iterate_named(parts), start, start + PAGE)]
    return {"rows": rows, "total": len(parts)}


def _make_row(name: object, value: Any) -> list[Any]:
    label = str(name)
    has_label = name is not None and not has_secret(label)
    return [
        label if has_label else None,
        format_value(label, value, VALUE_WIDTH),
        get_type_name(value, name),
        clean(label),
    ]


def _iterate_named(parts: Any) -> Iterator[tuple[object, Any]]:
    return iter(parts.items()) if isinstance(parts, Mapping) else enumerate(parts)


def describe_value(session: Session, request: Any) -> dict[str, Any]:
    """Return a value of the board in full, to read or edit, with its type and the step that wrote it."""
    path = parse_path(session, request)
    value = _get_at(session, path)
    text = _format_text(session, path)
    step = None
    if value is not ABSENT:
        with suppress(AgentNbError):  # no path addresses this key
            step = session.who_wrote(path[0] if text is None else text)
    known = get_parts(session).explanations.writers([path[0]]).get(path[0])
    return {
        "path": path,
        "type": get_type_name(value, path[-1]),
        "by": None
        if step is None
        else list(known)
        if known and known.step == step
        else [step, _describe_node(session, step)],
        "field": _make_field(session, path, value, text),
    }


def _describe_node(session: Session, step: int) -> str:
    return session.trace.steps[step - 1].node_id if step else ""


def _make_field(session: Session, path: list[str], value: Any, text: str | None) -> Field:
    """Return the field of a value: fixed if it cannot be edited here, empty if it contains a secret."""
    field = {**_to_field(value, path), "label": clean(".".join(path))}
    fast = _read_only_reason(session, path, text)
    if fast:
        return {**field, "as": "fixed", "note": fast}
    if is_secret(path[-1]) or (isinstance(value, str) and is_masked(value, path[-1])):
        return {**field, "text": "", "as": "secret", "note": "" if value is ABSENT else _FILLED}
    return field


def _read_only_reason(session: Session, path: list[str], text: str | None) -> str:
    """Return why a path cannot be written to; empty if it can."""
    if any(is_secret(name) for name in path[:-1]):
        return _HIDDEN_PART
    if text is None or has_secret(text) or MASK in text:
        return _UNNAMED
    around = next(
        (type(one).__name__ for one in list(_iter_values(session, path))[:-1] if isinstance(one, tuple)), None
    )
    return "" if around is None else f"it is part of a {around}, which can be changed only as a whole"


def _to_field(value: Any, path: list[str]) -> Field:
    if any(is_secret(name) for name in path):
        return {"path": path, "label": "", "text": "", "as": "secret", "note": ""}
    try:
        return {**make_field(thaw(value), [], path[-1]), "path": path}
    except Exception as error:  # noqa: BLE001  (a value's own repr may raise anything)
        text = f"<{type(thaw(value)).__name__} that cannot be shown: {type(error).__name__}>"
        return {"path": path, "label": "", "text": text, "as": "fixed", "note": ""}


# -- paths -------------------------------------------------------------------------------------------------------------


def parse_path(session: Session, target: Any) -> list[str]:
    """Return the path named by a page: a list of parts, or a text as `session.edit` accepts it.

    Raises:
        AgentNbError: U321, it is neither.
    """
    if isinstance(target, str):
        return list(resolve_path(target, get_parts(session).pictures.view().board))
    if isinstance(target, list) and target and all(isinstance(part, str) for part in target):
        return target
    raise AgentNbError(
        Problem("U321", f"{target!r} is not a path on the board", "a message from the page",
                "a path is a string, or a list of its parts",
                "reload the page so that it matches this version")
    )  # fmt: skip


def _format_text(session: Session, path: list[str]) -> str | None:
    """Return the text that `session.edit` accepts for a path; None if that text means another path."""
    text = ".".join(path)
    return text if list(resolve_path(text, get_parts(session).pictures.view().board)) == path else None


def _iter_values(session: Session, path: list[str]) -> Iterator[Any]:
    """Yield the values along a path, from the value of its key to the addressed one."""
    value = get_parts(session).pictures.view().board.get(path[0], ABSENT)
    yield value
    for name in path[1:]:
        value = _get_part(value, name)
        yield value


def _get_at(session: Session, path: list[str]) -> Any:
    return list(_iter_values(session, path))[-1]


def _get_part(value: Any, name: str) -> Any:
    parts = list_items(value)
    if isinstance(parts, Mapping):
        return parts[name] if name in parts else next((item for key, item in parts.items() if str(key) == name), ABSENT)
    return parts[int(name)] if name.isdecimal() and int(name) < len(parts) else ABSENT


# -- typed values -----------------------------------------------------------------------------------------------


def edit(session: Session, typed: Any, target: Any) -> None:
    """Replace the value at a path by a typed one.

    Raises:
        AgentNbError: U305, U306, U320, U321, it cannot be written there; see `parse_typed`.
    """
    path = parse_path(session, target)
    value = parse_typed(session, typed, path)
    if is_secret(path[-1]):
        register_secrets(freeze(value), path[-1], get_state(session).run.tables.secrets)
    elif describe_value(session, path)["field"]["as"] == "secret":
        hide(str(value), owner=get_state(session).run.tables.secrets)
    session.edit({".".join(path): value})


def delete(session: Session, _: Any, target: Any) -> None:
    """Delete the value at a path from the board.

    Raises:
        AgentNbError: U306, no path addresses it.
    """
    path = parse_path(session, target)
    fast = _read_only_reason(session, path, _format_text(session, path))
    if fast:
        parse_typed_value({"label": ".".join(path), "as": "fixed", "note": fast}, "")
    session.edit({".".join(path): ABSENT})


def parse_typed(session: Session, typed: Any, path: list[str]) -> Any:
    """Parse the value typed for a path.

    U320: a typed value does not match the recipe's declaration of an input

    Raises:
        AgentNbError: U305, the text does not parse; U306, the value cannot be changed here; U320, it does not match the
            recipe's declaration.
    """
    field = describe_value(session, path)["field"]
    value = parse_typed_value({**field, "as": "fixed"} if field["as"] == "secret" and _is_mask(typed) else field, typed)
    broken = _find_violation(session, path, value)
    if broken is not None:
        raise AgentNbError(
            Problem(
                "U320",
                broken.what,
                _WHERE,
                broken.why,
                "enter a valid value; session.edit(...) in a cell does not check the declaration",
            )
        )
    return value


def _is_mask(typed: Any) -> bool:
    return (typed.get("text") if isinstance(typed, dict) else typed) == MASK


def describe_value_error(session: Session, request: Any) -> str:
    """Return a description of what is wrong with a typed value; empty if it can be written."""
    query = request if isinstance(request, dict) else {}
    try:
        parse_typed(session, query.get("typed"), parse_path(session, query.get("path")))
    except AgentNbError as error:
        return "; ".join(f"{problem.what}: {problem.why}" for problem in error.problems)
    return ""


def _find_violation(session: Session, path: list[str], value: Any) -> Problem | None:
    """Return how a new value violates the recipe's declaration of an input; None if it adds no violation."""
    declared, board = session.recipe.inputs, get_parts(session).pictures.view().board
    if path[0] not in declared:
        return None
    old_values = {key: thaw(board[key]) for key in declared if key in board}
    with suppress(AgentNbError):
        whole = thaw(apply_change(board.get(path[0], ABSENT), tuple(path[1:]), SET, value, tuple(path)))
        known = {problem.what for problem in _find_faults(session, old_values)}
        return next(
            (problem for problem in _find_faults(session, {**old_values, path[0]: whole}) if problem.what not in known),
            None,
        )
    return None


def _find_faults(session: Session, inputs: Mapping[str, Any]) -> tuple[Problem, ...]:
    try:
        check_inputs(session.recipe, inputs)
    except RecipeError as error:
        return error.problems
    return ()
