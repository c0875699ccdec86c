"""Packs bring behaviors, tools, types and policies; names that clash are refused before anything is."""

from __future__ import annotations

import importlib
from dataclasses import asdict
from datetime import date

import activegraph.packs
import pytest
from pydantic import BaseModel

from agentnb.dialects.activegraph import (
    ObjectType,
    Pack,
    PackNotFoundError,
    PackPolicy,
    PackPrompt,
    PackPromptLoadError,
    PackSchemaViolation,
    PackSettingsMissingError,
    PackValidationError,
    RelationType,
    Runtime,
    Tool,
    behavior,
    clear_registry,
    register,
)
from agentnb.dialects.activegraph.errors import NonSerializableEventError
from agentnb.dialects.activegraph.parts import packs
from agentnb.errors import AgentNbError
from tests.dialects.activegraph.judge import assert_same_signatures
from tests.dialects.activegraph.runtimes import log, on, runtime, tell


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


def test_a_pack_is_loaded_once_and_reported():
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
        (Pack("typed", "1", settings_schema=Settings), {"n": "many"}, "R322"),
    ],
)
def test_an_invalid_pack_is_rejected_and_changes_nothing(pack, settings, code):
    team = runtime()
    team.load_pack(PACK)
    before, behaviors = log(team), list(team.behaviors)
    with pytest.raises(AgentNbError, match=code):
        team.load_pack(pack, settings)
    assert (log(team), team.behaviors, team.loaded_packs()) == (before, behaviors, [PACK])


@pytest.mark.parametrize("kind", ["object_types", "relation_types"])
def test_a_type_that_two_packs_define_is_reported_with_the_first_pack(kind):
    def pack(name, *types):
        object_types = [ObjectType(each, Task) if kind == "object_types" else RelationType(each) for each in types]
        return Pack(name, "1", **{kind: object_types})

    team = runtime()
    team.load_pack(pack("first", "a", "b"))
    team.load_pack(pack("second", "c"))
    for taken, owner in (("b", "first"), ("c", "second")):
        with pytest.raises(AgentNbError, match=f"R325: '{taken}' of pack 'third'.*(?s:.*)pack '{owner}' has one"):
            team.load_pack(pack("third", "new", taken))


@pytest.mark.parametrize(("tools", "code"), [((), "R328"), (["nowhere"], "R233")])
def test_a_pack_that_lacks_a_model_or_a_tool_is_rejected_and_changes_nothing(tools, code):
    @packs.llm_behavior(name="think", on=["goal.created"], tools=tools)
    def think(event, graph, ctx, answer):
        """Think."""

    pack = Pack("other", "1", object_types=(ObjectType("memo", Task),), behaviors=(plan, think),
                settings_schema=Settings, policies=(PackPolicy("notes", requires_approval=("note",)),))  # fmt: skip
    team = runtime()
    team.load_pack(PACK)
    before, behaviors = log(team), list(team.behaviors)
    for _ in range(2):
        with pytest.raises(AgentNbError, match=code):
            team.load_pack(pack)
    assert (log(team), team.behaviors, team.loaded_packs()) == (before, behaviors, [PACK])
    assert team.config.gating_pack("note") == ""
    assert team.graph.add_object("memo", {"untyped": True}).data == {"untyped": True}
    with pytest.raises(LookupError, match="R326"):
        team.get_behavior("other.plan")
    team.run_goal("go")
    assert [each.payload["behavior"] for each in team.graph.events if each.type == "behavior.started"] == ["demo.plan"]
    assert team.load_pack(Pack("other", "1", behaviors=(plan,), settings_schema=Settings))


@pytest.mark.parametrize("change", ["load_pack", "disable_pack"])
def test_a_behavior_cannot_change_which_packs_are_loaded(change):
    @on("goal.created")
    def changes(event, graph, ctx):
        getattr(team, change)(Pack("other", "1") if change == "load_pack" else "demo")

    team = runtime(changes)
    team.load_pack(PACK)
    team.run_goal("go")
    assert team.loaded_packs() == [PACK]
    started = [each.payload["behavior"] for each in team.graph.events if each.type == "behavior.started"]
    assert started == ["changes", "demo.plan"]
    assert f"X112: {change}() cannot be done while the session is running" in team.errors[0].message


def test_unambiguous_short_names_are_found():
    team = runtime()
    team.load_pack(PACK)
    team.load_pack(Pack("other", "1", behaviors=(plan,), settings_schema=Settings))
    with pytest.raises(ValueError, match="R327"):
        team.get_behavior("plan")
    with pytest.raises(LookupError, match="R326"):
        team.get_tool("nothing")
    assert team.get_behavior("other.plan").name == "other.plan"


