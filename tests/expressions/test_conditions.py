"""What an edge, a route or a breakpoint asks of the board."""

from __future__ import annotations

import copy
import functools
import inspect
import linecache
import math
import sys
import tokenize
from datetime import date

import pandas as pd
import pytest
from datalogic_py import Engine, EvaluateError
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.scopes import Board, Scope
from agentnb.board.values import freeze
from agentnb.errors import ExecutionError, Place, RecipeError
from agentnb.expressions import conditions
from agentnb.expressions.conditions import Condition, check_callable, compile_rule, get_callable_text, to_condition


@pytest.fixture(scope="module", autouse=True, params=["datalogic_py", "plain"])
def engine(request):
    """Evaluate rules by datalogic-py, and by the engine for platforms that it has no wheel for."""
    caches = (conditions._get_engine, conditions._get_operators)
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "plain":
            patch.setitem(sys.modules, "datalogic_py", None)
            for cache in caches:
                cache.cache_clear()
        yield
    for cache in caches:
        cache.cache_clear()


def board(**keys):
    scope = Scope(0, "root")
    scope.data = {key: freeze(value) for key, value in keys.items()}
    return Board(scope)


def lenient(rule, **names):
    return compile_rule(rule, strict=False).evaluate(names)


def failure(source, names):
    with pytest.raises(ExecutionError) as caught:
        to_condition(source, Place("r.yaml", 3, 9, "when"))(names)
    (problem,) = caught.value.problems
    assert problem.where == "r.yaml:3:9, when"
    return problem


LESS = {"<": [{"var": "tries"}, 3]}


@pytest.mark.parametrize("source", ["tries < 3", " {{ tries < 3 }} ", LESS, lambda names: names["tries"] < 3])
def test_the_three_forms_of_a_condition_are_equivalent(source):
    condition = to_condition(source)
    assert [condition(board(tries=n)) for n in (2, 3)] == [True, False]
    assert [condition.call({"tries": n}) for n in (2, 3)] == [True, False]
    assert to_condition(condition) is condition


def test_a_condition_describes_itself():
    rule, text, ask = to_condition(LESS), to_condition("order.total > 3"), to_condition(len)
    assert (rule.kind, rule.text, rule.reads, rule.reads_all) == ("rule", "tries < 3", (("tries",),), False)
    assert (text.kind, text.text, text.reads, text.reads_all) == (
        "text",
        "order.total > 3",
        (("order", "total"),),
        False,
    )
    assert (ask.kind, ask.text, ask.reads, ask.reads_all) == ("callable", "len", (), True)
    assert repr(rule) == "<Condition 'tries < 3'>"


def test_a_callable_may_declare_what_it_reads():
    class Asking:
        text, reads = "is it done", (("done",),)

        def __call__(self, names):
            return names["done"]

    condition = to_condition(Asking())
    assert (condition.text, condition.reads, condition.reads_all) == ("is it done", (("done",),), False)


@pytest.mark.parametrize("source", [None, 3, [1], b"x", lambda: True, "a {{ b }}", "{% if a %}{% endif %}"])
def test_an_invalid_condition_is_rejected(source):
    with pytest.raises(RecipeError, match="R310") as caught:
        to_condition(source, Place("r.yaml", 3, 9))
    assert caught.value.problems[0].where == "r.yaml:3:9"


@pytest.mark.parametrize(
    ("source", "code"), [("", "R301"), ("a b", "R301"), ("a|nosuch", "R303"), ({}, "R312"), ({"nosuch": 1}, "R313")]
)
def test_mistakes_are_reported_when_a_condition_is_compiled(source, code):
    with pytest.raises(RecipeError) as caught:
        to_condition(source)
    assert [problem.code for problem in caught.value.problems] == [code]


def test_true_and_false_are_conditions():
    assert to_condition(value=True)({}) is True
    assert to_condition(value=False)({}) is False


@pytest.mark.parametrize("size", [1, 150])
def test_a_failure_quotes_its_rule_up_to_200_characters(size):
    text = f"'{'x' * size}' + '{'y' * size}'"
    with pytest.raises(ExecutionError) as caught:
        to_condition({"+": ["x" * size, "y" * size]})({})
    assert repr(text if size == 1 else f"{text[:199]}…") in caught.value.problems[0].what


