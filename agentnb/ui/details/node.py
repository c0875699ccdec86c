"""A node's part of the details pane: where it is defined, what it reads, what it asks and what it listens to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import freeze
from agentnb.draw.reactive import get_event_type
from agentnb.errors import AgentNbError
from agentnb.expressions.paths import format_path
from agentnb.session.parts import get_parts
from agentnb.session.state import get_state
from agentnb.ui.actions import can_be_next
from agentnb.ui.details.cells import ROWS, Cells, to_line
from agentnb.ui.details.source import find_function, find_text
from agentnb.user_code import format_place

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event
    from agentnb.recipe.model import Node, Recipe
    from agentnb.session import Session

# Shown in another section, or internal.
_ELSEWHERE: Final = frozenset({"function", "prompt", "deliver", "compose", "tells_timeout", "tells"})
# Parameters that decide when a behavior is activated, beside its `on`.
_REACTS: Final = ("where", "pattern", "relation_type", "activate_after", "priority", "budget", "view_spec", "creates")
_LATEST: Final = 5  # events of one type shown
_NOTHING: Final[dict[str, Any]] = {
    "missing": False, "label": "", "now": "", "place": "", "path": "", "facts": [], "definition": [], "parameters": [],
    "prompt": [], "reacts": [], "edges": [], "latest": [], "listens": False,
    "settable": False,
}  # fmt: skip
_NOW: Final = {"waiting": "waits for a person", "in_flight": "is at work", "failed": "has failed"}


def describe_node(session: Session, name: str, cells: Cells) -> dict[str, Any]:
    """Return a node's own part of the details; for a node missing from the recipe, that it is gone."""
    recipe = session.recipe
    node = recipe.nodes.get(name)
    if node is None:
        type_ = get_event_type(recipe, name)
        return (
            {"id": to_line(name), "missing": True}
            if type_ is None
            else _describe_event_type(session, name, type_, cells)
        )
    place = node.place
    return _NOTHING | {
        "id": node.id,
        "label": to_line(node.label) if node.label not in ("", node.id) and not node.on else "",
        "kind": node.kind,
        "now": _describe_current(session, node),
        "place": "" if place is None else to_line(format_place(place.file, place.line) if place.line else place.file),
        "path": "" if place is None else to_line(place.path),
        "facts": [[label, to_line(text)] for label, text in _iter_facts(recipe, node)],
        "definition": [
            cells.text(f"definition/{at}", source.place, source.text)
            for at, source in enumerate(_iter_sources(session, node))
        ],
        "parameters": cells.rows("parameters", _iter_parameters(node)),
        "prompt": [cells.text(f"prompt/{at}", role, text) for at, (role, text) in enumerate(iter_prompts(node))],
        "reacts": cells.rows("reacts", _iter_reactions(recipe, node)),
        "edges": list(_iter_edges(recipe, node)),
        "listens": bool(node.on),
        "settable": can_be_next(session, node),
    }  # fmt: skip


def _describe_event_type(session: Session, name: str, type_: str, cells: Cells) -> dict[str, Any]:
    """Return the details of an event type, as drawn between behaviors."""
    reactions = get_parts(session).pictures.view().reactions
    deliveries, emissions = ({}, {}) if reactions is None else (reactions.deliveries, reactions.emissions)
    facts = [
        ("emitted", f"{0 if reactions is None else reactions.counts.get(type_, 0)} times"),
        *_join("emitted by", [f"{node} (×{times})" for (node, one), times in emissions.items() if one == type_]),
        *_join("triggered", [f"{node} (×{times})" for (one, node), times in deliveries.items() if one == type_]),
        *_join("listeners", [node.id for node in session.recipe.nodes.values() if type_ in node.on]),
    ]
    latest = [event for event in session.events if event.type == type_][-_LATEST:]
    return _NOTHING | {
        "id": name,
        "label": to_line(type_),
        "kind": "event type",
        "facts": [[label, to_line(text)] for label, text in facts],
        "latest": [describe_event(event, cells, f"latest/{at}") for at, event in enumerate(reversed(latest))],
    }


def describe_event(event: Event, cells: Cells, at: str) -> dict[str, Any]:
    """Return one event, with its payload as a cell."""
    return {
        "id": to_line(event.id),
        "type": to_line(event.type),
        "actor": to_line(event.actor),
        "step": event.step,
        "payload": cells.of(at, "payload", event.payload),
    }


def _describe_current(session: Session, node: Node) -> str:
    """Return a text on whether a node is running, scheduled or waiting."""
    view = get_parts(session).pictures.view()
    if node.id in view.waiting or node.id == view.current:
        note = f", held {to_line(session.held_at)}" if session.held_at else ""
        return _NOW.get(str(session.status), "is next") + (note if node.id == view.current else "")
    if node.id in view.next:
        return "was entered, and has not been left" if node.bodies else "follows"
    return ""


