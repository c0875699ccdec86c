"""conditions: what an edge, a route or a breakpoint asks of the board: a JsonLogic rule, an expression, a callable.

A rule is compiled by datalogic-py, whose one door this is, with a budget of operations, and is given only the paths
that it reads. What the library would answer wrongly or silently is mended or told: see `make_ready`.

R310: a condition is none of rule, text or callable
X310: an ordered comparison reads what is missing
X311: a rule takes more work than it may
X312: a value on the board cannot be compared by a rule
X313: a rule failed while it ran
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from agentnb.errors import ExecutionError, Place, Problem, RecipeError, did_you_mean
from agentnb.expressions.reading import NOTHING, found_at, nearest, to_json
from agentnb.expressions.rules import MISSING, Operator, Ready, Side, check_rule, make_ready, normal, rule_text
from agentnb.expressions.templates import Template, compile_expression, compile_template, has_markers

if TYPE_CHECKING:
    from datalogic_py import Engine

__all__ = ["Condition", "Rule", "as_condition", "compile_rule"]

Path = tuple[str, ...]
Row = tuple[str, Any]
_OPERATIONS = 1_000_000  # that one evaluation may take: some tens of milliseconds
_EXPLAINED = 100_000  # the same where each one is written down
_TRACE_SIZE = 10_000_000  # characters; the library writes down the whole context with each step
_MAX_ROWS = 200
_FAMILIES = ["Core", "DateTime", "ExtString", "ExtArray", "ExtObject", "ExtControl", "ErrorHandling", "ExtMath"]
_ATOMS = frozenset({str, int, bool, type(None)})
_MOST = 1.7976931348623157e308  # the largest float: JSON has no infinity, and this one compares alike


@cache
def _engine(operations: int) -> Engine:
    from datalogic_py import Engine

    # Text that is no number is unequal to a number, as in JavaScript; the library's default is an error.
    return Engine(config={"ops_budget": operations, "loose_equality_errors": False}, families=_FAMILIES)


@cache
def _operators() -> Mapping[str, Operator]:
    return {
        name: Operator(known["min_args"], known["max_args"])
        for known in _engine(_OPERATIONS).operators()
        for name in (known["name"], *known["aliases"])
    }


class Rule:
    """A compiled JsonLogic rule: `evaluate(board)` gives its value, not always a bool; its truth is Python's.

    `text` is the rule as people read it, `reads` are the paths that it reads, () for the whole board. `warning` tells
    what was odd about the last evaluation: text that was compared with a number.
    """

    def __init__(self, rule: Any, ready: Ready, place: Place | None) -> None:
        self.text, self.place, self.warning = rule_text(rule), place, ""
        self._ready, self._compiled = ready, _engine(_OPERATIONS).compile(ready.rule)
        facts = self._compiled.facts()
        paths = [tuple(path) for path in facts["reads"] if path[:1] != [] and path[0] not in ready.slots]
        whole = [] in facts["reads"] or not facts["reads_complete"]
        # A path behind another adds nothing to what is handed over.
        self._paths = [path for path in paths if not any(path[:size] in paths for size in range(1, len(path)))]
        self._whole = whole
        used = [*([()] if whole else self._paths), *(path for each in ready.slots.values() for path in each.reads)]
        self.reads: tuple[Path, ...] = tuple(dict.fromkeys(used))

    def __repr__(self) -> str:
        return f"<Rule {self.text!r}>"

    def evaluate(self, board: Mapping[str, Any]) -> Any:
        """Return the rule's value on this board.

        Raises: ExecutionError: X310 to X313, and those of the rule's templates
        """
        context, simple = self._context(board)
        if self._ready.pairs:
            self.warning = self._oddity(context)
        try:
            return self._compiled.evaluate(context if simple else self._json(context))
        except ExecutionError:
            raise
        except BaseException as error:
            raise ExecutionError(self._problem(error, board)) from error

    def explain(self, board: Mapping[str, Any]) -> list[Row]:
        """Return (text, value) of everything that the rule read and compared, in order and, last, of the whole."""
        try:
            text = self._json(self._context(board)[0])
        except ExecutionError as error:
            return [(self.text, f"fails: {error.problems[0].what}")]
        if len(text) * len(self._ready.texts) > _TRACE_SIZE:
            rows = [(".".join(path), found_at(board, path)) for path in self.reads]
            return [*rows, (self.text, self.evaluate(board))]
        told = json.loads(_engine(_EXPLAINED).evaluate_with_trace(json.dumps(self._ready.rule), text))
        rows = []
        for step in told["steps"]:
            pointer = told["pointers"].get(str(step["node_id"]), "")
            if pointer and step["error"] is None and (seen := self._ready.texts.get(pointer)):
                rows.append((seen, step["result"]))
        rows = [row for at, row in enumerate(rows[:_MAX_ROWS]) if row not in rows[:at]]
        failed = told.get("error")
        return [*rows, (self.text, f"fails: {self._problem(failed, board).what}" if failed else told["result"])]
