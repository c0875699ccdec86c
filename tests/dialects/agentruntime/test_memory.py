from __future__ import annotations

import json
import os
import sqlite3
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentnb.dialects.agentruntime import AgentRuntimeError, build_agent_from_path, build_agent_from_yaml
from agentnb.dialects.agentruntime.parts.memory import Memory, to_message
from agentnb.dialects.agentruntime.parts.settings import MemoryConfig
from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.session import Session
from agentnb.world.tools.allow_list import Allowed
from tests.dialects.agentruntime.agent_files import back_and_forth, text, write

HEAD = """
meta: {name: t}
state:
  reducer: replace
  shape: {said: any, session_id: any, messages: any, a: any}
"""
GRAPH = """
nodes:
  - id: say
    type: noop
    map: {merge: {messages: [{role: user, content: "{{ said }}"}, {role: assistant, content: "{{ said }}!"}]}}
  - id: check
    type: tool
    uses: %s
edges: [{from: say, to: check}]
"""
KINDS = {
    "inmemory": "{enabled: true, kind: inmemory}",
    "file": '{enabled: true, kind: file, path: "kept/{session_id}.json"}',
    "sqlite": '{enabled: true, kind: sqlite, dsn: "sqlite:///kept.db"}',
    "sqlite in memory": '{enabled: true, kind: sqlite, dsn: ":memory:"}',
}


def content(memory, uses="echo", inputs="[said]"):
    return text(GRAPH % uses, f"memory: {memory}", head=HEAD, inputs=inputs, outputs="[messages]")


def agent_of(folder, memory="file", **options):
    return build_agent_from_path(write(folder, content(KINDS.get(memory, memory), **options)))


def get_contents(state):
    return [message["content"] for message in state["messages"]]


@pytest.fixture(params=list(KINDS))
def agent(request, tmp_path):
    return agent_of(tmp_path, request.param)


def test_earlier_messages_precede_those_of_the_next_run(agent):
    assert get_contents(agent.run({"said": "one"})) == ["one", "one!"]
    state = agent.run({"said": "two"})
    assert get_contents(state) == ["one", "one!", "two", "two!"]
    assert get_contents(agent.run({"said": "three"})) == ["one", "one!", "two", "two!", "three", "three!"]
    assert [(message["type"], message["role"]) for message in state["messages"][:2]] == [
        ("human", "user"),
        ("ai", "assistant"),
    ]


def test_each_conversation_is_stored_separately(agent):
    agent.run({"said": "one", "session_id": "ada"})
    assert get_contents(agent.run({"said": "two", "session_id": "bob"})) == ["two", "two!"]
    assert get_contents(agent.run({"said": "three", "session_id": "ada"})) == ["one", "one!", "three", "three!"]
    assert get_contents(agent.run({"said": "four"})) == ["four", "four!"]  # `default`


def test_a_failed_run_stores_nothing(tmp_path):
    agent = agent_of(tmp_path)
    agent.run({"said": "one"})
    with pytest.raises(AgentRuntimeError):
        build_agent_from_path(write(tmp_path, content(KINDS["file"], "raising"), "other.yaml")).run({"said": "lost"})
    assert get_contents(agent.run({"said": "two"})) == ["one", "one!", "two", "two!"]


def test_a_session_stores_once_however_often_it_goes_back(agent):
    agent.run({"said": "one"})
    session = Session(load(agent), {"said": "two"})
    session.run()
    assert get_contents(session.board) == ["one", "one!", "two", "two!"]
    back_and_forth(session)
    session.goto(1).run()
    assert get_contents(agent.run({"said": "three"})) == ["one", "one!", "two", "two!", "three", "three!"]


def test_a_fork_stores_nothing(agent):
    session = Session(load(agent), {"said": "one"})
    session.step()
    fork = session.fork(edit={"messages": [{"role": "user", "content": "other"}]})
    fork.run()
    assert fork.status == "finished"
    assert get_contents(agent.run({"said": "two"})) == ["two", "two!"]


