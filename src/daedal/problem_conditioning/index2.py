"""The conditioning constants of index 2, Wijckmans chapter 5."""

from __future__ import annotations

import numpy as np

from daedal.problem_conditioning.findings import Findings
from daedal.problem_conditioning.matrices import inverse, norm, rate, transposed
from daedal.problem_conditioning.semi_explicit_form import Path
from daedal.problem_conditioning.splitting import Rest
from daedal.problem_conditioning.transition import Kernel


def projector(B: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P = B (C B)^-1 C and F = B (C B)^-1, (5.2)."""
    F = B @ inverse(C @ B)
    return F @ C, F


def state_matrix(A: np.ndarray, P: np.ndarray, P_rate: np.ndarray) -> np.ndarray:
    """The matrix (I - P) A - P' of the state equation (5.7)."""
    return A - P @ A - P_rate


def index2(path: Path, t: np.ndarray, rests: list[Rest]) -> Findings:
    """k1, k2, |P| and the amplification of each perturbation, by (5.7), (5.22), (5.23) and (5.26)."""
    found = Findings()
    P_nodes, F_nodes, states, F_rates = [], [], [], []
    for rest, h in zip(rests, np.diff(path.t), strict=True):
        P, F = projector(rest.B, rest.C)
        P_nodes.append(P)
        F_nodes.append(F)
        F_rates.append(rate(F, h))
        states.append(state_matrix(rest.A, P, rate(P, h)))
    P, F, F_rate = path.on_grid(P_nodes), path.on_grid(F_nodes), path.on_grid(F_rates)
    A, B, C, C_rate, U2, U2_rate, V1, V2, S, B1 = (
        path.on_grid([getattr(rest, name) for rest in rests])
        for name in ("A", "B", "C", "C_rate", "U2", "U2_rate", "V1", "V2", "S", "B1")
    )
    free = np.eye(P.shape[-1]) - P
    steps = path.steps(states)
    kernel = Kernel(t, free[1:] @ steps @ free[:-1], path.on_grid(states))
    CB_inverse = inverse(C @ B)
    to_y = -V2 @ CB_inverse @ (C_rate + C @ A) - V1 @ S @ path.grid.C
    of_q = -free @ (B1 @ S + (A @ F - F_rate) @ transposed(U2))
    y_q_at_once = -to_y @ F @ transposed(U2) - V1 @ S
    y_q_at_once += V2 @ CB_inverse @ (C @ B1 @ S - transposed(U2_rate))
    x_p, x_q, y_p, y_q = kernel.integrals([(free, free), (free, of_q), (to_y @ free, free), (to_y @ free, of_q)])
    k1 = kernel.growth(free, free[0])
    found.amplification = {
        ("x", "x(0)"): k1,
        ("x", "p"): x_p,
        ("x", "q"): x_q + norm(F @ transposed(U2)),
        ("x", "q'"): np.zeros(t.size),
        ("y", "x(0)"): kernel.growth(to_y @ free, free[0]),
        ("y", "p"): y_p + norm(V2 @ CB_inverse @ C),
        ("y", "q"): y_q + norm(y_q_at_once),
        ("y", "q'"): norm(V2 @ CB_inverse @ transposed(U2)),
    }
    found.add("k1", "k1", "growth of initial values: max |W(t)|, (5.22)", k1)
    found.add("k2", "k2", "lasting forces: sup of the integral of |W(t) W(s)^+|, (5.22)", x_p)
    found.add("P", "|P|", "how skew constraints stand to what enforces them, B (C B)^-1 C", norm(P))
    found.add("F", "|F|", "x for a given error of the constraint, F = B (C B)^-1", norm(F))
    found.add("CB_inverse", "|(C B)^-1|", "y for a given rate of the constraint's error, (5.26)", norm(CB_inverse))
    Z = Kernel(t, steps, path.on_grid(states)).from_start(np.eye(P.shape[-1])[None], np.eye(P.shape[-1]))
    W, W_plus = kernel.from_start(free, free[0]), free[0] @ inverse(Z) @ free
    found.matrices |= {"P": P, "F": F, "Z": Z, "W": W, "W_plus": W_plus, "A": A, "B": B, "C": C}
    return found
