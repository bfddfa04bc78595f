"""Conditioning at one point: what can be said without following the solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.problem_conditioning.effective_index import ROUND_OFF, THRESHOLD, EffectiveIndex, effective_index
from daedal.problem_conditioning.index2 import projector
from daedal.problem_conditioning.linearised import at_point
from daedal.problem_conditioning.matrices import inverse, norm
from daedal.problem_conditioning.semi_explicit_form import semi_explicit_form
from daedal.problem_conditioning.splitting import splitting
from daedal.tabular import Tabular


@dataclass(frozen=True, repr=False)
class LocalConditioning:
    """Norms of projectors and the effective index of a DAE at one point; see :func:`local_conditioning`.

    Attributes
    ----------
    index : int or None
        Of the linearised equations as they stand, matrices taken for constant.
    effective : EffectiveIndex
    variables : dict
        The effective index of each unknown: 0 for differential ones, None for those that are not determined.
    norms : dict
        Norms by name: D_inverse, D_inverse_C, Ps, G_inverse for index 1; P, F, CB_inverse for index 2.
    """

    index: int | None
    effective: EffectiveIndex = field(repr=False)
    variables: dict[str, int | None]
    norms: dict[str, float]

    @property
    def effective_index(self) -> int | None:
        """The highest effective index; None if some variables are not determined once small numbers are dropped."""
        return self.effective.index

    def rows(self) -> list[tuple[str, str]]:
        """Names and values, for a table."""
        effect = self.effective_index
        found = [("effective index", "none: not all variables are determined" if effect is None else str(effect))]
        if self.effective_index != self.index:
            high = [name for name, index in self.variables.items() if index == self.effective_index]
            found.append(("because of", ", ".join(high[:6]) + ", ..." * (len(high) > 6)))
        return found + [(_WORDS[name], f"{value:.3g}") for name, value in self.norms.items()]

    def __str__(self) -> str:
        return str(Tabular("ll", self.rows()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return Tabular("ll", self.rows())._repr_html_()


_WORDS = {
    "D_inverse": "|D^-1|, errors of constraints in y",
    "D_inverse_C": "|D^-1 C|, errors of x in y",
    "Ps": "|Ps|, canonical projector",
    "G_inverse": "|G^-1|",
    "P": "|P|, skewness of the constraints",
    "F": "|B (C B)^-1|, errors of constraints in x",
    "CB_inverse": "|(C B)^-1|, their rates in y",
}


def local_conditioning(
    problem: Any, t: float = 0.0, y: Any = None, yp: Any = None, *, threshold: float = THRESHOLD
) -> LocalConditioning:
    """The effective index and the norms of projectors at one point.

    Parameters
    ----------
    problem : LinearDAE, SemiExplicitDAE, ImplicitDAE, linear.Pencil or linear.TimeVarying
    t, y, yp : float, array_like, array_like
        The point; y and y' are not needed for linear problems.
    threshold : float
        See :func:`daedal.conditioning`.

    Examples
    --------
    >>> import daedal
    >>> from daedal.problem_conditioning.local import local_conditioning
    >>> print(local_conditioning(daedal.library.linear_index2().problem))
    effective index                           2
    |P|, skewness of the constraints          1
    |B (C B)^-1|, errors of constraints in x  1
    |(C B)^-1|, their rates in y              1
    """
    return conditioning_of_matrices(*at_point(problem, t, y, yp), threshold=threshold)


def conditioning_of_matrices(
    E: np.ndarray, F: np.ndarray, names: Sequence[str], *, threshold: float = THRESHOLD
) -> LocalConditioning:
    """The same for E x' + F x = q, where the matrices at the point are known already."""
    form, _ = semi_explicit_form(E[None], F[None], 1.0)
    A, B, C, D = form.A[0], form.B[0], form.C[0], form.D[0]
    formal, effective = (effective_index(A, B, C, D, threshold=limit) for limit in (ROUND_OFF, threshold))
    norms: dict[str, np.ndarray] = {}
    if formal.index == 1:
        D_inverse, Q = inverse(D), form.V2[0] @ form.V2[0].T
        G_inverse = inverse(E + F @ Q)
        Ps = np.eye(len(names)) - Q @ G_inverse @ F
        norms = {
            "D_inverse": norm(D_inverse),
            "D_inverse_C": norm(D_inverse @ C),
            "Ps": norm(Ps),
            "G_inverse": norm(G_inverse),
        }
    elif formal.index == 2:
        rest = splitting([form], formal.levels[0].decision.rank, np.array([0.0, 1.0]))[0]
        P, along = projector(rest.B[0], rest.C[0])
        norms = {"P": norm(P), "F": norm(along), "CB_inverse": norm(inverse(rest.C[0] @ rest.B[0]))}
    variables = dict(zip(names, effective.of_variables(form.V2[0]), strict=True))
    return LocalConditioning(formal.index, effective, variables, {name: float(one) for name, one in norms.items()})
