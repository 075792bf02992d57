"""Pseudo-labels y for given probabilities σ: one solver per file, all with the same interface.

===================================  ==============================================  =======================
solver                               minimises                                       reference
===================================  ==============================================  =======================
:class:`EMSolver`                    L_CCE+ = mean H₂(y, σ) + λ KL(u ‖ ȳ)            the paper, section 4
:class:`ExactSolver`                 L_CCE+, to a duality gap                        ``duality.py``
:class:`PGDSolver`                   L_CCE+, or L_CCE = mean H₂(y, σ) + λ KL(ȳ ‖ u)  the paper, section 4
:class:`OptimalTransportSolver`      mean H(y, σ) subject to ȳ = u                   SeLa, arXiv:1911.05371
:class:`AlternatingDirectionSolver`  mean H(y, σ) + λ KL(ȳ ‖ u)                      MIADM, arXiv:1810.04246
===================================  ==============================================  =======================

:func:`estimate_pseudo_labels` runs one of the first two; :func:`solve_pseudo_labels` runs any of them. Training calls
their `solve` method on K-major arrays.
"""

from cceclust.pseudo_labels.alternating_direction import AlternatingDirectionSolver
from cceclust.pseudo_labels.em import EMSolver
from cceclust.pseudo_labels.estimate import estimate_pseudo_labels
from cceclust.pseudo_labels.exact import ExactSolver
from cceclust.pseudo_labels.optimal_transport import OptimalTransportSolver
from cceclust.pseudo_labels.pgd import PGDSolver
from cceclust.pseudo_labels.solver import PseudoLabels, Solved, Solver, solve_pseudo_labels

__all__ = [
    "AlternatingDirectionSolver",
    "EMSolver",
    "ExactSolver",
    "OptimalTransportSolver",
    "PGDSolver",
    "PseudoLabels",
    "Solved",
    "Solver",
    "estimate_pseudo_labels",
    "solve_pseudo_labels",
]
