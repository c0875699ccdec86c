"""Recordings made to do harm: spans, checkpoints and files of other systems open, or are refused with a Problem."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import msgpack
import pytest

import agentnb as nb
from agentnb.errors import StoreError
from agentnb.testing import record_golden

FORMATS = ["trace", "golden", "otel", "langgraph", "activegraph", "store"]


def use(session, folder):
    """Do with a recording what one does: show it, move in it, compare it and export it."""
    assert all(repr(frame) and frame.to_html() for frame in session.trace.frames.values())
    assert repr((session.board, session.trace, session.status, session.cursor, list(session.trace.steps)))
    assert all([session.tree(), session.draw().svg, session.trace.to_html(), session.trace.to_json()])
    session.trace.to_event_log()
    session.trace.sequence_diagram()
    session.trace.to_parquet(folder / "run.parquet")
    if len(session.trace):  # a golden without steps is refused
        record_golden(session, folder / "run.jsonl")
    session.goto(0)
    session.run(max_steps=5)
    assert nb.compare(session, session).first_divergence is None
    nb.coverage(session).to_frame()
    assert session.find("1 == 2") == []
    for key in list(session.board)[:3]:
        session.slice(key).to_frame()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("where", ["none.json", "", "folder", "nul\0byte", "http://host/path"])
def test_a_missing_file_is_a_problem(format, where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError):
        nb.open(where, format=format)


# -- spans -------------------------------------------------------------------------------------------------------------


def span(id, parent="", name="n", began=1, ended=2, **said):
    said = [{"key": f"gen_ai.{key.replace('__', '.')}", "value": value} for key, value in said.items()]
    return {"traceId": "t", "spanId": id, "parentSpanId": parent, "name": name, "startTimeUnixNano": began,
            "endTimeUnixNano": ended, "attributes": said}  # fmt: skip


def text(value):
    return {"stringValue": value}


CHAT, TOOL = text("chat"), text("execute_tool")
REFUSED_SPANS = {
    "an endless time": [span("a", began=float("inf"))],
    "an endless number": [span("a", x={"intValue": float("inf")})],
    "no id": [{"traceId": "t"}],
    "in itself": [span("a", "a")],
    "in each other": [span("a", "b"), span("b", "a")],
}
SPANS = {
    "the clock of another machine": [span("a", began=100, ended=200), span("b", "a", began=1, ended=300),
                                     span("c", "b", began=0, ended=1)],
    "more tokens than a table holds": [
        span("a", operation__name=CHAT, usage__input_tokens={"intValue": "9" * 40},
             usage__output_tokens={"intValue": "-9"})],
    "a long whole number": [span("a", operation__name=TOOL, tool__name=text("t"),
                                 tool__call__result={"intValue": "9" * 4200}, tool__call__arguments=text("9" * 4299))],
    "a message with a long number": [span("a", operation__name=CHAT, **{f"prompt__{'9' * 5000}__role": text("u")})],
    "half a surrogate pair": [span("a", name="\ud800\0\n<script>", operation__name=TOOL, tool__name=text("\udfff"),
                                   tool__call__result=text('{"\\ud800": "\\udc00"}'))],
    "the path of another span": [span("a", name="p", began=1, ended=9), span("b", "a", name="q", began=2, ended=3),
                                 span("c", name="p/q", began=10, ended=11), span("d", "c", began=10, ended=11)],
    "odd names": [span("a", name="", operation__name=TOOL, tool__name=text("a.b[0] {{x}}"))],
    "no number": [span("a", operation__name=TOOL, tool__call__result=text("NaN"), x={"doubleValue": "Infinity"})],
}  # fmt: skip


def written(path, spans):
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).replace("Infinity,", "1e999,"))
    return path


@pytest.mark.parametrize("name", REFUSED_SPANS)
def test_impossible_spans_are_rejected(name, tmp_path):
    with pytest.raises(StoreError, match="L576"):
        nb.open(written(tmp_path / "spans.json", REFUSED_SPANS[name]), format="otel")


@pytest.mark.parametrize("name", SPANS)
def test_unusual_spans_are_displayed_everywhere(name, tmp_path):
    use(nb.open(written(tmp_path / "spans.json", SPANS[name]), format="otel"), tmp_path)


def test_spans_timed_by_a_later_clock_stay_inside_their_parent(tmp_path):
    session = nb.open(written(tmp_path / "spans.json", SPANS["the clock of another machine"]))
    assert [(step.node_id, step.phase) for step in session.trace.steps] == [
        ("n", "enter"), ("n/n", "enter"), ("n/n/n", "run"), ("n/n", "leave"), ("n", "leave")
    ]  # fmt: skip


def test_two_spans_with_one_path_are_two_nodes(tmp_path):
    session = nb.open(written(tmp_path / "spans.json", SPANS["the path of another span"]))
    assert {"p", "p/q", "p/q#2", "p/q#2/n"} == set(session.recipe.nodes)
    assert session.recipe.nodes["p/q"].scope == "p"


# -- checkpoints -------------------------------------------------------------------------------------------------------


def checkpoint(id, parent=None, space="", made="2024-01-01T00:00:00+00:00", about='{"source": "loop"}', **values):
    seen = values.pop("seen", {})
    body = {"v": 1, "ts": made, "id": id, "channel_values": values, "versions_seen": seen, "channel_versions": {}}
    return ("t", space, id, parent, "msgpack", msgpack.packb(body), about)


def write(id, task, channel, value, space="", path="~__pregel_pull, a", type="msgpack"):
    return ("t", space, id, task, 0, channel, type, msgpack.packb(value) if type == "msgpack" else value, path)


def extension(code, value):
    return msgpack.ExtType(code, msgpack.packb(value))


def array(kind):
    return extension(6, [kind, [1], "C", b"12345678"])


def repeated(levels):
    """Return checkpoints with subgraphs that run twice on each level: two to the power of `levels` steps."""
    rows, writes, space = [], [], ""
    for level in range(levels):
        rows += [checkpoint(id, parent, space) for id, parent in (("1", None), ("2", "1"), ("3", "2"))]
        writes += [write(id, f"t{level}", "x", 1, space) for id in ("1", "2")]
        space = f"{space}|a:t{level}".removeprefix("|")
    return rows, writes


REFUSED = {
    "parents in a circle": ([checkpoint("1", "2"), checkpoint("2", "1")], ()),
    "its own parent": ([checkpoint("1", "1")], ()),
    "a type of arrays that is no type": ([checkpoint("1", a=array("(1 2)f8,i4"))], ()),
    "a type of arrays that is huge": ([checkpoint("1", a=array("(99999999999)f8"))], ()),
    "subgraphs that double on each level": repeated(40),
}
CHECKPOINTS = {
    "the year 1": ([checkpoint("1", made="0001-01-01T00:00:00+00:00"), checkpoint("2", "1", seen={"a": {"x": 1}})], ()),
    "the year 9999": ([checkpoint("1"), checkpoint("2", "1", made="9999-12-31T23:59:59-23:59", seen={"a": {"x": 1}}),
                       checkpoint("3", "2", made="9999-12-31T23:59:59-23:59", seen={"b": {"x": 1}})], ()),
    "names that are numbers": ([checkpoint("1"), checkpoint("2", "1", seen={1: {"x": 1}})], ()),
    "a long number in a path": ([checkpoint("1"), checkpoint("2", "1")],
                                [write("1", "t", "x", 1, path="~__pregel_push, " + "9" * 5000)]),
    "an error with odd keys": ([checkpoint("1")], [write("1", "t", "__error__", {1: {b"a": 2}})]),
    "a signalling NaN": ([checkpoint("1", a=extension(0, ["decimal", "Decimal", "sNaN"]))], ()),
    "the path of a subgraph": ([*(checkpoint(*row) for row in (("1",), ("2", "1"), ("1", None, "a:t"),
                                                               ("2", "1", "a:t"), ("3", "2")))],
                               [write("1", "t", "x", 1), write("1", "u", "x", 1, "a:t", "~__pregel_pull, b"),
                                write("2", "v", "x", 1, path="~__pregel_pull, a/b")]),
}  # fmt: skip


def database(path, rows, writes):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, "
                           "type, checkpoint, metadata)")  # fmt: skip
        connection.execute("CREATE TABLE writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, "
                           "value, task_path)")  # fmt: skip
        connection.executemany("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        connection.executemany("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", writes)
    return path


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_checkpoints_are_rejected(name, tmp_path):
    with pytest.raises(StoreError, match="L574"):
        nb.open(database(tmp_path / "graph.db", *REFUSED[name]))


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_unusual_checkpoints_are_displayed_everywhere(name, tmp_path):
    use(nb.open(database(tmp_path / "graph.db", *CHECKPOINTS[name])), tmp_path)
