"""The recipe and the script of the tests of the command line, and how a command is called."""

from __future__ import annotations

import json

from agentnb import cli

RECIPE = """\
apiVersion: coreason.ai/v2
kind: Recipe
metadata: {name: refunds}
interface: {inputs: {ticket: {type: string}}}
topology:
  entry_point: read
  nodes:
    - {id: read, type: agent, agent_ref: reader, inputs_map: {text: ticket}}
    - {id: sort, type: router, input_key: topic, routes: {refund: ask}, default_route: close}
    - {id: ask, type: human, prompt: Refund it?}
    - {id: close, type: agent, agent_ref: closer, inputs_map: {ticket: ticket}}
  edges:
    - {source: read, target: sort}
    - {source: ask, target: close}
"""
SCRIPT = """\
agents:
  reader: {topic: refund}
  closer: {closed: true}
answers: {ask: [yes please]}
"""


def called(capsys, *words):
    """Return what a command returned, printed and complained."""
    code = cli.main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def run_for_json(capsys, *words):
    """Return a command's exit code, the one document that it prints, and the codes of its problems."""
    code, out, err = called(capsys, *words, "--json")
    document = json.loads(out)
    assert err == ""
    return code, document, [problem["code"] for problem in document["problems"]]
