"""Expectation-maximisation for the self-labeling loss L_CCE+ (section 4 of arXiv:2303.07321).

The loss over the pseudo-labels y, for fixed probabilities σ, is convex:

    L_CCE+ = Σ_i w_i H₂(y_i, σ_i) + λ KL(u ‖ ȳ),    ȳ = Σ_i w_i y_i,    Σ_i w_i = 1.

The E-step makes Jensen's bound tight with S_ik = w_i y_ik / ȳ_k. The M-step then splits into one problem per point,
which minimises

    −ln σ·y − Σ_k a_k ln y_k,    a_k = λ u_k S_ik / w_i = λ u_k y_ik / ȳ_k.

(The paper prints λ u_k S_ik; the weight w_i = 1/M of the averaged H₂ is missing there.) The minimiser is

    y_k = a_k / (1 + A − σ_k/x),    A = Σ_k a_k,

for the one x = σ·y at which it sums to 1. Written with the gap d_k = 1 − σ_k/σ_max and the denominator δ of the
largest class, every denominator is a sum of positive terms, δ + d_k (1 + A − δ), and so never loses digits. The
reciprocal of Σ_k y_k is concave in δ: Newton's steps on it rise towards the root and never pass it.

Where a_k = 0 for every class of the largest σ, there may be no root. Then δ = 0, y_k is the supplement's closed
form, and the largest class takes the rest up to 1; where a root δ > 0 exists, that class gets nothing
(complementary slackness).

EM needs about 100 λ iterations to come near the minimum; :mod:`cceclust.pseudo_labels.exact` finds it.

Arrays are K-major, (n_clusters, n_points): the inner loops run over neighbouring points and vectorise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from cceclust.compiled import compiled
from cceclust.pseudo_labels.duality import label_gap
from cceclust.pseudo_labels.solver import Solved
from cceclust.pseudo_labels.summation import sum_in_pairs
from cceclust.validation import FloatArray, as_prior, check_count, check_non_negative, uniform_unless_given

__all__ = ["EMSolver"]

# Without Python's check for division by zero, which would prevent vectorised loops.
kernel = compiled(error_model="numpy")
part = compiled(error_model="numpy", inline="always")

# Positions in EMWorkspace.limits:
# the smallest normal number;
SMALLEST = 0
# lower bound of pseudo-labels and δ, far above the denormals, which are slow and imprecise;
FLOOR = 1
# the largest λ u / ȳ, reached only with an absurd λ and a nearly empty cluster;
HIGHEST = 2
# the deviation of a sum from 1 at which one more Newton step, which squares it, is the last; sums are made 1 after it.
SETTLED = 3

# Points solved together: their running sums stay in the first-level cache.
BLOCK = 256
# Newton's steps rise monotonically; this many are never needed, but the loop must end.
MAX_NEWTON_STEPS = 40
# With a tolerance, the loss is compared once per this many iterations.
CHECK_EVERY = 5


@dataclass(frozen=True, eq=False)
class EMSolver:
    """EM for L_CCE+, as a :class:`~cceclust.pseudo_labels.Solver`.

    Exact zeros of the start are raised in clusters with a positive prior: EM could not leave them (Property 1), and the
    loss there is infinite.

    Parameters
    ----------
    fairness, prior, max_iter, tol
        As for :func:`~cceclust.pseudo_labels.estimate_pseudo_labels`.

    Examples
    --------
    >>> from cceclust.pseudo_labels import EMSolver, solve_pseudo_labels
    >>> sigma = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]
    >>> few, many = (solve_pseudo_labels(EMSolver(10.0, tol=0, max_iter=n), sigma) for n in (10, 1000))
    >>> bool(many.gap < few.gap / 100)
    True
    """

    starts_afresh: ClassVar[bool] = False
    takes_logarithms: ClassVar[bool] = False

    fairness: float = 1.0
    prior: npt.ArrayLike | None = None
    max_iter: int = 1000
    tol: float = 1e-6

    def __post_init__(self) -> None:
        check_non_negative(self.fairness, "fairness")
        check_non_negative(self.tol, "tol")
        check_count(self.max_iter, "max_iter")
        object.__setattr__(self, "prior", as_prior(self.prior))

    def solve(
        self, probabilities: FloatArray, pseudo_labels: FloatArray, weights: FloatArray, *, certify: bool = False
    ) -> Solved:
        """Lower L_CCE+ over the pseudo-labels, in place."""
        prior = uniform_unless_given(self.prior, len(probabilities))
        fairness, workspace = float(self.fairness), _workspace(probabilities)
        loss, done = _iterate(
            probabilities, pseudo_labels, prior, weights, fairness, self.max_iter, float(self.tol), workspace
        )
        gap = label_gap(probabilities, pseudo_labels, prior, weights, fairness) if certify else None
        return Solved(loss, done, gap)


class EMWorkspace(NamedTuple):
    """Scratch memory of :func:`_iterate`."""

    gap: FloatArray
    per_point: FloatArray
    per_cluster: FloatArray
    mean_pseudo_label: npt.NDArray[np.float64]
    limits: FloatArray


def _workspace(probabilities: FloatArray) -> EMWorkspace:
    (n_clusters, n_points), dtype = probabilities.shape, probabilities.dtype
    smallest, precision = float(np.finfo(dtype).tiny), float(np.finfo(dtype).eps)
    return EMWorkspace(
        gap=np.empty((n_clusters, n_points), dtype),
        per_point=np.empty((7, n_points), dtype),
        per_cluster=np.empty((2, n_clusters), dtype),
        mean_pseudo_label=np.empty(n_clusters, np.float64),
        limits=np.array([smallest, smallest**0.6, smallest**-0.95, precision**0.4], dtype),
    )


@kernel
def _iterate(
    sigma: FloatArray,
    labels: FloatArray,
    prior: FloatArray,
    weights: FloatArray,
    fairness: float,
    max_iter: int,
    tol: float,
    workspace: EMWorkspace,
) -> tuple[float, int]:
    """Improve the labels, in place; return the loss at the end and the number of iterations."""
    _prepare(sigma, labels, prior, weights, fairness, workspace)
    previous = np.inf
    done = 0
    while done < max_iter:
        _attract(prior, fairness, workspace)
        for first in range(0, labels.shape[1], BLOCK):
            last = min(first + BLOCK, labels.shape[1])
            _minimise(labels, workspace, first, last)
            _normalise(labels, weights, workspace, first, last)
        done += 1
        if tol > 0 and done % CHECK_EVERY == 0:
            loss = _loss(sigma, labels, prior, weights, fairness, workspace)
            if previous - loss <= tol * CHECK_EVERY * loss:
                break
            previous = loss
    return _loss(sigma, labels, prior, weights, fairness, workspace), done


@part
def _prepare(
    sigma: FloatArray,
    labels: FloatArray,
    prior: FloatArray,
    weights: FloatArray,
    fairness: float,
    workspace: EMWorkspace,
) -> None:
    """Gaps to the largest probability, the floors of the pseudo-labels, and ȳ."""
    n_clusters, n_points = sigma.shape
    one = sigma.dtype.type(1)
    zero = sigma.dtype.type(0)
    smallest = workspace.limits[SMALLEST]
    floor = workspace.limits[FLOOR]

    largest = workspace.per_point[0]
    ties = workspace.per_point[1]
    delta = workspace.per_point[2]
    terms = workspace.per_point[3]
    for i in range(n_points):
        largest[i] = smallest
        ties[i] = zero
        delta[i] = zero
    for k in range(n_clusters):
        row = sigma[k]
        for i in range(n_points):
            largest[i] = row[i] if row[i] > largest[i] else largest[i]
    for k in range(n_clusters):
        row = sigma[k]
        gap = workspace.gap[k]
        for i in range(n_points):
            gap[i] = (largest[i] - row[i]) / largest[i]
            ties[i] += one if row[i] == largest[i] else zero

    for k in range(n_clusters):
        lift = floor if fairness * prior[k] > 0 else zero
        workspace.per_cluster[1, k] = lift
        row = labels[k]
        for i in range(n_points):
            row[i] = row[i] if row[i] > lift else lift
            terms[i] = weights[i] * row[i]
        workspace.mean_pseudo_label[k] = sum_in_pairs(terms)


@part
def _attract(prior: FloatArray, fairness: float, workspace: EMWorkspace) -> None:
    """E-step: the factor λ u_k / ȳ_k that turns y into a. ȳ is set to 0 for the next sum."""
    attraction = workspace.per_cluster[0]
    highest = workspace.limits[HIGHEST]
    mean = workspace.mean_pseudo_label
    for k in range(len(mean)):
        attraction[k] = min(fairness * prior[k] / mean[k], highest) if mean[k] > 0 else 0.0
        mean[k] = 0.0


@part
def _minimise(labels: FloatArray, workspace: EMWorkspace, start: int, stop: int) -> None:
    """Replace y by the M-step's minimiser for a = attraction · y, not yet normalised, and store its sum."""
    n_clusters = labels.shape[0]
    one = labels.dtype.type(1)
    zero = labels.dtype.type(0)
    smallest = workspace.limits[SMALLEST]
    least_delta = workspace.limits[FLOOR]
    settled = workspace.limits[SETTLED]
    attraction = workspace.per_cluster[0]
    delta = workspace.per_point[2, start:stop]
    bound = workspace.per_point[3, start:stop]
    reach = workspace.per_point[4, start:stop]
    total = workspace.per_point[5, start:stop]
    slope = workspace.per_point[6, start:stop]
    n = stop - start

    # reach = 1 + A. The largest classes alone bound δ from below: together their a/δ is at most 1.
    for i in range(n):
        reach[i] = one
        bound[i] = least_delta
    for k in range(n_clusters):
        y = labels[k, start:stop]
        gap = workspace.gap[k, start:stop]
        pull = attraction[k]
        for i in range(n):
            a = pull * y[i]
            reach[i] += a
            bound[i] += a if gap[i] == zero else zero

    # The root of the last iteration is a good start; from above the root, the first step goes below it.
    for i in range(n):
        delta[i] = min(max(delta[i], bound[i]), reach[i])
    for _ in range(MAX_NEWTON_STEPS):
        for i in range(n):
            total[i] = zero
            slope[i] = smallest
        for k in range(n_clusters):
            y = labels[k, start:stop]
            gap = workspace.gap[k, start:stop]
            pull = attraction[k]
            for i in range(n):
                inverse = one / (delta[i] + gap[i] * (reach[i] - delta[i]))
                share = pull * y[i] * inverse
                total[i] += share
                slope[i] += share * inverse * (one - gap[i])
        unsettled = 0
        for i in range(n):
            excess = total[i] - one
            moved = delta[i] + total[i] * excess / slope[i]
            at_bound = excess < zero and delta[i] <= bound[i]
            unsettled += 1 if abs(excess) > settled and not at_bound else 0
            delta[i] = min(max(moved, bound[i]), reach[i])
        if unsettled == 0:
            break

    for i in range(n):
        total[i] = zero
    for k in range(n_clusters):
        y = labels[k, start:stop]
        gap = workspace.gap[k, start:stop]
        pull = attraction[k]
        for i in range(n):
            y[i] = pull * y[i] / (delta[i] + gap[i] * (reach[i] - delta[i]))
            total[i] += y[i]