def test_two_concurrent_runs_of_one_conversation_lose_nothing(agent):
    agent.run({"said": "one"})
    session = Session(load(agent), {"said": "mine"})
    session.step()
    agent.run({"said": "two"})
    session.run()
    assert get_contents(agent.run({"said": "x"}))[:6] == ["one", "one!", "two", "two!", "mine", "mine!"]


def test_messages_that_a_node_truncates_are_not_stored_twice(tmp_path):
    file = write(tmp_path, content(KINDS["file"]))
    build_agent_from_path(file).run({"said": "one"})
    build_agent_from_path(file).run({"said": "two"})
    session = Session(load(file), {"said": "three"})
    session.edit({"messages": session.board["messages"][-1:]}).run()
    result = build_agent_from_path(file).run({"said": "x"})
    assert get_contents(result)[:6] == ["one", "one!", "two", "two!", "three", "three!"]


def test_other_code_can_continue_files_and_tables(tmp_path):
    for kind in ("file", "sqlite"):
        agent_of(tmp_path, kind).run({"said": "one"})
        assert get_contents(agent_of(tmp_path, kind).run({"said": "two"})) == ["one", "one!", "two", "two!"]
    rows = json.loads((tmp_path / "kept/default.json").read_text())
    assert rows[0] == {"type": "human", "data": {"role": "user", "content": "one"}}
    with sqlite3.connect(tmp_path / "kept.db") as connection:
        actual = connection.execute("SELECT session_id, message FROM message_store ORDER BY id").fetchall()
    connection.close()
    assert (actual[0][0], json.loads(actual[0][1])) == ("default", rows[0])


def test_a_table_has_the_name_that_is_given(tmp_path):
    agent_of(tmp_path, '{enabled: true, kind: sqlite, dsn: kept.db, table: "odd \\"; name"}').run({"said": "one"})
    connection = sqlite3.connect(tmp_path / "kept.db")
    assert connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall() == [('odd "; name',)]
    connection.close()


@pytest.mark.parametrize("memory", ["{enabled: true, k: 3}", "{enabled: true, k: 3, kind: file, path: m.json}"])
def test_the_window_has_the_last_messages(tmp_path, memory):
    agent = agent_of(tmp_path, memory)
    state = agent.run({"said": "one"})
    assert [message["content"] for message in state["messages_window"]] == ["one", "one!"]
    state = agent.run({"said": "two"})
    assert [message["content"] for message in state["messages_window"]] == ["one!", "two", "two!"]
    assert len(state["messages"]) == 4
    session = Session(load(agent), {"said": "three"})
    assert [message["content"] for message in session.board["messages_window"]] == ["one!", "two", "two!"]


def test_without_k_there_is_no_window(tmp_path):
    assert "messages_window" not in agent_of(tmp_path).run({"said": "one"})


