"""Linear DAEs that show what the index of a pencil does not tell: Brenan, Campbell and Petzold, sections 2.4 and 3.1.

``model.extra["exact"](t, derivative)`` is the closed solution, for derivative 0 and 1.
"""

import math

import numpy as np

import daedal
from daedal.library.circuits import Source, linear_dae
from daedal.library.registry import BRENAN_CAMPBELL_PETZOLD, Indices, Model, closed_model, model


def singular_pencil_residual(t, x, xp):
    return np.array([xp[0] + t * xp[1] - math.exp(-t), x[0] + t * x[1] - math.sin(t)])


@model(
    title="Solvable, with a singular pencil",
    source=BRENAN_CAMPBELL_PETZOLD + ", example 2.4.1; the right-hand sides are Daedal's",
    description="Two equations that determine their solution, although at no time do the frozen coefficients: every "
    "BDF and Runge-Kutta method meets a singular matrix. The differentiated constraint is what helps.",
    equations=r"x_1' + t x_2' = e^{-t},\qquad x_1 + t x_2 = \sin t",
)
def singular_pencil() -> Model:
    r"""A solvable DAE of index 2 whose pencil is singular at all times; :math:`x_2 = \cos t - e^{-t}`."""

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        s, c, e = math.sin(t), math.cos(t), math.exp(-t)
        x2, slope = c - e, -s + e
        return np.array([s - t * x2, x2]) if derivative == 0 else np.array([c - x2 - t * slope, slope])

    return closed_model(
        daedal.ImplicitDAE(singular_pencil_residual, 2, names=["x1", "x2"]),
        exact,
        2.0,
        index=2,
        indices=Indices.usual(2, 0, local=None, structural=1, structure_suffices=False),
        options={"rtol": 1e-6, "atol": 1e-8, "formulation": "strangeness_free"},
    )


def unsolvable_pencil_residual(t, x, xp):
    return np.array([-t * xp[0] + t * t * xp[1] + x[0], -xp[0] + t * xp[1] + x[1]])


@model(
    title="Regular pencil, not solvable",
    source=BRENAN_CAMPBELL_PETZOLD + ", example 2.4.2",
    description="The pencil is regular at all times, with determinant 1, and BDF methods take their steps; but the "
    "equations have infinitely many solutions from the same start. To be refused, not to be solved.",
    equations=r"-t x_1' + t^2 x_2' + x_1 = 0,\qquad -x_1' + t x_2' + x_2 = 0",
)
def unsolvable_pencil() -> Model:
    r"""A DAE with a regular pencil that has the solutions :math:`x = \varphi(t)\,(t, 1)` with any function.

    Notes
    -----
    The first equation minus t times the second one is :math:`x_1 = t x_2`, and with the derivative of this the second
    one says nothing: however often the equations are differentiated, one derivative stays open.
    ``model.extra["exact"]`` is the solution with :math:`\varphi = \sin t`; there is no reference, since no solution is
    better than another.
    """

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        s, c = math.sin(t), math.cos(t)
        return np.array([t * s, s]) if derivative == 0 else np.array([s + t * c, c])

    return Model(
        problem=daedal.ImplicitDAE(unsolvable_pencil_residual, 2, names=["x1", "x2"]),
        t_span=(0.0, 2.0),
        initial=(exact(0.0), exact(0.0, 1)),
        index=None,
        indices=Indices(
            differentiation=None,
            strangeness=1,
            degrees_of_freedom=None,
            local=2,
            structural=0,
            structure_suffices=False,
        ),
        options={"formulation": "strangeness_free"},
        plot={"variables": ["x1", "x2"]},
        extra={"exact": exact},
    )


def changing_nullspace_residual(t, x, xp):
    ahead, behind = max(t, 0.0) ** 4, max(-t, 0.0) ** 4
    return np.array([ahead * xp[1] + x[0] - math.sin(t), behind * xp[0] + x[1] - math.cos(2.0 * t)])