# ------------------------------------------------------------------------------------------------ against the library

names = st.sampled_from(["a", "b", "c.d"])
atoms = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "1", "x"]) | st.floats(-2, 2)
paths = st.builds(lambda name: {"var": name}, names)


def operations(inner):
    pair = st.tuples(inner, inner).map(list)
    return (
        st.builds(
            lambda name, args: {name: args}, st.sampled_from(["===", "!==", "and", "or", "in", "+", "<", ">="]), pair
        )
        | st.builds(lambda arg: {"!": [arg]}, inner)
        | st.builds(lambda a, b, c: {"if": [a, b, c]}, inner, inner, inner)
        | st.builds(lambda body: {"filter": [{"var": "xs"}, body]}, inner)
    )


rules = st.recursive(atoms | paths, operations, max_leaves=12)
states = st.fixed_dictionaries(
    {"xs": st.lists(atoms, max_size=3)}, optional={"a": atoms, "b": atoms, "c": st.fixed_dictionaries({"d": atoms})}
)
JUDGE = Engine(config={"loose_equality_errors": False})


@given(operations(rules), states)
def test_a_lenient_rule_has_the_semantics_of_the_library(rule, state):
    try:
        expected = JUDGE.eval(rule, state)
    except EvaluateError:
        with pytest.raises(ExecutionError):
            lenient(rule, **state)
        return
    assert repr(lenient(rule, **state)) == repr(expected)


@given(operations(rules), states)
def test_a_strict_rule_gives_the_same_result_or_reports_what_is_missing(rule, state):
    codes = []
    try:
        value = compile_rule(rule).evaluate(state)
    except ExecutionError as error:
        codes += [problem.code for problem in error.problems]
    else:
        assert repr(value) == repr(lenient(rule, **state))
    assert codes in ([], ["X310"], ["X313"])


@given(operations(rules), states)
def test_a_board_is_evaluated_like_a_dict(rule, state):
    condition = to_condition(rule, strict=False)
    try:
        expected = condition(state)
    except ExecutionError:
        return
    assert repr(condition(board(**state))) == repr(expected)
    assert condition.explain(state)[-1][1] == expected


# --------------------------------------------------------------------------------------------------- what bites people


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"==": [{"var": "gone"}, 0]}, False),
        ({"==": [{"var": "gone"}, None]}, True),
        ({"==": [{"var": "null"}, False]}, False),
        ({"==": [{"var": "null"}, ""]}, False),
        ({"!=": [{"var": "gone"}, 0]}, True),
        ({"==": [{"var": "one"}, 1.0]}, True),
        ({"==": ["1", 1]}, True),
        ({"==": [{"var": "text"}, 1]}, False),
        ({"===": [1, 1.0]}, True),
        ({"<": ["10", "9"]}, True),
        ({"<": [{"var": ["gone", 0]}, 3]}, True),
        ({"+": ["1", "2"]}, 3),
        ({"and": [False, {"/": [1, 0]}]}, False),
        ({"or": ["x", {"/": [1, 0]}]}, "x"),
        ({"var": "xs.1"}, 20),
        ({"var": "xs.9"}, None),
        ({"var": "a.b"}, "literal"),
        ({"var": "nested.deep.0.k"}, 5),
        ({"missing": ["one", "gone", "nested.no"]}, ["gone", "nested.no"]),
        ({"in": [20, {"var": "xs"}]}, True),
        ({"map": [{"var": "xs"}, {"+": [{"var": ""}, 1]}]}, [11, 21]),
        ({"filter": [{"var": "rows"}, {">": [{"var": "v"}, 1]}]}, [{"v": 2}]),
        ({"reduce": [{"var": "xs"}, {"+": [{"var": "current"}, {"var": "accumulator"}]}, 0]}, 30),
        ({"==": [{"var": "day"}, "2020-01-02"]}, True),
        ({"==": [{"var": "day"}, date(2020, 1, 2)]}, True),
        ({">": [{"var": "infinite"}, 10**15]}, True),
        ({"<": [{"var": "huge"}, 1]}, False),
        ({"in": [1, {"var": "set"}]}, True),
        ({"var": {"var": "which"}}, 1),
        ({"==": ["{{ which ~ 's' }}", "ones"]}, True),
        ({"filter": [{"var": "xs"}, {"<": [{"var": ""}, "{{ one * 15 }}"]}]}, [10]),
    ],
)
def test_rules_return_values(rule, value):
    state = {"null": None, "one": 1, "text": "one", "xs": [10, 20], "a.b": "literal", "a": {"b": "nested"}, "set": {1}}
    state |= {"nested": {"deep": [{"k": 5}]}, "rows": [{"v": 1}, {"v": 2}], "day": date(2020, 1, 2), "which": "one"}
    state |= {"infinite": math.inf, "huge": 10**400}
    actual = compile_rule(rule).evaluate(state)
    assert actual == value
    assert type(actual) is type(value)
    assert compile_rule(rule).evaluate(board(**state)) == value


