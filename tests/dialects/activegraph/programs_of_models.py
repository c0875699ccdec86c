"""What both packages are asked to do with models, tools and packs; see `programs`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pydantic import BaseModel


class Answers:
    """A provider that gives the answers of a list; an exception in it is raised."""

    default_model = "model-1"

    def __init__(self, p: Any, *answers: Any) -> None:
        self.p, self.answers = p, list(answers)

    def complete(self, **words: Any) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        text, parsed, calls = answer
        return self.p.LLMResponse(raw_text=text, parsed=parsed, input_tokens=5, output_tokens=7,
                                  cost_usd=Decimal("0.002"), latency_seconds=0.5, model="model-1", finish_reason="stop",
                                  tool_calls=[self.p.ToolCall(*call) for call in calls] or None)  # fmt: skip

    def count_tokens(self, **words: Any) -> int:
        return 10

    def estimate_cost(self, **words: Any) -> Decimal:
        return Decimal("0.01")

    def recognizes_model(self, model: str) -> bool:
        return True


class Note(BaseModel):
    text: str
    n: int = 1


class Query(BaseModel):
    q: str


# Fields that an exception may have: some of them are fields of every failure.
FIELDS = ("behavior", "event_id", "exception_type", "message", "reason", "type", "attempts", "tool", "error", "model")
MORE = dict.fromkeys(FIELDS, "more")


def _thinking(p: Any, *answers: Any, budget: Any = None, schema: Any = Note, **words: Any) -> None:
    @p.tool(name="look", description="looks", input_schema=Query, deterministic=True, cost_per_call=Decimal("0.5"))
    def look(args, ctx):
        return {"found": args.q, "by": ctx.behavior_name}

    @p.tool(name="breaks")
    def breaks(args, ctx):
        raise ValueError("it broke")

    @p.tool(name="odd", output_schema=Note)
    def odd(args, ctx):
        return {"zip": 1}

    @p.tool(name="refuses")
    def refuses(args, ctx):
        raise p.ToolError("tool.refused", "no", payload_extras=MORE)

    tools = [look, breaks, odd, refuses]

    @p.llm_behavior(name="think", on=["goal.created"], output_schema=schema, tools=tools, **words)
    def think(event, graph, ctx, answer):
        graph.emit("thought", {"answer": repr(answer)})

    @p.behavior(name="hears", on=["thought"])
    def hears(event, graph, ctx):
        graph.emit("heard", {})

    p.Runtime(p.graph, llm_provider=Answers(p, *answers), frame=p.Frame("think"), budget=budget,
              llm_retry_initial_delay_seconds=0.0).run_goal("think")  # fmt: skip


def a_model_answers(p: Any) -> None:
    _thinking(p, ("{}", Note(text="a"), ()))


def a_model_answers_a_dict(p: Any) -> None:
    _thinking(p, ("{}", {"text": "a", "n": 3}, ()))


def a_model_answers_text(p: Any) -> None:
    _thinking(p, ("plain", None, ()), schema=None)


def a_model_asks_for_tools(p: Any) -> None:
    calls = (("c1", "look", {"q": "1"}), ("c2", "look", {"q": "2"}))
    _thinking(p, ("", None, calls), ("", None, (("c3", "look", {"q": "1"}),)), ("{}", Note(text="z"), ()))


def a_model_is_asked_again(p: Any) -> None:
    _thinking(p, p.LLMBehaviorError("llm.network_error", "gone"), p.LLMBehaviorError("llm.rate_limited", "slow"),
              ("{}", Note(text="b"), ()))  # fmt: skip


def a_model_refuses(p: Any) -> None:
    _thinking(p, p.LLMBehaviorError("llm.auth_error", "no"))


def a_model_refuses_with_more_fields(p: Any) -> None:
    _thinking(p, p.LLMBehaviorError("llm.auth_error", "no", payload_extras=MORE))


def a_model_is_asked_in_vain_and_tells_more(p: Any) -> None:
    _thinking(p, *[p.LLMBehaviorError("llm.network_error", "gone", payload_extras=MORE)] * 3)


def a_model_never_answers(p: Any) -> None:
    _thinking(p, ValueError("odd"), ValueError("odd"), ValueError("odd"))


def a_model_answers_badly(p: Any) -> None:
    _thinking(p, ("not JSON", None, ()))


def a_tool_breaks(p: Any) -> None:
    _thinking(p, ("", None, (("c1", "breaks", {"q": "1"}),)))


def a_tool_refuses_with_more_fields(p: Any) -> None:
    _thinking(p, ("", None, (("c1", "refuses", {}),)))


def a_tool_gives_something_else(p: Any) -> None:
    _thinking(p, ("", None, (("c1", "odd", {"q": "1"}),)))


def a_tool_is_given_something_else(p: Any) -> None:
    _thinking(p, ("", None, (("c1", "look", {"other": "1"}),)))


def a_tool_is_unknown(p: Any) -> None:
    _thinking(p, ("", None, (("c1", "nowhere", {"q": "1"}),)))


def tools_without_an_end(p: Any) -> None:
    _thinking(p, *[("", None, (("c1", "look", {"q": "1"}),))] * 3, max_tool_turns=2)


def a_question_is_too_dear(p: Any) -> None:
    _thinking(p, ("{}", Note(text="a"), ()), budget={"max_cost_usd": "0.005"})


class Settings(BaseModel):
    n: int = 3


class Task(BaseModel):
    title: str
    k: int = 1


def a_pack(p: Any) -> None:
    packs = p.packs

    @packs.behavior(name="plan", on=["goal.created"])
    def plan(event, graph, ctx, *, settings: Settings):
        graph.add_object("task", {"title": f"{settings.n} {ctx.settings.n} {ctx.pack_settings('demo').n}"})
        graph.add_object("other", {"any": "thing"})

    @packs.relation_behavior("needs", on=["task.done"], name="hears")
    def hears(relation, event, graph, ctx):
        graph.emit("heard", {"relation": relation.id})

    @packs.behavior(name="links", on=["object.created"], where={"object.type": "task"})
    def links(event, graph, ctx):
        graph.add_relation("task#1", "task#1", "needs")
        graph.emit("task.done", {"task": "task#1"})

    pack = packs.Pack(
        name="demo", version="1.0", description="shows", object_types=(packs.ObjectType("task", Task),),
        relation_types=(packs.RelationType("needs", ("task",), ("task",)),), behaviors=(plan, hears, links),
        settings_schema=Settings,
    )  # fmt: skip
    runtime = p.Runtime(p.graph)
    assert runtime.load_pack(pack, settings={"n": 5})
    assert not runtime.load_pack(pack)
    runtime.run_goal("pack")
    assert runtime.get_behavior("plan").name == "demo.plan"


def packs_change_while_events_wait(p: Any) -> None:
    packs = p.packs

    @p.behavior(name="always", on=["go"])
    def always(event, graph, ctx):
        graph.emit("went", {})

    @packs.behavior(name="packed", on=["go", "went"])
    def packed(event, graph, ctx):
        graph.emit("heard", {"type": event.type})

    runtime = p.Runtime(p.graph)
    pack = packs.Pack(name="demo", version="1.0", behaviors=(packed,))

    def go() -> None:
        p.graph.emit(p.Event(p.graph.ids.event(), "go", {}))

    go()
    go()
    runtime.load_pack(pack)
    runtime.run_until_idle()
    go()
    runtime.disable_pack("demo")
    runtime.run_until_idle()
    go()
    runtime.load_pack(pack)
    runtime.run_quantum(max_queue_events=1, max_seconds=60.0)
    go()
    runtime.disable_pack("demo")
    go()
    runtime.run_until_idle()


PROGRAMS = [
    a_model_answers,
    a_model_answers_a_dict,
    a_model_answers_text,
    a_model_asks_for_tools,
    a_model_is_asked_again,
    a_model_refuses,
    a_model_refuses_with_more_fields,
    a_model_is_asked_in_vain_and_tells_more,
    a_model_never_answers,
    a_model_answers_badly,
    a_tool_breaks,
    a_tool_refuses_with_more_fields,
    a_tool_gives_something_else,
    a_tool_is_given_something_else,
    a_tool_is_unknown,
    tools_without_an_end,
    a_question_is_too_dear,
    a_pack,
    packs_change_while_events_wait,
]
