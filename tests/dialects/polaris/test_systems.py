from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import pytest

from agentnb.dialects.polaris import Graph, Out, Res, SystemContext, system
from agentnb.dialects.polaris.parts.systems import System, is_system, read_system, to_system
from agentnb.errors import RecipeError
from tests.dialects.polaris.polaris_graphs import Plan, Result, execute


def takes(function):
    return [(take.name, take.role, take.kind, take.needed, take.none) for take in read_system(function, {}).takes]


def test_parameter_annotations_declare_inputs():
    def one(a: Out[Plan], b: Res[dict], c: SystemContext, d: Out[Plan] | None, e: Out[list[int]] = (), f=3, *g, **h):
        pass

    assert takes(one) == [
        ("a", "out", Plan, True, False),
        ("b", "res", dict, True, False),
        ("c", "context", None, True, False),
        ("d", "out", Plan, False, True),
        ("e", "out", list[int], False, False),
    ]


@pytest.mark.parametrize(
    ("hint", "gives"),
    [
        (Plan, (Plan,)),
        (None, ()),
        (Any, None),
        (Plan | None, (Plan,)),
        (Plan | Result, (Plan, Result)),
        (Awaitable[Plan], (Plan,)),
        (Annotated[Plan, "kept"], (Plan,)),
        (list[Plan], (list[Plan],)),
    ],
)
def test_the_return_annotation_declares_outputs(hint, gives):
    def one():
        pass

    one.__annotations__ = {"return": hint}
    actual = read_system(one, {})
    assert actual.gives == gives
    assert actual.may_give(Plan) is (gives is None or Plan in gives)


def test_a_function_without_annotation_may_return_anything():
    def one():
        pass

    assert read_system(one, {}).gives is None


def test_a_decorated_function_is_called_directly_and_resolves_local_types():
    @dataclass
    class Local:
        n: int

    @system
    def one(local: Out[Local]) -> Local:
        return Local(local.n + 1)

    assert one(Local(1)) == Local(2)
    assert is_system(one)
    assert to_system(one, {}).takes[0].kind is Local
    assert Graph().add_system(one).validate().warnings[0].kind == "OutputNotProduced"


def test_an_undecorated_function_resolves_the_types_around_the_call_that_adds_it():
    @dataclass
    class Local:
        n: int

    def one(local: Out[Local]) -> Local:
        return local

    assert not is_system(one)
    added = Graph()
    added.add_system_node(one)
    for graph in (Graph().add_system(one), added):
        assert graph.nodes[0].system.gives == (Local,)


def test_a_function_with_some_arguments_filled_in_is_a_system_too():
    def stir(plan: Out[Plan], times: int) -> Plan:
        return Plan(plan.goal, plan.done + times)

    graph = (
        Graph().add_system(lambda: Plan("tea")).add_system(partial(stir, times=5)).add_system(partial(stir, times=2))
    )
    assert [node.id for node in graph.nodes[1:]] == ["stir", "stir_2"]
    assert execute(graph).output(Plan) == Plan("tea", 7)


def test_a_callable_object_is_a_system_too():
    class Adding:
        def __call__(self, plan: Out[Plan]) -> Result:
            return Result(plan.goal)

    actual = read_system(Adding(), {})
    assert (actual.name, actual.gives) == ("Adding", (Result,))
    assert to_system(actual, {}) is actual
    assert isinstance(actual, System)


def missing_type(a: Out[Nowhere]):  # noqa: F821  (that is the mistake)
    pass


def by_place(a: Out[Plan], /):
    pass


def untold(a, b: int):
    pass


@pytest.mark.parametrize(
    ("function", "told"),
    [(missing_type, "Nowhere"), (by_place, "'a'"), (untold, "'a'"), (3, "called"), (dict.update, "signature")],
)
def test_an_invalid_system_is_rejected_with_the_remedy(function, told):
    with pytest.raises(RecipeError) as caught:
        read_system(function, {})
    problem = caught.value.problems[0]
    assert problem.code == "R199"
    assert told in problem.why
    assert problem.do


def test_all_parameters_without_annotations_are_reported_at_once():
    with pytest.raises(RecipeError) as caught:
        read_system(untold, {})
    assert [problem.why.split("'")[1] for problem in caught.value.problems] == ["a", "b"]
