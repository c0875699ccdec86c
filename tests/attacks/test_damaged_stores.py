"""Damaged stores and traces: each opens as it was, or up to a good step with a warning, or is refused with a Problem.

`ATTACKS_DAMAGED` is the number of damaged copies; the long form has 1,000.
"""

from __future__ import annotations

import copy
import json
import os
import random
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import agentnb as nb
from agentnb.engine.persistence.checksums import add_checksum
from agentnb.errors import AgentNbError

COPIES = int(os.environ.get("ATTACKS_DAMAGED", "30"))


def recipe() -> Any:
    """Return a loop that counts, asks a tool, and collects what the tool says."""
    graph = nx.DiGraph(name="damaged", entry="count")
    graph.add_node("count", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_node("ask", kind="tool", function="ask", inputs={"n": "n"})
    graph.add_node(
        "collect",
        function=lambda seen, answer: {"seen": [*seen, answer], "last": {"deep": [answer]}},
        inputs={"seen": "seen", "answer": "answer"},
    )
    graph.add_edge("count", "ask")
    graph.add_edge("ask", "collect")
    graph.add_edge("collect", "count", when="n < 9")
    return nb.load(graph)


@dataclass
class Original:
    """A store with two runs, and what is true of each: the state after every step, where it stands, its status."""

    store: bytes
    trace: bytes
    truth: dict[str, tuple[list[str], int, str]]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    folder = tmp_path_factory.mktemp("damaged")
    truth = {}
    for run_id in ("whole", "moved"):
        tools = {"ask": lambda n: {"answer": f"the answer is {n * 111}"}}
        session = nb.Session(recipe(), {"n": 0, "seen": []}, tools=tools, store=folder / "runs.db", run_id=run_id)
        session.run()
        if run_id == "moved":
            session.back(9)
        truth[run_id] = ([*map(repr, states(session))], session.position, str(session.status))
        session.trace.to_json(folder / "trace.json")
        session.close()
    with closing(sqlite3.connect(folder / "runs.db")) as connection, connection:
        connection.execute("VACUUM INTO ?", (str(folder / "copy.db"),))
    connection.close()
    return Original((folder / "copy.db").read_bytes(), (folder / "trace.json").read_bytes(), truth)


def states(session: Any) -> list[Any]:
    return [session.trace.state_at(step) for step in range(len(session.trace) + 1)]


# -- kinds of damage ---------------------------------------------------------------------------------------------------


def flip(data: bytearray, dice: random.Random) -> None:
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def change_digit(data: bytearray, dice: random.Random) -> None:
    places = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    data[dice.choice(places)] = dice.randrange(48, 58)


def change_letter(data: bytearray, dice: random.Random) -> None:
    places = [at for at, byte in enumerate(data) if 97 <= byte <= 122]
    data[dice.choice(places)] = dice.randrange(97, 123)


def cut(data: bytearray, dice: random.Random) -> None:
    del data[dice.randrange(len(data)) :]


def zero(data: bytearray, dice: random.Random) -> None:
    start = dice.randrange(len(data) // 512) * 512
    data[start : start + 512] = bytes(len(data[start : start + 512]))


def insert(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data))
    data[at:at] = dice.randbytes(dice.randrange(1, 9))


def swap(data: bytearray, dice: random.Random) -> None:
    size = len(data) // 4096
    one, other = dice.randrange(size) * 4096, dice.randrange(size) * 4096
    data[one : one + 4096], data[other : other + 4096] = data[other : other + 4096], data[one : one + 4096]


def overwrite(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data))
    data[at : at + 16] = dice.randbytes(16)


KINDS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    *(flip, flip, change_digit, change_digit, change_letter, cut, zero, insert, swap, overwrite),
)


# -- what may come of it -----------------------------------------------------------------------------------------------


