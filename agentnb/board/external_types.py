"""Values of pydantic, numpy and pandas. Each library is used only if the user has already imported it.

The exception is decoding a stored array or frame: this imports the library, because the value cannot be shown without
it.
"""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import MAXYEAR, MINYEAR, datetime, time
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from importlib import import_module
from typing import Any

from agentnb.secrets import MASK, is_secret, mask_bytes
from agentnb.text import UNREADABLE, call, safe_str


def is_scalar(value: Any) -> bool:
    """Return True for a numpy scalar."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(type(value), numpy.generic)


def is_array(value: Any) -> bool:
    """Return True for a numpy array, a pandas DataFrame or a Series."""
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if numpy is not None and issubclass(type(value), numpy.ndarray):
        return True
    return (
        pandas is not None and hasattr(pandas, "Series") and issubclass(type(value), pandas.DataFrame | pandas.Series)
    )


def copy_array(value: Any, copy_item: Callable[[Any], Any]) -> Any:
    """Return a copy of an array, a Series or a DataFrame; `copy_item` copies the objects in cells."""
    copy = value.copy()
    if not hasattr(copy, "iloc"):
        if copy.dtype.kind == "O":
            cells = sys.modules["numpy"].asarray(copy).reshape(-1)  # a view: a copy is contiguous
            for index, item in enumerate(cells.tolist()):
                cells[index] = copy_item(item)
        return copy
    columns = [value] if value.ndim == 1 else [value.iloc[:, at] for at in range(value.shape[1])]
    for at, column in enumerate(columns):
        for row, item in enumerate(column.tolist() if column.dtype == object else ()):
            own = copy_item(item)
            if own is not item:
                copy.iat[row if value.ndim == 1 else (row, at)] = own
    return copy


def are_same_arrays(left: Any, right: Any) -> bool:
    """Return True if two arrays or frames are the same: values, types, labels, names and attributes."""
    if type(left) is not type(right) or left.shape != right.shape:
        return False
    if hasattr(left, "iloc"):
        try:
            return _are_same_frames(left, right)
        except Exception:  # noqa: BLE001  (labels and attributes may be of any class)
            return False
    if left.dtype != right.dtype:
        return False
    if left.dtype.hasobject:
        return all(map(_are_same_objects, left.flat, right.flat))
    return bool(left.tobytes() == right.tobytes())


def _are_same_frames(left: Any, right: Any) -> bool:
    """Compare two frames or Series; `equals` ignores names, attributes and signs of zeros, and that 1 is not True."""
    if not left.equals(right) or not all(a.identical(b) for a, b in zip(left.axes, right.axes, strict=True)):
        return False
    if left.flags != right.flags or not _are_same_objects(left.attrs, right.attrs):
        return False
    if left.ndim == 1:
        if not _are_same_objects(left.name, right.name):
            return False
        left, right = left.to_frame(), right.to_frame()
    kinds = [dtype.kind if isinstance(dtype, sys.modules["numpy"].dtype) else "" for dtype in left.dtypes]
    floats = [at for at, kind in enumerate(kinds) if kind in ("f", "c")]
    if floats and left.iloc[:, floats].to_numpy().tobytes() != right.iloc[:, floats].to_numpy().tobytes():
        return False
    objects = (at for at, kind in enumerate(kinds) if kind == "O")
    return all(all(map(_are_same_objects, left.iloc[:, at], right.iloc[:, at])) for at in objects)


def _are_same_objects(left: Any, right: Any) -> bool:
    """Return True if two items of an object array are equal; an item that cannot be compared equals only itself."""
    if left is right:
        return True
    kind = _get_stored_type(left)
    if kind is not _get_stored_type(right):
        return False
    if is_array(left):
        return are_same_arrays(left, right)
    if kind is dict:
        return _are_same_objects([*left], [*right]) and all(map(_are_same_objects, left.values(), right.values()))
    if kind is list or kind is tuple:
        return len(left) == len(right) and all(map(_are_same_objects, left, right))
    if kind in _DIFFERENT_IF_EQUAL:
        return repr(left) == repr(right)
    try:
        return bool(left == right)
    except Exception:  # noqa: BLE001  (its comparison is user code, and may not return a bool)
        return False


def _get_stored_type(value: Any) -> type:
    """Return the type with which a value is restored from a store: a text of a user's class is a plain text."""
    kind = type(value)
    if issubclass(kind, Enum | bool):
        return kind
    return next((base for base in (str, int, float, bytes) if issubclass(kind, base)), kind)


# Values of these classes may be equal and still differ: 0.0 and -0.0, 1.0 and 1.00, one moment in two time zones.
_DIFFERENT_IF_EQUAL = frozenset({float, complex, Decimal, datetime, time})


