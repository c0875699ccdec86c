"""The grammar of templates: text is parsed to a tree, checked against an allow-list, and compiled.

Everything that is not on the allow-list is rejected, so new features of Jinja are rejected as well. Imported late,
because it imports Jinja.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from agentnb.errors import did_you_mean
from agentnb.expressions.sandbox import (
    MAX_BITS,
    VALUE,
    NodeTransformer,
    Parser,
    Program,
    Sandbox,
    TemplateAssertionError,
    TemplateSyntaxError,
    compile_program,
    nodes,
)
from agentnb.expressions.template_filters import FILTERS, INNER, METHODS, TESTS

__all__ = ["MAX_LENGTH", "Compiled", "Mention", "Refusal", "TemplateRefused", "compile_text", "list_mentions"]

MAX_LENGTH = 20_000  # characters of a template
MAX_NODES = 2_000
MAX_DEPTH = 40
MAX_LOOPS = 2  # nesting depth
_AT_ONCE = ("count", "d", "default", "first", "last", "length")  # filters that do not iterate over their value
_FORGIVING = ("d", "default", "defined", "undefined")  # filters and tests that accept undefined values
_FUNCTIONS = ("dict", "range")  # functions that may be called by name
_BLOCK = "_block"  # the text of a `set` block before its filters; templates cannot use this name
_RESERVED = ("self", "super", "caller", "varargs", "kwargs")

_ALLOWED: tuple[type[nodes.Node], ...] = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For),
    *(nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Keyword),
    *(nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Call, nodes.Filter, nodes.Test),
    *(nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.CondExpr),
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos, nodes.Concat),
    *(nodes.Pow, nodes.Assign, nodes.AssignBlock),
)
_SHOWN = {
    "CallBlock": "{% call %}",
    "FilterBlock": "{% filter %}",
    "FromImport": "{% import %}",
    "ScopedEvalContextModifier": "{% autoescape %}",
}
Path = tuple[str, ...]


class Refusal(NamedTuple):
    """One violation of the grammar: a code, the template's line, and the texts of a Problem."""

    code: str
    line: int
    what: str
    why: str
    do: str


class TemplateRefused(Exception):
    """A template was rejected; `refusals` are all its violations."""

    def __init__(self, *refusals: Refusal) -> None:
        super().__init__(*refusals)
        self.refusals = refusals


class Compiled(NamedTuple):
    """The result of compiling a checked template; `rule` is a lone expression as a JsonLogic rule, if possible."""

    program: Program
    reads: tuple[Path, ...]
    native: bool
    rule: Any


class Mention(NamedTuple):
    """A name, an attribute or an item that a template reads: its text, its line and what it is read from.

    `key` is the name, attribute or item; None if the item is computed. `path` has all keys starting at a name of the
    context; None if some are computed. `holder` is the text of what it is read from, empty for a name.
    """

    text: str
    line: int
    key: str | int | None
    path: Path | None
    holder: str


@cache
def _make_environment() -> Sandbox:
    return Sandbox({**FILTERS, **INNER}, TESTS)


def compile_text(text: str, *, bare: bool) -> Compiled:
    """Compile a template or, if `bare`, an expression without braces.

    Raises:
        TemplateRefused
    """
    if len(text) > MAX_LENGTH:
        raise TemplateRefused(_make_size_refusal(f"is {len(text):,} characters long", f"at most {MAX_LENGTH:,}"))
    tree = _parse(text, bare=bare)
    refusals = [*_iter_refusals(tree)]
    if refusals:
        raise TemplateRefused(*refusals)
    reads = tuple(dict.fromkeys(_iter_paths(tree, frozenset())))
    lone = _find_lone_expression(tree)
    # A named value may contain itself many times over, so each use is charged by its full length.
    named = any(isinstance(part, nodes.Assign | nodes.AssignBlock) for part in tree.find_all(nodes.Stmt))
    rule = _to_rule(lone)
    return Compiled(
        _compile_program(tree if lone is None else _make_assignment(lone), named=named), reads, lone is not None, rule
    )


# -------------------------------------------------------------------------------------------------------------- parsing


