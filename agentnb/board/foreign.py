"""foreign: values of pydantic, numpy and pandas, looked up only where the user has imported them already."""

from __future__ import annotations

import sys
from collections.abc import Sequence
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
