"""What people do to a session and what they ask of it, in each of the five shapes; see test_table for its moves."""

from __future__ import annotations

import pytest

from agentnb import ABSENT
from agentnb.errors import ExecutionError
from tests.engine.graph_shapes import SHAPES, board, shape_of
from tests.session.shape_sessions import ENDS, LEAF, asking, session_of, to_where_it_waits, went

# After two steps:
CURRENT = {"diamond": "c", "cycle": "ask", "branches": "left", "nested": "think", "reactive": "greet"}
QUEUE = {
    "diamond": ["c", "b", "d"],
    "cycle": ["ask"],
    "branches": ["left", "second"],
    "nested": ["think"],
    "reactive": ["greet", "count", "greeting.done"],
}
REGIONS = {"branches": ["root", "one"], "nested": ["root", "in"]}
BOARD = {
    "diamond": {"log": ["a", "b"], "a": 1, "b": 1},
    "cycle": {"n": 2, "asked": 1},
    "branches": {"x": "root's", "out": 1, "seen": "root's"},
    "nested": {"word": "yes"},
    "reactive": {"greeted": "ada", "seen": ["evt_003"], "count": 1},
}
WROTE = {"diamond": "log", "cycle": "n", "branches": "out", "nested": "word", "reactive": "count"}
LED = {"diamond": ("b", ("d",)), "cycle": ("again", ("ask",)), "branches": ("first", ("left",)),
       "nested": ("inside", ("think",)), "reactive": ("count", ())}  # fmt: skip
CLOSED_NOW = "no incoming edge is open now"
NOT = {
    "diamond": ("fix", CLOSED_NOW, "'c' has not run"),
    "cycle": ("done", CLOSED_NOW, "in step 1 it led to 'again'"),
    "branches": ("right", CLOSED_NOW, "'second' has not run"),
    "nested": ("after", CLOSED_NOW, "step 2 went into it, and it has not been left"),
    "reactive": ("count", "the delivery of event evt_002 'hello' waits: 1 step is before it", ""),
}
NEXT = {"diamond": "d", "cycle": "done", "branches": "first", "nested": "look", "reactive": "count"}
CLOSED = {"branches": "first", "nested": "look"}  # a node in a region that is not open at the start
EDGE = {"diamond": (("c", "fix"), 3), "cycle": (("ask", "done"), 5), "branches": (("first", "left"), 3),
        "nested": (("think", "look"), 3)}  # fmt: skip
KEY = {"diamond": ("fixed", 4), "cycle": ("asked", 1), "branches": ("rescued", None), "nested": ("sees", 4),
       "reactive": ("count", 2)}  # fmt: skip
FAILS = {"diamond": 3, "branches": 5, "reactive": 1}  # of branches: with what is cancelled beside it
KINDS = {"answer": "human", "approval": "approval", "call": "tool"}


@pytest.fixture(params=SHAPES)
def name(request):
    return request.param


@pytest.fixture
def two(name):
    """A session after its first two steps."""
    session = session_of(name)
    session.step(2)
    return session


def code_of(act, *words):
    with pytest.raises(ExecutionError) as caught:
        act(*words)
    return caught.value.problems[0].code


# -- where it stands ---------------------------------------------------------------------------------------------------


def test_position_status_and_frontier_are_reported(name, two):
    regions = REGIONS.get(name, ["root"])
    assert (two.position, two.current, two.status, two.error) == (2, CURRENT[name], "paused", None)
    assert [each.node for each in two.frontier] == QUEUE[name]
    assert all(each.why for each in two.frontier)
    assert [frame.region for frame in two.stack] == regions
    assert two.frontier[0].depth == len(regions) - 1
    assert (two.cursor.position, two.cursor.frontier) == (2, two.frontier)
    assert set(two.stack) <= set(two.cursor.frames)
    assert dict(two.board) == BOARD[name]
    assert [*two.board] == [*BOARD[name]]
    with pytest.raises(TypeError):
        two.board["x"] = 1
    assert (two.pending, two.held_at, len(two.trace)) == ((), "", 2)
    two.step(99)
    assert (two.current, two.frontier, two.status) == (None, (), ENDS[name])


