"""What the nodes of drawn recipes do, and what drawn conditions ask: lists of plain words.

The engine runs them through a node's own board, the model through its own reading of plain dicts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

MISSING = object()


class Op(NamedTuple):
    """One thing that a node does: `verb` says what, at which key or path, with which value."""

    verb: str
    at: Any = None
    value: Any = None


class BrokenError(Exception):
    """What a failing node raises."""


@dataclass(frozen=True)
class Ask:
    """A condition over the board: `verb` is has, truthy, less or boom."""

    verb: str
    at: str
    value: int = 0

    @property
    def text(self):
        return f"{self.verb} {self.at} {self.value}"

    @property
    def reads(self):
        return ((self.at,),)

    def __call__(self, board):
        return answer(self, board.get(self.at, MISSING))


def answer(ask: Ask, found: Any) -> bool:
    match ask.verb:
        case "has":
            return found is not MISSING
        case "truthy":
            return found is not MISSING and bool(found)
        case "less":
            return type(found) is int and found < ask.value
    raise BrokenError(f"nobody can say {ask.text}")


def change(target: Any, how: str, value: Any) -> None:
    """Change a list or a dict where it is; leave everything else alone."""
    if isinstance(target, list):
        if how == "add":
            target.append(copy.deepcopy(value))
        elif how == "drop" and target:
            target.pop(0)
        elif how == "same" and target:
            target[0] = copy.deepcopy(target[0])
        elif how == "deep":
            change(next((item for item in target if isinstance(item, list | dict)), None), "add", value)
    elif isinstance(target, dict):
        if how == "add":
            target["c"] = copy.deepcopy(value)
        elif how == "drop" and target:
            target.pop(next(iter(target)))
        elif how == "same" and target:
            target.update(copy.deepcopy(target))
        elif how == "deep":
            change(next((item for item in target.values() if isinstance(item, list | dict)), None), "add", value)


def perform(
    ops: tuple[Op, ...], get: Callable[[str, Any], Any], write: Callable[[Any, Any], Any] | None = None
) -> tuple[dict[str, Any], list[tuple[Any, Any]]]:
    """Do what a node's program says; return the dict that it returns, and its writes below keys."""
    result: dict[str, Any] = {}
    places: list[tuple[Any, Any]] = []
    for op in ops:
        match op.verb:
            case "set":
                result[op.at] = copy.deepcopy(op.value)
            case "write" if write is not None:
                write(op.at, copy.deepcopy(op.value))
            case "place":
                places.append((op.at, copy.deepcopy(op.value)))
            case "copy":
                current = get(op.at, MISSING)
                if current is not MISSING:
                    result[op.value] = current
            case "count":
                current = get(op.at, 0)
                result[op.at] = current + 1 if type(current) is int else 0
            case "change":
                operation, value = op.value
                change(get(op.at, None), operation, value)
            case "fail":
                raise BrokenError("it is written so")
            case "late":
                raise TimeoutError("it took too long")
            case "fail_if" if get(op.at, None):
                raise BrokenError(f"{op.at} stands there")
    return result, places


def board_function(ops: tuple[Op, ...]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    def function(board):
        return perform(ops, board.get)[0]

    return function


def input_function(ops: tuple[Op, ...]) -> Callable[..., dict[str, Any]]:
    def function(**given):
        return perform(ops, given.get)[0]

    return function
