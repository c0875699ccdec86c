"""Patterns: chains of objects and relations that must exist, in a small subset of the Cypher language.

    (a:task {state: 'open'})-[r:needs]->(b)<-[:by]-(c:person) WHERE a.n > b.n AND NOT (b.done = true AND a <> b) AND
    NOT EXISTS { (b)-[:blocks]->(d) }

Each object has a name, a type, both or neither; a relation has a type. Repeated names refer to the same object. A name
alone means the object's id; `a.id`, `a.type` and `a.version` are fields of the object, and any other name after a dot
is looked up in its data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from agentnb.board.values import ABSENT
from agentnb.dialects.activegraph.errors import UnsupportedPatternError
from agentnb.dialects.activegraph.parts.where import OPERATORS, get_at
from agentnb.errors import Problem

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<word>[A-Za-z_]\w*)|(?P<number>-?\d+(?:\.\d+)?)|(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    r"""|(?P<sign><>|<=|>=|!=|->|<-|[()\[\]{}:,.=<>*|-]))"""
)
_REFUSED: Final = {"RETURN", "OPTIONAL", "OR", "WITH", "UNION", "CREATE", "MERGE", "DELETE", "SET", "REMOVE", "MATCH",
                   "UNWIND", "ORDER", "LIMIT", "DETACH", "CALL", "SKIP", "FOREACH"}  # fmt: skip
_KEYWORDS: Final = {"WHERE", "AND", "NOT", "EXISTS", "TRUE", "FALSE", "NULL"}  # these are not names
_COMPARISONS: Final = {"=": "==", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_OWN: Final = ("id", "type", "version")
_ENDS: Final = ("source", "target")
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
Bindings = dict[str, str]


class FrozenGraph(Protocol):
    """The graph that is searched for a pattern: its objects and relations, frozen."""

    def object(self, key: str) -> Any:
        """Return an object; ABSENT if there is none."""
        ...

    def all_objects(self, type_: str | None = None) -> Iterator[Any]:
        """Yield the objects of a type in creation order."""
        ...

    def touching(self, key: str) -> list[str]:
        """Return the ids of the relations of an object."""
        ...

    def relation(self, key: str) -> Any:
        """Return a relation."""
        ...


@dataclass(frozen=True)
class Match:
    """One match of a pattern: name -> id."""

    bindings: Bindings

    def __getitem__(self, name: str) -> str:
        """Return the id bound to a name."""
        return self.bindings[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return the id bound to a name, or the default."""
        return self.bindings.get(name, default)


@dataclass(frozen=True)
class _NodePattern:
    name: str
    type: str | None
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class _RelationPattern:
    name: str
    type: str
    forward: bool


@dataclass(frozen=True)
class _Clause:
    path: tuple[str, ...] = ()
    op: str = ""
    value: Any = None  # the value that the path is compared with, unless it is compared with `other_path`
    other_path: tuple[str, ...] = ()
    negated: bool = False
    sub: Pattern | None = None
    parts: tuple[_Clause, ...] = ()


@dataclass(frozen=True)
class Pattern:
    """A parsed pattern."""

    nodes: tuple[_NodePattern, ...]
    relations: tuple[_RelationPattern, ...]
    clauses: tuple[_Clause, ...] = ()
    named: frozenset[str] = field(default=frozenset())

    def matches(self, graph: FrozenGraph, bound: Bindings | None = None) -> Iterator[Match]:
        """Yield each match, in the order in which objects and relations were created."""
        start = bound or {}
        for bindings in self._iter_chain(graph, start):
            if all(_holds(clause, graph, bindings) for clause in self.clauses):
                yield Match({name: id_ for name, id_ in bindings.items() if name in self.named or name in start})

    def _iter_chain(self, graph: FrozenGraph, bound: Bindings) -> Iterator[Bindings]:
        first = self.nodes[0]
        known = bound.get(first.name)
        ids = [known] if known else [str(record["id"]) for record in graph.all_objects(first.type)]
        for id_ in ids:
            if _fits(first, graph.object(id_)):
                yield from self._iter_onward(graph, 0, {**bound, first.name: id_})

    def _iter_onward(self, graph: FrozenGraph, index: int, bound: Bindings) -> Iterator[Bindings]:
        if index == len(self.relations):
            yield bound
            return
        hop, node, current = self.relations[index], self.nodes[index + 1], bound[self.nodes[index].name]
        for id_ in graph.touching(current):
            relation = graph.relation(id_)
            own, other = ("source", "target") if hop.forward else ("target", "source")
            if relation["type"] != hop.type or relation[own] != current:
                continue
            neighbor = relation[other]
            if bound.get(node.name, neighbor) != neighbor or bound.get(hop.name, id_) != id_:
                continue
            if _fits(node, graph.object(neighbor)):
                yield from self._iter_onward(graph, index + 1, {**bound, hop.name: id_, node.name: neighbor})