def test_objects_of_the_type_of_a_pack_match_its_schema():
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


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Upper"},
        {"name": "9th"},
        {"name": ""},
        {"version": ""},
        {"settings_schema": dict},
        {"behaviors": [plan, plan]},
        {"policies": [PackPolicy("one"), PackPolicy("one")]},
        {"prompts": [PackPrompt("a", "1", "x"), PackPrompt("a", "2", "y")]},
        {"object_types": [ObjectType("a", Task), ObjectType("a", Task)]},
        {"tools": [Tool("a", lambda args, ctx: {}), Tool("a", lambda args, ctx: {})]},
    ],
)
def test_a_pack_is_checked_when_it_is_constructed(wrong):
    with pytest.raises(PackValidationError, match="R230"):
        Pack(**{"name": "demo", "version": "1", **wrong})


def test_the_parts_of_a_pack_are_checked_when_they_are_constructed():
    with pytest.raises(PackValidationError, match="R230"):
        ObjectType("task", dict)
    with pytest.raises(PackValidationError, match="R230"):
        RelationType("")


def test_global_registrations_do_not_belong_to_a_pack():
    listener = on("x")(lambda event, graph, ctx: None)
    register(listener)
    try:
        with pytest.raises(PackValidationError, match="registered globally"):
            Pack("demo", "1", behaviors=[listener])
    finally:
        clear_registry()


@pytest.mark.parametrize("part", ["object_types", "relation_types", "behaviors", "tools", "policies", "prompts"])
@pytest.mark.parametrize("members", [[5], ["name"], {"name": 1}, "name", None, [None]])
def test_what_is_no_part_of_a_pack_is_rejected(part, members):
    with pytest.raises((AttributeError, TypeError)):
        activegraph.packs.Pack(name="p", version="1", **{part: members})
    with pytest.raises(PackValidationError, match=f"R230: .*{part}"):
        Pack("p", "1", **{part: members})


def test_a_decorator_of_packs_does_not_change_the_registry():
    def again(event, graph, ctx):
        pass

    first = behavior(name="again", on=["x"])(again)
    packs.behavior(name="again", on=["y"])(again)
    assert clear_registry() == [first]


def test_lists_become_tuples():
    pack = Pack("demo", "1", behaviors=[plan], policies=[PackPolicy("gate", ["memo"])])
    assert (pack.behaviors, pack.policies[0].requires_approval) == ((plan,), ("memo",))


def test_writes_from_outside_match_the_types_of_the_pack():
    team = runtime()
    team.graph.add_object("task", {"untyped": True})
    team.load_pack(PACK)
    item = team.graph.add_object("task", {"title": "a", "k": "7"})
    assert item.data == {"title": "a", "k": 7}
    assert team.graph.add_object("task", {"title": "b"}).data == {"title": "b", "k": 1}
    before = log(team)
    with pytest.raises(PackSchemaViolation, match="R323"):
        team.graph.add_object("task", {"k": 2})
    other = team.graph.add_object("note", {"any": "thing"})
    with pytest.raises(PackSchemaViolation, match="R323"):
        team.graph.add_relation(item.id, other.id, "needs")
    assert len(log(team)) == len(before) + 1
    assert team.graph.add_relation(item.id, "nowhere", "needs").type == "needs"
    assert team.replay().ok


def test_a_fork_checks_the_types_as_well():
    team = runtime()
    team.load_pack(PACK)
    team.run_goal("go")
    fork = team.fork(team.graph.events[-1].id)
    with pytest.raises(PackSchemaViolation, match="R323"):
        fork.graph.add_object("task", {"k": 2})


def test_policies_are_logged_under_the_name_of_their_pack():
    team = runtime()
    team.load_pack(PACK)
    assert team.graph.events[0].payload["policies"] == ["demo.memos"]


def test_an_approval_names_the_pack_whose_policy_requires_it():
    @on("ask")
    def asks(event, graph, ctx):
        ctx.propose_object("memo", {})
        ctx.propose_object("other", {})

    team = runtime(asks)
    team.load_pack(PACK)
    team.session.emit("ask", {})
    team.run_until_idle()
    assert [each.pack for each in team.pending_approvals()] == ["demo", ""]


def test_missing_required_settings_are_reported():
    class Needs(BaseModel):
        key: str

    with pytest.raises(PackSettingsMissingError, match="R322"):
        runtime().load_pack(Pack("demo", "1", settings_schema=Needs))


# -- disable_pack ------------------------------------------------------------------------------------------------------


def test_a_disabled_pack_no_longer_applies_and_can_be_loaded_again():
    team = runtime()
    team.load_pack(PACK)
    team.run_goal("go")
    assert (team.disable_pack("demo"), team.disable_pack("demo")) == (True, False)
    disabled = [event.payload for event in team.graph.events if event.type == "pack.disabled"]
    assert disabled == [{"name": "demo", "version": "1.0", "behaviors": ["demo.plan"], "tools": ["demo.look"],
                         "object_types": ["task"], "relation_types": ["needs"]}]  # fmt: skip
    objects = team.graph.all_objects()
    team.run_goal("again")
    assert (team.graph.all_objects(), team.loaded_packs()) == (objects, [])
    assert team.graph.add_object("task", {"untyped": True}).data == {"untyped": True}
    with pytest.raises(LookupError, match="R326"):
        team.get_tool("look")
    assert team.config.gating_pack("memo") == ""
    assert team.load_pack(PACK)
    team.run_goal("third")
    assert team.graph.all_objects()[-1].data["title"] == "3 of 3"


