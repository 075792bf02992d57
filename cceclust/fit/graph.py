"""Clusters of a graph of neighbours: partitions of high modularity, into as many parts as are wanted.

Nodes move to the part that raises the modularity most; then the parts become the nodes of a smaller graph, and so on
(the method of Blondel et al., 2008). For a given number of parts, at least as many are grown, by a higher resolution,
and then merged so that modularity falls least.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust.compiled import compiled

__all__ = [
    "Graph",
    "components_of",
    "grown_parts",
    "improved_labels",
    "in_order",
    "partition_graph",
    "symmetric_graph",
]

# With fewer parts than wanted, the resolution is raised by this factor, until in the end every node is one.
RESOLUTION_STEP = 1.25


class Graph(NamedTuple):
    """A symmetric graph with weights, as a CSR matrix, and the sum of each node's weights."""

    starts: NDArray[np.int64]
    others: NDArray[np.int32]
    weights: NDArray[np.float64]
    strengths: NDArray[np.float64]

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.strengths)


def symmetric_graph(neighbors: NDArray[np.integer[Any]], sample_weight: NDArray[Any] | None = None) -> Graph:
    """Return the graph in which a pair counts once for each of the two that has the other among its neighbours.

    Its modularity is that of :func:`cceclust.neighbor_modularity`. A pair counts by the product of its two weights.

    Examples
    --------
    >>> graph = symmetric_graph(np.array([[1], [0], [1]]))
    >>> graph.others, graph.weights
    (array([1, 0, 2, 1], dtype=int32), array([2., 2., 1., 1.]))
    """
    n_samples = len(neighbors)
    row_weights = np.ones(n_samples) if sample_weight is None else sample_weight.astype(np.float64)
    starts, strengths = np.zeros(n_samples + 1, np.int64), np.zeros(n_samples)
    others, weights = np.empty(2 * neighbors.size, np.int32), np.empty(2 * neighbors.size)
    ordered = np.sort(neighbors, axis=1).astype(np.int32, copy=False)
    n_pairs = join_both_ways(ordered, row_weights, starts, others, weights, strengths)
    return Graph(starts, others[:n_pairs], weights[:n_pairs], strengths)


def partition_graph(graph: Graph, n_parts: int, *, seed: int = 0, resolution: float = 1.0) -> NDArray[np.int32]:
    """Return a partition of high modularity into so many parts, numbered from 0; none is empty.

    The result depends a little on the seed, which decides the order in which nodes are looked at. Above a resolution of
    1, parts of fewer nodes, and of more even size, are preferred.

    Examples
    --------
    Two triangles that one pair joins:

    >>> graph = symmetric_graph(np.array([[1, 2], [0, 2], [0, 1], [4, 5], [3, 5], [3, 2]]))
    >>> partition_graph(graph, 2)
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """
    labels = grown_parts(graph, resolution, seed)
    while labels.max() + 1 < n_parts:
        resolution *= RESOLUTION_STEP
        labels = grown_parts(graph, resolution, seed)
    if labels.max() + 1 > n_parts:
        labels = in_order(with_parts_merged(graph, labels, n_parts, resolution))
        moved = in_order(improved_labels(graph, labels, n_parts, resolution=resolution))
        # Moving nodes may empty a part.
        labels = moved if moved.max() == labels.max() else labels
    return with_parts_halved(labels, n_parts)


def improved_labels(
    graph: Graph, labels: NDArray[np.integer[Any]], n_parts: int, *, resolution: float = 1.0
) -> NDArray[np.int32]:
    """Move nodes between given parts as long as that raises the modularity. A part may lose all its nodes."""
    better = labels.astype(np.int32)
    move_nodes(*graph, resolution, np.arange(graph.n_nodes, dtype=np.int32), better, n_parts)
    return better


def grown_parts(graph: Graph, resolution: float, seed: int) -> NDArray[np.int32]:
    """Move nodes, then parts of nodes, then parts of these, until no move gains; then nodes once more."""
    generator = np.random.default_rng(seed)
    labels, coarse = np.arange(graph.n_nodes, dtype=np.int32), graph
    while True:
        parts = np.arange(coarse.n_nodes, dtype=np.int32)
        order = generator.permutation(coarse.n_nodes).astype(np.int32)
        move_nodes(*coarse, resolution, order, parts, coarse.n_nodes)
        parts = in_order(parts)
        labels = parts[labels]
        n_parts = int(parts.max()) + 1
        if n_parts == coarse.n_nodes:
            return in_order(improved_labels(graph, labels, n_parts, resolution=resolution))
        coarse = graph_of_parts(coarse, parts, n_parts)


