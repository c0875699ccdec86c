"""Small recipes in six dialects, each with one planted bug whose cause is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import networkx as nx

import agentnb as nb
from agentnb.dialects.activegraph import Behavior, Runtime
from agentnb.dialects.activegraph import Graph as EventGraph
from agentnb.dialects.polaris import Graph, Out, system
from agentnb.dialects.symphony import AgentConfig, AgentExecutor, ToolConfig, ToolRegistry

Cases = Mapping[Any, Any]  # what a run is given -> the right result


@dataclass(frozen=True)
class Bug:
    """A recipe with one bug.

    `start` makes an unrun session for one given value; `found` returns the result of a run. `passing` and `failing`
    map given values to their right results. `cause` is the node at fault; if `condition` is set, it is what that node
    asks which is wrong, and not what it computes. `key` is the key of the wrong value; None: the last one written.
    """

    name: str
    dialect: str
    start: Callable[[Any], nb.Session]
    found: Callable[[nb.Session], Any]
    passing: Cases
    failing: Cases
    cause: str
    key: str | None = "out"
    condition: bool = False

    def run(self, given: Any) -> nb.Session:
        session = self.start(given)
        session.run(max_steps=100)
        return session

    def is_right(self, session: nb.Session, right: Any) -> bool:
        """Return whether a run has the right result; a run that has none is wrong."""
        try:
            return bool(self.found(session) == right)
        except (KeyError, IndexError, TypeError, StopIteration):
            return False


class Ranks(NamedTuple):
    """At which place each function names the cause, counted from 1; None: not at all."""

    suspects: int | None
    slice: int | None
    counterfactuals: int | None

    @property
    def best(self) -> int | None:
        return min((rank for rank in self if rank is not None), default=None)


def ranks(bug: Bug) -> Ranks:
    """Run a bug's cases and look for its cause in what the three functions return."""
    cases = {**bug.passing, **bug.failing}
    runs = {case_input: bug.run(case_input) for case_input in cases}
    verdicts = [bug.is_right(runs[case_input], right) for case_input, right in cases.items()]
    suspects = nb.suspects(list(runs.values()), verdicts)
    case, right = next(iter(bug.failing.items()))
    run = runs[case]
    key = bug.key or next((str(key) for key in reversed(list(run.trace.frames.writes["key"]))), None)
    changes = run.counterfactuals(lambda fork: bug.is_right(fork, right), effects=True)  # its tools are functions
    helped = changes[changes["outcome"]]["node"]
    return Ranks(_place(names_cause(bug, row.element, row.kind) for row in suspects.itertuples()),
                 _place(node == bug.cause for node in (run.slice(key).nodes if key else ())),
                 _place(node == bug.cause for node in dict.fromkeys(helped)))  # fmt: skip


def names_cause(bug: Bug, element: str, kind: str) -> bool:
    """Return whether a suspect is the cause: the node, its failure, or the outcome of its condition."""
    if bug.condition:
        return kind == "condition" and element.startswith(f"{bug.cause}: ")
    return kind in ("node", "error") and element.removesuffix(" failed") == bug.cause


def _place(hits: Iterable[bool]) -> int | None:
    return next((place for place, hit in enumerate(hits, 1) if hit), None)


def out(run: nb.Session) -> Any:
    return run.board["out"]


# -- networkx -------------------------------------------------------------------------------------------------------


def nx_start(functions: Mapping[str, Any], *edges: tuple[Any, ...], tools: Any = None) -> Callable[[Any], nb.Session]:
    """Return `start` of a graph: a function by node, and edges (source, target, condition or nothing)."""

    def start(given: Any) -> nb.Session:
        graph = nx.DiGraph(name="graph", entry=next(iter(functions)))
        for name, function in functions.items():
            if function is None:
                graph.add_node(name, kind="tool", function=name, inputs={"n": "n"})
            else:
                words = function.__code__.co_varnames[: function.__code__.co_argcount]
                graph.add_node(name, function=function, inputs={word: word for word in words})
        for source, target, *when in edges:
            graph.add_edge(source, target, **({"when": when[0]} if when else {}))
        return nb.Session(nb.load(graph), {"n": given}, tools=tools)

    return start


