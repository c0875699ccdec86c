from __future__ import annotations

from decimal import Decimal

import networkx as nx
import pytest

from agentnb.session import logs
from agentnb.world.llm.base import LLMError, LLMResponse, Usage
from tests.engine.graph_shapes import SHAPES, shape_of
from tests.session.budget_sessions import budgeted
from tests.session.gated_nodes import live
from tests.session.log_capture import logging_to, off
from tests.session.small_sessions import asking, broken, calling, counting, fan, graph, looping, session


@pytest.fixture(autouse=True)
def _off():
    off()
    yield
    off()


def test_a_run_begins_and_ends():
    with logging_to() as lines:
        run = session(graph("a", "b", name="two"), {"n": 1})
        assert lines.rows == []
        run.run()
    assert [(row["level"], row["message"], row["step"]) for row in lines.rows] == [
        ("INFO", "run of 'two' begins", 0),
        ("INFO", "run of 'two' has finished after step 2", 2),
    ]
    assert {(row["run_id"], row["dialect"]) for row in lines.rows} == {(run.run_id, "networkx")}
    assert lines.rows[0]["payload"] == {"inputs": {"n": 1}}


def test_stepping_writes_the_same_log():
    with logging_to("DEBUG") as stepped:
        run = session(graph("a", "b"))
        while run.step():
            pass
    with logging_to("DEBUG") as ran:
        session(graph("a", "b")).run()
    assert stepped.told() == ran.told()
    assert len(ran.told()) == 4


def test_a_limit_that_ends_a_run_is_named():
    with logging_to() as lines:
        run = session(counting(), {"n": 0}, budget={"max_steps": 4})
        run.run()
        run.step()
        assert lines.told()[1:] == ["run of 'counting' is exhausted after step 4: max_steps is used up"]
        assert lines.rows[-1]["reason"] == "max_steps"
        run.set_budget(max_steps=5).run()
    assert lines.told()[2:] == ["run of 'counting' is exhausted after step 5: max_steps is used up"]


def test_a_waiting_run_names_the_role():
    with logging_to() as lines:
        run = session(asking())
        run.run()
        run.run()
        assert (lines.told()[1:], lines.rows[-1]["node"]) == (
            ["run of 'made' waits after step 1: 'ask' waits for a person"],
            "ask",
        )
        run.answer("yes")
        run.run()
    assert [row["logger"] for row in lines.rows[2:]] == ["agentnb.call", "agentnb.run"]
    assert lines.told()[-1] == "run of 'made' has finished after step 3"


def test_a_run_that_only_listens_is_idle():
    with logging_to() as lines:
        budgeted("reactive").run()
    assert lines.told("INFO") == ["run of 'shape' begins", "run of 'shape' is idle after step 6"]


@pytest.mark.parametrize("level", ["INFO", "WARNING"])
def test_a_node_that_fails_is_reported_once(level):
    with logging_to(level) as lines:
        run = session(broken())
        run.run()
        assert len(lines.told("ERROR")) == 1
        row = next(row for row in lines.rows if row["level"] == "ERROR")
        assert (row["node"], row["step"], row["error_type"], row["error_message"]) == (
            "middle", 2, "ValueError", "it broke",
        )  # fmt: skip
        run.back()
        run.goto(2)
        assert len(lines.told("ERROR")) == 1
        run.retry()
    assert lines.told("ERROR") == [f"step {step}: node 'middle' failed: ValueError: it broke" for step in (2, 3)]


def test_warnings_of_a_step_are_logged_as_warnings():
    from tests.dialects.symphony.symphony_agents import executor

    with logging_to("WARNING") as lines:
        executor('{"answer": 42}').execute_task("go")
    assert lines.told("WARNING") == ["step 4: node 'parse', odd: unexpected JSON: it has no 'tool_name'"]


def test_a_failure_that_propagates_is_reported_once():
    def breaks():
        raise ValueError("no")

    built_graph = looping(graph("a", a=breaks), times=1)
    built_graph.add_node("fix", kind="noop")
    built_graph.add_edge("again", "fix", kind="error")
    with logging_to("WARNING") as lines:
        run = session(built_graph)
        run.run()
    assert run.status == "finished"
    assert lines.told() == ["step 2: node 'a' failed: ValueError: no"]


def test_a_failure_that_cancels_branches_is_reported():
    with logging_to("DEBUG") as lines:
        run = budgeted("branches")
        run.run()
    failed = next(step.step for step in run.trace.steps if step.node_id == "left")
    assert lines.told("ERROR") == [f"step {failed}: node 'left' failed: ValueError: left breaks"]
    assert run.trace.steps[failed].status == "cancelled"
    assert len(lines.told("DEBUG")) == run.position


@pytest.mark.parametrize("shape", SHAPES)
def test_each_step_is_reported_in_every_shape(shape):
    with logging_to("DEBUG") as lines:
        run = budgeted(shape)
        run.run()
    rows = [row for row in lines.rows if row["level"] == "DEBUG" and not row["message"].startswith("event")]
    assert [(row["step"], row["node"]) for row in rows] == [(step.step, step.node_id) for step in run.trace.steps]
    assert [row["payload"]["writes"] for row in rows if "payload" in row][-1].items() <= shape_of(shape).end.items()


