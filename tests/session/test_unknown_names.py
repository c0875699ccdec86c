"""Names that match nothing: keys, tables, tools and inputs."""

from __future__ import annotations

import asyncio
import pickle
from contextlib import nullcontext

import networkx as nx
import pytest

import agentnb as nb
from agentnb.recipe.model import Node, Recipe
from tests.session.small_sessions import calling, counting, graph, session

ASKING = {
    "a breakpoint's key": lambda run, key: run.breakpoints.add(key=key),
    "a breakpoint's condition": lambda run, key: run.breakpoints.add(when=f"{key} > 1"),
    "a watch": lambda run, key: run.watch(key),
    "a watched rule": lambda run, key: run.watch({">": [{"var": key}, 1]}),
    "until": lambda run, key: run.run(until=f"{key} > 1"),
    "until backwards": lambda run, key: run.run_back(until=f"{key} > 1"),
    "who_wrote": lambda run, key: run.who_wrote(key),
    "who_wrote below": lambda run, key: run.who_wrote(f"{key}.deep"),
    "wide": lambda run, key: run.trace.wide(["n", key]),
}


def budgeted(**declared):
    built_graph = graph("plan", "spend", plan=lambda budget: {"budget": budget - 1}, spend=lambda: None)
    built_graph.nodes["plan"]["inputs"] = {"budget": "budget"}
    for name, keys in declared.items():
        built_graph.nodes[name]["writes"] = keys
    run = session(built_graph, {"budget": 3, "n": 1})
    run.run()
    return run


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
def test_a_misspelled_key_is_rejected_with_a_suggestion(ask):
    run = budgeted()
    with pytest.raises(nb.ExecutionError, match="did you mean 'budget'") as caught:
        ask(run, "bugdet")
    assert caught.value.problems[0].code == "X145"
    assert (len(run.breakpoints), len(run.watches), run.status) == (0, 0, "finished")
    ask(run, "budget")


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
def test_a_key_that_a_function_may_still_write_is_accepted(ask):
    ask(budgeted(), "order")
    ask(budgeted(), "budgets")


@pytest.mark.parametrize("name", [name for name in ASKING if name != "wide"])
def test_if_each_node_declares_its_writes_other_keys_are_rejected(name):
    run = budgeted(plan=["budget"], spend=["order.total"])
    with pytest.raises(nb.ExecutionError, match="X145"):
        ASKING[name](run, "invoice")
    ASKING[name](run, "order")


def test_a_key_written_by_an_edit_is_known():
    run = budgeted(plan=["budget"], spend=["order"])
    run.edit({"bugdet": 5})
    run.who_wrote("bugdet")
    assert run.trace.wide("bugdet").columns.tolist() == ["step", "node", "bugdet"]


@pytest.mark.parametrize("word", ["nix", "chek", "nix.deep"])
def test_until_rejects_a_word_that_is_neither_node_nor_key(word):
    run = session(counting(limit=10**9), {"n": 0})
    with pytest.raises(nb.ExecutionError, match="X118"):
        run.run(until=word)
    with pytest.raises(nb.ExecutionError, match="X118"):
        run.run_back(until=word)
    assert run.position == 0
    run.run(until="n > 2")
    assert run.board["n"] == 3


def test_the_board_suggests_the_nearest_key():
    run = budgeted()
    with pytest.raises(KeyError, match="did you mean 'budget'") as caught:
        run.board["bugdet"]
    assert caught.value.args == ("bugdet",)
    assert pickle.loads(pickle.dumps(caught.value)).args == ("bugdet",)
    assert run.board.get("bugdet") is None


def test_a_function_that_reads_a_misspelled_key_gets_a_suggestion():
    run = session(graph("a", a=lambda board: {"x": board["bugdet"]}), {"budget": 3})
    run.run()
    assert "did you mean 'budget'" in run.error.what
    assert isinstance(run.cause, KeyError)


def test_an_unknown_table_has_a_suggestion():
    frames = budgeted().trace.frames
    with pytest.raises(KeyError, match="did you mean 'steps'"):
        frames["stpes"]
    with pytest.raises(AttributeError, match="did you mean 'steps'"):
        _ = frames.stpes


@pytest.mark.parametrize(("name", "order"), [("nosuch", "remove it"), ("loook", "did you mean 'look'")])
def test_an_unused_tool_is_rejected(name, order):
    with pytest.raises(nb.ExecutionError, match=order) as caught:
        session(calling("look"), {"word": "x"}, tools={"look": lambda word: word, name: len})
    assert [problem.code for problem in caught.value.problems] == ["X146"]


def declared(**inputs):
    built_graph = nx.DiGraph(name="declared", inputs=inputs)
    built_graph.add_node("a", function=lambda board: None)
    return nb.load(built_graph)


def test_an_unknown_input_is_a_warning_with_a_suggestion():
    recipe = declared(wishes={"type": "array", "default": []})
    with pytest.warns(UserWarning, match=r"R220(.|\n)*did you mean 'wishes'") as caught:
        run = nb.Session(recipe, {"wishs": [1]})
    assert len(caught) == 1
    assert run.board["wishs"] == [1]


