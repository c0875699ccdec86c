"""A real IPython shell with agentnb's magics in it."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell

import agentnb as nb
from tests.session.small_sessions import counting


@pytest.fixture
def shell():
    InteractiveShell.clear_instance()
    ipython = InteractiveShell.instance(colors="nocolor")
    ipython.extension_manager.load_extension("agentnb")
    yield ipython
    ipython.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.fixture
def agent(shell):
    """Say something to `%agent` on a session of the counting graph, or of another one."""

    def say(line, made=None, **inputs):
        if made is not None:
            session = made if isinstance(made, nb.Session) else nb.Session(nb.load(made), inputs)
            shell.user_ns["session"] = session
        return shell.run_line_magic("agent", line)

    say("board", counting(), n=0)
    return say
