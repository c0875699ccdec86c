from __future__ import annotations

import pytest

import agentnb as nb
from tests.magics.magic_texts import complete
from tests.session.small_sessions import graph


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


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("%agent help wh", ["who", "whynot", "why"]),
        ("%agent new small n", ["note=", "number="]),
        ("%agent new small number=5 n", ["note="]),
        ("%agent use se", ["session"]),
        ("%agent use ", ["session"]),
        ("%agent unbreak ", ["check"]),
        ("%agent unwatch n", ["n > 1"]),
        ("%agent speed f", ["full"]),
        ("%agent board n", ["n"]),
        ("%agent run d", ["done"]),
        ("%agent nothing ", []),
        ("%agent approve ", []),
    ],
)
def test_existing_names_are_completed(agent, shell, line, found):
    agent("break check")
    agent("watch n > 1")
    inputs = {"number": {"type": "integer"}, "note": {"type": "string"}}
    text = {"metadata": {"name": "small"}, "interface": {"inputs": inputs},
            "topology": [{"id": "one", "type": "agent", "agent_ref": "a"}]}  # fmt: skip
    shell.user_ns["small"] = nb.load(text)
    shell.user_ns["_9"] = shell.user_ns["session"]
    if found:
        assert sorted(complete(shell, line)) == sorted(found)
    else:
        assert not set(complete(shell, line)) & {"step", "check", "n"}


def test_without_a_session_its_names_are_not_completed(shell):
    assert "check" not in complete(shell, "%agent break ch")
