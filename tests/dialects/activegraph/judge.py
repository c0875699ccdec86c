"""The real package beside ours: the same program in both, under clocks and ids that are given."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

# Failures of models and tools carry messages in our own words; their classes and reasons are the package's.
OWN_WORDS = ("LLMBehaviorError", "ToolError", "UnknownToolError")


def theirs() -> ModuleType:
    return importlib.import_module("activegraph")


def ours() -> ModuleType:
    return importlib.import_module("agentnb.dialects.activegraph")


def _inside(package: Any) -> str:
    """Return where a package keeps its modules."""
    return package.__name__ if package is theirs() else f"{package.__name__}.parts"


def log_of(package: ModuleType, program: Callable[[Any], Any], *, ticking: bool = False,
           besides: Sequence[str] = ()) -> list[dict[str, Any]]:  # fmt: skip
    """Run a program in a package, and return its log in the form that is compared; `besides`: left out too."""
    forget(package)
    clock_type = package.TickingClock if ticking else package.FrozenClock
    graph = package.Graph(ids=package.IDGen(), clock=clock_type("2026-01-01T00:00:00Z"), run_id="RUN")
    try:
        models = importlib.import_module("activegraph.llm") if package is theirs() else package
        packs = importlib.import_module(f"{_inside(package)}.packs")
        tools = importlib.import_module("activegraph.tools") if package is theirs() else package
        words: dict[str, Any] = {"packs": packs, "ToolError": tools.ToolError}
        words |= {name: getattr(package, name) for name in NAMES} | {name: getattr(models, name) for name in OF_MODELS}
        program(SimpleNamespace(**words, graph=graph))
    finally:
        forget(package)
    events = [event.to_dict() for event in graph.events]
    if package is theirs():
        recount(events)
    hashes: dict[str, int] = {}
    return [compared(event, hashes, besides) for event in events]


def recount(events: list[dict[str, Any]]) -> None:
    """Replace the package's `max_llm_calls` (deliveries to llm behaviors) by the requests in its log: decision 0042."""
    asking = {
        event["payload"]["behavior"]
        for event in events
        if event["type"] == "llm.requested" or str(event["payload"].get("reason")).startswith("budget.")
    }
    deliveries = requests = 0
    for event in events:
        payload = event["payload"]
        deliveries += event["type"] == "behavior.started" and payload["behavior"] in asking
        requests += event["type"] == "llm.requested" and not payload["cache_hit"]
        if "snapshot" in payload:
            assert payload["snapshot"]["used"]["max_llm_calls"] == deliveries
            payload["snapshot"]["used"]["max_llm_calls"] = requests


def forget(package: ModuleType) -> None:
    """Forget the behaviors and tools that a program has registered: other tests are not to find them."""
    package.clear_registry()
    importlib.import_module(f"{_inside(package)}.tools").clear_tool_registry()


# What this dialect leaves out: sinks, embeddings, other clocks of a quantum.
LEFT_OUT = {"sinks", "native_structured_output", "embedding_provider", "replay_embedding_cache", "embedding_cache",
            "trace_context_reads", "tool_invoker", "check_wall_clock"}  # fmt: skip


def assert_same_signatures(*names: str) -> None:
    """Assert that both packages take the same arguments, with the same defaults; a name may be that of a member."""
    for name in names:
        head, _, member = name.partition(".")
        expected, got = (getattr(package, head, None) for package in (theirs(), ours()))
        expected = expected or getattr(importlib.import_module("activegraph.llm"), head)
        if member:
            expected, got = getattr(expected, member), getattr(got, member)
        if not callable(expected):
            assert type(expected) is type(got) is property, name
            continue
        known = inspect.signature(got).parameters
        for parameter in inspect.signature(expected).parameters.values():
            if parameter.name in LEFT_OUT:
                continue
            assert parameter.name in known, f"{name} knows no {parameter.name}"
            own = known[parameter.name]
            assert own.kind is parameter.kind, f"{name}, {parameter.name}: {own.kind} is not {parameter.kind}"
            defaults = [getattr(each.default, "__name__", repr(each.default)) for each in (own, parameter)]
            assert defaults[0] == defaults[1], f"{name}, {parameter.name}: {own.default!r}"


NAMES = [
    "Behavior",
    "Budget",
    "Event",
    "Frame",
    "Policy",
    "Runtime",
    "behavior",
    "relation_behavior",
    "register",
    "get_registry",
    "llm_behavior",
    "tool",
]
OF_MODELS = ("LLMResponse", "ToolCall", "LLMBehaviorError")


def compared(event: dict[str, Any], hashes: dict[str, int], besides: Sequence[str] = ()) -> dict[str, Any]:
    """Return an event without what cannot be equal: the text of messages, prompts and tracebacks, measured times."""
    comparable = _comparable(event, hashes, besides)
    payload = comparable["payload"]
    if payload.get("exception_type") in OWN_WORDS:
        payload["message"] = bool(payload["message"])
    if isinstance(payload.get("error"), dict):
        payload["error"]["message"] = bool(payload["error"]["message"])
    return comparable


def _comparable(value: Any, hashes: dict[str, int], besides: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_comparable(item, hashes, besides) for item in value]
    if not isinstance(value, dict):
        return value
    comparable = {name: _comparable(item, hashes, besides) for name, item in value.items() if name not in besides}
    if isinstance(comparable.get("prompt_hash"), str):  # equal prompts have equal hashes, whatever their wording
        comparable["prompt_hash"] = hashes.setdefault(comparable["prompt_hash"], len(hashes))
    if isinstance(comparable.get("prompt"), dict):
        messages = [{**each, "content": type(each["content"]).__name__} for each in comparable["prompt"]["messages"]]
        comparable["prompt"] = {
            **comparable["prompt"],
            "system": bool(comparable["prompt"]["system"]),
            "messages": messages,
        }
    for name in {"traceback", "latency_seconds"} & comparable.keys():
        comparable[name] = type(comparable[name]).__name__
    return comparable


def same(program: Callable[[Any], Any], *, ticking: bool = True, besides: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Assert that both packages tell the same log, but for what is left out `besides`; return it."""
    expected, got = (log_of(package, program, ticking=ticking, besides=besides) for package in (theirs(), ours()))
    for one, other in zip(expected, got, strict=False):
        assert other == one, f"\ntheirs: {one}\nours:   {other}"
    assert [(event["id"], event["type"]) for event in got] == [(event["id"], event["type"]) for event in expected]
    return got