def is_model(cls: type) -> bool:
    """Return True if a class is a pydantic model."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(cls, pydantic.BaseModel)


# -- pandas scalars ----------------------------------------------------------------------------------------------------


def is_scalar_of_pandas(value: Any) -> bool:
    """Return True for pandas' NA, NaT, Timestamp or Timedelta."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not hasattr(pandas, "Timestamp"):
        return False
    return value is pandas.NA or value is pandas.NaT or issubclass(type(value), pandas.Timestamp | pandas.Timedelta)


def dump_scalar(value: Any) -> dict[str, Any]:
    """Return pandas' NA, NaT, Timestamp or Timedelta as JSON."""
    pandas = sys.modules["pandas"]
    if value is pandas.NA or value is pandas.NaT:
        return {"type": "NA" if value is pandas.NA else "NaT"}
    document = {"type": type(value).__name__, "v": value.isoformat(), "unit": value.unit}
    if isinstance(value, pandas.Timestamp):
        if not MINYEAR <= value.year <= MAXYEAR:  # pandas cannot read such a text
            document["v"] = int(value.asm8.view("i8"))
        if value.tz is not None and (zone := _get_zone_name(value.tz)) is not None:
            document["zone"] = zone
    return document


def _get_zone_name(zone: Any) -> str | None:
    """Return the name by which pandas finds a time zone; None for one without such a name."""
    name = call(str, zone)
    return name if isinstance(name, str) and _is_zone_name(name) else None


@lru_cache(maxsize=256)
def _is_zone_name(name: str) -> bool:
    pandas = import_module("pandas")
    return call(lambda: pandas.Timestamp(0, tz=name)) is not UNREADABLE


def load_scalar(document: Mapping[str, Any]) -> Any:
    """Return the value written by `dump_scalar`."""
    pandas = import_module("pandas")
    match document["type"]:
        case "NA":
            return pandas.NA
        case "NaT":
            return pandas.NaT
        case "Timedelta":
            return pandas.Timedelta(document["v"]).as_unit(document["unit"])
    text = document["v"]
    if isinstance(text, int):
        moment = pandas.Timestamp(import_module("numpy").datetime64(text, document["unit"]))
        moment = moment.tz_localize("UTC") if "zone" in document else moment
    else:
        moment = pandas.Timestamp(text).as_unit(document["unit"])
    return moment.tz_convert(document["zone"]) if "zone" in document else moment


# -- arrays and frames -------------------------------------------------------------------------------------------------

LARGEST_TEXTS = 100_000_000  # bytes of a string array whose strings are much shorter than its item size
MOST_LABELS = 10_000  # rows of a frame that is small enough to be a mapping of settings
LARGEST_SECRET = 10_000_000  # cells of a masked column created from a file, which stores only their number
Encode = Callable[..., Any]
Decode = Callable[[Any], Any]


def dump_array(value: Any, encode: Encode) -> dict[str, Any] | None:
    """Return a numpy scalar or array, a Series or a DataFrame as JSON; None if its type cannot be stored exactly."""
    numpy, pandas = sys.modules["numpy"], sys.modules.get("pandas")
    if pandas is None or not isinstance(value, pandas.Series | pandas.DataFrame):
        if not isinstance(value, numpy.generic) and type(value) not in (numpy.ndarray, numpy.memmap):
            return None  # a masked array or a matrix would be restored as another value
        column = _dump_numpy(numpy.asarray(value), encode)
        return column and {"type": "scalar" if isinstance(value, numpy.generic) else "array", "v": column}
    index = _dump_index(value.index, encode)
    if isinstance(value, pandas.Series):
        column = {"secret": len(value)} if is_secret(value.name) else _dump_column(value.array, encode)
        parts = {"type": "series", "index": index, "name": encode(value.name), "v": column}
        return parts | _dump_attributes(value, encode) if index and column else None
    labels = _dump_index(value.columns, encode)
    columns = [
        {"secret": len(value)} if is_secret(label) else _dump_column(value.iloc[:, at].array, encode)
        for at, label in enumerate(value.columns)
    ]
    parts = {"type": "frame", "index": index, "columns": labels, "v": columns}
    return parts | _dump_attributes(value, encode) if index and labels and all(columns) else None


def _dump_attributes(value: Any, encode: Encode) -> dict[str, Any]:
    attributes = {"attrs": encode(value.attrs)} if value.attrs else {}
    return attributes if value.flags.allows_duplicate_labels else {**attributes, "unique": True}


def _load_attributes(value: Any, document: Mapping[str, Any], decode: Decode) -> Any:
    value.attrs = decode(document.get("attrs", {}))
    value.flags.allows_duplicate_labels = "unique" not in document
    return value


