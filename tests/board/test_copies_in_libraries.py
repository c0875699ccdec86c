"""What libraries do with a plain list or dict, they do with what a node reads from the board: a table of both."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

import pytest

from agentnb.board import copies
from agentnb.board.copies import make_reader_copy
from agentnb.board.values import freeze, thaw
from agentnb.errors import BoardError


@dataclass
class Note:
    text: str
    tags: list[Any] = field(default_factory=list)


def document(number: int) -> dict[str, Any]:
    return {"id": number, "tags": ["a", ["b", {"c": [1, {"d": None}]}]], "meta": {"by": {"name": "x", "of": []}}}


def grown(value: list[Any], count: int) -> Any:
    """Return the frozen form of a list to which items were appended one by one."""
    frozen = freeze(value)
    for item in range(count):
        frozen = frozen.with_item(freeze({"n": [item]}))
    return frozen


LONG = [n if n % 50 else [n, [n]] for n in range(300)]
SHAPES: dict[str, Any] = {
    "empty list": freeze([]),
    "empty dict": freeze({}),
    "flat list": freeze([1, 2.5, "a", None, True]),
    "flat dict": freeze({"a": 1, "b": "x", "c": None}),
    "flat messages": freeze([{"role": "user", "text": f"t{n}", "n": n} for n in range(9)]),
    "documents": freeze([document(n) for n in range(9)]),
    "mapping of documents": freeze({f"k{n}": document(n) for n in range(9)}),
    "deep": freeze({"a": [{"b": [{"c": [{"d": [[[{"e": []}]]]}]}]}]}),
    "lists of lists": freeze([[[n, [n]]] for n in range(9)]),
    "a grown list": grown([{"n": [-1]}], 50),
    "a long list that grew, inside": freeze({"log": freeze(LONG).with_item(freeze({"n": [1]})), "n": 1}),
    "a long list inside": freeze([{"log": LONG}]),
}
OBJECTS: dict[str, Any] = {
    "objects": freeze([Note("a", [["b"]]), {"at": Note("c"), "more": [Note("d", [{"e": 1}])]}]),
    "tuples": freeze({"pair": (1, [2, {"a": [3]}]), "more": [((1, 2), [[]])]}),
}


@cache
def model_of(annotation: Any) -> Any:
    from pydantic import TypeAdapter, create_model

    return TypeAdapter(annotation), create_model("Holder", value=(annotation, ...))


def with_pydantic(value: Any) -> Any:
    from pydantic import JsonValue

    results = []
    for part in (Any, JsonValue):
        adapter, model = model_of(dict[str, part] if isinstance(value, dict) else list[part])
        held = model(value=value)
        results += [adapter.validate_python(value), held.model_dump(), held.model_dump(mode="json"),
                  held.model_dump_json(), held.model_copy(deep=True)]  # fmt: skip
    return results, model_of(Any)[1](value=value).model_dump_json()


def with_arrow(value: Any) -> Any:
    import pyarrow as pa

    rows = value if isinstance(value, list) else [value]
    return pa.array(rows).to_pylist()


def with_arrow_tables(value: Any) -> Any:
    import pyarrow as pa

    rows = value if isinstance(value, list) and value and isinstance(value[0], dict) else [{"value": value}]
    return pa.Table.from_pylist(rows).to_pylist()


def with_orjson(value: Any) -> Any:
    import orjson

    return orjson.dumps(value), orjson.dumps({"inside": [value]}, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)


def with_yaml(value: Any) -> Any:
    import yaml

    return yaml.safe_dump(value), yaml.safe_dump({"inside": [value]}, sort_keys=False), yaml.dump(value)


def with_yaml_in_c(value: Any) -> Any:
    import yaml

    return yaml.dump(value, Dumper=yaml.CSafeDumper), yaml.dump_all([value, value], Dumper=yaml.CDumper)


def with_msgpack(value: Any) -> Any:
    import msgpack

    return msgpack.packb(value), msgpack.packb([{"inside": value}])


def with_pandas(value: Any) -> Any:
    import pandas as pd

    if isinstance(value, dict):
        return pd.Series(value, dtype=object).to_dict(), pd.DataFrame([value]).to_dict("records")
    frame = pd.DataFrame({"value": pd.Series(value, dtype=object)})
    records = pd.DataFrame(value).to_json() if value else ""
    return frame.to_json(), frame.to_dict("records"), records, pd.json_normalize({"of": value}).to_dict()


def with_numpy(value: Any) -> Any:
    import numpy as np

    parts = [*value.values()] if isinstance(value, dict) else value
    array = np.empty(len(parts), dtype=object)
    array[:] = parts
    return array.tolist()


def with_jinja(value: Any) -> str:
    import jinja2

    return jinja2.Environment(autoescape=True).from_string("{{ v }}{{ v | tojson }}{{ v | length }}").render(v=value)


def with_unbound_methods(value: Any) -> Any:
    if isinstance(value, dict):
        return dict.copy(value), [dict.get(value, key) for key in value], list(dict.items(value)), dict(value)
    return list.copy(value), [list.__getitem__(value, at) for at in range(len(value))], list(value), tuple(value)


READERS: dict[str, Callable[[Any], Any]] = {
    "json": lambda v: (json.dumps(v), json.dumps(v, indent=1, sort_keys=True), json.dumps({"inside": [v]})),
    "pickle": lambda v: [pickle.loads(pickle.dumps(v, number)) for number in range(pickle.HIGHEST_PROTOCOL + 1)],
    "copy": lambda v: (copy.copy(v), copy.deepcopy(v), v.copy()),
    "compare": lambda v: (v == copy.deepcopy(v), copy.deepcopy(v) == v, v != v.copy(), bool(v), len(v)),
    "pydantic": with_pydantic,
    "arrow": with_arrow,
    "arrow tables": with_arrow_tables,
    "orjson": with_orjson,
    "yaml": with_yaml,
    "yaml in C": with_yaml_in_c,
    "msgpack": with_msgpack,
    "pandas": with_pandas,
    "numpy": with_numpy,
    "jinja": with_jinja,
    "unbound methods": with_unbound_methods,
}


def read_some(value: Any) -> None:
    """Read a part, and a part of that."""
    for _ in range(2):
        if not value or not isinstance(value, list | dict):
            return
        value = value[len(value) // 2] if isinstance(value, list) else value[[*value][-1]]


def change_some(value: Any) -> None:
    """Change a value, and a part of it."""
    part = value[0] if value and isinstance(value, list) else value.get("k1") if isinstance(value, dict) else None
    if isinstance(part, dict):
        part["changed"] = [{"deep": [1]}]
    elif isinstance(part, list):
        part.append([{"deep": [1]}])
    if isinstance(value, list):
        value.append([{"x": [1]}] if value and not isinstance(value[0], dict) else {"n": [2]})
    else:
        value["new"] = [{"x": [1]}]


BEFORE: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda _: None,
    "after a look": read_some,
    "after a walk": lambda v: [*v] and repr(v),
    "after a change": change_some,
}


@pytest.fixture(params=["any value is large", "small values too"])
def sizes(request, monkeypatch):
    if request.param == "any value is large":
        monkeypatch.setattr(copies, "SMALL", 0)


def outcome(take: Callable[[Any], Any], value: Any) -> Any:
    """Return what came out, or the class of what was raised, as it is refused for plain values, too."""
    try:
        return take(value)
    except Exception as error:  # noqa: BLE001  (whatever the library raises)
        return type(error)


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("reader", READERS)
def test_a_library_reads_a_copy_as_a_plain_value(reader):
    for (shape, frozen), (label, before) in product(SHAPES.items(), BEFORE.items()):
        reader_copy, plain, board = make_reader_copy(frozen), thaw(frozen), repr(thaw(frozen))
        before(reader_copy)
        before(plain)
        assert repr(outcome(READERS[reader], reader_copy)) == repr(outcome(READERS[reader], plain)), (shape, label)
        assert repr(freeze(reader_copy, frozen)) == repr(plain), (shape, label)
        assert repr(thaw(frozen)) == board, (shape, label)


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("reader", READERS)
def test_a_library_finds_the_objects_in_a_copy(reader):
    for shape, frozen in OBJECTS.items():
        assert repr(outcome(READERS[reader], make_reader_copy(frozen))) == repr(
            outcome(READERS[reader], thaw(frozen))
        ), shape


def test_parts_that_c_code_took_from_a_small_value_can_be_changed():
    frozen = freeze({"docs": [document(1)]})
    reader_copy = make_reader_copy(frozen)
    held = model_of(dict[str, Any])[1](value=reader_copy)
    held.value["docs"][0]["tags"].append("mine")
    assert thaw(freeze(held.value))["docs"][0]["tags"][-1] == "mine"
    assert thaw(frozen) == {"docs": [document(1)]}


def test_parts_that_c_code_took_from_a_large_value_reject_changes_until_they_are_copied():
    frozen = freeze([document(n) for n in range(99)])
    taken = model_of(list[Any])[1](value=make_reader_copy(frozen)).value
    with pytest.raises(BoardError, match="B101") as refused:
        taken[5]["tags"].append("mine")
    assert "copy.deepcopy" in str(refused.value)
    for copied in (copy.deepcopy(taken), pickle.loads(pickle.dumps(taken)), copy.deepcopy(make_reader_copy(frozen))):
        copied[5]["tags"].append("mine")
        assert type(copied[5]["tags"]) is list
    assert freeze(taken, frozen) is frozen
    assert thaw(frozen)[5] == document(5)