def test_the_inputs_that_are_named_are_the_declared_ones():
    built_graph = nx.DiGraph(name="declared", inputs=["task"])
    built_graph.add_node("a", function=lambda note: None, inputs={"note": "note"})
    for given, warns in (({"task": 1, "note": 2}, False), ({"task": 1, "other": 2}, True)):
        with pytest.warns(UserWarning, match="are: task\n") if warns else nullcontext():
            nb.Session(nb.load(built_graph), given)


def test_without_declared_inputs_only_misspelled_ones_are_warnings():
    session(counting(), {"n": 0, "more": 1})
    built_graph = graph("a", a=lambda budget: None)
    built_graph.nodes["a"]["inputs"] = {"budget": "budget"}
    with pytest.warns(UserWarning, match="did you mean 'budget'"):
        session(built_graph, {"bugdet": 1})


COUNTED = {
    "step": lambda run, count: run.step(count),
    "astep": lambda run, count: asyncio.run(run.astep(count)),
    "run": lambda run, count: run.run(max_steps=count),
    "arun": lambda run, count: asyncio.run(run.arun(max_steps=count)),
    "back": lambda run, count: run.back(count),
    "until": lambda run, count: run.run(until=count),
    "until, async": lambda run, count: asyncio.run(run.arun(until=count)),
    "run_back": lambda run, count: run.run_back(until=count),
    "who_wrote": lambda run, count: run.who_wrote("n", at=count),
}


@pytest.fixture(params=["live", "recorded"])
def halfway(request, tmp_path):
    """A run after its third step, as it was made and as a recording."""
    run = session(counting(), {"n": 0})
    run.run()
    if request.param == "recorded":
        run.trace.to_json(tmp_path / "run.json")
        run = nb.open(tmp_path / "run.json")
    run.goto(3)
    yield run
    run.close()


@pytest.mark.parametrize("count", [-1, -5, 1.5, True])
@pytest.mark.parametrize("move", COUNTED.values(), ids=COUNTED)
def test_an_invalid_number_of_steps_is_rejected_and_the_run_does_not_move(halfway, move, count):
    with pytest.raises(nb.ExecutionError, match=r"X135|X118|X111"):
        move(halfway, count)
    assert halfway.position == 3
    assert halfway.goto(7).status == "finished"


@pytest.mark.parametrize("move", COUNTED.values(), ids=COUNTED)
def test_zero_is_a_valid_number_of_steps(halfway, move):
    move(halfway, 0)
    assert halfway.position in (0, 3)


MISSPELLED = {
    "a tool": ({"call": "serch"}, "search"),
    "a kind of calls": ({"call": "toool"}, "tool"),
    "a node that asks": ({"call": "aproval"}, "approval"),
    "an event type": ({"event": "order.craeted"}, "order.created"),
    "an event type that was emitted": ({"event": "order.payd"}, "order.paid"),
}


@pytest.mark.parametrize(("clause", "similar"), MISSPELLED.values(), ids=MISSPELLED)
def test_a_misspelled_call_or_event_of_a_breakpoint_is_rejected(clause, similar):
    nodes = {
        "begin": Node("begin", "tool", params={"function": "search"}),
        "ship": Node("ship", "noop", on=("order.created",)),
    }
    run = nb.Session(Recipe("shop", "test", nodes, (), ("begin",)), tools={"search": dict})
    run.run()
    run.emit("order.paid")
    for add in (run.breakpoints.add, lambda **row: run.breakpoints.log("here", **row)):
        with pytest.raises(nb.ExecutionError, match=f"did you mean '{similar}'") as caught:
            add(**clause)
        assert [problem.code for problem in caught.value.problems] == ["X148"]
    (name,) = clause
    run.breakpoints.add(**{name: similar})
    run.breakpoints.add(**{name: "other"})
    assert len(run.breakpoints) == 2


def test_a_pattern_of_calls_is_not_a_misspelling():
    run = session(calling("look"), {"word": "x"}, tools={"look": lambda word: word})
    run.breakpoints.add(call="loo*")
    run.run()
    assert run.status == "in_flight"


def test_a_misspelled_key_of_a_logpoints_message_is_rejected():
    run = budgeted()
    with pytest.raises(nb.ExecutionError, match="did you mean 'budget'"):
        run.breakpoints.log("{{ bugdet }} is left", node="spend")
    run.breakpoints.log("{{ budget }} is left", node="spend")


def look(word):
    return word.upper()


def fork(_folder, **world):
    return session(calling("look"), {"word": "x"}, tools={"look": look}).fork(**world)


def reopen(folder, **world):
    run = session(calling("look"), {"word": "x"}, tools={"look": look}, store=folder / "runs.db", run_id="a")
    run.close()
    return nb.open(folder / "runs.db", "a", recipe=run.recipe, **{"tools": {"look": look}, **world})


@pytest.mark.parametrize("go_on", [fork, reopen])
@pytest.mark.parametrize(
    ("world", "code"), [({"tools": {"look": look, "loook": len}}, "X146"), ({"llm": {"bfore": "hi"}}, "X101")]
)
def test_continuing_a_run_rejects_what_nothing_uses(go_on, world, code, tmp_path):
    with pytest.raises(nb.ExecutionError, match=r"did you mean '(look|before)'") as caught:
        go_on(tmp_path, **world)
    assert [problem.code for problem in caught.value.problems] == [code]