def test_the_events_are_listed(name, two):
    expected = ["hello", "hello", "greeting.done"] if name == "reactive" else []
    assert [event.type for event in two.events] == expected


def test_the_trace_grows_and_keeps_later_steps(name, two):
    assert [step.node_id for step in two.trace.steps] == [step.split()[0] for step in shape_of(name).steps[:2]]
    two.step(99)
    two.goto(1)
    assert len(two.trace) == len(shape_of(name).steps)
    assert two.trace.frames.steps["step"].tolist() == [*range(1, len(two.trace) + 1)]


def test_who_wrote_returns_the_step_that_wrote_a_value(name, two):
    key = WROTE[name]
    assert (two.who_wrote(key), two.who_wrote(key, 0), two.who_wrote("nothing.of this")) == (
        2, 0 if name == "cycle" else None, None,
    )  # fmt: skip


def test_why(name, two):
    assert (two.why().step, (two.why().node, two.why().targets)) == (2, LED[name])
    two.goto(0)
    assert repr(two.why()) == "nothing has run yet"


def test_why_not(name, two):
    node, reason, result = NOT[name]
    why = two.why_not(node)
    assert (why.step, why.node, why.reason, why.fired) == (2, node, reason, None)
    assert [each.result for each in why.incoming_edges] == ([result] if result else [])
    assert repr(why).startswith(f"after step 2, {node!r}: {reason}")
    first = shape_of(name).steps[0].split()[0]
    assert "next" in two.why_not(first, 0).reason
    assert two.why_not(first, "evt_001" if name == "reactive" else None).fired == 1
    codes = [code_of(two.why_not, *words) for words in (("nobody",), (first, 99), (first, "evt_999"))]
    assert codes == ["X101", "X111", "X111"]


def test_watch(name, two):
    key, value = next(iter(BOARD[name].items()))
    two.watch(key)
    two.watch(lambda seen: len(seen) == len(BOARD[name]))
    assert list(two.watches.values())[1] is True
    assert two.watches[key] == value
    two.goto(0)
    assert list(two.watches.values())[1] is False


def test_subscribe(name):
    session, received = session_of(name), []
    leave = session.subscribe(received.append)
    session.step(2)
    leave()
    session.step(99)
    assert [step.step for step in received] == [1, 2]


def test_controls_move_the_session(name, two):
    controls = two.controls()
    assert (controls.slider.value, controls.slider.max, controls.buttons["step"].disabled) == (2, 2, False)
    controls.buttons["step"].click()
    assert controls.slider.value == two.position > 2
    controls.close()


# -- acts --------------------------------------------------------------------------------------------------------------


def test_an_edit_is_an_intervention_and_starts_a_fork_in_the_past(name, two):
    key = next(iter(BOARD[name]))
    assert two.edit({"mine.inner": 1, key: ABSENT}) is two
    assert (two.board["mine"], key in two.board) == ({"inner": 1}, False)
    assert two.trace.frames.interventions["action"].tolist() == ["edit", "edit"]
    two.back().edit({"other": 2})
    assert (two.position, two.board["other"], [fork.position for fork in two.forks]) == (1, 2, [2])


def test_set_next_chooses_the_next_node(name, two):
    queue = [each.node for each in two.frontier]
    assert two.set_next(NEXT[name]).current == NEXT[name]
    assert len(two.frontier) == len(queue)
    assert "set_next" in two.trace.frames.interventions["action"].tolist()
    assert two.step().node_id == NEXT[name]
    two.goto(0)
    assert code_of(two.set_next, "nobody") == "X101"
    if name in CLOSED:
        assert code_of(two.set_next, CLOSED[name]) == "X107"


def test_emit_appends_an_event(name, two):
    before = len(two.frontier)
    two.emit("hello", {"to": "eve"})
    assert (two.events[-1].type, two.events[-1].actor, len({event.id for event in two.events})) == (
        "hello", "user", len(two.events),
    )  # fmt: skip
    assert len(two.frontier) == before + (name == "reactive")  # elsewhere nobody listens
    two.step(99)
    assert ENDS[name] == two.status
    assert went(two).count("greet error") == (3 if name == "reactive" else 0)


