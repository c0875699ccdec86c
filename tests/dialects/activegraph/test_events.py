"""Payloads take the form that JSON gives them; behaviors without `on` hear what they hear in the package."""

from __future__ import annotations

import enum
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentnb.board.values import thaw
from agentnb.dialects.activegraph.errors import NonSerializableEventError
from agentnb.dialects.activegraph.parts.events import freeze_json, to_canonical, to_plain
from tests.dialects.activegraph.judge import assert_same_signatures, same

_ATOMS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-2, 2) | st.text(max_size=3)
_VALUES = st.recursive(
    _ATOMS,
    lambda items: st.lists(items, max_size=3) | st.tuples(items, items) | st.dictionaries(_ATOMS, items, max_size=3),
    max_leaves=8,
)


@given(_VALUES)
def test_a_payload_has_the_form_that_json_gives_it(value):
    expected = json.dumps(json.loads(json.dumps(value)))  # as text: the order of keys counts, too
    assert json.dumps(to_canonical(value)) == json.dumps(thaw(freeze_json(value))) == expected


class Color(str, enum.Enum):  # noqa: UP042  (a StrEnum is text, and this is what most programs have)
    RED = "red"


class Size(enum.IntEnum):
    LARGE = 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset("ba"), ["a", "b"]),
        (Decimal("1.10"), "1.10"),
        (UUID(int=5), str(UUID(int=5))),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00+00:00"),
        (Color.RED, "red"),
        (Size.LARGE, 3),
        ({Color.RED: 1, Size.LARGE: 2}, {"red": 1, "3": 2}),
    ],
    ids=["set", "frozenset", "decimal", "uuid", "date", "datetime", "str enum", "int enum", "enums as keys"],
)
def test_values_that_json_lacks_are_converted(value, expected):
    for convert in (to_plain, to_canonical, freeze_json):
        for given_value, plain in ((value, expected), ([value], [expected]), ({"a": (value,)}, {"a": [expected]})):
            converted = thaw(convert(given_value))
            assert (converted, type(converted)) == (plain, type(plain))
            if isinstance(value, str | int | dict):
                assert json.dumps(converted) == json.dumps(given_value)


class Price(BaseModel):
    amount: Decimal


class Priced(BaseModel):
    call: Any = None


def test_a_model_is_converted_to_its_fields():
    assert to_plain(Price(amount=Decimal("1.10"))) == {"amount": "1.10"}
    assert to_plain(Priced(call={1, 2})) == {"call": [1, 2]}
    with pytest.raises(NonSerializableEventError, match="'call'"):
        to_plain(Priced(call=object()))


@pytest.mark.parametrize(
    ("value", "path"),
    [(object(), ""), ({"a": object()}, "a"), ({"a": [1, {"b": (2, object())}]}, "a.1.b.1"), ([1, b"x"], "1")],
)
def test_the_field_that_json_cannot_represent_is_named(value, path):
    for convert in (to_canonical, freeze_json):
        with pytest.raises(NonSerializableEventError, match=f"X501: the field '{path}' is an? (object|bytes)"):
            convert(value)


def events_that_any_behavior_hears(p: Any) -> None:
    @p.behavior(name="listens")
    def listens(event, graph, ctx):
        if not event.type.startswith("object."):
            graph.add_object("heard", {"type": event.type})

    runtime = p.Runtime(p.graph)
    prefixes = ("behavior", "relation_behavior", "runtime", "llm", "tool", "pattern", "approval", "dev", "authority",
                "context", "pack", "embedding", "promote", "trial", "goal", "llms", "x.llm")  # fmt: skip
    for prefix in prefixes:
        for name in ("", ".read", ".other"):
            p.graph.emit(p.Event(p.graph.ids.event(), f"{prefix}{name}", {"behavior": "b", "reason": ""}))
    runtime.run_until_idle()


def test_behaviors_hear_the_same_events_as_in_the_package():
    log = same(events_that_any_behavior_hears)
    heard = {event["payload"]["object"]["data"]["type"] for event in log if event["type"] == "object.created"}
    assert {"llm", "llms.read", "context.other"} < heard
    assert heard.isdisjoint({"llm.read", "context.read"})


def test_signatures_are_those_of_the_package():
    assert_same_signatures("Event", "Event.to_dict")
