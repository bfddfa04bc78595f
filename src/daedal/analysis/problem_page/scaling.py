"""Scaling: whether the units of equations and unknowns differ so much that solvers would benefit from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from daedal.index.structure.equilibration import equilibrate

_LARGEST = 400
_WORTHWHILE = 1e4  # reduction of the condition number by scaling that is reported
_APART = 1e3  # factor between the scales of two unknowns that is reported


@dataclass(frozen=True)
class Scaling:
    """The effect of row and column scaling on the system Jacobian.

    Attributes
    ----------
    condition, scaled : float
        Its condition number, before and after.
    equations, unknowns : numpy.ndarray
        Factors of equations and units of unknowns that balance it.
    """

    condition: float
    scaled: float
    equations: np.ndarray
    unknowns: np.ndarray

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> Scaling | None:
        """The scaling of a matrix; None if it is too large, or singular."""
        if matrix.shape[0] > _LARGEST or not np.all(np.isfinite(matrix.data)):
            return None
        dense = matrix.toarray()
        rows, columns = equilibrate(dense)
        before, after = np.linalg.cond(dense), np.linalg.cond(rows[:, None] * dense * columns)
        return cls(float(before), float(after), rows, columns) if np.isfinite(after) else None

    def advice(self, names: Sequence[str]) -> str:
        """The recommendation as one sentence."""
        numbers = f"condition number {self.condition:.1e}, {self.scaled:.1e} with balanced units"
        if self.condition < _WORTHWHILE * self.scaled:
            return f"no need ({numbers})"
        sentences = []
        for what, factors, named in (
            ("in units that differ less, or tolerances for each", self.unknowns, names),
            ("multiplied so that they are of similar size", 1.0 / self.equations, None),
        ):
            least, most = int(np.argmin(factors)), int(np.argmax(factors))
            if factors[most] > _APART * factors[least]:
                large, small = (named[k] if named else f"equation {k}" for k in (most, least))
                ratio = factors[most] / factors[least]
                sentences.append(f"{large} is naturally about {ratio:.0e} times {small}: better {what}")
        return f"{'; '.join(sentences) or 'several units differ'} ({numbers})"
