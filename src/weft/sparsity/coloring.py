"""Colorings: groups of columns or rows of a sparse matrix that one product can compute together.

A matrix is given by its pattern, a boolean matrix of scipy.sparse. Colors are integers from 0.
Source: A. H. Gebremedhin, F. Manne, A. Pothen, "What color is your Jacobian? Graph coloring for
computing derivatives", SIAM Review 47 (2005).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

Matrix = scipy.sparse.csr_array
MAX_TERMS = 32  # of an entry that is found by substitution, unless the user asks for more


class Round(NamedTuple):
    """A step of a substitution: `values[targets] += sign * values[sources]`, all at once."""

    targets: np.ndarray
    sources: np.ndarray
    sign: int


class Coloring(NamedTuple):
    """A plan for computing all entries of a matrix from few products with vectors.

    `columns[j]` is the color of column j: a product with a vector from the right adds up the
    columns of one color. `rows[i]` is the color of row i, for products with vectors from the left.
    Columns and rows of color -1 are in no product. Entry k of the pattern is at `places[k]` of the
    product of color `colors[k]`, from the left where `from_left[k]`. If there are `rounds`, that is
    an element of a product with other entries in it, which the rounds subtract.
    """

    columns: np.ndarray
    rows: np.ndarray
    from_left: np.ndarray
    colors: np.ndarray
    places: np.ndarray
    rounds: Sequence[Round] = ()

    @property
    def column_count(self) -> int:
        """The number of products with vectors from the right."""
        return int(self.columns.max(initial=-1)) + 1

    @property
    def row_count(self) -> int:
        """The number of products with vectors from the left."""
        return int(self.rows.max(initial=-1)) + 1


def color_columns(pattern: Matrix) -> np.ndarray:
    """Return a color for each column such that no row has two entries of one color.

    Columns without entries get the color -1.

    >>> color_columns(scipy.sparse.csr_array(np.eye(3, dtype=bool)))
    array([0, 0, 0])
    """
    by_column = scipy.sparse.csc_array(pattern)
    color = lambda order: color_greedily(pattern.shape[0], by_column, order)
    return choose_order(pattern, longest_row(pattern), color)


def color_greedily(
    count: int, by_column: scipy.sparse.csc_array, order: Sequence[int]
) -> np.ndarray:
    """Give each column, in an order, the first color that no column has with an entry in its rows.

    `count` is the number of rows. The colors in a row are the bits of an integer.
    """
    used = [0] * count
    starts, rows = by_column.indptr.tolist(), by_column.indices.tolist()
    colors = [-1] * (len(starts) - 1)
    for j in order:
        own = rows[starts[j] : starts[j + 1]]
        taken = 0
        for i in own:
            taken |= used[i]
        free = ~taken & (taken + 1)  # the lowest bit that is not set
        for i in own:
            used[i] |= free
        if own:
            colors[j] = free.bit_length() - 1
    return np.array(colors, int)


def color_stars(pattern: Matrix) -> np.ndarray:
    """Return a star coloring of the columns of a symmetric matrix.

    Columns with an entry in each other's row have different colors, and each path of four columns
    has three colors or more. Then each entry is the only one of its color in its row or in its
    column.
    """
    near, empty = list_neighbors(pattern)
    return choose_order(pattern, 0, lambda order: color_stars_greedily(near, empty, order))


def color_stars_greedily(
    near: Sequence[Sequence[int]], empty: Sequence[bool], order: Sequence[int]
) -> np.ndarray:
    """Give each column, in an order, the first color that a star coloring allows.

    `near` lists the other columns with an entry in the row of a column; a column without any entry
    is `empty`. Sets of colors are the bits of an integer. They are updated as columns get their
    colors, so that the time is proportional to the number of entries, also if a row is full.
    """
    colors = [-1] * len(near)
    around = [0] * len(near)  # the colors near a column
    # The number of columns of a color that are near a column, and the first of these columns.
    counts: list[dict[int, int]] = [{-1: 0} for _ in near]
    first: list[dict[int, int]] = [{} for _ in near]
    # The colors of those near a column w that have another column of the color of w near them.
    centers = [0] * len(near)
    for v in order:
        if empty[v]:
            continue
        taken = 0
        for w in near[v]:
            color = colors[w]
            # A path x, w, v, w' with w and w' of one color, or y, x, w, v with y and w of one.
            taken |= around[w] if color < 0 or counts[v][color] > 1 else centers[w]
            taken |= 1 << color if color >= 0 else 0
        bit = ~taken & (taken + 1)
        found = colors[v] = bit.bit_length() - 1
        for w in near[v]:
            around[w] |= bit
            number = counts[w][found] = counts[w].get(found, 0) + 1
            first[w].setdefault(found, v)
            color = colors[w]
            if color >= 0 and counts[v][color] > 1:
                centers[w] |= bit
            if color >= 0 and number > 1:
                centers[v] |= 1 << color
                centers[first[w][found]] |= 1 << color
    return np.array(colors, int)


def color_acyclically(pattern: Matrix) -> np.ndarray:
    """Return an acyclic coloring of the columns of a symmetric matrix.

    Columns with an entry in each other's row have different colors, and each cycle of columns has
    three colors or more. So the entries between columns of two colors form trees.
    """
    near, empty = list_neighbors(pattern)
    return choose_order(pattern, 0, lambda order: color_acyclically_greedily(near, empty, order))


def color_acyclically_greedily(
    near: Sequence[Sequence[int]], empty: Sequence[bool], order: Sequence[int]
) -> np.ndarray:
    """Give each column, in an order, the first color that an acyclic coloring allows.

    Arguments as for `color_stars_greedily`. A column of one color is in one tree with each other
    color. Trees are sets that are joined as columns get their colors. A column may not get a color
    if two columns near it, of another color, are in one tree with it already.

    Source: A. H. Gebremedhin, A. Tarafdar, F. Manne, A. Pothen, "New acyclic and star coloring
    algorithms with application to computing Hessians", SIAM J. Sci. Comput. 29 (2007).
    """
    colors = [-1] * len(near)
    trees: list[dict[int, int]] = [{} for _ in near]  # by the other color
    parents: list[int] = []

    def find(tree: int) -> int:
        while parents[tree] != tree:
            parents[tree] = tree = parents[parents[tree]]
        return tree

    def find_tree(v: int, color: int) -> int:
        if color not in trees[v]:
            trees[v][color] = len(parents)
            parents.append(len(parents))
        return find(trees[v][color])

    for v in order:
        if empty[v]:
            continue
        taken = 0
        groups: dict[int, list[int]] = {}
        for w in near[v]:
            if colors[w] >= 0:
                taken |= 1 << colors[w]
                groups.setdefault(colors[w], []).append(w)
        for group in groups.values():
            seen: set[int] = set()
            for w in group if len(group) > 1 else ():
                own = {(c, find(tree)) for c, tree in trees[w].items() if not taken >> c & 1}
                for c, tree in own:
                    taken |= (tree in seen) << c
                seen.update(tree for _, tree in own)
        color = colors[v] = (~taken & (taken + 1)).bit_length() - 1
        for other, group in groups.items():
            for w in group:
                parents[find_tree(w, color)] = find_tree(v, other)
    return np.array(colors, int)


def list_neighbors(pattern: Matrix) -> tuple[list[list[int]], list[bool]]:
    """Return, for each column, the others with an entry in its row; and if it has no entry."""
    starts, columns = pattern.indptr.tolist(), pattern.indices.tolist()
    near = [columns[a:b] for a, b in itertools.pairwise(starts)]
    empty = [not row for row in near]
    return [[w for w in row if w != v] for v, row in enumerate(near)], empty


def choose_order(pattern: Matrix, least: int, color: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Return the coloring with the fewest colors of those by different orders of the columns.

    The orders are the given one, and by falling number of entries. `least` colors are enough.
    """
    counts = np.bincount(pattern.indices, minlength=pattern.shape[1])
    best = None
    for order in (range(len(counts)), np.argsort(-counts, kind="stable").tolist()):
        colors = color(order)
        if best is None or colors.max(initial=-1) < best.max(initial=-1):
            best = colors
        if best.max(initial=-1) < least:
            break
    assert best is not None
    return best


