from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

from agentnb.board.codec import encode
from agentnb.board.masking import mask_atoms, mask_value, register_secrets, to_display
from agentnb.board.values import ABSENT, freeze
from agentnb.secrets import (
    MASK,
    Masked,
    RunSecrets,
    count_settled,
    get_version,
    hide,
    is_secret,
    mask_text,
    masking_for,
)
from agentnb.text import safe_repr


@dataclass
class Client:
    name: str
    api_key: str


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("api_key", True), ("apiKey", True), ("x-auth-token", True), ("OPENAI_API_KEY", True), ("Authorization", True),
        ("password", True), ("token", True), ("tokens_in", False), ("keyboard", False), ("key", False),
        ("author", False), ("access_key", True), ("api_keys", True), ("cookie", True), ("Set-Cookie", True),
        ("jwt", True),
        ("pass", True), ("db_pass", True), ("pwd", True), ("auth", True), ("proxyAuth", True), ("tokens", True),
        ("connection_string", True), ("connStr", True), ("DBPassword", True), ("JWT_TOKEN", True), ("passwords", True),
        ("password2", True), ("userpassword", True), (b"api_key", True), ("max_tokens", False), ("compass", False),
        ("token_count", False), ("tokensUsed", False), ("prompt_tokens", False), ("pass_rate", False),
        ("authority", False), ("secretary", False), ("passenger", False), ("monkey", False), ("auth_method", False),
        (7, False), (None, False), ("", False),
    ],
)  # fmt: skip
def test_a_secret_is_recognized_by_whole_words_of_its_name(key, secret):
    assert is_secret(key) is secret


@pytest.mark.parametrize("key", ["tokens", "pass", "auth", "cookies"])
def test_a_number_under_a_name_that_may_mean_a_count_is_not_a_secret(key):
    assert not is_secret(key, 12)
    assert not is_secret(key, value=True)
    assert is_secret(key, "abc")
    assert is_secret(key, ["abc"])
    assert is_secret("password", 12)
    assert mask_value({key: 12, "n": {key: ["abc"]}}) == {key: 12, "n": {key: MASK}}


def test_values_under_a_secret_name_are_masked_at_any_depth():
    value = {"user": "ann", "login": [{"password": "s3cret", "n": 1}], "token": None}
    expected = {"user": "ann", "login": [{"password": MASK, "n": 1}], "token": None}
    assert mask_value(value) == mask_value(freeze(value)) == to_display(freeze(value)) == expected
    assert mask_value("s3cret", "api_key") == to_display("s3cret", "api_key") == MASK
    assert mask_value(None, "api_key") is None


def test_an_object_is_written_as_its_fields_with_secrets_masked():
    client = Client("a", "s3cret")
    assert to_display(freeze(client)) == {"name": "a", "api_key": MASK}
    assert to_display(freeze({"all": [(client,)]})) == {"all": [({"name": "a", "api_key": MASK},)]}
    assert mask_value(freeze(client)) == {"name": "a", "api_key": MASK}
    assert client.api_key == "s3cret"


def test_an_object_with_a_secret_becomes_its_fields_and_any_other_stays(none_hidden):
    class Person(BaseModel, extra="allow"):
        name: str

    client, person = Client("a", "s3cr3t-4711"), Person(name="b", token="s3cr3t-4712")
    assert mask_value([client, {"k": person}]) == [{"name": "a", "api_key": MASK}, {"k": {"name": "b", "token": MASK}}]
    harmless = Client("a", ""), Person(name="b", items=[1])
    assert mask_value(harmless)[1] is harmless[1]
    hide("b-4713")
    assert mask_value(Person(name="my b-4713")) == {"name": f"my {MASK}"}


def test_a_text_that_was_reported_is_masked_wherever_it_is(none_hidden):
    hide("s3cret-4711", None, "ab")
    assert mask_text("Bearer s3cret-4711") == f"Bearer {MASK}"
    assert isinstance(mask_text("s3cret-4711"), Masked)
    assert mask_text("ab") == "ab"
    value = {"a": ["see s3cret-4711"], "s3cret-4711": ("s3cret-4711",), "b": b"x s3cret-4711", "c": {"s3cret-4711"}}
    for leaving in (mask_value(value), mask_value(freeze(value)), to_display(freeze(value))):
        assert "s3cret" not in repr(leaving)
    assert "s3cret" not in safe_repr(freeze(value), limit=500)


def test_only_values_under_the_name_of_a_secret_are_masked(none_hidden):
    register_secrets({"title": "open-4711", "items": [{"note": "free-4711"}]}, "report")
    register_secrets("plain-4711", "title")
    text = "open-4711 free-4711 plain-4711"
    assert mask_text(text) == text
    register_secrets({"title": "open-4711"}, "credentials_password")
    register_secrets("plain-4711", "api_key")
    assert mask_text(text) == f"{MASK} free-4711 {MASK}"


@pytest.mark.parametrize("dtype", [object, str])
def test_an_array_of_texts_is_masked_and_keeps_its_shape(dtype, none_hidden):
    register_secrets(freeze({"password": "s3cret-4711"}))
    array = np.array([["s3cret-4711", "open"], ["a", "b"]], dtype=dtype)
    for leaving in (mask_value(array), mask_value(freeze(array))):
        assert (leaving.tolist(), leaving.dtype.kind) == ([[MASK, "open"], ["a", "b"]], array.dtype.kind)
    assert array[0, 0] == "s3cret-4711"


