"""Dispatch of effects: timeouts, retries, backoff, pausing and recording are implemented here, not in the kinds.

A node that calls an effect is a coroutine. Driven without an event loop, it may yield two things: NEED_LOOP (what it
awaits next needs an event loop) and a Hold (the effect waits for a person). Anything else is a future of an event loop.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT, freeze, thaw
from agentnb.engine.core.interfaces import StepAbandoned
from agentnb.engine.core.pending_step import Hold
from agentnb.engine.core.threads import call_in_thread, replace_unraisable
from agentnb.engine.effects.crash_recovery import save_interrupted_step
from agentnb.engine.effects.recorded_calls import (
    ASKED,
    CUT_SHORT,
    PLAIN_ANSWERS,
    end_calls,
    find_refused,
    freeze_arguments,
    get_content,
    make_row,
    read_answer,
)
from agentnb.engine.effects.recorded_errors import rebuild_error
from agentnb.errors import AgentRuntimeError, BoardError, ExecutionError, Problem
from agentnb.recipe.user_functions import is_async
from agentnb.world.fault_injection import SPARED, Key, count_tokens
from agentnb.world.human_input import WAIT
from agentnb.world.llm.base import LLMError, LLMResponse, check_calls

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Work
    from agentnb.world.effect import Effect


class EffectDispatcher:
    """The dispatcher of a run (see `interfaces.Dispatcher`). It is stateless."""

    def call(self, work: Work, effect: Effect) -> Coroutine[Any, Any, Any]:
        """Return a coroutine that performs an effect; it pauses where call breakpoints match."""
        return perform(work.run, work, effect)

    def end_calls(self, work: Work) -> None:
        """Record the unanswered calls of a step as interrupted; questions to people are withdrawn instead."""
        end_calls(work)

    def remember(self, work: Work) -> None:
        """Remember what an interrupted step has done, for when it runs again."""
        save_interrupted_step(work.run, work)


async def perform(run: Run, work: Work, effect: Effect) -> Any:
    """Perform one effect for a node and return the answer of its last attempt.

    It pauses before it is sent and after it is answered if a call breakpoint matches; a person may change or answer it.

    Raises:
        Exception: the exception of the last attempt; TimeoutError if it took longer than `effect.timeout` seconds.
        StepAbandoned: a limit of the run is reached; the run knows which. Or the run's answers come from a record that
            does not contain this call.
    """
    number, recorder = work.call_count, run.recorder
    work.call_count += 1
    attempt, wait = 0, 0.0
    if run.recorded is not None or run.holds_call is not None or run.answer_source is not None:
        effect, attempt, wait, known = await _find_known_answer(run, work, effect, number)
        if known is not None:
            return known[0]
    key = None if run.chaos is None else _make_chaos_key(work, effect, number)
    if effect.kind == "llm" or effect.prepare is not None:
        await _prepare(run, work, effect)
    # Once for all attempts, so that a script matches the same entry each time.
    call = _find_callable(run, work, effect, number) if effect.target is None else _perform_at_target
    while True:
        attempt += 1
        if wait or run.limiter is not None:
            await _await_budget(run, work, effect, wait, (number, attempt))
        started_at, error, answer, sent = run.ns(), None, None, freeze_arguments(effect)
        request = (attempt, effect, sent, started_at, wait)
        if recorder is not None and not effect.is_simulated:
            recorder.record_sent(work, number, request)
        work.calls_in_flight[number] = request  # set now, so that it is known even if recording failed
        try:
            if run.uses_threads or effect.timeout is not None or effect.blocking or key is not None:
                answer = await _call_slowly(run, call, effect, key and (*key, attempt))
            else:
                answer = call(effect)
            if type(answer) not in PLAIN_ANSWERS:
                asks = answer is WAIT
                answer = await (
                    _ask_person(work, effect, number, started_at) if asks else _get_final_answer(run, answer, effect)
                )
            if effect.check is not None:
                effect.check(answer)
        except (Exception, SystemExit) as raised:  # noqa: BLE001  (recorded with the attempt; the last is raised)
            error = replace_unraisable(raised)
            answer = find_refused(error, answer, effect)
        error = _record_attempt(work, effect, (number, sent, attempt, wait), answer, error, run.ns() - started_at)
        if error is None:
            return answer if run.holds_call is None else await _review_answer(run, work, effect, answer, number)
        wait = _get_next_delay(work, effect, attempt, error)


def _find_callable(run: Run, work: Work, effect: Effect, number: int) -> Callable[[Effect], Any]:
    """Return the callable that performs an effect. If there is none, the call is recorded as attempt 0.

    Raises:
        ExecutionError: X301, X302, nothing in this session can perform it.
    """
    try:
        function: Callable[[Effect], Any] = run.world.find(effect, work)
    except Exception as error:
        _record_attempt(work, effect, (number, freeze_arguments(effect), 0, 0.0), None, error, 0)
        raise
    return function


async def _await_budget(run: Run, work: Work, effect: Effect, wait: float, which: tuple[int, int]) -> None:
    """Wait before another attempt, if the run's limits allow it.

    Raises:
        StepAbandoned: a limit does not allow it.
    """
    if run.limiter is not None and not run.limiter.admit_call(run, work, effect, wait, which):
        raise StepAbandoned
    if wait:
        await run.require_loop()
        await run.clock.sleep(wait)


def _record_attempt(
    work: Work, effect: Effect, sent: tuple[int, Any, int, float], answer: Any, error: Exception | None, took: int
) -> Exception | None:
    """Record the end of an attempt; return its failure. `sent`: the call, the arguments, the attempt, its delay."""
    number, arguments, attempt, wait = sent
    work.busy = True
    work.calls_in_flight.pop(number, None)
    try:
        row = make_row(work, number, effect, arguments, attempt, wait, answer, error, took / 1e9)
    except BoardError as unfit:  # an answer that cannot be recorded counts as the attempt's failure
        error = unfit
        paid = find_refused(error, answer, effect)
        row = make_row(work, number, effect, arguments, attempt, wait, paid, error, took / 1e9)
    work.calls.append(row)
    if work.run.answer_source is not None:
        work.run.answer_source.add_attempt(row)
    if work.run.recorder is not None and not effect.is_simulated:
        work.run.recorder.record_response(row)
    return error


async def _review_request(
    run: Run, work: Work, effect: Effect, number: int
) -> tuple[Effect, int, float, tuple[Any] | None]:
    """Return the effect to send, its attempts so far, the delay, and its answer if there is one (1-tuple) or None.

    The call waits for a person if a call breakpoint matches, if it was sent and has no recorded response (unless it is
    repeatable or a question to a person), or if it was changed and the change is masked.

    Raises:
        Exception: the exception of the last recorded attempt, if no retry is left.
    """
    attempt, wait, holds, change = 0, 0.0, False, None
    if run.recorded is not None:
        change = run.recorded.find_change(work, number, effect)
        effect, attempt, wait, known = _find_recorded_state(run, work, effect, number)
        if known is not None:
            return effect, attempt, wait, (await _review_answer(run, work, effect, known[0], number),)
        unanswered = run.recorded.get_sent_time(work, number) is not None
        holds = unanswered and not effect.repeatable and effect.kind not in ASKED
    holds = holds or (run.holds_call is not None and run.holds_call(work, effect, "before"))
    if not holds and change is None:
        return effect, attempt, wait, None
    hold = Hold(effect, "call", "before", call=number)
    if change is not None and not change.is_known:
        holds = True
    elif change is not None and effect.kind != "approval":  # the changed arguments of an approval are not its question
        hold.effect, hold.has_answer = change.apply(effect), change.answer is not ABSENT
        hold.answer = thaw(change.answer) if hold.has_answer else None
    if holds:
        await hold
    if not hold.has_answer:
        return hold.effect, attempt, wait, None
    answer = _make_node_answer(hold)
    sent = freeze_arguments(hold.effect)
    _record_attempt(work, hold.effect, (number, sent, attempt + 1, wait), answer, None, 0)
    return hold.effect, attempt, wait, (answer,)


def _find_recorded_state(
    run: Run, work: Work, effect: Effect, number: int
) -> tuple[Effect, int, float, tuple[Any] | None]:
    """Return the recorded state of a call: the effect, its attempts, the delay, and the answer (1-tuple) or None.

    Raises:
        Exception: the exception of the last attempt, if no retry is left.
    """
    assert run.recorded is not None
    rows = run.recorded.attempts(work, number, effect)
    if not rows:
        return effect, 0, 0.0, None
    work.busy = True
    work.calls.extend(rows)
    last, attempt = rows[-1], rows[-1].attempt
    if last.error is None:
        return effect, attempt, last.wait, (read_answer(last),)
    effect = replace(effect, attempts=effect.attempts + sum(row.error == CUT_SHORT for row in rows))
    wait = 0.0 if last.error == CUT_SHORT else _compute_delay(effect, attempt, rebuild_error(last))
    return effect, attempt, wait, None


async def _find_known_answer(
    run: Run, work: Work, effect: Effect, number: int
) -> tuple[Effect, int, float, tuple[Any] | None]:
    """Return what `_review_request` does; a call of the step's first attempt may have the answer of another run.

    Raises:
        Exception: the exception of the last recorded attempt, if no retry is left.
        StepAbandoned: the call is not recorded, and must not be sent.
    """
    effect, attempt, wait, known = await _review_request(run, work, effect, number)
    if known is not None or attempt or run.answer_source is None:
        return effect, attempt, wait, known
    row = run.answer_source.take(work, number, effect)
    if row is None:
        return effect, attempt, wait, None
    if row.error is not None:
        raise rebuild_error(row)
    return effect, attempt, wait, (await _review_answer(run, work, effect, read_answer(row), number),)


def _compute_delay(effect: Effect, attempt: int, error: Exception) -> float:
    """Return the delay in seconds between a failed attempt and the next one.

    Raises:
        Exception: the failure, if there is no next attempt.
    """
    if attempt >= effect.attempts or _is_permanent(error):
        raise error
    return max(effect.backoff, getattr(error, "retry_after", None) or 0.0)


def _get_next_delay(work: Work, effect: Effect, attempt: int, error: Exception) -> float:
    """Return the delay before a retry, and notify the retry listener."""
    wait = _compute_delay(effect, attempt, error)
    if work.run.on_retry is not None:
        work.run.on_retry(work, effect, attempt + 1, error)
    return wait


def _is_permanent(error: Exception) -> bool:
    """Return True if a retry would fail as well: an error of the run itself, or a request that the server rejects."""
    return isinstance(error, AgentRuntimeError) or (isinstance(error, LLMError) and not error.is_retryable)


def _make_node_answer(held: Hold) -> Any:
    """Return a person's answer to a call in the form that its node expects: an LLMResponse for a model call."""
    answer = held.answer
    if held.effect.kind != "llm" or hasattr(answer, "content"):
        return answer
    return LLMResponse.from_record(answer, held.effect.arguments, "")


