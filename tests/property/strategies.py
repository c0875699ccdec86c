"""Strategies for recipes, programs, values, paths and the acts of people."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

from agentnb import ABSENT
from agentnb.engine.core.work import Append
from agentnb.recipe.model import Edge, Node, Recipe, Region, Rescue
from tests.property.node_programs import Ask, Op, board_function, input_function

KEYS = ("a", "b", "c", "a.b")
TEXTS = (*KEYS, "a.b.0", "b.0", "b.c", "c.0.b", "a.b.c", "c.b", "b.0.0", "a.0", "b.b.0")
PARTS = ("b", "0", "c", "1", "b.0", "-1", 0, 1)
INPUTS: tuple[tuple[Any, ...], ...] = (("a",), ("b",), ("a", "b"), ("a.b",), ("b", "0"), ("c", "b", "0"), ("b", 0, "b"))

atoms = st.one_of(
    st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["", "x", 0.5, 1.0, b"y"]), st.just(300), st.just(None)
)
names = st.one_of(st.sampled_from(["b", "0", "c", "b.0"]), st.just(0))
values = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(names, inner, max_size=3),
        st.tuples(inner),
    ),
    max_leaves=5,
)
nested = st.one_of(st.lists(values, max_size=3), st.dictionaries(names, values, max_size=3))
written = st.one_of(values, nested, values.map(Append), st.just(ABSENT))
paths = st.builds(lambda key, rest: (key, *rest), st.sampled_from(KEYS), st.lists(st.sampled_from(PARTS), max_size=2))
texts = st.sampled_from(TEXTS)
hows = st.tuples(st.sampled_from(["add", "drop", "deep", "same", "add"]), values)
changes = st.dictionaries(texts, written, min_size=1, max_size=3)


def ops(verbs: dict[str, Any]) -> st.SearchStrategy[tuple[Op, ...]]:
    one = st.one_of([verb for name, verb in verbs.items() for _ in range(1 if name in RARE else 5)])
    return st.lists(one, max_size=4).map(tuple)


def op(verb: str, *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Op]:
    return st.tuples(*parts).map(lambda words: Op(verb, *words))


RARE = {"fail", "late", "fail_if"}
WITH_BOARD = {
    "set": op("set", st.sampled_from(KEYS), written),
    "copy": op("copy", texts, st.sampled_from(KEYS)),
    "count": op("count", st.sampled_from(KEYS)),
    "change": op("change", texts, hows),
    "fail_if": op("fail_if", texts),
    "fail": st.just(Op("fail")),
    "late": st.just(Op("late")),
}
WITH_WORK = WITH_BOARD | {
    "write": op("write", paths, written),
    "write more": op("write", paths, written),
    "place": op("place", paths, written),
}
GIVEN = st.sampled_from(["x", "y"])
WITH_INPUTS = {
    "set": op("set", st.sampled_from(KEYS), written),
    "copy": op("copy", GIVEN, st.sampled_from(KEYS)),
    "change": op("change", GIVEN, hows),
    "fail_if": op("fail_if", GIVEN),
    "fail": st.just(Op("fail")),
}
asks = st.one_of(
    st.builds(Ask, st.sampled_from(["has", "truthy"]), texts),
    st.builds(Ask, st.just("has"), texts),
    st.builds(Ask, st.just("truthy"), texts),
    st.builds(Ask, st.just("less"), st.sampled_from(KEYS), st.integers(0, 4)),
    st.builds(Ask, st.just("less"), st.sampled_from(KEYS), st.integers(0, 4)),
    st.builds(Ask, st.just("boom"), st.just("a")),
)


class Drawn(NamedTuple):
    """A recipe with what its session begins with. `lanes`: it has parallel branches."""

    recipe: Recipe
    inputs: dict[str, Any]
    limit: int | None
    lanes: bool

    def __repr__(self) -> str:
        """Return all that is needed to write this recipe down as a test of its own."""
        recipe, rows = self.recipe, []
        for node in recipe.nodes.values():
            params = {name: value for name, value in node.params.items() if name != "function"}
            rescue = "" if node.rescue is None else f" {node.rescue}"
            rows.append(f"{node.id} ({node.kind} in {node.scope}): {params} {dict(node.inputs or {})}{rescue}")
        rows += [f"{e.source} -> {e.target} {e.kind} {e.condition}" for e in recipe.edges]
        rows += [f"{region.id} begins at {region.entry}" for region in recipe.regions.values()]
        rows.append(f"routing {recipe.routing}, init {recipe.init}, inputs {self.inputs}, limit {self.limit}")
        return "\n".join(["", *rows])


class Maker:
    """Draws one recipe, region by region."""

    def __init__(self, draw: Any, lanes: bool) -> None:
        self.draw, self.lanes = draw, lanes
        self.nodes: dict[str, Node] = {}
        self.edges: list[Edge] = []
        self.regions: dict[str, Region] = {}

    def region(self, name: str, owner: str, depth: int) -> None:
        size = self.draw(st.integers(1, 4 if depth == 0 else 3))
        ids = [f"{name[0]}{len(self.nodes) + number}" for number in range(size)]
        self.nodes.update(dict.fromkeys(ids))  # type: ignore[arg-type]  # their places are taken
        for node in ids:
            self.nodes[node] = self.node(node, name, ids, depth)
        for node in ids:
            self.ways(node, ids)
        entry = tuple(ids[: self.draw(st.sampled_from([1, 1, 1, 2]))])
        self.regions[name] = Region(name, entry, owner=owner)

    def node(self, name: str, scope: str, own: list[str], depth: int) -> Node:
        draw, simple = (
            self.draw,
            ["function", "function", "inputs", "inputs", "doer", "doer", "keeper", "noop", "join", "router"],
        )
        composite = ["loop", "loop", "loop", "subgraph", "subgraph", "subgraph"] + ["branches"] * self.lanes * 4
        kind = draw(st.sampled_from(simple + composite * (depth < 2)))
        rescue = draw(self.rescues(own)) if draw(st.integers(0, 7)) == 0 else None
        if kind == "inputs":
            inputs = draw(st.dictionaries(GIVEN, st.sampled_from(INPUTS), min_size=1, max_size=2))
            done = draw(ops(WITH_INPUTS))
            params = {"ops": done, "function": input_function(done)}
            return Node(name, "function", scope=scope, inputs=inputs, params=params, rescue=rescue)
        if kind == "function":
            done = draw(ops(WITH_BOARD))
            return Node(name, kind, scope=scope, params={"ops": done, "function": board_function(done)}, rescue=rescue)
        if kind in ("doer", "keeper"):
            return Node(name, kind, scope=scope, params={"ops": draw(ops(WITH_WORK))}, rescue=rescue)
        if kind == "router":
            return Node(name, kind, scope=scope, params=self.routes(name, own))
        if kind in ("noop", "join"):
            return Node(name, kind, scope=scope)
        return self.composite(name, kind, scope, depth, rescue)

    def rescues(self, own: list[str]) -> st.SearchStrategy[Rescue]:
        """Return how a failed node goes on: by its edges, by a node of its region, or to the end of it."""
        routes = st.one_of(st.none(), st.lists(st.sampled_from(own), max_size=2, unique=True).map(tuple))
        return st.builds(Rescue, st.dictionaries(st.sampled_from(KEYS), values, max_size=2), routes)

    def routes(self, name: str, own: list[str]) -> dict[str, Any]:
        routes = self.draw(st.dictionaries(st.sampled_from(["0", "1", "true", "x"]), st.sampled_from(own), max_size=2))
        default = self.draw(st.one_of(st.none(), st.sampled_from(own)))
        for target in dict.fromkeys([*routes.values(), *([default] if default else [])]):
            self.edges.append(Edge(name, target, "route"))
        return {"input_key": self.draw(st.sampled_from(INPUTS)), "routes": routes, "default": default}

    def composite(self, name: str, kind: str, scope: str, depth: int, rescue: Rescue | None) -> Node:
        draw = self.draw
        count, alike = (draw(st.integers(1, 3)), draw(st.booleans())) if kind == "branches" else (1, False)
        bodies = tuple(f"{name}_{0 if alike else number}" for number in range(count))
        for body in dict.fromkeys(bodies):
            self.region(body, name, depth + 1)
        params: dict[str, Any] = {}
        if kind == "loop":
            params = draw(
                st.one_of(
                    st.fixed_dictionaries({"times": st.integers(0, 3)}),
                    st.fixed_dictionaries({"while": asks, "max": st.integers(1, 4)}),
                    st.fixed_dictionaries({"until": asks, "max": st.integers(1, 4)}),
                )
            )
        elif kind == "subgraph":
            keys, inner = st.sampled_from(KEYS), st.sampled_from(INPUTS)
            policy = draw(st.sampled_from(["shared", "isolated", "child", "child"]))
            params = {"policy": policy} if policy == "child" else {}
            if policy != "shared":
                params["inputs"] = draw(st.dictionaries(keys, inner, max_size=2))
                params["outputs"] = draw(st.dictionaries(keys, inner, max_size=2))
        else:
            params = {"merge": draw(st.lists(st.sampled_from(KEYS), max_size=2, unique=True))}
        return Node(name, kind, scope=scope, params=params, bodies=bodies, rescue=rescue)

    def ways(self, name: str, own: list[str]) -> None:
        kinds = st.sampled_from(
            ["sequential"] * 5 + ["conditional"] * 2 + ["parallel"] * 3 + ["loop_back", "error", "timeout"]
        )
        onward = own[own.index(name) + 1 :]
        targets = st.sampled_from(onward * 4 + own)  # forwards mostly: else no body ever ends
        for _ in range(self.draw(st.sampled_from([1, 1, 1, 2, 2, 3, 0] if onward else [0, 0, 0, 1]))):
            kind = self.draw(kinds)
            has_condition = kind not in ("error", "timeout") and self.draw(st.integers(0, 2)) == 0
            when = self.draw(asks) if has_condition else None
            self.edges.append(Edge(name, self.draw(targets), kind, when, when.text if when else ""))


@st.composite
def drawn(draw: Any, lanes: bool | None = None) -> Drawn:
    lanes = draw(st.booleans()) if lanes is None else lanes
    maker = Maker(draw, lanes)
    maker.region("root", "", 0)
    root = maker.regions.pop("root")
    recipe = Recipe(
        "drawn",
        "test",
        maker.nodes,
        tuple(maker.edges),
        root.entry,
        regions={"root": root, **maker.regions},
        routing=draw(st.sampled_from(["first", "all"])),
        timeouts=draw(st.sampled_from(["own", "error"])),
        init=draw(st.dictionaries(st.sampled_from(KEYS), values, max_size=1)),
    )
    inputs = draw(st.dictionaries(st.sampled_from(KEYS), st.one_of(nested, values), max_size=4))
    return Drawn(recipe, inputs, draw(st.one_of(st.none(), st.integers(1, 40))), lanes)


@st.composite
def meetings(draw: Any) -> Drawn:
    """Draw nodes that do nothing and joins, in two branches and behind them, with many ways between them."""
    nodes, edges = {"both": Node("both", "branches", bodies=("in", "in"), params={"merge": []})}, list[Edge]()
    for scope in ("in", "root"):
        ids = [f"{scope}{number}" for number in range(draw(st.integers(3, 7)))]
        nodes |= {name: Node(name, draw(st.sampled_from(["noop", "join"])), scope=scope) for name in ids}
        pairs = st.sampled_from([(one, other) for one in ids for other in ids if one < other])
        edges += [Edge(*pair) for pair in draw(st.lists(pairs, min_size=2, max_size=16))]
    edges.append(Edge("both", "root0"))
    regions = {"root": Region("root", ("both",)), "in": Region("in", ("in0",), owner="both")}
    return Drawn(
        Recipe("drawn", "test", nodes, tuple(edges), ("both",), regions=regions, routing="all"), {}, None, lanes=True
    )


share = st.integers(0, 100)
acts = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.integers(1, 4)),
        st.tuples(st.just("step"), st.integers(1, 4)),
        st.tuples(st.just("run"), st.integers(1, 20)),
        st.tuples(st.just("run"), st.integers(1, 20)),
        st.tuples(st.just("back"), st.integers(1, 3)),
        st.tuples(st.just("goto"), share),
        st.tuples(st.just("edit"), changes),
        st.tuples(st.just("set_next"), share),
        st.tuples(st.just("set_next"), share),
        st.tuples(st.just("fork"), share),
        st.tuples(st.just("retry"), st.just(0)),
        st.tuples(st.just("turn to"), share),
    ),
    min_size=1,
    max_size=14,
)
