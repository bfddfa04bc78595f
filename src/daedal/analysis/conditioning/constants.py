"""Constants of perturbation bounds for index 1, index 2 and nearly higher index (Wijckmans, chapters 4 and 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.analysis.conditioning.semi_explicit_form import (
    Kernel,
    Path,
    Rest,
    SemiExplicitForm,
    exponential,
    inverse,
    norm,
    pieces,
    rate,
    short_times,
    transposed,
)
from daedal.common.tabular import Tabular
from daedal.errors import InvalidProblemError


@dataclass(frozen=True)
class BoundConstant:
    """A constant of a perturbation bound along the grid."""

    symbol: str  # symbol used in the source
    meaning: str
    # Values on the grid, NaN where not applicable; the constant is their maximum
    values: np.ndarray = field(repr=False)

    @property
    def value(self) -> float:
        """The maximum over the grid."""
        return float(np.nanmax(self.values))


@dataclass
class Findings:
    """Constants by name, amplification factors by (effect, source), matrices along the grid by name."""

    constants: dict[str, BoundConstant] = field(default_factory=dict)
    amplification: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    matrices: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, name: str, symbol: str, meaning: str, values: np.ndarray) -> np.ndarray:
        """Store a constant."""
        self.constants[name] = BoundConstant(symbol, meaning, np.asarray(values, dtype=float))
        return self.constants[name].values


# --- the conditioning constants of index 1, Wijckmans sections 4.1 and 4.2 --------------------------------------------


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


def _canonical(found: Findings, kernel: Kernel, grid: SemiExplicitForm, kappa2: np.ndarray) -> None:
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
    kappa4 = found.add(
        "kappa4",
        "kappa4",
        ("forces in y, instantaneously: max |Q G^-1|, (4.8)"),
        norm(Q @ G_inverse),
    )
    kappa5 = found.add("kappa5", "kappa5", "rotation of the kernel: max |P'|, (4.8)", norm(P_rate))
    gamma = found.add("gamma_s", "gamma_s", "y for a given state: max |Ps|, (4.8)", norm(Ps))
    so_far = [np.maximum.accumulate(one) for one in (kappa1, kappa2, kappa3, kappa4, kappa5, gamma)]
    overall = np.maximum(so_far[0], so_far[5] * so_far[1] * (so_far[2] + so_far[3] * so_far[4]))
    found.add("kappa", "kappa", "overall: max(kappa1, gamma_s kappa2 (kappa3 + kappa4 kappa5))", overall)


# --- the conditioning constants of index 2, Wijckmans chapter 5 -------------------------------------------------------


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
    found.add(
        "P", "|P|", ("skewness of constraints relative to the directions that enforce them, B (C B)^-1 C"), norm(P)
    )
    found.add("F", "|F|", "x for a given error of the constraint, F = B (C B)^-1", norm(F))
    found.add("CB_inverse", "|(C B)^-1|", "y for a given rate of the constraint's error, (5.26)", norm(CB_inverse))
    Z = Kernel(t, steps, path.on_grid(states)).from_start(np.eye(P.shape[-1])[None], np.eye(P.shape[-1]))
    W, W_plus = kernel.from_start(free, free[0]), free[0] @ inverse(Z) @ free
    found.matrices |= {"P": P, "F": F, "Z": Z, "W": W, "W_plus": W_plus, "A": A, "B": B, "C": C}
    return found


# --- nearly higher index: the constants of Theorems 4.6 and 5.6 of Wijckmans, and the initial layer -------------------

# Let D be small and C B nonsingular in x' = A x + B y + p, 0 = C x + D y + q. If the eigenvalues of D^-1 C B have
# positive real parts, the solution quickly approaches that of the index-2 problem with D = 0; if the derivative of q is
# bounded, the bounds do not involve D^-1. If C B is small in 0 = C x + q, the same holds for the differentiated
# constraint, with C A + C' instead of C and C B instead of D.


def layer(
    t: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, where: np.ndarray, theorem: str, product: str
) -> Findings:
    """k1, k1^, k2, k2^ of (4.41) and (4.42), with D instead of eps I; infinite where the layer is unstable.

    The mask `where` selects the grid points at which the index is nearly higher; values are NaN at all other points.
    The descriptions of the constants cite `theorem`; `product` is the symbol of C B in the source.
    """
    found = Findings()
    rows = np.full((t.size, 7), np.nan)
    last: tuple[np.ndarray, ...] = ()
    for k in np.flatnonzero(where):
        matrices = B[k], C[k], D[k]
        if last and all(np.array_equal(one, other) for one, other in zip(matrices, last, strict=True)):
            rows[k] = rows[k - 1]
        else:
            rows[k] = _at(float(t[-1] - t[0]), *matrices)
        last = matrices if k + 1 < t.size and where[k + 1] else ()
    k1, k2, k1_hat, k2_hat, F, small, thickness = rows.T
    found.add("layer_k1", "k1", f"growth of initial values in the layer, {theorem}", k1)
    found.add("layer_k2", "k2", f"response of x to lasting forces, {theorem}", k2)
    found.add("layer_k1_hat", "k1^", f"growth of y(0) in the layer, {theorem}", k1_hat)
    found.add("layer_k2_hat", "k2^", f"y for a given rate of the constraint's error, {theorem}", k2_hat)
    found.add("layer_F", f"|B ({product})^-1|", f"x for a given error of the constraint, {theorem}", F)
    found.add("layer_bare", "1/eps", "y for a given error of the constraint that jumps: |D^-1|", small)
    found.add("layer_thickness", "eps", "length of the initial layer", thickness)
    return found


def _at(length: float, B: np.ndarray, C: np.ndarray, D: np.ndarray) -> tuple[float, ...]:
    D_inverse = inverse(D)
    fast = D_inverse @ C @ B
    values = np.linalg.eigvals(fast).real
    slowest = float(np.min(values)) * np.sign(length)
    constants: list[float] = []
    for matrix, right in ((B @ D_inverse @ C, np.eye(B.shape[0])), (fast, D_inverse)):
        if slowest <= 0.0:
            constants += [np.inf, np.inf]
            continue
        tau, powers = short_times(-matrix, length)
        sizes, forced = norm(powers), norm(powers @ right)
        constants += [float(np.max(sizes)), float(np.sum(pieces(forced[:-1], forced[1:], np.diff(tau))))]
    thickness = 1.0 / slowest if slowest > 0.0 else np.inf
    F = float(norm(B @ inverse(C @ B)))
    return *constants, F, float(norm(D_inverse)), thickness


@dataclass(frozen=True)
class InitialLayer:
    """The decaying part of a solution in the initial layer, to leading order, Wijckmans section 4.4."""

    x0: np.ndarray  # start of the solution without the layer, a0(0) = (I - P) x(0) - F q(0)
    # contributions of the layer to x and to y at the start
    alpha: np.ndarray
    beta: np.ndarray
    rate: np.ndarray  # the matrix D^-1 C B, whose eigenvalues are the decay rates of the layer
    _to_x: np.ndarray

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """The layer in x and in y at a time t after the start."""
        beta = exponential(-float(t) * self.rate) @ self.beta
        return self._to_x @ beta, beta


def initial_layer(B: np.ndarray, C: np.ndarray, D: np.ndarray, x0: np.ndarray, q0: np.ndarray) -> InitialLayer:
    """The layer of x' = A x + B y + p, 0 = C x + D y + q with a small D; zero if C x(0) + q(0) = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.analysis.conditioning.constants import initial_layer
    >>> found = initial_layer(-np.eye(1), np.eye(1), -1e-6 * np.eye(1), np.array([2.0]), np.array([-1.0]))
    >>> print(found.x0, found.alpha, found.beta)
    [1.] [1.] [1000000.]
    """
    P, F = projector(B, C)
    D_inverse = inverse(D)
    error = C @ x0 + q0
    return InitialLayer(x0 - P @ x0 - F @ q0, F @ error, -D_inverse @ error, D_inverse @ C @ B, -F @ D)


# --- effect of coefficient errors on an index-2 problem, Wijckmans section 5.3 and Theorem 5.10 -----------------------

# The dynamics of x' = A x + B y, 0 = C x are those of (I - P) A on the kernel of C, with P = B (C B)^-1 C. To first
# order,
#
#     dA changes (I - P) A by (I - P) dA,     dB changes P by (I - P) dB (C B)^-1 C,     dC changes P by F dC (I - P):
#
# a large P, that is constraints nearly parallel to the directions in which y enforces them, amplifies small errors.


@dataclass(frozen=True)
class PerturbedIndex2:
    """An index-2 problem before and after a perturbation of its coefficients; see :func:`perturbed_index2`."""

    eigenvalues: np.ndarray  # eigenvalues of (I - P) A on the kernel of C: the modes of the problem
    first_order: np.ndarray  # eigenvalues after the perturbation, with P from the first-order formulas
    exact: np.ndarray  # eigenvalues after the perturbation, recomputed
    P: np.ndarray
    P_first_order: np.ndarray
    P_exact: np.ndarray
    # The relative size of errors in B or C that can make C B singular: the smallest singular value of C B, divided by
    # |C| |B|
    reach: float

    @property
    def loses_stability(self) -> bool:
        """Whether decaying modes become growing ones."""
        return bool(_largest(self.eigenvalues) <= 0.0 < _largest(self.exact))

    def __str__(self) -> str:
        rows = [
            ("modes as given", _shown(self.eigenvalues)),
            ("to first order", _shown(self.first_order)),
            ("recomputed", _shown(self.exact)),
            ("|P|", f"{float(norm(self.P)):.3g} as given, {float(norm(self.P_exact)):.3g} perturbed"),
            ("can be fatal", f"relative errors of B or C from {self.reach:.1g} on"),
        ]
        verdict = "The perturbation makes a decaying solution grow." if self.loses_stability else ""
        return "\n".join(["Index 2 with perturbed coefficients", str(Tabular("ll", rows, indent=2)), verdict]).rstrip()

    __repr__ = __str__


def perturbed_index2(A: Any, B: Any, C: Any, *, dA: Any = None, dB: Any = None, dC: Any = None) -> PerturbedIndex2:
    """Modes of x' = A x + B y, 0 = C x before and after A, B and C change by dA, dB and dC.

    Examples
    --------
    Example 5.12 of Wijckmans: an error of -1e-3 in one entry of A makes a mode grow like exp(9.5 t).

    >>> from daedal.analysis.conditioning.constants import perturbed_index2
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
    """The eigenvalues without the trivial zeros from the range of B, largest real part first."""
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
