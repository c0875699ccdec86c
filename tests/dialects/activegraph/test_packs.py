"""test_packs: packs bring behaviours, tools, types and policies; names that clash are refused before anything is."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from agentnb.dialects.activegraph import ObjectType, Pack, PackPolicy, PackPrompt, RelationType, Runtime, Tool, packs
from agentnb.errors import AgentNbError
from tests.dialects.activegraph.making import log, on, runtime


class Settings(BaseModel):
    n: int = 3


class Task(BaseModel):
    title: str
    k: int = 1


@packs.behavior(name="plan", on=["goal.created"])
def plan(event, graph, ctx, *, settings: Settings):
    graph.add_object("task", {"title": f"{settings.n} of {ctx.settings.n}"})


PACK = Pack("demo", "1.0", object_types=(ObjectType("task", Task),), behaviors=(plan,), settings_schema=Settings,
            relation_types=(RelationType("needs", ("task",), ("task",)),), tools=(Tool("look", lambda args, ctx: {}),),
            prompts=(PackPrompt("greet", "1", "Hello"),),
            policies=(PackPolicy("memos", requires_approval=("memo",)),))  # fmt: skip


def test_a_pack_registers_nothing_until_it_is_loaded():
    from agentnb.dialects.activegraph import get_registry

    assert plan not in get_registry()


def test_a_pack_is_loaded_once_and_told_of():
    team = runtime()
    assert (team.load_pack(PACK, {"n": 7}), team.load_pack(PACK)) == (True, False)
    assert team.loaded_packs() == [PACK]
    loaded = team.graph.events[0].payload
    assert (loaded["behaviors"], loaded["settings"]) == (["demo.plan"], {"n": 7})
    assert list(loaded["prompts"]) == ["greet"]
    team.run_goal("go")
    assert team.graph.get_object("task#1").data == {"title": "7 of 7", "k": 1}
    assert (team.get_behavior("plan").name, team.get_tool("look").name) == ("demo.plan", "demo.look")


@pytest.mark.parametrize(
    ("pack", "settings", "code"),
    [
        (Pack("demo", "2.0"), None, "R324"),
        (Pack("other", "1", object_types=(ObjectType("task", Task),)), None, "R325"),
        (Pack("twice", "1", behaviors=(plan, plan)), None, "R325"),
        (Pack("typed", "1", settings_schema=Settings), {"n": "many"}, "R322"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(pack, settings, code):
    team = runtime()
    team.load_pack(PACK)
    before, behaviors = log(team), list(team.behaviors)
    with pytest.raises(AgentNbError, match=code):
        team.load_pack(pack, settings)
    assert (log(team), team.behaviors, team.loaded_packs()) == (before, behaviors, [PACK])


def test_names_are_found_where_they_are_clear():
    team = runtime()
    team.load_pack(PACK)
    team.load_pack(Pack("other", "1", behaviors=(plan,), settings_schema=Settings))
    with pytest.raises(ValueError, match="R327"):
        team.get_behavior("plan")
    with pytest.raises(LookupError, match="R326"):
        team.get_tool("nothing")
    assert team.get_behavior("other.plan").name == "other.plan"


def test_what_is_of_a_packs_type_is_as_the_pack_says():
    @on("go")
    def wrong(event, graph, ctx):
        graph.add_object("task", {"name": "no title"})

    @on("go")
    def ends(event, graph, ctx):
        memo = graph.add_object("note", {})
        graph.add_relation(memo.id, memo.id, "needs")

    @on("go")
    def gated(event, graph, ctx):
        graph.add_object("memo", {})

    team = runtime(wrong, ends, gated)
    team.load_pack(PACK)
    team.session.emit("go", {})
    team.run_until_idle()
    assert [error.reason for error in team.errors] == [
        "pack.schema_violation",
        "pack.schema_violation",
        "policy.denied",
    ]


def test_a_run_with_packs_is_loaded_with_them(tmp_path):
    team = runtime(persist_to=tmp_path / "run.db", packs=[PACK])
    team.run_goal("go")
    team.session.close()
    loaded = Runtime.load(tmp_path / "run.db", behaviors=[], packs=[PACK], replay_strict=True)
    assert log(loaded) == log(team)
