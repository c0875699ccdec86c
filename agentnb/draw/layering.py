"""Layered layout: assign items to layers, order them with few crossings, and position them (Sugiyama's method)."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

Item = Hashable
Pair = tuple[Item, Item]
_SWEEPS: Final = 8
_ALIGNMENTS: Final = 16
_GAPS: Final = (22.0, 16.0, 12.0)
MOST_BENDS: Final = 6000


@dataclass(frozen=True, slots=True)
class Bend:
    """The point where line number `line` passes layer `layer` without an item."""

    line: int
    layer: int


def find_reversed_lines(items: Sequence[Item], lines: Sequence[Pair], reversed_items: Iterable[int]) -> list[bool]:
    """Return for each line whether to reverse it so that no cycle remains, preferring those in `reversed_items`."""
    flip = [False] * len(lines)
    for index in reversed_items:
        flip[index] = True
    out: dict[Item, list[int]] = defaultdict(list)
    for index, (source, target) in enumerate(lines):
        out[target if flip[index] else source].append(index)
    open_, done = set(), set()
    for start in items:
        if start in done:
            continue
        stack = [(start, iter(out[start]))]
        open_.add(start)
        while stack:
            item, outgoing = stack[-1]
            for index in outgoing:
                source, target = lines[index]
                neighbor = source if flip[index] else target
                if neighbor in open_:
                    flip[index] = not flip[index]
                elif neighbor not in done:
                    open_.add(neighbor)
                    stack.append((neighbor, iter(out[neighbor])))
                    break
            else:
                stack.pop()
                open_.discard(item)
                done.add(item)
    return flip


def assign_layers(items: Sequence[Item], lines: Iterable[Pair]) -> dict[Item, int]:
    """Return the layer of each item, even numbers only (odd layers are for labels): the longest path from a source."""
    import networkx as nx

    graph: nx.DiGraph[Item] = nx.DiGraph()
    graph.add_nodes_from(items)
    graph.add_edges_from(lines)
    generations = enumerate(nx.topological_generations(graph))
    layer = {item: 2 * level for level, generation in generations for item in generation}
    for item in items:
        if graph.in_degree(item) == 0 and graph.out_degree(item) > 0:
            layer[item] = min(layer[after] for after in graph.successors(item)) - 2
    return layer


def make_chains(lines: Sequence[Pair], layer: Mapping[Item, int]) -> list[list[Item]]:
    """Return each line's items and bends from layer to layer; if there are many, the longest lines have no bends."""
    spans = sorted(((layer[target] - layer[source] - 1, index) for index, (source, target) in enumerate(lines)))
    budget, result = MOST_BENDS + 2 * len(lines), [list(line) for line in lines]
    for span, index in spans:
        budget -= span
        if budget < 0 and span > 1:
            break
        source, target = lines[index]
        bends = [Bend(index, level) for level in range(layer[source] + 1, layer[target])]
        result[index] = [source, *bends, target]
    return result


def order_layer(layer: Mapping[Item, int], chains: Sequence[Sequence[Item]]) -> list[list[Item]]:
    """Return the items and bends of each layer in an order with few crossings."""
    up, down = _list_neighbors(layer, chains)
    level: dict[Item, int] = {
        **layer,
        **{bend: bend.layer for chain in chains for bend in chain if isinstance(bend, Bend)},
    }
    rows: list[list[Item]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for item in _walk(level, down):
        rows[level[item]].append(item)
    best, fewest = [list(row) for row in rows], count_crossings(rows, down)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        downwards = sweep % 2 == 0
        for number in range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1):
            neighbor_row = rows[number - 1] if downwards else rows[number + 1]
            positions = {item: index for index, item in enumerate(neighbor_row)}
            _sort(rows[number], positions, up if downwards else down)
        count = count_crossings(rows, down)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
    return best


def _list_neighbors(
    layer: Mapping[Item, int], chains: Sequence[Sequence[Item]]
) -> tuple[dict[Item, list[Item]], dict[Item, list[Item]]]:
    up: dict[Item, list[Item]] = defaultdict(list)
    down: dict[Item, list[Item]] = defaultdict(list)
    for chain in chains:
        for item, neighbor in pairwise(chain):
            if len(chain) > 2 or layer[neighbor] - layer[item] == 1:
                down[item].append(neighbor)
                up[neighbor].append(item)
    return up, down


def _walk(level: Mapping[Item, int], down: Mapping[Item, list[Item]]) -> list[Item]:
    """Return every item once, depth first from the first layers: connected items start together."""
    seen: dict[Item, None] = {}
    for start in sorted(level, key=lambda item: level[item]):
        stack = [start]
        while stack:
            item = stack.pop()
            if item not in seen:
                seen[item] = None
                stack.extend(reversed(down.get(item, [])))
    return list(seen)


