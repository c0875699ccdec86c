from __future__ import annotations

import asyncio

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import agentnb as nb
from agentnb.magics import VERBS
from tests.session.making import asking, broken, calling, counting, graph, looping

TEXT = """
apiVersion: coreason.ai/v2
kind: Recipe
metadata: {name: small}
interface: {inputs: {question: {type: string}}}
topology:
  - {id: one, type: agent, agent_ref: a, inputs_map: {q: question}}
  - {id: two, type: agent, agent_ref: b}
"""


@pytest.fixture
def shell():
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(colors="nocolor")
    made.extension_manager.load_extension("agentnb")
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.fixture
def agent(shell):
    """Say something to `%agent` on a session of the counting graph, or of another one."""

    def say(line, made=None, **inputs):
        if made is not None:
            shell.user_ns["session"] = nb.Session(nb.load(made), inputs)
        return shell.run_line_magic("agent", line)

    say("board", counting(), n=0)
    return say


def wrong(verb, *words):
    with pytest.raises(nb.AgentNbError) as caught:
        verb(*words)
    return caught.value.problems[0]


def test_a_cell_becomes_a_recipe(shell):
    recipe = shell.run_cell_magic("recipe", "small", TEXT)
    assert shell.user_ns["small"] is recipe
    assert (recipe.name, list(recipe.nodes)) == ("small", ["one", "two"])
    assert shell.run_cell_magic("recipe", "", TEXT) is shell.user_ns["recipe"]


def test_a_cell_that_is_no_recipe_says_so_without_a_traceback(shell, capsys):
    result = shell.run_cell("%%recipe small\nkind: Recipe\ntopology: 5\n")
    out = capsys.readouterr()
    assert isinstance(result.error_in_exec, nb.RecipeError)
    assert "Traceback" not in out.out + out.err
    assert "where:" in out.out + out.err
    assert "small" not in shell.user_ns


@pytest.mark.parametrize("line", ["5x", "a b", "a.b"])
def test_a_recipe_needs_a_name_that_can_be_a_variable(shell, line):
    assert wrong(shell.run_cell_magic, "recipe", line, TEXT).code == "U401"


def test_without_a_cell_there_is_no_recipe(shell):
    assert "no text" in wrong(shell.run_line_magic, "recipe", "small").what


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


def test_the_recipe_that_was_loaded_last_is_taken(shell):
    shell.run_cell_magic("recipe", "small", TEXT)
    session = shell.run_line_magic("agent", "new question=why")
    assert session.recipe is shell.user_ns["small"]
    assert shell.user_ns["session"] is session


def test_there_is_no_such_recipe(shell):
    shell.run_cell_magic("recipe", "small", TEXT)
    assert "did you mean 'small'" in wrong(shell.run_line_magic, "agent", "new smal").do


def test_forwards_and_back(agent):
    assert agent("step") == "paused after step 1, next check"
    assert agent("step 2") == "paused after step 3, next check"
    assert agent("back") == "paused after step 2, next add"
    assert agent("back 2") == "ready after step 0, next add"
    assert agent("run") == "finished after step 7"
    assert agent("goto 3") == "paused after step 3, next check"


def test_over_into_and_out(agent, shell):
    made = nb.Session(nb.load(looping(calling("look"), times=2)), {"word": "rain"}, tools={"look": lambda word: word})
    shell.user_ns["session"] = made
    assert agent("over") == "paused after step 9, next done"
    agent("goto 1")
    assert agent("out") == "paused after step 9, next done"
    agent("goto 2")
    assert agent("into") == "in_flight after step 2, next look, held before tool call 'look' of 'look'"
    assert agent("step") == "paused after step 3, next after"


@pytest.mark.parametrize(("until", "position"), [("check", 1), ("4", 4), ("n == 2", 3), ("n == 2 and n > 1", 3)])
def test_run_until(agent, shell, until, position):
    agent(f"run {until}")
    assert shell.user_ns["session"].position == position


