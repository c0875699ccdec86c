from __future__ import annotations

import pytest

import agentnb as nb
from tests.magics.magic_texts import TEXT, wrong
from tests.session.small_sessions import counting


def test_load_new_and_step(shell, tmp_path):
    file = tmp_path / "my recipe.yaml"
    file.write_text(TEXT, encoding="utf-8")
    recipe = shell.run_line_magic("agent", f'load "{file}" as small')
    assert shell.user_ns["small"] is recipe
    session = shell.run_line_magic("agent", "new small as run question=why")
    assert shell.user_ns["run"] is session
    assert dict(session.board) == {"question": "why"}
    assert shell.run_line_magic("agent", "step") == "paused after step 1, next two"


def test_inputs_are_json_or_text(shell):
    shell.run_line_magic("agent", "load triage as triage")
    with pytest.warns(UserWarning, match="R220: input 'flag' is not known"):
        session = shell.run_line_magic("agent", "new triage ticket='a b' n=5 list=[1] flag=true url=a=b empty=")
    assert {key: session.board[key] for key in ("ticket", "n", "list", "flag", "url", "empty")} == {
        "ticket": "a b",
        "n": 5,
        "list": [1],
        "flag": True,
        "url": "a=b",
        "empty": "",
    }


def test_an_input_that_is_declared_as_text_is_text(shell):
    shell.run_cell_magic("recipe", "small", TEXT)
    session = shell.run_line_magic("agent", "new small question=4711")
    assert session.board["question"] == "4711"
    assert shell.run_line_magic("agent", "edit question 5")["question"] == "5"


def test_the_last_loaded_recipe_is_used(shell):
    shell.run_cell_magic("recipe", "small", TEXT)
    session = shell.run_line_magic("agent", "new question=why")
    assert session.recipe is shell.user_ns["small"]
    assert shell.user_ns["session"] is session


def test_an_unknown_recipe_is_reported(shell):
    shell.run_cell_magic("recipe", "small", TEXT)
    assert "did you mean 'small'" in wrong(shell.run_line_magic, "agent", "new smal").do


def test_a_fork_becomes_the_current_session(agent, shell):
    agent("step 2")
    fork = agent("fork other")
    assert shell.user_ns["other"] is fork
    agent("edit n 9")
    assert (fork.board["n"], shell.user_ns["session"].board["n"]) == (9, 1)
    assert wrong(agent, "fork 5x").code == "U401"


def test_another_session_is_chosen(agent, shell):
    shell.user_ns["other"] = nb.Session(nb.load(counting()), {"n": 1})
    assert agent("use other") is shell.user_ns["other"]
    agent("step")
    assert [shell.user_ns[name].position for name in ("session", "other")] == [0, 1]
    assert "did you mean 'other'" in wrong(agent, "use othe").do
    assert wrong(agent, "use").code == "U401"


def test_a_run_is_stored_listed_and_restored(agent, shell, tmp_path):
    file = tmp_path / "runs.db"
    shell.user_ns["session"] = nb.Session(nb.samples("triage"), {"ticket": "late"}, run_id="mine")
    agent("step 2")
    agent(f'save "{file}"')
    assert agent(f'runs "{file}"')["run_id"].tolist() == ["mine"]
    agent("load triage")
    actual = agent(f'open "{file}" mine as again')
    assert (actual is shell.user_ns["again"], actual.position, actual._parts.state.read_only_reason) == (True, 2, None)
    assert agent("step").startswith("paused after step 3")
    del shell.user_ns["recipe"]
    assert agent(f'open "{file}"')._parts.state.read_only_reason is not None


def test_forks_are_shown_as_a_tree_and_a_run_is_replayed(agent, capsys):
    agent("step 2")
    agent("fork other")
    agent("tree")
    assert "other" in capsys.readouterr().out
    assert agent("replay").ok
