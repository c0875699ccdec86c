"""Logs that the real package wrote; nothing here changes them, so one of each is enough."""

from __future__ import annotations

import activegraph
import pytest

from tests.dialects.activegraph.package_logs import programs


@pytest.fixture(autouse=True)
def _no_behaviors_of_others():
    yield
    activegraph.clear_registry()


@pytest.fixture(scope="session")
def team_path(tmp_path_factory):
    """A run with objects, patches, a failure and an approval, and a fork of it, and a fork of that."""
    path = tmp_path_factory.mktemp("team") / "team.db"
    run = programs.run_team(path)
    fork = run.fork("evt_010", label="another way")
    fork.run_until_idle()
    second_fork = fork.fork("evt_012", label="once more")
    programs.close(second_fork, fork, run)
    return path


@pytest.fixture(scope="session")
def model_path(tmp_path_factory):
    """A run of a model that uses a tool."""
    path = tmp_path_factory.mktemp("model") / "model.db"
    programs.close(programs.run_model(path))
    return path


@pytest.fixture(scope="session")
def late_path(tmp_path_factory):
    """A run with a behavior that waits for others, and a pattern."""
    path = tmp_path_factory.mktemp("late") / "late.db"
    programs.close(programs.run_late(path))
    return path


@pytest.fixture(scope="session")
def archived_path(tmp_path_factory):
    """The same run, its events put into the archive, and a fork that stands on the state that is kept for them."""
    from activegraph.store.retention import compact

    path = tmp_path_factory.mktemp("archived") / "archived.db"
    programs.close(programs.run_late(path))
    compact(str(path), "run-late")
    run = activegraph.Runtime.load(str(path), "run-late", behaviors=[])
    fork = run.fork(run.graph.events[-1].id, label="behind the archive")
    fork.graph.add_object("note", {"text": "later"})
    programs.close(fork, run)
    return path
