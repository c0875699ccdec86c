"""foreign: values of pydantic, numpy and pandas, looked up only where the user has imported them already.

Reading a stored array or frame is the one place that asks for its library: it cannot be shown without it.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def is_scalar(value: Any) -> bool:
    """Say whether this is a numpy scalar."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def is_array(value: Any) -> bool:
    """Say whether this is a numpy array, a pandas DataFrame or a Series."""
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return True
    return pandas is not None and hasattr(pandas, "Series") and isinstance(value, pandas.DataFrame | pandas.Series)


def copied(value: Any) -> Any:
    """Return a copy that shares nothing with the array or frame given."""
    return value.copy()


def same_array(one: Any, other: Any) -> bool:
    """Say whether two arrays or frames hold the same values in the same types."""
    if type(one) is not type(other) or one.shape != other.shape:
        return False
    if hasattr(one, "equals"):
        return bool(one.equals(other))
    if one.dtype != other.dtype:
        return False
    return bool((one == other).all()) if one.dtype.hasobject else one.tobytes() == other.tobytes()


def model_fields(value: Any) -> Sequence[str] | None:
    """Return the names of a pydantic object's fields, extra ones included; None for anything else."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(value, pydantic.BaseModel):
        return None
    return list(value.__dict__)


def is_model(cls: type) -> bool:
    """Say whether a class is one of pydantic's models."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(cls, pydantic.BaseModel)


# -- scalars of pandas -------------------------------------------------------------------------------------------------


def is_scalar_of_pandas(value: Any) -> bool:
    """Say whether this is pandas' NA, NaT, Timestamp or Timedelta."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not hasattr(pandas, "Timestamp"):
        return False
    return value is pandas.NA or value is pandas.NaT or isinstance(value, pandas.Timestamp | pandas.Timedelta)


def dump_scalar(value: Any) -> dict[str, Any]:
    """Return pandas' NA, NaT, Timestamp or Timedelta as JSON."""
    pandas = sys.modules["pandas"]
    if value is pandas.NA or value is pandas.NaT:
        return {"type": "NA" if value is pandas.NA else "NaT"}
    document = {"type": type(value).__name__, "v": value.isoformat(), "unit": value.unit}
    if isinstance(value, pandas.Timestamp) and value.tz is not None:
        document["zone"] = str(value.tz)
    return document


def load_scalar(document: Mapping[str, Any]) -> Any:
    """Return what `dump_scalar` wrote."""
    pandas = import_module("pandas")
    match document["type"]:
        case "NA":
            return pandas.NA
        case "NaT":
            return pandas.NaT
        case "Timedelta":
            return pandas.Timedelta(document["v"]).as_unit(document["unit"])
    moment = pandas.Timestamp(document["v"]).as_unit(document["unit"])
    return moment.tz_convert(document["zone"]) if "zone" in document else moment


# -- arrays and frames -------------------------------------------------------------------------------------------------

Encode = Callable[..., Any]
Decode = Callable[[Any], Any]


def dump_array(value: Any, encode: Encode) -> dict[str, Any] | None:
    """Return a numpy scalar or array, a Series or a DataFrame as JSON; None where its type cannot be kept exactly."""
    from agentnb.board.secrets import is_secret

    numpy, pandas = sys.modules["numpy"], sys.modules.get("pandas")
    if pandas is None or not isinstance(value, pandas.Series | pandas.DataFrame):
        column = _dump_numpy(numpy.asarray(value), encode)
        return column and {"type": "scalar" if isinstance(value, numpy.generic) else "array", "v": column}
    index = _dump_index(value.index, encode)
    if isinstance(value, pandas.Series):
        column = _dump_column(value.array, encode)
        parts = {"type": "series", "index": index, "name": encode(value.name), "v": column}
        return parts if index and column else None
    labels = _dump_index(value.columns, encode)
    columns = [
        {"secret": len(value)} if is_secret(label) else _dump_column(value.iloc[:, at].array, encode)
        for at, label in enumerate(value.columns)
    ]
    parts = {"type": "frame", "index": index, "columns": labels, "v": columns}
    return parts if index and labels and all(columns) else None


def _dump_numpy(value: Any, encode: Encode) -> dict[str, Any] | None:
    if value.dtype.kind == "O":
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
    """Return one column of pandas: numpy's as they are, categories, zoned times, and the types that know NA."""
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
        return {"zone": str(value.dtype.tz), "v": _dump_numpy(naive, encode)}
    name = str(value.dtype)
    if name in {"str", "string", "boolean"} or name.lower().startswith(("int", "uint", "float")):
        items = [encode(None if item is pandas.NA else item) for item in value.astype(object)]
        return {"pandas": name, "items": items} if "[" not in name else None
    return None


def _dump_index(value: Any, encode: Encode) -> dict[str, Any] | None:
    pandas = sys.modules["pandas"]
    if isinstance(value, pandas.RangeIndex):
        return {"range": [value.start, value.stop, value.step], "name": encode(value.name)}
    if isinstance(value, pandas.MultiIndex):
        return {"tuples": [encode(item) for item in value], "names": [encode(name) for name in value.names]}
    column = _dump_column(value.array, encode)
    return column and {"v": column, "name": encode(value.name)}


def load_array(document: Mapping[str, Any], decode: Decode) -> Any:
    """Return what `dump_array` wrote."""
    match document["type"]:
        case "scalar":
            return _load_column(document["v"], decode)[()]
        case "array":
            return _load_column(document["v"], decode)
        case "series":
            column, index = _load_column(document["v"], decode), _load_index(document["index"], decode)
            return import_module("pandas").Series(column, index=index, name=decode(document["name"]))
    columns = [_load_column(column, decode) for column in document["v"]]
    frame = import_module("pandas").DataFrame(dict(enumerate(columns)), index=_load_index(document["index"], decode))
    frame.columns = _load_index(document["columns"], decode)
    return frame


def _load_column(column: Mapping[str, Any], decode: Decode) -> Any:
    numpy = import_module("numpy")
    if "secret" in column:
        from agentnb.board.secrets import MASK

        return numpy.full(column["secret"], MASK, dtype=object)
    if "categories" in column:
        categories = _load_index(column["categories"], decode)
        return import_module("pandas").Categorical.from_codes(column["codes"], categories, ordered=column["ordered"])
    if "zone" in column:
        naive = import_module("pandas").DatetimeIndex(_load_column(column["v"], decode))
        return naive.tz_localize("UTC").tz_convert(column["zone"]).array
    if "pandas" in column:
        return import_module("pandas").array([decode(item) for item in column["items"]], dtype=column["pandas"])
    if "items" in column:
        items = [decode(item) for item in column["items"]]
        made = (
            numpy.array(items, dtype=column["dtype"])
            if "dtype" in column
            else numpy.fromiter(items, object, len(items))
        )
        return made.reshape(column["shape"])
    made = numpy.frombuffer(base64.b64decode(column["v"]), dtype=column["dtype"])
    return made.reshape(column["shape"]).copy()


def _load_index(index: Mapping[str, Any], decode: Decode) -> Any:
    pandas = import_module("pandas")
    if "range" in index:
        return pandas.RangeIndex(*index["range"], name=decode(index["name"]))
    if "tuples" in index:
        names = [decode(name) for name in index["names"]]
        return pandas.MultiIndex.from_tuples([decode(item) for item in index["tuples"]], names=names)
    column = _load_column(index["v"], decode)
    return pandas.Index(column, name=decode(index["name"]), dtype=getattr(column, "dtype", None))
