"""effects: the one door to the world. Time-out, retry, back-off, holding, recording: all of it here, none in a kind.

A node that calls an effect is a coroutine. Driven without a loop it may yield two things: NEED_LOOP (what it awaits
next needs an event loop) and a Hold (the effect waits for a person). Everything else is a loop's own future.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ATOMS, FrozenDict, freeze
from agentnb.engine.flight import Hold
from agentnb.engine.history import Call
from agentnb.engine.recording import answer_of, error_of
from agentnb.engine.threads import in_thread, spelled_out
from agentnb.errors import AgentRuntimeError, BoardError, ExecutionError, Problem
from agentnb.world.chaos import SPARED, Key, tokens_of
from agentnb.world.llm.base import LLMError, LLMResponse
from agentnb.world.people import WAIT

if TYPE_CHECKING:
    from agentnb.engine.run import Run
    from agentnb.engine.work import Effect, Work

NO_ARGUMENTS: Final = freeze({})
PLAIN_ANSWERS: Final = ATOMS | {dict, list, tuple, FrozenDict}  # nothing to wait for, no usage to read from them
SAID: Final = frozenset({"llm", "agent"})  # of an object that answers for a model only its content is kept
ASKED: Final = frozenset({"human", "approval"})  # of people: a question may be asked once more
_new_call = tuple.__new__  # a row a call: the constructor of a named tuple costs twice as much


class Spent(BaseException):
    """Raised at the door where a limit lets no further attempt out: the step is given up, and runs again later.

    It is no Exception: no node shall catch it, and its step has not failed.
    """


async def perform(run: Run, work: Work, effect: Effect, number: int | None = None) -> Any:
    """Do one effect for a node and return the answer: the latest of its attempts. `number` is that of its call.

    Raises:
        Exception: what the last attempt raised; TimeoutError when it took longer than `effect.timeout` seconds.
        Spent: a limit of the run is reached; the run says which.
    """
    number, keeping = begun(work) if number is None else number, run.keeping
    attempt, wait, call = 0, 0.0, effect.target and _at_target
    if run.recorded is not None:
        effect, attempt, wait, known = await _known(run, work, effect, number)
        if known is not None:
            return known[0] if run.hold is None else await _read_first(run, work, effect, known[0], number)
    key = None if run.chaos is None else _key(run, work, effect, number)
    while True:
        attempt += 1
        if wait or run.spending is not None:
            await _let_out(run, work, effect, wait, (number, attempt))
        began, error, answer, sent = run.ns(), None, None, sent_of(effect)
        if keeping is not None and not effect.made_up:
            keeping.goes_out(work, number, attempt, effect, sent, began)
        work.out[number] = (attempt, effect, sent, began)  # now: where that could not be kept, it stays here
        try:
            if call is None:  # once: a script shall find the same place at each attempt
                call = run.world.find(effect, work)
            if run.threaded or effect.timeout is not None or effect.blocking or key is not None:
                answer = await _slow(run, call, effect, key and (*key, attempt))
            else:
                answer = call(effect)
            if answer.__class__ not in PLAIN_ANSWERS:
                answer = await _settled(run, answer, effect, _since(work, number, began))
            if effect.check is not None:
                effect.check(answer)
        except (Exception, SystemExit) as raised:  # noqa: BLE001  (kept in the row of the attempt; the last is raised)
            error = spelled_out(raised)
            answer = refused_in(error, answer, effect)
        error = _back(work, effect, (number, sent, attempt, wait), answer, error, run.ns() - began)
        if error is None:
            return answer if run.hold is None else await _read_first(run, work, effect, answer, number)
        wait = _again(work, effect, attempt, error)


def is_told(effect: Effect) -> bool:
    """Say whether it is kept that a call goes out: not of one that may go out once more anyway, or is made up."""
    return not effect.made_up and (not effect.repeatable or effect.kind in ASKED)


def begun(work: Work) -> int:
    """Begin one more call of a step, and return its number."""
    work.called += 1
    return work.called - 1


async def _let_out(run: Run, work: Work, effect: Effect, wait: float, which: tuple[int, int]) -> None:
    """Wait before another attempt, where the limits of the run let it out.

    Raises:
        Spent: they do not.
    """
    if run.spending is not None and not run.spending.lets_out(run, work, effect, wait, which):
        raise Spent
    if wait:
        await run.need_loop()
        await run.clock.sleep(wait)


def _back(
    work: Work, effect: Effect, sent: tuple[int, Any, int, float], answer: Any, error: Exception | None, took: int
) -> Exception | None:
    """Keep how an attempt ended; return its failure. `sent` are its call, what was sent, its number and its wait."""
    number, arguments, attempt, wait = sent
    work.busy = True
    work.out.pop(number, None)
    try:
        row = _row(work, number, effect, arguments, attempt, wait, answer, error, took / 1e9)
    except BoardError as unfit:  # an answer that nothing can keep is the attempt's failure
        error = unfit
        paid = refused_in(error, answer, effect)
        row = _row(work, number, effect, arguments, attempt, wait, paid, error, took / 1e9)
    work.calls.append(row)
    if work.run.keeping is not None and not effect.made_up:
        work.run.keeping.came_back(work, row)
    return error


async def _known(run: Run, work: Work, effect: Effect, number: int) -> tuple[Effect, int, float, tuple[Any] | None]:
    """Return what is known of a call that was made before: how often it was tried, and its answer, where it has one.

    One that went out and never came back waits for a person, unless it may go out again; so does nobody's question.

    Raises:
        Exception: what the last attempt raised, where there is to be no other.
    """
    assert run.recorded is not None
    rows = run.recorded.attempts(work, number, effect)
    attempt, wait = 0, 0.0
    if rows:
        work.busy = True
        work.calls.extend(rows)
        if rows[-1].error is None:
            return effect, 0, 0.0, (answer_of(rows[-1]),)
        error, attempt = error_of(rows[-1]), rows[-1].attempt
        wait = _pause(effect, attempt, error)
    unanswered = run.recorded.went_out(work, number) is not None
    if unanswered and not effect.repeatable and effect.kind not in ASKED:
        held = await Hold(effect, "call", "before")
        effect = held.effect
        if held.answered:
            answer = _given(held)
            _back(work, effect, (number, sent_of(effect), attempt + 1, wait), answer, None, 0)
            return effect, 0, 0.0, (answer,)
    return effect, attempt, wait, None


def _pause(effect: Effect, attempt: int, error: Exception) -> float:
    """Return how many seconds lie between a failed attempt and the next one.

    Raises:
        Exception: the failure, where there is no next one.
    """
    if attempt >= effect.attempts or _for_good(error):
        raise error
    return max(effect.backoff, getattr(error, "retry_after", None) or 0.0)


def _again(work: Work, effect: Effect, attempt: int, error: Exception) -> float:
    """Return the pause before one more attempt, and tell who wants to know of it."""
    wait = _pause(effect, attempt, error)
    if work.run.at_retry is not None:
        work.run.at_retry(work, effect, attempt + 1, error)
    return wait


def _for_good(error: Exception) -> bool:
    """Say whether another attempt would fail alike: the run's own mistake, or what a model's server refuses."""
    return isinstance(error, AgentRuntimeError) or (isinstance(error, LLMError) and not error.again)


async def held_first(run: Run, work: Work, effect: Effect) -> Any:
    """Do one effect where somebody may want to read and change it before it goes out, or to answer in its place."""
    number = begun(work)
    if run.hold is not None and run.hold(work, effect, "before"):
        held = await Hold(effect, "call", "before")
        effect = held.effect
        if held.answered:
            answer = _given(held)
            _back(work, effect, (number, sent_of(effect), 1, 0.0), answer, None, 0)
            return answer
    return await perform(run, work, effect, number)


def _given(held: Hold) -> Any:
    """Return what a person has answered in place of a call, as its node is answered: by a model with a response."""
    answer = held.answer
    return LLMResponse(answer) if held.effect.kind == "llm" and not hasattr(answer, "content") else answer


async def _read_first(run: Run, work: Work, effect: Effect, answer: Any, number: int) -> Any:
    """Return an answer that somebody may want to read and change before its node gets it."""
    if run.hold is None or not run.hold(work, effect, "after"):
        return answer
    back = await Hold(effect, "call", "after", answer)
    if not back.answered:
        return answer
    answer = _given(back)
    at = max(place for place, row in enumerate(work.calls) if row.call == number)  # others may have come back since
    row = work.calls[at] = work.calls[at]._replace(result=freeze(_said(answer, effect.kind)))
    if run.keeping is not None:
        run.keeping.came_back(work, row)
    return answer


def _at_target(effect: Effect) -> Any:
    return effect.target(**effect.arguments)  # type: ignore[misc]  # taken only where the effect brings one


def _key(run: Run, work: Work, effect: Effect, number: int) -> tuple[str, str, int]:
    """Return what names a call in every run alike: its node, its kind, and how many of those came before."""
    node, kind = work.node.id, effect.kind
    before = {row.call for row in work.calls if row.kind == kind and row.call != number}
    return node, kind, run.calls_before(kind, node) + len(before)


async def _slow(run: Run, call: Callable[[Effect], Any], effect: Effect, key: Key | None) -> Any:
    """Make a call that might hold others up: in a thread, unless it is async anyway. Chaos may come between."""
    if effect.kind in SPARED:
        return call(effect)
    spent = 0.0 if key is None else await _disturbed(run, effect, key)
    await run.need_loop()
    if inspect.iscoroutinefunction(effect.target or call):
        answer = await _limited(call(effect), effect, spent)
    elif run.threaded or effect.timeout is not None or effect.blocking:
        answer = await _limited(in_thread(call, effect), effect, spent)
    else:
        answer = call(effect)
    if run.chaos is None or key is None or effect.kind != "llm":
        return answer
    answer = await _settled(run, answer, effect)
    await run.clock.sleep(run.chaos.throttled(key, tokens_of(answer)))
    return answer


async def _disturbed(run: Run, effect: Effect, key: Key) -> float:
    """Let chaos hold a call up, or make it fail; return how many seconds it was held up.

    Raises:
        TimeoutError: it is held up for longer than the effect may take.
    """
    assert run.chaos is not None
    delay = run.chaos.delay(key)
    late = effect.timeout is not None and delay >= effect.timeout
    if delay > 0:
        await run.need_loop()
        await run.clock.sleep(effect.timeout if late and effect.timeout is not None else delay)
    if late:
        raise _too_late(effect)
    run.chaos.strike(key)
    return delay


def _since(work: Work, number: int, began: int) -> int:
    """Return when a call first went out: a question that is asked once more in another process has no more time."""
    known = work.run.recorded
    return began if known is None else known.went_out(work, number) or began


async def _settled(run: Run, answer: Any, effect: Effect, since: int | None = None) -> Any:
    """Return what an answer comes to: a person's when one has to be asked, what an awaitable gives, or itself."""
    if answer is WAIT:
        return await _asked(run, effect, run.ns() if since is None else since)
    if inspect.isawaitable(answer):
        await run.need_loop()
        answer = await _limited(answer, effect)
    return answer


