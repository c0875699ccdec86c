"""Values identified by their type: their keys on the board, conditions on them, and the parameters of systems."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable
from types import UnionType
from typing import Any, Final, NamedTuple, Union, get_args, get_origin

from agentnb.board.decoders import Record
from agentnb.board.external_types import is_scalar
from agentnb.board.scopes import Scope
from agentnb.board.values import ABSENT, thaw
from agentnb.engine.core.work import Work
from agentnb.errors import ExecutionError, Problem, with_article
from agentnb.recipe.model import Path
from agentnb.recipe.user_functions import find_unrun
from agentnb.world.resources import Resources

UNIONS: Final = (Union, UnionType)
_NUMBERS: Final[Mapping[Any, Any]] = {float: (int, float), complex: (int, float, complex)}


class SystemParameter(NamedTuple):
    """A parameter of a system: an `out` is a stored output, a `res` a resource, a `context` the context itself.

    Without a value, one that is not `needed` is left out or, with `none`, passed as None.
    """

    name: str
    role: str
    kind: Any
    needed: bool
    none: bool = False


def get_type_name(kind: Any) -> str:
    """Return a type as shown to people: its defined name, with its type arguments."""
    if (origin := get_origin(kind)) is not None:
        return f"{get_type_name(origin)}[{', '.join(map(get_type_name, get_args(kind)))}]"
    return getattr(kind, "__qualname__", None) or str(kind)


def get_key(kind: Any) -> str:
    """Return the board key of a type: its module and its qualified name.

    Example:
        >>> get_key(dict), get_key(list[int])
        ('builtins.dict', 'builtins.list[int]')
    """
    home = get_origin(kind) or kind
    return f"{getattr(home, '__module__', 'typing')}.{get_type_name(kind)}"


def get_keys(kinds: Any) -> dict[Any, str]:
    """Return a key for each type; if two have one name, the later one's ends in `~2`, `~3` ..."""
    keys: dict[Any, str] = {}
    for kind in dict.fromkeys(kinds):
        key = name = get_key(kind)
        number = 2
        while key in keys.values():
            key, number = f"{name}~{number}", number + 1
        keys[kind] = key
    return keys


def find_key(value: Any, declared: tuple[Any, ...], keys: Mapping[Any, str]) -> str:
    """Return the key of an output: that of the declared type that it matches, otherwise that of its own type."""
    own = [kind for kind in declared if kind is type(value)]
    for kind in own or declared:
        if is_of(value, kind):
            return keys[kind]
    if isinstance(value, Record):  # its class is not known here: its name is used
        return str(value.document.get("type", value.tag)).replace(":", ".")
    return keys.get(type(value)) or get_key(type(value))


def is_of(value: Any, kind: Any) -> bool:
    """Return True if a value matches a type annotation, as type checkers see it; items are not checked.

    So an int is a float, a numpy scalar is also what its `item()` is, and every dict may be a TypedDict. A type that
    cannot be checked, such as a Protocol or a type variable, matches every value.

    Example:
        >>> is_of(1, float), is_of("1", float), is_of([1], list[str]), is_of({}, typing.NewType("Row", dict))
        (True, False, True, True)
    """
    while isinstance(kind, typing.NewType):
        kind = kind.__supertype__
    kind = getattr(kind, "__value__", kind)  # the alias of `type Name = ...`
    if get_origin(kind) in (*UNIONS, typing.Annotated):
        parts = get_args(kind)[:1] if get_origin(kind) is typing.Annotated else get_args(kind)
        return any(is_of(value, part) for part in parts)
    if get_origin(kind) is typing.Literal:
        return any(type(value) is type(each) and value == each for each in get_args(kind))
    if typing.is_typeddict(get_origin(kind) or kind):
        return isinstance(value, dict)
    wider = _NUMBERS.get(kind, kind) if not isinstance(value, bool) or kind is int else kind
    try:
        expected = get_origin(wider) or wider
        return isinstance(value, expected) or (is_scalar(value) and isinstance(value.item(), expected))
    except TypeError:  # a type that `isinstance` does not accept, such as Any, Never or a type variable
        return True


