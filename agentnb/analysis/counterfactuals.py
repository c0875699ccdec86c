"""Counterfactuals: which single change to a run's past would have fixed it.

One recorded answer, write, route or input is changed at a time, and a fork runs from there. Calls that did not change
get their recorded answers. A call that is not recorded is not sent, and its fork ends there, unless effects are asked
for; with samples, the forks that had effects are repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from itertools import chain, islice
from math import nan, sqrt
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from agentnb.analysis.dependence import Dependence
from agentnb.analysis.judging import Judge
from agentnb.board.masking import find_secret_word
from agentnb.board.values import freeze, thaw
from agentnb.display import get_view
from agentnb.engine.control.budget import Budget
from agentnb.engine.core.history import RUN
from agentnb.engine.effects.recorded_calls import ASKED
from agentnb.engine.replay.equality import iter_innermost_differences
from agentnb.errors import ExecutionError, Problem
from agentnb.expressions.paths import parse_path
from agentnb.recipe.descriptions import list_choices
from agentnb.session import Session
from agentnb.session.checks import check_locked, refuse_step
from agentnb.session.parts import get_parts
from agentnb.session.recorded_answers import RecordedAnswers, send_nothing
from agentnb.session.state import get_state
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.world.effect import Effect

# among changes with the same effect, the first of these kinds comes first
_KINDS: Final = ("call", "route", "write", "input")
_TYPES: Final = {
    "step": "int64", "node": "object", "kind": "category", "change": "object", "outcome": "boolean",
    "steps_after": "int64", "would_call": "object",
}  # fmt: skip
_OUTCOMES: Final = (True, None, False)  # in this order in the table; None: unknown
_SAMPLED: Final = {"right": "float64", "low": "float64", "high": "float64", "samples": "int64", "missing": "int64"}
_LIMITS: Final = ("max_llm_calls", "max_tokens", "max_cost_usd", "max_seconds")
_QUANTILE: Final = 1.959964  # of the normal distribution, for intervals of 95 %
_MOST_SAMPLES: Final = 100_000  # per fork
_MOST_ALTERNATIVES: Final = 12  # per value
_PARTS: Final = 4  # values with parts get this many times more alternatives; this many elements of a list are changed
_LONGEST: Final = 200  # characters of an argument, as shown
_ROOM: Final = 100  # steps that a fork may run beyond twice those of the run


_Item = TypeVar("_Item")


class Change(NamedTuple):
    """One change to the past: after step `at`, `apply` makes it in a fork; it skips the recorded step `skipped`."""

    step: int
    node: str | None
    kind: str
    text: str
    at: int
    apply: Callable[[Session], Any]
    skipped: int | None = None


class Attempt(NamedTuple):
    """One fork with a change: whether it was right (None: unknown), its steps, and the calls that were not sent."""

    is_right: bool | None
    steps: int = 0
    would_call: tuple[str, ...] = ()
    has_effects: bool = False


@dataclass
class Trial:
    """The results of one change: whether each of its forks was right, and what the first of them did."""

    change: Change
    outcomes: list[bool] = field(default_factory=list)
    steps: int = 0
    would_call: tuple[str, ...] = ()
    is_live: bool = False  # whether a fork had effects, or would have had some

    def add(self, attempt: Attempt) -> None:
        """Add a fork; it does not count if it is unknown whether it was right."""
        self.is_live = self.is_live or attempt.has_effects
        self.steps, self.would_call = self.steps or attempt.steps, self.would_call or attempt.would_call
        if attempt.is_right is not None:
            self.outcomes.append(attempt.is_right)

    def row(self) -> dict[str, Any]:
        """Return the columns that all results have."""
        step, node, kind, text, *_ = self.change
        right = sum(self.outcomes) * 2 > len(self.outcomes) if self.outcomes else None
        return {"step": step, "node": node, "kind": kind, "change": safe_str(text), "outcome": right,
                "steps_after": self.steps, "would_call": self.would_call}  # fmt: skip

    def sampled_row(self, samples: int) -> dict[str, Any]:
        """Return the columns of a result with samples; a fork without effects is certain after one."""
        count = len(self.outcomes)
        right = sum(self.outcomes) / count if count else nan
        low, high = compute_interval(sum(self.outcomes), count) if self.is_live else (right, right)
        needed = samples if self.is_live or not count else 1
        return {**self.row(), "right": right, "low": low, "high": high, "samples": count, "missing": needed - count}


def compute_interval(right: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, by Wilson's score.

    E. B. Wilson (1927), Probable inference, the law of succession, and statistical inference. Journal of the American
    Statistical Association 22, 209-212.

    Example:
        >>> [round(end, 3) for end in compute_interval(8, 10)]
        [0.49, 0.943]
    """
    if not count:
        return nan, nan
    share, square = right / count, _QUANTILE**2
    middle = share + square / (2 * count)
    half = _QUANTILE * sqrt(share * (1 - share) / count + square / (4 * count**2))
    return max(0.0, (middle - half) / (1 + square / count)), min(1.0, (middle + half) / (1 + square / count))


