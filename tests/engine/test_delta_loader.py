from __future__ import annotations

import json
from contextlib import nullcontext
from decimal import Decimal
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.values import thaw
from agentnb.bounds import DEPTH_LIMIT
from agentnb.engine.control import interventions
from agentnb.engine.core.time_travel import goto, start_branch
from agentnb.engine.persistence.delta_loader import DeltaLoader, check_version, load_document
from agentnb.engine.persistence.deltas import (
    MOST_NAMES,
    MOST_SHAPES,
    VERSION,
    DeltaEncoder,
    collect_family,
    encode_whole,
)
from agentnb.errors import StoreError
from tests.engine.small_runs import one, run_of
from tests.trace.random_runs import go, odyssey, started


def through(document):
    return json.loads(json.dumps(document))


def sizes(run):
    return [
        (history, len(history.push_ends))
        for history in collect_family([*(chain for chain, _ in run.abandoned_branches), run.chain])
    ]


@given(st.integers(0, 10_000), st.lists(st.integers(0, 4), max_size=8))
def test_deltas_of_any_size_add_up_to_the_whole_run(seed, moves):
    run = odyssey(seed, acts=4)
    encoder, loader = DeltaEncoder(run.tables), DeltaLoader()
    loader.add([through(encoder.encode_delta(sizes(run)))])
    for move in moves:
        match move:
            case 0 if len(run.frames) == 1:
                interventions.edit(run, {"free": move})
            case 1 if run.position > 1:
                goto(run, run.position // 2)
                start_branch(run)
            case _:
                go(run, move)
        if move != 2:
            loader.add([through(encoder.encode_delta(sizes(run)))])
    loader.add([through(encoder.encode_delta(sizes(run)))])
    assert encoder.encode_delta(sizes(run)) == {}
    tables, histories = loader.finish()
    again = DeltaEncoder(tables)
    assert through(again.encode_delta([(history, len(history.push_ends)) for history in histories])) == through(
        DeltaEncoder(run.tables).encode_delta(sizes(run))
    )


def test_loading_continues_where_another_process_stopped():
    run = go(started(), 5)
    loader = DeltaLoader()
    loader.add([encode_whole(run.chain)])
    tables, histories = loader.finish()
    encoder = DeltaEncoder.for_histories(tables, histories)
    assert encoder.encode_delta([(history, len(history.push_ends)) for history in histories]) == {}


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
def test_damage_is_reported(slices):
    with pytest.raises(StoreError, match="L402"):
        load_document({"version": VERSION, "slices": slices})


@pytest.mark.parametrize(("parent", "scope"), [(-1, 1), (1, 1), (2, 1), (0, 2), (0, -1)])
def test_a_frame_outside_of_all_earlier_ones_is_reported_as_damage(parent, scope):
    loader = DeltaLoader()
    for row in ([0, -1, -1, "root", "shared", -1, 0, 0, None], [1, parent, 0, "body", "child", -1, scope, 1, None]):
        loader.add([{"t": {"frames": [row[0], [row]]}}])
    with pytest.raises(StoreError, match=r"L402[\s\S]*frame 1 does not lie in an earlier frame"):
        loader.finish()


def test_a_newer_version_is_rejected():
    check_version(VERSION)
    with pytest.raises(StoreError, match=r"L403[\s\S]*newer agentnb"):
        check_version(VERSION + 1)


FIRST = "2026-11-23T18:13:30.660638+00:00"
STONE = {"id": "stone#1", "data": {"n": 1}}
ROW = [
    60,
    None,
    "evt_060",
    "object.created",
    "grow",
    "evt_059",
    {"$": "datetime", "v": FIRST},
    {"object": STONE},
    0,
    None,
]
OF_VERSION_1 = [
    {"p": [[0, [[0xFFFFFFFF], [5], [0], [0], [0], [0], [1]], [[], []], [0], {"new": [None, 0, None]}]],
     "t": {"acts": [0, [[0, 0, 0, 59, -1]]]}},
    {"told": [["times", 0, [1795457610660638]], ["emit", 0, ROW]]},
    {"t": {"codes": [0, [[0, ["stone#1"]]]]},
     "p": [[0, [[0], [7], [9], [64], [1], [1], [0]], [[0], [STONE]], [],
            {"times": [[1, 1795457610660638, 1795457610660999]], "events": [[1, 60]]}]]},
]  # fmt: skip
OF_VERSION_2 = [
    OF_VERSION_1[0],
    {"t": {"shapes": [0, [["object"], ["id", "data"], ["n"]]]},
     "told": [["emit", 0, [60, None, "evt_060", "object.created", "grow", "evt_059", 1795457610660638,
                           {"$": 0, "v": [{"$": 1, "v": ["stone#1", {"$": 2, "v": [1]}]}]}, 0, None],
               [1795457610660638]]]},
    {"t": {"codes": [0, [[0, ["stone#1"]]]]},
     "p": [[0, [0, 7, 9, 64, 1, 1, 0], [[0], [{"$": "event", "v": [60, "object"]}]], [],
            {"timed": [[1, 0, 1, 1795457610660999]], "events": [[1, 60]]}]]},
]  # fmt: skip


def test_a_file_of_the_first_version_opens_like_a_current_one():
    read = []
    for slices in (OF_VERSION_1, OF_VERSION_2):
        loader = DeltaLoader()
        loader.add(through(slices))
        tables, (history,) = loader.finish()
        columns = (history.step_activations, history.step_flags, history.start_times, history.end_times,
                   history.queue_starts, history.push_ends, history.write_ends)  # fmt: skip
        values = history.new_values, history.old_values
        read.append((history.events, history.times, *values, *columns, tables.activations, tables.codes))
    assert read[0] == read[1]
    assert read[1][2][0] is read[1][0][0].payload["object"]


@pytest.mark.parametrize("payload", [{"$": 9, "v": []}, {"$": 0, "v": []}, {"$": 0, "v": [1, 2]}, {"$": 0}])
def test_a_payload_of_a_damaged_shape_is_damage(payload):
    slices = through(OF_VERSION_2)
    slices[1]["told"][0][2][7] = payload
    with pytest.raises(StoreError, match="L402"):
        DeltaLoader().add(slices)


@pytest.mark.parametrize(("levels", "valid"), [(DEPTH_LIMIT, True), (DEPTH_LIMIT + 1, False)])
@pytest.mark.parametrize("nest", [lambda inner: [inner], lambda inner: {"$": 0, "v": [inner]}], ids=["list", "shape"])
def test_a_payload_may_be_as_deep_as_a_value(levels, valid, nest):
    slices = through(OF_VERSION_2)
    slices[1]["told"][0][2][7] = reduce(lambda inner, _: nest(inner), range(levels), 1)
    slices[2]["p"][0][2] = [[], []]
    refuses = pytest.raises(StoreError, match=rf"L402[\s\S]*more than {DEPTH_LIMIT} levels")
    with nullcontext() if valid else refuses:
        DeltaLoader().add(slices)


def load_payload(payload):
    run = run_of(lambda work: work.emit("told", payload) and {})
    one(run)
    document = through(encode_whole(run.chain))
    loader = DeltaLoader()
    loader.add([document])
    _, (history,) = loader.finish()
    assert thaw(history.events[0].payload) == payload
    (part,) = document["p"]
    return part[4]["events"][0][7], document["t"].get("shapes", [0, []])


@pytest.mark.parametrize("names", [0, 1, MOST_NAMES - 1, MOST_NAMES, MOST_NAMES + 1])
def test_a_mapping_with_many_names_has_no_shape(names):
    payload = {f"n{number}": number for number in range(names)}
    document, shapes = load_payload(payload)
    if names <= MOST_NAMES:
        assert (document, shapes) == ({"$": 0, "v": [*payload.values()]}, [0, [[*payload]]])
    else:
        assert (document, shapes) == (payload, [0, []])


def test_only_the_first_shapes_of_a_run_are_numbered():
    payload = [{f"n{number}": number} for number in range(MOST_SHAPES + 2)]
    document, (first, shapes) = load_payload(payload)
    assert document[MOST_SHAPES - 1 :] == [{"$": MOST_SHAPES - 1, "v": [MOST_SHAPES - 1]}, *payload[MOST_SHAPES:]]
    assert (first, shapes) == (0, [[*mapping] for mapping in payload[:MOST_SHAPES]])


atoms = st.none() | st.integers(-9, 9) | st.text("ab", max_size=3) | st.just(Decimal("1.5"))
parts = st.recursive(
    atoms,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("xyz"), parts, max_size=3))
def test_a_payload_is_loaded_as_it_was_frozen(payload):
    def measures(value):
        """Return the measures of a frozen value and of all its parts."""
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        internals = (value.flat, value.extent) if isinstance(value, dict | list) else value
        return [type(value), internals, *map(measures, items)]

    run = run_of(lambda work: work.emit("told", payload) and {})
    one(run)
    loader = DeltaLoader()
    loader.add([through(encode_whole(run.chain))])
    _, (history,) = loader.finish()
    assert measures(history.events[0].payload) == measures(run.history.events[0].payload)
    assert thaw(history.events[0].payload) == payload
