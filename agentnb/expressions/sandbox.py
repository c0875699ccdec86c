"""The template sandbox. Templates can read, count and format values, and nothing else.

Imported late, by the modules that compile templates. It is based on Jinja's own ImmutableSandboxedEnvironment. In
addition, a mapping's names are its keys, an item is never an attribute, and no value is callable. The size of all
strings, lists and numbers that a template builds is limited, and so is the work of one rendering; Jinja limits neither.
Values that are only passed on may have any size.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction
from types import ModuleType
from typing import Any, NamedTuple

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

from agentnb.errors import with_article
from agentnb.expressions.lookup import NOTHING, get_value

__all__ = [
    "MAX_BITS",
    "MAX_ITEMS",
    "MAX_TEXT",
    "STOCK_FILTERS",
    "STOCK_TESTS",
    "Context",
    "Limit",
    "MissingError",
    "NodeTransformer",
    "Parser",
    "Program",
    "Sandbox",
    "SecurityError",
    "TemplateAssertionError",
    "TemplateSyntaxError",
    "UndefinedError",
    "charge",
    "charge_length",
    "check_number",
    "check_size",
    "compile_program",
    "iter_counted",
    "join_texts",
    "nodes",
    "pass_context",
    "settle",
    "to_list",
    "to_text",
    "touch",
    "weigh",
]

MAX_TEXT = 1_000_000  # characters that a template may build
MAX_ITEMS = 100_000  # items that a template may build or loop over
MAX_BITS = 10_000  # bits of an integer that a template may build
MAX_WORK = 3_000_000  # of one rendering: template parts and items processed, plus string characters divided by 16
VALUE = "_value"  # the variable for the value of a lone expression; templates cannot use this name

_ATOMS = frozenset({str, int, float, bool, type(None), bytes, complex})


class Limit(Exception):
    """A template exceeded a limit of what it may build or loop over."""


class MissingError(UndefinedError):
    """A template used a missing attribute or item: `key` of `holder`."""

    def __init__(self, message: str | None, holder: Any, key: Any) -> None:
        super().__init__(message)
        self.holder, self.key = holder, key


class _WorkBudget(threading.local):
    """The remaining part of MAX_WORK for the rendering of this thread."""

    remaining = MAX_WORK


_spending = _WorkBudget()


def charge(work: int) -> None:
    """Charge work against the limit of one rendering; raise Limit when it is used up."""
    _spending.remaining -= work
    if _spending.remaining < 0:
        raise Limit(f"more than {MAX_WORK:,} operations")


def check_size(size: int, limit: int, what: str) -> None:
    """Raise Limit if `size`, a number of `what`, is greater than `most`; the size is charged like characters."""
    if size > limit:
        raise _make_limit(limit, what)
    charge(size >> 4)


def check_number(value: Any) -> Any:
    """Return a number built by a template; raise Limit if it has more than MAX_BITS bits."""
    for part in (value,) if isinstance(value, int) else _get_parts(value):
        if part.bit_length() > MAX_BITS:
            raise _make_limit(MAX_BITS, "bits in a number")
    return value


def _get_parts(value: Any) -> tuple[int, ...]:
    return (value.numerator, value.denominator) if isinstance(value, Fraction) else ()


def charge_length(value: Any) -> Any:
    """Return `value`, charged by its length: scanning a long value repeatedly in a loop is work."""
    if isinstance(value, str | bytes):
        charge(len(value) >> 4)
    elif isinstance(value, Mapping | list | tuple | set | frozenset):
        charge(len(value))
        for item in value.values() if isinstance(value, Mapping) else value:
            if type(item) not in _ATOMS:
                charge_length(item)
    return value


def weigh(value: Any) -> int:
    """Return the approximate length of `value` as text; raise Limit above MAX_TEXT. Shared parts count each time."""
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
        # Checked before the children are listed, so that an overlong list is not walked.
        if total > MAX_TEXT:
            raise _make_limit(MAX_TEXT, "characters of text")
        if isinstance(item, Mapping):
            stack += item.keys()
            stack += item.values()
        elif isinstance(item, Sequence | AbstractSet) and not isinstance(item, str | bytes):
            stack += item
    charge(total >> 4)
    return total


def _make_limit(limit: int, what: str) -> Limit:
    return Limit(f"more than {limit:,} {what}")


def to_text(value: Any) -> str:
    """Return `value` as a template shows it. An undefined name or callable is an error; oversized text raises Limit."""
    if type(value) is str:
        return value
    touch(value)
    if callable(value):
        _refuse_callable(value)
    weigh(value)
    return str(value)


def touch(value: Any) -> None:
    """Raise UndefinedError if `value` is an undefined name."""
    if isinstance(value, Undefined):
        value._fail_with_undefined_error()  # noqa: SLF001 - how Jinja's own subclasses raise it


def _refuse_callable(value: Any) -> None:
    name = getattr(value, "__name__", type(value).__name__)
    raise SecurityError(f"{name!r} is callable, and templates can only use values")


def to_list(items: Iterable[Any]) -> list[Any]:
    """Return the items as a list, at most MAX_ITEMS of them."""
    out: list[Any] = []
    for item in items:
        out.append(item)
        if len(out) > MAX_ITEMS:
            raise _make_limit(MAX_ITEMS, "items in a list")
    charge(len(out))
    return out


def join_texts(parts: Iterable[Any], between: str = "") -> str:
    """Return the parts joined to one string within MAX_TEXT."""
    pieces, total = [], -len(between)
    for part in parts:
        piece = to_text(part)
        total += len(piece) + len(between)
        if total > MAX_TEXT:
            raise _make_limit(MAX_TEXT, "characters of text")
        pieces.append(piece)
    charge(len(pieces) + (max(total, 0) >> 4))
    return between.join(pieces)


def settle(value: Any, seen: dict[int, Any] | None = None) -> Any:
    """Return `value` as a template's result: containers copied, lazy ones as lists, marked-up text as plain text.

    Shared parts remain shared, so a copy is never larger than what was built. Anything else, such as a date or a
    DataFrame, is returned unchanged.
    """
    if type(value) in _ATOMS:
        return value
    seen = {} if seen is None else seen
    if id(value) in seen:
        return seen[id(value)]
    copy = _copy(value, seen)
    seen[id(value)] = copy
    return copy


def _copy(value: Any, seen: dict[int, Any]) -> Any:
    touch(value)
    if isinstance(value, Mapping):
        return {settle(key, seen): settle(item, seen) for key, item in value.items()}
    if isinstance(value, list):
        return [settle(item, seen) for item in value]
    if isinstance(value, tuple):
        return tuple(settle(item, seen) for item in value)
    if isinstance(value, set | frozenset):
        return type(value)(value)
    if isinstance(value, Markup):
        return str(value)
    if isinstance(value, Iterator):
        return [settle(item, seen) for item in to_list(value)]
    if callable(value):
        _refuse_callable(value)
    return value


class _Names(Context):
    """The names of one rendering, each looked up once in the unchanged context, and the number of loop iterations."""

    spent = 0

    def __init__(self, environment: Sandbox, context: Mapping[str, Any]) -> None:
        # Jinja's own context copies names, which takes longer than rendering a short template.
        self.environment, self.eval_ctx = environment, environment.eval_ctx
        self.parent, self.vars = context, {}  # type: ignore[assignment]  # any Mapping will do
        self.exported_vars, self.name, self.blocks = set(), None, {}

    def resolve_or_missing(self, key: str) -> Any:
        """Return the value of a name, `missing` if there is none."""
        return self.parent.get(key, missing)


@pass_context
def iter_counted(context: _Names, items: Iterable[Any], parts: int) -> Iterator[Any]:
    """Yield the items of a loop whose body has this many parts, counted against the whole rendering."""
    for item in items:
        context.spent += 1
        if context.spent > MAX_ITEMS:
            raise _make_limit(MAX_ITEMS, "items in its loops")
        charge(parts)
        yield item


@pass_context
def _show(_: Context, value: Any) -> str:
    # Requesting the context prevents Jinja from evaluating constants at compile time.
    text = to_text(value)
    charge(len(text) >> 4)  # the content of a `set` block is not yet part of a limited string
    return text


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox without callables, and with size limits on what its operators build."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})
    context_class = _Names
    eval_ctx: EvalContext

    def __init__(self, filters: Mapping[str, Callable[..., Any]], tests: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(
            undefined=StrictUndefined,
            finalize=_show,
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
        """Evaluate `left operator right` unless the result would be too large."""
        if operator == "*":
            _check_product(left, right)
        elif operator == "+" and isinstance(left, Sequence) and isinstance(right, Sequence):
            _check_length(left, len(left) + len(right))
        elif operator == "%" and isinstance(left, str | bytes):
            raise SecurityError("text % value is not allowed in templates; join strings with ~")
        elif operator == "**":
            _check_power(left, right)
        return check_number(super().call_binop(context, operator, left, right))

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return `obj.attribute`: a mapping's key, otherwise a public attribute that is not callable."""
        if isinstance(obj, Mapping):
            return self.getitem(obj, attribute)
        touch(obj)  # checked before callability, because undefined values are callable
        if attribute.startswith("_"):
            raise SecurityError(f"{attribute!r} is private")
        if isinstance(obj, ModuleType) or (callable(obj) and not isinstance(obj, LoopContext)):
            _refuse_callable(obj)
        try:
            value = getattr(obj, attribute)
        except AttributeError:
            return self._make_undefined(obj, attribute)
        if callable(value):
            raise SecurityError(
                f"{attribute!r} of {with_article(type(obj).__name__)} is a method, and templates can only use values"
            )
        if not self.is_safe_attribute(obj, attribute, value):
            raise SecurityError(f"{attribute!r} is private")
        return value

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return `obj[argument]`, never an attribute; for a mapping, a dotted string that is not a key is a path."""
        try:
            value = _get_key(obj, argument) if isinstance(obj, Mapping) else obj[argument]
        except (TypeError, LookupError):
            return self._make_undefined(obj, argument)
        if callable(value) and not isinstance(value, Undefined):
            _refuse_callable(value)
        return value

    def _make_undefined(self, holder: Any, key: Any) -> Undefined:
        def make_error(message: str | None) -> MissingError:
            return MissingError(message, holder, key)

        return self.undefined(obj=holder, name=key, exc=make_error)  # type: ignore[arg-type]  # makes one, as a class does


def _get_key(mapping: Mapping[Any, Any], key: Any) -> Any:
    if key in mapping:  # checked first, because a lookup would add the key to a defaultdict
        return mapping[key]
    value = get_value(mapping, key.split(".")) if isinstance(key, str) and "." in key else NOTHING
    if value is NOTHING:
        raise KeyError(key)
    return value


def _check_product(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        check_size(left.bit_length() + right.bit_length(), MAX_BITS, "bits in a number")
    for many, times in ((left, right), (right, left)):
        if isinstance(many, Sequence) and isinstance(times, int) and times > 1:
            # A list counts with its content: a list of long lists is as large as all of them.
            _check_length(
                many, times * (len(many) if isinstance(many, str | bytes) else max(len(many), weigh(many) >> 2))
            )


def _check_power(left: Any, right: Any) -> None:
    for value in (left, right):
        touch(value)
        if not isinstance(value, int | float):
            raise TypeError(f"expected a number, not {type(value).__name__}")
    if isinstance(left, int) and isinstance(right, int) and right > 0:
        check_size(left.bit_length() * right, MAX_BITS, "bits in a number")


def _check_length(kind: Sequence[Any], length: int) -> None:
    if isinstance(kind, str | bytes):
        check_size(length, MAX_TEXT, "characters of text")
    else:
        check_size(length, MAX_ITEMS, "items in a list")
        charge(length)


class Program(NamedTuple):
    """A compiled template: `run` returns its value for a context, `line_of` the template line that raised an error.

    If the second argument of `run` is false, an undefined lone expression is NOTHING; otherwise it is an error.
    """

    run: Callable[[Mapping[str, Any], bool], Any]
    line_of: Callable[[BaseException], int | None]


def compile_program(environment: Sandbox, tree: nodes.Template) -> Program:
    """Compile a checked tree that renders to text or, for a lone expression, to its settled value."""
    native = any(isinstance(part, nodes.Assign) and part.target == nodes.Name(VALUE, "store") for part in tree.body)
    code = environment.compile(tree)
    template = JinjaTemplate.from_code(environment, code, {})
    render = template.root_render_func

    def render_text(context: Mapping[str, Any], strict: bool) -> str:  # noqa: ARG001 - text is strict always
        _spending.remaining = MAX_WORK
        return join_texts(render(_Names(environment, context)))

    def render_value(context: Mapping[str, Any], strict: bool) -> Any:
        _spending.remaining = MAX_WORK
        names = _Names(environment, context)
        for _ in render(names):
            pass
        found = names.vars[VALUE]
        if type(found) in _ATOMS:
            return found
        return NOTHING if not strict and isinstance(found, Undefined) else settle(found)

    def find_line(error: BaseException) -> int | None:
        line, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_globals is render.__globals__:
                line = trace.tb_lineno
            trace = trace.tb_next
        if line is not None:
            return template.get_corresponding_lineno(line)
        # The value of a lone expression is checked after rendering; rendered text has no line.
        return template.debug_info[0][0] if native and template.debug_info else None

    return Program(render_value if native else render_text, find_line)