def _parse(text: str, *, bare: bool) -> nodes.Template:
    try:
        return _parse_bare(text) if bare else _make_environment().parse(text)
    except TemplateAssertionError as error:
        refusal = Refusal("R303", error.lineno, f"says {error.message!r}", "the name is not known", "correct it")
    except TemplateSyntaxError as error:
        refusal = _make_expression_refusal(error, text) if bare else _make_syntax_refusal(error, _find_hint(text))
    except RecursionError:  # the parser's own depth limit
        refusal = _make_size_refusal("is nested too deeply", f"at most {MAX_DEPTH} levels")
    except ValueError as error:
        # A number with thousands of digits.
        refusal = Refusal("R301", 1, f"cannot be read: {error}", _NOT_JINJA, "shorten it")
    raise TemplateRefused(refusal)


def _parse_bare(text: str) -> nodes.Template:
    parser = Parser(_make_environment(), text, state="variable")
    expression = parser.parse_expression()
    left = parser.stream.current
    if not parser.stream.eos:
        raise TemplateSyntaxError(f"unexpected {left.value!r}", left.lineno)
    return nodes.Template([nodes.Output([expression], lineno=1)], lineno=1)


_NOT_JINJA = "templates are written in Jinja's language"
_EXPRESSION = "an expression compares and combines keys of the board, such as n > 3 and reply != none"


def _make_syntax_refusal(error: TemplateSyntaxError, order: str) -> Refusal:
    return Refusal("R301", error.lineno, f"cannot be read: {error.message}", _NOT_JINJA, order)


def _make_expression_refusal(error: TemplateSyntaxError, text: str) -> Refusal:
    """Return the refusal of a condition in its own terms: it is not a template, and it has no lines."""
    message, order = str(error.message), _find_hint(text)
    if "end of template" in message:
        message, order = (
            f"it is incomplete after {text.rsplit(maxsplit=1)[-1]!r}" if text.split() else "it is empty",
            "complete it",
        )
    elif message.startswith("unexpected char"):
        where = message.rpartition(" ")[2]
        quote = message.removeprefix("unexpected char ")[1:2] in ("'", '"')
        message = f"the quote at character {int(where) + 1} is not closed" if quote and where.isdigit() else message
    return Refusal("R301", error.lineno, f"cannot be read: {message}", _EXPRESSION, order)


def _find_hint(text: str) -> str:
    """Return the remedy for typical mistakes of people used to another language."""
    slips = {
        "&&": "write `and` for &&",
        "||": "write `or` for ||",
        "===": "write `==` for ===",
        "{{>": "partials are not available here; insert the text of the partial",
        " ? ": "write `a if test else b`",
        " = ": "compare with ==",
        "!": "write `not x` for !x",
    }
    return next((order for slip, order in slips.items() if slip in text), "check its brackets and quotes")


def _make_size_refusal(what: str, limit: str) -> Refusal:
    return Refusal("R302", 1, what, f"a template has {limit}", "write a shorter template, or compute it in a node")


def _find_lone_expression(tree: nodes.Template) -> nodes.Expr | None:
    """Return the expression of a template that is a single expression, optionally surrounded by whitespace."""
    parts: list[nodes.Expr] = []
    for statement in tree.body:
        if not isinstance(statement, nodes.Output):
            return None
        parts += (part for part in statement.nodes if not _is_blank(part))
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData) else None


def _is_blank(part: nodes.Node) -> bool:
    return isinstance(part, nodes.TemplateData) and not part.data.strip()


def _make_assignment(expression: nodes.Expr) -> nodes.Template:
    # Jinja keeps values only in assignments; printing would convert them to text.
    target = nodes.Name(VALUE, "store")
    return nodes.Template([nodes.Assign(target, expression, lineno=expression.lineno)], lineno=1)


_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">="}


def _to_rule(node: nodes.Node | None) -> Any:
    """Return an expression of comparisons as a JsonLogic rule; None for any other expression, or as a part of it."""
    match node:
        case nodes.And(left=left, right=right):
            return {"and": [_to_rule(left), _to_rule(right)]}
        case nodes.Or(left=left, right=right):
            return {"or": [_to_rule(left), _to_rule(right)]}
        case nodes.Not(node=inner):
            return {"!": _to_rule(inner)}
        case nodes.Compare(expr=left, ops=[nodes.Operand(op=word, expr=right)]) if word in _COMPARISONS:
            return {_COMPARISONS[word]: [_to_rule(left), _to_rule(right)]}
        case nodes.Name(name=name):
            return {"var": name}
        case nodes.Const(value=value):
            return value
    return None


