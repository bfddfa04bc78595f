"""Sensitivity of a DAE of index 1 or 2 to perturbations along an interval or a solution, with all applicable
constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.analysis.conditioning.conditioning_result import Conditioning
from daedal.analysis.conditioning.constants import Findings, index1, index2, layer, projector
from daedal.analysis.conditioning.effective_index import ROUND_OFF, THRESHOLD, EffectiveIndex, effective_index, highest
from daedal.analysis.conditioning.linear_form import at_point, linearised
from daedal.analysis.conditioning.semi_explicit_form import (
    Path,
    Rest,
    SemiExplicitForm,
    inverse,
    norm,
    path_of,
    semi_explicit_form,
    splitting,
)
from daedal.common.tabular import Tabular
from daedal.errors import InvalidProblemError
from daedal.problems import LinearDAE


def measured(problem: Any, along: Any, threshold: float, points: int | None) -> Conditioning:
    """The result of :func:`daedal.analysis.analyse_conditioning`."""
    if not (isinstance(threshold, float | int) and ROUND_OFF < threshold < 1.0):
        raise InvalidProblemError(f"threshold must be a number between {ROUND_OFF:g} and 1, got {threshold!r}")
    system = linearised(problem, along, points)
    path = path_of(system)
    grid = path.grid
    formal = _along(grid, system.constant, ROUND_OFF)
    effective = _along(grid, system.constant, float(threshold))
    index, found = _index(formal), Findings()
    if index is not None and index <= 2:
        found = _findings(path, system.t, formal, effective)
    return Conditioning(
        names=tuple(system.names),
        t=system.t,
        index=index,
        effective=highest(effective),
        indices=np.array([np.nan if one.index is None else one.index for one in effective]),
        formal_indices=np.array([np.nan if one.index is None else one.index for one in formal]),
        constants=found.constants,
        amplification=found.amplification,
        matrices=found.matrices,
        algebraic=grid.V2[0],
        unresolved=path.unresolved,
        is_linear=system.linear,
        has_stabilised_reduction=isinstance(problem, LinearDAE) and problem.n_y <= problem.n_x,
    )


def _along(grid: SemiExplicitForm, constant: bool, threshold: float) -> list[EffectiveIndex]:
    count = len(grid.A)
    some = [
        effective_index(grid.A[k], grid.B[k], grid.C[k], grid.D[k], C_rate=grid.C_rate[k], threshold=threshold)
        for k in range(1 if constant else count)
    ]
    return some * count if constant else some


def _index(formal: list[EffectiveIndex]) -> int | None:
    """The index of the original equations; None if it changes along the grid."""
    kinds = {(one.index, _well_determined(one)) for one in formal}
    return formal[0].index if len(kinds) == 1 else None


def _well_determined(found: EffectiveIndex) -> int:
    return found.levels[0].decision.rank if found.levels else 0


def _findings(
    path: Path,
    t: np.ndarray,
    formal: list[EffectiveIndex],
    effective: list[EffectiveIndex],
) -> Findings:
    if formal[0].index == 2:
        rests = splitting(path.forms, _well_determined(formal[0]), path.t)
        found = index2(path, t, rests)
        if _is_next(effective, 3):
            A, B, C, C_rate = (_grid(path, rests, name) for name in ("A", "B", "C", "C_rate"))
            near = layer(t, B, C @ A + C_rate, C @ B, _places(effective, 3), "Theorem 5.6", "C A B")
            found.constants |= near.constants
        return found
    found = index1(path, t)
    if _is_next(effective, 2):
        rests = splitting(path.forms, min(map(_well_determined, effective)), path.t)
        B, C, D = (_grid(path, rests, name) for name in ("B", "C", "D"))
        near = layer(t, B, C, D, _places(effective, 2), "Theorem 4.6", "C B")
        found.constants |= near.constants
        found.matrices |= {"B": B, "C": C, "D": D}
        k2_hat, F = near.constants["layer_k2_hat"].values, near.constants["layer_F"].values
        smallest = 1.0 / near.constants["layer_bare"].values
        found.amplification["y", "q'"] = k2_hat * norm(_grid(path, rests, "V2"))
        found.amplification["x", "q'"] = smallest * k2_hat * F
    return found


def _places(effective: list[EffectiveIndex], index: int) -> np.ndarray:
    return np.array([one.index == index for one in effective])


def _is_next(effective: list[EffectiveIndex], index: int) -> bool:
    """Whether the effective index is known everywhere and equal to `index` somewhere."""
    found = [one.index for one in effective]
    return None not in found and max(one for one in found if one is not None) == index


def _grid(path: Path, rests: list[Rest], name: str) -> np.ndarray:
    return path.on_grid([getattr(rest, name) for rest in rests])


# --- conditioning at one point: quantities that require no solution --------------------------------------------------


@dataclass(frozen=True, repr=False)
class LocalConditioning:
    """Norms of projectors and the effective index of a DAE at one point; see :func:`local_conditioning`."""

    index: int | None  # index of the original linearised equations, with matrices taken as constant
    effective: EffectiveIndex = field(repr=False)
    # The effective index of each unknown: 0 for differential ones, None for undetermined ones
    variables: dict[str, int | None]
    # Norms by name: D_inverse, D_inverse_C, Ps, G_inverse for index 1; P, F, CB_inverse for index 2
    norms: dict[str, float]

    @property
    def effective_index(self) -> int | None:
        """The highest effective index; None if some variables are undetermined once small numbers are dropped."""
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
        See :func:`daedal.analysis.analyse_conditioning`.

    Examples
    --------
    >>> import daedal
    >>> from daedal.analysis.conditioning.measure import local_conditioning
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
    """Like :func:`local_conditioning`, for E x' + F x = q with given matrices at the point."""
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
