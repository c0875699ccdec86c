from __future__ import annotations

from functools import partial

import pytest

from agentnb.errors import ExecutionError
from agentnb.session.schedules import AllGraphSchedules, GraphEvent, HooksAPI, Schedule, build_hooks


class Context:
    def __init__(self):
        self.inserted = []

    def insert(self, value):
        self.inserted.append(value)


def told(api, schedule="OnSystemStart"):
    context = Context()
    api.notify(GraphEvent(Schedule(schedule), "run", "node"), lambda: context)
    return context.inserted


def test_hooks_are_called_in_the_order_of_registration_each_after_what_the_one_before_put_in():
    api, seen = HooksAPI(), []
    api.register("OnSystemStart", "first", lambda event: seen.append(event.node_id))
    api.register_provider("OnSystemStart", "gives", lambda event: 3)
    api.register(["OnSystemStart"], "last", lambda event, context: seen.append(list(context.inserted)))
    assert told(api) == [3]
    assert seen == ["node", [3]]
    assert api.names(Schedule.OnSystemStart) == ["first", "gives", "last"]


def test_a_hook_of_several_schedules_is_called_at_each():
    api, seen = HooksAPI(), []
    api.register(AllGraphSchedules, "all", lambda event: seen.append(event.schedule))
    for schedule in Schedule:
        told(api, schedule)
    assert seen == list(Schedule)


def test_a_provider_that_gives_nothing_puts_nothing_in():
    api = HooksAPI()
    api.register_provider("OnSystemStart", "nothing", lambda event: None)
    assert told(api) == []


def test_an_observer_that_raises_is_dropped_with_a_warning_at_that_schedule():
    api, seen = HooksAPI(), []
    api.register(["OnSystemStart", "OnLoopEnd"], "broken", lambda event: 1 / 0)
    api.register("OnSystemStart", "whole", lambda event: seen.append(1))
    with pytest.warns(UserWarning, match="hook 'broken' of OnSystemStart raised ZeroDivisionError and was removed"):
        told(api)
    told(api)
    assert seen == [1, 1]
    assert api.names("OnLoopEnd") == ["broken"]


def test_a_provider_that_raises_is_named():
    api = HooksAPI()
    api.register_provider("OnSystemStart", "broken", lambda event: 1 / 0)
    with pytest.raises(ExecutionError, match="X471"):
        told(api)


@pytest.mark.parametrize("schedule", ["OnSystemComplete", "OnSystemError", "OnGraphComplete", "OnLoopIteration"])
def test_a_provider_that_raises_behind_a_node_is_dropped_for_there_is_nothing_to_fail(schedule):
    api = HooksAPI()
    api.register_provider(schedule, "broken", lambda event: 1 / 0)
    with pytest.warns(UserWarning, match=f"hook 'broken' of {schedule} raised"):
        told(api, schedule)
    assert api.names(schedule) == []


async def later(event):
    raise AssertionError


def generates(event):
    yield event


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (later, "it is async"),
        (partial(later), "it is async"),
        (generates, "generator"),
        (5, "an int"),
        (None, "NoneType"),
    ],
)
def test_what_cannot_be_called_at_once_is_no_hook(hook, why):
    api = HooksAPI()
    for register in (api.register, api.register_provider):
        with pytest.raises(ExecutionError, match="X469") as caught:
            register(["OnGraphStart", "OnSystemStart"], "odd", hook)
        assert why in caught.value.problems[0].why
    assert api.names("OnGraphStart") == api.names("OnSystemStart") == []


@pytest.mark.parametrize(
    ("hook", "made"), [(lambda _: later(None), "coroutine"), (lambda _: generates(None), "generator")]
)
def test_a_hook_that_returns_what_has_not_run_has_failed(hook, made):
    api = HooksAPI()
    api.register("OnSystemStart", "odd", hook)
    with pytest.warns(
        UserWarning, match=f"hook 'odd' of OnSystemStart raised TypeError and was removed: it returned a {made}"
    ):
        told(api)
    api.register_provider("OnSystemStart", "odd", hook)
    with pytest.raises(
        ExecutionError, match=f"X471: hook 'odd' of OnSystemStart failed: TypeError: it returned a {made}"
    ):
        told(api)


def test_the_providers_alone_are_what_a_fork_gets():
    api = HooksAPI()
    api.register("OnSystemStart", "looks", print)
    assert api.providers() is None
    api.register_provider("OnSystemStart", "gives", lambda event: 3)
    assert api.providers().names("OnSystemStart") == ["gives"]


def test_a_name_stands_once_at_a_schedule_and_nothing_is_registered_by_halves():
    api = HooksAPI()
    api.register("OnLoopEnd", "one", print)
    with pytest.raises(ExecutionError, match="X151"):
        api.register_provider(["OnLoopStart", "OnLoopEnd"], "one", print)
    assert api.names("OnLoopStart") == []
    api.unregister("one")
    api.register("OnLoopEnd", "one", print)


def test_a_schedule_that_is_not_there_is_refused():
    with pytest.raises(ExecutionError, match="did you mean 'OnLoopEnd'"):
        HooksAPI().register("OnLopEnd", "one", print)


def test_an_event_has_its_name_in_the_words_of_each_schedule():
    event = GraphEvent(Schedule.OnLoopStart, "run", "loop_2", "loop")
    assert (event.name, event.system_name, event.loop_name, event.node_name) == ("loop",) * 4


def test_what_cannot_tell_its_signature_is_given_the_event_alone():
    api, seen = HooksAPI(), []
    api.register("OnSystemStart", "append", seen.append)
    told(api)
    assert len(seen) == 1


class Plugin:
    def __init__(self, name):
        self.name = name

    def build(self, hooks):
        hooks.register("OnSystemStart", self.name, print)


class Returning(Plugin):
    def build(self):
        api = HooksAPI()
        super().build(api)
        return api


def test_plugins_are_built_with_a_registry_or_return_one_alone_and_in_a_list():
    assert build_hooks(Plugin("a")).names("OnSystemStart") == ["a"]
    assert build_hooks(Returning("b")).names("OnSystemStart") == ["b"]
    api = HooksAPI()
    api.register("OnSystemStart", "own", print)
    for _ in range(2):  # a list changes none of its parts
        hooks = build_hooks([Plugin("a"), api, (Returning("b"),)])
        assert hooks.names("OnSystemStart") == ["a", "own", "b"]
    assert api.names("OnSystemStart") == ["own"]
    assert build_hooks(api) is api
    with pytest.raises(ExecutionError, match="X151"):
        build_hooks([Plugin("a"), Plugin("a")])


class Broken:
    def build(self, hooks, more):
        raise AssertionError


class Later:
    async def build(self, hooks):
        raise AssertionError


@pytest.mark.parametrize("plugin", [Broken(), Plugin, Later(), [print], [5]])
def test_what_cannot_be_built_is_a_problem(plugin):
    with pytest.raises(ExecutionError, match="X470"):
        build_hooks(plugin)