# --- plans ----------------------------------------------------------------------------------------


def plan_columns(pattern: Matrix) -> Coloring:
    """Return the plan that computes a matrix from products with vectors from the right."""
    pattern = Matrix(pattern)
    columns = color_columns(pattern)
    colors = columns[pattern.indices]
    none = np.full(pattern.shape[0], -1)
    return Coloring(columns, none, np.zeros(len(colors), bool), colors, list_rows(pattern))


def plan_rows(pattern: Matrix) -> Coloring:
    """Return the plan that computes a matrix from products with vectors from the left."""
    rows = color_columns(Matrix(pattern.T))
    colors = rows[list_rows(pattern)]
    none = np.full(pattern.shape[1], -1)
    return Coloring(none, rows, np.ones(len(colors), bool), colors, pattern.indices)


def plan_both(pattern: Matrix, most: float = np.inf) -> Coloring | None:
    """Return a plan that computes the fullest rows, or columns, separately.

    For an arrow-shaped matrix, the full row is a product from the left, and the rest needs two
    products from the right. The separate rows, or columns, are those with more entries than a
    bound, for bounds that are powers of two. The plan with the fewest products is returned.

    Args:
      pattern: the pattern.
      most: only plans with fewer products are searched.

    Returns:
      The plan, or None if no plan has fewer than `most` products.
    """
    best = None
    for turned in (False, True):
        matrix = Matrix(pattern.T) if turned else pattern
        longest = int(np.diff(matrix.indptr).max(initial=0))
        for bound in [1 << k for k in range(longest.bit_length()) if 1 << k < longest]:
            rest, apart = split_rows(matrix, bound)
            # Entries of a row, or of a column from the left, need a product each.
            if longest_row(rest) + longest_row(Matrix(apart.T)) < most:
                found = plan_split(matrix, rest, apart)
                if count_products(found) < most:
                    best, most = turn(found, matrix) if turned else found, count_products(found)
    return best


