from __future__ import annotations

import sys
from types import ModuleType

import pytest

from agentnb.dialects.lazy_names import make_lazy_names


def test_a_name_is_imported_when_it_is_used_and_stays(monkeypatch):
    package = ModuleType("made_package")
    monkeypatch.setitem(sys.modules, "made_package", package)
    get_attribute, list_names = make_lazy_names("made_package", {"sqrt": "math"})
    assert "sqrt" in list_names()
    assert not hasattr(package, "sqrt")
    assert get_attribute("sqrt")(9) == 3
    assert package.sqrt(4) == 2
    assert list_names() == sorted({*dir(package)})


def test_any_other_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'made_package' has no attribute 'cube'"):
        make_lazy_names("made_package", {})[0]("cube")
