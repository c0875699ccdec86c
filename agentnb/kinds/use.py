"""Calls the tool chosen by an agent's model as an effect, and writes the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentnb.board.masking import register_secrets
from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.kinds.agent_parts import leave, note_tool
from agentnb.recipe.model import Node
from agentnb.world.call_arguments import options_of
from agentnb.world.effect import Effect


class ToolFailed(Exception):
    """A tool reported a failure; `result` is its whole result."""

    def __init__(self, message: str, result: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.result = dict(result)


def bind(node: Node, world: Any) -> Perform:
    """Return the function that calls `decision`'s tool and appends its result to `tools_executed`.

    Time-out, attempts and back-off are the tool's own. A tool's failure is the step's failure; its result is listed in
    `tools_executed` all the same.
    """
    toolbox, options = world.toolbox(node), options_of(node)

    async def perform(work: Work) -> Outcome:
        decision = work.board["decision"]
        name, parameters = decision["tool_name"], decision["parameters"] or {}
        config = toolbox.config(name)
        own = {} if config is None else {"timeout": config.timeout, "attempts": config.retry_count + 1,
                                         "backoff": config.backoff, "repeatable": config.repeatable}  # fmt: skip
        effect = Effect(
            "tool", name, parameters, target=toolbox.attempt(name, work.run.ns), check=_check, **{**own, **options}
        )
        failure: Exception | None = None
        try:
            result = toolbox.came(name, await work.call(effect))
        except Exception as error:  # noqa: BLE001  (the tool's failure is a result of its own)
            failure = error
            known = getattr(error, "result", None)
            result = dict(known) if isinstance(known, Mapping) and known else toolbox.failed(name, error).to_dict()
        note_tool(work, decision, parameters, result)
        if toolbox.learns:  # an effect of its own: a replay does not repeat it
            given = {"success": result["success"]}
            await work.call(Effect("context", name, given, target=lambda **_: toolbox.learn(name, parameters, result)))
        if failure is not None:
            leave(work, failure)
            # A time-out is handled by the agent as well, like every failed tool.
            raise ToolFailed(str(result["error"]), result) from failure
        return Outcome({}, inputs=parameters, observation=result)

    return perform


def _check(result: Mapping[str, Any]) -> None:
    """Raise for a result that is a failure; mask its secrets before it is recorded and sent to the model.

    Raises:
        ToolFailed: it is.
    """
    register_secrets({"result": result["result"], "details": result["details"]})
    if not result["success"]:
        raise ToolFailed(str(result.get("error") or "the tool says that it failed"), result)


KIND = Kind("use", bind, step_type="TOOL_EXECUTION", keeps=True)
