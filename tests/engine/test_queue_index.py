"""A long queue is changed in its place: it reads as one that is written anew at each step, in every state of a run."""

from __future__ import annotations

import asyncio
import json

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.dialects.polaris import Graph, system
from agentnb.engine.core import scheduler
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.session import Session
from agentnb.session.reopen import reopen_run
from agentnb.session.state import get_state
from agentnb.store import MemoryLog
from agentnb.trace import SimulationTrace


def waiting(name, rounds):
    async def wait(board):
        for _ in range(rounds):
            await asyncio.sleep(0)
        return {name: [*board.get(name, []), rounds]}

    return wait


def recipe(branches):
    """Return a recipe of branches: each a list of nodes, by how many turns of the loop a node waits, or of branches."""
    nodes, edges, regions = {}, [], {"root": Region("root", ("all",))}

    def section(owner, scope, inner):
        bodies = []
        for number, steps in enumerate(inner):
            region = f"{owner}_{number}"
            bodies.append(region)
            names = []
            for place, step in enumerate(steps):
                name = f"{region}_{place}"
                names.append(name)
                if isinstance(step, list):
                    section(name, region, step)
                else:
                    nodes[name] = Node(name, "function", scope=region, params={"function": waiting(name, step)})
            edges.extend(map(Edge, names, names[1:]))
            regions[region] = Region(region, (names[0],), owner=owner)
        nodes[owner] = Node(owner, "parallel", scope=scope, bodies=tuple(bodies))

    section("all", "root", branches)
    return Recipe("branches", "graph", nodes, tuple(edges), ("all",), regions=regions)


def queues(session):
    """Return the activations that are next after each step of a session's own history."""
    history = get_state(session).run.history
    return [history.queue_after(step) for step in range(history.base, history.tip + 1)]


def naive_queues(session):
    """Return the same, from what each step scheduled in place of its own activation."""
    history = get_state(session).run.history
    queue = history.push_activations[: history.push_ends[0]].tolist()
    queues = [queue]
    for row in range(1, len(history.step_activations)):
        place = queue.index(history.step_activations[row])
        queue = [
            *queue[:place],
            *history.push_activations[history.push_ends[row - 1] : history.push_ends[row]],
            *queue[place + 1 :],
        ]
        queues.append(queue)
    return queues


steps = st.lists(st.integers(0, 4), min_size=1, max_size=3)
nested = st.lists(st.integers(0, 3) | st.lists(steps, min_size=1, max_size=3), min_size=1, max_size=3)


@given(st.lists(nested, min_size=1, max_size=6), st.integers(0, 40), st.integers(0, 3))
def test_changing_a_queue_in_place_equals_changing_a_list_in_place(branches, place, back):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "SHORT", -1)  # as if many branches were open
        log = MemoryLog()
        session = Session(recipe(branches), store=log, run_id="r")
        session.run()
        assert session.status == "finished", session.error
        assert queues(session) == naive_queues(session)
        end = dict(session.board)
        at = place % (session.position + 1)
        session.goto(at)
        frontier = session.frontier
        run = get_state(session).run
        assert [entry.node for entry in frontier] == [run.get_node_id(number) for number in queues(session)[at]]
        fork = session.fork(at)
        fork.step(back + 1)
        fork.back(back)
        fork.run()
        assert dict(fork.board) == end
        wanders = Session(recipe(branches))
        wanders.step(at + back)
        wanders.back(back).run()
        assert dict(wanders.board) == end
        session.close()
        reopened = reopen_run(log, log.run("r"), get_state(session).run.plan)
        assert queues(reopened) == queues(session)
        reopened.goto(at)
        assert reopened.frontier == frontier


@pytest.mark.parametrize("waits", [(0, 0, 0), (3, 0, 1), (0, 2, 0)])
def test_a_branch_with_several_scheduled_nodes_runs_them_in_order(waits, monkeypatch):
    monkeypatch.setattr(scheduler, "SHORT", -1)  # as if many branches were open
    nodes = {"all": Node("all", "parallel", bodies=("one", "other"))}
    edges, regions = [], {"root": Region("root", ("all",))}
    for body in ("one", "other"):
        for name, wait in zip("abc", waits, strict=True):
            nodes[body + name] = Node(
                body + name, "function", scope=body, params={"function": waiting(body + name, wait)}
            )
        edges += [Edge(f"{body}a", f"{body}b"), Edge(f"{body}a", f"{body}c")]
        regions[body] = Region(body, (f"{body}a",), owner="all")
    session = Session(Recipe("fans", "graph", nodes, tuple(edges), ("all",), regions=regions, routing="all"))
    session.run()
    assert session.status == "finished", session.error
    assert queues(session) == naive_queues(session)
    ran = [step.node_id for step in session.trace.steps if step.node_id != "all"]
    assert [[name for name in ran if name.startswith(body)] for body in ("one", "other")] == [
        ["onea", "oneb", "onec"], ["othera", "otherb", "otherc"],
    ]  # fmt: skip


def test_a_trace_contains_a_long_queue(tmp_path):
    session = Session(recipe([[number % 3, number % 2] for number in range(40)]))
    session.run()
    session.trace.to_json(tmp_path / "run.json")
    read = SimulationTrace.read(tmp_path / "run.json")
    assert read.state_at(len(read)) == dict(session.board)
    document = json.loads((tmp_path / "run.json").read_text())
    assert "replaced" in json.dumps(document)


