"""A layered layout for machines without Graphviz. Requires only networkx.

Every region is laid out separately and then placed in its parent as one large item below its owner, so its frame is
always a rectangle. The layout is computed downwards; other directions are transformed at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from agentnb.draw.diagram import EDGE_SIZE, Link, Picture
from agentnb.draw.edge_routes import LOOP, PlacedBox, make_loop_route, make_route
from agentnb.draw.geometry import Geometry, Rectangle, Route, measure_title
from agentnb.draw.layering import Bend, Item, assign_layers, find_reversed_lines, make_chains, order_layer, place_items
from agentnb.draw.shapes import Point

_BETWEEN: Final = 19.0
_PAD: Final = 14.0
_TITLE: Final = 18.0
Frames = Mapping[str, Rectangle]


@dataclass(slots=True)
class _Part:
    """One separately laid out region: its size, and the positions of its items and of the bends of its lines."""

    width: float = 0.0
    height: float = 0.0
    centers: dict[Item, Point] = field(default_factory=dict)
    bands: dict[Item, tuple[float, float]] = field(default_factory=dict)
    routes: list[tuple[Link, list[Item]]] = field(default_factory=list)


def compute_plain_layout(picture: Picture) -> Geometry:
    """Return the layout of a picture; works for every recipe, and resembles that of Graphviz."""
    return _PlainLayout(picture).geometry()


class _PlainLayout:
    """One layout: sizes from the inside out, then positions from the outside in, then the lines."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.across = picture.direction in ("LR", "RL")
        self.boxes = {box.name: box for box in picture.boxes}
        self.areas = {area.name: area for area in picture.areas}
        self.home = {box.name: box.area for box in picture.boxes} | {a.name: a.parent for a in picture.areas}
        self.parts: dict[str, _Part] = {}
        self.lines: dict[str, list[tuple[Link, str, str]]] = {}
        for link in picture.links:
            scope, source, target = self._find_common_region(link.source, link.target)
            self.lines.setdefault(scope, []).append((link, source, target))
        self.order: dict[str, dict[tuple[str, str], None]] = {}
        for ends in picture.order:
            scope, source, target = self._find_common_region(*ends)
            if source != target:
                self.order.setdefault(scope, {})[source, target] = None

    def geometry(self) -> Geometry:
        """Compute the layout and transform it to the picture's direction."""
        for area in reversed(["", *self.areas]):
            self.parts[area] = self._make_part(area)
        spots, frames = self._compute_absolute()
        routes = {
            link.name: self._route(link, route, area, spots, frames)
            for area, part in self.parts.items() for link, route in part.routes
        }  # fmt: skip
        whole = self.parts[""]
        frames.pop("")
        return _transform(Geometry(whole.width, whole.height, spots, frames, routes), self.picture.direction)

    def _find_common_region(self, first: str, second: str) -> tuple[str, str, str]:
        """Return the innermost region that holds both ends, and the two items in it that the ends belong to."""
        chains = [self._list_ancestors(end) for end in (first, second)]
        if first == second:
            return self.home[first], first, second
        scope = next(area for area in chains[0] if area in chains[1])
        source, target = (end[-1] if (end := self._list_below(name, scope)) else name for name in (first, second))
        return scope, source, target

    def _list_ancestors(self, name: str) -> list[str]:
        ancestors = []
        while name:
            name = self.home[name]
            ancestors.append(name)
        return ancestors

    def _list_below(self, name: str, scope: str) -> list[str]:
        chain = []
        while name != scope:
            chain.append(name)
            name = self.home[name]
        return chain

    def _get_size(self, item: str) -> Point:
        """Return width and height of a box or area as the layers see it (swapped if layers run across)."""
        if item in self.boxes:
            box = self.boxes[item]
            return (box.height, box.width) if self.across else (box.width, box.height)
        part, room = self.parts[item], measure_title(self.areas[item]) + 2 * _PAD
        if self.across:
            return part.width + 2 * _PAD + _TITLE, max(part.height + 2 * _PAD, room)
        return max(part.width + 2 * _PAD, room), part.height + 2 * _PAD + _TITLE

    def _make_part(self, area: str) -> _Part:
        items = [name for name, home in self.home.items() if home == area]
        lines = [line for line in self.lines.get(area, []) if line[1] != line[2]]
        loops = [line for line in self.lines.get(area, []) if line[1] == line[2]]
        level, chains, flips = self._assign_levels(area, items, lines)
        widths, heights = self._compute_sizes(items, chains, [line[0] for line in lines])
        for link, item, _ in loops:
            widths[item] += 2 * (LOOP + self._place_label(link)[0])
        rows = order_layer(level, chains)
        x = place_items(rows, chains, widths)
        part = _Part(width=max((x[item] + widths[item] / 2 for item in x), default=0.0))
        self._stack_parts(part, rows, x, heights)
        part.routes = [
            (line[0], chain[::-1] if flip else chain) for line, chain, flip in zip(lines, chains, flips, strict=True)
        ] + [(link, [item]) for link, item, _ in loops]
        return part

    def _assign_levels(
        self, area: str, items: list[str], lines: list[tuple[Link, str, str]]
    ) -> tuple[dict[Item, int], list[list[Item]], list[bool]]:
        """Return the layer of each item, the items of each line through the layers, and which lines run upwards."""
        back = (index for index, (link, _, _) in enumerate(lines) if link.kind == "loop_back")
        pairs = [*((source, target) for _, source, target in lines), *self.order.get(area, ())]
        flips = find_reversed_lines(items, pairs, back)
        fixed = [pair[::-1] if flip else pair for pair, flip in zip(pairs, flips, strict=True)]
        shown = fixed[: len(lines)]
        wished = [pair for pair, flip in list(zip(fixed, flips, strict=True))[len(lines) :] if not flip]
        level = assign_layers(items, [*shown, *wished])
        return level, make_chains(shown, level), flips[: len(lines)]

    def _place_label(self, link: Link) -> Point:
        if not link.label:
            return (0.0, 0.0)
        size = (link.label_width, EDGE_SIZE + 5)
        return size[::-1] if self.across else size

    def _compute_sizes(
        self, items: list[str], chains: list[list[Item]], links: list[Link]
    ) -> tuple[dict[Item, float], dict[Item, float]]:
        widths: dict[Item, float] = {}
        heights: dict[Item, float] = {}
        for item in items:
            widths[item], heights[item] = self._get_size(item)
        for chain, link in zip(chains, links, strict=True):
            for bend in chain[1:-1]:
                widths[bend], heights[bend] = 4.0, 0.0
            if len(chain) > 2:
                wide, high = self._place_label(link)
                middle = find_label_bend(chain)
                widths[middle], heights[middle] = max(wide, 4.0), high
        return widths, heights

    def _stack_parts(
        self, part: _Part, rows: list[list[Item]], x: Mapping[Item, float], heights: Mapping[Item, float]
    ) -> None:
        """Assign each row its band of height; beside a big area the others are at the band's upper edge."""
        top = 0.0
        for number, row in enumerate(rows):
            high = max((heights[item] for item in row), default=0.0)
            hang = any(item in self.areas for item in row)
            for item in row:
                y = top + (min(heights[item], high) / 2 if hang else high / 2)
                part.centers[item] = (x[item], y)
                part.bands[item] = (top, top + high)
            part.height = top + high
            top += high + (_BETWEEN if number + 1 < len(rows) else 0.0)

    def _compute_absolute(self) -> tuple[dict[str, Point], dict[str, Rectangle]]:
        """Return the position of each box and the frame of each area; "" is the whole, whose inside starts at 0, 0."""
        spots: dict[str, Point] = {}
        frames: dict[str, Rectangle] = {"": (0.0, 0.0, self.parts[""].width, self.parts[""].height)}
        for area in ["", *self.areas]:
            for item, middle in self.parts[area].centers.items():
                if not isinstance(item, str):
                    continue
                x, y = self._place_inside(area, frames, middle)
                if item in self.boxes:
                    spots[item] = (x, y)
                else:
                    width, height = self._get_size(item)
                    frames[item] = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        return spots, frames

    def _place_inside(self, area: str, frames: Frames, position: Point) -> Point:
        left, top, right, _ = frames[area]
        if not area:
            return position
        inner = self.parts[area].width
        if self.across:
            return left + _TITLE + _PAD + position[0], top + _PAD + position[1]
        # after turning it upside down, the title is at the top again
        title = 0.0 if self.picture.direction == "BT" else _TITLE
        return left + (right - left - inner) / 2 + position[0], top + title + _PAD + position[1]

    def _route(self, link: Link, chain: list[Item], area: str, spots: Mapping[str, Point], frames: Frames) -> Route:
        part = self.parts[area]
        ends = (link.source, link.target)
        source, target = (PlacedBox(*spots[end], *self._get_size(end), self.boxes[end].shape) for end in ends)
        if len(chain) == 1:
            return make_loop_route(source, self._place_label(link)[0], labeled=bool(link.label))
        shift = self._place_inside(area, frames, (0.0, 0.0))
        bands = [(part.bands[item][0] + shift[1], part.bands[item][1] + shift[1]) for item in chain]
        bends = [(part.centers[item][0] + shift[0], band) for item, band in zip(chain[1:-1], bands[1:-1], strict=True)]
        label = None
        if link.label and bends:
            x, y = part.centers[find_label_bend(chain)]
            label = (x + shift[0], y + shift[1])
        return make_route(source, target, bands[0], bends, bands[-1], label, bare=bool(link.label) and not bends)


