"""What a database refuses is told in words that say what to do, and tell no secret."""

from __future__ import annotations

import pytest

from agentnb.errors import StoreError
from agentnb.secrets import hide
from agentnb.store import SqlLog, open_log
from agentnb.store.database_errors import _WORDS, make_driver_error
from tests.store.stores import row


@pytest.mark.parametrize("code", sorted(_WORDS))
def test_each_failure_is_a_complete_problem(code):
    error = make_driver_error(code, "runs.db", ValueError("so it is\n  said"), "NAME")
    (problem,) = error.problems
    assert isinstance(error, StoreError)
    assert (problem.code, problem.where) == (code, "runs.db")
    assert problem.why == "the database reports: so it is said (NAME)"
    assert problem.what
    assert problem.do


def test_each_failure_is_distinguished():
    assert len({words.what for words in _WORDS.values()}) == len(_WORDS)


def test_a_secret_is_not_reported():
    hide("s3cr3t-77")
    assert "s3cr3t-77" not in str(make_driver_error("L421", "runs.db", ValueError("no login with s3cr3t-77")))


def test_an_error_without_message_is_reported_by_its_name():
    assert make_driver_error("L427", "runs.db", KeyError()).problems[0].why == "the database reports: KeyError"


@pytest.mark.parametrize("name", ["x" * 300, "x" * 250, "~nobody-has-this-name/runs.db", ".", "file/inside.db"])
@pytest.mark.parametrize("use", [SqlLog.runs, lambda log: log.create(row("one"))], ids=["read", "written"])
def test_an_impossible_file_name_is_a_problem(name, use, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as caught:
        use(SqlLog(name))
    assert caught.value.problems[0].code in ("L410", "L414", "L420")


def test_an_invalid_string_is_not_an_error_of_the_server(tmp_path):
    log = open_log(tmp_path / "runs.db")
    log.create(row("one"))
    with pytest.raises(StoreError) as caught:
        log.run("\ud800")
    (problem,) = caught.value.problems
    assert (problem.code, "PostgreSQL" in str(problem)) == ("L429", False)