def quietly(act: Callable[[], Any]) -> tuple[Any, bool]:
    """Return what an act gives, None where one of our errors says why not, and whether it warned or refused."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = act()
        except AgentNbError:
            return None, True
    assert all(
        str(one.message).startswith("warning L43") or "the status of the run" in str(one.message) for one in caught
    )
    return result, bool(caught)


def look(session: Any) -> None:
    """Look at all that a session shows."""
    for frame in session.trace.frames.values():
        repr(frame)
    repr((session.board, session.trace, session.status, session.cursor, list(session.trace.steps)))
    session.trace.to_json()
    session.tree()


def check_store(path: Path, original: Original) -> None:
    rows, is_reported = quietly(lambda: nb.runs(path))
    if not is_reported:
        assert sorted(rows.run_id) == sorted(original.truth)
    for run_id, (truth, position, status) in original.truth.items():
        for source in (None, recipe()):
            tools = None if source is None else {"ask": lambda n: n}
            session, warned = quietly(partial(nb.open, path, run_id, recipe=source, tools=tools))
            if session is None:
                continue
            snapshots = [*map(repr, states(session))]
            assert snapshots == truth[: len(snapshots)], "a damaged store opened with other values"
            if not warned:
                assert (len(snapshots), session.position, str(session.status)) == (len(truth), position, status)
            quietly(partial(look, session))
            quietly(session.close)


def check_trace(path: Path, original: Original) -> None:
    trace, is_reported = quietly(lambda: nb.SimulationTrace.read(path))
    if not is_reported:
        assert trace.to_json().encode() == original.trace


@pytest.mark.parametrize("number", range(COPIES))
def test_a_damaged_store_never_opens_silently_with_wrong_values(number, original, tmp_path):
    dice = random.Random(number)
    for data, name, check in ((original.store, "runs.db", check_store), (original.trace, "trace.json", check_trace)):
        damaged = bytearray(data)
        for _ in range(dice.choice((1, 1, 1, 4))):
            if len(damaged) > 4096:
                dice.choice(KINDS)(damaged, dice)
        (tmp_path / name).write_bytes(damaged)
        check(tmp_path / name, original)


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 4096, b"PK\3\4", b"\x80\x05pickle", b"{}", b"SQLite format 3\0", b"[" * 5000, b"\xff\xfe"]
)
def test_a_foreign_file_is_refused(content, tmp_path):
    for name in ("runs.db", "trace.json"):
        (tmp_path / name).write_bytes(content)
    for call in (lambda: nb.runs(tmp_path / "runs.db"), lambda: nb.open(tmp_path / "runs.db")):
        with pytest.raises(AgentNbError):
            call()
    with pytest.raises(AgentNbError):
        nb.SimulationTrace.read(tmp_path / "trace.json")


DEEP = "[" * 100_000  # Python's parser of JSON gives up with a RecursionError


def test_a_text_that_is_nested_too_deeply_is_damage(original, tmp_path):
    path = tmp_path / "runs.db"
    path.write_bytes(original.store)
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = [(table, column) for table in tables for _, column, kind, *_ in
                   connection.execute(f"PRAGMA table_info({table})") if kind == "TEXT"]  # fmt: skip
    assert len(columns) > 5
    for table, column in columns:
        path.write_bytes(original.store)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (DEEP,))
        check_store(path, original)


def test_a_folder_beside_a_store_is_a_problem(original, tmp_path):
    (tmp_path / "runs.db").write_bytes(original.store)
    (tmp_path / "runs.db-wal").mkdir()
    for call in (lambda: nb.runs(tmp_path / "runs.db"), lambda: nb.open(tmp_path / "runs.db", "whole")):
        with pytest.raises(AgentNbError):
            call()


# -- traces that somebody edits ----------------------------------------------------------------------------------------

ODD = [None, True, -1, 10**5, 2**70, 1.5, "", "x" * 300, "\ud800", [], {}, [[]], {"$": "nope", "v": [1]}, [1, 2],
       {"$": "dict", "v": [[1, 2]]}, {"$": "datetime", "v": "9999-01-01T00:00:00"}, {"a": 1}]  # fmt: skip


@pytest.fixture(scope="module")
def traces(original: Original) -> list[dict[str, Any]]:
    """Return traces as data: of a loop, a fork, and a recipe with loops and subgraphs."""
    research = nb.Session(nb.load(Path(nb.__file__).parent / "samples" / "research.yaml"))
    research.run()
    parent = nb.Session(recipe(), {"n": 0, "seen": []}, tools={"ask": lambda n: {"answer": str(n)}})
    parent.run(5)
    fork = parent.fork(at=2)
    fork.edit({"n": 3})
    fork.run()
    return [json.loads(text) for text in (original.trace, research.trace.to_json(), fork.trace.to_json())]


def spots(value: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in ((value, key), *spots(item))]


def edit(document: dict[str, Any], dice: random.Random) -> str:
    """Change a trace in a few places; take its checksum out, or put the right one in."""
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        places = spots(document)
        (holder, key), (other, other_key) = dice.choice(places), dice.choice(places)
        match dice.randrange(6):
            case 0:
                del holder[key]
            case 1 | 2:
                holder[key] = copy.deepcopy(dice.choice(ODD))
            case 3:
                holder[key] = copy.deepcopy(other[other_key])
            case 4 if isinstance(holder[key], int):
                holder[key] += dice.choice((-1, 1, 5, -100, 256))
            case _ if isinstance(holder, list):
                dice.shuffle(holder)
            case _:
                holder[key] = [holder[key]]
    document.pop("crc", None)
    text = json.dumps(document, separators=(",", ":"))
    return add_checksum(text) if dice.random() < 0.5 else text


def show_all(trace: Any) -> None:
    for frame in trace.frames.values():
        repr(frame)
    for step in trace.steps[:10]:
        repr((step, step.inputs))
    first = next((key for step in {0, len(trace) // 2, len(trace)} for key in trace.state_at(step) if key == "n"), None)
    trace.diff(0, len(trace))
    repr((trace, trace._repr_html_(), trace.to_json(), trace.outcome, trace.metadata, trace.score, trace.to_frame()))
    if first is not None:
        repr(trace.wide(first))


@pytest.mark.parametrize(("inner", "outer"), [(2, 2), (2, 3)])
def test_a_frame_that_contains_itself_is_rejected(traces, tmp_path, inner, outer):
    document = copy.deepcopy(traces[1])
    frames = {row[0]: row for piece in document["slices"] for row in piece.get("t", {}).get("frames", [0, []])[1]}
    assert frames[inner][4] == "child"  # reads of its keys fall through to the frame around it
    frames[inner][1], frames[outer][1] = outer, inner
    document.pop("crc", None)
    (tmp_path / "trace.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(AgentNbError):
        nb.SimulationTrace.read(tmp_path / "trace.json")


@pytest.mark.parametrize("part", range(10))
@pytest.mark.filterwarnings("ignore")
def test_an_edited_trace_is_shown_or_rejected(traces, tmp_path, part):
    for number in range(part * COPIES // 10, (part + 1) * COPIES // 10):
        dice = random.Random(number)
        path = tmp_path / "trace.json"
        path.write_text(edit(copy.deepcopy(dice.choice(traces)), dice), encoding="utf-8")
        try:
            show_all(nb.SimulationTrace.read(path))
        except AgentNbError:
            continue
        except Exception as error:  # noqa: BLE001
            pytest.fail(f"trace {number}: {type(error).__name__}: {error}")
