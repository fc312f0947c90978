"""Place the nodes of a drawing: layers from top to bottom, few crossings, short edges.

This is the method of Sugiyama, Tagawa and Toda (1981). Each node is a layer below its operands. An
edge over several layers has a point in each of them. The order in a layer follows the barycentre of
neighbours. Positions are moved towards neighbours as far as there is space.
"""

from __future__ import annotations

from collections.abc import Sequence

GAP_X, GAP_Y = 20.0, 26.0
_SWEEPS = 6


class Node:
    """A box of a size; `x` and `y` are of its middle and its top, once they are known."""

    def __init__(self, width: float, height: float):
        self.width, self.height = width, height
        self.above: list[Node] = []
        self.below: list[Node] = []
        self.layer = 0
        self.x = self.y = 0.0
        self.row = (0.0, 0.0)  # from where to where its layer reaches


def arrange_nodes(
    nodes: Sequence[Node], edges: Sequence[tuple[Node, Node]]
) -> tuple[list[list[tuple[float, float]]], float, float]:
    """Place nodes, which come in an order that edges follow; the paths of edges, and the size."""
    assign_layers(nodes, edges)
    rows: list[list[Node]] = [[] for _ in range(1 + max((n.layer for n in nodes), default=0))]
    for node in nodes:
        rows[node.layer].append(node)
    points: dict[tuple[Node, int], Node] = {}
    chains = [thread_edge(a, b, rows, points) for a, b in edges]
    for i in range(_SWEEPS):
        order_rows(rows, downward=i % 2 == 0)
    width = place_across(rows)
    height = 0.0
    for row in rows:
        tallest = max((n.height for n in row), default=0.0)
        for node in row:
            node.y = height + (tallest - node.height) / 2
            node.row = (height, height + tallest)
        height += tallest + GAP_Y
    paths = [trace_path(chain) for chain in chains]
    return paths, width, max(0.0, height - GAP_Y)


def assign_layers(nodes: Sequence[Node], edges: Sequence[tuple[Node, Node]]) -> None:
    """Place nodes below their operands, or just above their users if that shortens the edges."""
    needs: dict[Node, list[Node]] = {n: [] for n in nodes}
    used: dict[Node, list[Node]] = {n: [] for n in nodes}
    for a, b in edges:
        needs[b].append(a)
        used[a].append(b)
    for node in nodes:
        node.layer = 1 + max((a.layer for a in needs[node]), default=-1)
    for node in reversed(nodes):
        if used[node] and len(needs[node]) <= len(used[node]):
            node.layer = min(b.layer for b in used[node]) - 1


def thread_edge(
    a: Node, b: Node, rows: list[list[Node]], points: dict[tuple[Node, int], Node]
) -> list[Node]:
    """The nodes that an edge goes through, with one of no size in each layer between.

    Those `points` are shared by the edges from one node, which so are one line as far as they can.
    """
    chain = [a]
    for layer in range(a.layer + 1, b.layer):
        point = points.get((a, layer))
        if point is None:
            point = points[a, layer] = Node(2.0, 0.0)
            point.layer = layer
            rows[layer].append(point)
        chain.append(point)
    chain.append(b)
    for above, below in zip(chain, chain[1:], strict=False):
        if below not in above.below:
            above.below.append(below)
            below.above.append(above)
    return chain


def order_rows(rows: list[list[Node]], downward: bool) -> None:
    """Sort each layer by the mean place of the neighbours in the layer before."""
    place = {n: i for row in rows for i, n in enumerate(row)}
    for row in rows if downward else rows[::-1]:
        keys = {}
        for n in row:
            around = n.above if downward else n.below
            keys[n] = sum(place[m] for m in around) / len(around) if around else place[n]
        row.sort(key=keys.__getitem__)
        place.update((n, i) for i, n in enumerate(row))


def place_across(rows: list[list[Node]]) -> float:
    """Give each node an x near its neighbours'; the width."""
    for row in rows:
        spread_row(row, [0.0] * len(row))
    for i in range(2 * _SWEEPS):
        for row in rows if i % 2 == 0 else rows[::-1]:
            wish = []
            for n in row:
                around = (n.above if i % 2 == 0 else n.below) or [n]
                wish.append(sum(m.x for m in around) / len(around))
            spread_row(row, wish)
    left = min((n.x - n.width / 2 for row in rows for n in row), default=0.0)
    for row in rows:
        for n in row:
            n.x -= left
    return max((n.x + n.width / 2 for row in rows for n in row), default=0.0)


def spread_row(row: Sequence[Node], wish: Sequence[float]) -> None:
    """The places nearest to those wished for, in mean, at which nodes do not overlap.

    Nodes that would are put side by side, as a block around the mean of its wishes: isotonic
    regression, by pooling adjacent violators.
    """
    offset, offsets = 0.0, []
    for i, n in enumerate(row):
        offset += (n.width / 2 + row[i - 1].width / 2 + GAP_X) if i else 0.0
        offsets.append(offset)
    blocks: list[tuple[float, int]] = []  # the mean of wish - offset, and how many
    for w, o in zip(wish, offsets, strict=True):
        mean, count = w - o, 1
        while blocks and blocks[-1][0] > mean:
            before, n_before = blocks.pop()
            mean = (mean * count + before * n_before) / (count + n_before)
            count += n_before
        blocks.append((mean, count))
    means = [mean for mean, count in blocks for _ in range(count)]
    for n, mean, o in zip(row, means, offsets, strict=True):
        n.x = mean + o


def trace_path(chain: Sequence[Node]) -> list[tuple[float, float]]:
    """The points of an edge: straight through each layer, so that it meets no box beside it."""
    first, *between, last = chain
    points = [(first.x, first.y + first.height), (first.x, first.row[1])]
    for n in between:
        points += [(n.x, n.row[0]), (n.x, n.row[1])]
    return [*points, (last.x, last.row[0]), (last.x, last.y)]