def test_skip_continues_with_the_given_writes(name):
    session = session_of(name)
    step = session.skip({"mine": 1})
    assert (step.node_id, step.status, session.board["mine"]) == (shape_of(name).steps[0].split()[0], "skipped", 1)
    session.step(99)
    assert (session.status, code_of(session.skip)) == (ENDS[name], "X108")


def test_retry_without_a_failure_is_the_next_step(name, two):
    assert two.retry().node_id in (CURRENT[name], "second")  # what a failure has cancelled beside it comes after it


def test_retry_runs_a_failed_node_again(name):
    session = session_of(name)
    while session.current != LEAF[name]:
        session.step()
    working, fails = session._parts.run.live_activations[session._parts.run.frontier()[0]], []

    def breaks(work, perform=working.perform):
        if not fails:
            fails.append(work)
            raise ValueError("once")
        return perform(work)

    working.perform = breaks
    failed = session.step()
    if name == "reactive":  # the failure of a behavior is no end
        assert (failed.status, session.status) == ("error", "paused")
        return
    if name == "branches":  # it leads to an error edge
        assert (session.status, session.current) == ("paused", "both")
        return
    assert (failed.status, session.status, session.error.code, session.current) == (
        "error", "failed", "X100", LEAF[name],
    )  # fmt: skip
    assert (session.retry().status, session.error) == ("ok", None)
    session.step(99)
    assert session.status == ENDS[name]


def test_a_fork_shares_the_earlier_steps_and_continues_independently(name, two):
    child = two.fork(at=1, name="child", edit={"mine": 1})
    assert (child.position, child.parent, child.name, child.board["mine"]) == (1, two, "child", 1)
    assert [step.node_id for step in child.trace.steps] == [two.trace.steps[0].node_id]
    two.step(99)
    child.step(99)
    assert (went(two), "mine" in two.board, len(two.forks)) == (shape_of(name).steps, False, 1)
    assert child.status == ENDS[name]
    assert [line.split(":")[0].split(" from")[0].strip() for line in two.tree().splitlines()] == [name, "child"]
    assert code_of(two.fork, "evt_999") == "X111"


def test_a_fork_at_an_event(name, two):
    if name != "reactive":
        assert code_of(two.fork, "evt_001") == "X111"
        return
    assert (two.fork(at="evt_003").position, two.fork(at="evt_001").position) == (1, 0)


# -- what waits for a person -------------------------------------------------------------------------------------------


def test_answer_without_a_question_is_a_problem(two):
    assert two.pending == ()
    verbs = (two.answer, two.approve, two.deny, two.change)
    assert [code_of(verb, "any") for verb in verbs] == ["X115"] * 4


@pytest.mark.parametrize("verb", ["answer", "approve", "deny"])
def test_an_answer_completes_the_step(name, verb):
    kind = "answer" if verb == "answer" else "approval"
    session = to_where_it_waits(asking(name, KINDS[kind]))
    (question,) = session.pending
    assert (session.status, question.kind, question.node, question.name, dict(question.arguments)) == (
        "waiting", kind, LEAF[name], "may it", {"of": LEAF[name]},
    )  # fmt: skip
    assert session.error.code == "X110"  # in a script nobody can be asked
    wrong = session.approve if kind == "answer" else session.answer
    assert code_of(wrong, question.id) == "X115"
    words = {"answer": ("yes", LEAF[name]), "approve": (question.id, "ada"), "deny": (question.id, "too dear")}[verb]
    step = getattr(session, verb)(*words)
    answer = {
        "answer": "yes",
        "approve": {"approved": True, "by": "ada", "reason": ""},
        "deny": {"approved": False, "by": None, "reason": "too dear"},
    }[verb]
    assert (step.node_id, step.outputs["said"]) == (LEAF[name], answer)
    interventions = session.trace.frames.interventions
    assert (interventions["action"].tolist(), interventions["target"].tolist(), interventions["actor"].tolist()) == (
        [verb], [LEAF[name]], ["ada" if verb == "approve" else "user"],
    )  # fmt: skip


