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


def test_at_the_end_of_input_a_person_is_required(terminal):
    terminal("")
    assert ask_on_terminal("Go on?") is WAIT


def test_in_a_notebook_no_question_is_asked_on_a_terminal(terminal, monkeypatch):
    terminal("yes\n")
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert is_in_kernel()
    assert ask_on_terminal("Go on?") is WAIT


def test_a_pipe_or_missing_input_is_not_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    assert ask_on_terminal("Go on?") is WAIT
    monkeypatch.setattr(sys, "stdin", None)
    assert not is_on_terminal()


def test_unattended_runs_ask_nobody_in_threads_either(terminal):
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
def test_a_typed_line_is_a_verdict_or_invalid(line, approved, reason):
    verdict = parse_verdict(line)
    assert verdict == (None if approved is None else {"approved": approved, "by": None, "reason": reason})


def test_a_verdict_masks_secrets():
    hide("s3cr3t-4711")
    with pytest.raises(ExecutionError, match="X124") as caught:
        to_verdict({"approved": "s3cr3t-4711"})
    assert "4711" not in str(caught.value)