@pytest.mark.parametrize(
    "rule",
    [LESS, {">=": [{"var": "tries"}, 0]}, {"<": [{"+": [{"var": "tries"}, 1]}, 3]}, {"<": [0, {"var": "tries"}, 3]}],
)
@pytest.mark.parametrize("state", [{"trys": 1}, {"tries": None}])
def test_a_missing_value_does_not_count_as_zero(rule, state):
    problem = failure(rule, state)
    assert problem.code == "X310"
    assert "'tries'" in problem.what
    assert to_condition(rule, strict=False)(state) is not None
    assert to_condition(rule).with_strictness(strict=False)(state) == to_condition(rule, strict=False)(state)


def test_a_missing_key_is_reported_with_the_existing_ones():
    problem = failure({"<": [{"var": "order.totl"}, 3]}, {"order": {"total": 5}})
    assert problem.do == "did you mean 'total'?"
    assert "order has: total" in problem.why


def test_comparing_text_with_a_number_is_a_warning():
    condition = to_condition({"==": [{"var": "n"}, 3]})
    assert condition({"n": "3"}) is True
    assert condition.warning == "n == 3 compares text with a number"
    assert condition({"n": 3}) is True
    assert condition.warning == ""
    assert condition({"n": True}) is False
    assert condition.warning == ""


def test_only_the_read_keys_are_requested_from_the_board():
    reads = []

    class Noting(dict):
        def get(self, key, default=None):
            reads.append(key)
            return super().get(key, default)

    assert to_condition(LESS)(Noting(tries=1, big=object())) is True
    assert to_condition("tries < 3")(Noting(tries=1, big=object())) is True
    assert reads == ["tries", "tries"]


@pytest.mark.parametrize("value", [math.nan, object(), b"bytes", {(1, 2): 3}, "\ud800"])
def test_a_value_that_no_rule_can_compare_is_reported_with_its_key(value):
    problem = failure({"==": [{"var": "odd"}, 1]}, {"odd": value})
    assert problem.code == "X312"


def nest_maps(levels):
    rule = {"map": [{"val": [[99], "xs"]}, 1]}
    for _ in range(levels):
        rule = {"map": [{"val": [[99], "xs"]}, rule]}
    return rule


@pytest.mark.parametrize("rule", [nest_maps(6), {"merge": [{"var": "xs"}] * 4900}, {"cat": [{"var": "s"}] * 4900}])
def test_a_rule_has_a_budget(rule):
    assert failure(rule, {"xs": list(range(1000)), "s": "a" * 100_000}).code == "X311"


@pytest.mark.parametrize(
    "rule",
    [{"%": ["%999999999d", 1]}, {"/": [{"var": "n"}, 0]}, {"<": [{"var": "n"}, "x"]}, {"throw": "agentnb: missing 7"}],
)
def test_a_rule_that_fails_is_a_problem(rule):
    assert failure(rule, {"n": 1}).code == "X313"


@pytest.mark.parametrize("number", [10**30, "\ud800"])
def test_a_value_that_the_library_cannot_represent_is_reported_at_load(number):
    for place, where in ((None, "<rule>"), (Place("f.py", 3, 1), "f.py:3:1")):
        with pytest.raises(RecipeError) as caught:
            compile_rule({"==": [{"var": "x"}, number]}, place=place)
        assert [(problem.code, problem.where) for problem in caught.value.problems] == [("R315", where)]


# -------------------------------------------------------------------------------------------------- answers, copies