def mask_array(value: Any, mask: Callable[..., Any]) -> Any:
    """Return a copy of an array or frame in which `mask(item, name)` replaces each item that may be a secret."""
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        columns = [_mask_column(value.iloc[:, at], label, mask) for at, label in enumerate(value.columns)]
        copied = pandas.DataFrame(dict(enumerate(columns)), index=_mask_labels(value.index, mask))
        copied.columns = _mask_labels(value.columns, mask)
        copied.attrs = mask(value.attrs)
        return copied
    if pandas is not None and isinstance(value, pandas.Series):
        copied = _mask_column(value, value.name, mask).copy()
        copied.index = _mask_labels(value.index, mask)
        copied.name, copied.attrs = mask(value.name), mask(value.attrs)
        return copied
    if numpy is None or value.dtype.kind not in "OUS":
        return value.copy()
    items = [mask(item) for item in value.ravel().tolist()]
    if value.dtype.kind == "U":
        return numpy.array(items, dtype=str).reshape(value.shape) if items else value.copy()
    return numpy.fromiter(items, object, len(items)).reshape(value.shape)


def _mask_labels(labels: Any, mask: Callable[..., Any]) -> Any:
    """Return the labels of an axis; the same ones if nothing in them is a secret."""
    items = labels.tolist() if labels.dtype.kind in "OU" or labels.dtype.name in ("str", "string") else []
    masked = [mask(item) for item in items]
    if all(new is old or (type(new) is type(old) and new == old) for new, old in zip(masked, items, strict=True)):
        return labels
    pandas = sys.modules["pandas"]
    if isinstance(labels, pandas.MultiIndex):
        return pandas.MultiIndex.from_tuples(masked, names=labels.names)
    return pandas.Index(masked, name=labels.name, dtype=object)


def list_cells(value: Any) -> list[Any]:
    """Return the first 10,000 cells of an array, a Series or a DataFrame."""
    cells = value.to_numpy(dtype=object) if hasattr(value, "iloc") else value
    return list(cells.ravel()[:MOST_LABELS].tolist())


