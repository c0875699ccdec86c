"""The prompt of a model for one delivery: its role, its view of the graph, and the event."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from agentnb.dialects.activegraph.parts.events import is_lifecycle
from agentnb.dialects.activegraph.parts.models import LLMMessage

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.delivery import DeliveryInProgress

HIDDEN = ("provenance", "timestamp", "run_id")


def make_system_prompt(behavior: Any, turn: DeliveryInProgress, *, native: bool) -> str:
    """Return the system prompt; with `native`, the provider itself enforces the schema of the answer."""
    frame, schema = turn.config.frame, behavior.output_schema
    parts = [f"You act as {behavior.name!r}, one of several behaviors that share a graph of objects."]
    if behavior.description:
        parts.append(f"What you do: {behavior.description}")
    if frame is not None:
        parts.append(f"The goal of all: {frame.goal}")
        parts += [f"This must hold: {each}" for each in frame.constraints]
        parts += [f"It is done when: {each}" for each in frame.success_criteria]
    if schema is not None and native:
        parts.append("Answer with one JSON object.")
    elif schema is not None:
        text = json.dumps(schema.model_json_schema(), indent=1, sort_keys=True)
        parts.append(f"Answer with one JSON object that fits this schema, and with nothing else:\n{text}")
    return "\n\n".join(parts)


def to_messages(behavior: Any, turn: DeliveryInProgress) -> list[LLMMessage]:
    """Return the first message: the view, the event, and the task."""
    if behavior.prompt_template:
        return [LLMMessage("user", _fill(behavior.prompt_template, turn))]
    view = turn.ctx.view
    objects = [f"- {each.id} ({each.type}, version {each.version}): {to_json(each.data)}" for each in view.objects()]
    relations = [f"- {each.source} -{each.type}-> {each.target} {to_json(each.data)}" for each in view.relations()]
    events = [f"- {each.type} by {each.actor}" for each in view.events() if not is_lifecycle(each.type)]
    event = turn.event
    creation = f"Create objects of these types: {', '.join(behavior.creates)}." if behavior.creates else ""
    blocks = [
        "Objects:\n" + ("\n".join(objects) or "- none"),
        "Relations:\n" + ("\n".join(relations) or "- none"),
        "What has happened last:\n" + ("\n".join(events) or "- nothing"),
        f"What you answer to: {event.type} by {event.actor}\n{to_json(_remove_volatile(event.payload))}",
        f"Answer it. {creation}".strip(),
    ]
    return [LLMMessage("user", "\n\n".join(blocks))]


def _fill(template: str, turn: DeliveryInProgress) -> str:
    frame, shown = turn.config.frame, [each.data for each in turn.ctx.view.objects()]
    known = {
        "event": to_json(_remove_volatile(turn.event.payload)),
        "event_type": turn.event.type,
        "view": to_json(shown),
        "goal": frame.goal if frame else "",
    }
    return re.sub("{(" + "|".join(known) + ")}", lambda match: known[match[1]], template)


def _remove_volatile(value: Any) -> Any:
    """Return a value without the fields that differ between equal runs."""
    if isinstance(value, dict):
        return {name: _remove_volatile(item) for name, item in value.items() if name not in HIDDEN}
    return [_remove_volatile(item) for item in value] if isinstance(value, list) else value


def to_json(value: Any) -> str:
    """Return a value as JSON text with sorted keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


__all__ = ["make_system_prompt", "to_json", "to_messages"]