def test_a_step_of_many_branches_pushes_only_its_successors():
    session = Session(recipe([[0, 0] for _ in range(200)]))
    session.run()
    assert session.status == "finished"
    assert len(get_state(session).run.history.push_activations) < 3 * session.position


def fan(count, behind):
    """Return a graph of branches, each with the nodes behind its first one; names that begin with `j` are joins."""
    graph = nx.DiGraph(name="fan", entry="a")
    graph.add_node("a", function=dict)
    graph.add_node("j", kind="join")
    for number in range(count):
        names = [f"n{number}", *behind(number), "j"]
        for name in names:
            graph.add_node(name, **({"kind": "join"} if name.startswith("j") else {"function": lambda board: {}}))
        graph.add_edge("a", names[0], kind="parallel")
        nx.add_path(graph, names)
    return graph


@pytest.mark.parametrize(
    "behind",
    [
        lambda number: [],
        lambda number: [f"m{number}"],
        lambda number: [f"m{number}"] * (number % 2),
        lambda number: [f"j{number // 2}"],
        lambda number: [f"j{number}"],
        lambda number: [f"j{number % 3}", f"m{number % 3}"],
    ],
    ids=["one_join", "two_nodes", "uneven", "pairs", "a_join_each", "three_joins"],
)
def test_a_step_of_many_branches_that_meet_in_a_join_pushes_only_its_successors(behind):
    session = nb.Session(nb.load(fan(200, behind)), budget={"max_steps": 10_000})
    session.run()
    assert session.status == "finished"
    assert session.trace.steps[-1].node_id == "j"
    assert len(get_state(session).run.history.push_activations) < 4 * session.position


@pytest.fixture
def examined(monkeypatch):
    """Collect the lengths of the queues in which joins are searched."""
    lengths, examine = [], scheduler._queue_joins
    monkeypatch.setattr(scheduler, "_queue_joins", lambda run, queue: lengths.append(len(queue)) or examine(run, queue))
    return lengths


def test_the_branches_of_a_parallel_section_do_not_search_its_join(examined):
    async def work() -> int:
        return 1

    graph = Graph("p")
    graph.add_parallel("all", [system(work)] * 200)
    session = nb.Session(nb.load(graph), budget={"max_steps": 10_000})
    session.run()
    assert session.status == "finished"
    assert sum(examined) < 3 * 200


@pytest.mark.parametrize("count", [1, 100])
def test_a_join_is_searched_only_by_steps_that_concern_it(count, examined):
    graph = nx.DiGraph(name="loop", entry="a")
    graph.add_node("a", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_node("end", kind="join")
    for number in range(count):
        graph.add_node(f"b{number}", function=lambda board: {})
        graph.add_edge("a", f"b{number}", kind="parallel")
    graph.add_edge("b0", "end", when="n > 30")
    graph.add_edge("b0", "a")
    session = nb.Session(nb.load(graph), {"n": 0}, budget={"max_steps": 10_000})
    session.step(5)
    before = len(examined)
    session.run(until="n > 30")
    assert (session.board["n"], len(examined)) == (31, before)
    session.run()
    assert (session.status, session.trace.steps[-1].node_id) == ("finished", "end")


def test_a_join_is_found_after_going_back():
    session = nb.Session(nb.load(fan(3, lambda number: [f"m{number}_{place}" for place in range(number)])))
    session.run()
    nodes = [step.node_id for step in session.trace.steps]
    for at in range(len(nodes)):
        for fork in (session.fork(at), session.goto(at) or session):
            fork.step(1)
            fork.back(1)
            fork.run()
            assert [step.node_id for step in fork.trace.steps] == nodes


@pytest.mark.parametrize("last", [False, True])
def test_a_branch_continues_beside_branches_that_run_longer(last):
    """Each first node waits, for a limited number of rounds of the loop, until the branch before it has ended."""
    ended, count = set(), 20

    def first(number):
        async def wait(board):
            for _ in range(200):
                await asyncio.sleep(0)
                if number in {0, *(branch + 1 for branch in ended)}:
                    break
            return {}

        return wait

    def second(number):
        async def end(board):
            ended.add(number)
            return {"before": sorted(ended)}

        return end

    nodes, edges, regions = {}, [], {"root": Region("root", ("all",))}
    order = range(count - 1, -1, -1) if last else range(count)
    for place, number in enumerate(order):
        body = f"b{place}"
        for name, function in (("x", first(number)), ("y", second(number))):
            nodes[body + name] = Node(body + name, "function", scope=body, params={"function": function})
        edges.append(Edge(f"{body}x", f"{body}y"))
        regions[body] = Region(body, (f"{body}x",), owner="all")
    nodes["all"] = Node("all", "parallel", bodies=tuple(f"b{place}" for place in range(count)))
    session = Session(Recipe("relay", "graph", nodes, tuple(edges), ("all",), regions=regions))
    session.run()
    assert session.status == "finished", session.error
    ran = [step.node_id for step in session.trace.steps if step.node_id.endswith("y")]
    assert ran == [f"b{order.index(number)}y" for number in range(count)]


def test_set_next_works_among_many_branches_as_among_few():
    def play(short):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scheduler, "SHORT", short)
            session = Session(recipe([[0, 0] for _ in range(20)]))
            session.step(3)
            session.set_next("all_7_0")
            frontiers = []
            for _ in range(45):
                frontiers.append([(entry.node, entry.branch) for entry in session.frontier])
                session.step()
            return frontiers

    assert play(scheduler.SHORT) == play(1000)