async def _review_answer(run: Run, work: Work, effect: Effect, answer: Any, number: int) -> Any:
    """Return an answer, pausing first if a call breakpoint matches; a person may change the answer, or has done so."""
    change = None if run.recorded is None else run.recorded.find_change(work, number, effect)
    holds = run.holds_call is not None and run.holds_call(work, effect, "after")
    if not holds and change is None:
        return answer
    back = Hold(effect, "call", "after", answer, call=number)
    if change is not None and not change.is_known:
        holds = True
    elif change is not None and change.answer is not ABSENT:
        back.answer, back.has_answer = thaw(change.answer), True
    if holds:
        await back
    if not back.has_answer:
        return answer
    answer = _make_node_answer(back)
    at = max(index for index, row in enumerate(work.calls) if row.call == number)  # other calls may have ended since
    row = work.calls[at] = work.calls[at]._replace(result=freeze(get_content(answer, effect.kind)))
    if run.recorder is not None:
        run.recorder.record_response(row)
    return answer


def _perform_at_target(effect: Effect) -> Any:
    return effect.target(**effect.arguments)  # type: ignore[misc]  # called only if the effect has a target


async def _prepare(run: Run, work: Work, effect: Effect) -> None:
    """Await the import and connection of a model client with the clock paused, before the first timeout starts."""
    if effect.prepare is not None:
        ready = effect.prepare()
    else:
        ready = None if effect.target is not None else run.world.preparing(effect, work)
    if ready is None:
        return
    await run.require_loop()
    pending_step = run.pending_steps.get(work.activation.id)
    if pending_step is None:
        await ready
        return
    with pending_step.pause_clock():
        await ready