def count_products(plan: Coloring) -> int:
    """Return the number of products that a plan needs."""
    return plan.column_count + plan.row_count


def longest_row(pattern: Matrix) -> int:
    """Return the number of entries of the fullest row."""
    return int(np.diff(pattern.indptr).max(initial=0))


def split_rows(pattern: Matrix, bound: int) -> tuple[Matrix, Matrix]:
    """Return the pattern without the rows of more than `bound` entries, and these rows."""
    full = np.diff(pattern.indptr) > bound
    kept = []
    for chosen in (~full, full):
        kept.append(Matrix(scipy.sparse.diags_array(chosen, dtype=bool) @ pattern))
        kept[-1].eliminate_zeros()
    return kept[0], kept[1]


def plan_split(pattern: Matrix, rest: Matrix, apart: Matrix) -> Coloring:
    """Return the plan that computes `rest` with products from the right, `apart` from the left."""
    columns, rows = color_columns(rest), color_columns(Matrix(apart.T))
    of = list_rows(pattern)
    from_left = (np.diff(apart.indptr) > 0)[of]
    colors = np.where(from_left, rows[of], columns[pattern.indices])
    places = np.where(from_left, pattern.indices, of)
    return Coloring(columns, rows, from_left, colors, places)


def turn(plan: Coloring, pattern: Matrix) -> Coloring:
    """Return the plan for the transpose of the pattern that a plan is for."""
    order = np.lexsort((list_rows(pattern), pattern.indices))
    from_left, colors, places = ~plan.from_left[order], plan.colors[order], plan.places[order]
    return Coloring(plan.rows, plan.columns, from_left, colors, places)


def plan_symmetric(pattern: Matrix, coloring: str = "auto") -> Coloring:
    """Return the plan for a symmetric matrix, where an entry may be read at (i, j) or at (j, i).

    Args:
      pattern: the pattern.
      coloring: "star" reads each entry; "acyclic" finds some by substitution; "auto" takes the
        acyclic coloring if it has fewer colors and no entry takes more than `MAX_TERMS` terms,
        as each term adds its rounding error.
    """
    pattern = Matrix(pattern)
    stars = plan_stars(pattern) if coloring != "acyclic" else None
    if stars is not None and (coloring == "star" or stars.column_count <= 2):
        return stars
    columns = color_acyclically(pattern)
    if stars is not None and columns.max(initial=-1) + 1 >= stars.column_count:
        return stars
    found, terms = plan_trees(pattern, columns)
    return stars if stars is not None and terms > MAX_TERMS else found


def plan_stars(pattern: Matrix) -> Coloring:
    """Return the plan that reads each entry of a symmetric matrix from a star coloring."""
    columns = color_stars(pattern)
    of = list_rows(pattern)
    # An entry can be read in its own row if no other column of its color has an entry there.
    keys = of * (columns.max(initial=-1) + 1) + columns[pattern.indices]
    alone = np.bincount(keys)[keys] == 1
    colors = np.where(alone, columns[pattern.indices], columns[of])
    places = np.where(alone, of, pattern.indices)
    none = np.full(pattern.shape[0], -1)
    return Coloring(columns, none, np.zeros(len(of), bool), colors, places)


