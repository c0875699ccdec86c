from __future__ import annotations

from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.samples import reactive
from agentnb.session import Session
from agentnb.session.why_event import Came


def incident():
    runtime = reactive.incident()
    for service, text in (("shop", "low memory"), ("mail", "slow"), ("shop", "no memory")):
        runtime.session.emit("alert.raised", {"service": service, "text": text})
    runtime.run_until_idle()
    return runtime.session


def test_a_delivery_says_its_event_who_told_of_it_and_what_that_followed_from():
    why = incident().why()
    assert (why.step, why.node) == (7, "propose")
    assert (why.came.event, why.came.type, why.came.teller, why.came.step) == (
        "evt_027",
        "patch.applied",
        "correlate",
        6,
    )
    assert why.came.causes == ("evt_013", "evt_003")
    assert repr(why).splitlines()[0] == (
        "step 7, 'propose' was set off by event evt_027 'patch.applied', told by 'correlate' in step 6, "
        "after evt_013 <- evt_003"
    )


def test_each_clause_is_told_with_the_value_that_was_there():
    asked = {each.condition: each.operands for each in incident().why().asked}
    assert asked["on 'patch.applied'"] == (("type", "patch.applied"),)
    assert asked["where diff.alerts.new is 2"] == (("diff.alerts.new", 2),)
    ((text, found),) = asked["pattern (a:alert)-[:part_of]->(i:incident {state: 'open'})"]
    assert (text, dict(found[0])) == ("it fits", {"a": "alert#2", "i": "incident#6"})
    assert all(each.taken and each.value is True for each in incident().why().asked)


def test_what_came_from_outside_says_so_and_what_waits_for_what_was_told():
    why = incident().why(1)
    assert (why.came.step, why.came.teller, why.came.causes) == (None, "user", ())
    assert why.went == ("correlate",)
    assert "told by 'user' from outside" in repr(why)
    assert repr(why).splitlines()[-1] == "  what it told sets off correlate"


def test_of_a_relation_it_says_which():
    runtime = reactive.team()
    runtime.run_goal("Write about swifts")
    asked = {each.condition: each.operands for each in runtime.session.why(6).asked}
    assert asked["relation blocks"] == (("its id", "rel_002"),)


def test_operators_of_a_clause_are_told_one_by_one_and_secrets_masked():
    node = Node("hears", "noop", on=("go",), params={"where": {"n": {">": 1, "<": 9}, "token": "abc"}})
    run = Session(Recipe("r", "test", {"hears": node}, (), ()))
    run.emit("go", {"n": 5, "token": "abc"}).run()
    conditions = [each.condition for each in run.why().asked]
    assert conditions[:3] == ["on 'go'", "where n > 1", "where n < 9"]
    assert "abc" not in repr(run.why())


def test_a_node_that_listens_and_leads_on_says_both():
    nodes = {"hears": Node("hears", "noop", on=("go",)), "next": Node("next", "noop")}
    run = Session(Recipe("r", "test", nodes, (Edge("hears", "next"),), ()))
    run.emit("go").run()
    assert (run.why(1).came.type, run.why(1).went) == ("go", ("next",))
    assert run.why(2).came is None


def test_a_long_way_back_is_told_by_its_nearest_events():
    came = Came("e99", "tick", "tick", 99, tuple(f"e{n}" for n in range(98, -1, -1)))
    assert str(came).endswith("after e98 <- e97 <- e96 <- e95 <- e94 <- e93 <- e92 <- e91 and 91 more before")
