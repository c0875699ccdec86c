"""A log that ends anywhere, as a kill leaves it: the run goes on from there to the end that it would have had."""

from __future__ import annotations

from collections import Counter

import pytest

from agentnb.store import MemoryLog
from tests.kills import recipe

ROUNDS = 2


class Counted(recipe.Tools):
    """Quiet tools that count what is made of them."""

    def __init__(self) -> None:
        super().__init__()
        self.made: Counter[str] = Counter()

    def _tool(self, name):
        quiet = super()._tool(name)

        def tool(who, n, chance=0.0):
            self.made[f"{who}/{name}/{n} {chance}"] += 1
            return quiet(who, n, chance)

        tool.answered = quiet.answered
        return tool


@pytest.fixture(scope="module")
def whole():
    """A run that nobody cut: its log, its tools, and itself."""
    log, tools = MemoryLog(), Counted()
    session = recipe.begin(tools, log, rounds=ROUNDS)
    while session.step() is not None:
        pass
    assert session.status == "finished"
    return log, tools, session


def cut(log, size):
    """Return a log that ends after so many entries."""
    shorter = MemoryLog()
    shorter.create(log.run("run")._replace(status="running", at=None), list(log.entries("run"))[:size])
    return shorter


def dated(session):
    return [(event.id, event.time) for event in session.events]


def test_a_log_truncated_after_any_entry_reaches_the_same_end(whole):
    log, tools, session = whole
    for size in range(1, log.last("run") + 1):
        others = Counted()
        reopened = recipe.again(others, cut(log, size), rounds=ROUNDS)
        answered = {(call.activation, call.call, call.step) for call in reopened._parts.run.history.calls}
        known = len(answered) + (
            sum(map(len, reopened._parts.run.recorded._attempts.values())) if reopened._parts.run.recorded else 0
        )
        while reopened.status != "finished":
            reopened.step()
        assert recipe.here(reopened) == recipe.here(session), size
        assert recipe.events(reopened) == recipe.events(session), size
        assert dated(reopened) == dated(session), size
        assert others.made <= tools.made, size  # with the same arguments: what was drawn before is drawn once more
        assert others.made.total() == tools.made.total() - known, size


def test_pending_calls_are_those_that_were_sent_and_not_answered(whole):
    log, _, _ = whole
    waits = Counter()
    for size in range(1, log.last("run") + 1):
        for call in recipe.again(Counted(), cut(log, size), rounds=ROUNDS).pending:
            waits[call.name] += 1
    assert waits.keys() == recipe.TOOLS - recipe.REPEATABLE


def test_a_pending_call_answered_by_a_person_is_not_sent(whole):
    log, _, session = whole
    for size in range(1, log.last("run") + 1):
        tools = Counted()
        reopened = recipe.again(tools, cut(log, size), rounds=ROUNDS)
        for pending_call in reopened.pending:
            call = f"{pending_call.arguments['who']}/{pending_call.name}/{pending_call.arguments['n']}"
            reopened.change(pending_call.id, answer=recipe.answer_of(call))
            reopened.step()
            assert not [call_made for call_made in tools.made if call_made.startswith(f"{call} ")]
            reopened.run()
            assert recipe.here(reopened) == recipe.here(session), size