def plan_trees(pattern: Matrix, columns: np.ndarray) -> tuple[Coloring, int]:
    """Return the plan for a symmetric matrix from an acyclic coloring.

    In a tree of two colors, the product of a column's row has the entry of the column with its
    parent, plus those with its children. So an entry is the sum of the products at the column and
    at all columns below it, with alternating signs. The sums over up to 2**k levels are doubled.

    Returns:
      The plan, and the largest number of terms of an entry.
    """
    of, at = list_rows(pattern), pattern.indices
    numbers = {pair: k for k, pair in enumerate(zip(of.tolist(), at.tolist(), strict=True))}
    above, order = hang_trees(pattern, columns, numbers)
    child = np.arange(len(of))  # the number of the entry (column, parent) for both its places
    for k in order:
        child[numbers[at[k], of[k]]] = k
    terms = np.ones(len(of), int)
    for k in reversed(order):  # the last are the lowest
        if above[k] >= 0:
            terms[above[k]] += terms[k]
    rounds: list[Round] = []
    reach = above
    while (reach >= 0).any():
        sources = np.flatnonzero(reach >= 0)
        rounds.append(Round(reach[sources], sources, 1 if rounds else -1))
        reach = np.where(reach >= 0, reach[reach], -1)
    colors, places = columns[at[child]], of[child]
    kept = [copy_round(r, child, len(of)) for r in rounds]
    none = np.full(pattern.shape[0], -1)
    plan = Coloring(columns, none, np.zeros(len(of), bool), colors, places, kept)
    return plan, int(terms.max(initial=0))


def copy_round(round: Round, child: np.ndarray, count: int) -> Round:
    """Return a round that also updates the transposed entries, whose values are equal."""
    twin = np.full(count, -1)
    other = np.flatnonzero(child != np.arange(count))
    twin[child[other]] = other
    has = twin[round.targets] >= 0
    targets = np.concatenate([round.targets, twin[round.targets[has]]])
    sources = np.concatenate([round.sources, round.sources[has]])
    return Round(targets, sources, round.sign)


def hang_trees(
    pattern: Matrix, columns: np.ndarray, numbers: dict[tuple[int, int], int]
) -> tuple[np.ndarray, list[int]]:
    """Return trees of two colors, each hung at its middle.

    Returns:
      For the number of each entry (column, parent) that of (parent, its parent), or -1; and the
      numbers of the entries (column, parent), from the roots down.
    """
    near, _ = list_neighbors(pattern)
    by_color: list[dict[int, list[int]]] = [{} for _ in near]
    for v, row in enumerate(near):
        for w in row:
            by_color[v].setdefault(int(columns[w]), []).append(w)
    above, order, seen = np.full(len(numbers), -1), [], set()
    for v, groups in enumerate(by_color):
        for color in groups:
            pair = int(columns[v]), color
            if (v, color) in seen:
                continue
            walk = lambda root, pair=pair: walk_tree(by_color, columns, pair, root)
            path = walk(walk(v)[-1][0])  # from one end of the longest path
            parents = dict(path)
            w, steps = path[-1][0], [path[-1][0]]
            while parents[w] >= 0:
                w = parents[w]
                steps.append(w)
            for w, p in walk(steps[len(steps) // 2]):
                seen.add((w, pair[0] if columns[w] == pair[1] else pair[1]))
                if p >= 0:
                    parents[w] = p
                    order.append(numbers[w, p])
                else:
                    parents[w] = -1
                grand = parents[p] if p >= 0 else -1
                if grand >= 0:
                    above[numbers[w, p]] = numbers[p, grand]
    return above, order


def walk_tree(
    by_color: Sequence[dict[int, list[int]]], columns: np.ndarray, pair: tuple[int, int], root: int
) -> list[tuple[int, int]]:
    """Return the columns of a tree of two colors with their parents, level by level."""
    found = [(root, -1)]
    for v, parent in found:
        other = pair[0] if columns[v] == pair[1] else pair[1]
        found += [(w, v) for w in by_color[v].get(other, ()) if w != parent]
    return found


def list_rows(pattern: Matrix) -> np.ndarray:
    """Return the row of each entry."""
    return np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))


def plan(pattern: Matrix, mode: str) -> Coloring:
    """Return the plan of a mode; "auto" takes the one with the fewest products.

    Products from the left hold on to values of the whole program, so that on equal terms those
    from the right are taken.
    """
    if mode == "reverse":
        return plan_rows(pattern)
    best = plan_columns(pattern)
    if mode == "forward":
        return best
    if mode == "auto" and longest_row(Matrix(pattern.T)) < count_products(best):
        best = min(best, plan_rows(pattern), key=count_products)
    most = np.inf if mode == "both" else count_products(best)
    return plan_both(pattern, most) or best
