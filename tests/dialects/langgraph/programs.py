"""Random graphs: schemas of every form, keys with and without reducers, nodes that write, choose, send, command, ask,
fail and are tried again, functions that await or do not, graphs inside graphs; deterministic."""

from __future__ import annotations

import operator
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, TypedDict

from hypothesis import strategies as st
from langgraph.cache.memory import InMemoryCache
from langgraph.channels import EphemeralValue, UntrackedValue
from langgraph.errors import NodeError  # noqa: TC002  (LangGraph reads the annotations)
from langgraph.graph import END, START, StateGraph
from langgraph.managed import IsLastStep, RemainingSteps  # noqa: TC002  (LangGraph reads the annotations)
from langgraph.runtime import Runtime  # noqa: TC002  (the same)
from langgraph.types import CachePolicy, Command, Overwrite, RetryPolicy, Send, interrupt
from pydantic import BaseModel

NAMES = ["a", "b", "c", "d", "e", "f"]
RETRY = RetryPolicy(initial_interval=0.0001, max_attempts=2, jitter=False)


def union(old: list | None, new: list) -> list:
    return sorted({*(old or []), *new})


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    total: Annotated[int, operator.add]
    names: Annotated[list, union]
    last: str
    brief: Annotated[str, EphemeralValue]
    passing: Annotated[str, UntrackedValue(str, guard=False)]
    left: RemainingSteps
    final: IsLastStep


@dataclass
class DataState:
    log: Annotated[list, operator.add] = field(default_factory=list)
    total: Annotated[int, operator.add] = 0
    names: Annotated[list, union] = field(default_factory=list)
    last: str | None = None
    brief: Annotated[str | None, EphemeralValue] = None
    passing: Annotated[str | None, UntrackedValue(str, guard=False)] = None


class ModelState(BaseModel):
    log: Annotated[list, operator.add] = []
    total: Annotated[int, operator.add] = 0
    names: Annotated[list, union] = []
    last: str | None = None
    brief: Annotated[str | None, EphemeralValue] = None
    passing: Annotated[str | None, UntrackedValue(str, guard=False)] = None


class OwnState(TypedDict, total=False):
    """The state of an inner graph that shares some keys with the outer one; one of them has another channel there."""

    log: Annotated[list, operator.add]
    last: str
    brief: str
    passing: Annotated[str, UntrackedValue(str, guard=False)]
    secret: Annotated[list, operator.add]


class Private(TypedDict, total=False):
    """What some nodes read: a key that the state of their graph has not, too."""

    log: Annotated[list, operator.add]
    last: str
    secret: Annotated[list, operator.add]


class Shown(TypedDict, total=False):
    """What some graphs take, or give back."""

    log: Annotated[list, operator.add]
    total: Annotated[int, operator.add]


SCHEMAS = {"typed": State, "data": DataState, "model": ModelState, "own": OwnState}


def plain(state: Any) -> dict[str, Any]:
    """Return a state of any form as a dict, without keys that have no value."""
    if isinstance(state, dict):
        return state
    values = state.model_dump() if isinstance(state, BaseModel) else asdict(state)
    return {key: value for key, value in values.items() if value is not None}


class Turn:
    """The number of a run among several of one compiled graph: what a cache answers says in which run it was made."""

    number = 0


def updates(name: str, plan: dict[str, Any], state: dict[str, Any], turn: Turn) -> dict[str, Any]:
    """Return what a node writes: a record of what it sees, and values for the keys of its plan."""
    seen = sorted((key, str(value)) for key, value in state.items() if key != "log")
    seen += [interrupt(f"{name}{number}?") for number in range(plan["asks"])]
    values = {
        "total": len(state.get("log", [])) + 1,
        "names": [name],
        "last": f"{name}{state.get('total', 0)}",
        "brief": name,
        "passing": f"{name}'s",
        "secret": [name],
    }
    update = {key: value for key, value in values.items() if key in plan["writes"]}
    if "whole" in plan["writes"]:
        update["names"] = Overwrite([name, *state.get("names", [])][:3])
    return {"log": [f"{name}:{turn.number}:{len(state.get('log', []))}:{seen}"], **update}


def make_cache_policy(lives: int | None, precise: bool) -> CachePolicy:
    """Return a policy whose entries live for so many seconds; its keys are precise, or the same for several inputs.

    Keys are precise within a run: of several nodes of a superstep with one key, LangGraph's threads decide whose result
    is stored last.
    """

    def make_key(given: Any) -> str:
        text = repr(sorted(plain(given).items()))
        return text if precise else text.replace("out", "in")

    return CachePolicy(key_func=make_key, ttl=lives)


