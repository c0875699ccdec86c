from __future__ import annotations

import pytest

from agentnb.dialects.polaris import Graph, GraphExecutor
from tests.dialects.polaris.polaris_graphs import Plan, note, path, plan, tell


def session_of(key, cases, default=None):
    graph = Graph().add_system(plan).add_switch("route", Plan, lambda _: key, cases, default).add_system(plan)
    return GraphExecutor().session(graph)


@pytest.mark.parametrize(
    ("key", "runs", "observed"),
    [("a", "tell", {"case": "a", "used_default": False}), ("z", "plan_2", {"case": "default", "used_default": True})],
)
def test_the_case_of_the_key_runs_or_the_default(key, runs, observed):
    session = session_of(key, {"a": tell, "b": note}, plan)
    session.run()
    assert path(session) == ["plan", "route enter", runs, "route leave", "plan_3"]
    assert session.trace.steps[3].observation == observed


def test_of_two_equal_cases_the_first_runs():
    session = session_of("a", [("a", tell), ("a", note)])
    session.run()
    assert path(session)[2] == "tell"


def test_keys_need_not_be_strings():
    session = session_of(2, {1: tell, 2: note})
    session.run()
    assert path(session)[2] == "note"


def test_without_a_case_and_a_default_it_fails_and_names_the_key():
    session = session_of("asks", {"ask": tell})
    session.run()
    assert session.error.code == "X452"
    assert "'asks'" in session.error.what
    assert session.error.do == "did you mean 'ask'?"
