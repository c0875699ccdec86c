"""sandbox: the one door to jinja2. An environment in which a template can read, count and word things, no more.

It is imported late, by what compiles a template. Underneath lies Jinja's own ImmutableSandboxedEnvironment; on top of
it a mapping's names are its keys, an item is never an attribute, no callable is a value; every text, list and number
that a template builds has a limit, and so has the work of one rendering: Jinja limits neither. A template that only
reads passes on whatever size the board holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import ModuleType
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, Undefined, nodes, pass_context
from jinja2.environment import Template as JinjaTemplate
from jinja2.exceptions import SecurityError, TemplateAssertionError, UndefinedError
from jinja2.filters import FILTERS as STOCK_FILTERS
from jinja2.nodes import EvalContext
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS as STOCK_TESTS
from jinja2.utils import missing
from jinja2.visitor import NodeTransformer
from markupsafe import Markup

from agentnb.expressions.reading import NOTHING, found_at

__all__ = [
    "MAX_ITEMS",
    "MAX_TEXT",
    "STOCK_FILTERS",
    "STOCK_TESTS",
    "Context",
    "Limit",
    "NodeTransformer",
    "Parser",
    "Sandbox",
    "SecurityError",
    "TemplateAssertionError",
    "TemplateSyntaxError",
    "UndefinedError",
    "charge",
    "counted",
    "joined",
    "listed",
    "nodes",
    "pass_context",
    "program",
    "settled",
    "text_of",
    "touch",
    "weigh",
    "weighed",
    "within",
]

MAX_TEXT = 1_000_000  # characters that a template may build
MAX_ITEMS = 100_000  # items that a template may build or walk over in its loops
MAX_BITS = 10_000  # of a whole number that a template may build
MAX_WORK = 3_000_000  # of one rendering: parts of the template, items and sixteenths of texts that it goes through
VALUE = "_value"  # where the value of a lone expression is kept; no template can name it

_ATOMS = frozenset({str, int, float, bool, type(None), bytes, complex})


class Limit(Exception):
    """A template asked for more than it may build or walk over."""


class _Spending(threading.local):
    """What is left of MAX_WORK for the rendering of this thread."""

    left = MAX_WORK


_spending = _Spending()


def charge(work: int) -> None:
    """Count work against what one rendering may do; Limit where it is spent."""
    _spending.left -= work
    if _spending.left < 0:
        raise Limit(f"more than {MAX_WORK:,} operations")


def within(size: int, most: int, what: str) -> None:
    """Raise Limit where `size` is over `most`; `what` is counted, and charged as characters are."""
    if size > most:
        raise _too_much(most, what)
    charge(size >> 4)


def weighed(value: Any) -> Any:
    """Return `value`, charged by its length: a loop that looks through a long one each time is work."""
    if isinstance(value, str | bytes):
        charge(len(value) >> 4)
    elif isinstance(value, Mapping | list | tuple | set | frozenset):
        charge(len(value))
        for item in value.values() if isinstance(value, Mapping) else value:
            if item.__class__ not in _ATOMS:
                weighed(item)
    return value


def weigh(value: Any) -> int:
    """Return about how long `value` is as text; Limit where that is over MAX_TEXT. What is shared counts each time."""
    total, stack = 0, [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str | bytes):
            total += len(item)
        elif isinstance(item, int):
            total += item.bit_length() // 3 + 1
        elif isinstance(item, Mapping):
            total += 4 * len(item)
        elif isinstance(item, Sequence | AbstractSet):
            total += 2 * len(item)
        else:
            total += 8
        # Before the children are listed: a list that is too long is not walked.
        if total > MAX_TEXT:
            raise _too_much(MAX_TEXT, "characters of text")
        if isinstance(item, Mapping):
            stack += item.keys()
            stack += item.values()
        elif isinstance(item, Sequence | AbstractSet) and not isinstance(item, str | bytes):
            stack += item
    charge(total >> 4)
    return total


def _too_much(most: int, what: str) -> Limit:
    return Limit(f"more than {most:,} {what}")


def text_of(value: Any) -> str:
    """Return `value` as a template shows it; an undefined name and a callable are errors, a huge text is a Limit."""
    if type(value) is str:
        return value
    touch(value)
    if callable(value):
        _no_callable(value)
    weigh(value)
    return str(value)


def touch(value: Any) -> None:
    """Raise UndefinedError where `value` is an undefined name."""
    if isinstance(value, Undefined):
        value._fail_with_undefined_error()  # noqa: SLF001 - how Jinja's own subclasses raise it


def _no_callable(value: Any) -> None:
    name = getattr(value, "__name__", type(value).__name__)
    raise SecurityError(f"{name!r} is something to call, and a template has values only")


def listed(items: Iterable[Any]) -> list[Any]:
    """Return the items as a list, at most MAX_ITEMS of them."""
    found: list[Any] = []
    for item in items:
        found.append(item)
        if len(found) > MAX_ITEMS:
            raise _too_much(MAX_ITEMS, "items in a list")
    charge(len(found))
    return found


def joined(parts: Iterable[Any], between: str = "") -> str:
    """Return the parts as one text within MAX_TEXT."""
    pieces, total = [], 0
    for part in parts:
        piece = text_of(part)
        total += len(piece) + len(between)
        if total > MAX_TEXT:
            raise _too_much(MAX_TEXT, "characters of text")
        pieces.append(piece)
    charge(len(pieces) + (total >> 4))
    return between.join(pieces)


def settled(value: Any, seen: dict[int, Any] | None = None) -> Any:
    """Return `value` as a template hands it out: containers copied, lazy ones as lists, marked-up text as plain text.

    What is shared inside stays shared, so a copy is never larger than what was built. Anything else, a date or a
    DataFrame, passes as it is.
    """
    if type(value) in _ATOMS:
        return value
    seen = {} if seen is None else seen
    if id(value) in seen:
        return seen[id(value)]
    copy = _copied(value, seen)
    seen[id(value)] = copy
    return copy


def _copied(value: Any, seen: dict[int, Any]) -> Any:
    touch(value)
    if isinstance(value, Mapping):
        return {settled(key, seen): settled(item, seen) for key, item in value.items()}
    if isinstance(value, list):
        return [settled(item, seen) for item in value]
    if isinstance(value, tuple):
        return tuple(settled(item, seen) for item in value)
    if isinstance(value, set | frozenset):
        return type(value)(value)
    if isinstance(value, Markup):
        return str(value)
    if isinstance(value, Iterator):
        return [settled(item, seen) for item in listed(value)]
    if callable(value):
        _no_callable(value)
    return value


class _Names(Context):
    """A rendering's names, looked up in the context as it is, once each; and how many items it has walked over."""

    spent = 0

    def __init__(self, environment: Sandbox, context: Mapping[str, Any]) -> None:
        # Jinja's own copies names about, which takes longer than a short template itself.
        self.environment, self.eval_ctx = environment, environment.eval_ctx
        self.parent, self.vars = context, {}  # type: ignore[assignment]  # any Mapping will do
        self.exported_vars, self.name, self.blocks = set(), None, {}

    def resolve_or_missing(self, key: str) -> Any:
        """Return the value of a name, `missing` where there is none."""
        return self.parent.get(key, missing)