def _fits(node: _NodePattern, record: Any) -> bool:
    if record is ABSENT or (node.type is not None and record["type"] != node.type):
        return False
    return all(record["data"].get(name) == value for name, value in node.fields.items())


def _holds(clause: _Clause, graph: FrozenGraph, bindings: Bindings) -> bool:
    if clause.sub is not None:
        holds = next(clause.sub.matches(graph, bindings), None) is not None
    elif clause.parts:
        holds = all(_holds(each, graph, bindings) for each in clause.parts)
    else:
        expected = _find_value(clause.other_path, graph, bindings) if clause.other_path else clause.value
        holds = OPERATORS[clause.op](_find_value(clause.path, graph, bindings), expected)
    return holds != clause.negated


def _find_value(path: tuple[str, ...], graph: FrozenGraph, bindings: Bindings) -> Any:
    """Return the value at a path that starts with a name; None if there is none."""
    id_, rest = bindings.get(path[0], ""), path[1:]
    record = graph.object(id_)
    record = graph.relation(id_) if record is ABSENT else record
    if record is ABSENT:
        return None
    if not rest:
        return id_
    if rest[0] in _OWN:
        return record.get(rest[0]) if len(rest) == 1 else None
    if len(rest) == 1 and rest[0] in _ENDS and rest[0] not in record["data"]:
        return record.get(rest[0])
    return get_at(record["data"], rest[1:] if rest[0] == "data" else rest)


def parse_pattern(text: str) -> Pattern:
    """Parse the text of a pattern.

    Raises:
        UnsupportedPatternError: R320, it cannot be parsed, or uses unsupported features.
    """
    return _Reader(text).parse()