@model(
    title="Changing nullspace",
    source=BRENAN_CAMPBELL_PETZOLD + ", example 2.4.3; fourth powers in place of functions that are smooth at 0",
    description="The derivative of the second unknown occurs for t > 0 only, that of the first one for t < 0 only. The "
    "problem is solvable, but no smooth change of variables brings it to a standard form; at t = 0 the matrix of the "
    "derivatives vanishes, and the pencil has index 1 instead of 2.",
    equations=r"\max(t, 0)^4\,x_2' + x_1 = \sin t,\qquad \max(-t, 0)^4\,x_1' + x_2 = \cos 2t",
)
def changing_nullspace() -> Model:
    r"""A solvable DAE on [-1, 1] whose leading matrix changes its rank and its nullspace at t = 0."""

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        ahead, behind = max(t, 0.0), max(-t, 0.0)
        f1, f2 = math.sin(t), math.cos(2.0 * t)
        slope1, slope2 = math.cos(t), -2.0 * math.sin(2.0 * t)
        if derivative == 0:
            return np.array([f1 - ahead**4 * slope2, f2 - behind**4 * slope1])
        bend1, bend2 = -f1, -4.0 * f2
        return np.array(
            [
                slope1 - 4.0 * ahead**3 * slope2 - ahead**4 * bend2,
                slope2 + 4.0 * behind**3 * slope1 - behind**4 * bend1,
            ]
        )

    return closed_model(
        daedal.ImplicitDAE(changing_nullspace_residual, 2, names=["x1", "x2"]),
        exact,
        1.0,
        t0=-1.0,
        index=2,
        indices=Indices.usual(2, 0, structural=0, structure_suffices=False),
    )


def changing_rank_residual(t, x, xp):
    return np.array([(t - 1.0) * xp[1] + x[0] - math.cos(t), x[1] - math.sin(t)])


@model(
    title="Changing rank",
    source=BRENAN_CAMPBELL_PETZOLD + ", section 2.4: the standard canonical form with a nilpotent matrix of changing "
    "rank; the data are Daedal's",
    description="A derivative whose factor passes through zero at t = 1. There the pencil has index 1, elsewhere 2; "
    "the solution takes no notice.",
    equations=r"(t - 1)\,x_2' + x_1 = \cos t,\qquad x_2 = \sin t",
)
def changing_rank() -> Model:
    r"""A solvable DAE whose local index is 2, but 1 at t = 1; :math:`x_1 = (2 - t) \cos t`."""

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        s, c = math.sin(t), math.cos(t)
        return np.array([(2.0 - t) * c, s]) if derivative == 0 else np.array([-c - (2.0 - t) * s, c])

    return closed_model(
        daedal.ImplicitDAE(changing_rank_residual, 2, algebraic=[0], names=["x1", "x2"]),
        exact,
        2.0,
        index=2,
        indices=Indices.usual(2, 0),
    )


def moving_nullspace_residual(t, x, xp, p):
    eta = p[0]
    return np.array([x[0] + eta * t * x[1] - math.sin(t), xp[0] + eta * t * xp[1] + (1.0 + eta) * x[1]])


@model(
    title="Moving nullspace",
    source=BRENAN_CAMPBELL_PETZOLD + ", equations (3.1.13)",
    description="A DAE of index 2 that is not semi-explicit, with a nullspace that moves: implicit Euler multiplies "
    "errors by eta/(1 + eta) in every step, however small, and is unstable for eta < -1/2.",
    equations=r"x_1 + \eta t x_2 = \sin t,\qquad x_1' + \eta t x_2' + (1 + \eta)\,x_2 = 0",
)
def moving_nullspace(eta: float = -0.25) -> Model:
    r"""The example of Gear and Petzold on which BDF methods are unstable; :math:`x_2 = -\cos t`.

    Parameters
    ----------
    eta : float
        How fast the nullspace moves; below -1/2 implicit Euler is unstable, at -1 the pencil is singular.
    """

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        s, c = math.sin(t), math.cos(t)
        return np.array([s + eta * t * c, -c]) if derivative == 0 else np.array([c + eta * (c - t * s), s])

    return closed_model(
        daedal.ImplicitDAE(moving_nullspace_residual, 2, params=np.array([float(eta)]), names=["x1", "x2"]),
        exact,
        2.0,
        index=2,
        indices=Indices.usual(2, 0, local=None if eta == -1.0 else 2, structural=1, structure_suffices=False),
        options={"rtol": 1e-6, "atol": 1e-8, "formulation": "strangeness_free"},
    )


# --- constant coefficients -------------------------------------------------------------------------------------------

SINE = Source(amplitude=1.0, frequency=1.0)
COSINE = Source(amplitude=1.0, frequency=1.0, phase=math.pi / 2.0)