TWO_WAYS = (("look", "small", "seen < 10"), ("look", "large"))
NETWORKX = [
    Bug("a rate in one branch", "networkx",
        nx_start({"look": lambda n: {"seen": n}, "small": lambda n: {"out": n}, "large": lambda n: {"out": n * 20}},
                 *TWO_WAYS),
        out, {1: 1, 2: 2, 9: 9}, {11: 22, 30: 60}, "large"),
    Bug("a limit in a condition", "networkx",
        nx_start({"look": lambda n: {"seen": n}, "small": lambda n: {"out": n}, "large": lambda n: {"out": -n}},
                 *TWO_WAYS),
        out, {1: 1, 9: 9, 40: -40}, {11: 11, 15: 15}, "look", condition=True),
    Bug("a flag that is never set", "networkx",
        nx_start({"look": lambda n: {"vip": n > 1000}, "gold": lambda n: {"out": 2 * n}, "plain": lambda n: {"out": n}},
                 ("look", "gold", "vip"), ("look", "plain")),
        out, {1: 1, 2: 2, 2000: 4000}, {200: 400, 300: 600}, "look"),
    Bug("a sign in a line", "networkx",
        nx_start({"debt": lambda n: {"d": abs(n)}, "sum": lambda d: {"out": 2 * d + 1}}, ("debt", "sum")),
        out, {1: 3, 2: 5}, {-3: -5, -4: -7}, "debt"),
    Bug("a tool that answers wrongly", "networkx",
        nx_start({"price": None, "tax": lambda p: {"t": p // 10}, "sum": lambda p, t: {"out": p + t}},
                 ("price", "tax"), ("tax", "sum"), tools={"price": lambda n: {"p": n if n < 50 else n * 10}}),
        out, {10: 11, 20: 22}, {60: 66, 90: 99}, "price"),
    Bug("a cycle that ends too early", "networkx",
        nx_start({"begin": lambda n: {"i": 0, "out": 0}, "add": lambda i, out: {"i": i + 1, "out": out + 5},
                  "end": lambda out: {"done": out}},
                 ("begin", "add"), ("add", "add", "i < n and i < 3"), ("add", "end")),
        out, {1: 5, 2: 10, 3: 15}, {4: 20}, "add", condition=True),
]  # fmt: skip

# -- agentruntime ---------------------------------------------------------------------------------------------------


def art_tool(id: str, sets: str, source: str, **more: Any) -> dict[str, Any]:
    """Return a node that calls the tool of its name."""
    return {"id": id, "type": "tool", "uses": id, "inputs": {"n": f"{{{{ {source} }}}}"},
            "map": {"set": {sets: "{{ result.result }}"}}, **more}  # fmt: skip


def art_start(nodes: list[Any], *edges: tuple[str, str], **tools: Any) -> Callable[[Any], nb.Session]:
    content = {
        "meta": {"name": "agent"},
        "state": {"reducer": "replace", "shape": dict.fromkeys(("n", "a", "b", "out"), "a number"), "init": {}},
        "tools": [{"id": name, "kind": "python", "impl": f"tools.py#{name}"} for name in tools],
        "graph": {"inputs": ["n"], "outputs": ["out"], "nodes": nodes,
                  "edges": [{"from": source, "to": target} for source, target in edges]},
    }  # fmt: skip
    return lambda given: nb.Session(nb.load(content), {"n": given}, tools=tools)


def art_route(key: str, limit: int, below: str, default: str) -> dict[str, Any]:
    cases = [{"when": {"<": [{"var": f"state.{key}"}, limit]}, "to": below}]
    return {"id": "route", "type": "router", "cases": cases, "default": default}


ART_WAYS = [art_tool("read", "a", "n"), art_route("a", 10, "low", "high"), art_tool("low", "out", "a"),
            art_tool("high", "out", "a")]  # fmt: skip
AGENTRUNTIME = [
    Bug("a tool of one branch", "agentruntime",
        art_start(ART_WAYS, ("read", "route"), read=lambda n: n, low=lambda n: n, high=lambda n: n * 10),
        out, {1: 1, 5: 5}, {20: 20, 30: 30}, "high"),
    Bug("a limit in a router", "agentruntime",
        art_start(ART_WAYS, ("read", "route"), read=lambda n: n, low=lambda n: n, high=lambda n: -n),
        out, {1: 1, 30: -30}, {12: 12, 15: 15}, "route"),
    Bug("a reading that is wrong for some", "agentruntime",
        art_start(ART_WAYS, ("read", "route"), read=lambda n: n * 10 if n == 3 else n, low=lambda n: n,
                  high=lambda n: -n),
        out, {1: 1, 5: 5, 30: -30}, {3: 3}, "read"),
    Bug("a factor in a line", "agentruntime",
        art_start([art_tool("first", "a", "n"), art_tool("second", "b", "a"), art_tool("third", "out", "b")],
                  ("first", "second"), ("second", "third"),
                  first=lambda n: n + 3, second=lambda n: n * 2 if n > 10 else n, third=lambda n: n - 1),
        out, {1: 3, 2: 4}, {10: 12, 20: 22}, "second"),
    Bug("a fallback that is wrong", "agentruntime",
        art_start([art_tool("ask", "out", "n", on_error={"to": "guess"}), art_tool("guess", "out", "n")],
                  ask=lambda n: n // (n % 2), guess=lambda n: n * 10),
        out, {1: 1, 3: 3}, {2: 2, 4: 4}, "guess"),
]  # fmt: skip

# -- coreason -------------------------------------------------------------------------------------------------------


def agent(id: str, **inputs: str) -> dict[str, Any]:
    return {"id": id, "type": "agent", "agent_ref": id, "inputs_map": inputs}


def coreason_start(nodes: list[Any], *edges: tuple[str, str], **agents: Any) -> Callable[[Any], nb.Session]:
    edge_dicts = [{"source": source, "target": target} for source, target in edges]
    topology = {"nodes": nodes, "edges": edge_dicts, "entry_point": nodes[0]["id"]}
    content = {"metadata": {"name": "recipe"}, "interface": {}, "topology": topology}
    return lambda given: nb.Session(nb.load(content), {"text": given}, tools=agents)


def route(key: str, default: str, **routes: str) -> dict[str, Any]:
    return {"id": "route", "type": "router", "input_key": key, "routes": routes, "default_route": default}


def desk(bug_goes_to: str = "fix", **changed: Any) -> Callable[[Any], nb.Session]:
    """Return a support desk: a sorter, a router and three agents."""
    agents = {"sort": lambda text: {"topic": text}, "fix": lambda text: {"out": "fixed"},
              "pay": lambda text: {"out": "paid"}, "say": lambda text: {"out": "said"}}  # fmt: skip
    nodes = [agent("sort", text="text"), route("topic", "say", bug=bug_goes_to, refund="pay"),
             agent("fix", text="text"), agent("pay", text="text"), agent("say", text="text")]  # fmt: skip
    return coreason_start(nodes, ("sort", "route"), **(agents | changed))


COREASON = [
    Bug("a sorter that errs", "coreason", desk(sort=lambda text: {"topic": "bug" if text == "refund" else text}),
        out, {"bug": "fixed", "hello": "said"}, {"refund": "paid"}, "sort"),
    Bug("a route that leads elsewhere", "coreason", desk(bug_goes_to="pay"),
        out, {"refund": "paid", "hello": "said"}, {"bug": "fixed"}, "route"),
    Bug("an agent that does not do its work", "coreason", desk(pay=lambda text: {"out": "lost"}),
        out, {"bug": "fixed", "hello": "said"}, {"refund": "paid"}, "pay"),
    Bug("an agent that fails", "coreason", desk(pay=lambda text: {"out": text[99]}),
        out, {"bug": "fixed", "hello": "said"}, {"refund": "paid"}, "pay"),
    Bug("an amount in one branch", "coreason", desk(pay=lambda text: {"out": 190}),
        out, {"bug": "fixed", "hello": "said"}, {"refund": 19}, "pay"),
    Bug("a count in a line", "coreason",
        coreason_start([agent("count", text="text"), agent("bill", words="words")], ("count", "bill"),
                       count=lambda text: {"words": len(text.split()) + ("," in text)},
                       bill=lambda words: {"out": words * 7}),
        out, {"one": 7, "one two": 14}, {"one, two": 14}, "count"),
]  # fmt: skip

# -- symphony -------------------------------------------------------------------------------------------------------


def symphony_start(model: Callable[[str, int], Any], max_calls: int = 2, **tools: Any) -> Callable[[Any], nb.Session]:
    """Return `start` of an agent; `model` answers a task after so many tool results, with a dict as JSON."""

    def start(given: Any) -> nb.Session:
        registry = ToolRegistry()
        for name, tool in tools.items():
            registry.register_tool(name, ToolConfig(name, name, tool))
        config = AgentConfig(name="Helper", description="helps", task="Help", tools=list(tools), max_calls=max_calls)

        def answer(request: Any) -> str:
            reply = model(given, sum("has run" in str(message.content) for message in request.messages))
            return reply if isinstance(reply, str) else json.dumps(reply)

        return AgentExecutor(config, llm=answer, tools=registry).session(given)

    return start


def use(tool: str, **parameters: Any) -> dict[str, Any]:
    return {"tool_name": tool, "parameters": parameters}


def say(text: str) -> dict[str, Any]:
    return {"tool_name": "none", "response": text}


def last_result(run: nb.Session) -> Any:
    """Return the result of the last tool; without one, the response."""
    final = run.board["result"]
    return final["tools_executed"][-1]["result"] if final["tools_executed"] else final["response"]


def price(given: Mapping[str, Any]) -> Any:
    return {"desk": 200, "lamp": 20}[given["item"]]


def asks_price(task: str, results: int) -> Any:
    return say("hello") if task == "hello" else say("done") if results else use("price", item=task)


def asks_triple(task: str, results: int) -> Any:
    if task == "hello" or results:
        return say("hello")
    return use("triple", n=int(task) if int(task) < 10 else int(task) * 10)


def asks_twice(task: str, results: int) -> Any:
    rounds = {"hello": 0, "lamp": 1, "both": 2}[task]
    return say("hello") if not rounds else say("done") if results == rounds else use("count", n=results + 1)


SYMPHONY = [
    Bug("a tool that computes wrongly", "symphony", symphony_start(asks_price, price=lambda given: price(given) + 1),
        last_result, {"hello": "hello"}, {"desk": 200, "lamp": 20}, "tool", key="result"),
    Bug("a tool that fails", "symphony", symphony_start(asks_price, price=price),
        last_result, {"hello": "hello", "lamp": 20}, {"sofa": 300}, "tool", key="result"),
    Bug("a model that takes no tool", "symphony",
        symphony_start(lambda task, results: asks_price("hello" if task == "desk" else task, results), price=price),
        last_result, {"hello": "hello", "lamp": 20}, {"desk": 200}, "llm", key="result"),
    Bug("a model that asks for something else", "symphony",
        symphony_start(asks_triple, triple=lambda given: given["n"] * 3),
        last_result, {"hello": "hello", "5": 15}, {"30": 90, "40": 120}, "llm", key="result"),
    Bug("a model that does not keep to the form", "symphony",
        symphony_start(lambda task, results: "{" if task == "hi" else asks_price(task, results), price=price),
        last_result, {"hello": "hello", "desk": 200}, {"hi": "hello"}, "llm", key="result"),
    Bug("too few calls", "symphony",
        symphony_start(asks_twice, max_calls=2, count=lambda given: given["n"]),
        lambda run: (run.board["result"]["response"], len(run.board["result"]["tools_executed"])),
        {"hello": ("hello", 0), "lamp": ("done", 1)}, {"both": ("done", 2)}, "next_round", key="result",
        condition=True),
]  # fmt: skip

# -- activegraph ----------------------------------------------------------------------------------------------------


def active_start(*behaviors: tuple[Any, ...]) -> Callable[[Any], nb.Session]:
    """Return `start` of a runtime; a behavior is a function, the type of its event, and a filter or nothing."""

    def start(given: Any) -> nb.Session:
        behaviors_ = [Behavior(function.__name__, function, on=[event], **({"where": filters[0]} if filters else {}))
                for function, event, *filters in behaviors]  # fmt: skip
        session = nb.Session(nb.load(Runtime(EventGraph(), behaviors=behaviors_, name="runtime")))
        session.emit("came", {"n": given})
        return session

    return start


def billed(run: nb.Session) -> Any:
    """Return the sums of the bills on the board."""
    return [value["data"]["sum"] for value in run.board.values() if value.get("type") == "bill"]


def read(event: Any, graph: Any, _ctx: Any) -> None:
    graph.emit("large" if event.payload["n"] >= 10 else "small", {"n": event.payload["n"]})


def read_late(event: Any, graph: Any, _ctx: Any) -> None:
    graph.emit("large" if event.payload["n"] >= 100 else "small", {"n": event.payload["n"]})


def small(event: Any, graph: Any, _ctx: Any) -> None:
    graph.add_object("bill", {"sum": event.payload["n"]})


def large(event: Any, graph: Any, _ctx: Any) -> None:
    graph.add_object("bill", {"sum": event.payload["n"] * 2})


def large_tenfold(event: Any, graph: Any, _ctx: Any) -> None:
    graph.add_object("bill", {"sum": event.payload["n"] * 20})


def large_fails(event: Any, graph: Any, _ctx: Any) -> None:
    graph.add_object("bill", {"sum": event.payload["m"]})


def twice(event: Any, graph: Any, _ctx: Any) -> None:
    graph.add_object("bill", {"sum": event.payload["n"]})


def order(event: Any, graph: Any, _ctx: Any) -> None:
    number = event.payload["n"]
    graph.add_object("order", {"n": number, "fee": number if number < 5 else number * 10})


def bill(event: Any, graph: Any, _ctx: Any) -> None:
    graph.add_object("bill", {"sum": event.payload["object"]["data"]["fee"] + 1})


ACTIVEGRAPH = [
    Bug("a behavior that computes wrongly", "activegraph",
        active_start((read, "came"), (small, "small"), (large_tenfold, "large")),
        billed, {1: [1], 2: [2]}, {11: [22], 30: [60]}, "large_tenfold", key=None),
    Bug("a behavior that fails", "activegraph",
        active_start((read, "came"), (small, "small"), (large_fails, "large")),
        billed, {1: [1], 2: [2]}, {11: [22], 30: [60]}, "large_fails", key=None),
    Bug("a behavior that also runs", "activegraph",
        active_start((read, "came"), (small, "small"), (large, "large"), (twice, "large")),
        billed, {1: [1], 2: [2]}, {11: [22], 30: [60]}, "twice", key=None),
    Bug("an event of the wrong type", "activegraph",
        active_start((read_late, "came"), (small, "small"), (large, "large")),
        billed, {1: [1], 100: [200]}, {11: [22], 30: [60]}, "read_late", key=None),
    Bug("an object with a wrong fee", "activegraph",
        active_start((order, "came"), (bill, "object.created", {"object.type": "order"})),
        billed, {1: [2], 2: [3]}, {7: [8], 8: [9]}, "order", key=None),
]  # fmt: skip

# -- polaris --------------------------------------------------------------------------------------------------------


@dataclass
class Plan:
    n: int


@dataclass
class Result:
    out: int


def polaris_start(build: Callable[[Graph], Any], reading: Callable[[int], int] = int) -> Callable[[Any], nb.Session]:
    """Return `start` of a graph that begins with a system that reads the given number."""

    def start(given: Any) -> nb.Session:
        @system
        def begin() -> Plan:
            return Plan(reading(given))

        graph = Graph("graph").add_system(begin)
        build(graph)
        return nb.Session(nb.load(graph))

    return start


@system
def same(plan: Out[Plan]) -> Result:
    return Result(plan.n)


@system
def negative(plan: Out[Plan]) -> Result:
    return Result(-plan.n)


@system
def tenfold(plan: Out[Plan]) -> Result:
    return Result(plan.n * 10)


@system
def breaks(plan: Out[Plan]) -> Result:
    raise ValueError(plan.n)


@system
def add_one(plan: Out[Plan]) -> Plan:
    return Plan(plan.n + 1)


@system
def add_some(plan: Out[Plan]) -> Plan:
    return Plan(plan.n + (1 if plan.n < 5 else 2))


def result(run: nb.Session) -> Any:
    return next(value.out for value in run.board.values() if isinstance(value, Result))


def branch(limit: int, below: Any, above: Any) -> Callable[[Graph], Any]:
    return lambda graph: graph.add_conditional_branch("small", Plan, lambda plan: plan.n < limit, below, above)


POLARIS = [
    Bug("a system of one branch", "polaris", polaris_start(branch(10, same, tenfold)),
        result, {1: 1, 2: 2}, {11: 11, 30: 30}, "tenfold", key=None),
    Bug("a sign in one branch", "polaris", polaris_start(branch(10, negative, same)),
        result, {11: 11, 30: 30}, {1: 1, 2: 2}, "negative", key=None),
    Bug("a limit in a decision", "polaris", polaris_start(branch(10, same, negative)),
        result, {1: 1, 40: -40}, {12: 12, 15: 15}, "small", key=None, condition=True),
    Bug("a system that fails", "polaris", polaris_start(branch(10, same, breaks)),
        result, {1: 1, 2: 2}, {11: 11, 30: 30}, "breaks", key=None),
    Bug("a reading that is wrong for some", "polaris",
        polaris_start(branch(10, same, negative), lambda n: n * 10 if n == 3 else n),
        result, {1: 1, 4: 4, 40: -40}, {3: 3}, "begin", key=None),
    Bug("a sum in a line", "polaris", polaris_start(lambda graph: graph.add_system(add_some).add_system(same)),
        result, {1: 2, 2: 3}, {10: 11, 11: 12}, "add_some", key=None),
]  # fmt: skip

BUGS = [*NETWORKX, *AGENTRUNTIME, *COREASON, *SYMPHONY, *ACTIVEGRAPH, *POLARIS]

# -- bugs written before their ranks were seen; then a broken recipe was repaired, and a filter bug got another kind --


def nx_graph_start(build: Callable[[nx.MultiDiGraph[str]], None], llm: Any = None) -> Callable[[Any], nb.Session]:
    """Return `start` of a graph that a function builds."""

    def start(given: Any) -> nb.Session:
        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(name="graph")
        build(graph)
        return nb.Session(nb.load(graph), {"n": given}, llm=llm)

    return start


def keeps_the_larger(graph: nx.MultiDiGraph[str]) -> None:
    """Two branches count points, and a reducer of the second keeps the larger number instead of their sum."""
    graph.add_node("split", function=lambda n: {"out": 0}, inputs={"n": "n"})
    graph.add_node("words", function=lambda n: {"out": n}, inputs={"n": "n"}, reducers={"out": lambda a, b: a + b})
    graph.add_node("links", function=lambda n: {"out": n // 5}, inputs={"n": "n"}, reducers={"out": max})
    graph.add_node("meet", kind="join")
    for branch in ("words", "links"):
        graph.add_edge("split", branch, kind="parallel")
        graph.add_edge(branch, "meet")


def branches_overwrite(graph: nx.MultiDiGraph[str]) -> None:
    """Two branches write one key, and the second one overwrites the first with nothing to say."""
    graph.add_node("split", function=lambda n: {"asked": n}, inputs={"n": "n"})
    graph.add_node("expert", function=lambda n: {"out": n * 2}, inputs={"n": "n"})
    graph.add_node("novice", function=lambda n: {"out": 0} if n > 9 else {}, inputs={"n": "n"})
    graph.add_node("meet", kind="join")
    for branch in ("expert", "novice"):
        graph.add_edge("split", branch, kind="parallel")
        graph.add_edge(branch, "meet")


def swallows(n: int) -> int:
    """Look a price up; an error is swallowed, and 0 is the answer."""
    try:
        return {1: 10, 2: 20, 3: 30}[n]
    except KeyError:
        return 0


def answers_by_prompt(request: Any) -> str:
    """Answer as a model that knows nothing but what the prompt says."""
    prompt = str(request.messages[-1].content)
    return "refund" if "lamp" in prompt else "reply" if "question" in prompt else "unclear"


def prompt_start(prompt: str) -> Callable[[Any], nb.Session]:
    """Return `start` of an agentruntime agent whose second node asks a model, and whose third acts on its answer."""
    content = {
        "meta": {"name": "agent"},
        "prompts": {"templates": {"classify": {"user": prompt}}},
        "state": {"reducer": "replace", "shape": dict.fromkeys(("n", "item", "kind", "out"), "a text"), "init": {}},
        "tools": [{"id": "read", "kind": "python", "impl": "tools.py#read"}],
        "graph": {"inputs": ["n"], "outputs": ["out"],
                  "nodes": [art_tool("read", "item", "n"),
                            {"id": "classify", "type": "llm", "prompt": "classify",
                             "map": {"set": {"kind": "{{ result.text }}"}}},
                            {"id": "act", "type": "noop", "map": {"set": {"out": "{{ kind }}!"}}}],
                  "edges": [{"from": "read", "to": "classify"}, {"from": "classify", "to": "act"}]},
    }  # fmt: skip
    return lambda given: nb.Session(
        nb.load(content), {"n": given}, tools={"read": lambda n: n.lower()}, llm=answers_by_prompt
    )


def rounds_too_few(graph: Graph) -> None:
    graph.add_loop("again", Plan, lambda plan: plan.n >= 9, lambda body: body.add_system(add_one)).add_system(same)


@system
def gives_up(plan: Out[Plan]) -> Result:
    return Result(0)


def handled(graph: Graph) -> None:
    graph.add_error_handler(graph.add_system_node(breaks_above), lambda body: body.add_system(gives_up), resume=True)


@system
def breaks_above(plan: Out[Plan]) -> Result:
    if plan.n > 5:
        raise ValueError(plan.n)
    return Result(plan.n)


def bill_orders(event: Any, graph: Any, _ctx: Any) -> None:
    graph.add_object("bill", {"sum": event.payload["n"]})


def asks_in_cents(task: str, results: int) -> Any:
    if task == "hello" or results:
        return say("hello")
    return use("charge", amount=int(task) if int(task) < 100 else int(task) * 100)


UNSEEN = [
    Bug("a reducer that keeps the larger", "networkx", nx_graph_start(keeps_the_larger),
        out, {1: 1, 4: 4}, {10: 12, 20: 24}, "links"),
    Bug("a branch that overwrites another", "networkx", nx_graph_start(branches_overwrite),
        out, {1: 2, 5: 10}, {10: 20, 12: 24}, "novice"),
    Bug("a value from before the discount", "networkx",
        nx_start({"price": lambda n: {"p": n * 10}, "discount": lambda p: {"q": p - 50 if p > 100 else p},
                  "tax": lambda p, q: {"t": p // 10}, "sum": lambda q, t: {"out": q + t}},
                 ("price", "discount"), ("discount", "tax"), ("tax", "sum")),
        out, {1: 11, 5: 55}, {20: 165, 30: 275}, "tax"),
    Bug("one item too few in a cycle", "networkx",
        nx_start({"begin": lambda n: {"i": 0, "out": 0}, "add": lambda i, out: {"i": i + 1, "out": out + i},
                  "end": lambda out: {"done": out}},
                 ("begin", "add"), ("add", "add", "i < n"), ("add", "end")),
        out, {0: 0}, {3: 6, 4: 10}, "add", condition=True),
    Bug("a default that is wrong", "networkx",
        nx_start({"rate": lambda n: {"r": {1: 2, 2: 3}.get(n, 1)}, "pay": lambda n, r: {"paid": n * r},
                  "sum": lambda paid: {"out": paid + 1}}, ("rate", "pay"), ("pay", "sum")),
        out, {1: 3, 2: 7}, {3: 13, 4: 17}, "rate"),
    Bug("an error that a tool swallows", "agentruntime",
        art_start([art_tool("price", "a", "n"), art_tool("tax", "b", "a"), art_tool("total", "out", "b")],
                  ("price", "tax"), ("tax", "total"),
                  price=swallows, tax=lambda n: n + n // 10, total=lambda n: n + 1),
        out, {1: 12, 2: 23}, {4: 45, 5: 56}, "price"),
    Bug("a prompt that has lost a variable", "agentruntime", prompt_start("What is this about: a question, or what?"),
        out, {"QUESTION": "reply!"}, {"LAMP": "refund!"}, "classify"),
    Bug("an answer that is cut off", "coreason",
        coreason_start([agent("list", text="text"), agent("short", items="items"), agent("say", few="few")],
                       ("list", "short"), ("short", "say"),
                       list=lambda text: {"items": text.split()}, short=lambda items: {"few": items[:2]},
                       say=lambda few: {"out": " and ".join(few)}),
        out, {"a": "a", "a b": "a and b"}, {"a b c": "a and b and c"}, "short"),
    Bug("a default route to the wrong agent", "coreason",
        coreason_start([agent("sort", text="text"), route("topic", "pay", bug="fix"), agent("fix", text="text"),
                        agent("pay", text="text"), agent("say", text="text")], ("sort", "route"),
                       sort=lambda text: {"topic": text}, fix=lambda text: {"out": "fixed"},
                       pay=lambda text: {"out": "paid"}, say=lambda text: {"out": "said"}),
        out, {"bug": "fixed", "refund": "paid"}, {"hello": "said"}, "route"),
    Bug("an amount in the wrong unit", "symphony",
        symphony_start(asks_in_cents, charge=lambda given: given["amount"]),
        last_result, {"hello": "hello", "5": 5}, {"300": 300, "400": 400}, "llm", key="result"),
    Bug("an error that a tool reports as an empty result", "symphony",
        symphony_start(asks_price, price=lambda given: {"desk": 200}.get(given["item"], 0)),
        last_result, {"hello": "hello", "desk": 200}, {"lamp": 20}, "tool", key="result"),
    Bug("a filter that never holds", "activegraph",
        active_start((read, "came"), (small, "small"), (bill_orders, "large", {"kind": "order"})),
        billed, {1: [1], 2: [2]}, {11: [11], 30: [30]}, "bill_orders", key=None, condition=True),
    Bug("a loop that ends one round early", "polaris", polaris_start(rounds_too_few),
        result, {9: 9, 12: 12}, {3: 10, 5: 10}, "again", key=None, condition=True),
    Bug("a handler that hides a failure", "polaris", polaris_start(handled),
        result, {1: 1, 2: 2}, {7: 7, 8: 8}, "breaks_above", key=None),
]  # fmt: skip
