from __future__ import annotations

import pytest
from pydantic import BaseModel

from agentnb.dialects.activegraph import Pack, PackPolicy, Tool
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import on, runtime


class Fees(BaseModel):
    cents: int = 5


def late(event, graph, ctx, *, settings: Fees):
    graph.emit("fined", {"cents": settings.cents, "same": ctx.settings is settings})


@on("late")
def note(event, graph, ctx):
    graph.add_object("note", {})


def fees(name="fees", **words):
    fine = on("late")(late)
    look = Tool("look", lambda args, ctx: {})
    return Pack(name, "1", behaviors=(fine,), tools=(look,), settings_schema=Fees, **words)


def test_the_parts_of_a_pack_have_its_prefix_and_receive_its_settings():
    team = runtime(note)
    assert team.load_pack(fees(), {"cents": 20})
    team.session.emit("late", {})
    team.run_until_idle()
    (fined,) = (event for event in team.graph.events if event.type == "fined")
    assert (fined.actor, fined.payload) == ("fees.late", {"cents": 20, "same": True})
    assert [pack.name for pack in team.loaded_packs()] == ["fees"]
    assert (team.get_tool("look").name, team.get_behavior("note").name) == ("fees.look", "note")


def test_an_ambiguous_short_name_is_not_guessed():
    team = runtime()
    team.load_pack(fees("fees"))
    team.load_pack(fees("dues"))
    assert team.get_behavior("dues.late").name == "dues.late"
    with pytest.raises(ValueError, match="R327"):
        team.get_behavior("late")
    with pytest.raises(LookupError, match="R326"):
        team.get_tool("search")


def test_objects_that_a_pack_protects_are_not_created_without_approval():
    team = runtime(note)
    team.load_pack(Pack("notes", "1", policies=(PackPolicy("careful", requires_approval=("note",)),)))
    team.session.emit("late", {})
    team.run_until_idle()
    assert ([error.reason for error in team.errors], team.graph.all_objects()) == (["policy.denied"], [])


def test_a_fork_has_the_packs_of_its_run():
    team = runtime()
    team.load_pack(fees(), {"cents": 7})
    team.session.emit("late", {})
    fork = team.fork(team.graph.events[-1].id)
    fork.run_until_idle()
    assert [event.payload["cents"] for event in fork.graph.events if event.type == "fined"] == [7]


def test_signatures_are_those_of_the_package():
    assert_same_signatures("Runtime.load_pack", "Runtime.loaded_packs", "Runtime.get_behavior", "Runtime.get_tool")