def test_a_result_without_a_truth_value_is_a_problem():
    assert failure("table", {"table": pd.DataFrame({"a": [1]})}).code == "X314"
    assert failure(lambda names: names["table"], {"table": pd.DataFrame({"a": [1]})}).code == "X314"


def test_a_failing_or_async_callable_is_a_problem():
    async def later(names):
        return True

    assert "KeyError: 'gone'" in failure(lambda names: names["gone"], {}).why
    assert "awaited" in failure(lambda names: later(names), {}).why  # noqa: PLW0108 - it hides that it is async


def test_explain_reports_every_value():
    rule = to_condition({"and": [LESS, {"!": [{"var": "done"}]}, {"==": ["{{ a ~ 'b' }}", "xb"]}]})
    rows = rule.explain({"tries": 2, "done": False, "a": "x"})
    assert ("tries", 2) in rows
    assert ("tries < 3", True) in rows
    assert ("done", False) in rows
    assert rows[-1] == (rule.text, True)
    assert to_condition(LESS).explain({})[-1][1].startswith("fails: ")
    assert to_condition("tries < 3").explain({"tries": 1}) == [("tries", 1), ("tries < 3", True)]
    assert to_condition(len).explain({"a": 1}) == [("len", 1)]


def test_explain_abbreviates_long_values():
    rows = to_condition({"in": [1, {"var": "xs"}]}).explain({"xs": list(range(900_000))})
    assert [text for text, _ in rows] == ["xs", "1 in xs"]


def test_a_copy_of_a_condition_is_equivalent():
    for source in (LESS, "tries < 3"):
        twin = copy.deepcopy(to_condition(source, Place("r.yaml", 1, 1)))
        assert isinstance(twin, Condition)
        assert (twin.place, twin({"tries": 1})) == (Place("r.yaml", 1, 1), True)


def is_done(board):
    return board["done"]


async def later(board):
    return board["done"]


class Asking:
    def __call__(self, board):
        return board["done"]


class AskingLater:
    async def __call__(self, board):
        return board["done"]


@pytest.mark.parametrize("value", [is_done, Asking(), functools.partial(max, key=len), bool, len, lambda board, n=3: n])
def test_callables_that_accept_the_board_are_conditions(value):
    check_callable(value, None)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (3, "it is an int"),
        (None, "it is a NoneType"),
        (lambda: True, "cannot be called with the board alone"),
        (lambda limit=3: limit > 2, "has no parameter for the board"),
        (lambda *, limit=3: limit > 2, "cannot be called with the board alone"),
        (lambda board, other: True, "cannot be called with the board alone"),
        (later, "an async function"),
        (AskingLater(), "an async function"),
    ],
)
def test_callables_that_do_not_accept_the_board_are_rejected(value, why):
    with pytest.raises(RecipeError) as caught:
        check_callable(value, Place("f.py", 3, 1))
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("R310", "f.py:3:1")
    assert why in problem.why


def test_a_callable_is_described_by_its_name_and_a_lambda_by_its_source():
    short = lambda board: board["score"] > 3  # noqa: E731 - it is the lambda that is looked at
    assert get_callable_text(short) == "board['score'] > 3"
    assert get_callable_text(is_done) == "is_done"
    assert get_callable_text(Asking()) == "Asking"
    assert get_callable_text(eval("lambda board: 1")) == "a lambda"


@pytest.mark.parametrize("error", [OSError("no file"), tokenize.TokenError("a number", (1, 2)), IndexError(3)])
def test_a_lambda_with_changed_source_has_no_text(error, monkeypatch):
    def raise_error(function):
        raise error

    monkeypatch.setattr(inspect, "getsourcelines", raise_error)
    assert get_callable_text(lambda board: 1) == "a lambda"


def test_a_lambda_compiled_from_text_is_not_looked_up_in_the_program_of_the_command_line(monkeypatch):
    monkeypatch.setitem(linecache.cache, "<string>", (17, None, ["check = lambda board: 2\n"], "<string>"))
    assert get_callable_text(eval("lambda board: 1")) == "a lambda"


def test_two_lambdas_on_one_line_are_not_guessed():
    pair = (lambda board: 1, lambda board: 2)
    assert get_callable_text(pair[1]) == "a lambda"
