"""Samples of activegraph: behaviors on events, as a research team, an incident board, and a reader of comments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel

from agentnb.dialects.activegraph import (
    Behavior,
    Frame,
    Graph,
    LLMBehavior,
    Policy,
    RelationBehavior,
    Runtime,
)

if TYPE_CHECKING:
    from agentnb.dialects.activegraph import Event, Relation
    from agentnb.dialects.activegraph.parts.context import BehaviorGraph, Context
    from agentnb.world.llm.base import LLMRequest

# -- a research team -----------------------------------------------------------------------------------------------

ARCHIVE: Final = {
    "how far do swifts fly": ("Ringed swifts come back from south of the Sahara, 10,000 km away.", "ringing report"),
    "when do swifts land": ("Outside the nest a swift may stay in the air for ten months.", "logger study"),
    "how do swifts sleep": ("They rise at dusk and glide with few wing beats.", "radar study"),
}


class Draft(BaseModel):
    """The answer of the writer's model."""

    title: str
    text: str


def team() -> Runtime:
    """Return a research team: on a goal (`goal.created`) it plans, searches, writes and reviews."""
    return Runtime(
        Graph(),
        behaviors=[
            Behavior("plan", plan, on=["goal.created"], creates=["task"]),
            Behavior("search", search, on=["object.created"], creates=["note"],
                     where={"object.type": "task", "object.data.kind": "question"}),
            RelationBehavior("unblock", unblock, "blocks", on=["task.done"]),
            LLMBehavior("write", write, on=["task.ready", "draft.returned"], handler=write, output_schema=Draft,
                        creates=["draft"], description="You write short memos from the notes of your team.",
                        view_spec={"include_types": ["note", "draft"]}),
            Behavior("review", review, on=["object.created"], where={"object.type": "draft"}),
            Behavior("publish", publish, on=["draft.accepted"], creates=["memo"]),
        ],
        frame=Frame("a memo that names its sources", constraints=["at most three questions"]),
        budget={"max_behavior_calls": 50},
        llm_provider=pen,
        name="team",
    )  # fmt: skip


def plan(event: Event, graph: BehaviorGraph, _ctx: Context) -> None:
    """Create a task for each question, and one for the memo, which depends on them."""
    questions = [graph.add_object("task", {"kind": "question", "title": each, "state": "open"}) for each in ARCHIVE]
    memo = graph.add_object("task", {"kind": "memo", "title": event.payload["goal"], "state": "blocked"})
    for each in questions:
        graph.add_relation(each.id, memo.id, "blocks")


def search(event: Event, graph: BehaviorGraph, _ctx: Context) -> None:
    """Search for a question's answer and store the result with its source."""
    task = event.payload["object"]
    text, source = ARCHIVE[task["data"]["title"]]
    note = graph.add_object("note", {"text": text, "source": source})
    graph.add_relation(note.id, task["id"], "answers")
    graph.patch_object(task["id"], {"state": "done"})
    graph.emit("task.done", {"task": task["id"]})


def unblock(relation: Relation, event: Event, graph: BehaviorGraph, ctx: Context) -> None:
    """Start a task when none of its dependencies is open."""
    waits_for = [each.source for each in ctx.view.relations("blocks") if each.target == relation.target]
    states = [ctx.view.get_object(each) for each in waits_for]
    if event.payload["task"] in waits_for and all(task and task.data["state"] == "done" for task in states):
        target = graph.get_object(relation.target)
        if target is not None and target.data["state"] == "blocked":
            graph.patch_object(relation.target, {"state": "ready"})
            graph.emit("task.ready", {"task": relation.target})


def write(event: Event, graph: BehaviorGraph, _ctx: Context, answer: Draft) -> None:
    """Store the model's text as a draft."""
    draft = graph.add_object("draft", {"task": event.payload["task"], **answer.model_dump()})
    graph.add_relation(draft.id, event.payload["task"], "answers")


def review(event: Event, graph: BehaviorGraph, ctx: Context) -> None:
    """Reject a draft that does not name each source; accept the others."""
    draft = event.payload["object"]
    sources = [note.data["source"] for note in ctx.view.objects("note")]
    missing = [source for source in sources if source not in draft["data"]["text"]]
    data: dict[str, Any] = {"draft": draft["id"], "task": draft["data"]["task"]}
    if missing:
        graph.emit("draft.returned", {**data, "missing": missing})
    else:
        graph.emit("draft.accepted", data)


def publish(event: Event, graph: BehaviorGraph, ctx: Context) -> None:
    """Create the memo from an accepted draft and close its task."""
    draft = graph.get_object(event.payload["draft"])
    if draft is not None:
        evidence = [note.id for note in ctx.view.objects("note")]
        graph.add_object("memo", {"title": draft.data["title"], "text": draft.data["text"]}, evidence=evidence)
        graph.patch_object(event.payload["task"], {"state": "done"})


def pen(request: LLMRequest) -> dict[str, str]:
    """Simulate a model: write from the archive, and name no source until a draft was rejected."""
    is_revision = "What you answer to: draft.returned" in request.prompt
    lines = [f"{text} ({source})" if is_revision else text for text, source in ARCHIVE.values()]
    return {"title": "Swifts", "text": " ".join(lines)}


# -- an incident board ---------------------------------------------------------------------------------------------

CHANGES: Final = {"memory": {"workers": 2}, "slow": {"timeout": 60}}  # a word of an alert -> the known remedy
ENOUGH: Final = 2  # alerts of one incident before a change is proposed


