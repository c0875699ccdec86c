from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.engine.control import interventions
from agentnb.engine.core.time_travel import branch, goto
from agentnb.engine.persistence.delta_loader import DeltaLoader, check_version, joined
from agentnb.engine.persistence.deltas import VERSION, DeltaEncoder, family, whole
from agentnb.errors import StoreError
from tests.trace.runs import go, odyssey, started


def through(document):
    return json.loads(json.dumps(document))


def sizes(run):
    return [(history, len(history.s_pend)) for history in family([*(chain for chain, _ in run.left), run.chain])]


@given(st.integers(0, 10_000), st.lists(st.integers(0, 4), max_size=8))
def test_slices_of_any_size_come_to_the_whole(seed, moves):
    run = odyssey(seed, acts=4)
    encoder, found = DeltaEncoder(run.tables), DeltaLoader()
    found.add([through(encoder.take(sizes(run)))])
    for move in moves:
        match move:
            case 0 if len(run.frames) == 1:
                interventions.edit(run, {"free": move})
            case 1 if run.position > 1:
                goto(run, run.position // 2)
                branch(run)
            case _:
                go(run, move)
        if move != 2:
            found.add([through(encoder.take(sizes(run)))])
    found.add([through(encoder.take(sizes(run)))])
    assert encoder.take(sizes(run)) == {}
    tables, histories = found.finish()
    again = DeltaEncoder(tables)
    assert through(again.take([(history, len(history.s_pend)) for history in histories])) == through(
        DeltaEncoder(run.tables).take(sizes(run))
    )


def test_it_goes_on_where_another_process_stopped():
    run = go(started(), 5)
    found = DeltaLoader()
    found.add([whole(run.chain)])
    tables, histories = found.finish()
    encoder = DeltaEncoder.after(tables, histories)
    assert encoder.take([(history, len(history.s_pend)) for history in histories]) == {}


@pytest.mark.parametrize(
    "slices",
    [
        [{"p": [[1, [], [[], []], [], {"new": [None, 0, None]}]]}],
        [{"p": [[0, [], [[], []], [], {}]]}],
        [{"t": {"acts": [7, [[0, 0, 0, -1]]]}}],
        [{"p": "nonsense"}],
        [7],
        [{"p": [[0, [[1]] * 7, [[], []], [], {"new": [None, 0, None], "strange": [1]}]]}],
    ],
)
def test_what_is_damaged_is_told(slices):
    with pytest.raises(StoreError, match="L402"):
        joined({"version": VERSION, "slices": slices})


def test_a_newer_version_is_refused():
    check_version(VERSION)
    with pytest.raises(StoreError, match=r"L403[\s\S]*newer agentnb"):
        check_version(VERSION + 1)
