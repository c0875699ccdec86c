"""Hostile input in bulk: `.ci/run` runs these tests, the everyday `pytest` does not."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.attack)
