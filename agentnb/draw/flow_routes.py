"""Routes of reads and writes: from a node to the corridor beside the board, around the nodes between them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from agentnb.draw.shapes import Point

_CLEAR: Final = 5.0  # points between a line and the nodes that it passes
_LEAVE: Final = 8.0  # points from a node to its line's first corner


class Band(NamedTuple):
    """A stretch across the drawing that nodes occupy: from `low` to `high`; the last of them begins at `last`."""

    low: float
    high: float
    last: float


class Bands:
    """The bands of a drawing, which tell where a line to the board is free.

    Lines run along one axis, to the right if `across` is False, else downwards; bands are measured along the other one.
    """

    def __init__(self, nodes: Iterable[tuple[Point, float, float]], *, across: bool) -> None:
        """Take nodes as (centre, width, height)."""
        spans = []
        for (x, y), width, height in nodes:
            along, side, depth, reach = (y, x, width, height) if across else (x, y, height, width)
            spans.append((side - depth / 2 - _CLEAR, side + depth / 2 + _CLEAR, along - reach / 2))
        merged: list[Band] = []
        for low, high, start in sorted(spans):
            if merged and low < merged[-1].high:
                before = merged[-1]
                merged[-1] = Band(before.low, max(before.high, high), max(before.last, start))
            else:
                merged.append(Band(low, high, start))
        self._bands, self._lows = merged, [band.low for band in merged]
        self._across = across

    def corners(self, near: Point, corridor: float, end: float) -> list[Point]:
        """Return the corners of a line from a node's side `near` to the corridor, and in it to `end`.

        If a node lies between them, the line leaves the node's band first, on the side on which its end lies.
        """
        along, side = self._make_turn(near)
        corners: list[Point] = []
        index = bisect_right(self._lows, side) - 1
        band = self._bands[index] if index >= 0 else None
        if band is not None and side < band.high and band.last > along:
            first, side = along + _LEAVE, band.low if end < side else band.high
            corners = [(first, self._make_turn(near)[1]), (first, side)]
        corners += [(corridor, side), (corridor, end)]
        return [self._make_turn(corner) for corner in corners]

    def _make_turn(self, point: Point) -> Point:
        return (point[1], point[0]) if self._across else point