def find_counterfactuals(
    session: Session,
    ok: Callable[[Session], Any],
    at: int | None = None,
    candidates: Mapping[str, Iterable[Any]] | None = None,
    max_forks: int = 100,
    effects: bool = False,
    samples: int | None = None,
    budget: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Return the single changes to the past that make `ok(fork)` true; see `Session.counterfactuals`."""
    from agentnb.trace.frames import make_table

    limits = _make_limits(effects, samples, budget)
    state, judge = get_state(session), Judge(ok, "session.counterfactuals()")
    check_locked(state)
    end = session.position if at is None else at
    refuse_step(state, end)
    if problems := [*state.check_paths([parse_path(key) for key in candidates or ()], "session.counterfactuals()")]:
        raise ExecutionError(*problems)
    changes = islice(_take_fairly(_iter_changes(session, end, candidates)), max(max_forks, 0))
    forks = _Forks(session, judge, _Effects(limits) if effects else None)
    trials = list(map(Trial, changes))
    repeats = samples or 1
    bar = get_view("progress")(len(trials) * repeats) if samples and progress and trials else None
    with bar or nullcontext(lambda _count: None) as advance:
        for repeat in range(repeats):
            for trial in trials:
                if not repeat or (trial.is_live and not forks.is_over()):
                    trial.add(forks.run(trial.change))
                    advance(1 if trial.is_live else repeats)
    if any(trial.outcomes for trial in trials):  # otherwise no fork has come to its end
        judge.check()
    if samples is None:
        rows = [trial.row() for trial in trials]
        rows.sort(key=lambda row: (_OUTCOMES.index(row["outcome"]), _KINDS.index(row["kind"]), row["step"]))
        return make_table(rows, _TYPES)
    rows = [trial.sampled_row(samples) for trial in trials]
    rows.sort(key=lambda row: (not row["samples"], -row["low"] if row["samples"] else 0, _KINDS.index(row["kind"]),
                               row["step"]))  # fmt: skip
    return make_table(rows, _TYPES | _SAMPLED)


def _make_limits(effects: bool, samples: int | None, budget: Mapping[str, Any] | None) -> Budget:
    """Return the total limits for all forks.

    A116: the samples or the budget of counterfactuals are invalid.

    Raises:
        ExecutionError: A116.
    """
    limits = Budget.of(budget or {}, {})
    others = [
        each.name for each in fields(limits) if each.name not in _LIMITS and getattr(limits, each.name) is not None
    ]
    if samples is not None and not 1 <= samples <= _MOST_SAMPLES:
        what, why = f"{safe_repr(samples)} samples", f"a fork is run once to {_MOST_SAMPLES:,} times"
        do = "pass samples=10, or leave it out"
    elif (samples or budget) and not effects:
        what, why = f"{'samples' if samples else 'a budget'} without effects", "forks call nothing then"
        do = "pass effects=True to call models and tools, or leave it out"
    elif others:
        what, why = f"the budget has {', '.join(others)}", "it limits the model requests of all forks together"
        do = f"use: {', '.join(_LIMITS)}"
    else:
        return limits
    raise ExecutionError(
        Problem("A116", what, "session.counterfactuals(effects=..., samples=..., budget=...)", why, do)
    )


class _Effects:
    """The calls that are sent: those that the budget of all forks allows. People are never asked."""

    def __init__(self, limits: Budget) -> None:
        self._limits, self._begun = limits, perf_counter()
        self._requests = 0  # to models, of the forks that have ended; as the tokens and the cost
        self._tokens, self._cost = 0, 0.0
        self._admitted = 0
        self._source: RecordedAnswers | None = None

    def begin_fork(self, source: RecordedAnswers) -> None:
        """Count what a fork sends from now on, in addition to that of the forks before."""
        self._requests, self._tokens, self._cost = self._measure()
        self._source, self._admitted = source, 0

    def is_over(self) -> bool:
        """Return True if the budget is used up."""
        limits = self._limits
        used = zip((limits.max_llm_calls, limits.max_tokens, limits.max_cost_usd), self._measure(), strict=True)
        return self.is_late() or any(limit is not None and amount >= limit for limit, amount in used)

    def is_late(self) -> bool:
        """Return True if the time limit is exceeded."""
        return self._limits.max_seconds is not None and perf_counter() - self._begun >= self._limits.max_seconds

    def sends(self, effect: Effect) -> bool:
        """Return True if a call that is not recorded is sent."""
        if effect.kind in ASKED or self.is_late() or (effect.kind == "llm" and self.is_over()):
            return False
        self._admitted += effect.kind == "llm"
        return True

    def _measure(self) -> tuple[int, int, float]:
        """Return the requests to models, their tokens and their cost so far."""
        rows = [row for row in (self._source.attempts if self._source else ()) if row.kind == "llm"]
        tokens = sum((row.tokens_in or 0) + (row.tokens_out or 0) for row in rows)
        cost = sum(float(row.cost_usd or 0) for row in rows)
        return self._requests + max(len(rows), self._admitted), self._tokens + tokens, self._cost + cost


class _Forks:
    """Runs forks with a change, whose calls are answered from the session's record; without effects, none is sent."""

    def __init__(self, session: Session, judge: Judge, effects: _Effects | None) -> None:
        self._session, self._judge, self._effects = session, judge, effects
        self._held_before: bool | None = None

    def is_over(self) -> bool:
        """Return True if the budget of effects is used up."""
        return self._effects is not None and self._effects.is_over()

    def run(self, change: Change) -> Attempt:
        """Run a fork with a change to its end, or to the first call that may not be sent."""
        session, effects = self._session, self._effects
        if effects is not None and effects.is_late():
            return Attempt(None)
        sends = send_nothing if effects is None else effects.sends
        answers = RecordedAnswers(session.trace.reading(), sends, change.skipped)
        if effects is not None:
            effects.begin_fork(answers)
        try:
            fork = self._make_fork(change.at, answers)
            change.apply(fork)
            fork.run(max_steps=2 * len(session.trace) + _ROOM)
        except Exception:  # noqa: BLE001  (a change may be impossible: then it does not make the run right)
            return Attempt(is_right=False)
        is_right: bool | None = self._judge.is_right(fork)
        if answers.refused and not (is_right and not self._held_in_record()):
            is_right = None  # the rest of the run is unknown
        would_call = tuple(map(_format_call, answers.refused))
        return Attempt(is_right, fork.position - change.at, would_call, effects is not None and bool(answers.attempts))

    def _make_fork(self, at: int, answers: RecordedAnswers | None = None) -> Session:
        return get_parts(self._session).forks.trial(at, None, None, None, None, answers).state.session

    def _held_in_record(self) -> bool:
        """Return True if `ok` holds after some step of the recorded run.

        It then says nothing about a fork that has not come to its end: it may hold because something is missing yet.
        """
        if self._held_before is None:
            steps = range(self._session.position + 1)
            self._held_before = any(self._judge.is_right(self._make_fork(step)) for step in steps)
        return self._held_before


def _format_call(effect: Effect) -> str:
    arguments = (f"{safe_str(name)}={safe_repr(value, _LONGEST, key=name)}" for name, value in effect.arguments.items())
    return f"{safe_str(effect.name)}({', '.join(arguments)})"


# -- what may be changed --------------------------------------------------------------------------------------------


def _iter_changes(
    session: Session, end: int, candidates: Mapping[str, Iterable[Any]] | None
) -> dict[str, list[Iterator[Change]]]:
    """Return the changes by kind, one iterator per value or choice."""
    rows, changes = Dependence(session.trace, session.recipe), {kind: list[Iterator[Change]]() for kind in _KINDS}
    values = _Values(session, rows, candidates)
    for step in range(1, end + 1):
        if rows.phase(step) != RUN or rows.get_activation(step).purpose:
            continue
        node, outputs = rows.node(step), {key: thaw(value) for key, value in rows.reading.outputs(step).items()}
        kind = "call" if rows.calls(step) else "write"
        for key, value in outputs.items():
            if candidates is None or key in candidates:
                changes[kind].append(
                    _writes(step, node, kind, outputs, key, values.iter_alternatives(key, value, step))
                )
        if candidates is None:
            changes["route"].append(_iter_routes(session, rows, step, node))
    for key, value in session.inputs.items():
        if candidates is None or key in candidates:
            changes["input"].append(_iter_inputs(key, value, values.iter_alternatives(key, value)))
    return changes


def _writes(
    step: int, node: str, kind: str, outputs: Mapping[str, Any], key: str, others: Iterable[Any]
) -> Iterator[Change]:
    for other in others:
        writes = {**outputs, key: other}
        text = _format_text(key, outputs[key], other)
        yield Change(step, node, kind, text, step - 1, partial(_skip, writes), step)


def _skip(writes: Mapping[str, Any], fork: Session) -> None:
    fork.skip(writes)


def _iter_routes(session: Session, rows: Dependence, step: int, node: str) -> Iterator[Change]:
    edges = rows.reading.edges
    targets = [edge.target for edge in edges if edge.source == node and edge.kind not in ("error", "timeout", "event")]
    own = session.recipe.nodes.get(node)
    if own is not None and (routes := [target for _, target in list_choices(own)]):
        targets += routes  # then targets that none of its routes leads to
        targets += [node.id for node in session.recipe.nodes.values() if node.scope == own.scope and node is not own]
    history, row = rows.reading.owner(step)
    pushed = history.push_activations[history.push_ends[row - 1] : history.push_ends[row]]
    taken = {rows.reading.nodes[rows.reading.tables.activations[number].node].id for number in pushed}
    for target in dict.fromkeys(filter(None, targets)):
        if target not in taken and len(set(targets)) > 1:
            text = f"{node} leads to {target}"
            yield Change(step, node, "route", text, step, partial(_set_next, target))


def _set_next(target: str, fork: Session) -> None:
    fork.set_next(target)


def _iter_inputs(key: str, value: Any, others: Iterable[Any]) -> Iterator[Change]:
    for other in others:
        yield Change(0, None, "input", _format_text(key, value, other), 0, partial(_edit, {key: other}))


def _edit(changes: Mapping[str, Any], fork: Session) -> None:
    fork.edit(changes)


def _format_text(key: str, old: Any, new: Any) -> str:
    word = find_secret_word(parse_path(key))
    return f"{key}: {safe_repr(old, key=word)} -> {safe_repr(new, key=word)}"


def _is_same(left: Any, right: Any) -> bool:
    """Return True if two values are equal and have the same type, without running their own comparison methods."""
    return (
        type(left) is type(right) and next(iter(iter_innermost_differences(freeze(left), freeze(right))), None) is None
    )


class _Values:
    """Alternatives to a recorded value: candidates passed, values read by its step, near it, or elsewhere."""

    def __init__(self, session: Session, rows: Dependence, candidates: Mapping[str, Iterable[Any]] | None) -> None:
        self._given = {key: list(values) for key, values in (candidates or {}).items()}
        self._elsewhere: dict[str, list[Any]] = {}
        self._rows, columns = rows, rows.columns
        for row in range(len(columns.write_paths)):
            path = rows.path(row)
            if len(path) == 1 and not columns.write_codes[row] & 3:
                self._elsewhere.setdefault(str(path[0]), []).append(columns.new_values[row])
        self._words = [text for node in session.recipe.nodes.values() for text, _ in list_choices(node)]

    def iter_alternatives(self, key: str, value: Any, step: int | None = None) -> Iterator[Any]:
        """Yield a few other values for a key, starting with values that the step has read, as if passed on."""
        candidates = chain(self._read_by(step, value), self._iter_neighbors(value), self._iter_elsewhere(key))
        others = self._given.get(key, candidates)
        seen = [value]
        limit = _MOST_ALTERNATIVES * (_PARTS if isinstance(value, dict | list | str) or is_dataclass(value) else 1)
        for other in islice(others, None if key in self._given else 4 * limit):
            if not any(_is_same(other, known) for known in seen):
                seen.append(other)
                yield other
            if key not in self._given and len(seen) > limit:
                return

    def _read_by(self, step: int | None, value: Any) -> Iterator[Any]:
        """Yield the values of the same type that a step read as a whole."""
        rows = self._rows
        if step is None:
            return
        for read in rows.reads(step):
            row = next(iter(rows.writers(read.scope, read.path, rows.bound_before(step))), None)
            if row is not None and rows.path(row) == read.path and not rows.columns.write_codes[row] & 3:
                other = thaw(rows.columns.new_values[row])
                if type(other) is type(value):
                    yield other

    def _iter_elsewhere(self, key: str) -> Iterator[Any]:
        return map(thaw, self._elsewhere.get(key, []))

    def _iter_neighbors(self, value: Any) -> Iterator[Any]:
        match value:
            case bool():
                yield not value
            case int():
                yield from (0, value + 1, value - 1, -value, value * 10, value // 10, value * 2, value // 2,
                            value * 100, value // 100)  # fmt: skip
            case float():
                yield from (0.0, value * 10, value / 10, -value, value * 2, value / 2, value * 100, value / 100)
            case str():
                yield from self._words
                yield ""
                if value.lstrip().startswith("{"):  # a model's answer: change its content instead of its characters
                    yield from map(json.dumps, self._iter_neighbors(_parse(value)))
            case list():
                yield []
                yield value[:-1]
                yield value[::-1]
                yield from _interleave([map(partial(_replace_element, value, at), self._iter_neighbors(part))
                                     for at, part in enumerate(value[:_PARTS])])  # fmt: skip
            case dict():
                yield from _interleave([map(partial(_replace_item, value, name), self._iter_neighbors(part))
                                     for name, part in value.items()])  # fmt: skip
            case object() if is_dataclass(value) and not isinstance(value, type):
                yield from _interleave(
                    [
                        _replace_field(value, field.name, self._iter_neighbors(getattr(value, field.name)))
                        for field in fields(value)
                        if field.init
                    ]
                )
            case None:
                yield from (0, "", True)


def _parse(text: str) -> Any:
    """Return the JSON object in a string; an empty dict if it is not one."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {}


def _replace_element(value: list[Any], at: int, other: Any) -> list[Any]:
    return [*value[:at], other, *value[at + 1 :]]


def _replace_item(value: Mapping[str, Any], name: str, other: Any) -> dict[str, Any]:
    return {**value, name: other}


def _replace_field(value: Any, name: str, others: Iterator[Any]) -> Iterator[Any]:
    for other in others:
        try:
            changed = replace(value, **{name: other})
        except Exception:  # noqa: BLE001, S112  (its __post_init__ may refuse a value)
            continue
        yield changed


def _take_fairly(changes: dict[str, list[Iterator[Change]]]) -> Iterator[Change]:
    """Yield one change of each value in turn: calls, routes, writes, inputs; then the next change of each."""
    return _interleave([iterator for kind in _KINDS for iterator in changes[kind]])


def _interleave(waiting: list[Iterator[_Item]]) -> Iterator[_Item]:
    """Yield one item of each iterator in turn until all are exhausted."""
    while waiting:
        remaining = []
        for iterator in waiting:
            for item in islice(iterator, 1):
                yield item
                remaining.append(iterator)
        waiting = remaining


__all__ = ["find_counterfactuals"]
