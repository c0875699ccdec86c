"""What the tests of the magics share: a recipe's text, and the problem of a line that is refused."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter

import agentnb as nb

TEXT = """
apiVersion: coreason.ai/v2
kind: Recipe
metadata: {name: small}
interface: {inputs: {question: {type: string}}}
topology:
  - {id: one, type: agent, agent_ref: a, inputs_map: {q: question}}
  - {id: two, type: agent, agent_ref: b}
"""


def wrong(verb, *words):
    with pytest.raises(nb.AgentNbError) as caught:
        verb(*words)
    return caught.value.problems[0]


def complete(shell, line):
    """Return what IPython proposes to put for the last word of a line."""
    shell.Completer.use_jedi = False
    with provisionalcompleter():
        return [completion.text for completion in shell.Completer.completions(line, len(line))]
