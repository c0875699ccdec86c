"""Recorded calls: the attempts of calls as rows of the history, and the answers that those rows record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ATOMS, FrozenDict, freeze, thaw
from agentnb.engine.core.history import Call
from agentnb.world.llm.base import SIMULATED, LLMResponse, Usage

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Work
    from agentnb.world.effect import Effect

CUT_SHORT: Final = "CancelledError: the step was cut short before the answer came"  # not a failure of the effect itself
NO_ARGUMENTS: Final = freeze({})
PLAIN_ANSWERS: Final = ATOMS | {dict, list, tuple, FrozenDict}  # nothing to await, no usage to read
# The fields of a row after `seconds` (usage, cost, provider, model, finish_reason) if no model answered.
NO_USAGE: Final = (None, None, None, None, None, None)
MADE_UP: Final = (None, None, None, SIMULATED, SIMULATED, None)
SAID: Final = frozenset({"llm", "agent"})  # for these, only the content of a model's response object is recorded
ASKED: Final = frozenset({"human", "approval"})  # questions to people may be asked again
_new_call = tuple.__new__  # one per call: the constructor of a named tuple costs twice as much


def freeze_arguments(effect: Effect) -> Any:
    """Return the arguments of an effect, frozen before the call, because the callee may change them."""
    return freeze(effect.arguments) if effect.arguments else NO_ARGUMENTS


def find_refused(error: Exception, answer: Any, effect: Effect) -> Any:
    """Return the answer that caused a failure, if the error has one; it is recorded beside the error.

    A model's unusable answer is recorded with its usage, because it must be paid for all the same.
    """
    result = getattr(error, "result", None)
    result = result if isinstance(result, Mapping) else None
    usage = getattr(answer, "usage", None) or getattr(error, "usage", None)
    return result if usage is None or effect.kind not in SAID else LLMResponse(result, usage=usage)


def get_content(answer: Any, kind: str) -> Any:
    """Return what a row records of an answer: the content of a model's response; anything else as it is."""
    if kind not in SAID:
        return answer
    return answer.recorded_value if isinstance(answer, LLMResponse) else getattr(answer, "content", answer)


def must_log_start(effect: Effect) -> bool:
    """Return True if the start of this call must be logged (not for repeatable or simulated calls)."""
    return not effect.is_simulated and (not effect.repeatable or effect.kind in ASKED)


def make_row(
    work: Work,
    number: int,
    effect: Effect,
    arguments: Any,
    attempt: int,
    wait: float,
    answer: Any,
    error: Exception | None,
    seconds: float,
) -> Call:
    """Return the row of an attempt."""
    # The step number is provisional; if a parallel branch commits first, `step._flush` renumbers.
    step, activation, kind, name = work.run.position + 1, work.activation.id, effect.kind, effect.name
    message = None if error is None else f"{type(error).__name__}: {error}"
    if type(answer) in PLAIN_ANSWERS:
        known = (step, activation, number, kind, name, attempt, wait, arguments, freeze(answer), message, seconds)
        return _new_call(Call, known + (MADE_UP if effect.is_simulated else NO_USAGE))
    usage = getattr(answer, "usage", None)
    return Call(
        step,
        activation,
        number,
        kind,
        name,
        attempt,
        wait,
        arguments,
        freeze(get_content(answer, kind)),
        message,
        seconds,
        tokens_in=getattr(usage, "tokens_in", None),
        tokens_out=getattr(usage, "tokens_out", None),
        cost_usd=getattr(usage, "cost_usd", None),
        provider=_get_text(answer, "provider", kind),
        model=_get_text(answer, "model", kind),
        finish_reason=_get_text(answer, "finish_reason", kind),
    )


def _get_text(answer: Any, name: str, kind: str) -> str | None:
    """Return an attribute of a model's answer; None if it is not a non-empty string."""
    text = getattr(answer, name, None) if kind in SAID else None
    return text if isinstance(text, str) and text else None


def make_interrupted_row(run: Run, which: tuple[int, int, str, str, int, float], sent: Any, started_at: int) -> Call:
    """Return the row of an interrupted attempt; `which` is its activation, call, kind, name, number and delay."""
    return Call(run.position + 1, *which, sent, None, CUT_SHORT, (run.ns() - started_at) / 1e9)


def end_calls(work: Work) -> None:
    """Record the unanswered calls of a step as interrupted; questions to people are withdrawn instead."""
    run = work.run
    for number, (attempt, effect, sent, started_at, wait) in work.calls_in_flight.items():
        if effect.kind in ASKED:
            if run.recorder is not None:
                run.recorder.record_withdrawal(work.activation.id, number)
        elif not effect.is_simulated:
            row = make_interrupted_row(
                run, (work.activation.id, number, effect.kind, effect.name, attempt, wait), sent, started_at
            )
            work.calls.append(row)
            if run.recorder is not None:
                run.recorder.record_response(row)
    work.calls_in_flight.clear()


def read_answer(row: Call) -> Any:
    """Return the answer recorded in a row: for a model an LLMResponse with its usage, else the plain value."""
    answer = thaw(row.result)
    if row.kind == "llm":
        usage = Usage(row.tokens_in, row.tokens_out, row.cost_usd)
        return LLMResponse.from_record(answer, row.arguments, usage=usage)
    return answer
