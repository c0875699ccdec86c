"""A run that is kept and opened again, at any moment and as often as one likes, is the run that was never closed."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentnb.engine.persistence.journal import Batch
from agentnb.session.reopen import reopen_run
from agentnb.store import MemoryLog
from agentnb.trace.export import parse_trace_text
from tests.property.modelled_sessions import describe_session, session_of
from tests.property.reference_model import Model
from tests.property.strategies import Drawn, acts, drawn
from tests.property.test_engine import Pair

reopenings = st.lists(st.booleans(), min_size=14, max_size=14)


class Kept(Pair):
    """A pair whose session is kept in a log; it can be put away, and come back from there."""

    log: MemoryLog

    @classmethod
    def begun(cls, what: Drawn, durability: Any) -> Kept:
        pair = cls(session_of(what.recipe, what.inputs, what.limit), Model(what.recipe, what.inputs, what.limit))
        pair.log = MemoryLog()
        pair.session._parts.persistence.record_new_run(pair.log, durability)
        return pair

    def fork(self, share: int) -> Kept:
        step = share * self.model.tip // 100
        fork = Kept(self.session.fork(step), self.model.fork(step))
        fork.log = self.log
        return fork

    def reopen(self) -> None:
        """Put the session away and open it again."""
        plan, log_before = self.session._parts.run.plan, log_of(self.session)
        self.session.close()
        self.session = reopen_run(self.log, self.log.run(self.session.run_id), plan)
        assert log_of(self.session) == log_before


def log_of(session: Any) -> list[Any]:
    """Return a session's whole trace, as it would be written, but for the tables: a fork adds rows to them too.

    It is read once before: two values that are equal may share their parts or not, and what is read shares all it can.
    """
    trace = json.loads(parse_trace_text(session.trace.to_json()).to_json())
    return [[each["p"] for each in trace["slices"]], trace["outcome"]]


def played(what: Drawn, script: list[tuple[str, Any]], reopening: list[bool], durability: Any) -> list[Kept]:
    """Do the acts of a script, and open the moved session again after those that are named."""
    pairs: list[Any] = [Kept.begun(what, durability)]
    at = 0
    for (verb, word), again in zip(script, reopening, strict=False):
        pair = pairs[at]
        if verb == "turn to":
            at = word * (len(pairs) - 1) // 100
        elif verb == "fork":
            if len(pairs) < 4:
                pairs.append(pair.fork(word))
        elif verb == "run" and what.lanes:
            pair.step(word)
        else:
            getattr(pair, verb)(word)
        if again:
            pair.reopen()
        pair.stands_as_its_model()
    return pairs


@given(drawn(), acts, reopenings)
def test_a_reopened_run_shows_what_its_model_shows(what, script, reopening):
    for pair in played(what, script, reopening, "step"):
        pair.reopen()
        pair.stands_as_its_model()
        pair.holds_as_its_model()


@given(drawn(), acts, reopenings, st.integers(1, 5))
def test_batches_lose_nothing_on_close(what, script, reopening, size):
    for pair in played(what, script, reopening, Batch(size, 60_000)):
        state_before = describe_session(pair.session)
        pair.reopen()
        assert describe_session(pair.session) == state_before