def _make_chaos_key(work: Work, effect: Effect, number: int) -> tuple[str, str, int]:
    """Return a key that identifies a call across runs: its node, its kind, and the number of such calls before it."""
    node, kind = work.node.id, effect.kind
    earlier_calls = {row.call for row in work.calls if row.kind == kind and row.call != number}
    return node, kind, work.run.count_calls(kind, node) + len(earlier_calls)


async def _call_slowly(run: Run, call: Callable[[Effect], Any], effect: Effect, key: Key | None) -> Any:
    """Make a call that may block: in a thread, unless it is async or simulated. Fault injection may apply."""
    if effect.kind in SPARED or (effect.is_simulated and key is None):
        return call(effect)
    spent = 0.0 if key is None else await _inject_faults(run, effect, key)
    await run.require_loop()
    if is_async(effect.target or call):
        answer = await _await_limited(call(effect), effect, spent)
    elif run.uses_threads or effect.timeout is not None or effect.blocking:
        answer = await _await_limited(call_in_thread(call, effect), effect, spent)
    else:
        answer = call(effect)
    if run.chaos is None or key is None or effect.kind != "llm":
        return answer
    answer = await _get_final_answer(run, answer, effect)
    await run.clock.sleep(run.chaos.throttle_delay(key, count_tokens(answer)))
    return answer


