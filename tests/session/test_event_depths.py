"""How deep events follow from one another, see `session.spending`."""

from __future__ import annotations

from agentnb.session.usage import get_depth, measure_usage
from tests.dialects.activegraph.runtimes import on, runtime, tell


def test_the_depth_of_an_event_follows_from_its_causes():
    @on("go", "hop")
    def hop(event, graph, ctx):
        if event.payload.get("n", 0) < 4:
            graph.emit("hop", {"n": event.payload.get("n", 0) + 1})
            graph.emit("beside", {})

    team = runtime(hop)
    tell(team, "go")
    team.run_until_idle()
    fork = team.fork("evt_006")
    tell(fork, "go")
    fork.run_until_idle()
    for run in (team.session._parts.run, fork.session._parts.run):
        results: dict[str, int] = {}
        for event in run.events():
            results[event.id] = results.get(event.cause or "", 0) + 1
            assert get_depth(run.current_history, event.id, run.position) == results[event.id]
            assert get_depth(run.current_history, event.seq, run.position) == results[event.id]
            assert get_depth(run.current_history, event.seq, event.at - 1) == 0, "it was not there yet"
        assert max(results.values()) == measure_usage(run.current_history, run.position).depth + 1 == 6
    assert get_depth(team.session._parts.run.current_history, "evt_999", 99) == 0


def test_among_concurrent_steps_the_last_committed_may_emit_first():
    team = runtime(on("go")(lambda event, graph, ctx: None))
    tell(team, "go")
    team.run_until_idle()
    history, position = team.session._parts.run.history, team.session.position
    first, second, *rest = history.events
    history.events[:] = [first, second._replace(seq=3), rest[0]._replace(seq=2), *rest[1:]]
    assert [get_depth(history, seq, position) for seq in (1, 2, 3)] == [1, 2, 2]
