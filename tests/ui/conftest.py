"""conftest: nobody sits at a terminal while the screen is tested."""

from __future__ import annotations

import io
import sys

import pytest


@pytest.fixture(autouse=True)
def _nobody_types(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
