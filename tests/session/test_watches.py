from __future__ import annotations

import pytest

from agentnb.errors import RecipeError
from tests.session.small_sessions import counting, session


def test_watches_have_the_values_of_the_current_position():
    run = session(counting(), {"n": 0})
    run.watch("n * 2").watch({"==": [{"var": "n"}, 1]})

    def large(board):
        return board["n"] > 2

    run.watch(large)
    names = list(run.watches)
    assert (names[0], names[2]) == ("n * 2", "large")
    run.step()
    assert list(run.watches.values()) == [2, True, False]
    assert list(run.back().watches.values()) == [0, False, False]
    assert run.watches["n * 2"] == 0
    assert repr(run.watches).splitlines()[0] == "n * 2: 0"


def test_a_failing_watch_reports_its_error():
    run = session(counting(), {"n": 0})
    run.watch(lambda board: board["gone"])
    (watched,) = run.watches.values()
    assert "KeyError: 'gone'" in watched
    run.watch("n > 1")
    run.edit({"n": "text"})
    assert "X3" in run.watches["n > 1"]


def test_a_wrong_condition_is_a_problem_at_once():
    run = session(counting(), {"n": 0})
    with pytest.raises(RecipeError):
        run.watch("n ==")
    assert len(run.watches) == 0
    assert repr(run.watches) == "no watches"


def test_a_text_that_is_a_path_of_the_board_is_that_path():
    run = session(counting(), {"n": 0, "task#1": {"title": "read", "a.b": 7}, "two words": 1, "n-1": "a key"})
    for text in ("task#1.title", "task#1.a.b", "two words", "n-1", "n - 1", "task#2"):
        run.watch(text)
    *actual, later = run.watches.values()
    assert actual == ["read", 7, 1, "a key", -1]
    assert "X314" in later
    assert run.edit({"task#2": 5}).watches["task#2"] == 5


def test_a_breakpoint_reads_such_a_path_too():
    run = session(counting(), {"n": 0, "task#1": {"done": False}})
    run.breakpoints.add(when="task#1.done")
    run.step()
    run.edit({"task#1.done": True})
    run.run()
    assert run.stopped_by.text == "task#1.done"


def test_a_watch_can_be_removed():
    run = session(counting(), {"n": 0})
    run.watch("n")
    run.watches.remove("n")
    run.watches.remove("never there")
    assert dict(run.watches) == {}


def test_a_watch_runs_and_changes_nothing():
    run = session(counting(), {"n": 0, "list": [1]})
    run.watch(lambda board: board["list"].append(2))
    assert dict(run.watches)
    assert run.board["list"] == [1]