async def _limited(awaitable: Awaitable[Any], effect: Effect, spent: float = 0.0) -> Any:
    """Await something within the time that an effect has left."""
    if effect.timeout is None:
        return await awaitable
    try:
        return await asyncio.wait_for(awaitable, effect.timeout - spent)
    except TimeoutError:
        raise _too_late(effect) from None


def _too_late(effect: Effect) -> TimeoutError:
    return TimeoutError(f"{effect.kind} {effect.name!r} took longer than {effect.timeout:g} s")


async def _asked(run: Run, effect: Effect, since: int) -> Any:
    hold = Hold(effect, "approval" if effect.kind == "approval" else "answer", "before")
    if effect.timeout is not None:
        hold.ends_at(since + round(effect.timeout * 1e9), run.ns)
    held = await hold
    if held.late:
        raise TimeoutError(f"nobody has answered {effect.name!r} within {effect.timeout:g} s")
    if not held.answered:
        raise ExecutionError(
            Problem(
                "X106",
                f"nobody has answered {effect.name!r}",
                f"the {effect.kind} of node {effect.name!r}",
                "the step went on without an answer",
                "call session.answer(value)",
            )
        )
    return held.answer


def sent_of(effect: Effect) -> Any:
    """Return what an effect sends, frozen before it goes out: what is called may change its arguments."""
    given = effect.arguments
    return freeze(given if given.__class__ is dict else dict(given)) if given else NO_ARGUMENTS


