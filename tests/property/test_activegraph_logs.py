"""Whatever the real package has written is told as it was, at each step of it."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

import activegraph
from activegraph.store.base import replay_into
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.masking import mask_value
from agentnb.dialects.activegraph.parts.package_logs import LogEvent, LogRun, PackageLog
from agentnb.dialects.activegraph.parts.package_logs.building import run_of
from agentnb.dialects.activegraph.parts.package_logs.reading import read_log
from agentnb.dialects.activegraph.parts.package_logs.writing import write_log
from agentnb.engine.core import time_travel

FIELDS = ("id", "type", "actor", "payload", "frame_id", "caused_by", "timestamp")
NUMBER = st.integers(0, 7)
VALUE = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=3), st.lists(st.integers(), max_size=2)
)
DATA = st.dictionaries(st.sampled_from(["a", "b", "a.b", "0", "token"]), VALUE, max_size=3)
ACT = st.one_of(
    st.tuples(st.just("add"), DATA),
    st.tuples(st.just("relate"), NUMBER, NUMBER),
    st.tuples(st.just("patch"), NUMBER, DATA),
    st.tuples(st.just("propose"), NUMBER, st.sampled_from(["update", "replace"]), DATA),
    st.tuples(st.just("emit"), DATA),
    st.tuples(st.just("fail")),
)
OUTSIDE = st.one_of(
    ACT,
    st.tuples(st.just("remove"), NUMBER),
    st.tuples(st.just("unrelate"), NUMBER),
    st.tuples(st.just("apply"), NUMBER),
    st.tuples(st.just("reject"), NUMBER),
    st.tuples(st.just("run")),
)


def picked(names, number):
    return names[number % len(names)] if names else None


class Program:
    """Random acts on a graph of the package, from outside and from behaviors, each on what there is by then."""

    def __init__(self, inside):
        self.inside = list(inside)
        self.graph = activegraph.Graph(clock=activegraph.TickingClock("2026-01-02T03:04:05Z"), run_id="random")
        names = {"made": ["object.created"], "told": ["told", "patch.applied"]}
        behaviors = [activegraph.Behavior(name, self.react, on=on) for name, on in names.items()]
        behaviors.append(activegraph.RelationBehavior("joined", self.joined, relation_type="next", on=["told"]))
        self.runtime = activegraph.Runtime(self.graph, behaviors=behaviors, budget={"max_events": 30})

    def react(self, event, graph, ctx):
        for _ in range(2):
            if self.inside:
                self.act(graph, *self.inside.pop())

    def joined(self, relation, event, graph, ctx):
        self.react(event, graph, ctx)

    def act(self, graph, what, *words):
        objects = [each.id for each in self.graph.all_objects()]
        patches = [event.payload["patch"]["id"] for event in self.graph.events if event.type == "patch.proposed"]
        waiting = [each for each in patches if self.graph.get_patch(each).status == "proposed"]
        match what:
            case "add":
                graph.add_object("thing", words[0])
            case "relate" if objects:
                graph.add_relation(picked(objects, words[0]), picked(objects, words[1]), "next", {})
            case "patch" if objects:
                graph.patch_object(picked(objects, words[0]), words[1])
            case "propose" if objects:
                names = [*objects, *(each.id for each in self.graph.all_relations())]
                graph.propose_patch(picked(names, words[0]), words[1], words[2], proposed_by="somebody")
            case "emit":
                event = {"id": self.graph.ids.event(), "type": "told", "payload": {"ids": objects[:2], **words[0]}}
                graph.emit("told", event["payload"]) if graph is not self.graph else graph.emit(
                    activegraph.Event(**event)
                )
            case "remove" if objects:
                graph.remove_object(picked(objects, words[0]))
            case "unrelate" if relations := [each.id for each in self.graph.all_relations()]:
                graph.remove_relation(picked(relations, words[0]))
            case "apply" if waiting:
                graph.apply_patch(picked(waiting, words[0]))
            case "reject" if waiting:
                graph.reject_patch(picked(waiting, words[0]), "no")
            case "run":
                self.runtime.run_until_idle()
            case "fail" if graph is not self.graph:
                raise ValueError("no luck")

    def log(self):
        events = tuple(LogEvent(*(getattr(event, name) for name in FIELDS)) for event in self.graph.events)
        return PackageLog("random", LogRun("random", None, None, None, "", None, None), (), events, {})


def shape_of(board):
    """Return objects, relations and patches of a board, in the order in which they stand there."""
    return tuple([each for each in board.values() if key in each] for key in ("version", "source", "op"))


def theirs_of(events):
    graph = activegraph.Graph(run_id="replayed")
    replay_into(graph, events)
    patches = {event.payload["patch"]["id"] for event in events if event.type in ("patch.proposed", "patch.applied")}
    return (
        [each.to_dict() for each in graph.all_objects()],
        [each.to_dict() for each in graph.all_relations()],
        {name: graph.get_patch(name).to_dict() for name in patches},
    )


def run_program(outside, inside):
    logging.getLogger("activegraph").setLevel(logging.CRITICAL)
    program = Program(inside)
    for action in outside:
        program.act(program.graph, *action)
    program.runtime.run_until_idle()
    return program


@given(st.lists(OUTSIDE, min_size=1, max_size=12), st.lists(ACT, max_size=14), st.integers(0, 30), st.integers(0, 5))
def test_a_log_survives_its_store_even_if_archiving_was_interrupted(outside, inside, old, twice):
    log = run_program(outside, inside).log()
    events = tuple(event._replace(archived=at < old) for at, event in enumerate(log.events))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        write_log(log._replace(events=events), path)
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            columns = "seq, id, type, actor, payload, frame_id, caused_by, timestamp, run_id"
            database.execute(f"INSERT INTO events ({columns}) SELECT {columns} FROM events_archive"
                             " ORDER BY seq DESC LIMIT ?", [twice])  # fmt: skip
        read_back = read_log(path)
        assert read_back.events == tuple(event._replace(payload=mask_value(event.payload)) for event in events)


@given(st.lists(OUTSIDE, max_size=12), st.lists(ACT, max_size=14))
def test_each_step_has_the_state_of_the_package(outside, inside):
    program = run_program(outside, inside)
    log, events = program.log(), program.graph.events
    run = run_of(log)
    assert [event.id for event in run.history.events] == [event.id for event in events]
    for step in (*range(run.history.tip, -1, -1), run.history.tip, 0):
        time_travel.goto(run, step)
        last = max((event.seq for event in run.history.events if event.at <= step), default=0)
        objects, relations, patches = shape_of(run.root.scope.data)
        shape = (objects, relations, {patch["id"]: patch for patch in patches})
        assert shape == theirs_of(events[:last])
        assert [run.tables.activations[number].event for number in run.frontier()][:1] == [
            run.tables.activations[number].event for number in run.history.step_activations[step + 1 : step + 2]
        ]
