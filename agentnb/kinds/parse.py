"""parse: reads what an agent's model has decided: to call a tool, to answer without one, or nothing of the two."""

from __future__ import annotations

from typing import Any

from agentnb.board.secrets import hide_found
from agentnb.engine.work import Kind, Outcome, Perform, Work
from agentnb.kinds.agent_parts import told_why
from agentnb.kinds.context import ODD
from agentnb.recipe.model import Node
from agentnb.world.llm.decision import decision_of


def bind(node: Node, world: Any) -> Perform:
    """Return the function that reads `answer` and writes `decision`.

    JSON that is not what was asked for is a warning: the step's thought says what is odd. No JSON at all is a failure.
    """

    def perform(work: Work) -> Outcome:
        with told_why(work):
            found = decision_of(work.board.get("answer"))
        hide_found({"parameters": found.parameters})  # it may be the answer of a person, that no model has given
        thought = None
        if found.kind == "other":
            thought = f"{ODD}unexpected JSON: {found.why}"
        elif found.fenced:
            thought = "the JSON stood in a fence"
        return Outcome({"decision": found.to_dict()}, thought=thought, observation=found.to_dict())

    return perform


KIND = Kind("parse", bind, step_type="REASONING", shape="hexagon", keeps=True)
