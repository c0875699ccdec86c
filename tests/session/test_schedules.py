from __future__ import annotations

import pytest

from agentnb.errors import ExecutionError
from agentnb.session.schedules import AllGraphSchedules, GraphEvent, HooksAPI, Schedule


class Context:
    def __init__(self):
        self.inserted = []

    def insert(self, value):
        self.inserted.append(value)


def told(api, schedule="OnSystemStart"):
    context = Context()
    api.tell(GraphEvent(Schedule(schedule), "run", "node"), lambda: context)
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
    with pytest.warns(UserWarning, match="hook 'broken' of OnSystemStart was dropped, it raised ZeroDivisionError"):
        told(api)
    told(api)
    assert seen == [1, 1]
    assert api.names("OnLoopEnd") == ["broken"]


def test_a_provider_that_raises_is_not_caught():
    api = HooksAPI()
    api.register_provider("OnSystemStart", "broken", lambda event: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        told(api)


@pytest.mark.parametrize("schedule", ["OnSystemComplete", "OnSystemError", "OnGraphComplete", "OnLoopIteration"])
def test_a_provider_that_raises_behind_a_node_is_dropped_for_there_is_nothing_to_fail(schedule):
    api = HooksAPI()
    api.register_provider(schedule, "broken", lambda event: 1 / 0)
    with pytest.warns(UserWarning, match=f"hook 'broken' of {schedule} was dropped"):
        told(api, schedule)
    assert api.names(schedule) == []


def test_an_async_hook_is_refused_for_hooks_are_called_at_once():
    async def later(event):
        raise AssertionError

    api = HooksAPI()
    api.register("OnSystemStart", "later", later)
    with pytest.warns(UserWarning, match="hook 'later' of OnSystemStart was dropped, it raised TypeError: it is async"):
        told(api)
    api.register_provider("OnSystemStart", "later", later)
    with pytest.raises(TypeError, match="it is async"):
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
