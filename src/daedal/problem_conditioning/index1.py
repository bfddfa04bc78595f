"""The conditioning constants of index 1, Wijckmans sections 4.1 and 4.2."""

from __future__ import annotations

import numpy as np

from daedal.problem_conditioning.findings import Findings
from daedal.problem_conditioning.matrices import inverse, norm, transposed
from daedal.problem_conditioning.semi_explicit_form import Form, Path
from daedal.problem_conditioning.transition import Kernel


def index1(path: Path, t: np.ndarray) -> Findings:
    """The constants (4.8) and (4.12), and the amplification of each perturbation."""
    found, grid = Findings(), path.grid
    state = [form.A - form.B @ inverse(form.D) @ form.C for form in path.forms]
    kernel = Kernel(t, path.steps(state), path.on_grid(state))
    D_inverse = inverse(grid.D)
    to_y, of_q = D_inverse @ grid.C, grid.B @ D_inverse  # y = -to_y x - D^-1 q, and p - of_q q drives x
    one = np.repeat(np.eye(grid.n_x)[None], t.size, axis=0)
    x_p, x_q, y_p, y_q = kernel.integrals([(one, one), (one, of_q), (to_y, one), (to_y, of_q)])
    k1 = kernel.growth(one, one[0])
    found.amplification = {
        ("x", "x(0)"): k1,
        ("x", "p"): x_p,
        ("x", "q"): x_q,
        ("y", "x(0)"): kernel.growth(to_y, one[0]),
        ("y", "p"): y_p,
        ("y", "q"): y_q + norm(D_inverse),
    }
    if grid.n_y == 0:
        found.amplification = {("x", "x(0)"): k1, ("x", "p"): x_p}
    found.add("k1", "k1", "growth of initial values: max |X(t)|, (4.12)", k1)
    found.add("k2", "k2", "lasting forces: sup of the integral of |X(t) X(s)^-1|, (4.12)", x_p)
    if grid.n_y:
        found.add("D_inverse_C", "|D^-1 C|", "y for a given x, (4.12)", norm(to_y))
        found.add("D_inverse", "|D^-1|", "y for a given error of the constraint, (4.12)", norm(D_inverse))
    _canonical(found, kernel, grid, x_p)
    return found


def _canonical(found: Findings, kernel: Kernel, grid: Form, kappa2: np.ndarray) -> None:
    """Canonical projectors and the constants (4.8).

    With the orthogonal projector P = V1 V1^T the norm of U(t) U(s)^-1 on its range is that of the fundamental matrix
    of the semi-explicit form.
    """
    P, Q = grid.V1 @ transposed(grid.V1), grid.V2 @ transposed(grid.V2)
    G = grid.E + grid.F @ Q
    G_inverse = inverse(G)
    Qs = Q @ G_inverse @ grid.F
    Ps = np.eye(G.shape[-1]) - Qs
    P_rate = grid.V1_rate @ transposed(grid.V1)
    P_rate = P_rate + transposed(P_rate)
    found.matrices |= {"Q": Q, "P": P, "Qs": Qs, "Ps": Ps, "G": G}
    kappa1 = found.add(
        "kappa1",
        "kappa1",
        "growth of initial values: max |X(t)|, (4.8)",
        kernel.growth(Ps @ grid.V1, transposed(grid.V1)[0]),
    )
    found.add("kappa2", "kappa2", "lasting forces: sup of the integral of |U(t) U(s)^-1|, (4.8)", kappa2)
    kappa3 = found.add("kappa3", "kappa3", "forces in the state: max |P G^-1|, (4.8)", norm(P @ G_inverse))
    kappa4 = found.add("kappa4", "kappa4", "forces in the rest, at once: max |Q G^-1|, (4.8)", norm(Q @ G_inverse))
    kappa5 = found.add("kappa5", "kappa5", "turning of the kernel: max |P'|, (4.8)", norm(P_rate))
    gamma = found.add("gamma_s", "gamma_s", "rest for a given state: max |Ps|, (4.8)", norm(Ps))
    so_far = [np.maximum.accumulate(one) for one in (kappa1, kappa2, kappa3, kappa4, kappa5, gamma)]
    overall = np.maximum(so_far[0], so_far[5] * so_far[1] * (so_far[2] + so_far[3] * so_far[4]))
    found.add("kappa", "kappa", "overall: max(kappa1, gamma_s kappa2 (kappa3 + kappa4 kappa5))", overall)
