"""The minimum of the self-labeling loss L_CCE+ (equation 11 of arXiv:2303.07321), certified by its duality gap.

Over the pseudo-labels the loss is convex,

    L_CCE+ = Σ_i p_i (−ln σ_i·y_i) + λ KL(u ‖ ȳ),    ȳ = Σ_i p_i y_i,    Σ_i p_i = 1,

and its dual has one number w_k ≥ 0 for each cluster and two for each point:

    D = Σ_i p_i (1 + ln s_i − ν_i) + λ Σ_k u_k ln w_k + λ − λ ln λ,    ν_i ≥ s_i σ_ik + w_k  for all k.

Any such w, s, ν bounds the loss of every y from below. With x_i = σ_i·y_i, z_ik = ν_i − s_i σ_ik − w_k ≥ 0 and
h(t) = t − 1 − ln t, the loss of y lies above the bound by exactly

    gap = Σ_i p_i (Σ_k y_ik z_ik + h(s_i x_i)) + Σ_k λ u_k h(w_k ȳ_k / (λ u_k)),

a sum of terms that are never negative. At the minimum all of them vanish: y_ik z_ik = 0, s_i x_i = 1 and
w_k ȳ_k = λ u_k. The classes with z_k = 0 are those whose lines s σ_k + w_k meet at one corner of the upper envelope of
all lines: one or two for nearly all points, more where there are ties.

A primal-dual interior-point method solves these three equations with y_ik z_ik = τ in place of 0, where τ falls to 0.
It stays inside all constraints, so ties, empty classes and kinks of the dual need no special care, and every iterate
has its gap. One Newton step couples the points only through dw, in K equations. S. Mehrotra's second-order correction
("On the implementation of a primal-dual interior point method", SIAM J. Optim. 1992) reduces the number of steps to
about ten.

All is computed in float64, whatever the type of the probabilities. To keep digits, ω = w − λ, which is small where λ is
large, is stored instead of w, and the diagonal of Newton's matrix is computed from the known sums of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from cceclust.compiled import compiled
from cceclust.pseudo_labels.solver import Solved
from cceclust.pseudo_labels.summation import sum_in_pairs
from cceclust.validation import FloatArray, as_prior, check_count, check_non_negative, uniform_unless_given

__all__ = ["ExactSolver"]

Doubles = npt.NDArray[np.float64]

kernel = compiled(error_model="numpy")
part = compiled(error_model="numpy", inline="always")

# Number of points that are added to Newton's matrix together.
BLOCK = 256
# Running sums of their products, side by side.
WIDTH = 64
# The gap is relative to the loss, or to this if the loss is smaller: the minimum may be 0.
SMALLEST_LOSS = 1e-3
# λ u below this has no visible effect on the loss: the cluster is treated as one with a prior of 0.
NEGLIGIBLE = 1e-18
# Steps go this fraction of the way to the nearest constraint.
FRACTION = 0.99
# A corrected step that is cut to less than SHORT is replaced by one towards the centre, for CENTRE times the old τ.
SHORT = 0.2
CENTRE = 0.3
# z is a difference; below this, rounding may have made it negative.
SMALLEST_SLACK = 1e-15
# After this many iterations without a smaller gap, rounding errors dominate.
PATIENCE = 5

# Rows of ExactWorkspace.per_point:
NU, S, X, SHARES, CENTRE_OF_MASS, SPREAD, D_NU, D_S, D_X, PULL, REST, WORST, WEIGHT, TOTAL, TERMS = range(15)
# Rows of ExactWorkspace.per_cluster:
OMEGA, W, MEAN, D_W, D_MEAN, SIDE = range(6)
# The attempts at a step, in order.
PREDICT, CORRECT, RECENTRE = range(3)


@dataclass(frozen=True, eq=False)
class ExactSolver:
    """The minimum of L_CCE+ to a given duality gap, as a :class:`~cceclust.pseudo_labels.Solver`.

    The result does not depend on the start. About ten iterations are enough; each takes longer than one of EM, and even
    longer with many clusters. Labels that should be 0 are positive, but tiny.

    Parameters
    ----------
    fairness : float
        λ.
    prior : array (n_clusters,), optional
        u; uniform by default. Zeros are allowed.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Stop when the loss is at most this fraction of it above the minimum, as proved by the duality gap; losses below
        0.001 count as 0.001. Rounding errors set a limit at about 1e-12 + 1e-15 λ.

    Examples
    --------
    >>> from cceclust.pseudo_labels import ExactSolver, solve_pseudo_labels
    >>> sigma = [[0.95, 0.05], [0.9, 0.1], [0.6, 0.4], [0.55, 0.45]]
    >>> result = solve_pseudo_labels(ExactSolver(fairness=100), sigma)
    >>> result.pseudo_labels.round(2)
    array([[1., 0.],
           [1., 0.],
           [0., 1.],
           [0., 1.]])
    >>> bool(result.gap < 1e-6)
    True
    """

    starts_afresh: ClassVar[bool] = True
    takes_logarithms: ClassVar[bool] = False

    fairness: float = 1.0
    prior: npt.ArrayLike | None = None
    max_iter: int = 100
    tol: float = 1e-6

    def __post_init__(self) -> None:
        check_non_negative(self.fairness, "fairness")
        check_non_negative(self.tol, "tol")
        check_count(self.max_iter, "max_iter")
        object.__setattr__(self, "prior", as_prior(self.prior))

    def solve(
        self, probabilities: FloatArray, pseudo_labels: FloatArray, weights: FloatArray, *, certify: bool = False
    ) -> Solved:
        """Replace the pseudo-labels by those of the minimum; the gap is always known."""
        workspace = _workspace(*probabilities.shape)
        workspace.sigma[...] = probabilities
        # The sum of single-precision weights differs from 1 by too much for a large λ.
        workspace.per_point[WEIGHT] = weights
        workspace.per_point[WEIGHT] /= workspace.per_point[WEIGHT].sum()
        prior = uniform_unless_given(self.prior, len(probabilities))
        loss, gap, done = _minimise(prior, float(self.fairness), self.max_iter, float(self.tol), workspace)
        pseudo_labels[...] = workspace.best
        return Solved(loss, done, gap)


class ExactWorkspace(NamedTuple):
    """Memory of :func:`_minimise`: σ and the weights on entry, the labels in `best` on return, and all in between."""

    sigma: Doubles
    best: Doubles
    labels: Doubles
    inverse_slack: Doubles
    change: Doubles
    per_point: Doubles
    per_cluster: Doubles
    columns: Doubles
    sums: Doubles
    matrix: Doubles


def _workspace(n_clusters: int, n_points: int) -> ExactWorkspace:
    shape = (n_clusters, n_points)
    return ExactWorkspace(
        sigma=np.empty(shape),
        best=np.empty(shape),
        labels=np.empty(shape),
        inverse_slack=np.empty(shape),
        change=np.empty(shape),
        per_point=np.empty((TERMS + 1, n_points)),
        per_cluster=np.empty((SIDE + 1, n_clusters)),
        columns=np.empty((n_clusters, 2 * BLOCK // WIDTH, WIDTH)),
        sums=np.empty(WIDTH),
        matrix=np.empty((n_clusters, n_clusters)),
    )


@kernel
def _minimise(
    prior: Doubles, fairness: float, max_iter: int, tol: float, workspace: ExactWorkspace
) -> tuple[float, float, int]:
    """Return loss, gap and iterations, which are `max_iter` if rounding errors keep the gap above the tolerance."""
    _begin(prior, fairness, workspace)
    lowest = np.inf
    smallest_gap = np.inf
    idle = 0
    done = 0
    while True:
        _settle(workspace)
        loss, gap = _assess(prior, fairness, workspace)
        idle += 1
        if gap < smallest_gap:
            lowest = loss
            smallest_gap = gap
            idle = 0
            _keep(workspace)
        if smallest_gap <= tol * max(lowest, SMALLEST_LOSS) or done >= max_iter:
            break
        if idle == PATIENCE:
            done = max_iter
            break
        _step(prior, fairness, workspace)
        done += 1
    return lowest, smallest_gap, done


@part
def _keep(workspace: ExactWorkspace) -> None:
    n_clusters, n_points = workspace.labels.shape
    for k in range(n_clusters):
        for i in range(n_points):
            workspace.best[k, i] = workspace.labels[k, i]


@part
def _begin(prior: Doubles, fairness: float, workspace: ExactWorkspace) -> None:
    """Start with the same labels for all points, near the prior, and a w that fits them."""
    sigma, labels = workspace.sigma, workspace.labels
    per_point, per_cluster = workspace.per_point, workspace.per_cluster
    n_clusters, n_points = sigma.shape
    nu, s, x = per_point[NU], per_point[S], per_point[X]
    for i in range(n_points):
        per_point[TOTAL, i] = 1.0
        x[i] = 0.0
    # Without a prior, z is about 1 + λ; with this label, y z is about as large as for the others.
    least = 1 / (n_clusters * (1 + fairness))
    scale = 1 / (1 + 1 / (1 + fairness))
    highest = -np.inf
    for k in range(n_clusters):
        share = (prior[k] + least) * scale
        for i in range(n_points):
            labels[k, i] = share
            x[i] += share * sigma[k, i]
        free = fairness * prior[k] > NEGLIGIBLE
        per_cluster[OMEGA, k] = fairness * (prior[k] - share) / share if free else -fairness
        per_cluster[W, k] = fairness * prior[k] / share if free else 0.0
        highest = max(highest, per_cluster[OMEGA, k])
    for i in range(n_points):
        s[i] = 1 / x[i]
        nu[i] = highest + 2
        per_point[CENTRE_OF_MASS, i] = x[i]
    # No line s σ + ω starts higher than this, so that all z have a similar size, at least 1.
    for k in range(n_clusters):
        room = 1 + highest - per_cluster[OMEGA, k]
        for i in range(n_points):
            s[i] = room / sigma[k, i] if s[i] * sigma[k, i] > room else s[i]


@part
def _settle(workspace: ExactWorkspace) -> None:
    """Divide the labels by their totals, and find x = σ·y and ȳ."""
    sigma, labels, per_point = workspace.sigma, workspace.labels, workspace.per_point
    n_clusters, n_points = sigma.shape
    scale, x, terms, weight = per_point[TOTAL], per_point[X], per_point[TERMS], per_point[WEIGHT]
    for i in range(n_points):
        scale[i] = 1 / scale[i]
        x[i] = 0.0
    for k in range(n_clusters):
        y, probability = labels[k], sigma[k]
        for i in range(n_points):
            y[i] *= scale[i]
            x[i] += probability[i] * y[i]
            terms[i] = weight[i] * y[i]
        workspace.per_cluster[MEAN, k] = sum_in_pairs(terms)


@part
def _assess(prior: Doubles, fairness: float, workspace: ExactWorkspace) -> tuple[float, float]:
    """Return the loss and the gap; leave 1/z and the moments of σ under q = y/z in the workspace."""
    per_point, per_cluster = workspace.per_point, workspace.per_cluster
    n_clusters, n_points = workspace.sigma.shape
    nu, s, x, products = per_point[NU], per_point[S], per_point[X], per_point[TOTAL]
    shares, centre, spread, shift = per_point[SHARES], per_point[CENTRE_OF_MASS], per_point[SPREAD], per_point[REST]
    for i in range(n_points):
        products[i] = shares[i] = shift[i] = spread[i] = 0.0
    for k in range(n_clusters):
        probability, y, inverse = workspace.sigma[k], workspace.labels[k], workspace.inverse_slack[k]
        omega = per_cluster[OMEGA, k]
        for i in range(n_points):
            slack = nu[i] - s[i] * probability[i] - omega
            slack = slack if slack > SMALLEST_SLACK else SMALLEST_SLACK
            inverse[i] = 1 / slack
            share = y[i] * inverse[i]
            # Measured from the centre of the last iteration, the differences below keep their digits.
            away = probability[i] - centre[i]
            products[i] += y[i] * slack
            shares[i] += share
            shift[i] += share * away
            spread[i] += share * away * away
    for i in range(n_points):
        step = shift[i] / shares[i]
        centre[i] += step
        spread[i] = max(spread[i] - step * shift[i], 0.0) + x[i] / s[i]
    loss = 0.0
    gap = 0.0
    for i in range(n_points):
        weight = per_point[WEIGHT, i]
        if weight > 0:
            loss -= weight * np.log(x[i])
            gap += weight * (products[i] + _excess(s[i] * x[i]))
    for k in range(n_clusters):
        target = fairness * prior[k]
        if target > 0:
            loss += target * np.log(prior[k] / per_cluster[MEAN, k])
        if target > NEGLIGIBLE:
            gap += target * _excess(per_cluster[W, k] * per_cluster[MEAN, k] / target)
    return loss, gap


@part
def _excess(ratio: float) -> float:
    """h(t) = t − 1 − ln t."""
    return float(ratio - 1 - np.log(ratio))


@part
def _step(prior: Doubles, fairness: float, workspace: ExactWorkspace) -> None:
    """One iteration: predict and correct, or go to the centre if the corrected step is too short; then move."""
    n_clusters = workspace.sigma.shape[0]
    _assemble(prior, fairness, workspace)
    _factor(workspace.matrix)
    centre = _complementarity(workspace)
    target = 0.0
    primal = 0.0
    dual = 0.0
    for attempt in range(3):
        _demand(prior, fairness, target, attempt, workspace)
        _substitute(workspace.matrix, workspace.per_cluster[SIDE])
        for k in range(n_clusters):
            workspace.per_cluster[D_W, k] = workspace.per_cluster[SIDE, k]
        primal, dual = _direct(prior, fairness, workspace)
        if attempt == PREDICT:
            reached = _predicted(centre, min(1.0, primal), min(1.0, dual), workspace)
            target = centre * min(1.0, reached / centre) ** 3
        elif attempt == CORRECT:
            if min(primal, dual) >= SHORT:
                break
            target = CENTRE * centre
    _move(min(1.0, FRACTION * primal), min(1.0, FRACTION * dual), workspace)


@part
def _assemble(prior: Doubles, fairness: float, workspace: ExactWorkspace) -> None:
    """Newton's matrix for dw, after dν and ds of each point are eliminated."""
    # With q = y/z, Q = Σ q, the mean m of σ under q and t = q (σ − m), a point adds
    # p (diag q − q qᵀ/Q − t tᵀ/(x/s + Σ t²/q)). Its rows sum to 0, so the diagonal is computed from the other entries,
    # which keeps the digits that a difference would lose.
    columns, per_point, per_cluster = workspace.columns, workspace.per_point, workspace.per_cluster
    matrix = workspace.matrix
    n_clusters, n_points = workspace.sigma.shape
    for j in range(n_clusters):
        for k in range(n_clusters):
            matrix[j, k] = 0.0
    for start in range(0, n_points, BLOCK):
        stop = min(start + BLOCK, n_points)
        n = stop - start
        half = -(-n // WIDTH) * WIDTH
        weight, centre = per_point[WEIGHT, start:stop], per_point[CENTRE_OF_MASS, start:stop]
        shares, spread = per_point[SHARES, start:stop], per_point[SPREAD, start:stop]
        first, second = per_point[TOTAL, start:stop], per_point[WORST, start:stop]
        for i in range(n):
            first[i] = np.sqrt(weight[i] / shares[i])
            second[i] = np.sqrt(weight[i] / spread[i])
        for k in range(n_clusters):
            y, inverse = workspace.labels[k, start:stop], workspace.inverse_slack[k, start:stop]
            probability = workspace.sigma[k, start:stop]
            upper, lower = columns[k].ravel()[:half], columns[k].ravel()[half : 2 * half]
            for i in range(n):
                share = y[i] * inverse[i]
                upper[i] = share * first[i]
                lower[i] = share * (probability[i] - centre[i]) * second[i]
            for i in range(n, half):
                upper[i] = lower[i] = 0.0
        _subtract_products(columns, 2 * half // WIDTH, workspace.sums, matrix)
    for j in range(n_clusters):
        for k in range(j + 1, n_clusters):
            matrix[j, j] -= matrix[j, k]
            matrix[k, k] -= matrix[j, k]
    for k in range(n_clusters):
        if fairness * prior[k] > NEGLIGIBLE:
            matrix[k, k] += per_cluster[MEAN, k] / per_cluster[W, k]
        else:
            for j in range(k):
                matrix[j, k] = 0.0
            for j in range(k + 1, n_clusters):
                matrix[k, j] = 0.0
            matrix[k, k] = 1.0


@part
def _subtract_products(columns: Doubles, n_runs: int, sums: Doubles, matrix: Doubles) -> None:
    """matrix[j, k] −= the product of columns[j] and columns[k], for j < k, with several running sums in parallel."""
    n_clusters, _, width = columns.shape
    for j in range(n_clusters):
        for k in range(j + 1, n_clusters):
            a, b = columns[j], columns[k]
            for i in range(width):
                sums[i] = a[0, i] * b[0, i]
            for run in range(1, n_runs):
                for i in range(width):
                    sums[i] += a[run, i] * b[run, i]
            matrix[j, k] -= sum_in_pairs(sums)


@part
def _factor(matrix: Doubles) -> None:
    """Replace the upper triangle by U of Uᵀ D⁻¹ U, with D the diagonal of U."""
    n = matrix.shape[0]
    for j in range(n):
        # The matrix is positive definite, except for rounding.
        matrix[j, j] = max(matrix[j, j], 1e-290)
        row = matrix[j]
        for k in range(j + 1, n):
            factor = row[k] / row[j]
            target = matrix[k]
            for i in range(k, n):
                target[i] -= factor * row[i]


@part
def _substitute(matrix: Doubles, side: Doubles) -> None:
    """Solve Uᵀ D⁻¹ U b = side in place."""
    n = matrix.shape[0]
    for j in range(n):
        side[j] /= matrix[j, j]
        for k in range(j + 1, n):
            side[k] -= matrix[j, k] * side[j]
    for j in range(n - 1, -1, -1):
        total = side[j] * matrix[j, j]
        for k in range(j + 1, n):
            total -= matrix[j, k] * side[k]
        side[j] = total / matrix[j, j]


@part
def _complementarity(workspace: ExactWorkspace) -> float:
    """Return the mean of y z."""
    n_clusters, n_points = workspace.sigma.shape
    per_point, per_cluster = workspace.per_point, workspace.per_cluster
    total = 0.0
    # Since Σ_k y = 1, Σ_k y z = ν − s x − ω·y.
    for i in range(n_points):
        total += per_point[WEIGHT, i] * (per_point[NU, i] - per_point[S, i] * per_point[X, i])
    for k in range(n_clusters):
        total -= per_cluster[OMEGA, k] * per_cluster[MEAN, k]
    return float(max(total / n_clusters, 1e-290))


@part
def _demand(prior: Doubles, fairness: float, target: float, attempt: int, workspace: ExactWorkspace) -> None:
    """The right side for dw, and the parts of dν and ds of every point that do not depend on dw."""
    # The equations of a step are z dy + y dz = τ − y z − bend, and likewise for s x and w ȳ. In the correction, `bend`
    # is the product of the two predicted changes, else 0. `change` becomes (τ − bend)/z.
    per_point, per_cluster, change = workspace.per_point, workspace.per_cluster, workspace.change
    n_clusters, n_points = workspace.sigma.shape
    shares, centre, spread = per_point[SHARES], per_point[CENTRE_OF_MASS], per_point[SPREAD]
    pull, rest, terms, weight = per_point[PULL], per_point[REST], per_point[TERMS], per_point[WEIGHT]
    s, d_nu, d_s, d_x = per_point[S], per_point[D_NU], per_point[D_S], per_point[D_X]
    for i in range(n_points):
        rest[i] = -1.0
        pull[i] = (1 - (d_s[i] * d_x[i] if attempt == CORRECT else 0.0)) / s[i] - centre[i]
    for k in range(n_clusters):
        probability, inverse, part_of_step = workspace.sigma[k], workspace.inverse_slack[k], change[k]
        d_w = per_cluster[D_W, k]
        if attempt == PREDICT:
            for i in range(n_points):
                part_of_step[i] = 0.0
        elif attempt == CORRECT:
            for i in range(n_points):
                bend = part_of_step[i] * (d_nu[i] - d_s[i] * probability[i] - d_w)
                part_of_step[i] = (target - bend) * inverse[i]
                rest[i] += part_of_step[i]
                pull[i] -= (probability[i] - centre[i]) * part_of_step[i]
        else:
            for i in range(n_points):
                part_of_step[i] = target * inverse[i]
                rest[i] += part_of_step[i]
                pull[i] -= (probability[i] - centre[i]) * part_of_step[i]
    for i in range(n_points):
        rest[i] /= shares[i]
        pull[i] /= spread[i]
    for k in range(n_clusters):
        probability, y, inverse = workspace.sigma[k], workspace.labels[k], workspace.inverse_slack[k]
        part_of_step = change[k]
        for i in range(n_points):
            share = y[i] * inverse[i]
            terms[i] = weight[i] * (part_of_step[i] + share * ((probability[i] - centre[i]) * pull[i] - rest[i]))
        of_mean = sum_in_pairs(terms)
        bend = per_cluster[D_W, k] * per_cluster[D_MEAN, k] if attempt == CORRECT else 0.0
        wanted = fairness * prior[k]
        per_cluster[SIDE, k] = (wanted - bend) / per_cluster[W, k] - of_mean if wanted > NEGLIGIBLE else 0.0


@part
def _direct(prior: Doubles, fairness: float, workspace: ExactWorkspace) -> tuple[float, float]:
    """Compute the whole step from dw; return the fractions of it that the labels and the dual can take."""
    per_point, per_cluster = workspace.per_point, workspace.per_cluster
    n_clusters, n_points = workspace.sigma.shape
    shares, centre, spread = per_point[SHARES], per_point[CENTRE_OF_MASS], per_point[SPREAD]
    pull, rest, worst, worst_label = per_point[PULL], per_point[REST], per_point[WORST], per_point[TERMS]
    s, x, d_nu, d_s, d_x = per_point[S], per_point[X], per_point[D_NU], per_point[D_S], per_point[D_X]
    for i in range(n_points):
        d_nu[i] = 0.0
        d_s[i] = 0.0
    for k in range(n_clusters):
        probability, y, inverse = workspace.sigma[k], workspace.labels[k], workspace.inverse_slack[k]
        d_w = per_cluster[D_W, k]
        for i in range(n_points):
            share = y[i] * inverse[i] * d_w
            d_nu[i] += share
            d_s[i] += share * (probability[i] - centre[i])
    for i in range(n_points):
        d_s[i] = pull[i] - d_s[i] / spread[i]
        d_nu[i] = rest[i] + d_nu[i] / shares[i] + centre[i] * d_s[i]
        d_x[i] = (1 - s[i] * x[i] - x[i] * d_s[i]) / s[i]
        worst[i] = -d_s[i] / s[i]
        worst_label[i] = 0.0
    for k in range(n_clusters):
        probability, y, inverse = workspace.sigma[k], workspace.labels[k], workspace.inverse_slack[k]
        change = workspace.change[k]
        d_w = per_cluster[D_W, k]
        for i in range(n_points):
            rise = (d_nu[i] - d_s[i] * probability[i] - d_w) * inverse[i]
            change[i] -= y[i] * (1 + rise)
            fall = -change[i] / y[i]
            worst[i] = worst[i] if worst[i] > -rise else -rise
            worst_label[i] = worst_label[i] if worst_label[i] > fall else fall
    steepest = 1e-9
    steepest_label = 1e-9
    for i in range(n_points):
        steepest = max(steepest, worst[i])
        steepest_label = max(steepest_label, worst_label[i])
    for k in range(n_clusters):
        per_cluster[D_MEAN, k] = 0.0
        if fairness * prior[k] > NEGLIGIBLE:
            w, mean, d_w = per_cluster[W, k], per_cluster[MEAN, k], per_cluster[D_W, k]
            per_cluster[D_MEAN, k] = (fairness * prior[k] - w * mean - mean * d_w) / w
            steepest = max(steepest, -d_w / w)
    return 1 / steepest_label, 1 / steepest


@part
def _predicted(centre: float, primal: float, dual: float, workspace: ExactWorkspace) -> float:
    """Return the mean of (y + dy)(z + dz) for steps of these lengths, from Σ_k dy = 0 and y dz + z dy = −y z."""
    n_clusters, n_points = workspace.sigma.shape
    per_point, per_cluster = workspace.per_point, workspace.per_cluster
    of_slack = 0.0
    of_both = 0.0
    for i in range(n_points):
        d_s = per_point[WEIGHT, i] * per_point[D_S, i]
        of_slack += per_point[WEIGHT, i] * per_point[D_NU, i] - d_s * per_point[X, i]
        of_both -= d_s * per_point[D_X, i]
    for k in range(n_clusters):
        of_slack -= per_cluster[D_W, k] * per_cluster[MEAN, k]
        of_both -= per_cluster[D_W, k] * per_cluster[D_MEAN, k]
    of_slack /= n_clusters
    of_both /= n_clusters
    reached = centre - primal * (centre + of_slack) + dual * of_slack + primal * dual * of_both
    return float(max(reached, 0.0))


@part
def _move(primal: float, dual: float, workspace: ExactWorkspace) -> None:
    """Take the step; the labels are not yet divided by their new totals."""
    per_point, per_cluster = workspace.per_point, workspace.per_cluster
    n_clusters, n_points = workspace.sigma.shape
    total = per_point[TOTAL]
    for i in range(n_points):
        per_point[NU, i] += dual * per_point[D_NU, i]
        per_point[S, i] += dual * per_point[D_S, i]
        total[i] = 0.0
    for k in range(n_clusters):
        y, change = workspace.labels[k], workspace.change[k]
        per_cluster[OMEGA, k] += dual * per_cluster[D_W, k]
        per_cluster[W, k] += dual * per_cluster[D_W, k]
        for i in range(n_points):
            y[i] += primal * change[i]
            total[i] += y[i]