def find_label_bend(chain: list[Item]) -> Item:
    """Return the bend that carries a line's label: in an odd layer near its middle, without boxes."""
    bends = sorted((item for item in chain if isinstance(item, Bend)), key=lambda bend: bend.layer)
    return bends[len(bends) // 2 - (len(bends) // 2) % 2]


def _transform(geometry: Geometry, direction: str) -> Geometry:
    """Return the downward layout transformed: TB unchanged, BT upside down, LR to the right, RL to the left."""
    width, height = geometry.width, geometry.height
    if direction == "TB":
        return geometry

    def transform_point(point: Point) -> Point:
        x, y = point
        if direction == "BT":
            return x, height - y
        return (y if direction == "LR" else height - y), x

    areas = {}
    for name, (left, top, right, bottom) in geometry.areas.items():
        (x1, y1), (x2, y2) = transform_point((left, top)), transform_point((right, bottom))
        areas[name] = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
    routes = {
        name: Route(
            tuple(map(transform_point, route.points)),
            transform_point(route.tip),
            transform_point(route.label) if route.label else None,
        )
        for name, route in geometry.routes.items()
    }
    boxes = {name: transform_point(position) for name, position in geometry.boxes.items()}
    size = (width, height) if direction == "BT" else (height, width)
    return Geometry(*size, boxes, areas, routes)