def components_of(graph: Graph) -> NDArray[np.int32]:
    """Return the connected component of each node."""
    shape = (graph.n_nodes, graph.n_nodes)
    matrix = sparse.csr_array((graph.weights, graph.others, graph.starts), shape)
    return in_order(sparse.csgraph.connected_components(matrix, directed=False)[1].astype(np.int32))


def with_parts_merged(graph: Graph, labels: NDArray[np.int32], n_parts: int, resolution: float) -> NDArray[np.int32]:
    """Join the two parts that cost least modularity or gain most, again and again, until so many are left."""
    n_before = int(labels.max()) + 1
    coarse = graph_of_parts(graph, labels, n_before)
    total = coarse.strengths.sum() or 1.0
    links = sparse.csr_array((coarse.weights, coarse.others, coarse.starts), (n_before, n_before)).toarray() / total
    shares = coarse.strengths / total
    owner = np.arange(n_before, dtype=np.int32)
    gains = links - resolution * shares[:, None] * shares
    np.fill_diagonal(gains, -np.inf)
    gone = np.zeros(n_before, np.bool_)
    for _ in range(n_before - n_parts):
        one, other = sorted(divmod(int(gains.argmax()), n_before))
        links[one] += links[other]
        links[:, one] = links[one]
        shares[one] += shares[other]
        owner[owner == other] = one
        gone[other] = True
        row = links[one] - resolution * shares[one] * shares
        row[gone] = -np.inf
        row[one] = -np.inf
        gains[one], gains[:, one] = row, row
        gains[other], gains[:, other] = -np.inf, -np.inf
    return owner[labels]