def test_a_paused_call_is_read_and_edited_before_and_after(name):
    for moment, words, answer in (
        ("before", {"arguments": {"of": "mine"}}, "about mine"),
        ("before", {"answer": "instead"}, "instead"),
        ("after", {"answer": "changed"}, "changed"),
    ):
        session = asking(name, "tool")
        session.breakpoints.add(call="tool", side=moment)
        to_where_it_waits(session)
        (held,) = session.pending
        assert (session.status, held.kind, session.held_at) == (
            "in_flight", "call", f"{moment} tool call 'may it' of {LEAF[name]!r}",
        )  # fmt: skip
        assert session.change(held.id, **words) is session
        assert (session.step().outputs["said"], session.pending) == (answer, ())


# -- breakpoints -------------------------------------------------------------------------------------------------------


def stops(name, **clauses):
    """Run with one breakpoint; return after which steps it stopped."""
    session, results = session_of(name, runs=True), []
    session.breakpoints.add(**clauses)
    while session.run() is not None and session.status in ("ready", "paused"):
        results.append(session.position)
    return results


def test_breakpoints_stop_at_nodes(name):
    ran = shape_of(name).ran or shape_of(name).steps
    node = ran[2].split()[0]
    before = [at for at, step in enumerate(ran) if step.split()[0] == node]
    assert stops(name, node=node) == before
    assert stops(name, node=node, once=True) == before[:1]
    assert stops(name, node=node, side="after") == [at + 1 for at in before]
    assert stops(name, node=node, on_hit=2) == before[1:]


def test_breakpoints_stop_at_edges(name):
    if name == "reactive":
        session = session_of(name)
        assert code_of(lambda: session.breakpoints.add(edge=("greet", "count"))) == "X119"
        return
    edge, at = EDGE[name]
    assert stops(name, edge=edge)[0] == at


def test_breakpoints_stop_at_keys_steps_and_conditions(name):
    key, at = KEY[name]
    assert (stops(name, key=key) or [None])[0] == at  # at the end there is nowhere to stop
    assert stops(name, step=1) == stops(name, when=lambda seen: True, step=1) == [1]
    assert stops(name, when="1 == 2") == []
    assert stops(name, when={"==": [1, 1]}, once=True) == [0]


def test_breakpoints_stop_at_errors_and_events(name):
    actual = stops(name, error=True)
    assert (actual[0] if actual else None) == FAILS.get(name)
    assert stops(name, event="greeting.done") == ([1, 3] if name == "reactive" else [])


def test_breakpoints_stop_at_calls(name):
    session = session_of(name, runs=True)
    point = session.breakpoints.add(call="*")
    session.run()
    assert (session.status, point.hits) == (("in_flight", 1) if name == "nested" else (ENDS[name], 0))


def test_breakpoints_are_saved_and_loaded(name, tmp_path):
    session, other = session_of(name), session_of(name)
    point = session.breakpoints.add(LEAF[name], when="1 == 1", side="after", on_hit=2)
    assert session.breakpoints.save(tmp_path / "points.json").exists()
    (read,) = other.breakpoints.load(tmp_path / "points.json")
    assert (read.node, read.text, read.side, read.on_hit) == (point.node, point.text, point.side, point.on_hit)
    assert other.breakpoints.to_frame()["node"].tolist() == [LEAF[name]]


def test_debugging_does_not_change_the_result(name):
    """A session that was watched, held and walked up and down ends as one that was not."""
    session = session_of(name)
    session.watch("1 == 1")
    session.breakpoints.add(step=1)
    session.subscribe(lambda step: None)
    for verb in ("step_into", "back", "step", "step_into", "back"):
        getattr(session, verb)()
    session.step(99)
    assert (went(session), board(session._parts.run)) == (shape_of(name).steps, shape_of(name).end)