def list_members(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, without None; for any other type the type itself."""
    members = get_args(kind) if get_origin(kind) in UNIONS else (kind,)
    return tuple(each for each in members if each is not type(None) and each is not None)


class SystemContext:
    """The environment of systems: resources by type, and the stored outputs.

    One that you create is what a run begins with. A system that declares one receives that of its own position: what it
    inserts in a parallel branch is seen in that branch only.
    """

    def __init__(self, *resources: Any) -> None:
        self.resources = Resources()
        self.outputs: dict[Any, Any] = {}
        self._scope: Scope | None = None
        self._work: Work | None = None
        self._keys: Mapping[Any, str] = {}
        self._open = True
        for each in resources:
            self.resources.insert(each)

    @classmethod
    def at(
        cls, resources: Resources, scope: Scope, keys: Mapping[Any, str] | None = None, work: Work | None = None
    ) -> SystemContext:
        """Return the context of a position in a run."""
        context = cls()
        context.resources, context._scope, context._keys, context._work = resources, scope, keys or {}, work
        return context

    def insert(self, resource: Any, kind: type | None = None) -> SystemContext:
        """Add a resource under its type, or under `kind`; return this context.

        Raises:
            ExecutionError: X455, the step that received this context has ended.
        """
        if not self._open or (self._work is not None and self._work.has_ended):
            raise ExecutionError(
                Problem(
                    "X455",
                    f"a late attempt to insert a {get_type_name(type(resource))} was rejected",
                    "SystemContext",
                    "the step that owns this context has ended",
                    "insert it before the system returns",
                )
            )
        self.resources.insert(resource, kind, self._scope)
        return self

    def resource(self, kind: type) -> Any:
        """Return the resource of a type.

        Raises:
            ExecutionError: X451, it does not exist.
        """
        instance = self.resources.find(kind, self._scope)
        if instance is ABSENT:
            raise ExecutionError(make_missing_resource_problem(kind, "SystemContext", self.resources))
        return instance

    def insert_output(self, value: Any, kind: Any = None) -> SystemContext:
        """Store an output for a run to begin with; return this context."""
        self.outputs[type(value) if kind is None else kind] = value
        return self

    def output(self, kind: Any, default: Any = None) -> Any:
        """Return the last stored output of a type, or the default."""
        if self._scope is None:
            return self.outputs.get(kind, default)
        key = self._keys.get(kind) or get_key(kind)
        if self._work is not None:
            self._work.reads[key] = None
        value = self._scope.get(key)
        return default if value is ABSENT else thaw(value)

    def close(self) -> None:
        """Refuse all further insertions."""
        self._open = False


class TypedCondition:
    """A condition or key computed from the stored output of a type: a predicate, or a switch's discriminator.

    It can be a loop's condition, called with the board; with `until` it holds while its answer is false.
    """

    def __init__(
        self, name: str, kind: Any, key: str, function: Callable[[Any], Any] | None, *, until: bool = False
    ) -> None:
        self.name, self.kind, self.key, self.function, self.until = name, kind, key, function, until
        self.source = function  # input of the fingerprint
        self.text = f"{'not ' if until else ''}{name}({get_type_name(kind)})"
        self.reads: tuple[Path, ...] = ((key,),)

    def __call__(self, board: Mapping[str, Any], /) -> Any:
        """Return the answer."""
        work = getattr(board, "work", None)
        if isinstance(work, Work):
            answer = self.answer(work)
        else:
            answer = None if self.function is None else self.function(board[self.key])
        return not answer if self.until else answer

    def __repr__(self) -> str:
        return f"<Asked {self.text}>"

    def explain(self, board: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return (text, value) of the output that it uses and, last, of its answer; of a failure only that."""
        if self.key not in board:
            return [(self.text, f"fails: no {get_type_name(self.kind)!r} is stored")]
        value = board[self.key]
        try:
            answer = self(board)
        except Exception as error:  # noqa: BLE001  (it becomes a Problem)
            return [(self.text, f"fails: {type(error).__name__}: {error}")]
        return [(get_type_name(self.kind), value), (self.text, answer)]

    def answer(self, work: Work) -> Any:
        """Return the function's answer for the output visible to a node.

        X454: a predicate failed

        Raises:
            ExecutionError: X450, the output does not exist; X454, the function failed.
        """
        if self.function is None:
            raise ExecutionError(self._make_failure_problem(work, "it has no function"))
        value = get_output_at(work, self.key)
        if value is ABSENT:
            raise ExecutionError(make_missing_output_problem(work, self.kind, self.key, f"{self.name!r} requires"))
        try:
            result = self.function(value)
        except Exception as error:
            raise ExecutionError(self._make_failure_problem(work, f"{type(error).__name__}: {error}")) from error
        if isawaitable(result) or find_unrun(result) is not None:
            getattr(result, "close", lambda: None)()
            returned = find_unrun(result) or "an awaitable"
            raise ExecutionError(self._make_failure_problem(work, f"it returned {returned} instead of a result"))
        return result

    def _make_failure_problem(self, work: Work, why: str) -> Problem:
        """X454: a predicate failed."""
        return Problem("X454", f"{self.name!r} could not be evaluated for {get_type_name(self.kind)!r}: {why}",
                       format_position(work), "its result decides the route",
                       "use a plain function that returns a result for every value of that type")  # fmt: skip


def get_output_at(work: Work, key: str) -> Any:
    """Return a node's own copy of a stored output; ABSENT if there is none. The read is recorded."""
    work.reads[key] = None
    value = work.scope.get(key)
    return value if value is ABSENT else thaw(value)


def get_inputs(work: Work, takes: Sequence[SystemParameter], keys: Mapping[Any, str], name: str) -> dict[str, Any]:
    """Return a node's own copies of the stored outputs that it takes, by the names of its parameters.

    Raises:
        ExecutionError: X450, the output does not exist.
    """
    inputs = {}
    for take in takes:
        value = get_output_at(work, keys[take.kind])
        if value is not ABSENT:
            inputs[take.name] = value
        elif take.needed:
            asks = f"parameter {take.name!r} of {name!r} requires"
            raise ExecutionError(make_missing_output_problem(work, take.kind, keys[take.kind], asks))
        elif take.none:
            inputs[take.name] = None
    return inputs


def format_position(work: Work) -> str:
    """Return a node's position, as shown to people."""
    return str(work.node.place or f"node {work.node.id!r}")


def make_missing_output_problem(work: Work, kind: Any, key: str, asks: str) -> Problem:
    """X450: an output of a type is required, and none is stored."""
    nodes = work.run.plan.recipe.nodes.values()
    makers = [node.id for node in nodes if key in node.writes and node.id != work.node.id]
    stored = [name for name in work.scope.visible_items() if name != key]
    could = f"it could come from: {', '.join(makers)}" if makers else "no system of this graph declares that type"
    order = f"run {' or '.join(map(repr, makers))} before it" if makers else "add a system that returns one"
    return Problem(
        "X450",
        f"node {work.node.id!r}: {asks} the output {get_type_name(kind)!r}, and none is stored",
        format_position(work),
        f"{could}; stored are: {', '.join(stored) or 'none'}",
        order,
    )


def make_type_problem(work: Work, value: Any, declared: Sequence[Any], name: str) -> Problem:
    """X472: a system has returned a value of another type than its annotation declares."""
    expected, returned = " or ".join(map(get_type_name, declared)) or "None", get_type_name(type(value))
    what = f"{name!r} returned {with_article(returned)}, but declares {expected!r}"
    return Problem("X472", what, format_position(work),
                   "outputs are stored by type: a reader of the declared type would not find it",
                   f"return {with_article(expected)}, or annotate it: -> {returned}")  # fmt: skip


def make_missing_resource_problem(kind: type, where: str, resources: Resources, consumer: str = "") -> Problem:
    """X451: a resource of a type is required and does not exist."""
    name = get_type_name(kind)
    return Problem(
        "X451",
        f"{consumer}there is no resource {name!r}",
        where,
        f"the resources here are: {', '.join(resources.names()) or 'none'}",
        f"pass it: Session(recipe, resources={{{name}: ...}}), or context.insert(...) before a run starts",
    )
