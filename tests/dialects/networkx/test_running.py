"""What the attributes of a graph mean when it runs: prompts, inputs, outputs, chance, reducers, conditions."""

from __future__ import annotations

import asyncio
import operator

import networkx as nx
import pytest

import agentnb as nb
from agentnb.world.llm.base import LLMRequest


def line(**nodes):
    graph = nx.DiGraph(name="line")
    for name, attributes in nodes.items():
        graph.add_node(name, **attributes)
    nx.add_path(graph, nodes)
    return graph


def get_request(node, board=None):
    """Return what a model is sent for one node."""
    sent: list[LLMRequest] = []

    def model(request):
        sent.append(request)
        return {"score": 1.0, "critique": "", "text": "fine"}

    session = nb.Session(nb.load(line(it=node)), board or {"cart": ["tea"], "left": 3}, llm=model)
    session.run()
    assert session.status == "finished", session.error
    return "\n".join(message.content for request in sent for message in request.messages)


def test_the_whole_board_in_a_prompt_is_a_dict():
    assert get_request({"kind": "llm", "prompt": "All: {{ state }}"}) == "All: {'cart': ['tea'], 'left': 3}"
    assert get_request({"kind": "llm", "prompt": "{{ node }}"}, {"node": "mine"}) == "mine"


@pytest.mark.parametrize(
    "node",
    [
        {"kind": "agent", "prompt": "Buy {{ cart[0] }} for {{ left }}."},
        {"kind": "llm", "prompt": "Buy {{ cart[0] }} for {{ left }}."},
        {"kind": "llm", "prompt": "Go on.", "system": "Buy {{ cart[0] }} for {{ left }}."},
        {"kind": "llm", "prompt": [{"role": "user", "content": "Buy {{ cart[0] }} for {{ left }}."}]},
        {"kind": "evaluator", "target": "cart", "threshold": 0.5, "prompt": "Buy {{ cart[0] }} for {{ left }}."},
        {"kind": "generative", "goal": "a note", "prompt": "Buy {{ cart[0] }} for {{ left }}."},
        {"kind": "generative", "goal": "Buy {{ cart[0] }} for {{ left }}."},
    ],
    ids=lambda node: "-".join(node)[:40],
)
def test_the_prompt_of_a_model_is_a_template(node):
    assert "Buy tea for 3." in get_request(node)


def test_no_other_attribute_is_a_template():
    node = {"kind": "agent", "ref": "{{ cart }}", "output": "{{ o }}", "label": "{{ l }}", "prompt": "{{ left }}"}
    recipe = nb.load(line(it=node))
    params = recipe.nodes["it"].params
    assert (params["ref"], params["output"], recipe.nodes["it"].label) == ("{{ cart }}", "{{ o }}", "{{ l }}")
    assert recipe.nodes["it"].reads == ("left",)


def test_the_question_to_a_person_is_a_template():
    session = nb.Session(nb.load(line(ask={"kind": "human", "prompt": "Pay {{ left }}?"})), {"left": 3})
    session.run()
    assert session.pending[0].arguments["prompt"] == "Pay 3?"
    assert session.recipe.nodes["ask"].reads == ("left",)


@pytest.mark.parametrize(
    "node",
    [
        {"kind": "agent", "prompt": "{{ cart"},
        {"kind": "llm", "prompt": "{{ cart"},
        {"kind": "human", "prompt": "{{ cart"},
        {"kind": "evaluator", "target": "cart", "threshold": 0.5, "prompt": "{{ cart"},
        {"kind": "generative", "goal": "{{ cart"},
    ],
    ids=lambda node: node["kind"],
)
def test_an_invalid_template_is_reported_at_load(node):
    with pytest.raises(nb.RecipeError) as caught:
        nb.load(line(it=node))
    assert "R301" in [problem.code for problem in caught.value.problems]
    assert "nodes['it']" in str(caught.value)


def test_all_invalid_templates_of_messages_are_reported_at_their_places():
    graph = line(it={"kind": "llm", "prompt": [("user", "{{ cart"), ("user", "fine"), ("assistant", "{{ left")]})
    graph.add_node("more", kind="human", prompt="{{ more")
    with pytest.raises(nb.RecipeError) as caught:
        nb.load(graph)
    paths = [problem.where.rpartition("nodes")[2] for problem in caught.value.problems]
    assert paths == ["['it'].prompt[0]", "['it'].prompt[2]", "['more'].prompt"]


