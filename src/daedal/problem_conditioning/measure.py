"""How a DAE of index 1 or 2 answers to perturbations along an interval or a solution: all constants that apply."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problem_conditioning.effective_index import ROUND_OFF, EffectiveIndex, effective_index, highest
from daedal.problem_conditioning.findings import Findings
from daedal.problem_conditioning.index1 import index1
from daedal.problem_conditioning.index2 import index2
from daedal.problem_conditioning.layer import layer
from daedal.problem_conditioning.linearised import linearised
from daedal.problem_conditioning.matrices import norm
from daedal.problem_conditioning.result import Conditioning
from daedal.problem_conditioning.semi_explicit_form import Form, Path, path_of
from daedal.problem_conditioning.splitting import Rest, splitting
from daedal.problems import LinearDAE


def measured(problem: Any, along: Any, threshold: float, points: int | None) -> Conditioning:
    """What :func:`daedal.conditioning` returns."""
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


def _along(grid: Form, constant: bool, threshold: float) -> list[EffectiveIndex]:
    """The effective index at every point."""
    count = len(grid.A)
    some = [
        effective_index(grid.A[k], grid.B[k], grid.C[k], grid.D[k], C_rate=grid.C_rate[k], threshold=threshold)
        for k in range(1 if constant else count)
    ]
    return some * count if constant else some


def _index(formal: list[EffectiveIndex]) -> int | None:
    """The index of the equations as they stand, if it is the same everywhere."""
    kinds = {(one.index, _well_determined(one)) for one in formal}
    return formal[0].index if len(kinds) == 1 else None


def _well_determined(found: EffectiveIndex) -> int:
    """The number of algebraic variables that D itself determines."""
    return found.levels[0].decision.rank if found.levels else 0


def _findings(
    path: Path,
    t: np.ndarray,
    formal: list[EffectiveIndex],
    effective: list[EffectiveIndex],
) -> Findings:
    """All constants that apply."""
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
    """Whether the effective index is this one somewhere, and known everywhere."""
    found = [one.index for one in effective]
    return None not in found and max(one for one in found if one is not None) == index


def _grid(path: Path, rests: list[Rest], name: str) -> np.ndarray:
    return path.on_grid([getattr(rest, name) for rest in rests])
