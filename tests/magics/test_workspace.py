from __future__ import annotations

import agentnb as nb
from agentnb.magics.workspace import Workspace, format_status
from tests.magics.magic_texts import wrong
from tests.session.small_sessions import counting


def session():
    return nb.Session(nb.load(counting()), {"n": 0})


def test_the_current_session_is_the_last_one_created_else_the_variable_session():
    bench = Workspace({})
    assert "no session yet" in wrong(lambda: bench.session).what
    bench.names["session"] = first = session()
    assert bench.session is first
    second = bench.take("other", session())
    assert (bench.session, bench.names["other"]) == (second, second)
    assert bench.use("session") is first
    del bench.names["other"]
    bench.session_name = "other"
    assert bench.session is first


def test_the_default_recipe_is_the_last_one_or_the_variable_recipe():
    recipe = nb.load(counting())
    bench = Workspace({"recipe": recipe, "_1": recipe, "n": 5})
    assert bench.recipe("") is recipe
    other = bench.keep("other", nb.load(counting()))
    assert (bench.recipe(""), bench.recipe("recipe")) == (other, recipe)
    assert bench.of(nb.Recipe) == ["recipe", "other"]
    assert "'n'" in wrong(bench.recipe, "n").what


def test_the_status_is_one_line():
    run = session()
    run.step()
    assert format_status(run) == "paused after step 1, next check"
