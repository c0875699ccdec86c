"""Hostile templates, conditions and JsonLogic rules: none reaches what it may not, and all are bounded.

`ATTACKS_EXPRESSIONS` is the number of expressions; the long form has 20,000.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from contextlib import contextmanager

import pytest

from agentnb.errors import AgentNbError
from agentnb.expressions.conditions import to_condition
from agentnb.expressions.templates import compile_template

COUNT = int(os.environ.get("ATTACKS_EXPRESSIONS", "1500"))
SHARES = max(10, COUNT // 500)  # tests that share them
HANG = 60  # seconds that one expression may take before it counts as endless; it is bounded in far less
LONGEST = 20_000_000  # characters of what one gives
HIDDEN = "what-no-expression-may-read"


class Token:
    """An object with what must stay out of reach: a private attribute, and a method that acts."""

    acted = 0

    def __init__(self):
        self._secret = HIDDEN

    def drop(self):
        Token.acted += 1
        return HIDDEN

    def __call__(self, *_args, **_words):
        Token.acted += 1
        return HIDDEN


NAMES = {
    "s": "a" * 10_000, "xs": list(range(5_000)), "d": {"k": "v", "deep": {"x": [1, 2, {"y": 3}]}}, "n": 10**300, "i": 7,
    "token": Token(), "items": ["drop", "_secret"], "f": 0.5, "none": None, "key": "__class__",
}  # fmt: skip
ATOMS = [
    *NAMES, "''", "'a'", "'__class__'", "'%s'", "'{0.__class__}'", "'{}'.format", "10**9", "9**9", "-1", "1e308",
    "[]", "{}",
    "()", "true", "none", "self", "loop", "cycler", "namespace", "lipsum", "joiner", "range", "dict", "request",
    "config",
    "'\\x00'", "'a' * 100000", "xs * 1000", "range(10**9)", "'ﬁ'", "[xs] * 100", "'(a+)+$'",
]  # fmt: skip
ATTRIBUTES = [
    "__class__", "__mro__", "__subclasses__()", "__globals__", "__init__", "__dict__", "__getattribute__", "_secret",
    "drop()", "format(token)", "format_map(d)", "mro()", "gi_frame", "cr_frame", "f_globals", "func_globals",
    "__builtins__",
    "__import__('os')", "system('true')", "read()", "items()", "keys()", "k", "deep.x", "0", "append(1)", "clear()",
    "update(x=1)", "pop()", "join(s)", "replace('a', s)", "encode()", "translate(d)", "zfill(10**9)", "ljust(10**9)",
    "center(10**8)", "expandtabs(10**8)", "split('')", "count('')", "to_bytes(10**8, 'big')", "bit_length()",
]  # fmt: skip
FILTERS = [
    "attr('__class__')", "attr(key)", "map(attribute='__class__')", "map('attr', '__init__')|list", "map('upper')|list",
    "join(s)", "replace('a', s)", "format(token)", "list", "batch(2)|list", "slice(10**9)|list",
    "sort(attribute='_secret')",
    "groupby('__class__')", "selectattr('_secret')|list", "tojson", "pprint", "string", "safe", "escape", "urlize",
    "wordwrap(1)",
    "indent(10**9)", "center(10**9)", "int(base=16)", "float", "round(10**9)", "sum", "length", "first", "last", "max",
    "random", "xmlattr", "dictsort", "unique|list", "reverse|list", "truncate(1)", "filesizeformat",
    "default(token.drop())",
]  # fmt: skip
OPERATORS = ["+", "-", "*", "**", "//", "/", "%", "~", "and", "or", "==", "<", "in", "is", "if 1 else"]
RULES = [
    "var", "missing", "missing_some", "if", "==", "===", "!=", "!", "!!", "or", "and", ">", "<=", "max", "min", "+",
    "-", "*",
    "/", "%", "map", "filter", "reduce", "all", "none", "some", "merge", "in", "cat", "substr", "log", "val", "try",
    "throw",
    "pow", "concat", "split", "sort", "slice", "__class__", "method", "exists",
]  # fmt: skip


def expression(rng, depth=0):
    """Return a hostile expression."""
    if depth > 4 or rng.random() < 0.25:
        return rng.choice(ATOMS)
    inner = expression(rng, depth + 1)
    match rng.randrange(7):
        case 0:
            return f"{inner}.{rng.choice(ATTRIBUTES)}"
        case 1:
            return f"{inner}|{rng.choice(FILTERS)}"
        case 2:
            return f"({inner} {rng.choice(OPERATORS)} {expression(rng, depth + 1)})"
        case 3:
            return f"{inner}[{expression(rng, depth + 1)}]"
        case 4:
            return f"{inner}({expression(rng, depth + 1)})"
        case 5:
            return f"[{inner}, {expression(rng, depth + 1)}]"
    return f"({inner} if {expression(rng, depth + 1)} else {rng.choice(ATOMS)})"


def template(rng):
    """Return a hostile template."""
    one, other = expression(rng), expression(rng)
    return rng.choice([
        "{{ %s }}", "text {{ %s }} text", "{%% for x in %s %%}{{ x }}{%% endfor %%}", "{%% set y = %s %%}{{ y }}",
        "{%% if %s %%}x{%% endif %%}", "{%% macro m() %%}{{ m() }}{%% endmacro %%}{{ m() }}{{ %s }}",
        "{%% for x in %s %%}{%% for y in xs %%}{%% for z in xs %%}{{ z }}{%% endfor %%}{%% endfor %%}{%% endfor %%}",
        "{%% filter upper %%}{{ %s }}{%% endfilter %%}", "{%% call %s %%}{%% endcall %%}", "{%% include %s %%}",
        "{%% import %s as x %%}", "{%% extends %s %%}", "{{ %s", "{%% raw %%}{{ %s",
    ]) % (one,) + rng.choice(["", "", "{{ " + other + " }}"])  # fmt: skip


def rule(rng, depth=0):
    """Return a hostile JsonLogic rule."""
    if depth > 5 or rng.random() < 0.2:
        return rng.choice([*NAMES, "", "a" * 1000, 10**18, -1, 1e308, None, True, [], {"var": rng.choice([*NAMES, ""])},
                           {"var": "token._secret"}, {"var": "token.__class__"}, [[]] * 50])  # fmt: skip
    arguments = [rule(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(RULES): rng.choice([arguments, arguments[0] if arguments else [], {"var": ""}])}


def hostile(rng):
    """Return a function that compiles and evaluates one hostile expression, and what it was written as."""
    match rng.randrange(3):
        case 0:
            text = template(rng)
            return text, lambda: compile_template(text, strict=rng.random() < 0.5).render(NAMES)
        case 1:
            text = expression(rng)
            return text, lambda: to_condition(text)(NAMES)
    parsed_rule = rule(rng)
    return parsed_rule, lambda: to_condition(parsed_rule)(NAMES)


@contextmanager
def guarded(what):
    """Fail for an expression that does not end."""

    def endless(*_):
        raise AssertionError(f"this does not end: {what!r}")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, endless)
    signal.setitimer(signal.ITIMER_REAL, HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("share", range(SHARES))
def test_no_hostile_expression_escapes_the_sandbox_or_runs_forever(share, monkeypatch):
    ran = []
    monkeypatch.setattr(os, "system", ran.append)
    monkeypatch.setattr(os, "popen", ran.append)
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **_: ran.append(args))
    rng = random.Random(f"expressions {share}")
    board = repr({key: value for key, value in NAMES.items() if key != "token"})
    Token.acted = 0
    for _ in range(max(COUNT // SHARES, 1)):
        label, evaluate = hostile(rng)
        with guarded(label):
            try:
                result = evaluate()
            except AgentNbError as refused:
                result = str(refused)
        text = (
            result if isinstance(result, str) else repr(result) if isinstance(result, list | dict | tuple | int) else ""
        )
        assert len(text) < LONGEST, label
        assert HIDDEN not in text, label
        assert not isinstance(result, type), label
        assert not callable(result) or result is NAMES["token"], label
    assert (Token.acted, ran) == (0, [])
    assert repr({key: value for key, value in NAMES.items() if key != "token"}) == board