@pass_context
def counted(context: _Names, items: Iterable[Any], parts: int) -> Iterator[Any]:
    """Yield the items of a loop whose inside has so many parts, counting those of the whole rendering."""
    for item in items:
        context.spent += 1
        if context.spent > MAX_ITEMS:
            raise _too_much(MAX_ITEMS, "items in its loops")
        charge(parts)
        yield item


@pass_context
def _shown(_: Context, value: Any) -> str:
    # Asking for the context keeps Jinja from working out constants while it compiles.
    return text_of(value)


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox without anything to call, and with a size for whatever its operators build."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})
    context_class = _Names
    eval_ctx: EvalContext

    def __init__(self, filters: Mapping[str, Callable[..., Any]], tests: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(
            undefined=StrictUndefined,
            finalize=_shown,
            autoescape=False,
            optimized=False,
            trim_blocks=True,
            lstrip_blocks=True,
            cache_size=0,
        )
        self.globals = {}
        self.filters = dict(filters)
        self.tests = dict(tests)
        self.eval_ctx = EvalContext(self)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Work out `left operator right`, if what comes of it is not too large."""
        if operator == "*":
            _check_product(left, right)
        elif operator == "+" and isinstance(left, Sequence) and isinstance(right, Sequence):
            _check_length(left, len(left) + len(right))
        elif operator == "%" and isinstance(left, str | bytes):
            raise SecurityError("text % value is not for templates; join texts with ~")
        elif operator == "**":
            raise SecurityError("** is not for templates")
        return super().call_binop(context, operator, left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return `obj.attribute`: a mapping's key, else a public attribute that is no callable."""
        if isinstance(obj, Mapping):
            return self.getitem(obj, attribute)
        touch(obj)  # before it is asked whether it can be called: what is undefined can
        if attribute.startswith("_"):
            raise SecurityError(f"{attribute!r} is private")
        if isinstance(obj, ModuleType) or (callable(obj) and not isinstance(obj, LoopContext)):
            _no_callable(obj)
        try:
            value = getattr(obj, attribute)
        except AttributeError:
            return self.undefined(obj=obj, name=attribute)
        if callable(value):
            raise SecurityError(f"{attribute!r} of a {type(obj).__name__} is a method, and a template has values only")
        if not self.is_safe_attribute(obj, attribute, value):
            raise SecurityError(f"{attribute!r} is private")
        return value

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return `obj[argument]`, never an attribute; a text with dots that is no key of a mapping is a path in it."""
        try:
            value = _keyed(obj, argument) if isinstance(obj, Mapping) else obj[argument]
        except (TypeError, LookupError):
            return self.undefined(obj=obj, name=argument)
        if callable(value) and not isinstance(value, Undefined):
            _no_callable(value)
        return value


def _keyed(mapping: Mapping[Any, Any], key: Any) -> Any:
    if key in mapping:  # asked first: a defaultdict would grow
        return mapping[key]
    value = found_at(mapping, key.split(".")) if isinstance(key, str) and "." in key else NOTHING
    if value is NOTHING:
        raise KeyError(key)
    return value


def _check_product(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        within(left.bit_length() + right.bit_length(), MAX_BITS, "bits in a number")
    for many, times in ((left, right), (right, left)):
        if isinstance(many, Sequence) and isinstance(times, int) and times > 1:
            # A list counts with what is in it: a list of long lists is as large as they are.
            _check_length(
                many, times * (len(many) if isinstance(many, str | bytes) else max(len(many), weigh(many) >> 2))
            )


def _check_length(kind: Sequence[Any], length: int) -> None:
    if isinstance(kind, str | bytes):
        within(length, MAX_TEXT, "characters of text")
    else:
        within(length, MAX_ITEMS, "items in a list")
        charge(length)


def program(environment: Sandbox, tree: nodes.Template) -> Callable[[Mapping[str, Any], bool], Any]:
    """Compile a checked tree to a function of a context, giving text or, of a lone expression, its settled value.

    Where the function's second argument is false, a lone expression that is undefined is NOTHING; else it is an error.
    """
    native = bool(tree.body) and isinstance(tree.body[0], nodes.Assign)
    code = environment.compile(tree)
    render = JinjaTemplate.from_code(environment, code, {}).root_render_func

    def text(context: Mapping[str, Any], strict: bool) -> str:  # noqa: ARG001 - text is strict always
        _spending.left = MAX_WORK
        return joined(render(_Names(environment, context)))

    def value(context: Mapping[str, Any], strict: bool) -> Any:
        _spending.left = MAX_WORK
        names = _Names(environment, context)
        for _ in render(names):
            pass
        found = names.vars[VALUE]
        if found.__class__ in _ATOMS:
            return found
        return NOTHING if not strict and isinstance(found, Undefined) else settled(found)

    return value if native else text
