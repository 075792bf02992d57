"""Projected gradient descent for L_CCE and L_CCE+, the paper's comparison for EM (section 4, Table 1).

Every iteration takes a step of fixed size against the gradient of the averaged loss, per unit of a point's weight,

    (∂L/∂y_ik) / w_i = −σ_ik / σ_i·y_i + g_k,    g_k = λ ln(ȳ_k / u_k) for L_CCE,  −λ u_k / ȳ_k for L_CCE+,

so that a point of weight 2 moves like two equal points, and a step size suits any number of points. It then projects
every point back onto the simplex: y = max(v − τ, 0) with the τ that makes it sum to 1, found by the finite iteration
of Michelot ("A finite algorithm for finding the projection of a point onto the canonical simplex of Rⁿ", JOTA 1986),
for many points at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from cceclust.compiled import compiled
from cceclust.errors import InputError
from cceclust.pseudo_labels.duality import label_gap
from cceclust.pseudo_labels.solver import Solved
from cceclust.pseudo_labels.summation import sum_in_pairs
from cceclust.validation import (
    FloatArray,
    as_prior,
    check_count,
    check_non_negative,
    check_positive,
    uniform_unless_given,
)

__all__ = ["PGDSolver"]

kernel = compiled(error_model="numpy")
part = compiled(error_model="numpy", inline="always")

# Points solved together: their running sums stay in the first-level cache.
BLOCK = 256


@dataclass(frozen=True, eq=False)
class PGDSolver:
    """Projected gradient descent, as a :class:`~cceclust.pseudo_labels.Solver`.

    Parameters
    ----------
    fairness : float
        λ of the loss.
    prior : array (n_clusters,), optional
        u; uniform by default. With "cce", clusters whose prior is 0 stay empty, unless λ is 0.
    loss : {"cce+", "cce"}
        L_CCE+ (equation 11) or L_CCE (equation 10).
    step_size : float
        η; the paper's step sizes, for the gradient of the average, are this times the number of points.
        Too large a step diverges; the limit is about 2 / (λ n_clusters).
    max_iter : int
        Maximum number of iterations.
    tol : float
        Stop when an iteration lowers the loss by less than this fraction of it. 0 runs all iterations.

    Examples
    --------
    >>> from cceclust.pseudo_labels import PGDSolver, solve_pseudo_labels
    >>> result = solve_pseudo_labels(PGDSolver(fairness=1, step_size=0.1), [[0.9, 0.1], [0.7, 0.3]])
    >>> result.converged
    True
    """

    starts_afresh: ClassVar[bool] = False
    takes_logarithms: ClassVar[bool] = False

    fairness: float = 1.0
    prior: npt.ArrayLike | None = None
    loss: Literal["cce+", "cce"] = "cce+"
    step_size: float = 0.01
    max_iter: int = 1000
    tol: float = 1e-6

    def __post_init__(self) -> None:
        check_non_negative(self.fairness, "fairness")
        check_non_negative(self.tol, "tol")
        check_positive(self.step_size, "step_size")
        check_count(self.max_iter, "max_iter")
        if self.loss not in ("cce+", "cce"):
            raise InputError(f"loss must be 'cce+' or 'cce', got {self.loss!r}")
        object.__setattr__(self, "prior", as_prior(self.prior))

    def solve(
        self, probabilities: FloatArray, pseudo_labels: FloatArray, weights: FloatArray, *, certify: bool = False
    ) -> Solved:
        """Lower the loss over the pseudo-labels, in place."""
        prior, plus = uniform_unless_given(self.prior, len(probabilities)), self.loss == "cce+"
        problem = probabilities, pseudo_labels, prior, weights, float(self.fairness)
        loss, done = _descend(*problem, plus, float(self.step_size), self.max_iter, float(self.tol))
        return Solved(loss, done, label_gap(*problem) if certify and plus else None)


@kernel
def _descend(
    sigma: FloatArray,
    labels: FloatArray,
    prior: FloatArray,
    weights: FloatArray,
    fairness: float,
    plus: bool,
    step_size: float,
    max_iter: int,
    tol: float,
) -> tuple[float, int]:
    """Improve the labels, in place; return the loss at the end and the number of iterations."""
    per_point = np.empty((4, sigma.shape[1]), sigma.dtype)
    push = np.empty(sigma.shape[0], sigma.dtype)
    loss = _evaluate(sigma, labels, prior, weights, fairness, plus, per_point, push)
    done = 0
    while done < max_iter:
        _step(sigma, labels, step_size, per_point, push)
        previous = loss
        loss = _evaluate(sigma, labels, prior, weights, fairness, plus, per_point, push)
        done += 1
        if tol > 0 and previous - loss <= tol * loss:
            break
    return loss, done


@part
def _evaluate(
    sigma: FloatArray,
    labels: FloatArray,
    prior: FloatArray,
    weights: FloatArray,
    fairness: float,
    plus: bool,
    per_point: FloatArray,
    push: FloatArray,
) -> float:
    """Return the loss and leave σ·y in per_point[0] and the fairness gradient g in push."""
    n_clusters, n_points = sigma.shape
    zero = sigma.dtype.type(0)
    collision = per_point[0]
    terms = per_point[1]
    for i in range(n_points):
        collision[i] = zero
    loss = 0.0
    # Empty clusters would have an infinite gradient; this bound is large enough and finite.
    smallest = float(np.finfo(sigma.dtype).tiny) ** 0.5
    for k in range(n_clusters):
        probability = sigma[k]
        y = labels[k]
        for i in range(n_points):
            collision[i] += probability[i] * y[i]
            terms[i] = weights[i] * y[i]
        mean = float(sum_in_pairs(terms))
        if plus:
            push[k] = -fairness * prior[k] / max(mean, smallest)
            if fairness * prior[k] > 0:
                loss += fairness * prior[k] * np.log(prior[k] / mean)
        else:
            push[k] = fairness * np.log(max(mean, smallest) / max(prior[k], smallest))
            if fairness > 0 and prior[k] == 0:
                # The loss is infinite unless the class is empty; an unlimited push down empties it in the projection.
                push[k] = np.inf
            if fairness * mean > 0:
                loss += fairness * mean * np.log(mean / prior[k])
    for i in range(n_points):
        if weights[i] > 0:
            loss -= weights[i] * np.log(collision[i])
    return loss


@part
def _step(sigma: FloatArray, labels: FloatArray, step_size: float, per_point: FloatArray, push: FloatArray) -> None:
    """One gradient step and its projection onto the simplex."""
    n_clusters, n_points = sigma.shape
    smallest = sigma.dtype.type(np.finfo(sigma.dtype).tiny ** 0.5)
    step = sigma.dtype.type(step_size)
    for start in range(0, n_points, BLOCK):
        stop = min(start + BLOCK, n_points)
        n = stop - start
        pull = per_point[1, start:stop]
        for i in range(n):
            pull[i] = step / max(per_point[0, start + i], smallest)
        for k in range(n_clusters):
            y = labels[k, start:stop]
            probability = sigma[k, start:stop]
            away = step * push[k]
            for i in range(n):
                y[i] += pull[i] * probability[i] - away
        _project(labels[:, start:stop], per_point[:, start:stop])


@part
def _project(labels: FloatArray, per_point: FloatArray) -> None:
    """Project every point onto the simplex."""
    n_clusters, n = labels.shape
    one = labels.dtype.type(1)
    zero = labels.dtype.type(0)
    largest = per_point[0]
    threshold = per_point[1]
    total = per_point[2]
    count = per_point[3]
    for i in range(n):
        largest[i] = labels[0, i]
    for k in range(1, n_clusters):
        y = labels[k]
        for i in range(n):
            largest[i] = y[i] if y[i] > largest[i] else largest[i]
    # Only coordinates less than 1 below the largest can stay positive. Measured from the largest, huge ones keep
    # the digits that matter.
    for k in range(n_clusters):
        y = labels[k]
        for i in range(n):
            y[i] -= largest[i]
    for i in range(n):
        threshold[i] = -one
    for _ in range(n_clusters + 1):
        for i in range(n):
            total[i] = zero
            count[i] = zero
        for k in range(n_clusters):
            y = labels[k]
            for i in range(n):
                above = y[i] > threshold[i]
                total[i] += y[i] - threshold[i] if above else zero
                count[i] += one if above else zero
        moving = 0
        for i in range(n):
            risen = threshold[i] + (total[i] - one) / count[i]
            moving += 1 if risen > threshold[i] else 0
            threshold[i] = risen if risen > threshold[i] else threshold[i]
        if moving == 0:
            break
    for i in range(n):
        total[i] = zero
    for k in range(n_clusters):
        y = labels[k]
        for i in range(n):
            y[i] = y[i] - threshold[i] if y[i] > threshold[i] else zero
            total[i] += y[i]
    for k in range(n_clusters):
        y = labels[k]
        for i in range(n):
            y[i] /= total[i]
