"""What is known of a program's events before it runs, and how the samples are drawn."""

from __future__ import annotations

import agentnb as nb
from agentnb.dialects.activegraph import Graph, LLMBehavior, Runtime
from agentnb.dialects.activegraph.parts.emitted_types import find_emitted_events
from agentnb.samples import reactive
from tests.dialects.activegraph.runtimes import on, on_relation

TEAM = """team (activegraph): 6 behaviors, 6 types of events
  plan (behavior)
      -> object.created [task]
  search (behavior)
      -> object.created [note]
      -> task.done (its code names it)
  unblock (relation_behavior)
      -> task.ready (its code names it)
  write (llm_behavior)
      -> object.created [draft]
  review (behavior)
      -> draft.accepted (its code names it)
      -> draft.returned (its code names it)
  publish (behavior)
      -> object.created [memo]
  goal.created (event)
      -> plan
  object.created (event)
      -> search [object.type = 'task', object…]
      -> review [object.type = 'draft']
  task.done (event)
      -> unblock [-[blocks]-]
  task.ready (event)
      -> write
  draft.returned (event)
      -> write
  draft.accepted (event)
      -> publish"""


def test_declared_types_and_types_named_in_code_are_known_before_a_run():
    @on("go", creates=["task", "note"])
    def plan(event, graph, ctx):
        graph.add_object("task", {})

    @on("object.created")
    def work(event, graph, ctx):
        def inner():
            graph.emit("done", {})

        inner()
        graph.patch_object("x", {})
        graph.emit("nobody.hears", {})

    @on_relation("next", "done", "patch.applied")
    def follow(relation, event, graph, ctx):
        """Follow: this text names "go", and is none of the types."""

    types = find_emitted_events([plan, work, follow])
    assert types["tells"] == {"plan": {"object.created": "task, note"}}
    assert types["may"] == {"plan": ("object.created",), "work": ("done", "patch.applied"), "follow": ()}
    assert "behavior." in types["own"]


def test_the_handler_of_a_model_behavior_is_analyzed():
    def tell(event, graph, ctx, answer):
        graph.emit("told", {})

    behaviors = [LLMBehavior("ask", tell, on=["go"], handler=tell), on("told")(lambda event, graph, ctx: None)]
    assert find_emitted_events(behaviors)["may"]["ask"] == ("told",)


class Tells:
    """Callable, and without code that could be looked at."""

    def __call__(self, event, graph, ctx):
        graph.emit("told", {})


def test_a_function_without_source_names_no_types():
    from agentnb.dialects.activegraph import Behavior

    assert find_emitted_events([Behavior("odd", Tells(), on=["told"])])["may"] == {"odd": ()}


def test_the_drawing_of_the_team_before_it_runs():
    assert nb.load(reactive.team()).draw().text == TEAM


def test_the_drawing_of_the_incident_after_a_denial():
    board = reactive.incident()
    for service, text in (("shop", "low memory"), ("shop", "no memory")):
        board.session.emit("alert.raised", {"service": service, "text": text})
    board.run_until_idle()
    board.deny("approval_001", "no", "ann")
    board.run_until_idle()
    text = board.draw().text
    assert "  approval.denied (event)  <last, ×1>\n      -> call" in text
    assert "  call (behavior)  <last, ×1>" in text
    assert "  patch.applied (event)  <×2>\n      -> propose [diff.alerts.new = 2, (a:aler…]" in text


def test_every_behavior_may_emit_a_failure_and_a_failed_one_certainly_has():
    @on("go")
    def breaks(event, graph, ctx):
        raise ValueError("no")

    @on("go")
    def works(event, graph, ctx):
        pass

    @on("behavior.failed")
    def fix(event, graph, ctx):
        pass

    run = Runtime(Graph(), behaviors=[breaks, works, fix])
    before = run.draw().text
    assert before.count("-> behavior.failed (its code names it)") == 3
    run.session.emit("go")
    run.run_until_idle()
    after = run.draw().text
    assert "breaks (behavior)  <×1>\n      -> behavior.failed\n" in after
    assert "behavior.failed (event)  <last, ×1>" in after


def test_a_behavior_that_listens_to_everything_follows_any_event():
    @on("*")
    def log(event, graph, ctx):
        pass

    run = Runtime(Graph(), behaviors=[log])
    run.session.emit("this")
    run.session.emit("that")
    run.run_until_idle()
    assert "  * (event)  <last, ×2>\n      -> log" in run.draw().text


def test_an_edge_leads_to_the_behaviors_that_listen_to_created_objects():
    @on("go", creates=["claim"])
    def make(event, graph, ctx):
        pass

    @on("object.created", where={"object.type": "claim"})
    def same(event, graph, ctx):
        pass

    @on("object.created", where={"object.type": "task"})
    def other(event, graph, ctx):
        pass

    @on("object.created")
    def any_type(event, graph, ctx):
        pass

    recipe = nb.load(Runtime(Graph(), behaviors=[make, same, other, any_type]))
    edges = {(edge.source, edge.target) for edge in recipe.edges if edge.condition == "object.created"}
    assert edges == {("make", "same"), ("make", "any_type")}