async def _inject_faults(run: Run, effect: Effect, key: Key) -> float:
    """Apply fault injection, which may delay the call or make it fail; return the delay in seconds.

    Raises:
        TimeoutError: the delay exceeds the timeout of the effect.
    """
    assert run.chaos is not None
    delay = run.chaos.delay(key)
    late = effect.timeout is not None and delay >= effect.timeout
    if delay > 0:
        await run.require_loop()
        await run.clock.sleep(effect.timeout if late and effect.timeout is not None else delay)
    if late:
        raise _make_timeout_error(effect)
    run.chaos.raise_failure(key)
    return delay


def _find_send_time(work: Work, number: int, started_at: int) -> int:
    """Return when a call was first sent: repeating a question in another process does not extend its timeout."""
    known = work.run.recorded
    return started_at if known is None else known.get_sent_time(work, number) or started_at


async def _get_final_answer(run: Run, answer: Any, effect: Effect) -> Any:
    """Return the result of an awaitable, or `answer` itself if it is none."""
    if inspect.isawaitable(answer):
        await run.require_loop()
        answer = await _await_limited(answer, effect)
    if effect.kind == "llm":
        check_calls(answer, effect.arguments, effect.name)
    return answer


async def _await_limited(awaitable: Awaitable[Any], effect: Effect, spent: float = 0.0) -> Any:
    """Await something within the remaining timeout of an effect."""
    if effect.timeout is None:
        return await awaitable
    try:
        return await asyncio.wait_for(awaitable, effect.timeout - spent)
    except TimeoutError:
        raise _make_timeout_error(effect) from None


def _make_timeout_error(effect: Effect) -> TimeoutError:
    return TimeoutError(f"{effect.kind} {effect.name!r} took longer than {effect.timeout:g} s")


async def _ask_person(work: Work, effect: Effect, number: int, started_at: int) -> Any:
    """Return a person's answer, for which there is the effect's timeout since the question was first asked."""
    run, change = work.run, None
    hold = Hold(effect, "approval" if effect.kind == "approval" else "answer", "before", call=number)
    if run.recorded is not None and effect.kind == "approval":
        change = run.recorded.find_change(work, number, effect)
    if change is not None and change.is_known:
        hold.effect = change.apply(effect)
    if effect.timeout is not None:
        hold.set_deadline(_find_send_time(work, number, started_at) + round(effect.timeout * 1e9), run.ns)
    held = await hold
    if held.is_expired:
        raise TimeoutError(f"{effect.name!r} was not answered within {effect.timeout:g} s")
    if not held.has_answer:
        raise ExecutionError(
            Problem(
                "X106",
                f"{effect.name!r} was not answered",
                f"the {effect.kind} of node {effect.name!r}",
                "the step continued without an answer",
                "call session.answer(value)",
            )
        )
    return held.answer
