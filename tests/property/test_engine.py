from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentnb.engine.core import scheduler
from agentnb.errors import BoardError, ExecutionError
from tests.property.modelled_sessions import describe_session, expected, session_of
from tests.property.reference_model import Model
from tests.property.strategies import Drawn, acts, drawn, meetings


class Pair:
    """A session and its model, moved alike."""

    def __init__(self, session: Any, model: Model) -> None:
        self.session, self.model = session, model
        self.forks: list[Pair] = []

    @classmethod
    def of(cls, what: Drawn) -> Pair:
        return cls(session_of(what.recipe, what.inputs, what.limit), Model(what.recipe, what.inputs, what.limit))

    def step(self, times: int) -> None:
        self.session.step(times)
        for _ in range(times):
            if not self.model.step() or self.model.status == "failed":
                break

    def retry(self, _: int) -> None:
        self.session.retry()
        self.model.step()

    def run(self, steps: int) -> None:
        self.session.run(max_steps=steps)
        self.model.run(steps)

    def back(self, steps: int) -> None:
        self.session.back(steps)
        self.model.goto(max(self.model.position - steps, 0))

    def goto(self, share: int) -> None:
        step = share * self.model.tip // 100
        self.session.goto(step)
        self.model.goto(step)

    def edit(self, changes: dict[str, Any]) -> None:
        try:
            self.session.edit(changes)
            taken = True
        except BoardError:
            taken = False
        assert taken == self.model.edit(changes)

    def set_next(self, share: int) -> None:
        names = list(self.model.recipe.nodes)
        name = names[share * (len(names) - 1) // 100]
        try:
            self.session.set_next(name)
            taken = True
        except ExecutionError:
            taken = False
        assert taken == self.model.set_next(name)

    def fork(self, share: int) -> Pair:
        step = share * self.model.tip // 100
        fork = Pair(self.session.fork(step), self.model.fork(step))
        self.forks.append(fork)
        return fork

    def stands_as_its_model(self) -> None:
        assert describe_session(self.session) == expected(self.model)

    def holds_as_its_model(self) -> None:
        """Every step of it shows what the model shows, and then it stands where it stood."""
        position = self.model.position
        for step in [*range(self.model.tip + 1), *range(self.model.tip, -1, -1), position]:
            self.session.goto(step)
            self.model.goto(step)
            self.stands_as_its_model()

    def left_what_its_model_left(self) -> None:
        """The branches that it went away from are whole, each in a session of its own."""
        session_ids = {id(fork.session) for fork in self.forks}
        left = [fork for fork in self.session.forks if id(fork) not in session_ids]
        assert len(left) == len(self.model.left)
        for session, states in zip(left, self.model.left, strict=True):
            model = self.model.fork(0)
            model.states, model.position = states, len(states) - 1
            Pair(session, model).holds_as_its_model()


def played(what: Drawn, script: list[tuple[str, Any]]) -> list[Pair]:
    """Do the acts of a script; after each, the session that was moved shows what its model shows."""
    pairs = [Pair.of(what)]
    at = 0
    for verb, word in script:
        pair = pairs[at]
        if verb == "turn to":
            at = word * (len(pairs) - 1) // 100
        elif verb == "fork":
            if len(pairs) < 4:
                pairs.append(pair.fork(word))
                pairs[-1].stands_as_its_model()
        elif verb == "run" and what.lanes:
            pair.step(word)
        else:
            getattr(pair, verb)(word)
        pair.stands_as_its_model()
    return pairs


@given(st.one_of(drawn(), meetings()), acts, st.sampled_from([scheduler.SHORT, -1]))
def test_a_session_shows_what_its_model_shows(what, script, short):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "SHORT", short)  # -1: as if many branches were open
        pairs = played(what, script)
        for pair in pairs:
            pair.stands_as_its_model()
            pair.holds_as_its_model()
            pair.left_what_its_model_left()


@given(
    meetings(), st.lists(st.sampled_from([1, 1, 2, 9]), min_size=1, max_size=12), st.sampled_from([scheduler.SHORT, -1])
)
def test_joins_run_where_they_run_in_their_model(what, counts, short):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "SHORT", short)
        pair = Pair.of(what)
        for count in [*counts, 25]:
            pair.step(count)
            pair.stands_as_its_model()
        pair.holds_as_its_model()


@given(drawn(), acts)
def test_a_fresh_run_with_the_same_interventions_shows_the_same(what, script):
    for pair in played(what, script):
        pair.session.goto(pair.model.tip)
        fresh, last = session_of(what.recipe, what.inputs, what.limit), 0
        for verb, word in ((action[0], action[-1]) for action in pair.model.states[-1].done):
            if verb != "step":
                fresh.goto(last)
                getattr(fresh, verb)(word)
                continue
            last += 1
            if pair.model.states[last].row.status != "cancelled":
                fresh.goto(last - 1)
                fresh.step()
        fresh.goto(last)
        for step in range(last, -1, -1):
            fresh.goto(step)
            pair.session.goto(step)
            assert describe_session(fresh) == describe_session(pair.session)


@given(drawn(), acts)
def test_the_first_steps_of_a_fork_are_those_of_its_parent(what, script):
    pair = played(what, script)[0]
    for at in range(pair.session.trace.reading().tip + 1):
        fork = pair.session.fork(at)
        fork.step(3)
        for step in range(at + 1):
            fork.goto(step)
            pair.session.goto(step)
            assert describe_session(fork) == describe_session(pair.session)


@settings(max_examples=settings.default.max_examples // 4)  # threads and loops are slow to begin
@given(drawn(lanes=True))
def test_concurrent_branches_have_the_same_result_as_sequential_ones(what):
    pair = Pair(session_of(what.recipe, what.inputs, None), Model(what.recipe, what.inputs, None))
    pair.model.run(60)
    assume(pair.model.status == "finished" and all(state.row.status == "ok" for state in pair.model.states[1:]))
    pair.session.run(max_steps=200)
    actual, expected_state = describe_session(pair.session), expected(pair.model)
    assert {**actual, "row": None} == {**expected_state, "row": None}  # which branch ended last is a matter of time
    for step in range(pair.model.tip, -1, -1):
        pair.session.goto(step)
    assert dict(pair.session.board) == pair.model.states[0].board
