"""Runs of the real activegraph package, kept in its own stores, for the tests that read them back."""

from __future__ import annotations

import sqlite3
from decimal import Decimal

import activegraph
from activegraph import Behavior, Graph, Runtime, TickingClock
from activegraph.llm.errors import LLMBehaviorError
from activegraph.llm.types import LLMResponse, ToolCall
from pydantic import BaseModel

START = "2026-01-02T03:04:05Z"


class Model:
    """A client that answers from a list: a text, a call of a tool (name, arguments), or an error to raise."""

    default_model = "fake-1"

    def __init__(self, *answers):
        self.answers = list(answers)

    def complete(self, **asked):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        calls = None
        if isinstance(answer, tuple):
            calls, answer = [ToolCall("use_1", answer[0], answer[1])], ""
        return LLMResponse(
            raw_text=answer,
            parsed={"said": answer} if answer else None,
            input_tokens=12,
            output_tokens=3,
            cost_usd=Decimal("0.0042"),
            latency_seconds=0.25,
            model="fake-1",
            finish_reason="tool_use" if calls else "end_turn",
            tool_calls=calls,
        )

    def estimate_cost(self, *_, **__):
        return Decimal("0.01")

    def count_tokens(self, *_, **__):
        return 12

    def recognizes_model(self, _):
        return True


def planner(event, graph, ctx):
    first = graph.add_object("task", {"title": "look", "status": "open"})
    second = graph.add_object("task", {"title": "write", "status": "blocked"})
    graph.add_relation(first.id, second.id, "unblocks", {})


def worker(event, graph, ctx):
    task = event.payload["object"]
    if task["data"]["status"] == "open":
        graph.patch_object(task["id"], {"status": "done"})
        graph.emit("task.completed", {"task": task["id"]})


def unblock(relation, event, graph, ctx):
    if event.payload["task"] == relation.source:
        graph.propose_patch(relation.target, "update", {"status": "open"}, rationale="its way is free")


def breaks(event, graph, ctx):
    graph.add_object("note", {"text": "made before the failure"})
    raise ValueError("no luck today")


def asks(event, graph, ctx):
    ctx.propose_object("memo", {"text": "may I?"}, reason="it is public")


def team(package=activegraph):
    """Behaviors that make objects and a relation, patch, propose, fail, and ask for an approval."""
    return [
        package.Behavior("planner", planner, on=["goal.created"]),
        package.Behavior("worker", worker, on=["object.created"], where={"object.type": "task"}),
        package.RelationBehavior("unblock", unblock, relation_type="unblocks", on=["task.completed"]),
        package.Behavior("breaks", breaks, on=["task.completed"]),
        package.Behavior("asks", asks, on=["task.completed"]),
    ]


def graph(run_id="run-team"):
    return Graph(clock=TickingClock(START), run_id=run_id)


def run_team(where, run_id="run-team"):
    """Run the team, let a person approve and decide, and remove things; return the Runtime."""
    return decide(Runtime(graph(run_id), behaviors=team(), persist_to=str(where)))


def decide(runtime):
    """Run a team's runtime, of either package, and do to it what people do; return it."""
    runtime.run_goal("Evaluate")
    runtime.approve(runtime.pending_approvals()[0].id, approved_by="ana")
    patches = [event for event in runtime.graph.events if event.type == "patch.proposed"]
    runtime.graph.apply_patch(patches[-1].payload["patch"]["id"], approved_by="ben")
    extra = runtime.graph.add_object("task", {"title": "gone soon", "status": "blocked"})
    runtime.graph.add_relation(extra.id, "task#1", "about", {"weight": 0.5})
    stale = runtime.graph.propose_patch("task#2", "replace", {"title": "x"}, proposed_by="user")
    runtime.graph.patch_object("task#2", {"owner": "cleo"})
    runtime.graph.apply_patch(stale.id)
    runtime.graph.remove_object(extra.id)
    runtime.run_until_idle()
    return runtime


class Sum(BaseModel):
    a: int
    b: int


class Total(BaseModel):
    total: int


def run_model(where, run_id="run-model"):
    """Run a behavior of a model that uses a tool, and one whose first attempt fails; return the Runtime."""

    @activegraph.tool(name="add", description="add two numbers", input_schema=Sum, output_schema=Total)
    def add(args, ctx):
        return Total(total=args.a + args.b)

    @activegraph.llm_behavior(name="think", on=["goal.created"], description="think", model="fake-1", tools=[add])
    def think(event, graph, ctx, answer):
        graph.add_object("thought", {"text": str(answer)})

    activegraph.clear_registry()
    weak = LLMBehaviorError("llm.network_error", "the line is down")
    client = Model(weak, ("add", {"a": 2, "b": 3}), "five")
    runtime = Runtime(
        graph(run_id),
        behaviors=[think],
        tools=[add],
        llm_provider=client,
        persist_to=str(where),
        llm_retry_initial_delay_seconds=0,
        trace_context_reads=True,
    )
    runtime.run_goal("Add")
    return runtime


def close(*runtimes):
    for runtime in runtimes:
        runtime.graph.store.close()


def hop(event, graph, ctx):
    if event.payload["n"]:
        graph.emit("tick", {"n": event.payload["n"] - 1})


def late(event, graph, ctx):
    graph.add_object("note", {"text": f"after {event.payload['n']}"})


def run_late(where, run_id="run-late", budget=None):
    """Run a chain of ticks, a behavior that waits for two further events, and one with a pattern; in a frame."""

    @activegraph.behavior(name="seen", on=["object.created"], where={"object.type": "note"}, pattern="(a:note)")
    def seen(event, graph, ctx):
        graph.add_object("sight", {"matches": len(ctx.matches)})

    activegraph.clear_registry()
    runtime = Runtime(
        graph(run_id),
        behaviors=[
            Behavior("start", lambda event, graph, ctx: graph.emit("tick", {"n": 4}), on=["goal.created"]),
            Behavior("hop", hop, on=["tick"]),
            Behavior("late", late, on=["tick"], where={"n": 4}, activate_after=2),
            seen,
        ],
        frame=activegraph.Frame(goal="be late", id="frame_001"),
        budget=budget,
        persist_to=str(where),
    )
    runtime.run_goal("Wait")
    return runtime


def loaded(path, run_id=None):
    """Return what the package makes of a log: its events, and its objects and relations, in order."""
    runtime = Runtime.load(str(path), run_id, behaviors=[])
    events = [event.to_dict() for event in runtime.graph.events]
    objects = [each.to_dict() for each in runtime.graph.all_objects()]
    relations = [each.to_dict() for each in runtime.graph.all_relations()]
    ids, waiting = vars(runtime.graph.ids), runtime.pending_approvals()
    close(runtime)
    return events, objects, relations, ids, waiting


def change(path, statement, *given):
    """Damage a store."""
    connection = sqlite3.connect(path)
    connection.execute(statement, given)
    connection.commit()
    connection.close()
