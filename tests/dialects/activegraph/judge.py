"""judge: the real package beside ours: the same program in both, under clocks and ids that are given."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

LEFT_OUT = ("traceback", "latency_seconds", "run_id", "prompt", "prompt_hash")
# What a model's failure says in its own words, and how calls of models are counted (by the package: once a delivery).
OWN_WORDS = ("LLMBehaviorError", "ToolError", "UnknownToolError")


def theirs() -> ModuleType:
    return importlib.import_module("activegraph")


def ours() -> ModuleType:
    return importlib.import_module("agentnb.dialects.activegraph")


def log_of(package: ModuleType, program: Callable[[Any], Any], *, ticking: bool = False,
           besides: Sequence[str] = ()) -> list[dict[str, Any]]:  # fmt: skip
    """Run a program in a package, and return its log in the form that is compared; `besides`: left out too."""
    forget(package)
    made = package.TickingClock if ticking else package.FrozenClock
    graph = package.Graph(ids=package.IDGen(), clock=made("2026-01-01T00:00:00Z"), run_id="RUN")
    try:
        models = importlib.import_module("activegraph.llm") if package is theirs() else package
        packs = importlib.import_module(f"{package.__name__}.packs")
        words: dict[str, Any] = {"packs": packs}
        words |= {name: getattr(package, name) for name in NAMES} | {name: getattr(models, name) for name in OF_MODELS}
        program(SimpleNamespace(**words, graph=graph))
    finally:
        forget(package)
    return [compared(event.to_dict(), besides) for event in graph.events]


def forget(package: ModuleType) -> None:
    """Forget the behaviours and tools that a program has registered: other tests are not to find them."""
    package.clear_registry()
    importlib.import_module(f"{package.__name__}.tools").clear_tool_registry()


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


def compared(event: dict[str, Any], besides: Sequence[str] = ()) -> dict[str, Any]:
    found = _without(event, (*LEFT_OUT, *besides))
    payload = found["payload"]
    if payload.get("exception_type") in OWN_WORDS:
        payload.pop("message")
    if isinstance(payload.get("error"), dict):
        payload["error"].pop("message")
    payload.pop("bindings", None) if found["type"] == "pattern.matched" else None
    if "snapshot" in payload:
        payload["snapshot"]["used"].pop("max_llm_calls")
    return found


def _without(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {name: _without(item, names) for name, item in value.items() if name not in names}
    if isinstance(value, list):
        return [_without(item, names) for item in value]
    return value


def same(program: Callable[[Any], Any], *, ticking: bool = True, besides: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Assert that both packages tell the same log, but for what is left out `besides`; return it."""
    wanted, got = (log_of(package, program, ticking=ticking, besides=besides) for package in (theirs(), ours()))
    for one, other in zip(wanted, got, strict=False):
        assert other == one, f"\ntheirs: {one}\nours:   {other}"
    assert [(event["id"], event["type"]) for event in got] == [(event["id"], event["type"]) for event in wanted]
    return got
