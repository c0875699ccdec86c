import types
from functools import partial

import pytest

from agentnb.recipe.user_functions import check_ran, find_unrun, is_async, is_function, is_generator


def plain(**words):
    return words


def yields(**words):
    yield words


async def later(**words):
    return words


async def yields_later(**words):
    yield words


class Methods:
    async def later(self):
        return self

    def yields(self):
        yield self


def called(function):
    return types.new_class("Called", (), exec_body=lambda names: names.update(__call__=staticmethod(function)))()


@pytest.mark.parametrize(
    ("function", "of_async", "of_generator"),
    [
        (plain, False, False),
        (len, False, False),
        (Methods, False, False),  # calling the class makes an object
        (later, True, False),
        (Methods().later, True, False),
        (yields, False, True),
        (Methods().yields, False, True),
        (yields_later, False, True),
    ],
)
def test_functions_are_recognized_in_any_wrapper(function, of_async, of_generator):
    for held in (function, partial(function), partial(partial(function), a=1)):
        assert (is_async(held), is_generator(held)) == (of_async, of_generator)
    if isinstance(function, types.FunctionType):
        for held in (called(function), partial(called(function))):
            assert (is_async(held), is_generator(held)) == (of_async, of_generator)


@pytest.mark.parametrize(
    ("call", "made"),
    [
        (yields, "a generator"),
        (lambda: (each for each in "ab"), "a generator"),
        (yields_later, "an async generator"),
        (later, "a coroutine"),
        (lambda: map(str, [1]), "a map object"),
        (lambda: filter(None, [1]), "a filter object"),
        (lambda: iter([1]), None),
        (lambda: [1], None),
        (lambda: None, None),
    ],
)
def test_unawaited_results_are_recognized(call, made):
    value = call()
    assert find_unrun(value) == made
    if made is None:
        assert check_ran(value) is value
        return
    with pytest.raises(TypeError, match=f"it returned {made}, which has not run; "):
        check_ran(value)


def test_a_partial_is_not_a_function():
    assert all(map(is_function, (plain, later, print, Methods().later)))
    assert not any(map(is_function, (partial(plain), Methods, Methods())))