@model(
    title="The same derivatives twice",
    source=BRENAN_CAMPBELL_PETZOLD + ", section 7.3, with other right-hand sides",
    description="Both equations contain the sum of the derivatives. Where zeros and nonzeros are all that is seen, "
    "this looks like an ordinary differential equation; their difference is an algebraic equation, and the index is 1.",
    equations=r"x' + y' + x + y = \cos t,\qquad x' + y' + x + 2y = \sin t",
)
def same_derivatives() -> Model:
    r"""A DAE of index 1 and structural index 0; :math:`y = \sin t - \cos t`."""
    H, G = np.ones((2, 2)), np.array([[1.0, 1.0], [1.0, 2.0]])

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        s, c = SINE(t, derivative), COSINE(t, derivative)
        total = 0.5 * (s + c) + (-1.0) ** derivative * math.exp(-t)
        return np.array([total - s + c, s - c])

    problem = linear_dae(H, G, {0: COSINE, 1: SINE}, ["x", "y"])
    indices = Indices.usual(1, 1, structural=0, structure_suffices=False)
    return closed_model(problem, exact, 2.0, index=1, indices=indices)


@model(
    title="Chain of any index",
    source=BRENAN_CAMPBELL_PETZOLD + ", the nilpotent part of theorem 2.3.2 with one block",
    description="Each unknown is minus the derivative of the one before it, plus data: differentiation, done by a DAE "
    "of any index.",
    equations=r"x_1 = g_1(t),\qquad x_{k-1}' + x_k = g_k(t),\qquad g_k = \sin\bigl(t + \tfrac{k\pi}{3}\bigr)",
)
def nilpotent_chain(index: int = 4) -> Model:
    """The canonical system N x' + x = g of any index.

    Parameters
    ----------
    index : int
        Number of equations.
    """
    if index < 1:
        raise daedal.InvalidProblemError(f"index={index} must be at least 1")
    data = [Source(amplitude=1.0, frequency=1.0, phase=k * math.pi / 3.0) for k in range(1, index + 1)]

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        return np.array([sum((-1.0) ** i * data[k - i](t, derivative + i) for i in range(k + 1)) for k in range(index)])

    problem = linear_dae(
        np.eye(index, k=-1), np.eye(index), dict(enumerate(data)), [f"x{k}" for k in range(1, index + 1)]
    )
    return closed_model(problem, exact, 1.0, accuracy=1e-13, index=index, indices=Indices.usual(index, 0))


@model(
    title="Index 1, structural index as high as you like",
    source="G. Reissig, W. S. Martinson, P. I. Barton, Differential-algebraic equations of index 1 may have an "
    "arbitrarily high structural index, SIAM J. Sci. Comput. 21 (2000), pp. 1987-1990; the data are Daedal's",
    description="Pairs of equations share their derivatives. A method that counts derivatives differentiates the last "
    "equation many times; one that subtracts equations from each other needs a single differentiation.",
    equations=r"""x_{2i}' + x_{2i+1}' + x_{2i-1} = f_{2i-1},\qquad x_{2i}' + x_{2i+1}' + x_{2i} = f_{2i} \quad
    (i = 1, \dots, m),\qquad x_{2m+1} = f_{2m+1},\qquad f_k = \sin\bigl(t + \tfrac{k\pi}{3}\bigr)""",
)
def overrated_structure(pairs: int = 3) -> Model:
    """A linear DAE of index 1 and structural index ``pairs + 1``.

    Parameters
    ----------
    pairs : int
        Number m of pairs of equations.
    """
    if pairs < 1:
        raise daedal.InvalidProblemError(f"pairs={pairs} must be at least 1")
    n = 2 * pairs + 1
    H, G = np.zeros((n, n)), np.eye(n)
    for i in range(pairs):
        H[2 * i : 2 * i + 2, 2 * i + 1 : 2 * i + 3] = 1.0
    data = [Source(amplitude=1.0, frequency=1.0, phase=k * math.pi / 3.0) for k in range(1, n + 1)]
    # x = Im(c exp(i t)) + sum of decaying terms, none of which are excited
    amplitudes = np.linalg.solve(1j * H + G, np.exp(1j * np.array([source.phase for source in data])))

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        return np.imag(1j**derivative * amplitudes * np.exp(1j * t))

    problem = linear_dae(H, G, dict(enumerate(data)), [f"x{k}" for k in range(1, n + 1)])
    return closed_model(
        problem,
        exact,
        2.0,
        accuracy=1e-13,
        index=1,
        indices=Indices.usual(1, pairs, structural=pairs + 1),
    )