def iter_secret_columns(value: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the secret columns and rows of a DataFrame or Series (labels that name secrets), each with its label.

    A frame of more than 10,000 rows has data in its rows, so their labels are not checked.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        columns = ((label, value.iloc[:, at]) for at, label in enumerate(value.columns))
    elif pandas is not None and isinstance(value, pandas.Series):
        columns = ((each.name, each) for each in (value,))
    else:
        return
    yield from ((label, column.tolist()) for label, column in columns if is_secret(label))
    if len(value.index) <= MOST_LABELS:
        rows = ((label, at) for at, label in enumerate(value.index) if is_secret(label))
        yield from ((label, value.iloc[at : at + 1].to_numpy(dtype=object).ravel().tolist()) for label, at in rows)


def _mask_column(column: Any, label: Any, mask: Callable[..., Any]) -> Any:
    is_text = column.dtype.kind in "OU" or column.dtype.name in ("str", "string")
    if not is_text and not is_secret(label):
        return column
    items = [mask(item, label) for item in column]
    if all(new is old for new, old in zip(items, column, strict=True)):
        return column
    pandas = sys.modules["pandas"]
    return pandas.Series(items, index=column.index, name=column.name, dtype=object)


def _dump_numpy(value: Any, encode: Encode) -> dict[str, Any] | None:
    data = value.tobytes() if value.dtype.kind == "S" else b""
    if value.dtype.kind == "O" or mask_bytes(data) != data:
        return {"shape": list(value.shape), "items": [encode(item) for item in value.ravel().tolist()]}
    if value.dtype.kind == "U":
        return {
            "shape": list(value.shape),
            "dtype": value.dtype.str,
            "items": [encode(str(item)) for item in value.flat],
        }
    if value.dtype.kind not in "biufcmMS":
        return None
    return {"shape": list(value.shape), "dtype": value.dtype.str, "v": base64.b64encode(value.tobytes()).decode()}


def _dump_column(value: Any, encode: Encode) -> dict[str, Any] | None:
    """Return a pandas column as JSON: numpy dtypes, categories, times with zones, and nullable dtypes."""
    pandas, numpy = sys.modules["pandas"], sys.modules["numpy"]
    boxed = isinstance(value, pandas.arrays.NumpyExtensionArray) and not isinstance(value.dtype, pandas.StringDtype)
    if boxed or isinstance(value.dtype, numpy.dtype):
        return _dump_numpy(numpy.asarray(value), encode)
    if isinstance(value, pandas.Categorical):
        categories = _dump_index(value.categories, encode)
        codes = value.codes.tolist()
        return categories and {"categories": categories, "codes": codes, "ordered": bool(value.ordered)}
    if isinstance(value.dtype, pandas.DatetimeTZDtype):
        naive = numpy.asarray(value.tz_convert("UTC").tz_localize(None))
        zone = _get_zone_name(value.dtype.tz)
        return None if zone is None else {"zone": zone, "v": _dump_numpy(naive, encode)}
    name = str(value.dtype)
    if name in {"str", "string", "boolean"} or name.lower().startswith(("int", "uint", "float")):
        items = [encode(None if item is pandas.NA else item) for item in value.astype(object)]
        # The storage that is chosen by default depends on whether pyarrow is installed.
        is_python = getattr(value.dtype, "storage", "") == "python"
        return (
            {"pandas": name, "items": items, **({"storage": "python"} if is_python else {})}
            if "[" not in name
            else None
        )
    return None


def _dump_index(value: Any, encode: Encode) -> dict[str, Any] | None:
    pandas = sys.modules["pandas"]
    if isinstance(value, pandas.RangeIndex):
        return {"range": [value.start, value.stop, value.step], "name": encode(value.name)}
    if isinstance(value, pandas.MultiIndex):
        return {"tuples": [encode(item) for item in value], "names": [encode(name) for name in value.names]}
    column = _dump_column(value.array, encode)
    frequency = getattr(value, "freq", None)
    parts = {"v": column, "name": encode(value.name)}
    return column and (parts if frequency is None else {**parts, "freq": frequency.freqstr})


def load_array(document: Mapping[str, Any], decode: Decode) -> Any:
    """Return the value written by `dump_array`."""
    match document["type"]:
        case "scalar":
            return _load_column(document["v"], decode)[()]
        case "array":
            return _load_column(document["v"], decode)
        case "series":
            index = _load_index(document["index"], decode)
            column = _load_column(document["v"], decode, len(index))
            series = import_module("pandas").Series(column, index=index, name=decode(document["name"]))
            return _load_attributes(series, document, decode)
    index = _load_index(document["index"], decode)
    secrets = sum("secret" in column for column in document["v"])
    if secrets * len(index) > LARGEST_SECRET:
        raise ValueError(f"{secrets} masked columns of {len(index)} cells")
    columns = [_load_column(column, decode, len(index)) for column in document["v"]]
    frame = import_module("pandas").DataFrame(dict(enumerate(columns)), index=index)
    frame.columns = _load_index(document["columns"], decode)
    return _load_attributes(frame, document, decode)


def _load_column(column: Mapping[str, Any], decode: Decode, rows: int = 0) -> Any:
    """Return a column. A secret's column has no stored cells; it is filled with one mask per row."""
    numpy = import_module("numpy")
    if "secret" in column:
        if column["secret"] != rows or rows > LARGEST_SECRET:
            raise ValueError(f"{safe_str(column['secret'])} cells for {rows} rows")
        return numpy.full(rows, MASK, dtype=object)
    if "categories" in column:
        categories = _load_index(column["categories"], decode)
        return import_module("pandas").Categorical.from_codes(column["codes"], categories, ordered=column["ordered"])
    if "zone" in column:
        naive = import_module("pandas").DatetimeIndex(_load_column(column["v"], decode))
        return naive.tz_localize("UTC").tz_convert(column["zone"]).array
    if "pandas" in column:
        pandas, name = import_module("pandas"), column["pandas"]
        if column.get("storage") == "python":
            name = pandas.StringDtype("python", **({} if name == "string" else {"na_value": math.nan}))
        return pandas.array([decode(item) for item in column["items"]], dtype=name)
    if "items" in column:
        items = [decode(item) for item in column["items"]]
        if "dtype" in column and numpy.dtype(column["dtype"]).itemsize * len(items) > max(
            LARGEST_TEXTS, 100 * sum(map(len, items))
        ):
            raise ValueError(f"{len(items)} strings of type {safe_str(column['dtype'])}, which are much shorter")
        array = (
            numpy.array(items, dtype=column["dtype"])
            if "dtype" in column
            else numpy.fromiter(items, object, len(items))
        )
        return array.reshape(column["shape"])
    array = numpy.frombuffer(base64.b64decode(column["v"]), dtype=column["dtype"])
    return array.reshape(column["shape"]).copy()


def _load_index(index: Mapping[str, Any], decode: Decode) -> Any:
    pandas = import_module("pandas")
    if "range" in index:
        return pandas.RangeIndex(*index["range"], name=decode(index["name"]))
    if "tuples" in index:
        names = [decode(name) for name in index["names"]]
        return pandas.MultiIndex.from_tuples([decode(item) for item in index["tuples"]], names=names)
    column = _load_column(index["v"], decode)
    labels = pandas.Index(column, name=decode(index["name"]), dtype=getattr(column, "dtype", None))
    if "freq" in index:
        labels.freq = index["freq"]
    return labels