def node(name: str, plan: dict[str, Any], turn: Turn):
    """Return the function of a node."""

    def run(given: Any, runtime: Runtime) -> Any:
        state = plain(given)
        if runtime.execution_info.node_attempt <= plan["flaky"]:
            raise ConnectionError(name)
        update = updates(name, plan, state, turn)
        targets = plan["goto"]
        if plan["fails"] and len(state.get("log", [])) > 3:
            raise ValueError(name)
        if targets is None:
            return update if plan["writes"] else None
        if len(state.get("log", [])) > 8:
            return update
        targets = targets if "log" in state else targets[:1]  # what was sent does not multiply for ever
        graph = Command.PARENT if plan["leaves"] and len(state.get("log", [])) > plan["leaves"] else None
        return Command(graph=graph, goto=[packet(to) for to in targets], update=update)

    async def arun(given: Any, runtime: Runtime) -> Any:
        return run(given, runtime)

    chosen = arun if plan["awaits"] else run
    chosen.__name__ = name
    return chosen


def mends(state: Any, error: NodeError) -> Any:
    """Handle the error of a node; after a question LangGraph has it as text, from its checkpoint."""
    return {"log": [f"{error.node} failed"], "last": "mended"}


def packet(to: Any) -> Any:
    return Send(to[1], to[2]) if isinstance(to, tuple) else to


def condition(choices: list[list[Any]]):
    """Return a condition that chooses by what is on the board."""

    def choose(given: Any) -> Any:
        state = plain(given)
        length = len(state.get("log", []))
        if length > 8:
            return END
        targets = choices[(length + state.get("total", 0)) % len(choices)]
        targets = targets if "log" in state else targets[:1]
        return [packet(to) for to in targets] if len(targets) != 1 else packet(targets[0])

    return choose


def mapped(choices: list[list[Any]]):
    """Return a condition that chooses numbers, and the path map from them to the nodes."""
    names = sorted({to if isinstance(to, str) else to[1] for targets in choices for to in targets} | {END})
    path_map = dict(enumerate(names))
    numbers = {name: number for number, name in path_map.items()}
    choose = condition([[to if isinstance(to, str) else to[1] for to in targets] for targets in choices])

    def choose_numbers(given: Any) -> Any:
        targets = choose(given)
        return [numbers[to] for to in targets] if isinstance(targets, list) else numbers[targets]

    return choose_numbers, path_map


def build(plan: dict[str, Any], turn: Turn | None = None) -> Any:
    """Compile the graph of a plan. Its nodes record the number of the turn."""
    turn = turn or Turn()
    schemas = {side: Shown for side in ("input_schema", "output_schema") if plan[side]}
    graph = StateGraph(SCHEMAS[plan["schema"]], **schemas)
    for name, each in plan["nodes"].items():
        inner = plan["inside"].get(name)
        policy = make_cache_policy(*each["cache"]) if each["cache"] else None
        if inner is not None:
            graph.add_node(name, build(inner, turn), defer=each["defer"], cache_policy=policy)
            continue
        graph.add_node(
            name, node(name, each, turn), defer=each["defer"], retry_policy=RETRY if each["flaky"] else None,
            cache_policy=policy, input_schema=Private if each["private"] else None,
            error_handler=mends if each["handled"] else None,
        )  # fmt: skip
    for target in plan["entry"]:
        graph.add_edge(START, target)
    if plan["entry_choice"]:
        graph.add_conditional_edges(START, condition(plan["entry_choice"]))
    for source, target in plan["edges"]:
        graph.add_edge(source, target)
    for sources, target in plan["joins"]:
        graph.add_edge(list(sources), target)
    for source, choices in plan["conditions"].items():
        each = plan["nodes"][source]
        if not each["writes"] and each["goto"] is None:  # nothing would end a multiplication of what it sends
            choices = [targets[:1] for targets in choices]  # noqa: PLW2901
        if source in plan["maps"]:
            graph.add_conditional_edges(source, *mapped(choices))
        else:
            graph.add_conditional_edges(source, condition(choices))
    caches = any(each["cache"] for each in plan["nodes"].values())
    return graph.compile(cache=InMemoryCache() if caches else None, **plan["stops"])


def awaits(plan: dict[str, Any]) -> bool:
    """Return True if a function in the plan awaits."""
    return any(each["awaits"] for each in plan["nodes"].values()) or any(map(awaits, plan["inside"].values()))


def leaves(plan: dict[str, Any]) -> bool:
    """Return True if a node in the plan may leave its graph."""
    return any(each["leaves"] for each in plan["nodes"].values()) or any(map(leaves, plan["inside"].values()))


_SENT = st.fixed_dictionaries({"total": st.integers(0, 5)}, optional={"passing": st.just("sent")})