def with_parts_halved(labels: NDArray[np.int32], n_parts: int) -> NDArray[np.int32]:
    """Cut the largest parts in two until there are so many: only of graphs that no resolution divides."""
    labels = labels.copy()
    for number in range(int(labels.max()) + 1, n_parts):
        members = np.flatnonzero(labels == np.bincount(labels).argmax())
        labels[members[len(members) // 2 :]] = number
    return labels


def graph_of_parts(graph: Graph, labels: NDArray[np.int32], n_parts: int) -> Graph:
    """Return the graph whose nodes are the parts."""
    starts, others = np.zeros(n_parts + 1, np.int64), np.empty_like(graph.others)
    weights, strengths = np.empty_like(graph.weights), np.zeros(n_parts)
    n_pairs = add_links(graph.starts, graph.others, graph.weights, labels, starts, others, weights, strengths)
    return Graph(starts, others[:n_pairs].copy(), weights[:n_pairs].copy(), strengths)


def in_order(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Number parts from 0 by their first node, without gaps."""
    # Of values for the same place the last one stays, so from the last node to the first.
    first = np.full(int(labels.max()) + 1, len(labels))
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    present = np.flatnonzero(first < len(labels))
    rank = np.empty(len(first), np.int32)
    rank[present[np.argsort(first[present])]] = np.arange(len(present), dtype=np.int32)
    return rank[labels]


@compiled(error_model="numpy")
def in_groups(groups: NDArray[np.int32], n_groups: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the places of all members, group by group and in order, and the bounds of the groups among them."""
    bounds = np.zeros(n_groups + 1, np.int64)
    for group in groups:
        bounds[group + 1] += 1
    for g in range(n_groups):
        bounds[g + 1] += bounds[g]
    members, free = np.empty(groups.shape[0], np.int32), bounds[:-1].copy()
    for i in range(groups.shape[0]):
        members[free[groups[i]]] = i
        free[groups[i]] += 1
    return members, bounds


@compiled(error_model="numpy")
def join_both_ways(
    neighbors: NDArray[np.int32],
    row_weights: NDArray[np.float64],
    starts: NDArray[np.int64],
    others: NDArray[np.int32],
    weights: NDArray[np.float64],
    strengths: NDArray[np.float64],
) -> int:
    """Make neighbours, sorted for each row, symmetric (the last four, OUT). Return the number of pairs."""
    n_nodes, n_neighbors = neighbors.shape
    # The rows that have each node among their neighbours, in order.
    back, bounds = in_groups(neighbors.ravel(), n_nodes)
    back //= n_neighbors
    n_pairs = 0
    for i in range(n_nodes):
        m, b = 0, bounds[i]
        while m < n_neighbors or b < bounds[i + 1]:
            other = n_nodes
            if m < n_neighbors:
                other = neighbors[i, m]
            if b < bounds[i + 1] and back[b] < other:
                other = back[b]
            count = 0
            while m < n_neighbors and neighbors[i, m] == other:
                m += 1
                count += 1
            while b < bounds[i + 1] and back[b] == other:
                b += 1
                count += 1
            others[n_pairs] = other
            weights[n_pairs] = count * (row_weights[i] * row_weights[other])
            strengths[i] += weights[n_pairs]
            n_pairs += 1
        starts[i + 1] = n_pairs
    return n_pairs


@compiled(error_model="numpy")
def add_links(
    starts: NDArray[np.int64],
    others: NDArray[np.int32],
    weights: NDArray[np.float64],
    labels: NDArray[np.int32],
    part_starts: NDArray[np.int64],
    part_others: NDArray[np.int32],
    part_weights: NDArray[np.float64],
    part_strengths: NDArray[np.float64],
) -> int:
    """Add up the pairs between the nodes of every two parts, into a graph of the parts (the last four, OUT).

    Return the number of pairs.
    """
    n_parts = part_strengths.shape[0]
    members, bounds = in_groups(labels, n_parts)
    links = np.zeros(n_parts)
    seen = np.empty(n_parts, np.int32)
    n_pairs = 0
    for part in range(n_parts):
        n_seen = 0
        for m in range(bounds[part], bounds[part + 1]):
            for e in range(starts[members[m]], starts[members[m] + 1]):
                if weights[e] > 0:
                    other = labels[others[e]]
                    if links[other] == 0.0:
                        seen[n_seen] = other
                        n_seen += 1
                    links[other] += weights[e]
        seen[:n_seen].sort()
        for s in range(n_seen):
            other = seen[s]
            part_others[n_pairs] = other
            part_weights[n_pairs] = links[other]
            part_strengths[part] += links[other]
            links[other] = 0.0
            n_pairs += 1
        part_starts[part + 1] = n_pairs
    return n_pairs


@compiled(error_model="numpy")
def move_nodes(
    starts: NDArray[np.int64],
    others: NDArray[np.int32],
    weights: NDArray[np.float64],
    strengths: NDArray[np.float64],
    resolution: float,
    order: NDArray[np.int32],
    labels: NDArray[np.int32],
    n_parts: int,
) -> None:
    """Move nodes to the part that raises the modularity most, until no move gains (labels IN and OUT).

    After all nodes were looked at in the given `order`, a node is looked at again when one of its pairs has moved.
    """
    n_nodes = labels.shape[0]
    total = 0.0
    part_strengths = np.zeros(n_parts)
    for i in range(n_nodes):
        part_strengths[labels[i]] += strengths[i]
        total += strengths[i]
    links = np.zeros(n_parts)
    seen = np.empty(n_parts + 1, np.int32)
    # A ring: there is room for all nodes, and none waits twice.
    queue = order.copy()
    waits = np.ones(n_nodes, np.bool_)
    first, last, n_waiting = 0, 0, n_nodes
    while n_waiting > 0:
        i = queue[first]
        first = first + 1 if first + 1 < n_nodes else 0
        n_waiting -= 1
        waits[i] = False
        own = labels[i]
        e = starts[i]
        while e < starts[i + 1] and labels[others[e]] == own:
            e += 1
        if e == starts[i + 1]:
            # All its pairs are in its own part: most nodes, in the end.
            continue
        n_seen = 0
        for e in range(starts[i], starts[i + 1]):
            if others[e] != i and weights[e] > 0:
                part = labels[others[e]]
                # A new part is kept, another is overwritten: faster than to branch, as nothing foretells which it is.
                seen[n_seen] = part
                n_seen += links[part] == 0.0
                links[part] += weights[e]
        part_strengths[own] -= strengths[i]
        pull = resolution * strengths[i] / total if total > 0 else 0.0
        best, highest = own, links[own] - pull * part_strengths[own]
        for s in range(n_seen):
            part = seen[s]
            gain = links[part] - pull * part_strengths[part]
            # A gain above rounding.
            if gain > highest + 1e-12 * strengths[i]:
                best, highest = part, gain
        part_strengths[best] += strengths[i]
        for s in range(n_seen):
            links[seen[s]] = 0.0
        if best != own:
            labels[i] = best
            for e in range(starts[i], starts[i + 1]):
                # Written in any case, and kept if it does not wait yet: its place is free, as this node does not wait.
                j = others[e]
                queue[last] = j
                is_new = (labels[j] != best) & (not waits[j])
                waits[j] |= is_new
                n_waiting += is_new
                last += is_new
                last = last if last < n_nodes else 0
