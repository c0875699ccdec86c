"""A log as lines of text, and the chain of causes of an object or an event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.masking import mask_value
from agentnb.dialects.activegraph.parts.events import Event, to_event
from agentnb.secrets import mask_text, masks_by
from agentnb.text import safe_repr
from agentnb.trace.causality import find_chain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentnb.dialects.activegraph.parts.graph import Graph

WIDTH = 26
_TOLD: Final = {"estimated_input_tokens": "tokens_in~", "budget_remaining_usd": "budget_remaining=$",
                "input_tokens": "tokens_in=", "output_tokens": "tokens_out="}  # fmt: skip


@masks_by(lambda log: log.graph.ledger.run.tables.secrets)
class GraphLog:
    """The log of a graph as text."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def events(self) -> list[Event]:
        """Return the events so far."""
        return self.graph.events

    def failures(self) -> list[Event]:
        """Return the events of failed deliveries; their payloads contain the traceback. See also `Runtime.errors`."""
        return [to_event(event) for event in self.graph.ledger.failures]

    def lines(self) -> list[str]:
        """Return one line for each event, with secrets masked."""
        return [mask_text(f"{f'[{event.type}]':<{WIDTH}}{_describe(event)}".rstrip()) for event in self.events()]

    def print(self) -> None:
        """Print the lines."""
        print("\n".join(self.lines()))  # noqa: T201  (that is what it is for)

    def causes(self, id_: str) -> list[Event]:
        """Return the causes of an event, or of the events that created and changed an object.

        Each cause is followed by its own causes, an event caused by a model by the earlier calls of models and tools.
        """
        return [event for _, event in self._iter_causes(id_)]

    def _iter_causes(self, id_: str) -> Iterator[tuple[int, Event]]:
        """Yield each cause with its distance, from 1; a cause of several events is yielded once."""
        events = self.graph.ledger.events()
        known, seen = {event.id: event for event in events}, set[str]()
        answers = {event.cause: event for event in events if event.type in ("llm.responded", "tool.responded")}
        for link in find_chain(events, id_):
            event, depth = (link.event if link.part == "self" else None), 1
            while event is not None and event.id not in seen:
                seen.add(event.id)
                yield depth, to_event(event)
                for request in _find_requests(event, known):
                    for call in (answers.get(request.id), request):
                        if call is not None and call.id not in seen:
                            seen.add(call.id)
                            yield depth + 1, to_event(call)
                event, depth = known.get(event.cause or ""), depth + 1

    def causal_chain(self, object_id: str) -> str:
        """Return the causes of an object, its changes, or an event, one per line; see also `session.chain`."""
        target = self.graph.get_object(object_id)
        head = f"{object_id} ({target.type})" if target else object_id
        lines = (
            f"{'  ' * depth}← {event.actor} ({event.id}) {event.type} {_call(event)}".rstrip()
            for depth, event in self._iter_causes(object_id)
        )
        return mask_text("\n".join([head, *lines]))

    def export(self, path: Any) -> None:
        """Write the events to a file, one JSON object per line, with secrets masked."""
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123  (a path of any sort)
            file.writelines(json.dumps(mask_value(event.to_dict())) + "\n" for event in self.events())

    def graph_lines(self) -> list[str]:
        """Return one line for each current object and relation, with secrets masked."""
        objects, relations = self.graph.all_objects(), self.graph.all_relations()
        lines = ["graph:", f"  objects ({len(objects)}):"]
        lines += [f"    {each.id} {json.dumps(each.data, ensure_ascii=False)}" for each in objects]
        lines += [f"  relations ({len(relations)}):"]
        lines += [f"    {each.source} -{each.type}-> {each.target}" for each in relations]
        return [mask_text(line) for line in lines]

    def __repr__(self) -> str:
        """Return the lines."""
        return "\n".join(self.lines())


def _find_requests(event: Any, known: Mapping[str, Any]) -> list[Any]:
    """Return the model requests and tool calls in an event's provenance, latest first.

    Each request of a later round is caused by the previous request.
    """
    request: Mapping[str, Any] = next(
        (event.payload[name] for name in ("object", "relation", "patch") if name in event.payload), {}
    )
    provenance = request.get("provenance") or {}
    requests = [known.get(id_) for id_ in reversed(provenance.get("tool_request_event_ids") or ())]
    llm_request = known.get(provenance.get("llm_request_event_id") or "")
    while llm_request is not None and llm_request.type in ("llm.requested", "llm.responded"):
        requests.append(llm_request)
        llm_request = known.get(llm_request.cause or "")
    return sorted((each for each in requests if each is not None), key=lambda each: -int(each.seq))


def _call(event: Event) -> str:
    """Return a short description of a model request or a tool call; "" for any other event."""
    if not event.type.startswith(("llm.", "tool.")):
        return ""
    payload, responded, hit = event.payload, event.type.endswith(".responded"), event.payload.get("cache_hit")
    error, attempt, turn = payload.get("error"), payload.get("attempt_index"), payload.get("turn_index")
    parts = [f"model={payload['model']}"] if event.type == "llm.requested" else []
    parts += [f"tool={payload['tool']}"] if "tool" in payload else []
    parts += ["cache_hit=true"] if hit else []
    parts += [] if attempt is None else [f"attempt={attempt + 1}/{payload['max_attempts']}"]
    parts += [f"turn={turn}"] if turn else []
    parts += [f"{label}{payload[name]}" for name, label in _TOLD.items() if payload.get(name) is not None]
    parts += [f"error={error.get('reason')}"] if error else []
    if responded and not hit:
        parts += [] if error else [f"cost=${float(payload.get('cost_usd') or 0):.3f}"]
        parts += [f"latency={float(payload.get('latency_seconds') or 0):.1f}s"]
    return " ".join(parts)


def _describe(event: Event) -> str:
    """Return a short description of an event."""
    payload = event.payload
    match event.type:
        case "goal.created":
            return f"{event.actor}: {json.dumps(payload.get('goal'))}"
        case "object.created" | "object.removed" | "relation.removed":
            return str(payload.get("id"))
        case "relation.created":
            return f"{payload.get('source')} -> {payload.get('target')} ({payload['relation'].get('type')})"
        case "behavior.failed":
            return f"{payload['behavior']}: {payload['exception_type']}: {payload['message'].splitlines()[0]}"
        case "patch.applied":
            return f"{payload['target']}: {', '.join(payload.get('diff', ()))}"
        case "runtime.idle":
            return "nothing is left to do"
        case "runtime.budget_exhausted":
            return str(payload.get("exhausted_by"))
    if event.type.startswith(("llm.", "tool.")):
        return f"{event.id}  {payload.get('behavior')}  {_call(event)}"
    if "behavior" in payload:
        return str(payload["behavior"])
    return " ".join([str(event.actor or ""), *(f"{name}={safe_repr(value)}" for name, value in payload.items())])


__all__ = ["GraphLog"]