class _Reader:
    """A parser of one pattern, token by token."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.unnamed = text, 0, 0
        self.tokens = list(self._split())

    def _split(self) -> Iterator[tuple[str, str]]:
        at, end = 0, len(self.text.rstrip())
        while at < end:
            match = _TOKEN.match(self.text, at)
            if match is None or match.lastgroup is None:
                raise self.make_error(f"unexpected character {self.text[at:].lstrip()[:1]!r}")
            token = match[match.lastgroup]
            yield "keyword" if token.upper() in _KEYWORDS else match.lastgroup, token
            at = match.end()

    def make_error(self, what: str) -> UnsupportedPatternError:
        """R320: a pattern cannot be parsed, or uses Cypher that is not supported here."""
        return UnsupportedPatternError(
            Problem("R320", what, f"pattern {self.text!r}",
                    "a pattern is one chain of objects and relations of a type, and clauses joined by AND",
                    "write (a:task)-[r:needs]->(b) WHERE a.n > 2 AND NOT EXISTS { (b)-[:by]->(c) }")
        )  # fmt: skip

    def peek(self, ahead: int = 0) -> str:
        """Return the next token without consuming it; empty at the end."""
        return self.tokens[self.at + ahead][1] if self.at + ahead < len(self.tokens) else ""

    def take(self, token: str = "", kind: str = "") -> str:
        """Consume and return the next token."""
        current = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        if (token and current[1] != token) or (kind and current[0] != kind) or not current[1]:
            if current[1].upper() in _REFUSED:
                raise self.make_error(f"{current[1].upper()} is not supported in a pattern")
            expected = repr(token) if token else f"a {kind or 'value'}"
            raise self.make_error(f"expected {expected}, not {repr(current[1]) if current[1] else 'the end'}")
        self.at += 1
        return current[1]

    def skip_keyword(self, keyword: str) -> bool:
        """Consume the next token and return True if it is this keyword."""
        if self.peek().upper() == keyword:
            self.at += 1
            return True
        return False

    def parse(self) -> Pattern:
        pattern = self.parse_pattern()
        if self.at < len(self.tokens):
            if self.peek().upper() not in _REFUSED:
                raise self.make_error(f"trailing {self.peek()!r} after the pattern")
            self.take(kind="end")
        return pattern

    def parse_pattern(self) -> Pattern:
        chain = self.parse_chain()
        return replace(chain, clauses=self.parse_clauses()) if self.skip_keyword("WHERE") else chain

    def parse_chain(self) -> Pattern:
        nodes, relations = [self.parse_node()], []
        while self.peek() in ("-", "<-"):
            relations.append(self.parse_relation())
            nodes.append(self.parse_node())
        names = [*(node.name for node in nodes), *(relation.name for relation in relations)]
        named = frozenset(name for name in names if not name.startswith(" "))
        return Pattern(tuple(nodes), tuple(relations), named=named)

    def parse_anonymous(self) -> str:
        self.unnamed += 1
        return f" {self.unnamed}"

    def parse_node(self) -> _NodePattern:
        self.take("(")
        name = self.take(kind="word") if self.tokens[self.at : self.at + 1] and self.parse_type() == "word" else ""
        type_ = None
        if self.peek() == ":":
            self.take(":")
            type_ = self.take(kind="word")
        fields: dict[str, Any] = {}
        if self.peek() == "{":
            self.take("{")
            while self.peek() != "}":
                if fields:
                    self.take(",")
                key = self.take(kind="word")
                self.take(":")
                fields[key] = self.parse_value()
            self.take("}")
        self.take(")")
        return _NodePattern(name or self.parse_anonymous(), type_, fields)

    def parse_type(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def parse_relation(self) -> _RelationPattern:
        backward = self.peek() == "<-"
        self.take("<-" if backward else "-")
        self.take("[")
        name = self.take(kind="word") if self.parse_type() == "word" else ""
        if self.peek() == "*":
            raise self.make_error("a variable-length path is not supported in a pattern")
        if self.peek() == "]":
            raise self.make_error("a relation's type is missing: type required")
        self.take(":")
        type_ = self.take(kind="word")
        if self.peek() == "*":
            raise self.make_error("a variable-length path is not supported in a pattern")
        self.take("]")
        if not backward and self.peek() == "-":
            raise self.make_error("an undirected relation is not supported in a pattern")
        self.take("-" if backward else "->")
        return _RelationPattern(name or self.parse_anonymous(), type_, not backward)

    def parse_clauses(self) -> tuple[_Clause, ...]:
        clauses = [self.parse_clause()]
        while self.skip_keyword("AND"):
            clauses.append(self.parse_clause())
        return tuple(clauses)

    def parse_clause(self) -> _Clause:
        negations = 0
        while self.skip_keyword("NOT"):
            negations += 1
        negated = negations % 2 == 1
        if self.skip_keyword("EXISTS"):
            if not negations:
                raise self.make_error("EXISTS is supported only with NOT in a pattern")
            self.take("{")
            sub = self.parse_chain()
            self.take("}")
            return _Clause(negated=negated, sub=sub)
        if self.peek() == "(":
            self.take("(")
            parts = self.parse_clauses()
            self.take(")")
            return _Clause(negated=negated, parts=parts)
        path, op = self.parse_path(), self.take(kind="sign")
        if op not in _COMPARISONS:
            raise self.make_error(f"{op!r} is not a comparison")
        if self.parse_type() == "word" and self.peek().upper() not in _REFUSED:
            return _Clause(path, _COMPARISONS[op], other_path=self.parse_path(), negated=negated)
        return _Clause(path, _COMPARISONS[op], self.parse_value(), negated=negated)

    def parse_path(self) -> tuple[str, ...]:
        names = [self.take(kind="word")]
        while self.peek() == ".":
            self.take(".")
            names.append(self.take(kind="word"))
        return tuple(names)

    def parse_value(self) -> Any:
        kind = self.parse_type()
        token = self.take()
        if kind == "number":
            return float(token) if "." in token else int(token)
        if kind == "text":
            return re.sub(r"\\(.)", r"\1", token[1:-1])
        if token.lower() in _CONSTANTS:
            return _CONSTANTS[token.lower()]
        raise self.make_error(f"{token!r} is not a value")


__all__ = ["Bindings", "Match", "Pattern", "parse_pattern"]
