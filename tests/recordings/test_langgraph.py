from __future__ import annotations

import dataclasses
import sqlite3
import subprocess
import sys
import warnings
from contextlib import ExitStack, closing, suppress
from pathlib import PurePath
from typing import Annotated, TypedDict

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, RemoveMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from langgraph.types import Command, Overwrite, Send, interrupt

import agentnb as nb
from agentnb.errors import AgentNbError, ExecutionError, StoreError
from tests.dialects.langgraph.programs import NAMES, WAITS_WHEN_CUT, build, plans
from tests.recordings import langgraph_programs

# The updates of a thread: at which state (newest first), as which node, and how many supersteps run from there.
UPDATES = st.lists(st.tuples(st.integers(0, 6), st.none() | st.sampled_from(NAMES[:3]), st.integers(0, 5)), max_size=3)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Yield, for each program, its app, its thread and the file of its checkpoints."""
    results = {}
    with ExitStack() as stack:
        for program in langgraph_programs.PROGRAMS:
            path = tmp_path_factory.mktemp("graphs") / f"{program.__name__}.db"
            connection = stack.enter_context(closing(sqlite3.connect(path, check_same_thread=False)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results[program.__name__] = (*program(SqliteSaver(connection)), path)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # so that the file can be copied alone
        yield results


def plain(value):
    """Return a value of LangGraph as the record can have it: the fields of objects."""
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if dataclasses.is_dataclass(value):
        return plain(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def history(app, session):
    """Return LangGraph's snapshots along the session's path, oldest first."""
    known = session.checkpoints
    rows = {row.config["configurable"]["checkpoint_id"]: row
            for row in app.get_state_history(langgraph_programs.config(session.run_id.split("@")[0]))}  # fmt: skip
    return [(rows[id], step) for id, step in known.items() if id in rows]


def agrees(app, session):
    """Compare the board and the next nodes with the state history, at each checkpoint."""
    rows = history(app, session)
    for at, (snapshot, step) in enumerate(rows):
        if at + 1 < len(rows) and rows[at + 1][1] == step:
            continue  # an input or an update follows at the same step: the board shows what it left
        session.goto(step)
        written = app.checkpointer.get_tuple(snapshot.config).checkpoint["channel_versions"]
        # A list that a reducer starts with, and that nothing has written, is in the code alone.
        values = {key: value for key, value in plain(snapshot.values).items() if key in written}
        assert dict(session.board) == values, (step, snapshot)
        assert sorted(each.node for each in session.frontier) == sorted(snapshot.next)
    return rows


@pytest.mark.parametrize("name", [program.__name__ for program in langgraph_programs.PROGRAMS])
def test_the_board_at_each_step_equals_the_state_history(kept, name):
    app, thread, path = kept[name]
    before = path.read_bytes()
    session = nb.open(path)
    assert session.run_id == thread
    assert len(agrees(app, session)) > 1
    for fork in session.forks:
        agrees(app, fork)
    assert path.read_bytes() == before


def test_a_step_is_a_task_and_edges_lead_from_the_task_that_scheduled_it(kept):
    session = nb.open(kept["parallel"][2])
    nodes = [step.node_id for step in session.trace.steps]
    assert nodes[:5] == ["__start__", "a", "b", "c", "d"]
    assert sorted(nodes[5:]) == [*["each"] * 12, "z"]
    edges = session.trace.frames.edges
    assert set(zip(edges.source, edges.target, strict=True)) >= {("a", "b"), ("a", "c"), ("d", "each")}
    assert [step.inputs for step in session.trace.steps if step.node_id == "each"] == [{"k": k} for k in range(12)]


def test_subgraphs_are_frames_with_boards_of_their_own(kept):
    session = nb.open(kept["nested"][2])
    steps = session.trace.frames.steps
    assert list(steps.phase).count("enter") == list(steps.phase).count("leave") == 4
    deep = [step for step in session.trace.steps if step.node_id == "inner/inmost/deep"]
    assert [step.depth for step in deep] == [2, 2]
    session.goto(0)
    session.run(until="inner")
    assert session.step_over().phase == "leave"
    session.run_back(until="inner/one")
    assert [frame.region for frame in session.stack][-1:] == ["inner"]
    assert session.step_out().node_id == "inner"
    assert "inner/inmost" in session.draw().dot


def test_interrupts_are_pending_and_answers_are_interventions(kept):
    session = nb.open(kept["asks"][2])
    assert (session.status, session.current) == ("waiting", "ask")
    assert [(row.kind, row.node, row.arguments) for row in session.pending] == [("answer", "ask", {"value": "go on?"})]
    assert session.goto(0).pending == ()
    answered = nb.open(kept["answered"][2])
    rows = answered.trace.frames.interventions
    assert list(rows[rows.action == "answer"]["new"]) == ["yes", "quite"]
    assert answered.status == "finished"
    inside = nb.open(kept["asks_inside"][2])
    assert (inside.status, inside.current) == ("waiting", "inner/ask")
    assert [row.arguments for row in inside.pending] == [{"value": {"question": "go on?"}}]


def test_updates_are_edits_and_failures_are_failed_steps(kept):
    session = nb.open(kept["several_turns"][2])
    rows = session.trace.frames.interventions
    assert {"edit", "input"} <= set(rows.action)
    assert session.who_wrote("n") == len(session.trace)
    failed = nb.open(kept["fails"][2])
    assert (failed.status, failed.trace.steps[-1].status) == ("failed", "error")
    assert "no such city" in failed.trace.steps[-1].error


def test_forks_are_sessions_of_their_own(kept):
    session = nb.open(kept["forked"][2])
    assert len(session.forks) == 2
    fork = session.forks[0]
    assert fork.parent is session
    assert nb.open(kept["forked"][2], fork.run_id).run_id == fork.run_id
    assert "<- here" in session.tree()
    assert len(session.runs) == 3


def test_breakpoints_searches_and_exports_work_on_it(kept, tmp_path):
    session = nb.open(kept["line"][2]).goto(0)
    session.breakpoints.add(when="n > 5")
    session.run()
    assert session.board["n"] > 5
    assert session.who_wrote("n") == session.position
    session.trace.to_json(tmp_path / "run.json")
    reopened = nb.open(tmp_path / "run.json")
    assert reopened.trace.state_at(3) == session.trace.state_at(3)
    with pytest.raises(ExecutionError, match="L450"):
        session.edit({"n": 1})


def test_missing_threads_and_runs_are_reported(kept, tmp_path):
    path = kept["line"][2]
    with pytest.raises(StoreError, match="L575"):
        nb.open(path, "lime")
    with pytest.raises(StoreError, match="L575"):
        nb.open(path, "line@1ef")
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE checkpoints (a)")
        connection.execute("CREATE TABLE writes (a)")
    with pytest.raises(StoreError, match="L573"):
        nb.open(other)
    with pytest.raises(StoreError, match="L410"):
        nb.open(tmp_path / "none.db", format="langgraph")


def test_a_database_of_an_older_saver_has_no_paths_of_tasks(kept, tmp_path):
    app, _, path = kept["line"]
    older = tmp_path / "older.db"
    older.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(older)) as connection, connection:
        connection.execute("ALTER TABLE writes DROP COLUMN task_path")
    session = nb.open(older)
    agrees(app, session)
    assert [step.node_id for step in session.trace.steps] == [step.node_id for step in nb.open(path).trace.steps]


def test_values_are_read_without_their_classes_and_nothing_is_imported(kept):
    program = (
        "import sys, agentnb as nb\n"
        f"session = nb.open({str(kept['values'][2])!r})\n"
        "print(session.board['extra'])\n"
        "print({name.split('.')[0] for name in sys.modules} & {'langgraph', 'langchain_core', 'tests', 'pickle5'})\n"
    )
    root = PurePath(__file__).parent.parent.parent
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    board, modules = out.stdout.splitlines()
    assert "'order': {'city': 'Rome', 'amount': Decimal('2.50')}" in board
    assert modules == "set()"


def test_a_pickle_is_not_loaded(kept, tmp_path):
    import pickle

    path = tmp_path / "pickled.db"
    path.write_bytes(kept["line"][2].read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE writes SET type = 'pickle', value = ? WHERE channel = 'n'", (pickle.dumps(print),))
    assert nb.open(path).status == "finished"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE checkpoints SET type = 'pickle'")
    with pytest.raises(StoreError, match=r"L574.*\n.*\n.*not opened"):
        nb.open(path)


@given(st.data())
def test_a_damaged_database_is_reported_or_shown(kept, tmp_path_factory, data):
    source = kept[data.draw(st.sampled_from(["nested", "parallel", "answered"]))][2]
    path = tmp_path_factory.mktemp("damaged") / "graph.db"
    path.write_bytes(source.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        table, column = data.draw(st.sampled_from([("checkpoints", "checkpoint"), ("checkpoints", "metadata"),
                                                   ("checkpoints", "parent_checkpoint_id"), ("writes", "value"),
                                                   ("writes", "task_path"), ("writes", "channel")]))  # fmt: skip
        (count,) = connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
        row = data.draw(st.integers(0, count - 1))
        (old,) = connection.execute(f"SELECT {column} FROM {table} LIMIT 1 OFFSET ?", (row,)).fetchone()
        if isinstance(old, bytes) and old and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(old) - 1))
            new = old[:at] + data.draw(st.binary(min_size=1, max_size=3)) + old[at + 1 :]
        else:
            new = data.draw(st.one_of(st.none() if column != "value" else st.nothing(), st.binary(max_size=9),
                                      st.text(max_size=9)))  # fmt: skip
        rowid = connection.execute(f"SELECT rowid FROM {table} LIMIT 1 OFFSET ?", (row,)).fetchone()[0]
        try:
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, rowid))
        except sqlite3.IntegrityError:
            return
    try:
        session = nb.open(path, format="langgraph")
        session.goto(0)
        session.run()
        session.trace.frames.steps  # noqa: B018
        session.recipe.draw().dot  # noqa: B018
    except AgentNbError:
        pass


@pytest.mark.needs_postgres
def test_a_postgres_saver_is_read_like_the_state_history(postgres_url):
    from langgraph.checkpoint.postgres import PostgresSaver

    url = postgres_url
    for program in (*langgraph_programs.PROGRAMS, deltas):
        with PostgresSaver.from_conn_string(url) as saver, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            saver.setup()
            app, thread = program(saver)
            agrees(app, nb.open(url, thread))


def join(old, writes):
    return [*old, *(item for write in writes for item in write)]


def merge(old, writes):
    return {key: value for write in (old, *writes) for key, value in write.items()}


class Deltas(TypedDict, total=False):
    items: Annotated[list, DeltaChannel(join)]
    few: Annotated[list, DeltaChannel(join, snapshot_frequency=2)]
    files: Annotated[dict, DeltaChannel(merge)]
    messages: Annotated[list, DeltaChannel(_messages_delta_reducer)]
    n: int


def writing(word, *messages, **more):
    write = {"items": [word], "few": [word], "files": {word: word, "last": word}, "messages": list(messages)}
    return lambda _state: {**write, **more}


def delta_graph(inner=None):
    """Return a program all of whose nodes write to DeltaChannels: two at once, one with an Overwrite, one that asks."""
    graph = StateGraph(Deltas)
    graph.add_node("a", writing("a", AIMessage("one", id="1"), AIMessage("two", id="2")))
    graph.add_node("b", inner or writing("b", AIMessage("changed", id="1"), RemoveMessage(id="2")))
    graph.add_node("c", writing("c", {"role": "user", "content": "three", "id": "3"}))
    graph.add_node("d", writing("d", items=Overwrite(["new"]), files=Overwrite({"new": "d"}), n=1))
    graph.add_node("e", lambda _state: {"items": [interrupt("?")], "messages": AIMessage("last", id="4")})
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("a", "c").add_edge(["b", "c"], "d").add_edge("d", "e")
    return graph


def deltas(saver):
    app = delta_graph().compile(checkpointer=saver)
    app.invoke({"items": ["in"], "few": ["in"], "files": {"in": "x"}}, langgraph_programs.config("deltas"))
    return app, "deltas"


@pytest.fixture
def delta_app(request, tmp_path):
    """Yield a program with DeltaChannels, after two turns of a thread, and the file of its checkpoints."""
    inner, durability = request.param
    path, config = tmp_path / "checkpoints.db", langgraph_programs.config("one")
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        app = delta_graph(inner).compile(checkpointer=SqliteSaver(connection))
        for turn in ("in", "again"):
            app.invoke({"items": [turn], "few": [turn], "files": {turn: "x"}}, config, durability=durability)
            for _ in range(2):
                app.invoke(Command(resume="yes"), config, durability=durability)
        yield app, config, path


@pytest.mark.parametrize(
    "delta_app", [(None, "sync"), (delta_graph().compile(), "sync")], indirect=True, ids=["flat", "nested"]
)
def test_values_of_delta_channels_equal_the_state_history(delta_app):
    app, config, path = delta_app
    for state in [*app.get_state_history(config)][1:8:3]:
        fork = app.update_state(state.config, {"items": ["by hand"], "files": {"hand": "y"}}, as_node="a")
        app.invoke(None, fork, durability="sync")
    session = nb.open(path)
    assert len(session.forks) == 3
    for one in (session, *session.forks):
        assert len(agrees(app, one)) > 1


@pytest.mark.parametrize("delta_app", [(None, "exit")], indirect=True, ids=["flat"])
def test_values_of_delta_channels_that_were_written_at_exit_equal_the_state(delta_app):
    app, config, path = delta_app
    session = nb.open(path)
    assert dict(session.board) == plain(app.get_state(config).values)
    assert session.board["items"] == ["new", "yes"]


def keep_longest(old, writes):
    return max(old, *writes, key=len)


class Text(TypedDict, total=False):
    longest: Annotated[str, DeltaChannel(keep_longest)]
    items: Annotated[list, DeltaChannel(join)]


def test_a_warning_names_the_channels_whose_reducer_is_not_in_the_database(tmp_path):
    graph = StateGraph(Text).add_node("a", lambda _state: {"longest": "ab", "items": ["a"]}).add_edge(START, "a")
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        graph.compile(checkpointer=saver).invoke({"longest": "abc"}, langgraph_programs.config("one"))
    with pytest.warns(UserWarning, match=r"L578.*'items', 'longest'"):
        session = nb.open(tmp_path / "checkpoints.db")
    assert session.board["items"] == ["a"]
    assert session.board["longest"] == "<a DeltaChannel whose reducer is not in the database>"
    assert session.who_wrote("items") == 2


def endless(inner=None):
    """Return a program whose node `a` runs again and again, or contains one that does, beside `b`."""
    graph = StateGraph(langgraph_programs.State)
    graph.add_node("a", inner or langgraph_programs.said("a"))
    graph.add_node("b", langgraph_programs.said("b"))
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    if inner is None:
        graph.add_edge("a", "a")
    return graph


@pytest.mark.parametrize(("program", "limit"), [(endless(), 6), (endless(endless().compile()), 7)])
def test_updates_and_interrupted_runs_equal_the_state_history(program, limit, tmp_path):
    path = tmp_path / "checkpoints.db"
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        app = program.compile(checkpointer=SqliteSaver(connection))
        config = {**langgraph_programs.config("one"), "recursion_limit": limit}
        run_with_answers(app, {"log": ["in"]}, config)
        for state in [*app.get_state_history(config)][1:5]:
            with suppress(InvalidUpdateError):  # which node it is an update of is not always clear
                fork = app.update_state(state.config, {"log": ["by hand"]})
                run_with_answers(app, None, {**fork, "recursion_limit": 4})
        session = nb.open(path)
        for one in (session, *session.forks):
            agrees(app, one)


def run_with_answers(app, inputs, config):
    """Run a program for some supersteps, with an answer to most questions."""
    with warnings.catch_warnings(), suppress(Exception):  # a program that fails has a history, too
        warnings.simplefilter("ignore")
        for _ in range(3):
            # Otherwise LangGraph stores a checkpoint while the next superstep changes the sets of its joins.
            result = app.invoke(inputs, config, durability="sync")
            interrupts = result.get("__interrupt__", ())
            if not interrupts:
                return
            inputs = Command(resume={each.id: f"re {each.value}" for each in interrupts})


@given(plan=plans(is_async=False), updates=UPDATES)
@example(plan=WAITS_WHEN_CUT, updates=[])
def test_random_graphs_with_updates_equal_the_state_history(plan, updates, tmp_path_factory):
    path = tmp_path_factory.mktemp("random") / "checkpoints.db"
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        app = build(plan)
        app.checkpointer = SqliteSaver(connection)
        config = {**langgraph_programs.config("one"), "recursion_limit": 8}
        run_with_answers(app, {"last": "in"}, config)
        states = [*app.get_state_history(config)]
        for at, node, limit in updates:
            with suppress(IndexError, InvalidUpdateError, KeyError):  # no such state, no such node
                fork = app.update_state(states[at].config, {"last": "by hand"}, as_node=node)
                run_with_answers(app, None, {**fork, "recursion_limit": limit})
        session = nb.open(path)
        for one in (session, *session.forks):
            agrees(app, one)


@pytest.mark.parametrize("default", [False, True])
def test_an_error_handler_follows_the_failed_step(default, tmp_path):
    def fails(state):
        raise ValueError("no such city")

    path = tmp_path / "checkpoints.db"
    graph = StateGraph(langgraph_programs.State)
    handler = langgraph_programs.said("mended")
    graph.add_node("a", fails, error_handler=None if default else handler)
    if default:
        graph.set_node_defaults(error_handler=handler)
    graph.add_edge(START, "a")
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        app = graph.compile(checkpointer=SqliteSaver(connection))
        app.invoke({"log": ["in"]}, langgraph_programs.config("one"))
        session = nb.open(path)
        agrees(app, session)
    failed, handled = session.trace.steps[1:]
    assert (failed.node_id, failed.status, session.status) == ("a", "error", "finished")
    assert handled.node_id == ("__default_error_handler__" if default else "__error_handler__a")
    edges = session.trace.frames.edges
    assert ("a", handled.node_id) in set(zip(edges.source, edges.target, strict=True))


def test_the_tasks_that_an_update_sent_come_next(tmp_path):
    path = tmp_path / "checkpoints.db"
    graph = StateGraph(langgraph_programs.State)
    for name in "ab":
        graph.add_node(name, langgraph_programs.said(name))
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: ["b", Send("b", {"log": []}), Send("b", {"log": []})])
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        app = graph.compile(checkpointer=SqliteSaver(connection))
        config = app.update_state(langgraph_programs.config("one"), {"log": ["by hand"]}, as_node="a")
        agrees(app, nb.open(path))
        app.invoke(None, config, durability="sync")
        session = nb.open(path)
        agrees(app, session)
    assert [each.node for each in session.goto(0).frontier] == ["b", "b", "b"]