def incident() -> Runtime:
    """Return an incident board: it receives alerts (`alert.raised`: service, text); a person approves its changes."""
    return Runtime(
        Graph(),
        behaviors=[
            Behavior("receive", receive, on=["alert.raised"], creates=["alert", "service"]),
            Behavior("correlate", correlate, on=["object.created"], where={"object.type": "alert"},
                     creates=["incident"]),
            Behavior("propose", propose, on=["patch.applied"], where={"diff.alerts.new": ENOUGH},
                     pattern="(a:alert)-[:part_of]->(i:incident {state: 'open'})"),
            Behavior("roll_out", roll_out, on=["object.created"], where={"object.type": "change"}),
            Behavior("call", call, on=["approval.denied"], creates=["call"]),
        ],
        policy=Policy(requires_approval=["change"]),
        name="incident",
    )  # fmt: skip


def receive(event: Event, graph: BehaviorGraph, ctx: Context) -> None:
    """Add an alert to the board, and its service if it is new."""
    name, text = event.payload["service"], event.payload["text"]
    if not ctx.view.objects("service", where={"data.name": name}):
        graph.add_object("service", {"name": name, "workers": 4, "timeout": 30})
    graph.add_object("alert", {"service": name, "text": text})


def correlate(event: Event, graph: BehaviorGraph, ctx: Context) -> None:
    """Add an alert to the open incident of its service; open one if there is none."""
    service = event.payload["object"]["data"]["service"]
    known = ctx.view.objects("incident", where={"data.service": service, "data.state": "open"})
    incident = known[0] if known else graph.add_object("incident", {"service": service, "state": "open", "alerts": 0})
    graph.add_relation(event.payload["id"], incident.id, "part_of")
    graph.patch_object(incident.id, {"alerts": incident.data["alerts"] + 1})


def propose(event: Event, _graph: BehaviorGraph, ctx: Context) -> None:
    """Request approval for the known remedy when an incident has enough alerts."""
    target = ctx.view.get_object(event.payload["target"])
    alerts = [
        ctx.view.get_object(each.bindings["a"]) for each in ctx.matches if target and each.bindings["i"] == target.id
    ]
    text = "; ".join(alert.data["text"] for alert in alerts if alert)
    word = next((word for word in CHANGES if word in text), None)
    if target is not None and word is not None:
        change = {"incident": target.id, "service": target.data["service"], "set": CHANGES[word]}
        ctx.propose_object("change", change, reason=f"{len(alerts)} alerts of {target.data['service']}: {text}")


def roll_out(event: Event, graph: BehaviorGraph, ctx: Context) -> None:
    """Apply an approved change and close its incident."""
    change = event.payload["object"]["data"]
    (service,) = ctx.view.objects("service", where={"data.name": change["service"]})
    graph.patch_object(service.id, change["set"], rationale=f"for {change['incident']}")
    graph.patch_object(change["incident"], {"state": "closed"})


def call(event: Event, graph: BehaviorGraph, _ctx: Context) -> None:
    """Call an engineer when a person has denied a change."""
    graph.add_object("call", {"who": "on duty", "because": event.payload["reason"] or "a change was denied"})


# -- what customers say --------------------------------------------------------------------------------------------

TOPICS: Final = {"late": "delivery", "parcel": "delivery", "price": "price", "expensive": "price"}  # word -> topic
MANY: Final = 3  # comments on one topic before somebody looks into it


class Topic(BaseModel):
    """The answer of the reader's model: what a comment is about."""

    topic: Literal["delivery", "price", "quality"]


def feedback() -> Runtime:
    """Return a reader of comments (`comment.received`: text): a model finds topics, and many of one make a task."""
    return Runtime(
        Graph(),
        behaviors=[
            Behavior("receive_comment", receive_comment, on=["comment.received"], creates=["comment"]),
            LLMBehavior("find_topic", find_topic, on=["object.created"], where={"object.type": "comment"},
                        handler=find_topic, output_schema=Topic, description="You say what a comment is about."),
            Behavior("count_topic", count_topic, on=["topic.found"], creates=["topic"]),
            Behavior("look_into", look_into, on=["patch.applied"], where={"diff.comments.new": MANY}, creates=["task"]),
        ],
        llm_provider=reader,
        name="feedback",
    )  # fmt: skip


def receive_comment(event: Event, graph: BehaviorGraph, _ctx: Context) -> None:
    """Add a comment to the graph."""
    graph.add_object("comment", {"text": event.payload["text"]})


def find_topic(event: Event, graph: BehaviorGraph, _ctx: Context, answer: Topic) -> None:
    """Store the topic that the model has found."""
    comment = event.payload["object"]["id"]
    graph.patch_object(comment, {"topic": answer.topic})
    graph.emit("topic.found", {"comment": comment, "topic": answer.topic})


def count_topic(event: Event, graph: BehaviorGraph, ctx: Context) -> None:
    """Count the comments on a topic."""
    name = event.payload["topic"]
    known = ctx.view.objects("topic", where={"data.name": name})
    topic = known[0] if known else graph.add_object("topic", {"name": name, "comments": 0})
    graph.add_relation(event.payload["comment"], topic.id, "about")
    graph.patch_object(topic.id, {"comments": topic.data["comments"] + 1})


def look_into(event: Event, graph: BehaviorGraph, ctx: Context) -> None:
    """Create a task when there are many comments on a topic."""
    topic = ctx.view.get_object(event.payload["target"])
    if topic is not None:
        graph.add_object("task", {"title": f"look into {topic.data['name']}", "comments": topic.data["comments"]})


def reader(request: LLMRequest) -> dict[str, str]:
    """Simulate a model: find the topic of a comment by a word of it."""
    comment = request.prompt.rpartition("What you answer to:")[2].lower()
    return {"topic": next((topic for word, topic in TOPICS.items() if word in comment), "quality")}
