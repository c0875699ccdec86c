"""What every log promises, whatever it keeps runs in."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentnb.engine.persistence.event_log import Entry, RunQuery
from agentnb.errors import StoreError
from agentnb.store import MemoryLog, SqlLog
from tests.store.stores import CREATED, Store, bodies, refused, row, some

# --------------------------------------------------------------------------------------------------------- what is kept


def test_a_created_run_is_read_back_unchanged(store):
    before = datetime.now(UTC)
    first_row = row(
        name="Überprüfung ✓",
        head='{"inputs":{"a":1}}',
        parent="zero",
        shared=7,
        forked=19,
        status="paused",
        steps=3,
        at="[2]",
    )
    store.log.create(first_row, some(1, 2))
    result = store.log.run("one")
    assert result == first_row._replace(updated=result.updated, writer=result.writer)
    assert before <= result.updated <= datetime.now(UTC)
    assert result.created.utcoffset() == result.updated.utcoffset() == timedelta(0)
    assert str(os.getpid()) in result.writer
    assert store.log.runs() == [result]


def test_a_run_without_a_parent_has_none(store):
    store.log.create(row())
    result = store.log.run("one")
    assert (result.parent, result.shared, result.forked, result.at) == (None, 0, None, None)
    assert (result.status, result.steps) == ("ready", 0)
    assert store.log.last("one") == 0
    assert list(store.log.entries("one")) == []


def test_times_of_another_zone_are_the_same_instant(store):
    store.log.create(row()._replace(created=CREATED.astimezone(timezone(timedelta(hours=-7)))))
    assert store.log.run("one").created == CREATED


def test_entries_are_read_in_order_and_in_pages(store):
    store.log.create(row(), some(1, 1))
    store.log.append("one", some(2, 2))
    store.log.append("one", some(3, 3))
    store.log.append("one", some(4, 6))
    store.log.append("one", [])
    assert list(store.log.entries("one")) == some(1, 6)
    assert list(store.log.entries("one", 2)) == some(3, 6)
    assert list(store.log.entries("one", 2, 4)) == some(3, 4)
    assert list(store.log.entries("one", 0, 0)) == list(store.log.entries("one", 6)) == []
    assert list(store.log.entries("one", -3, 99)) == some(1, 6)
    assert all(type(entry) is Entry for entry in store.log.entries("one"))
    assert store.log.last("one") == 6


def test_a_long_run_is_read_completely(store):
    store.log.create(row(), some(1, 5003))
    store.log.create(row("two"), some(1, 2))
    assert list(store.log.entries("one")) == some(1, 5003)
    assert list(store.log.entries("one", 63, 2200)) == some(64, 2200)


def test_any_part_of_a_run_is_read(store):
    entries = some(1, 131)
    store.log.create(row(), entries)
    for after in (-70, -1, 0, 1, 2, 63, 64, 65, 130, 131, 132):
        for until in (None, -1, 0, 1, 64, 65, 130, 131, 200):
            expected = [entry for entry in entries if after < entry.seq and (until is None or entry.seq <= until)]
            assert list(store.log.entries("one", after, until)) == expected, (after, until)


def test_an_append_does_not_affect_a_running_read(store):
    store.log.create(row(), some(1, 200))
    reading = store.log.entries("one", until=200)
    first = next(reading)
    store.log.append("one", some(201, 300))
    store.log.append("one", some(301, 301))
    assert [first, *reading] == some(1, 200)
    assert list(store.log.entries("one")) == some(1, 301)


ODD = ["", "\x00\x1f", "naïve ☃ 🙂", "\ud83d", '"\\', "a" * 1_000_000, "☃" * 400_000]


@pytest.mark.parametrize("text", ODD, ids=["empty", "control", "unicode", "half", "quotes", "large", "large unicode"])
def test_any_json_text_survives(store, text):
    written = [json.dumps([text], ensure_ascii=False), json.dumps({"a": text})]
    store.log.create(row(), [Entry(1, 0, written[0])])
    store.log.append("one", [Entry(2, 0, written[1])])
    store.log.append("one", [Entry(3, 0, written[0]), Entry(4, 0, written[1])])
    actual = bodies(store.log.entries("one"))
    assert [json.loads(body) for body in actual] == [[text], {"a": text}] * 2


def test_the_status_of_a_run_is_updated_field_by_field(store):
    store.log.create(row())
    store.log.update_run("one", status="running", at="[4]")
    store.log.update_run("one", steps=12)
    result = store.log.run("one")
    assert (result.status, result.steps, result.at) == ("running", 12, "[4]")
    store.log.append("one", some(1, 1), status="paused")
    store.log.append("one", some(2, 3), steps=13)
    store.log.append("one", [], steps=14)
    result = store.log.run("one")
    assert (result.status, result.steps, result.at) == ("paused", 14, "[4]")
    store.log.update_run("one", at="")
    assert store.log.run("one").at is None


def test_the_last_created_run_is_listed_first(store):
    for run_id in ("b", "a", "c"):
        store.log.create(row(run_id))
    store.log.create(row("old", created=CREATED - timedelta(days=1)))
    assert [row.run_id for row in store.log.runs()] == ["c", "a", "b", "old"]


QUERIES = [
    RunQuery(recipe="triage"),
    RunQuery(recipe=f"{'t' * 120}b"),
    RunQuery(fingerprint="f1"),
    RunQuery(status="failed"),
    RunQuery(status="running"),
    RunQuery(status="interrupted"),
    RunQuery(since=CREATED + timedelta(hours=6)),
    RunQuery(until=CREATED + timedelta(hours=6)),
    RunQuery(since=CREATED + timedelta(hours=3), until=CREATED + timedelta(hours=3)),
    RunQuery(contains="x-1"),
    RunQuery(contains="100%"),
    RunQuery(contains="_"),
    RunQuery(parent="x-0"),
    RunQuery(recipe="triage", status="failed", since=CREATED + timedelta(hours=2), contains="x"),
]


def test_a_query_finds_the_rows_that_match_page_by_page(store):
    for number in range(24):
        names = (
            ("100% sure", "a_b", "Ünlü")[number % 3],
            ("triage", "other", f"{'t' * 120}a", f"{'t' * 120}b")[number % 4],
        )
        store.log.create(
            row(
                f"x-{number}",
                **dict(zip(("name", "recipe"), names, strict=True)),
                fingerprint=f"f{number % 3}",
                created=CREATED + timedelta(hours=number // 2),
                status=("failed", "running", "finished")[number % 3],
                parent="x-0" if number % 5 == 4 else None,
            )
        )
    for run_id in ("x-1", "x-7"):  # running, and nobody runs it
        store.log.release(run_id)
    every = store.log.runs()
    for query in QUERIES:
        expected = [row.run_id for row in every if query.matches(row)]
        assert 0 < len(expected) < len(every), query
        assert [row.run_id for row in store.log.runs(query)] == expected
        for limit in (1, 2, 5):
            pages, after = [], None
            while page := store.log.runs(replace(query, limit=limit, after=after)):
                assert len(page) <= limit
                pages += [row.run_id for row in page]
                after = pages[-1]
            assert pages == expected


def test_a_list_after_a_missing_run_is_rejected(store):
    store.log.create(row())
    assert "did you mean 'one'" in refused("L413", store.log.runs, RunQuery(after="onw"))


def test_without_an_id_the_last_written_run_is_used(store):
    for run_id in ("b", "a", "c"):
        store.log.create(row(run_id))
    assert store.log.run().run_id == "c"
    store.log.append("b", some(1, 1))
    assert store.log.run().run_id == "b"
    store.log.update_run("a", steps=1)
    assert store.log.run().run_id == "a"


def test_imported_runs_are_added_atomically_and_have_no_writer(store):
    store.log.add([(row("a", status="finished", steps=2), some(1, 2)), (row("b"), [])])
    store.log.add([])
    store.log.add([(row("only", created=CREATED - timedelta(days=1)), some(1, 1))])
    assert store.log.last("only") == 1
    assert [(row.run_id, row.status, row.steps, row.writer) for row in store.log.runs()] == [
        ("b", "ready", 0, None), ("a", "finished", 2, None), ("only", "ready", 0, None),
    ]  # fmt: skip
    assert list(store.log.entries("a")) == some(1, 2)
    refused("L412", store.log.add, [(row("c"), some(1, 1)), (row("a"), some(1, 1))])
    refused("L411", store.log.add, [(row("c"), some(1, 1)), (row("d"), some(2, 2))])
    assert [row.run_id for row in store.log.runs()] == ["b", "a", "only"]
    (store.log if store.kind == "memory" else store.another()).append("a", some(3, 3))
    assert store.log.last("a") == 3


# ------------------------------------------------------------------------------------------------------ what is refused


def test_ids_of_runs_are_unique(store):
    store.log.create(row(), some(1, 2))
    refused("L412", store.log.create, row(name="another"), some(1, 1))
    assert store.log.run("one").name == "a run"
    assert list(store.log.entries("one")) == some(1, 2)
    store.log.append("one", some(3, 3))


def test_a_missing_run_is_reported(store):
    store.log.create(row("run_one"))
    actions = [
        (store.log.run, ("run_on",)),
        (store.log.last, ("run_on",)),
        (store.log.entries, ("run_on",)),
        (store.log.append, ("run_on", some(1, 1))),
        (store.log.append, ("run_on", [])),
        (store.log.update_run, ("run_on",)),
    ]
    for action, words in actions:
        assert "did you mean 'run_one'?" in refused("L413", action, *words)
    store.log.release("run_on")
    assert len(store.log.runs()) == 1


def test_a_similar_id_is_suggested_from_the_newest_200(store):
    store.log.add([(row(f"{number:04}"), []) for number in range(201)])
    assert "did you mean '0001'?" in refused("L413", store.log.run, "0001x")
    assert "'0000'" not in refused("L413", store.log.run, "0000x")


def test_entries_follow_the_last_one(store):
    store.log.create(row(), some(1, 3))
    for entries in (some(3, 3), some(5, 5), some(1, 4), some(5, 6)):
        assert "another session has written" in refused("L411", store.log.append, "one", entries, status="failed")
    missing = refused("L411", store.log.create, row("two"), some(2, 2))
    assert "its last entry is number 0, but the entries of this session begin at 2" in missing
    refused("L411", store.log.create, row("two"), [Entry(0, 0, "{}")])
    for second in (3, 4, 6):
        with pytest.raises(AssertionError):
            store.log.append("one", [*some(4, 4), *some(second, second)])
    assert list(store.log.entries("one")) == some(1, 3)
    assert store.log.run("one").status == "ready"
    assert [row.run_id for row in store.log.runs()] == ["one"]
    store.log.append("one", some(4, 4))


def test_several_entries_are_stored_atomically(lasting):
    lasting.log.create(row(), some(1, 1))
    too_large = Entry(3, 2**80, "{}")
    with pytest.raises(StoreError):
        lasting.log.append("one", [*some(2, 2), too_large], status="running", steps=9)
    with pytest.raises(StoreError):
        lasting.log.create(row("two"), [*some(1, 2), too_large])
    assert list(lasting.log.entries("one")) == some(1, 1)
    assert (lasting.log.run().steps, lasting.log.run().run_id) == (0, "one")
    lasting.log.append("one", some(2, 3))
    lasting.log.create(row("two"), some(1, 3))


def test_a_new_store_has_no_runs(lasting):
    log = lasting.log
    for look in (log.runs, log.run, lambda: log.last("one"), lambda: log.entries("one")):
        assert "no store here" in refused("L410", look)
    for change in (lambda: log.append("one", some(1, 1)), lambda: log.update_run("one", steps=1)):
        refused("L410", change)
    log.release("one")
    refused("L410", log.runs)


def test_a_store_without_runs_is_reported():
    assert "store is empty" in refused("L413", MemoryLog().run)


# ------------------------------------------------------------------------------------------------- all logs do the same

IDS = st.sampled_from(["a", "b"])
ACTS = st.one_of(
    st.tuples(st.just("create"), IDS, st.integers(0, 3)),
    st.tuples(st.just("append"), IDS, st.integers(0, 9), st.integers(0, 3), st.none() | st.text(max_size=3)),
    st.tuples(st.just("tell"), IDS, st.none() | st.integers(0, 9), st.none() | st.sampled_from(["", "[1]"])),
    st.tuples(st.just("release"), IDS),
    st.tuples(st.just("close")),
)


def done(log, act):
    """Do one act on a log; return what it is refused for."""
    name, *words = act
    try:
        match name:
            case "create":
                log.create(row(words[0]), some(1, words[1]))
            case "append":
                log.append(words[0], some(words[1], words[1] + words[2] - 1), status=words[3])
            case "tell":
                log.update_run(words[0], steps=words[1], at=words[2])
            case _:
                getattr(log, name)(*words)
    except StoreError as error:
        return error.problems[0].code
    return None


def seen(log):
    """Return all that can be read from a log."""
    rows = [run._replace(updated=None, writer=run.writer is not None) for run in log.runs()]
    return rows, [list(log.entries(run.run_id)) for run in rows], [log.last(run.run_id) for run in rows]


@given(acts=st.lists(ACTS, max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_file_behaves_like_memory(tmp_path_factory, acts):
    memory, file = MemoryLog(), SqlLog(tmp_path_factory.mktemp("same") / "runs.db")
    for log in (memory, file):
        log.create(row("first"))
    for action in acts:
        assert done(file, action) == done(memory, action), action
        assert seen(file) == seen(memory)
        assert file.run().run_id == memory.run().run_id
    file.close()


@pytest.mark.needs_postgres
@given(acts=st.lists(ACTS, max_size=12))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_server_behaves_like_memory(postgres_server, acts):
    memory, served = MemoryLog(), SqlLog(postgres_server.store())
    for log in (memory, served):
        log.create(row("first"))
    for action in acts:
        assert done(served, action) == done(memory, action), action
        assert seen(served) == seen(memory)
        assert served.run().run_id == memory.run().run_id
    served.close()


def test_the_repr_of_a_store_names_its_kind(store):
    assert isinstance(store, Store)
    assert store.log.url in repr(store.log) or store.kind == "memory"
