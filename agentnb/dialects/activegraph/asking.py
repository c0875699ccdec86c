"""asking: models and tools, asked through the run's one door: what they answered is recorded, and what went wrong.

Neither raises at the door: an answer says in itself that it is a failure, so that a replay fails in the same words.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.secrets import masked
from agentnb.board.values import thaw
from agentnb.dialects.activegraph.caches import LLMCache, ToolCache
from agentnb.dialects.activegraph.errors import LLMBehaviorError, UnknownToolError
from agentnb.dialects.activegraph.events import canonical
from agentnb.dialects.activegraph.models import Asked, messages_from, response_dict, response_of
from agentnb.dialects.activegraph.tools import Tool, ToolContext
from agentnb.engine.work import Effect
from agentnb.errors import AgentNbError
from agentnb.world.llm import base
from agentnb.world.world import asked_before

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.party import Party
    from agentnb.engine.work import Work

TOO_MANY: Final = 429  # the status of a server that is asked too often
UNKNOWN_HERE: Final = frozenset({401, 403})  # those of one that does not let this key in
AGAIN: Final = frozenset({"llm.network_error", "llm.rate_limited"})


class Paid(dict[str, Any]):
    """What a tool has answered, with what it cost."""

    usage = base.Usage()


class Asking:
    """How the behaviours of one runtime ask models and tools: how often, with which caches."""

    def __init__(
        self,
        party: Party,
        *,
        attempts: int = 3,
        delays: tuple[float, float] = (0.5, 8.0),
        caches: tuple[LLMCache | None, ToolCache | None] = (None, None),
        caching: tuple[bool, bool] = (False, False),
        reinvoke: bool = False,
        tools: Callable[[], Iterable[Tool]] = list,
    ) -> None:
        self.party, self.attempts, self.delays, self.reinvoke, self.tools = party, attempts, delays, reinvoke, tools
        self.caching = (caching[0] or caches[0] is not None, caching[1] or caches[1] is not None)
        self.llm_cache, self.tool_cache = caches[0] or LLMCache(), caches[1] or ToolCache()

    def retries(self, attempts: int | None, first: float | None, most: float | None) -> dict[str, Any]:
        """Return how often a model is asked again, and when, in the words of a Runtime; None: as it is here."""
        return {
            "llm_retry_max_attempts": self.attempts if attempts is None else attempts,
            "llm_retry_initial_delay_seconds": self.delays[0] if first is None else first,
            "llm_retry_max_delay_seconds": self.delays[1] if most is None else most,
        }

    def know(self, events: Iterable[Any]) -> None:
        """Take what a log tells of into the caches that are used."""
        known = list(events)
        if self.caching[0]:
            self.llm_cache.take(known)
        if self.caching[1]:
            self.tool_cache.take(known)

    # -- models --------------------------------------------------------------------------------------------------

    def model_of(self, behavior: Any) -> str:
        """Return the name of the model that a behaviour asks."""
        return str(behavior.model or getattr(self.party.llm, "default_model", None) or "default")

    def answered(self, prompt_hash: str) -> dict[str, Any] | None:
        """Return what a model has answered to this before, where that is used."""
        return self.llm_cache.get(prompt_hash) if self.caching[0] else None

    async def ask(self, work: Work, words: dict[str, Any]) -> dict[str, Any]:
        """Ask the model once, and return its answer as its event tells it, or {"failed": ...}.

        `words` are what it is asked with, and afterwards what it was: a person may have changed what was held.
        """
        provider, given = self.party.llm, dict(words)

        def asked(**now: Any) -> Any:
            began = perf_counter()
            try:
                answer = provider.complete(**_changed(given, sent, now), **_asker(provider, work, words["model"]))
                return later(answer, began) if inspect.isawaitable(answer) else _told(response_dict(answer))
            except Exception as error:  # noqa: BLE001  (whatever a provider raises is an answer of its own)
                return base.LLMResponse({"failed": _failure(error, words["model"], perf_counter() - began)})

        async def later(answer: Awaitable[Any], began: float) -> Any:
            try:
                return _told(response_dict(await answer))
            except Exception as error:  # noqa: BLE001  (as above)
                return base.LLMResponse({"failed": _failure(error, words["model"], perf_counter() - began)})

        sent = canonical({"model": words["model"], "system": words["system"],
                          "messages": [each.to_dict() for each in words["messages"]]})  # fmt: skip
        answer = await work.call(Effect("llm", words["model"], sent, target=asked))
        words |= _changed(given, sent, thaw(work.calls[-1].arguments))
        return response_of(getattr(answer, "content", answer), words["model"])

    async def wait(self, work: Work, attempt: int, failure: Mapping[str, Any]) -> None:
        """Wait before a model is asked once more."""
        first, most = self.delays
        seconds = max(min(first * 2**attempt, most), float(failure.get("retry_after_seconds") or 0.0))
        clock = work.run.clock
        await work.call(Effect("sleep", "retry", {"seconds": seconds}, target=clock.sleep, repeatable=True))

    def too_dear(self, words: Mapping[str, Any], left: Any) -> Any:
        """Return what a question would cost, where that is more than is left; else None."""
        provider = self.party.llm
        if left is None or not hasattr(provider, "estimate_cost"):
            return None
        tokens = provider.count_tokens(system=words["system"], messages=words["messages"], model=words["model"])
        cost = provider.estimate_cost(input_tokens=tokens, output_tokens=words["max_tokens"], model=words["model"])
        return cost if cost > left else None

    # -- tools ---------------------------------------------------------------------------------------------------

    def tools_of(self, behavior: Any) -> dict[str, Tool]:
        """Return the tools that a behaviour names: as they are, or by name among those of the runtime."""
        known = {each.name: each for each in self.tools()}
        short = {name.rpartition(".")[2]: each for name, each in known.items()}
        found = [known.get(each) or short.get(each) if isinstance(each, str) else each for each in behavior.tools]
        return {each.name: each for each in found if each is not None}

    def tool_of(self, behavior: Any, name: str) -> Tool:
        """Return a tool that a behaviour names.

        Raises:
            UnknownToolError: it does not name it.
        """
        found = self.tools_of(behavior).get(name)
        if found is None:
            names = ", ".join(self.tools_of(behavior)) or "none"
            raise UnknownToolError("tool.unknown_tool", f"{behavior.name!r} has no tool {name!r}; it has: {names}",
                                   payload_extras={"tool": name})  # fmt: skip
        return found

    def known(self, tool: Tool, hash_: str) -> dict[str, Any] | None:
        """Return what a tool has answered to this before, where that is used."""
        if not self.caching[1] or (self.reinvoke and tool.deterministic):
            return None
        return self.tool_cache.get(hash_)

    async def use(self, work: Work, tool: Tool, args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        """Call a tool, and return {"output", "latency_seconds"}, or {"failed": ...}."""

        def used(**given: Any) -> Any:
            began = perf_counter()
            found = _run(tool, given, context, began)
            if inspect.isawaitable(found):
                return found
            return _paid(found, tool)

        effect = Effect("tool", tool.name, dict(args), timeout=tool.timeout_seconds or None, target=used,
                        repeatable=tool.deterministic)  # fmt: skip
        try:
            return dict(await work.call(effect))
        except TimeoutError as error:
            return {"failed": {"reason": "tool.timeout", "type": "ToolError", "message": str(error), "tool": tool.name}}


def _told(found: dict[str, Any]) -> base.LLMResponse:
    """Return an answer with what it took."""
    usage = base.Usage(found["input_tokens"], found["output_tokens"], found["cost_usd"])
    return base.LLMResponse(found, found["model"], usage)


def _asker(provider: Any, work: Work, model: str) -> dict[str, Any]:
    """Return who asks, for a client of agentnb: its scripts go by the node, and by how often it was asked before."""
    if not isinstance(provider, Asked):
        return {}
    node, heard, of_node = work.node.id, work.run.tell, asked_before(work, "llm", work.node.id)
    asker: dict[str, Any] = {"node": node, "number": asked_before(work, "llm"), "of_node": of_node}
    if heard is not None:
        asker["tell"] = lambda text: work.dead or heard(node, text, 1, of_node, model)
    return {"asker": asker}


def _changed(words: Mapping[str, Any], sent: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words that a model is asked with, with what a person has changed of what is sent."""
    new = {
        name: value for name, value in now.items() if name in sent and masked(value, name) != masked(sent[name], name)
    }
    if "messages" in new:
        new["messages"] = messages_from(new["messages"])
    return {**words, **new}