class _TreeRewriter(NodeTransformer):
    """Rewrites operations that must be counted or limited while rendering to call our own functions."""

    def __init__(self, *, named: bool) -> None:
        self.loops = int(named)  # how many loops may run over one value in the current node

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802 - jinja2 finds it by this name
        parts = sum(1 for _ in node.find_all(nodes.Node))
        parts += sum(len(part.data) for part in node.find_all(nodes.TemplateData)) >> 4
        self.loops += 1
        self.generic_visit(node)
        self.loops -= 1
        assert isinstance(node.iter, nodes.Expr)
        node.iter = _make_filter("_counted", node.iter, [nodes.Const(parts)])
        return node

    def visit_Assign(self, node: nodes.Assign) -> nodes.Assign:  # noqa: N802 - the same
        self.generic_visit(node)
        if isinstance(node.node, nodes.Expr) and _find_path(node.node) is None and not _is_value(node.target):
            node.node = self._weigh(node.node)
        return node

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> list[nodes.Node]:  # noqa: N802 - the same
        self.generic_visit(node)
        if node.filter is None:
            return [node]
        # Jinja ignores names among the arguments of such a filter, so a `set` after the block applies it.
        first = node.filter
        while isinstance(first.node, nodes.Filter):
            first = first.node
        first.node = nodes.Name(_BLOCK, "load", lineno=node.lineno)
        block = nodes.AssignBlock(nodes.Name(_BLOCK, "store"), None, node.body, lineno=node.lineno)
        return [block, nodes.Assign(node.target, node.filter, lineno=node.lineno)]

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:  # noqa: N802 - the same
        self.generic_visit(node)
        node.expr = self._weigh(node.expr)
        for operand in node.ops:
            operand.expr = self._weigh(operand.expr)
        return node

    def visit_Filter(self, node: nodes.Filter) -> nodes.Filter:  # noqa: N802 - the same
        self.generic_visit(node)
        if node.node is not None and node.name not in _AT_ONCE:
            node.node = self._weigh(node.node)
        return node

    def visit_Test(self, node: nodes.Test) -> nodes.Test:  # noqa: N802 - the same
        self.generic_visit(node)
        if node.args:  # such as `is in xs`; other tests do not look inside the value
            node.args = [self._weigh(part) for part in node.args]
            node.node = self._weigh(node.node)
        return node

    def _weigh(self, node: nodes.Expr) -> nodes.Expr:
        """Wrap a value so that it is charged by its length if a loop iterates over it repeatedly."""
        return node if not self.loops or isinstance(node, nodes.Const) else _make_filter("_weighed", node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802 - the same
        self.generic_visit(node)
        return _make_filter("_concatenated", nodes.List(node.nodes, lineno=node.lineno))

    def visit_Call(self, node: nodes.Call) -> nodes.Filter:  # noqa: N802 - the same
        self.generic_visit(node)
        method = node.node
        args = [self._weigh(part) for part in node.args]
        if isinstance(method, nodes.Name):
            return _make_filter(f"_{method.name}", nodes.List(args, lineno=node.lineno), [], node.kwargs)
        assert isinstance(method, nodes.Getattr)
        return _make_filter("_called", self._weigh(method.node), [nodes.Const(method.attr), *args], node.kwargs)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Getitem:  # noqa: N802 - the same
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = self._weigh(node.node)
        return node


def _is_value(target: nodes.Expr) -> bool:
    """Return True if this is the variable of a lone expression's value."""
    return isinstance(target, nodes.Name) and target.name == VALUE


def _compile_program(tree: nodes.Template, *, named: bool) -> Program:
    tree = _TreeRewriter(named=named).visit(tree)
    tree.set_environment(_make_environment())
    try:
        return compile_program(_make_environment(), tree)
    except TemplateSyntaxError as error:
        # Jinja detects late that `loop` cannot be a loop variable.
        raise TemplateRefused(_make_syntax_refusal(error, "choose another name")) from None
    except (SyntaxError, RecursionError, MemoryError):
        # Python's own limits on nesting; no known tree within our limits reaches them.
        raise TemplateRefused(_make_size_refusal("is nested too deeply", _LIMITS)) from None


def _make_filter(
    name: str, node: nodes.Expr, args: list[nodes.Expr] | None = None, kwargs: list[nodes.Keyword] | None = None
) -> nodes.Filter:
    return nodes.Filter(node, name, args or [], kwargs or [], None, None, lineno=node.lineno)


# ------------------------------------------------------------------------------------------------------------- checking


def _iter_refusals(tree: nodes.Template) -> Iterator[Refusal]:
    count = 0
    stack: list[tuple[nodes.Node, int, int]] = [(tree, 0, 0)]
    while stack:
        node, depth, loops = stack.pop()
        count += 1
        loops += isinstance(node, nodes.For)
        if depth > MAX_DEPTH or count > MAX_NODES:
            yield _make_size_refusal("is nested too deeply" if depth > MAX_DEPTH else "has too many parts", _LIMITS)
            return
        if loops > MAX_LOOPS:
            yield _make_not_allowed_refusal(node, f"loops nested more than {MAX_LOOPS} deep")
            continue
        refusal = _find_refusal(node)
        if refusal is not None:
            yield refusal
            continue
        stack += [(child, depth + 1, loops) for child in reversed([*node.iter_child_nodes()])]


_LIMITS = f"at most {MAX_DEPTH} levels and {MAX_NODES:,} parts"


def _find_refusal(node: nodes.Node) -> Refusal | None:  # noqa: C901  (one case a kind of node)
    """Return why this node, taken by itself, is not allowed in a template."""
    if type(node) not in _ALLOWED:
        shown = _SHOWN.get(type(node).__name__, f"{{% {type(node).__name__.lower()} %}}")
        return _make_not_allowed_refusal(node, shown)
    match node:
        case nodes.Name(name=name):
            return _check_name(node, name)
        case nodes.Const(value=int(number)) if number.bit_length() > MAX_BITS:
            return _make_size_refusal("contains a number that is too large", f"numbers of at most {MAX_BITS:,} bits")
        case nodes.Getattr(attr=name) if name.startswith("_"):
            return _make_private_refusal(node, name)
        case nodes.Call(node=nodes.Getattr(attr=name)) if name in METHODS and not _is_spread(node):
            return None
        case nodes.Call(node=nodes.Name(name=name)) if name in _FUNCTIONS and not _is_spread(node):
            return None
        case nodes.Call(node=nodes.Getattr(attr=name) | nodes.Name(name=name)) if not _is_spread(node):
            known = [*METHODS, *_FUNCTIONS]
            why = f"a template may only call {', '.join(name + '()' for name in known)}"
            order = did_you_mean(name, known, "use a filter, or compute it in a node")
            return Refusal("R304", node.lineno, f"calls {name!r}", why, order)
        case nodes.Call():
            return _make_not_allowed_refusal(node, "a call")
        case nodes.Filter(name=name) if name not in FILTERS:
            return _make_unknown_refusal(node, "filter", name, FILTERS)
        case nodes.Test(name=name) if name not in TESTS:
            return _make_unknown_refusal(node, "test", name, TESTS)
        case nodes.Filter() | nodes.Test() if _is_spread(node):
            return _make_not_allowed_refusal(node, "* or ** in a call")
        case nodes.For(recursive=True):
            return _make_not_allowed_refusal(node, "a recursive loop")
    return None


def _is_spread(node: Any) -> bool:
    return node.dyn_args is not None or node.dyn_kwargs is not None


def _check_name(node: nodes.Node, name: str) -> Refusal | None:
    if name.startswith("_"):
        return _make_private_refusal(node, name)
    if name in _RESERVED:
        return Refusal("R304", node.lineno, f"uses {name!r}", "Jinja reserves that name", "choose another key")
    return None


def _make_private_refusal(node: nodes.Node, name: str) -> Refusal:
    why = "names that begin with _ are private, and templates cannot read them"
    return Refusal("R304", node.lineno, f"uses {name!r}", why, "use a public name, or an item: x['_key']")


def _make_not_allowed_refusal(node: nodes.Node, what: str) -> Refusal:
    why = (
        "a template may read, count, compare and format values, with names, items, operators, filters, tests, "
        "if, for and set"
    )
    return Refusal("R305", node.lineno, f"uses {what}", why, "compute it in a node and write it to the board")


def _make_unknown_refusal(node: nodes.Node, kind: str, name: str, known: Mapping[str, Any]) -> Refusal:
    public = sorted(word for word in known if word.isidentifier())
    order = did_you_mean(name, public, "use one of them")
    return Refusal("R303", node.lineno, f"uses the {kind} {name!r}", f"the {kind}s are: {', '.join(public)}", order)


# ---------------------------------------------------------------------------------------------------------------- reads


def _iter_paths(node: nodes.Node, bound: frozenset[str]) -> Iterator[Path]:  # noqa: C901  (one case a kind of node)
    """Yield the paths of names that come from the context, each as deep as it is written."""
    path = _find_path(node)
    if path is not None:
        if path[0] not in bound:
            yield path
        return
    match node:
        case nodes.For(target=target, iter=items, test=test, body=body, else_=otherwise):
            yield from _iter_paths(items, bound)
            yield from _iter_paths_in(
                [*([test] if test is not None else []), *body], bound | _find_bound_names(target) | {"loop"}
            )
            yield from _iter_paths_in(otherwise, bound)
        case nodes.If(test=test, body=body, elif_=others, else_=otherwise):
            yield from _iter_paths(test, bound)
            branches: tuple[Sequence[nodes.Node], ...] = (body, others, otherwise)
            for branch in branches:
                yield from _iter_paths_in(branch, bound)
        case nodes.Template(body=body):
            yield from _iter_paths_in(body, bound)
        case nodes.Assign(node=value):
            yield from _iter_paths(value, bound)
        case nodes.AssignBlock(filter=filtered, body=body):
            yield from _iter_paths_in([*([filtered] if filtered is not None else []), *body], bound)
        case nodes.Call(node=nodes.Name(), args=args, kwargs=kwargs):
            for part in (*args, *kwargs):
                yield from _iter_paths(part, bound)
        case nodes.Call(node=nodes.Getattr(node=value), args=args, kwargs=kwargs):
            for part in (value, *args, *kwargs):
                yield from _iter_paths(part, bound)
        case _:
            for part in node.iter_child_nodes():
                yield from _iter_paths(part, bound)


def _iter_paths_in(body: Sequence[nodes.Node], bound: frozenset[str]) -> Iterator[Path]:
    """Yield the paths of statements in order; a name set by one of them is local to the statements after it."""
    for part in body:
        yield from _iter_paths(part, bound)
        if isinstance(part, nodes.Assign | nodes.AssignBlock):
            bound |= _find_bound_names(part.target)


def list_mentions(text: str, *, bare: bool) -> list[Mention]:
    """Return what a compiling template reads, except values with a default or a test that accepts undefined values."""
    tree = _parse(text, bare=bare)
    stores = (node.name for node in tree.find_all(nodes.Name) if node.ctx == "store")
    bound = frozenset({"loop", *stores})
    parts = tree.find_all((nodes.Filter, nodes.Test))
    safe = {id(part.node) for part in parts if part.name in _FORGIVING}
    return [
        Mention(
            _get_source(node),
            node.lineno,
            _to_key(node),
            path if (path := _find_path(node)) is not None and path[0] not in bound else None,
            _get_source(node.node) if isinstance(node, nodes.Getattr | nodes.Getitem) else "",
        )
        for node in tree.find_all((nodes.Name, nodes.Getattr, nodes.Getitem))
        if id(node) not in safe
    ]


def _to_key(node: nodes.Node) -> str | int | None:
    match node:
        case nodes.Name(name=name) | nodes.Getattr(attr=name):
            return name
        case nodes.Getitem(arg=nodes.Const(value=str() | int() as key)):
            return key
    return None


def _get_source(node: nodes.Node | None) -> str:
    """Return the source of an expression as far as it reads values; the rest becomes an ellipsis."""
    match node:
        case nodes.Name(name=name):
            return name
        case nodes.Const(value=value):
            return repr(value)
        case nodes.Getattr(node=inner, attr=name):
            return f"{_get_source(inner)}.{name}"
        case nodes.Getitem(node=inner, arg=key):
            return f"{_get_source(inner)}[{_get_source(key)}]"
        case nodes.Filter(node=inner, name=name):
            return f"({_get_source(inner)}|{name})"
        case nodes.Call(node=called):
            return f"{_get_source(called)}(…)"
    return "…"


def _find_bound_names(target: nodes.Node) -> frozenset[str]:
    """Return the names that a loop or `set` binds."""
    return frozenset(part.name for part in (target, *target.find_all(nodes.Name)) if isinstance(part, nodes.Name))


def _find_path(node: nodes.Node) -> Path | None:
    """Return the path of a name followed by constant attributes and items; None for anything else."""
    keys: list[str] = []
    while True:
        match node:
            case nodes.Name(name=name):
                return (name, *reversed(keys))
            case nodes.Getattr(node=inner, attr=name):
                keys.append(name)
            case nodes.Getitem(node=inner, arg=nodes.Const(value=str(key))):
                # x['a.b'] is the key or, if there is none, the path; the path is reported.
                keys += reversed(key.split("."))
            case nodes.Getitem(node=inner, arg=nodes.Const(value=int(index))) if index >= 0:
                keys.append(str(index))
            case _:
                return None
        node = inner