def test_the_key_of_a_conversation_can_be_configured_and_has_a_namespace_prefix(tmp_path):
    memory = (
        '{enabled: true, kind: file, path: "{namespace}/{session_id}.{said}.json", namespace: team, session_key: who}'
    )
    agent_of(tmp_path, memory).run({"said": "one", "who": "ada"})
    assert [str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.json")] == ["team/team_ada.one.json"]


def test_a_placeholder_of_the_path_that_is_not_an_input_is_not_replaced(tmp_path):
    agent_of(tmp_path, '{enabled: true, kind: file, path: "{other}/{session_id}.json"}').run({"said": "one"})
    (file,) = tmp_path.rglob("*.json")
    assert file.parent == tmp_path / "{other}"


def test_the_state_may_name_the_conversation(tmp_path):
    file = write(tmp_path, content(KINDS["file"]).replace("  reducer:", "  init: {session_id: carol}\n  reducer:"))
    build_agent_from_path(file).run({"said": "one"})
    assert (tmp_path / "kept/carol.json").exists()


@pytest.mark.parametrize(
    "name", ["../../escaped", "/etc/escaped", "..", ".", "a/../../b", "c:\\d", "e\0f", "~root", "x" * 300, "{said}"]
)
def test_no_name_escapes_the_folder(tmp_path, name):
    home = tmp_path / "home"
    home.mkdir()
    agent = agent_of(home)
    agent.run({"said": "one", "session_id": name})
    assert get_contents(agent.run({"said": "two", "session_id": name})) == ["one", "one!", "two", "two!"]
    assert [file for file in tmp_path.rglob("*.json") if file.parent != home / "kept"] == []
    assert len(list(home.rglob("*.json"))) == 1


def test_different_names_have_different_files(tmp_path):
    agent = agent_of(tmp_path)
    for name in ("a/b", "a_b", "a:b", "A_b"):
        agent.run({"said": name, "session_id": name})
    for name in ("a/b", "a_b", "a:b", "A_b"):
        assert get_contents(agent.run({"said": "x", "session_id": name}))[:2] == [name, f"{name}!"]


@pytest.mark.parametrize(
    "broken", ["{", "[1]", '{"a": 1}', '[{"type": "human"}, {}]', pytest.param("[" * 100_000, id="deep"), "\xff"]
)
def test_a_broken_file_is_reported_and_not_changed(tmp_path, broken):
    agent = agent_of(tmp_path)
    agent.run({"said": "one"})
    file = tmp_path / "kept/default.json"
    file.write_bytes(broken.encode("latin-1"))
    with pytest.raises(AgentRuntimeError, match=r"(?s)X423.*default\.json"):
        agent.run({"said": "two"})
    assert file.read_bytes() == broken.encode("latin-1")


def test_a_broken_table_is_reported(tmp_path):
    (tmp_path / "kept.db").write_text(
        "this is not a database, and it is longer than a header of one would ever be" * 20
    )
    with pytest.raises(AgentRuntimeError, match="X423"):
        agent_of(tmp_path, "sqlite").run({"said": "one"})


@pytest.mark.parametrize("broken", ["{", "[1]", pytest.param("[" * 100_000, id="deep"), b"\xff"])
def test_a_broken_row_is_reported(tmp_path, broken):
    agent = agent_of(tmp_path, "sqlite")
    agent.run({"said": "one"})
    with closing(sqlite3.connect(tmp_path / "kept.db")) as connection, connection:
        (table,) = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE '%message%'").fetchone()
        connection.execute(f"UPDATE {table} SET message = ?", (broken,))
    with pytest.raises(AgentRuntimeError, match=r"(?s)X423.*kept\.db"):
        agent.run({"said": "two"})


def test_an_unwritable_path_is_reported(tmp_path):
    (tmp_path / "kept").write_text("a file where the folder should be")
    with pytest.raises(AgentRuntimeError, match=r"X430|X423"):
        agent_of(tmp_path).run({"said": "one"})
    (tmp_path / "kept.db").mkdir()
    with pytest.raises(AgentRuntimeError, match="X362"):
        agent_of(tmp_path, "sqlite").run({"said": "one"})


def test_messages_are_a_list_or_absent(tmp_path):
    file = write(tmp_path, content(KINDS["inmemory"], inputs="[said, messages]"))
    with pytest.raises(AgentRuntimeError, match="X422"):
        build_agent_from_path(file).run({"said": "one", "messages": "text"})


def test_messages_of_the_caller_follow_the_stored_ones(tmp_path):
    agent = build_agent_from_path(write(tmp_path, content(KINDS["inmemory"], inputs="[said, messages]")))
    agent.run({"said": "one", "messages": None})
    state = agent.run({"said": "two", "messages": [{"role": "system", "content": "rule"}, "bare"]})
    assert get_contents(state) == ["one", "one!", "rule", "bare", "two", "two!"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("hi", ("human", "user", "hi")),
        (5, ("human", "user", "5")),
        ({"role": "user", "content": "a"}, ("human", "user", "a")),
        ({"role": "assistant", "content": "a"}, ("ai", "assistant", "a")),
        ({"type": "ai", "content": "a"}, ("ai", "assistant", "a")),
        ({"role": "system", "content": "a"}, ("system", "system", "a")),
        ({"role": "tool"}, ("tool", "tool", "")),
        ({"role": "critic", "content": "a"}, ("critic", "critic", "a")),
    ],
)
def test_a_single_message_needs_a_role(given, message):
    actual = to_message(given)
    assert (actual["type"], actual["role"], actual["content"]) == message