@part
def _normalise(labels: FloatArray, weights: FloatArray, workspace: EMWorkspace, start: int, stop: int) -> None:
    """Normalise the sums of the points, which are nearly 1, and add the points to ȳ."""
    one = labels.dtype.type(1)
    zero = labels.dtype.type(0)
    ties = workspace.per_point[1, start:stop]
    delta = workspace.per_point[2, start:stop]
    bound = workspace.per_point[3, start:stop]
    missing = workspace.per_point[4, start:stop]
    total = workspace.per_point[5, start:stop]
    scale = workspace.per_point[6, start:stop]
    n = stop - start
    # Without a root (δ = 0 but for the bound) the largest classes take the rest: the supplement's closed form.
    for i in range(n):
        rootless = total[i] < one and delta[i] <= bound[i]
        scale[i] = one if rootless else one / total[i]
        missing[i] = (one - total[i]) / ties[i] if rootless else zero
    terms = bound  # not needed any more
    for k in range(labels.shape[0]):
        y = labels[k, start:stop]
        gap = workspace.gap[k, start:stop]
        lift = workspace.per_cluster[1, k]
        for i in range(n):
            value = y[i] * scale[i] + (missing[i] if gap[i] == zero else zero)
            y[i] = value if value > lift else lift
            terms[i] = weights[start + i] * y[i]
        workspace.mean_pseudo_label[k] += sum_in_pairs(terms)


@part
def _loss(
    sigma: FloatArray,
    labels: FloatArray,
    prior: FloatArray,
    weights: FloatArray,
    fairness: float,
    workspace: EMWorkspace,
) -> float:
    """L_CCE+ of the current pseudo-labels; infinite where a class with a positive prior is empty."""
    n_clusters, n_points = sigma.shape
    zero = sigma.dtype.type(0)
    collision = workspace.per_point[5]
    for i in range(n_points):
        collision[i] = zero
    for k in range(n_clusters):
        probability = sigma[k]
        y = labels[k]
        for i in range(n_points):
            collision[i] += probability[i] * y[i]
    loss = 0.0
    for i in range(n_points):
        if weights[i] > 0:
            loss -= weights[i] * np.log(collision[i])
    for k in range(n_clusters):
        if fairness * prior[k] > 0:
            loss += fairness * prior[k] * np.log(prior[k] / workspace.mean_pseudo_label[k])
    return loss
