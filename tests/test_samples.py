from __future__ import annotations

import pytest

from agentnb.errors import RecipeError
from agentnb.samples import samples


def test_the_list_names_each_sample_with_its_dialect():
    shown = repr(samples())
    for sample in samples():
        assert f"{sample.name} " in shown
        assert sample.dialect in {"coreason", "networkx"}


@pytest.mark.parametrize("name", [sample.name for sample in samples()])
def test_a_sample_has_no_problems_and_draws(name):
    recipe = samples(name)
    assert recipe.name == name
    assert recipe.check() == []
    assert recipe.draw().dot.startswith("digraph")
    assert recipe.fingerprint == samples(name).fingerprint


@pytest.mark.parametrize("name", [sample.name for sample in samples()])
def test_a_sample_begins_without_inputs(name):
    recipe = samples(name)
    assert set(recipe.inputs) <= set(recipe.init)


def test_the_triage_has_what_a_first_look_needs():
    kinds = [node.kind for node in samples("triage").nodes.values()]
    assert {"agent", "router", "human"} <= set(kinds)
    assert len([edge for edge in samples("triage").edges if edge.source == "sort"]) == 3


def test_a_misspelt_name_is_asked_for():
    with pytest.raises(RecipeError) as caught:
        samples("tirage")
    (problem,) = caught.value.problems
    assert (problem.code, problem.do) == ("R132", "did you mean 'triage'?")