def test_breakpoints_and_watches(agent, shell):
    point = agent("break check when n >= 2")
    assert (point.node, point.text) == ("check", "n >= 2")
    agent("run")
    assert shell.user_ns["session"].board["n"] == 2
    assert dict(agent("watch n * 10")) == {"n * 10": 20}
    assert "'chek'" in wrong(agent, "break chek").what
    assert wrong(agent, "break").code == "U401"


def test_board_edit_and_trace(agent, shell):
    assert dict(agent("board")) == {"n": 0}
    assert dict(agent("edit n 2"))["n"] == 2
    assert agent("edit text some words")["text"] == "some words"
    assert agent('edit deep.x {\\"a\\": 1}')["deep"] == {"x": {"a": 1}} or agent("board")["deep.x"]
    agent("step")
    assert agent("trace")["node"].tolist() == ["add"]
    assert wrong(agent, "edit n").code == "U401"


def test_answer(agent):
    agent("board", asking())
    assert agent("run").startswith("waiting after step 1, next ask\nX110")
    assert agent("answer yes, do it") == "paused after step 2, next after"
    assert agent("board")["answer"] == "yes, do it"
    assert wrong(agent, "answer yes").code == "X115"


def test_a_failure_is_told_with_its_problem(agent):
    agent("board", broken())
    told = agent("run")
    assert told.startswith("failed after step 2, next middle\nX100")
    assert "retry()" in told


def test_a_fork_becomes_the_current_session(agent, shell):
    agent("step 2")
    made = agent("fork other")
    assert shell.user_ns["other"] is made
    agent("edit n 9")
    assert (made.board["n"], shell.user_ns["session"].board["n"]) == (9, 1)
    assert wrong(agent, "fork 5x").code == "U401"


def test_start_and_pause_name_run_where_no_loop_runs(agent):
    assert "session.run()" in wrong(agent, "start").do
    assert agent("pause") == "ready after step 0, next add"


def test_start_runs_beside(agent, shell):
    async def main():
        assert agent("start") == "running after step 0, next add"
        await shell.user_ns["session"].wait()

    asyncio.run(main())
    assert shell.user_ns["session"].status == "finished"


def test_help_names_every_verb(agent, capsys):
    agent("help")
    agent("")
    out = capsys.readouterr().out
    assert all(f"%agent {verb}" in out for verb in VERBS)
    assert all(line.startswith("%agent ") and ": " in line for line in out.splitlines())


@pytest.mark.parametrize(("line", "told"), [("stp", "did you mean 'step'"), ("zzz", "see %agent help")])
def test_there_is_no_such_verb(agent, line, told):
    assert told in wrong(agent, line).do


@pytest.mark.parametrize("line", ["step x", "goto", "back -1", "goto 1.5"])
def test_a_number_is_needed(agent, line):
    assert wrong(agent, line).code == "U401"


def test_there_is_no_session_yet(shell):
    assert "no session yet" in wrong(shell.run_line_magic, "agent", "step").what


def test_an_error_is_shown_without_a_traceback(agent, shell, capsys):
    result = shell.run_cell("%agent goto 99")
    out = capsys.readouterr()
    assert isinstance(result.error_in_exec, nb.ExecutionError)
    assert "Traceback" not in out.out + out.err
    assert "X111" in out.out + out.err


def complete(shell, line):
    """Return what IPython proposes to put for the last word of a line."""
    shell.Completer.use_jedi = False
    with provisionalcompleter():
        return [found.text for found in shell.Completer.completions(line, len(line))]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("%agent st", ["step", "start"]),
        ("%agent break ch", ["check"]),
        ("%agent break ", ["add", "check", "done"]),
        ("%agent edit ", ["n"]),
        ("%agent load tri", ["triage"]),
        ("%agent new sm", ["small"]),
        ("%agent step ", []),
    ],
)
def test_completion(agent, shell, line, found):
    shell.user_ns["small"] = nb.load(graph("a"))
    proposed = complete(shell, line)
    assert set(found) <= set(proposed)
    if found:
        assert len(proposed) < 20  # the shell's own names are not among them


def test_a_stray_quote_is_part_of_its_word(agent, shell):
    agent("board", asking())
    agent("run")
    agent("answer it's fine")
    assert shell.user_ns["session"].board["answer"] == "it's fine"