def test_a_behavior_is_named_with_its_event():
    with logging_to("DEBUG") as lines:
        budgeted("reactive").run()
    deliveries = [
        (row["behavior"], row["event_id"]) for row in lines.rows if "behavior" in row and row["level"] == "DEBUG"
    ]
    assert deliveries == [
        ("greet", "evt_001"), ("count", "evt_001"), ("greet", "evt_002"), ("count", "evt_002"),
        ("count", "evt_003"), ("count", "evt_004"),
    ]  # fmt: skip
    events = [row for row in lines.rows if row["message"].startswith("event ")]
    assert [(row["event_id"], row.get("step")) for row in events] == [
        ("evt_001", None), ("evt_002", None), ("evt_003", 1), ("evt_004", 3),
    ]  # fmt: skip
    assert events[2]["payload"] == {"event": {"to": "ada"}}


def test_an_answered_call_has_its_duration_and_usage():
    answer = LLMResponse("fine", usage=Usage(10, 5, Decimal("0.25")))
    built_graph = nx.DiGraph()
    built_graph.add_node("ask", kind="agent", ref="helper", model="big-one")
    with logging_to() as lines:
        run = session(built_graph, llm=lambda request: answer)
        run.run()
    row = next(row for row in lines.rows if row["logger"] == "agentnb.call")
    assert (row["level"], row["node"], row["cost_usd"], row["step"]) == ("INFO", "ask", "0.25", 1)
    assert row["model"] == "big-one"
    assert row["latency_seconds"] == run.trace.frames.calls["seconds"].iloc[0]
    assert row["payload"]["answer"] == "fine"


def test_a_tool_is_named_and_each_failed_attempt_is_a_warning():
    attempts = []

    def look(word):
        attempts.append(word)
        if len(attempts) < 3:
            raise OSError("down")
        return {"found": word}

    built_graph = calling(look, attempts=3)
    with logging_to() as lines:
        session(built_graph, {"word": "rain"}).run()
    rows = [row for row in lines.rows if row["logger"] == "agentnb.call"]
    assert [row["level"] for row in rows] == ["WARNING", "WARNING", "INFO"]
    assert {row["tool"] for row in rows} == {"look"}
    assert (rows[0]["error_type"], rows[0]["error_message"]) == ("OSError", "down")
    assert rows[1]["message"] == "step 2: tool 'look' of node 'look', attempt 2 failed: OSError: down"


def test_the_code_of_a_problem_is_the_reason():
    built_graph = nx.DiGraph()
    built_graph.add_node("ask", kind="agent")
    refused = LLMError(logs.Problem("X999", "refused", "there", "so", "do"))

    def model(request):
        raise refused

    with logging_to("WARNING") as lines:
        session(built_graph, llm=model).run()
    assert [row.get("reason") for row in lines.rows] == [None, "X999"]


def test_a_timeout_is_the_reason():
    import asyncio

    async def never(word):
        await asyncio.Event().wait()

    with logging_to("WARNING") as lines:
        session(calling(never, timeout=0.01), {"word": "x"}).run()
    assert lines.rows[-1]["reason"] == "timeout"


# ---------------------------------------------------------------------------------------------- going about in a run


def test_repeated_steps_are_not_reported_again():
    with logging_to("DEBUG") as lines:
        run = session(counting(), {"n": 0})
        run.run(max_steps=4)
        line_count = len(lines.texts)
        run.goto(1).goto(4).goto(0)
        assert len(lines.texts) == line_count
        run.goto(2).edit({"n": 2})
        run.run(max_steps=1)
        assert lines.told()[line_count:] == ["step 3: node 'add', run, ok"]


def test_a_fork_and_a_reset_run_have_their_own_ids():
    with logging_to() as lines:
        run = session(graph("a", "b"))
        run.run()
        fork = run.fork(at=1)
        fork.run()
        run.reset().run()
    names = [row["message"].removeprefix("run of 'made' ") for row in lines.rows]
    assert names == [
        "begins", "has finished after step 2", "resumes after step 1", "has finished after step 2",
        "begins", "has finished after step 2",
    ]  # fmt: skip
    ids = [row["run_id"] for row in lines.rows]
    assert (ids[0] == ids[1], ids[2] == ids[3] == fork.run_id, ids[4] == ids[5] == run.run_id) == (True, True, True)
    assert len(set(ids)) == 3


def test_the_log_may_be_turned_on_and_off_between_steps():
    run = session(graph("a", "b", "c", "d"))
    run.step()
    with logging_to("DEBUG") as lines:
        run.step()
        assert run._parts.run.armed
    run.step()
    assert (run._parts.run.armed, run._parts.state.hooks.rows["step"]) == (False, ())
    with logging_to("DEBUG") as more:
        run.step()
    resumed_line = "run of 'made' resumes after step"
    assert lines.told() == [f"{resumed_line} 1", "step 2: node 'b', run, ok"]
    assert more.told() == [f"{resumed_line} 3", "step 4: node 'd', run, ok", "run of 'made' has finished after step 4"]


def test_at_level_error_only_errors_are_written():
    with logging_to("ERROR") as lines:
        run = session(broken())
        run.run()
        assert not run._parts.run.armed
    assert [row["level"] for row in lines.rows] == ["ERROR"]


def test_a_background_run_with_branches_is_logged_completely():
    async def main():
        with logging_to("DEBUG") as lines:
            run = session(fan("x", "y", "z"))
            run.start()
            await run.wait()
            assert (len(lines.told("DEBUG")), lines.told("INFO")[-1]) == (
                run.position,
                f"run of 'fan' has finished after step {run.position}",
            )

    live(main)


def test_the_log_is_one_of_the_hooks():
    with logging_to():
        run = session(graph("a", "b"))
        run.step()
        assert [len(run._parts.state.hooks.rows[moment]) for moment in ("step", "change")] == [1, 1]
    with logging_to("WARNING"):
        run.step()
        assert [len(run._parts.state.hooks.rows[moment]) for moment in ("step", "change")] == [0, 1]