@pytest.mark.parametrize("dtype", [int, float, bool, "datetime64[s]"])
def test_an_array_of_any_other_dtype_is_copied_with_its_type(dtype):
    array = np.array([0, 1, 2]).astype(dtype)
    leaving = mask_value(array)
    assert (leaving.dtype, leaving.tolist()) == (array.dtype, array.tolist())
    assert not np.shares_memory(leaving, array)


def contain_itself(kind):
    """Return a value that contains itself twice, in a list within an array, a Series or a DataFrame."""
    cells = np.empty(2, dtype=object)
    cells[0] = cells[1] = inside = ["hunter2", cells]
    inside.append(pd.DataFrame({"a": cells}) if kind == "frame" else pd.Series(cells) if kind == "series" else cells)
    return cells


@pytest.mark.parametrize("kind", ["array", "series", "frame"])
def test_an_array_that_contains_itself_is_masked(kind, none_hidden):
    hide("hunter2")
    masked = mask_value(contain_itself(kind))
    assert masked[0][0] == MASK
    assert "hunter2" not in repr(masked)


def mask_column(values):
    return mask_atoms(values, set(map(type, values)))


@pytest.mark.parametrize("rest", [[], [None], [ABSENT, 1.5], ["text"]])
def test_a_large_number_in_any_column_can_be_shown(rest, none_hidden):
    column = mask_column([1, 2**20_000, *rest])
    assert (column, str(column[1])) == ([1, 2**20_000, *rest], hex(2**20_000))
    small = [1, 2, *rest]
    assert mask_column(small) == small


def test_a_column_is_masked_where_a_value_is_a_secret(none_hidden):
    column = [47114711, "s3cret-4711", b"s3cret-4711", 1, True, None]
    assert mask_column([1, 2]) == [1, 2]
    register_secrets(freeze({"pin_password": 47114711, "password": "s3cret-4711"}))
    assert mask_column(column) == [47114711, MASK, MASK.encode(), 1, True, None]


@pytest.mark.parametrize(
    "value", [47114711, -47114711, 4711.4711, True, Decimal("4711.4711"), Fraction(47114711, 7), complex(4711, 1),
              np.int64(47114711), np.array([47114711]), pd.Series([47114711]), 47114711 * 10**700],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_numbers_and_truth_values_are_masked_under_a_name_alone(value, none_hidden):
    register_secrets(freeze({"secret": value, "again": [value]}), "report")
    assert mask_value({"secret": value})["secret"] == MASK
    text = f"{value} and {value!r}"
    assert mask_text(text) == text
    assert "*" not in f"{mask_value([value])}{to_display(freeze([value]))}{safe_repr([value])}{encode(freeze([value]))}"


def test_the_secrets_of_a_run_mask_its_texts_alone(none_hidden):
    one, other = RunSecrets(), RunSecrets()
    register_secrets({"password": "s3cret-of-one"}, owner=one)
    hide("s3cret-of-all")
    text = "s3cret-of-one, s3cret-of-all"
    with masking_for(one):
        assert mask_text(text) == f"{MASK}, {MASK}"
        with masking_for(other):
            assert mask_text(text) == f"s3cret-of-one, {MASK}"
            register_secrets({"password": "s3cret-of-other"})
        assert mask_text("s3cret-of-other") == "s3cret-of-other"
        with masking_for():
            assert mask_text(text) == f"s3cret-of-one, {MASK}"
    with masking_for(one, other):
        assert mask_text(f"{text}, s3cret-of-other") == f"{MASK}, {MASK}, {MASK}"
    assert mask_text(f"{text}, s3cret-of-other") == f"{MASK}, {MASK}, {MASK}", "of unknown origin"


def test_the_longest_secret_is_masked_first(none_hidden):
    hide("pass", "passphrase")
    assert mask_text("my passphrase") == f"my {MASK}"


def test_a_long_value_is_cut_and_still_masked(none_hidden):
    hide("s3cret-4711")
    assert len(safe_repr("x" * 1000)) == 60
    assert "s3c" not in safe_repr("y" * 195 + "s3cret-4711", limit=400)
    assert safe_repr("v", key="password") == repr(MASK)
    assert safe_repr({"a": 1}) == "{'a': 1}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("nothing of it", "nothing of it"), ("it is se77", "it is "), ("it is se77led-4711", "it is se77led-4711"),
     ("s", ""), ("se77led-4711 and se7", "se77led-4711 and "), ("", "")],
)  # fmt: skip
def test_the_end_of_a_growing_text_is_withheld_while_a_secret_may_begin_there(text, shown):
    hide("se77led-4711")
    assert text[: count_settled(text)] == shown


def test_a_possible_beginning_of_another_secret_does_not_split_a_secret():
    hide("one-abcd", "cd-other")
    assert count_settled("it is one-abcd") == len("it is ")
    assert mask_text("it is one-abcd"[: count_settled("it is one-abcd ")]) == "it is ********"


def test_the_version_of_the_secrets_differs_for_other_secrets():
    one, other = RunSecrets(), RunSecrets()
    versions = []
    for owner in (one, other):
        with masking_for(owner):
            versions.append(get_version())
            hide("another-one-4714", owner=owner)
            versions.append(get_version())
    hide("another-one-4715")
    with masking_for(one):
        versions.append(get_version())
    assert versions[0] == versions[2], "without secrets of their own, texts of both are masked alike"
    assert len(set(versions)) == 4
