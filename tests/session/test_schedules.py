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


def test_hooks_are_called_in_order_of_registration_and_see_earlier_resources():
    api, seen = HooksAPI(), []
    api.register("OnSystemStart", "first", lambda event: seen.append(event.node_id))
    api.register_provider("OnSystemStart", "gives", lambda event: 3)
    api.register(["OnSystemStart"], "last", lambda event, context: seen.append(list(context.inserted)))
    assert told(api) == [3]
    assert seen == ["node", [3]]
    assert api.names(Schedule.OnSystemStart) == ["first", "gives", "last"]


def test_a_hook_can_have_several_schedules():
    api, seen = HooksAPI(), []
    api.register(AllGraphSchedules, "all", lambda event: seen.append(event.schedule))
    for schedule in Schedule:
        told(api, schedule)
    assert seen == list(Schedule)


def test_a_provider_that_returns_none_provides_nothing():
    api = HooksAPI()
    api.register_provider("OnSystemStart", "nothing", lambda event: None)
    assert told(api) == []


def test_an_observer_that_raises_is_removed_from_that_schedule_with_a_warning():
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
def test_a_provider_that_raises_after_a_node_is_removed(schedule):
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
def test_an_async_or_uncallable_hook_is_rejected(hook, why):
    api = HooksAPI()
    for register in (api.register, api.register_provider):
        with pytest.raises(ExecutionError, match="X469") as caught:
            register(["OnGraphStart", "OnSystemStart"], "odd", hook)
        assert why in caught.value.problems[0].why
    assert api.names("OnGraphStart") == api.names("OnSystemStart") == []


@pytest.mark.parametrize(
    ("hook", "made"), [(lambda _: later(None), "coroutine"), (lambda _: generates(None), "generator")]
)
def test_a_hook_that_returns_a_coroutine_has_failed(hook, made):
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


def test_a_fork_has_only_the_providers():
    api = HooksAPI()
    api.register("OnSystemStart", "looks", print)
    assert api.providers() is None
    api.register_provider("OnSystemStart", "gives", lambda event: 3)
    assert api.providers().names("OnSystemStart") == ["gives"]


def test_names_are_unique_per_schedule_and_registration_is_atomic():
    api = HooksAPI()
    api.register("OnLoopEnd", "one", print)
    with pytest.raises(ExecutionError, match="X151"):
        api.register_provider(["OnLoopStart", "OnLoopEnd"], "one", print)
    assert api.names("OnLoopStart") == []
    api.unregister("one")
    api.register("OnLoopEnd", "one", print)


def test_an_unknown_schedule_is_rejected():
    with pytest.raises(ExecutionError, match="did you mean 'OnLoopEnd'"):
        HooksAPI().register("OnLopEnd", "one", print)


def test_each_schedule_has_its_event_name():
    event = GraphEvent(Schedule.OnLoopStart, "run", "loop_2", "loop")
    assert (event.name, event.system_name, event.loop_name, event.node_name) == ("loop",) * 4


def test_a_hook_without_signature_receives_the_event_alone():
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


def test_plugins_build_into_a_registry_or_return_one():
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
def test_an_invalid_plugin_is_a_problem(plugin):
    with pytest.raises(ExecutionError, match="X470"):
        build_hooks(plugin)
