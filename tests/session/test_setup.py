from __future__ import annotations

import pytest

from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.session.setup import make_world, replace_world
from agentnb.world.llm.scripted import ScriptedClient
from agentnb.world.llm.simulated import SimulatedClient
from tests.dialects.agentruntime.agent_files import HEAD, line, text, write
from tests.session.small_sessions import graph


def test_a_recipe_without_tools_uses_the_given_ones():
    world = make_world(
        load(graph("a")), tools={"look": len}, llm=["one"], answers=["yes"], resources={int: 1}, strict=False
    )
    assert world.tools == {"look": len}
    assert isinstance(world.llm, ScriptedClient)
    assert (world.answers, world.resources, world.strict) == (["yes"], {int: 1}, False)


def test_without_arguments_there_is_no_model():
    world = make_world(load(graph("a")))
    assert (world.llm, world.tools, world.strict) == (None, {}, True)


def test_tools_of_a_recipe_are_loaded_at_session_start(tmp_path):
    recipe = load(write(tmp_path, text(line("a"))))
    (tmp_path / "tools.py").write_text("def echo(): return 'changed'\nadd = failing = raising = echo\n")
    assert make_world(recipe).tools["echo"]() == "changed"


def test_given_tools_replace_them_and_receive_their_config(tmp_path):
    content = text(line("a")).replace('impl: "tools.py#echo"', 'impl: "tools.py#echo", config: {k: 1}')
    world = make_world(load(write(tmp_path, content)), tools={"echo": lambda **given: given, "more": len})
    assert world.tools["echo"](q=2) == {"k": 1, "q": 2}
    assert world.tools["more"] is len
    assert set(world.tools) == {"echo", "add", "failing", "raising", "more"}


def test_all_tools_that_cannot_be_loaded_are_reported_at_once(tmp_path):
    recipe = load(write(tmp_path, text(line("a"))))
    (tmp_path / "tools.py").write_text("def echo(): ...\n")
    with pytest.raises(RecipeError) as caught:
        make_world(recipe)
    assert len(caught.value.problems) == 3


PROVIDED = HEAD.replace("{name: t}", "{name: t, defaults: {llm: 'mine:some'}, providers: {mine: {type: simulated}}}")


def test_the_provider_of_the_recipe_is_the_default_model(tmp_path):
    recipe = load(write(tmp_path, text(line("a"), head=PROVIDED)))
    assert isinstance(make_world(recipe).llm, SimulatedClient)
    assert isinstance(make_world(recipe, llm=["one"]).llm, ScriptedClient)


def test_tools_from_elsewhere_must_be_allowed(tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    other.mkdir()
    (other / "far.py").write_text("def echo(): return 'far'\n")
    file = write(home, text(line("a")).replace("tools.py#echo", "../other/far.py#echo"))
    with pytest.raises(RecipeError):
        make_world(load(file))
    assert make_world(load(file, allow=[str(other)])).tools["echo"]() == "far"


def test_unchanged_tools_of_a_recipe_are_kept(tmp_path):
    recipe = load(write(tmp_path, text(line("a"))))
    old = make_world(recipe, llm=["one"], tools={"add": lambda **given: "mine"})
    same = replace_world(old, recipe, load(write(tmp_path, "\n\n" + text(line("a", "b")))))
    assert {name: same.tools[name] is old.tools[name] for name in old.tools} == dict.fromkeys(old.tools, True)
    assert (same.llm, same.passed_tools.keys()) == (old.llm, {"add"})
    other = replace_world(old, recipe, recipe, llm=["two"], tools={"echo": lambda **given: "new"})
    assert [other.tools[name]() for name in ("echo", "add")] == ["new", "mine"]
    assert other.llm is not old.llm


def test_a_changed_tool_is_reloaded_and_a_removed_one_is_dropped(tmp_path):
    recipe = load(write(tmp_path, text(line("a"))))
    old = make_world(recipe, tools={"add": lambda **given: given, "more": len})
    changed = text(line("a")).replace('impl: "tools.py#add"', 'impl: "tools.py#echo", config: {by: 7}')
    changed = changed.replace('  - {id: raising, kind: python, impl: "tools.py#raising"}\n', "")
    now = replace_world(old, recipe, load(write(tmp_path, changed)))
    assert now.tools["add"](n=1) == {"by": 7, "n": 1}  # what was given in its place is called as it is now
    assert set(now.tools) == {"echo", "add", "failing", "more"}


def test_a_recipe_may_add_a_provider(tmp_path):
    recipe = load(write(tmp_path, text(line("a"))))
    provided = load(write(tmp_path, text(line("a"), head=PROVIDED)))
    assert isinstance(replace_world(make_world(recipe), recipe, provided).llm, SimulatedClient)
    assert isinstance(replace_world(make_world(recipe, llm=["x"]), recipe, provided).llm, ScriptedClient)