def test_the_answer_of_a_model_is_written_under_the_output():
    graph = line(
        say={"kind": "llm", "prompt": "Hello {{ name }}", "output": "greeting"}, more={"kind": "llm", "prompt": "x"}
    )
    session = nb.Session(nb.load(graph), {"name": "Ann"}, llm=["hi", "bye"])
    session.run()
    assert (session.board["greeting"], session.board["more"]) == ("hi", "bye")


def declared(inputs, **graph):
    built_graph = line(it={"function": lambda: None})
    built_graph.graph.update(inputs=inputs, **graph)
    return nb.load(built_graph)


@pytest.mark.parametrize("inputs", [{"wishes": {"type": "array"}}, {"wishes": {}}, ["wishes"]])
def test_a_declared_input_without_a_default_is_required(inputs):
    with pytest.raises(nb.RecipeError, match="R205: input 'wishes' is missing"):
        nb.Session(declared(inputs))
    with pytest.raises(nb.RecipeError, match="rename 'wishs' to 'wishes'"):
        nb.Session(declared(inputs), {"wishs": []})
    nb.Session(declared(inputs), {"wishes": []})


def test_an_input_with_a_default_or_a_first_value_is_not_required():
    assert nb.Session(declared({"n": {"default": 5}})).board["n"] == 5
    assert nb.Session(declared(["n"], init={"n": 7})).board["n"] == 7


@pytest.mark.parametrize("kind", ["function", "tool"])
@pytest.mark.parametrize("answer", [{"a": 1}, [1], "text"], ids=type)
def test_an_explicit_output_accepts_any_returned_value(kind, answer):
    async def later():
        return answer

    for call in (lambda: answer, later):
        session = nb.Session(nb.load(line(it={"kind": kind, "output": "found", "function": call})))
        session.run()
        assert dict(session.board) == {"found": answer}


@pytest.mark.parametrize("kind", ["function", "tool"])
def test_a_mapping_is_merged_where_no_output_is_named(kind):
    session = nb.Session(nb.load(line(it={"kind": kind, "function": lambda: {"a": 1}})))
    session.run()
    assert dict(session.board) == {"a": 1}


@pytest.mark.parametrize("kind", ["function", "tool"])
def test_a_parameter_with_a_default_does_not_get_the_board(kind):
    graph = line(**{f"n{i}": {"kind": kind, "function": lambda i=i: {f"v{i}": i}} for i in range(3)})
    graph.add_node("all", kind=kind, function=lambda board, extra=5: {"sum": board["v1"] + board["v2"] + extra})
    graph.add_edge("n2", "all")
    session = nb.Session(nb.load(graph))
    session.run()
    assert dict(session.board) == {"v0": 0, "v1": 1, "v2": 2, "sum": 8}


def rolling(kind="function"):
    graph = line(
        first={"kind": kind, "function": lambda rng: {"first": [rng.random(), rng.randint(1, 10**9)]}},
        second={"kind": kind, "function": lambda board, rng: {"second": [len(board), rng.random()]}},
        third={"kind": kind, "function": lambda n, *, rng: {"n": n + 1, f"r{n}": rng.random()}, "inputs": {"n": "n"}},
        end={"kind": "noop"},
    )
    graph.add_edge("end", "third", when="n < 3")
    return nb.load(graph)


@pytest.mark.parametrize("kind", ["function", "tool"])
def test_a_function_draws_from_the_seed_of_the_session(kind):
    boards = []
    for seed in (1, 1, 2):
        session = nb.Session(rolling(kind), {"n": 0}, seed=seed)
        session.run()
        assert session.status == "finished", session.error
        boards.append(dict(session.board))
    assert boards[0] == boards[1]
    drawn = {boards[0]["first"][0], boards[0]["second"][1], *(boards[0][f"r{n}"] for n in range(3))}
    assert len(drawn) == 5  # each node, each time it runs
    assert drawn.isdisjoint([boards[2]["first"][0], boards[2]["second"][1]])