def _target(names: list[str]):
    sent = st.tuples(st.just("send"), st.sampled_from(names), _SENT)
    return st.one_of(st.sampled_from(names), st.sampled_from(names), st.just(END), sent)


def _rarely(draw, among: int) -> bool:
    return draw(st.integers(0, among - 1)) == among - 1


STOPS = ["interrupt_before", "interrupt_after"]
KEYS = ["total", "names", "brief", "last", "whole", "secret", "passing"]
# The plan of a node that writes nothing but the log, and of a graph without nodes.
NODE = {
    "writes": set(), "goto": None, "leaves": 0, "defer": False, "fails": False, "asks": 0, "flaky": 0,
    "private": False, "handled": False, "awaits": False, "cache": None,
}  # fmt: skip
GRAPH = {
    "schema": "typed", "input_schema": False, "output_schema": False, "nodes": {}, "inside": {}, "entry": ["a"],
    "entry_choice": None, "edges": [], "joins": [], "conditions": {}, "maps": set(), "stops": {},
}  # fmt: skip
WAITS_WHEN_CUT = GRAPH | {"nodes": {"a": NODE | {"goto": ["a"], "defer": True}, "b": NODE}, "edges": [("a", "b")]}


@st.composite
def plans(
    draw, outer: tuple[str, ...] = (), is_async: bool | None = None, *, caches: bool = False, asks: bool = True
) -> dict[str, Any]:
    """Draw the plan of a graph of two to six nodes, some of which are graphs; `outer` are the nodes around it.

    Args:
        caches: half of the nodes have a cache policy; they ask nothing, because of equal Sends that wait for an answer
            LangGraph takes one more from the cache after each.
        asks: some nodes ask.
    """
    depth = bool(outer)
    is_async = draw(st.booleans()) if is_async is None else is_async
    names = NAMES[: draw(st.integers(2, 6 - 3 * depth))]
    nodes = {}
    # Of two nodes that leave or fail at once, LangGraph's threads decide which does: only one node of a graph leaves,
    # and no other one fails for good.
    leaver = names[0] if depth and _rarely(draw, 2) else None
    for name in names:
        leaves = draw(st.integers(1, 4)) if name == leaver else 0
        cache = draw(st.none() | st.tuples(st.none() | st.integers(0, 3), st.booleans())) if caches else None
        targets = st.none() | st.none() | st.lists(_target(names), max_size=2)
        nodes[name] = {
            "writes": draw(st.sets(st.sampled_from(KEYS), max_size=2)),
            "goto": draw(st.lists(st.sampled_from(outer), max_size=2)) if leaves else draw(targets),
            "leaves": leaves,
            "defer": _rarely(draw, 6),
            "fails": leaver in (None, name) and _rarely(draw, 20),
            "asks": max(0, draw(st.integers(0, 9)) - 7) if asks and cache is None else 0,
            "flaky": max(0, draw(st.integers(0, 13 if leaver else 14)) - 12),
            "private": _rarely(draw, 6),
            "handled": _rarely(draw, 8),
            "awaits": is_async and draw(st.booleans()),
            "cache": cache,
        }
    pair = st.tuples(st.sampled_from(names), st.sampled_from([*names, END]))
    joined = st.tuples(st.lists(st.sampled_from(names), min_size=2, max_size=3, unique=True), st.sampled_from(names))
    choices = st.lists(st.lists(_target(names), min_size=1, max_size=3), min_size=1, max_size=3)
    graphs = {name for name in names if not depth and _rarely(draw, 6)}
    inside = {
        name: draw(plans(tuple(names), is_async, caches=caches, asks=asks and nodes[name]["cache"] is None))
        for name in sorted(graphs)
    }
    stops = st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True) | st.just("*")
    conditions = draw(st.dictionaries(st.sampled_from(names), choices, max_size=3))
    return {
        "schema": draw(st.sampled_from(["typed", "data", "model", *(["own"] if depth else [])])),
        "input_schema": _rarely(draw, 5),
        "output_schema": depth and _rarely(draw, 5),
        "nodes": nodes,
        "inside": inside,
        "entry": draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)),
        "entry_choice": draw(st.none() | st.none() | choices),
        "edges": draw(st.lists(pair, max_size=5, unique=True)),
        "joins": draw(st.lists(joined, max_size=2, unique_by=lambda join: (tuple(sorted(join[0])), join[1]))),
        "conditions": conditions,
        "maps": {name for name in sorted(conditions) if draw(st.booleans())},
        "stops": draw(st.dictionaries(st.sampled_from(STOPS), stops, max_size=1)) if _rarely(draw, 4) else {},
    }
