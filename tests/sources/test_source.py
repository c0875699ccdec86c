from __future__ import annotations

import itertools
import os
from array import array
from collections import deque
from enum import Enum

import pydantic
import pytest

from agentnb.errors import Place
from agentnb.sources import MAX_BYTES, make_plain_source, read_file, read_text
from agentnb.sources.source import Lines, Source, format_path


def codes(source):
    return [problem.code for problem in source.problems]


def test_every_key_and_item_has_its_place():
    source = read_text("a:\n  - b: 1\n    c: [x, y]\n", "some.yaml")
    assert source.content == {"a": [{"b": 1, "c": ["x", "y"]}]}
    assert str(source.locate(("a", 0, "c", 1))) == "some.yaml:3:12, a[0].c[1]"
    assert str(source.locate(("a", 0, "b"), key=True)) == "some.yaml:2:5, a[0].b"


def test_a_missing_part_has_the_place_of_its_container():
    source = read_text("a:\n  b: 1\n")
    assert source.locate(("a", "missing")) == Place("<text>", 1, 1, "a.missing")


def test_a_path_is_formatted_readably():
    assert format_path(("nodes", 3, "routes", "a b", "c")) == "nodes[3].routes['a b'].c"


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a\rb"])
def test_all_line_endings_are_supported(text):
    assert Lines(text).get_position(text.index("b")) == (2, 1)


def test_a_file_is_read_with_and_without_a_byte_order_mark(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_bytes("\ufeffkey: ü".encode())
    assert read_file(file).content == {"key": "ü"}


def test_the_suffix_decides_the_format_of_a_broken_file(tmp_path):
    file = tmp_path / "a.json"
    file.write_text("{a: 1}")
    (problem,) = read_file(file).problems
    assert problem.code == "R102"
    assert "JSON" in problem.why


@pytest.mark.parametrize("text", ["{a: 1, b: [x]}", '{"a": 1, "b": ["x"]}', "a: 1\nb: [x]"])
def test_text_with_braces_may_be_yaml(text):
    assert read_text(text).content == {"a": 1, "b": ["x"]}


def test_a_path_that_is_not_a_file_is_rejected(tmp_path):
    assert codes(read_file(tmp_path)) == ["R101"]
    assert codes(read_file(tmp_path / "absent.yaml")) == ["R101"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_an_endless_pipe_is_rejected(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    assert codes(read_file(tmp_path / "pipe.yaml")) == ["R101"]


def test_a_binary_file_is_reported_with_the_byte(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_bytes(b"a: 1\nb: \xff\n")
    (problem,) = read_file(file).problems
    assert (problem.code, problem.where) == ("R102", f"{file}:2:4")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    assert codes(read_text("a" * (MAX_BYTES + 1))) == ["R108"]
    file = tmp_path / "a.yaml"
    file.write_bytes(b"a" * (MAX_BYTES + 1))
    assert codes(read_file(file)) == ["R108"]


def test_control_characters_are_reported_with_their_place():
    (problem,) = read_text("a: b\nc: \x07").problems
    assert (problem.code, problem.where) == ("R102", "<text>:2:4")
    assert "U+0007" in problem.what


def test_a_dict_is_checked_like_a_text():
    endless: dict = {}
    endless["me"] = endless
    assert codes(make_plain_source(endless)) == ["R108"]
    assert codes(make_plain_source({"a": 1, 1: 2, "1": 3})) == ["R103"]
    assert codes(make_plain_source({("a", "b"): 1})) == ["R114"]
    assert codes(make_plain_source({"a": list(range(100_001))})) == ["R108"]
    assert make_plain_source({"a": (1, {2: None})}).content == {"a": [1, {"2": None}]}


def test_a_dict_key_that_is_not_a_string_is_reported():
    assert make_plain_source({True: 1, None: 2}).odd_keys == {("True",): "True", ("None",): "None"}


def test_a_source_without_text_has_no_lines():
    assert Source(object(), "<thing>").locate() == Place("<thing>")


class Endless:
    def __iter__(self):
        return itertools.count()


class Step(Enum):
    FIRST = 1


@pytest.mark.parametrize("make", [itertools.count, Endless, lambda: range(10**12), lambda: itertools.repeat({})])
def test_a_list_without_an_end_is_rejected(make):
    assert codes(make_plain_source({"a": make()})) == ["R108"]
    assert codes(make_plain_source({"a": [{"b": make()}]})) == ["R108"]


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (range(3), [0, 1, 2]), (iter("ab"), ["a", "b"]), ({1}, [1]), (deque([1]), [1]), ({"k": 1}.keys(), ["k"]),
        (array("i", [1, 2]), [1, 2]), ("ab", "ab"), (b"ab", b"ab"), (Step, Step), (None, None),
    ],
)  # fmt: skip
def test_what_a_schema_reads_as_a_list_is_one(value, content):
    assert make_plain_source({"a": value}).content == {"a": content}


def test_a_pydantic_object_is_one_value():
    model = pydantic.create_model("Model", a=(int, 1))()
    assert make_plain_source({"a": model}).content["a"] is model