def test_a_step_of_a_disabled_pack_no_longer_waits_and_an_event_in_delivery_is_not_delivered_again():
    @on("goal.created")
    def first(event, graph, ctx):
        """Hear of it."""

    @on("goal.created")
    def last(event, graph, ctx):
        """Hear of it."""

    team = runtime(first)
    team.load_pack(PACK)
    tell(team)
    tell(team)
    team.session.step()
    assert [each.node for each in team.session.frontier][:1] == ["demo.plan"]
    team.disable_pack("demo")
    team.load_pack(Pack("late", "1", behaviors=(last,)))
    assert [each.node for each in team.session.frontier][:1] == ["first"]
    team.run_until_idle()
    started = [each.payload for each in team.graph.events if each.type == "behavior.started"]
    assert [(each["behavior"], each["event_id"]) for each in started] == [
        ("first", "evt_002"), ("first", "evt_003"), ("late.last", "evt_003")]  # fmt: skip


def test_disabling_a_pack_makes_a_short_name_unambiguous():
    team = runtime()
    team.load_pack(PACK)
    team.load_pack(Pack("other", "1", behaviors=(plan,), settings_schema=Settings))
    team.disable_pack("demo")
    assert team.get_behavior("plan").name == "other.plan"


def test_a_pack_that_was_never_loaded_cannot_be_disabled():
    with pytest.raises(PackNotFoundError, match="R232"):
        runtime().disable_pack("demo")


# -- prompts and installed packs ---------------------------------------------------------------------------------------


def test_prompts_are_read_from_a_folder(tmp_path):
    (tmp_path / "b.md").write_text('---\nversion = "1.2"\n---\nHello\n---\nthere', encoding="utf-8")
    (tmp_path / "a.md").write_text('---\nversion = "2"\nname = "first"\n---\nHi', encoding="utf-8")
    (tmp_path / ".hidden.md").write_text("nothing", encoding="utf-8")
    (tmp_path / "other.txt").write_text("nothing", encoding="utf-8")
    prompts = packs.load_prompts_from_dir(tmp_path)
    assert [(each.name, each.version, each.body) for each in prompts] == [
        ("first", "2", "Hi"),
        ("b", "1.2", "Hello\n---\nthere"),
    ]
    assert prompts[0] == PackPrompt.from_body("first", "2", "Hi")
    theirs = importlib.import_module("activegraph.packs").load_prompts_from_dir(tmp_path)
    assert [*map(asdict, prompts)] == [*map(asdict, theirs)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Hello", "no frontmatter"),
        ("---\nx = 1\n---\nHello", "no version"),
        ("---\nx = = 1\n---\nHello", "not TOML"),
        ('---\nversion = "1"\nname = "a"\n---\nHello', "two prompts"),
    ],
)
def test_a_prompt_that_cannot_be_read_names_its_file(tmp_path, text, why):
    (tmp_path / "a.md").write_text('---\nversion = "1"\n---\nHello', encoding="utf-8")
    (tmp_path / "b.md").write_text(text, encoding="utf-8")
    with pytest.raises(PackPromptLoadError, match=rf"(?s){why}.*b\.md"):
        packs.load_prompts_from_dir(tmp_path)


@pytest.mark.parametrize(("name", "why"), [("nothing", "does not exist"), ("a.md", "is not a directory")])
def test_prompts_are_in_a_folder(tmp_path, name, why):
    (tmp_path / "a.md").write_text("x", encoding="utf-8")
    with pytest.raises(PackPromptLoadError, match=f"R231.*{name}' {why}"):
        packs.load_prompts_from_dir(tmp_path / name)


def test_installed_packs_are_found_by_name(monkeypatch):
    class Entry:
        def __init__(self, name, found):
            self.name, self.value, self._found = name, f"somewhere:{name}", found

        def load(self):
            return self._found

    entries = [Entry("demo", PACK), Entry("odd", "no pack")]
    monkeypatch.setattr(packs, "entry_points", lambda *, group: entries if group == packs.ENTRY_POINTS else [])
    assert [(each.name, each.version, each.entry_point) for each in packs.discover()] == [
        ("demo", "1.0", "somewhere:demo")
    ]
    assert packs.load_by_name("demo") is PACK
    with pytest.raises(PackNotFoundError, match="R232"):
        packs.load_by_name("odd")


class Blob(BaseModel):
    body: bytes
    due: date | None = None


def test_a_field_that_json_cannot_represent_is_named():
    team = runtime()
    team.load_pack(Pack("demo", "1", object_types=[ObjectType("blob", Blob)]))
    assert team.graph.add_object("blob", {"body": b"text", "due": "2026-01-02"}).data == {
        "body": "text", "due": "2026-01-02"}  # fmt: skip
    with pytest.raises(NonSerializableEventError, match=r"the field 'body' is a bytes"):
        team.graph.add_object("blob", {"body": b"\xff"})


def test_signatures_are_those_of_the_package():
    assert_same_signatures("Pack", "ObjectType", "RelationType", "PackPolicy")
