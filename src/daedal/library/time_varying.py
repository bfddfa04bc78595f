"""Linear DAEs whose index differs from the index of the pencil: Brenan, Campbell and Petzold, sections 2.4 and 3.1.

``model.extra["exact"](t, derivative)`` is the closed-form solution, for derivative 0 and 1.
"""

import math

import numpy as np

import daedal
from daedal.library.circuits import Source, linear_dae
from daedal.library.registry import Indices, Model, closed_model, model


def singular_pencil_residual(t, x, xp):
    return np.array([xp[0] + t * xp[1] - math.exp(-t), x[0] + t * x[1] - math.sin(t)])


@model
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
        indices=Indices.usual(2, 0, local=None, structural=1, structure_suffices=False),
    )


def unsolvable_pencil_residual(t, x, xp):
    return np.array([-t * xp[0] + t * t * xp[1] + x[0], -xp[0] + t * xp[1] + x[1]])


@model
def unsolvable_pencil() -> Model:
    r"""A DAE with a regular pencil and the solutions :math:`x = \varphi(t)\,(t, 1)` for any function :math:`\varphi`.

    Notes
    -----
    The first equation minus t times the second one is :math:`x_1 = t x_2`, whose derivative makes the second equation
    redundant: however often the equations are differentiated, one derivative remains undetermined.
    ``model.extra["exact"]`` is the solution with :math:`\varphi = \sin t`; there is no reference, since all solutions
    are equally valid.
    """

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        s, c = math.sin(t), math.cos(t)
        return np.array([t * s, s]) if derivative == 0 else np.array([s + t * c, c])

    return Model(
        problem=daedal.ImplicitDAE(unsolvable_pencil_residual, 2, names=["x1", "x2"]),
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
        extra={"exact": exact},
    )


def changing_nullspace_residual(t, x, xp):
    ahead, behind = max(t, 0.0) ** 4, max(-t, 0.0) ** 4
    return np.array([ahead * xp[1] + x[0] - math.sin(t), behind * xp[0] + x[1] - math.cos(2.0 * t)])


@model
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
            [slope1 - 4.0 * ahead**3 * slope2 - ahead**4 * bend2, slope2 + 4.0 * behind**3 * slope1 - behind**4 * bend1]
        )

    return closed_model(daedal.ImplicitDAE(changing_nullspace_residual, 2, names=["x1", "x2"]), exact, 1.0, t0=-1.0)


def changing_rank_residual(t, x, xp):
    return np.array([(t - 1.0) * xp[1] + x[0] - math.cos(t), x[1] - math.sin(t)])


@model
def changing_rank() -> Model:
    r"""A solvable DAE whose local index is 2, but 1 at t = 1; :math:`x_1 = (2 - t) \cos t`."""

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        s, c = math.sin(t), math.cos(t)
        return np.array([(2.0 - t) * c, s]) if derivative == 0 else np.array([-c - (2.0 - t) * s, c])

    return closed_model(daedal.ImplicitDAE(changing_rank_residual, 2, algebraic=[0], names=["x1", "x2"]), exact, 2.0)


def moving_nullspace_residual(t, x, xp, p):
    eta = p[0]
    return np.array([x[0] + eta * t * x[1] - math.sin(t), xp[0] + eta * t * xp[1] + (1.0 + eta) * x[1]])


@model
def moving_nullspace(eta: float = -0.25) -> Model:
    r"""The example of Gear and Petzold for which BDF methods are unstable; :math:`x_2 = -\cos t`."""

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        s, c = math.sin(t), math.cos(t)
        return np.array([s + eta * t * c, -c]) if derivative == 0 else np.array([c + eta * (c - t * s), s])

    return closed_model(
        daedal.ImplicitDAE(moving_nullspace_residual, 2, params=np.array([float(eta)]), names=["x1", "x2"]),
        exact,
        2.0,
        indices=Indices.usual(2, 0, local=None if eta == -1.0 else 2, structural=1, structure_suffices=False),
    )


# --- constant coefficients -------------------------------------------------------------------------------------------

SINE = Source(amplitude=1.0, frequency=1.0)
COSINE = Source(amplitude=1.0, frequency=1.0, phase=math.pi / 2.0)


@model
def same_derivatives() -> Model:
    r"""A DAE of index 1 and structural index 0; :math:`y = \sin t - \cos t`."""
    H, G = np.ones((2, 2)), np.array([[1.0, 1.0], [1.0, 2.0]])

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        s, c = SINE(t, derivative), COSINE(t, derivative)
        total = 0.5 * (s + c) + (-1.0) ** derivative * math.exp(-t)
        return np.array([total - s + c, s - c])

    problem = linear_dae(H, G, {0: COSINE, 1: SINE}, ["x", "y"])
    indices = Indices.usual(1, 1, structural=0, structure_suffices=False)
    return closed_model(problem, exact, 2.0, indices=indices)


@model
def nilpotent_chain(index: int = 4) -> Model:
    """The canonical system N x' + x = g of any index."""
    if index < 1:
        raise daedal.InvalidProblemError(f"index={index} must be at least 1")
    data = [Source(amplitude=1.0, frequency=1.0, phase=k * math.pi / 3.0) for k in range(1, index + 1)]

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        return np.array([sum((-1.0) ** i * data[k - i](t, derivative + i) for i in range(k + 1)) for k in range(index)])

    problem = linear_dae(
        np.eye(index, k=-1), np.eye(index), dict(enumerate(data)), [f"x{k}" for k in range(1, index + 1)]
    )
    return closed_model(problem, exact, 1.0, accuracy=1e-13, index=index, indices=Indices.usual(index, 0))


@model
def overrated_structure(pairs: int = 3) -> Model:
    """A linear DAE of index 1 and structural index ``pairs + 1``."""
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
    return closed_model(problem, exact, 2.0, accuracy=1e-13, indices=Indices.usual(1, pairs, structural=pairs + 1))
