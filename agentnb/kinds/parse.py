"""Parses the decision of an agent's model: a tool call, an answer, or neither."""

from __future__ import annotations

from typing import Any

from agentnb.board.masking import register_secrets
from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.kinds.agent_parts import recording_failure
from agentnb.kinds.context import ODD
from agentnb.recipe.model import Node
from agentnb.world.llm.decision import as_text, asked_calls, calls_before, decision_of, native_decisions_of


def bind(node: Node, world: Any) -> Perform:
    """Return the function that reads `answer` and writes `decision`.

    JSON in an unexpected form is a warning: the step's thought states what is odd. No JSON at all is a failure. With
    `params["native"]` the answer is a text or tool calls: see `_native`.
    """
    if node.params.get("native"):
        return _native

    def perform(work: Work) -> Outcome:
        with recording_failure(work):
            found = decision_of(work.board.get("answer"))
        register_secrets({"parameters": found.parameters})  # it may be a person's answer rather than a model's
        thought = None
        if found.kind == "other":
            thought = f"{ODD}unexpected JSON: {found.why}"
        elif found.fenced:
            thought = "the JSON stood in a fence"
        return Outcome({"decision": found.to_dict()}, thought=thought, observation=found.to_dict())

    return perform


def _native(work: Work) -> Outcome:
    """Write the first call of an answer as `decision` and the others as `calls`; or the answer itself, if it is text.

    `call` numbers them over all answers of the agent. Text that accompanies the calls is the step's thought.
    """
    board = work.board
    with recording_failure(work):
        said = board.get("answer")
        found = [each.to_dict() for each in native_decisions_of(said)]
    register_secrets([{"parameters": each["parameters"]} for each in found])
    if not asked_calls(said):
        return Outcome({"decision": found[0]}, observation=found[0])
    before = calls_before(board.get("conversation"))
    first, *rest = [{**each, "call": before + number} for number, each in enumerate(found)]
    beside = as_text(said.get("content") or "").strip() or None
    return Outcome({"decision": first, "calls": rest}, thought=beside, observation=found)


KIND = Kind("parse", bind, step_type="REASONING", keeps=True)
