from __future__ import annotations

import pytest

from agentnb.board.scopes import DELETED
from agentnb.board.values import ABSENT
from agentnb.engine.core.time_travel import goto
from agentnb.engine.persistence.state_projection import StateProjection, get_previous
from tests.trace.random_runs import go, odyssey, started


@pytest.mark.parametrize("seed", range(20))
def test_a_projection_equals_the_run_at_every_step(seed):
    run = odyssey(seed)
    for step in range(run.history.tip + 1):
        goto(run, step)
        replica = StateProjection(run.tables)
        replica.move_to(next(part for part in reversed(run.chain) if part.base <= step), step)
        assert replica.frames == {frame.id: frame.iteration for frame in run.frames.values()}
        assert replica.counted_steps == run.counted_steps
        for frame in run.frames.values():
            assert repr(replica.data.get(frame.scope.id, {})) == repr(frame.scope.data)
            assert list(replica.visible_items(frame.scope.id)) == list(frame.scope.visible_items())


def test_a_child_scope_reads_through_to_its_parent():
    run = go(started(), 8)
    replica = StateProjection(run.tables)
    replica.move_to(run.history, 8)
    assert (replica.parent(1), replica.parent(0)) == (0, None)
    assert (replica.get(1, "n"), replica.get(0, "n")) == (4, 3)
    assert replica.get(1, "password") == "s3cret"
    assert replica.get(1, "nothing") is ABSENT


def test_a_deletion_in_a_child_scope_is_remembered():
    run = go(started(), 7)
    replica = StateProjection(run.tables)
    replica.move_to(run.history, 7)
    replica.write(run.tables.add_path(1, ("n",)) + 1, ABSENT)
    assert replica.data[1]["n"] is DELETED
    assert replica.get(1, "n") is ABSENT
    assert "n" not in replica.visible_items(1)
    assert get_previous(DELETED, ("n",)) is ABSENT