def test_random_numbers_are_the_same_after_going_back_in_a_fork_and_in_a_replay():
    session = nb.Session(rolling(), {"n": 0}, seed=3)
    session.run()
    end = dict(session.board)
    assert session.replay().ok
    for at in range(session.position, -1, -1):
        fork = session.fork(at)
        fork.run()
        assert dict(fork.board) == end
    session.goto(2).step()
    session.back().run()
    assert dict(session.board) == end


def test_an_interrupted_step_draws_the_same_numbers_when_it_runs_again():
    interrupts = [KeyboardInterrupt]

    def draw(rng):
        drawn = rng.random()
        if interrupts:
            raise interrupts.pop()
        return {"x": drawn}

    session = nb.Session(nb.load(line(it={"function": draw})), seed=4)
    with pytest.raises(KeyboardInterrupt):
        session.run()
    session.run()
    other = nb.Session(nb.load(line(it={"function": draw})), seed=4)
    other.run()
    assert session.board["x"] == other.board["x"]


def test_concurrent_branches_draw_the_same_numbers_whatever_ends_first():
    async def slow(rng):
        first = rng.random()
        await asyncio.sleep(0.02)
        return {"slow": [first, rng.random()]}

    graph = line(open={"kind": "noop"}, slow={"function": slow}, meet={"kind": "join"})
    graph.remove_edge("open", "slow")
    graph.add_node("quick", function=lambda rng: {"quick": rng.random()})
    for name in ("slow", "quick"):
        graph.add_edge("open", name, kind="parallel")
        graph.add_edge(name, "meet")
    boards = []
    for stepped in (False, True):
        session = nb.Session(nb.load(graph), seed=5)
        if stepped:
            while session.step() is not None:
                pass
        else:
            session.run()
        boards.append(dict(session.board))
    assert boards[0] == boards[1]


@pytest.mark.parametrize("kind", ["function", "tool"])
def test_a_reducer_combines_a_write_with_the_existing_value(kind):
    graph = line(
        one={"kind": kind, "function": lambda: {"log": ["one"], "n": 1}, "reducers": {"log": operator.add}},
        two={"kind": kind, "function": lambda: {"log": ["two"], "n": 2}, "reducers": {"log": operator.add, "m": max}},
    )
    session = nb.Session(nb.load(graph))
    session.run()
    assert dict(session.board) == {"log": ["one", "two"], "n": 2}
    assert session.trace.steps[1].outputs["log"] == ["one", "two"]
    assert session.back().board["log"] == ["one"]
    assert session.replay().ok


def test_a_reducer_works_for_async_functions_models_and_people_too():
    async def later():
        return {"log": ["later"]}

    graph = line(
        a={"function": later, "reducers": {"log": operator.add}},
        b={"kind": "human", "output": "log", "reducers": {"log": operator.add}},
        c={"kind": "llm", "prompt": "x", "output": "log", "reducers": {"log": operator.add}},
    )
    session = nb.Session(nb.load(graph), answers=[["person"]], llm=lambda request: ["model"])
    session.run()
    assert session.board["log"] == ["later", "person", "model"]


def test_a_reducer_that_fails_is_the_failure_of_its_node():
    graph = line(
        one={"function": lambda: {"n": 1}},
        two={"function": lambda: {"n": "x", "other": 1}, "reducers": {"n": operator.add}},
    )
    session = nb.Session(nb.load(graph))
    session.run()
    assert (session.status, session.current, dict(session.board)) == ("failed", "two", {"n": 1})


def test_reducers_must_be_functions():
    with pytest.raises(nb.RecipeError, match="R114: 'reducers'"):
        nb.load(line(one={"function": lambda: None, "reducers": {"log": "add"}}))


def test_a_condition_may_be_a_function_of_the_board():
    graph = line(a={"function": lambda: {"n": 3}})
    graph.add_edge("a", "big", when=lambda board: board["n"] > 2)
    graph.add_edge("a", "small")
    graph.add_nodes_from(["big", "small"], kind="noop")
    session = nb.Session(nb.load(graph))
    session.run()
    assert [step.node_id for step in session.trace.steps] == ["a", "big"]
