"""Search the history of a run for the steps after which a condition holds, without running anything.

A condition is evaluated again only where a key that it reads was written. Comparisons and simple arithmetic of one key,
by far the most common conditions, are compiled to Python.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from agentnb.board.paths import apply_change
from agentnb.board.scopes import Board, Scope
from agentnb.board.values import ABSENT, ATOMS, thaw
from agentnb.engine.core.frames import get_frame_inputs
from agentnb.engine.persistence.state_projection import StateProjection
from agentnb.errors import ExecutionError
from agentnb.expressions.board_queries import BoardQuery, compile_question
from agentnb.expressions.conditions import Condition, NoAnswer, to_condition
from agentnb.kinds.context import NO_NODE, Context
from agentnb.session.state import get_state
from agentnb.trace.columns import Columns, to_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agentnb.session import Session
    from agentnb.trace.row_index import StepIndex

# Operations that Python and the condition language evaluate in the same way, for numbers. Products are excluded because
# they may grow without limit.
_GRAMMAR: Final = (
    ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not,
    ast.USub, ast.BinOp, ast.Add, ast.Sub, ast.Mod, ast.FloorDiv, ast.Name, ast.Load, ast.Constant,
)  # fmt: skip
_RULES: Final = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
                 ">=": operator.ge}  # fmt: skip
_NUMBERS: Final = frozenset({int, float})
_TEXTS: Final = frozenset({str})
_MOST_ANSWERS: Final = 4096  # cached results of a condition on one key
_HASHED: Final = ATOMS - {Decimal}  # a signalling NaN cannot be hashed


def find(session: Session, condition: Any) -> list[int]:
    """Return the numbers of all steps after which a condition holds, in order; see `Session.find`.

    Raises:
        ExecutionError: X145, the condition reads a key that nothing writes; X314, it can never be evaluated.
        RecipeError: the condition is invalid.
    """
    compiled = compile_question(condition)
    if problems := [*get_state(session).check_paths(compiled.reads, "session.find()")]:
        raise ExecutionError(*problems)
    reading = session.trace.reading()
    if isinstance(compiled, BoardQuery) and compiled.reads[1:] and not _has_key(reading, str(condition).strip()):
        compiled = to_condition(condition)  # no key has this name, so the text can only be an expression
    scopes = _get_scopes_after(reading)
    if scopes.any() or session.recipe.meta.get("context"):
        return _search_everywhere(session, reading, compiled, scopes)
    return _search_root(reading, compiled)


def _has_key(reading: StepIndex, name: str) -> bool:
    return any(path[0] == name for _, path in reading.tables.codes)


def _get_scopes_after(reading: StepIndex) -> NDArray[np.int64]:
    """Return the scope that a condition sees after each step from step 1 on: that of the next node, or the root."""
    tables = reading.tables
    if len(tables.frames) == 1:
        return np.zeros(reading.tip, dtype=np.int64)
    scope_of = np.array(
        [tables.frames[activation.frame].scope if activation.node >= 0 else 0 for activation in tables.activations]
        or [0]
    )
    parts = []
    for history, last in reading.parts():
        positions = to_array(history.queue_starts, last + 1)[1:].astype(np.int64)
        ends = to_array(history.push_ends, last + 1)[1:].astype(np.int64)
        activations = to_array(history.push_activations, len(history.push_activations)).astype(np.int64)
        scopes = np.zeros(len(positions), dtype=np.int64)
        waiting = positions < ends
        scopes[waiting] = scope_of[activations[positions[waiting]]]
        parts.append(scopes)
    return np.concatenate(parts)


# -- runs with one scope --------------------------------------------------------------------------------------------


def _search_root(reading: StepIndex, condition: Condition) -> list[int]:
    """Search a run whose conditions all see the root scope."""
    columns = Columns(reading)
    keys = None if condition.reads_all or not condition.reads else _find_first_keys(condition)
    read_codes = [number for number, (scope, path) in enumerate(columns.codes)
              if scope == 0 and (keys is None or path[0] in keys)]  # fmt: skip
    if len(read_codes) == len(columns.codes):
        rows = np.arange(len(columns.write_paths))
    else:
        rows = np.flatnonzero(np.isin(columns.write_paths, read_codes))
    steps, codes = columns.write_steps[rows], columns.write_codes[rows]
    values = (
        columns.new_values
        if len(rows) == len(columns.new_values)
        else [columns.new_values[row] for row in rows.tolist()]
    )
    plain = len(read_codes) == 1 and len(columns.codes[read_codes[0]][1]) == 1 and not (codes & 3).any()
    if plain and condition.kind != "callable":
        key = str(columns.codes[read_codes[0]][1][0])
        holds = _answer_all(values[: len(steps)], _compile_formula(condition), condition, key)
        return _find_steps(steps, np.array(holds, dtype=bool), columns.tip, before=_holds(condition, {}))
    starts, answers = [0], [_holds(condition, {})]
    for step, answer in _iter_answers(columns, steps, codes, values, condition):
        starts.append(step)
        answers.append(answer)
    return _find_steps(np.array(starts), np.array(answers, dtype=bool), columns.tip, before=answers[0])


def _find_first_keys(condition: Condition) -> set[str]:
    """Return the board keys that a condition may read: a path may also be a key with dots in its name."""
    return {".".join(map(str, path[:size])) for path in condition.reads for size in range(1, len(path) + 1)}


def _find_steps(steps: NDArray[Any], holds: NDArray[np.bool_], tip: int, *, before: bool) -> list[int]:
    """Return the steps from 1 on after which a condition holds, given its result from each of these steps on."""
    indices = np.searchsorted(steps, np.arange(1, tip + 1), side="right")
    matching: list[int] = (np.flatnonzero(np.concatenate([[before], holds])[indices]) + 1).tolist()
    return matching


def _iter_answers(
    columns: Columns, steps: NDArray[Any], codes: NDArray[Any], values: Sequence[Any], condition: Condition
) -> Iterator[tuple[int, bool]]:
    """Yield (step, result) of a condition after each step that wrote a key it has read."""
    scope, paths, plain = Scope(0, "root"), columns.codes, columns.tables.plain
    data = scope.data
    seen = _Tracked(scope)
    answers: dict[tuple[type, Any], bool] = {}
    last = len(steps) - 1
    pending = False
    numbers = steps.tolist()
    answer = False
    for row, code in enumerate(codes.tolist()):
        key = plain.get(code)
        if key is not None:
            data[key] = values[row]
        else:
            path = paths[code >> 2][1]
            key = str(path[0])
            top = apply_change(data.get(key, ABSENT), path[1:], code & 3, values[row], path)
            if top is ABSENT:
                data.pop(key, None)
            else:
                data[key] = top
        pending = pending or not seen.evaluated or seen.reads_all or key in seen.read_keys
        if not pending or (row < last and numbers[row + 1] == numbers[row]):
            continue
        pending = False
        value = data.get(key, ABSENT)
        alone = seen.evaluated and not seen.reads_all and len(seen.read_keys) == 1 and type(value) in _HASHED
        known = answers.get((type(value), value)) if alone else None
        if known is None:
            seen.forget()
            known = _holds(condition, seen)
            if alone and seen.read_keys == {key} and not seen.reads_all and len(answers) < _MOST_ANSWERS:
                answers[type(value), value] = known
        if known != answer or not row:
            answer = known
            yield numbers[row], answer


class _Tracked(Board):
    """A board that records which keys were read: a condition is evaluated again only when one of them is written."""

    __slots__ = ("evaluated", "read_keys", "reads_all")

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.read_keys: set[str] = set()
        self.reads_all = self.evaluated = False

    def forget(self) -> None:
        """Start a new evaluation."""
        self.read_keys = set()
        self.reads_all, self.evaluated = False, True

    def _note(self, key: object) -> None:
        text = str(key)
        self.read_keys.add(text)
        if "." in text:
            parts = text.split(".")
            self.read_keys.update(".".join(parts[:size]) for size in range(1, len(parts)))

    def __getitem__(self, key: str) -> Any:
        self._note(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._note(key)
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self.reads_all = True
        return super().__iter__()

    def __len__(self) -> int:
        self.reads_all = True
        return super().__len__()


def _holds(condition: Condition, board: Mapping[str, Any]) -> bool:
    """Return True if a condition holds; False if it does not, or cannot be evaluated there (yet)."""
    try:
        return bool(condition(board))
    except NoAnswer:
        raise
    except Exception:  # noqa: BLE001  (a condition is user code; breakpoints treat it alike)
        return False


# -- formulas -------------------------------------------------------------------------------------------------------


class _Formula(NamedTuple):
    """A condition as a Python function of its only key, for value types on which both languages agree."""

    answer: Callable[[Any], Any]
    types: frozenset[type]


def _compile_formula(condition: Condition) -> _Formula | None:
    """Return a condition on one key as a function of numbers or strings; None for any other condition."""
    if len(condition.reads) != 1 or len(condition.reads[0]) != 1 or condition.reads_all:
        return None
    key = str(condition.reads[0][0])
    if condition.kind == "rule":
        formula = _parse_rule_formula(condition.source)
        if formula is None or formula[0] != key or type(formula[2]) not in (int, float, str):
            return None
        _, compare, constant = formula
        return _Formula(lambda value: compare(value, constant), _TEXTS if type(constant) is str else _NUMBERS)
    return _parse_text_formula(condition.text, key) if condition.kind == "text" else None


def _parse_text_formula(text: str, key: str) -> _Formula | None:
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    constants = {type(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant)}
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    if names != {key} or not all(isinstance(part, _GRAMMAR) for part in ast.walk(node)):
        return None
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and constants == {str}:
        types = _TEXTS if all(isinstance(part, ast.Constant) for part in node.comparators) else frozenset[type]()
    else:
        types = _NUMBERS if constants <= _NUMBERS else frozenset()
    if not types:
        return None
    function = ast.parse(f"lambda {key}: 0", mode="eval")
    assert isinstance(function.body, ast.Lambda)
    function.body.body = node
    code = compile(ast.fix_missing_locations(function), "<condition>", "eval")
    return _Formula(eval(code, {"__builtins__": {}}), types)  # noqa: S307  (nothing but `_GRAMMAR` is in it)


def _parse_rule_formula(rule: Any) -> tuple[str, Callable[[Any, Any], Any], Any] | None:
    if not isinstance(rule, Mapping) or len(rule) != 1:
        return None
    (word, operands), *_ = rule.items()
    if word not in _RULES or not isinstance(operands, list | tuple) or len(operands) != 2:
        return None
    name = operands[0].get("var") if isinstance(operands[0], Mapping) and len(operands[0]) == 1 else None
    name = name[0] if isinstance(name, list) and len(name) == 1 else name
    same = _is_formula_constant if word in ("==", "!=") else None
    if not isinstance(name, str) or "." in name or (same is not None and not same(operands[1])):
        return None
    return name, _RULES[word], operands[1]


def _is_formula_constant(constant: Any) -> bool:
    return type(constant) in (int, float, str)


def _answer_all(values: Sequence[Any], formula: _Formula | None, condition: Condition, key: str) -> list[bool]:
    """Return the result for each value of the only key that a condition reads."""
    answer_of, types = formula or _Formula(bool, frozenset())
    if formula is not None and set(map(type, values)) <= types:
        with suppress(ArithmeticError):
            return list(map(bool, map(answer_of, values)))
        types = frozenset()
    results, answers = list[bool](), dict[tuple[type, Any], bool]()
    for value in values:
        kind = type(value)
        if kind in types:
            results.append(_holds_for(answer_of, value))
            continue
        answer = answers.get((kind, value)) if kind in _HASHED else None
        if answer is None:
            answer = _holds(condition, {} if value is ABSENT else {key: thaw(value)})
            if kind in _HASHED and len(answers) < _MOST_ANSWERS:
                answers[kind, value] = answer
        results.append(answer)
    return results


def _holds_for(answer_of: Callable[[Any], Any], value: Any) -> bool:
    try:
        return bool(answer_of(value))
    except ArithmeticError:  # as a condition that fails there
        return False


# -- runs with several scopes ---------------------------------------------------------------------------------------


def _search_everywhere(
    session: Session, reading: StepIndex, condition: Condition, scopes: NDArray[np.int64]
) -> list[int]:
    """Search a run whose conditions sometimes see another scope, or names besides those of the board."""
    replica, codes = StateProjection(reading.tables), reading.tables.codes
    steps: list[int] = []
    seen = _Tracked(Scope(-1, "find"))
    answer, scope_before = False, -1
    in_context = bool(session.recipe.meta.get("context"))
    frames = _get_frames_after(reading) if in_context else None
    for history, last in reading.parts():
        at, writes = history.base, 0
        for row in range(last + 1):
            start, end = (history.write_ends[row - 1] if row else 0), history.write_ends[row]
            step = history.base + row
            scope = int(scopes[step - 1]) if step else 0
            keys = (str(codes[history.write_codes[number] >> 2][1][0]) for number in range(start, end))
            if (
                seen.evaluated
                and scope == scope_before
                and not any(seen.reads_all or key in seen.read_keys for key in keys)
            ):
                pass
            else:
                replica.apply_steps(history, at, step, writes)
                at, writes, scope_before = step, end, scope
                inner = Scope(-1, "find")
                inner.data = replica.visible_items(scope)
                seen = _Tracked(inner)
                seen.forget()
                names: Mapping[str, Any] = seen
                if frames is not None:
                    seen.reads_all, frame = True, int(frames[step - 1]) if step else 0
                    names = Context(seen, partial(get_frame_inputs, get_state(session).run, frame), None, NO_NODE)
                answer = _holds(condition, names)
            if row and answer:
                steps.append(step)
            elif not row and step and steps and steps[-1] == step and not answer:
                steps.pop()  # a fork that starts with an edit
            elif not row and step and answer and (not steps or steps[-1] != step):
                steps.append(step)
        replica.apply_steps(history, at, history.base + last, writes)
    return steps


def _get_frames_after(reading: StepIndex) -> NDArray[np.int64]:
    """Return the frame of the next node after each step; the root if there is none."""
    frame_of = np.array(
        [activation.frame if activation.node >= 0 else 0 for activation in reading.tables.activations] or [0]
    )
    parts = []
    for history, last in reading.parts():
        positions = to_array(history.queue_starts, last + 1)[1:].astype(np.int64)
        activations = to_array(history.push_activations, len(history.push_activations)).astype(np.int64)
        waiting = positions < to_array(history.push_ends, last + 1)[1:].astype(np.int64)
        frames = np.zeros(len(positions), dtype=np.int64)
        frames[waiting] = frame_of[activations[positions[waiting]]]
        parts.append(frames)
    return np.concatenate(parts)


__all__ = ["find"]
