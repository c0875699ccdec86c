from __future__ import annotations

import asyncio
import io
import sys
from types import SimpleNamespace

import pytest

from agentnb.errors import ExecutionError
from agentnb.secrets import hide
from agentnb.world.human_input import (
    WAIT,
    ask_on_terminal,
    is_in_kernel,
    is_on_terminal,
    parse_verdict,
    to_verdict,
    without_human_input,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    def typed(text):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
        monkeypatch.setattr(sys, "stdin", Terminal(text))
        monkeypatch.setattr(sys, "stdout", Terminal())

    return typed


def test_on_a_terminal_the_line_that_is_typed_is_the_answer(terminal):
    terminal("yes\n")
    assert is_on_terminal()
    assert ask_on_terminal("Go on?") == "yes"
    assert sys.stdout.getvalue() == "Go on?\n> "


def test_where_the_input_has_ended_a_person_has_to_come(terminal):
    terminal("")
    assert ask_on_terminal("Go on?") is WAIT


def test_in_a_notebook_nobody_is_asked_on_a_terminal(terminal, monkeypatch):
    terminal("yes\n")
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert is_in_kernel()
    assert ask_on_terminal("Go on?") is WAIT


def test_a_pipe_and_no_input_at_all_are_no_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    assert ask_on_terminal("Go on?") is WAIT
    monkeypatch.setattr(sys, "stdin", None)
    assert not is_on_terminal()


def test_while_nobody_attends_nobody_is_asked_in_threads_neither(terminal):
    terminal("yes\n")
    with without_human_input():
        assert ask_on_terminal("Go on?") is WAIT
        assert asyncio.run(asyncio.to_thread(ask_on_terminal, "Go on?")) is WAIT
        with without_human_input():
            pass
        assert not is_on_terminal()
    assert ask_on_terminal("Go on?") == "yes"


@pytest.mark.parametrize(
    ("line", "approved", "reason"),
    [
        ("yes", True, ""),
        (" Y ", True, ""),
        ("approve: it is cheap", True, "it is cheap"),
        ("no, too dear", False, "too dear"),
        ("deny", False, ""),
        ("nope", None, None),
        ("", None, None),
    ],
)
def test_a_line_that_was_typed_is_a_verdict_or_none(line, approved, reason):
    verdict = parse_verdict(line)
    assert verdict == (None if approved is None else {"approved": approved, "by": None, "reason": reason})


def test_a_verdict_hides_what_must_not_be_seen():
    hide("s3cr3t-4711")
    with pytest.raises(ExecutionError, match="X124") as caught:
        to_verdict({"approved": "s3cr3t-4711"})
    assert "4711" not in str(caught.value)
