"""What errors in the coefficients of an index-2 problem do, Wijckmans section 5.3 and Theorem 5.10.

The dynamics of x' = A x + B y, 0 = C x is that of (I - P) A on the kernel of C, with P = B (C B)^-1 C. To first order,

    dA changes (I - P) A by (I - P) dA,     dB changes P by (I - P) dB (C B)^-1 C,     dC changes P by F dC (I - P):

a large P, that is constraints nearly parallel to the directions in which y enforces them, makes small errors large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problem_conditioning.index2 import projector
from daedal.problem_conditioning.matrices import norm
from daedal.tabular import Tabular


@dataclass(frozen=True)
class PerturbedIndex2:
    """An index-2 problem beside the same one with other coefficients; see :func:`perturbed_index2`.

    Attributes
    ----------
    eigenvalues : numpy.ndarray
        Of (I - P) A on the kernel of C: the modes of the problem.
    first_order : numpy.ndarray
        The same after the perturbation, P changed by the first-order formulas.
    exact : numpy.ndarray
        The same after the perturbation, computed anew.
    P, P_first_order, P_exact : numpy.ndarray
    reach : float
        The relative size of errors in B or C that can make C B singular: the smallest singular value of C B, divided
        by |C| |B|.
    """

    eigenvalues: np.ndarray
    first_order: np.ndarray
    exact: np.ndarray
    P: np.ndarray
    P_first_order: np.ndarray
    P_exact: np.ndarray
    reach: float

    @property
    def loses_stability(self) -> bool:
        """Whether modes that do not grow become ones that do."""
        return bool(_largest(self.eigenvalues) <= 0.0 < _largest(self.exact))

    def __str__(self) -> str:
        rows = [
            ("modes as given", _shown(self.eigenvalues)),
            ("to first order", _shown(self.first_order)),
            ("computed anew", _shown(self.exact)),
            ("|P|", f"{float(norm(self.P)):.3g} as given, {float(norm(self.P_exact)):.3g} perturbed"),
            ("can be fatal", f"relative errors of B or C from {self.reach:.1g} on"),
        ]
        verdict = "The perturbation makes a decaying solution grow." if self.loses_stability else ""
        return "\n".join(["Index 2 with perturbed coefficients", str(Tabular("ll", rows, indent=2)), verdict]).rstrip()

    __repr__ = __str__


def perturbed_index2(A: Any, B: Any, C: Any, *, dA: Any = None, dB: Any = None, dC: Any = None) -> PerturbedIndex2:
    """The modes of x' = A x + B y, 0 = C x before and after A, B and C change by dA, dB and dC.

    Examples
    --------
    Example 5.12 of Wijckmans: an error of -1e-3 in one entry of A makes a mode grow like exp(9.5 t).

    >>> from daedal.problem_conditioning.perturbed import perturbed_index2
    >>> A, B, C = [[0.5, 1.0], [1.0, 0.5]], [[1.0], [1.0]], [[1.0001, -1.0]]
    >>> perturbed_index2(A, B, C, dA=[[-1e-3, 0.0], [0.0, 0.0]]).exact.round(4)
    array([9.5+0.j])
    """
    matrices = [np.asarray(one, dtype=float) for one in (A, B, C)]
    changes = []
    for name, one, change in zip(("dA", "dB", "dC"), matrices, (dA, dB, dC), strict=True):
        changes.append(np.zeros_like(one) if change is None else np.asarray(change, dtype=float))
        if changes[-1].shape != one.shape:
            raise InvalidProblemError(f"{name} must have the shape {one.shape}, not {changes[-1].shape}")
    (a, b, c), (da, db, dc) = matrices, changes
    P, F = projector(b, c)
    free = np.eye(len(a)) - P
    changed = P + free @ db @ np.linalg.pinv(c @ b) @ c + F @ dc @ free
    exact, _ = projector(b + db, c + dc)
    small = np.linalg.svd(c @ b, compute_uv=False)
    reach = float(small[-1] / (norm(c) * norm(b))) if small.size else np.inf
    m = b.shape[1]
    return PerturbedIndex2(
        _modes(free @ a, m),
        _modes((np.eye(len(a)) - changed) @ (a + da), m),
        _modes((np.eye(len(a)) - exact) @ (a + da), m),
        P,
        changed,
        exact,
        reach,
    )


def _modes(matrix: np.ndarray, trivial: int) -> np.ndarray:
    """The eigenvalues without those zeros that belong to the range of B, largest real part first."""
    values = np.linalg.eigvals(matrix).astype(complex)
    kept = values[np.argsort(np.abs(values))[trivial:]]
    return kept[np.argsort(-kept.real, kind="stable")]


def _largest(values: np.ndarray) -> float:
    return float(np.max(values.real, initial=-np.inf))


def _shown(values: np.ndarray) -> str:
    def text(value: complex) -> str:
        return f"{value.real:.4g}" if abs(value.imag) <= 1e-9 * abs(value) else f"{value.real:.4g}{value.imag:+.4g}i"

    shown = ", ".join(text(complex(value)) for value in values[:6])
    return shown + (f", and {values.size - 6} more" if values.size > 6 else "") or "none"
