"""Random polaris graphs as plain data, the graph that each stands for, and what a run of it must come to.

What a run comes to is worked out from the data alone, by a walk that knows nothing of engine, frames or recipes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, make_dataclass

from hypothesis import strategies as st

from agentnb.dialects.polaris import Graph, Out

DEPTH = 4


@dataclass
class Mark:
    """What every system leaves behind: who it was, and how many came before it."""

    by: str
    number: int


COUNTS = [make_dataclass(f"Count{number}", [("n", int)]) for number in range(40)]


# -- the data --------------------------------------------------------------------------------------------------------


def sequences(depth):
    """Draw a level: a list of things that run one after another."""
    return st.lists(items(depth), min_size=1, max_size=3)


def items(depth):
    leaf = st.one_of(st.just(("system",)), st.just(("system",)), st.just(("system",)), failing(depth))
    if depth == 0:
        return leaf
    inner = sequences(depth - 1)
    return st.one_of(
        leaf,
        st.tuples(st.just("decision"), st.booleans(), inner, st.none() | inner),
        st.tuples(st.just("switch"), st.sampled_from("abz"), inner, inner, st.none() | inner),
        st.tuples(st.just("parallel"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("times"), st.integers(0, 3), inner),
        st.tuples(st.just("until"), st.integers(0, 3), inner),
    )


def failing(depth):
    handler = st.none() if depth == 0 else st.none() | sequences(depth - 1)
    return st.tuples(st.just("failing"), handler, st.booleans())


graphs = sequences(DEPTH)


# -- the graph -------------------------------------------------------------------------------------------------------


class Growing:
    """Builds the graph of such data; each name comes once, in the order of the data."""

    def __init__(self):
        self.number = 0

    def name(self, sort):
        self.number += 1
        return f"{sort}{self.number}"

    def level(self, level):
        def build(graph):
            for item in level:
                self.item(graph, item)

        return build

    def item(self, graph, item):
        match item:
            case ("system",):
                graph.add_system(marking(self.name("system")))
            case ("failing", handler, resume):
                id = graph.add_system_node(failing_system(self.name("failing")))
                if handler is not None:
                    graph.add_error_handler(id, self.level(handler), resume=resume)
            case ("decision", answer, yes, no):
                name = self.name("decision")
                graph.add_conditional_branch(name, Mark, lambda _: answer, self.level(yes), no and self.level(no))
            case ("switch", key, first, second, default):
                cases = {"a": self.level(first), "b": self.level(second)}
                name = self.name("switch")
                graph.add_switch(name, Mark, lambda _: key, cases, default and self.level(default))
            case ("parallel", branches):
                name = self.name("parallel")
                graph.add_parallel(name, [self.level(branch) for branch in branches])
            case ("times", times, body):
                name = self.name("times")
                graph.add_loop_n(name, times, self.level(body))
            case ("until", times, body):
                self.until(graph, times, body)

    def until(self, graph, times, body):
        name = self.name("until")
        kind = COUNTS[self.number % len(COUNTS)]
        graph.add_system(primer(f"{name}_begin", kind))

        def build(inner):
            inner.add_system(counting(f"{name}_count", kind))
            self.level(body)(inner)

        graph.add_loop(name, kind, lambda count: count.n >= times, build)


def marking(name):
    def mark(before: Out[Mark]) -> Mark:
        return Mark(name, before.number + 1)

    if int(name.removeprefix("system")) % 3 == 0:

        async def mark(before: Out[Mark]) -> Mark:
            await asyncio.sleep(0)
            return Mark(name, before.number + 1)

    mark.__name__ = name
    return mark


def failing_system(name):
    def fail(before: Out[Mark]) -> Mark:
        raise ValueError(name)

    fail.__name__ = name
    return fail


def primer(name, kind):
    def begin():
        return kind(0)

    begin.__name__ = name
    begin.__annotations__ = {"return": kind}
    return begin


def counting(name, kind):
    def count(before):
        return kind(before.n + 1)

    count.__name__ = name
    count.__annotations__ = {"before": Out[kind], "return": kind}
    return count


def graph_of(level):
    def begin() -> Mark:
        return Mark("begin", 0)

    graph = Graph("grown").add_system(begin)
    Growing().level(level)(graph)
    return graph


# -- what a run comes to ---------------------------------------------------------------------------------------------


class Ended(Exception):
    """A level has ended behind a handler."""


class Failed(Exception):
    """Nothing handles a failure."""


@dataclass
class Expected:
    """The nodes that ran, how often; the last mark; and at which node it failed, perhaps `beside` other branches."""

    counts: Counter = field(default_factory=Counter)
    mark: Mark = field(default_factory=lambda: Mark("begin", 0))
    failed: str | None = None
    beside: bool = False


class Walk:
    """Walks through numbered data as a run would."""

    def __init__(self, level):
        self.found = Expected(Counter(begin=1))
        self.branches = 0
        try:
            self.level(level)
        except Ended:
            pass
        except Failed as failed:
            self.found.failed = str(failed)

    def level(self, level):
        for item in level:
            self.item(item)

    def ran(self, name):
        self.found.counts[name] += 1

    def item(self, item):
        name = f"{item[0]}{item[-1]}"
        self.ran(name)
        match item:
            case ("system", _):
                self.found.mark = Mark(name, self.found.mark.number + 1)
            case ("failing", handler, resume, _):
                self.failing(name, handler, resume=resume)
            case ("decision", answer, yes, no, _):
                self.inner(yes if answer else no)
            case ("switch", key, first, second, default, _):
                self.switch(name, {"a": first, "b": second}.get(key, default))
            case ("parallel", branches, _):
                self.parallel(name, branches)
            case ("times", times, body, _):
                for _ in range(times):
                    self.inner(body)
            case ("until", times, body, _):
                self.ran(f"{name}_begin")
                for _ in range(times):
                    self.ran(f"{name}_count")
                    self.inner(body)

    def failing(self, name, handler, *, resume):
        if handler is None:
            self.fails(name)
        self.level(handler)
        if not resume:
            raise Ended

    def switch(self, name, chosen):
        if chosen is None:
            self.fails(name)
        self.inner(chosen)

    def fails(self, name):
        self.found.beside = self.found.beside or self.branches > 0
        raise Failed(name)

    def inner(self, level):
        with suppress(Ended):
            self.level(level or [])

    def parallel(self, name, branches):
        before, after = self.found.mark, self.found.mark
        self.branches += 1
        failed = None
        for branch in branches:
            self.found.mark = before
            try:
                self.inner(branch)
            except Failed as error:
                failed = failed or error
            if self.found.mark is not before:
                after = self.found.mark
        self.branches -= 1
        self.found.mark = after
        if failed is not None:
            self.found.mark = before
            raise failed
        self.ran(f"{name}_join")


def numbered(level, numbers=None):
    """Return the data with the number of each item behind it: those of an outer item come first."""
    numbers = iter(range(1, 1_000_000)) if numbers is None else numbers
    return [_numbered(item, numbers) for item in level]


def _numbered(item, numbers):
    number = next(numbers)
    match item:
        case ("failing", handler, resume):
            return ("failing", None if handler is None else numbered(handler, numbers), resume, number)
        case ("decision", answer, yes, no):
            yes = numbered(yes, numbers)
            return ("decision", answer, yes, no and numbered(no, numbers), number)
        case ("switch", key, first, second, default):
            first, second = numbered(first, numbers), numbered(second, numbers)
            return ("switch", key, first, second, default and numbered(default, numbers), number)
        case ("parallel", branches):
            return ("parallel", [numbered(branch, numbers) for branch in branches], number)
        case ("times" | "until", times, body):
            return (item[0], times, numbered(body, numbers), number)
    return ("system", number)


def expected(level):
    """Return what a run of this data comes to."""
    return Walk(numbered(level)).found
