"""What no run could go by is told where a behavior is made, or given to a runtime."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import BaseModel

from agentnb.dialects import activegraph as ag
from agentnb.dialects.activegraph import Behavior, Graph, LLMBehavior, Runtime
from agentnb.errors import AgentNbError
from tests.dialects.activegraph.judge import assert_same_signatures


def nothing(event, graph, ctx):
    """Do nothing."""


async def later(event, graph, ctx):
    """Do nothing."""


def bit_by_bit(event, graph, ctx):
    yield


class Later:
    async def __call__(self, event, graph, ctx):
        """Do nothing."""


def test_two_behaviors_with_one_name_are_rejected():
    with pytest.raises(AgentNbError, match="R329"):
        Runtime(Graph(), behaviors=[Behavior("same", nothing, on=["go"]), Behavior("same", nothing, on=["come"])])


def test_a_cell_that_runs_again_registers_its_behavior_once():
    ag.clear_registry()
    for priority in (1, 2):

        @ag.behavior(on=["go"], priority=priority)
        def answers(event, graph, ctx):
            graph.add_object("answer", {})

    assert [behavior.priority for behavior in ag.clear_registry()] == [2]


def test_relation_behaviors_run_neither_before_nor_after_others_unless_they_have_a_priority():
    ag.clear_registry()
    ag.relation_behavior("next", on=["go"], name="relates")(lambda relation, event, graph, ctx: None)
    ag.behavior(on=["go"], name="hears")(nothing)
    assert [behavior.priority for behavior in ag.clear_registry()] == [0, 0]


@pytest.mark.parametrize("fn", [later, bit_by_bit, Later()])
def test_a_generator_function_is_rejected(fn):
    with pytest.raises(AgentNbError, match="R330"):
        Behavior("a", fn, on=["go"])
    with pytest.raises(AgentNbError, match="R330"):
        LLMBehavior("a", nothing, on=["go"], handler=fn)


def test_an_unknown_operator_of_where_is_reported_where_it_is_written():
    with pytest.raises(AgentNbError, match="X504"):
        Behavior("a", nothing, on=["go"], where={"n": {"~": 1}})


@pytest.fixture(autouse=True)
def _registries_of_their_own():
    ag.clear_registry()
    ag.clear_tool_registry()
    yield
    ag.clear_registry()
    ag.clear_tool_registry()


def two(event, graph):
    """Do nothing."""


def three(event, graph, ctx):
    """Do nothing."""


def four(event, graph, ctx, answer):
    """Do nothing."""


def any_number(*given):
    """Do nothing."""


@pytest.mark.parametrize(
    ("decorate", "fits", "not_these"),
    [
        (ag.behavior(on=["go"]), [three, any_number], [two, four]),
        (ag.relation_behavior("near", on=["go"]), [four, any_number], [two, three]),
        (ag.llm_behavior(on=["go"]), [four, any_number], [two, three]),
        (ag.tool(), [two, any_number], [three, four]),
    ],
    ids=["behavior", "relation_behavior", "llm_behavior", "tool"],
)
def test_a_function_must_accept_the_arguments_of_its_call(decorate, fits, not_these):
    for fn in fits:
        assert decorate(fn).name == fn.__name__
    for fn in not_these:
        with pytest.raises(TypeError, match=fn.__name__):
            decorate(fn)
    assert len(ag.get_registry()) + len(ag.get_tool_registry()) == len(fits)


def test_missing_parameters_of_a_function_are_reported():
    with pytest.raises(TypeError, match=r"@behavior: 'two' must accept 3 positional arguments \(event, graph, ctx\)"):
        ag.behavior(on=["go"])(two)


class Wishes(BaseModel):
    size: int = 1


def test_required_keyword_parameters_are_rejected():
    def bare(event, graph, ctx, *, more):
        pass

    def annotated(event, graph, ctx, *, wishes: Wishes):
        pass

    def defaults(event, graph, ctx, late=1, *, more=2, **rest):
        pass

    with pytest.raises(TypeError, match=r"requires more beyond the \(event, graph, ctx\) contract"):
        ag.behavior(on=["go"])(bare)
    assert ag.behavior(on=["go"])(annotated).name == "annotated"
    assert ag.behavior(on=["go"])(defaults).name == "defaults"

    def with_settings(args, ctx, *, wishes: Wishes):
        return {}

    with pytest.raises(TypeError, match=r"requires wishes beyond the \(args, ctx\) contract"):
        ag.tool()(with_settings)
    with pytest.raises(TypeError, match="must decorate a callable"):
        ag.tool()(5)


def test_a_tool_takes_its_schema_from_the_annotation_of_its_arguments():
    @ag.tool()
    def plain(args: dict, ctx):
        return {}

    @ag.tool()
    def annotated(args: Wishes, ctx):
        return {}

    @ag.tool()
    def in_words(args: Wishes, ctx):
        return {}

    @ag.tool(input_schema=Note)
    def given(args: Wishes, ctx):
        return {}

    schemas = [each.input_schema for each in (plain, annotated, in_words, given)]
    assert schemas == [None, Wishes, Wishes, Note]


class Note(BaseModel):
    text: str


class Untold(BaseModel):
    """A model that JSON Schema has no words for."""

    call: Callable[[], int]


@pytest.mark.parametrize("schema", [dict, {"type": "object"}, Note(text="x"), "Note", Untold])
@pytest.mark.parametrize(
    "made",
    [
        lambda schema: ag.llm_behavior(on=["go"], output_schema=schema),
        lambda schema: LLMBehavior("a", four, on=["go"], handler=four, output_schema=schema),
        lambda schema: ag.tool(output_schema=schema)(two),
        lambda schema: ag.Tool("a", two, input_schema=schema),
    ],
    ids=["llm_behavior", "LLMBehavior", "tool", "Tool"],
)
def test_an_invalid_schema_is_rejected_at_its_place(made, schema):
    with pytest.raises(TypeError, match=r"put_schema(=Untold has no JSON Schema| must be a pydantic model)"):
        made(schema)


def test_a_model_is_a_schema():
    behavior = ag.llm_behavior(on=["go"], output_schema=Note)(four)
    assert (behavior.output_schema, ag.get_registry()) == (Note, [behavior])


def test_signatures_are_those_of_the_package():
    assert_same_signatures(
        "behavior", "relation_behavior", "register", "get_registry", "clear_registry", "Behavior", "RelationBehavior"
    )