def _paid(found: dict[str, Any], tool: Tool) -> Paid:
    answer = Paid(found)
    answer.usage = base.Usage(cost_usd=tool.cost_per_call)
    return answer


def _run(tool: Tool, given: Mapping[str, Any], context: ToolContext, began: float) -> dict[str, Any]:
    """Check what goes in, call the function, check what comes out; what fails is said in the answer."""
    reason = "tool.invalid_input"
    try:
        args = tool.input_schema.model_validate(dict(given)) if tool.input_schema else dict(given)
        reason = "tool.execution_error"
        output = tool.fn(args, context)
        reason = "tool.invalid_output"
        if tool.output_schema is not None and not isinstance(output, tool.output_schema):
            output = tool.output_schema.model_validate(output)
        output = canonical(output.model_dump(mode="json") if hasattr(output, "model_dump") else output)
    except Exception as error:  # noqa: BLE001  (whatever a tool raises is an answer of its own)
        reason = getattr(error, "reason", reason)
        said: dict[str, Any] = {
            "reason": reason,
            "type": type(error).__name__,
            "message": str(error),
            "tool": tool.name,
        }
        if reason == "tool.execution_error":
            kind = type(error).__name__
            said |= {"type": "ToolError", "message": f"{kind}: {error}", "raised": kind}
        elif reason != getattr(error, "reason", None):
            said["validation_errors"] = str(error)
        return {"failed": said, "latency_seconds": perf_counter() - began}
    return {"output": output, "latency_seconds": perf_counter() - began}


def _failure(error: Exception, model: str, seconds: float) -> dict[str, Any]:
    """Return how a provider has failed: what it says itself, else that the way to it has."""
    said: dict[str, Any] = {"type": type(error).__name__, "message": str(error), "latency_seconds": seconds}
    reason = getattr(error, "reason", None)
    if isinstance(error, LLMBehaviorError) or (isinstance(reason, str) and reason.startswith("llm.")):
        extras = getattr(error, "extra", None) or getattr(error, "payload_extras", None) or {}
        return {**said, "reason": reason, "extra": canonical(extras)}
    if not isinstance(error, AgentNbError):  # nobody knows it: it may be the way to the model
        return {**said, "reason": "llm.network_error", "extra": {"model": model}}
    status, after = getattr(error, "status", None), getattr(error, "retry_after", None)
    again = "llm.rate_limited" if status == TOO_MANY else "llm.network_error"
    refused = "llm.auth_error" if status in UNKNOWN_HERE else "llm.request_error"
    extra = {"model": model} if after is None else {"model": model, "retry_after_seconds": after}
    return {**said, "reason": again if getattr(error, "again", False) else refused, "extra": extra}


__all__ = ["AGAIN", "Asking", "Paid"]