def _sort(row: list[Item], positions: Mapping[Item, int], neighbors: Mapping[Item, list[Item]]) -> None:
    """Sort a row by the mean position of each item's neighbors; an item without neighbors does not move."""
    key = {}
    for index, item in enumerate(row):
        neighbor_positions = [positions[other] for other in neighbors.get(item, ()) if other in positions]
        key[item] = sum(neighbor_positions) / len(neighbor_positions) if neighbor_positions else float(index)
    row.sort(key=lambda item: key[item])


def count_crossings(rows: Sequence[Sequence[Item]], down: Mapping[Item, list[Item]]) -> int:
    """Return the number of crossings between neighboring rows."""
    count = 0
    for row, below in pairwise(rows):
        positions = {item: index for index, item in enumerate(below)}
        ends: list[int] = []
        for item in row:
            neighbor_positions = sorted(positions[other] for other in down.get(item, ()) if other in positions)
            count += sum(len(ends) - bisect_right(ends, end) for end in neighbor_positions)
            for end in neighbor_positions:
                insort(ends, end)
    return count


def place_items(
    rows: Sequence[Sequence[Item]], chains: Sequence[Sequence[Item]], widths: Mapping[Item, float]
) -> dict[Item, float]:
    """Return the center of each item across the layers: aligned with its neighbors, in order, without overlaps."""
    up, down = _compute_pulls(chains), _compute_pulls([chain[::-1] for chain in chains])
    both = {item: up.get(item, []) + down.get(item, []) for item in {**up, **down}}
    x: dict[Item, float] = {}
    for row in rows:
        offset = 0.0
        for previous, item in pairwise([None, *row]):
            offset += (get_gap(previous, item) if previous is not None else 0.0) + widths[item] / 2
            x[item] = offset
            offset += widths[item] / 2
    for turn in range(_ALIGNMENTS):
        # First each direction separately, so that a whole chain is aligned at once; then both together.
        downwards = turn % 2 == 0
        neighbors = both if turn >= _ALIGNMENTS // 2 else up if downwards else down
        for row in rows if downwards else reversed(rows):
            _settle(row, x, neighbors, widths)
    left = min((x[item] - widths[item] / 2 for item in x), default=0.0)
    return {item: offset - left for item, offset in x.items()}


def _compute_pulls(chains: Iterable[Sequence[Item]]) -> dict[Item, list[tuple[Item, float]]]:
    """Return each item's predecessors on its lines with weights: highest for bends, so long lines are straight."""
    pulls: dict[Item, list[tuple[Item, float]]] = defaultdict(list)
    for chain in chains:
        for previous, item in pairwise(chain):
            pulls[item].append((previous, 1.0 + 3.0 * (isinstance(previous, Bend) + isinstance(item, Bend))))
    return pulls


def get_gap(left: Item, right: Item) -> float:
    """Return the space between two neighbors: least between two lines, most between two boxes."""
    return _GAPS[isinstance(left, Bend) + isinstance(right, Bend)]


def _settle(
    row: Sequence[Item],
    x: dict[Item, float],
    neighbors: Mapping[Item, list[tuple[Item, float]]],
    widths: Mapping[Item, float],
) -> None:
    """Move a row's items to the median of their neighbors; resolve overlaps by least squares."""
    blocks: list[tuple[float, float, int]] = []  # sum of weight times target, sum of weight, number of items
    offset, offsets = 0.0, []
    for previous, item in pairwise([None, *row]):
        if previous is not None:
            offset += (widths[previous] + widths[item]) / 2 + get_gap(previous, item)
        offsets.append(offset)
        linked = neighbors.get(item, [])
        weight = sum(pull for _, pull in linked) or 0.1
        target = _compute_median([(x[neighbor], pull) for neighbor, pull in linked]) if linked else x[item]
        blocks.append(((target - offset) * weight, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = (blocks[-1][0] + last[0], blocks[-1][1] + last[1], blocks[-1][2] + last[2])
    index = 0
    for total, weight, size in blocks:
        for number in range(index, index + size):
            x[row[number]] = total / weight + offsets[number]
        index += size


def _compute_median(targets: list[tuple[float, float]]) -> float:
    """Return the weighted median; between two equal halves, the middle."""
    targets, half, used = sorted(targets), sum(weight for _, weight in targets) / 2, 0.0
    for (target, weight), following in zip(targets, [*targets[1:], targets[-1]], strict=True):
        used += weight
        if abs(used - half) < 1e-9:
            return (target + following[0]) / 2
        if used > half:
            return target
    return targets[-1][0]
