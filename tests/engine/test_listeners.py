from __future__ import annotations

import pytest

from agentnb.engine.control.listeners import MOMENTS, Hooks, Token
from agentnb.errors import ExecutionError


class Counted:
    def __init__(self):
        self.armed = 0
        self.hooks = Hooks(self.arm)

    def arm(self):
        self.armed += 1


def test_each_kind_of_notification_has_its_own_listeners():
    messages, hooks = [], Counted().hooks
    for moment in MOMENTS:
        hooks.add(moment, lambda what, moment=moment: messages.append((moment, what)))
    for moment in MOMENTS:
        hooks.notify(moment, 1)
    assert messages == [(moment, 1) for moment in MOMENTS]


def test_one_listener_or_several_in_their_order():
    messages, hooks = [], Counted().hooks
    hooks.add_all(
        {"step": [lambda what: messages.append("a"), lambda what: messages.append("b")], "end": messages.append}
    )
    hooks.notify("step", None)
    hooks.notify("end", "c")
    assert messages == ["a", "b", "c"]


def test_adding_and_removing_listeners_is_reported():
    counted = Counted()
    remove = counted.hooks.add("step", print)
    remove()
    remove()
    assert (counted.armed, counted.hooks.rows["step"]) == (2, ())


def test_other_listeners_are_notified_when_one_is_removed():
    messages, hooks = [], Counted().hooks

    def breaks(what):
        raise KeyError("x")

    hooks.add_all({"step": [breaks, messages.append]})
    with pytest.warns(UserWarning, match="KeyError"):
        hooks.notify("step", 1)
    hooks.notify("step", 2)
    assert messages == [1, 2]


def test_a_listener_may_unsubscribe_while_notified():
    messages, hooks = [], Counted().hooks
    remove = hooks.add("step", lambda what: (messages.append(what), remove()))
    hooks.add("step", messages.append)
    hooks.notify("step", 1)
    hooks.notify("step", 2)
    assert messages == [1, 1, 2]


def test_an_unknown_kind_of_notification_is_a_problem():
    with pytest.raises(ExecutionError, match="X114"):
        Counted().hooks.add("stop", print)


def test_two_threads_may_remove_the_same_listener():
    hooks = Counted().hooks

    def breaks(what):
        hooks.rows["token"] = ()  # as another thread does in the same moment
        raise KeyError("x")

    hooks.add("token", breaks)
    with pytest.warns(UserWarning, match="a listener of 'token' raised"):
        hooks.notify("token", Token("n", "text"))


def test_a_token_is_frozen():
    token = Token("n", "text")
    assert (token.node, token.text, token.attempt) == ("n", "text", 1)
    with pytest.raises(AttributeError):
        token.text = "other"


def test_a_registry_of_schedules_is_used_directly_and_anything_else_rejected():
    counted = Counted()

    class Registry:
        def notify(self, event, context):
            """Only that it can tell is asked."""

    registry = Registry()
    counted.hooks.add_all(registry)
    assert (counted.hooks.schedules, counted.armed) == (registry, 1)
    with pytest.raises(ExecutionError, match="X114"):
        counted.hooks.add_all([print])
