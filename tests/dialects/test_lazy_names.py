from __future__ import annotations

import sys
from types import ModuleType

import pytest

from agentnb.dialects.lazy_names import make_lazy_getattr


def test_a_name_is_imported_when_it_is_used_and_stays(monkeypatch):
    package = ModuleType("made_package")
    monkeypatch.setitem(sys.modules, "made_package", package)
    get_attribute = make_lazy_getattr("made_package", {"sqrt": "math"})
    assert not hasattr(package, "sqrt")
    assert get_attribute("sqrt")(9) == 3
    assert package.sqrt(4) == 2


def test_any_other_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'made_package' has no attribute 'cube'"):
        make_lazy_getattr("made_package", {})("cube")