def _iter_facts(recipe: Recipe, node: Node) -> Iterator[tuple[str, str]]:
    region = recipe.regions.get(node.scope)
    if region is not None and region.owner:
        yield "inside", f"{region.owner}, {region.title}" if region.title else region.owner
    yield from _join("inputs", [f"{name} ← {format_path(path)}" for name, path in (node.inputs or {}).items()])
    yield from _join("reads", node.reads)
    yield from _join("writes", node.writes)
    called = node.params.get("function")
    if isinstance(called, str):
        tool = recipe.tools.get(called)
        description = (
            "" if tool is None else f" ({', '.join(filter(None, (tool.kind, tool.impl, str(tool.place or ''))))})"
        )
        yield "calls", f"{called}{description}"
    if not node.counted:
        yield "steps", "are not counted towards max_steps"
    if node.rescue is not None:
        route = node.rescue.route
        targets = "its ordinary edges" if route is None else ", ".join(to.node for to in route) or "nowhere"
        yield (
            "when it fails",
            f"goes {targets}" + (f", writes {', '.join(node.rescue.writes)}" if node.rescue.writes else ""),
        )


def _join(label: str, names: Any) -> Iterator[tuple[str, str]]:
    names = list(names)
    if names:
        rest = f", and {len(names) - ROWS} more" if len(names) > ROWS else ""
        yield label, ", ".join(names[:ROWS]) + rest


def _iter_sources(session: Session, node: Node) -> Iterator[Any]:
    """Yield the source of a node: its part of the recipe and the function that it calls."""
    text = find_text(session.recipe, node)
    if text is not None:
        yield text
    world, called = get_state(session).run.world, node.params.get("function")
    names = [name for name in (called, node.params.get("ref"), node.id) if isinstance(name, str)]
    bound = [tools[name] for name in names for tools in (world.passed_tools, world.tools) if name in tools]
    for each in [called, *bound]:
        source = find_function(each)
        if source is not None:
            yield source
            return


def iter_prompts(node: Node) -> Iterator[tuple[str, str]]:
    """Yield (role, text) of what a node sends to a model or person, as written: templates are not rendered."""
    prompt = node.params.get("prompt")
    if isinstance(prompt, str) or hasattr(prompt, "render"):
        yield "asks" if node.kind == "human" else "system", str(getattr(prompt, "text", prompt))
    elif isinstance(prompt, list | tuple):
        for role, text in prompt:
            yield str(role), str(getattr(text, "text", text))
    for word in ("description", "goal"):
        text = getattr(node.params.get(word), "text", node.params.get(word))
        if isinstance(text, str) and text:
            yield word, text


def _iter_parameters(node: Node) -> Iterator[tuple[str, Any]]:
    for name, value in node.params.items():
        if name not in _ELSEWHERE and name not in _REACTS:
            yield name, freeze(to_plain(value))


def to_plain(value: Any, depth: int = 0) -> Any:
    """Return a parameter as plain values: conditions and templates as written, functions by name."""
    if isinstance(value, str | int | float | bool | bytes | None):
        return value
    if depth > 20:
        return "…"
    if isinstance(value, Mapping):
        return {
            name.__qualname__ if isinstance(name, type) else name: to_plain(item, depth + 1)
            for name, item in value.items()
        }
    if type(value) in (list, tuple, set, frozenset):
        return [to_plain(item, depth + 1) for item in value]
    text = getattr(value, "text", None)
    if isinstance(text, str):
        return text
    if callable(value) and hasattr(value, "__qualname__"):
        return value.__qualname__
    return value if type(value).__module__ == "builtins" or hasattr(value, "__dataclass_fields__") else repr(value)


def _iter_reactions(recipe: Recipe, node: Node) -> Iterator[tuple[str, Any]]:
    """Yield when events activate a node: their types and the further conditions."""
    if not node.on:
        return
    yield "on", freeze(list(node.on))
    behavior = getattr(recipe.reactive, "behaviors", {}).get(node.id)
    for word in _REACTS:
        value = node.params.get(word) or getattr(behavior, word, None)
        if value:
            yield word.replace("_", " "), freeze(to_plain(value))


def _iter_edges(recipe: Recipe, node: Node) -> Iterator[list[Any]]:
    """Yield the edges of a node: whether it is outgoing, the other node, the kind, the condition."""
    edges = [edge for edge in recipe.edges if node.id in (edge.source, edge.target)]
    for edge in edges[:ROWS]:
        leads = edge.source == node.id
        yield [leads, to_line(edge.target if leads else edge.source), edge.kind, to_line(edge.condition)]


def explain_not_run(session: Session, request: Any) -> dict[str, Any]:
    """Return the reasons why a node did not run, as lines; `request` is [node, event id or None]."""
    node, event = request if isinstance(request, list) and len(request) == 2 else (request, None)
    try:
        explanation = session.why_not(str(node), None if event is None else str(event))
    except AgentNbError as error:
        return {"reason": to_line(error.problems[0].what if error.problems else error), "edges": []}
    edges = [
        [to_line(edge.source), edge.kind, to_line(edge.result), [to_line(each.line()) for each in edge.conditions]]
        for edge in explanation.incoming_edges
    ]
    return {"reason": to_line(explanation.reason), "edges": edges[:ROWS]}