def refused_in(error: Exception, answer: Any, effect: Effect) -> Any:
    """Return the answer that was a failure, where an error tells it: its row keeps it beside the error.

    What a model has taken for an answer that is of no use is kept too: it has to be paid for all the same.
    """
    found = getattr(error, "result", None)
    found = found if isinstance(found, Mapping) else None
    usage = getattr(answer, "usage", None) or getattr(error, "usage", None)
    return found if usage is None or effect.kind not in SAID else LLMResponse(found, usage=usage)


def _said(answer: Any, kind: str) -> Any:
    return getattr(answer, "content", answer) if kind in SAID else answer


def _row(
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
    # Its step is only guessed: what runs beside it may be committed first, and then `flush` gives it another number.
    step, act, kind, name = work.run.position + 1, work.act.id, effect.kind, effect.name
    message = None if error is None else f"{type(error).__name__}: {error}"
    if answer.__class__ in PLAIN_ANSWERS:
        known = (step, act, number, kind, name, attempt, wait, arguments, freeze(answer), message, seconds)
        return _new_call(Call, (*known, None, None, None))
    usage = getattr(answer, "usage", None)
    return Call(
        step,
        act,
        number,
        kind,
        name,
        attempt,
        wait,
        arguments,
        freeze(_said(answer, kind)),
        message,
        seconds,
        tokens_in=getattr(usage, "tokens_in", None),
        tokens_out=getattr(usage, "tokens_out", None),
        cost_usd=getattr(usage, "cost_usd", None),
    )