def test_further_fields_of_a_message_are_stored(tmp_path):
    agent = build_agent_from_path(write(tmp_path, content(KINDS["file"], inputs="[said, messages]")))
    agent.run({"said": "one", "messages": [{"role": "user", "content": "a", "mark": [1]}]})
    assert agent.run({"said": "two", "messages": []})["messages"][0]["mark"] == [1]


@pytest.mark.parametrize("memory", ["{enabled: true, kind: file}", "{enabled: true, kind: sqlite}"])
def test_the_repr_of_a_memory_names_its_place(memory):
    with pytest.raises(RecipeError, match="requires"):
        build_agent_from_yaml(yaml.safe_load(content(memory)))


def refused(agent):
    with pytest.raises(AgentRuntimeError) as caught:
        agent.run({"said": "one"})
    return caught.value.problems[0].code == "X362"


PLACES = {
    "file": ["../m.json", "a/../../m.json", "{tmp}/m.json", "link/m.json", "out.json", "dangling.json", "tools.json"],
    "sqlite": ["../m.db", "sqlite:///../m.db", "sqlite:///{tmp}/m.db", "link/m.db", "out.db"],
}


@pytest.mark.parametrize(("kind", "place"), [(kind, place) for kind, places in PLACES.items() for place in places])
def test_a_memory_stays_in_the_recipes_folder_unless_another_is_allowed(tmp_path, kind, place):
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    (home / "link").symlink_to(outside)
    (outside / "secret.json").write_text('[{"type": "human", "data": {"content": "secret"}}]')
    (home / "out.json").symlink_to(outside / "secret.json")
    (home / "dangling.json").symlink_to(outside / "new.json")
    (home / "out.db").symlink_to(outside / "new.db")
    word = "path" if kind == "file" else "dsn"
    memory = f'{{enabled: true, kind: {kind}, {word}: "{place.format(tmp=outside)}"}}'
    agent = agent_of(home, memory)
    (home / "tools.json").symlink_to(home / "tools.py")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert refused(agent)
    with pytest.raises(AgentRuntimeError, match="X362"):
        Session(load(home / "agent.yaml"), {"said": "one"}).run()
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    if place != "tools.json":  # a link to code stays refused: a memory is no code
        session = Session(load(home / "agent.yaml", allow=tmp_path), {"said": "one"})
        session.run()
        assert session.status == "finished"
        assert get_contents(session.board)[-2:] == ["one", "one!"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes in folders")
@pytest.mark.parametrize("kind", ["file", "sqlite"])
@pytest.mark.parametrize("place", ["pipe", "folder", "x" * 5000])
def test_a_memory_is_a_regular_file(tmp_path, kind, place):
    suffix = ".json" if kind == "file" else ".db"
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"folder{suffix}").mkdir()
    word = "path" if kind == "file" else "dsn"
    assert refused(agent_of(tmp_path, f'{{enabled: true, kind: {kind}, {word}: "{place}{suffix}"}}'))


@pytest.mark.parametrize(
    ("kind", "place"),
    [("file", name) for name in ("m.py", "m", ".bashrc", "m.json.py", "{said}", "m.db", "Makefile")]
    + [("sqlite", name) for name in ("m.py", "m", "m.json", "sqlite:///m.pth")],
)
def test_a_memory_has_the_suffix_of_its_kind(tmp_path, kind, place):
    word = "path" if kind == "file" else "dsn"
    with pytest.raises(
        AgentRuntimeError, match=rf"X362(.|\n)*use the suffix {'[.]json' if kind == 'file' else '[.]db'}"
    ):
        agent_of(tmp_path, f'{{enabled: true, kind: {kind}, {word}: "{place}"}}').run({"said": "one"})
    assert {file.name for file in tmp_path.iterdir()} == {"tools.py", "agent.yaml"}


def test_a_recipe_without_a_folder_stores_nothing_in_files_by_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tools = dict.fromkeys(("echo", "add", "failing", "raising"), lambda **words: words)
    with pytest.raises(AgentRuntimeError, match="X362"):
        Session(load(content(KINDS["file"])), {"said": "one"}, tools=tools)
    assert not (tmp_path / "kept").exists()


def test_writing_follows_no_symbolic_link_beside_the_file(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    agent = agent_of(home, "{enabled: true, kind: file, path: m.json}")
    (home / "m.json.new").symlink_to(tmp_path / "victim.py")
    agent.run({"said": "one"})
    assert not (tmp_path / "victim.py").exists()
    assert get_contents(agent.run({"said": "two"}))[:2] == ["one", "one!"]


@pytest.mark.parametrize("memory", ["file", "sqlite"])
def test_stored_text_is_readable_in_every_language(memory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent = agent_of(tmp_path, memory)
    agent.run({"said": "grüß 你好"})
    assert get_contents(agent.run({"said": "x"}))[0] == "grüß 你好"
    stored_bytes = b"".join(path.read_bytes() for path in tmp_path.rglob("kept*") if path.is_file())
    stored_bytes += b"".join(path.read_bytes() for path in (tmp_path / "kept").glob("*"))
    assert "grüß 你好".encode() in stored_bytes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, {"type": "human", "role": "user", "content": ""}),
        ({"role": "", "type": "assistant", "content": "a"}, {"type": "ai", "role": "assistant", "content": "a"}),
        ({"role": "user", "type": "ai", "content": "a"}, {"type": "human", "role": "user", "content": "a"}),
        ({"role": "human", "name": "Ada"}, {"type": "human", "role": "user", "content": "", "name": "Ada"}),
        (None, {"type": "human", "role": "user", "content": "None"}),
    ],
)
def test_a_message_is_completed(given, message):
    assert to_message(given) == message


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("a-b_c.d@e f", "a-b_c.d@e f"),
        ("x" * 80, "x" * 80),
        ("x" * 81, f"{'x' * 80}-{sha256(b'x' * 81).hexdigest()[:12]}"),
        ("a/b", f"a_b-{sha256(b'a/b').hexdigest()[:12]}"),
        ("a..b", f"a__b-{sha256(b'a..b').hexdigest()[:12]}"),
        (".", f"-{sha256(b'.').hexdigest()[:12]}"),
        (" .a/. ", f"a_-{sha256(b' .a/. ').hexdigest()[:12]}"),
        (7, "7"),
    ],
)
def test_the_name_of_a_conversation_becomes_a_part_of_its_files_name(tmp_path, name, part):
    agent_of(tmp_path).run({"said": "one", "session_id": name})
    assert [file.name for file in (tmp_path / "kept").iterdir()] == [f"{part}.json"]


@pytest.mark.parametrize(("key", "file"), [("", "_.json"), ("a b", "{a b}.json"), ("said", "one.json")])
def test_a_path_has_simple_values_of_inputs_only(tmp_path, key, file):
    memory = '{enabled: true, kind: file, path: "{%s}.json"}' % (key or "namespace")
    inputs = {"said": "one", "a b": "spaced", "deep": [1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent_of(tmp_path, memory).run(inputs)
    assert [path.name for path in tmp_path.glob("*.json")] == [file]


messages = st.lists(st.sampled_from("abc").map(to_message), max_size=4)


@given(stored=messages, ours=messages)
def test_a_finished_run_adds_only_what_is_not_stored(stored, ours):
    memory = Memory(MemoryConfig(enabled=True), Allowed.of(None, ()))
    memory.keep({}, {"messages": stored})
    assert memory.recall({}, {})["messages"] == stored
    memory.keep({}, {"messages": ours})
    kept = memory.recall({}, {})["messages"]
    common = 0
    while stored[common:] and ours[common:] and stored[common] == ours[common]:
        common += 1
    assert kept == stored + [message for message in ours[common:] if message not in stored[common:]]
    if ours[: len(stored)] == stored:  # as usual: the run has continued the conversation
        assert kept == ours


def test_a_memory_can_be_used_by_several_threads(agent):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(agent.run, {"said": "one"}).result()
    assert get_contents(agent.run({"said": "two"})) == ["one", "one!", "two", "two!"]
